"""Built-in aggregations over Python objects, with `dtype="object"`."""

import decimal
import math
import pickle
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

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


def test_beside_aggregations_of_ones_own():
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


def test_what_does_not_compare():
    w = sw.Window(sw.max(), dtype="object")
    w.insert_many([1, 2], ["a", 1])
    with pytest.raises(TypeError) as caught:
        w.query()
    assert "combining two partials of max" in caught.value.__notes__[0]
    assert w.query(1, 1) == "a"


def test_what_needs_numbers():
    with pytest.raises(sw.SpecError, match=r"variance\(\) computes with numbers"):
        sw.Window(sw.variance(), dtype="object")
    w = sw.Window(sw.max())
    with pytest.raises(sw.SpecError, match="dtype='object'"):
        w.insert(1, "a")
