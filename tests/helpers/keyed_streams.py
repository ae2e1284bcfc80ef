"""Streams of batches for windows of many keys, and their expected results."""

import math
import os
import random
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.keyed import row_log

NEAR = 2.0**-48
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
# Aggregations that reveal any wrong order, and those that need every row.
WHOLE = {
    "all": sw.collect("x"),
    "first": sw.first("word"),
    "last": sw.last("word"),
    "word": sw.max("word"),
    "when": sw.arg_max("id", "x"),
    "mid": sw.median("y"),
    "kinds": sw.count_distinct("word"),
}


# The seeds of streams, which change every day; `SLIDEWISE_STREAMS` of them per case.
SEEDS = [SEED + at for at in range(int(os.environ.get("SLIDEWISE_STREAMS", "1")))]


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


# The smallest has most splits and merges.
PAGES = [96, 96, 2048, 1 << 15]


@pytest.fixture
def page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Small segments, so that few rows are split and merged; other sizes each day."""
    size = random.Random(f"{SEED} {request.node.name}").choice(PAGES)
    monkeypatch.setattr(row_log, "SEGMENT", size)
    monkeypatch.setattr(row_log, "FAN", 8 if size == 1 << 15 else 2)
    monkeypatch.setattr(row_log, "_MIN_FOLDED", 0)
    return size


def run(
    stream: Stream, windows: sw.KeyedWindows, again: dict[str, object], steps: int
) -> Iterator[tuple[pa.Table, pa.Table, int | None, sw.KeyedWindows]]:
    """The accepted rows of each batch, the answers, and the watermark before it."""
    for step in range(steps):
        batch, watermark = stream.batch(), windows.watermark
        windows.ingest(batch)
        accepted = batch
        if watermark is not None:
            accepted = batch.filter(pc.greater(batch["t"], watermark))
        windows.advance()
        answers = windows.collect()
        if step % 3 == 2 or step == steps - 1:
            windows.check()
        if stream.random.random() < 0.3:
            windows = sw.KeyedWindows.from_bytes(windows.to_bytes(), **again)
        yield accepted, answers, watermark, windows


def stream_of(
    seed: int, spec: dict[str, object], lates: tuple[int, ...] = (0, 30)
) -> tuple[pa.Table, pa.Table, int]:
    """The accepted rows of a stream, its answers, and its last watermark."""
    stream = Stream(seed)
    windows = sw.KeyedWindows(**spec, late=stream.random.choice(lates))
    accepted, answers = [], []
    for rows, answered, _, after in run(stream, windows, spec, 12):
        accepted.append(rows)
        answers.append(answered)
        windows = after
    return pa.concat_tables(accepted), pa.concat_tables(answers), windows.watermark


def assert_same(ours: pa.Table, expected: pa.Table, by: list[str]) -> None:
    """Checks for equal rows, with floats equal up to rounding."""
    assert ours.column_names == expected.column_names
    assert ours.schema.types == expected.schema.types
    keys = [(name, "ascending") for name in by]
    ours, expected = ours.sort_by(keys), expected.sort_by(keys)
    assert len(ours) == len(expected)
    for name in ours.column_names:
        mine, theirs = ours[name].to_pylist(), expected[name].to_pylist()
        if pa.types.is_floating(ours[name].type):
            for a, b in zip(mine, theirs, strict=True):
                assert near(a, b), f"{name}: {a}, not {b}"
        else:
            assert mine == theirs, name


def near(a: float | None, b: float | None) -> bool:
    """Whether values are equal up to rounding; nulls are equal, and NaNs."""
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=NEAR) or (a != a and b != b)


OPTIONS = [
    {"windows": [7, 100], "aggs": FOLDED},
    {"windows": [30], "aggs": FOLDED, "closed": "both", "offset": 3},
    {"windows": [50, 3], "aggs": WHOLE, "closed": "left"},
    {"windows": [sw.rows(3), 20], "aggs": {**FOLDED, **WHOLE}},
    {"windows": [40], "aggs": FOLDED, "ties": "rows", "min_rows": 2},
]
