"""The answers that fell due in `SharedWindow.insert_many`, as an Arrow table.

The schema depends on the queries and on the types of the columns, not on the answers: a
table without answers, or with nulls only, has the same types.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from slidewise.aggregations.registry import UserDefinedAggregation
from slidewise.errors import SpecError
from slidewise.frames.objects import array_of_objects
from slidewise.window.time_codec import SIZES, Clock
from slidewise.window.window_plan import WindowPlan

__all__ = ["due_table", "value_array"]

_TYPES = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int64": pa.int64(),
    "float64": pa.float64(),
}
# Whether answers are lists; the type of the answers, or of the items of the lists.
AnswerType = tuple[bool, str]
# The forms of results whose type over objects is known, and those that are lists.
_OF_OBJECTS = {"int64": pa.int64(), "bool": pa.bool_()}
_LISTS = ("values", "distinct", "hitters")


def value_array(plan: WindowPlan, at: int, values: list[Any]) -> pa.Array:
    """The answers of an aggregation as an array, of the type that Arrow infers."""
    agg = plan.aggs[at][1]
    kind = None
    if isinstance(agg, UserDefinedAggregation):
        inferred = any(value is not None for value in values)
        kind = agg.functions.returns if inferred else agg.functions.known_type
    if agg.record.result == "hitters":
        names = ("value", "count", "error")
        values = [[dict(zip(names, one, strict=True)) for one in top] for top in values]
    try:
        array = array_of_objects(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        declared = "" if kind is None else f" of {kind}"
        raise SpecError(
            f"the answers that fell due fit no Arrow column{declared} ({error}): the "
            "next insert() or advance() returns them as a list"
        ) from error
    if agg.record.result in _LISTS and pa.types.is_null(array.type):
        return array.cast(pa.list_(pa.null()))
    return array


def due_table(
    columns: tuple[Any, Any, Sequence[Any], Sequence[AnswerType | None]],
    plan: WindowPlan,
    clock: Clock | None,
) -> pa.Table:
    """The table of answers, with columns query, end and value.

    Args:
        columns: The queries, the ends in ticks, the answers of each aggregation, and
            the types of these, None where the answers decide.
        plan: The plan of the window.
        clock: Its clock, None before the first entry.
    """
    queries, ends, answers, types = columns
    arrays = [
        _of_type(pa.array(values), _answer_type(plan, at, types[at], clock))
        for at, values in enumerate(answers)
    ]
    value = (
        arrays[0]
        if plan.names is None
        else pa.StructArray.from_arrays(arrays, names=list(plan.names))
    )
    return pa.table(
        {
            "query": pa.array(queries),
            "end": _times(pa.array(ends), plan, clock),
            "value": value,
        }
    )


def _answer_type(
    plan: WindowPlan, at: int, known: AnswerType | None, clock: Clock | None
) -> pa.DataType | None:
    """The type of the answers of an aggregation; None if the answers decide."""
    if plan.timed[at]:
        return _time_type(plan, clock)
    agg = plan.aggs[at][1]
    if agg.scale == "gap":
        return _gap_type(plan, clock)
    result = agg.record.result
    if agg.is_ended:
        return pa.float64()
    if known is None or result == "joined":
        return _OF_OBJECTS.get(result)
    is_list, name = known
    kind = _TYPES[name]
    if result == "hitters":
        counts = [(name, pa.int64()) for name in ("count", "error")]
        kind = pa.struct([("value", kind), *counts])
    if result == "bar":
        names = ("open", "high", "low", "close")
        return pa.struct([(name, kind) for name in names])
    return pa.list_(kind) if is_list else kind


def _of_type(array: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """The array in a type; without values, any array fits."""
    if kind is None or array.type == kind:
        return array
    if array.null_count == len(array):
        return pa.nulls(len(array), kind)
    return array.cast(kind)


def _time_type(plan: WindowPlan, clock: Clock | None) -> pa.DataType:
    """The type of the window's times; null while their kind is not known."""
    if clock is None:
        queries = (query for query in plan.queries if query is not None)
        lengths = (length for query in queries for length in query.lengths)
        ints = any(length.kind == "integer" for length in lengths)
        return pa.int64() if ints else pa.null()
    if clock.kind == "int":
        return pa.int64()
    if clock.kind == "date":
        return pa.date32()
    zone = None if clock.zone is None else pa.lib.tzinfo_to_string(clock.zone)
    arrow = clock.unit in ("s", "ms", "us", "ns")
    return pa.timestamp(clock.unit if arrow else "s", zone)


def _gap_type(plan: WindowPlan, clock: Clock | None) -> pa.DataType:
    """The type of a difference of the window's times."""
    kind = _time_type(plan, clock)
    if pa.types.is_date32(kind):
        return pa.duration("s")
    return pa.duration(kind.unit) if pa.types.is_timestamp(kind) else kind


def _times(ticks: pa.Array, plan: WindowPlan, clock: Clock | None) -> pa.Array:
    """Converts ticks to times of the window's kind."""
    kind = _time_type(plan, clock)
    if clock is not None and pa.types.is_date32(kind):
        ticks = ticks.cast(pa.int32())
    elif clock is not None and pa.types.is_timestamp(kind) and clock.unit != kind.unit:
        ticks = pa.compute.multiply(ticks, SIZES[clock.unit] // SIZES["s"])
    return _of_type(ticks, kind)
