"""Lowers each aggregation to kernel calls."""

from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.call import Call
from slidewise.aggregations.compiled import NativeAggregation
from slidewise.aggregations.custom import CustomAggregation
from slidewise.aggregations.fit import fits, misfit
from slidewise.errors import SpecError
from slidewise.spec.durations import half_life_in_ticks
from slidewise.table.decimals import DIGITS
from slidewise.table.decoding import BAR, Decode, decoder, first_answer, lowered
from slidewise.table.encoding import KernelInputs, ValueColumn, ValueColumns
from slidewise.table.time_columns import tick_size

__all__ = ["Plan", "plan"]

_INT64 = pa.int64()
_NUMBERS = ("number", "bool")
# The results that are computed of decimals without their point.
_OF_DECIMALS = ("square", "deviation", "between")


@dataclass(frozen=True, slots=True)
class Plan:
    """The kernel calls of one aggregation and the decoding of their answers.

    Attributes:
        calls: The kernel calls; empty for Python aggregations, which run separately.
        decode: Makes the result from the answers, one array per call, and after them,
            if it is ended, the ends of the windows in ticks. With `edge="carry"` it
            also takes the entries before the windows, or None.
        count_call: The call that counts values for `min_rows`; None where `min_rows`
            does not apply.
        source: The column whose library type the result follows.
        same_type: Whether the result has the type of `source`.
        reads: The columns it computes with.
        rescales: Whether `decode` computes other numbers of the answers of one call, by
            a unit or by rounding.
        overflow_reason: Why `decode` gives null although there were values; None if it
            never does.
        ended: Whether the result depends on the ends of the windows.
        before: The calls that give the time and the value of the last entry before a
            window, if the window begins with it; else None.
    """

    calls: tuple[Call, ...]
    decode: Decode
    count_call: Call | None
    source: str | None
    same_type: bool
    reads: tuple[str, ...]
    rescales: bool = False
    overflow_reason: str | None = None
    ended: bool = False
    before: tuple[Call, Call] | None = None


def plan(
    agg: Aggregation, columns: ValueColumns, inputs: KernelInputs, on: str
) -> Plan:
    """Plans one aggregation over columns.

    Args:
        agg: The aggregation.
        columns: The columns of the table.
        inputs: Collects the input columns of the kernel.
        on: The column of times, which `arg_min` and `arg_max` return without `of`.
    """
    if agg.of is None and agg.record.result == "count":
        return _plan_rows(agg, columns, inputs)
    values, other, source = _columns_of(agg, columns, on)
    if isinstance(agg, CustomAggregation):
        count_call = Call("count", inputs.add(values, "rows"))
        return Plan((), first_answer, count_call, None, False, (values.name,))
    if isinstance(agg, NativeAggregation):
        return _plan_native(agg, values, inputs)
    _check_fit(agg, values)
    if other is not values and not agg.is_over_time:
        _check_fit(agg, other)
    result = agg.record.result
    if _interpolates(agg):
        result = "between"
    elif agg.record.ended != agg.is_ended:
        result = "number"
    calls, encoding = _calls(agg, result, values, other, inputs)
    return Plan(
        calls=calls,
        decode=decoder(result, agg, source, other, encoding),
        count_call=None if result == "count" else Call("count", calls[0].of),
        source=source.name,
        same_type=_has_same_type(result, source),
        reads=(source.name,) if source is other else (source.name, other.name),
        rescales=_rescales(agg, result, encoding, source),
        overflow_reason=_overflow_reason(result, source),
        ended=agg.is_ended,
        before=(calls[-2], calls[-1]) if agg.carries else None,
    )


def _columns_of(
    agg: Aggregation, columns: ValueColumns, on: str
) -> tuple[ValueColumn, ValueColumn, ValueColumn]:
    """The columns of its two inputs, and that whose values or types are the result's.

    The first and the last are one column, except where the values are only compared.
    """
    if agg.record.inputs == ("time",):
        times = columns.of(on, where=agg.where)
        return times, times, times
    if not agg.record.second:
        assert agg.of is not None, "Spec requires it"
        others = agg.others if isinstance(agg, CustomAggregation) else ()
        values = columns.of(agg.of, where=agg.where, others=others)
        return values, values, values
    if agg.is_over_time:
        assert agg.of is not None, "Spec requires it"
        x = columns.of(agg.of, where=agg.where)
        return x, columns.of(on, where=agg.where, paired=agg.of), x
    assert agg.by is not None, "Spec requires it"
    if agg.record.second == "compared":
        # A list has no nulls.
        paired = (agg.of or "") if agg.record.result == "values" else ""
        by = columns.of(agg.by, where=agg.where, paired=paired)
        return by, by, columns.of(agg.of or on)
    assert agg.of is not None, "Spec requires it"
    # Each is null where the other one is.
    x = columns.of(agg.of, where=agg.where, paired=agg.by)
    y = columns.of(agg.by, where=agg.where, paired=agg.of)
    return x, y, x


def _calls(
    agg: Aggregation,
    result: str,
    values: ValueColumn,
    other: ValueColumn,
    inputs: KernelInputs,
) -> tuple[tuple[Call, ...], str]:
    """The kernel calls of which a form of result is made; the first encoding."""
    record, parts = agg.record, _parts(agg, result, values)
    if parts:
        calls = [
            Call(kind, inputs.add(values, values.encoding_of(part)))
            for kind, part in parts
        ]
        return tuple(calls), parts[0][1]
    names = ("number",) if _interpolates(agg) else record.inputs
    if values.fine_family == "decimal" and result in _OF_DECIMALS:
        names = ("unscaled",)
    encoding, by = values.encoding_of(names[0]), None
    of = inputs.add(values, encoding)
    if len(names) > 1:
        name = "time" if agg.is_over_time else names[1]
        by = inputs.add(other, other.encoding_of(name))
    kind = record.kernel or _core_kind(agg, other)
    call = Call(kind, of, by, agg.number)
    times = of if by is None else by
    if result == "decayed":
        return (call, Call("max", times)), encoding
    if result in ("area", "level"):
        first = (Call("min", times), Call("first", of))
        return (call, *first, Call("max", times), Call("last", of)), encoding
    return (call,), encoding


def _core_kind(agg: Aggregation, times: ValueColumn) -> str:
    """The kind of an aggregation for the core, with its half-life in ticks."""
    if "half_life" not in agg.record.parameters or agg.rows_of_half_life is not None:
        return agg.core_kind
    length, tick = half_life_in_ticks(agg.half_life, tick_size(times.original.type))
    return f"{agg.core_kind} {length} {tick}"


def _interpolates(agg: Aggregation) -> bool:
    """Whether an answer may lie between two values, and is a number then."""
    return bool(agg.record.between) and agg.interpolation in ("linear", "midpoint")


def _parts(agg: Aggregation, result: str, values: ValueColumn) -> list[tuple[str, str]]:
    """The kinds and encodings of several calls, if a result does not fit one."""
    family = values.fine_family
    if result == "difference" and values.is_uint64:
        return [("max", "order"), ("min", "order")]
    if result == "bar":
        return BAR
    if result == "sum" and values.is_uint64:
        # Sums of the 32-bit halves always fit.
        return [("sum", "high"), ("sum", "low")]
    if result in ("sum", "average") and family == "decimal":
        parts = [f"decimal{part}" for part in range(len(values.decimal))]
        count = [("count", parts[0])] if result == "average" else []
        return [*(("sum", part) for part in parts), *count]
    if result == "average" and family == "duration":
        return [("sum", "high"), ("sum", "low"), ("count", "high")]
    if result == "between" and family == "duration":
        ends = [f"quantile {agg.q!r} {end}" for end in ("lower", "higher")]
        return [*((end, "order") for end in ends), ("count", "order")]
    return []


def _has_same_type(result: str, source: ValueColumn) -> bool:
    """Whether a result has the type of its source."""
    if result in ("joined", "bits"):
        # Results are not in the dictionary.
        return not source.is_dictionary
    if result == "sum" and source.is_uint64:
        return True
    if result in ("sum", "average", "deviation", "between"):
        return source.family == "duration"
    return result == "value" or (result == "difference" and source.is_uint64)


def _rescales(
    agg: Aggregation, result: str, encoding: str, source: ValueColumn
) -> bool:
    """Whether a result of one call is in another unit, or rounded to that of a type."""
    rounds = result == "deviation" and source.family == "duration"
    return rounds or encoding == "unscaled" or agg.scale in ("rate", "seconds")


def _overflow_reason(result: str, source: ValueColumn) -> str | None:
    """The reason why a result of several parts is null although there were values."""
    if result == "sum" and source.is_uint64:
        return "the sum does not fit uint64"
    if result in ("sum", "average") and source.fine_family == "decimal":
        return f"the {result} takes more than {DIGITS} digits"
    return None


def _plan_rows(agg: Aggregation, columns: ValueColumns, inputs: KernelInputs) -> Plan:
    """Counts rows, or those where a column of booleans is true."""
    if agg.where is None:
        return Plan((Call("count", None),), first_answer, None, None, False, ())
    at = inputs.add(columns.of(agg.where, where=agg.where), "number")
    return Plan((Call("count", at),), first_answer, None, None, False, (agg.where,))


def _plan_native(
    agg: NativeAggregation, values: ValueColumn, inputs: KernelInputs
) -> Plan:
    compiled = agg.functions
    ints = compiled.value == "int64"
    if values.family not in _NUMBERS or (ints and values.number.type != _INT64):
        raise SpecError(
            f"{agg!r} does not fit column {values.name!r}, which holds {values.type}: "
            f"its lift takes {compiled.value}"
        )
    at = inputs.add(values, "number" if ints else "float64")
    in_kernel = compiled.lower_address[0] is not None
    return Plan(
        calls=(Call(inputs.native(compiled), at),),
        decode=first_answer if in_kernel else partial(lowered, agg),
        count_call=Call("count", at),
        source=values.name,
        same_type=False,
        reads=(values.name,),
    )


def _check_fit(agg: Aggregation, values: ValueColumn) -> None:
    record, held = agg.record, values.original.type
    family = values.fine_family
    if family in (record.between if _interpolates(agg) else record.takes):
        return
    what = f"column {values.name!r}, which holds {values.type}"
    if record.group == "sketch":
        hashed = record.reads == "equality"
        takes = "integers, floats and bool" + (", text and binary" * hashed)
        raise SpecError(
            f"{agg!r} does not fit {what}: {agg.kind} takes {takes}; cast the column "
            "first"
        )
    if "interpolation" in record.parameters and values.family != "other":
        raise SpecError(
            f"{agg!r} lies between two values of column {values.name!r}, which holds "
            f"{values.type}: give interpolation='lower', 'higher' or 'nearest'"
        )
    message = misfit(agg, what, values.type, lambda kind: fits(kind, family))
    raise SpecError(f"{message}{_cast(agg.kind, held)}")


def _cast(kind: str, held: pa.DataType) -> str:
    """The advice to cast a column of decimals or intervals, where that helps."""
    if pa.types.is_interval(held):
        return " Cast the column to a duration or a number, which have an order."
    if not pa.types.is_decimal(held) or not fits(kind, "float"):
        return ""
    exact = ""
    if fits(kind, "decimal") and 0 <= held.scale <= DIGITS:
        exact = f"decimal128({DIGITS}, {held.scale}), or to "
    return f" Cast the column to {exact}float64 if rounding is fine."
