"""`Locked`: objects whose calls wait for one another, with copies and pickles."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from threading import Lock, get_ident
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

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
    """An object with one lock, which its copies do not share.

    Attributes:
        _derived: The attributes that a copy computes again instead of copying them.
    """

    _derived: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
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
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(self._state(memo))
        twin._derive()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """A copy of the state, for pickle."""
        state = self._state({})
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores the state, for pickle."""
        self.__dict__.update(state, _lock=Lock())
        self._derive()

    def _roll_back(self) -> None:
        """Undoes the changes of an earlier call that did not finish."""

    def _derive(self) -> None:
        """Computes the derived attributes that every call needs."""

    def _state(self, memo: dict[int, Any]) -> dict[str, Any]:
        """A copy of the state, with a new lock."""
        with self._locked():
            memo[id(self._lock)] = Lock()
            none = dict.fromkeys(self._derived)
            return {**deepcopy({**vars(self), **none}, memo), "_owner": 0}
