"""Functions of the user that raise, at every k-th call.

Every operation that runs a user's code (iterables, conversions, mappings, Arrow
producers, time zones, deep copies) is repeated with an exception armed at its first
call, its second, and so on until none fires. The exception must pass through unchanged,
with a note, and the window must be as before.
"""

import copy
import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw


class Boom(Exception):  # noqa: N818 (a test raises it on purpose)
    pass


class Doom(BaseException):
    pass


class Trap:
    """Raises at the k-th call."""

    def __init__(self, at, kind=Boom):
        self.left, self.error = at, kind("armed")
        self.fired = False

    def __call__(self):
        self.left -= 1
        if self.left == 0:
            self.fired = True
            raise self.error


class Index:
    def __init__(self, trap, value):
        self.trap, self.value = trap, value

    def __index__(self):
        self.trap()
        return self.value


class Float(Index):
    __index__ = None

    def __float__(self):
        self.trap()
        return self.value / 1


class FloatOnly:
    def __init__(self, trap, value):
        self.trap, self.value = trap, value

    def __float__(self):
        self.trap()
        return float(self.value)


class Iterable:
    def __init__(self, trap, items):
        self.trap, self.items = trap, items

    def __iter__(self):
        self.trap()
        for item in self.items:
            self.trap()
            yield item
        self.trap()


class Columns(Mapping):
    def __init__(self, trap, columns):
        self.trap, self.columns = trap, columns

    def __getitem__(self, key):
        self.trap()
        return self.columns[key]

    def __iter__(self):
        return iter(self.columns)

    def __len__(self):
        return len(self.columns)


class ArrowArray:
    def __init__(self, trap, values):
        self.trap, self.array = trap, pa.array(values)

    def __arrow_c_array__(self, requested_schema=None):
        self.trap()
        return self.array.__arrow_c_array__(requested_schema)


class ArrowStream:
    def __init__(self, trap, values):
        self.trap, self.array = trap, pa.chunked_array([values[:1], values[1:]])

    def __arrow_c_stream__(self, requested_schema=None):
        self.trap()
        return self.array.__arrow_c_stream__(requested_schema)


class Zone(tzinfo):
    def __init__(self, trap):
        self.trap = trap

    def utcoffset(self, time):
        self.trap()
        return timedelta(hours=1)

    def dst(self, time):
        return timedelta(0)

    def __deepcopy__(self, memo):
        return self


class Deep:
    def __init__(self):
        self.trap = None

    def __deepcopy__(self, memo):
        self.trap()
        return self


T, V = [5, 1, 9, 5], [50, 10, 90, 55]

NUMBERS = {
    "insert index": lambda w, t: w.insert(Index(t, 3), Index(t, 7)),
    "insert bool": lambda w, t: w.insert(Index(t, 3), True),
    "generators": lambda w, t: w.insert_many(Iterable(t, T), Iterable(t, V)),
    "index times": lambda w, t: w.insert_many([Index(t, x) for x in T], V),
    "index values": lambda w, t: w.insert_many(T, [Index(t, x) for x in V]),
    "both": lambda w, t: w.insert_many(
        Iterable(t, [Index(t, x) for x in T]), Iterable(t, [Index(t, x) for x in V])
    ),
    "arrow": lambda w, t: w.insert_many(ArrowArray(t, T), ArrowArray(t, V)),
    "stream": lambda w, t: w.insert_many(ArrowStream(t, T), ArrowStream(t, V)),
    "query": lambda w, t: w.query(Index(t, 2), Index(t, 6)),
    "evict": lambda w, t: w.evict(Index(t, 2)),
    "evict_until": lambda w, t: w.evict_until(Index(t, 2)),
}
FLOATS = {
    "insert float": lambda w, t: w.insert(Index(t, 3), FloatOnly(t, 7)),
    "float values": lambda w, t: w.insert_many(T, (FloatOnly(t, x) for x in V)),
    "int values": lambda w, t: w.insert_many(T, (Index(t, x) for x in V)),
}
COLUMNS = {
    "mapping": lambda w, t: w.insert(3, Columns(t, {"x": 1, "y": "a"})),
    "mapping of index": lambda w, t: w.insert(
        Index(t, 3), Columns(t, {"x": Index(t, 1), "y": "a"})
    ),
    "rows": lambda w, t: w.insert_many(
        T, Iterable(t, [Columns(t, {"x": Index(t, x), "y": x}) for x in V])
    ),
    "columns": lambda w, t: w.insert_many(
        Iterable(t, T), Columns(t, {"x": Iterable(t, V), "y": Iterable(t, "abcd")})
    ),
    "arrow columns": lambda w, t: w.insert_many(
        T, {"x": ArrowArray(t, V), "y": ArrowStream(t, ["a", "b", "c", "d"])}
    ),
}
NEW_YEAR = datetime(2024, 1, 1)
ZONED = {
    "insert": lambda w, t: w.insert(NEW_YEAR.replace(tzinfo=Zone(t)), 1),
    "times": lambda w, t: w.insert_many(
        (NEW_YEAR.replace(tzinfo=Zone(t), day=d) for d in (3, 1, 2)), [3, 1, 2]
    ),
    "query": lambda w, t: w.query(NEW_YEAR.replace(tzinfo=Zone(t))),
}


def numbers(rng):
    w = sw.Window(
        {"s": sw.sum(), "n": sw.count()}, ties=rng.choice(["combine", "keep"])
    )
    for _ in range(rng.choice([0, 1, 20, 200])):
        w.insert(rng.randrange(50), rng.choice([None, 1, 2]))
    return w


def self_evicting(rng):
    last = rng.choice([3, 20, sw.rows(5)])
    w = sw.Window(sw.max(), last=last, algorithm=rng.choice(["fiba", "recalculate"]))
    for _ in range(rng.choice([0, 1, 20])):
        w.insert(rng.randrange(50), rng.randrange(9))
    return w


def floats(rng):
    w = sw.Window(sw.mean(), dtype="float64", granularity=rng.choice([None, 4]))
    for _ in range(rng.choice([0, 1, 200])):
        w.insert(rng.randrange(500), rng.random())
    return w


def columns(rng):
    w = sw.Window({"x": sw.sum("x"), "y": sw.collect("y"), "n": sw.count("y")})
    for _ in range(rng.choice([0, 1, 100])):
        w.insert(rng.randrange(50), {"x": rng.choice([None, 1]), "y": rng.choice("ab")})
    return w


def zoned(rng):
    w = sw.Window(sw.sum())
    for _ in range(rng.choice([0, 3])):
        w.insert(datetime(2024, 1, rng.randrange(1, 28)).astimezone(), 1)
    return w


CASES = [
    *((numbers, name, use) for name, use in NUMBERS.items()),
    *((self_evicting, name, use) for name, use in NUMBERS.items()),
    *((floats, name, use) for name, use in (NUMBERS | FLOATS).items()),
    *((columns, name, use) for name, use in COLUMNS.items()),
    *((zoned, name, use) for name, use in ZONED.items()),
]


def state(window):
    """All visible state of a window; zones by their offset, as names may be missing."""
    plan, dtypes, clock = window._describe()
    return window.items(), plan, dtypes, clock, window.query(), len(window)


@pytest.mark.parametrize(
    ("make", "name", "use"),
    CASES,
    ids=[f"{make.__name__}-{name}" for make, name, _ in CASES],
)
@pytest.mark.parametrize(
    "kind", [Boom, MemoryError, KeyboardInterrupt, Doom, StopIteration]
)
def test_every_call_may_raise(make, name, use, kind):
    generators = kind is StopIteration and ("generators" in name or "Iterable" in name)
    fired = 0
    for seed in range(12):
        window = make(random.Random(seed))
        at = 0
        while True:
            at += 1
            trap = Trap(at, kind)
            before = state(window)
            scratch = window.copy()
            try:
                use(scratch, trap)
            except BaseException as error:
                if not trap.fired:
                    raise
                # Python turns a StopIteration inside a generator into a RuntimeError.
                cause = error.__cause__ if type(error) is RuntimeError else error
                assert cause is trap.error
                assert_noted(error)
            if not trap.fired:
                break
            fired += 1
            scratch.check()
            assert state(scratch) == before
            # The same window behaves like a fresh one.
            use(scratch, Trap(0))
            fresh = window.copy()
            use(fresh, Trap(0))
            assert scratch.items() == fresh.items()
    assert fired or generators


def assert_noted(error):
    """A note names the operation."""
    (note,) = error.__notes__
    assert note.startswith("raised while slidewise.Window was ")
    assert note.endswith("; the window is unchanged")


def test_a_zone_that_raises_when_a_time_is_written():
    zone = Zone(lambda: None)
    w = sw.Window(sw.sum())
    w.insert_many(
        [NEW_YEAR.replace(tzinfo=zone, hour=hour) for hour in (2, 1, 3)], [2, 1, 3]
    )
    for use in (w.evict, w.items, lambda: w.oldest, lambda: w.youngest, w.to_svg):
        zone.trap = Trap(1)
        with pytest.raises(Boom):
            use()
        zone.trap = lambda: None
        assert len(w) == 3
    assert w.evict() == NEW_YEAR.replace(tzinfo=zone, hour=1)


def test_a_first_entry_that_fails_decides_nothing():
    for use in (
        lambda w, t: w.insert(1, Index(t, 1)),
        lambda w, t: w.insert_many([1], Iterable(t, [1])),
        lambda w, t: w.insert_many(Iterable(t, [1]), [1]),
    ):
        w = sw.Window(sw.sum())
        with pytest.raises(Boom):
            use(w, Trap(1))
        assert w.dtype is None
        w.insert(NEW_YEAR, 1.5)
        assert w.query() == 1.5


def test_deepcopy_that_raises():
    w = sw.Window(sw.collect())
    things = [Deep() for _ in range(5)]
    w.insert_many(range(5), things)
    for at in range(1, 6):
        trap = Trap(at)
        for thing in things:
            thing.trap = trap
        with pytest.raises(Boom):
            copy.deepcopy(w)
        assert w.query() == things
        w.check()
    for thing in things:
        thing.trap = lambda: None
    assert copy.deepcopy(w).query() == things


def test_an_exception_of_ones_own_keeps_its_traceback():
    def times():
        yield 1
        raise LookupError("the third file is missing")

    w = sw.Window(sw.sum())
    with pytest.raises(LookupError, match="the third file is missing") as caught:
        w.insert_many(times(), [1, 2])
    assert caught.traceback[-1].name == "times"
    (note,) = caught.value.__notes__
    assert "reading the times of insert_many (item 1)" in note


def test_reprs_that_fail_are_not_shown():
    class Mute:
        def __repr__(self):
            raise Boom

    w = sw.Window(sw.stddev())
    with pytest.raises(sw.SpecError, match="a Mute is not a number"):
        w.insert(1, Mute())
    with pytest.raises((sw.SpecError, Boom)):
        w.insert(Mute(), 1)
    assert len(w) == 0


REFUSED: dict[str, Callable[[sw.Window], Any]] = {
    "lengths that differ": lambda w: w.insert_many([3, 4], ["a"]),
    "an item too many": lambda w: w.insert_many([3], iter(["a", "b"])),
    "a late object": lambda w: w.insert_many([4, "x"], ["a", "b"]),
}


@pytest.mark.parametrize("how", REFUSED)
@pytest.mark.parametrize("algorithm", ["auto", "daba", "recalculate"])
@pytest.mark.parametrize("agg", [sw.last(), sw.max(), sw.sum()], ids=repr)
def test_a_refused_object_leaves_a_window_that_can_be_saved(
    how: str, algorithm: str, agg: sw.Aggregation
) -> None:
    window = sw.Window(agg, algorithm=algorithm)
    window.insert(1, None)
    before = window.to_bytes()
    with pytest.raises(sw.SpecError):
        REFUSED[how](window)
    assert window.to_bytes() == before
    window.insert(10, 5)
    again = sw.Window.from_bytes(window.to_bytes())
    assert again.query() == 5
    assert again.items() == window.items()
    assert window.copy().query() == 5


def test_a_late_object_leaves_a_window_that_can_be_saved() -> None:
    window = sw.Window(sw.max(), algorithm="daba")
    window.insert(2, None)
    with pytest.raises(sw.OutOfOrderError):
        window.insert(1, "a")
    window.insert(3, 4)
    assert sw.Window.from_bytes(window.to_bytes()).query() == 4
