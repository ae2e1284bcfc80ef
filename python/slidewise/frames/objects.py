"""Python objects as an Arrow array whose type is inferred, and back, without loss.

Arrow infers microseconds for the times of pandas, and int64 for integers. Values that
do not fit these get nanoseconds and uint64.
"""

import sys
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.frames.column_types import is_list, replace_types

__all__ = ["array_of_objects", "needs_objects", "objects_of", "within_python"]


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
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, TypeError):
        small = [_inferable(value) for value in values]
        array = pa.array(small, mask=mask, from_pandas=pandas)
        found = _with_large(array.type, values)
        if found == array.type:
            raise
    else:
        found = array.type
    finer = _in_nanoseconds(found)
    if finer != found and any(map(_has_nanoseconds, values)):
        found = finer
    if found == array.type:
        return array
    # Beside nanoseconds, Arrow takes NaT only as a missing value of pandas.
    missing = pandas or not pa.types.is_nested(found)
    return pa.array(values, found, mask=mask, from_pandas=missing)


def _items(value: Any) -> Iterable[Any] | None:
    """The items of a value that Arrow takes as a list of objects; None for others."""
    if isinstance(value, list | tuple):
        return value
    if getattr(value, "ndim", 0) == 1 and _numpy_kind(value) == "O":
        items: Iterable[Any] = value
        return items
    return None


def _numpy_kind(value: Any) -> str:
    """The kind of a dtype of NumPy; empty for other values."""
    return getattr(getattr(value, "dtype", None), "kind", "")


def _is_large(value: Any) -> bool:
    """Whether a value is an integer from 2⁶³ on."""
    return isinstance(value, Integral) and int(value) >= 2**63


def _inferable(value: Any) -> Any:
    """A value of which Arrow infers a type: 0 in place of integers from 2⁶³ on.

    Raises:
        OverflowError: If an integer does not fit 64 bits.
        pa.ArrowInvalid: If a time of NumPy has a unit that Arrow lacks.
    """
    if _numpy_kind(value) in ("m", "M"):
        dtype = value.dtype
        unit, count = sys.modules["numpy"].datetime_data(dtype)
        if unit not in ("s", "ms", "us", "ns") or count != 1:
            raise pa.ArrowInvalid(
                f"{value!r:.60} has a unit that Arrow lacks; cast it, such as to "
                f"{dtype.type.__name__}[s]"
            )
        return value
    if isinstance(value, Mapping):
        return {name: _inferable(part) for name, part in value.items()}
    items = _items(value)
    if items is not None:
        return [_inferable(item) for item in items]
    if isinstance(value, Integral) and not -(2**63) <= int(value) < 2**64:
        raise OverflowError(
            f"{value} does not fit an integer of 64 bits; give Decimals, floats or text"
        )
    return 0 if _is_large(value) else value


def _with_large(kind: pa.DataType, values: Iterable[Any]) -> pa.DataType:
    """The type with uint64 where values have integers from 2⁶³ on.

    Raises:
        OverflowError: If there are negative integers, too.
    """
    if pa.types.is_struct(kind):
        rows = [value for value in values if isinstance(value, Mapping)]
        return pa.struct(
            [
                field.with_type(
                    _with_large(field.type, [row.get(field.name) for row in rows])
                )
                for field in kind.fields
            ]
        )
    if pa.types.is_list(kind):
        lists = (_items(value) for value in values)
        items = [item for one in lists if one is not None for item in one]
        return pa.list_(_with_large(kind.value_type, items))
    if kind != pa.int64():
        return kind
    large = next(filter(_is_large, values), None)
    if large is None:
        return kind
    for value in values:
        if isinstance(value, Integral) and int(value) < 0:
            raise OverflowError(
                f"no type of integers holds both {value} and {large}; give Decimals, "
                "floats or text"
            )
    return pa.uint64()


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


def objects_of(array: pa.Array) -> Any:
    """An array as a NumPy array of objects: lists are arrays.

    Args:
        array: An array that `needs_objects`. Its values are those of `to_pylist`.

    Raises:
        ValueError: If structs have a time that Python cannot hold: a time of day with
            nanoseconds, or any with these if pandas is not installed.

    Example:
        >>> objects_of(pa.array([[2**53 + 1, None]]))[0].tolist()
        [9007199254740993, None]
    """
    if not is_list(array.type):
        return _as_objects(within_python(array).to_pylist())
    items, lists, start = objects_of(array.flatten()), [], 0
    for length in pc.list_value_length(array).to_pylist():
        lists.append(None if length is None else items[start : start + length])
        start += length or 0
    return _as_objects(lists)


def within_python(values: Any) -> Any:
    """An array or a scalar with times of day in microseconds, as Python has them.

    Raises:
        ValueError: If a time of day has nanoseconds.

    Example:
        >>> within_python(pa.scalar([5_000], pa.list_(pa.time64("ns")))).type
        ListType(list<item: time64[us]>)
    """
    fine, coarse = pa.time64("ns"), pa.time64("us")
    kind = replace_types(values.type, lambda part: coarse if part == fine else None)
    # Arrow does not cast all types to themselves.
    return values if kind == values.type else values.cast(kind)


def needs_objects(array: pa.Array) -> bool:
    """Whether values within an array may change where Arrow makes them NumPy's.

    In structs, nanoseconds become integers; integers beside nulls become floats.
    """
    return bool(pa.types.is_nested(array.type) and _is_changed(array))


def _is_changed(array: pa.Array) -> bool:
    kind = array.type
    if is_list(kind):
        return _is_changed(array.flatten())
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return True
    return bool(pa.types.is_integer(kind) and array.null_count)


def _as_objects(values: list[Any]) -> Any:
    numpy = sys.modules["numpy"]
    objects = numpy.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        objects[place] = value
    return objects
