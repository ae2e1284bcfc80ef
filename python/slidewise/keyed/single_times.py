"""Single times from users, in the ticks of a stream.

A time becomes a column of one row and is read like the times of `at=`: a time that
cannot be converted exactly raises.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from sys import modules
from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.table.asof import same_kind
from slidewise.table.time_columns import TimeColumn, ticks_in_unit_of
from slidewise.window.time_codec import SIZES, Clock, identify, numpy_unit

__all__ = ["format_tick", "shown_time", "tick_of"]

# Units of numpy that Arrow lacks; each is a number of seconds.
_COARSE = ("W", "h", "m")
_EPOCH, _EPOCH_UTC = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def tick_of(time: Any, times: TimeColumn) -> int:
    """A time in the ticks of a column of times.

    Args:
        time: An int, date, datetime, timedelta, or a scalar of numpy, pandas or Arrow.
        times: The column.

    Example:
        >>> import pyarrow as pa
        >>> from slidewise.table.time_columns import read_times
        >>> seconds = read_times(pa.array([], pa.timestamp("s")), "t")
        >>> from datetime import datetime
        >>> tick_of(datetime(1970, 1, 1, 0, 1), seconds)
        60
    """
    kind = times.original.type
    known = _fast_tick(time, kind)
    if known is not None:
        return known
    column = _column_of(time)
    if column.null_count:
        raise SpecError(f"the time is missing ({time}): give one")
    if not same_kind(column.type, kind):
        raise SpecError(
            f"{time!r} is not of the kind of the times of column {times.name!r} "
            f"({kind}): give {_example(kind)}"
        )
    try:
        return int(ticks_in_unit_of(times, column)[0].as_py())
    except pa.ArrowException as error:
        raise SpecError(
            f"{time!r} is not a whole number of the units of column {times.name!r} "
            f"({kind}), or beyond its range: round it first"
        ) from error


def _fast_tick(time: object, kind: pa.DataType) -> int | None:
    """The tick of an int or a datetime; None if a column of one row is needed.

    Services query with these types: this takes microseconds less than a column.
    """
    if type(time) is int and pa.types.is_integer(kind):
        return time if -(2**63) <= time < 2**63 else None
    if type(time) is not datetime or not pa.types.is_timestamp(kind):
        return None
    if (kind.tz is None) != (time.tzinfo is None):
        return None
    since = time - (_EPOCH if kind.tz is None else _EPOCH_UTC)
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if kind.unit == "ns":
        tick, rest = micros * 1_000, 0
    else:
        tick, rest = divmod(micros, _MICROS[kind.unit])
    return None if rest or not -(2**63) <= tick < 2**63 else tick


def _column_of(time: Any) -> pa.Array:
    """A time as a column of one row, in its own type."""
    if isinstance(time, pa.Scalar):
        return pa.array([time.as_py()] if not time.is_valid else [time], time.type)
    numpy = modules.get("numpy")
    is_numpy = numpy is not None and isinstance(time, numpy.timedelta64)
    if is_numpy or isinstance(time, timedelta):
        exact = getattr(time, "to_timedelta64", lambda: time)()
        if exact != exact:  # NaT
            return pa.nulls(1, pa.duration("s"))
        try:
            if hasattr(exact, "dtype") and numpy_unit(exact.dtype) in (*_COARSE, "D"):
                exact = exact.astype("timedelta64[s]")
            return pa.array([exact])
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SpecError(
                f"{time!r} has no unit of fixed length: give a timedelta"
            ) from error
    kind, unit, zone = identify(time)
    ticks = Clock(kind, unit, zone).ticks(time)
    if kind == "int":
        return pa.array([ticks], pa.int64())
    if unit == "D":
        try:
            return pa.array([ticks]).cast(pa.int32()).view(pa.date32())
        except pa.ArrowInvalid as error:
            raise SpecError(f"{time!r} is beyond the range of date32") from error
    return _instant(ticks, unit, zone)


def _instant(ticks: int, unit: str, zone: tzinfo | None) -> pa.Array:
    if unit in _COARSE:
        ticks, unit = ticks * (SIZES[unit] // SIZES["s"]), "s"
    zoned = None if zone is None else "UTC"
    try:
        return pa.array([ticks], pa.int64()).view(pa.timestamp(unit, zoned))
    except (OverflowError, pa.ArrowInvalid) as error:
        raise SpecError(f"a time of {ticks} s since 1970 is beyond int64") from error


def _example(kind: pa.DataType) -> str:
    """The kind of times of a column, in words."""
    if pa.types.is_integer(kind):
        return "an int in the units of that column"
    if pa.types.is_duration(kind):
        return "a timedelta"
    if pa.types.is_date(kind):
        return "a date"
    if kind.tz is None:
        return "a datetime without a zone"
    return "a datetime with a zone, such as one with tzinfo=timezone.utc"


def shown_time(tick: int, times: TimeColumn) -> Any:
    """A tick as a Python value of the column's own type."""
    try:
        return times.restore(pa.array([tick], pa.int64()))[0].as_py()
    except (OverflowError, ValueError) as error:
        raise SpecError(
            f"tick {tick} of column {times.name!r} ({times.original.type}) is out of "
            "the range of Python's times"
        ) from error


def format_tick(tick: int, times: TimeColumn) -> str:
    """A tick as text, for messages."""
    try:
        return str(shown_time(tick, times))
    except SpecError:
        return f"tick {tick}"
