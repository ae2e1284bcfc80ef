"""The authors' C++ beside the core, in turn: `make experiments CPP=path`.

The path is a checkout of github.com/IBM/sliding-window-aggregators. Nothing is fetched,
and nothing is written there: the drivers are compiled into the folder of the results.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.experiments import driver
from bench.experiments.orders import Order, Results

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PAIRS", "Pair", "build", "compare"]

_FLAGS = ("-std=gnu++17", "-DHAS_UNCAUGHT_EXCEPTIONS=1", "-O3", "-DNDEBUG")
_TURNS = 3

# Each turn of the C++ takes about so many items: whole windows, without the fill.
_ITEMS = {"sum": 1 << 22, "geomean": 1 << 21}
_N = 1 << 16


@dataclass(frozen=True)
class Pair:
    """A measurement that both do.

    Args:
        program: The C++ driver.
        theirs: Its name of the structure.
        ours: The name here.
        operator: Sum or geomean; its Bloom filters have another size than the papers'.
        mode: What a round is, here.
        d: Out-of-order distance.
        m: Bulk size.
    """

    program: str
    theirs: str
    ours: str
    operator: str = "sum"
    mode: str = "slide"
    d: int = 0
    m: int = 1

    @property
    def case(self) -> str:
        """For the table."""
        sizes = f", d = {self.d}" if self.d else ""
        sizes += f", bulks of {self.m}" if self.mode != "slide" else ""
        return f"{self.theirs}, {self.operator}{sizes}"

    def arguments(self, items: int) -> list[str]:
        """Of the C++ driver, for so many items after the fill."""
        sizes = [_N]
        if self.program != "benchmark_driver":
            sizes.append(self.d)
        if self.program.startswith("bulk"):
            sizes.append(self.m)
        sizes.append(_N + items)
        return [self.theirs, self.operator, *map(str, sizes)]

    def order(self) -> Order:
        """Of the driver here."""
        words: dict[str, Any] = {
            "metric": "throughput",
            "mode": self.mode,
            "structure": self.ours,
            "operator": self.operator,
            "n": _N,
            "d": self.d,
            "m": self.m,
            "millis": 200,
        }
        return tuple(sorted((name, str(word)) for name, word in words.items()))


_FIFO = {
    "sub_evict": "subtract_on_evict",
    "two_stacks": "two_stacks",
    "two_stacks_lite": "two_stacks_lite",
    "chunked_two_stacks_lite": "two_stacks_lite",
    "daba": "daba:uncached",
    "daba_caching": "daba",
    "daba_lite": "daba_lite",
    "aba": "aba",
    "flatfit": "flat_fit",
    "reactive": "reactive",
}

# Bulks in order only: for d > 0 their bulk driver evicts the whole window at once.
PAIRS: tuple[Pair, ...] = (
    *(
        Pair("benchmark_driver", theirs, ours, operator)
        for operator in ("sum", "geomean")
        for theirs, ours in _FIFO.items()
        if operator == "sum" or theirs != "sub_evict"
    ),
    *(
        Pair("ooo_benchmark_driver", f"{theirs}{mu}", f"{ours}:{mu}", operator, d=d)
        for operator in ("sum", "geomean")
        for d in (0, 16, 1024)
        for theirs, ours in (("bclassic", "btree"), ("bfinger", "fiba_published"))
        for mu in (2, 4, 8)
    ),
    *(
        Pair(
            "bulk_evict_insert_benchmark_driver",
            theirs,
            ours,
            mode="bulk",
            m=m,
        )
        for m in (64, 1024)
        for theirs, ours in (
            ("bfinger4", "fiba_published:4"),
            ("nbfinger4", "fiba_published:4:loop"),
            ("two_stacks_lite", "two_stacks_lite:timed"),
            ("daba_lite", "daba_lite:timed"),
            ("amta", "amta:timed"),
        )
    ),
)


def build(folder: Path, out: Path) -> dict[str, Path]:
    """Compiles the drivers of a checkout, which takes some minutes the first time.

    Args:
        folder: The checkout.
        out: Where the programs go.

    Raises:
        FileNotFoundError: If it is not such a checkout, or there is no compiler.
    """
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise FileNotFoundError("no g++ or clang++, and CXX names no compiler")
    out.mkdir(parents=True, exist_ok=True)
    programs = {}
    for name in dict.fromkeys(pair.program for pair in PAIRS):
        source = folder / "cpp" / "src" / f"{name}.cc"
        if not source.exists():
            raise FileNotFoundError(
                f"{source} is not there: CPP= names a checkout of "
                "github.com/IBM/sliding-window-aggregators"
            )
        program = out / name
        newest = max(path.stat().st_mtime for path in source.parent.iterdir())
        if not program.exists() or program.stat().st_mtime < newest:
            print(f"compiling {name}", flush=True)
            subprocess.run([compiler, *_FLAGS, source, "-o", program], check=True)
        programs[name] = program
    return programs


def compare(folder: Path, program: Path, out: Path) -> str:
    """Runs both, a turn of one after a turn of the other, and gives a table.

    Args:
        folder: The checkout.
        program: The driver of the core.
        out: Where the C++ programs go.
    """
    programs = build(folder, out / "cpp")
    lines = [
        f"n = {_N:,}; million items per second of CPU time, the median of {_TURNS} "
        "turns with all of them in brackets. Sums have four bytes there and eight "
        "here; a time comes with each entry of a tree and of a bulk.",
        "",
        "| case | C++ | here | here / C++ |",
        "|---|---:|---:|---:|",
    ]
    for pair in PAIRS:
        theirs, ours = [], []
        for _ in range(_TURNS):
            theirs.append(_rate(programs[pair.program], pair))
            results = Results()
            driver.measure(program, [(pair.order(), 1)], results, report=lambda _: None)
            rate = results.value(pair.order(), "rate", 0)
            ours.append((rate or 0.0) / 1e6)
        quotient = statistics.median(ours) / statistics.median(theirs)
        cells = (pair.case, _runs(theirs), _runs(ours), f"{quotient:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
        print(f"  {pair.case}: {quotient:.2f}", flush=True)
    return "\n".join(lines)


def _runs(rates: list[float]) -> str:
    each = ", ".join(f"{rate:.1f}" for rate in sorted(rates))
    return f"{statistics.median(rates):.1f} [{each}]"


def _rate(program: Path, pair: Pair) -> float:
    """Million items per second: the time of a run without that of its fill."""
    items = _ITEMS[pair.operator]
    full = _seconds([str(program), *pair.arguments(items)])
    fill = _seconds([str(program), *pair.arguments(0)])
    return items / max(full - fill, 1e-6) / 1e6


def _seconds(command: list[str]) -> float:
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {running.returncode}")
    return used.ru_utime + used.ru_stime
