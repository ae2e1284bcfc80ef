"""Random tables, random batches of them, and a comparison of tables."""

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import slidewise as sw
from slidewise.spec.spec import Spec

# Both answers are within 2⁻⁵⁰ · Σ|x| / |Σx| of the true one; for these values Σ|x| is
# about as large as |Σx|.
NEAR = 2.0**-48

AGGS = {
    "n": sw.count(),
    "have": sw.count("i"),
    "sum": sw.sum("i"),
    "total": sw.sum("x"),
    "max": sw.max("x"),
    "dev": sw.stddev("x"),
    "first": sw.first("s"),
    "last": sw.last("i"),
    "all": sw.collect("i"),
    "text": sw.concat("s"),
    "who": sw.arg_max("s", by="x"),
    "mid": sw.median("i"),
    "kinds": sw.count_distinct("s"),
    "some": sw.sum("i", where="w"),
}


def random_table(rng: random.Random, rows: int, *, keys: int, span: int) -> pa.Table:
    def column(kind: pa.DataType, one: Callable[[], Any], missing: bool) -> pa.Array:
        return pa.array(
            [None if missing and rng.random() < 0.2 else one() for _ in range(rows)],
            kind,
        )

    return pa.table(
        {
            "k": column(pa.int32(), lambda: rng.randrange(keys), True),
            "g": column(pa.string(), lambda: rng.choice("ab"), True),
            "t": column(pa.int64(), lambda: rng.randrange(span), False),
            "a": column(pa.int64(), lambda: rng.randrange(span * 2), False),
            "i": column(pa.int64(), lambda: rng.randrange(-9, 9), True),
            "x": column(pa.float64(), lambda: rng.choice([0.5, -3.25, 7.0, 1e9]), True),
            "s": column(pa.string(), lambda: rng.choice(["", "p", "qq"]), True),
            "w": column(pa.bool_(), lambda: rng.random() < 0.5, True),
            "row": pa.array(range(rows), pa.int64()),
        }
    )


def with_batches(rng: random.Random, table: pa.Table) -> pa.Table:
    """The table with a column `batch` of few values, to arrive by before `a`."""
    batches = [rng.randrange(4) for _ in range(len(table))]
    return table.append_column("batch", pa.array(batches, pa.int8()))


def in_pieces(rng: random.Random, table: pa.Table, most: int) -> list[pa.RecordBatch]:
    pieces, start = [], 0
    while start < table.num_rows:
        size = rng.randrange(1, most + 1)
        pieces += table.slice(start, size).combine_chunks().to_batches()
        start += size
    return pieces


def same(got: pa.Table, expected: pa.Table) -> None:
    assert got.schema.names == expected.schema.names
    assert got.schema.types == expected.schema.types
    got, expected = got.sort_by("row"), expected.sort_by("row")
    for name in expected.column_names:
        ours, theirs = got[name].combine_chunks(), expected[name].combine_chunks()
        if pa.types.is_floating(ours.type):
            assert ours.is_null().equals(theirs.is_null()), name
            apart = pc.abs(pc.subtract(ours, theirs))
            largest = pc.max_element_wise(pc.abs(ours), pc.abs(theirs))
            near = pc.less_equal(apart, pc.multiply(largest, NEAR))
            assert pc.all(near).as_py() in (True, None), name
        else:
            assert ours.equals(theirs), name


def sorted_by(table: pa.Table, spec: Spec) -> pa.Table:
    names = [*spec.by, *(spec.arrivals or (spec.on,)), "row"]
    return table.sort_by([(name, "ascending") for name in names])


BY: list[Any] = [None, "k", ["k", "g"]]
