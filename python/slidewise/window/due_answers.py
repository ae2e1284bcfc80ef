"""The answers that fell due in `SharedWindow.insert_many`, as an Arrow table."""

from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.window.planner import WindowPlan
from slidewise.window.time_codec import SIZES, Clock

__all__ = ["due_table", "value_array"]


def value_array(values: list[Any]) -> pa.Array:
    """The values of answers as an array.

    Raises:
        SpecError: If Arrow has no type for them.

    Example:
        >>> value_array([[1, 2], None]).type
        ListType(list<item: int64>)
    """
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise SpecError(
            f"the answers that fell due are no Arrow column ({error}): the next "
            "insert() or advance() gives them as a list"
        ) from error


def due_table(
    columns: tuple[Any, Any, list[Any]], plan: WindowPlan, clock: Clock | None
) -> pa.Table:
    """The table of answers, with columns query, end and value.

    Args:
        columns: The queries, the ends in ticks, and the answers of each aggregation.
        plan: The plan of the window.
        clock: Its clock, None before the first entry.
    """
    queries, ends, answers = columns
    arrays = [pa.array(values) for values in answers]
    value = (
        arrays[0]
        if plan.names is None
        else pa.StructArray.from_arrays(arrays, names=list(plan.names))
    )
    return pa.table(
        {
            "query": pa.array(queries),
            "end": _times(pa.array(ends), clock),
            "value": value,
        }
    )


def _times(ticks: pa.Array, clock: Clock | None) -> pa.Array:
    """Times of the kind of the window's."""
    if clock is None or clock.kind == "int":
        return ticks
    if clock.kind == "date":
        return ticks.cast(pa.int32()).cast(pa.date32())
    zone = None if clock.zone is None else pa.lib.tzinfo_to_string(clock.zone)
    if clock.unit in ("s", "ms", "us", "ns"):
        return ticks.cast(pa.timestamp(clock.unit, zone))
    seconds = pa.compute.multiply(ticks, SIZES[clock.unit] // SIZES["s"])
    return seconds.cast(pa.timestamp("s", zone))
