"""Decodes the kernel's answers into results, by the form of a result."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import Functions
from slidewise.errors import SpecError
from slidewise.frames.objects import array_of_objects
from slidewise.spec.durations import half_life_in_ticks, unit_in_ticks
from slidewise.table.arrays import row_numbers, with_nulls
from slidewise.table.carried import Before
from slidewise.table.decimals import as_numbers, from_parts, mean_scale, means_of_parts
from slidewise.table.encoding import ValueColumn
from slidewise.table.group_codes import group_codes
from slidewise.table.time_columns import tick_size

__all__ = ["BAR", "Decode", "decoder", "first_answer", "in_one_type", "lowered"]

# Makes the result from the kernel's answers, one array per call.
Decode = Callable[..., pa.Array]
# The calls of an open-high-low-close bar, and the encodings of their inputs.
BAR = [("first", "raw"), ("max", "order"), ("min", "order"), ("last", "raw")]

_INT64 = pa.int64()
_LOW_HALF = 2**32 - 1


def decoder(
    result: str,
    agg: Aggregation,
    values: ValueColumn,
    other: ValueColumn,
    encoding: str,
) -> Decode:
    """Makes results of a form from the answers, one array per call.

    Args:
        result: The form, as the record of the aggregation names it.
        agg: The aggregation.
        values: The column whose values or types are the result's.
        other: The second input column, or the first again.
        encoding: The encoding of the first answers.
    """
    if result in _RESULTS:
        return partial(_RESULTS[result], _Source(agg, values, other, encoding))
    if agg.scale in ("rate", "seconds"):
        unit = unit_in_ticks(agg.unit, tick_size(other.original.type))
        convert = pc.multiply if agg.scale == "rate" else pc.divide
        return partial(_converted, convert, unit)
    return first_answer


def first_answer(answers: Sequence[pa.Array]) -> pa.Array:
    """The answers of the only call, as they are."""
    return answers[0]


def _converted(
    convert: Callable[..., pa.Array], unit: float, answers: Sequence[pa.Array]
) -> pa.Array:
    return convert(answers[0], unit)


def lowered(agg: NativeAggregation, answers: Sequence[pa.Array]) -> pa.Array:
    """The answers of a native aggregation whose `lower` runs in Python."""
    found = [agg.functions.lowered(record.as_py()) for record in answers[0]]
    return in_one_type(agg, found, agg.functions)


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
    unit = None
    if agg.record.result == "area":
        unit = float(unit_in_ticks(agg.unit, tick_size(source.other.original.type)))
    carried = before and (before.starts, (before.times, before.values))
    entries = (first, first_value), (last, value)
    linear = agg.hold == "linear"
    return pa.array(
        _core.areas_at_ends(area, *entries, ends, carried, linear=linear, unit=unit)
    )


def _bar(source: _Source, answers: Sequence[pa.Array]) -> pa.Array:
    """Structs of the first, greatest, least and last values."""
    values = source.values
    parts = [
        values.restore_type(values.decoded(answer, values.encoding_of(name)))
        for answer, (_, name) in zip(answers, BAR, strict=True)
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
    firsts = rows.values.take(first.column("place_min").combine_chunks())
    return pa.ListArray.from_arrays(offsets, firsts)
