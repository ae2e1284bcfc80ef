"""Many ranges over one stream: every algorithm, compared with a list."""

import copy
import pickle
import random
from datetime import timedelta

import numpy as np
import pytest
from shared_windows import AGGS, START

import slidewise as sw
from slidewise.window.algorithms import ALGORITHMS
from slidewise.window.auto_rules import KINDS, SHARED_RULES

SHARED = [name for name, known in ALGORITHMS.items() if known.shared]
GENERAL = [name for name in SHARED if ALGORITHMS[name].law is None]


class Model:
    """The entries since the last eviction, and the ranges over them."""

    def __init__(self, answer, ranges):
        self.answer, self.ranges = answer, ranges
        self.entries = []

    def held(self, reach):
        if isinstance(reach, int):
            return self.entries[-reach:]
        youngest = self.entries[-1][0] if self.entries else START
        return [entry for entry in self.entries if entry[0] > youngest - reach]

    def slide(self):
        most = max(len(self.held(reach)) for reach in self.ranges)
        self.entries = self.entries[len(self.entries) - most :]

    def answers(self):
        held = (self.held(reach) for reach in self.ranges)
        return [self.answer([value for _, value in entries]) for entries in held]


def ranges_of(rng, timed):
    counts = [rng.choice([1, 2, 3, 5, 8, 20]) for _ in range(rng.randrange(1, 5))]
    if not timed:
        return counts
    minutes = [timedelta(minutes=rng.choice([1, 4, 30])) for _ in range(2)]
    return rng.sample([*counts, *minutes], k=len(counts) + 2)


class Pair:
    """A window and its model, driven by one script."""

    def __init__(self, algorithm, name, rng):
        agg, answer, _ = AGGS[name]
        self.rng, self.timed = rng, rng.random() < 0.5
        self.floats = rng.random() < 0.5
        self.ranges = ranges_of(rng, self.timed)
        self.window = sw.SharedWindow(agg, self.ranges, algorithm=algorithm)
        self.model = Model(answer, self.ranges)
        self.now = 0

    def entry(self):
        self.now += self.rng.choice([0, 1, 1, 2, 9])
        drawn = self.rng.randrange(-1000, 1000)
        value = drawn / 4 if self.floats else drawn
        time = START + timedelta(minutes=self.now) if self.timed else self.now
        return time, None if self.rng.random() < 0.1 else value

    def one(self):
        entry = self.entry()
        self.window.insert(*entry)
        self.model.entries.append(entry)
        self.model.slide()

    def many(self):
        entries = [self.entry() for _ in range(self.rng.choice([0, 1, 3, 40]))]
        self.window.insert_many([t for t, _ in entries], [v for _, v in entries])
        self.model.entries += entries
        self.model.slide()

    def late(self):
        if self.model.entries:
            early = self.model.entries[-1][0] - (timedelta(1) if self.timed else 1)
            with pytest.raises(sw.OutOfOrderError, match="takes entries in order only"):
                self.window.insert(early, None)

    def evict(self):
        if self.model.entries:
            assert self.window.evict() == self.model.entries[0][0]
            del self.model.entries[0]

    def again(self):
        old = self.window
        self.window = self.rng.choice(
            [
                lambda: old.copy(),
                lambda: copy.deepcopy(old),
                lambda: pickle.loads(pickle.dumps(old)),
                lambda: sw.SharedWindow.from_bytes(old.to_bytes()),
            ]
        )()
        assert repr(self.window.query()) == repr(old.query())
        old.clear()

    def clear(self):
        self.window.clear()
        self.model.entries = []

    def compare(self):
        w, entries = self.window, self.model.entries
        w.check()
        assert w.query() == self.model.answers()
        assert len(w) == len(entries)
        assert w.oldest == (entries[0][0] if entries else None)
        assert w.youngest == (entries[-1][0] if entries else None)
        assert [time for time, _ in w.items()] == [time for time, _ in entries]


@pytest.mark.parametrize("name", AGGS)
@pytest.mark.parametrize("algorithm", [*SHARED, "auto"])
def test_scripts(algorithm, name):
    agg, _, lawful = AGGS[name]
    if algorithm == "slick_deque" and not lawful:
        with pytest.raises(
            sw.SpecError, match="an inverse, or results that are one of"
        ):
            sw.SharedWindow(agg, [2, 3], algorithm=algorithm)
        return
    for seed in range(12):
        rng = random.Random(f"{algorithm} {name} {seed}")
        pair = Pair(algorithm, name, rng)
        acts = [pair.one] * 8 + [pair.many, pair.late, pair.evict, pair.again]
        patient = rng.random() < 0.3
        for step in range(40):
            rng.choice(acts if rng.random() < 0.97 else [pair.clear])()
            if not patient or step % 9 == 0:
                pair.compare()
        pair.compare()


def test_each_range_is_a_window_of_its_own():
    """Answers equal those of `Window(last=...)`, from arrays."""
    rng = np.random.default_rng(3)
    values = rng.integers(-(10**9), 10**9, 3000)
    times = np.cumsum(rng.integers(0, 3, 3000))
    ranges = [1, 7, 100, 1000, 5000]
    for algorithm in GENERAL:
        shared = sw.SharedWindow(sw.sum(), ranges, algorithm=algorithm)
        apart = [sw.Window(sw.sum(), last=sw.rows(n)) for n in ranges]
        for part in np.array_split(np.arange(3000), 30):
            for w in (shared, *apart):
                w.insert_many(times[part], values[part])
            assert shared.query() == [w.query() for w in apart]


def test_evicting_is_for_all_ranges():
    w = sw.SharedWindow(sw.collect(), ranges=[2, 4])
    w.insert_many(range(6), "abcdef")
    assert w.query() == [["e", "f"], ["c", "d", "e", "f"]]
    assert w.evict_until(4) == 3
    assert w.query() == [["f"], ["f"]]
    w.insert(9, "g")
    assert w.query() == [["f", "g"], ["f", "g"]]
    w.evict_until(99)
    assert w.query() == [[], []]
    with pytest.raises(sw.EmptyWindowError):
        w.evict()


def test_a_range_of_time_may_be_left_by_all():
    w = sw.SharedWindow(sw.sum(), ranges=["2m", 3])
    for minute in (0, 1, 10):
        w.insert(START + timedelta(minutes=minute), 1)
    assert w.query() == [1, 3]


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([], "ranges= is empty"),
        (5, r"ranges= takes several, such as \[10, 100\]"),
        ("1h", "ranges= takes several"),
        ([0], "must be longer than zero"),
        ([-1], "must be longer than zero"),
        ([True], "ranges=True is not a length of time"),
        ([1.5], "ranges=1.5 is not a length of time"),
        (["1 month"], "has no fixed length"),
        ([None], "ranges=None is not a length of time"),
    ],
)
def test_what_is_no_range(ranges, message):
    with pytest.raises(sw.SpecError, match=message):
        sw.SharedWindow(sw.sum(), ranges)


def test_durations_need_times():
    w = sw.SharedWindow(sw.sum(), ["1h", 3])
    with pytest.raises(sw.SpecError, match="'1h', but the times are ints"):
        w.insert(1, 1)
    assert len(w) == 0
    w.insert(START, 1)  # the kind of times is not decided yet
    assert w.query() == [1, 1]


def test_algorithms_that_serve_one_range():
    for name, known in ALGORITHMS.items():
        if not known.shared:
            with pytest.raises(
                sw.SpecError, match=r"serves one range only: .*flat_fit"
            ):
                sw.SharedWindow(sw.sum(), [1, 2], algorithm=name)
    with pytest.raises(sw.SpecError, match=r"holistic .*median\(\)\) need all values"):
        sw.SharedWindow(sw.median(), [1, 2])
    with pytest.raises(sw.SpecError, match="unknown algorithm 'slick'; there are auto"):
        sw.SharedWindow(sw.sum(), [1, 2], algorithm="slick")
    with pytest.raises(sw.SpecError, match="slick_deque") as caught:
        sw.SharedWindow(sw.collect(), [1, 2], algorithm="slick_deque")
    others = str(caught.value).split("without that law:")[1]
    assert "flat_fit" in others
    assert "fiba" not in others
    with pytest.raises(sw.SpecError, match="there is no argument last="):
        sw.SharedWindow(sw.sum(), [1, 2], last=3)
    w = sw.SharedWindow(sw.sum(), [1], algorithm="flat_fat", capacity=2)
    assert w.algorithm == "flat_fat"


def test_auto_follows_its_table():
    many = [1, 2, 30]
    taken = {rule.of: rule.take for rule in SHARED_RULES}
    assert set(taken) <= set(KINDS)
    assert sw.SharedWindow(sw.max(), many).algorithm == taken["selective"]
    ends = {"low": sw.min(), "high": sw.max()}
    assert sw.SharedWindow(ends, many).algorithm == taken["selective"]
    assert sw.SharedWindow(sw.range(), many).algorithm == taken["selective"]
    of_columns = {
        f"{agg.__name__}_{column}": agg(column)
        for column in ("a", "b", "c")
        for agg in (sw.min, sw.max)
    }
    assert sw.SharedWindow(of_columns, many).algorithm == taken["any"]
    del of_columns["min_c"], of_columns["max_c"]
    assert sw.SharedWindow(of_columns, many).algorithm == taken["selective"]
    assert sw.SharedWindow(sw.sum(), many).algorithm == taken["exact"]
    assert sw.SharedWindow(sw.collect(), many).algorithm == taken["any"]
    w = sw.SharedWindow(sw.sum(), many)
    w.insert(1, 0.5)  # floats are not subtracted
    assert w.algorithm == taken["any"]
    for rule in SHARED_RULES:
        law = ALGORITHMS[rule.take].law
        assert law is None or rule.of in ("selective", "exact")
    assert (
        "chosen by name" in sw.SharedWindow(sw.sum(), [1], algorithm="b_int").explain()
    )


def test_types_are_decided_late():
    """Rows before the first value are kept; evicted ones are not."""
    for algorithm in (*GENERAL, "slick_deque", "auto"):
        w = sw.SharedWindow(sw.sum(), [2, 3], algorithm=algorithm)
        w.insert_many(range(5), [None] * 5)
        assert (w.query(), len(w), w.dtype) == ([None, None], 3, None)
        w.check()
        w = sw.SharedWindow.from_bytes(w.to_bytes())
        w.insert(5, 0.5)
        w.insert(6, 1)
        assert (w.query(), len(w), w.dtype) == ([1.5, 1.5], 3, "float64")
        w.check()
        with pytest.raises(sw.SpecError, match="'x'"):
            w.insert(7, "x")
        assert w.query() == [1.5, 1.5]


class Fragile:
    """Joins text, and fails once, at the n-th call."""

    def __init__(self):
        self.left = -1

    def combine(self, older, younger):
        self.left -= 1
        if self.left == 0:
            raise ZeroDivisionError
        return older + younger


@pytest.mark.parametrize("algorithm", GENERAL)
def test_a_combine_that_raises_changes_nothing(algorithm):
    for at in range(1, 60, 3):
        fragile = Fragile()
        agg = sw.aggregation(lift=str, combine=fragile.combine, identity="")
        w = sw.SharedWindow(agg, [2, 5, 3], algorithm=algorithm)
        fragile.left = at
        text = ""
        for time in range(10):
            w.insert(time, time)
            text += str(time)
            before = fragile.left
            try:
                answers = w.query()
            except ZeroDivisionError:
                assert before > 0
                answers = w.query()
            assert answers == [text[-2:], text[-5:], text[-3:]]
        w.check()


def test_snapshots_are_of_their_own_kind():
    shared = sw.SharedWindow(sw.sum(), [2, "1h"])
    shared.insert(START, 3)
    window = sw.Window(sw.sum())
    with pytest.raises(sw.SnapshotError, match=r"SharedWindow.from_bytes"):
        sw.Window.from_bytes(shared.to_bytes())
    with pytest.raises(sw.SnapshotError, match=r"this is a snapshot of Window"):
        sw.SharedWindow.from_bytes(window.to_bytes())
    again = sw.SharedWindow.from_bytes(shared.to_bytes())
    assert repr(again) == repr(shared)
    assert again.ranges == ["2", "1h"]
    assert again.to_bytes() == shared.to_bytes()


@pytest.mark.parametrize("algorithm", SHARED)
def test_damage_is_refused(algorithm):
    w = sw.SharedWindow(sw.max(), [2, 4], algorithm=algorithm)
    w.insert_many(range(6), [6, 5, 0, 1, 3, 4])
    blob = w.to_bytes()
    for at in range(len(blob)):
        with pytest.raises(sw.SnapshotError):
            sw.SharedWindow.from_bytes(blob[:at])
        flipped = bytearray(blob)
        flipped[at] ^= 1 << (at % 8)
        with pytest.raises(sw.SnapshotError):
            sw.SharedWindow.from_bytes(bytes(flipped))


def test_its_repr():
    w = sw.SharedWindow({"n": sw.count(), "top": sw.max("x")}, range(1, 11))
    assert repr(w) == (
        "<SharedWindow n=count(), top=max('x') over 1, 2, 3, 6 more and 10: empty>"
    )
    w.insert(1, {"x": 5})
    assert w.aggs == {"n": sw.count(), "top": sw.max("x")}
    assert w.dtype == {"x": "int64"}
    assert w.nbytes > 0
    assert not isinstance(w, sw.Window)


COMBINED = []


@sw.aggregation
class Counted:
    """A sum that counts its combines."""

    identity = 0

    @staticmethod
    def combine(older, younger):
        COMBINED.append(1)
        return older + younger


@pytest.mark.parametrize("algorithm", GENERAL)
def test_equal_ranges_are_computed_once(algorithm):
    cost, answers = [], []
    for ranges in ([5], [5, sw.rows(5), 5]):
        COMBINED.clear()
        w = sw.SharedWindow(Counted, ranges=ranges, algorithm=algorithm)
        for time in range(40):
            w.insert(time, time)
            answers.append(w.query())
        cost.append(len(COMBINED))
    assert cost[0] == cost[1]
    once, thrice = answers[:40], answers[40:]
    assert thrice == [answer * 3 for answer in once]


@pytest.mark.parametrize("algorithm", SHARED)
def test_equal_ranges_are_answered_in_order(algorithm):
    many = ["1m", 5, "60s", 2, timedelta(minutes=1), sw.rows(5)]
    w = sw.SharedWindow(sw.max(), ranges=many, algorithm=algorithm)
    few = sw.SharedWindow(sw.max(), ranges=["1m", 5, 2], algorithm=algorithm)
    assert w.query() == [None] * 6
    for at in range(50):
        time, value = START + timedelta(seconds=at * at % 31 + 31 * at), at * 37 % 11
        w.insert(time, value)
        few.insert(time, value)
        minute, five, two = few.query()
        assert w.query() == [minute, five, minute, two, minute, five]
    assert w.ranges == ["1m", "5", "60s", "2", "1m", "5rows"]
    for again in (w.copy(), sw.SharedWindow.from_bytes(w.to_bytes())):
        assert again.ranges == w.ranges
        assert again.query() == w.query()
        assert again.to_bytes() == w.to_bytes()


def test_equal_ranges_answer_with_lists_of_their_own():
    w = sw.SharedWindow(sw.collect(), ranges=[2, 2])
    w.insert_many([1, 2, 3], ["a", "b", "c"])
    one, other = w.query()
    assert one == other == ["b", "c"]
    assert one is not other
