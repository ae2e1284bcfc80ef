"""A child of a fork has windows of its own, whatever other threads do with them."""

import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from forking import in_both, in_child, running

import slidewise as sw

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork"),
    # From Python 3.12 on, of processes that have several threads.
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]

COUNT = 20_000
# Each call inserts as many ones as minus ones.
TIMES, VALUES = np.arange(COUNT), np.resize([1, -1], COUNT)


AGGS = {"n": sw.count(), "s": sw.sum()}


def test_a_child_has_a_whole_window() -> None:
    """Threads insert, one by one and in bulk without the GIL, and query."""
    window = sw.Window(AGGS, ties="keep")

    def insert_many() -> None:
        if len(window) > 10 * COUNT:
            window.clear()
        window.insert_many(TIMES, VALUES)

    def continued() -> None:
        window.check()
        before = window.query()
        assert before["s"] in (None, 0), "part of a call"
        window.insert_many(TIMES, VALUES)
        window.insert(COUNT // 2, 7)
        assert window.query() == {"n": before["n"] + COUNT + 1, "s": 7}
        window.check()

    with running(insert_many, lambda: window.insert(5, 0), window.query):
        for _ in range(4):
            in_child(continued)
    window.check()


def test_a_child_has_a_whole_shared_window() -> None:
    length = 2 * COUNT
    window = sw.SharedWindow(AGGS, ranges=[length])
    window.insert_many(TIMES, VALUES)
    latest = COUNT

    def insert_many() -> None:
        nonlocal latest
        window.insert_many(TIMES + latest, VALUES)
        latest += COUNT

    def continued() -> None:
        window.check()
        assert window.query()[0]["s"] == 0, "part of a call"
        window.insert(10**9, 7)
        assert window.query() == [{"n": min(len(window), length), "s": 6}]
        window.insert_many(TIMES + 10**9, VALUES)
        window.check()

    with running(insert_many, window.query):
        for _ in range(3):
            in_child(continued)
    window.check()


def test_an_iterable_that_is_inserted_may_fork() -> None:
    """In the child, too, the call goes on and the window is busy."""

    def work(fork: Callable[[], None]) -> list[int]:
        window = sw.Window(sw.sum())

        def values() -> Iterator[int]:
            yield 1
            fork()
            with pytest.raises(sw.WindowBusyError):
                window.query()
            yield 2

        window.insert_many([1, 2], values())
        window.insert(3, 4)
        return [window.query(hi=2), window.query()]

    assert in_both(work) == ([3, 7], [3, 7])


def test_children_of_children_have_windows_of_their_own() -> None:
    """As the processes of a server that one process starts for another."""
    window = sw.Window(sw.sum(), ties="keep")

    def continued(depth: int) -> list[int]:
        window.insert_many(TIMES, VALUES + 1)
        below = in_child(lambda: continued(depth - 1)) if depth else []
        return [window.query(), *below]

    with running(lambda: window.insert_many(TIMES, VALUES)):
        found = in_child(lambda: continued(3))
    assert found == [COUNT, 2 * COUNT, 3 * COUNT, 4 * COUNT]
