"""Snapshots that hold their Spec, and that a Spec which has grown opens."""

import random
import re
from typing import Any

import own_aggregations as own
import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw

FOLDS = {"sum": sw.sum("x"), "max": sw.max("y")}
SPEC = sw.Spec(on="t", by="k", windows=[10, 4], aggs=FOLDS)


def rows(rng: random.Random, start: int) -> pa.Table:
    count = rng.randrange(1, 6)
    return pa.table(
        {
            "t": [start + rng.randrange(-3, 4) for _ in range(count)],
            "k": [rng.choice("ab") for _ in range(count)],
            "x": [rng.randrange(9) for _ in range(count)],
            "y": pa.array([rng.choice([None, 1, 5]) for _ in range(count)], pa.int64()),
            "z": [1] * count,
        }
    )


def fed(spec: sw.Spec, batches: list[pa.Table], **options: Any) -> sw.KeyedWindows:
    stream = sw.KeyedWindows(spec, late=3, **options)
    for batch in batches:
        stream.ingest(batch)
        stream.advance()
    if options.get("emit") != "none":
        stream.collect()
    return stream


def batches_of(name: str, count: int = 10) -> list[pa.Table]:
    rng = random.Random(f"{SEED} {name}")
    return [rows(rng, 3 * at) for at in range(count)]


@pytest.mark.parametrize(
    "spec",
    [
        SPEC,
        SPEC.replace(names="{window} {agg}", fill={"max": 0}),
        sw.Spec(on="t", by="k", window=6, every=2, aggs=FOLDS),
        sw.Spec(on="t", windows=[5, sw.rows(3)], aggs={"own": own.TOTAL("x")}),
    ],
    ids=repr,
)
def test_a_snapshot_holds_its_spec(spec: sw.Spec) -> None:
    stream = fed(spec, batches_of("own"))
    first = stream.to_bytes()
    stream.ingest(batches_of("more", 1)[0])
    stream.collect()
    changes = [stream.changes()]
    key = ("a",) if spec.by else ()
    for given in (None, spec):
        again = sw.KeyedWindows.from_bytes(first, given, changes=changes)
        assert again.to_bytes() == stream.to_bytes()
        assert again.query(key) == stream.query(key)


def test_a_snapshot_without_its_spec_says_so() -> None:
    spec = sw.Spec(on="t", windows=5, aggs={"s": own.UNNAMED("x")})
    blob = fed(spec, batches_of("unnamed")).to_bytes()
    with pytest.raises(sw.SnapshotError, match="cannot be imported by its path: pass"):
        sw.KeyedWindows.from_bytes(blob)
    assert sw.KeyedWindows.from_bytes(blob, spec).to_bytes() == blob
    other = spec.replace(windows=4)
    with pytest.raises(sw.SnapshotError, match="cannot be imported by its path: pass"):
        sw.KeyedWindows.from_bytes(blob, other)


GROWN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"windows": [10, 4, 7, 1]}),
    ({}, {"windows": [3]}),
    ({}, {"windows": [13]}),
    ({"keep": 30}, {"windows": [10, 30]}),
    ({}, {"aggs": {"n": sw.count(), "mid": sw.median("y"), "mean": sw.mean("x")}}),
    ({}, {"aggs": {"t": sw.max("t"), "sum": sw.sum("y")}}),
    ({}, {"windows": 9, "closed": "both", "min_rows": 2, "fill": 0, "prefix": "p_"}),
    ({"then_by": "z"}, {"aggs": {"last": sw.last("z"), "s": sw.sum("x", windows=2)}}),
    ({"late_rows": "correct"}, {"windows": [10, 2], "aggs": {"n": sw.count("y")}}),
    ({"spec": {"windows": [10, sw.rows(5)]}}, {"windows": [sw.rows(3), 6]}),
    ({"spec": {"windows": [10, sw.rows(5)]}}, {"windows": 8}),
]


@pytest.mark.parametrize("emit", ["final", "change", "none"])
@pytest.mark.parametrize(("options", "changes"), GROWN, ids=repr)
def test_a_grown_spec_answers_as_if_it_had_always_been(
    options: dict[str, Any], changes: dict[str, Any], emit: str
) -> None:
    options = {"emit": emit, **options}
    spec = SPEC.replace(**options.pop("spec", {}))
    grown = spec.replace(**changes)
    batches = batches_of(repr(changes))
    stream = fed(spec, batches, **options)
    opened = sw.KeyedWindows.from_bytes(stream.to_bytes(), grown)
    # It kept the rows for the longer windows from the beginning on.
    always = fed(grown, batches, **{"keep": 40, **options})
    keys = pa.table({"k": ["a", "b", "z"]})
    for batch in [None, *batches_of("later", 3)]:
        if batch is not None:
            batch = batch.set_column(
                0, "t", pa.array([40 + t for t in batch["t"].to_pylist()])
            )
            for each in (opened, always):
                each.ingest(batch)
                each.advance()
        assert opened.query_many(keys).equals(always.query_many(keys))
        assert opened.query("a", at=48) == always.query("a", at=48)
        opened.check()
    if emit == "change":
        opened.collect()
    if emit == "final":
        found, expected = opened.collect(), always.collect()
        assert found.num_rows == expected.num_rows > 0
        assert found.equals(expected)
    again = sw.KeyedWindows.from_bytes(opened.to_bytes())
    assert again.query_many(keys).equals(opened.query_many(keys))
    assert again.to_bytes() == opened.to_bytes()


def test_hopping_windows_grow() -> None:
    spec = sw.Spec(on="t", by="k", windows=[sw.Query(6, every=2)], aggs=FOLDS)
    grown = spec.replace(windows=[sw.Query(6, every=2), 4], aggs={"n": sw.count()})
    batches = batches_of("hops")
    opened = sw.KeyedWindows.from_bytes(fed(spec, batches).to_bytes(), grown)
    always = fed(grown, batches, keep=20)
    for each in (opened, always):
        each.advance(60)
    order = [(name, "ascending") for name in ("k", "window", "window_end")]
    found, expected = opened.collect().sort_by(order), always.collect().sort_by(order)
    assert found.num_rows > 0
    assert found.equals(expected)


@pytest.mark.parametrize(
    ("spec", "changes", "message"),
    [
        ({}, {"on": "z"}, "the snapshot is of another Spec: on='z', and there 't'"),
        ({}, {"by": ["k", "z"]}, "another Spec: by=('k', 'z'), and there ('k',)"),
        ({}, {"nan": "skip"}, "another Spec: nan='skip', and there 'propagate'"),
        ({}, {"ties": "rows"}, "another Spec: ties='rows', and there 'peers'"),
        (
            {},
            {"windows": [14]},
            "the window '14' is beyond its horizon, for which rows",
        ),
        ({}, {"windows": 10, "offset": 4}, "the window '10' is beyond its horizon"),
        ({}, {"windows": sw.rows(2)}, "the window '2rows' is beyond its horizon"),
        ({"windows": [10, sw.rows(2)]}, {"windows": sw.rows(3)}, "'3rows' is beyond"),
        ({}, {"windows": sw.landmark("f")}, "begin or end are none, not landmark('f')"),
        ({}, {"aggs": {"s": sw.sum("z")}}, "aggs['s'], sum('z'), reads the column 'z'"),
        (
            {},
            {"aggs": {"s": sw.count(where="f")}},
            "reads the column 'f', which it does",
        ),
    ],
)
def test_what_a_snapshot_does_not_have_is_named(
    spec: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    one = SPEC.replace(**spec)
    blob = fed(one, batches_of("refused")).to_bytes()
    with pytest.raises(sw.SnapshotError, match=re.escape(message)):
        sw.KeyedWindows.from_bytes(blob, one.replace(**changes))


def test_windows_before_their_row_need_rows_before_the_watermark() -> None:
    spec = sw.Spec(on="t", windows=sw.rows(5), aggs={"s": sw.sum("x")})
    before = spec.replace(windows=sw.rows(2), closed="left")
    for late in (0, 1):
        kept = sw.KeyedWindows(spec, late=late)
        kept.ingest(pa.table({"t": [1, 4, 5], "x": [1, 2, 4]}))
        blob = kept.to_bytes()
        if late:
            opened = sw.KeyedWindows.from_bytes(blob, before)
            assert opened.query((), at=4) == {"s_2rows": 1}
            continue
        with pytest.raises(sw.SnapshotError, match="'2rows' is beyond its horizon"):
            sw.KeyedWindows.from_bytes(blob, before)


def test_windows_of_other_kinds_do_not_grow() -> None:
    hops = sw.Spec(on="t", by="k", window=6, every=2, empty=True, aggs=FOLDS)
    blob = fed(hops, batches_of("kinds")).to_bytes()
    with pytest.raises(
        sw.SnapshotError, match="its windows are of hopping, not of rol"
    ):
        sw.KeyedWindows.from_bytes(blob, SPEC)
    with pytest.raises(sw.SnapshotError, match="empty=True its windows cannot change"):
        sw.KeyedWindows.from_bytes(blob, hops.replace(window=4))
    sessions = sw.Spec(on="t", by="k", window=sw.session(3), aggs=FOLDS)
    blob = fed(sessions, batches_of("kinds")).to_bytes()
    with pytest.raises(sw.SnapshotError, match=r"end are session\(3\), not none"):
        sw.KeyedWindows.from_bytes(blob, sessions.replace(window=4))
    more = sessions.replace(aggs={"n": sw.count()})
    always = fed(more, batches_of("kinds"))
    opened = sw.KeyedWindows.from_bytes(blob, more)
    for each in (opened, always):
        each.advance(60)
    assert opened.collect().sort_by("k").equals(always.collect().sort_by("k"))
