"""The rows of docs/differences.md that show a call: each library answers as it says."""

import math

import duckdb
import pandas as pd
import polars as pl
import pytest

import slidewise as sw

HOURS = pd.date_range("2024-01-01", periods=8, freq="h")
ROWS = pd.DataFrame({"t": HOURS, "x": range(8)})
COUNT = {"n": sw.count()}


def sql(query: str, rows: pd.DataFrame) -> list[tuple[object, ...]]:
    with duckdb.connect() as base:
        base.register("given", rows)
        return base.execute(query).fetchall()


def test_a_range_of_sql_has_both_ends() -> None:
    found = sql(
        "select count(*) over (order by t range between interval 4 hour preceding "
        "and current row) from given order by t",
        ROWS,
    )
    both = sw.rolling(ROWS, on="t", windows="4h", closed="both", aggs=COUNT)
    assert both["n_4h"].tolist() == [n for (n,) in found] == [1, 2, 3, 4, 5, 5, 5, 5]
    right = sw.rolling(ROWS, on="t", windows="4h", aggs=COUNT)
    assert right["n_4h"].tolist() == [1, 2, 3, 4, 4, 4, 4, 4]
    assert right["n_4h"].tolist() == ROWS.rolling("4h", on="t")["x"].count().tolist()


def test_null_is_a_key() -> None:
    rows = pd.DataFrame({"t": [1, 2, 3], "k": ["a", None, None]})
    found = sw.hopping(rows, on="t", by="k", window=9, aggs=COUNT)
    assert found["n"].tolist() == [1, 2]
    assert rows.groupby("k").size().tolist() == [1]
    assert sorted(pl.from_pandas(rows).group_by("k").len()["len"]) == [1, 2]
    assert sorted(sql("select count(*) from given group by k", rows)) == [(1,), (2,)]


def test_conditions_and_counts() -> None:
    rows = pd.DataFrame(
        {"t": [1, 2, 3], "x": [5.0, None, 7.0], "f": [True, True, None]}
    )
    rows["f"] = rows["f"].astype("boolean")
    aggs = {"all": sw.count(), "x": sw.count("x"), "f": sw.sum("x", where="f")}
    found = sw.rolling(rows, on="t", windows=9, aggs=aggs).iloc[-1]
    assert found[["all_9", "x_9", "f_9"]].tolist() == [3, 2, 5.0]
    query = "select count(*), count(x), sum(x) filter (where f) from given"
    plain = rows.assign(x=rows["x"].astype(object).where(rows["x"].notna(), None))
    assert sql(query, plain.astype({"x": "Float64"})) == [(3, 2, 5.0)]


def test_the_value_of_the_row_before() -> None:
    found = sw.rolling(
        ROWS, on="t", windows="1d", closed="left", aggs={"x": sw.last("x")}
    )
    assert found["x_1d"].tolist()[1:] == ROWS["x"].shift(1).tolist()[1:]
    lag = sql("select lag(x) over (order by t) from given order by t", ROWS)
    assert found["x_1d"].tolist()[1:] == [x for (x,) in lag][1:]


def test_the_value_of_the_row_before_where_times_tie() -> None:
    rows = pd.DataFrame({"t": [1, 1, 2, 3, 3], "x": [1.0, 2.0, 3.0, 4.0, 5.0]})
    last = sw.Spec(
        on="t", windows=sw.rows(1), offset=sw.rows(1), aggs={"x": sw.last("x")}
    )
    found = sw.rolling(rows, last)["x_1rows"]
    assert found.tolist()[1:] == rows["x"].shift(1).tolist()[1:] == [1, 2, 3, 4]
    last = sw.Spec(on="t", windows=sw.rows(1), closed="left", aggs={"x": sw.last("x")})
    earlier = sw.rolling(rows, last)["x_1rows"]
    assert earlier.fillna(-1).tolist() == [-1, -1, 2, 3, 3]


def test_the_first_value_of_an_exponential_mean() -> None:
    rows = pd.DataFrame({"t": HOURS[[0, 1, 3]], "x": [1.0, 3.0, 2.0]})
    mean = {"x": sw.decayed_mean("x", "1h")}
    found = sw.rolling(rows, on="t", windows=sw.unbounded(), aggs=mean)
    expected = [1, (1 / 2 + 3) / (1 / 2 + 1), (1 / 8 + 3 / 4 + 2) / (1 / 8 + 1 / 4 + 1)]
    assert found["x_unbounded"].tolist() == pytest.approx(expected, rel=1e-14)
    peer = rows["x"].ewm(halflife="1h", times=rows["t"]).mean()
    assert peer.tolist() == pytest.approx(expected, rel=1e-14)
    other = pl.from_pandas(rows).select(pl.col("x").ewm_mean_by("t", half_life="1h"))
    assert other["x"].to_list() == pytest.approx([1, 2, 2], rel=1e-14)


def test_the_bins_of_a_histogram() -> None:
    rows = pd.DataFrame({"t": [1] * 5, "x": [-1.0, 0.0, 5.0, 10.0, 11.0]})
    bins = {"x": sw.histogram("x", edges=[0, 10])}
    found = sw.rolling(rows, on="t", windows=9, aggs=bins)["x_9"]
    assert list(found[0]) == [1, 2, 2]  # 0 is in [0, 10), 10 is above
    cut = pd.cut(rows["x"], [float("-inf"), 0, 10, float("inf")])
    assert cut.value_counts(sort=False).tolist() == [2, 2, 1]
    at = pl.from_pandas(rows)["x"].bin_intervals([0, 10], labels=False)
    assert at.to_list() == [0, 1, 1, 2, 2]
    query = "select map_values(histogram(x, [0, 10])) from given"
    assert sql(query, rows) == [([2, 2, 1],)]


def test_the_unit_of_entropy() -> None:
    rows = pd.DataFrame({"t": [1] * 4, "x": [1, 2, 3, 4]})
    found = sw.rolling(rows, on="t", windows=9, aggs={"x": sw.entropy("x")})["x_9"]
    assert found[0] == pytest.approx(math.log(4))
    assert pl.Series([0.25] * 4).entropy() == pytest.approx(math.log(4))
    assert sql("select entropy(x) from given", rows) == [(2.0,)]


def test_a_negative_offset_centres_windows() -> None:
    aggs = {"s": sw.sum("x")}
    found = sw.rolling(ROWS, on="t", windows="4h", offset="-2h", aggs=aggs)
    centred = ROWS.rolling("4h", on="t", center=True)["x"].sum()
    assert found["s_4h"].tolist() == centred.tolist() == [3, 6, 10, 14, 18, 22, 18, 13]


@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_a_quantile_between_two_values(interpolation: str) -> None:
    rows = pd.DataFrame({"t": [1] * 6, "x": [1, 2, 3, 4, 5, 6]})
    agg = sw.quantile("x", 0.9, interpolation=interpolation)
    found = sw.rolling(rows, on="t", windows=9, aggs={"q": agg})["q_9"].iloc[0]
    assert found == {"linear": 5.5, "nearest": 5}[interpolation]
    assert pl.Series(rows["x"]).quantile(0.9) == 6
    assert rows["x"].quantile(0.9) == 5.5
    both = "select quantile_cont(x, 0.9), quantile_disc(x, 0.9) from given"
    assert sql(both, rows) == [(5.5, 6)]


def test_the_first_hop_and_the_grid() -> None:
    rows = pd.DataFrame({"t": [pd.Timestamp("2024-01-01 01:30")], "x": [1]})
    hops = sw.hopping(rows, on="t", window="2h", every="1h", aggs=COUNT)
    assert hops["window_start"].dt.hour.tolist() == [0, 1]
    made = pl.from_pandas(rows).group_by_dynamic("t", every="1h", period="2h")
    assert made.agg(pl.len())["t"].dt.hour().to_list() == [1]
    sevens = sw.hopping(rows, on="t", window="7h", aggs=COUNT)["window_start"].iloc[0]
    epoch = pd.Timestamp(0)
    assert (sevens - epoch) % pd.Timedelta("7h") == pd.Timedelta(0)
    peer = pl.from_pandas(rows).group_by_dynamic("t", every="7h").agg(pl.len())["t"][0]
    assert pd.Timestamp(peer) == sevens
    assert rows.resample("7h", on="t")["x"].count().index[0] == pd.Timestamp("2024")
    ((bucket,),) = sql("select time_bucket(interval 7 hour, t) from given", rows)
    origin = pd.Timestamp("2000-01-03")
    assert (pd.Timestamp(bucket) - origin) % pd.Timedelta("7h") == pd.Timedelta(0)
