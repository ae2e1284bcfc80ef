"""`State`: what changes in `KeyedWindows`, under one lock, as a whole or not at all.

A child of `os.fork` has only the thread that forked. Its states get new locks, and the
next call rolls back what a call of another thread had not finished.
"""

import os
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from threading import Lock, get_ident
from typing import Any, Concatenate, ParamSpec, Protocol, Self, SupportsBytes, TypeVar
from weakref import WeakSet

import pyarrow as pa

from slidewise.errors import SpecError, WindowBusyError
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.processor import Processor, encode_directory
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.shard import Directory
from slidewise.keyed.view import View

__all__ = ["Commit", "State", "synchronized"]

_T = TypeVar("_T")
_P = ParamSpec("_P")

# What a failed transaction restores, beside the pages and the view.
_FIELDS = (
    *("late_count", "ahead_count", "duplicate_count", "looked", "silent"),
    *("results", "directory", "checksum", "saved", "is_ahead"),
    # The first batch sets these.
    *("query", "delay", "retention"),
)
# What a copy does not have.
_OWN = ("lock", "_owner", "_before", "_commit", "processor", "view")


class Commit:
    """The commit of a transaction of several states, which is one assignment.

    Attributes:
        is_done: Whether the changes of all states are to stay.
    """

    is_done = False


class State:
    """The state of `KeyedWindows`; each change of it is a transaction.

    A `with` statement takes its lock.

    Attributes:
        lock: The lock, which copies do not share.
        store: The pages.
        query: The query; None before the first batch.
        delay: How far the watermark stays behind the latest time, in ticks.
        retention: How long rows are kept behind the watermark, in ticks.
        directory: The directory of the state; None before the first batch.
        processor: What is in the pages; None before the first batch.
        view: What queries know of it, without the lock; None before the first batch.
        results: Results that wait for `collect`.
        late_count: The number of late rows.
        ahead_count: The number of rows that were ahead of the clock.
        duplicate_count: The number of duplicates, by `unique_by=`.
        looked: The time of the last look at the clock, in ticks; None before it.
        silent: For how long no row had come then, in ticks.
        saved: The pages of the snapshot on which `changes` is based: its last result,
            or the first of `to_bytes`.
        checksum: The checksum of that snapshot; None before it.
        is_ahead: Whether there was any change since.
    """

    lock: Lock
    query: KeyedQuery | None
    directory: Directory | None
    processor: Processor | None
    view: View | None
    looked: int | None
    results: list[pa.Table]
    saved: frozenset[int]
    checksum: int | None
    # The thread that holds the lock; 0 for none.
    _owner: int
    # The view, fields and pages before an unfinished transaction; None without one.
    _before: tuple[View | None, dict[str, Any], dict[int, SupportsBytes | None]] | None
    # The commit of that transaction, if other states take part in it.
    _commit: Commit | None

    def __new__(cls) -> Self:
        """A state with a lock of its own."""
        made = super().__new__(cls)
        made._renew_lock()
        made._before, made._commit = None, None
        made.processor, made.view = None, None
        _live.add(made)
        return made

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.query = None
        self.delay = self.retention = 0
        self.late_count = self.ahead_count = self.duplicate_count = 0
        self.looked, self.silent = None, 0
        self.directory = None
        self.results = []
        self.saved, self.checksum = frozenset(), None
        self.is_ahead = False

    # The lock.

    def _renew_lock(self) -> None:
        self.lock, self._owner = Lock(), 0

    def __enter__(self) -> None:
        """Takes the lock.

        Raises:
            WindowBusyError: If this thread already holds it.
        """
        if self._owner == get_ident():
            raise WindowBusyError(
                "these KeyedWindows are used from within one of their own calls, by a "
                "function of an aggregation: use them after the call"
            )
        self.lock.acquire()
        try:
            self._owner = get_ident()
            self._roll_back()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        """Frees the lock."""
        self._owner = 0
        self.lock.release()

    def after_fork(self) -> None:
        """Frees the lock in a child, unless the thread that forked holds it."""
        if self._owner != get_ident():
            self._renew_lock()
            self._restore_fields()

    # What is in the pages.

    def require(self) -> Processor:
        """What is in the pages, for a call that needs it."""
        if self.processor is None:
            raise SpecError(
                "there are no rows yet: ingest some first, or make KeyedWindows with "
                "schema="
            )
        return self.processor

    def published(self) -> View | None:
        """The view, after the rollback of a change that did not end."""
        if self._before is not None and not self.lock.locked():
            with self:
                pass
        return self.view

    def publish(self, largest: int | None, watermark: int | None) -> None:
        """Publishes the view of the state at a position."""
        assert self.processor is not None, "the columns are known"
        self.view = View.of(self.processor, largest, watermark)

    def open(self, *, trusts: bool = True) -> Processor:
        """Opens what is in the pages, as the directory describes it."""
        assert self.query is not None, "the columns are known"
        found = Processor(
            self.query, self.store, self.directory, self.retention, trusts=trusts
        )
        found.answer.drop_decoded()
        return found

    def begin(self, query: KeyedQuery, delay: int, retention: int) -> None:
        """Opens an empty state, once the columns are known."""
        self.query, self.delay, self.retention = query, delay, retention
        self._reopen(None, None)
        self.directory = self.require().commit()

    def _reopen(self, largest: int | None, watermark: int | None) -> None:
        self.processor = self.open()
        self.publish(largest, watermark)

    @property
    def nbytes(self) -> int:
        """The bytes of the rows, of their index, and of results that wait."""
        waiting: int = sum(table.nbytes for table in self.results)
        if self.processor is None:
            return waiting
        rows = self.processor.shard.nbytes(self.store.tables())
        head = len(encode_directory(self.directory))
        return self.store.nbytes + head + waiting + rows

    # Transactions.

    def atomically(self, step: Callable[[Processor], _T]) -> _T:
        """Runs a step and commits it as one transaction; an exception rolls it back."""
        processor = self.require()
        with self.transaction() as pages:
            result = step(processor)
            pages |= self.store.held(processor.pages.changed)
            self.is_ahead = True
            self.directory = processor.commit()
        return result

    def transaction(self, commit: Commit | None = None) -> "_Transaction":
        """A block that is rolled back if it raises; see `_Transaction`.

        With a commit, it is rolled back unless that is done.
        """
        return _Transaction(self, commit)

    def _start(self, commit: Commit | None) -> dict[int, SupportsBytes | None]:
        """Starts a transaction, or goes on with one; gives its earlier pages."""
        if self._before is None:
            self._commit = commit
            fields = {name: getattr(self, name) for name in _FIELDS}
            fields["results"] = [*self.results]
            self._before = (self.view, fields, {})
        return self._before[2]

    def _end(self, kind: type[BaseException] | None) -> None:
        """Ends a transaction, by a rollback if an exception was raised."""
        if kind is None:
            self._before = None
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        """Rolls back a transaction that did not end.

        Each step is idempotent: if this is interrupted, the next call repeats them all.
        """
        if self._commit is not None and self._commit.is_done:
            self._before = None
        if self._before is None:
            return
        view, _, pages = self._before
        self.store.restore(pages)
        self._restore_fields()
        if view is None:  # the first batch failed
            self.processor = None
        else:
            self._reopen(view.largest, view.watermark)
        self._before = None

    def _restore_fields(self) -> None:
        """Restores what calls read without the lock, and all other fields."""
        is_done = self._commit is not None and self._commit.is_done
        if self._before is not None and not is_done:
            view, fields, _ = self._before
            vars(self).update(fields)
            if view is None:
                self.view = None
            else:
                self.publish(view.largest, view.watermark)

    # Copies.

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """An independent copy."""
        twin = type(self)()
        memo[id(self)] = twin
        twin.__setstate__(self._copied(memo))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """A copy of the fields, for pickle."""
        return self._copied({})

    def __setstate__(self, fields: dict[str, Any]) -> None:
        """Sets the fields, and opens the pages."""
        position = fields.pop("position")
        vars(self).update(fields)
        if position is not None:
            self._reopen(*position)

    def _copied(self, memo: dict[int, Any]) -> dict[str, Any]:
        """Copies of the fields, with the position in place of the view."""
        with self:
            view = self.view
            position = None if view is None else (view.largest, view.watermark)
            fields = {name: x for name, x in vars(self).items() if name not in _OWN}
            return deepcopy({**fields, "position": position}, memo)


class _Transaction:
    """A transaction of a state, or a part of the one that has not ended.

    On entry it gives a dict, which the caller fills with the pages before the changes.
    """

    def __init__(self, state: State, commit: Commit | None = None) -> None:
        self._state, self._is_part = state, state._before is not None
        self._commit = commit

    def __enter__(self) -> dict[int, SupportsBytes | None]:
        return self._state._start(self._commit)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._is_part:
            self._state._end(kind)


class _HasState(Protocol):
    _state: State


_OwnerT = TypeVar("_OwnerT", bound=_HasState)


def synchronized(
    method: Callable[Concatenate[_OwnerT, _P], _T],
) -> Callable[Concatenate[_OwnerT, _P], _T]:
    """A method that holds the lock of the state of its object."""

    @wraps(method)
    def run(self: _OwnerT, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with self._state:
            return method(self, *args, **kwargs)

    return run


# The states of this process.
_live: WeakSet[State] = WeakSet()


def _after_fork_in_child() -> None:
    for state in _live:
        state.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
