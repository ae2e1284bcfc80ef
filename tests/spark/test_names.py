"""Columns are named as Spark names them: without case, and fields of structs."""

from typing import Any

import pytest

import slidewise as sw
from slidewise.spark import explain, hopping, rolling

CASE = "spark.sql.caseSensitive"
AGGS = {"n": sw.count(), "sum": sw.sum("St.X.v")}
CALL: dict[str, Any] = {"on": "AT", "by": ["st.k"], "windows": 3, "aggs": AGGS}


@pytest.fixture
def rows(spark: Any) -> Any:
    return spark.sql(
        "select id row, int(id) at, named_struct('k', id % 2, 'x', "
        "named_struct('v', id * 10)) st, id `a.b` from range(5)"
    )


def test_names_differ_in_case_and_name_fields(spark: Any, rows: Any) -> None:
    frame = rolling(rows, **CALL)
    assert frame.columns == ["row", "at", "st", "a.b", "n_3", "sum_3"]
    got = frame.orderBy("row").collect()
    assert [row["n_3"] for row in got] == [1, 1, 2, 2, 2]
    assert [row["sum_3"] for row in got] == [0, 10, 20, 40, 60]
    labels = spark.sql("select 5 When, named_struct('K', 0L) key")
    asked = rolling(
        rows, at=labels, at_on="when", at_by=["KEY.k"], **CALL
    )  # in one query with the other
    both = frame.select("n_3", "sum_3").union(asked.select("n_3", "sum_3"))
    assert asked.columns == ["When", "key", "n_3", "sum_3"]
    assert sorted(map(tuple, both.collect()))[2] == (1, 40)
    assert "sort within each task by one number, of 32 key groups and AT" in explain(
        rows, **CALL
    )


def test_hops_have_the_names_of_the_call(rows: Any) -> None:
    frame = hopping(rows, on="AT", by="st.k", window=4, aggs=AGGS)
    assert frame.columns == ["st.k", "window_start", "window_end", "n", "sum"]
    assert sorted(map(tuple, frame.collect())) == [
        (0, 0, 4, 2, 20),
        (0, 4, 8, 1, 40),
        (1, 0, 4, 2, 40),
    ]


def test_streams_have_names_alike(spark: Any) -> None:
    rates = spark.readStream.format("rate").load()
    rates = rates.selectExpr("timestamp", "named_struct('v', value) st")
    call = {"on": "Timestamp", "windows": "1h", "aggs": {"s": sw.sum("ST.v")}}
    frame = rolling(rates, late="1s", **call)
    assert frame.columns == ["timestamp", "st", "s_1h"]


def test_exact_names_come_first(rows: Any) -> None:
    table = rows.withColumn("st.k", rows["row"])
    got = rolling(table, on="at", by="st.k", windows=9, aggs={"n": sw.count()})
    assert got.columns == ["row", "at", "st", "a.b", "st.k", "n_9"]
    assert [row["n_9"] for row in got.collect()] == [1] * 5


def test_names_that_are_refused(spark: Any, rows: Any) -> None:
    with pytest.raises(sw.SpecError, match="'at' is named 'at' and 'AT': name it in"):
        rolling(rows, on="AT", windows=3, aggs={"m": sw.max("at")})
    with pytest.raises(sw.SpecError, match=r"has no column 'st\.z'; it has row, at"):
        rolling(rows, on="at", by="st.z", windows=3, aggs=AGGS)
    spark.conf.set(CASE, "true")
    try:
        with pytest.raises(sw.SpecError, match="no column 'AT'"):
            rolling(rows, **CALL)
        table = rows.withColumn("N_3", rows["row"])
        got = rolling(table, on="at", windows=3, aggs={"n": sw.count()})
        assert got.columns[-2:] == ["N_3", "n_3"]
    finally:
        spark.conf.unset(CASE)
