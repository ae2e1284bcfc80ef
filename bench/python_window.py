"""`slidewise.Window` from Python: single calls, bulk calls, snapshots, memory.

CPU time of the thread; an item of "three calls" is one evict, one insert, one query.

    python -m bench.python_window [FILTER] [--count N] [--repeat N] [--json FILE]
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import pyarrow as pa
from bench.measure import Report, resident_bytes

import slidewise as sw

# Calls per run of a case that calls once per item.
CALLS = 200_000

# The number of small windows: enough for their memory to dominate.
MANY = 50_000

Aggs = sw.Aggregation | Mapping[str, sw.Aggregation]
Timed = Callable[[], object]


def main() -> None:
    """Measures all cases."""
    title = "The speed and the memory of slidewise.Window."
    report = Report(title, count=1_000_000, clock=time.thread_time)
    calls_in_order(report)
    calls_one_by_one(report)
    late_calls(report)
    bulk_calls(report)
    snapshots(report)
    memory(report)
    report.write()


def filled(aggs: Aggs, count: int, *, floats: bool = True) -> sw.Window:
    """A window with entries at 0, 1, 2, ..."""
    window = sw.Window(aggs)
    values = np.arange(count) % 101
    window.insert_many(np.arange(count), values * 0.01 if floats else values)
    return window


def turn(window: sw.Window, times: Sequence[Any], values: Sequence[Any]) -> Timed:
    """The three calls, once per time and value."""

    def timed() -> None:
        evict, insert, query = window.evict, window.insert, window.query
        for at, value in zip(times, values, strict=True):
            evict()
            insert(at, value)
            query()

    return timed


def calls_in_order(report: Report) -> None:
    """Entries that arrive in order of time."""
    cases: list[tuple[str, Aggs, bool]] = [
        ("sum int", sw.sum(), False),
        ("sum float", sw.sum(), True),
        ("max float", sw.max(), True),
        ("mean float", sw.mean(), True),
        ("stddev float", sw.stddev(), True),
        ("count and mean float", {"n": sw.count(), "avg": sw.mean()}, True),
    ]
    for name, aggs, floats in cases:
        prepare = partial(in_order, aggs, report.count, floats=floats)
        report.nanoseconds(f"three calls, {name}", CALLS, prepare)
    report.nanoseconds("three calls, sum int at datetimes", CALLS, at_datetimes)


def in_order(aggs: Aggs, count: int, *, floats: bool) -> Timed:
    """The three calls on a window of so many entries."""
    numbers = [i % 101 for i in range(CALLS)]
    values = [x * 0.01 for x in numbers] if floats else numbers
    return turn(filled(aggs, count, floats=floats), range(count, count + CALLS), values)


def at_datetimes() -> Timed:
    """The three calls on a window of a thousand entries, one a second."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [start + timedelta(seconds=second) for second in range(CALLS + 1000)]
    window = sw.Window(sw.sum())
    for at in times[:1000]:
        window.insert(at, 1)
    return turn(window, times[1000:], [1] * CALLS)


def calls_one_by_one(report: Report) -> None:
    """Each of the three calls alone, the loop around it included."""

    def inserts() -> Timed:
        insert = filled(sw.sum(), report.count).insert

        def timed() -> None:
            for at in range(report.count, report.count + CALLS):
                insert(at, 0.5)

        return timed

    def calls(name: str) -> Timed:
        call = getattr(filled(sw.sum(), report.count), name)

        def timed() -> None:
            for _ in range(CALLS):
                call()

        return timed

    report.nanoseconds("insert alone, sum float", CALLS, inserts)
    for name in ("query", "evict"):
        report.nanoseconds(f"{name} alone, sum float", CALLS, partial(calls, name))


def late_calls(report: Report) -> None:
    """Entry i arrives as number i + lag, with its lag drawn from 0..d."""
    for d in (16, 1024, 65536):
        case = f"three calls, sum float, random lag d={d}"
        if report.wants(case):
            times = arrivals(report.count + CALLS, d)
            report.nanoseconds(case, CALLS, partial(late, times))


def arrivals(count: int, d: int) -> list[int]:
    """Times in order of arrival."""
    rng = random.Random(42)
    return sorted(range(count), key=lambda at: at + rng.randrange(d))


def late(times: Sequence[int]) -> Timed:
    """The three calls for the last of these times, on a window of all earlier ones."""
    before = np.asarray(times[:-CALLS])
    window = sw.Window(sw.sum())
    window.insert_many(before, before % 101 * 0.01)
    return turn(window, times[-CALLS:], [0.5] * CALLS)


def bulk_calls(report: Report) -> None:
    """One call that inserts or evicts many."""
    n = report.count
    ints, floats = np.arange(n), np.arange(n) % 101 * 0.01
    shuffled = np.random.default_rng(42).permutation(n)
    columns: dict[str, tuple[Any, Any]] = {
        "numpy int64": (ints, ints % 101),
        "numpy float64": (ints, floats),
        "Arrow int64": (pa.array(ints), pa.array(ints % 101)),
        "Arrow float64": (pa.array(ints), pa.array(floats)),
        "lists of int": (ints.tolist(), (ints % 101).tolist()),
        "datetime64, float64": (ints.astype("datetime64[s]"), floats),
        "float64, shuffled": (shuffled, floats),
    }
    for name, (times, values) in columns.items():
        prepare = partial(bulk_insert, times, values)
        report.rate(f"insert_many, sum, {name}", n, prepare)
    report.rate("evict_until half, sum float64", n // 2, partial(half_evicted, n))


def bulk_insert(times: object, values: object) -> Timed:
    """One bulk insert into an empty window."""
    return partial(sw.Window(sw.sum()).insert_many, times, values)


def half_evicted(count: int) -> Timed:
    """One bulk evict."""
    return partial(filled(sw.sum(), count).evict_until, count // 2 - 1)


def snapshots(report: Report) -> None:
    """Evicts all entries and inserts them again."""
    n = report.count
    window = filled(sw.sum(), n)
    blob = window.to_bytes()
    report.rate("to_bytes, sum float64", n, lambda: window.to_bytes)
    report.rate("from_bytes, sum float64", n, lambda: partial(window.from_bytes, blob))
    report.rate("copy, sum float64", n, lambda: window.copy)
    report.rate("items, sum float64", n, lambda: window.items)
    report.figure("snapshot, sum float64", "bytes/entry", lambda: len(blob) / n)


def memory(report: Report) -> None:
    """Memory: `nbytes` of windows, and the resident memory of many small ones."""
    n = report.count

    def counted(entries: int) -> float:
        return filled(sw.sum(), entries).nbytes

    report.figure("nbytes, in order", "bytes/entry", lambda: counted(n) / n)
    for entries in (1, 10):
        of = f"window of {entries}"
        report.figure(f"nbytes, {of}", "bytes/window", partial(counted, entries))
        if resident_bytes() is not None:
            alone = partial(in_own_process, entries)
            report.figure(f"resident, {of}", "bytes/window", alone)


def in_own_process(entries: int) -> float:
    """Runs in a new process, because resident memory counts memory freed before."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(resident, entries).result()


def resident(entries: int) -> float:
    """The memory of each of many windows, the Python objects included."""
    windows: list[sw.Window | None] = [None] * MANY
    before = resident_bytes() or 0
    for index in range(MANY):
        window = sw.Window(sw.sum())
        for at in range(entries):
            window.insert(at, 0.5)
        windows[index] = window
    return ((resident_bytes() or 0) - before) / MANY


if __name__ == "__main__":
    main()
