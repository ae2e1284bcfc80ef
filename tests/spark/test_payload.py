"""Rows cross between Spark and the operator in payloads of some megabytes."""

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.validation import checked
from slidewise.spark import arrow_ipc, payload
from slidewise.spark.arrow_ipc import payloads, read_ipc
from slidewise.spark.checkpoint_guard import GUARD_BUCKET
from slidewise.spark.operator import METRICS, output_rows
from slidewise.spark.payload import Packer
from slidewise.spec.spec import Spec

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.int64()), ("note", pa.string())])
ROWS = pa.table(
    {
        "t": range(2_000),
        "k": [at % 40 for at in range(2_000)],
        "note": ["x" * 999] * 2_000,
    },
    schema=SCHEMA,
)


def packer(buckets: int) -> Packer:
    spec = Spec.make(on="t", by="k", windows=5, aggs={"last": sw.last("note")})
    query = checked(KeyedQuery(spec, SCHEMA, "final", ("t",)))
    return Packer(query, buckets, None)


@pytest.mark.parametrize("buckets", [1, 8])
def test_wide_rows_are_packed_by_their_bytes(
    monkeypatch: pytest.MonkeyPatch, buckets: int
) -> None:
    """A payload of two gigabytes would fail."""
    monkeypatch.setattr(arrow_ipc, "_PAYLOAD_BYTES", 50_000)
    monkeypatch.setattr(payload, "_STAGED_BYTES", 200_000)
    batches = list(packer(buckets)(iter(ROWS.to_batches(100))))
    (guard, *packed) = [row for batch in batches for row in batch.to_pylist()]
    assert guard["bucket"] == GUARD_BUCKET
    assert max(len(row["payload"]) for row in packed) < 60_000
    assert max(batch.nbytes for batch in batches) < 320_000
    rows = pa.concat_tables(read_ipc(row["payload"]) for row in packed)
    assert rows.sort_by("t").equals(ROWS)
    assert len({row["bucket"] for row in packed}) == buckets


def test_narrow_rows_stay_together() -> None:
    notes = pa.nulls(len(ROWS), pa.string())
    narrow = ROWS.set_column(2, "note", notes)
    batches = list(packer(8)(iter(narrow.to_batches(100))))
    assert [len(batch) for batch in batches] == [1, 8]


def test_a_row_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_ipc, "_PAYLOAD_BYTES", 10)
    parts = [read_ipc(part) for part in payloads(ROWS.slice(7, 5))]
    assert [len(part) for part in parts] == [1] * 5
    assert pa.concat_tables(parts).equals(ROWS.slice(7, 5))
    assert [read_ipc(part) for part in payloads(ROWS.slice(0, 0))] == [ROWS.slice(0, 0)]


def test_rows_of_uneven_size_come_in_small_payloads() -> None:
    """Rows are counted by their mean size first."""
    texts = ["x"] * 1000 + ["y" * 1000] * 100
    rows = pa.table({"text": texts})
    parts = list(payloads(rows, 10_000))
    assert max(map(len, parts)) < 22_000
    assert len(parts) < 40
    assert pa.concat_tables(map(read_ipc, parts)).combine_chunks().equals(rows)


def test_results_come_in_small_payloads() -> None:
    """The JVM would allocate large payloads in regions of their own."""
    results = pa.table({"n": range(100_000)})
    counts = dict.fromkeys(METRICS, 1.0)
    first, *others = output_rows([results.slice(0, 10), results.slice(10)], counts)
    parts = [first.payload, *(row.payload for row in others)]
    assert max(map(len, parts)) < 300_000
    assert pa.concat_tables(map(read_ipc, parts)).equals(results)
    assert [row.rows for row in (first, *others)] == [1, *[0] * len(others)]
    (nothing,) = output_rows([], counts)
    assert (nothing.payload, nothing.calls) == (None, 1)
