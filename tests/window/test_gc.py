"""Collected objects are released on eviction, and cycles through windows are freed."""

import gc
import sys
import weakref

import numpy as np
import pytest

import slidewise as sw


class Thing:
    """An object with a weak reference to it, which can hold a window."""

    def __init__(self, window=None):
        self.window = window


# Evicted objects may live on in the aggregates of their leaf.
A_LEAF = 16


@pytest.mark.parametrize("algorithm", ["fiba", "recalculate"])
def test_what_leaves_is_released(algorithm):
    w = sw.Window(sw.collect(), algorithm=algorithm)
    things = [Thing() for _ in range(300)]
    watched = [weakref.ref(thing) for thing in things]
    w.insert_many(range(300), things)
    del things

    def alive():
        return sum(ref() is not None for ref in watched)

    assert alive() == 300
    slack = A_LEAF if algorithm == "fiba" else 0
    for _ in range(100):
        w.evict()
    assert 200 <= alive() <= 200 + slack
    w.evict_until(199)
    w.evict(250)
    w.query()
    assert 99 <= alive() <= 99 + slack
    w.clear()
    assert alive() == 0


def test_a_window_takes_its_objects_along():
    thing = Thing()
    ref = weakref.ref(thing)
    w = sw.Window(sw.collect())
    w.insert(1, thing)
    other = w.copy()
    del thing, w
    assert ref()
    assert other.query() == [ref()]
    del other
    assert ref() is None


def test_reference_counts_balance():
    thing = Thing()
    before = sys.getrefcount(thing)
    w = sw.Window({"all": sw.collect(), "again": sw.collect(), "n": sw.count()})
    for at in range(500):
        w.insert(at % 90, thing)
    w.query()
    w.items()
    w.copy().query()
    w.insert_many(range(100), [thing] * 100)
    assert sys.getrefcount(thing) > before
    w.clear()
    assert sys.getrefcount(thing) == before
    w.insert(1, thing)
    del w
    assert sys.getrefcount(thing) == before


def test_failed_inserts_hold_nothing():
    thing = Thing()
    before = sys.getrefcount(thing)
    w = sw.Window({"all": sw.collect("a"), "s": sw.stddev("b")})
    for use in (
        lambda: w.insert(1, {"a": thing, "b": "x"}),
        lambda: w.insert(1.5, {"a": thing, "b": 1}),
        lambda: w.insert_many([1, 2], [{"a": thing, "b": 1}, {"a": thing, "b": "x"}]),
        lambda: w.insert_many([1], {"a": [thing, thing], "b": [1]}),
    ):
        for _ in range(20):
            try:
                use()
            except sw.SpecError as error:
                error.__traceback__ = None
    gc.collect()
    assert sys.getrefcount(thing) == before


def test_cycles_through_windows_die():
    """Ten thousand cycles of window and object are freed."""
    gc.collect()
    gc.disable()
    try:
        watched = []
        for turn in range(10_000):
            w = sw.Window(sw.collect(), algorithm=("fiba", "recalculate")[turn % 2])
            thing = Thing(w)
            for at in range(turn % 3 + 1):
                w.insert(at, thing)
            watched += [weakref.ref(w), weakref.ref(thing)]
        del w, thing
        assert all(ref() for ref in watched)
        gc.collect()
        assert not any(ref() for ref in watched)
    finally:
        gc.enable()


def test_cycles_through_copies_and_each_other_die():
    gc.collect()
    one, two = sw.Window(sw.collect()), sw.Window(sw.collect())
    one.insert(1, two)
    two.insert(1, one)
    three = one.copy()
    one.insert(2, three)
    watched = [weakref.ref(w) for w in (one, two, three)]
    del one, two, three
    gc.collect()
    assert not any(ref() for ref in watched)


def test_what_is_reachable_survives_collection():
    w = sw.Window(sw.collect())
    things = [Thing(w) for _ in range(200)]
    w.insert_many(range(200), things)
    for _ in range(5):
        gc.collect()
    assert w.query() == things
    w.check()


def test_collections_in_the_middle_of_everything():
    """A collection at every allocation finds a consistent window."""
    w = sw.Window({"all": sw.collect(), "n": sw.count()})
    threshold = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for at in range(400):
            w.insert(at % 50, Thing(w))
            w.insert_many([at, at + 1], [Thing(), [at]])
            if at % 10 == 0:
                w.query(at, at + 5)
                w.copy()
                w.evict()
                w.evict_until(at - 30)
        w.check()
    finally:
        gc.set_threshold(*threshold)


def test_windows_of_numbers_do_not_grow_the_process():
    w = sw.Window(sw.sum(), last=1_000)
    times = np.arange(10_000)
    for turn in range(20):
        w.insert_many(times + turn * 10_000, times)
    before = w.nbytes
    for turn in range(20, 200):
        w.insert_many(times + turn * 10_000, times)
    assert w.nbytes <= before * 1.5
