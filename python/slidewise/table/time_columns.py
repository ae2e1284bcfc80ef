"""Converts event times between Arrow columns and int64 ticks.

A tick is one unit of the column's own type, so times of every unit and zone are exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError
from slidewise.frames.column_types import is_text
from slidewise.spec.durations import UNITS, Length, Rows
from slidewise.spec.windows.base import Ticks, Window
from slidewise.table.arrays import cast_lossless

__all__ = [
    "RowKeys",
    "TicksOf",
    "TimeColumn",
    "cells_of",
    "order_by",
    "read_times",
    "subtract_clamped",
    "tick_size",
    "ticks_in_unit_of",
    "window_ticks",
]

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
# Milliseconds.
_DAY = 86_400_000


class RowKeys(NamedTuple):
    """The keys that rows are sorted by.

    Attributes:
        times: The times, in ticks.
        groups: The key codes; None without keys.
        arrival: The order of arrival, or None.
    """

    times: pa.Array
    groups: pa.Array | None = None
    arrival: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """A column of event times.

    Attributes:
        name: Its name.
        original: The column.
        ticks: Its values as int64, without nulls.
        unit: Nanoseconds per tick, or None for an integer column.
    """

    name: str
    original: pa.Array
    ticks: pa.Array
    unit: int | None

    def restore(self, ticks: pa.Array) -> pa.Array:
        """Converts ticks to the type of this column; to int64 if they do not fit it.

        Example:
            >>> import pyarrow as pa
            >>> times = read_times(pa.array([1], pa.int8()), "t")
            >>> times.restore(pa.array([2])).type, times.restore(pa.array([200])).type
            (DataType(int8), DataType(int64))
        """
        kind = self.original.type
        if pa.types.is_date32(kind):
            try:
                return ticks.cast(pa.int32()).view(kind)
            except pa.ArrowInvalid as error:
                raise SpecError(
                    f"a window begins or ends beyond the days that column "
                    f"{self.name!r} (date32) can hold: cast it to timestamps"
                ) from error
        if not pa.types.is_integer(kind):
            return ticks.view(kind)
        try:
            return ticks.cast(kind)
        except pa.ArrowInvalid:
            return ticks

    def window_ends(self, ticks: pa.Array) -> pa.Array:
        """Converts the starts or ends of windows to a column.

        It has the type of this column, but int64 for integers of any width: a window
        may reach beyond their least and largest values, and the type must not depend on
        the rows.

        Example:
            >>> import pyarrow as pa
            >>> times = read_times(pa.array([1], pa.uint32()), "t")
            >>> times.window_ends(pa.array([2])).type
            DataType(int64)
        """
        return ticks if self.unit is None else self.restore(ticks)


@dataclass(frozen=True, slots=True)
class TicksOf:
    """Lengths in the ticks of a column of times.

    Attributes:
        times: The column.
    """

    times: TimeColumn

    def __call__(self, length: Length) -> int:
        """As `window_ticks`."""
        return window_ticks(length, self.times)

    @property
    def zone(self) -> str | None:
        """The zone of the column; None without one."""
        kind = self.times.original.type
        return kind.tz if pa.types.is_timestamp(kind) else None


def read_times(column: pa.Array, name: str) -> TimeColumn:
    """Reads a column as event times.

    Args:
        column: Timestamps of any unit and zone, dates, durations or integers.
        name: The column's name, for messages.

    Raises:
        SpecError: If a time is missing (the message names the row, counting from 0) or
            the column does not hold times.

    Example:
        >>> import pyarrow as pa
        >>> days = pa.array([1, 2], pa.date32())
        >>> read_times(days, "day").ticks.to_pylist()
        [1, 2]
    """
    kind = column.type
    if not _is_time(kind):
        raise _no_times(column, name)
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise SpecError(
            f"column {name!r} has no time in row {row} (counting from 0): "
            "drop the rows without a time, or fill them in"
        )
    return TimeColumn(name, column, _ticks(column, name), tick_size(kind))


def ticks_in_unit_of(times: TimeColumn, column: pa.Array) -> pa.Array:
    """The ticks of another column in the units of `times`.

    Raises:
        pyarrow.ArrowException: If a time would change.
        SpecError: If a time is missing.
    """
    kind = times.original.type
    if not (pa.types.is_integer(kind) and pa.types.is_integer(column.type)):
        column = cast_lossless(column, kind)
    return read_times(column, times.name).ticks


def order_by(columns: Sequence[pa.Array]) -> pa.Array | None:
    """An int64 per row that orders rows by columns of ticks; None without columns.

    The first column decides, among equal rows the second, and so on.

    Example:
        >>> import pyarrow as pa
        >>> order_by([pa.array([7, 7, 6, 7]), pa.array([1, 5, 9, 1])]).to_pylist()
        [9, 13, 8, 9]
    """
    if not columns:
        return None
    order, *others = columns
    for column in others:
        order = _order_by_two(order, column)
    return order


def _order_by_two(first: pa.Array, second: pa.Array) -> pa.Array:
    (least, count), (low, width) = _range(first), _range(second)
    if count * width > _INT64_MAX:
        # Ranks are at most the number of rows, so their product fits int64.
        ranks = [pc.rank(column, tiebreaker="dense") for column in (first, second)]
        return _order_by_two(*(column.cast(pa.int64()) for column in ranks))
    ahead = pc.multiply(pc.subtract(first, least), pa.scalar(width, pa.int64()))
    return pc.add(ahead, pc.subtract(second, low))


def _range(ticks: pa.Array) -> tuple[int, int]:
    """The least value, and how many there are up to the largest one."""
    ends = pc.min_max(ticks).as_py()
    if ends["min"] is None:
        return 0, 0
    return ends["min"], ends["max"] - ends["min"] + 1


def subtract_clamped(ticks: pa.Array, lag: int) -> pa.Array:
    """Subtracts a lag of 0 or more from ticks, down to the least int64.

    Example:
        >>> import pyarrow as pa
        >>> subtract_clamped(pa.array([5, -(2**63) + 1]), 2).to_pylist()
        [3, -9223372036854775808]
    """
    if lag > _INT64_MAX:
        ticks, lag = subtract_clamped(ticks, _INT64_MAX), lag - _INT64_MAX
    return pc.subtract(pc.max_element_wise(ticks, _INT64_MIN + lag), lag)


def cells_of(window: Window, ticks_of: Ticks, times: pa.Array) -> pa.Array | None:
    """The starts of the cells with which rows of some times leave a window, or None.

    A cell has the point that ends it, if the start of the window does not belong to it.
    """
    cells = window.cells(ticks_of)
    if cells is None:
        return None
    points = subtract_clamped(times, int(not window.includes_start))
    begun = pa.array(cells.starts(pc.fill_null(points, 0))[0])
    return pc.if_else(points.is_valid(), begun, None)


def window_ticks(length: Length, times: TimeColumn) -> int:
    """The length of a window in ticks of a time column, or its number of rows.

    Raises:
        SpecError: If they do not match: a duration for integer times, a bare number for
            timestamps, a length finer than the column's unit or beyond int64.
    """
    if length.kind == "rows":
        return length.amount
    amount = _ticks_of(length, times)
    if abs(amount) > _INT64_MAX:
        raise SpecError(length.given, " is too long: int64 cannot hold it")
    return amount


def _ticks_of(length: Length, times: TimeColumn) -> int:
    if (times.unit is None) != (length.kind == "integer"):
        raise _mixed(length, times)
    if times.unit is None:
        return length.amount
    # Dates are whole days in any unit.
    whole = UNITS["d"] if pa.types.is_date(times.original.type) else times.unit
    if length.amount % whole:
        raise SpecError(
            length.given,
            f" is not a whole number of units of column {times.name!r} "
            f"({times.original.type}): cast the column to a finer unit, or give a "
            "coarser length",
        )
    return length.amount // times.unit


def _mixed(length: Length, times: TimeColumn) -> SpecError:
    kind = times.original.type
    if times.unit is None:
        return SpecError(
            length.given,
            f" is a duration, but column {times.name!r} holds integers ({kind}): give ",
            Argument(length.argument),
            " as an int, in the column's own units, or cast the column to timestamps; "
            "when reading a file, give ",
            Argument("time_unit"),
        )
    rows = (
        ", or ",
        Argument("windows", Rows(length.amount)),
        " for that many rows",
    )
    return SpecError(
        length.given,
        f" is a bare number, but column {times.name!r} holds times ({kind}): give a "
        f"duration such as '{length.label}s'",
        *(rows if length.argument == "windows" else ()),
    )


def _is_time(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_timestamp(kind)
        or pa.types.is_date(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_duration(kind)
    )


def tick_size(kind: pa.DataType) -> int | None:
    """Nanoseconds per tick of a column of times; None for integers."""
    if pa.types.is_integer(kind):
        return None
    if pa.types.is_date32(kind):
        return UNITS["d"]
    if pa.types.is_date64(kind):
        return UNITS["ms"]
    return UNITS[kind.unit]


def _ticks(column: pa.Array, name: str) -> pa.Array:
    if pa.types.is_date32(column.type):
        return column.view(pa.int32()).cast(pa.int64())
    if pa.types.is_date64(column.type):
        return _whole_days(column, name)
    if not pa.types.is_integer(column.type):
        return column.view(pa.int64())
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise SpecError(
            f"column {name!r} holds times beyond int64 ({column.type}): drop those "
            "rows, or subtract a number from all times"
        ) from error


def _whole_days(column: pa.Array, name: str) -> pa.Array:
    """The milliseconds of dates. Arrow allows none within a day."""
    ticks = column.view(pa.int64())
    days = pc.multiply(pc.divide(ticks, _DAY), _DAY)
    row = pc.index(pc.equal(ticks, days), False).as_py()
    if row >= 0:
        raise SpecError(
            f"column {name!r} holds {ticks[row]} ms in row {row} (counting from 0), "
            "which is within a day, so no date64: cast the milliseconds to a timestamp"
        )
    return ticks


def _no_times(column: pa.Array, name: str) -> SpecError:
    kind = column.type
    what = f"column {name!r} holds {kind}, not times"
    if pa.types.is_null(kind) and not len(column):
        return SpecError(
            f"column {name!r} is empty and has no type: cast it to a type of times, "
            "such as int64 or a timestamp"
        )
    if pa.types.is_null(kind):
        return SpecError(
            f"column {name!r} has no time in row 0 (counting from 0): all are missing"
        )
    if is_text(kind):
        example = next((value.as_py() for value in column if value.is_valid), "")
        return SpecError(
            f"{what} (such as {example!r}): parse it first, for example with "
            "pandas.to_datetime; when reading a file, give ",
            Argument("time_format"),
        )
    if pa.types.is_floating(kind):
        missing = pc.index(pc.fill_null(pc.is_nan(column), True), True).as_py()
        if missing >= 0:
            return SpecError(
                f"{what}, and is missing in row {missing} (counting from 0): drop the "
                "rows without a time, then cast the column to int64, as floats cannot "
                "hold times exactly"
            )
        what += ": floats cannot hold times exactly, cast the column to int64"
        return SpecError(what)
    if pa.types.is_dictionary(kind):
        return SpecError(f"{what}: cast it to its values ({kind.value_type}) first")
    return SpecError(f"{what}: times are timestamps, dates, durations or integers")
