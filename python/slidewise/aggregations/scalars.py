"""Single values of Python, NumPy and pandas: integers, bools, missing values."""

import operator
from typing import Any

__all__ = ["BYTES", "as_int", "is_bool", "is_missing", "is_numpy_bool", "is_of"]

# These iterate over numbers.
BYTES = bytes | bytearray | memoryview


def as_int(value: object) -> int | None:
    """A value of any type of integers as an int; None for other values and for bools.

    Before NumPy 2.3, its bools count as integers elsewhere.

    Example:
        >>> as_int(2), as_int(True), as_int(2.0)
        (2, None, None)
    """
    if type(value) is int:
        return value
    if is_bool(value):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:  # not a whole number, or an array
        return None


def is_missing(value: Any) -> bool:
    """Whether a value is None, pandas' NA, or a NaT."""
    if value is None:
        return True
    kind = type(value)
    if kind.__name__ in ("datetime64", "timedelta64"):
        return is_of(kind, "numpy") and bool(value != value)
    return kind.__name__ in ("NAType", "NaTType") and is_of(kind, "pandas")


def is_of(kind: type, library: str) -> bool:
    """Whether a type is defined by a library, beyond its name."""
    return str(kind.__module__).partition(".")[0] == library


def is_bool(value: object) -> bool:
    """Whether a value is a bool of Python or NumPy.

    Example:
        >>> is_bool(True), is_bool(1)
        (True, False)
    """
    return isinstance(value, bool) or is_numpy_bool(value)


def is_numpy_bool(value: Any) -> bool:
    """Whether a value is a numpy bool."""
    kind = type(value)
    return kind.__name__ in ("bool_", "bool") and is_of(kind, "numpy")
