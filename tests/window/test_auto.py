"""`algorithm="auto"`: the first algorithm, the migration to fiba, and its results."""

import copy
import pickle
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from shared_windows import Total
from test_window_oracle import TestFiba, WindowMachine

import slidewise as sw
from slidewise.window.algorithms import ALGORITHMS
from slidewise.window.auto_rules import KINDS, RULES, SHARED_RULES

HINTS = (None, "throughput", "latency")

joined = sw.aggregation(
    lift=str, combine=lambda a, b: a + b, identity="", name="test_auto:joined"
)


AGGS = {
    "ints": (sw.sum(), [3, 1, 4, 1, 5, 9, 2, 6]),
    "floats": (sw.sum(), [0.5, 1.25, -3.0, 4.5, 2.0, 9.75, 0.25, 1.0]),
    "extreme": (sw.max(), [3, 1, 4, 1, 5, 9, 2, 6]),
    "record": ({"n": sw.count(), "avg": sw.mean()}, [3, 1, None, 1, 5, 9, 2, 6]),
    "objects": (sw.collect(), ["a", (1,), None, 2.5, b"x", "f", "g", "h"]),
    "own": (joined, ["a", "b", "c", "d", "e", "f", "g", "h"]),
    "inverse": (Total, [3, 1, 4, 1, 5, 9, 2, 6]),
}

# A call that makes the window migrate, and its reason in `explain`.
TRIGGERS = {
    "late": (lambda w: w.insert(35, None), "an entry at 35 arrived late"),
    "bulk": (lambda w: w.insert_many([95, 5, 15], [None] * 3), "an entry at 5 arrived"),
    "inner": (lambda w: w.evict(40), "the entry at 40 was evicted"),
    "range": (lambda w: w.query(20, 50), "a query covered 20 to 50"),
    "open range": (lambda w: w.query(lo=20), "covered 20 to the latest"),
}
STAYS = {
    "in order": lambda w: w.insert_many([95, 85, 99], [None] * 3),
    "tie": lambda w: w.insert(80, None),
    "oldest": lambda w: w.evict(10),
    "absent": lambda w: w.evict(11),
    "until": lambda w: w.evict_until(45),
    "whole range": lambda w: w.query(10, 80),
    "empty range": lambda w: w.query(11, 19),
    "looking": lambda w: (repr(w), w.items(), w.to_svg(), w.nbytes, w.explain()),
}

# Aggregations whose windows begin on an in-order algorithm.
IN_ORDER = [
    (name, hint)
    for name, (agg, values) in AGGS.items()
    for hint in HINTS
    if ALGORITHMS[sw.Window(agg, prefer=hint).algorithm].in_order
]


def filled(name, hint, **options):
    agg, values = AGGS[name]
    w = sw.Window(agg, prefer=hint, **options)
    for at, value in enumerate(values, start=1):
        w.insert(10 * at, value)
    return w


def pairs(ties):
    """Windows that begin on an in-order algorithm, each beside one for any order."""
    for name, hint in IN_ORDER:
        w = filled(name, hint, ties=ties)
        yield w, filled(name, None, ties=ties, algorithm="recalculate")


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("ties", ["combine", "keep"])
def test_goes_over_and_loses_nothing(trigger, ties):
    act, reason = TRIGGERS[trigger]
    for w, oracle in pairs(ties):
        first = w.algorithm
        if not ALGORITHMS[first].in_order:
            continue  # floats, where ints begin in order
        assert "since" not in w.explain()
        assert act(w) == act(oracle)
        if ALGORITHMS[first].ranges and "range" in trigger:
            assert w.algorithm == first
            continue
        assert w.algorithm == "fiba"
        w.check()
        assert w.items() == oracle.items()
        assert w.query() == oracle.query()
        assert len(w) == len(oracle)
        text = " ".join(w.explain().split())
        assert reason in text
        assert f'before that {first}: chosen by "auto"' in text
        assert act(w) == act(oracle)  # the migrated window is an ordinary fiba
        assert w.items() == oracle.items()


@pytest.mark.parametrize("name", STAYS)
@pytest.mark.parametrize("ties", ["combine", "keep"])
def test_stays_where_it_is(name, ties):
    for w, oracle in pairs(ties):
        first = w.algorithm
        STAYS[name](w)
        STAYS[name](oracle)
        assert w.algorithm == first
        assert w.items() == oracle.items()
        assert w.query() == oracle.query()


def others(w):
    yield w.copy()
    yield copy.deepcopy(w)
    yield pickle.loads(pickle.dumps(w))
    yield sw.Window.from_bytes(w.to_bytes())


@pytest.mark.parametrize("trigger", [None, *TRIGGERS])
def test_copies_go_on_alike(trigger):
    rng = random.Random(trigger)
    for w, _ in pairs("combine"):
        if w.aggs in (AGGS["own"][0], AGGS["inverse"][0]):
            continue  # below: they have no name to look up
        if trigger is not None:
            TRIGGERS[trigger][0](w)
        for other in others(w):
            assert other.algorithm == w.algorithm
            assert other.explain() == w.explain()
            assert other.to_bytes() == w.to_bytes()
        *all_of_them, last = *others(w), w
        for _ in range(30):
            time = rng.randrange(200)
            for one in (*all_of_them, last):
                one.insert(time, None)
                one.evict()
            assert len({one.to_bytes() for one in (*all_of_them, last)}) == 1
            assert len({one.algorithm for one in (*all_of_them, last)}) == 1


@pytest.mark.parametrize("name", ["own", "inverse"])
@pytest.mark.parametrize("hint", HINTS)
def test_of_ones_own_go_over(name, hint):
    values = AGGS[name][1]
    for migrate in (False, True):
        w = filled(name, hint)
        if migrate:
            w.insert(25, values[0])
            assert w.algorithm == "fiba"
        for other in (w.copy(), pickle.loads(pickle.dumps(w))):
            assert other.algorithm == w.algorithm
            assert other.items() == w.items()
            assert other.query() == w.query()
            other.insert(5, values[1])
            assert other.algorithm == "fiba"
            assert other.items()[1:] == w.items()


def test_a_combine_that_fails_changes_nothing_on_the_way():
    calls = 0

    def combine(a, b):
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise ZeroDivisionError
        return a + b

    agg = sw.aggregation(lift=lambda v: (v,), combine=combine, identity=())
    w = sw.Window(agg, prefer="throughput")
    w.insert_many(range(0, 100, 2), range(0, 100, 2))
    w.insert(51, 51)
    assert w.algorithm == "fiba"
    wanted = (*range(0, 51, 2), 51, *range(52, 100, 2))
    for _ in range(100):
        try:
            assert w.query() == wanted
            break
        except ZeroDivisionError:
            w.check()
            assert w.items()[26] == (51, (51,))
    else:
        pytest.fail("it makes no progress")


def test_windows_that_keep_their_length():
    for options in (
        {"last": 30},
        {"last": sw.rows(7)},
        {"granularity": 4},
        {"last": 30, "granularity": 4},
    ):
        rng = random.Random(str(options))
        w = sw.Window(sw.sum(), prefer="latency", **options)
        oracle = sw.Window(sw.sum(), algorithm="recalculate", **options)
        time = 0
        for step in range(300):
            time += rng.randrange(3)
            late = 20 if step > 150 and rng.random() < 0.1 else 0
            for one in (w, oracle):
                one.insert(time - late, step)
            assert w.items() == oracle.items()
            assert w.query() == oracle.query()
            w.check()
        assert w.algorithm == "fiba"
        assert "arrived late" in w.explain()


def test_times_are_reported_in_their_kind():
    start = datetime(2024, 3, 1, 12, tzinfo=UTC)
    w = sw.Window(sw.sum(), prefer="latency")
    w.insert_many([start, start + timedelta(hours=1)], [1, 2])
    w.insert(start + timedelta(minutes=5), 3)
    text = " ".join(w.explain().split())
    assert "an entry at 2024-03-01 12:05:00+00:00 arrived late, after one" in text
    assert "2024-03-01 13:00:00+00:00" in text
    assert sw.Window.from_bytes(w.to_bytes()).explain() == w.explain()


def test_the_type_of_the_values_counts():
    """Integers are subtracted, floats are not; a column of nulls is undecided."""
    w = sw.Window(sw.sum(), prefer="latency")
    w.insert(1, None)
    assert w.algorithm == "subtract_on_evict"
    ints, floats = w.copy(), w.copy()
    ints.insert(2, 5)
    floats.insert(2, 0.5)
    assert ints.algorithm == "subtract_on_evict"
    assert not ALGORITHMS[floats.algorithm].law
    assert floats.items() == [(1, None), (2, 0.5)]
    w.insert(0, None)  # migrates before the type is known
    w.insert(3, 0.5)
    assert w.algorithm == "fiba"
    assert w.items() == [(0, None), (1, None), (3, 0.5)]


def test_clear_is_no_way_back():
    w = filled("ints", "latency")
    w.insert(5, 1)
    w.clear()
    w.insert_many(range(100), range(100))
    assert w.algorithm == "fiba"


def test_all_orders_in_arrays():
    rng = np.random.default_rng(5)
    w = sw.Window(sw.sum(), prefer="latency")
    w.insert_many(np.arange(50_000), np.arange(50_000))
    assert w.algorithm == "subtract_on_evict"
    w.insert_many(rng.permutation(60_000), np.arange(60_000))
    assert w.algorithm == "fiba"
    w.check()
    assert len(w) == 60_000
    assert w.query() == sum(range(50_000)) + sum(range(60_000))


def test_headers_name_what_runs():
    w = filled("ints", "latency")
    assert b'"runs":"subtract_on_evict"' in w.to_bytes()
    w.insert(5, 1)
    assert b'"algorithm":"auto"' in w.to_bytes()
    assert b'"runs":"fiba"' in w.to_bytes()
    named = sw.Window(sw.sum(), algorithm="fiba").to_bytes()
    assert b'"algorithm":"fiba"' in named
    assert b"runs" not in named


def test_the_table():
    records = Path(__file__).parents[2] / "bench/record"
    for rule in (*RULES, *SHARED_RULES):
        assert (records / rule.record).is_file()
    for rule in RULES:
        assert rule.prefer in HINTS
        assert rule.of in KINDS
        assert rule.take in ALGORITHMS
        assert rule.why
        assert ALGORITHMS[rule.take].law in (None, "inverse")
        assert ALGORITHMS[rule.take].law is None or rule.of == "exact"
    assert [(rule.prefer, rule.of) for rule in RULES][-1] == (None, "any")
    assert len({(rule.prefer, rule.of) for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("hint", HINTS)
def test_every_rule_can_be_explained(hint):
    for name in AGGS:
        w = filled(name, hint)
        text = w.explain()
        assert text.startswith(f'{w.algorithm}: chosen by "auto"')
        assert max(map(len, text.splitlines())) <= 80


class LatencyMachine(WindowMachine):
    """All methods; `collect` reveals the order."""

    algorithm = "auto"
    prefer = "latency"


TestLatency = LatencyMachine.TestCase
TestLatency.settings = settings(TestFiba.settings, max_examples=15)
del TestFiba, WindowMachine
