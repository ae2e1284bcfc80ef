"""The answers of a window, and its errors for wrong values."""

import math
import statistics
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

MIN, MAX = -(2**63), 2**63 - 1


def filled(agg, pairs, **options):
    window = sw.Window(agg, **options)
    for time, value in pairs:
        window.insert(time, value)
    return window


# -- answers ---------------------------------------------------------------------------


def test_the_example_of_the_front_page():
    w = sw.Window(sw.max())
    w.insert(17, 4.0)
    w.insert(19, 3.0)
    w.insert(18, 5.0)
    assert w.query() == 5.0
    assert w.query(17, 18) == 5.0
    assert w.query(19, 30) == 3.0
    assert len(w) == 3
    assert (w.oldest, w.youngest) == (17, 19)
    assert w.items() == [(17, 4.0), (18, 5.0), (19, 3.0)]
    assert w.evict() == 17
    assert w.evict(18) is True
    assert w.evict(18) is False
    assert w.evict_until(100) == 1
    assert not w


@pytest.mark.parametrize("algorithm", ["auto", "fiba", "recalculate"])
@pytest.mark.parametrize(
    ("agg", "answer"),
    [
        (sw.count(), 5),
        (sw.sum(), 14),
        (sw.mean(), 2.8),
        (sw.min(), 1),
        (sw.max(), 5),
        (sw.range(), 4),
        (sw.variance(), statistics.variance([3, 1, 4, 1, 5])),
        (sw.variance(ddof=0), statistics.pvariance([3, 1, 4, 1, 5])),
        (sw.stddev(), statistics.stdev([3, 1, 4, 1, 5])),
        (sw.min_count(), 2),
        (sw.max_count(), 1),
        (sw.arg_min(), 20),
        (sw.arg_max(), 50),
        (sw.first(), 3),
        (sw.last(), 5),
        (sw.geometric_mean(), statistics.geometric_mean([3, 1, 4, 1, 5])),
        (sw.collect(), [3, 1, 4, 1, 5]),
    ],
)
@pytest.mark.parametrize("convert", [int, float])
def test_answers_over_five_values(algorithm, agg, answer, convert):
    values = [convert(value) for value in (3, 1, 4, 1, 5)]
    w = sw.Window(agg, algorithm=algorithm)
    for time, value in zip((30, 20, 40, 10, 50), values[:0], strict=False):
        w.insert(time, value)
    w.insert_many([50, 10, 30, 20, 40], [values[i] for i in (4, 0, 2, 1, 3)])
    assert w.query() == pytest.approx(answer)
    keeps_type = agg.kind in ("sum", "min", "max", "range", "first", "last")
    if keeps_type:
        assert type(w.query()) is convert


@pytest.mark.parametrize(
    ("agg", "nothing"),
    [(sw.count(), 0), (sw.collect(), []), (sw.sum(), None), (sw.arg_max(), None)],
)
def test_over_nothing(agg, nothing):
    w = sw.Window(agg)
    assert w.query() == nothing
    assert w.query(1, 2) == nothing
    w.insert(5, 1)
    assert w.query(6, 9) == nothing
    assert w.query(hi=4) == nothing
    w.clear()
    assert w.query() == nothing


def test_several_at_once_give_a_dict():
    w = filled({"n": sw.count(), "avg": sw.mean(), "sd": sw.stddev()}, [(1, 2), (2, 4)])
    assert w.query() == {"n": 2, "avg": 3.0, "sd": pytest.approx(math.sqrt(2))}
    assert w.items() == [
        (1, {"n": 1, "avg": 2.0, "sd": None}),
        (2, {"n": 1, "avg": 4.0, "sd": None}),
    ]
    assert list(w.query()) == ["n", "avg", "sd"]


def test_one_in_a_mapping_gives_a_dict_too():
    assert filled({"s": sw.sum()}, [(1, 2)]).query() == {"s": 2}


def test_columns_take_mappings():
    w = sw.Window(
        {
            "avg": sw.mean("x"),
            "rows": sw.count(),
            "ys": sw.count("y"),
            "who": sw.collect("who"),
            "when": sw.arg_max(by="x"),
            "y_of_max": sw.arg_max("y", by="x"),
        }
    )
    w.insert(1, {"x": 1.0, "y": 10, "who": "ann", "more": object()})
    w.insert(3, {"x": 2.0, "y": None, "who": None})
    w.insert(2, {"x": 6.0, "y": 30, "who": ["bob"]})
    assert w.query() == {
        "avg": 3.0,
        "rows": 3,
        "ys": 2,
        "who": ["ann", ["bob"]],
        "when": 2,
        "y_of_max": 30,
    }
    assert w.query(3) == {
        "avg": 2.0,
        "rows": 1,
        "ys": 0,
        "who": [],
        "when": 3,
        "y_of_max": None,
    }


def test_a_single_aggregation_of_a_column_answers_bare():
    w = sw.Window(sw.sum("x"))
    w.insert(1, {"x": 2})
    assert w.query() == 2


def test_columns_have_types_of_their_own():
    w = sw.Window({"a": sw.sum("a"), "b": sw.sum("b")})
    w.insert(1, {"a": None, "b": 1})
    assert w.dtype == {"a": None, "b": "int64"}
    w.insert(2, {"a": 0.5, "b": None})
    assert w.dtype == {"a": "float64", "b": "int64"}
    assert w.query() == {"a": 0.5, "b": 1}
    assert w.items()[0] == (1, {"a": None, "b": 1})


# -- equal times, missing values, numbers ----------------------------------------------


def test_ties_combine():
    w = filled(sw.collect(), [(1, "a"), (2, "b"), (1, "c")])
    assert len(w) == 2
    assert w.query() == ["a", "c", "b"]
    assert w.items() == [(1, ["a", "c"]), (2, ["b"])]
    assert w.evict(1)
    assert w.query() == ["b"]


def test_ties_keep():
    w = filled(sw.collect(), [(1, "a"), (2, "b"), (1, "c")], ties="keep")
    assert len(w) == 3
    assert w.items() == [(1, ["a"]), (1, ["c"]), (2, ["b"])]
    assert w.evict() == 1
    assert w.query() == ["c", "b"]
    assert w.evict(1)
    assert not w.evict(1)


@pytest.mark.parametrize("ties", ["combine", "keep"])
def test_insert_many_is_stable(ties):
    w = sw.Window(sw.collect(), ties=ties)
    w.insert(2, "old")
    w.insert_many([2, 1, 2, 1, 3], ["a", "b", "c", "d", "e"])
    assert w.query() == ["b", "d", "old", "a", "c", "e"]
    assert len(w) == (3 if ties == "combine" else 6)


def test_none_is_a_missing_value():
    w = sw.Window({"rows": sw.count(), "s": sw.sum(), "m": sw.min()})
    w.insert_many([1, 2], [None, None])
    assert w.query() == {"rows": 2, "s": None, "m": None}
    assert w.dtype is None
    w.insert(3, 2.5)  # the type is decided now; earlier entries stay
    assert w.query() == {"rows": 3, "s": 2.5, "m": 2.5}
    assert w.query(1, 2) == {"rows": 2, "s": None, "m": None}
    assert len(w) == 3


def test_nulls_before_the_first_value_survive_evictions():
    for ties in ("combine", "keep"):
        w = sw.Window({"rows": sw.count(), "s": sw.sum()}, ties=ties)
        for time in (1, 2, 2, 3, 4, 5):
            w.insert(time, None)
        w.evict()
        w.evict(4)
        w.evict_until(1)
        before = [(time, answer["rows"]) for time, answer in w.items()]
        w.check()
        w.insert(9, 0.5)
        w.check()
        after = [(time, answer["rows"]) for time, answer in w.items()]
        assert after == [*before, (9, 1)]


def test_the_first_value_decides_the_type():
    w = filled(sw.sum(), [(1, 2**53 + 1)])
    with pytest.raises(sw.SpecError, match=r"2\.5 is a float.*int64.*dtype='float64'"):
        w.insert(2, 2.5)
    assert w.items() == [(1, 2**53 + 1)]
    w = filled(sw.sum(), [(1, 1.5), (2, 1)])
    assert w.query() == 2.5
    w = filled(sw.sum(), [(1, 1), (2, 2.5)], dtype="float64")
    assert w.query() == 3.5
    assert type(filled(sw.sum(), [(1, 1)], dtype="float64").query()) is float
    with pytest.raises(sw.SpecError, match="dtype='float64'"):
        filled(sw.sum(), [(1, 1.0)], dtype="int64")


def test_bools_count_as_ints():
    w = filled(sw.sum(), [(1, True), (2, False), (3, np.True_)])
    assert w.query() == 2
    assert w.dtype == "int64"
    assert filled(sw.collect(), [(1, True)]).query() == [True]
    assert filled(sw.collect(), [(1, True)]).query()[0] is True


@pytest.mark.parametrize(
    "value",
    [np.int32(7), np.int64(7), np.uint8(7), np.float32(7), Decimal(7), Fraction(7)],
)
def test_numbers_of_other_makes(value):
    assert filled(sw.sum(), [(1, value)]).query() == 7


def test_collect_keeps_what_it_gets():
    thing = object()
    values = ["a", 1, 2.5, True, b"x", (1, 2), thing, 2**70, np.float64(1.5), [1], {}]
    w = sw.Window(sw.collect())
    for time, value in enumerate(values):
        w.insert(time, value)
    got = w.query()
    assert got == values
    assert [type(value) for value in got] == [type(value) for value in values]
    assert got[6] is thing
    assert w.dtype == "object"


def test_collect_of_a_type():
    w = sw.Window(sw.collect(), dtype="float64")
    w.insert(1, 1)
    assert repr(w.query()) == "[1.0]"
    with pytest.raises(sw.SpecError, match="str 'a' is not a number"):
        w.insert(2, "a")


def test_ints_beyond_int64():
    w = filled(sw.sum(), [(1, MAX)])
    with pytest.raises(
        sw.SpecError, match="int 9223372036854775808 does not fit int64"
    ):
        w.insert(2, 2**63)
    assert filled(sw.sum(), [(1, 2**63)], dtype="float64").query() == 2.0**63
    with pytest.raises(sw.SpecError, match="does not fit"):
        filled(sw.sum(), [(1, 10**400)], dtype="float64")


def test_overflow_is_raised_by_the_answer_and_only_there():
    w = filled(sw.sum(), [(1, MAX), (2, MAX)])
    with pytest.raises(
        sw.ResultOverflowError, match=r"sum\(\) is 18446744073709551614"
    ):
        w.query()
    with pytest.raises(OverflowError, match="dtype='float64'"):
        w.query()
    assert w.query(1, 1) == MAX
    assert "beyond int64" in repr(w)
    w.insert(3, -MAX)
    assert w.query() == MAX
    w = filled({"total": sw.sum(), "n": sw.count()}, [(1, MIN), (2, MIN)])
    with pytest.raises(
        sw.ResultOverflowError, match=r"'total', sum\(\), is -1844674407"
    ):
        w.query()
    w = filled(sw.range(), [(1, MIN), (2, MAX)])
    with pytest.raises(
        sw.ResultOverflowError, match=r"range\(\) is 18446744073709551615"
    ):
        w.query()


def test_overflow_of_one_entry_shows_in_items_only():
    w = filled(sw.sum(), [(1, MAX), (1, MAX), (2, -MAX)])
    assert w.query() == MAX
    with pytest.raises(sw.ResultOverflowError):
        w.items()


def test_nan():
    pairs = [(1, 1.0), (2, math.nan), (3, 2.0)]
    assert math.isnan(filled(sw.sum(), pairs).query())
    w = filled(sw.sum(), pairs)
    w.evict(2)
    assert w.query() == 3.0
    assert filled(sw.sum(), pairs, nan="skip").query() == 3.0
    assert len(filled(sw.sum(), pairs, nan="skip")) == 3
    w = sw.Window(sw.sum(), nan="raise")
    w.insert(1, 1.0)
    with pytest.raises(sw.SpecError, match=r"the value is NaN.*nan='raise'"):
        w.insert(2, math.nan)
    with pytest.raises(sw.SpecError, match="row 1: the value is NaN"):
        w.insert_many([3, 4], np.array([1.0, math.nan]))
    with pytest.raises(sw.SpecError, match="row 1: the value is NaN"):
        w.insert_many([3, 4], [1.0, math.nan])
    assert w.items() == [(1, 1.0)]


@pytest.mark.parametrize("make", [list, np.array, pa.array, pl.Series])
def test_nan_in_arrays_is_a_value_unless_skipped(make):
    values = make([1.0, math.nan, 2.0])
    w = sw.Window({"s": sw.sum(), "all": sw.collect()})
    w.insert_many([1, 2, 3], values)
    assert math.isnan(w.query()["s"])
    assert len(w.query()["all"]) == 3
    w = sw.Window({"s": sw.sum(), "all": sw.collect()}, nan="skip")
    w.insert_many([1, 2, 3], values)
    assert w.query() == {"s": 3.0, "all": [1.0, 2.0]}


def test_nan_in_pandas_floats_is_missing():
    w = sw.Window({"n": sw.count(), "s": sw.sum()})
    w.insert_many([1, 2, 3], pd.Series([1.0, math.nan, 2.0]))
    assert w.query() == {"n": 3, "s": 3.0}


def test_infinities_leave_no_trace():
    w = filled(sw.mean(), [(1, math.inf), (2, -math.inf), (3, 1.0)])
    assert math.isnan(w.query())
    w.evict_until(2)
    assert w.query() == 1.0


VALUED = [
    sw.sum(),
    sw.arg_max(),
    sw.count("x"),
    sw.count(where="x"),
    {"rows": sw.count(), "s": sw.sum("x")},
    sw.SharedWindow,
]


@pytest.mark.parametrize("agg", VALUED, ids=repr)
def test_a_value_is_left_out_where_only_rows_are_counted(agg: Any) -> None:
    shared = agg is sw.SharedWindow
    window: Any = sw.SharedWindow(sw.sum(), [2]) if shared else sw.Window(agg)
    for call in (lambda: window.insert(1), lambda: window.insert_many([1, 2])):
        with pytest.raises(sw.SpecError, match=r"value for every time.* count\(\)"):
            call()
    assert len(window) == 0
    window.insert(1, None)
    window.insert(1, value=None)
    window.insert_many([2, 3], [None, None])
    assert window.youngest == 3


VALUELESS = [sw.count(), {"rows": sw.count(), "n": sw.count()}]


@pytest.mark.parametrize("agg", VALUELESS, ids=repr)
def test_rows_are_counted_without_values(agg: Any) -> None:
    window = sw.Window(agg)
    window.insert(1)
    window.insert(time=2)
    window.insert_many([3, 4])
    assert len(window) == 4


def test_values_that_do_not_compare_have_a_repr() -> None:
    window = sw.Window(sw.mode())
    window.insert_many([1, 2], ["a", 1])
    with pytest.raises(sw.SpecError, match="do not compare"):
        window.query()
    assert repr(window) == "<Window mode(): 2 entries from 1 to 2; no answer>"
