"""Custom aggregations that raise, call back in, or refer to their window.

A function raises at its k-th call, for every k. The exception must pass through
unchanged, with a note, and the window must be as before.
"""

import copy
import inspect
import os
import random
import threading
from itertools import count

import pytest
from seeds import SEED

import slidewise as sw

MIN, MAX = -(2**63), 2**63 - 1


class Boom(Exception):  # noqa: N818 (it is not an error of anybody's)
    pass


class Doom(BaseException):
    pass


class Trap:
    """Raises at the k-th call; 0 is never."""

    def __init__(self):
        self.left, self.error, self.fired = 0, None, 0

    def arm(self, at, kind):
        self.left, self.error = at, kind("armed")

    def __call__(self):
        if self.left:
            self.left -= 1
            if self.left == 0:
                self.fired += 1
                raise self.error


class Codec:
    def __init__(self, trap):
        self.trap = trap

    def encode(self, partial):
        self.trap()
        return repr(partial).encode()

    def decode(self, blob):
        self.trap()
        return eval(blob)


def trapped(trap, **options):
    """Concatenation, the most order-revealing of all, with a trap in every function."""

    def lift(value):
        trap()
        return (value,)

    def combine(older, younger):
        trap()
        return older + younger

    def lower(partial):
        trap()
        return list(partial)

    def inverse(whole, earliest):
        trap()
        assert whole[: len(earliest)] == earliest
        return whole[len(earliest) :]

    return sw.aggregation(lift, combine, lower, (), inverse=inverse, **options)


def assert_passed_on(error, armed):
    assert error is armed
    (note,) = error.__notes__
    assert note.startswith("raised while slidewise.Window was ")


CARDS = {card.name: card for card in sw.algorithms()}


class Model:
    """Rows by time, then by arrival."""

    def __init__(self, ties):
        self.rows, self.ties = [], ties

    def insert(self, pairs):
        self.rows = sorted([*self.rows, *pairs], key=lambda row: row[0])

    def evict(self, time):
        there = [at for at, row in enumerate(self.rows) if row[0] == time]
        for at in reversed(there if self.ties == "combine" else there[:1]):
            del self.rows[at]
        return bool(there)

    def evict_until(self, time):
        before = self.length
        self.rows = [row for row in self.rows if row[0] > time]
        return before - self.length

    @property
    def length(self):
        times = [time for time, _ in self.rows]
        return len(set(times)) if self.ties == "combine" else len(times)

    def answer(self, lo=MIN, hi=MAX):
        values = [v for t, v in self.rows if lo <= t <= hi and v is not None]
        return values or None


class Script:
    """Random operations on a window and its model, each tried until it works."""

    def __init__(self, algorithm, seed, own):
        self.random = random.Random(seed)
        self.trap = Trap()
        self.kind = self.random.choice(
            [Boom, Boom, MemoryError, KeyboardInterrupt, Doom]
        )
        ties = self.random.choice(["combine", "keep"])
        self.codec = Codec(self.trap)
        self.several = self.random.random() < 0.3
        agg = own(self.trap, codec=self.codec)
        aggs = {"n": sw.count(), "own": agg, "sum": sw.sum()} if self.several else agg
        self.window = sw.Window(aggs, ties=ties, algorithm=algorithm)
        self.model = Model(ties)
        self.in_order = "in order" in CARDS[algorithm].order
        self.clock = 0
        self.raised = 0

    def until_it_works(self, use):
        at, done, fired = 0, False, 0
        while not done:
            at += 1
            self.trap.arm(at, self.kind)
            fired = self.trap.fired
            try:
                result = use()
                done = True
            except self.kind as error:
                assert_passed_on(error, self.trap.error)
                assert len(self.window) == self.model.length
                if at % 8 == 1:
                    self.window.check()
            self.raised += self.trap.fired - fired
        # Deferred work may fail unseen before its answer is needed, except for errors
        # that stop programs.
        assert self.trap.fired == fired or issubclass(self.kind, Exception)
        self.trap.left = 0
        return result

    def time(self):
        if self.in_order:
            self.clock += self.random.choice([0, 1, 1, 3])
            return self.clock
        self.clock += 1
        return self.clock - self.random.choice([0, 0, 0, 1, 2, 30])

    def value(self):
        return self.random.choice([None, *range(1, 9)])

    def step(self):
        use = self.random.choice(
            [self.insert] * 6
            + [self.insert_many, self.evict, self.evict_until, self.again]
            + [self.query] * 3
        )
        use()

    def insert(self):
        time, value = self.time(), self.value()
        self.until_it_works(lambda: self.window.insert(time, value))
        self.model.insert([(time, value)])

    def insert_many(self):
        pairs = [
            (self.time(), self.value()) for _ in range(self.random.choice([2, 40]))
        ]
        times, values = zip(*pairs, strict=True)
        self.until_it_works(lambda: self.window.insert_many(times, values))
        self.model.insert(pairs)

    def evict(self):
        if self.model.rows:
            time = self.window.oldest
            if self.random.random() < 0.5:
                assert self.until_it_works(self.window.evict) == time
            else:
                assert self.until_it_works(lambda: self.window.evict(time)) is True
            self.model.evict(time)

    def evict_until(self):
        time = self.clock - self.random.choice([5, 20, 60])
        gone = self.until_it_works(lambda: self.window.evict_until(time))
        assert gone == self.model.evict_until(time)

    def query(self):
        lo, hi = MIN, MAX
        if self.random.random() < 0.4 and "none" not in CARDS["fiba"].range:
            lo = self.clock - self.random.randrange(40)
            hi = lo + self.random.randrange(40)
        if self.in_order:
            lo, hi = MIN, MAX
        whole = (lo, hi) == (MIN, MAX)
        request = self.window.query if whole else lambda: self.window.query(lo, hi)
        self.agrees(self.until_it_works(request), lo, hi)

    def again(self):
        """Operations that make another window, or show all of this one."""
        what = self.random.choice(["items", "copy", "deepcopy", "bytes", "pickle"])
        if what == "items":
            items = self.until_it_works(self.window.items)
            owns = [item["own"] if self.several else item for _, item in items]
            assert [v for own in owns for v in own or []] == (self.model.answer() or [])
            return
        make = {
            "copy": self.window.copy,
            "deepcopy": lambda: copy.deepcopy(self.window),
            "bytes": self.window.to_bytes,
            "pickle": self.window.to_bytes,
        }
        made = self.until_it_works(make[what])
        if isinstance(made, bytes):
            restored = self.window.__reduce__()
            made = self.until_it_works(
                lambda: restored[0](restored[1][0], made, restored[1][2])
            )
        self.window = made
        self.window.check()

    def agrees(self, answer, lo=MIN, hi=MAX):
        if self.several:
            rows = [v for t, v in self.model.rows if lo <= t <= hi]
            values = [v for v in rows if v is not None]
            assert answer["n"] == len(rows)
            assert answer["sum"] == (sum(values) if values else None)
            answer = answer["own"]
        assert answer == self.model.answer(lo, hi)


# About 40,000 exceptions in all, others each day; `make test-faults` raises more.
SCRIPTS = int(os.environ.get("SLIDEWISE_FAULT_SCRIPTS", "5"))


@pytest.mark.parametrize("algorithm", list(CARDS))
def test_every_kth_call_may_raise(algorithm):
    raised = 0
    for seed in range(SEED, SEED + SCRIPTS):
        script = Script(algorithm, seed, trapped)
        for _ in range(40):
            script.step()
        script.query()
        script.window.check()
        raised += script.raised
    assert raised > 100 * SCRIPTS


def test_failed_deferred_combines_are_retried():
    calls, failed = count(), []

    def combine(older, younger):
        if failing and next(calls) % 2:
            failed.append(1)
            raise Boom
        return older + younger

    failing = True
    w = sw.Window(sw.aggregation(lambda v: (v,), combine, list, ()))
    for time in range(3000):
        w.insert(time, time)
    assert len(failed) > 100
    assert len(w) == 3000
    with pytest.raises(Boom):
        w.query()
    failing = False
    assert w.query() == list(range(3000))


def test_ctrl_c_stops_deferred_combines():
    trap = Trap()
    w = sw.Window(trapped(trap))
    for time in range(1000):
        w.insert(time, time)
    trap.arm(1500, KeyboardInterrupt)

    def insert_more():
        for time in count(1000):
            w.insert(time, time)

    with pytest.raises(KeyboardInterrupt) as caught:
        insert_more()
    assert "the window is unchanged" in caught.value.__notes__[0]
    trap.left = 0
    assert w.query() == list(range(len(w)))


# -- calling back in -------------------------------------------------------------------

ARGUMENTS = {
    "insert": (99, 1),
    "insert_many": ([98, 99], [1, 2]),
    "evict_until": (0,),
    "__deepcopy__": ({},),
    "_restore": None,
    "from_bytes": None,
    "__init_subclass__": None,
    "__subclasshook__": None,
    "__class_getitem__": None,
    # tests/window/test_queries.py has the methods of a window with queries.
    "_add_query": None,
    "_advance": None,
    "_drop_query": None,
    "_due_columns": None,
    "_slices": None,
}
# Attributes of `object`, which do not read a window.
INNATE = set(dir(object)) - {"__reduce__", "__reduce_ex__", "__repr__"}


def uses():
    """Every method and property of a window, as a function of a window."""
    for name in dir(sw.Window):
        if name in INNATE or (name in ARGUMENTS and ARGUMENTS[name] is None):
            continue
        static = inspect.getattr_static(sw.Window, name)
        if callable(getattr(sw.Window, name, None)) and not isinstance(
            static, property
        ):
            arguments = (4,) if name == "__reduce_ex__" else ARGUMENTS.get(name, ())
            yield name, lambda w, name=name, a=arguments: getattr(w, name)(*a)
        else:
            yield name, lambda w, name=name: getattr(w, name)


USES = dict(uses())


class Caller:
    """Calls another function in its first call, once."""

    def __init__(self):
        self.use, self.window, self.results = None, None, []

    def __call__(self):
        use, self.use = self.use, None
        if use is None:
            return
        try:
            self.results.append(use(self.window))
        except Exception as error:  # noqa: BLE001 (any would do)
            self.results.append(error)


class Dying(tuple):
    __slots__ = ()
    last_words = None

    def __del__(self):
        if Dying.last_words is not None:
            Dying.last_words()


def calling(caller, where):
    """Concatenation that calls back in from one of its functions."""

    def at(name):
        if name == where:
            caller()

    def lift(value):
        at("lift")
        return Dying((value,))

    def combine(older, younger):
        at("combine")
        return Dying((*older, *younger))

    def lower(partial):
        at("lower")
        return list(partial)

    class Plain:
        def encode(self, partial):
            at("encode")
            return repr(tuple(partial)).encode()

        def decode(self, blob):
            return Dying(eval(blob))

    return sw.aggregation(lift, combine, lower, (), codec=Plain())


def exercise(window):
    """Each of the four functions calls back in."""
    window.insert(50, 50)
    assert window.query()[-1] == 50
    window.to_bytes()
    window.evict(50)


def test_there_are_uses():
    assert {"insert", "query", "items", "copy", "to_bytes", "oldest"} <= set(USES)
    assert {"__len__", "__copy__", "__repr__", "_shape"} <= set(USES)


@pytest.mark.parametrize("where", ["lift", "combine", "lower", "encode"])
@pytest.mark.parametrize("name", list(USES))
def test_calling_back_in_is_a_clean_error(where, name):
    caller = Caller()
    w = sw.Window(calling(caller, where))
    w.insert_many(range(20), range(20))
    caller.use, caller.window = USES[name], w
    exercise(w)
    (result,) = caller.results
    if not isinstance(result, sw.WindowBusyError):
        # These only report the arguments of the window, and take no lock.
        assert not isinstance(result, BaseException), (name, result)
    w.check()
    assert w.query() == list(range(20))


@pytest.mark.parametrize("name", list(USES))
def test_a_finalizer_may_use_the_window(name):
    caller = Caller()
    w = sw.Window(calling(caller, "nowhere"))
    w.insert_many(range(40), range(40))
    w.query()
    caller.use, caller.window = USES[name], w
    try:
        Dying.last_words = caller
        w.evict_until(35)
    finally:
        Dying.last_words = None
    (result,) = caller.results
    assert isinstance(result, sw.WindowBusyError) or not isinstance(
        result, BaseException
    ), (name, result)
    w.check()
    w.insert(50, 50)
    assert w.query()[-1] in (1, 2, 50)


@pytest.mark.parametrize("where", ["lift", "combine", "lower", "encode"])
@pytest.mark.parametrize("name", list(USES))
def test_another_thread_may_use_the_window_meanwhile(where, name):
    outcome = []

    def elsewhere(window):
        def use():
            try:
                outcome.append(USES[name](window))
            except Exception as error:  # noqa: BLE001 (any would do)
                outcome.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()

    caller = Caller()
    w = sw.Window(calling(caller, where))
    w.insert_many(range(20), range(20))
    caller.use, caller.window = elsewhere, w
    w.insert(50, 50)
    w.query()
    w.to_bytes()
    assert caller.results == [None]
    (result,) = outcome
    assert not isinstance(result, BaseException), (name, result)
    w.check()


@pytest.mark.parametrize("name", list(USES))
def test_calling_back_in_from_an_inverse(name):
    caller = Caller()

    def inverse(whole, earliest):
        caller()
        return whole[len(earliest) :]

    agg = sw.aggregation(lambda v: (v,), lambda a, b: a + b, list, (), inverse=inverse)
    w = sw.Window(agg, algorithm="subtract_on_evict")
    w.insert_many(range(20), range(20))
    w.evict()
    caller.use, caller.window = USES[name], w
    assert w.query() == list(range(1, 20))
    (result,) = caller.results
    if not isinstance(result, sw.WindowBusyError):
        assert not isinstance(result, BaseException), (name, result)
    w.check()
    assert w.query() == list(range(1, 20))


@pytest.mark.parametrize("algorithm", list(CARDS))
def test_calling_back_in_on_every_algorithm(algorithm):
    use = USES["query"]
    for where in ("lift", "combine", "lower", "encode"):
        caller = Caller()
        agg = calling(caller, where)
        if CARDS[algorithm].laws != "associative":
            agg = sw.aggregation(
                agg.lift,
                agg.combine,
                agg.lower,
                (),
                inverse=lambda whole, earliest: Dying(whole[len(earliest) :]),
                codec=agg.functions.codec,
            )
        w = sw.Window(agg, algorithm=algorithm)
        w.insert_many(range(20), range(20))
        caller.use, caller.window = use, w
        w.insert(50, 50)
        assert w.query()[-1] == 50
        w.to_bytes()
        (result,) = caller.results
        assert isinstance(result, sw.WindowBusyError), where
        w.check()
        assert w.query() == [*range(20), 50]


def test_another_window_is_free():
    inner = sw.Window(sw.sum())

    def combine(older, younger):
        inner.insert(len(inner), 1)
        return older + younger

    w = sw.Window(sw.aggregation(combine=combine, identity=0))
    w.insert_many(range(10), range(10))
    assert w.query() == 45
    assert inner.query() >= 9


def test_threads_share_a_window():
    def combine(older, younger):
        return older + younger

    w = sw.Window(sw.aggregation(lambda v: (v,), combine, len, ()))

    def work(at):
        for time in range(300):
            w.insert(time * 4 + at, time)
            if time % 10 == 0:
                w.query()

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    w.check()
    assert w.query() == 1200
