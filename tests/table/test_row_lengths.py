"""Windows whose length is in a column, against the definition."""

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.table.batched_rolling import Order, rolling_batches

JOINED = sw.aggregation(
    lift=lambda n: (n,), combine=lambda a, b: a + b, lower=list, identity=()
)
AGGS = {
    "all": sw.collect("n"),
    "c": sw.count(),
    "s": sw.sum("x"),
    "median": sw.median("x"),
    "most": sw.arg_max("n", by="x"),
    "d": sw.count_distinct("x"),
    "own": JOINED("n"),
}
BEGIN = datetime(2026, 3, 1)


def made(draw, count, span, longest):
    return pa.table(
        {
            "t": [draw.randrange(span) for _ in range(count)],
            "k": [draw.choice("ab") for _ in range(count)],
            "w": [draw.choice([None, 0, *range(longest)]) for _ in range(count)],
            "x": [draw.choice([None, *range(9)]) for _ in range(count)],
            "n": range(count),
        },
        schema=pa.schema(
            [(n, pa.string() if n == "k" else pa.int64()) for n in "tkwxn"]
        ),
    )


def held(rows, own, *, by_rows=False, ties="peers"):
    """The numbers of the rows in the window of a row, in order; None without length."""
    if own["w"] is None:
        return None
    seen = [r for r in sorted(rows, key=lambda r: r["t"]) if r["k"] == own["k"]]
    if by_rows:
        last = seen.index(own) + 1
        return [r["n"] for r in seen[max(last - own["w"], 0) : last]]
    late = [r["n"] for r in seen[seen.index(own) + 1 :] if r["t"] == own["t"]]
    numbers = [r["n"] for r in seen if own["t"] - own["w"] < r["t"] <= own["t"]]
    return [n for n in numbers if ties == "peers" or n not in late]


def check(out, numbers, rows):
    assert out["all_length_w"].to_pylist() == numbers
    assert out["own_length_w"].to_pylist() == [each or None for each in numbers]
    assert out["c_length_w"].to_pylist() == [
        None if each is None else len(each) for each in numbers
    ]
    values = [[rows[n]["x"] for n in each or ()] for each in numbers]
    values = [sorted(x for x in each if x is not None) for each in values]
    assert out["s_length_w"].to_pylist() == [sum(v) if v else None for v in values]
    assert out["median_length_w"].to_pylist() == [
        (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2 if v else None for v in values
    ]
    counts = [
        None if n is None else len({*v}) for n, v in zip(numbers, values, strict=True)
    ]
    assert out["d_length_w"].to_pylist() == counts
    for most, each, v in zip(
        out["most_length_w"].to_pylist(), numbers, values, strict=True
    ):
        assert (most is None) == (not v)
        assert most is None or (rows[most]["x"] == v[-1] and most in each)


@pytest.mark.parametrize("ties", ["peers", "rows"])
@pytest.mark.parametrize("seed", range(6))
def test_lengths_of_time(ties, seed):
    draw = random.Random(f"{SEED} {ties} {seed}")
    table = made(draw, draw.choice([0, 1, 2, 65, 150]), draw.choice([5, 90]), 30)
    rows = table.to_pylist()
    numbers = [held(rows, own, ties=ties) for own in rows]
    call = {"by": "k", "windows": sw.length("w"), "aggs": AGGS, "ties": ties}
    check(sw.rolling(table, on="t", **call), numbers, rows)
    times = [BEGIN + timedelta(seconds=t) for t in table["t"].to_pylist()]
    for unit, factor in (("s", 1), ("us", 10**6)):
        lengths = [None if w is None else w * factor for w in table["w"].to_pylist()]
        timed = table.set_column(0, "t", pa.array(times, pa.timestamp("s")))
        timed = timed.set_column(2, "w", pa.array(lengths, pa.duration(unit)))
        check(sw.rolling(timed, on="t", **call), numbers, rows)


@pytest.mark.parametrize("seed", range(4))
def test_lengths_of_rows(seed):
    draw = random.Random(f"{SEED} {seed}")
    table = made(draw, draw.choice([1, 2, 65, 150]), draw.choice([5, 90]), 9)
    rows = table.to_pylist()
    times = [BEGIN + timedelta(seconds=t) for t in table["t"].to_pylist()]
    timed = table.set_column(0, "t", pa.array(times, pa.timestamp("s")))
    call = {"on": "t", "by": "k", "windows": [sw.length("w"), "9s"], "aggs": AGGS}
    out = sw.rolling(timed, **call)
    check(out, [held(rows, own, by_rows=True) for own in rows], rows)
    assert (
        out["c_9s"].to_pylist()
        == sw.rolling(timed, **call | {"windows": "9s"})["c_9s"].to_pylist()
    )


def test_equal_lengths_are_a_window_of_that_length():
    table = made(random.Random(SEED), 200, 90, 1)
    table = table.set_column(2, "w", pa.array([7] * 200))
    aggs = {name: agg for name, agg in AGGS.items() if name != "own"}
    call = {"on": "t", "by": "k", "aggs": aggs}
    out = sw.rolling(table, windows=[7, sw.length("w")], **call)
    for name in aggs:
        assert out[f"{name}_7"].equals(
            out[f"{name}_length_w"].cast(out[f"{name}_7"].type)
        )


def test_lengths_between_ticks_and_beyond_int64():
    times = pa.array([0, 1, 2, 3], pa.timestamp("s"))
    call = {"on": "t", "windows": sw.length("w"), "aggs": {"n": sw.count()}}
    lengths = pa.array([1500, 1500, 2000, 2001], pa.duration("ms"))
    out = sw.rolling(pa.table({"t": times, "w": lengths}), **call)
    assert out["n_length_w"].to_pylist() == [1, 2, 2, 3]
    most = pa.array([2**63 - 1] * 4, pa.duration("s"))
    micros = times.cast(pa.timestamp("us"))
    out = sw.rolling(pa.table({"t": micros, "w": most}), **call)
    assert out["n_length_w"].to_pylist() == [1, 2, 3, 4]
    large = pa.array([2**64 - 1] * 2, pa.uint64())
    out = sw.rolling(pa.table({"t": [-(2**63) + 1, 2**63 - 1], "w": large}), **call)
    assert out["n_length_w"].to_pylist() == [1, 1]


def test_batches_hold_the_rows_of_a_key():
    table = made(random.Random(SEED), 120, 60, 30)
    ordered = table.sort_by([("k", "ascending"), ("t", "ascending")])
    aggs = {"all": sw.collect("n"), "s": sw.sum("x")}
    spec = sw.Spec(on="t", by="k", windows=sw.length("w"), aggs=aggs)
    batches = ordered.to_batches(max_chunksize=7)
    parts = rolling_batches(batches, spec, table.schema, Order(min_rows=1))
    assert pa.concat_tables(parts) == sw.rolling(ordered, spec)


def test_what_is_refused():
    table = pa.table({"t": [1, 2], "w": [3, -1], "f": [0.5, 1.0], "s": ["a", "b"]})
    call = {"on": "t", "windows": sw.length("w"), "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match=r"column 'w' is -1 in row 1 \(counting"):
        sw.rolling(table, **call)
    for column in ("f", "s"):
        with pytest.raises(sw.SpecError, match=f"column '{column}' holds .* integers"):
            sw.rolling(table, **call | {"windows": sw.length(column)})
    times = table.set_column(0, "t", pa.array([1, 2], pa.timestamp("s")))
    with pytest.raises(sw.SpecError, match=r"column 'f' holds double: .* durations"):
        sw.rolling(times, **call | {"windows": sw.length("f")})
    for given in (
        {"at": table},
        {"exclude": "self"},
        {"closed": "left"},
        {"offset": 1},
    ):
        name = next(iter(given))
        with pytest.raises(
            sw.SpecError, match=rf"{name}=.* does not apply|{name}= does"
        ):
            sw.rolling(table, **call, **given)
    with pytest.raises(sw.SpecError, match="arrival='w' does not apply"):
        sw.rolling(table, **call, arrival="w")
    for emit in ("final", "arrival", "update", "change", "none"):
        with pytest.raises(sw.SpecError, match=r"length\('w'\) is for tables"):
            sw.KeyedWindows(**call, emit=emit)
    with pytest.raises(sw.SpecError, match="takes the name of a column, got 5"):
        sw.length(5)


def test_spelling():
    spec = sw.Spec(on="t", windows=["1h", sw.length("w")], aggs={"n": sw.count()})
    assert sw.Spec.from_json(spec.to_json()) == spec
    assert "w" in spec.columns
