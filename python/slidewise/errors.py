"""What slidewise raises.

Every error of its own is a `SlidewiseError` and also the built-in exception that says
the same, so that `except ValueError` works for those who never heard of slidewise.
"""

__all__ = [
    "EmptyWindowError",
    "LawError",
    "OutOfOrderError",
    "ResultOverflowError",
    "SlidewiseError",
    "SnapshotError",
    "SpecError",
    "WindowBusyError",
]


class SlidewiseError(Exception):
    """The root of all errors that slidewise raises itself."""


class SpecError(SlidewiseError, ValueError):
    """What was asked for cannot be done: an argument, a column or a value is wrong.

    Raised before anything changes. The message names the value and the way out.
    """


class OutOfOrderError(SlidewiseError, ValueError):
    """A late entry met an algorithm that takes entries in order only."""


class EmptyWindowError(SlidewiseError, IndexError):
    """`evict()` on a window without entries."""


class LawError(SlidewiseError, ValueError):
    """`check_laws` found a law that an aggregation breaks."""


class SnapshotError(SlidewiseError, ValueError):
    """Bytes that are no snapshot, or a damaged one."""


class ResultOverflowError(SlidewiseError, OverflowError):
    """An exact integer answer that does not fit its result type.

    Integers never wrap and never become floats by themselves: only the answer is
    checked, when it is asked for. Cast the column to float64 if rounding is fine.
    """


class WindowBusyError(SlidewiseError, RuntimeError):
    """A window was used from within its own operation, or by two threads at once."""
