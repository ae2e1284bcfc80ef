"""Windows against a simple model, after every operation.

The model keeps the rows in a list, sorted by time and arrival, and computes every
answer from scratch in plain Python. Values are such that float sums are exact, so that
answers are equal, not close. `collect` reveals any wrong order.
"""

import copy
import pickle
import random
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import slidewise as sw

MIN, MAX = -(2**63), 2**63 - 1

AGGS = {
    "rows": sw.count(),
    "all": sw.collect(),
    "sum": sw.sum(),
    "min": sw.min(),
    "max": sw.max(),
    "first": sw.first(),
    "last": sw.last(),
    "mean": sw.mean(),
    "ties": sw.max_count(),
    "when": sw.arg_max(),
}


class Model:
    """Rows as (time, value), by time and then by arrival."""

    def __init__(self, ties, last=None, rows=None):
        self.rows = []
        self.combine = ties == "combine"
        self.last, self.keep = last, rows

    def insert(self, pairs):
        self.rows = sorted([*self.rows, *pairs], key=lambda row: row[0])
        if self.last is not None and self.rows:
            self.evict_until(self.rows[-1][0] - self.last)
        if self.keep is not None:
            self.rows = self.rows[-self.keep :]

    def groups(self):
        if not self.combine:
            return [(time, [value]) for time, value in self.rows]
        grouped = {}
        for time, value in self.rows:
            grouped.setdefault(time, []).append(value)
        return list(grouped.items())

    def evict(self, time):
        """Whether there was an entry at this time."""
        there = [at for at, row in enumerate(self.rows) if row[0] == time]
        for at in reversed(there if self.combine else there[:1]):
            del self.rows[at]
        return bool(there)

    def evict_until(self, time):
        before = len(self.groups())
        self.rows = [row for row in self.rows if row[0] > time]
        return before - len(self.groups())

    def answers(self, lo=MIN, hi=MAX):
        return answers([row for row in self.rows if lo <= row[0] <= hi])


ANSWERS = {
    "sum": sum,
    "min": min,
    "max": max,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "mean": lambda values: sum(values) / len(values),
    "ties": lambda values: values.count(max(values)),
}


def answer(name, rows):
    values = [value for _, value in rows if value is not None]
    if name == "rows":
        return len(rows)
    if name == "all":
        return values
    if not values:
        return None
    if name == "when":
        greatest = max(values)
        return next(time for time, value in rows if value == greatest)
    return ANSWERS[name](values)


def answers(rows):
    return {name: answer(name, rows) for name in AGGS}


@lru_cache(10_000)
def entry(time, values):
    """Most entries are the same as before the operation."""
    return answers([(time, value) for value in values])


near = st.integers(-6, 40)
times = st.one_of(near, near, st.sampled_from([MIN, MIN + 1, MAX - 1, MAX]))
ints = st.one_of(st.none(), st.integers(-5, 5), st.integers(-(2**40), 2**40))
# Multiples of 1/4 below 2³⁰: their sums are exact, and so are the means' dividends.
floats = st.one_of(st.none(), st.integers(-(2**31), 2**31).map(lambda n: n / 4))


class WindowMachine(RuleBasedStateMachine):
    """All methods, on one window and its model."""

    algorithm = "fiba"
    prefer = None

    @initialize(
        ties=st.sampled_from(["combine", "keep"]),
        floating=st.booleans(),
        last=st.one_of(st.none(), st.none(), st.integers(1, 30), st.integers(1, 90)),
        by_rows=st.booleans(),
    )
    def start(self, ties, floating, last, by_rows):
        self.values, self.steps = (floats if floating else ints), 0
        options = {"ties": ties, "algorithm": self.algorithm, "prefer": self.prefer}
        if last is not None and by_rows:
            options |= {"ties": "keep", "last": sw.rows(last)}
            self.model = Model("keep", rows=last)
        else:
            options |= {"last": last}
            self.model = Model(ties, last=last)
        self.window = sw.Window(AGGS, **options)

    @rule(time=times, data=st.data())
    def insert(self, time, data):
        value = data.draw(self.values)
        self.window.insert(time, value)
        self.model.insert([(time, value)])

    @rule(start=near, count=st.integers(1, 70), data=st.data())
    def append(self, start, count, data):
        """A run of entries in order."""
        seed = data.draw(self.values)
        pairs = [(start + i, None if seed is None else seed + i) for i in range(count)]
        for pair in pairs:
            self.window.insert(*pair)
        self.model.insert(pairs[:1])
        for pair in pairs[1:]:
            self.model.insert([pair])

    @rule(
        times=st.lists(times, max_size=80),
        make=st.sampled_from([list, tuple, iter]),
        data=st.data(),
    )
    def insert_many(self, times, make, data):
        values = [data.draw(self.values) for _ in times[:5]] + [None] * len(times[5:])
        values = data.draw(st.permutations(values))
        self.window.insert_many(make(times), make(values))
        self.model.insert(list(zip(times, values, strict=True)))

    @rule(start=times, count=st.integers(0, 300), step=st.integers(-2, 3))
    def insert_array(self, start, count, step):
        times = [min(max(start + i * step, MIN), MAX) for i in range(count)]
        values = np.arange(count) / 4 if self.values is floats else np.arange(count)
        self.window.insert_many(np.array(times, dtype="int64"), values)
        self.model.insert(list(zip(times, values.tolist(), strict=True)))

    @precondition(lambda self: self.model.rows)
    @rule()
    def evict(self):
        oldest = self.model.rows[0][0]
        assert self.window.evict() == oldest
        assert self.model.evict(oldest)

    @rule(time=times)
    def evict_at(self, time):
        assert self.window.evict(time) is self.model.evict(time)

    @rule(time=times)
    def evict_until(self, time):
        assert self.window.evict_until(time) == self.model.evict_until(time)

    @rule(one=times, other=times)
    def query_range(self, one, other):
        lo, hi = sorted([one, other])
        assert self.window.query(lo, hi) == self.model.answers(lo, hi)
        assert self.window.query(lo=lo) == self.model.answers(lo=lo)
        assert self.window.query(hi=hi) == self.model.answers(hi=hi)

    @rule(how=st.sampled_from(["copy", "bytes", "pickle", "deepcopy"]))
    def become_another(self, how):
        old = self.window
        if how == "copy":
            self.window = old.copy()
        elif how == "deepcopy":
            self.window = copy.deepcopy(old)
        elif how == "pickle":
            self.window = pickle.loads(pickle.dumps(old))
        else:
            self.window = sw.Window.from_bytes(old.to_bytes())
        old.clear()

    @rule()
    def clear(self):
        self.window.clear()
        self.model.rows = []

    @invariant()
    def same(self):
        if not hasattr(self, "window"):
            return
        w, groups = self.window, self.model.groups()
        assert w.query() == self.model.answers()
        assert len(w) == len(groups)
        assert w.oldest == (groups[0][0] if groups else None)
        assert w.youngest == (groups[-1][0] if groups else None)
        self.steps += 1
        if len(groups) < 400 or self.steps % 4 == 0:  # a look at all entries
            self.same_entries()

    def same_entries(self):
        self.window.check()
        assert self.window.items() == [
            (time, entry(time, tuple(values))) for time, values in self.model.groups()
        ]

    def teardown(self):
        if hasattr(self, "window"):
            self.same_entries()


class RecalculateMachine(WindowMachine):
    algorithm = "recalculate"


TestFiba = WindowMachine.TestCase
TestFiba.settings = settings(
    max_examples=20,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestRecalculate = RecalculateMachine.TestCase
TestRecalculate.settings = settings(TestFiba.settings, max_examples=10)


SINGLE = {
    "sum": (sw.sum(), "number"),
    "max": (sw.max(), "number"),
    "min": (sw.min(), "number"),
    "rows": (sw.count(), "number"),
    "mean": (sw.mean(), "number"),
    "all": (sw.collect(), "any"),
}


class Trio:
    """The same script for fiba, recalculate and the model."""

    def __init__(self, name, ties, rng):
        agg, self.role = SINGLE[name]
        self.name, self.rng = name, rng
        self.fiba, self.naive = (
            sw.Window(agg, ties=ties, algorithm=algorithm)
            for algorithm in ("fiba", "recalculate")
        )
        self.model = Model(ties)
        self.floating = rng.random() < 0.5

    def value(self):
        if self.rng.random() < 0.1:
            return None
        if self.role == "any":
            return self.rng.choice(["a", "b", 3, 2.5, (1,), b"x"])
        drawn = self.rng.randrange(-1000, 1000)
        return drawn / 4 if self.floating else drawn

    def pairs(self, count, base, spread):
        times = (base + self.rng.randrange(spread) for _ in range(count))
        return [(time, self.value()) for time in times]

    def many(self, last, spread):
        pairs = self.pairs(self.rng.choice([1, 63, 64, 65, 500]), last, spread)
        for window in (self.fiba, self.naive):
            window.insert_many([t for t, _ in pairs], [v for _, v in pairs])
        self.model.insert(pairs)

    def one(self, last, spread):
        self.insert(self.pairs(1, last, spread))

    def late(self, last, spread):
        self.insert(self.pairs(30, last - spread, spread))

    def insert(self, pairs):
        for pair in pairs:
            self.fiba.insert(*pair)
            self.naive.insert(*pair)
        self.model.insert(pairs)

    def evict(self, last, spread):
        for _ in range(min(self.rng.randrange(100), len(self.fiba))):
            oldest = self.fiba.oldest
            assert self.fiba.evict() == self.naive.evict() == oldest
            self.model.evict(oldest)

    def until(self, last, spread):
        time = last - self.rng.randrange(spread)
        gone = self.model.evict_until(time)
        assert self.fiba.evict_until(time) == self.naive.evict_until(time) == gone

    def at(self, last, spread):
        for _ in range(min(10, len(self.fiba))):
            time = self.rng.choice(self.model.rows)[0]
            gone = self.model.evict(time)
            assert self.fiba.evict(time) is self.naive.evict(time) is gone

    def compare(self, last, spread):
        self.fiba.check()
        whole = answer(self.name, self.model.rows)
        assert self.fiba.query() == self.naive.query() == whole
        lo, hi = sorted(last - self.rng.randrange(-spread, spread) for _ in "ab")
        part = answer(self.name, [r for r in self.model.rows if lo <= r[0] <= hi])
        assert self.fiba.query(lo, hi) == self.naive.query(lo, hi) == part
        assert len(self.fiba) == len(self.naive) == len(self.model.groups())


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("ties", ["combine", "keep"])
@pytest.mark.parametrize("seed", range(3))
def test_scripts_of_one_aggregation(name, ties, seed):
    """Aggregations with their own code, on windows of many leaves."""
    rng = random.Random(f"{name} {ties} {seed}")
    trio = Trio(name, ties, rng)
    for _ in range(60):
        act = rng.choice(
            [trio.many, trio.many, trio.one, trio.late, trio.evict, trio.until, trio.at]
        )
        spread = rng.choice([10, 100, 3000])
        last = trio.model.rows[-1][0] if trio.model.rows else 0
        act(last, spread)
        trio.compare(last, spread)
    assert trio.fiba.items() == trio.naive.items()
