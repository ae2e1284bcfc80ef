"""Many keys over a stream of rows, against the same question over the whole table."""

import random
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import slidewise as sw
from slidewise.keyed import shard, tree

FOLDED = {
    "n": sw.count(),
    "there": sw.count("x"),
    "x": sw.sum("x"),
    "top": sw.max("y"),
    "mean": sw.mean("y"),
    "sd": sw.stddev("y"),
    "low": sw.min("x", where="ok"),
    "many": sw.approx_count_distinct("x"),
}
# What shows any wrong order, and what needs every row.
WHOLE = {
    "all": sw.collect("x"),
    "first": sw.first("word"),
    "last": sw.last("word"),
    "word": sw.max("word"),
    "when": sw.arg_max("id", "x"),
    "mid": sw.median("y"),
    "kinds": sw.count_distinct("word"),
}


class Stream:
    """Batches of rows that come late, in bursts, with ties, nulls and quiet keys."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.keys = self.random.choice([1, 3, 40])
        self.pace = self.random.choice([1, 20, 400])
        self.disorder = self.random.choice([0, 5, 60])
        self.now = self.random.choice([0, -(10**6), 10**12])
        self.rows = 0

    def batch(self) -> pa.Table:
        """Some rows, around now."""
        draw = self.random
        rows = [self.row() for _ in range(draw.choice([0, 1, 5, 30, 120]))]
        self.now += draw.choice([0, 1, self.pace])
        schema = pa.schema(
            [
                ("id", pa.int64()),
                ("t", pa.int64()),
                ("key", pa.string()),
                ("k2", pa.int32()),
                ("x", pa.int64()),
                ("y", pa.float64()),
                ("ok", pa.bool_()),
                ("word", pa.string()),
                ("came", pa.int64()),
            ]
        )
        return pa.Table.from_pylist(rows, schema)

    def row(self) -> dict[str, object]:
        """One row."""
        draw = self.random
        self.rows += 1
        self.now += draw.choice([0, 0, 1, 2])
        key = min(draw.randrange(self.keys), draw.randrange(self.keys))
        return {
            "id": self.rows,
            "t": self.now - draw.randrange(self.disorder + 1),
            "key": None if key == 2 else f"k{key}",
            "k2": key % 2,
            "x": None if draw.random() < 0.1 else draw.randrange(-50, 50),
            "y": draw.choice([draw.random(), draw.gauss(1e6, 1.0), None]),
            "ok": draw.choice([True, False, None]),
            "word": draw.choice(["a", "bb", "ccc", None, "dd"]),
            "came": draw.randrange(4),
        }


@pytest.fixture(params=[96, 2048, 1 << 15], ids=lambda page: f"page{page}")
def page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Small pages, so that few rows make trees."""
    monkeypatch.setattr(tree, "PAGE", request.param)
    monkeypatch.setattr(shard, "PAGE", request.param)
    return int(request.param)


def run(
    stream: Stream, windows: sw.KeyedWindows, again: dict[str, object], steps: int
) -> Iterator[tuple[pa.Table, pa.Table, int | None, sw.KeyedWindows]]:
    """Accepted rows of each batch, what was answered, and the watermark before."""
    for _ in range(steps):
        batch, watermark = stream.batch(), windows.watermark
        windows.ingest(batch)
        accepted = batch
        if watermark is not None:
            accepted = batch.filter(pc.greater(batch["t"], watermark))
        windows.advance()
        answers = windows.collect()
        windows.check()
        if stream.random.random() < 0.3:
            windows = sw.KeyedWindows.from_bytes(windows.to_bytes(), **again)
        yield accepted, answers, watermark, windows


def assert_same(ours: pa.Table, expected: pa.Table, by: list[str]) -> None:
    """The same rows, floats up to rounding."""
    assert ours.column_names == expected.column_names
    assert ours.schema.types == expected.schema.types
    keys = [(name, "ascending") for name in by]
    ours, expected = ours.sort_by(keys), expected.sort_by(keys)
    assert len(ours) == len(expected)
    for name in ours.column_names:
        mine, theirs = ours[name].to_pylist(), expected[name].to_pylist()
        if pa.types.is_floating(ours[name].type):
            assert [x is None for x in mine] == [x is None for x in theirs], name
            mine = [x for x in mine if x is not None]
            theirs = [x for x in theirs if x is not None]
            theirs = pytest.approx(theirs, rel=1e-9, abs=1e-6, nan_ok=True)
        assert mine == theirs, name


ASKED = [
    {"windows": [7, 100], "aggs": FOLDED},
    {"windows": [30], "aggs": FOLDED, "closed": "both", "offset": 3},
    {"windows": [50, 3], "aggs": WHOLE, "closed": "left"},
    {"windows": [sw.rows(3), 20], "aggs": {**FOLDED, **WHOLE}},
    {"windows": [40], "aggs": FOLDED, "ties": "rows", "min_rows": 2},
]


@pytest.mark.parametrize("asked", ASKED, ids=range(len(ASKED)))
@pytest.mark.parametrize("by", [["key"], ["key", "k2"], []], ids=["key", "two", "none"])
@pytest.mark.parametrize("seed", range(4))
def test_final_answers_are_those_of_the_whole_table(
    page: int, seed: int, by: list[str], asked: dict[str, object]
) -> None:
    """Every accepted row is answered once, as `rolling` does over all of them."""
    stream = Stream(seed * 1000 + page)
    spec: dict[str, object] = {"on": "t", "by": by, **asked}
    late = stream.random.choice([0, 3, 50])
    windows = sw.KeyedWindows(**spec, late=late)
    accepted, answers = [], []
    for rows, answered, _, after in run(stream, windows, spec, 12):
        accepted.append(rows)
        answers.append(answered)
        windows = after
    table = pa.concat_tables(accepted)
    expected = sw.rolling(table, **spec)
    expected = expected.filter(pc.less_equal(expected["t"], windows.watermark))
    assert_same(pa.concat_tables(answers), expected, ["id"])


@pytest.mark.parametrize("asked", ASKED[:4], ids=range(4))
@pytest.mark.parametrize("arrival", [None, "came"])
@pytest.mark.parametrize("seed", range(4))
def test_arrival_answers_see_what_has_arrived(
    page: int, seed: int, arrival: str | None, asked: dict[str, object]
) -> None:
    """Rows are answered at once, by what came in earlier batches and with them."""
    stream = Stream(seed * 1000 + page + 1)
    spec: dict[str, object] = {"on": "t", "by": "key", "arrival": arrival, **asked}
    windows = sw.KeyedWindows(
        **spec, emit="arrival", late=stream.random.choice([0, 60])
    )
    accepted, answers = [], []
    for at, (rows, answered, _, after) in enumerate(run(stream, windows, spec, 12)):
        order = pa.repeat(pa.scalar(at * 10, pa.int64()), len(rows))
        if arrival:
            order = pc.add(order, rows[arrival])
        accepted.append(rows.append_column("order", order))
        assert answered["id"].to_pylist() == rows["id"].to_pylist(), "in their order"
        answers.append(answered)
        windows = after
    table = pa.concat_tables(accepted)
    expected = sw.rolling(table, at=table, **{**spec, "arrival": "order"})
    assert_same(pa.concat_tables(answers), expected.drop_columns("order"), ["id"])


@pytest.mark.parametrize("asked", ASKED[:3], ids=range(3))
@pytest.mark.parametrize("seed", range(4))
def test_updates_are_the_windows_at_the_latest_rows(
    page: int, seed: int, asked: dict[str, object]
) -> None:
    """Each batch answers its keys once, at their latest time so far."""
    stream = Stream(seed * 1000 + page + 2)
    spec: dict[str, object] = {"on": "t", "by": "key", **asked}
    windows = sw.KeyedWindows(**spec, emit="update", late=stream.random.choice([0, 60]))
    seen = None
    for rows, answered, _, _ in run(stream, windows, spec, 12):
        seen = rows if seen is None else pa.concat_tables([seen, rows])
        latest = seen.group_by("key").aggregate([("t", "max"), ("id", "max")])
        new = pc.greater(latest["id_max"], len(seen) and _last(seen, rows))
        asked_at = (
            latest.filter(new).select(["key", "t_max"]).rename_columns(["key", "t"])
        )
        assert_same(answered, sw.rolling(seen, at=asked_at, **spec), ["key"])


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
@pytest.mark.parametrize("seed", range(6))
def test_deleted_rows_were_never_there(page: int, seed: int, emit: str) -> None:
    """From their deletion on; the first with the key and the time goes first."""
    stream = Stream(seed * 1000 + page + 4)
    spec: dict[str, object] = {"on": "t", "by": "key", "windows": [9, 100]}
    spec["aggs"] = FOLDED if seed % 2 else WHOLE
    windows = sw.KeyedWindows(**spec, emit=emit, late=60, deletes="gone")
    held: list[dict[str, object]] = []
    answers = []
    for _ in range(12):
        rows = stream.batch().to_pylist()
        sources = [row for row in held + rows if stream.random.random() < 0.05]
        deleted = [{"t": row["t"], "key": row["key"], "gone": True} for row in sources]
        batch = rows + deleted
        stream.random.shuffle(batch)
        schema = stream.batch().schema.append(pa.field("gone", pa.bool_()))
        watermark = windows.watermark
        windows.ingest(pa.Table.from_pylist(batch, schema))
        batch = [row for row in batch if watermark is None or row["t"] > watermark]
        new = [row for row in batch if not row.get("gone")]
        changed = {row["key"] for row in batch}
        for row in batch:
            if row.get("gone"):
                where = [
                    (rows, at)
                    for rows in (held, new)
                    for at, other in enumerate(rows)
                    if (other["t"], other["key"]) == (row["t"], row["key"])
                ]
                if where:
                    rows, at = where[0]
                    del rows[at]
        held += new
        now = pa.Table.from_pylist(held, schema)
        windows.advance()
        windows.check()
        answered = windows.collect()
        if emit == "arrival":
            asked = pa.Table.from_pylist(new, schema)
            assert_same(answered, sw.rolling(now, at=asked, **spec), ["id"])
        elif emit == "update":
            latest = now.group_by("key").aggregate([("t", "max")]).to_pylist()
            asked = [
                {"key": row["key"], "t": row["t_max"]}
                for row in latest
                if row["key"] in changed
                and (watermark is None or row["t_max"] > watermark)
            ]
            moments = pa.Table.from_pylist(
                asked, pa.schema([("key", pa.string()), ("t", pa.int64())])
            )
            assert_same(answered, sw.rolling(now, at=moments, **spec), ["key"])
        answers.append(answered)
    if emit == "final":
        expected = sw.rolling(now, **spec)
        expected = expected.filter(pc.less_equal(expected["t"], windows.watermark))
        assert_same(pa.concat_tables(answers), expected, ["id"])


def _last(seen: pa.Table, rows: pa.Table) -> int:
    earlier = seen.slice(0, len(seen) - len(rows))
    return pc.max(earlier["id"]).as_py() or 0


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("grid", [(60, 10, 0), (60, 7, 3), (5, 5, 0), (4, 9, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_slides_are_the_hops_of_the_whole_table(
    page: int, seed: int, grid: tuple[int, int, int], aggs: dict[str, object]
) -> None:
    """Every window that is over is answered once."""
    stream = Stream(seed * 1000 + page + 3)
    length, every, offset = grid
    spec: dict[str, object] = {
        "on": "t",
        "by": "key",
        "window": length,
        "every": every,
        "offset": offset,
        "aggs": aggs,
    }
    windows = sw.KeyedWindows(**spec, late=stream.random.choice([0, 30]))
    accepted, answers = [], []
    for rows, answered, _, after in run(stream, windows, spec, 12):
        accepted.append(rows)
        answers.append(answered)
        windows = after
    expected = sw.hopping(pa.concat_tables(accepted), **spec)
    over = pc.less_equal(expected["window_end"], windows.watermark + 1)
    assert_same(pa.concat_tables(answers), expected.filter(over), ["key", "window_end"])
