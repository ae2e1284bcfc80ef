"""A child of a fork has `KeyedWindows` of its own, whatever other threads do."""

import copy
import itertools
import multiprocessing
import os
import random
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from forking import Paused, continue_stream, in_both, in_child, running
from seeds import SEED

import slidewise as sw

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork"),
    # From Python 3.12 on, of processes that have several threads.
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]

SPEC = sw.Spec(
    on="t",
    by="k",
    windows=50,
    aggs={"n": sw.count(), "s": sw.sum("x"), "m": sw.median("x")},
)
KEYS = pa.table({"k": range(7)})
FLOATS = pa.table({"t": [500], "k": [1], "x": [0.5]})
# The files of whose lines some are drawn: those that change the state.
FILES = {
    *("keyed_windows.py", "stream.py", "transaction.py", "snapshots.py"),
    *("queries.py", "view.py"),
    *("shard.py", "pending.py", "processor.py", "row_log.py", "page_store.py"),
}

Call = Callable[[sw.KeyedWindows], object]


def rows_of(batch: int, count: int = 40) -> pa.Table:
    times = [batch * 10 + at % 25 for at in range(count)]
    keys = [(batch + at) % 7 for at in range(count)]
    return pa.table({"t": times, "k": keys, "x": [batch * 1000 + at for at in times]})


def made(emit: str, batches: int) -> sw.KeyedWindows:
    windows = sw.KeyedWindows(SPEC, emit=emit, late=5)
    for batch in range(batches):
        windows.ingest(rows_of(batch))
        windows.advance()
    return windows


def seen(windows: sw.KeyedWindows) -> list[Any]:
    """All that calls give, also after further batches."""
    found = [windows.watermark, windows.late_count, len(windows)]
    try:
        windows.ingest(FLOATS)  # fits unless there was a batch of integers
    except sw.SpecError as error:
        found.append(str(error))
    windows.ingest(rows_of(9))
    windows.advance()
    windows.check()
    found += [windows.collect().to_pylist(), windows.query_many(KEYS).to_pylist()]
    twin = sw.KeyedWindows.from_bytes(windows.to_bytes(), SPEC)
    return [*found, windows.changes(), twin.query_many(KEYS).to_pylist()]


def collected(windows: sw.KeyedWindows) -> sw.KeyedWindows:
    windows.collect()
    return windows


def follower() -> tuple[sw.KeyedWindows, bytes]:
    """Windows that follow, and changes to apply."""
    leader = collected(made("final", 3))
    windows = sw.KeyedWindows.from_bytes(leader.to_bytes(), SPEC)
    leader.ingest(rows_of(3))
    leader.advance()
    leader.collect()
    return windows, leader.changes()


FOLLOWER, CHANGES = follower()
CALLS: dict[str, tuple[sw.KeyedWindows, Call]] = {
    "first": (made("final", 0), lambda w: w.ingest(rows_of(0))),
    "ingest": (made("final", 3), lambda w: w.ingest(rows_of(2))),
    "arrival": (made("arrival", 3), lambda w: w.ingest(rows_of(3))),
    "advance": (made("final", 3), lambda w: w.advance(100)),
    "change": (made("change", 3), lambda w: w.advance(100)),
    "collect": (made("final", 3), lambda w: w.collect()),
    "evict_idle": (made("update", 3), lambda w: w.evict_idle(25)),
    "apply": (FOLLOWER, lambda w: w.apply(CHANGES)),
    "to_bytes": (collected(made("final", 3)), lambda w: w.to_bytes()),
    "changes": (collected(made("final", 3)), lambda w: w.changes()),
    "query": (made("final", 3), lambda w: w.query(1)),
    "query_many": (made("final", 3), lambda w: w.query_many(KEYS, windows=7)),
}


ALL = pytest.param(10**6, marks=[pytest.mark.nightly, pytest.mark.timeout(600)])


@pytest.mark.parametrize("most", [3, ALL])
@pytest.mark.parametrize("name", CALLS)
def test_a_child_sees_all_of_a_call_or_nothing(name: str, most: int) -> None:
    """Another thread is at any line of the call, and holds the lock at most of them."""
    windows, call = CALLS[name]
    windows, before, after = (copy.copy(windows) for _ in range(3))
    lines = [*Paused(lambda: call(after), lambda file, _: file in FILES)]
    drawn = {*random.Random(SEED).sample(lines, min(most, len(lines)))}
    prefixes, last = [seen(before), seen(after)], 0

    def continued() -> int:
        return prefixes.index(seen(windows))

    for line in Paused(lambda: call(windows), lambda *at: at in drawn):
        try:
            found = in_child(continued)
        except AssertionError as error:
            raise AssertionError(f"{name} at {line}: {error}") from None
        assert last <= found, line
        last = found
    assert in_child(continued) == prefixes.index(prefixes[1])


def test_children_of_a_stream_hold_a_prefix_of_its_batches() -> None:
    """Threads ingest, advance, collect and query while others fork."""
    keys = pa.table({"k": range(1000)})
    aggs = {"n": sw.count(), "s": sw.sum("x")}
    windows = sw.KeyedWindows(on="t", by="k", windows=10**9, aggs=aggs)
    batches = itertools.count()

    def batch(number: int) -> pa.Table:
        """Row x of each key is its number of batches."""
        return pa.table({"t": [number] * 1000, "k": range(1000), "x": [number] * 1000})

    windows.ingest(batch(next(batches)))

    def ingest() -> None:
        windows.ingest(batch(next(batches)))

    def advance() -> None:
        windows.advance()
        windows.collect()

    def continued() -> None:
        found = windows.query_many(keys, at=10**6)
        counts = set(found[f"n_{10**9}"].to_pylist())
        assert len(counts) == 1, "part of a batch"
        count = counts.pop()
        assert set(found[f"s_{10**9}"].to_pylist()) == {count * (count - 1) // 2}
        assert windows.query(7, at=10**6)[f"n_{10**9}"] == count
        windows.ingest(batch(count))
        windows.advance()
        windows.check()
        assert windows.query(7)[f"n_{10**9}"] == count + 1

    def many() -> None:
        windows.query_many(keys, at=10**6)

    with running(ingest, advance, many, lambda: windows.query(7, at=10**6)):
        for _ in range(6):
            in_child(continued)
    windows.check()


def with_lift(lift: Callable[[int], int]) -> sw.KeyedWindows:
    """Windows with a row of 1, whose `m_50` is the largest value."""
    most = sw.aggregation(lift=lift, combine=max, identity=0, returns=int)
    windows = sw.KeyedWindows(on="t", windows=50, aggs={"m": most("x")}, emit="update")
    windows.ingest(pa.table({"t": [1], "x": [1]}))
    return windows


def test_a_fork_does_not_wait_for_functions_of_aggregations() -> None:
    """Such a function may wait for the thread that forks."""
    called, forked = threading.Event(), threading.Event()

    def lift(x: int) -> int:
        if x == 2:
            called.set()
            assert forked.wait(20)
        return x

    def continued() -> object:
        windows.ingest(pa.table({"t": [3], "x": [3]}))
        return windows.query(windows=2)

    windows = with_lift(lift)
    other = threading.Thread(
        target=lambda: windows.ingest(pa.table({"t": [2], "x": [2]}))
    )
    other.start()
    assert called.wait(20)
    try:
        assert in_child(continued) == {"m_2": 3}
    finally:
        forked.set()
        other.join()
    assert windows.query() == {"m_50": 2}


def test_a_function_of_an_aggregation_may_fork() -> None:
    """In the child, too, the call goes on, and other threads wait for it."""

    def work(fork: Callable[[], None]) -> list[object]:
        order: list[object] = []
        others: list[threading.Thread] = []

        def ingest_more() -> None:
            windows.ingest(pa.table({"t": [3], "x": [3]}))
            order.append("ingested")

        def lift(x: int) -> int:
            if x == 2 and not others:
                fork()
                others.append(threading.Thread(target=ingest_more))
                others[0].start()
                others[0].join(0.05)
                order.append("lifted")
            return x

        windows = with_lift(lift)
        windows.ingest(pa.table({"t": [2], "x": [2]}))
        others[0].join()
        return [*order, windows.query(), windows.query(at=2)]

    here, there = in_both(work)
    assert here == there == ["lifted", "ingested", {"m_50": 3}, {"m_50": 2}]


def test_a_child_computes_what_another_thread_was_computing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An attribute that is computed once has no lock that a child would wait for."""
    size, called = pa.ipc.get_record_batch_size, threading.Event()
    forked = threading.Event()

    def slow(batch: pa.RecordBatch) -> int:
        if threading.current_thread() is other:
            called.set()
            assert forked.wait(20)
        return int(size(batch))

    windows, same = made("final", 1), made("final", 1)
    other = threading.Thread(target=lambda: windows.ingest(rows_of(1)))
    monkeypatch.setattr(pa.ipc, "get_record_batch_size", slow)
    other.start()
    assert called.wait(20)
    try:
        assert in_child(lambda: seen(windows)) == seen(same)
    finally:
        forked.set()
        other.join()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_of_multiprocessing_goes_on_with_its_own_copy(method: str) -> None:
    windows = sw.KeyedWindows(on="t", by="k", windows=1000, aggs={"n": sw.count()})
    windows.ingest(rows_of(0))
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    with running(lambda: windows.ingest(rows_of(1)), windows.keys):
        given = (windows, KEYS, rows_of(2), theirs)
        process = context.Process(target=continue_stream, args=given)
        process.start()
    try:
        assert ours.poll(50), "the process hangs"
        before, after = (sum(found["n_1000"].to_pylist()) for found in ours.recv())
    finally:
        process.kill()
        process.join()
    assert before % 40 == 0
    assert after == before + 40
