"""Columns of integers that become float64 when a float arrives.

From then on a window answers like one of dtype="float64" with the same history, and
like `recalculate`, the oracle of all algorithms.
"""

import math
import pickle
import random
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from definitions import BITS, OF_TIMES, PAIRS, PARAMETERS

import slidewise as sw
from slidewise.aggregations.records import kinds
from slidewise.window.algorithms import ALGORITHMS

# Aggregations that do not widen.
OTHERS = {"collect", "concat", "collect_distinct", *PAIRS, *BITS, *OF_TIMES}
SKETCHES = ("approx_quantile", "approx_count_distinct", "heavy_hitters")
AGGS = {
    kind: partial(getattr(sw, kind), **PARAMETERS.get(kind, {}))
    for kind in (*kinds(), *SKETCHES)
    if kind not in OTHERS
}
COLUMNS = {
    "covariance": lambda: sw.covariance("x", "y"),
    "correlation": lambda: sw.correlation("x", "y"),
    "weighted_mean": lambda: sw.weighted_mean("x", "y"),
    "r_squared": lambda: sw.r_squared("x", "y"),
    "intercept": lambda: sw.intercept("x", "y"),
    "arg_min": lambda: sw.arg_min("x", by="y"),
    "arg_max": lambda: sw.arg_max("y", by="x"),
    "top_k": lambda: sw.top_k("x", 3, by="y"),
    "bottom_k": lambda: sw.bottom_k("y", 3, by="x"),
    "collect": lambda: sw.collect("x"),
    "where": lambda: sw.sum("x", where="on"),
    "min_where": lambda: sw.min("x", where="on"),
    "count": lambda: sw.count("x"),
}
# Algorithms that subtract lose digits: all of them, of what follows the square of 1e17.
NEAR = 1e-9
LOST = {("subtract_on_evict", "sum_of_squares"), ("slick_deque", "sum_of_squares")}


def is_possible(algorithm, aggs):
    try:
        sw.Window(aggs, algorithm=algorithm)
    except sw.SpecError:
        return False
    return True


SINGLE = [
    (algorithm, name)
    for algorithm, name in product([*ALGORITHMS, "auto"], AGGS)
    if is_possible(algorithm, AGGS[name]()) and (algorithm, name) not in LOST
]


def test_there_are_all_algorithms():
    assert {algorithm for algorithm, _ in SINGLE} == {*ALGORITHMS, "auto"}
    assert {name for _, name in SINGLE} == {*AGGS}


def near(found, expected):
    """Whether answers agree, also in their types."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            near(found[name], expected[name]) for name in expected
        )
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(near, found, expected))
    if isinstance(expected, float):
        if type(found) is not float:
            return False
        both = math.isnan(found) and math.isnan(expected)
        return both or math.isclose(found, expected, rel_tol=NEAR, abs_tol=NEAR)
    return type(found) is type(expected) and found == expected


class Twins:
    """A window that widens, one of float64, and the oracle, with the same calls."""

    def __init__(self, aggs, algorithm, **options):
        options["ties"] = options.get("ties", "combine")
        self.window = sw.Window(aggs, algorithm=algorithm, **options)
        self.floats = sw.Window(aggs, algorithm=algorithm, dtype="float64", **options)
        self.oracle = sw.Window(
            aggs, algorithm="recalculate", dtype="float64", **options
        )

    def do(self, call, *args):
        """Calls all three; the oracle refuses nothing, so it goes last."""
        results = []
        for window in (self.window, self.floats):
            try:
                results.append(getattr(window, call)(*args))
            except sw.OutOfOrderError as error:
                results.append(str(error))
        assert results[0] == results[1], (call, args)
        if not isinstance(results[0], str):
            assert getattr(self.oracle, call)(*args) == results[0]

    def agree(self):
        self.window.check()
        assert len(self.window) == len(self.floats)
        assert near(self.window.query(), self.floats.query())
        assert near(self.window.query(), self.oracle.query())
        assert near(self.window.items(), self.floats.items())
        lo = self.window.oldest
        if lo is not None:
            try:
                part = self.floats.query(lo + 1, lo + 4)
            except sw.SpecError:
                return
            assert near(self.window.query(lo + 1, lo + 4), part)

    def restored(self):
        blob = self.window.to_bytes()
        self.window = sw.Window.from_bytes(blob)
        assert self.window.to_bytes() == blob


def some_value(chance, floats):
    if chance.random() < 0.15:
        return None
    if floats and chance.random() < 0.5:
        return chance.choice([0.5, 2.25, -1.5, 3.0, 1e17])
    return chance.choice([1, 2, 3, 3, -4, 7, 0, 1000])


def some_values(chance, floats, count):
    return [some_value(chance, floats) for _ in range(count)]


def act(twins, chance, time, value, values):
    """One random operation; returns the time of the next."""
    step = chance.random()
    if step < 0.5:
        twins.do("insert", time, value())
    elif step < 0.6:
        twins.do("insert", time - chance.randrange(4), value())
    elif step < 0.75:
        count = chance.randrange(1, 5)
        times = sorted(time + chance.randrange(3) for _ in range(count))
        twins.do("insert_many", times, values(count))
        time += 3
    elif step < 0.9:
        if len(twins.window):
            twins.do("evict")
    elif twins.window.oldest is not None:
        twins.do("evict_until", twins.window.oldest + chance.randrange(3))
    return time + chance.randrange(2)


@pytest.mark.parametrize("ties", ["combine", "keep"])
@pytest.mark.parametrize(("algorithm", "name"), SINGLE)
def test_a_widened_window_answers_as_one_of_floats(algorithm, name, ties):
    chance = random.Random(f"{algorithm} {name} {ties}")
    twins = Twins(AGGS[name](), algorithm, ties=ties)
    if name in ("product", "geometric_mean"):
        twins.do("insert", 0, 2)
    time = 0
    for step in range(60):
        floats = step >= 30
        time = act(
            twins,
            chance,
            time,
            lambda floats=floats: some_value(chance, floats),
            lambda count, floats=floats: some_values(chance, floats, count),
        )
        if step == 30:
            twins.restored()
            twins.do("insert", time, 0.25)
        if floats:
            twins.agree()
        if step in (33, 45):
            twins.restored()
    if name not in ("count", "approx_count_distinct", "heavy_hitters"):
        assert twins.window.dtype == "float64"


def test_moments_of_integers_stay_beside_a_column_that_widens() -> None:
    """The sums that they build upon lie elsewhere in the record of floats."""
    aggs = {"w": sw.sum("x", where="on"), "c": sw.covariance("x", "y")}
    w = sw.Window(aggs)
    w.insert(1, {"x": 1, "y": None, "on": True})
    w.insert(2, {"x": 1, "y": 2, "on": None})
    w.insert(3, {"x": 0.5, "y": 3, "on": True})
    assert w.query() == {"w": 1.5, "c": -0.25}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("algorithm", ["auto", "fiba", "btree", "daba_lite", "aba"])
def test_each_column_widens_for_itself(algorithm, seed):
    chance = random.Random(seed)
    names = chance.sample(sorted(COLUMNS), chance.randrange(1, len(COLUMNS)))
    aggs = {name: COLUMNS[name]() for name in names} | {"s": sw.sum("x")}
    aggs |= {"n": sw.count(), "m": sw.max("y"), "all": sw.collect("y")}
    twins = Twins(aggs, algorithm, ties=chance.choice(["combine", "keep"]))

    def row(floats):
        x, y = floats
        return {
            "x": some_value(chance, x),
            "y": some_value(chance, y),
            "on": chance.choice([True, False, None]),
        }

    time = 0
    for step in range(90):
        floats = (step >= 30, step >= 60)
        if step in (30, 60):
            assert twins.window.dtype["y"] == "int64"
            value = {"x": 0.5, "y": 0.5 if step == 60 else 3, "on": True}
            twins.do("insert", time, value)
        time = act(
            twins,
            chance,
            time,
            lambda floats=floats: row(floats),
            lambda count, floats=floats: [row(floats) for _ in range(count)],
        )
        if floats == (True, True):
            twins.agree()
        if step == 40:
            assert (twins.window.dtype["x"], twins.window.dtype["y"]) == (
                "float64",
                "int64",
            )
            assert "'x' widened to float64" in repr(twins.window)
            twins.restored()
    assert "'y' widened to float64" in repr(twins.window)


@pytest.mark.parametrize("name", ["count_distinct", "mode", "median", "collect"])
def test_what_is_beside_a_holistic_aggregation_widens_too(name):
    aggs = {
        "other": sw.collect("x") if name == "collect" else AGGS[name]("x"),
        "sum": sw.sum("x"),
        "max": sw.max("y"),
    }
    for ties in ("combine", "keep"):
        twins = Twins(aggs, "fiba", ties=ties)
        for time in (1, 5, 2, 2, 9):
            twins.do("insert", time, {"x": time, "y": -time})
        twins.do("insert", 2, {"x": None, "y": 1})
        twins.do("insert", 3, {"x": 1.0, "y": 3})
        assert twins.window.dtype == {"x": "float64", "y": "int64"}
        twins.do("insert", 4, {"x": 1, "y": 0.5})
        twins.agree()
        twins.do("evict")
        twins.agree()
        twins.restored()
        twins.agree()


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 2.5],
        [1, True, None, 2.5],
        np.array([1.0, 2.0, 2.5]),
        pa.array([None, 2.0, 2.5]),
        pa.array([1, 2, 2.5], pa.float32()),
        iter([1, 2.5, 7]),
    ],
)
def test_bulk_inserts_widen(values):
    values = list(values) if not hasattr(values, "dtype") else values
    times = range(10, 10 + len(values))
    twins = Twins({"s": sw.sum(), "m": sw.min()}, "auto")
    twins.do("insert_many", [1, 2], [4, 2**53])
    twins.do("insert_many", times, values)
    assert twins.window.dtype == "float64"
    twins.agree()


def test_bools_widen_as_integers_do():
    w = sw.Window(sw.max())
    w.insert(1, True)
    w.insert(2, 0.5)
    assert (w.query(), type(w.query()), w.dtype) == (1.0, float, "float64")


def test_repr_names_the_widened_columns():
    w = sw.Window(sw.sum())
    w.insert(1, 1)
    assert repr(w) == "<Window sum(): 1 entry at 1; answer 1>"
    w.insert(2, 0.5)
    expected = "<Window sum(), widened to float64: 2 entries from 1 to 2; answer 1.5>"
    for other in (w, w.copy(), sw.Window.from_bytes(w.to_bytes())):
        assert repr(other) == expected
    assert pickle.loads(pickle.dumps(w)).dtype == "float64"
    w = sw.Window(sw.sum())
    w.insert(1, 1.0)
    w.insert(1, 1)
    assert "widened" not in repr(w)


def contents(w):
    return w.items(), w.query(), w.dtype, repr(w), w.to_bytes()


@pytest.mark.parametrize("algorithm", ["auto", "two_stacks", "subtract_on_evict"])
@pytest.mark.parametrize("big", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_an_integer_that_is_not_exact_keeps_floats_out(algorithm, big):
    first = sw.Window(sw.sum(), algorithm=algorithm)
    first.insert(1, -5 if big > 0 else 5)
    first.insert(2, big)
    other = sw.Window.from_bytes(first.to_bytes())
    for w in (first, other):
        before = contents(w)
        for values in ([0.5], [3, 0.5], np.array([0.5]), pa.array([0.5])):
            with pytest.raises(sw.SpecError, match=r"not exact.*dtype='float64'"):
                w.insert_many(range(3, 3 + len(values)), values)
            assert contents(w) == before
        with pytest.raises(sw.SpecError, match=r"0\.5 is a float.*dtype='float64'"):
            w.insert(3, 0.5)
        assert contents(w) == before
        # All integers so far count, also evicted ones.
        w.evict_until(2)
        with pytest.raises(sw.SpecError, match="not exact"):
            w.insert(3, 0.5)


@pytest.mark.parametrize("values", [[2**53 + 1, 0.5], [1, 2**62 + 1, 0.5]])
def test_a_bulk_insert_of_both_is_refused(values):
    w = sw.Window(sw.sum())
    before = w.to_bytes()
    with pytest.raises(sw.SpecError, match="not exact"):
        w.insert_many(range(len(values)), iter(values))
    assert (w.to_bytes(), w.dtype) == (before, None)


def test_large_integers_that_are_exact_widen():
    for way in ("insert", "insert_many"):
        twins = Twins({"s": sw.sum(), "m": sw.min(), "l": sw.last()}, "auto")
        for time, value in enumerate([2**53, -(2**63), 2**60, 3 << 55]):
            args = (time, value) if way == "insert" else ([time], np.array([value]))
            twins.do(way, *args)
        twins.do("insert", 9, 0.5)
        twins.agree()
        # From now on ints are rounded, as with dtype="float64".
        twins.do("insert", 10, 2**53 + 1)
        twins.agree()


def test_sums_at_one_time_need_not_be_exact_in_float64():
    for algorithm in ("fiba", "two_stacks", "subtract_on_evict", "btree"):
        twins = Twins(sw.sum(), algorithm)
        for value in (2**53, 2**53 - 1, 2**53 - 3):
            twins.do("insert", 1, value)
        twins.do("insert", 2, 0.5)
        twins.do("insert", 3, -(2**53))
        twins.do("insert", 4, -(2**53))
        twins.do("insert", 5, -(2**53))
        twins.agree()
        assert twins.window.query() == -3.5


def test_a_product_beyond_int64_at_one_time_is_refused():
    w = sw.Window(sw.product())
    for _ in range(30):
        w.insert(1, 1000)
    before = len(w), w.to_bytes()
    with pytest.raises(sw.SpecError, match=r"beyond 64 bits.*dtype='float64'"):
        w.insert(2, 0.5)
    assert (len(w), w.to_bytes()) == before
    apart = Twins(sw.product(), "fiba", ties="keep")
    for time in range(30):
        apart.do("insert", time, 1000)
    apart.do("insert", 40, 0.5)
    apart.agree()


def test_declared_integers_do_not_widen():
    w = sw.Window(sw.sum(), dtype="int64")
    w.insert(1, 1)
    for call in (lambda: w.insert(2, 0.5), lambda: w.insert_many([2], [0.5])):
        with pytest.raises(sw.SpecError, match="but this window holds int64: create"):
            call()
    bits = sw.Window(sw.bit_or())
    bits.insert(1, 1)
    with pytest.raises(sw.SpecError, match="computes with int64"):
        bits.insert(2, 0.5)


def test_columns_of_nulls_stay_open_beside_one_that_widens():
    twins = Twins({"x": sw.sum("x"), "y": sw.max("y")}, "auto")
    twins.do("insert", 1, {"x": 1, "y": None})
    twins.do("insert", 2, {"x": 0.5, "y": None})
    assert twins.window.dtype == {"x": "float64", "y": None}
    twins.do("insert", 3, {"x": 0.5, "y": 2})
    twins.do("insert", 4, {"x": 0.5, "y": 2.5})
    twins.agree()


def test_inputs_of_one_column_widen_together():
    aggs = {"on": sw.sum("x", where="on"), "off": sw.sum("x", where="off")}
    twins = Twins(aggs, "auto")
    row = {"x": 2, "on": True, "off": True}
    twins.do("insert", 1, row)
    twins.do("insert", 2, row | {"x": 0.5, "off": False})
    twins.agree()
    assert twins.window.query() == {"on": 2.5, "off": 2.0}
    assert type(twins.window.query()["off"]) is float
    w = sw.Window(aggs)
    w.insert(1, row | {"x": 2**53 + 1, "on": False})
    before = w.to_bytes()
    with pytest.raises(sw.SpecError, match=r"column .x.: .*not exact"):
        w.insert(2, row | {"x": 0.5, "off": False})
    with pytest.raises(sw.SpecError, match="not exact"):
        w.insert_many([2], [row | {"x": 0.5, "off": False}])
    assert w.to_bytes() == before


def test_what_own_functions_have_made_of_integers_stays():
    seen = sw.aggregation(
        lift=lambda value: [type(value).__name__],
        combine=lambda a, b: a + b,
        identity=list,
    )
    w = sw.Window({"own": seen("x"), "sum": sw.sum("x")})
    for time, value in enumerate([1, 2, 0.5, 3]):
        w.insert(time, {"x": value})
    assert w.query() == {"own": ["int", "int", "float", "int"], "sum": 6.5}
    w.evict()
    assert w.query() == {"own": ["int", "float", "int"], "sum": 5.5}


QUERIES = [
    lambda aggs, dtype: sw.SharedWindow(
        aggs, [sw.rows(3), sw.rows(8), 4, 20], dtype=dtype
    ),
    lambda aggs, dtype: sw.SharedWindow(
        aggs, queries=[sw.Query(6, every=2), sw.Query(10, every=5)], dtype=dtype
    ),
    lambda aggs, dtype: sw.SharedWindow(
        aggs,
        queries=[sw.Query(6, every=2), sw.Query(sw.session(2))],
        late=3,
        dtype=dtype,
    ),
]


@pytest.mark.parametrize("name", ["sum", "max", "variance", "first", "product"])
@pytest.mark.parametrize("make", QUERIES)
def test_shared_windows_widen(make, name):
    chance = random.Random(name)
    window, floats = make(AGGS[name](), None), make(AGGS[name](), "float64")
    time = 0
    for step in range(80):
        value = some_value(chance, step > 40) if step != 40 else 0.5
        late = chance.randrange(3) if make is QUERIES[2] else 0
        answers = [w.insert(max(time - late, 0), value) for w in (window, floats)]
        if step > 40:
            assert near(*answers)
            assert near(window.query(), floats.query())
        if step in (30, 50):
            window = sw.SharedWindow.from_bytes(window.to_bytes())
        window.check()
        time += chance.randrange(3)
    assert window.dtype == "float64"
    assert "widened to float64" in repr(window)


def test_windows_that_migrated_widen_on_fiba():
    twins = Twins(sw.max(), "auto")
    for time in (5, 6, 7, 2):
        twins.do("insert", time, time)
    assert twins.window.algorithm == "fiba"
    twins.do("insert", 3, 0.5)
    assert twins.window.algorithm == "fiba"
    twins.agree()


def test_length_and_latency_stay():
    for options in ({"last": 5}, {"last": sw.rows(3)}):
        twins = Twins(sw.sum(), "fiba", ties="keep", **options)
        for time in (1, 2, 4, 3, 9):
            twins.do("insert", time, time)
        twins.do("insert", 10, 0.5)
        twins.agree()
    made = {"algorithm": "daba_late", "latency": 3}
    w, floats = sw.Window(sw.sum(), **made), sw.Window(sw.sum(), dtype=float, **made)
    for time, value in [(1, 1), (9, 2), (7, 3), (12, 0.5), (10, 4)]:
        w.insert(time, value)
        floats.insert(time, value)
    for other in (w, floats):
        with pytest.raises(sw.OutOfOrderError):
            other.insert(8, 1)
    assert near(w.items(), floats.items())


@pytest.mark.parametrize("algorithm", ["amta", "flat_fit", "fiba", "recalculate"])
@pytest.mark.parametrize("kind", ["until", "landmark", "rows"])
def test_queries_by_what_rows_hold_go_on(kind, algorithm):
    ways = {
        "until": sw.Query(sw.until("flag")),
        "landmark": sw.Query(sw.landmark("flag"), every=4),
        "rows": sw.Query(sw.rows(5), every=sw.rows(2)),
    }
    aggs = {"max": sw.max("x")}

    def made(dtype):
        queries = [ways[kind], sw.Query(8, every=4)]
        return sw.SharedWindow(aggs, queries=queries, algorithm=algorithm, dtype=dtype)

    window, floats = made(None), made("float64")
    chance = random.Random(f"{kind} {algorithm}")
    fell_due = 0
    for time in range(60):
        value = 0.5 if time == 31 else some_value(chance, time > 31)
        row = {"x": value, "flag": chance.random() < 0.3}
        answers = [w.insert(time, row) for w in (window, floats)]
        if time >= 31:
            assert near(*answers), time
            assert near(window.query(), floats.query())
            fell_due += len(answers[0])
        window.check()
    assert fell_due > 10
