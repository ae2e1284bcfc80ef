"""Shards put together from others go on as if their keys had always been theirs."""

import random
from typing import Any

import pyarrow as pa
import pytest
from keyed_streams import FOLDED, OPTIONS, SEEDS, WHOLE, Stream, assert_same, page
from seeds import SEED

import slidewise as sw
from slidewise.keyed.buckets import split
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.processor import Processor
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.regroup import Position, put_together, take_out
from slidewise.keyed.validation import checked

__all__ = ["page"]

SUMS = {"x": sw.sum("x"), "n": sw.count(), "top": sw.max("id")}


class Buckets:
    """A stream in shards, each with the keys of a bucket, as Spark drives them."""

    def __init__(self, query: KeyedQuery, count: int) -> None:
        self.query, self.count = query, count
        self.shards: dict[int, tuple[MemoryStore, Processor]] = {}
        self.watermark: int | None = None

    def ingest(self, batch: pa.Table, watermark: int | None) -> list[pa.Table | None]:
        """The results of a micro-batch with its watermark."""
        self.watermark = watermark
        rows, ends = self.query.arrived(batch)
        rows, _ = self.query.by_lateness(rows, watermark, ends)
        parts = dict(split(self.query.spec.by, rows, self.count))
        for bucket in parts.keys() - self.shards.keys():
            store = MemoryStore()
            self.shards[bucket] = store, Processor(self.query, store)
        results: list[pa.Table | None] = []
        for bucket, (_, processor) in self.shards.items():
            due = processor.due
            if watermark is not None and due is not None and due <= watermark:
                results.append(processor.advance(watermark))
                processor.evict(watermark)
            if bucket in parts:
                part = parts[bucket].combine_chunks()
                results.append(processor.ingest(part, watermark))
        return results

    def regrouped(self, query: KeyedQuery, count: int) -> "Buckets":
        """The stream in other shards, or with a query that has grown."""
        made = Buckets(query, count)
        shards = [(store, each.commit()) for store, each in self.shards.values()]
        position = Position.of([directory for _, directory in shards])
        parts: dict[int, dict[str, list[pa.Table]]] = {}
        for store, directory in shards:
            for name, table in take_out(self.query, store, directory).items():
                for bucket, part in split(self.query.spec.by, table, count):
                    parts.setdefault(bucket, {}).setdefault(name, []).append(part)
        for bucket in range(count):
            store = MemoryStore()
            tables = parts.get(bucket, {})
            directory, opened = put_together(query, store, position, tables)
            processor = Processor(query, store, directory, trusts=False)
            processor.shard.check()
            assert processor.due == opened.due
            made.shards[bucket] = store, processor
        return made


def together(results: list[pa.Table | None]) -> pa.Table:
    found = [table for table in results if table is not None]
    return pa.concat_tables(found, promote_options="permissive")


def query_of(emit: str, options: dict[str, Any], schema: pa.Schema) -> KeyedQuery:
    stream = {name: options[name] for name in STREAM if name in options}
    spec = {name: value for name, value in options.items() if name not in STREAM}
    return checked(KeyedQuery(sw.Spec(on="t", **spec), schema, emit, **stream))


STREAM = ("then_by", "deletes", "corrects", "changed")
BY = {"by": ["key", "k2"]}
FINAL: list[dict[str, Any]] = [{**BY, "then_by": ("id",), **each} for each in OPTIONS]
CASES: list[tuple[str, dict[str, Any]]] = [
    *(("final", options) for options in FINAL),
    ("final", {**FINAL[0], "deletes": "ok"}),
    ("final", {**FINAL[0], "corrects": True}),
    ("final", {**BY, "windows": sw.landmark("ok"), "aggs": SUMS, "then_by": ("id",)}),
    ("final", {**BY, "windows": sw.delta("t", 9), "aggs": SUMS, "then_by": ("id",)}),
    ("final", {**BY, "windows": sw.trailing(30, resolution=7), "aggs": FOLDED}),
    ("arrival", {**BY, "windows": sw.trailing(9, resolution=20), "aggs": SUMS}),
    ("change", {**BY, "windows": sw.trailing(30, resolution=1), "aggs": SUMS}),
    ("arrival", FINAL[2]),
    ("arrival", {**FINAL[0], "deletes": "ok"}),
    ("update", FINAL[3]),
    ("update", {**FINAL[0], "corrects": True}),
    ("change", FINAL[1]),
    ("change", {**FINAL[0], "changed": True}),
    ("change", {**FINAL[0], "corrects": True}),
    ("slide", {**BY, "window": 30, "every": 7, "aggs": FOLDED}),
    ("slide", {**BY, "window": 12, "every": 4, "empty": True, "aggs": SUMS}),
    ("slide", {**BY, "window": 30, "every": 10, "aggs": SUMS, "corrects": True}),
    ("slide", {**BY, "windows": [sw.Query(30, every=10), 6], "aggs": SUMS}),
    ("slide", {**BY, "window": sw.session(5), "aggs": WHOLE, "then_by": ("id",)}),
    ("slide", {**BY, "window": sw.until("ok"), "aggs": SUMS, "then_by": ("id",)}),
    (
        "slide",
        {**BY, "window": 40, "every": sw.rows(3), "aggs": SUMS, "then_by": ("id",)},
    ),
]


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(("emit", "options"), CASES, ids=repr)
@pytest.mark.parametrize("seed", SEEDS)
def test_results_do_not_depend_on_regrouping(
    emit: str, options: dict[str, Any], seed: int
) -> None:
    stream, draw = Stream(seed), random.Random(f"{SEED} regroup")
    query = query_of(emit, options, stream.batch().schema)
    plain, other = Buckets(query, 1), Buckets(query, 8)
    watermark: int | None = None
    ours: list[pa.Table | None] = []
    theirs: list[pa.Table | None] = []
    for _ in range(8):
        batch = stream.batch()
        theirs += plain.ingest(batch, watermark)
        ours += other.ingest(batch, watermark)
        if draw.random() < 0.4:
            other = other.regrouped(query, draw.choice([1, 3, 8, 20]))
        times = [watermark, *(time - 10 for time in batch["t"].to_pylist())]
        known = [time for time in times if time is not None]
        watermark = max(known, default=None)
    end = batch.slice(0, 0)
    last = stream.now + 1000
    theirs += plain.ingest(end, last)
    ours += other.ingest(end, last)
    found, expected = together(ours), together(theirs)
    assert len(expected)
    assert_same(found, expected, sorting(expected))


def sorting(table: pa.Table) -> list[str]:
    """Columns that order results: a row's, or a key's and a time."""
    names = ["id", "key", "k2", "t", "window", "window_start", "window_end", "n", "x"]
    return [name for name in names if name in table.column_names]


GROWN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("final", {"windows": [40]}, {"windows": [40, 7]}),
    ("final", {"windows": [40]}, {"aggs": {"mid": sw.median("id"), "x": sw.max("x")}}),
    ("update", {"windows": [40, 9]}, {"windows": [40, 5], "aggs": {"n": sw.count()}}),
    ("change", {"windows": [40]}, {"windows": [40, 7]}),
    (
        "slide",
        {"windows": [sw.Query(30, every=10)]},
        {"windows": [sw.Query(30, every=10), sw.Query(20, every=5), 9]},
    ),
]


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(("emit", "options", "changes"), GROWN, ids=repr)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_grown_query_goes_on_as_if_it_had_always_been(
    emit: str, options: dict[str, Any], changes: dict[str, Any], seed: int
) -> None:
    stream = Stream(seed)
    given = {**BY, "aggs": SUMS, **options}
    query = query_of(emit, given, stream.batch().schema)
    grown = query_of(emit, {**given, **changes}, query.schema)
    always, ours = Buckets(grown, 1), Buckets(query, 4)
    watermark: int | None = None
    found: list[pa.Table | None] = []
    expected: list[pa.Table | None] = []
    for step in range(9):
        batch = stream.batch()
        results = [ours.ingest(batch, watermark), always.ingest(batch, watermark)]
        if step == 4:
            ours = ours.regrouped(grown, 3)
        if step > 4:
            found += results[0]
            expected += results[1]
        times = [watermark, *(time - 10 for time in batch["t"].to_pylist())]
        watermark = max((time for time in times if time is not None), default=None)
    end = batch.slice(0, 0)
    found += ours.ingest(end, stream.now + 1000)
    expected += always.ingest(end, stream.now + 1000)
    ours_, theirs = together(found), together(expected)
    assert_same(ours_, theirs, sorting(theirs))
