"""`slidewise bench`: how fast this machine is, in a minute.

Two tables: what a slide of a `Window` costs by each algorithm, and what `rolling` makes
of a table, beside pandas and polars where they are installed. CPU time, the best of
several runs: for figures to keep there is `bench/` in the source.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa

from slidewise.aggregations import BITS, PAIRS, Aggregation
from slidewise.cli.progress import Progress
from slidewise.cli.texts import format_table
from slidewise.errors import SpecError
from slidewise.table.rolling import rolling
from slidewise.window.algorithms import ALGORITHMS
from slidewise.window.window import Window

__all__ = ["add_options", "run"]

_RUNS = 3
# A run of single slides goes on for so long, in seconds of CPU time.
_PATIENCE = 0.1
_SLIDES, _BULK = 500, 1024
_LENGTHS = (100, 10_000, 1_000_000)
# What pandas and polars call it.
_PEERS = {
    **{kind: kind for kind in ("sum", "mean", "min", "max", "median")},
    "stddev": "std",
    "variance": "var",
}

Timed = Callable[[], object]


@dataclass(frozen=True, slots=True)
class _Slide:
    """What one algorithm takes: ns of a slide, and M entries per second in bulk."""

    algorithm: str
    single: float
    bulk: float


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--agg",
        default="sum",
        metavar="KIND",
        help="what to compute, such as sum, max, stddev or median (default: sum)",
    )
    parser.add_argument(
        "--entries",
        type=int,
        default=10_000,
        metavar="N",
        help="how many entries a window holds (default: 10000)",
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=1_000_000,
        metavar="N",
        help="how many rows the table has (default: 1000000)",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the figures there, too"
    )


def run(options: argparse.Namespace) -> None:
    """Measures and prints.

    Raises:
        SpecError: If a number is too small, or the aggregation needs another column.
    """
    agg = _aggregation(options.agg)
    for name in ("entries", "rows"):
        if getattr(options, name) < 1:
            raise SpecError(f"--{name} is at least 1, got {getattr(options, name)}")
    progress = Progress()
    print(f"{_machine()}\n")
    with progress.stage("windows") as done:
        slides = list(_slides(agg, options.entries, done))
    print(f"A Window of {options.entries:,} floats, {agg.kind}, entries in order:\n")
    print(f"{format_table(_slides_table(slides))}\n")
    left = ", ".join(
        name for name in ALGORITHMS if name not in {s.algorithm for s in slides}
    )
    if left:
        print(f"Not for {agg.kind}: {left}\n")
    with progress.stage("tables") as done:
        rates = list(_rates(agg, options.rows, done))
    print(
        f"rolling over {options.rows:,} rows, {agg.kind}, in M rows/s by the rows that "
        "a window holds:\n"
    )
    print(format_table(pa.Table.from_pylist(rates)))
    if options.json is not None:
        record = {
            "machine": _machine(),
            "window": [
                {"algorithm": one.algorithm, "ns": one.single, "bulk": one.bulk}
                for one in slides
            ],
            "rolling": rates,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _aggregation(kind: str) -> Aggregation:
    if kind in ("arg_min", "arg_max", "concat", *PAIRS, *BITS):
        raise SpecError(f"--agg {kind} cannot be measured of one column of floats")
    return Aggregation(kind, k=10 if kind in ("top_k", "bottom_k") else 0)


def _machine() -> str:
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{platform.machine()}, {os.cpu_count()} processors{load}; "
        f"Python {platform.python_version()}; CPU time, best of {_RUNS}"
    )


def _slides(
    agg: Aggregation, entries: int, done: Callable[[float], None]
) -> Iterator[_Slide]:
    fitting = [name for name in ALGORITHMS if _fits(agg, name)]
    for at, name in enumerate(fitting):
        yield _Slide(name, _single(agg, name, entries), _bulk(agg, name, entries))
        done((at + 1) / len(fitting))


def _fits(agg: Aggregation, algorithm: str) -> bool:
    try:
        Window(agg, algorithm=algorithm)
    except SpecError:
        return False
    return True


def _filled(agg: Aggregation, algorithm: str, entries: int) -> Window:
    window = Window(agg, algorithm=algorithm)
    window.insert_many(pa.array(range(entries)), _values(entries))
    return window


def _values(count: int) -> pa.Array:
    return pa.array([(at * 7919 % 1009) * 0.5 for at in range(count)])


def _single(agg: Aggregation, algorithm: str, entries: int) -> float:
    """Nanoseconds of an evict, an insert and a query."""
    window = _filled(agg, algorithm, entries)
    evict, insert, query = window.evict, window.insert, window.query
    values = _values(_SLIDES).to_pylist()
    now, best = entries, float("inf")
    until = time.thread_time() + _RUNS * _PATIENCE
    while best == float("inf") or time.thread_time() < until:
        begin = time.thread_time()
        for value in values:
            evict()
            insert(now, value)
            query()
            now += 1
        best = min(best, time.thread_time() - begin)
    return best / _SLIDES * 1e9


def _bulk(agg: Aggregation, algorithm: str, entries: int) -> float:
    """Millions of entries per second, evicted, inserted and asked for in bulk."""
    window = _filled(agg, algorithm, entries)
    values = _values(_BULK)
    now, best = entries, float("inf")
    until = time.thread_time() + _RUNS * _PATIENCE
    while best == float("inf") or time.thread_time() < until:
        times = pa.array(range(now, now + _BULK))
        begin = time.thread_time()
        window.evict_until(now + _BULK - entries - 1)
        window.insert_many(times, values)
        window.query()
        best = min(best, time.thread_time() - begin)
        now += _BULK
    return _BULK / best / 1e6


def _slides_table(slides: list[_Slide]) -> pa.Table:
    return pa.table(
        {
            "algorithm": [one.algorithm for one in slides],
            "ns per slide": [one.single for one in slides],
            f"M/s, {_BULK:,} at once": [one.bulk for one in slides],
        }
    )


def _rates(
    agg: Aggregation, rows: int, done: Callable[[float], None]
) -> Iterator[dict[str, Any]]:
    times = pa.array(range(rows)).cast(pa.timestamp("ms"))
    table = pa.table({"t": times, "x": _values(rows)})
    lengths = [length for length in _LENGTHS if length <= rows] or [rows]
    libraries = _libraries(agg, table)
    for at, (name, prepared) in enumerate(libraries):
        rates: dict[str, Any] = {"library": name}
        for length in lengths:
            seconds = _best(partial(prepared, f"{length}ms"))
            rates[f"{length:,}"] = rows / seconds / 1e6
        yield rates
        done((at + 1) / len(libraries))


def _best(timed: Timed) -> float:
    best = float("inf")
    for _ in range(_RUNS):
        begin = time.process_time()
        timed()
        best = min(best, time.process_time() - begin)
    return max(best, 1e-9)


def _libraries(
    agg: Aggregation, table: pa.Table
) -> list[tuple[str, Callable[[str], object]]]:
    """Those that are there and can do it, each with what answers for a window."""
    aggs = {"x": Aggregation(agg.kind, "x", ddof=agg.ddof, k=agg.k)}
    found: list[tuple[str, Callable[[str], object]]] = [
        ("slidewise", lambda window: rolling(table, on="t", windows=window, aggs=aggs))
    ]
    name = _PEERS.get(agg.kind)
    if name is None:
        return found
    if find_spec("pandas") is not None:
        series = table.to_pandas().set_index("t")["x"]
        found.append(("pandas", lambda window: getattr(series.rolling(window), name)()))
    if find_spec("polars") is not None:
        polars = __import__("polars")
        frame = polars.from_arrow(table)
        column = getattr(polars.col("x"), f"rolling_{name}_by")
        found.append(
            ("polars", lambda window: frame.select(column("t", window_size=window)))
        )
    return found
