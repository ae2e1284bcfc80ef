"""`explain` describes the plan that a query runs."""

from typing import Any

import pytest

import slidewise as sw
from slidewise.spark import explain, rolling, skew

CALL: dict[str, Any] = {"on": "t", "by": "k", "windows": "1h"}


@pytest.fixture(scope="module")
def trips(spark: Any) -> Any:
    rows = spark.range(60).selectExpr(
        "if(id < 50, 'a', 'b') k",
        "timestamp_seconds(id * 600) t",
        "double(id) x",
        "id batch",
    )
    return rows.cache()


def test_small_tables_with_a_plain_window(trips: Any) -> None:
    plan = explain(trips, **CALL, aggs={"n": sw.count(), "m": sw.max("x")})
    assert plan.startswith("rolling over t, per k: 1h × n=count(), m=max('x')\n")
    assert "1. repartition rows to 3 tasks by k" in plan
    assert "2. sort within each task by one number, of 32 key groups and t" in plan
    assert "1 window × 2 aggregations" in plan
    assert "none is split: finding them takes jobs" in plan
    assert "spark.sql.window.segmentTree.enabled to true" in plan


def test_skewed_keys(trips: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skew, "_MIN_SKEWED_ROWS", 20)
    plan = explain(
        trips, **CALL, aggs={"m": sw.median("x")}, split="sample", partitions=4
    )
    assert "k='a': about 50 rows in 4 splits by time; " in plan
    assert "median('x') is not a function of its segment tree" in plan


def test_operators_and_jobs_have_the_name_of_the_query(
    trips: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skew, "_MIN_SKEWED_ROWS_EXPLICIT", 20)
    context = trips.sparkSession.sparkContext
    spec = sw.Spec(**{**CALL, "windows": sw.rows(3)}, aggs={"n": sw.count()})
    name = f"slidewise_rolling_{spec.hash[:8]}"
    context.setJobDescription("mine")
    try:
        frame = rolling(trips, spec, then_by="x", split=3)
        assert context.getLocalProperty("spark.job.description") == "mine"
    finally:
        context.setJobDescription(None)
    assert f"MapInArrow {name}(" in frame._jdf.queryExecution().toString()
    java = context._jsc.sc()
    java.listenerBus().waitUntilEmpty()
    jobs = java.statusStore().jobsList(None)
    found = [jobs.apply(at).description() for at in range(jobs.size())]
    texts = {text.get() for text in found if text.isDefined()}
    phases = ("count rows", "sample keys and times", "count overlap rows")
    assert {f"{name}: {phase}" for phase in phases} <= texts


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"split": "sample"}, "none is split: all are small enough for a task"),
        (
            {"windows": sw.rows(3), "arrival": "t", "then_by": "x"},
            "with arrival=, rows(3) takes the latest of all rows",
        ),
        ({"then_by": "x"}, "sort within each task by k, t, x"),
        ({"arrival": ["batch", "t"]}, "sort within each task by k, batch, t"),
        ({"by": None}, "repartition all rows to one task"),
        ({"windows": ["1h", "2h"]}, "a frame per window"),
    ],
)
def test_other_plans(trips: Any, other: dict[str, Any], words: str) -> None:
    assert words in explain(trips, **{**CALL, "aggs": {"n": sw.count()}, **other})


def test_hops(trips: Any) -> None:
    plan = explain(trips, on="t", window="1h", every="5m", aggs={"n": sw.count()})
    assert plan.startswith("hopping over t, over all rows: 1h × n=count()")
    assert "copies each row into every window" in plan
    hops = {"on": "t", "aggs": {"n": sw.count()}}
    plan = explain(trips, window="1h", empty=True, **hops)
    assert "none is split: empty=True needs the rows on both sides" in plan
    plan = explain(trips, window=sw.session("1h"), **hops)
    assert "none is split: the window 'session_1h' may begin at any earlier" in plan


def test_streams(spark: Any) -> None:
    rates = spark.readStream.format("rate").load()
    call = {"on": "timestamp", "windows": "1h", "aggs": {"n": sw.count()}}
    plan = explain(rates, by="value", late="5s", **call)
    assert "less 5s" in plan
    assert "3 buckets, by a hash of value: one per partition of the state" in plan
    assert "rows are kept for 1h behind the watermark: about 16 bytes each" in plan
    assert "with 1,000 rows a second that are about 58 MB" in plan
    assert "a result folds O(log n) partials" in plan
    call["aggs"] = {"p": sw.median("value")}
    plan = explain(rates, by="value", late="5s", emit="update", **call)
    assert "nothing is folded" in plan
    assert "rows wait" not in plan
    call["aggs"] = {"a": sw.integral("value")}
    plan = explain(rates, by="value", late="5s", then_by="value", **call)
    plan = " ".join(plan.split())
    assert "and the last entries of each key, with which windows begin" in plan
    call["aggs"] = {"n": sw.count()}
    for late_rows, words in (
        ("drop", "late rows: counted and dropped (late_rows='flag' returns them)"),
        ("flag", "late rows: returned with _late true, and counted"),
        ("correct", "_correction true; older ones are counted"),
    ):
        assert words in explain(rates, late="5s", late_rows=late_rows, **call)
    with pytest.raises(sw.SpecError, match="add late='10 minutes'"):
        explain(rates, **call)


def test_cells_of_streams(spark: Any) -> None:
    rates = spark.readStream.format("rate").load()
    windows = [sw.trailing("1h", resolution="5m")]
    call = {"on": "timestamp", "by": "value", "aggs": {"n": sw.max("value")}}
    plan = explain(rates, **call, windows=windows, late="5s")
    assert (
        "rows are kept until the watermark has passed their cell: about 16 by" in plan
    )
    assert (
        "resolution=: up to 14 cells in its windows, of about 29 bytes: 406 B" in plan
    )
    assert "16 bytes for each row, which is more from 26 rows on" in plan
    assert "1,000 rows a second" not in plan
    plan = explain(rates, **call, windows=[*windows, "2m"], late="5s")
    assert "kept for 2m behind the watermark and until the watermark has passed" in plan
    assert "with 1,000 rows a second that are about 2 MB" in plan
    median = {"m": sw.median("value", windows="2m"), **call["aggs"]}
    for options, reason in [
        ({"then_by": "value"}, "then_by="),
        ({"ties": "rows", "then_by": "value"}, "then_by=, ties='rows'"),
        ({"unique_by": "value"}, "unique_by="),
        ({"deletes": "gone"}, "deletes="),
        ({"late_rows": "correct"}, "late_rows='correct'"),
        ({"exclude": "self"}, "exclude="),
        ({"aggs": median, "windows": [*windows, "2m"]}, "results that are not folds"),
    ]:
        request = {**call, "windows": windows, "late": "5s", **options}
        plan = explain(rates.selectExpr("*", "false AS gone"), **request)
        assert f"cells: their rows are kept, because of {reason}" in plan
        assert "1h behind the watermark: about" in plan
        assert "per key" not in plan


def test_the_number_of_buckets_has_a_reason(spark: Any) -> None:
    rates = spark.readStream.format("rate").load()
    call = {"on": "timestamp", "by": "value", "windows": "1h", "late": "5s"}
    for partitions, most, words in [
        (3, None, "3 buckets, by a hash of value: one per partition of the state, by "),
        (
            3,
            1_024,
            "3 buckets, by a hash of value: one per partition of the state, by ",
        ),
        (3, 2, "2 buckets, by a hash of value: in 2 of 3 partitions, as buckets= says"),
        (200, None, "partitions=200; 2 cores need no more than 8"),
    ]:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        plan = explain(rates, **call, aggs={"n": sw.count()}, buckets=most)
        assert words in plan


def test_markers_are_dropped(trips: Any) -> None:
    marked = trips.selectExpr("*", "if(x < 10, true, if(x < 20, false, null)) end")
    frame = rolling(marked, **CALL, aggs={"n": sw.count()}, marker="end")
    assert frame.count() == 50


def test_empty_asks_for_hopping_windows() -> None:
    """With the same keywords as for tables: they are refused for the table alone."""
    request: Any = {"windows": ["1h", "2h"], "empty": True}
    with pytest.raises(sw.SpecError, match="is not a PySpark DataFrame"):
        explain(object(), on="t", aggs={"n": sw.count()}, **request)
