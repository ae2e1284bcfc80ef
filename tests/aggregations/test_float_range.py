"""Sums, shapes and quantiles at the ends of the range of floats."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw

INF = math.inf


def over(agg: Any, values: list[float]) -> list[Any]:
    """The answer over values, the same by all calls."""
    times = list(range(len(values)))
    window = sw.Window(agg())
    window.insert_many(times, values)
    apart = sw.Window({"x": agg(), "n": sw.count()})
    for time in reversed(times):
        apart.insert(time, values[time])
    table = pa.table({"t": times, "k": [0] * len(times), "x": values})
    whole = len(values)
    rolling = sw.rolling(table, on="t", windows=whole, aggs={"a": agg("x")})
    hopping = sw.hopping(table, on="t", window=whole, every=whole, aggs={"a": agg("x")})
    keyed = sw.KeyedWindows(on="t", by="k", windows=whole, aggs={"a": agg("x")})
    keyed.ingest(table)
    keyed.advance(whole)
    return [
        window.query(),
        apart.query()["x"],
        rolling[f"a_{whole}"][-1].as_py(),
        hopping["a"][-1].as_py(),
        keyed.collect()[f"a_{whole}"][-1].as_py(),
    ]


@pytest.mark.parametrize(
    ("q", "values", "expected"),
    [
        (0.5, [-INF, 1.0], -INF),
        (0.25, [-INF, 1.0], -INF),
        (0.75, [-INF, 1.0], -INF),
        (1.0, [-INF, 1.0], 1.0),
        (0.5, [1.0, INF], INF),
        (0.5, [-INF, INF], math.nan),
        (0.5, [-INF, -INF, 5.0, INF], -INF),
        (0.5, [-1.7e308, 1.7e308], 0.0),
    ],
)
def test_a_quantile_beside_an_infinite_value(
    q: float, values: list[float], expected: float
) -> None:
    answers = over(lambda column=None: sw.quantile(column, q=q), values)
    assert all(np.array_equal(a, expected, equal_nan=True) for a in answers), answers
    if q == 0.5:
        medians = over(sw.median, values)
        assert all(np.array_equal(a, expected, equal_nan=True) for a in medians)


HUGE = 1e308


@pytest.mark.parametrize(
    ("agg", "values", "expected"),
    [
        (sw.mean, [HUGE, HUGE], HUGE),
        (sw.mean, [HUGE] * 50, HUGE),
        (sw.mean, [-1.7e308] * 3, -1.7e308),
        (sw.sum, [HUGE, HUGE, -HUGE], HUGE),
        (sw.sum, [HUGE, -HUGE] * 40, 0.0),
        (sw.sum, [1.7e308, -1.7e308] * 40 + [3e305], 3e305),
        (sw.sum, [HUGE, HUGE], INF),
        (sw.sum, [-HUGE] * 9, -INF),
        (sw.sum, [HUGE, HUGE, -INF], -INF),
        (sw.mean, [HUGE, HUGE, -INF], -INF),
        (sw.stddev, [HUGE, HUGE], 0.0),
    ],
)
def test_sums_that_leave_the_floats_on_the_way(
    agg: Any, values: list[float], expected: float
) -> None:
    answers = over(agg, values)
    assert all(answer == pytest.approx(expected, rel=1e-15) for answer in answers)


@pytest.mark.parametrize("name", [card.name for card in sw.algorithms()])
def test_every_algorithm_brings_sums_back(name: str) -> None:
    options = {"latency": 100} if name == "daba_late" else {}
    for agg in (sw.sum(), {"a": sw.sum(), "b": sw.mean(), "n": sw.count()}):
        try:
            window = sw.Window(agg, algorithm=name, **options)
        except (sw.SpecError, TypeError):
            continue
        for time in range(200):
            window.insert(time, [HUGE, HUGE, HUGE, -HUGE, -HUGE, -HUGE][time % 6])
            if time >= 60:
                window.evict()
            if time % 6 != 5 or time < 60:
                continue
            whole = window.query()
            total = whole["a"] if isinstance(whole, dict) else whole
            assert total == 0.0, (name, time)
        blob = window.to_bytes()
        window = sw.Window.from_bytes(blob)
        while len(window) > 1:
            window.evict()
        left = window.query()
        assert (left["a"] if isinstance(left, dict) else left) == HUGE


def test_a_snapshot_keeps_what_is_beyond_the_floats() -> None:
    window = sw.Window(sw.sum(), ties="combine")
    for value in (HUGE, HUGE):
        window.insert(1, value)
    assert window.query() == INF
    window = sw.Window.from_bytes(window.to_bytes())
    window.insert(2, -HUGE)
    assert window.query() == pytest.approx(HUGE, rel=1e-15)


@pytest.mark.parametrize("scale", [1e-70, 1e-40, 1.0, 1e40, 1e70])
def test_shapes_do_not_depend_on_the_scale(scale: float) -> None:
    shape = [1.0, 1.0, 2.0, 7.0, 3.0]
    for agg in (sw.kurtosis, sw.skewness):
        [expected, *_] = over(agg, shape)
        answers = over(agg, [value * scale for value in shape])
        assert all(answer == pytest.approx(expected, rel=1e-12) for answer in answers)


@pytest.mark.parametrize("scale", [1e-170, 1e-100, 1e100, 1e200])
def test_shapes_beyond_the_range_of_powers_are_nan(scale: float) -> None:
    """As by numpy's two passes, with powers of deviations beyond floats."""
    answers = over(sw.kurtosis, [scale * value for value in [1.0, 1.0, 2.0, 7.0, 3.0]])
    assert all(math.isnan(answer) for answer in answers), answers


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1.0, 1e100, 1e150])
def test_deviations_within_the_range_of_squares(scale: float) -> None:
    values = [scale * value for value in [1.0, 1.0, 2.0, 7.0, 3.0]]
    for answer in over(sw.stddev, values):
        assert answer == pytest.approx(float(np.std(values, ddof=1)), rel=1e-12)


def test_deviations_beyond_the_range_of_squares() -> None:
    assert all(answer == 0.0 for answer in over(sw.stddev, [1e-170, 2e-170]))
    for answer in over(sw.stddev, [1e200, 3e200]):
        assert answer == pytest.approx(math.sqrt(2) * 1e200, rel=1e-15)
    assert all(answer == math.inf for answer in over(sw.variance, [1e200, 2e200]))
