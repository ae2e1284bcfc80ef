"""The exceptions that slidewise raises.

Each is a `SlidewiseError` and also the built-in exception of the same meaning, so that
`except ValueError` works.
"""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = [
    "Argument",
    "EmptyWindowError",
    "LawError",
    "OutOfOrderError",
    "ResultOverflowError",
    "SlidewiseError",
    "SnapshotError",
    "SpecError",
    "StaleResultError",
    "WindowBusyError",
    "describe_value",
]

# The characters of a message before and after what is left out, and those of a value.
_HEAD, _TAIL, _VALUE = 600, 400, 200


class SlidewiseError(Exception):
    """The base class of all exceptions that slidewise defines."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that a message names.

    Attributes:
        name: The argument's name.
        value: Its value; `...` where the message names the argument alone.

    Example:
        >>> str(Argument("emit", "final")), str(Argument("late"))
        ("emit='final'", 'late=')
    """

    name: str
    value: object = ...

    def __str__(self) -> str:
        """As in a call, a long value cut."""
        text = "" if self.value is ... else repr(self.value)
        if len(text) > _VALUE:
            text = f"{text[: _VALUE - 3]}..."
        return f"{self.name}={text}"


class _MessageError(SlidewiseError):
    """An exception whose message names arguments; the CLI spells them `--name`.

    Args:
        parts: The parts of the message, which `str(error)` joins. `format` renders the
            `Argument`s among them.
    """

    def __init__(self, *parts: str | Argument) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        """The message, arguments as in a Python call."""
        return self.format(str)

    def format(self, argument: Callable[[Argument], str]) -> str:
        """The message, with each argument rendered by a function.

        A message that lists many names or values lacks those in the middle.
        """
        text = "".join(
            argument(part) if isinstance(part, Argument) else str(part)
            for part in self.args
        )
        is_long = len(text) > _HEAD + _TAIL
        return f"{text[:_HEAD]} ... {text[-_TAIL:]}" if is_long else text


class SpecError(_MessageError, ValueError):
    """An argument, a column or a value is wrong.

    Raised before anything changes. The message names the value and the way out.

    Example:
        >>> import slidewise as sw
        >>> sw.rows(0)
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: 0 is not a number of rows: give an int from 1 to ...
    """


class OutOfOrderError(SlidewiseError, ValueError):
    """The algorithm of a window does not support an insert or an eviction out of order.

    Raised for a late insert by algorithms that insert in order only, and for an
    eviction within the window by those that evict the earliest entry only.

    Attributes:
        time: The time of the entry, in the type of the window's times.
        youngest: For an insert, the latest time in the window; else None.
        oldest: For an eviction, the earliest time in the window; else None.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.sum(), algorithm="daba_lite")
        >>> w.insert_many([3, 9], [1, 2])
        >>> try:
        ...     w.insert(8, 3)
        ... except sw.OutOfOrderError as error:
        ...     print(error.time, error.youngest, error.oldest)
        8 9 None
    """

    def __init__(
        self,
        message: str,
        time: object = None,
        youngest: object = None,
        oldest: object = None,
    ) -> None:
        super().__init__(message)
        self.time, self.youngest, self.oldest = time, youngest, oldest


class EmptyWindowError(SlidewiseError, IndexError):
    """`evict()` was called on an empty window."""


class LawError(SlidewiseError, ValueError):
    """An aggregation breaks a law that `check_laws` tested."""


class SnapshotError(SlidewiseError, ValueError):
    """Bytes are not a snapshot or are damaged, or values cannot be written to one."""


class ResultOverflowError(_MessageError, OverflowError):
    """An integer or decimal result does not fit its type.

    Integers never wrap and are never rounded to floats. Cast the column to float64 if
    rounding is fine, or give `overflow="null"`.
    """


class StaleResultError(SlidewiseError, LookupError):
    """The last result of a key has changed since, because rows have left its windows.

    Raised by `get` of the sinks of `slidewise.spark` for a time at or after one of the
    times of `valid_until=True`.
    """


class WindowBusyError(SlidewiseError, RuntimeError):
    """A window was used during one of its operations, by its functions or a thread."""


def describe_value(value: object) -> str:
    """Formats a value that is not an aggregation, for messages.

    Example:
        >>> import slidewise as sw
        >>> describe_value(7), describe_value(sw.count)
        ('7', 'the function sw.count itself: write sw.count()')
    """
    if callable(value) and getattr(value, "__module__", "").startswith("slidewise"):
        name = getattr(value, "__name__", "?")
        return f"the function sw.{name} itself: write sw.{name}()"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
