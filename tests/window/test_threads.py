"""Callbacks, threads and Ctrl-C: a clean error or a correct result."""

import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw


def window(count=10, agg=None):
    w = sw.Window(agg or sw.sum())
    w.insert_many(range(count), [1] * count)
    return w


# All methods, with valid arguments.
CALLS = {
    "insert": lambda w: w.insert(3, 5),
    "insert_many": lambda w: w.insert_many([3, 4], [5, 6]),
    "query": lambda w: w.query(),
    "evict": lambda w: w.evict(),
    "evict_until": lambda w: w.evict_until(2),
    "__len__": len,
    "oldest": lambda w: w.oldest,
    "youngest": lambda w: w.youngest,
    "items": lambda w: w.items(),
    "clear": lambda w: w.clear(),
    "check": lambda w: w.check(),
    "nbytes": lambda w: w.nbytes,
    "copy": lambda w: w.copy(),
    "__copy__": lambda w: w.__copy__(),
    "__deepcopy__": lambda w: w.__deepcopy__({}),
    "to_bytes": lambda w: w.to_bytes(),
    "__reduce__": lambda w: w.__reduce__(),
    "__repr__": repr,
    "dtype": lambda w: w.dtype,
    "to_svg": lambda w: w.to_svg(),
    "_repr_svg_": lambda w: w._repr_svg_(),
    "_shape": lambda w: w._shape(),
    "_describe": lambda w: w._describe(),
    "_widened": lambda w: w._widened(),
    "_migrated": lambda w: w._migrated(),
    "algorithm": lambda w: w.algorithm,
    "explain": lambda w: w.explain(),
}
# These read no state that changes.
CONSTANT = {"aggs", "ties", "from_bytes", "_restore", "__new__"}
CONSTANT |= {"__slots__", "__module__", "__doc__", "__firstlineno__"}
CONSTANT |= {"__static_attributes__"}
# tests/window/test_queries.py has the methods of a `SharedWindow` with queries.
CONSTANT |= {"_add_query", "_advance", "_drop_query", "_due_columns", "_slices"}


def test_every_method_is_listed():
    methods = {
        name for kind in sw.Window.__mro__[:-1] for name in vars(kind)
    } - CONSTANT
    assert methods == set(CALLS)


class Caller:
    """A number that calls the window into which it is inserted."""

    def __init__(self, call):
        self.call, self.errors, self.calls = call, [], 0

    def run(self):
        self.calls += 1
        try:
            self.call()
        except sw.WindowBusyError as error:
            self.errors.append(error)

    def __index__(self):
        self.run()
        return 3

    def __iter__(self):
        self.run()
        yield 3
        self.run()


CALLBACKS = {
    "insert time": lambda w, c: w.insert(c, 1),
    "insert value": lambda w, c: w.insert(3, c),
    "times": lambda w, c: w.insert_many(c, [1]),
    "values": lambda w, c: w.insert_many([1], c),
    "item": lambda w, c: w.insert_many([1], [c]),
    "query": lambda w, c: w.query(c),
    "evict": lambda w, c: w.evict(c),
    "evict_until": lambda w, c: w.evict_until(c),
}


@pytest.mark.parametrize("inner", CALLS)
@pytest.mark.parametrize("outer", CALLBACKS)
def test_calling_back_is_refused(outer, inner):
    w = window()
    expected = w.copy()
    CALLBACKS[outer](expected, Caller(lambda: None))
    caller = Caller(lambda: CALLS[inner](w))
    CALLBACKS[outer](w, caller)
    if inner == "_describe":
        assert caller.errors or caller.calls  # it may answer, because nothing changes
    assert len(caller.errors) == caller.calls > 0
    assert "finish that call first" in str(caller.errors[0])
    w.check()
    assert w.items() == expected.items()


@pytest.mark.parametrize("outer", CALLBACKS)
def test_another_window_may_be_called(outer):
    w, other = window(), window()
    caller = Caller(lambda: [call(other) for call in CALLS.values()])
    CALLBACKS[outer](w, caller)
    assert not caller.errors
    assert caller.calls


@pytest.mark.parametrize("inner", CALLS)
@pytest.mark.parametrize("outer", CALLBACKS)
def test_another_thread_may_call(outer, inner):
    """The other thread does not wait, and the first call takes effect at its end."""
    w = window()

    def elsewhere():
        thread = threading.Thread(target=CALLS[inner], args=(w,))
        thread.start()
        thread.join(10)
        assert not thread.is_alive()

    caller = Caller(elsewhere)
    CALLBACKS[outer](w, caller)
    assert caller.calls
    w.check()


def test_an_error_of_the_callback_ends_the_call():
    w = window()
    with pytest.raises(sw.WindowBusyError) as caught:
        w.insert_many((w.youngest + t for t in range(3)), [1, 2, 3])
    assert not hasattr(caught.value, "__notes__")
    assert w.items() == window().items()
    w.insert(1, 1)  # the window is free again


def test_objects_that_call_when_they_are_released():
    seen = []

    class Last:
        def __init__(self, w):
            self.w = w

        def __del__(self):
            seen.append((len(self.w), self.w.query()[:0]))
            self.w.insert(1000, "from a finalizer")
            self.w.check()

    w = sw.Window(sw.collect())
    for leave in (
        lambda: w.evict(),
        lambda: w.evict(0),
        lambda: w.evict_until(0),
        lambda: w.clear(),
    ):
        w.insert_many([0, 0], [Last(w), Last(w)])
        before = len(seen)
        leave()
        assert len(seen) == before + 2
        assert w.items()[-1][0] == 1000
        w.clear()
    w = sw.Window(sw.collect(), last=sw.rows(2))
    for at in range(5):
        w.insert(at, Last(w))
    w.check()
    w.clear()


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_arrays_that_call_when_they_are_released(dtype):
    released = []

    class Memory:
        def __init__(self, w, values):
            self.w, self.held = w, pa.array(values).buffers()[1]

        def __del__(self):
            released.append(len(self.w))
            self.w.query()

    class Array:
        def __init__(self, w, values):
            memory = Memory(w, values)
            buffer = pa.foreign_buffer(memory.held.address, memory.held.size, memory)
            buffers = [None, buffer]
            self.array = pa.Array.from_buffers(pa.int64(), len(values), buffers)

        def __arrow_c_array__(self, requested_schema=None):
            array, self.array = self.array, None
            return array.__arrow_c_array__()

    w = sw.Window(sw.sum(), dtype=dtype)
    done = threading.Event()

    def work():
        w.insert_many(Array(w, [1, 2, 3]), Array(w, [10, 20, 30]))
        done.set()

    threading.Thread(target=work, daemon=True).start()
    assert done.wait(10), "a finalizer waits for the window that waits for it"
    assert released == [3, 3]
    assert w.query() == 60


def test_threads_take_turns():
    w = sw.Window({"s": sw.sum(), "n": sw.count()}, ties="keep")
    rounds, workers = 300, 6
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for turn in range(rounds):
                w.insert(int(rng.integers(0, 10_000)), 1)
                w.insert_many(rng.integers(0, 10_000, 50), np.ones(50, "int64"))
                if turn % 50 == 0:
                    answer = w.query()
                    assert answer["s"] == answer["n"]
                    w.copy().check()
        except BaseException as error:  # noqa: BLE001 (shown by the main thread)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    w.check()
    assert w.query() == {"s": workers * rounds * 51, "n": workers * rounds * 51}


def test_threads_over_objects():
    w = sw.Window(sw.collect(), last=sw.rows(100))
    errors = []

    def work():
        try:
            for at in range(2000):
                w.insert(at, [at])
                if at % 100 == 0:
                    assert all(isinstance(one, list) for one in w.query())
        except BaseException as error:  # noqa: BLE001 (shown by the main thread)
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    w.check()
    assert len(w.query()) == 100


def test_the_first_entry_from_many_threads():
    for _ in range(30):
        w = sw.Window(sw.sum())
        gate = threading.Barrier(4)

        def work(value, w=w, gate=gate):
            gate.wait()
            w.insert_many(np.arange(1000), np.full(1000, value))

        threads = [
            threading.Thread(target=work, args=(value,)) for value in (1, 2, 3, 4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert w.query() == 10_000


@pytest.mark.long
def test_other_threads_run_during_a_bulk_insert():
    """The GIL is free while native columns are sorted and inserted."""
    count = 3_000_000
    rng = np.random.default_rng(0)
    times, values = rng.integers(0, 1 << 40, count), np.ones(count, "int64")
    w = sw.Window(sw.sum())
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    w.insert_many(times, values)
    end = time.perf_counter()
    done.set()
    thread.join()
    during = [at for at in ticks if start < at < end]
    assert len(during) >= 10
    assert w.query() == count


INTERRUPTED = """
import signal, threading, time
import slidewise as sw

signal.signal(signal.SIGINT, signal.default_int_handler)
w = sw.Window(sw.sum())
w.insert(1, 1)
before = w.to_bytes()
huge = {huge}

def interrupt():
    for _ in range(30):  # each wake needs the GIL, which the main thread holds
        time.sleep(0.01)
    signal.raise_signal(signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    w.insert_many({times}, {values})
except KeyboardInterrupt:
    assert w.to_bytes() == before
    w.check()
    w.insert(2, 2)
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("huge", "times", "values"),
    [
        ("0", "iter(int, 1)", "[]"),  # zeros for ever, without a line of Python
        ("0", "[1]", "iter(int, 1)"),
        ("0", "(n for n in iter(int, 1))", "[]"),
        ("range(10**10)", "huge", "huge"),
    ],
)
def test_ctrl_c_and_other_threads_during_endless_input(huge, times, values):
    program = INTERRUPTED.format(huge=huge, times=times, values=values)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,  # of which the thread's naps take 0.3 s
        check=False,
    )
    assert done.stdout == "interrupted\n", done.stderr


@pytest.mark.long
def test_a_copy_during_the_first_insert_is_a_whole_window() -> None:
    times = np.arange(20_000).view("datetime64[s]")
    for _ in range(2):
        window = sw.Window(sw.max())
        words = [f"v{at}" for at in range(len(times))]
        copies: list[sw.Window] = []
        filling = threading.Thread(target=window.insert_many, args=(times, words))
        filling.start()
        while filling.is_alive():
            copies.append(window.copy())
        filling.join()
        copies.append(window.copy())
        for copy in copies:
            assert len(copy) in (0, len(times))
            if len(copy):
                assert copy.query() == max(words)
                assert copy.oldest == times[0]
            assert len(sw.Window.from_bytes(copy.to_bytes())) == len(copy)
