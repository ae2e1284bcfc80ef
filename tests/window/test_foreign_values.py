"""Values whose types are named like those of numpy, pandas and Arrow, and are not."""

import decimal
import fractions
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw


def named(name: str, **members: Any) -> Any:
    """A value of a user's class of that name."""
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
    with pytest.raises(sw.SpecError, match="where= takes a column of booleans"):
        w.insert(1, {"ok": named(name)})
    with pytest.raises(sw.SpecError, match="takes a column of booleans"):
        w.insert_many([1], [{"ok": named(name)}])
    assert len(w) == 0


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (pd.NA, None),
        (pd.NaT, None),
        (np.datetime64("NaT"), None),
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
