"""Streams whose rows count once, by `unique_by=`, against the definition."""

import random
from copy import deepcopy

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.processor import Processor
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.validation import checked
from slidewise.testing import check_stream

AGGS = {"n": sw.count(), "sum": sw.sum("x"), "all": sw.collect("x")}
SPEC = sw.Spec(on="t", by="k", windows=10, aggs={"n": sw.count()}, unique_by="id")
KINDS = {"t": "int64", "k": "string", "id": "int64"}


def random_rows(seed, count=70):
    """Rows of which some come twice, as they were or with another time."""
    draw, rows = random.Random(seed), []
    for at in range(count):
        row = {
            "t": draw.randrange(90),
            "k": draw.choice(["a", "b", None]),
            "id": None if draw.random() < 0.1 else at,
            "x": draw.randrange(9),
            "a": draw.randrange(count),
            "flag": draw.random() < 0.2,
        }
        if rows and draw.random() < 0.25:
            row = {**draw.choice(rows), "x": row["x"], "a": row["a"]}
            row["t"] += draw.choice([0, 0, 0, 3, 30])
        rows.append({**row, "row": at})
    return rows


def test_windows_hold_an_id_once():
    """Over random scripts, against a dict of the ids that were seen."""
    late, reach = 6, 10
    for seed in range(SEED, SEED + 4):
        draw, rows = random.Random(seed), random_rows(seed)
        windows = sw.KeyedWindows(SPEC, emit="arrival", late=late)
        seen, held, watermark, duplicates, lates = {}, [], None, 0, 0
        while rows:
            size = draw.randrange(1, 9)
            batch, rows = rows[:size], rows[size:]
            fresh = []
            for row in batch:
                known = (row["k"], row["id"])
                if watermark is not None and row["t"] <= watermark:
                    lates += 1
                    continue
                floor = -1 if watermark is None else watermark - reach - late
                if row["id"] is not None and seen.get(known, -1) > floor:
                    duplicates += 1
                    continue
                seen[known] = row["t"]
                fresh.append(row)
            held += fresh
            windows.ingest(pa.Table.from_pylist(batch))
            found = windows.collect().to_pylist()
            emitted = [each["row"] for each in found]
            assert emitted == [each["row"] for each in fresh], seed
            for each in found:
                times = [row["t"] for row in held if row["k"] == each["k"]]
                count = sum(each["t"] - reach < t <= each["t"] for t in times)
                assert each["n_10"] == count, seed
            if draw.random() < 0.6:
                windows.advance()
                watermark = windows.watermark
            if draw.random() < 0.3:
                windows = sw.KeyedWindows.from_bytes(windows.to_bytes())
            assert (windows.duplicate_count, windows.late_count) == (duplicates, lates)
            windows.check()


@pytest.mark.parametrize(
    "options",
    [
        {"emit": "arrival"},
        {"emit": "arrival", "arrival": "a"},
        {"emit": "final"},
        {"emit": "final", "then_by": "row", "windows": [5, sw.rows(3)]},
        {"emit": "final", "windows": sw.landmark("flag")},
        {"emit": "update"},
        {"emit": "change", "aggs": {"n": sw.count()}},
        {"emit": "none", "keep": 30},
        {"window": 10, "every": 5},
        {"window": sw.session(3)},
        {"window": sw.until("flag")},
        {"window": sw.rows(3), "every": sw.rows(2)},
    ],
    ids=str,
)
def test_a_stream_gives_what_the_table_of_the_rows_that_count_gives(options):
    of_stream = ("emit", "then_by", "keep")
    given = {name: options[name] for name in of_stream if name in options}
    more = {name: of for name, of in options.items() if name not in of_stream}
    if "window" not in more:
        more = {"windows": [5, 20], **more}
    spec = sw.Spec(**{"on": "t", "by": "k", "aggs": AGGS, "unique_by": "id", **more})
    rows = pa.Table.from_pylist(random_rows(SEED))
    check_stream(spec, rows, late=4, runs=4, seed=SEED, **given)


def test_in_any_batches_the_rows_that_count_are_those_of_the_table():
    for seed in range(SEED, SEED + 6):
        draw, rows = random.Random(seed), random_rows(seed)
        table = pa.Table.from_pylist(rows)
        spec = sw.Spec(on="t", by="k", windows=20, aggs=AGGS, unique_by="id")
        windows = sw.KeyedWindows(spec, emit="final", late=200)
        at = 0
        while at < len(rows):
            size = draw.randrange(1, 20)
            windows.ingest(table.slice(at, size))
            at += size
        windows.advance(1_000)
        found = windows.collect().sort_by("row")
        assert len(rows) - len(found) == windows.duplicate_count > 0
        whole = sw.rolling(table, spec)
        assert found.equals(whole.take(found["row"])), seed


def ingest(windows, *rows):
    """Ingests rows, each of a time, a key and an id."""
    windows.ingest(dict(zip(KINDS, map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]])
def test_rows_without_an_order_are_taken_by_time_and_then_by(order):
    """As those of a micro-batch on Spark are."""
    table = pa.table(
        {"t": [5, 3, 3, 4, 9], "id": [1, 1, 1, 2, 2], "x": [7, 9, 8, 0, 1]}
    )
    spec = sw.Spec(on="t", windows=10, aggs={"n": sw.count()}, unique_by="id")
    query = checked(KeyedQuery(spec, table.schema, "update", ("x",)))
    rows, _ = query.arrived(table.take(order))
    for ordered in (False, True):
        processor = Processor(query, MemoryStore(), ordered=ordered)
        found = processor.counting(rows, None)["x"].to_pylist()
        if ordered:
            firsts = [
                next(at for at in order if at in ids) for ids in ({0, 1, 2}, {3, 4})
            ]
            assert {*found} == {table["x"][at].as_py() for at in firsts}
        else:
            assert {*found} == {8, 0}


def test_an_id_is_forgotten_behind_the_horizon():
    windows = sw.KeyedWindows(SPEC, late=5, emit="arrival", schema=KINDS)
    ingest(windows, (100, "a", 1))
    windows.advance(114)  # 100 is in the horizon of 15 behind it
    ingest(windows, (130, "a", 1))
    assert windows.duplicate_count == 1
    windows.advance(115)
    ingest(windows, (131, "a", 1))
    ingest(windows, (131, "a", 1))
    assert windows.duplicate_count == 2
    assert windows.collect()["t"].to_pylist() == [100, 131]
    ingest(windows, (100, "a", 1))
    assert (windows.late_count, windows.duplicate_count) == (1, 2)


def test_keep_remembers_ids_for_longer():
    windows = sw.KeyedWindows(SPEC, keep=50, emit="arrival", schema=KINDS)
    ingest(windows, (100, "a", 1))
    windows.advance(149)
    ingest(windows, (160, "a", 1))
    assert windows.duplicate_count == 1
    windows.advance(150)
    ingest(windows, (160, "a", 1))
    assert windows.duplicate_count == 1


def test_a_late_row_leaves_no_id():
    windows = sw.KeyedWindows(SPEC, emit="arrival", schema=KINDS)
    windows.advance(50)
    ingest(windows, (50, "a", 1), (51, "a", 1), (52, "a", 1))
    assert (windows.late_count, windows.duplicate_count) == (1, 1)
    assert windows.collect()["t"].to_pylist() == [51]


def test_a_duplicate_of_a_late_row_that_counts_is_dropped():
    windows = sw.KeyedWindows(
        SPEC, emit="final", late_rows="correct", late=1, schema=KINDS
    )
    ingest(windows, (100, "a", 1))
    windows.advance(105)
    windows.collect()
    ingest(windows, (103, "a", 2), (103, "a", 2))
    ingest(windows, (103, "a", 2), (100, "a", 1))
    assert (windows.late_count, windows.duplicate_count) == (0, 3)
    found = windows.collect()
    assert found["t"].to_pylist() == [103]
    assert found["n_10"].to_pylist() == [2]


def test_a_missing_id_is_none_and_each_key_has_its_own():
    windows = sw.KeyedWindows(SPEC, emit="none", schema=KINDS)
    ingest(windows, (1, "a", None), (1, "a", None), (1, None, 7), (1, "a", 7))
    ingest(windows, (1, "a", None), (1, None, 7), (1, "a", 7))
    assert windows.duplicate_count == 2
    assert windows.query("a", at=1) == {"n_10": 4}
    assert windows.query((None,), at=1) == {"n_10": 1}


def test_a_query_with_an_extra_row_needs_no_id():
    spec = SPEC.replace(aggs={"n": sw.count(), "mid": sw.median("id")})
    for each in (SPEC, spec):
        windows = sw.KeyedWindows(each, emit="none", schema=KINDS)
        ingest(windows, (1, "a", 4), (1, "a", 4))
        assert windows.query("a", at=1, plus={"id": 4})["n_10"] == 2
    assert windows.query("a", at=1, plus={"id": 8})["mid_10"] == 6.0
    assert sw.KeyedWindows(SPEC, emit="none", schema=KINDS).query("a", at=1, plus={})


@pytest.mark.parametrize("ids", [["id", "t"], ["t"]])
def test_the_time_may_be_part_of_an_id(ids):
    spec = SPEC.replace(unique_by=ids)
    windows = sw.KeyedWindows(spec, emit="none", schema=KINDS)
    ingest(windows, (1, "a", 4), (1, "a", 4), (2, "a", 4))
    ingest(windows, (2, "a", 4), (3, "a", 4))
    assert windows.duplicate_count == 2
    assert windows.query("a", at=5) == {"n_10": 3}


def test_copies_snapshots_and_followers_know_the_ids():
    windows = sw.KeyedWindows(SPEC, emit="none", schema=KINDS)
    ingest(windows, (1, "a", 1))
    saved = windows.to_bytes()
    follower = sw.KeyedWindows.from_bytes(saved)
    ingest(windows, (2, "a", 2), (2, "a", 2))
    changes = windows.changes()
    follower.apply(changes)
    restored = sw.KeyedWindows.from_bytes(saved, changes=[changes])
    for each in (windows, deepcopy(windows), follower, restored):
        assert each.duplicate_count == 1
        ingest(each, (3, "a", 1), (3, "a", 2), (3, "b", 2))
        assert each.duplicate_count == 3
        assert each.query("a", at=3) == {"n_10": 2}
        assert "3 duplicates" in repr(each)


def test_a_batch_that_fails_leaves_no_id():
    def lift(x):
        if x < 0:
            raise ValueError("negative")
        return x

    bad = sw.aggregation(lift, lambda a, b: a + b, lambda p: p, identity=0, returns=int)
    spec = SPEC.replace(aggs={"n": sw.count(), "own": bad("x")})
    windows = sw.KeyedWindows(spec, emit="arrival")
    windows.ingest(pa.table({"t": [1], "k": ["a"], "id": [1], "x": [1]}))
    with pytest.raises(ValueError, match="negative"):
        windows.ingest(
            pa.table({"t": [1, 2], "k": [*"aa"], "id": [1, 2], "x": [1, -1]})
        )
    assert windows.duplicate_count == 0
    windows.ingest(pa.table({"t": [1, 2], "k": [*"aa"], "id": [1, 2], "x": [1, 1]}))
    assert windows.duplicate_count == 1
    assert windows.collect()["n_10"].to_pylist() == [1, 2]


def test_keys_that_are_evicted_take_their_ids_along():
    windows = sw.KeyedWindows(SPEC, late=90, emit="arrival", schema=KINDS)
    ingest(windows, (1, "a", 1), (20, "b", 1))
    assert windows.evict_idle(5) == 1
    ingest(windows, (2, "a", 1), (2, "b", 1))
    assert windows.duplicate_count == 1
    windows.collect()
    windows = sw.KeyedWindows.from_bytes(windows.to_bytes())
    ingest(windows, (3, "a", 1), (3, "b", 1))
    assert windows.duplicate_count == 3
    assert windows.keys().to_pydict() == {"k": ["a", "b"], "t": [2, 20]}


def test_forgotten_ids_leave_the_memory():
    windows = sw.KeyedWindows(SPEC, emit="none", schema=KINDS)
    sizes = []
    for at in range(0, 60_000, 3_000):
        rows = range(at, at + 3_000)
        keys = pa.array(["a"] * len(rows))
        windows.ingest(pa.table({"t": rows, "k": keys, "id": rows}))
        windows.advance()
        sizes.append(windows.nbytes)
    assert max(sizes[10:]) < 1.5 * max(sizes[:10])


def test_specs_of_features_drop_the_same_rows():
    features = sw.Features(short=SPEC, long=SPEC.replace(windows=50))
    windows = sw.KeyedWindows(features, emit="arrival", schema=KINDS)
    ingest(windows, (100, "a", 1), (100, "a", 1))
    windows.advance(130)
    ingest(windows, (140, "a", 1), (141, "a", 2))
    found = windows.collect()
    assert found["short_n_10"].to_pylist() == [1, 1]
    assert found["long_n_50"].to_pylist() == [1, 2]
    assert windows.duplicate_count == 2
    windows.check()
    again = sw.KeyedWindows.from_bytes(windows.to_bytes())
    ingest(again, (142, "a", 1))
    assert again.duplicate_count == 3
    again.check()


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        (SPEC.replace(windows=[5, sw.unbounded()]), {}, "keep the id of every row for"),
        (
            SPEC,
            {"deletes": "gone"},
            r"deletes='gone' deletes a row by its key and time",
        ),
        (SPEC.replace(unique_by="no"), {"schema": KINDS}, "the stream has no column"),
        (
            SPEC,
            {"schema": {**KINDS, "id": pa.map_(pa.string(), pa.int64())}},
            r"column 'id' \(map<string, int64>\) cannot be a key",
        ),
        (
            sw.Features(one=SPEC, other=SPEC.replace(by="id")),
            {},
            "drops rows by key and id, and the Specs have different keys or ids",
        ),
        (
            sw.Features(one=SPEC, other=SPEC.replace(unique_by=None)),
            {},
            "the Specs have different keys or ids: make KeyedWindows for each Spec",
        ),
    ],
    ids=str,
)
def test_what_a_stream_refuses(spec, options, message):
    with pytest.raises(sw.SpecError, match=message):
        sw.KeyedWindows(spec, **options)


def test_explain_says_which_rows_count():
    windows = sw.KeyedWindows(SPEC.replace(unique_by=["id", "t"]))
    line = "of rows with equal k, id and t, the first to arrive counts"
    assert line in windows.explain().split("\n")
    plain = sw.KeyedWindows(SPEC.replace(unique_by=None))
    assert "the first to arrive" not in plain.explain()


def test_a_spec_with_other_ids_has_not_grown():
    windows = sw.KeyedWindows(SPEC, emit="none", schema=KINDS)
    ingest(windows, (1, "a", 1))
    blob = windows.to_bytes()
    with pytest.raises(sw.SnapshotError, match="unique_by"):
        sw.KeyedWindows.from_bytes(blob, SPEC.replace(unique_by=None))
    grown = sw.KeyedWindows.from_bytes(blob, SPEC.replace(windows=[10, 5]))
    ingest(grown, (1, "a", 1))
    assert grown.duplicate_count == 1
