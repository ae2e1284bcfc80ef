"""The numbers policy: nothing drifts, whatever enters heals when it leaves.

The bound for sums and means is relative: 2**-50 * sum(|x|) / |sum(x)|, against
``math.fsum``; variances are compared with exact rational arithmetic.
"""

import math
import random
from collections import deque
from fractions import Fraction

import pytest

import slidewise as sw

HOSTILE = {
    "thirty decades": lambda draw: draw.choice([-1, 1]) * 10.0 ** draw.uniform(-15, 15),
    "far from zero": lambda draw: 1e9 + draw.gauss(0, 1),
    "spikes": lambda draw: 1e12 if draw.random() < 0.01 else draw.gauss(5, 1),
    "heavy tail": lambda draw: draw.lognormvariate(0, 8),
}


def exact_variance(values: list[float], ddof: int = 1) -> Fraction:
    whole = [Fraction(value) for value in values]
    mean = sum(whole) / len(whole)
    return sum((value - mean) ** 2 for value in whole) / (len(whole) - ddof)


@pytest.mark.parametrize("late", [0, 40], ids=["in order", "late"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_sums_and_moments_do_not_drift(kind: str, late: int) -> None:
    draw = random.Random(f"{kind}{late}")
    windows = {
        name: sw.Window(
            {"sum": sw.sum(), "mean": sw.mean(), "var": sw.variance()}, **options
        )
        for name, options in {
            "fiba": {},
            "recalculate": {"algorithm": "recalculate"},
        }.items()
    } | {"sum alone": sw.Window(sw.sum())}
    length, slides = 300, 12_000
    times = sorted(range(slides), key=lambda time: time + draw.randrange(late + 1))
    for time in times:
        for window in windows.values():
            window.insert(time, HOSTILE[kind](random.Random(time)))
    # Values are functions of their times, so that every window holds the same.
    values = [HOSTILE[kind](random.Random(time)) for time in range(slides)]
    cut = slides - length - 1
    kept = values[cut + 1 :]
    total, size = math.fsum(kept), math.fsum(map(abs, kept))
    for name, window in windows.items():
        for step in range(0, cut, 61):
            window.evict_until(step)
        window.evict_until(cut)
        answer = window.query()
        answers = {"sum": answer} if name == "sum alone" else answer
        assert abs(answers["sum"] - total) <= 2**-50 * size, (name, kind)
        if name == "sum alone":
            continue
        assert abs(answers["mean"] * length - total) <= 2**-49 * size, (name, kind)
        variance = exact_variance(kept)
        assert abs(Fraction(answers["var"]) / variance - 1) < Fraction(1, 10**12), (
            name,
            kind,
        )


@pytest.mark.parametrize("guest", [math.nan, math.inf, -math.inf, 1e300, -1e300])
@pytest.mark.parametrize("lag", [0, 1, 5])
def test_a_guest_leaves_no_trace(guest: float, lag: int) -> None:
    aggregations = {
        "sum": sw.sum(),
        "mean": sw.mean(),
        "sd": sw.stddev(),
        "min": sw.min(),
        "max": sw.max(),
        "range": sw.range(),
    }
    window = sw.Window(aggregations)
    inside: deque[int] = deque()
    for time in range(400):
        window.insert(time, guest if time == 200 else float(time % 7))
        inside.append(time)
        if len(inside) > 100:
            window.evict()
            inside.popleft()
        if lag and time % 13 == 0 and time > 10:
            window.evict(time - lag)
            window.insert(
                time - lag, guest if time - lag == 200 else float((time - lag) % 7)
            )
    answer = window.query()
    values = [float(time % 7) for time in inside]
    assert answer["sum"] == math.fsum(values)
    assert answer["mean"] == pytest.approx(math.fsum(values) / 100, rel=1e-15)
    assert answer["sd"] == pytest.approx(math.sqrt(exact_variance(values)), rel=1e-13)
    assert (answer["min"], answer["max"], answer["range"]) == (0.0, 6.0, 6.0)


def test_integers_are_exact_beyond_float64() -> None:
    window = sw.Window({"sum": sw.sum(), "mean": sw.mean()})
    base = 2**62
    for time, value in enumerate([base, base + 1, base + 2, -base]):
        window.insert(time, value)
    window.evict(3)
    with pytest.raises(sw.ResultOverflowError):
        window.query()
    window.insert(4, -2 * base)
    window.insert(5, -base)
    answer = window.query()
    assert answer["sum"] == 3


def test_equal_large_means_cancel_to_nothing() -> None:
    window = sw.Window(sw.variance(ddof=0))
    base = 2**62
    window.insert_many(list(range(4)), [base, base, base, base + 3])
    assert window.query() == 27 / 16
    window.evict(3)
    assert window.query() == 0.0
