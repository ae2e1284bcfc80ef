"""Options of a window, its copies, and its descriptions."""

import copy
import pickle
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

import slidewise as sw

MIN, MAX = -(2**63), 2**63 - 1


def filled(agg, pairs, **options):
    window = sw.Window(agg, **options)
    for time, value in pairs:
        window.insert(time, value)
    return window


# -- windows with last=, granularity ---------------------------------------------------


def test_last_by_time():
    w = sw.Window(sw.collect(), last=10)
    for time in (1, 5, 11, 3, 12, 1):
        w.insert(time, time)
    assert w.query() == [3, 5, 11, 12]  # (12 − 10, 12]
    w.insert_many([30, 21, 20, 29], [30, 21, 20, 29])
    assert w.query() == [21, 29, 30]


def test_last_by_duration():
    w = sw.Window(sw.count(), last="1h")
    start = datetime(2024, 1, 1)
    w.insert(start)
    w.insert(start + timedelta(minutes=59, seconds=59))
    assert w.query() == 2
    w.insert(start + timedelta(minutes=60))
    assert w.query() == 2
    assert filled(sw.count(), [(start, None)], last=timedelta(hours=1)).query() == 1


def test_last_by_rows():
    w = sw.Window(sw.collect(), last=sw.rows(3))
    assert w.ties == "keep"
    for time in (1, 2, 2, 2):
        w.insert(time, time)
    assert len(w) == 3
    w.insert(1, "late")  # earlier than the three latest
    assert w.query() == [2, 2, 2]
    w.insert_many([5, 4, 1], [5, 4, 1])
    assert w.query() == [2, 4, 5]
    with pytest.raises(
        sw.SpecError, match=r"last=rows\(n\) counts entries.*ties='keep'"
    ):
        sw.Window(sw.sum(), last=sw.rows(3), ties="combine")


@pytest.mark.parametrize("last", [25, sw.rows(20)])
@pytest.mark.parametrize("dtype", ["int64", "object"])
def test_bulk_and_single_inserts_evict_alike(last, dtype):
    rng = np.random.default_rng(3)
    times = rng.integers(0, 200, 300).tolist()
    one, many = (sw.Window(sw.collect(), last=last, dtype=dtype) for _ in range(2))
    for time in times:
        one.insert(time, time)
    for start in range(0, 300, 37):
        many.insert_many(times[start : start + 37], times[start : start + 37])
    assert one.items() == many.items()
    one.check()


def test_granularity():
    w = sw.Window(sw.collect(), granularity=10)
    for time in (3, 17, 12, -1, -10):
        w.insert(time, time)
    assert w.items() == [(-10, [-1, -10]), (0, [3]), (10, [17, 12])]
    assert w.evict(15) is True
    w.insert_many([1, 2, 29], [1, 2, 29])
    assert w.items() == [(-10, [-1, -10]), (0, [3, 1, 2]), (20, [29])]
    w = sw.Window(sw.sum(), granularity="1m")
    w.insert_many(
        pd.to_datetime(["2024-01-01 10:07:59", "2024-01-01 10:07:01"]), [1, 2]
    )
    assert w.items() == [(pd.Timestamp("2024-01-01 10:07"), 3)]
    with pytest.raises(
        sw.SpecError, match="rounded down to a multiple of 10 is beyond int64"
    ):
        sw.Window(sw.sum(), granularity=10).insert(MIN, 1)


@pytest.mark.parametrize("argument", ["last", "granularity"])
def test_lengths_that_do_not_go_with_the_times(argument):
    w = sw.Window(sw.sum(), **{argument: "1h"})
    with pytest.raises(
        sw.SpecError, match=f"{argument}='1h' is a duration, but the times are"
    ):
        w.insert(5, 1)
    with pytest.raises(
        sw.SpecError, match=f"{argument}='1h' is not a whole number of units"
    ):
        w.insert(date(2024, 1, 1), 1)
    w.insert(datetime(2024, 1, 1), 1)
    w = sw.Window(sw.sum(), **{argument: 5})
    with pytest.raises(sw.SpecError, match=f"{argument}=5 is a bare number"):
        w.insert(datetime(2024, 1, 1), 1)
    with pytest.raises(sw.SpecError, match="longer than zero"):
        sw.Window(sw.sum(), **{argument: 0})
    with pytest.raises(sw.SpecError, match="no fixed length"):
        sw.Window(sw.sum(), **{argument: "1 month"})
    with pytest.raises(sw.SpecError, match="too long: int64"):
        sw.Window(sw.sum(), **{argument: 2**63}).insert(1, 1)


def test_granularity_takes_no_rows():
    with pytest.raises(sw.SpecError, match="granularity= takes a duration or an int"):
        sw.Window(sw.sum(), granularity=sw.rows(3))


# -- the constructor -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((sw.sum,), "the function sw.sum itself: write sw.sum()"),
        (("sum",), "a Window takes an aggregation such as sw.sum()"),
        (({},), "aggs= is empty: give at least one"),
        (({"a": 5},), r"aggs\['a'\] is not an aggregation: 5"),
        (({5: sw.sum()},), "aggs= names an aggregation 5: a name is a str"),
        (({"a": sw.sum("x"), "b": sw.mean()},), "names no column, but others do"),
        (({"a": sw.arg_max("x")},), "needs the column to compare"),
        ((sw.variance(ddof=2**31),), "ddof=2147483648 is too large"),
    ],
)
def test_wrong_aggregations(arguments, message):
    with pytest.raises(
        sw.SpecError, match=message.replace("(", r"\(").replace(")", r"\)")
    ):
        sw.Window(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"algorithm": "fibber"},
            "unknown algorithm 'fibber'; there are auto, fiba, ",
        ),
        ({"ties": "drop"}, "ties= is one of combine, keep; got 'drop'"),
        ({"nan": "ignore"}, "nan= is one of propagate, skip, raise; got 'ignore'"),
        ({"dtype": "int32"}, "dtype= is one of int64, float64, object; got 'int32'"),
        ({"dtype": []}, r"dtype= is one of int64, float64, object; got \[\]"),
        ({"prefer": "speed"}, "prefer= is one of throughput, latency; got 'speed'"),
        (
            {"arity": 4},
            "arity= is for algorithm='btree' or 'fiba_published', not 'auto'",
        ),
        (
            {"depth": 4},
            "there is no argument depth=; the parameters of algorithm 'auto': none",
        ),
        ({"last": "soon"}, "last='soon' is not a duration"),
        ({"last": 0}, "last=0 must be longer than zero: give"),
        ({"granularity": -1}, "granularity=-1 must be longer than zero"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(sw.SpecError, match=message):
        sw.Window(sw.sum(), **options)


def test_a_window_tells_its_options():
    w = sw.Window(sw.sum(), ties="keep", algorithm="recalculate")
    assert (w.aggs, w.ties, w.algorithm) == (sw.sum(), "keep", "recalculate")
    assert sw.Window({"s": sw.sum()}).aggs == {"s": sw.sum()}


def test_options_are_distinguished():
    """Windows with equal options share the objects made of them."""
    assert sw.Window(sw.sum(), last=1).query() is None
    for last in (True, 1.0):
        with pytest.raises(sw.SpecError):
            sw.Window(sw.sum(), last=last)
    assert list(filled({"a": sw.sum(), "b": sw.max()}, [(1, 2)]).query()) == ["a", "b"]
    assert list(filled({"b": sw.max(), "a": sw.sum()}, [(1, 2)]).query()) == ["b", "a"]


def test_options_that_are_taken():
    for prefer in ("throughput", "latency"):
        text = sw.Window(sw.sum(), prefer=prefer).explain()
        assert f'chosen by "auto" for prefer={prefer!r}' in text
    assert sw.Window(sw.sum(), dtype=float).dtype == "float64"
    assert sw.Window(sw.sum(), dtype=int).dtype == "int64"
    with pytest.raises(TypeError):
        sw.Window(sw.sum(), "fiba")


# -- copies, descriptions --------------------------------------------------------------


@pytest.mark.parametrize("agg", [sw.sum(), sw.collect()])
def test_copies_go_their_own_way(agg):
    w = filled(agg, [(1, 1), (2, 2)])
    for other in (
        w.copy(),
        copy.copy(w),
        copy.deepcopy(w),
        pickle.loads(pickle.dumps(w)),
    ):
        assert type(other) is sw.Window
        assert other.items() == w.items()
        other.insert(3, 3)
        other.evict()
        assert w.items() == filled(agg, [(1, 1), (2, 2)]).items()
        assert len(other) == 2


def test_objects_in_copies():
    thing = {"deep": []}
    w = filled(sw.collect(), [(1, thing), (2, "x")])
    w.evict(2)
    assert w.copy().query()[0] is thing
    deep = copy.deepcopy(w).query()[0]
    assert deep == thing
    assert deep is not thing
    assert deep["deep"] is not thing["deep"]


def test_subclasses_stay_what_they_are():
    class Mine(sw.Window):
        pass

    w = Mine(sw.sum())
    w.insert(1, 1)
    for other in (w.copy(), copy.deepcopy(w), Mine.from_bytes(w.to_bytes())):
        assert type(other) is Mine
        assert other.query() == 1


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (lambda: sw.Window(sw.sum()), "<Window sum(): empty>"),
        (
            lambda: filled(sw.sum(), [(1, 5)]),
            "<Window sum(): 1 entry at 1; answer 5>",
        ),
        (
            lambda: filled(
                {"n": sw.count(), "x": sw.max("x")}, [(1, {"x": 5}), (4, {"x": 7})]
            ),
            "<Window n=count(), x=max('x'): 2 entries from 1 to 4; "
            "answer {'n': 2, 'x': 7}>",
        ),
        (
            lambda: filled(
                sw.mean(), [(1, 5)], algorithm="recalculate", ties="keep", last=10
            ),
            "<Window mean(), recalculate, ties='keep', last 10: 1 entry at 1; "
            "answer 5.0>",
        ),
    ],
)
def test_repr(window, words):
    assert repr(window()) == words


def test_repr_of_much():
    w = sw.Window(sw.collect())
    w.insert_many(range(1000), range(1000))
    assert repr(w).endswith("...>")
    assert len(repr(w)) < 300
    w.insert(1000, 1)
    assert repr(w) == "<Window collect(): 1001 entries from 0 to 1000>"


def test_explain_names_the_request():
    w = sw.Window(sw.sum(), last="1h", granularity="1m", nan="skip", prefer="latency")
    text = w.explain()
    for word in ("chosen", "last 1h", "down to 1m", "NaN: skip", "prefer='latency'"):
        assert word in text
    assert "chosen by name" in sw.Window(sw.sum(), algorithm="fiba").explain()
    assert "n − 1 comb" in sw.Window(sw.sum(), algorithm="recalculate").explain()


def test_nbytes():
    small = sw.Window(sw.sum()).nbytes
    w = sw.Window(sw.sum())
    w.insert_many(np.arange(100_000), np.arange(100_000))
    assert small < 1_000
    assert 1_600_000 < w.nbytes < 1_900_000
    w = sw.Window(sw.collect())
    w.insert_many(range(1000), ["x"] * 1000)
    assert w.nbytes > 32_000


def test_clear_keeps_kind_and_type():
    w = filled(sw.sum(), [(1, 1)])
    w.clear()
    assert w.dtype == "int64"
    with pytest.raises(sw.SpecError):
        w.insert(datetime(2024, 1, 1), 1)
    w.insert(5, 1)
    assert w.items() == [(5, 1)]


def test_what_python_offers_by_itself():
    w = sw.Window(sw.sum())
    assert not w
    w.insert(1, 1)
    assert w
    assert hash(w) == hash(w)
    assert w == w
    assert w != w.copy()
    with pytest.raises(AttributeError):
        w.other = 1
    with pytest.raises(TypeError):
        iter(w)


@pytest.mark.parametrize("capacity", [10**12, 2**63 - 1])
def test_a_large_capacity_is_grown_into(capacity):
    window = sw.Window(sw.sum(), algorithm="flat_fat", capacity=capacity)
    window.insert_many(range(100_000), [1] * 100_000)
    assert window.query() == 100_000
    assert sw.Window.from_bytes(window.to_bytes()).query() == 100_000


def test_parameters_beyond_int64():
    with pytest.raises(sw.SpecError, match="capacity"):
        sw.Window(sw.sum(), algorithm="flat_fat", capacity=2**64)
    w = sw.Window(sw.sum(), algorithm="daba_late", latency=2**64)
    with pytest.raises(sw.SpecError, match=f"latency={2**64} is too long"):
        w.insert(1, 1)  # the first time decides the unit
    assert len(w) == 0


def test_parameters_may_be_of_numpy() -> None:
    window = sw.Window(sw.sum(), algorithm="btree", arity=np.int64(4))
    window.insert(1, 2)
    assert sw.Window.from_bytes(window.to_bytes()).query() == 2


def test_ranges_that_daba_late_can_answer() -> None:
    window = sw.Window(sw.sum(), algorithm="daba_late", latency=1)
    window.insert_many(range(10), range(10))
    with pytest.raises(
        sw.SpecError, match="its latency= keeps open, not for 2 to 3"
    ) as e:
        window.query(2, 3)
    assert "daba_late" not in str(e.value).partition("algorithms that")[2]
    assert window.query(9, 9) == 9
