"""The order of rows of equal time in streams: `then_by`, `arrival`, deletions."""

from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from keyed_streams import FOLDED, Stream, assert_same, page
from seeds import SEED

import slidewise as sw

__all__ = ["page"]


def batches_of(table: pa.Table, ends: tuple[int, ...]) -> list[pa.Table]:
    """A table cut at these rows."""
    cuts = [0, *ends, len(table)]
    return [table.slice(start, end - start) for start, end in pairwise(cuts)]


CUTS = [(), (1,), (2,), (1, 2)]


@pytest.mark.parametrize("cuts", CUTS, ids=str)
@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
def test_a_deletion_takes_the_first_row_by_then_by(
    page: int, emit: str, cuts: tuple[int, ...]
) -> None:
    """The division of rows into batches does not matter."""
    table = pa.table(
        {
            "t": [1, 1, 1],
            "o": [2, 1, 3],
            "x": ["b", "a", ""],
            "gone": [False, False, True],
        }
    )
    windows = sw.KeyedWindows(
        on="t",
        windows=5,
        aggs={"c": sw.collect("x")},
        emit=emit,
        late=9,
        then_by="o",
        deletes="gone",
    )
    for batch in batches_of(table, cuts):
        windows.ingest(batch)
    windows.collect()
    windows.ingest(pa.table({"t": [2], "o": [0], "x": ["c"], "gone": [False]}))
    windows.advance(2)
    assert windows.collect()["c_5"].to_pylist()[-1] == ["b", "c"]


@pytest.mark.parametrize(
    ("cuts", "left"), [((), 5), ((2,), 5), ((1, 2), 3), ((1,), 3)], ids=str
)
def test_a_deletion_takes_the_first_row_to_arrive(
    page: int, cuts: tuple[int, ...], left: int
) -> None:
    """It is a row of the earliest batch, in it the one of least `arrival=`."""
    table = pa.table({"t": [1, 1, 1], "a": [5, 3, 9], "gone": [False, False, True]})
    windows = sw.KeyedWindows(
        on="t",
        windows=5,
        aggs={"c": sw.collect("a")},
        emit="arrival",
        arrival="a",
        late=9,
        deletes="gone",
    )
    for batch in batches_of(table, cuts):
        windows.ingest(batch)
    windows.collect()
    windows.ingest(pa.table({"t": [2], "a": [0], "gone": [False]}))
    assert windows.collect()["c_5"].to_pylist() == [[left, 0]]


@pytest.mark.parametrize("windows", [[10], [10, sw.rows(2)]], ids=["time", "rows"])
def test_then_by_orders_rows_of_all_batches(windows: list[object]) -> None:
    """The order holds with all other options, `rows(n)` among them."""
    kw = sw.KeyedWindows(
        on="t",
        windows=windows,
        aggs={"c": sw.collect("o")},
        emit="arrival",
        then_by="o",
        late=9,
    )
    for order in (2, 1, 3):
        kw.ingest(pa.table({"t": [1], "o": [order]}))
    assert kw.collect()["c_10"].to_pylist() == [[2], [1, 2], [1, 2, 3]]


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_rows_are_the_latest_by_then_by(cuts: tuple[int, ...]) -> None:
    """The last row is the one with the largest value, in any batch."""
    table = pa.table({"t": [1, 1, 1], "o": [3, 2, 1]})
    kw = sw.KeyedWindows(
        on="t",
        windows=sw.rows(1),
        aggs={"c": sw.last("o")},
        emit="arrival",
        then_by="o",
        late=9,
    )
    for batch in batches_of(table, cuts):
        kw.ingest(batch)
    assert kw.collect()["c_1rows"].to_pylist() == [3, 3, 3]


@pytest.mark.parametrize("reads", ["x", "a"])
def test_order_of_arrival_goes_by_batch_before_the_column(
    page: int, reads: str
) -> None:
    """The column of arrival may be an aggregated column or not."""
    kw = sw.KeyedWindows(
        on="t",
        windows=10,
        aggs={"x": sw.collect("x"), "other": sw.max(reads)},
        emit="arrival",
        arrival="a",
        late=9,
    )
    for batch, arrival in (([1, 2], [9, 8]), ([3, 4], [7, 6]), ([5], [1])):
        times = [1] * len(batch)
        kw.ingest(pa.table({"t": times, "x": batch, "a": arrival}))
    assert kw.collect()["x_10"].to_pylist()[-1] == [2, 1, 4, 3, 5]


@pytest.mark.parametrize("aggs", [FOLDED, {"all": sw.collect("id")}], ids=len)
@pytest.mark.parametrize("then_by", [None, "word"])
@pytest.mark.parametrize("by", [["key"], []], ids=len)
def test_order_of_arrival_goes_by_several_columns(
    page: int, by: list[str], then_by: str | None, aggs: dict[str, object]
) -> None:
    """It is the batch, then the columns in turn; `then_by` orders those together."""
    stream = Stream(SEED + page)
    spec: dict[str, object] = {"on": "t", "by": by, "aggs": aggs}
    spec["windows"] = [7, 60] if "all" not in aggs else [7, sw.rows(4)]
    kw = sw.KeyedWindows(
        **spec, arrival=["came", "t"], then_by=then_by, emit="arrival", late=10**6
    )
    batches = []
    for at in range(4):
        batch = stream.batch()
        kw.ingest(batch)
        number = pa.repeat(pa.scalar(at), len(batch))
        batches.append(batch.append_column("batch", number))
    table = pa.concat_tables(batches)
    if then_by:
        table = table.take(pc.sort_indices(table[then_by]))
    order = ("batch", "came", "t")
    expected = sw.rolling(table, at=table, **spec, arrival=order)
    assert_same(kw.collect(), expected.drop_columns("batch"), ["id"])


def test_nulls_of_then_by_come_last() -> None:
    """Nulls follow NaN, which follows all numbers."""
    table = pa.table(
        {"t": [1] * 4, "o": [2.0, None, float("nan"), 1.0], "id": range(4)}
    )
    kw = sw.KeyedWindows(on="t", windows=5, aggs={"ids": sw.collect("id")}, then_by="o")
    for batch in batches_of(table, (1, 3)):
        kw.ingest(batch)
    kw.advance()
    assert kw.collect()["ids_5"].to_pylist() == [[3, 0, 2, 1]] * 4


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.float16()], ids=str)
def test_then_by_needs_a_column_that_sorts(kind: pa.DataType) -> None:
    """The error is raised before any row is ingested."""
    kw = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()}, then_by="o")
    rows = pa.table({"t": [1], "o": pa.nulls(1, kind)})
    with pytest.raises(sw.SpecError, match="then_by='o' names a column of"):
        kw.ingest(rows)
