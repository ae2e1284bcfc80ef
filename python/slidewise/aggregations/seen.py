"""What the functions of a user-defined aggregation see, by their parameters."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Seen", "seen_by"]

_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)
_ENDS = ("start", "end")


class Seen(NamedTuple):
    """What `lift` and `lower` see.

    Attributes:
        time: Whether `lift` takes the time before the values.
        columns: The names of the values that it takes, at least one.
        ends: The ends of the window that `lower` takes, of "start" and "end".
    """

    time: bool
    columns: tuple[str, ...]
    ends: tuple[str, ...]

    @property
    def plain(self) -> bool:
        """Whether they see one value and its partial only."""
        return not self.time and len(self.columns) == 1 and not self.ends


def seen_by(lift: Callable[..., Any] | None, lower: Callable[..., Any] | None) -> Seen:
    """Reads the parameters of `lift` and `lower`.

    Example:
        >>> seen_by(lambda time, price, size: price, lambda partial, end: partial)
        Seen(time=True, columns=('price', 'size'), ends=('end',))
        >>> seen_by(None, None)
        Seen(time=False, columns=('value',), ends=())
    """
    names = _needed(lift) or ("value",)
    time = len(names) > 1 and names[0] == "time"
    ends = tuple(name for name in _ENDS if name in _needed(lower)[1:])
    return Seen(time, names[1:] if time else names, ends)


def _needed(function: Callable[..., Any] | None) -> tuple[str, ...]:
    """The parameters that have no defaults; none if they cannot be read."""
    if function is None:
        return ()
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin
        return ()
    return tuple(
        each.name
        for each in parameters
        if each.kind in _POSITIONAL and each.default is each.empty
    )
