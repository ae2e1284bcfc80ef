"""What `explain` says of a job is what the job does."""

from typing import Any

import pytest

import slidewise as sw
from slidewise.spark import explain, skew

ASKED: dict[str, Any] = {"on": "t", "by": "k", "windows": "1h"}


@pytest.fixture(scope="module")
def trips(spark: Any) -> Any:
    rows = spark.range(60).selectExpr(
        "if(id < 50, 'a', 'b') k", "timestamp_seconds(id * 600) t", "double(id) x"
    )
    return rows.cache()


def test_small_tables_with_a_plain_window(trips: Any) -> None:
    said = explain(trips, **ASKED, aggs={"n": sw.count(), "m": sw.max("x")})
    assert said.startswith("rolling over t, per k: 1h × n=count(), m=max('x')\n")
    assert "1. spread rows over 3 tasks by k" in said
    assert "2. sort within each task by one number, of 32 groups of keys and t" in said
    assert "1 window × 2 aggregations" in said
    assert "none is cut: small enough for a task" in said
    assert "spark.sql.window.segmentTree.enabled to true" in said


def test_hot_keys(trips: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skew, "_LEAST_HOT", 20)
    said = explain(trips, **ASKED, aggs={"m": sw.median("x")}, partitions=4)
    assert "k='a': about 50 rows in 4 pieces of time; " in said
    assert "median('x') is none of those that its segment tree merges" in said


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"split": False}, "none is looked for: split=False"),
        (
            {"windows": sw.rows(3), "arrival": "t", "then_by": "x"},
            "as of arrival, rows(3) are the youngest of all",
        ),
        ({"then_by": "x"}, "sort within each task by k, t, x"),
        ({"by": None}, "bring all rows to one task"),
        ({"windows": ["1h", "2h"]}, "a frame per window"),
    ],
)
def test_other_plans(trips: Any, other: dict[str, Any], words: str) -> None:
    assert words in explain(trips, **{**ASKED, "aggs": {"n": sw.count()}, **other})


def test_hops(trips: Any) -> None:
    said = explain(trips, on="t", window="1h", every="5m", aggs={"n": sw.count()})
    assert said.startswith("hopping over t, over all rows: 1h × n=count()")
    assert "copies each row into every window" in said
    hops = {"on": "t", "aggs": {"n": sw.count()}}
    said = explain(trips, window="1h", empty=True, **hops)
    assert "none is cut: empty=True answers windows between rows" in said
    said = explain(trips, window=sw.session("1h"), **hops)
    assert "none is cut: where a session begins" in said


def test_streams(spark: Any) -> None:
    rates = spark.readStream.format("rate").load()
    asked = {"on": "timestamp", "windows": "1h", "aggs": {"n": sw.count()}}
    said = explain(rates, by="value", late="5s", **asked)
    assert "less 5s" in said
    assert "by a hash of value" in said
    assert "rows are kept for 1h behind the watermark: about 16 bytes each" in said
    assert "with 1,000 rows a second that are about 63 MB, folds included" in said
    assert "pages are folded per key" in said
    asked["aggs"] = {"p": sw.median("value")}
    said = explain(rates, by="value", late="5s", emit="update", **asked)
    assert "nothing is folded beforehand" in said
    assert "rows wait" not in said
    asked["aggs"] = {"n": sw.count()}
    with pytest.raises(sw.SpecError, match="add late='10 minutes'"):
        explain(rates, **asked)


def test_markers_are_no_rows(trips: Any) -> None:
    from slidewise.spark import rolling

    marked = trips.selectExpr("*", "if(x < 10, true, if(x < 20, false, null)) end")
    frame = rolling(marked, **ASKED, aggs={"n": sw.count()}, marker="end")
    assert frame.count() == 50
