"""Reports of wrong windows: their ends, ties, offsets, zones, hops, and text."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from bench.reports.asked import Calls, duckdb, rolled
from bench.reports.report import report

import slidewise as sw

Given = tuple[str, Any, Any]

_START = dt.datetime(2026, 3, 2)


def _seconds(times: list[int], **columns: list[Any]) -> pa.Table:
    """A table with times in seconds after a start."""
    instants = [_START + dt.timedelta(seconds=at) for at in times]
    return pa.table({"t": pa.array(instants, pa.timestamp("us")), **columns})


def _polars(table: pa.Table) -> Any:
    import polars as pl

    return pl.DataFrame(pl.from_arrow(table))


def _over(table: pa.Table, call: str, frame: str) -> Any:
    """Asks DuckDB for a call over a frame of times."""
    sql = f"SELECT {call} OVER (ORDER BY t {frame}) FROM data ORDER BY t"
    return lambda: duckdb(table, sql)


@report("polars#11281")
def closed_left_with_equal_times() -> Given:
    table = _seconds([0, 0, 1, 1, 4], x=[1, 2, 5, 4, 3])

    def ours() -> Any:
        return rolled(table, windows="2s", agg=sw.max("x"), closed="left")

    def by_pandas() -> Any:
        series = table.to_pandas().set_index("t")["x"]
        return series.rolling("2s", closed="left").max().tolist()

    def by_polars() -> Any:
        import polars as pl

        call = pl.col("x").rolling_max_by("t", "2s", closed="left", min_samples=1)
        return _polars(table).select(call).to_series().to_list()

    frame = "RANGE BETWEEN INTERVAL 2 SECOND PRECEDING"
    frame += " AND INTERVAL 1 MICROSECOND PRECEDING"
    question = "max of [t - 2 s, t): `1 2` at 0, `5 4` at 1, `3` at 4"
    calls = {"slidewise": ours, "pandas": by_pandas, "polars": by_polars}
    return (
        question,
        [None, None, 2, 2, None],
        calls | {"DuckDB": _over(table, "max(x)", frame)},
    )


@report("polars#11150")
def sums_with_peers() -> Given:
    table = _seconds([0, 0, 3, 3, 4], x=[1, 2, 3, 4, 5])

    def by_polars() -> Any:
        import polars as pl

        call = pl.col("x").rolling_sum_by("t", "2s")
        return _polars(table).select(call).to_series().to_list()

    frame = "RANGE BETWEEN INTERVAL 1999999 MICROSECOND PRECEDING AND CURRENT ROW"
    calls = {
        "slidewise": lambda: rolled(table, windows="2s", agg=sw.sum("x")),
        "polars": by_polars,
        "DuckDB": _over(table, "sum(x)", frame),
    }
    question = "sum of (t - 2 s, t], rows of equal time see one another"
    return question, [3, 3, 7, 7, 12], calls


@report("polars#18126")
def sums_with_ties_by_rows() -> Given:
    table = _seconds([0, 0, 3, 3, 4], x=[1, 2, 3, 4, 5])

    def by_pandas() -> Any:
        return table.to_pandas().set_index("t")["x"].rolling("2s").sum().tolist()

    def ours() -> Any:
        return rolled(table, windows="2s", agg=sw.sum("x"), ties="rows")

    question = "sum of (t - 2 s, t], of rows of equal time only those above"
    return question, [1, 3, 3, 7, 12], {"slidewise": ours, "pandas": by_pandas}


@report("duckdb#10809", "pandas#43909")
def rows_that_are_not_sorted() -> Given:
    table = _seconds([9, 2, 5, 3, 10], x=[1, 2, 3, 4, 5])

    def by_polars() -> Any:
        import polars as pl

        call = pl.col("x").rolling_sum_by("t", "3s")
        return _polars(table).select(call).to_series().to_list()

    def by_duckdb() -> Any:
        frame = "RANGE BETWEEN INTERVAL 2999999 MICROSECOND PRECEDING AND CURRENT ROW"
        numbered = table.append_column("place", pa.array(range(5)))
        sql = f"SELECT sum(x) OVER (ORDER BY t {frame}) FROM data ORDER BY place"
        return duckdb(numbered, sql)

    def by_pandas() -> Any:
        return table.to_pandas().rolling("3s", on="t")["x"].sum().tolist()

    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.sum("x")),
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": by_duckdb,
    }
    question = "sum of (t - 3 s, t], times `9 2 5 3 10`, answers in this order"
    return question, [1, 2, 7, 6, 6], calls


@report("polars#4002")
def windows_that_ended_before() -> Given:
    table = _seconds([0, 2, 4, 5, 9], x=[1, 2, 3, 4, 5])

    def ours() -> Any:
        return rolled(table, windows="3s", agg=sw.max("x"), offset="2s")

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period="3s", offset="-5s")
        return groups.agg(pl.col("x").max())["x"].to_list()

    frame = "RANGE BETWEEN INTERVAL 4999999 MICROSECOND PRECEDING"
    frame += " AND INTERVAL 2 SECOND PRECEDING"
    calls = {
        "slidewise": ours,
        "polars": by_polars,
        "DuckDB": _over(table, "max(x)", frame),
    }
    question = "max of (t - 5 s, t - 2 s], times `0 2 4 5 9`, values `1 … 5`"
    return question, [None, 1, 2, 2, 4], calls


@report("pandas#20012", "pandas#43944")
def centred_windows() -> Given:
    table = _seconds([0, 1, 4, 6, 7], x=[1, 2, 3, 4, 5])

    def ours() -> Any:
        return rolled(table, windows="4s", agg=sw.sum("x"), offset="-2s")

    def by_pandas() -> Any:
        series = table.to_pandas().set_index("t")["x"]
        return series.rolling("4s", center=True).sum().tolist()

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period="4s", offset="-2s")
        return groups.agg(pl.col("x").sum())["x"].to_list()

    frame = "RANGE BETWEEN INTERVAL 1999999 MICROSECOND PRECEDING"
    frame += " AND INTERVAL 2 SECOND FOLLOWING"
    calls = {
        "slidewise": ours,
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": _over(table, "sum(x)", frame),
    }
    # (−2, 2], (−1, 3], (2, 6], (4, 8], (5, 9]
    question = "sum of (t - 2 s, t + 2 s], times `0 1 4 6 7`, values `1 … 5`"
    return question, [3, 3, 7, 9, 9], calls


@report("pandas#32385")
def latest_row_first() -> Given:
    table = _seconds([6, 5, 3, 0], x=[1, 2, 3, 4])

    def by_pandas() -> Any:
        return table.to_pandas().set_index("t")["x"].rolling("3s").sum().tolist()

    def by_polars() -> Any:
        import polars as pl

        call = pl.col("x").rolling_sum_by("t", "3s")
        return _polars(table).select(call).to_series().to_list()

    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.sum("x")),
        "pandas": by_pandas,
        "polars": by_polars,
    }
    question = "sum of (t - 3 s, t], times `6 5 3 0`, in this order"
    return question, [3, 5, 3, 4], calls


@report("polars#20838")
def integers_at_the_end_of_int64() -> Given:
    end = 2**63 - 1
    table = pa.table({"t": [end - 4, end - 2, end], "x": [1, 2, 4]})

    def ours() -> Any:
        return rolled(table, windows=3, agg=sw.sum("x"), offset=-2, closed="right")

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period="3i", offset="-1i", closed="right")
        return groups.agg(pl.col("x").sum())["x"].to_list()

    frame = "RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING"
    calls = {
        "slidewise": ours,
        "polars": by_polars,
        "DuckDB": _over(table, "sum(x)", frame),
    }
    question = "sum of (t - 1, t + 2], t = 2^63 - 5, 2^63 - 3, 2^63 - 1"
    return question, [3, 6, 4], calls


@report("datafusion#24184")
def frames_that_are_empty_in_between() -> Given:
    table = pa.table({"t": [0, 7, 20, 28], "x": [10, 20, 30, 40]})

    def ours() -> Any:
        return rolled(table, windows=5, agg=sw.sum("x"), offset=5, closed="both")

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period="5i", offset="-10i", closed="both")
        return groups.agg(pl.col("x").max())["x"].to_list()

    frame = "RANGE BETWEEN 10 PRECEDING AND 5 PRECEDING"
    calls = {
        "slidewise": ours,
        "polars": by_polars,
        "DuckDB": _over(table, "sum(x)", frame),
    }
    question = "sum of [t - 10, t - 5], t = `0 7 20 28`, values `10 20 30 40`"
    return question, [None, 10, None, 30], calls


@report("velox#10093", "risingwave#22010")
def windows_as_long_as_int64() -> Given:
    width = 2**63 - 1
    table = pa.table({"t": [-(2**62) - 5, 0, 2**62], "x": [1, 2, 4]})

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period=f"{width}i")
        return groups.agg(pl.col("x").sum())["x"].to_list()

    frame = f"RANGE BETWEEN {width - 1} PRECEDING AND CURRENT ROW"
    calls = {
        "slidewise": lambda: rolled(table, windows=width, agg=sw.sum("x")),
        "polars": by_polars,
        "DuckDB": _over(table, "sum(x)", frame),
    }
    question = "sum of (t - 2^63 + 1, t], t = -2^62 - 5, 0, 2^62, values `1 2 4`"
    return question, [1, 3, 6], calls


@report("duckdb#23664", "duckdb#13598")
def frames_that_end_at_the_row() -> Given:
    table = pa.table({"t": [1, 1, 4, 6], "x": [1, 2, 4, 8]})

    def ours() -> Any:
        return rolled(table, windows=2, agg=sw.sum("x"), closed="both")

    frame = "RANGE BETWEEN 2 PRECEDING AND 0 PRECEDING"
    calls = {"slidewise": ours, "DuckDB": _over(table, "sum(x)", frame)}
    question = "sum of [t - 2, t], t = `1 1 4 6`, values `1 2 4 8`: with its peers"
    return question, [3, 3, 4, 12], calls


@report("duckdb#16098")
def the_value_of_the_next_year() -> Given:
    table = pa.table({"t": [2001, 2002, 2004, 2005], "x": [1, 2, 4, 8]})

    def ours() -> Any:
        return rolled(table, windows=1, agg=sw.first("x"), offset=-1)

    frame = "RANGE BETWEEN 1 FOLLOWING AND 1 FOLLOWING"
    calls = {"slidewise": ours, "DuckDB": _over(table, "first(x)", frame)}
    question = "the value of the next year: 2001, 2002, 2004, 2005"
    return question, [2, None, 8, None], calls


def _trailing(table: pa.Table, length: str, kind: str) -> Calls:
    """The calls for windows of a length up to each row, by "mean" or "sum"."""

    def by_pandas() -> Any:
        window = table.to_pandas().set_index("t")["x"].rolling(length)
        return getattr(window, kind)().tolist()

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period=length)
        return groups.agg(getattr(pl.col("x"), kind)())["x"].to_list()

    ours = {"mean": sw.mean, "sum": sw.sum}[kind]
    return {
        "slidewise": lambda: rolled(table, windows=length, agg=ours("x")),
        "pandas": by_pandas,
        "polars": by_polars,
    }


@report("polars#14764")
def times_that_are_durations() -> Given:
    since = [dt.timedelta(seconds=at) for at in (0, 10, 25)]
    times = pa.array(since, pa.duration("us"))
    table = pa.table({"t": times, "x": [1.0, 2.0, 6.0]})

    calls = _trailing(table, "20s", "mean")
    question = "mean of 20 s; times are durations: 0, 10, 25 s, values `1 2 6`"
    return question, [1.0, 1.5, 4.0], calls


@report("polars#29199")
def a_day_of_elapsed_time_over_a_clock_change() -> Given:
    zone = ZoneInfo("Europe/Paris")
    # Clocks went forward at 02:00 on 29 March 2026.
    local = [(28, 11, 30), (28, 12, 30), (29, 12, 0)]
    times = [dt.datetime(2026, 3, *at, tzinfo=zone) for at in local]
    table = pa.table(
        {"t": pa.array(times, pa.timestamp("us", "Europe/Paris")), "x": [1, 2, 4]}
    )

    calls = _trailing(table, "24h", "sum")
    # 24 hours before 12:00 on the 29th is 11:00 on the 28th.
    question = "sum of 24 h in Paris, 11:30, 12:30, next day 12:00, clocks changed"
    return question, [1, 3, 7], calls


@report("polars#8176", "polars#9491", "pandas#13969")
def a_local_day_over_a_clock_change() -> Given:
    zone = ZoneInfo("Europe/Paris")
    local = [(28, 11, 30), (28, 12, 30), (29, 12, 0)]
    times = [dt.datetime(2026, 3, *at, tzinfo=zone) for at in local]
    table = pa.table(
        {"t": pa.array(times, pa.timestamp("us", "Europe/Paris")), "x": [1, 2, 4]}
    )

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period="1d")
        return groups.agg(pl.col("x").sum())["x"].to_list()

    calls = {
        "slidewise": lambda: rolled(table, windows=sw.calendar("1d"), agg=sw.sum("x")),
        "polars": by_polars,
    }
    question = "sum of a local day in Paris, 11:30, 12:30, next day 12:00"
    return question, [1, 3, 6], calls


@report("polars#7640", "pandas#11472")
def a_month_up_to_the_row() -> Given:
    days = [dt.datetime(2026, *at) for at in ((1, 31), (2, 27), (2, 28), (3, 31))]
    table = pa.table({"t": pa.array(days, pa.timestamp("us")), "x": [1, 2, 4, 8]})

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period="1mo")
        return groups.agg(pl.col("x").sum())["x"].to_list()

    calls = {
        "slidewise": lambda: rolled(table, windows=sw.calendar("1mo"), agg=sw.sum("x")),
        "polars": by_polars,
    }
    # A month before 31 March is 28 February, which does not belong to the window.
    question = "sum of a month: 31 January, 27 and 28 February, 31 March"
    return question, [1, 3, 7, 8], calls


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
    calls = {"slidewise": ours, "DuckDB": _over(table, "max(x)", frame)}
    question = "max of (t - 5, t] without the row, t = `1 1 3 9`, x = `5 2 4 8`"
    return question, [2, 5, 5, None], calls


@report("pandas#20773")
def distinct_texts() -> Given:
    table = _seconds([0, 1, 2, 5], x=["a", "b", "a", "c"])

    def by_pandas() -> Any:
        return table.to_pandas().set_index("t")["x"].rolling("3s").nunique().tolist()

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period="3s")
        return groups.agg(pl.col("x").n_unique())["x"].to_list()

    frame = "RANGE BETWEEN INTERVAL 2999999 MICROSECOND PRECEDING AND CURRENT ROW"
    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.count_distinct("x")),
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": _over(table, "count(DISTINCT x)", frame),
    }
    return "distinct texts in 3 s: `a b a c` at 0, 1, 2, 5", [1, 2, 2, 1], calls


@report("pandas#36861")
def most_frequent_text() -> Given:
    table = _seconds([0, 1, 2, 3], x=["b", "a", "a", "b"])

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period="3s")
        return groups.agg(pl.col("x").mode().min())["x"].to_list()

    def by_pandas() -> Any:
        return table.to_pandas()["x"].rolling(3).apply(lambda x: x.mode()[0]).tolist()

    frame = "RANGE BETWEEN INTERVAL 2999999 MICROSECOND PRECEDING AND CURRENT ROW"
    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.mode("x")),
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": _over(table, "mode(x ORDER BY x)", frame),
    }
    question = "most frequent text in 3 s, of equals the first by name: `b a a b`"
    return question, ["b", "a", "a", "a"], calls


@report("pandas#40374", "pandas#53235")
def a_function_of_two_columns() -> Given:
    @sw.aggregation
    class Turnover:
        """The sum of price × size."""

        identity, commutative = 0.0, True

        @staticmethod
        def lift(price: float, size: float) -> float:
            return price * size

        @staticmethod
        def combine(earlier: float, later: float) -> float:
            return earlier + later

    table = pa.table({"t": [1, 2, 9], "p": [2.0, 3.0, 4.0], "n": [10.0, 1.0, 5.0]})

    def by_pandas() -> Any:
        frame = table.to_pandas().rolling(2, min_periods=1)
        return frame.apply(lambda rows: (rows["p"] * rows["n"]).sum())["p"].tolist()

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).rolling("t", period="5i")
        return groups.agg((pl.col("p") * pl.col("n")).sum())["p"].to_list()

    frame = "RANGE BETWEEN 4 PRECEDING AND CURRENT ROW"
    calls = {
        "slidewise": lambda: rolled(table, windows=5, agg=Turnover("p", "n")),
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": _over(table, "sum(p * n)", frame),
    }
    question = "own function Σ p · n of the last 5: p = `2 3 4`, n = `10 1 5`"
    return question, [20.0, 23.0, 20.0], calls


# Hops.


@report("ClickHouse#94291")
def hops_shorter_than_windows() -> Given:
    table = _seconds([0, 1, 2, 3, 4, 5], x=[1] * 6)

    def ours() -> Any:
        out = sw.hopping(table, on="t", window="5s", every="1s", aggs={"n": sw.count()})
        return out["n"].to_pylist()

    question = "rows in each window of 5 s every 1 s; a row per second, 6 in all"
    right = [1, 2, 3, 4, 5, 5, 4, 3, 2, 1]
    return question, right, {"slidewise": ours}


@report("bytewax#485")
def hops_of_uneven_length() -> Given:
    table = _seconds([4, 5, 6, 11], x=[1] * 4)

    def ours() -> Any:
        out = sw.hopping(
            table, on="t", window="5500ms", every="5s", aggs={"n": sw.count()}
        )
        return out["n"].to_pylist()

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).group_by_dynamic("t", every="5s", period="5500ms")
        return groups.agg(pl.len())["len"].to_list()

    # [0, 5.5) has 4 and 5; [5, 10.5) has 5 and 6; [10, 15.5) has 11.
    question = "rows in each window of 5.5 s every 5 s: at 4, 5, 6, 11"
    return question, [2, 2, 1], {"slidewise": ours, "polars": by_polars}


@report("polars#12035")
def days_from_six_to_six() -> Given:
    times = [dt.datetime(2026, 3, 2, hour) for hour in (0, 5, 6, 23)]
    table = pa.table({"t": pa.array(times, pa.timestamp("us"))})

    def ours() -> Any:
        request: dict[str, Any] = {"window": "1d", "offset": "6h"}
        out = sw.hopping(table, on="t", aggs={"n": sw.count()}, **request)
        return out["n"].to_pylist()

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).group_by_dynamic("t", every="1d", offset="6h")
        return groups.agg(pl.len())["len"].to_list()

    def by_pandas() -> Any:
        series = table.to_pandas().assign(n=1).set_index("t")["n"]
        return series.resample("1D", offset="6h").sum().tolist()

    sql = (
        "SELECT count(*) FROM data GROUP BY time_bucket(INTERVAL 1 DAY, t, "
        "INTERVAL 6 HOUR) ORDER BY min(t)"
    )
    calls = {
        "slidewise": ours,
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": lambda: duckdb(table, sql),
    }
    question = "rows per day from 6 to 6: at 0, 5, 6 and 23 o'clock"
    return question, [2, 2], calls


@report("polars#12952")
def hops_before_the_epoch() -> Given:
    table = pa.table({"t": [-7, -5, -1, 0, 4], "x": [1] * 5})

    def ours() -> Any:
        out = sw.hopping(table, on="t", window=5, aggs={"n": sw.count()})
        return out["window_start"].to_pylist() + out["n"].to_pylist()

    def by_polars() -> Any:
        import polars as pl

        groups = _polars(table).group_by_dynamic("t", every="5i")
        found = groups.agg(pl.len())
        return found["t"].to_list() + found["len"].to_list()

    calls = {"slidewise": ours, "polars": by_polars}
    question = "starts and rows of windows of 5: t = `-7 -5 -1 0 4`"
    return question, [-10, -5, 0, 1, 2, 2], calls
