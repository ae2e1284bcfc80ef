"""Values of user types with the names of types of numpy, pandas and Arrow."""

import decimal
import fractions
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw


def named(name: str, **members: Any) -> Any:
    """A value of a user's class with this name."""
    return type(name, (), members)()


NAMES = ["NAType", "NaTType", "uint64", "datetime64", "bool_", "Decimal", "FooScalar"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("many", [False, True])
def test_objects_are_kept_whatever_their_class_is_called(name: str, many: bool) -> None:
    value = named(name, as_py=lambda self: "converted")
    w = sw.Window({"all": sw.collect(), "last": sw.last()}, dtype="object")
    if many:
        w.insert_many([1], [value])
    else:
        w.insert(1, value)
    answer = w.query()
    assert len(answer["all"]) == 1
    assert answer["all"][0] is value
    assert answer["last"] is value


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("many", [False, True])
def test_the_first_value_makes_a_column_of_objects(name: str, many: bool) -> None:
    value = named(name)
    w = sw.Window(sw.last())
    if many:
        w.insert_many([1], iter([value]))
    else:
        w.insert(1, value)
    assert w.query() is value
    assert w.dtype == "object"


@pytest.mark.parametrize("name", ["Decimal", "str_", "bytes_", "timedelta64"])
def test_numbers_are_numbers_whatever_their_class_is_called(name: str) -> None:
    value = named(name, __float__=lambda self: 2.5)
    one, many, seen = sw.Window(sw.sum()), sw.Window(sw.sum()), sw.Window(sw.bloom())
    one.insert(1, value)
    many.insert_many([1], iter([value]))
    seen.insert(1, value)
    assert one.query() == many.query() == 2.5
    assert 2.5 in seen.query()


@pytest.mark.parametrize("name", ["bool", "bool_"])
def test_where_takes_no_class_that_is_called_bool(name: str) -> None:
    w = sw.Window(sw.count(where="ok"))
    with pytest.raises(sw.SpecError, match="is not a boolean: columns of where="):
        w.insert(1, {"ok": named(name)})
    with pytest.raises(sw.SpecError, match="is not a boolean: columns of where="):
        w.insert_many([1], [{"ok": named(name)}])
    assert len(w) == 0


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (pd.NA, None),
        (pd.NaT, None),
        (np.datetime64("NaT", "s"), None),
        (np.uint64(7), 7),
        (pa.scalar(7), 7),
        (pa.scalar(None, pa.int64()), None),
    ],
)
def test_those_of_the_libraries_are_what_they_stand_for(value: Any, kept: Any) -> None:
    w = sw.Window(sw.collect())
    w.insert(1, value)
    w.insert_many([2], iter([value]))
    assert w.query() == ([] if kept is None else [kept, kept])


@pytest.mark.parametrize("exact", [decimal.Decimal("0.1"), fractions.Fraction(1, 10)])
def test_exact_fractions_stay_what_they_are(exact: Any) -> None:
    w = sw.Window(sw.sum())
    w.insert(1, exact)
    w.insert_many([2], iter([exact]))
    assert w.query() == 2 * exact
    assert type(w.query()) is type(exact)


@pytest.mark.parametrize("missing", [pd.NaT, pd.NA, np.datetime64("NaT", "s"), None])
def test_missing_times_are_missing_values(missing):
    window = sw.Window({"n": sw.count("x"), "top": sw.max("x")})
    window.insert(0, {"x": pd.Timestamp("2024")})
    window.insert(1, {"x": missing})
    window.insert_many([2, 3], [{"x": missing}, {"x": missing}])
    assert window.query() == {"n": 1, "top": pd.Timestamp("2024")}


def test_nan_in_a_pandas_column_of_objects_is_a_missing_value() -> None:
    column = pd.Series([np.nan, "a", np.nan], dtype=object)
    aggs = {"n": sw.count("x"), "l": sw.last("x"), "f": sw.first("x")}
    window = sw.Window(aggs)
    window.insert_many([1, 2, 3], pd.DataFrame({"x": column}))
    frame = pd.DataFrame({"t": [1, 2, 3], "x": column})
    table = sw.rolling(frame, on="t", windows=3, aggs=aggs)
    assert window.query() == {"n": 1, "l": "a", "f": "a"}
    assert table.iloc[-1][["n_3", "l_3", "f_3"]].tolist() == [1, "a", "a"]
    ints = sw.Window(sw.sum())
    ints.insert_many([1, 2], pd.Series([1, np.nan], dtype=object))
    assert ints.query() == 1


def test_values_are_counted_whatever_they_are() -> None:
    large = np.array([2**63 + 1, 5], np.uint64)
    window = sw.Window({"n": sw.count("x")})
    window.insert_many([1, 2], {"x": large})
    assert window.query() == {"n": 2}


@pytest.mark.parametrize("algorithm", ["subtract_on_evict", "slick_deque"])
def test_decimals_are_never_rounded(algorithm: str) -> None:
    window = sw.Window(sw.sum(), algorithm=algorithm)
    with pytest.raises(sw.SpecError, match="needs an inverse"):
        window.insert(1, Decimal("0.1"))
    assert len(window) == 0
    best = sw.Window(sw.product())
    with pytest.raises(sw.SpecError, match=r"does not fit product\(\)"):
        best.insert_many([1, 2], [Decimal("12345678901234567890.12"), Decimal(1)])


@pytest.mark.parametrize("value", [np.datetime64(1, "s"), np.str_("a")])
def test_what_numpy_cannot_make_a_float_is_named(value: Any) -> None:
    with pytest.raises(sw.SpecError, match="is not a number"):
        sw.Window(sw.variance()).insert(1, value)


def test_an_int_beyond_float64() -> None:
    window = sw.Window(sw.sum(), dtype="float64")
    with pytest.raises(sw.SpecError, match=r"does not fit float64.* dtype='object'$"):
        window.insert(1, 10**400)
