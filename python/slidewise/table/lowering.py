"""Lowers each aggregation to kernel calls, and decodes their answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.call import Call
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.aggregations.fit import fits, misfit
from slidewise.errors import SpecError
from slidewise.frames.objects import array_of_objects
from slidewise.spec.durations import half_life_in_ticks, unit_in_ticks
from slidewise.table.carried import Before, area_from_start
from slidewise.table.decimals import (
    DIGITS,
    as_numbers,
    from_parts,
    mean_scale,
    means_of_parts,
)
from slidewise.table.encoding import (
    KernelInputs,
    ValueColumn,
    ValueColumns,
    group_codes,
    row_numbers,
    with_nulls,
)
from slidewise.table.time_columns import tick_size

__all__ = ["Plan", "in_one_type", "plan"]

# Makes the result from the kernel's answers, one array per call.
Decode = Callable[..., pa.Array]

_INT64 = pa.int64()
_FLOAT64 = pa.float64()
_LOW_HALF = 2**32 - 1

_NUMBERS = ("number", "bool")
# The results that are computed of decimals without their point.
_OF_DECIMALS = ("square", "deviation", "between")
# The calls of an open-high-low-close bar, and the encodings of their inputs.
_BAR = [("first", "raw"), ("max", "order"), ("min", "order"), ("last", "raw")]


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
        return Plan((), _first_answer, count_call, None, False, (values.name,))
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
    decode: Decode = _first_answer
    if agg.scale in ("rate", "seconds"):
        unit = unit_in_ticks(agg.unit, tick_size(other.original.type))
        convert = pc.multiply if agg.scale == "rate" else pc.divide
        decode = partial(_converted, convert, unit)
    if result in _RESULTS:
        decode = partial(_RESULTS[result], _Source(agg, source, other, encoding))
    return Plan(
        calls=calls,
        decode=decode,
        count_call=None if result == "count" else Call("count", calls[0].of),
        source=source.name,
        same_type=_has_same_type(result, source),
        reads=(source.name,) if source is other else (source.name, other.name),
        rescales=_rescales(agg, result, encoding, source),
        overflow_reason=_overflow_reason(result, source),
        ended=agg.is_ended,
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
            Call(kind, inputs.add(values, _encoding(part, values)))
            for kind, part in parts
        ]
        return tuple(calls), parts[0][1]
    names = ("number",) if _interpolates(agg) else record.inputs
    if values.fine_family == "decimal" and result in _OF_DECIMALS:
        names = ("unscaled",)
    encoding, by = _encoding(names[0], values), None
    of = inputs.add(values, encoding)
    if len(names) > 1:
        name = "time" if agg.is_over_time else names[1]
        by = inputs.add(other, _encoding(name, other))
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
        return _BAR
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


def _encoding(name: str, values: ValueColumn) -> str:
    """The encoding of a column, by the name that a record has for it."""
    if name == "present":
        return "number" if values.family in _NUMBERS else "rows"
    if name == "distinct":
        has_order = values.family in (*_NUMBERS, "duration", "instant")
        return "order" if has_order else "codes"
    if name == "time":
        return "int64" if values.is_uint64 else "order"
    if name == "raw":
        return "raw_bits" if values.is_64_bit else "rows"
    if name == "whole":
        return "int64" if values.is_uint64 else "number"
    return name


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


def _converted(
    convert: Callable[..., pa.Array], unit: float, answers: Sequence[pa.Array]
) -> pa.Array:
    return convert(answers[0], unit)


def _first_answer(answers: Sequence[pa.Array]) -> pa.Array:
    return answers[0]


def _plan_rows(agg: Aggregation, columns: ValueColumns, inputs: KernelInputs) -> Plan:
    """Counts rows, or those where a column of booleans is true."""
    if agg.where is None:
        return Plan((Call("count", None),), _first_answer, None, None, False, ())
    at = inputs.add(columns.of(agg.where, where=agg.where), "number")
    return Plan((Call("count", at),), _first_answer, None, None, False, (agg.where,))


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
    lowered = compiled.lower_address[0] is not None
    return Plan(
        calls=(Call(inputs.native(compiled), at),),
        decode=_first_answer if lowered else partial(_lowered, agg),
        count_call=Call("count", at),
        source=values.name,
        same_type=False,
        reads=(values.name,),
    )


def _lowered(agg: NativeAggregation, answers: Sequence[pa.Array]) -> pa.Array:
    lowered = [agg.functions.lowered(record.as_py()) for record in answers[0]]
    return in_one_type(agg, lowered, agg.functions)


def in_one_type(
    agg: Aggregation, answers: list[Any], functions: Functions | Compiled
) -> pa.Array:
    """One Arrow column of the answers of a user's `lower`."""
    kind = functions.returns
    if kind is None and all(answer is None for answer in answers):
        kind = functions.known_type
    try:
        array = array_of_objects(answers, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise SpecError(
            f"the answers of {agg!r} do not fit one column"
            f"{'' if kind is None else f' of {kind}'} ({error}): let lower return "
            "numbers, text, times, or lists or dicts of these, of one type"
        ) from error
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


class _Source(NamedTuple):
    """What a result is made of, besides the answers of the kernel."""

    agg: Aggregation
    values: ValueColumn
    other: ValueColumn
    encoding: str


def _value(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    values = source.values
    return values.restore_type(values.decoded(answers[0], source.encoding))


def _values(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """Lists of values, from lists in their encoding."""
    lists, values = answers[0], source.values
    if source.encoding == "rows":
        _check_length(source, lists)
    items = values.restore_type(values.decoded(lists.values, source.encoding))
    return pa.ListArray.from_arrays(lists.offsets, items)


def _distinct(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    return _values(source, [_first_of_each(answers[0], source.values)])


def _text(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """Joined text, from lists of row numbers."""
    rows, values = answers[0], source.values
    if pa.types.is_null(values.original.type):
        return pa.nulls(len(rows))
    _check_length(source, rows)
    items = values.take(rows.values)
    joined = _joined(pa.ListArray.from_arrays(rows.offsets, items))
    return values.restore_computed(joined)


def _bits(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    values = source.values
    return values.restore_computed(values.from_bits(answers[0]))


def _sum(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    values, kind = source.values, source.values.original.type
    if values.is_uint64:
        return _joined_halves(*answers)
    if values.fine_family == "decimal":
        return from_parts(answers, scale=kind.scale)
    return answers[0].view(kind) if values.family == "duration" else answers[0]


def _joined_halves(high: pa.Array, low: pa.Array) -> pa.Array:
    """A sum of uint64 from those of the 32-bit halves; null if it does not fit."""
    top = pc.add(high, pc.shift_right(low, pa.scalar(32, _INT64)))
    top = with_nulls(top, pc.greater(top, _LOW_HALF))
    shifted = pc.shift_left(top.cast(pa.uint64()), pa.scalar(32, pa.uint64()))
    rest = pc.bit_wise_and(low, _LOW_HALF).cast(pa.uint64())
    return pc.bit_wise_or(shifted, rest)


def _average(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    values, kind = source.values, source.values.original.type
    if values.fine_family == "decimal":
        scale = mean_scale(kind.scale)
        return means_of_parts(answers[:-1], answers[-1], kind.scale, scale)
    if values.family == "duration":
        ticks = means_of_parts(answers[:-1], answers[-1], 0, 0)
        return ticks.cast(_INT64).view(kind)
    return answers[0]


def _in_units_of(power: int, source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """Floats over decimals or durations, in a power of the units of these."""
    values, kind = source.values, source.values.original.type
    if values.fine_family == "decimal":
        return pc.divide(
            answers[0], as_numbers(values.original.slice(0, 0))[1] ** power
        )
    if values.family == "duration":
        return pc.round(answers[0], 0, "half_to_even").cast(_INT64).view(kind)
    return answers[0]


def _between(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """A value between two of the column."""
    if source.values.family != "duration":
        return _in_units_of(1, source, answers)
    low, high, counts = answers
    agg = source.agg
    place = pc.multiply(pc.subtract(counts, 1).cast(pa.float64()), agg.q)
    share = pc.subtract(place, pc.floor(place))
    if agg.interpolation == "midpoint":
        share = pc.if_else(pc.greater(share, 0.0), 0.5, 0.0)
    distance = pc.multiply(pc.subtract(high, low).cast(pa.float64()), share)
    step = pc.round(distance, 0, "half_to_even").cast(_INT64)
    return pc.add(low, step).view(source.values.original.type)


def _difference(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """Max − min, in the type of a difference."""
    if source.values.is_uint64:
        largest, smallest = map(source.values.from_order, answers)
        return pc.subtract(largest, smallest)
    return _change(source, answers)


def _change(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """A difference of two values, which may be negative."""
    kind = source.values.original.type
    if pa.types.is_date32(kind):
        seconds = pc.multiply(answers[0], pa.scalar(86_400, _INT64))
        return seconds.view(pa.duration("s"))
    if pa.types.is_temporal(kind):
        return answers[0].view(pa.duration(getattr(kind, "unit", "ms")))
    return answers[0]


def _since(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """The time from an entry to the end of its window."""
    times, ends = answers
    return _change(source, [pc.subtract(ends, times)])


def _decayed(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """Decayed sums at the ends, from those relative to the last entries."""
    tick = tick_size(source.other.original.type)
    half_life = half_life_in_ticks(source.agg.half_life, tick)
    sums, last, ends = answers
    return pa.array(_core.decayed_sums(sums, last, ends, *half_life))


def _area(
    source: _Source, answers: Sequence[pa.Array], before: Before | None = None
) -> pa.Array:
    """Areas up to the ends, or means, from those up to the last entries."""
    agg, (area, first, first_value, last, value, ends) = source.agg, answers
    since = first
    left = pc.subtract(ends, last).cast(_FLOAT64, safe=False)
    held = pc.multiply(value.cast(_FLOAT64, safe=False), left)
    area = pc.if_else(pc.equal(left, 0), area, pc.add(area, held))
    if before is not None:
        carried, since = area_from_start(agg, before, first, first_value, ends)
        area = pc.add(pc.coalesce(area, 0.0), carried)
        area = with_nulls(area, since.is_null())
    if agg.record.result == "area":
        tick = tick_size(source.other.original.type)
        return pc.divide(area, unit_in_ticks(agg.unit, tick))
    time = pc.subtract(ends, since).cast(_FLOAT64, safe=False)
    return pc.divide(area, with_nulls(time, pc.equal(time, 0)))


def _bar(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """Structs of the first, greatest, least and last values."""
    values = source.values
    parts = [
        values.restore_type(values.decoded(answer, _encoding(name, values)))
        for answer, (_, name) in zip(answers, _BAR, strict=True)
    ]
    names = ["open", "high", "low", "close"]
    return pa.StructArray.from_arrays(parts, names=names, mask=answers[0].is_null())


def _quantiles(_: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """Answers; those of several shares are lists, null for a window without values."""
    if not pa.types.is_list(answers[0].type):
        return answers[0]
    return with_nulls(answers[0], pc.equal(pc.list_value_length(answers[0]), 0))


def _hitters(
    names: list[str], source: _Source, answers: Sequence[pa.Array]
) -> pa.Array:
    """Structs of value, count and error, from lists of these three in turn."""
    flat, values = answers[0].values, source.values
    places = row_numbers(len(flat) // 3)
    found, counts, errors = (
        flat.take(pc.add(pc.multiply(places, 3), part)) for part in (0, 1, 2)
    )
    items = values.restore_type(values.decoded(found, source.encoding))
    # Between floats, counts are the bits of floats.
    numbers = [column.view(_INT64) for column in (counts, errors)]
    structs = pa.StructArray.from_arrays([items, *numbers][: len(names)], names=names)
    offsets = pc.divide(answers[0].offsets, 3)
    return pa.ListArray.from_arrays(offsets, structs)


# Makes results of a form, of one array of answers per call. Other results are the
# answers as they are.
_RESULTS: dict[str, Callable[[_Source, Sequence[pa.Array]], pa.Array]] = {
    "value": _value,
    "values": _values,
    "distinct": _distinct,
    "joined": _text,
    "bool": lambda _, answers: answers[0].cast(pa.bool_()),
    "exp": lambda _, answers: pc.exp(answers[0]),
    "bits": _bits,
    "sum": _sum,
    "average": _average,
    "square": partial(_in_units_of, 2),
    "deviation": partial(_in_units_of, 1),
    "between": _between,
    "difference": _difference,
    "change": _change,
    "since": _since,
    "decayed": _decayed,
    "area": _area,
    "level": _area,
    "bar": _bar,
    "quantiles": _quantiles,
    "hitters": partial(_hitters, ["value", "count", "error"]),
    "value_counts": partial(_hitters, ["value", "count"]),
}


def _check_length(source: _Source, rows: pa.ListArray) -> None:
    """Refuses more than 2 GiB of text: Arrow joins text with 32-bit offsets."""
    agg, values = source.agg, source.values
    held = values.original.type
    short = pa.types.is_string(held) or pa.types.is_binary(held)
    if not short and agg.record.result != "joined":
        return
    lengths = pc.binary_length(values.original).cast(_INT64)
    if (pc.max(lengths).as_py() or 0) * len(rows.values) < 2**31:
        return
    if pc.sum(lengths.take(rows.values)).as_py() >= 2**31:
        raise MemoryError(f"{agg!r} gives more than 2 GiB of text: give fewer rows")


def _joined(lists: pa.ListArray) -> pa.Array:
    # Arrow joins lists of text and binary with short offsets only.
    held = lists.type.value_type
    text = pa.types.is_string(held) or pa.types.is_large_string(held)
    lists = lists.cast(pa.list_(pa.string() if text else pa.binary()))
    joined = pc.binary_join(lists, "" if text else b"").cast(held)
    return pc.if_else(pc.equal(pc.list_value_length(lists), 0), None, joined)


def _first_of_each(rows: pa.ListArray, values: ValueColumn) -> pa.ListArray:
    """Drops the rows of each list whose value occurs earlier in it."""
    codes = group_codes([(values.name, values.original)])
    assert codes is not None, "one column is given"
    lists = pc.list_parent_indices(rows)
    pairs = pa.table({"list": lists, "code": codes.take(rows.values)})
    pairs = pairs.append_column("place", row_numbers(len(pairs)))
    first = pairs.group_by(["list", "code"]).aggregate([("place", "min")])
    first = first.sort_by("place_min")
    counts = first.group_by("list", use_threads=False).aggregate([("list", "count")])
    lengths = pa.table({"list": row_numbers(len(rows))}).join(counts, "list")
    lengths = lengths.sort_by("list").column("list_count").fill_null(0)
    ends = pc.cumulative_sum(lengths.combine_chunks().cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    kept = rows.values.take(first.column("place_min").combine_chunks())
    return pa.ListArray.from_arrays(offsets, kept)


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
