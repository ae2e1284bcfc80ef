"""Every aggregation against its definition in plain Python.

In windows and over tables, with `where=` and without.
"""

import math
import operator
import random
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from definitions import (
    AREAS,
    BITS,
    DECAYED,
    DEFINITIONS,
    OF_TIMES,
    OVER_TIME,
    PAIRS,
    PARAMETERS,
    answer,
    kurtosis,
    skewness,
)

import slidewise as sw
from slidewise.aggregations import Aggregation
from slidewise.aggregations.records import RECORDS, kinds

LISTS = ("collect", "collect_distinct", "top_k", "bottom_k")


def aggregations():
    for kind in kinds():
        record = RECORDS[kind]
        by = "y" if record.second not in ("", "time") else None
        of = "text" if DEFINITIONS[kind].text else "x"
        of = None if kind in OF_TIMES else of
        options = PARAMETERS.get(kind, {})
        holds = ("previous", "linear") if kind in AREAS else ("previous",)
        for where in (None, "flag"):
            for ddof in (1, 0) if "ddof" in record.parameters else (1,):
                for hold in holds:
                    more = {**options, "hold": hold}
                    yield Aggregation(kind, of, by, ddof, where, **more)
    yield sw.count()
    yield sw.count(where="flag")
    for kind in DECAYED:
        of = None if kind in OF_TIMES else "x"
        yield Aggregation(kind, of, half_life=sw.rows(2))
    for kind in OVER_TIME:
        yield Aggregation(kind, "x")
        yield Aggregation(kind, "x", where="flag")


AGGS = {repr(agg): agg for agg in aggregations()}


def close(got, want):
    if isinstance(got, float) and isinstance(want, float):
        same = math.isnan(got) and math.isnan(want)
        return same or math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9)
    return got == want and type(got) is type(want)


def a_row(rng, number):
    return {
        "x": rng.choice([None, number(), number(), number()]),
        "y": rng.choice([None, number(), number(), number()]),
        "text": rng.choice([None, *"abc"]),
        "flag": rng.choice([None, True, True, False]),
    }


def timed(t, row):
    return t, {"t": t, **row}


def numbers_for(agg, rng, floats):
    if floats and agg.kind not in BITS:
        # Products of distances cancel, so only distances of one size can be compared.
        large = 100.5 if agg.kind in PAIRS else 1e9 + 0.5
        return lambda: rng.choice([-1.5, 0.0, 0.25, 1.0, 2.0, large])
    return lambda: rng.randrange(-3, 9)


@pytest.mark.parametrize("floats", [False, True], ids=["int64", "float64"])
@pytest.mark.parametrize("name", list(AGGS))
def test_in_a_window(name, floats):
    agg = AGGS[name]
    for seed in range(6):
        rng = random.Random(f"{name}{seed}")
        number = numbers_for(agg, rng, floats)
        w = sw.Window({"a": agg, "n": sw.count("x")}, ties="keep")
        model = []
        for step in range(60):
            rows = [
                timed(step - rng.randrange(12), a_row(rng, number))
                for _ in range(rng.choice([1, 1, 1, 5]))
            ]
            if len(rows) == 1:
                w.insert(*rows[0])
            elif rng.random() < 0.5:
                w.insert_many([t for t, _ in rows], [row for _, row in rows])
            else:
                names = sorted({*agg.columns, "x"})
                columns = {c: iter([row[c] for _, row in rows]) for c in names}
                w.insert_many([t for t, _ in rows], columns)
            model = sorted([*model, *rows], key=lambda row: row[0])
            if step % 10 == 9:
                w.evict_until(step - 20)
                model = [row for row in model if row[0] > step - 20]
                w = sw.Window.from_bytes(w.to_bytes())
            if step % 3 == 0:
                lo = step - rng.randrange(15)
                inside = [row for t, row in model if t >= lo]
                got, want = w.query(lo)["a"], answer(agg, inside)
                assert close(got, want), (seed, step, got, want)
        w.check()


@pytest.mark.parametrize("floats", [False, True], ids=["int64", "float64"])
@pytest.mark.parametrize("name", list(AGGS))
def test_over_a_table(name, floats):
    agg = AGGS[name]
    for seed, count in enumerate([0, 1, 90]):
        rng = random.Random(f"{name}{seed}")
        number = numbers_for(agg, rng, floats)
        rows = [timed(t, a_row(rng, number))[1] for t in range(count)]
        bits = agg.kind in BITS
        kind = pa.float64() if floats and not bits else pa.int64()
        types = {"x": kind, "y": kind, "text": pa.string(), "flag": pa.bool_()}
        columns = {c: pa.array([row[c] for row in rows], t) for c, t in types.items()}
        table = pa.table({"t": pa.array(range(count), pa.int64()), **columns})
        out = sw.rolling(table, on="t", windows=[1, 12], aggs={"a": agg})
        for width in (1, 12):
            got = out[f"a_{width}"].to_pylist()
            for row in range(count):
                want = answer(agg, rows[max(0, row - width + 1) : row + 1])
                assert close(got[row], want), (seed, row, got[row], want)


def test_arrays_with_conditions():
    n = 5000
    x, y = np.arange(n), np.linspace(0, 1, n)
    flag = x % 3 == 0
    aggs = {
        "sum": sw.sum("x", where="flag"),
        "n": sw.count(where="flag"),
        "cov": sw.covariance("x", "y"),
        "own": sw.aggregation(combine=operator.add, identity=0)("x", where="flag"),
    }
    for values in (
        {"x": x, "y": y, "flag": flag},
        pd.DataFrame({"x": x, "y": y, "flag": flag}),
        pa.table({"x": x, "y": y, "flag": pa.array(flag.tolist())}),
        {"x": pa.chunked_array([x[:9], x[9:]]), "y": list(y), "flag": flag.tolist()},
    ):
        w = sw.Window(aggs)
        w.insert_many(range(n), values)
        got = w.query()
        assert got["sum"] == got["own"] == int(x[flag].sum())
        assert got["n"] == int(flag.sum())
        assert math.isclose(got["cov"], np.cov(x, y)[0, 1])


def test_where_keeps_a_lift_from_what_it_cannot_take():
    inverse = sw.aggregation(lambda v: 1 / v, operator.add, identity=0)
    rows = [{"x": 0, "ok": False}, {"x": 2, "ok": True}, {"x": 0, "ok": None}]
    w = sw.Window(inverse("x", where="ok"))
    w.insert(0, rows[0])
    w.insert_many([1, 2, 3], rows)
    w.insert_many([4, 5], {"x": [4, 0], "ok": [True, False]})
    w.insert_many([6, 7], {"x": np.array([4, 0]), "ok": np.array([True, False])})
    assert w.query() == 1.0
    table = pa.table({"t": [1, 2, 3], "x": [0, 2, 0], "ok": [False, True, None]})
    out = sw.rolling(table, on="t", windows=5, aggs={"i": inverse("x", where="ok")})
    assert out["i_5"].to_pylist() == [None, 0.5, 0.5]


def test_conditions_must_be_booleans():
    w = sw.Window(sw.sum("x", where="flag"))
    for use in (
        lambda: w.insert(1, {"x": 1, "flag": 1}),
        lambda: w.insert_many([1], {"x": [1], "flag": [1]}),
        lambda: w.insert_many([1], [{"x": 1, "flag": "yes"}]),
        lambda: w.insert_many([1], {"x": [1], "flag": pa.array([1])}),
        lambda: sw.rolling(
            pa.table({"t": [1], "x": [1], "flag": [1]}),
            on="t",
            windows=1,
            aggs={"s": sw.sum("x", where="flag")},
        ),
    ):
        with pytest.raises(sw.SpecError, match="boolean"):
            use()
    assert len(w) == 0


def test_columns_under_conditions_share_their_type():
    w = sw.Window({"a": sw.sum("x", where="flag"), "b": sw.max("x")})
    w.insert(1, {"x": 1, "flag": False})
    w.insert(2, {"x": 2, "flag": True})
    assert w.query() == {"a": 2, "b": 2}
    assert w.dtype == {"x": "int64", "flag": None}
    w.insert(3, {"x": 1.5, "flag": True})
    assert w.query() == {"a": 3.5, "b": 2.0}
    assert w.dtype == {"x": "float64", "flag": None}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: sw.top_k("x", k=0), "k must be from 1 to 1000, got 0"),
        (lambda: sw.top_k("x", k=True), "k must be from 1"),
        (lambda: sw.skewness("x", ddof=2), "ddof of skewness.. is 0 or 1, got 2"),
        (lambda: sw.sum("x", where=3), "takes the name of a column, got 3"),
        (lambda: sw.Window(sw.covariance("x")), "needs two columns"),
        (lambda: sw.Window(sw.covariance()), "needs two columns"),
        (lambda: sw.Window(sw.sum(where="flag")), "names no column, but others do"),
    ],
)
def test_wrong_requests(make, why):
    with pytest.raises(sw.SpecError, match=why):
        make()


def test_integers_are_exact_or_refused():
    w = sw.Window({"p": sw.product(), "s": sw.sum_of_squares()})
    w.insert_many([1, 2, 3], [2**62, 2, 3])
    for lo, hi in [(1, 3), (1, 2)]:
        with pytest.raises(sw.ResultOverflowError):
            w.query(lo, hi)
    assert w.query(2) == {"p": 6, "s": 13}
    zero = sw.Window(sw.product())
    zero.insert_many([1, 2, 3], [2**62, 2**62, 0])
    assert zero.query() == 0


def test_moments_far_from_zero_and_what_has_left():
    rng = np.random.default_rng(1)
    values = 1e9 + rng.exponential(size=400)
    w = sw.Window({"s": sw.skewness(), "k": sw.kurtosis()}, last=sw.rows(100))
    w.insert(0, 1e300)
    w.insert(1, math.inf)
    w.insert_many(range(2, 402), values)
    got, last = w.query(), values[-100:]
    assert math.isclose(got["s"], skewness(last, 1), rel_tol=1e-9)
    assert math.isclose(got["k"], kurtosis(last, 1), rel_tol=1e-9)
    series = pd.Series(last - 1e9)
    assert math.isclose(got["s"], series.skew(), rel_tol=1e-5)
    assert math.isclose(got["k"], series.kurt(), rel_tol=1e-5)


@pytest.mark.parametrize(
    ("kind", "values", "results"),
    [
        (pa.uint64(), [2**64 - 1, 2**63], {"bit_or": 2**64 - 1, "bit_and": 2**63}),
        (pa.int8(), [-1, 6], {"bit_and": 6, "bit_xor": -7, "top_k": [6, -1]}),
        (pa.bool_(), [True, False], {"any": True, "all": False, "bit_xor": True}),
        (pa.string(), ["b", "a"], {"concat": "ba", "top_k": ["b", "a"], "max": "b"}),
        (pa.large_binary(), [b"b", b"a"], {"concat": b"ba", "bottom_k": [b"a", b"b"]}),
        (pa.date32(), [date(2024, 1, 2), date(2024, 1, 1)], {"top_k": [2, 1]}),
        (
            pa.timestamp("ms", "UTC"),
            [datetime(2024, 1, 2), datetime(2024, 1, 1)],
            {"collect_distinct": [2, 1]},
        ),
        (pa.decimal128(9, 2), [2, 1], {"collect_distinct": [2, 1], "min": 1}),
    ],
    ids=str,
)
def test_types_over_tables(kind, values, results):
    table = pa.table({"t": [1, 2], "x": pa.array(values, kind)})
    for name, want in results.items():
        k = 2 if name.endswith("_k") else 0
        agg = Aggregation(name, "x", k=k)
        column = sw.rolling(table, on="t", windows=5, aggs={"a": agg})["a_5"]
        if pa.types.is_temporal(kind):
            got = [value.day for value in column.to_pylist()[1]]
        else:
            got = column.to_pylist()[1]
        assert got == want
        inner = column.type.value_type if name in LISTS else column.type
        assert inner == (pa.bool_() if name in ("any", "all") else kind)


@pytest.mark.parametrize("name", ["bit_and", "concat", "skewness", "covariance", "any"])
def test_types_that_do_not_fit(name):
    floats = pa.array([1.5]) if name in ("bit_and", "concat") else pa.array(["a"])
    table = pa.table({"t": [1], "x": floats, "y": floats})
    by = "y" if name == "covariance" else None
    with pytest.raises(sw.SpecError, match="does not fit column"):
        sw.rolling(table, on="t", windows=1, aggs={"a": Aggregation(name, "x", by)})


def test_lists_of_things():
    w = sw.Window({"all": sw.concat(), "each": sw.collect_distinct()})
    w.insert_many([1, 2, 3], [(1, 2), (3,), (1, 2)])
    assert w.query() == {"all": (1, 2, 3, 1, 2), "each": [(1, 2), (3,)]}
    w.insert(4, "text")
    with pytest.raises(sw.SpecError, match="one type, got tuple and str"):
        w.query()
    assert w.query(4) == {"all": "text", "each": ["text"]}
    w = sw.Window(sw.collect_distinct())
    w.insert_many([1, 2, 3], [math.nan, 1.0, math.nan])
    assert len(w.query()) == 2
    w = sw.Window(sw.collect_distinct())
    w.insert(1, [1])
    with pytest.raises(sw.SpecError, match="takes hashable values"):
        w.query()


def test_a_value_that_calls_back_in_from_an_answer():
    class Key:
        def __hash__(self):
            with pytest.raises(sw.WindowBusyError):
                w.query()
            return 7

    w = sw.Window(sw.collect_distinct())
    w.insert_many([1, 2], [Key(), Key()])
    assert len(w.query()) == 2


def test_durations():
    spans = [timedelta(hours=1), timedelta(hours=3)]
    table = pa.table({"t": [1, 2], "x": pa.array(spans, pa.duration("s"))})
    aggs = {"r": sw.range("x"), "top": sw.top_k("x", k=1), "sum": sw.sum("x")}
    out = sw.rolling(table, on="t", windows=5, aggs=aggs).to_pylist()[1]
    assert out["r_5"] == timedelta(hours=2)
    assert out["top_5"] == [timedelta(hours=3)]
    assert out["sum_5"] == timedelta(hours=4)
