"""Built-in aggregations over Python objects, with `dtype="object"`."""

import decimal
import math
import pickle
import random
from collections import deque
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

VALUES = {
    "text": ["", "a", "b", "ba", "é", "\U0001f600", "z"],
    "bytes": [b"", b"a", b"\xff", b"b"],
    "dates": [date(2024, 1, 1), date(1999, 5, 5), date(2024, 1, 2)],
    "datetimes": [datetime(2024, 1, day, 12) for day in (3, 1, 2)],
    "timedeltas": [timedelta(seconds=s) for s in (5, -3, 0, 86_400)],
    "decimals": [Decimal(text) for text in ("0.1", "0.2", "1e30", "-1e-30", "7")],
    "fractions": [Fraction(1, 3), Fraction(-1, 7), Fraction(5)],
    "bools": [True, False],
    "ints": [2**80, -1, 0, 7],
}
SUMMABLE = ("timedeltas", "decimals", "fractions", "ints")
ORDERED = {
    "min": min,
    "max": max,
    "first": lambda v: v[0],
    "last": lambda v: v[-1],
    "min_count": lambda v: v.count(min(v)),
    "max_count": lambda v: v.count(max(v)),
}


def exact_sum(values):
    if isinstance(values[0], Decimal):
        with decimal.localcontext(prec=200):
            return sum(values, Decimal(0))
    return sum(values[1:], values[0])


def definitions(name):
    known = dict(ORDERED)
    if name in SUMMABLE:
        known["sum"] = exact_sum
    if name in ("dates", "datetimes", "timedeltas", "fractions", "ints"):
        known["range"] = lambda v: max(v) - min(v)
    if name in ("bools", "text", "ints"):
        known |= {"any": any, "all": all}
    return known


@pytest.mark.parametrize("algorithm", ["auto", "recalculate", "two_stacks_lite"])
@pytest.mark.parametrize("name", list(VALUES))
def test_against_the_definition(name, algorithm):
    known = definitions(name)
    rng = random.Random(name)
    aggs = {kind: getattr(sw, kind)() for kind in known} | {"n": sw.count()}
    w = sw.Window(aggs, dtype="object", algorithm=algorithm, ties="keep")
    model = []
    for time in range(150):
        value = rng.choice([None, *VALUES[name]])
        w.insert(time, value)
        model.append(value)
        if time > 40:
            w.evict()
            del model[0]
        values = [value for value in model if value is not None]
        want = {kind: f(values) if values else None for kind, f in known.items()}
        assert w.query() == want | {"n": len(model)}
    w.check()
    assert w.dtype == "object"


def test_columns_conditions_and_copies():
    w = sw.Window(
        {"who": sw.max("who"), "when": sw.min("when", where="ok"), "n": sw.count()},
        dtype=object,
    )
    days = [date(2024, 1, day) for day in (3, 1, 2)]
    w.insert_many(
        [1, 2, 3], {"who": ["b", "c", "a"], "when": days, "ok": [True, False, True]}
    )
    want = {"who": "c", "when": days[2], "n": 3}
    assert w.query() == want
    for again in (
        w.copy(),
        pickle.loads(pickle.dumps(w)),
        sw.Window.from_bytes(w.to_bytes()),
    ):
        assert again.query() == want
        assert again.aggs == w.aggs


def test_with_user_defined_aggregations():
    joined = sw.aggregation(combine=lambda a, b: a + b, identity="")
    w = sw.Window({"top": sw.max(), "all": joined}, dtype="object")
    w.insert_many([2, 1], ["b", "c"])
    assert w.query() == {"top": "c", "all": "cb"}


def test_nan_absorbs():
    w = sw.Window({"low": sw.min(), "n": sw.max_count()}, dtype="object")
    w.insert_many([1, 2, 3], [1.0, math.nan, Decimal(2)])
    answer = w.query()
    assert math.isnan(answer["low"])
    assert answer["n"] == 1
    assert w.query(3) == {"low": Decimal(2), "n": 1}


def test_decimals_are_exact_or_refused():
    w = sw.Window(sw.sum(), dtype="object")
    w.insert_many([1, 2, 3], [Decimal("1e40"), Decimal("1e-40"), Decimal("-1e40")])
    assert w.query() == Decimal("1e-40")
    w.insert(4, Decimal("1e20000"))
    with pytest.raises(decimal.Inexact) as caught:
        w.query()
    assert "combining two partials of sum" in caught.value.__notes__[0]
    assert w.query(1, 3) == Decimal("1e-40")


def test_values_that_do_not_compare():
    w = sw.Window(sw.max(), dtype="object")
    w.insert_many([1, 2], ["a", 1])
    with pytest.raises(TypeError) as caught:
        w.query()
    assert "combining two partials of max" in caught.value.__notes__[0]
    assert w.query(1, 1) == "a"


def test_what_needs_numbers():
    with pytest.raises(sw.SpecError, match=r"variance\(\) computes with numbers"):
        sw.Window(sw.variance(), dtype="object")
    for agg in (sw.variance(), sw.median(), sw.product()):
        w = sw.Window(agg)
        with pytest.raises(sw.SpecError, match="str 'a' is not a number"):
            w.insert(1, "a")
        w.insert(1, 2)


# The first value decides


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("name", sorted(set(VALUES) - {"bools", "ints"}))
def test_the_first_value_decides(name, bulk):
    known = definitions(name)
    if name == "text":  # of which any and all are computed with dtype="object" alone
        known = {kind: known[kind] for kind in ORDERED}
    aggs = {kind: getattr(sw, kind)() for kind in known} | {"n": sw.count()}
    w = sw.Window(aggs)
    values = [None, None, *VALUES[name], None]
    times = range(len(values))
    if bulk:
        w.insert_many(times, values)
    else:
        for time, value in zip(times, values, strict=True):
            w.insert(time, value)
    want = {kind: f(VALUES[name]) for kind, f in known.items()} | {"n": len(values)}
    assert w.query() == want
    assert w.dtype == "object"
    assert len(w) == len(values)
    w.check()
    copies = [w.copy()]
    if name not in ("timedeltas", "decimals", "fractions"):
        copies.append(sw.Window.from_bytes(w.to_bytes()))
    for again in copies:
        assert again.query() == want
        again.evict_until(1)
        assert again.query() == want | {"n": len(values) - 2}
        again.check()


def test_the_first_value_of_each_column_decides_its_type():
    aggs = {"top": sw.max("who"), "avg": sw.mean("x"), "d": sw.count_distinct("who")}
    w = sw.Window(aggs)
    w.insert(1, {"who": None, "x": 1})
    w.insert(3, {"who": None, "x": 4})
    assert w.dtype == {"who": None, "x": "int64"}
    w.insert(2, {"who": "b", "x": 7})
    assert w.dtype == {"who": "object", "x": "int64"}
    w.insert_many([4, 5], {"who": ["a", None], "x": [None, 8]})
    assert w.query() == {"top": "b", "avg": 5.0, "d": 2}
    assert w.query(4) == {"top": "a", "avg": 8.0, "d": 1}
    again = sw.Window.from_bytes(w.to_bytes())
    assert (again.query(), again.dtype, again.items()) == (
        w.query(),
        w.dtype,
        w.items(),
    )
    again.insert(9, {"who": "c", "x": 1})
    again.check()
    again.insert(9, {"who": "d", "x": 2**53 + 1})
    with pytest.raises(sw.SpecError, match=r'column "x": .* is a float'):
        again.insert(6, {"who": "z", "x": 1.5})
    w.insert(6, {"who": "z", "x": 1.5})
    w.check()
    assert (w.query()["top"], w.dtype["x"]) == ("z", "float64")


@pytest.mark.parametrize(
    ("values", "largest"),
    [
        (pa.array(["a", "b", None]), "b"),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "b"),
        (pa.array([None, b"a", b"b"]), b"b"),
        (pd.Series(["a", "b", "a"]), "b"),
        (pd.Series(["a", None, "b"], dtype=object), "b"),
        (np.array(["a", "b", "a"]), "b"),
        (pl.Series(["a", None, "b"]), "b"),
        (pa.chunked_array([["a"], ["b", None]]), "b"),
        (deque([None, "a", "b"]), "b"),
        ((text for text in [None, "a", "b"]), "b"),
        (pa.array([date(2024, 1, 1), None, date(2023, 1, 1)]), date(2024, 1, 1)),
        (pa.array([Decimal("1.5"), Decimal("2.5"), None]), Decimal("2.5")),
    ],
)
def test_arrays_of_objects(values, largest):
    w = sw.Window({"top": sw.max(), "n": sw.count()})
    w.insert_many([1, 2, 3], values)
    assert w.query() == {"top": largest, "n": 3}
    assert w.dtype == "object"


def test_tables_and_rows_of_objects():
    columns = {"who": ["a", None, "b"], "x": [1.0, 2.0, None]}
    rows = [{"who": w, "x": x} for w, x in zip(*columns.values(), strict=True)]
    for values in (
        pa.table(columns),
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        rows,
        iter(rows),
        columns,
    ):
        w = sw.Window({"top": sw.max("who"), "s": sw.sum("x")})
        w.insert_many([1, 2, 3], values)
        assert w.query() == {"top": "b", "s": 3.0}
        assert w.dtype == {"who": "object", "x": "float64"}


def test_numbers_stay_numbers():
    w = sw.Window(sw.max())
    w.insert(1, 3)
    for other in ("a", b"a", [1], date(2024, 1, 1)):
        with pytest.raises(sw.SpecError, match="is not a number"):
            w.insert(2, other)
    with pytest.raises(sw.SpecError, match="not numbers"):
        w.insert_many([2, 3], pa.array(["a", "b"]))
    assert (w.query(), w.dtype) == (3, "int64")
    for first in (True, np.int64(3), np.float32(0.5), pd.NA):
        w = sw.Window(sw.max())
        w.insert(1, first)
        assert w.dtype != "object"


def test_refused_calls_do_not_fix_the_type():
    w = sw.Window(sw.max(), algorithm="two_stacks_lite")
    w.insert(5, None)
    with pytest.raises(sw.OutOfOrderError):
        w.insert(3, "a")
    with pytest.raises(sw.OutOfOrderError):
        w.insert_many([3], ["a"])
    assert w.dtype is None
    w.insert(6, 1.5)
    assert (w.query(), w.dtype) == (1.5, "float64")
    subtracting = sw.Window(sw.sum(), algorithm="subtract_on_evict")
    with pytest.raises(sw.SpecError, match="is not a number"):
        subtracting.insert(1, "a")


def test_an_iterator_that_fails_is_read_once():
    def values():
        yield None
        raise LookupError("gone")

    w = sw.Window(sw.max())
    with pytest.raises(LookupError, match="gone") as caught:
        w.insert_many([1, 2], values())
    assert "reading the values of insert_many (item 1)" in caught.value.__notes__[0]
    assert len(w) == 0


# arg_min and arg_max

ROWS = [
    {"name": "b", "score": 2.0},
    {"name": "a", "score": 5.0},
    {"name": None, "score": 7.0},
    {"name": "c", "score": None},
    {"name": "d", "score": 7.0},
    {"name": "e", "score": 1.0},
]


def picked(rows, largest):
    """The name in the first row of the extreme score, and that row."""
    scored = [(at, row) for at, row in enumerate(rows) if row["score"] is not None]
    if not scored:
        return None, None
    pick = max if largest else min
    at, row = pick(scored, key=lambda found: found[1]["score"])  # the first of equals
    return row["name"], at


@pytest.mark.parametrize(
    "algorithm", ["auto", "recalculate", "two_stacks_lite", "daba"]
)
@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("score", [float, str, Fraction])
def test_rows_of_the_extreme(algorithm, bulk, score):
    rows = [
        {**row, "score": None if row["score"] is None else score(row["score"])}
        for row in ROWS
    ]
    aggs = {
        "top": sw.arg_max("name", by="score"),
        "least": sw.arg_min("name", by="score"),
        "when": sw.arg_max(by="score"),
        "n": sw.count("score"),
    }
    window = sw.Window(aggs, algorithm=algorithm)
    if bulk:
        window.insert_many(range(len(rows)), rows)
    for at, row in enumerate(rows):
        if not bulk:
            window.insert(at, row)
            assert window.query()["top"] == picked(rows[: at + 1], True)[0]
    for first in range(len(rows)):
        left = rows[first:]
        when = picked(left, True)[1]
        expected = {
            "top": picked(left, True)[0],
            "least": picked(left, False)[0],
            "when": None if when is None else first + when,
            "n": sum(row["score"] is not None for row in left),
        }
        assert window.query() == expected
        copy = (
            sw.Window.from_bytes(window.to_bytes()) if score is not Fraction else window
        )
        assert copy.query() == expected
        window.check()
        window.evict()


def test_the_time_of_the_extreme_is_of_the_window_s_kind():
    noon = datetime(2024, 5, 1, 12)
    window = sw.Window(sw.arg_max(), granularity="1m")
    window.insert(noon + timedelta(seconds=5), "b")
    window.insert_many([noon + timedelta(minutes=1)], ["a"])
    assert window.query() == noon


def test_columns_of_the_extreme_from_tables():
    table = pa.table({"name": ["a", "b", None], "score": [1.0, None, 3.0]})
    window = sw.Window({"top": sw.arg_max("name", by="score"), "sum": sw.sum("score")})
    window.insert_many([1, 2, 3], table)
    assert window.query() == {"top": None, "sum": 4.0}
    assert window.evict(3)
    assert window.query() == {"top": "a", "sum": 1.0}
    assert window.dtype == {"name": "object", "score": "float64"}


@pytest.mark.parametrize("bulk", [False, True])
def test_nan_in_what_is_compared(bulk):
    def answer(nan):
        window = sw.Window(sw.arg_min("name", by="score"), nan=nan)
        rows = [{"name": "a", "score": 1.0}, {"name": "b", "score": math.nan}]
        if bulk:
            window.insert_many([1, 2], rows)
        else:
            for time, row in enumerate(rows):
                window.insert(time, row)
        return window.query()

    assert answer("propagate") == "b"
    assert answer("skip") == "a"
    with pytest.raises(sw.SpecError, match="NaN"):
        answer("raise")


def test_an_object_after_numbers_that_go_with_it():
    window = sw.Window(sw.arg_max("name", by="score"))
    window.insert(1, {"name": None, "score": 7.0})
    with pytest.raises(sw.SpecError, match="dtype='object'"):
        window.insert(2, {"name": "a", "score": 1.0})
    assert len(window) == 1
    window = sw.Window(sw.arg_max("name", by="score"), dtype="object")
    window.insert(1, {"name": None, "score": 7.0})
    window.insert(2, {"name": "a", "score": 1.0})
    assert window.query() is None


@pytest.mark.parametrize("beside", [sw.sum, sw.last])
def test_an_object_after_numbers_that_another_aggregation_keeps(beside):
    window = sw.Window({"name": sw.arg_max("name", by="score"), "n": beside("score")})
    window.insert(1, {"name": None, "score": 7.0})
    with pytest.raises(sw.SpecError, match="dtype='object'"):
        window.insert(2, {"name": "a", "score": 1.0})
    assert len(window) == 1
    window.insert(3, {"name": None, "score": 8.0})
    assert window.query() == {"name": None, "n": 15.0 if beside is sw.sum else 8.0}


# Ints beyond int64, and values of other libraries


@pytest.mark.parametrize(
    "values",
    [
        [2**63 + 1, 5],
        np.array([5, 2**63 + 1], dtype="uint64"),
        pa.array([5, 2**63 + 1], pa.uint64()),
        [-(2**70), 1],
    ],
)
def test_ints_beyond_int64_are_exact(values):
    exact = [
        int(value) if isinstance(value, int) else int(str(value)) for value in values
    ]
    window = sw.Window({"sum": sw.sum("x"), "max": sw.max("x")})
    window.insert_many([1, 2], {"x": values})
    assert window.query() == {"sum": sum(exact), "max": max(exact)}
    one = sw.Window(sw.sum(), dtype="object")
    for time, value in enumerate(values):
        one.insert(time, value)
    assert one.query() == sum(exact)


def test_scalars_of_arrow_are_what_they_stand_for():
    window = sw.Window(sw.max())
    for time, value in enumerate(pa.array([1, 3, 2], pa.timestamp("s"))):
        window.insert(time, value)
    assert window.query() == datetime(1970, 1, 1, 0, 0, 3)
    numbers = sw.Window(sw.sum())
    for time, value in enumerate(pa.array([1, None, 2])):
        numbers.insert(time, value)
    assert numbers.query() == 3


@pytest.mark.parametrize(
    ("agg", "value"),
    [
        (sw.sum(), datetime(2024, 1, 1)),
        (sw.mean(), "text"),
        (sw.range(), "text"),
        (sw.sum(), np.datetime64("2024-01-01")),
    ],
)
@pytest.mark.parametrize("bulk", [False, True])
def test_values_that_cannot_be_computed_are_refused_on_insert(agg, value, bulk):
    window = sw.Window(agg, dtype="object")
    insert = window.insert_many if bulk else window.insert
    with pytest.raises(sw.SpecError, match="cannot be computed of"):
        insert(*(([1], [value]) if bulk else (1, value)))
    assert len(window) == 0


@pytest.mark.parametrize("agg", [sw.bit_or(), sw.bit_and(), sw.bit_xor()])
def test_bits_are_of_whole_numbers(agg):
    window = sw.Window(agg)
    for values in ([1.5], np.array([1.5]), pa.array([2.0])):
        with pytest.raises(sw.SpecError, match="computes with int64"):
            window.insert_many([1], values)
    with pytest.raises(sw.SpecError, match="computes with int64"):
        window.insert(1, 0.5)
    window.insert(1, 6)
    assert window.query() == 6


@pytest.mark.parametrize(
    "algorithm", ["auto", "daba_lite", "two_stacks", "recalculate"]
)
def test_top_k_of_objects(algorithm: str) -> None:
    rng = random.Random(algorithm)
    makes: list[Any] = [
        lambda: rng.choice("abcdefg"),
        lambda: Decimal(rng.randrange(50)) / 10,
        lambda: date(2026, 1, 1 + rng.randrange(28)),
        lambda: timedelta(hours=rng.randrange(9)),
        lambda: 2**70 + rng.randrange(9),
    ]
    for make in makes:
        aggs = {"top": sw.top_k(k=3), "low": sw.bottom_k(k=2), "max": sw.max()}
        window = sw.Window(aggs, algorithm=algorithm, dtype="object")
        assert window.query() == {"top": [], "low": [], "max": None}
        alone = sw.Window(sw.top_k(k=2))
        held: list[Any] = []
        for time in range(80):
            value = None if rng.random() < 0.1 else make()
            window.insert(time, value)
            alone.insert(time, value)
            held.append(value)
            if len(held) > 12:
                window.evict()
                alone.evict()
                held.pop(0)
            there = sorted(value for value in held if value is not None)
            got = window.query()
            assert got["top"] == there[::-1][:3]
            assert got["low"] == there[:2]
            assert alone.query() == there[::-1][:2]
        assert sw.Window.from_bytes(window.to_bytes()).query() == got
        while len(alone):
            alone.evict()
        assert alone.query() == []


def test_top_k_of_objects_that_do_not_compare_is_refused() -> None:
    window = sw.Window(sw.top_k(k=2), dtype="object")
    with pytest.raises(sw.SpecError, match="top_k\\(\\) cannot be computed of"):
        window.insert(1, object())
    shared = sw.SharedWindow(sw.top_k(k=1), ranges=[2], dtype="object")
    shared.insert_many([1, 2, 3], ["c", "a", "b"])
    assert shared.query() == [["b"]]
