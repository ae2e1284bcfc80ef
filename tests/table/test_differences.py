"""The rows of docs/differences.md that show a call: each library answers as it says."""

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
