"""How long queries take and how old their rows are, counted for `slidewise.metrics`."""

import os
from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from threading import Lock
from time import time
from typing import NamedTuple

__all__ = ["AGES", "BATCHES", "QUERIES", "Histogram", "Reading", "observe"]


def _steps(first: int, last: int) -> tuple[float, ...]:
    """1, 2.5 and 5 times the powers of ten from one exponent to before another."""
    return tuple(
        float(f"{digits}e{power}")
        for power in range(first, last)
        for digits in ("1", "2.5", "5")
    )


# Bounds of buckets, in seconds: of queries, of micro-batches, and of the ages of rows.
QUERIES = _steps(-6, 1)
BATCHES = _steps(-2, 3)
AGES = (
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0),
    *(1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0),
)


class Histogram:
    """Counts of values, by buckets.

    Attributes:
        bounds: The upper bounds of the buckets, ascending, which belong to them.
        counts: The number of values in each bucket, and above the last bound.
        sum: The sum of the values.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def read(self) -> tuple[list[int], float]:
        """The number of values up to each bound and of all, and their sum."""
        with _lock:
            counts, total = [*self.counts], self.sum
        return [*accumulate(counts)], total


def observe(
    durations: Histogram, seconds: float, ages: Histogram, latest: float | None
) -> None:
    """Counts a duration, and the age of the latest rows where their time is known.

    Threads may call it at once.
    """
    with _lock:
        durations.counts[bisect_left(durations.bounds, seconds)] += 1
        durations.sum += seconds
        if latest is not None:
            age = time() - latest
            if age < 0.0:  # rows of the future are fresh
                age = 0.0
            ages.counts[bisect_left(ages.bounds, age)] += 1
            ages.sum += age


class Reading(NamedTuple):
    """What an exporter reads of a stream.

    Attributes:
        stream: The name of the query on Spark; empty in process.
        values: What `metrics` gives.
        histograms: "freshness", and "query_duration" or "batch_duration".
    """

    stream: str
    values: Mapping[str, float]
    histograms: Mapping[str, Histogram]


# Of all histograms: it is held for less than a microsecond.
_lock = Lock()


def _after_fork_in_child() -> None:
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
