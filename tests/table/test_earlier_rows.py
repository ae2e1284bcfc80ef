"""Windows of rows that end before their row, against the definition."""

import random

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
    "median": sw.median("x"),
    "first": sw.first("n"),
}


def rows_of(draw, count, density):
    """Rows of two keys; the lower the density, the more have equal times."""
    return pa.table(
        {
            "t": [draw.randrange(count * density + 1) for _ in range(count)],
            "k": [draw.choice("ab") for _ in range(count)],
            "x": [draw.choice([None, *range(9)]) for _ in range(count)],
            "n": range(count),
            "a": [draw.randrange(count) for _ in range(count)],
        },
        schema=pa.schema({**dict.fromkeys("txna", pa.int64()), "k": pa.string()}),
    )


def held(seen, count, behind, *, own=None):
    """The numbers of the last rows, but for so many after them, and without a row."""
    end = max(len(seen) - behind, 0)
    return [r["n"] for r in seen[max(end - count, 0) : end] if r is not own]


def windows(rows, count, closed, behind, *, exclude=None, arrival=False):
    """Per row the numbers of the rows in its window, in order."""
    names = ("t", "a", "n") if arrival else ("t", "n")
    ordered = sorted(rows, key=lambda r: [r[name] for name in names])
    found = []
    for own in rows:
        seen = [r for r in ordered if r["k"] == own["k"]]
        if arrival:
            seen = [r for r in seen if r["a"] <= own["a"]]
        else:
            seen = seen[: seen.index(own) + 1]
        if closed == "left":
            seen = [r for r in seen if r["t"] != own["t"]]
        elif exclude and not behind:
            seen = [r for r in seen if r is not own]
        found.append(held(seen, count, behind, own=own if exclude else None))
    return found


def check(out, label, numbers, rows):
    assert out[f"all_{label}"].to_pylist() == numbers
    assert out[f"c_{label}"].to_pylist() == [len(each) for each in numbers]
    values = [[rows[n]["x"] for n in each] for each in numbers]
    values = [[x for x in each if x is not None] for each in values]
    assert out[f"s_{label}"].to_pylist() == [sum(v) if v else None for v in values]
    assert out[f"median_{label}"].to_pylist() == [
        None if not v else (sorted(v)[(len(v) - 1) // 2] + sorted(v)[len(v) // 2]) / 2
        for v in values
    ]
    assert out[f"first_{label}"].to_pylist() == [n[0] if n else None for n in numbers]


CASES = [("left", None), ("right", 1), ("right", 3), ("left", 2), ("right", 2**63 - 1)]


@pytest.mark.parametrize(("closed", "behind"), CASES)
@pytest.mark.parametrize("arrival", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_tables(closed, behind, arrival, seed):
    draw = random.Random(f"{SEED} {closed} {behind} {arrival} {seed}")
    table = rows_of(draw, draw.choice([0, 1, 2, 65, 150]), draw.choice([0, 1, 10]))
    exclude = draw.choice([None, "self"])
    given = {"on": "t", "by": "k", "aggs": AGGS, "closed": closed, "exclude": exclude}
    given |= {"arrival": "a"} if arrival else {}
    given |= {} if behind is None else {"offset": sw.rows(behind)}
    lengths = [1, draw.randrange(2, 9)]
    out = sw.rolling(table, windows=[sw.rows(n) for n in lengths], **given)
    for count in lengths:
        numbers = windows(
            table.to_pylist(),
            count,
            closed,
            behind or 0,
            exclude=exclude,
            arrival=arrival,
        )
        check(out, f"{count}rows", numbers, table.to_pylist())


def test_left_is_without_the_row_itself_where_times_do_not_tie():
    draw = random.Random(SEED)
    table = rows_of(draw, 60, 1)
    table = table.set_column(0, "t", pa.array(draw.sample(range(900), 60)))
    for arrival in (None, "a"):
        given = {"on": "t", "by": "k", "windows": sw.rows(3), "aggs": AGGS}
        given["arrival"] = arrival
        left = sw.rolling(table, **given, closed="left")
        assert left == sw.rolling(table, **given, exclude="self")


@pytest.mark.parametrize(("closed", "behind"), CASES)
def test_labels_and_queries(closed, behind):
    draw = random.Random(f"{SEED} {closed} {behind}")
    table = rows_of(draw, 60, 1)
    rows = sorted(table.to_pylist(), key=lambda r: (r["t"], r["n"]))
    given = {"on": "t", "by": "k", "windows": sw.rows(2), "aggs": AGGS}
    given |= {"closed": closed}
    given |= {} if behind is None else {"offset": sw.rows(behind)}
    labels = pa.table(
        {"t": range(-1, 63), "k": [draw.choice("abz") for _ in range(64)]}
    )
    out = sw.rolling(table, **given, at=labels)
    expected = []
    for label in labels.to_pylist():
        seen = [r for r in rows if r["k"] == label["k"] and r["t"] <= label["t"]]
        seen = [r for r in seen if closed == "right" or r["t"] < label["t"]]
        expected.append(held(seen, 2, behind or 0))
    check(out, "2rows", expected, table.to_pylist())
    stream = sw.KeyedWindows(**given, emit="none", late=1000)
    stream.ingest(table)
    asked = stream.query_many(labels, at="t")
    assert asked == out
    one = stream.query("a", at=61, windows=sw.rows(1), plus={"n": 99, "x": 3})
    seen = [r for r in rows if r["k"] == "a" and r["t"] <= 61]
    seen = [r for r in seen if closed == "right" or r["t"] < 61]
    seen += [{"n": 99}] * (closed == "right")
    assert one["all_1rows"] == held(seen, 1, behind or 0)


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
@pytest.mark.parametrize("seed", range(6))
def test_streams_equal_tables(emit, seed):
    draw = random.Random(f"{SEED} {emit} {seed}")
    table = rows_of(draw, draw.choice([5, 60]), draw.choice([0, 1, 10]))
    closed, behind = draw.choice(CASES)
    lengths = [sw.rows(2), sw.rows(5)]
    if behind is None:
        lengths = draw.choice([lengths, [sw.rows(2), 30]])
    aggs = draw.choice([AGGS, {"s": sw.sum("x"), "c": sw.count()}])
    offset = None if behind is None else sw.rows(behind)
    spec = sw.Spec(
        on="t", by="k", windows=lengths, aggs=aggs, closed=closed, offset=offset
    )
    check_stream(spec, table, late=draw.choice([0, 7]), emit=emit, runs=2, seed=seed)


def test_a_row_enters_when_the_watermark_passes_it():
    given = {"on": "t", "by": "k", "windows": sw.rows(2), "aggs": AGGS}
    stream = sw.KeyedWindows(**given, closed="left", emit="change")
    stream.ingest(pa.table({"t": [5, 7], "k": ["a"] * 2, "x": [1, 2], "n": [0, 1]}))
    assert stream.collect()["all_2rows"].to_pylist()[-1] == [0]
    stream.advance(9)
    assert stream.collect()["all_2rows"].to_pylist() == [[0, 1]]
    stream.advance(20)
    assert stream.collect() is None or not len(stream.collect())


def test_batches_of_sorted_rows():
    """Out of memory, the rows before those of a batch are kept."""
    draw = random.Random(SEED)
    table = rows_of(draw, 400, 1).sort_by([("k", "ascending"), ("t", "ascending")])
    for closed, behind in [("right", None), *CASES[:4]]:
        for exclude in (None, "self"):
            offset = None if behind is None else sw.rows(behind)
            spec = sw.Spec(
                on="t",
                by="k",
                windows=[sw.rows(1), sw.rows(3)],
                aggs={"all": sw.collect("x"), "c": sw.count()},
                closed=closed,
                offset=offset,
                exclude=exclude,
            )
            batches = table.to_batches(max_chunksize=draw.choice([1, 3, 50]))
            parts = rolling_batches(batches, spec, table.schema, Order(min_rows=1))
            assert pa.concat_tables(parts) == sw.rolling(table, spec)


def test_spelling():
    given = {"on": "t", "windows": [sw.rows(3)], "aggs": {"n": sw.count()}}
    spec = sw.Spec(**given, offset=sw.rows(2), closed="left")
    assert sw.Spec.from_json(spec.to_json()) == spec
    assert '"offset": "2rows"' in spec.to_json()
    assert len({sw.Spec(**given).hash, spec.hash}) == 2
    assert "rows(2)" in repr(spec)
    for wrong in (
        {"offset": "1h"},
        {"closed": "both"},
        {"closed": "neither"},
        {"offset": sw.rows(1), "windows": ["1h", sw.rows(3)]},
    ):
        with pytest.raises(sw.SpecError, match=f"{next(iter(wrong))}="):
            sw.Spec(**given | wrong)
    with pytest.raises(sw.SpecError, match="not a number of rows"):
        sw.Spec(**given, offset=sw.rows(0))
