"""The lengths of windows in a column, in ticks of the times or in rows."""

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SpecError
from slidewise.table.time_columns import TimeColumn, tick_size

__all__ = ["lengths_of"]

_INT64 = pa.int64()
_MOST = 2**63 - 1


def lengths_of(name: str, column: pa.Array, times: TimeColumn) -> tuple[pa.Array, bool]:
    """Lengths as int64, and whether they are numbers of rows.

    A length between two ticks is the longer one, which holds the same rows.

    Example:
        >>> from slidewise.table.time_columns import read_times
        >>> times = read_times(pa.array([1, 2], pa.timestamp("s")), "t")
        >>> column = pa.array([1500], pa.duration("ms"))
        >>> lengths, by_rows = lengths_of("w", column, times)
        >>> lengths.to_pylist(), by_rows
        ([2], False)
    """
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), _INT64), True
    durations = pa.types.is_duration(kind) and times.unit is not None
    if not (durations or pa.types.is_integer(kind)):
        needed = "integers" if times.unit is None else "durations, or numbers of rows"
        raise SpecError(
            f"column {name!r} holds {kind}: sw.length takes {needed}, for times of "
            f"{times.original.type}"
        )
    values = column.view(_INT64) if durations else _clamped(column)
    row = pc.index(pc.less(values, 0), True).as_py()
    if row >= 0:
        raise SpecError(
            f"column {name!r} is {column[row].as_py()!r} in row {row} (counting from "
            "0): a length is zero or more; drop the row, or set it to null"
        )
    if durations:
        values = _in_ticks(values, tick_size(kind) or 1, times)
    return values, not durations and times.unit is not None


def _clamped(column: pa.Array) -> pa.Array:
    if pa.types.is_uint64(column.type):
        column = pc.min_element_wise(column, pa.scalar(_MOST, pa.uint64()))
    return column.cast(_INT64)


def _in_ticks(values: pa.Array, unit: int, times: TimeColumn) -> pa.Array:
    """Durations in a unit of nanoseconds as ticks, rounded up."""
    tick = times.unit or 1
    if unit >= tick:
        factor = unit // tick
        return pc.multiply(pc.min_element_wise(values, _MOST // factor), factor)
    factor = pa.scalar(tick // unit, _INT64)
    whole = pc.divide(values, factor)
    rest = pc.not_equal(pc.multiply(whole, factor), values)
    return pc.add(whole, rest.cast(_INT64))
