"""Reports of windows with one answer each: hops, sessions, and empty windows."""

import datetime as dt
from typing import Any

import pyarrow as pa
from bench.reports.asked import duckdb, in_seconds, to_polars
from bench.reports.report import Given, report

import slidewise as sw


@report("ClickHouse#94291")
def hops_shorter_than_windows() -> Given:
    table = in_seconds([0, 1, 2, 3, 4, 5], x=[1] * 6)

    def ours() -> Any:
        out = sw.hopping(table, on="t", window="5s", every="1s", aggs={"n": sw.count()})
        return out["n"].to_pylist()

    question = "rows in each window of 5 s every 1 s; a row per second, 6 in all"
    right = [1, 2, 3, 4, 5, 5, 4, 3, 2, 1]
    return question, right, {"slidewise": ours}


@report("bytewax#485")
def hops_of_uneven_length() -> Given:
    table = in_seconds([4, 5, 6, 11], x=[1] * 4)

    def ours() -> Any:
        out = sw.hopping(
            table, on="t", window="5500ms", every="5s", aggs={"n": sw.count()}
        )
        return out["n"].to_pylist()

    def by_polars() -> Any:
        import polars as pl

        groups = to_polars(table).group_by_dynamic("t", every="5s", period="5500ms")
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

        groups = to_polars(table).group_by_dynamic("t", every="1d", offset="6h")
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

        groups = to_polars(table).group_by_dynamic("t", every="5i")
        found = groups.agg(pl.len())
        return found["t"].to_list() + found["len"].to_list()

    calls = {"slidewise": ours, "polars": by_polars}
    question = "starts and rows of windows of 5: t = `-7 -5 -1 0 4`"
    return question, [-10, -5, 0, 1, 2, 2], calls


@report("kapacitor#1474", "proton#458")
def hops_without_rows() -> Given:
    table = in_seconds([1, 2, 17], x=[1] * 3)

    def ours() -> Any:
        aggs = {"n": sw.count()}
        out = sw.hopping(table, on="t", window="5s", aggs=aggs, empty=True)
        return out["n"].to_pylist()

    def by_pandas() -> Any:
        return table.to_pandas().set_index("t")["x"].resample("5s").size().tolist()

    question = "rows per 5 s, also where there are none: at 1, 2, 17"
    return question, [2, 0, 0, 1], {"slidewise": ours, "pandas": by_pandas}


@report("polars#3832", "polars#3776")
def rows_per_month() -> Given:
    days = [
        dt.datetime(2026, *at) for at in ((5, 1), (5, 27), (5, 31), (6, 1), (6, 30))
    ]
    table = pa.table({"t": pa.array(days, pa.timestamp("us")), "x": [1] * 5})

    def ours() -> Any:
        every, aggs = sw.calendar("1mo"), {"n": sw.count()}
        return sw.hopping(table, on="t", every=every, aggs=aggs)["n"].to_pylist()

    def by_pandas() -> Any:
        return table.to_pandas().set_index("t")["x"].resample("MS").size().tolist()

    def by_polars() -> Any:
        import polars as pl

        groups = to_polars(table).group_by_dynamic("t", every="1mo")
        return groups.agg(pl.len())["len"].to_list()

    sql = "SELECT count(*) FROM data GROUP BY date_trunc('month', t) ORDER BY min(t)"
    calls = {
        "slidewise": ours,
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": lambda: duckdb(table, sql),
    }
    return "rows per month: 1, 27 and 31 May, 1 and 30 June", [3, 2], calls


@report("ksql#1995")
def a_session_ends_with_its_last_row() -> Given:
    table = in_seconds([0, 10, 50], x=[1] * 3)

    def ours() -> Any:
        window, aggs = sw.session("30s"), {"n": sw.count()}
        out = sw.hopping(table, on="t", window=window, aggs=aggs)
        starts, ends = (out[f"window_{side}"].to_pylist() for side in ("start", "end"))
        return [(end - start).seconds for start, end in zip(starts, ends, strict=True)]

    question = "length of the sessions of gap 30 s: rows at 0, 10, 50"
    return question, [10, 0], {"slidewise": ours}
