"""`emit="none"`: a stream that is only queried keeps rows as all others do."""

import random
from typing import Any

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.testing import check_stream

SCHEMA = {"t": "int64", "k": "string", "x": "int64", "f": "bool", "d": "bool"}
FOLDS = {"n": sw.count(), "sum": sw.sum("x"), "max": sw.max("x")}
ROWS = FOLDS | {"mid": sw.median("x")}
SPECS: list[dict[str, Any]] = [
    {"windows": [3, 10], "aggs": FOLDS},
    {"windows": [3, 10], "aggs": ROWS, "closed": "both"},
    {"windows": [4, sw.rows(3)], "aggs": FOLDS},
    {"windows": 5, "aggs": FOLDS, "ties": "rows", "offset": 1},
    {"windows": sw.landmark("f"), "aggs": FOLDS},
    {"window": 6, "every": 2, "aggs": FOLDS},
    {"window": 6, "every": 2, "aggs": ROWS, "empty": True},
    {"windows": [6, sw.Query(8, every=2)], "aggs": FOLDS},
    {"window": sw.until("f"), "aggs": FOLDS},
    {"window": sw.rows(3), "every": sw.rows(2), "aggs": FOLDS},
]


def batches(rng: random.Random, count: int) -> list[pa.Table]:
    """Batches whose times ascend slowly, and are out of order."""
    found = []
    for at in range(count):
        rows = rng.randrange(1, 5)
        columns = {
            "t": [3 * at + rng.randrange(-4, 6) for _ in range(rows)],
            "k": [rng.choice("ab") for _ in range(rows)],
            "x": [rng.randrange(9) for _ in range(rows)],
            "f": [rng.random() < 0.3 for _ in range(rows)],
            "d": [rng.random() < 0.1 for _ in range(rows)],
        }
        found.append(pa.table(columns).cast(pa.schema([*map(_field, SCHEMA.items())])))
    return found


def _field(pair: tuple[str, str]) -> pa.Field:
    return pa.field(pair[0], pa.type_for_alias(pair[1]))


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        *((spec, {}) for spec in SPECS),
        (SPECS[0], {"deletes": "d"}),
        (SPECS[1], {"then_by": "x"}),
        (SPECS[8], {"deletes": "d", "then_by": "x"}),
    ],
    ids=str,
)
def test_queries_are_those_of_a_stream_that_emits(
    spec: dict[str, Any], options: dict[str, Any]
) -> None:
    rng = random.Random(f"{SEED} {spec} {options}")
    request = {"on": "t", "by": "k", **spec, **options, "late": 2, "schema": SCHEMA}
    silent = sw.KeyedWindows(**request, emit="none")
    other = sw.KeyedWindows(**request)
    for batch in batches(rng, 12):
        for stream in (silent, other):
            stream.ingest(batch)
            stream.advance()
        other.collect()
        if rng.random() < 0.2:
            silent = sw.KeyedWindows.from_bytes(
                silent.to_bytes(), sw.Spec(on="t", by="k", **spec)
            )
        keys = pa.table({"k": ["a", "b", "z"]})
        assert silent.query_many(keys).equals(other.query_many(keys))
        assert silent.query("a") == other.query("a")
        assert silent.late_count == other.late_count
        assert silent.watermark == other.watermark
        silent.check()
    assert silent.keys().sort_by("k").equals(other.keys().sort_by("k"))
    # Rows leave as they do with results.
    assert silent.nbytes < 2 * other.nbytes


@pytest.mark.parametrize("spec", [SPECS[0], SPECS[1], SPECS[5]], ids=str)
def test_a_silent_stream_can_be_checked(spec: dict[str, Any]) -> None:
    rows = pa.concat_tables(batches(random.Random(SEED), 12))
    check_stream(sw.Spec(on="t", by="k", **spec), rows, late=3, emit="none", runs=2)


def test_late_rows_of_corrections_are_accepted() -> None:
    request: dict[str, Any] = {"on": "t", "windows": 5, "aggs": FOLDS}
    stream = sw.KeyedWindows(**request, emit="none", late_rows="correct")
    stream.ingest(pa.table({"t": [1, 9], "x": [1, 2]}))
    stream.advance()
    stream.ingest(pa.table({"t": [6, 3], "x": [4, 8]}))
    assert stream.query(at=9) == {"n_5": 2, "sum_5": 6, "max_5": 4}
    assert stream.late_count == 1


def test_followers_follow_a_silent_stream() -> None:
    spec = sw.Spec(on="t", by="k", windows=5, aggs=FOLDS)
    leader = sw.KeyedWindows(spec, emit="none")
    leader.ingest(pa.table({"t": [1], "k": ["a"], "x": [1]}))
    follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), spec)
    leader.ingest(pa.table({"t": [2], "k": ["a"], "x": [5]}))
    follower.apply(leader.changes())
    assert (
        follower.query("a") == leader.query("a") == {"n_5": 2, "sum_5": 6, "max_5": 5}
    )


def test_nothing_is_to_be_collected() -> None:
    stream = sw.KeyedWindows(on="t", windows=5, aggs=FOLDS, emit="none")
    with pytest.raises(sw.SpecError, match="gives no results to collect: ask by query"):
        stream.collect()
    stream.ingest(pa.table({"t": [1], "x": [1]}))
    with pytest.raises(sw.SpecError, match="gives no results to collect: ask by query"):
        stream.collect()
    assert "no results but those of queries" in stream.explain()
    assert stream.evict_idle(1) == 1


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"window": sw.session(5)},
            "a session has no length, so a query cannot end it",
        ),
        ({"windows": sw.delta("x", 3)}, "is measured from the 'x' of a row, which a"),
        ({"windows": 5, "arrival": "a"}, "arrival='a' goes with emit='arrival'"),
        ({"windows": 5, "late_rows": "flag"}, "emit='none' gives none: count them"),
        ({"windows": 5, "aggs": {"n": sw.max("t")}, "schema": {"x": "int64"}}, "'t'"),
        ({"windows": 5, "fill": "x", "schema": SCHEMA}, "fill='x' does not fit the re"),
    ],
)
def test_what_queries_do_not_answer_is_refused(
    request_: dict[str, Any], message: str
) -> None:
    request: dict[str, Any] = {"on": "t", "aggs": FOLDS, "emit": "none"}
    with pytest.raises(sw.SpecError, match=message):
        sw.KeyedWindows(**request | request_)
