"""`read_state` gives the rows that a stream holds."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from streams import LATE, ROLLING, FileSource, assert_same, read, start

import slidewise as sw
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.processor import Processor
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.snapshots import query_of
from slidewise.keyed.validation import checked
from slidewise.spark import read_state, rolling
from slidewise.spark.checkpoint_guard import GUARD_BUCKET
from slidewise.spark.checkpoint_state import shard_of
from slidewise.spark.state_reader import Reader


def test_the_rows_of_the_state(spark: Any, tmp_path: Path) -> None:
    """Rows that wait have all columns, the others those that windows need."""
    source = FileSource(tmp_path, 5, LATE)
    source.write(4)
    call: dict[str, Any] = {**ROLLING, "late": LATE}
    start(rolling(read(spark, tmp_path), **call), tmp_path, "a").awaitTermination()
    held = read_state(spark, str(tmp_path / "a-checkpoint")).toArrow()
    accepted = pa.concat_tables(source.accepted()).drop_columns("batch")
    watermark = source.watermark(len(source.batches))
    assert held.column_names == ["key", "t", "id", "x", "y", "word", "came", "_pending"]
    waits = held.filter(held["_pending"]).drop_columns("_pending").sort_by("id")
    expected = accepted.filter(pc.greater(accepted["t"], watermark))
    assert len(expected)
    assert waits.select(expected.column_names).equals(expected.sort_by("id"))
    fired = held.filter(pc.invert(held["_pending"]))
    start_of_windows = pc.subtract(watermark, pa.scalar(120, pa.duration("s")))
    needed = accepted.filter(
        pc.and_(
            pc.greater(accepted["t"], start_of_windows),
            pc.less_equal(accepted["t"], watermark),
        )
    )
    names = ["key", "t", "x", "y", "word"]
    found = fired.filter(pc.greater(fired["t"], start_of_windows)).select(names)
    order = [(name, "ascending") for name in names]
    assert len(needed)
    assert found.sort_by(order).equals(needed.select(names).sort_by(order))
    assert fired["came"].null_count == len(fired)


def test_other_folders_are_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(sw.SpecError, match="is not a checkpoint with state: give the"):
        read_state(spark, str(tmp_path))
    source = FileSource(tmp_path, 6, LATE)
    source.write(1)
    rows = read(spark, tmp_path).withWatermark("t", "30 seconds")
    distinct = rows.dropDuplicates(["key", "t"])
    start(distinct, tmp_path, "other").awaitTermination()
    with pytest.raises(sw.SpecError, match=r"without windows of slidewise \(dedupe\)"):
        read_state(spark, str(tmp_path / "other-checkpoint"))


def test_rows_of_a_page_that_were_emitted_lack_the_other_columns() -> None:
    """The page still has them, as other rows of it wait."""
    spec = sw.Spec(on="t", by="k", windows=10, aggs={"x": sw.sum("x")})
    schema = pa.schema([(name, pa.int64()) for name in ("t", "k", "x", "id")])
    query = checked(KeyedQuery(spec, schema, "final"))
    store = MemoryStore()
    processor = Processor(query, store)
    rows = pa.table({"t": [1, 5], "k": [7, 7], "x": [2, 3], "id": [8, 9]}, schema)
    processor.ingest(query.arrived(rows)[0], None)
    processor.advance(3)
    head = json.dumps({"shard": processor.commit()}).encode()
    pages = {None: head, **store.blobs()}
    stored = pa.table({"page": [*pages], "blob": [*pages.values()]})
    assert Reader(query).rows(stored).to_pylist() == [
        {"k": 7, "t": 1, "x": 2, "id": None, "_pending": False},
        {"k": 7, "t": 5, "x": 3, "id": 9, "_pending": True},
    ]


def test_folded_cells_are_listed_by_their_latest_rows() -> None:
    """Also those whose rows take less than their partial, each as a row."""
    windows = sw.trailing(3000, resolution=1000)
    spec = sw.Spec(on="t", by="k", windows=windows, aggs={"m": sw.mean("x")})
    schema = pa.schema([(name, pa.int64()) for name in ("t", "k", "x", "id")])
    query = checked(KeyedQuery(spec, schema, "final"))
    store = MemoryStore()
    processor = Processor(query, store)
    ticks = [*range(1, 2003), 500, 700]
    columns = [ticks, [7] * 2002 + [8, 8], [0] * 2004, [*range(2004)]]
    rows = pa.table(dict(zip(schema.names, columns, strict=True)), schema)
    processor.ingest(query.arrived(rows)[0], None)
    processor.advance(2001)
    processor.evict(2001)
    head = json.dumps({"shard": processor.commit()}).encode()
    pages = {None: head, **store.blobs()}
    stored = pa.table({"page": [*pages], "blob": [*pages.values()]})
    names = ["k", "t", "x", "id", "_pending", "_folded"]
    expected = [
        (7, 2001, 0, None, False, False),
        (7, 2002, 0, 2001, True, False),
        (8, 500, None, None, False, True),
        (8, 700, None, None, False, True),
        (7, 1000, None, None, False, True),
        (7, 2000, None, None, False, True),
    ]
    found = Reader(query).rows(stored)
    assert found.to_pylist() == [dict(zip(names, row, strict=True)) for row in expected]


def test_state_of_format_1_is_read_and_goes_on() -> None:
    """Heads and pages that an earlier stream left; later releases continue these."""
    path = Path(__file__).parent / "data" / "state-format-1.parquet"
    stored = pq.read_table(path)
    guard = stored.filter(pc.equal(stored["bucket"], GUARD_BUCKET))
    query = query_of(json.loads(guard["blob"][0].as_py())["query"])
    answers, pending = [], 0
    for bucket in pc.unique(stored["bucket"]).to_pylist():
        own = stored.filter(pc.equal(stored["bucket"], bucket))
        if bucket == GUARD_BUCKET:
            continue
        held = Reader(query).rows(own)
        pending += pc.sum(held["_pending"]).as_py()
        store, head = shard_of(own)
        made = Processor(query, store, head["shard"], trusts=False).advance(2**60)
        if made is None:
            continue
        expected = sw.rolling(held, query.spec).select(made.column_names)
        expected = expected.filter(held["_pending"])
        assert_same(made, expected, ["id"])
        answers.append(made)
    assert sum(map(len, answers)) == pending > 10
