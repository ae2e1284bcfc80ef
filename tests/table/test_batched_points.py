"""Query points among batches of rows equal those of a whole table."""

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from random_tables import AGGS, BY, in_pieces, random_table, same, with_batches
from seeds import SEED

import slidewise as sw
from slidewise.spec.spec import Spec, derive
from slidewise.table.asof import PointColumns
from slidewise.table.batched_points import PointRows, point_batches
from slidewise.table.batched_rolling import Order
from slidewise.table.rolling import rolling_spec

POINT = "point"


def labels_of(rng: random.Random, count: int) -> pa.Table:
    """Query points, some of keys and times that rows lack, and some of them equal."""
    table = with_batches(rng, random_table(rng, count, keys=4, span=70))
    names = ["k", "g", "t", "a", "batch", "row"]
    return table.select(names).rename_columns(["k", "g", "when", "a", "batch", "row"])


def mixed(
    rng: random.Random, rows: pa.Table, points: pa.Table, spec: Spec, keys: list[str]
) -> pa.Table:
    """Both in one table, sorted; among rows of its time a query point is anywhere.

    Its column `run` is equal for some keys, and may be one of the `keys` of the order.
    """
    kind = pa.struct([(f"_{at}", points.schema[at].type) for at in range(6)])
    arrays = [one.combine_chunks() for one in points.columns]
    structs = pa.StructArray.from_arrays(arrays, fields=[*kind])
    rows = rows.append_column(POINT, pa.nulls(len(rows), kind))
    placed = points.rename_columns({"when": "t"}).append_column(POINT, structs)
    table = pa.concat_tables(
        [rows, placed.drop_columns("row")], promote_options="default"
    )
    row = pc.coalesce(pc.cast(table["row"], pa.float64()), pa.scalar(0.0))
    places = [rng.uniform(-1, len(rows)) for _ in range(len(points))]
    place = pa.array([*row.to_pylist()[: len(rows)], *places])
    run = pc.fill_null(pc.bit_wise_and(table["k"], 1), 7)
    table = table.append_column("run", run)
    names = [*keys, *(spec.arrivals or (spec.on,)), "place"]
    order = [(name, "ascending") for name in names]
    return table.append_column("place", place).sort_by(order)


CASES: list[dict[str, Any]] = [
    {"windows": [1, 9, 1000, sw.unbounded(), sw.rows(1), sw.rows(7)]},
    {"windows": [1, 9, sw.rows(3)], "ties": "rows", "nan": "skip"},
    {"windows": [5, 30], "closed": "left", "min_rows": 2, "fill": {"n": 0}},
    {"windows": [5, 30], "closed": "neither", "offset": 4},
    {"windows": [5, 30], "closed": "both", "offset": -20},
    {"windows": [5, sw.rows(4)], "exclude": "self"},
    {"windows": [3, 30, sw.rows(4)], "arrival": "a"},
    {"windows": [3, 30], "arrival": ("batch", "a"), "offset": -9},
    {"windows": [sw.landmark("w"), 6]},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("keys", [[], ["run"], ["k", "run"]])
def test_random_points_among_random_batches(
    case: dict[str, Any], keys: list[str]
) -> None:
    rng = random.Random(f"{SEED} {case} {keys}")
    for by in BY if not keys else ["k"]:
        table = with_batches(rng, random_table(rng, 120, keys=3, span=60))
        if "landmark" in str(case):
            table = table.set_column(7, "w", pc.fill_null(table["w"], False))
        spec = Spec.make(on="t", by=by, aggs=AGGS, **case)
        if keys == ["run"] and spec.arrivals:
            continue
        points = labels_of(rng, rng.choice([0, 1, 90]))
        columns = PointColumns.of(spec, "when")
        expected = rolling_spec(table, spec, points, [columns])
        rows = mixed(rng, table, points, spec, keys or [*spec.by])
        if len(keys) > 1:  # a key that the query points do not have themselves
            spec, columns = derive(spec, by=tuple(keys)), columns._replace(by=keys)
        where = PointRows(POINT, tuple(points.column_names), columns)
        pieces = in_pieces(rng, rows, rng.choice([1, 5, 50]))
        order = Order(tuple(keys) or None, min_rows=rng.choice([1, 10]))
        checked = where.checked(pieces, spec)
        parts = list(point_batches(checked, spec, rows.schema, where, order))
        assert parts or not len(points)
        if parts:
            same(pa.concat_tables(parts), expected)


def plain(times: list[Any], points: list[Any]) -> tuple[pa.Table, PointRows]:
    """Rows with an integer x of 1 << 62, and query points, which have times alone."""
    kind = pa.struct([("0", pa.int64())])
    rows = pa.table({"k": ["a"] * len(times), "t": pa.array(times, pa.int64())})
    rows = rows.append_column("x", pa.array([1 << 62] * len(times)))
    rows = rows.append_column(POINT, pa.array(points, kind))
    return rows, PointRows(POINT, ("when",), PointColumns("when", [], []))


def test_only_rows_within_reach_of_later_points_are_held() -> None:
    from slidewise.table import batched_points

    count = 3_000
    points = [{"0": at} if at % 3 == 0 else None for at in range(count)]
    rows, where = plain([*range(count)], points)
    spec = Spec.make(on="t", windows=50, aggs={"n": sw.count()})
    run = batched_points._Points(spec, rows.schema, where, Order(min_rows=1))
    sizes, answered = [], 0
    for batch in rows.to_batches(max_chunksize=100):
        run.add(batch)
        if run.enough:
            answered += sum(len(part) for part in run.emit_ready())
            sizes.append(run._held)
    answered += sum(len(part) for part in run.emit_ready(done=True))
    assert answered == count // 3
    assert sizes
    assert max(sizes) <= 52


def test_points_that_are_refused_are_named() -> None:
    spec = Spec.make(on="t", windows=2, aggs={"s": sw.sum("x")})
    rows, where = plain([1, 2, 2], [None, None, {"0": None}])
    with pytest.raises(
        sw.SpecError, match=r"'when' of at= has no time in the row of t=2: drop the row"
    ):
        list(where.checked(rows.to_batches(), spec))
    rows, where = plain([1, 2, 2], [None, None, {"0": 2}])
    parts = point_batches(rows.to_batches(), spec, rows.schema, where)
    with pytest.raises(sw.ResultOverflowError, match=r"of the row of at= of t=2: "):
        list(parts)
