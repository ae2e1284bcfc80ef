"""The laws of built-in aggregations, as far as answers show them.

`crates/tests/tests/every/laws.rs` tests partials; there decays and areas are left out.
"""

import random
from typing import Any

import pyarrow as pa
import pytest
from definitions import AREAS, DECAYED
from seeds import SEED
from test_catalogue import AGGS, a_row, close, numbers_for

import slidewise as sw

COLUMNS = {"x": pa.int64(), "y": pa.int64(), "text": pa.string(), "flag": pa.bool_()}
ORDERED = [name for name, agg in AGGS.items() if not agg.commutes]
COMMUTING = [name for name, agg in AGGS.items() if agg.commutes]


def rows_of(draw: random.Random, agg: sw.Aggregation, count: int) -> list[Any]:
    number = numbers_for(agg, draw, floats=False)
    return [{"t": draw.randrange(6), **a_row(draw, number)} for _ in range(count)]


def answers(rows: list[Any], agg: sw.Aggregation, at: pa.Table) -> list[Any]:
    table = pa.Table.from_pylist(rows, pa.schema({"t": pa.int64(), **COLUMNS}))
    found = sw.rolling(table, on="t", windows=4, aggs={"a": agg}, at=at)
    values: list[Any] = found["a_4"].to_pylist()
    return values


POINTS = pa.table({"t": range(12)})


@pytest.mark.parametrize("name", COMMUTING)
def test_rows_of_equal_time_commute_if_the_aggregation_does(name: str) -> None:
    draw, agg = random.Random(f"{SEED} {name}"), AGGS[name]
    for count in (5, 40):
        rows = rows_of(draw, agg, count)
        wanted = answers(rows, agg, POINTS)
        for _ in range(3):
            draw.shuffle(rows)
            found = answers(rows, agg, POINTS)
            assert all(map(close, found, wanted)), (found, wanted)


@pytest.mark.parametrize("name", ORDERED)
def test_rows_of_equal_time_keep_their_order_if_it_counts(name: str) -> None:
    """Equal batches of one time, cut elsewhere, are folded in another grouping."""
    draw, agg = random.Random(f"{SEED} {name}"), AGGS[name]
    rows = rows_of(draw, agg, 40)
    wanted = answers(rows, agg, POINTS)
    windows = sw.KeyedWindows(
        on="t", windows=4, aggs={"a": agg}, emit="none", keep=100, late=50
    )
    schema = pa.schema({"t": pa.int64(), **COLUMNS})
    first = 0
    while first < len(rows):
        last = first + draw.choice([1, 1, 2, 9])
        windows.ingest(pa.Table.from_pylist(rows[first:last], schema))
        first = last
    found = windows.query_many(POINTS, at="t")["a_4"].to_pylist()
    assert all(map(close, found, wanted)), (found, wanted)


def test_decays_and_areas_are_among_them() -> None:
    kinds = {agg.kind for agg in AGGS.values()}
    assert {*DECAYED, *AREAS} <= kinds
    assert len(ORDERED) > 20 < len(COMMUTING)
