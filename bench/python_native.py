"""Custom aggregations by Numba, compared with built-in ones and with Python; sketches.

Measures one operation three times: built in, compiled by Numba, and in Python. `three
calls` are those of a slide (evict, insert, query), the loop included; `bulk` evicts,
inserts and answers 1,024 entries at a time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from bench.measure import Report

import slidewise as sw

if TYPE_CHECKING:
    from collections.abc import Callable

ALGORITHMS = ["fiba", "two_stacks_lite", "daba_lite"]


def combine_moments(a, b, out):
    n = a.n + b.n
    gap = b.mean - a.mean
    out.n = n
    out.mean = a.mean + gap * b.n / n
    out.m2 = a.m2 + b.m2 + gap * gap * a.n * b.n / n


def lift_moments(value, out):
    out.n = 1.0
    out.mean = value
    out.m2 = 0.0


def _in_python(a, b):
    n = a[0] + b[0]
    gap = b[1] - a[1]
    mean = a[1] + gap * b[0] / n
    return n, mean, a[2] + b[2] + gap * gap * a[0] * b[0] / n


def _moments() -> dict[str, Any]:
    import numba

    record = np.dtype([("n", "f8"), ("mean", "f8"), ("m2", "f8")])
    pointer = numba.types.CPointer(numba.from_dtype(record))

    @numba.cfunc(numba.types.float64(pointer))
    def variance(held):
        one = numba.carray(held, 1)[0]
        return one.m2 / (one.n - 1)

    return {
        "built in": sw.variance(),
        "numba": sw.native(
            combine_moments,
            record,
            lift=lift_moments,
            lower=variance,
            commutative=True,
        ),
        "python": sw.aggregation(
            lift=lambda value: (1.0, value, 0.0),
            combine=_in_python,
            lower=lambda held: held[2] / (held[0] - 1),
            identity=(0.0, 0.0, 0.0),
            commutative=True,
        ),
    }


def _largest() -> dict[str, Any]:
    return {
        "built in": sw.max(),
        "numba": sw.native(lambda a, b: a if a > b else b, "float64", commutative=True),
        "python": sw.aggregation(
            combine=lambda a, b: a if a > b else b,
            identity=float("-inf"),
            commutative=True,
        ),
    }


SKETCHES = {
    "approx_count_distinct": sw.approx_count_distinct(),
    "approx_quantile": sw.approx_quantile(0.9),
    "bloom": sw.bloom(),
    "count_min": sw.count_min(),
    "heavy_hitters": sw.heavy_hitters(10),
}


def main() -> None:
    report = Report(__doc__, count=1 << 16, clock=time.thread_time)
    for what, make in (("variance", _moments), ("max", _largest)):
        if not any(report.wants(f"{what}, {how}") for how in ("", "numba")):
            continue
        for how, agg in make().items():
            for algorithm in ALGORITHMS:
                _measure(report, f"{what}, {how}, {algorithm}", agg, algorithm)
    for what, agg in SKETCHES.items():
        _measure(report, what, agg, "fiba", slides=2_000, turns=16)
    report.write()


def _measure(
    report: Report,
    case: str,
    agg: Any,
    algorithm: str,
    slides: int = 1 << 17,
    turns: int = 128,
) -> None:
    if case.split(", ")[1:2] == ["python"]:
        slides, turns = slides // 8, turns // 8
    n = report.count
    report.nanoseconds(
        f"{case}, three calls", slides, lambda: _slides(agg, algorithm, n, slides)
    )
    report.rate(
        f"{case}, bulk m=1024",
        1024 * turns,
        lambda: _bulk(agg, algorithm, n, turns),
    )


def _filled(agg: Any, algorithm: str, n: int) -> sw.Window:
    w = sw.Window(agg, algorithm=algorithm)
    w.insert_many(np.arange(n), np.arange(n) * 0.5)
    w.query()
    return w


def _slides(agg: Any, algorithm: str, n: int, slides: int) -> Callable[[], object]:
    w = _filled(agg, algorithm, n)
    values = [float(value * 37 % 101) for value in range(101)]

    def run() -> None:
        for at in range(n, n + slides):
            w.insert(at, values[at % 101])
            w.evict()
            w.query()

    return run


def _bulk(agg: Any, algorithm: str, n: int, turns: int) -> Callable[[], object]:
    w = _filled(agg, algorithm, n)
    values = np.arange(1024) * 0.5

    def run() -> None:
        for turn in range(turns):
            w.evict_until(1024 * turn + 1023)
            first = n + 1024 * turn
            w.insert_many(np.arange(first, first + 1024), values)
            w.query()

    return run


if __name__ == "__main__":
    main()
