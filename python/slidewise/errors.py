"""What slidewise raises.

Every error of its own is a `SlidewiseError` and also the built-in exception that says
the same, so that `except ValueError` works for those who never heard of slidewise.
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
    "WindowBusyError",
    "describe_value",
]


class SlidewiseError(Exception):
    """The root of all errors that slidewise raises itself."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a function, where a message names it.

    Attributes:
        name: The argument's name.
        value: What it is, or is to be; `...` where only the argument is meant.

    Example:
        >>> str(Argument("emit", "final")), str(Argument("late"))
        ("emit='final'", 'late=')
    """

    name: str
    value: object = ...

    def __str__(self) -> str:
        """As in a call."""
        return f"{self.name}={'' if self.value is ... else repr(self.value)}"


class _MessageError(SlidewiseError):
    """An error whose message may name arguments, which its reader calls otherwise.

    Args:
        parts: The message, in one piece or in several, which `str(error)` joins. An
            `Argument` among them can be told otherwise by who calls it otherwise.
    """

    def __init__(self, *parts: str | Argument) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        """The message, arguments as in a call."""
        return self.format(str)

    def format(self, argument: Callable[[Argument], str]) -> str:
        """The message, arguments in other words."""
        return "".join(
            argument(part) if isinstance(part, Argument) else str(part)
            for part in self.args
        )


class SpecError(_MessageError, ValueError):
    """What was asked for cannot be done: an argument, a column or a value is wrong.

    Raised before anything changes. The message names the value and the way out.

    Example:
        >>> error = SpecError(Argument("every", 0), " is no length")
        >>> print(error)
        every=0 is no length
        >>> error.format(lambda argument: f"--{argument.name}")
        '--every is no length'
    """


class OutOfOrderError(SlidewiseError, ValueError):
    """A late entry met an algorithm that takes entries in order only.

    Or an entry amid the window was to leave one that evicts the oldest only.

    Attributes:
        time: The time of the entry, as the window tells times.
        youngest: For a late entry, the youngest time that it had to come behind.
        oldest: For an eviction, the time of the oldest entry, which alone may leave.

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
    """`evict()` on a window without entries."""


class LawError(SlidewiseError, ValueError):
    """`check_laws` found a law that an aggregation breaks."""


class SnapshotError(SlidewiseError, ValueError):
    """Bytes that are no snapshot, or a damaged one."""


class ResultOverflowError(_MessageError, OverflowError):
    """An exact integer answer that does not fit its result type.

    Integers never wrap and never become floats by themselves: only the answer is
    checked, when it is asked for. Cast the column to float64 if rounding is fine, or
    give `overflow="null"`.
    """


class WindowBusyError(SlidewiseError, RuntimeError):
    """A window was used from within its own operation, or by two threads at once."""


def describe_value(value: object) -> str:
    """A value that is not an aggregation, for messages.

    Example:
        >>> import slidewise as sw
        >>> describe_value(7), shown(sw.count)
        ('7', 'the function sw.count itself: write sw.count()')
    """
    if callable(value) and getattr(value, "__module__", "").startswith("slidewise"):
        name = getattr(value, "__name__", "?")
        return f"the function sw.{name} itself: write sw.{name}()"
    return repr(value)[:60]
