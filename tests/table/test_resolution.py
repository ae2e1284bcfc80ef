"""Windows whose start lies on a grid, against the definition."""

import itertools
import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.table.batched_rolling import Order, rolling_batches
from slidewise.testing import check_stream

AGGS = {
    "all": sw.collect("n"),
    "c": sw.count(),
    "s": sw.sum("x"),
    "f": sw.sum("y"),
    "low": sw.min("x"),
    "first": sw.first("n"),
    "sd": sw.stddev("x"),
}
SIDES = ["right", "left", "both", "neither"]


def made(draw, count, span):
    return pa.table(
        {
            "t": [draw.randrange(-span, span) for _ in range(count)],
            "k": [draw.choice("ab") for _ in range(count)],
            "x": [draw.choice([None, *range(9)]) for _ in range(count)],
            "y": [draw.choice([None, 0.5, 1.25]) for _ in range(count)],
            "n": range(count),
            "a": [draw.randrange(count) for _ in range(count)],
        },
        schema=pa.schema(
            [
                (n, {"k": pa.string(), "y": pa.float64()}.get(n, pa.int64()))
                for n in "tkxyna"
            ]
        ),
    )


def held(rows, own, given, closed="right", ties="peers"):
    """The numbers of the rows in the window of a row or label, in order."""
    length, cell, offset = given
    start = (own["t"] - length - offset) // cell * cell + offset
    found = []
    for row in sorted(rows, key=lambda r: (r["t"], r["n"])):
        after = row["t"] > start or (closed in ("left", "both") and row["t"] == start)
        before = row["t"] < own["t"] or (
            closed in ("right", "both") and row["t"] == own["t"]
        )
        later = ties == "rows" and row["t"] == own["t"] and row["n"] > own["n"]
        if after and before and not later and row["k"] == own["k"]:
            found.append(row["n"])
    return found


def window_of(given):
    length, cell, offset = given
    return sw.trailing(length, resolution=cell, offset=offset or None)


GRIDS = [(5, 10, 0), (20, 7, 3), (30, 1, 0), (1, 60, -7), (10, 10, 0)]


@pytest.mark.parametrize("given", GRIDS)
@pytest.mark.parametrize("closed", SIDES)
def test_tables_and_labels(given, closed):
    draw = random.Random(f"{SEED} {given} {closed}")
    window, label = window_of(given), f"trailing_{given[0]}_{given[1]}"
    for count in (1, 65, 150):
        table = made(draw, count, draw.choice([9, 100]))
        rows = table.to_pylist()
        ties = (
            draw.choice(["peers", "rows"]) if closed in ("right", "both") else "peers"
        )
        call = {"on": "t", "by": "k", "aggs": AGGS, "closed": closed, "ties": ties}
        windows = [window, 25]
        out = sw.rolling(table, windows=windows, **call)
        numbers = [held(rows, own, given, closed, ties) for own in rows]
        assert out[f"all_{label}"].to_pylist() == numbers
        assert out[f"c_{label}"].to_pylist() == [len(each) for each in numbers]
        sums = [[rows[n]["x"] for n in each] for each in numbers]
        sums = [[x for x in each if x is not None] for each in sums]
        assert out[f"s_{label}"].to_pylist() == [sum(v) if v else None for v in sums]
        assert out[f"low_{label}"].to_pylist() == [min(v, default=None) for v in sums]
        assert out[f"first_{label}"].to_pylist() == [
            n[0] if n else None for n in numbers
        ]
        but = sw.rolling(table, windows=windows, **call, exclude="self")
        assert but[f"all_{label}"].to_pylist() == [
            [n for n in each if n != own] for own, each in enumerate(numbers)
        ]
        labels = pa.table({"t": range(-110, 110), "k": ["a", "b"] * 110})
        at = sw.rolling(table, windows=windows, **call | {"ties": "peers"}, at=labels)
        assert at[f"all_{label}"].to_pylist() == [
            held(rows, own, given, closed) for own in labels.to_pylist()
        ]
        spec = sw.Spec(windows=windows, **call)
        ordered = table.sort_by([("k", "ascending"), ("t", "ascending")])
        batches = ordered.to_batches(max_chunksize=7)
        parts = rolling_batches(batches, spec, table.schema, Order(min_rows=1))
        exact = [f"{name}_{label}" for name in ("all", "c", "s", "low", "first")]
        got, want = pa.concat_tables(parts), sw.rolling(ordered, spec)
        assert got.select(exact) == want.select(exact)


def test_as_of_arrival():
    draw = random.Random(SEED)
    table = made(draw, 120, 60)
    rows, given = table.to_pylist(), (20, 7, 3)
    out = sw.rolling(
        table, on="t", by="k", windows=window_of(given), aggs=AGGS, arrival="a"
    )
    arrived = [[r for r in rows if r["a"] <= own["a"]] for own in rows]
    assert [sorted(each) for each in out["all_trailing_20_7"].to_pylist()] == [
        sorted(held(seen, own, given)) for seen, own in zip(arrived, rows, strict=True)
    ]


@pytest.mark.parametrize("emit", ["final", "arrival", "update", "change"])
@pytest.mark.parametrize("seed", range(5))
def test_streams_equal_tables(emit, seed):
    draw = random.Random(f"{SEED} {emit} {seed}")
    table = made(draw, draw.choice([5, 40, 120]), draw.choice([9, 100])).drop_columns(
        "a"
    )
    windows = [window_of(draw.choice(GRIDS)), *draw.choice([[], [25]])]
    aggs = draw.choice([AGGS, {"s": sw.sum("x"), "c": sw.count()}])
    closed = draw.choice(SIDES)
    spec = sw.Spec(on="t", by="k", windows=windows, aggs=aggs, closed=closed)
    check_stream(spec, table, late=draw.choice([0, 7]), emit=emit, runs=2, seed=seed)


@pytest.mark.parametrize("closed", SIDES)
def test_a_cell_leaves_at_once(closed):
    """With "change", a key is emitted when its last row has left."""
    window = sw.trailing(5, resolution=10)
    given = {"on": "t", "by": "k", "windows": window, "aggs": {"c": sw.count()}}
    stream = sw.KeyedWindows(**given, closed=closed, emit="change")
    stream.ingest(pa.table({"t": [10, 12, 20], "k": ["a"] * 3}))
    seen = []
    for at in range(20, 50):
        stream.advance(at)
        out = stream.collect()
        seen += [] if out is None else out.to_pylist()
    counts, rows = [], [{"t": t, "k": "a", "n": 0} for t in (10, 12, 20)]
    for at in range(20, 50):
        count = len(held(rows, {"t": at, "k": "a"}, (5, 10, 0), closed))
        counts.append((at, count))
    changes = [
        pair for before, pair in itertools.pairwise(counts) if before[1] != pair[1]
    ]
    emitted = [(row["t"], row["c_trailing_5_10"]) for row in seen]
    assert set(changes) <= set(emitted)
    assert all(pair in counts for pair in emitted)


def test_queries_and_the_horizon():
    draw = random.Random(SEED)
    table = made(draw, 80, 60)
    window = sw.trailing(20, resolution=7)
    given = {"on": "t", "by": "k", "windows": window, "aggs": AGGS}
    stream = sw.KeyedWindows(**given, late=5)
    stream.ingest(table)
    labels = pa.table({"t": range(60, 90), "k": ["a", "b"] * 15})
    asked = stream.query_many(labels, at="t")
    assert asked == sw.rolling(table, **given, at=labels)
    short = stream.query("a", at=70, windows=10)
    assert short["c_trailing_10_7"] == len(
        held(table.to_pylist(), {"t": 70, "k": "a"}, (10, 7, 0))
    )
    with pytest.raises(sw.SpecError, match="beyond the horizon of 2"):
        stream.query("a", at=70, windows=200)
    with pytest.raises(sw.SpecError, match=r"valid_until=True.*cell by cell"):
        stream.query("a", at=70, valid_until=True)


def test_times_and_weeks():
    times = [
        datetime(2026, 3, 1, h, tzinfo=UTC) + timedelta(d)
        for d in range(12)
        for h in (1, 9)
    ]
    table = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC"))})
    for resolution, begin in (("1w", datetime(2026, 2, 23, tzinfo=UTC)), ("6h", None)):
        window = sw.trailing("3d", resolution=resolution)
        out = sw.rolling(table, on="t", windows=window, aggs={"c": sw.count()})
        cell = timedelta(7) if begin else timedelta(hours=6)
        origin = begin or datetime(2026, 1, 1, tzinfo=UTC)
        for at, count in zip(times, out.column(1).to_pylist(), strict=True):
            start = origin + (at - timedelta(3) - origin) // cell * cell
            assert count == sum(start < other <= at for other in times)


def test_what_is_refused():
    given = {"on": "t", "windows": sw.trailing("1d", resolution="1h")}
    with pytest.raises(sw.SpecError, match=r"median\('x'\).*resolution='1h'"):
        sw.Spec(**given, aggs={"m": sw.median("x")})
    own = {"m": sw.median("x", windows="1d"), "n": sw.count()}
    assert sw.Spec(**given, aggs=own).results == ("n_trailing_1d_1h", "m_1d")
    counted = {"aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match="offset='1h' does not apply"):
        sw.Spec(**given, **counted, offset="1h")
    for wrong in (
        {"length": "1d", "resolution": 5},
        {"length": "1d", "resolution": sw.rows(2)},
        {"length": "1d", "resolution": "1h", "offset": 3},
    ):
        with pytest.raises(sw.SpecError, match="and the length '1d' differ in kind"):
            sw.trailing(wrong.pop("length"), **wrong)
    with pytest.raises(sw.SpecError, match=r"give it, or .* windows='1d'$"):
        sw.trailing("1d", offset="1h")
    with pytest.raises(sw.SpecError, match="resolution='0h' must be longer than zero"):
        sw.trailing("1d", resolution="0h")
    with pytest.raises(sw.SpecError, match="'1d' is a duration, but column 't' holds"):
        sw.rolling(pa.table({"t": [1]}), **given, **counted)


@pytest.mark.parametrize(
    "window",
    [
        sw.trailing("30d", resolution="1h"),
        sw.trailing(5, resolution=10, offset=-3),
        sw.trailing("30d", resolution="1w", offset="90m"),
    ],
)
def test_spelling(window):
    spec = sw.Spec(on="t", windows=window, aggs={"n": sw.count()})
    assert sw.Spec.from_json(spec.to_json()) == spec


def test_explain_states_the_cell():
    given = {"on": "t", "windows": sw.trailing(5, resolution=10)}
    text = sw.explain(pa.table({"t": [0]}), **given, aggs={"n": sw.count()})
    assert "rows of one cell of 10 leave together" in text
