"""Checks of stored state, and the errors that damaged bytes cause in its readers."""

import struct
from typing import Any

import pyarrow as pa

__all__ = ["BROKEN", "checked_ints"]

# Errors that readers of damaged bytes raise.
BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
)

_INT64 = range(-(2**63), 2**63)


def checked_ints(*numbers: Any) -> int:
    """Checks that all numbers are int64, and returns the first.

    Raises:
        TypeError: If one is not an int.
        ValueError: If one is beyond int64.
    """
    for number in numbers:
        if type(number) is not int:
            raise TypeError(f"{number!r} is not an int")
        if number not in _INT64:
            raise ValueError(f"{number} is beyond int64")
    return int(numbers[0])
