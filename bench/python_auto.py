"""The figures behind the rules of `algorithm="auto"`.

Entries come in order, because only then is there a choice. Per aggregation and
algorithm the three calls of a slide (evict, insert, query), the loop included, and
combines per slide where they can be counted.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from bench.measure import Report

import slidewise as sw
from slidewise.window.algorithms import ALGORITHMS

if TYPE_CHECKING:
    from collections.abc import Callable

# The algorithms that a rule names or could name.
CANDIDATES = [
    "fiba",
    "subtract_on_evict",
    "two_stacks",
    "two_stacks_lite",
    "aba",
    "daba",
    "daba_lite",
    "slick_deque",
]

_COMBINES = [0]


def _counted(a: int, b: int) -> int:
    _COMBINES[0] += 1
    return a if a > b else b


AGGS: dict[str, tuple[Any, Callable[[int], object]]] = {
    "sum of ints": (sw.sum(), int),
    "sum of floats": (sw.sum(), float),
    "max of floats": (sw.max(), float),
    "count, mean, stddev": (
        {"n": sw.count(), "avg": sw.mean(), "dev": sw.stddev()},
        float,
    ),
    "collect of one": (sw.collect(), str),
    "own max": (sw.aggregation(combine=_counted, identity=-1), int),
}


def main() -> None:
    report = Report(__doc__, count=1 << 16, clock=time.thread_time)
    entries = report.count
    for what, (agg, make) in AGGS.items():
        length = 1 if what.endswith("of one") else entries
        values = [make(value * 37 % 101) for value in range(101)]
        for algorithm in CANDIDATES:
            if algorithm not in ALGORITHMS or not _obeys(agg, algorithm):
                continue
            case = f"{what}, {algorithm}"
            report.nanoseconds(
                f"{case}, three calls",
                3 * entries,
                lambda agg=agg, algorithm=algorithm, values=values, length=length: (
                    _slides(agg, algorithm, values, length, 3 * entries)
                ),
            )
            if what.startswith("own"):
                report.figure(
                    f"{case}, combines",
                    "per slide",
                    lambda agg=agg, algorithm=algorithm, values=values: _combines(
                        agg, algorithm, values, entries
                    ),
                )
            elif length > 1:
                report.rate(
                    f"{case}, bulk m=1024",
                    1024 * 512,
                    lambda agg=agg, algorithm=algorithm, make=make: _bulk(
                        agg, algorithm, make, entries
                    ),
                )
    report.write()


def _obeys(agg: Any, algorithm: str) -> bool:
    try:
        sw.Window(agg, algorithm=algorithm)
    except sw.SpecError:
        return False
    return True


def _filled(agg: Any, algorithm: str, values: list[Any], length: int) -> sw.Window:
    w = sw.Window(agg, algorithm=algorithm)
    for at in range(length):
        w.insert(at, values[at % 101])
    w.query()
    return w


def _slides(
    agg: Any, algorithm: str, values: list[Any], length: int, slides: int
) -> Callable[[], object]:
    w = _filled(agg, algorithm, values, length)

    def run() -> None:
        for at in range(length, length + slides):
            w.insert(at, values[at % 101])
            w.evict()
            w.query()

    return run


def _combines(agg: Any, algorithm: str, values: list[Any], length: int) -> float:
    run = _slides(agg, algorithm, values, length, 2 * length)
    before = _COMBINES[0]
    run()
    return (_COMBINES[0] - before) / (2 * length)


def _bulk(
    agg: Any, algorithm: str, make: Callable[[int], object], length: int
) -> Callable[[], object]:
    kind = "int64" if make is int else "float64"
    values = (np.arange(1024) % 101).astype(kind)
    w = sw.Window(agg, algorithm=algorithm)
    w.insert_many(np.arange(length), np.resize(values, length))

    def run() -> None:
        for turn in range(512):
            w.evict_until(1024 * turn + 1023)
            first = length + 1024 * turn
            w.insert_many(np.arange(first, first + 1024), values)
            w.query()

    return run


if __name__ == "__main__":
    main()
