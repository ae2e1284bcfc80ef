"""Cells of `resolution=`: rows that the watermark has passed are kept as partials."""

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.keyed import cells, row_log
from slidewise.keyed.cell_grid import CellGrid
from slidewise.keyed.cell_sizes import folded_width
from slidewise.testing import check_stream

AGGS = {
    "c": sw.count(),
    "s": sw.sum("x"),
    "f": sw.sum("y"),
    "low": sw.min("x"),
    "first": sw.first("n"),
    "last": sw.last("y"),
    "sd": sw.stddev("x"),
    "m": sw.mean("y"),
    "d": sw.approx_count_distinct("x"),
}
GRIDS = [(5, 10, 0), (20, 7, 3), (30, 1, 0), (1, 25, -7), (10, 10, 0)]
SIDES = ["right", "left", "both", "neither"]


@pytest.fixture
def folds(monkeypatch):
    """Each cell is folded at once, into small pages; gives the bounds of the folds."""
    bounds, fold = [], row_log.RowLog.fold

    def folding(log, until, entries):
        bounds.append(until)
        fold(log, until, entries)

    monkeypatch.setattr(row_log.RowLog, "fold", folding)
    monkeypatch.setattr(row_log, "_MIN_FOLDED", 0)
    monkeypatch.setattr(row_log, "_SHARE", 1 << 30)
    monkeypatch.setattr(row_log, "SEGMENT", 1 << 11)
    monkeypatch.setattr(cells, "_PAGE", 300)
    return bounds


def made(draw, count, span):
    return pa.table(
        {
            "t": [draw.randrange(-span, span) for _ in range(count)],
            "k": [draw.choice("ab") for _ in range(count)],
            "x": pa.array([draw.choice([None, *range(9)]) for _ in range(count)]),
            "y": pa.array(
                [draw.choice([None, 0.5, 1.25]) for _ in range(count)], pa.float64()
            ),
            "n": range(count),
        }
    )


def window_of(given):
    length, cell, offset = given
    return sw.trailing(length, resolution=cell, offset=offset or None)


def ordered(count, key="a", step=1):
    times = [n * step for n in range(count)]
    return pa.table({"t": times, "k": [key] * count, "x": range(count)})


def shard_of(stream):
    return stream._state.processor.shard


@pytest.mark.parametrize("emit", ["final", "arrival", "update", "change", "none"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("folds")  # in most cases some cells are folded
def test_streams_equal_tables(emit, seed):
    draw = random.Random(f"{SEED} cells {emit} {seed}")
    table = made(draw, draw.choice([40, 100]), 100)
    windows = [window_of(draw.choice(GRIDS)), *draw.choice([[], [], [12]])]
    windows += draw.choice([[], [window_of(draw.choice(GRIDS))]])
    spec = sw.Spec(
        on="t",
        by=draw.choice(["k", None]),
        windows=[*dict.fromkeys(windows)],
        aggs=draw.choice([AGGS, {"s": sw.sum("x")}, {"c": sw.count()}]),
        closed=draw.choice(SIDES),
    )
    check_stream(spec, table, late=draw.choice([0, 7]), emit=emit, runs=2, seed=seed)


@pytest.mark.parametrize("late_rows", ["flag", "correct"])
@pytest.mark.parametrize("seed", range(3))
def test_late_rows_and_corrections(late_rows, seed, folds):
    draw = random.Random(f"{SEED} {late_rows} {seed}")
    table, window = made(draw, 100, 60), window_of(draw.choice(GRIDS))
    stream = sw.KeyedWindows(
        on="t", by="k", windows=window, aggs=AGGS, late_rows=late_rows
    )
    last, accepted = {}, []
    for start in range(0, 100, 10):
        batch = table.slice(start, 10)
        stream.ingest(batch)
        stream.advance(start - 60)
        for row in stream.collect().to_pylist():
            if not row.get("_late"):
                last[row["n"]] = row
                accepted.append(row["n"])
    stream.advance(60)
    last |= {row["n"]: row for row in stream.collect().to_pylist()}
    given = {"on": "t", "by": "k", "windows": window, "aggs": AGGS}
    held = table.take(pa.array(sorted(last)))
    expected = sw.rolling(held, **given).to_pylist()
    assert len(expected) > 30
    names = [name for name in expected[0] if not name.startswith(("sd", "f_", "m_"))]
    for row in expected:
        assert [last[row["n"]][name] for name in names] == [row[name] for name in names]
    assert bool(folds) == (late_rows == "flag")


@pytest.mark.usefixtures("folds")
def test_snapshots_and_changes_have_cells():
    given = {"on": "t", "by": "k", "windows": sw.trailing(300, resolution=100)}
    given |= {"aggs": {"s": sw.sum("x"), "sd": sw.stddev("x"), "c": sw.count()}}
    leader = sw.KeyedWindows(**given)
    follower, rows, sizes = None, [], []
    for step in range(6):
        batch = pa.concat_tables([ordered(200, key) for key in "ab"])
        times = pa.array([t + 200 * step for t in range(200)] * 2)
        batch = batch.set_column(0, "t", times)
        rows.append(batch)
        leader.ingest(batch)
        leader.advance()
        leader.collect()
        if follower is None:
            follower = sw.KeyedWindows.from_bytes(leader.to_bytes())
        else:
            follower.apply(leader.changes())
        leader.check()
        follower.check()
        blob = leader.to_bytes()
        assert follower.to_bytes() == blob
        sizes.append(len(blob))
        opened = sw.KeyedWindows.from_bytes(blob)
        at = pa.table({"t": [200 * step + n for n in (199, 220)] * 2, "k": [*"aabb"]})
        expected = sw.rolling(pa.concat_tables(rows), **given, at=at)
        for one in (leader, follower, opened):
            found = one.query_many(at, at="t")
            for name in ("s", "c"):
                column = f"{name}_trailing_300_100"
                assert found[column] == expected[column]
            assert found["sd_trailing_300_100"].to_pylist() == pytest.approx(
                expected["sd_trailing_300_100"].to_pylist()
            )
    log = shard_of(leader).log
    assert log.folded == 1100
    assert len(log.cells) <= 2 * 7
    assert leader.keys()["k"].to_pylist() == ["a", "b"]
    # Rows of the last cell remain, and no more bytes than before.
    assert len(log) <= 2 * 200
    assert sizes[-1] < 1.3 * sizes[1]


@pytest.mark.usefixtures("folds")
@pytest.mark.parametrize(("closed", "edge"), [("right", 49), ("left", 50)])
def test_a_query_within_a_folded_cell_is_refused(closed, edge):
    window = sw.trailing(30, resolution=10, offset=-1 if closed == "right" else 0)
    given = {"on": "t", "by": "k", "windows": [window], "closed": closed}
    stream = sw.KeyedWindows(**given, aggs={"c": sw.count()}, keep=90)
    stream.ingest(ordered(100))
    stream.advance(63)
    column = "c_trailing_30_10"
    for at in (edge, edge + 10, 63, 65, 99):
        table = pa.table({"t": [at], "k": ["a"]})
        expected = sw.rolling(ordered(100), **given, aggs={"c": sw.count()}, at=table)
        assert stream.query("a", at=at) == {column: expected[column][0].as_py()}
        assert stream.query_many(table, at="t")[column] == expected[column]
    message = rf"at {edge + 3} has a part of a cell.*{edge} or {edge + 10}, where"
    with pytest.raises(sw.SpecError, match=message):
        stream.query("a", at=edge + 3)
    with pytest.raises(sw.SpecError, match=message):
        stream.query_many({"k": ["a"]}, at=edge + 3)
    with pytest.raises(sw.SpecError, match="has a part of a cell"):
        stream.query_many(pa.table({"t": [99, edge + 3], "k": ["a", "a"]}), at="t")


@pytest.mark.usefixtures("folds")
def test_a_window_without_a_grid_begins_at_a_row():
    windows = [15, sw.trailing(40, resolution=10)]
    given = {"on": "t", "by": "k", "windows": windows, "aggs": {"c": sw.count()}}
    stream = sw.KeyedWindows(**given)
    stream.ingest(ordered(100))
    stream.advance(83)
    assert shard_of(stream).log.folded == 60  # 83 - 16 is within (60, 70]
    assert stream.query("a", at=83) == {"c_15": 15, "c_trailing_40_10": 43}
    assert stream.query("a", at=83, windows=20) == {"c_20": 20}
    with pytest.raises(sw.SpecError, match=r"'30' at 83 has a part.*ask for 90 or lat"):
        stream.query("a", at=83, windows=30)
    assert stream.query("a", at=90, windows=30) == {"c_30": 30}


@pytest.mark.usefixtures("folds")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"late_rows": "correct"}, "late_rows='correct'"),
        ({"then_by": "x"}, "then_by="),
        ({"ties": "rows"}, "ties='rows'"),
        ({"unique_by": "x"}, "unique_by="),
        ({"exclude": "self"}, "exclude="),
        (
            {"windows": [sw.trailing(9, resolution=3), sw.rows(3)]},
            "results that are not folds",
        ),
        ({"aggs": {"c": sw.count(), "m": sw.median("x", windows=9)}}, "results that"),
    ],
)
def test_rows_are_kept_where_they_are_needed(options, reason):
    given = {"on": "t", "by": "k", "windows": [sw.trailing(9, resolution=3), 9]}
    given |= {"aggs": {"c": sw.count()}} | options
    stream = sw.KeyedWindows(**given)
    stream.ingest(ordered(100))
    stream.advance(99)
    assert shard_of(stream).log.folded is None
    assert f"cells: their rows are kept, because of {reason}" in stream.explain()


@pytest.mark.usefixtures("folds")
def test_explain_states_the_bytes():
    window = sw.trailing(50, resolution=10)
    given = {"on": "t", "windows": window, "aggs": {"s": sw.sum("x")}}
    stream = sw.KeyedWindows(**given)
    stream.ingest(ordered(100))
    stream.advance(95)
    text = " ".join(stream.explain().split())
    assert "cells: 6 partials of cells that the watermark has passed, in" in text
    assert "of the log, and 9 rows in" in text
    assert "key with resolution=: up to 7 cells in its windows, of about 21 by" in text
    assert "21 bytes: 147 B per key without it: 16 bytes for each row, which" in text
    assert "which is more from 10 rows on" in text


@pytest.mark.parametrize("agg", [sw.sum("x"), sw.stddev("x"), sw.min("y")])
def test_the_stated_bytes_of_a_cell_are_those_of_the_log(agg, folds):
    given = {"on": "t", "by": "k", "windows": sw.trailing(1000, resolution=100)}
    stream = sw.KeyedWindows(**given, aggs={"a": agg}, emit="none")
    for start in range(0, 2000, 500):
        ticks = [start + n for n in range(500)] * 2
        columns = {"t": ticks, "k": [1] * 500 + [2] * 500, "x": ticks}
        stream.ingest(columns | {"y": [0.1 * t for t in ticks]})
        stream.advance()
    log = shard_of(stream).log
    width = folded_width(stream._state.processor.query, 100)
    assert len(folds) > 1
    assert len(log.cells) >= 20
    assert width.fixed <= log.cells.nbytes / len(log.cells) < width.fixed + 8


def test_the_bytes_of_a_cell_of_a_sketch_grow_with_its_rows():
    given = {"on": "t", "windows": sw.trailing(1000, resolution=100)}
    stream = sw.KeyedWindows(**given, aggs={"d": sw.approx_count_distinct("x")})
    stream.ingest({"t": [1], "x": ["a"]})
    text = " ".join(stream.explain().split())
    assert "of about 542 bytes (4,118 of 1,024 rows): 6.5 kB per key" in text
    assert "12 bytes and its text for each row" in text


@pytest.mark.parametrize(
    ("kind", "resolution", "agg"),
    [
        (pa.date32(), "2d", sw.max("t")),
        (pa.date64(), "2d", sw.min("t")),
        (pa.date64(), "1d", sw.max_gap()),
        (pa.int32(), 1, sw.max("t")),
        (pa.timestamp("ns", "UTC"), "1h", sw.decayed_sum("x", half_life="1d")),
    ],
)
def test_the_bytes_of_a_cell_of_any_times(kind, resolution, agg):
    length = 9 if kind == pa.int32() else "9d"
    window = sw.trailing(length, resolution=resolution)
    stream = sw.KeyedWindows(on="t", by="k", windows=window, aggs={"a": agg})
    day = pa.array([1], pa.int32())
    times = day.cast(kind) if kind == pa.int32() else day.cast(pa.date32()).cast(kind)
    columns = [times, [None], [0.5]]
    stream.ingest(pa.table(dict(zip("tkx", columns, strict=True))))
    assert "per key with resolution=: up to" in " ".join(stream.explain().split())


def test_no_values_are_invented_for_user_defined_aggregations():
    pytest.importorskip("numba", reason="slidewise[numba]")
    product = sw.native(lambda a, b: a * b, "float64", commutative=True)
    given = {"on": "t", "windows": sw.trailing(50, resolution=10)}
    stream = sw.KeyedWindows(**given, aggs={"p": product("x")})
    stream.ingest({"t": [1], "x": [2.0]})
    text = " ".join(stream.explain().split())
    assert "up to 7 cells in its windows, of one partial each per key" in text


@pytest.mark.usefixtures("folds")
def test_a_spec_that_grew_needs_the_rows_of_folded_cells():
    window = sw.trailing(50, resolution=10)
    given = {"on": "t", "by": "k", "windows": window}
    stream = sw.KeyedWindows(**given, aggs={"s": sw.sum("x")}, emit="none")
    stream.ingest(ordered(100))
    stream.advance(95)
    blob = stream.to_bytes()
    shorter = given | {"windows": [window, sw.trailing(30, resolution=20)]}
    spec = sw.Spec(**shorter, aggs={"s": sw.sum("x")})
    opened = sw.KeyedWindows.from_bytes(blob, spec)
    assert opened.query("a", at=99) == {
        "s_trailing_50_10": sum(range(41, 100)),
        "s_trailing_30_20": sum(range(61, 100)),
    }
    for other in (
        {"aggs": {"s": sw.max("x")}},
        {"aggs": {"s": sw.sum("x")}, "windows": [window, 20]},
        {"aggs": {"s": sw.sum("x")}, "windows": sw.trailing(30, resolution=5)},
    ):
        with pytest.raises(sw.SnapshotError, match="rows are folded by its aggregat"):
            sw.KeyedWindows.from_bytes(blob, sw.Spec(**given | other))


@pytest.mark.usefixtures("folds")
def test_damaged_cells_are_refused():
    stream = sw.KeyedWindows(
        on="t", windows=sw.trailing(50, resolution=10), aggs={"s": sw.stddev("x")}
    )
    stream.ingest(ordered(100))
    stream.advance(95)
    log = shard_of(stream).log
    page = log.cells.record()[-1].page
    held = log.cells._pages.read(page, log.cells.schema)
    log.cells._pages._tables[page] = held.set_column(
        1, "__entry", pa.array([b"\x07"] * len(held))
    )
    with pytest.raises(ValueError, match="unknown entry tag 7"):
        shard_of(stream).open()


@pytest.mark.usefixtures("folds")
def test_idle_keys_leave_with_their_cells():
    window = sw.trailing(500, resolution=10)
    given = {"on": "t", "by": "k", "windows": window, "aggs": {"c": sw.count()}}
    stream = sw.KeyedWindows(**given, emit="none")
    stream.ingest(pa.concat_tables([ordered(50), ordered(100, "b")]))
    stream.advance(95)
    assert stream.evict_idle(60) == 1
    stream = sw.KeyedWindows.from_bytes(stream.to_bytes())
    assert stream.keys()["k"].to_pylist() == ["b"]
    assert stream.query_many({"k": ["a", "b"]})["c_trailing_500_10"] == [0, 100]


@pytest.mark.usefixtures("folds")
def test_a_call_that_raises_leaves_cells_as_they_were():
    given = {"on": "t", "windows": sw.trailing(50, resolution=10)}
    stream = sw.KeyedWindows(**given, aggs={"s": sw.sum("x")}, emit="arrival")
    stream.ingest(ordered(100))
    stream.advance(95)
    before = stream.query(at=120)
    with pytest.raises(sw.ResultOverflowError):
        stream.ingest({"t": [120, 121], "k": ["a", "a"], "x": [2**63 - 1, 2**63 - 1]})
    assert stream.query(at=120) == before == {"s_trailing_50_10": sum(range(71, 100))}
    stream.check()


def test_the_state_does_not_grow_with_the_rows_of_a_cell():
    """Of 20 keys and 50 cells, as many partials are kept for 20 and 80 rows each."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    aggs = {
        "c": sw.count(),
        "m": sw.mean("x"),
        "sd": sw.stddev("x"),
        "low": sw.min("x"),
    }
    window = sw.trailing("48h", resolution="1h")
    sizes = []
    for each in (20, 80):
        stream = sw.KeyedWindows(
            on="t", by="k", windows=window, aggs=aggs, emit="none", late="1h"
        )
        for hour in range(100):
            times = [
                start + timedelta(hours=hour, seconds=3600 * n / each)
                for n in range(each)
            ]
            stream.ingest(
                pa.table(
                    {
                        "t": pa.array(times * 20, pa.timestamp("us", "UTC")),
                        "k": [key for key in range(20) for _ in range(each)],
                        "x": [float(n) for n in range(20 * each)],
                    }
                )
            )
            stream.advance()
        log = shard_of(stream).log
        assert len(log.cells) <= 20 * 52 * 1.3
        sizes.append(len(stream.to_bytes()))
    assert sizes[1] < 1.5 * sizes[0] < 20 * 50 * 80 * 24 / 3, sizes


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([sw.trailing(5, resolution=10)], (10, 1, 0)),
        ([sw.trailing(5, resolution=10), sw.trailing(9, resolution=4)], (2, 1, 0)),
        (
            [
                sw.trailing(5, resolution=10, offset=3),
                sw.trailing(9, resolution=10, offset=-1),
            ],
            (2, 0, 0),
        ),
        ([sw.trailing(5, resolution=10), 7], (10, 1, 8)),
    ],
)
def test_one_grid_for_all_windows(windows, expected):
    spec = sw.Spec(on="t", windows=windows, aggs={"c": sw.count()})
    grid = CellGrid.of(spec.windows, lambda length: length.amount, 1)
    every, start, lag = expected
    assert (grid.every, grid.start % every, grid.lag) == (every, start % every, lag)
    for watermark in range(-30, 30):
        until = grid.until(watermark)
        assert grid.last_tick(until) == until
        assert watermark - grid.lag - grid.every < until <= watermark - grid.lag
