"""`at=` on Spark: labels have the results of tables, and come back as they are."""

import random
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from random_tables import AGGS, random_table, same, with_batches
from seeds import SEED
from test_batch import in_spark, timed

import slidewise as sw
from slidewise.spark import explain, hopping, rolling, skew, skew_split

COUNT: dict[str, Any] = {"n": sw.count()}
# Aggregations that do not depend on the order of rows of equal time.
ANY_ORDER = {name: AGGS[name] for name in ("n", "sum", "max", "mid", "kinds", "some")}


def rows_of(rng: random.Random, span: int = 60) -> pa.Table:
    table = random_table(rng, 250, keys=4, span=span)
    return timed(with_batches(rng, table))


def labels_of(rng: random.Random, span: int = 70) -> pa.Table:
    """Labels with ties and duplicates, some of keys that have no rows."""
    table = with_batches(rng, random_table(rng, 120, keys=6, span=span))
    table = timed(table).select(["k", "g", "t", "a", "batch", "row", "x"])
    table = pa.concat_tables([table, table.slice(0, 9)])
    names = ["who", "g", "when", "a", "batch", "row", "x.y"]
    at = pa.array(range(len(table)), pa.int64())
    table = table.set_column(5, "row", at).rename_columns(names)
    return table.set_column(0, "who", table["who"].cast(pa.int64()))


NAMES: dict[str, Any] = {"at_on": "when", "at_by": {"k": "who"}}
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"by": ["k", "g"], "windows": ["1ms", "17ms", sw.rows(9)], "aggs": AGGS},
        {"then_by": "row"},
    ),
    (
        {"by": "k", "windows": ["2ms", "30ms"], "aggs": ANY_ORDER, "closed": "both"}
        | {"offset": "-5ms", "min_rows": 2, "fill": {"n": 0}},
        {"partitions": 2, "late": "1s", "late_rows": "drop"},
    ),
    (
        {"by": "k", "windows": ["9ms", sw.rows(5)], "aggs": AGGS}
        | {"arrival": ["batch", "a"], "prefix": "p_"},
        {"then_by": "row"},
    ),
    (
        {"windows": ["9ms", sw.landmark("flag")], "aggs": ANY_ORDER, "closed": "right"},
        {"then_by": "row"},
    ),
]


@pytest.mark.parametrize(("call", "more"), CASES)
def test_labels_have_the_results_of_tables(spark: Any, call: Any, more: Any) -> None:
    rng = random.Random(f"{SEED} {call}")
    table, labels = rows_of(rng), labels_of(rng)
    table = table.append_column("flag", pc.fill_null(table["w"], False))
    names = NAMES if "by" in call else {"at_on": "when"}
    call = {"on": "t", **call, **names}
    at = in_spark(spark, labels)
    frame = rolling(in_spark(spark, table), at=at, **call, **more)
    expected = sw.rolling(table, at=labels, **call)
    assert frame.columns == expected.column_names
    got = frame.toArrow()
    same(got, expected.cast(got.schema))


@pytest.mark.parametrize(
    "more",
    [
        {"windows": ["3ms", "90ms"], "offset": "-40ms"},
        {"windows": ["9ms", sw.rows(1), sw.rows(12)]},
    ],
)
def test_skewed_keys_of_labels_are_split(
    spark: Any, more: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skew, "_MIN_SKEWED_ROWS_EXPLICIT", 90)
    rng = random.Random(f"{SEED} {more}")
    table, labels = rows_of(rng, 2_000), labels_of(rng, 2_000)
    skewed = pa.array([rng.choice([1, 1, 1, 2, None]) for _ in range(len(labels))])
    labels = labels.set_column(0, "who", skewed)
    call = {"on": "t", "by": "k", "aggs": AGGS, **NAMES, **more}
    frame = rolling(
        in_spark(spark, table),
        at=in_spark(spark, labels),
        then_by="row",
        split=3,
        partitions=4,
        **call,
    )
    assert skew_split.SPLIT in frame._jdf.queryExecution().toString()
    got = frame.toArrow()
    same(got, sw.rolling(table, at=labels, **call).cast(got.schema))


def test_labels_have_the_results_of_features(spark: Any) -> None:
    rng = random.Random(SEED)
    table, labels = rows_of(rng), labels_of(rng)
    key = sw.Spec(on="t", by="k", windows="9ms", aggs=COUNT)
    features = sw.Features(key=key, both=key.replace(by=["k", "g"], windows="5ms"))
    df, at = in_spark(spark, table), in_spark(spark, labels)
    got = rolling(df, features, at=at, **NAMES).toArrow()
    expected = sw.rolling(table, features, at=labels, **NAMES)
    same(got, expected.cast(got.schema))


def test_labels_come_back_as_they_are(spark: Any) -> None:
    """Also such as are equal, and wider or narrower than the columns of the rows."""
    df = spark.sql(
        "select int(id % 3) k, int(id) t, if(id = 9, null, -0.0D) z from range(10)"
    )
    at = spark.sql(
        "select id, id % 3 k, smallint(0) z0, if(id = 4, 9000000000, id) t, "
        "named_struct('b.c', id, 'd', array(timestamp_ntz'2020-01-01 12:00:00')) s, "
        "map('m', date'2020-01-01') m, decimal(1.5) d, timestamp'2020-01-01 00:00:00' "
        "`t.s`, x'00ff' raw, null nothing, 0.0D z from range(6) union all "
        "select * from values (7L, null, 1S, -9000000000, null, null, null, null, "
        "null, null, 0.0D), (7L, 1L, 1S, 5L, null, null, null, null, null, null, 0.0D)"
    )
    call: dict[str, Any] = {"on": "t", "by": ["k", "z"], "windows": 4}
    call["aggs"] = COUNT | {"latest": sw.max("t")}
    frame = rolling(df, at=at, **call)
    assert [field.dataType for field in frame.schema][:-2] == [
        field.dataType for field in at.schema
    ]
    rows = frame.orderBy("t", "k").collect()
    own = at.orderBy("t", "k").collect()
    assert [row[: len(own[0])] for row in rows] == own
    keys = at.select("k", "t", "z").toArrow()
    in_order = [("t", "ascending"), ("k", "ascending")]
    expected = sw.rolling(df.toArrow(), at=keys, **call).sort_by(in_order)
    for name in ("n_4", "latest_4"):
        assert [row[name] for row in rows] == expected[name].to_pylist()
    assert [row["n_4"] for row in rows] == [0, 1, 1, 1, 2, 1, 2, 0]


def rows_and_labels(spark: Any) -> tuple[Any, Any]:
    df = spark.sql("select int(id) k, date(timestamp_seconds(id)) t from range(4)")
    return df, spark.sql("select 1 k, date'1970-01-01' t, 'a' n")


def in_columns(df: Any, columns: str) -> Any:
    return df.sparkSession.sql(f"select {columns} from {{df}}", df=df)


CALL: dict[str, Any] = {"on": "t", "by": "k", "windows": "2d", "aggs": COUNT}


@pytest.mark.parametrize(
    ("labels", "more", "message"),
    [
        ("'1' k, t", {}, "the key 'k' is int32 in the table, and string in at="),
        ("k, timestamp(t) t", {}, "column 't' of at= has a zone .*local_timestamp"),
        ("k, 5 t", {}, "column 't' of at= is int32, which does not convert"),
        ("k, t, 1 N_2d", {}, "at= has a column 'N_2d' already, which is 'n_2d'"),
        ("k, t, 1 __slidewise_x", {}, "begins with '__slidewise_'"),
        ("k, t when", {}, "at= has no column 't'; it has k, when"),
        ("k, t, t u", {"at_by": {"x": "u"}}, "names 'x', which is not in by="),
        (
            "k, t, t u",
            {"by": ["k", "t"], "at_by": {"t": "u"}},
            r"at_by=\{'t': 'u'\} gives the key 't' other values than",
        ),
        (
            "named_struct('b', 1, 'a', 2) k, t",
            {"rows": "named_struct('a', 1, 'b', 2) k, t"},
            "the key 'k' is struct<a:int,b:int> in the DataFrame, and struct<b:int",
        ),
    ],
)
def test_labels_that_do_not_fit_are_refused_before_a_job(
    spark: Any, labels: str, more: dict[str, Any], message: str
) -> None:
    df, at = rows_and_labels(spark)
    more = dict(more)
    rows = in_columns(df, more.pop("rows", "k, t"))
    with pytest.raises(sw.SpecError, match=message):
        rolling(rows, at=in_columns(at, labels), **{**CALL, **more})


def test_other_calls_refuse_labels(spark: Any) -> None:
    df, at = rows_and_labels(spark)
    with pytest.raises(sw.SpecError, match="at_on='u' names columns of the table at="):
        rolling(df, at_on="u", **CALL)
    with pytest.raises(sw.SpecError, match="not a PySpark DataFrame; at= takes one"):
        rolling(df, at=pd.DataFrame({"k": [1]}), **CALL)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(sw.SpecError, match="at= is a batch DataFrame of labels"):
        rolling(stream, at=at, **{**CALL, "late": "1s"})
    with pytest.raises(TypeError, match="at"):
        hopping(df, at=at, on="t", window="1d", aggs=COUNT)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            "k, if(k = 1, null, t) t",
            "column 't' of at= has no time in the row of k=1, t=None: drop the row",
        ),
        (
            "k, timestamp_ntz'1970-01-01 12:00:00' t",
            "column 't' of at= is timestamp.*does not convert without loss",
        ),
        ("5000000000 k, t", "the key 'k' is int32 in the table, and int64 in at="),
    ],
)
def test_values_of_labels_that_do_not_fit_fail_the_job(
    spark: Any, labels: str, message: str
) -> None:
    df, at = rows_and_labels(spark)
    with pytest.raises(PySparkException, match=message):
        rolling(df, at=in_columns(at, labels), **CALL).collect()


def test_explain_names_labels(spark: Any) -> None:
    df, at = rows_and_labels(spark)
    plan = explain(df, at=at, **CALL)
    assert "1. repartition rows and labels to 3 tasks by k" in plan
    assert "1 window × 1 aggregation, at each label, in time" in plan
    assert "labels take a join of each with its window's rows" in plan
