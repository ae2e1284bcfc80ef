"""`Locked`: objects whose calls wait for one another, with copies and pickles.

A child of `os.fork` has only the thread that forked. Its objects get new locks, and the
next call rolls back what a call of another thread had not finished.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from threading import Lock, get_ident
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from weakref import WeakSet

from slidewise.errors import WindowBusyError

__all__ = ["Locked", "synchronized"]

_T = TypeVar("_T")
_P = ParamSpec("_P")
_LockedT = TypeVar("_LockedT", bound="Locked")


def synchronized(
    method: Callable[Concatenate[_LockedT, _P], _T],
) -> Callable[Concatenate[_LockedT, _P], _T]:
    """A method that holds the lock of its object."""

    @wraps(method)
    def run(self: _LockedT, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with self._locked():
            return method(self, *args, **kwargs)

    return run


class Locked:
    """An object with one lock, which its copies do not share."""

    _lock: Lock
    # The thread that holds the lock; 0 for none.
    _owner: int

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """An object with a lock of its own."""
        made = super().__new__(cls)
        made._renew_lock()
        _live.add(made)
        return made

    def _renew_lock(self) -> None:
        self._lock, self._owner = Lock(), 0

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds the lock.

        Raises:
            WindowBusyError: If this thread already holds it.
        """
        if self._owner == get_ident():
            raise WindowBusyError(
                "these KeyedWindows are used from within one of their own calls, by a "
                "function of an aggregation: use them after the call"
            )
        with self._lock:
            try:
                self._owner = get_ident()
                self._roll_back()
                yield
            finally:
                self._owner = 0

    def __copy__(self) -> Self:
        """An independent copy."""
        return deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """An independent copy."""
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(self._state(memo))
        twin._derive()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """A copy of the state, for pickle."""
        return self._state({})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores the state, for pickle."""
        self.__dict__.update(state)
        self._derive()

    def _roll_back(self) -> None:
        """Undoes the changes of an earlier call that did not finish."""

    def _copied(self) -> dict[str, Any]:
        """The attributes that a copy has, before it derives others from them."""
        state = {**vars(self)}
        del state["_lock"], state["_owner"]
        return state

    def _derive(self) -> None:
        """Computes the derived attributes of a copy."""

    def _restore_attributes(self) -> None:
        """Restores the attributes before a call that did not finish.

        `_roll_back` restores the rest when they are next used.
        """

    def _after_fork(self) -> None:
        """Frees the lock in a child, unless the thread that forked holds it."""
        if self._owner != get_ident():
            self._renew_lock()
            self._restore_attributes()

    def _state(self, memo: dict[int, Any]) -> dict[str, Any]:
        """A copy of the state, without the lock."""
        with self._locked():
            return deepcopy(self._copied(), memo)


# The objects of this process.
_live: WeakSet[Locked] = WeakSet()


def _after_fork_in_child() -> None:
    for each in _live:
        each._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
