"""Rows of batches: their memory, and those that are due at a watermark."""

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import slidewise as sw
from slidewise import _core
from slidewise.keyed.page_store import buffers_of

TIMES = [5, 3, 9, 3, -(2**63), 2**63 - 1, 4, 5]
# A value per time, of types of every layout.
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.null(), [None] * 8),
    (pa.bool_(), [True, None, False, True, True, False, None, True]),
    (pa.int8(), [1, 2, None, 4, 5, 6, 7, 8]),
    (pa.uint16(), [1, 2, 3, 4, 5, 6, 7, 8]),
    (pa.float32(), [1.5, None, float("inf"), 0.0, -0.0, 2.0, 3.0, 4.0]),
    (pa.string(), ["", "é", None, "long " * 50, "a", "b", "c", "d"]),
    (pa.large_string(), ["", "é", None, "long " * 50, "a", "b", "c", "d"]),
    (pa.binary(3), [b"abc", None, b"\0\0\0", *[b"xyz"] * 5]),
    (pa.timestamp("us", "Europe/Berlin"), [dt.datetime(2026, 1, 2), *[None] * 7]),
    (pa.decimal128(9, 2), [decimal.Decimal("1.25"), *[None] * 7]),
    (pa.decimal256(50, 2), [decimal.Decimal("-1.25"), *[None] * 7]),
    (pa.month_day_nano_interval(), [pa.MonthDayNano([1, 2, 3]), *[None] * 7]),
    (pa.list_(pa.int16()), [[1, 2], [], None, [3], [4], [5], [6], [7]]),
    (pa.struct([("a", pa.int8())]), [{"a": 1}, None, *[{"a": 2}] * 6]),
]


def batch_of(kind: pa.DataType, values: list[Any]) -> pa.RecordBatch:
    times = pa.array(TIMES, pa.int64())
    return pa.record_batch({"time": times, "value": pa.array(values, kind)})


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda part: str(part)[:20])
def test_due_rows_come_by_time_and_in_order(
    kind: pa.DataType, values: list[Any]
) -> None:
    batch = batch_of(kind, values)
    # Parts of one batch, with offsets; the second from a time on.
    parts = [(batch.slice(1, 4), None), (batch.slice(0, 0), 0), (batch.slice(4), 3)]
    due, left = _core.take_due(parts, 5, True)
    rows = pa.Table.from_batches([batch.slice(1, 4), batch.slice(6)])
    rows = rows.filter(pc.less_equal(rows["time"], 5))
    order = pc.sort_indices(rows, [("time", "ascending")])
    assert pa.Table.from_batches([pa.record_batch(due)]) == rows.take(order)
    as_they_came, same = _core.take_due(parts, 5, False)
    assert pa.Table.from_batches([pa.record_batch(as_they_came)]) == rows
    assert same == left
    pa.record_batch(due).validate(full=True)
    assert left == [9, None, 2**63 - 1]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda part: str(part)[:20])
def test_a_copy_of_rows_is_equal(kind: pa.DataType, values: list[Any]) -> None:
    batch = batch_of(kind, values)
    for part in (batch, batch.slice(2, 3), batch.slice(8)):
        own, ends = _core.copy_rows(part)
        copy = pa.record_batch(own)
        copy.validate(full=True)
        assert copy == part
        assert copy.schema == part.schema
        times = part["time"].to_pylist()
        assert ends == ((min(times), max(times)) if times else None)


def test_batches_without_times_are_refused() -> None:
    for column in (pa.array(["a"]), pa.array([1, None])):
        batch = pa.record_batch({"time": column})
        with pytest.raises(TypeError, match="begins with int64 times"):
            _core.copy_rows(batch)
    one, other = (pa.record_batch({"t": pa.array([1]), x: pa.array([1])}) for x in "ab")
    with pytest.raises(TypeError, match="differ"):
        _core.take_due([(one, None), (other, None)], 1, True)


def test_a_row_that_waits_does_not_keep_its_batch() -> None:
    """One of a thousand rows of long text has a time far ahead."""
    windows = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()})
    expected = []
    for start in range(0, 5000, 1000):
        times = [*range(start, start + 999), 10**6 + start]
        expected += times
        words = ["word" * 250] * 1000
        windows.ingest(pa.table({"t": times, "word": words}))
    assert windows.nbytes > 5000 * 1000
    windows.advance(4000)
    windows.advance(5000)
    answers = windows.collect()
    assert windows._state.processor is not None
    pending = windows._state.processor.shard.pending
    assert sum(sum(buffers_of(rows).values()) for rows in pending.tables) < 10_000
    windows.advance(10**7)
    answers = pa.concat_tables([answers, windows.collect()])
    assert answers["t"].to_pylist() == sorted(expected)
    assert set(answers["word"].to_pylist()) == {"word" * 250}


def test_small_batches_wait_in_few_tables() -> None:
    """Else each of them would take kilobytes, and a look at every advance."""
    spec = {"on": "t", "by": "k", "windows": 40, "aggs": {"n": sw.count()}}
    windows, draw = sw.KeyedWindows(**spec, late=500), np.random.default_rng(1)
    times = [at + int(draw.integers(0, 100)) for at in range(900)]
    for at, time in enumerate(times):
        rows = pa.table({"t": [time], "k": [at % 7], "row": [at]})
        windows.ingest(rows)
        windows.advance()
    assert windows._state.processor is not None
    pending = windows._state.processor.shard.pending
    assert sum(map(len, pending.tables)) > 400
    assert len(pending) < 40
    windows.advance(2000)
    table = pa.table(
        {"t": times, "k": [at % 7 for at in range(900)], "row": range(900)}
    )
    expected = sw.rolling(table, **spec)
    order = [("t", "ascending"), ("row", "ascending")]
    found = windows.collect()
    assert found.sort_by(order).equals(expected.sort_by(order))


def test_nbytes_counts_waiting_rows_outside_pages() -> None:
    """After a merge of pages, waiting rows have memory of their own."""
    windows = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()})
    words = [f"{at:01000}" for at in range(10)]
    for start in range(0, 800, 10):
        windows.ingest(pa.table({"t": range(start, start + 10), "word": words}))
    # The pages have each row once; most of those that wait are elsewhere.
    assert windows.nbytes > 1.5 * 800 * 1000


@pytest.mark.parametrize("emit", ["arrival", "final", "update"])
def test_arrays_may_be_overwritten_after_a_batch(emit: str) -> None:
    """Arrow lends the memory of NumPy's arrays, which belong to the caller."""
    times, values = np.arange(4), np.arange(4.0)
    windows = sw.KeyedWindows(
        on="t", windows=10, aggs={"sum": sw.sum("x")}, emit=emit, late=9
    )
    windows.ingest(pa.table({"t": times, "x": values}))
    times[:], values[:] = 7, -1.0
    windows.advance(3)
    answers = windows.collect()
    last = {"t": 3, "sum_10": 6.0} | ({} if emit == "update" else {"x": 3.0})
    assert answers.to_pylist()[-1] == last
    again = sw.KeyedWindows.from_bytes(
        windows.to_bytes(), on="t", windows=10, aggs={"sum": sw.sum("x")}
    )
    assert again.query(at=3) == {"sum_10": 6.0}
