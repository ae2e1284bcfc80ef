"""Objects of custom aggregations are released, even in cycles with their window."""

import functools
import gc
import pickle
import weakref

import pytest

import slidewise as sw

# A recursion over as many pending combines would overflow the stack.
MANY = 200_000


class Watched:
    """An object with a weak reference to it, which refers to its window."""

    def __init__(self, *of):
        self.of = of

    def __add__(self, other):
        return Watched(self, other)


def through_closure():
    def combine(older, younger):
        return older if w else younger

    w = sw.Window(sw.aggregation(combine=combine, identity=None))
    return w


def through_partials():
    w = sw.Window(sw.aggregation(lambda v: Watched(w, v), Watched.__add__, None, None))
    w.insert_many(range(3), range(3))
    w.query()
    return w


def through_pending():
    w = sw.Window(sw.aggregation(lambda v: Watched(w, v), Watched.__add__, None, None))
    w.insert_many(range(3), range(3))
    return w


def through_bound_method():
    class Holder:
        def combine(self, older, younger):
            return self.window and older

    holder = Holder()
    holder.window = sw.Window(sw.aggregation(combine=holder.combine, identity=None))
    return holder.window


def through_tuples():
    holder = []
    combine = functools.partial(lambda w, a, b: a + b, (holder,))
    w = sw.Window({"a": sw.aggregation(combine=combine, identity=0), "b": sw.sum()})
    holder.append((w,))
    return w


MAKERS = [
    through_closure,
    through_partials,
    through_pending,
    through_bound_method,
    through_tuples,
]


@pytest.mark.parametrize("make", MAKERS)
def test_windows_that_hold_themselves_are_collected(make):
    watched = [weakref.ref(make()) for _ in range(2_000)]
    gc.collect()
    assert not any(ref() is not None for ref in watched)


def test_nothing_keeps_the_functions_of_a_user():
    class Long:
        identity = ()
        combine = staticmethod(lambda a, b: a + b)

    agg = sw.aggregation(Long)
    w = sw.Window({"x": agg("x"), "n": sw.count()})
    w.insert(1, {"x": (1,)})
    pickle.loads(pickle.dumps(sw.Window(sw.sum())))
    sw.Window.from_bytes(w.to_bytes())
    watched = weakref.ref(agg.functions), weakref.ref(agg.functions.combine)
    del agg, w, Long
    gc.collect()
    assert watched[0]() is None
    assert watched[1]() is None


def test_partials_that_are_not_needed_are_released():
    alive = weakref.WeakSet()

    class Partial:
        def __init__(self):
            alive.add(self)

    agg = sw.aggregation(lambda v: Partial(), lambda a, b: Partial(), None, None)
    w = sw.Window(agg)
    for time in range(3_000):
        w.insert(time, time)
        if time >= 100:
            w.evict()
        if time % 3 == 0:
            w.query()
    assert len(alive) < 1_000
    w.clear()
    w.query()
    assert len(alive) == 0


def test_many_pending_combines_at_one_time():
    w = sw.Window(sw.aggregation(combine=lambda a, b: a + b, identity=0))
    w.insert_many([7] * MANY, range(MANY))
    assert w.query() == sum(range(MANY))


def test_many_pending_combines_are_dropped():
    w = sw.Window(sw.aggregation(combine=lambda a, b: a + b, identity=0))
    w.insert_many([7] * MANY, range(MANY))
    del w
    w = sw.Window(sw.aggregation(combine=lambda a, b: a + b, identity=0))
    w.insert_many(range(MANY), range(MANY))
    w.clear()
    assert w.query() is None


def test_a_window_that_is_never_queried_does_not_grow():
    w = sw.Window(sw.aggregation(combine=lambda a, b: a + b, identity=0))
    sizes = []
    for time in range(60_000):
        w.insert(time, 1)
        if time >= 50:
            w.evict()
        if time % 10_000 == 9_999:
            sizes.append(w.nbytes)
    assert sizes[-1] <= sizes[0] * 1.5
    assert w.query() == 50
