"""Lowers each aggregation to kernel calls, and decodes their answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations.base import BITS, PAIRS, Aggregation
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import Functions
from slidewise.aggregations.fit import fits, misfit
from slidewise.aggregations.sketches import Sketch
from slidewise.errors import SpecError
from slidewise.frames.objects import array_of_objects
from slidewise.table.decimals import DIGITS, can_sum, from_parts
from slidewise.table.encoding import (
    KernelInputs,
    ValueColumn,
    ValueColumns,
    group_codes,
    row_numbers,
    with_nulls,
)

__all__ = ["Call", "Plan", "in_one_type", "plan"]

# (kind, of, by, ddof) with indices into the kernel inputs, -1 for none.
Call = tuple[str, int, int, int]
# Makes the result from the kernel's answers, one array per call.
Decode = Callable[[Sequence[pa.Array]], pa.Array]

_INT64 = pa.int64()
_LOW_HALF = 2**32 - 1

_NUMBERS = ("number", "bool")
_MOMENTS = ("variance", "stddev", "skewness", "kurtosis")
_LISTS = ("collect", "concat", "collect_distinct")


@dataclass(frozen=True, slots=True)
class Plan:
    """The kernel calls of one aggregation and the decoding of their answers.

    Attributes:
        calls: The kernel calls; empty for Python aggregations, which run separately.
        decode: Makes the result from the answers, one array per call.
        count_call: The call that counts values for `min_rows`; None where `min_rows`
            does not apply.
        source: The column whose library type the result follows.
        same_type: Whether the result has the type of `source`.
        reads: The columns it computes with.
        overflow_reason: Why `decode` gives null although there were values; None if it
            never does.
    """

    calls: tuple[Call, ...]
    decode: Decode
    count_call: Call | None
    source: str | None
    same_type: bool
    reads: tuple[str, ...]
    overflow_reason: str | None = None


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
    if agg.kind in ("arg_min", "arg_max"):
        return _plan_arg(agg, columns, inputs, on)
    if agg.of is None:
        return _plan_rows(agg, columns, inputs)
    values = columns.of(agg.of, where=agg.where)
    if agg.kind == "own":
        count_call = ("count", inputs.add(values, "rows"), -1, 0)
        return Plan((), _first_answer, count_call, None, False, (values.name,))
    if isinstance(agg, NativeAggregation):
        return _plan_native(agg, values, inputs)
    if isinstance(agg, Sketch):
        return _plan_sketch(agg, values, inputs)
    _check_fit(agg, values)
    if agg.kind in PAIRS:
        return _plan_pair(agg, columns, inputs)
    if agg.kind in _LISTS:
        return _plan_list(agg, values, inputs)
    if agg.kind in ("first", "last"):
        return _plan_pick(agg, values, inputs)
    if agg.kind in ("top_k", "bottom_k"):
        return _plan_best(agg, values, inputs)
    if agg.kind == "sum":
        return _plan_sum(agg, values, inputs)
    if agg.kind == "range":
        return _plan_range(values, inputs)
    return _plan_plain(agg, values, inputs)


def _interpolates(agg: Aggregation) -> bool:
    """Whether an answer may lie between two values."""
    return agg.kind == "median" or agg.interpolation in ("linear", "midpoint")


def _first_answer(answers: Sequence[pa.Array]) -> pa.Array:
    return answers[0]


def _null_if_empty(answers: Sequence[pa.Array]) -> pa.Array:
    """Lists, null where empty: a window without values."""
    return with_nulls(answers[0], pc.equal(pc.list_value_length(answers[0]), 0))


def _plan_rows(agg: Aggregation, columns: ValueColumns, inputs: KernelInputs) -> Plan:
    """Counts rows, or those where a column of booleans is true."""
    if agg.where is None:
        return Plan((("count", -1, -1, 0),), _first_answer, None, None, False, ())
    at = inputs.add(columns.of(agg.where, where=agg.where), "number")
    return Plan((("count", at, -1, 0),), _first_answer, None, None, False, (agg.where,))


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
        calls=((inputs.native(compiled), at, -1, 0),),
        decode=_first_answer if lowered else partial(_lowered, agg),
        count_call=("count", at, -1, 0),
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


def _plan_sketch(agg: Sketch, values: ValueColumn, inputs: KernelInputs) -> Plan:
    _check_sketched(agg, values)
    at = inputs.add(values, "hashes" if agg.hashed else "number")
    call, decode = (agg.core_kind, at, -1, 0), _first_answer
    if agg.kind == "heavy_hitters":
        call = (agg.core_kind, inputs.add(values, "rows"), at, 0)
        decode = partial(_hitters, values)
    if agg.kind == "approx_quantile" and isinstance(agg.parameters[0], tuple):
        decode = _null_if_empty
    count_call = ("count", at, -1, 0)
    return Plan(
        calls=(call,),
        decode=decode,
        count_call=None if agg.kind == "approx_count_distinct" else count_call,
        source=values.name,
        same_type=False,
        reads=(values.name,),
    )


def _check_sketched(agg: Sketch, values: ValueColumn) -> None:
    families = ("number", "bool", "text") if agg.hashed else _NUMBERS
    held = values.original.type
    if values.family not in families or pa.types.is_decimal(held):
        takes = "integers, floats and bool" + (", text and binary" * agg.hashed)
        raise SpecError(
            f"{agg!r} does not fit column {values.name!r}, which holds {values.type}: "
            f"{agg.kind} takes {takes}; cast the column first"
        )


def _hitters(values: ValueColumn, answers: Sequence[pa.Array]) -> pa.Array:
    """Structs of value, count and error, from lists of these three in turn."""
    flat = answers[0].values
    places = row_numbers(len(flat) // 3)
    rows, counts, errors = (
        flat.take(pc.add(pc.multiply(places, 3), part)) for part in (0, 1, 2)
    )
    items = values.restore_type(values.take(rows))
    structs = pa.StructArray.from_arrays(
        [items, counts, errors], names=["value", "count", "error"]
    )
    offsets = pc.divide(answers[0].offsets, 3)
    return pa.ListArray.from_arrays(offsets, structs)


def _plan_pair(agg: Aggregation, columns: ValueColumns, inputs: KernelInputs) -> Plan:
    """Two columns, each null where the other one is."""
    assert agg.of is not None, "Spec requires it"
    assert agg.by is not None, "Spec requires it"
    x = columns.of(agg.of, where=agg.where, paired=agg.by)
    y = columns.of(agg.by, where=agg.where, paired=agg.of)
    _check_fit(agg, y)
    # A shift keeps distances from the mean, and shifted uint64 is int64.
    at, other = inputs.add(x, "order"), inputs.add(y, "order")
    return Plan(
        calls=((agg.kind, at, other, agg.ddof),),
        decode=_first_answer,
        count_call=("count", at, -1, 0),
        source=x.name,
        same_type=False,
        reads=(x.name, y.name),
    )


def _plan_best(agg: Aggregation, values: ValueColumn, inputs: KernelInputs) -> Plan:
    at = inputs.add(values, "order")

    def decode(answers: Sequence[pa.Array]) -> pa.Array:
        items = values.restore_type(values.from_order(answers[0].values))
        return pa.ListArray.from_arrays(answers[0].offsets, items)

    return Plan(
        calls=((agg.kind, at, -1, agg.k),),
        decode=decode,
        count_call=("count", at, -1, 0),
        source=values.name,
        same_type=False,
        reads=(values.name,),
    )


def _plan_plain(agg: Aggregation, values: ValueColumn, inputs: KernelInputs) -> Plan:
    encoding, decode = _encoding(agg, values)
    at = inputs.add(values, encoding)
    counts = agg.kind in ("count", "count_distinct")
    count_call = None if counts else ("count", at, -1, 0)
    kernel_kind = "mean" if agg.kind == "geometric_mean" else agg.core_kind
    call = (kernel_kind, at, -1, agg.ddof)
    made = ("any", "all", "geometric_mean")
    plain = agg.kind in made or (agg.kind in BITS and values.is_dictionary)
    same_type = decode is not _first_answer and not plain
    return Plan((call,), decode, count_call, values.name, same_type, (values.name,))


def _encoding(agg: Aggregation, values: ValueColumn) -> tuple[str, Decode]:
    """The encoding of a column, and how to decode the answer."""
    kind = agg.kind
    if kind == "count_distinct":
        ordered = values.family in ("number", "bool", "duration", "instant")
        return "order" if ordered else "codes", _first_answer
    if kind == "mode" or (kind == "quantile" and not _interpolates(agg)):
        return "order", lambda answers: values.restore_type(
            values.from_order(answers[0])
        )
    if kind == "count":
        return (
            "number" if values.family in ("number", "bool") else "rows"
        ), _first_answer
    if kind in ("min", "max"):
        return "order", lambda answers: values.restore_type(
            values.from_order(answers[0])
        )
    if kind in ("min_count", "max_count"):
        return "order", _first_answer
    if kind == "geometric_mean":
        return "logs", lambda answers: pc.exp(answers[0])
    if kind in ("any", "all"):
        return "number", lambda answers: answers[0].cast(pa.bool_())
    if kind in BITS:
        return "bits", lambda answers: values.restore_computed(
            values.from_bits(answers[0])
        )
    if kind in _MOMENTS:
        # A shift keeps distances from the mean, and shifted uint64 is int64.
        return "order", _first_answer
    if values.family == "duration":
        return "number", lambda answers: answers[0].view(values.original.type)
    if kind in ("product", "sum_of_squares") and pa.types.is_uint64(
        values.original.type
    ):
        return "int64", _first_answer
    return "number", _first_answer


def _plan_pick(agg: Aggregation, values: ValueColumn, inputs: KernelInputs) -> Plan:
    """Selects 64-bit values directly, and other values by their row."""
    at = inputs.add(values, "raw_bits" if values.is_64_bit else "rows")

    def decode(answers: Sequence[pa.Array]) -> pa.Array:
        if values.is_64_bit:
            return values.restore_type(answers[0].view(values.original.type))
        return values.restore_type(values.take(answers[0]))

    return Plan(
        calls=((agg.kind, at, -1, 0),),
        decode=decode,
        count_call=("count", at, -1, 0),
        source=values.name,
        same_type=True,
        reads=(values.name,),
    )


def _plan_list(agg: Aggregation, values: ValueColumn, inputs: KernelInputs) -> Plan:
    """Collects row numbers, which become a list of values or joined text."""
    at = inputs.add(values, "rows")
    distinct = agg.kind == "collect_distinct"
    # The kernel collects only the first row of each code where it can.
    by = inputs.add(values, "codes") if distinct else -1

    def decode(answers: Sequence[pa.Array]) -> pa.Array:
        rows = answers[0]
        if distinct:
            rows = _first_of_each(rows, values)
        if agg.kind == "concat" and pa.types.is_null(values.original.type):
            return pa.nulls(len(rows))
        _check_length(agg, values, rows)
        items = values.take(rows.values)
        if agg.kind == "concat":
            joined = _joined(pa.ListArray.from_arrays(rows.offsets, items))
            return joined if values.is_dictionary else values.restore_type(joined)
        return pa.ListArray.from_arrays(rows.offsets, values.restore_type(items))

    return Plan(
        calls=(("collect", at, by, 0),),
        decode=decode,
        count_call=("count", at, -1, 0),
        source=values.name,
        # Joined text is not in the dictionary.
        same_type=agg.kind == "concat" and not values.is_dictionary,
        reads=(values.name,),
    )


def _check_length(agg: Aggregation, values: ValueColumn, rows: pa.ListArray) -> None:
    """Refuses more than 2 GiB of text: Arrow joins text with 32-bit offsets."""
    held = values.original.type
    short = pa.types.is_string(held) or pa.types.is_binary(held)
    if not short and agg.kind != "concat":
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


def _plan_arg(
    agg: Aggregation, columns: ValueColumns, inputs: KernelInputs, on: str
) -> Plan:
    assert agg.by is not None, "Spec requires it"
    by = columns.of(agg.by, where=agg.where)
    _check_fit(agg, by)
    of = columns.of(agg.of or on)
    at = inputs.add(by, "order")

    def decode(answers: Sequence[pa.Array]) -> pa.Array:
        return of.restore_type(of.take(answers[0]))

    return Plan(
        calls=((agg.kind, inputs.add(by, "rows"), at, 0),),
        decode=decode,
        count_call=("count", at, -1, 0),
        source=of.name,
        same_type=True,
        reads=(of.name, by.name),
    )


def _plan_range(values: ValueColumn, inputs: KernelInputs) -> Plan:
    """Max − min, in the type of a difference."""
    kind = values.original.type
    unsigned = pa.types.is_uint64(kind)
    at = inputs.add(values, "order")
    kinds = ("max", "min") if unsigned else ("range",)

    def decode(answers: Sequence[pa.Array]) -> pa.Array:
        if unsigned:
            largest, smallest = (values.from_order(answer) for answer in answers)
            return pc.subtract(largest, smallest)
        if pa.types.is_date32(kind):
            seconds = pc.multiply(answers[0], pa.scalar(86_400, _INT64))
            return seconds.view(pa.duration("s"))
        if pa.types.is_temporal(kind):
            return answers[0].view(pa.duration(getattr(kind, "unit", "ms")))
        return answers[0]

    return Plan(
        calls=tuple((each, at, -1, 0) for each in kinds),
        decode=decode,
        count_call=("count", at, -1, 0),
        source=values.name,
        same_type=unsigned,
        reads=(values.name,),
    )


def _plan_sum(agg: Aggregation, values: ValueColumn, inputs: KernelInputs) -> Plan:
    held = values.original.type
    if pa.types.is_uint64(held):
        return _plan_sum_uint64(values, inputs)
    if can_sum(held):
        return _plan_sum_decimal(values, inputs)
    return _plan_plain(agg, values, inputs)


def _plan_sum_uint64(values: ValueColumn, inputs: KernelInputs) -> Plan:
    """Sums the 32-bit halves separately, and joins them if they fit."""
    high, low = inputs.add(values, "high"), inputs.add(values, "low")

    def decode(answers: Sequence[pa.Array]) -> pa.Array:
        carry = pc.shift_right(answers[1], pa.scalar(32, _INT64))
        top = pc.add(answers[0], carry)
        top = with_nulls(top, pc.greater(top, _LOW_HALF))
        shifted = pc.shift_left(top.cast(pa.uint64()), pa.scalar(32, pa.uint64()))
        rest = pc.bit_wise_and(answers[1], _LOW_HALF).cast(pa.uint64())
        return pc.bit_wise_or(shifted, rest)

    return Plan(
        calls=(("sum", high, -1, 0), ("sum", low, -1, 0)),
        decode=decode,
        count_call=("count", high, -1, 0),
        source=values.name,
        same_type=True,
        reads=(values.name,),
        overflow_reason="the sum does not fit uint64",
    )


def _plan_sum_decimal(values: ValueColumn, inputs: KernelInputs) -> Plan:
    at = [inputs.add(values, f"decimal{part}") for part in range(len(values.decimal))]
    return Plan(
        calls=tuple(("sum", part, -1, 0) for part in at),
        decode=partial(from_parts, scale=values.original.type.scale),
        count_call=("count", at[0], -1, 0),
        source=values.name,
        same_type=False,
        reads=(values.name,),
        overflow_reason=f"the sum takes more than {DIGITS} digits",
    )


def _check_fit(agg: Aggregation, values: ValueColumn) -> None:
    interpolated = agg.kind == "quantile" and _interpolates(agg)
    if _fits("median" if interpolated else agg.kind, values):
        return
    if interpolated and values.family != "other":
        raise SpecError(
            f"{agg!r} lies between two values of column {values.name!r}, which holds "
            f"{values.type}: give interpolation='lower', 'higher' or 'nearest'"
        )
    what = f"column {values.name!r}, which holds {values.type}"
    message = misfit(agg, what, values.type, lambda kind: _fits(kind, values))
    raise SpecError(f"{message}{_cast(agg.kind, values.original.type)}")


def _cast(kind: str, held: pa.DataType) -> str:
    """The advice to cast a column of decimals or intervals, where that helps."""
    if pa.types.is_interval(held):
        return " Cast the column to a duration or a number, which have an order."
    if not pa.types.is_decimal(held) or not fits(kind, "number") or kind in BITS:
        return ""
    exact = ""
    if kind == "sum" and 0 <= held.scale <= DIGITS:
        exact = f"decimal128({DIGITS}, {held.scale}), or to "
    return f" Cast the column to {exact}float64 if rounding is fine."


def _fits(kind: str, values: ValueColumn) -> bool:
    held = values.original.type
    if pa.types.is_decimal(held):
        return can_sum(held) if kind == "sum" else fits(kind, "decimal")
    if kind in BITS and pa.types.is_floating(held):
        return False
    if kind == "concat" and pa.types.is_null(held):
        return True
    if kind == "concat" and pa.types.is_fixed_size_binary(held):
        return False
    return fits(kind, values.family)
