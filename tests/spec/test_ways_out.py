"""Messages of refused calls name the way out."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

COUNT = {"n": sw.count()}
FRAME = pd.DataFrame({"x": [1, 2, 3]}, index=pd.date_range("2024", periods=3, freq="h"))
NAMED = FRAME.rename_axis("t")
call: Any = sw  # which is called wrongly on purpose


@sw.aggregation
class Own:
    identity = 0

    def combine(a: Any, b: Any) -> Any:  # noqa: N805 - the class is decorated
        return a + b


own: Any = Own


def rolled(**given: Any) -> Callable[[], object]:
    keywords = {"on": "t", "windows": "1h", "aggs": COUNT, **given}
    return lambda: sw.rolling(NAMED, **keywords)


def hopped(**given: Any) -> Callable[[], object]:
    keywords = {"on": "t", "window": "1h", "aggs": COUNT, **given}
    return lambda: sw.hopping(NAMED, **keywords)


def batch() -> None:
    sw.KeyedWindows(on="index", windows="1h", aggs=COUNT).ingest(FRAME)


CALLS: list[tuple[Callable[[], object], list[str]]] = [
    # Times in an index, and columns alone.
    (lambda: sw.rolling(FRAME), ["on= is missing", "rename_axis('t')", "on='t'"]),
    (lambda: sw.rolling(NAMED), ["on= is missing", "on='t'"]),
    (lambda: sw.hopping(FRAME, window="1h", aggs=COUNT), ["rename_axis('t')"]),
    (lambda: sw.explain(FRAME, windows="1h", aggs=COUNT), ["rename_axis('t')"]),
    (lambda: sw.rolling(FRAME, on="index"), ["windows=, aggs=, is missing"]),
    (
        lambda: sw.rolling(FRAME, on="index", windows="1h", aggs=COUNT),
        ["no column 'index'", "rename_axis('t')", "on='t'"],
    ),
    (batch, ["the batch has no column 'index'", "rename_axis('t')"]),
    (lambda: call.rolling(FRAME["x"]), ["Series", "rename_axis('t').to_frame('x')"]),
    (lambda: call.rolling(FRAME["x"], on="t", windows="1h", aggs=COUNT), [".to_frame"]),
    (lambda: call.rolling(pl.Series("x", [1])), ["Series", "series.to_frame('x')"]),
    # Arguments by position.
    (lambda: call.rolling(NAMED, "t"), ["by name, on='t'"]),
    (lambda: call.rolling(NAMED, "t", "1h"), ["by name: on='t', windows='1h'"]),
    (
        lambda: call.rolling(NAMED, "t", "1h", COUNT),
        ["on='t', windows='1h', aggs={'n': count()}"],
    ),
    (lambda: call.last("x", 2), ["the last 2 values there is sw.last_k('x', 2)"]),
    (lambda: call.first("x", 2), ["sw.first_k('x', 2)"]),
    # Columns that are not names.
    (lambda: call.sum(NAMED["x"]), ["of a column, got a pandas Series: give 'x'"]),
    (
        lambda: call.sum(pl.Series([1])),
        ["takes the name of a column, got a polars Ser"],
    ),
    (lambda: call.last("x", n=2), ["no argument 'n': for the last 2 values there is"]),
    (lambda: call.KeyedWindows(on="t", late_=5), ["'late_': did you mean late=?"]),
    (lambda: call.rolling(NAMED, late_=5), ["only streams have late rows"]),
    (
        lambda: call.count(where=NAMED["x"] > 1),
        ["count(where=)", "got a pandas Series; a comparison is a column of booleans"],
    ),
    (lambda: call.count(where=pl.col("x") > 1), ["polars Expr", "column of booleans"]),
    (rolled(aggs={"n": sw.count("*")}), ["sw.count() without a column counts rows"]),
    (rolled(aggs={"n": sw.count(where="x > 1")}), ["column of booleans first"]),
    (rolled(by="x, t"), ["no column 'x, t'", "Name several columns one by one"]),
    (lambda: call.quantile("x", [0.1, 0.1]), ["several different numbers"]),
    (lambda: own("a", "b"), ["takes one column", "lift(a, b)", "struct column"]),
    (lambda: own(["a", "b"]), ["takes one column", "lift(a, b)"]),
    (lambda: own("a", filter="b"), ["Own() takes no argument", "where=?"]),
    (lambda: call.sum("x", filter="ok"), ["sum() takes no argument", "where=?"]),
    # Lengths.
    (rolled(windows="100 rows"), ["sw.rows(100)"]),
    (rolled(windows="100rows"), ["sw.rows(100)"]),
    (lambda: sw.SharedWindow(sw.sum(), ranges=["100 rows"]), ["sw.rows(100)"]),
    (rolled(windows="1h30m"), ["'90m'"]),
    (rolled(windows="1.5h"), ["'90m'"]),
    (rolled(offset="-1.5h"), ["'-90m'"]),
    (rolled(windows="1 hour 30 minutes"), ["'90m'"]),
    (rolled(windows="2D"), ["'2d'"]),
    (rolled(windows="2W"), ["'2w'"]),
    (rolled(windows="2hrs"), ["'2h'"]),
    (rolled(windows="1mo"), ["no fixed length", "sw.calendar('1mo')", "sw.to_date"]),
    (rolled(windows="1q"), ["quarter back", "sw.calendar('1q')"]),
    (hopped(window="1y"), ["give window=sw.calendar('1y') for calendar years"]),
    (hopped(every="1mo"), ["give window=sw.calendar('1mo') for calendar months"]),
    (rolled(offset="1mo"), ["no fixed length", "'30d'"]),
    (rolled(windows=pd.offsets.MonthEnd(1)), ["no fixed length", "Timedelta"]),
    # Others.
    (hopped(at=NAMED), ["on a grid", "sw.rolling(..., at=)"]),
    (lambda: call.Query("1h", slide="5m"), ["did you mean every=?"]),
    (lambda: call.Window(sw.sum(), window="1h"), ["no argument window=", "last=?"]),
    (
        lambda: sw.rolling(
            pa.table({"t": pa.array([1], pa.time64("us"))}),
            on="t",
            windows="1h",
            aggs=COUNT,
        ),
        ["timestamps, dates, durations or integers"],
    ),
]


@pytest.mark.parametrize(("made", "words"), CALLS)
def test_the_way_out_is_named(made: Callable[[], object], words: list[str]) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        made()
    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message
    assert "\n" not in message
    assert "__call__" not in message


@pytest.mark.parametrize(
    ("given", "same"),
    [
        (pd.offsets.Hour(2), "2h"),
        (pd.offsets.Minute(90), "90m"),
        (pd.offsets.Milli(5), "5ms"),
    ],
)
def test_offsets_of_pandas_with_a_fixed_length_are_durations(
    given: Any, same: str
) -> None:
    windows = sw.Spec(on="t", windows=given, aggs=COUNT)
    assert windows == sw.Spec(on="t", windows=same, aggs=COUNT)
    moved = rolled(offset=given)()
    pd.testing.assert_frame_equal(moved, rolled(offset=same)())


def test_months_are_what_the_refusal_of_a_month_names() -> None:
    days = pd.date_range("2024-01-15", "2024-04-20")
    frame = pd.DataFrame({"t": days, "x": range(len(days))})
    by_month, aggs = frame.groupby(days.month)["x"], {"s": sw.sum("x")}
    out = sw.rolling(frame, on="t", windows=sw.to_date("1mo"), aggs=aggs, names="{agg}")
    assert out["s"].tolist() == by_month.cumsum().tolist()
    months = sw.hopping(frame, on="t", window=sw.calendar("1mo"), aggs=aggs)
    assert months["s"].tolist() == by_month.sum().tolist()
