"""`Features` on Spark: those of tables in a batch, one clear refusal in a stream."""

import random
from typing import Any

import pyarrow as pa
import pytest
from random_tables import random_table, same
from seeds import SEED

import slidewise as sw
from slidewise.spark import explain, hopping, rolling

AGGS: dict[str, Any] = {"n": sw.count(), "sum": sw.sum("i"), "mid": sw.median("i")}
KEY = sw.Spec(on="t", by="k", windows=[5, 20], aggs=AGGS, closed="left")
BOTH = sw.Spec(on="t", by=["k", "g"], windows=sw.rows(3), aggs=AGGS, fill=0)
FEATURES = sw.Features(key=KEY, both=BOTH, all=sw.Spec(on="t", windows=3, aggs=AGGS))


def in_spark(spark: Any, table: pa.Table) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(table, from_arrow_schema(table.schema, True))


def test_a_batch_has_the_results_of_all_specs(spark: Any) -> None:
    table = random_table(random.Random(SEED), 90, keys=4, span=40)
    df = in_spark(spark, table)
    got = rolling(df, FEATURES, then_by="row", late="1s", late_rows="flag").toArrow()
    assert got.column_names == [*table.column_names, *FEATURES.results, "_late"]
    sorted_rows = table.sort_by([("t", "ascending"), ("row", "ascending")])
    expected = sw.rolling(sorted_rows, FEATURES).sort_by("row")
    same(got.drop_columns("_late").sort_by("row"), expected)
    lines = explain(df, FEATURES, then_by="row").split("\n")
    aggs = "n=count(), sum=sum('i'), mid=median('i')"
    assert [line for line in lines if "rolling over" in line] == [
        f"key: rolling over t, per k: 5, 20 × {aggs}",
        f"both: rolling over t, per k, g: 3rows × {aggs}",
        f"all: rolling over t, over all rows: 3 × {aggs}",
    ]


def test_a_stream_refuses_features_by_name(spark: Any) -> None:
    rates = spark.readStream.format("rate").load()
    spec = sw.Spec(on="timestamp", windows="1h", aggs={"n": sw.count()})
    call = rolling(spec=sw.Features(a=spec, b=spec.replace(by="value")), late="1s")
    with pytest.raises(sw.SpecError, match=r"such as rolling\(df, features.parts\['a'"):
        call(rates)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"rows\(3\) depends on the order of rows of equal time"),
        ({"then_by": "row", "emit": "update"}, "a batch DataFrame has none"),
        (
            {"then_by": "row", "deletes": "w"},
            "the Specs have different keys: call rolli",
        ),
        ({"closed": "left"}, "closed= belongs in the Specs of the Features"),
    ],
)
def test_wrong_calls_are_refused(
    spark: Any, options: dict[str, Any], message: str
) -> None:
    df = in_spark(spark, random_table(random.Random(1), 3, keys=2, span=9))
    with pytest.raises(sw.SpecError, match=message):
        rolling(df, FEATURES, **options)
    with pytest.raises(sw.SpecError, match="hopping does not take Features"):
        hopping(df, FEATURES)  # type: ignore[arg-type]
