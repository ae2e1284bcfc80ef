"""Rolling over batches equals rolling over the whole table."""

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from random_tables import (
    AGGS,
    BY,
    in_pieces,
    random_table,
    same,
    sorted_by,
    with_batches,
)
from tables_oracle import SIDES

import slidewise as sw
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import AFTER, BEFORE, OWN, Order, rolling_batches
from slidewise.table.rolling import rolling_spec

CLOSED = ["right", "left", "both", "neither"]


@pytest.mark.parametrize(("closed", "ties"), SIDES)
@pytest.mark.parametrize("seed", range(3))
def test_every_kind_of_window_over_random_batches(
    closed: str, ties: str, seed: int
) -> None:
    rng = random.Random(f"{closed} {ties} {seed}")
    for by in BY:
        table = random_table(rng, rng.choice([1, 7, 120]), keys=3, span=60)
        windows: list[Any] = [1, rng.randrange(2, 40), 1000]
        if closed == "right":
            windows += [sw.rows(1), sw.rows(rng.randrange(2, 30))]
        spec = Spec.make(
            on="t", by=by, windows=windows, aggs=AGGS, closed=closed, ties=ties
        )
        rows = sorted_by(table, spec)
        pieces = in_pieces(rng, rows, rng.choice([1, 5, 50]))
        order = Order(min_rows=rng.choice([1, 10]))
        parts = list(rolling_batches(pieces, spec, table.schema, order))
        same(pa.concat_tables(parts), rolling_spec(table, spec))


@pytest.mark.parametrize("ties", ["peers", "rows"])
def test_windows_without_their_row(ties: str) -> None:
    rng = random.Random(ties)
    for by in BY:
        table = random_table(rng, 120, keys=3, span=60)
        windows: list[Any] = [1, 9, sw.rows(1), sw.rows(6)]
        spec = Spec.make(
            on="t", by=by, windows=windows, aggs=AGGS, ties=ties, exclude="self"
        )
        pieces = in_pieces(rng, sorted_by(table, spec), 5)
        parts = list(rolling_batches(pieces, spec, table.schema, Order(min_rows=1)))
        same(pa.concat_tables(parts), rolling_spec(table, spec))


@pytest.mark.parametrize("offset", [-25, -1, 1, 25])
@pytest.mark.parametrize("closed", CLOSED)
def test_windows_that_end_elsewhere(closed: str, offset: int) -> None:
    rng = random.Random(f"{closed} {offset}")
    for by in BY:
        table = random_table(rng, 120, keys=3, span=60)
        spec = Spec.make(
            on="t", by=by, windows=[1, 9, 30], aggs=AGGS, closed=closed, offset=offset
        )
        pieces = in_pieces(rng, sorted_by(table, spec), 9)
        parts = list(rolling_batches(pieces, spec, table.schema, Order(min_rows=1)))
        same(pa.concat_tables(parts), rolling_spec(table, spec))


@pytest.mark.parametrize("arrival", ["a", ("batch", "a")])
@pytest.mark.parametrize("seed", range(4))
def test_as_of_arrival(seed: int, arrival: Any) -> None:
    rng = random.Random(f"{seed} {arrival}")
    for by in BY:
        table = with_batches(rng, random_table(rng, 90, keys=3, span=40))
        spec = Spec.make(
            on="t", by=by, windows=[3, 30, sw.rows(4)], aggs=AGGS, arrival=arrival
        )
        pieces = in_pieces(rng, sorted_by(table, spec), 9)
        parts = list(rolling_batches(pieces, spec, table.schema, Order(min_rows=1)))
        same(pa.concat_tables(parts), rolling_spec(table, spec))


def in_time_pieces(table: pa.Table, cut: list[int], back: int, ahead: int) -> pa.Table:
    """Rows with their split and role, repeated for each split that reads them."""
    parts = []
    for piece, (start, end) in enumerate(pairwise(cut)):
        for lo, hi, role in (
            (start - back, start, BEFORE),
            (start, end, OWN),
            (end, end + ahead, AFTER),
        ):
            late = pc.greater_equal(table["t"], lo)
            some = table.filter(pc.and_(late, pc.less(table["t"], hi)))
            marks = {"piece": pa.scalar(piece, pa.int32()), "role": pa.scalar(role)}
            for name, mark in marks.items():
                some = some.append_column(name, pa.repeat(mark, len(some)))
            parts.append(some)
    return pa.concat_tables(parts)


@pytest.mark.parametrize("offset", [None, 9, -4, -31])
@pytest.mark.parametrize(
    ("closed", "arrival"),
    [
        *((closed, None) for closed in CLOSED),
        *(("right", "a"), ("left", "a")),
        *(("both", ("batch", "a")), ("neither", ("batch", "a"))),
    ],
)
def test_rows_that_are_seen_and_not_answered(
    closed: str, offset: Any, arrival: Any
) -> None:
    rng = random.Random(f"{closed} {offset} {arrival}")
    table = with_batches(rng, random_table(rng, 200, keys=2, span=100))
    options: dict[str, Any] = {"on": "t", "windows": [7, 20], "aggs": AGGS}
    options |= {"closed": closed, "offset": offset, "arrival": arrival}
    spec = Spec.make(by="k", **options)
    expected = rolling_spec(table, spec)
    shift = offset or 0
    cut = [0, 30, 31, 80, 1000]
    rows = in_time_pieces(table, cut, back=20 + shift, ahead=max(0, -shift))
    names = ("k", "piece", *(spec.arrivals or "t"), "row")
    rows = rows.sort_by([(name, "ascending") for name in names])
    cutting = spec.replace(by=("k", "piece"))
    for most in (1, 8, 300):
        order = Order(roles="role", min_rows=rng.choice([1, 20]))
        got = list(
            rolling_batches(in_pieces(rng, rows, most), cutting, rows.schema, order)
        )
        same(pa.concat_tables(got).drop_columns(["piece", "role"]), expected)


def test_keys_that_share_a_run() -> None:
    rng = random.Random(6)
    table = random_table(rng, 150, keys=4, span=50)
    run = pc.fill_null(pc.bit_wise_and(table["k"], 1), 7)
    table = table.append_column("run", run)
    spec = Spec.make(on="t", by="k", windows=[10, sw.rows(5)], aggs=AGGS)
    rows = table.sort_by([(name, "ascending") for name in ("run", "t", "row")])
    order = Order(runs=("run",), min_rows=1)
    got = list(rolling_batches(in_pieces(rng, rows, 7), spec, rows.schema, order))
    same(pa.concat_tables(got), rolling_spec(table, spec))


def test_only_the_longest_window_is_kept() -> None:
    count = 20_000
    table = pa.table({"t": range(count), "x": [1.0] * count, "row": range(count)})
    spec = Spec.make(on="t", windows=50, aggs={"s": sw.sum("x")})
    sizes = []
    for part in rolling_batches(
        table.to_batches(max_chunksize=100), spec, table.schema, Order(min_rows=1)
    ):
        sizes.append(part.num_rows)
    assert sum(sizes) == count
    assert max(sizes) <= 101


def test_history_overflows_quietly() -> None:
    big = 2**62
    table = pa.table({"t": [1, 2, 3, 4, 5], "x": [-big, -big, big, big, 1]})
    spec = Spec.make(on="t", windows=4, aggs={"s": sw.sum("x")})
    expected = rolling_spec(table, spec)["s_4"].to_pylist()
    for size in (1, 2, 3):
        batches = table.to_batches(max_chunksize=size)
        parts = rolling_batches(batches, spec, table.schema, Order(min_rows=1))
        assert pa.concat_tables(parts)["s_4"].to_pylist() == expected


def test_an_overflow_names_the_row() -> None:
    table = pa.table({"k": ["a"] * 4, "t": [1, 2, 3, 4], "x": [2**62] * 4})
    spec = Spec.make(on="t", by="k", windows=2, aggs={"s": sw.sum("x")})
    parts = rolling_batches(
        table.to_batches(max_chunksize=1), spec, table.schema, Order(min_rows=1)
    )
    with pytest.raises(
        sw.ResultOverflowError, match=r"row of k='a', t=2: 9223372036854"
    ):
        list(parts)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("t", [1, None], "'t' has no time in the row of k='b', t=None"),
        ("x", [1.0, float("nan")], "'x' is NaN in the row of k='b', t=2"),
    ],
)
def test_rows_that_are_refused(column: str, values: list[Any], message: str) -> None:
    columns = {"k": ["a", "b"], "t": [1, 2], "x": [1.0, 2.0], column: values}
    table = pa.table(columns)
    spec = Spec.make(on="t", by="k", windows=2, aggs={"s": sw.sum("x")}, nan="raise")
    with pytest.raises(sw.SpecError, match=message):
        list(rolling_batches(table.to_batches(max_chunksize=1), spec, table.schema))
