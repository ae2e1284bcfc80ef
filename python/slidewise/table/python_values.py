"""Values of Python as Arrow arrays of a type that is given, not inferred.

Arrow infers a type from values: it cuts the nanoseconds of pandas, has no type for
integers from 2⁶³ on beside others, and gives text and bytes the narrow types. So every
value that a user passes for a column of a known type is converted here: exactly, or
refused.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isnan
from numbers import Integral, Rational, Real
from sys import modules
from typing import Any

import pyarrow as pa

from slidewise.frames.column_types import is_list, is_text
from slidewise.spec.durations import UNITS
from slidewise.table.key_types import cast_key
from slidewise.table.kinds import same_kind

__all__ = ["OfAnotherKindError", "array_of"]

_DAY = UNITS["d"]
_EPOCH, _EPOCH_UTC = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
# Nanoseconds per unit, by numpy's names.
_NUMPY = {{"w": "W", "d": "D"}.get(unit, unit): size for unit, size in UNITS.items()}


class OfAnotherKindError(ValueError):
    """A value is of another kind than the type, such as text for a number."""


def array_of(
    values: Iterable[Any], kind: pa.DataType, *, rounds: bool = False
) -> pa.Array:
    """Values of Python as an array of a type.

    Args:
        values: Scalars of Python, numpy, pandas or Arrow; None, NaT and NA for null;
            mappings for structs, sequences for lists.
        kind: The type.
        rounds: Whether floats may be rounded to a narrower type of floats.

    Raises:
        OfAnotherKindError: If a value is of another kind.
        ValueError, OverflowError: If a value would change.

    Example:
        >>> array_of([7, 2**64 - 1], pa.uint64()).to_pylist()
        [7, 18446744073709551615]
        >>> array_of([date(2026, 1, 1)], pa.timestamp("ns"))[0].value
        1767225600000000000
    """
    plain = [_plain(value, kind, rounds) for value in values]
    try:
        return pa.array(plain, kind, from_pandas=False)
    except TypeError as error:
        raise OfAnotherKindError(str(error)) from error


def _plain(value: Any, kind: pa.DataType, rounds: bool) -> Any:
    """A value from which Arrow makes one of the type without loss."""
    if value is None or _is_missing(value):
        return None
    types = pa.types
    if isinstance(value, pa.Scalar):
        return _of_scalar(value, kind, rounds)
    if types.is_temporal(kind) and not types.is_interval(kind):
        return _ticks(value, kind)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _plain(value, kind.value_type, rounds)
    if types.is_struct(kind) and isinstance(value, Mapping):
        known = {field.name: field.type for field in kind.fields}
        if value.keys() != known.keys():
            raise OfAnotherKindError(f"its fields are {[*value]}, not {[*known]}")
        return {name: _plain(part, known[name], rounds) for name, part in value.items()}
    if is_list(kind) and _is_sequence(value):
        return [_plain(part, kind.value_type, rounds) for part in value]
    if is_text(kind) != isinstance(value, str):
        what = "text" if isinstance(value, str) else "not text"
        raise OfAnotherKindError(f"it is {what}")
    if types.is_boolean(kind):
        return _boolean(value)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return _number(value, kind, rounds)
    return value


def _is_missing(value: Any) -> bool:
    pandas, numpy = modules.get("pandas"), modules.get("numpy")
    if pandas is not None and (value is pandas.NaT or value is pandas.NA):
        return True
    if numpy is None or not isinstance(value, numpy.datetime64 | numpy.timedelta64):
        return False
    return bool(numpy.isnat(value))


def _is_sequence(value: Any) -> bool:
    """Whether a value is a list, tuple or array of numpy."""
    is_text = isinstance(value, str | bytes | bytearray)
    return (isinstance(value, Sequence) and not is_text) or hasattr(value, "tolist")


def _of_scalar(value: pa.Scalar, kind: pa.DataType, rounds: bool) -> Any:
    """The plain value of an Arrow scalar."""
    if not value.is_valid:
        return None
    array = pa.array([value], value.type)
    if rounds and pa.types.is_floating(value.type):
        return value.as_py()
    try:
        array = cast_key(array, kind)
    except pa.ArrowException as error:
        if same_kind(value.type, kind):
            raise ValueError(str(error)) from error
        raise OfAnotherKindError(str(error)) from error
    if not pa.types.is_temporal(kind):
        return array[0].as_py()
    return array.view(pa.int64() if kind.bit_width == 64 else pa.int32())[0].as_py()


def _boolean(value: Any) -> bool:
    if isinstance(value, bool) or getattr(value, "dtype", None) == "bool":
        return bool(value)
    raise OfAnotherKindError("it is not True or False")


def _number(value: Any, kind: pa.DataType, rounds: bool) -> Any:
    """A number that the type holds exactly."""
    is_bool = isinstance(value, bool) or getattr(value, "dtype", None) == "bool"
    if is_bool or not isinstance(value, Real | Decimal):
        raise OfAnotherKindError("it is not a number")
    if isinstance(value, Integral):
        value = int(value)
        if pa.types.is_floating(kind):
            if abs(value) >= 2**1024 or int(float(value)) != value:
                raise ValueError("a float would round it")
            value = float(value)
        elif pa.types.is_decimal(kind):
            return Decimal(value)
    if pa.types.is_integer(kind):
        whole = int(value) if isinstance(value, Integral) or _is_whole(value) else None
        if whole is None:
            raise ValueError("it is not a whole number")
        return whole
    if pa.types.is_decimal(kind):
        if isinstance(value, Decimal):
            return value
        raise OfAnotherKindError("it is not a decimal")
    return _float(value, kind, rounds)


def _is_whole(value: Any) -> bool:
    if isinstance(value, Rational):
        return bool(value.denominator == 1)
    if isinstance(value, Decimal):
        return value.is_finite() and value == value.to_integral_value()
    return float(value).is_integer()


def _float(value: Any, kind: pa.DataType, rounds: bool) -> float:
    """A float that the type holds exactly, or rounded if that is allowed."""
    found = float(value)
    if rounds or isnan(found) or kind == pa.float64():
        return found
    if pa.scalar(found, kind).as_py() != found:
        raise ValueError(f"{kind} would round it")
    return found


def _ticks(value: Any, kind: pa.DataType) -> int:
    """A time, date or duration in the units of a type."""
    family, amount = _nanoseconds(value)
    if family not in _families(kind):
        raise OfAnotherKindError("they are of different kinds")
    unit = _DAY if pa.types.is_date(kind) else UNITS[kind.unit]
    ticks, rest = divmod(amount, unit)
    if rest:
        what = "days" if pa.types.is_date(kind) else f"{kind.unit}"
        raise ValueError(f"it is not a whole number of {what}")
    if pa.types.is_date64(kind):
        ticks *= _DAY // UNITS["ms"]
    if not -(2 ** (kind.bit_width - 1)) <= ticks < 2 ** (kind.bit_width - 1):
        raise ValueError(f"it is beyond the range of {kind}, int{kind.bit_width}")
    return ticks


def _families(kind: pa.DataType) -> tuple[str, ...]:
    """The kinds of values that a type of times takes."""
    if pa.types.is_duration(kind):
        return ("duration",)
    if pa.types.is_time(kind):
        return ("time of day",)
    if pa.types.is_date(kind) or kind.tz is None:
        return ("date", "local")
    return ("instant",)


def _nanoseconds(value: Any) -> tuple[str, int]:
    """The kind of a time, date or duration, and its nanoseconds since zero."""
    numpy = modules.get("numpy")
    for name in ("to_datetime64", "to_timedelta64"):  # of pandas
        if hasattr(value, name):
            is_instant = getattr(value, "tzinfo", None) is not None
            family, amount = _of_numpy(getattr(value, name)())
            return ("instant", amount) if is_instant else (family, amount)
    if numpy is not None and isinstance(value, numpy.datetime64 | numpy.timedelta64):
        return _of_numpy(value)
    if isinstance(value, datetime):
        is_instant = value.utcoffset() is not None
        epoch = _EPOCH_UTC if is_instant else _EPOCH.replace(tzinfo=value.tzinfo)
        return "instant" if is_instant else "local", _of_delta(value - epoch)
    if isinstance(value, date):
        return "date", (value.toordinal() - _EPOCH.toordinal()) * _DAY
    if isinstance(value, timedelta):
        return "duration", _of_delta(value)
    if isinstance(value, time) and value.tzinfo is None:
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return "time of day", seconds * UNITS["s"] + value.microsecond * UNITS["us"]
    raise OfAnotherKindError("they are of different kinds")


def _of_delta(delta: timedelta) -> int:
    seconds = delta.days * 86_400 + delta.seconds
    return seconds * UNITS["s"] + delta.microseconds * UNITS["us"]


def _of_numpy(value: Any) -> tuple[str, int]:
    unit, count = modules["numpy"].datetime_data(value.dtype)
    if unit not in _NUMPY:
        raise ValueError(f"its unit ({unit}) has no fixed length in nanoseconds")
    family = "local" if value.dtype.kind == "M" else "duration"
    return family, int(value.view("int64")) * int(count) * _NUMPY[unit]
