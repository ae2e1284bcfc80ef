"""Reports of aggregations other than sums, moments and extremes."""

import math
from typing import Any

import pyarrow as pa
from bench.reports.asked import (
    in_seconds,
    last_seconds,
    over,
    pandas_of,
    pandas_windows,
    polars_by,
    polars_of,
    rolled,
    to_polars,
)
from bench.reports.report import Given, report

import slidewise as sw


@report("pandas#20773")
def distinct_texts() -> Given:
    table = in_seconds([0, 1, 2, 5], x=["a", "b", "a", "c"])

    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.count_distinct("x")),
        "pandas": pandas_of(table, "3s", "nunique"),
        "polars": polars_of(table, "3s", "n_unique"),
        "DuckDB": over(table, "count(DISTINCT x)", last_seconds(3)),
    }
    return "distinct texts in 3 s: `a b a c` at 0, 1, 2, 5", [1, 2, 2, 1], calls


@report("pandas#36861")
def most_frequent_text() -> Given:
    table = in_seconds([0, 1, 2, 3], x=["b", "a", "a", "b"])

    def by_polars() -> Any:
        import polars as pl

        groups = to_polars(table).rolling("t", period="3s")
        return groups.agg(pl.col("x").mode().min())["x"].to_list()

    def by_pandas() -> Any:
        return table.to_pandas()["x"].rolling(3).apply(lambda x: x.mode()[0]).tolist()

    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.mode("x")),
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": over(table, "mode(x ORDER BY x)", last_seconds(3)),
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

        groups = to_polars(table).rolling("t", period="5i")
        return groups.agg((pl.col("p") * pl.col("n")).sum())["p"].to_list()

    frame = "RANGE BETWEEN 4 PRECEDING AND CURRENT ROW"
    calls = {
        "slidewise": lambda: rolled(table, windows=5, agg=Turnover("p", "n")),
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": over(table, "sum(p * n)", frame),
    }
    question = "own function Σ p · n of the last 5: p = `2 3 4`, n = `10 1 5`"
    return question, [20.0, 23.0, 20.0], calls


@report("pandas#51695", "pandas#54328")
def decayed_sum_by_time() -> Given:
    table = pa.table({"t": [0, 10, 30], "x": [8.0, 4.0, 1.0]})

    def ours() -> Any:
        agg = sw.decayed_sum("x", half_life=10)
        return rolled(table, windows=sw.unbounded(), agg=agg)

    def by_pandas() -> Any:
        import pandas as pd

        times = pd.to_datetime(pd.Series([0, 10, 30]), unit="s")
        series = pd.Series([8.0, 4.0, 1.0])
        return series.ewm(halflife="10s", times=times, adjust=True).sum().tolist()

    question = "decayed sum, half-life 10: 8 at 0, 4 at 10, 1 at 30"
    return question, [8.0, 8.0, 3.0], {"slidewise": ours, "pandas": by_pandas}


@report("pandas#48030", "polars#9954", "data.table#7349")
def product_after_a_zero() -> Given:
    table = in_seconds([0, 1, 2, 3, 4], x=[2, 3, 0, 4, 5])

    def by_pandas() -> Any:
        return pandas_windows(table, "2s").apply(math.prod, raw=True).tolist()

    calls = {
        "slidewise": lambda: rolled(table, windows="2s", agg=sw.product("x")),
        "pandas": by_pandas,
        "polars": polars_of(table, "2s", "product"),
        "DuckDB": over(table, "product(x)", last_seconds(2)),
    }
    return "product of 2 s: `2 3 0 4 5`", [2, 6, 0, 0, 20], calls


@report("pandas#9413", "polars#10030")
def median_by_the_quantile() -> Given:
    table = in_seconds([0, 1, 2, 3], x=[1, 2, 8, 5])

    def by_pandas() -> Any:
        return pandas_windows(table, "2s").quantile(0.5).tolist()

    calls = {
        "slidewise": lambda: rolled(table, windows="2s", agg=sw.quantile("x", 0.5)),
        "pandas": by_pandas,
        "polars": polars_by(
            table, "2s", "quantile", quantile=0.5, interpolation="linear"
        ),
        "DuckDB": over(table, "quantile_cont(x, 0.5)", last_seconds(2)),
    }
    return "quantile 0.5 of 2 s, on the line: `1 2 8 5`", [1.0, 1.5, 5.0, 6.5], calls


@report("polars#23392")
def nearest_quantile() -> Given:
    table = in_seconds([*range(10)], x=[*range(1, 11)])
    agg = sw.quantile("x", 0.9, interpolation="nearest")

    def by_pandas() -> Any:
        return pandas_windows(table, "10s").quantile(0.9, "nearest").tolist()[-1]

    def by_polars() -> Any:
        call = to_polars(table)["x"].rolling_quantile
        return call(0.9, "nearest", window_size=10).to_list()[-1]

    calls = {
        "slidewise": lambda: rolled(table, windows="10s", agg=agg)[-1],
        "pandas": by_pandas,
        "polars": by_polars,
    }
    # The place 0.9 · 9 = 8.1 from 0 is nearest to that of 9.
    return "quantile 0.9 of 10, the nearest value: `1 … 10`", 9, calls


@report("polars#20214")
def nearest_quantile_of_groups() -> Given:
    table = in_seconds([0, 1, 2, 3], x=[4, 9, 1, 6])
    agg = sw.quantile("x", 0.75, interpolation="nearest")

    def by_pandas() -> Any:
        return pandas_windows(table, "4s").quantile(0.75, "nearest").tolist()

    calls = {
        "slidewise": lambda: rolled(table, windows="4s", agg=agg),
        "pandas": by_pandas,
        "polars": polars_of(table, "4s", lambda pl: pl.quantile("x", 0.75, "nearest")),
    }
    # The places are 0, 0.75, 1.5 and 2.25; of the third, the even one is taken.
    return "quantile 0.75 of 4 s, the nearest value: `4 9 1 6`", [4, 9, 9, 6], calls


@report("polars#27661")
def mean_of_two_values_at_least() -> Given:
    table = in_seconds([0, 1, 2, 3], x=[3, 5, None, 9])

    def ours() -> Any:
        return rolled(table, windows="2s", agg=sw.mean("x"), min_rows=2)

    calls = {
        "slidewise": ours,
        "pandas": pandas_of(table, "2s", "mean", min_periods=2),
        "polars": polars_by(table, "2s", "mean", min_samples=2),
    }
    question = "mean of 2 s, of two values at least: `3 5 – 9`"
    return question, [None, 4.0, None, None], calls


@report("polars#8861", "rolling#7")
def slope_of_a_line() -> Given:
    table = in_seconds([0, 1, 2, 3], x=[1, 2, 4, 3], y=[2, 5, 9, 7])

    def by_pandas() -> Any:
        y = table.to_pandas().set_index("t")["y"]
        windows = pandas_windows(table, "3s")
        return (windows.cov(y) / windows.var()).tolist()

    def by_polars(pl: Any) -> Any:
        return pl.cov("x", "y") / pl.var("x")

    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.slope("y", "x")),
        "pandas": by_pandas,
        "polars": polars_of(table, "3s", by_polars),
        "DuckDB": over(table, "regr_slope(y, x)", last_seconds(3)),
    }
    # Of the third: Sxy = 48 - 112/3, Sxx = 21 - 49/3.
    question = "slope of y over x of 3 s: x = `1 2 4 3`, y = `2 5 9 7`"
    return question, [None, 3.0, 16 / 7, 2.0], calls


@report("pandas#33155", "pandas#62490", "pandas#61310")
def first_of_a_window() -> Given:
    table = in_seconds([0, 1, 3, 4], x=[4, 7, 2, 9])
    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.first("x")),
        "pandas": pandas_of(table, "3s", "first"),
        "polars": polars_of(table, "3s", "first"),
        "DuckDB": over(table, "first(x)", last_seconds(3)),
    }
    return "first of 3 s: `4 7 2 9` at 0, 1, 3, 4", [4, 4, 7, 2], calls


@report("polars#27778", "rolling#11")
def place_of_the_maximum() -> Given:
    table = in_seconds([0, 1, 2, 4], x=[5, 9, 2, 4], y=[*"abcd"])
    agg = sw.arg_max("y", "x")

    def by_polars(pl: Any) -> Any:
        return pl.col("y").get(pl.col("x").arg_max())

    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=agg),
        "polars": polars_of(table, "3s", by_polars),
        "DuckDB": over(table, "arg_max(y, x)", last_seconds(3)),
    }
    question = "text of the largest of 3 s: `a5 b9 c2 d4` at 0, 1, 2, 4"
    return question, ["a", "b", "b", "d"], calls


@report("pandas#9481")
def rank_in_the_window() -> Given:
    table = in_seconds([0, 1, 2, 3, 4], x=[5, 7, 5, 9, 7])

    def by_pandas() -> Any:
        return pandas_windows(table, "3s").rank(method="min").tolist()

    calls = {
        "slidewise": lambda: rolled(table, windows="3s", agg=sw.rank("x", "min")),
        "pandas": by_pandas,
        "polars": polars_of(table, "3s", lambda pl: pl.col("x").rank("min").last()),
        "DuckDB": over(table, "rank(ORDER BY x)", last_seconds(3)),
    }
    return "rank of the row in 3 s: `5 7 5 9 7`", [1, 2, 1, 3, 2], calls


@report("pandas#1377", "VictoriaMetrics#8781")
def mean_weighted_by_time() -> Given:
    table = pa.table({"t": [0, 10, 30], "x": [2.0, 4.0, 8.0]})

    def ours() -> Any:
        return rolled(table, windows=25, agg=sw.time_weighted_mean("x"))

    # Of (5, 30]: 5 of the value 2, which began before, and 20 of 4.
    question = "mean of 25, weighted by time: a value holds until the next; `2 4 8`"
    return question, [None, 2.0, 3.6], {"slidewise": ours}
