"""Reports of wrong windows of rows: their ends, ties, offsets, and zones."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from bench.reports.asked import (
    duckdb,
    in_seconds,
    last_seconds,
    over,
    pandas_of,
    polars_by,
    polars_of,
    rolled,
)
from bench.reports.report import Calls, Given, report

import slidewise as sw


@report("polars#11281")
def closed_left_with_equal_times() -> Given:
    table = in_seconds([0, 0, 1, 1, 4], x=[1, 2, 5, 4, 3])

    def ours() -> Any:
        return rolled(table, windows="2s", agg=sw.max("x"), closed="left")

    frame = "RANGE BETWEEN INTERVAL 2 SECOND PRECEDING"
    frame += " AND INTERVAL 1 MICROSECOND PRECEDING"
    calls = {
        "slidewise": ours,
        "pandas": pandas_of(table, "2s", "max", closed="left"),
        "polars": polars_by(table, "2s", "max", closed="left"),
        "DuckDB": over(table, "max(x)", frame),
    }
    question = "max of [t - 2 s, t): `1 2` at 0, `5 4` at 1, `3` at 4"
    return question, [None, None, 2, 2, None], calls


@report("polars#11150")
def sums_with_peers() -> Given:
    table = in_seconds([0, 0, 3, 3, 4], x=[1, 2, 3, 4, 5])

    calls = {
        "slidewise": lambda: rolled(table, windows="2s", agg=sw.sum("x")),
        "polars": polars_by(table, "2s"),
        "DuckDB": over(table, "sum(x)", last_seconds(2)),
    }
    question = "sum of (t - 2 s, t], rows of equal time see one another"
    return question, [3, 3, 7, 7, 12], calls


@report("polars#18126")
def sums_with_ties_by_rows() -> Given:
    table = in_seconds([0, 0, 3, 3, 4], x=[1, 2, 3, 4, 5])

    def ours() -> Any:
        return rolled(table, windows="2s", agg=sw.sum("x"), ties="rows")

    calls = {"slidewise": ours, "pandas": pandas_of(table, "2s")}
    question = "sum of (t - 2 s, t], of rows of equal time only those above"
    return question, [1, 3, 3, 7, 12], calls


@report("duckdb#10809", "pandas#43909")
def rows_that_are_not_sorted() -> Given:
    table = in_seconds([9, 2, 5, 3, 10], x=[1, 2, 3, 4, 5])

    def by_duckdb() -> Any:
        frame, numbered = last_seconds(3), table.append_column("n", pa.array(range(5)))
        sql = f"SELECT sum(x) OVER (ORDER BY t {frame}) FROM data ORDER BY n"
        return duckdb(numbered, sql)

    def by_pandas() -> Any:
        return table.to_pandas().rolling("3s", on="t")["x"].sum().tolist()

    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.sum("x")),
        "pandas": by_pandas,
        "polars": polars_by(table, "3s"),
        "DuckDB": by_duckdb,
    }
    question = "sum of (t - 3 s, t], times `9 2 5 3 10`, answers in this order"
    return question, [1, 2, 7, 6, 6], calls


@report("polars#4002")
def windows_that_ended_before() -> Given:
    table = in_seconds([0, 2, 4, 5, 9], x=[1, 2, 3, 4, 5])

    def ours() -> Any:
        return rolled(table, windows="3s", agg=sw.max("x"), offset="2s")

    frame = "RANGE BETWEEN INTERVAL 4999999 MICROSECOND PRECEDING"
    frame += " AND INTERVAL 2 SECOND PRECEDING"
    calls = {
        "slidewise": ours,
        "polars": polars_of(table, "3s", "max", offset="-5s"),
        "DuckDB": over(table, "max(x)", frame),
    }
    question = "max of (t - 5 s, t - 2 s], times `0 2 4 5 9`, values `1 … 5`"
    return question, [None, 1, 2, 2, 4], calls


@report("pandas#20012", "pandas#43944")
def centred_windows() -> Given:
    table = in_seconds([0, 1, 4, 6, 7], x=[1, 2, 3, 4, 5])

    def ours() -> Any:
        return rolled(table, windows="4s", agg=sw.sum("x"), offset="-2s")

    frame = "RANGE BETWEEN INTERVAL 1999999 MICROSECOND PRECEDING"
    frame += " AND INTERVAL 2 SECOND FOLLOWING"
    calls = {
        "slidewise": ours,
        "pandas": pandas_of(table, "4s", center=True),
        "polars": polars_of(table, "4s", offset="-2s"),
        "DuckDB": over(table, "sum(x)", frame),
    }
    # (−2, 2], (−1, 3], (2, 6], (4, 8], (5, 9]
    question = "sum of (t - 2 s, t + 2 s], times `0 1 4 6 7`, values `1 … 5`"
    return question, [3, 3, 7, 9, 9], calls


@report("pandas#32385")
def latest_row_first() -> Given:
    table = in_seconds([6, 5, 3, 0], x=[1, 2, 3, 4])

    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.sum("x")),
        "pandas": pandas_of(table, "3s"),
        "polars": polars_by(table, "3s"),
    }
    question = "sum of (t - 3 s, t], times `6 5 3 0`, in this order"
    return question, [3, 5, 3, 4], calls


@report("polars#20838")
def integers_at_the_end_of_int64() -> Given:
    end = 2**63 - 1
    table = pa.table({"t": [end - 4, end - 2, end], "x": [1, 2, 4]})

    def ours() -> Any:
        return rolled(table, windows=3, agg=sw.sum("x"), offset=-2, closed="right")

    frame = "RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING"
    calls = {
        "slidewise": ours,
        "polars": polars_of(table, "3i", offset="-1i"),
        "DuckDB": over(table, "sum(x)", frame),
    }
    question = "sum of (t - 1, t + 2], t = 2^63 - 5, 2^63 - 3, 2^63 - 1"
    return question, [3, 6, 4], calls


@report("datafusion#24184")
def frames_that_are_empty_in_between() -> Given:
    table = pa.table({"t": [0, 7, 20, 28], "x": [10, 20, 30, 40]})

    def ours() -> Any:
        return rolled(table, windows=5, agg=sw.max("x"), offset=5, closed="both")

    calls = {
        "slidewise": ours,
        "polars": polars_of(table, "5i", "max", offset="-10i", closed="both"),
        "DuckDB": over(table, "max(x)", "RANGE BETWEEN 10 PRECEDING AND 5 PRECEDING"),
    }
    question = "max of [t - 10, t - 5], t = `0 7 20 28`, values `10 20 30 40`"
    return question, [None, 10, None, 30], calls


@report("velox#10093", "risingwave#22010")
def windows_as_long_as_int64() -> Given:
    width = 2**63 - 1
    table = pa.table({"t": [-(2**62) - 5, 0, 2**62], "x": [1, 2, 4]})

    frame = f"RANGE BETWEEN {width - 1} PRECEDING AND CURRENT ROW"
    calls = {
        "slidewise": lambda: rolled(table, windows=width, agg=sw.sum("x")),
        "polars": polars_of(table, f"{width}i"),
        "DuckDB": over(table, "sum(x)", frame),
    }
    question = "sum of (t - 2^63 + 1, t], t = -2^62 - 5, 0, 2^62, values `1 2 4`"
    return question, [1, 3, 6], calls


@report("duckdb#23664", "duckdb#13598")
def frames_that_end_at_the_row() -> Given:
    table = pa.table({"t": [1, 1, 4, 6], "x": [1, 2, 4, 8]})

    def ours() -> Any:
        return rolled(table, windows=2, agg=sw.sum("x"), closed="both")

    frame = "RANGE BETWEEN 2 PRECEDING AND 0 PRECEDING"
    calls = {"slidewise": ours, "DuckDB": over(table, "sum(x)", frame)}
    question = "sum of [t - 2, t], t = `1 1 4 6`, values `1 2 4 8`: with its peers"
    return question, [3, 3, 4, 12], calls


@report("duckdb#16098")
def the_value_of_the_next_year() -> Given:
    table = pa.table({"t": [2001, 2002, 2004, 2005], "x": [1, 2, 4, 8]})

    def ours() -> Any:
        return rolled(table, windows=1, agg=sw.first("x"), offset=-1)

    frame = "RANGE BETWEEN 1 FOLLOWING AND 1 FOLLOWING"
    calls = {"slidewise": ours, "DuckDB": over(table, "first(x)", frame)}
    question = "the value of the next year: 2001, 2002, 2004, 2005"
    return question, [2, None, 8, None], calls


def _trailing(table: pa.Table, length: str, kind: str) -> Calls:
    """The calls for windows of a length up to each row, by "mean" or "sum"."""
    ours = {"mean": sw.mean, "sum": sw.sum}[kind]
    return {
        "slidewise": lambda: rolled(table, windows=length, agg=ours("x")),
        "pandas": pandas_of(table, length, kind),
        "polars": polars_of(table, length, kind),
    }


@report("polars#14764")
def times_that_are_durations() -> Given:
    since = [dt.timedelta(seconds=at) for at in (0, 10, 25)]
    table = pa.table({"t": pa.array(since, pa.duration("us")), "x": [1.0, 2.0, 6.0]})
    question = "mean of 20 s; times are durations: 0, 10, 25 s, values `1 2 6`"
    return question, [1.0, 1.5, 4.0], _trailing(table, "20s", "mean")


def _in_paris() -> pa.Table:
    """Rows around 02:00 on 29 March 2026, when clocks went forward."""
    zone = ZoneInfo("Europe/Paris")
    local = [(28, 11, 30), (28, 12, 30), (29, 12, 0)]
    times = [dt.datetime(2026, 3, *at, tzinfo=zone) for at in local]
    kind = pa.timestamp("us", "Europe/Paris")
    return pa.table({"t": pa.array(times, kind), "x": [1, 2, 4]})


@report("polars#29199")
def a_day_of_elapsed_time_over_a_clock_change() -> Given:
    # 24 hours before 12:00 on the 29th is 11:00 on the 28th.
    question = "sum of 24 h in Paris, 11:30, 12:30, next day 12:00, clocks changed"
    return question, [1, 3, 7], _trailing(_in_paris(), "24h", "sum")


def _calendar(table: pa.Table, unit: str) -> Calls:
    """The calls for windows of a calendar's unit up to each row."""
    windows = sw.calendar(unit)
    return {
        "slidewise": lambda: rolled(table, windows=windows, agg=sw.sum("x")),
        "polars": polars_of(table, unit),
    }


@report("polars#8176", "polars#9491", "pandas#13969")
def a_local_day_over_a_clock_change() -> Given:
    question = "sum of a local day in Paris, 11:30, 12:30, next day 12:00"
    return question, [1, 3, 6], _calendar(_in_paris(), "1d")


@report("polars#7640", "pandas#11472")
def a_month_up_to_the_row() -> Given:
    days = [dt.datetime(2026, *at) for at in ((1, 31), (2, 27), (2, 28), (3, 31))]
    table = pa.table({"t": pa.array(days, pa.timestamp("us")), "x": [1, 2, 4, 8]})
    # A month before 31 March is 28 February, which does not belong to the window.
    question = "sum of a month: 31 January, 27 and 28 February, 31 March"
    return question, [1, 3, 7, 8], _calendar(table, "1mo")


@report("polars#9081", "polars#12049")
def a_length_per_row() -> Given:
    table = pa.table({"t": [1, 2, 5, 9], "x": [1, 2, 4, 8], "w": [1, 2, 1, 20]})
    sql = (
        "SELECT sum(x) OVER (ORDER BY t RANGE BETWEEN w - 1 PRECEDING AND CURRENT ROW) "
        "FROM data ORDER BY t"
    )
    calls = {
        "slidewise": lambda: rolled(table, windows=sw.length("w"), agg=sw.sum("x")),
        "DuckDB": lambda: duckdb(table, sql),
    }
    question = "sum of (t - w, t], t = `1 2 5 9`, w = `1 2 1 20`"
    return question, [1, 3, 4, 15], calls


@report("pandas#26005", "pandas#20712", "pandas#23335")
def all_but_the_row_itself() -> Given:
    table = pa.table({"t": [1, 1, 3, 9], "x": [5, 2, 4, 8]})

    def ours() -> Any:
        return rolled(table, windows=5, agg=sw.max("x"), exclude="self")

    frame = "RANGE BETWEEN 4 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW"
    calls = {"slidewise": ours, "DuckDB": over(table, "max(x)", frame)}
    question = "max of (t - 5, t] without the row, t = `1 1 3 9`, x = `5 2 4 8`"
    return question, [2, 5, 5, None], calls
