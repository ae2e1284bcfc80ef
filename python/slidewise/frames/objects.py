"""Python objects as an Arrow array whose type is inferred, without loss.

Arrow infers microseconds for the times of pandas, and int64 for integers. Values that
do not fit these get nanoseconds and uint64.
"""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import pyarrow as pa

from slidewise.frames.column_types import replace_types

__all__ = ["array_of_objects"]


def array_of_objects(
    values: Any,
    kind: pa.DataType | None = None,
    *,
    mask: Any = None,
    pandas: bool = False,
) -> pa.Array:
    """Objects as an array; chunked if they are too long for one.

    Args:
        values: A sequence of objects, None for null.
        kind: The type, if it is known.
        mask: Where values are missing: an array of booleans.
        pandas: Whether NaN and NaT are missing, too.

    Raises:
        pa.ArrowException, OverflowError: If no type holds all values.

    Cost: O(n), twice for objects with nanoseconds or integers from 2⁶³ on.

    Example:
        >>> array_of_objects([2**63, None]).type
        DataType(uint64)
    """
    if kind is not None:
        return pa.array(values, kind, mask=mask, from_pandas=pandas)
    try:
        array = pa.array(values, mask=mask, from_pandas=pandas)
    except (pa.ArrowInvalid, OverflowError):
        if not all(value is None or _is_integer(value) for value in values):
            raise
        return pa.array(values, pa.uint64(), mask=mask, from_pandas=pandas)
    finer = _in_nanoseconds(array.type)
    if finer == array.type or not any(map(_has_nanoseconds, values)):
        return array
    # Beside nanoseconds, Arrow takes NaT only as a missing value of pandas.
    missing = pandas or not pa.types.is_nested(finer)
    return pa.array(values, finer, mask=mask, from_pandas=missing)


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _in_nanoseconds(kind: pa.DataType) -> pa.DataType:
    """A type with its times of microseconds in nanoseconds."""
    return replace_types(kind, _finer)


def _finer(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return pa.timestamp("ns", kind.tz)
    return pa.duration("ns") if kind == pa.duration("us") else None


def _has_nanoseconds(value: Any) -> bool:
    """Whether a value is, or holds, a time of pandas with nanoseconds."""
    if isinstance(value, Mapping):
        return any(map(_has_nanoseconds, value.values()))
    if isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1:
        return any(map(_has_nanoseconds, value))
    # Timestamp and Timedelta.
    found = getattr(value, "nanosecond", None) or getattr(value, "nanoseconds", None)
    return bool(found)
