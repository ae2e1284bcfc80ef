"""Single times from users, in the ticks of a stream, and back."""

from datetime import UTC, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.table.python_values import OfAnotherKindError, array_of
from slidewise.table.time_columns import TimeColumn, read_times

__all__ = ["format_tick", "shown_time", "tick_of"]

_EPOCH, _EPOCH_UTC = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def tick_of(time: Any, times: TimeColumn) -> int:
    """A time in the ticks of a column of times.

    Args:
        time: An int, date, datetime, timedelta, or a scalar of numpy, pandas or Arrow.
        times: The column.

    Raises:
        SpecError: If it is missing, of another kind, or would change.

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
    is_number = pa.types.is_integer(kind)
    if (
        is_number
        and isinstance(time, Real | Decimal)
        and not isinstance(time, Integral)
    ):
        raise SpecError(
            f"{time!r} is a {type(time).__name__}, which cannot hold a time exactly: "
            f"give {_example(kind)}"
        )
    try:
        column = array_of([time], pa.int64() if is_number else kind)
    except OfAnotherKindError as error:
        raise SpecError(
            f"{time!r} is not of the kind of the times of column {times.name!r} "
            f"({kind}): give {_example(kind)}"
        ) from error
    except (ValueError, OverflowError) as error:
        raise SpecError(
            f"{time!r} is not a time of column {times.name!r} ({kind}), as {error}: "
            "round it, or cast it first"
        ) from error
    if column.null_count:
        raise SpecError(f"the time is missing ({time}): give one")
    return int(read_times(column, times.name).ticks[0].as_py())


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
