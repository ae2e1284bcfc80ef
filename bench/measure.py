"""Shared parts of the Python benchmarks: options, repetition, table, record."""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

__all__ = ["Figure", "Report", "machine", "resident_bytes"]

Clock = Callable[[], float]

# Prepares a run and returns the function to time.
Prepare = Callable[[], Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    case: str
    unit: str
    median: float
    runs: list[float]


class Report:
    """Runs the selected cases, prints each, and records all of them.

    Args:
        title: The subject of the measurement, for the help text.
        count: The default number of items or rows of a case.
        clock: A function that returns the time in seconds.
    """

    def __init__(self, title: str, *, count: int, clock: Clock) -> None:
        options = _options(title, count)
        self.count: int = options.count
        self._repeat: int = options.repeat
        self._filter: str = options.filter
        self._json: Path | None = options.json
        self._clock = clock
        self._figures: list[Figure] = []
        self._machine = machine()
        for name, value in self._machine.items():
            print(f"{name:<10} {value}")
        print()

    def wants(self, case: str) -> bool:
        """Whether a case is selected."""
        return self._filter in case

    def rate(self, case: str, count: int, prepare: Prepare) -> None:
        """Measures millions of items per second.

        Args:
            case: Its name.
            count: How many items one run takes.
            prepare: Prepares a run and returns the function to time.
        """
        self._time(case, "M/s", prepare, lambda seconds: count / seconds / 1e6)

    def nanoseconds(self, case: str, count: int, prepare: Prepare) -> None:
        """Measures nanoseconds per item; the arguments are those of `rate`."""
        self._time(case, "ns", prepare, lambda seconds: seconds / count * 1e9)

    def figure(self, case: str, unit: str, value: Callable[[], float]) -> None:
        """Records a figure that does not vary from run to run."""
        if self.wants(case):
            self._add(Figure(case, unit, value(), []))

    def write(self) -> None:
        """Writes the record, if there is a file for it."""
        if self._json is not None:
            figures = [asdict(figure) for figure in self._figures]
            record = {"machine": self._machine, "figures": figures}
            self._json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    def _time(
        self,
        case: str,
        unit: str,
        prepare: Prepare,
        convert: Callable[[float], float],
    ) -> None:
        if not self.wants(case):
            return
        runs = []
        for _ in range(self._repeat):
            timed = prepare()
            gc.collect()
            gc.disable()
            start = self._clock()
            timed()
            seconds = self._clock() - start
            gc.enable()
            runs.append(round(convert(seconds), 2))
        self._add(Figure(case, unit, statistics.median(runs), sorted(runs)))

    def _add(self, figure: Figure) -> None:
        self._figures.append(figure)
        runs = f"   {figure.runs}" if len(figure.runs) > 1 else ""
        print(f"{figure.case:<46} {figure.median:>9.1f} {figure.unit:<13}{runs}")


def resident_bytes() -> int | None:
    """The resident memory of this process, or None if the system does not report it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = status.read_text(encoding="ascii").splitlines()
    held = next(line for line in lines if line.startswith("VmRSS:"))
    return int(held.split()[1]) * 1024


def _options(title: str, count: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("filter", nargs="?", default="", help="only cases with this")
    parser.add_argument("--count", type=int, default=count, help="items or rows")
    parser.add_argument("--repeat", type=int, default=5, help="runs; the median counts")
    parser.add_argument("--json", type=Path, help="a file for the record")
    return parser.parse_args()


_PACKAGES = ("slidewise", "numpy", "pandas", "polars", "pyarrow")


def machine(packages: Sequence[str] = _PACKAGES) -> dict[str, str]:
    """The record: figures, machine and versions."""
    versions = (f"{name} {metadata.version(name)}" for name in packages)
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": _commit(),
        "processor": _processor(),
        "python": platform.python_version(),
        "packages": ", ".join(versions),
    }


def _commit() -> str:
    """The commit of this checkout; the installed package may be of another."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
