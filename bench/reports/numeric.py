"""Reports of wrong numbers: sums, moments and extremes of the last n rows."""

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
from bench.reports import exact
from bench.reports.asked import of_rows
from bench.reports.report import Calls, Given, report


def _rows(
    question: str, values: list[Any], n: int, kind: str, least: int | None = None
) -> Given:
    return question, exact.of_rows(values, n, kind), of_rows(values, n, kind, least)


def _pairs(
    question: str,
    x: list[Any],
    y: list[Any],
    n: int,
    kind: str,
    least: int | None = None,
) -> Given:
    return question, exact.of_pairs(x, y, n, kind), of_rows(x, n, kind, least, y)


def _last(count: int, calls: Calls) -> Calls:
    """The last answers alone."""

    def of(call: Any) -> Any:
        return lambda: call()[-count:]

    return {name: of(call) for name, call in calls.items()}


# Deviations.


@report("polars#21677")
def variance_after_a_tiny_value() -> Given:
    return _rows("var of 5: `2, 1e-7, 0` × 7", [2.0, 1e-7] + [0.0] * 7, 5, "var")


@report("pandas#52407")
def variance_of_tiny_values() -> Given:
    values = [3 * 10.0**-power for power in (15, 22, 31, 40, 49, 58, 67, 76)]
    return _rows("var of 3: `3e-15, 3e-22, …, 3e-76`", values, 3, "var")


@report("rolling#20")
def deviation_of_equal_integers() -> Given:
    values = [float(x) for x in (141, 139, 140, 140, 138, 139, 138, 138, 138)]
    return _rows("std of 3: `141, …, 138, 138, 138`", values, 3, "std")


@report("pandas#42064")
def deviation_after_a_spike() -> Given:
    return _rows("std of 3: `1, 4e9, 0.3` × 5", [1.0, 4e9] + [0.3] * 5, 3, "std")


@report("polars#9383")
def deviation_of_large_equal_values() -> Given:
    values = [7.0, 8.0] + [123456789012.3] * 6
    return _rows("std of 4: `7, 8, 123456789012.3` × 6", values, 4, "std")


@report("polars#5197")
def deviation_of_values_that_repeat() -> Given:
    values = [17.3, 90.1, 0.7] + [0.1] * 6
    return _rows("std of 3: `17.3, 90.1, 0.7, 0.1` × 6", values, 3, "std")


@report("pandas#61416")
def deviation_after_a_pair_that_cancels() -> Given:
    values = [2e6, -2e6, 2.0, 7.0, 1.0, 8.0, 2.0, 8.0, 1.0, 8.0]
    return _rows("std of 4: `2e6, -2e6, 2, 7, 1, …`", values, 4, "std")


# Skewness and kurtosis, of samples.


@report("pandas#18044")
def skewness_of_a_constant() -> Given:
    return _rows("skew of 5: `2.3` × 12 (undefined)", [2.3] * 12, 5, "skew")


@report("pandas#18044")
def kurtosis_of_a_constant() -> Given:
    return _rows("kurt of 5: `2.3` × 12 (undefined)", [2.3] * 12, 5, "kurt")


_JUMP = [-3.0] * 30 + [6.5e9 + 3.0 * (at * at % 7) for at in range(14)]


def _after_the_jump(kind: str) -> Given:
    question = f"{kind} of 10: `-3` × 30, then 14 values near 6.5e9"
    right = exact.of_rows(_JUMP[30:], 10, kind)
    return question, right, _last(5, of_rows(_JUMP, 10, kind))


@report("pandas#47461")
def skewness_after_a_jump() -> Given:
    return _after_the_jump("skew")


@report("pandas#47461")
def kurtosis_after_a_jump() -> Given:
    return _after_the_jump("kurt")


_SMALL = [random.Random(3).gauss(0, 1e-8) for _ in range(3)] + [
    1.5e-8,
    -2e-8,
    3e-9,
    7e-9,
    -1.1e-8,
    4e-10,
]


@report("pandas#62946")
def skewness_of_small_values() -> Given:
    return _rows("skew of 5: nine values of about 1e-8", _SMALL, 5, "skew")


@report("pandas#62946")
def kurtosis_of_small_values() -> Given:
    return _rows("kurt of 5: nine values of about 1e-8", _SMALL, 5, "kurt")


@report("pandas#68934")
def kurtosis_of_neighbouring_floats() -> Given:
    values = [1e8 + math.ulp(1e8) * at for at in (0, 1, 0, 3, 0, 0, 7, 2, 1)]
    return _rows("kurt of 4: floats next to 1e8", values, 4, "kurt")


@report("pandas#68934")
def skewness_after_missing_values() -> Given:
    values = [2.0, 3.0, 7.0, None, None, None, None, 1.0, 4.0, 9.0]
    question = "skew of 4: `2 3 7 – – – – 1 4 9`, of three values at least"
    return _rows(question, values, 4, "skew", 3)


def _walk() -> list[float]:
    draw, value, found = random.Random(11), 0.0, []
    for _ in range(600):
        value += draw.gauss(0, 1)
        found.append(value)
    return found


@report("pandas#66659")
def skewness_of_a_walk() -> Given:
    return _rows("skew of 3: a random walk of 600 steps", _walk(), 3, "skew")


@report("pandas#61416")
def kurtosis_after_a_pair_that_cancels() -> Given:
    values = [2e6, -2e6, 2.0, 7.0, 1.0, 8.0, 2.0, 8.0, 1.0, 8.0]
    return _rows("kurt of 4: `2e6, -2e6, 2, 7, 1, …`", values, 4, "kurt")


# Covariance and correlation.

_LEFT = [2e12, -2e12, 1.0, 4.0, 2.0, 5.0]
_RIGHT = [-2e12, 1e12, 3.0, 1.0, 1.0, 2.0]


@report("pandas#66678")
def correlation_after_large_values() -> Given:
    return _pairs("corr of 3: after pairs of ±2e12", _LEFT, _RIGHT, 3, "corr")


@report("pandas#66678")
def covariance_after_large_values() -> Given:
    return _pairs("cov of 3: after pairs of ±2e12", _LEFT, _RIGHT, 3, "cov")


@report("pandas#24019", "polars#22099")
def correlation_with_a_constant() -> Given:
    x, y = [3e5, 0.0, 0.0, 0.0, 0.0, 1.0], [0.3] * 6
    return _pairs("corr of 3 with the constant 0.3 (undefined)", x, y, 3, "corr")


@report("pandas#29264")
def covariance_with_a_constant() -> Given:
    x, y = [3e5, 0.0, 0.0, 0.0, 0.0, 1.0], [0.3] * 6
    return _pairs("cov of 3 with the constant 0.3 (0)", x, y, 3, "cov")


@report("polars#22099")
def correlation_does_not_know_the_past() -> Given:
    x, y = [1e9, 0.25, 0.5, 0.125, 1.0], [-1e9, 0.5, 0.75, 2.0, 1.0]
    return _pairs("corr of 3: the row before was ±1e9", x, y, 3, "corr")


@report("polars#18217")
def correlation_with_a_missing_value() -> Given:
    x, y = [1.0, 2.0, None, 4.0, 7.0], [2.0, 1.0, 5.0, 3.0, 9.0]
    question = "corr of 4: pairs with a missing value do not count"
    return _pairs(question, x, y, 4, "corr", 2)


@report("polars#19437")
def correlation_of_one_pair() -> Given:
    x, y = [1.0, None, None, None], [2.0, 3.0, 4.0, 5.0]
    return _pairs("corr of 3: one pair is left (undefined)", x, y, 3, "corr", 1)


@report("polars#21793")
def correlation_after_nan() -> Given:
    x, y = [math.nan, 2.0, 3.0, 5.0, 4.0], [1.0, 7.0, 1.0, 2.0, 8.0]
    question = "corr of 3: `NaN` has left the window"
    right = exact.of_pairs(x[1:], y[1:], 3, "corr")
    return question, right, _last(2, of_rows(x, 3, "corr", y=y))


@report("polars#21491")
def correlation_of_a_line() -> Given:
    x = [1e7 + at / 8 for at in range(7)]
    y = [2e7 + at / 4 for at in range(7)]
    return _pairs("corr of 3: points on a line near 1e7 (1)", x, y, 3, "corr")


# Bits.


def _differing(kind: str) -> Given:
    """How many windows have other bits in a column than alone."""
    values, n = _walk()[:200], 7
    whole = of_rows(values, n, kind)
    alone = [of_rows(values[at : at + n], n, kind) for at in range(len(values) - n + 1)]

    def counted(name: str) -> Any:
        def call() -> int:
            found = whole[name]()
            return sum(found[at] != own[name]()[0] for at, own in enumerate(alone))

        return call

    question = f"{kind} of 7, a walk of 200 steps: windows with other bits than alone"
    return question, 0, {name: counted(name) for name in whole}


@report("pandas#54380")
def equal_windows_have_equal_sums() -> Given:
    return _differing("sum")


@report("pandas#54380")
def equal_windows_have_equal_skewness() -> Given:
    return _differing("skew")


@report("pandas#54380")
def equal_windows_have_equal_variances() -> Given:
    return _differing("var")


# Sums, means and extremes.


@report("pandas#61071")
def mean_after_values_that_cancel() -> Given:
    values = [0.25, 3e15, -1e15, 4e15, -6e15, 0.5, 0.125, 0.75, 1.5, 2.25]
    return _rows("mean of 3: `0.25, 3e15, -1e15, 4e15, -6e15, …`", values, 3, "mean")


@report("polars#21358")
def mean_of_cubes() -> Given:
    values = [float((at % 400) ** 3) + 0.1 for at in range(1_200)]
    return _rows("mean of 3: 1,200 cubes and 0.1", values, 3, "mean")


@report("polars#12682")
def mean_after_infinity() -> Given:
    values = [2.0, math.inf, 3.0, 4.0, 8.0, 1.0]
    right = exact.of_rows(values[2:], 2, "mean")
    calls = _last(3, of_rows(values, 2, "mean"))
    return "mean of 2: infinity has left the window", right, calls


@report("polars#23115")
def mean_after_nan() -> Given:
    calls = _last(2, of_rows([None, 1.0, math.nan, 4.0, 5.0, 9.0, None], 3, "mean", 1))
    question = "mean of 3, of one value at least: `NaN` has left the window"
    return question, [6.0, 7.0], calls


@report("pandas#40043")
def sum_of_large_integers() -> Given:
    values = [211, 4377900603251717751, 17, 3]
    question = "sum of 2: `211, 4377900603251717751, 17, 3`"
    return (
        question,
        exact.of_rows(values, 2, "sum of integers"),
        of_rows(values, 2, "sum"),
    )


@report("pandas#10155")
def mean_of_large_integers() -> Given:
    values = [30260615061816533] * 500
    return _rows("mean of 400: `30260615061816533` × 500", values, 400, "mean")


@report("pandas#3707")
def sum_of_the_ends_of_int64() -> Given:
    values = [2**63 - 1, -(2**63), 5]
    question = "sum of 2: `2^63 - 1, -2^63, 5`"
    return (
        question,
        exact.of_rows(values, 2, "sum of integers"),
        of_rows(values, 2, "sum"),
    )


@report("feldera#4229")
def sum_of_int8() -> Given:
    values = [120, 100, 90, 80]
    calls = of_rows(pa.array(values, pa.int8()), 3, "sum")
    return "sum of 3 of int8: `120 100 90 80`", [310, 270], calls


@report("pandas#15599")
def maximum_beyond_the_floats() -> Given:
    values = [2**53 + 1, 2**53 + 3, 5, 4]
    question = "max of 2 of integers: `2^53 + 1, 2^53 + 3, 5, 4`"
    return question, exact.of_rows(values, 2, "max"), of_rows(values, 2, "max")


@report("pandas#15901")
def minimum_of_missing_values() -> Given:
    values = [None, 4.0, None, 9.0, None, None, 2.0]
    right = [4.0, 4.0, 9.0, 9.0, None, 2.0]
    calls = of_rows(values, 2, "min", 1)
    return "min of 2: `– 4 – 9 – – 2`", right, calls


@report("polars#23066", "polars#23067")
def maximum_of_too_few_values() -> Given:
    calls = of_rows([3, None, 14, 40, 1, 5], 4, "max")
    calls = {name: calls[name] for name in ("slidewise", "pandas", "polars")}
    question = "max of 4, of four values at least: `3 – 14 40 1 5`"
    return question, [None, None, 40], calls


@report("polars#27576")
def sum_of_decimals() -> Given:
    values = [Decimal("99999.99"), Decimal("99999.98"), Decimal("0.01")]
    calls = of_rows(pa.array(values, pa.decimal128(7, 2)), 2, "sum")
    right = [199999.97, 99999.99]
    return "sum of 2 of decimal(7, 2): `99999.99 99999.98 0.01`", right, calls


@report("polars#22064")
def minimum_of_decimals() -> Given:
    values = [Decimal("3.10"), Decimal("2.05"), Decimal("7.77")]
    calls = of_rows(pa.array(values, pa.decimal128(7, 2)), 2, "min")
    question = "min of 2 of decimal(7, 2): `3.10 2.05 7.77`"
    return question, [2.05, 2.05], calls


@report("pandas#12440")
def mean_of_decimals() -> Given:
    values = [Decimal("0.10"), Decimal("0.20"), Decimal("0.70")]
    calls = of_rows(pa.array(values, pa.decimal128(7, 2)), 2, "mean")
    question = "mean of 2 of decimal(7, 2): `0.10 0.20 0.70`"
    return question, [0.15, 0.45], calls


@report("polars#22271")
def maximum_of_dates() -> Given:
    days = [dt.date(2026, 3, day) for day in (9, 4, 7)]
    values = [days[0], None, days[1], days[2]]
    calls = of_rows(values, 2, "max", 1)
    return "max of 2 of dates: 9, –, 4, 7 March", [days[0], days[1], days[2]], calls


@report("pandas#12536")
def sum_of_durations() -> Given:
    values = [dt.timedelta(minutes=at) for at in (10, 25, 40)]
    right = [dt.timedelta(minutes=35), dt.timedelta(minutes=65)]
    calls = of_rows(pa.array(values, pa.duration("us")), 2, "sum")
    return "sum of 2 of durations: 10, 25, 40 minutes", right, calls


@report("pandas#9442", "pandas#5724")
def mean_of_durations() -> Given:
    values = [dt.timedelta(minutes=at) for at in (10, 25, 40)]
    right = [dt.timedelta(minutes=17.5), dt.timedelta(minutes=32.5)]
    calls = of_rows(pa.array(values, pa.duration("us")), 2, "mean")
    return "mean of 2 of durations: 10, 25, 40 minutes", right, calls
