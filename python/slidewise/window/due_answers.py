"""The answers that fell due in `SharedWindow.insert_many`, as an Arrow table.

The schema depends on the queries and on the types of the columns, not on the answers: a
table without answers, or with nulls alone, has the types of the others.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from slidewise.aggregations.compiled import NativeAggregation
from slidewise.aggregations.custom import CustomAggregation
from slidewise.errors import SpecError
from slidewise.window.planner import WindowPlan
from slidewise.window.time_codec import SIZES, Clock

__all__ = ["due_table", "value_array"]

_NULL, _FLOATS = pa.null(), pa.float64()
_PLAIN_TYPES = {
    None: _NULL,
    "bool": pa.bool_(),
    "int64": pa.int64(),
    "float64": _FLOATS,
}
# The kinds of aggregations whose answers are of one type, whatever the values are.
_FIXED_TYPES = {
    **dict.fromkeys(("count", "min_count", "max_count"), pa.int64()),
    "approx_count_distinct": pa.int64(),
    **dict.fromkeys(("mean", "geometric_mean", "variance", "stddev"), _FLOATS),
    **dict.fromkeys(("skewness", "kurtosis", "covariance", "correlation"), _FLOATS),
    **dict.fromkeys(("any", "all"), pa.bool_()),
}
_LISTS = ("collect", "collect_distinct", "top_k", "bottom_k")


def value_array(plan: WindowPlan, at: int, values: list[Any]) -> pa.Array:
    """The answers of an aggregation as an array, of the type that Arrow infers.

    Args:
        plan: The plan of the window.
        at: The index of the aggregation.
        values: The answers.

    Raises:
        SpecError: If Arrow has no type for them, or they are not of the type that a
            custom aggregation declares.
    """
    agg = plan.aggs[at][1]
    kind = None
    if isinstance(agg, CustomAggregation | NativeAggregation):
        inferred = any(value is not None for value in values)
        kind = agg.functions.returns if inferred else agg.functions.known_type
    if agg.kind == "heavy_hitters":
        names = ("value", "count", "error")
        values = [[dict(zip(names, one, strict=True)) for one in top] for top in values]
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        declared = "" if kind is None else f" of {kind}"
        raise SpecError(
            f"the answers that fell due are no Arrow column{declared} ({error}): the "
            "next insert() or advance() gives them as a list"
        ) from error


def due_table(
    columns: tuple[Any, Any, Sequence[Any], Sequence[str | None]],
    plan: WindowPlan,
    clock: Clock | None,
) -> pa.Table:
    """The table of answers, with columns query, end and value.

    Args:
        columns: The queries, the ends in ticks, the answers of each aggregation, and
            the types of the columns they are of, None before the first value.
        plan: The plan of the window.
        clock: Its clock, None before the first entry.
    """
    queries, ends, answers, dtypes = columns
    kinds = (
        _time_type(plan, clock) if timed else _answer_type(plan, at, dtype)
        for at, (timed, dtype) in enumerate(zip(plan.timed, dtypes, strict=True))
    )
    arrays = [
        _of_type(pa.array(values), kind)
        for values, kind in zip(answers, kinds, strict=True)
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


def _answer_type(plan: WindowPlan, at: int, dtype: str | None) -> pa.DataType | None:
    """The type of the answers of an aggregation; None if the values decide."""
    agg = plan.aggs[at][1]
    if agg.kind in _FIXED_TYPES:
        return _FIXED_TYPES[agg.kind]
    if isinstance(agg, CustomAggregation | NativeAggregation):
        return None
    if agg.kind == "approx_quantile":
        several = isinstance(agg.parameters[0], tuple)  # type: ignore[attr-defined]
        return pa.list_(_FLOATS) if several else _FLOATS
    kind = _PLAIN_TYPES.get(dtype)
    return pa.list_(kind) if kind is not None and agg.kind in _LISTS else kind


def _of_type(array: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """The array in a type; without values, any array fits."""
    if kind is None or array.type == kind:
        return array
    if array.null_count == len(array):
        return pa.nulls(len(array), kind)
    return array.cast(kind)


def _time_type(plan: WindowPlan, clock: Clock | None) -> pa.DataType:
    """The type of times of the kind of the window's; null while that is not known."""
    if clock is None:
        queries = (query for query in plan.queries if query is not None)
        lengths = (length for query in queries for length in query.lengths)
        ints = any(length.kind == "integer" for length in lengths)
        return pa.int64() if ints else _NULL
    if clock.kind == "int":
        return pa.int64()
    if clock.kind == "date":
        return pa.date32()
    zone = None if clock.zone is None else pa.lib.tzinfo_to_string(clock.zone)
    arrow = clock.unit in ("s", "ms", "us", "ns")
    return pa.timestamp(clock.unit if arrow else "s", zone)


def _times(ticks: pa.Array, plan: WindowPlan, clock: Clock | None) -> pa.Array:
    """Times of the kind of the window's."""
    kind = _time_type(plan, clock)
    if clock is not None and pa.types.is_date32(kind):
        ticks = ticks.cast(pa.int32())
    elif clock is not None and pa.types.is_timestamp(kind) and clock.unit != kind.unit:
        ticks = pa.compute.multiply(ticks, SIZES[clock.unit] // SIZES["s"])
    return _of_type(ticks, kind)
