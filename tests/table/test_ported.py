"""Test cases of pandas and polars for their rolling windows, applied to slidewise.

Only inputs and expected answers are taken over. Each case names its source. If
slidewise differs on purpose, the case is in `DIFFERENCES` with the answer of slidewise,
and docs/differences.md explains it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw

# Seconds of the rows in pandas' "ragged" and "regular" series, days in polars' example.
RAGGED = (0, 2, 3, 5, 6)
REGULAR = (0, 1, 2, 3, 4)
CLOSED = (1, 2, 3, 4, 6)
DAYS = (1, 2, 4, 5, 7)
UP = (0, 1, 2, 3, 4)

PANDAS, POLARS = "pandas test_timeseries_window", "polars test_rolling"


@dataclass(frozen=True)
class Case:
    """One column of answers.

    Attributes:
        source: The library, file and test.
        agg: The aggregation, of the column x.
        times: In seconds, or days.
        values: The column x.
        window: Its length.
        expected: The answers; None is missing.
        options: Other arguments.
    """

    source: str
    agg: sw.Aggregation
    times: Sequence[int]
    values: Sequence[Any]
    window: Any
    expected: Sequence[Any]
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        given = "-".join(str(value) for _, value in self.options)
        return f"{self.source.split()[-1]}-{self.agg!r}-{self.window}-{given}"


def ragged(name: str, agg: sw.Aggregation, window: str, *expected: Any) -> Case:
    """A case with pandas' ragged series."""
    return Case(f"{PANDAS} {name}", agg, RAGGED, UP, window, expected)


def at_least(rows: int, name: str, window: str, *expected: Any) -> Case:
    """A sum of the same with `min_periods`."""
    case = ragged(name, sw.sum("x"), window, *expected)
    return Case(**{**case.__dict__, "options": (("min_rows", rows),)})


def closed(name: str, *expected: Any) -> Case:
    """A sum of ones with other ends."""
    options = (("closed", name),)
    source = f"{PANDAS} test_closed"
    return Case(source, sw.sum("x"), CLOSED, [1] * 5, "2s", expected, options)


def of_rows(
    source: str, agg: sw.Aggregation, values: Sequence[Any], rows: int, *expected: Any
) -> Case:
    """A window of rows."""
    times = range(len(values))
    return Case(source, agg, times, values, sw.rows(rows), expected)


def days(agg: sw.Aggregation, window: str, ends: str, *expected: Any) -> Case:
    """A case with polars' days."""
    source = f"{POLARS} test_rolling_kernels_and_rolling"
    return Case(source, agg, DAYS, UP, window, expected, (("closed", ends),))


def earlier(offset: str, ends: str, *expected: Any) -> Case:
    """Lists of values in windows of two days that end earlier."""
    source = f"{POLARS} test_rolling_negative_offset"
    options = (("closed", ends), ("offset", offset))
    return Case(
        source, sw.collect("x"), (1, 2, 3, 4), (1, 2, 3, 4), "2d", expected, options
    )


MANY = tuple(range(24))
STEPS = [1.2] * 4 + [3.3] * 7

CASES = [
    ragged("test_ragged_sum", sw.sum("x"), "1s", 0, 1, 2, 3, 4),
    ragged("test_ragged_sum", sw.sum("x"), "2s", 0, 1, 3, 3, 7),
    ragged("test_ragged_sum", sw.sum("x"), "3s", 0, 1, 3, 5, 7),
    ragged("test_ragged_sum", sw.sum("x"), "4s", 0, 1, 3, 6, 9),
    ragged("test_ragged_sum", sw.sum("x"), "5s", 0, 1, 3, 6, 10),
    at_least(2, "test_ragged_sum", "2s", None, None, 3, None, 7),
    at_least(3, "test_ragged_sum", "4s", None, None, 3, 6, 9),
    ragged("test_ragged_mean", sw.mean("x"), "1s", 0, 1, 2, 3, 4),
    ragged("test_ragged_mean", sw.mean("x"), "2s", 0, 1, 1.5, 3, 3.5),
    ragged("test_ragged_median", sw.median("x"), "1s", 0, 1, 2, 3, 4),
    ragged("test_ragged_median", sw.median("x"), "2s", 0, 1, 1.5, 3, 3.5),
    ragged("test_ragged_quantile", sw.quantile("x", 0.5), "2s", 0, 1, 1.5, 3, 3.5),
    ragged("test_ragged_std", sw.stddev("x", ddof=0), "1s", 0, 0, 0, 0, 0),
    ragged("test_ragged_std", sw.stddev("x"), "1s", *[None] * 5),
    ragged("test_ragged_std", sw.stddev("x", ddof=0), "3s", 0, 0.5, 0.5, 0.5, 0.5),
    ragged(
        "test_ragged_std", sw.stddev("x"), "5s", None, 0.5**0.5, 1, 1, (5 / 3) ** 0.5
    ),
    ragged(
        "test_ragged_var", sw.variance("x", ddof=0), "3s", 0, 0.25, 0.25, 0.25, 0.25
    ),
    ragged("test_ragged_var", sw.variance("x"), "5s", None, 0.5, 1, 1, 1 + 2 / 3),
    ragged("test_ragged_count", sw.count("x"), "1s", 1, 1, 1, 1, 1),
    ragged("test_ragged_count", sw.count("x"), "2s", 1, 1, 2, 1, 2),
    ragged("test_ragged_min", sw.min("x"), "1s", 0, 1, 2, 3, 4),
    ragged("test_ragged_min", sw.min("x"), "2s", 0, 1, 1, 3, 3),
    ragged("test_ragged_min", sw.min("x"), "5s", 0, 0, 0, 1, 1),
    ragged("test_ragged_max", sw.max("x"), "2s", 0, 1, 2, 3, 4),
    ragged("test_ragged_max", sw.max("x"), "5s", 0, 1, 2, 3, 4),
    Case(
        f"{PANDAS} test_regular_min",
        sw.min("x"),
        REGULAR,
        (5, 4, 3, 4, 5),
        "2s",
        (5, 4, 3, 3, 4),
    ),
    Case(
        f"{PANDAS} test_regular_min",
        sw.min("x"),
        REGULAR,
        (5, 4, 3, 4, 5),
        "5s",
        (5, 4, 3, 3, 3),
    ),
    Case(
        f"{PANDAS} test_frame_on2",
        sw.sum("x"),
        RAGGED,
        (0, 1, 2, None, 4),
        "2s",
        (0, 1, 3, None, 4),
    ),
    closed("right", 1, 2, 2, 2, 1),
    closed("both", 1, 2, 3, 3, 2),
    closed("left", None, 1, 2, 2, 1),
    closed("neither", None, 1, 1, 1, None),
    *(
        Case(
            f"{PANDAS} test_freqs_ops",
            agg,
            range(10),
            [0, None, *[0] * 7, 2],
            "10s",
            [0.0] * 9 + [last],
        )
        for agg, last in ((sw.min("x"), 0), (sw.mean("x"), 2 / 9), (sw.max("x"), 2))
    ),
    # The covariance of a column with itself is its variance.
    Case(
        f"{PANDAS} test_rolling_cov_offset",
        sw.covariance("x", "x"),
        MANY,
        MANY,
        "2s",
        [None] + [0.5] * 23,
    ),
    Case(
        f"{PANDAS} test_rolling_cov_offset",
        sw.covariance("x", "x"),
        MANY,
        MANY,
        "3s",
        [None, 0.5] + [1.0] * 22,
    ),
    days(sw.sum("x"), "1d", "right", 0, 1, 2, 3, 4),
    days(sw.sum("x"), "2d", "both", 0, 1, 3, 5, 7),
    days(sw.sum("x"), "3d", "both", 0, 1, 3, 6, 9),
    days(sw.sum("x"), "2d", "left", None, 0, 1, 2, 3),
    days(sw.sum("x"), "2d", "neither", None, 0, None, 2, None),
    days(sw.variance("x"), "3d", "right", None, 0.5, 0.5, 0.5, 0.5),
    earlier("1d", "left", [], [], [1], [1, 2]),
    earlier("1d", "right", [], [1], [1, 2], [2, 3]),
    earlier("1d", "both", [], [1], [1, 2], [1, 2, 3]),
    earlier("1d", "neither", [], [], [1], [2]),
    of_rows(
        f"{POLARS} test_rolling_infinity",
        sw.mean("x"),
        [-math.inf, 5.0, 5.0],
        2,
        -math.inf,
        -math.inf,
        5.0,
    ),
    of_rows(
        f"{POLARS} test_rolling_group_by_extrema",
        sw.collect("x"),
        range(7),
        3,
        [0],
        [0, 1],
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [3, 4, 5],
        [4, 5, 6],
    ),
    of_rows(
        f"{POLARS} test_rolling_group_by_extrema",
        sw.first("x"),
        range(7),
        3,
        0,
        0,
        0,
        1,
        2,
        3,
        4,
    ),
    of_rows(
        f"{POLARS} test_rolling_group_by_extrema", sw.last("x"), range(7), 3, *range(7)
    ),
    of_rows(
        f"{POLARS} test_rolling_extrema",
        sw.min("x"),
        [None, None, 2, 3, 4, 5, 6],
        3,
        None,
        None,
        2,
        2,
        2,
        3,
        4,
    ),
    of_rows(
        f"{POLARS} test_rolling_extrema",
        sw.max("x"),
        [None, None, 4, 3, 2, 1, 0],
        3,
        None,
        None,
        4,
        4,
        4,
        3,
        2,
    ),
    of_rows(
        f"{POLARS} test_rolling_var_numerical_stability_5197",
        sw.variance("x"),
        STEPS,
        5,
        None,
        0.0,
        0.0,
        0.0,
        0.882,
        1.323,
        1.323,
        0.882,
        0.0,
        0.0,
        0.0,
    ),
]

SKEWED = [1, 2, 3, 3, 2, 10, 8]

# (theirs, ours): the same call, with a different answer on purpose.
DIFFERENCES = [
    # There min_periods turns counts into nulls; here a count stays a count.
    (
        ragged("test_ragged_count", sw.count("x"), "2s", None, None, 2, None, 2),
        Case(
            f"{PANDAS} test_ragged_count",
            sw.count("x"),
            RAGGED,
            UP,
            "2s",
            (1, 1, 2, 1, 2),
            (("min_rows", 2),),
        ),
    ),
    # There windows of rows give null until they are full, unless min_periods is
    # lower.
    (
        of_rows(
            f"{POLARS} test_rolling_extrema",
            sw.max("x"),
            range(5),
            3,
            None,
            None,
            2,
            3,
            4,
        ),
        of_rows(
            f"{POLARS} test_rolling_extrema", sw.max("x"), range(5), 3, 0, 1, 2, 3, 4
        ),
    ),
    # Rows of equal time: there each sees those above it, here all of them.
    (
        Case(
            f"{PANDAS} test_rolling_on_multi_index_level",
            sw.sum("x"),
            (0, 0, 1, 1, 2, 2),
            range(6),
            "10s",
            (0, 1, 3, 6, 10, 15),
        ),
        Case(
            f"{PANDAS} test_rolling_on_multi_index_level",
            sw.sum("x"),
            (0, 0, 1, 1, 2, 2),
            range(6),
            "10s",
            (1, 1, 6, 6, 15, 15),
        ),
    ),
    # There times that fall are refused (or, if all do, the window looks into the
    # future); here rows are sorted.
    (
        Case(
            f"{PANDAS} test_rolling_on_decreasing_index",
            sw.min("x"),
            (30, 27, 20, 18, 10),
            (3, 4, 4, 5, 6),
            "5s",
            (3, 3, 4, 4, 6),
        ),
        Case(
            f"{PANDAS} test_rolling_on_decreasing_index",
            sw.min("x"),
            (30, 27, 20, 18, 10),
            (3, 4, 4, 5, 6),
            "5s",
            (3, 4, 4, 5, 6),
        ),
    ),
]


def answers(case: Case) -> list[Any]:
    """The answers of slidewise."""
    unit = 86_400 if isinstance(case.window, str) and "d" in case.window else 1
    ticks = pa.array([time * unit for time in case.times])
    table = pa.table({"t": ticks.cast(pa.timestamp("s")), "x": list(case.values)})
    out = sw.rolling(
        table, on="t", windows=case.window, aggs={"a": case.agg}, **dict(case.options)
    )
    found: list[Any] = out.column(out.num_columns - 1).to_pylist()
    return found


def agrees(found: Any, expected: Any) -> bool:
    if expected is None or isinstance(expected, list) or found is None:
        return bool(found == expected)
    return bool(found == pytest.approx(expected, rel=1e-12, abs=1e-15))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_theirs_is_ours(case: Case) -> None:
    found = answers(case)
    assert len(found) == len(case.expected)
    assert all(map(agrees, found, case.expected)), (found, case.expected)


@pytest.mark.parametrize(("theirs", "ours"), DIFFERENCES, ids=str)
def test_differences_are_kept_on_purpose(theirs: Case, ours: Case) -> None:
    found = answers(ours)
    assert all(map(agrees, found, ours.expected)), (found, ours.expected)
    assert not all(map(agrees, found, theirs.expected))


def test_ties_as_in_pandas() -> None:
    theirs = DIFFERENCES[2][0]
    found = answers(Case(**{**theirs.__dict__, "options": (("ties", "rows"),)}))
    assert found == list(theirs.expected)


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
def test_ties_are_those_of_pandas_whichever_ends_belong(closed: str) -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.to_datetime([0, 1, 1, 2, 3, 3], unit="s")
    frame = pandas.DataFrame({"t": times, "x": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]})
    theirs = frame.rolling("2s", on="t", closed=closed, min_periods=1)["x"].sum()
    options = {"on": "t", "windows": "2s", "aggs": {"s": sw.sum("x")}, "closed": closed}
    if closed in ("right", "both"):
        options["ties"] = "rows"
    else:
        with pytest.raises(
            sw.SpecError, match="ties='rows' has no effect with closed="
        ):
            sw.rolling(frame, **options, ties="rows")
    ours = sw.rolling(frame, **options)
    assert ours["s_2s"].equals(theirs.rename("s_2s"))


def test_skewness_is_the_sample_one_of_pandas_and_polars_bias_false() -> None:
    found = answers(of_rows("", sw.skewness("x"), SKEWED, 4))
    expected = [-0.8545630383279711, 0.0, 1.9001038154942962, 0.16923763134384154]
    assert found[3:] == pytest.approx(expected, abs=1e-15)


def test_kurtosis_is_the_excess_of_pandas() -> None:
    found = answers(ragged("test_ragged_kurt", sw.kurtosis("x"), "5s"))
    assert found == [None, None, None, None, pytest.approx(-1.2)]
    short = answers(ragged("test_ragged_skew", sw.skewness("x"), "5s"))
    assert short == [None, None, *[pytest.approx(0.0, abs=1e-15)] * 3]


def test_each_key_has_its_windows_in_any_order() -> None:
    """pandas test_groupby_monotonic: amounts of 180 days per name."""
    rows = [
        ("David", "2015-01-01", 100, 100),
        ("David", "2015-01-05", 500, 600),
        ("David", "2015-05-30", 50, 650),
        ("David", "2015-07-25", 50, 100),
        ("Ryan", "2014-01-04", 100, 100),
        ("Ryan", "2014-01-19", 500, 600),
        ("Ryan", "2016-03-31", 50, 50),
        ("Joe", "2015-07-01", 100, 100),
        ("Joe", "2015-09-09", 500, 600),
        ("Joe", "2015-10-15", 50, 650),
    ]
    names, dates, amounts, expected = zip(*rows, strict=True)
    table = pa.table(
        {
            "name": names,
            "t": pa.array(dates).cast(pa.timestamp("s")),
            "amount": amounts,
            "expected": expected,
        }
    )
    for shuffled in (table, table.sort_by("t"), table.sort_by("amount")):
        out = sw.rolling(
            shuffled, on="t", by="name", windows="180d", aggs={"a": sw.sum("amount")}
        )
        assert out["a_180d"].to_pylist() == out["expected"].to_pylist()


def test_a_day_over_a_change_of_the_clock_is_24_hours() -> None:
    """polars test_rolling_crossing_dst counts days of the calendar: 1, 2, 3, 4, 5."""
    zone = pa.timestamp("s", "America/Chicago")
    midnights = [f"2021-11-{day:02}T0{5 + (day > 7)}:00:00" for day in range(5, 11)]
    ticks = pa.array(midnights).cast(pa.timestamp("s")).cast("int64").cast(zone)
    table = pa.table({"t": ticks, "x": [1, 2, 3, 4, 5, 6]})
    out = sw.rolling(
        table, on="t", windows="1d", closed="left", aggs={"a": sw.sum("x")}
    )
    # Midnight of the 8th is 25 hours after that of the 7th, so a window of 24 hours
    # is empty.
    assert out["a_1d"].to_pylist() == [None, 1, 2, None, 4, 5]


@pytest.mark.parametrize("window", ["foobar", "2MS", "1mo", ""])
def test_windows_without_a_length_are_refused(window: str) -> None:
    """pandas test_invalid_window_non_int, test_invalid_window_nonfixed."""
    table = pa.table({"t": pa.array([1]).cast(pa.timestamp("s")), "x": [1]})
    with pytest.raises(sw.SpecError):
        sw.rolling(table, on="t", windows=window, aggs={"a": sw.sum("x")})


@pytest.mark.parametrize("rows", [1.0, "foo", [1, 2, 3], True, -1])
def test_a_number_of_rows_is_a_number(rows: Any) -> None:
    """pandas test_invalid_minp."""
    table = pa.table({"t": pa.array([1]).cast(pa.timestamp("s")), "x": [1]})
    with pytest.raises(sw.SpecError):
        sw.rolling(table, on="t", windows="1s", aggs={"a": sw.sum("x")}, min_rows=rows)
