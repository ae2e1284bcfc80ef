"""Hopping over batches equals hopping over the whole table."""

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from random_tables import AGGS, BY, in_pieces, random_table, same, sorted_by

import slidewise as sw
from slidewise.spec.spec import Spec
from slidewise.table.batched_hopping import hopping_batches
from slidewise.table.batched_rolling import Order
from slidewise.table.hopping import hopping_spec


def expect_same(table: pa.Table, spec: Spec, rng: random.Random) -> None:
    expected = hopping_spec(table, spec)
    shapes = [(1, 1), (9, 1), (9, 20), (500, 1)]
    for most, least in rng.sample(shapes, 2):
        pieces = in_pieces(rng, sorted_by(table, spec), most)
        parts = list(hopping_batches(pieces, spec, table.schema, Order(min_rows=least)))
        got = pa.concat_tables(parts) if parts else expected.slice(0, 0)
        same(numbered(got, spec), numbered(expected, spec))


def numbered(windows: pa.Table, spec: Spec) -> pa.Table:
    names = [*spec.by, "window_end"]
    rows = windows.sort_by([(name, "ascending") for name in names])
    return rows.append_column("row", pa.array(range(len(rows)), pa.int64()))


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize(
    ("window", "every", "offset"),
    [(10, 10, 0), (10, 3, 1), (12, 1, 0), (3, 10, -4), (1, 40, 5), (200, 30, 0)],
)
def test_hops_over_random_batches(
    window: int, every: int, offset: int, empty: bool
) -> None:
    rng = random.Random(f"{window} {every} {empty}")
    for by in BY:
        for span in (60, 900):
            table = random_table(rng, rng.choice([1, 9, 90]), keys=3, span=span)
            spec = Spec.make_hopping(
                on="t",
                by=by,
                window=window,
                every=every,
                offset=offset,
                empty=empty,
                aggs=AGGS,
            )
            expect_same(table, spec, rng)


@pytest.mark.parametrize(("window", "every"), [(10, 10), (10, 3), (3, 10), (200, 30)])
def test_windows_of_pieces_of_time(window: int, every: int) -> None:
    rng = random.Random(f"{window} {every}")
    table = random_table(rng, 150, keys=3, span=200)
    given: dict[str, Any] = {"on": "t", "window": window, "every": every, "aggs": AGGS}
    spec = Spec.make_hopping(by="k", **given)
    parts = []
    for piece, (start, end) in enumerate(pairwise([None, 40, 41, 90, None])):
        lo = -1 if start is None else start - window
        seen = pc.and_(
            pc.greater(table["t"], lo), pc.less(table["t"], 999 if end is None else end)
        )
        some = table.filter(seen)
        for name, mark in (("piece", piece), ("after", start), ("until", end)):
            column = pa.repeat(pa.scalar(mark, pa.int64()), len(some))
            some = some.append_column(name, column)
        parts.append(some)
    cutting = spec.replace(by=("k", "piece"))
    rows = sorted_by(pa.concat_tables(parts), cutting)
    expected = hopping_spec(table, spec)
    for most, least in ((1, 1), (9, 20), (500, 1)):
        order = Order(within=("after", "until"), min_rows=least)
        pieces = in_pieces(rng, rows, most)
        got = pa.concat_tables(hopping_batches(pieces, cutting, rows.schema, order))
        same(
            numbered(got.drop_columns(["piece"]), spec),
            numbered(expected, spec),
        )


@pytest.mark.parametrize(
    "given", [{"window": 12, "every": 5}, {"window": sw.session(9)}]
)
def test_keys_that_share_a_run(given: dict[str, Any]) -> None:
    rng = random.Random(6)
    table = random_table(rng, 150, keys=4, span=300)
    run = pc.fill_null(pc.bit_wise_and(table["k"], 1), 7)
    table = table.append_column("run", run)
    spec = Spec.make_hopping(on="t", by="k", aggs=AGGS, **given)
    rows = table.sort_by([(name, "ascending") for name in ("run", "t", "row")])
    expected = numbered(hopping_spec(table, spec), spec)
    for most in (1, 7, 40):
        order = Order(runs=("run",), min_rows=1)
        got = list(
            hopping_batches(in_pieces(rng, rows, most), spec, rows.schema, order)
        )
        same(numbered(pa.concat_tables(got), spec), expected)


@pytest.mark.parametrize("gap", [1, 5, 30, 2**62])
def test_sessions_over_random_batches(gap: int) -> None:
    rng = random.Random(gap)
    for by in BY:
        table = random_table(rng, 90, keys=3, span=300)
        session = sw.session(gap)
        spec = Spec.make_hopping(on="t", by=by, window=session, aggs=AGGS)
        expect_same(table, spec, rng)


def test_empty_tables_give_empty_results() -> None:
    schema = pa.schema({"t": pa.int64()})
    spec = Spec.make_hopping(on="t", window=5, aggs={"n": sw.count()})
    assert list(hopping_batches([], spec, schema)) == []
    assert list(hopping_batches(schema.empty_table().to_batches(), spec, schema)) == []


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8()], ids=str)
def test_windows_outgrow_a_narrow_column(kind: pa.DataType) -> None:
    rows: Any = pa.table({"t": pa.array([1, 127], kind)})
    spec = Spec.make_hopping(on="t", window=5, every=4, aggs={"n": sw.count()})
    parts = list(hopping_batches(rows.to_batches(), spec, rows.schema))
    assert pa.concat_tables(parts).to_pydict() == {
        "window_start": [0, 124],
        "window_end": [5, 129],
        "n": [1, 1],
    }


def test_a_window_beyond_int64_is_named_by_its_row() -> None:
    """Batches have no row numbers that the caller knows."""
    spec = Spec.make_hopping(on="t", by="k", window=5, aggs={"n": sw.count()})
    rows = pa.table({"t": [1, 2**63 - 1], "k": ["a", "b"]})
    message = "the window of '5' around the row of k='b', t=9223372036854775807 reaches"
    with pytest.raises(sw.SpecError, match=message):
        list(hopping_batches(rows.to_batches(max_chunksize=1), spec, rows.schema))
