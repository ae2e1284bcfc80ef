"""`slidewise.spark.audit` gives what `slidewise.audit` gives."""

import json
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from random_tables import AGGS, random_table, with_batches
from seeds import SEED
from test_batch import in_spark, timed

import slidewise as sw
from slidewise.spark import audit

SOME = {name: AGGS[name] for name in ("n", "sum", "max", "mid")}
SPEC = sw.Spec(
    on="t", by=["k", "g"], windows=["9ms", sw.rows(3)], aggs=SOME, arrival="a"
)
FEATURES = sw.Features(
    both=SPEC, key=sw.Spec(on="t", by="k", windows="20ms", aggs={"n": sw.count()})
)
COUNTED = {"names": "{agg} of {window}", "prefix": "x.", "arrival": None}


def tables(spec: Any, arrivals: dict[str, Any]) -> tuple[pa.Table, pa.Table]:
    """Rows, and features of them as of arrival: some have changed, some are wrong."""
    draw = random.Random(f"{SEED} {spec}")
    rows = timed(with_batches(draw, random_table(draw, 120, keys=3, span=40)))
    served = rows.select(["k", "g", "t", "a", "row"]).slice(20, 60)
    served = served.rename_columns(["k", "g", "when", "answered", "row"])
    whole = sw.audit(_nothing(served, spec), rows, spec, at="when", **arrivals)
    for name in spec.results:
        ending = "_as_of" if arrivals and draw.random() < 0.8 else "_expected"
        values = whole[name + ending]
        wrong = pa.array([draw.random() < 0.1 for _ in range(len(served))])
        served = served.append_column(
            name, pc.if_else(wrong, pa.scalar(None, values.type), values)
        )
    return rows, served


def _nothing(served: pa.Table, spec: Any) -> pa.Table:
    """The table with features that are null."""
    for name in spec.results:
        served = served.append_column(name, pa.nulls(len(served), pa.float64()))
    return served


@pytest.mark.parametrize(
    ("spec", "arrivals"),
    [
        (SPEC, {"served_at": "answered"}),
        (SPEC.replace(**COUNTED), {}),
        (FEATURES, {"served_at": "answered", "arrival": "a"}),
    ],
    ids=["arrival", "names", "features"],
)
def test_an_audit_on_spark_is_that_of_tables(
    spark: Any, spec: Any, arrivals: dict[str, Any]
) -> None:
    rows, served = tables(spec, arrivals)
    expected = sw.audit(served, rows, spec, at="when", **arrivals)
    table, summary = audit(
        in_spark(spark, served),
        in_spark(spark, rows),
        spec,
        at="when",
        then_by="row",
        **arrivals,
    )
    assert table.columns == expected.column_names
    got = table.toArrow().sort_by("row")
    totals = json.loads(expected.schema.metadata[b"audit"])
    expected = expected.sort_by("row").cast(got.schema)
    assert got.to_pylist() == expected.to_pylist()
    reasons = ["equal", *["arrived later"] * bool(arrivals), "differs"]
    assert summary.columns == ["feature", *reasons]
    counts = [{"feature": name, **totals[name]} for name in spec.results]
    assert [row.asDict() for row in summary.collect()] == counts
    assert all(sum(row[reason] for row in counts) > 0 for reason in reasons)


def test_what_an_audit_on_spark_refuses(spark: Any) -> None:
    rows, served = (in_spark(spark, table) for table in tables(SPEC, {}))
    call: dict[str, Any] = {"spec": SPEC, "at": "when"}
    with pytest.raises(sw.SpecError, match="served has no column 'n_9ms'; it has"):
        audit(served.drop("n_9ms"), rows, then_by="row", **call)
    taken = served.withColumn("N_9ms_reason", served["n_9ms"])
    with pytest.raises(sw.SpecError, match="a column 'N_9ms_reason' already"):
        audit(taken, rows, then_by="row", **call)
    listed = served.selectExpr("* except (n_9ms)", "array(n_9ms) as n_9ms")
    with pytest.raises(sw.SpecError, match=r"'n_9ms' was served as .* as int64"):
        audit(listed, rows, then_by="row", **call)
    with pytest.raises(sw.SpecError, match="rows is a stream: read what it wrote"):
        audit(served, spark.readStream.format("rate").load(), **call)
    with pytest.raises(sw.SpecError, match="is not a PySpark DataFrame; rows is one"):
        audit(served, pa.table({"t": [1]}), **call)
    with pytest.raises(sw.SpecError, match="give arrival="):
        audit(served, rows, SPEC.replace(arrival=None), at="when", served_at="answered")
    with pytest.raises(sw.SpecError, match="does not keep: add then_by="):
        audit(served, rows, **call)
