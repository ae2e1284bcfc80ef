"""From table columns to the int64 and float64 columns of the kernel, and back.

The kernel knows two types. A column of another type is handed over in one of three
forms, and the answer is brought back:

- as a *number*, for arithmetic;
- as an *order*: any int64 or float64 that sorts like the values, for min, max and their
  like;
- as *row numbers*, null where the value is null, for aggregations that only pick rows:
  the picked rows' values are taken from the column itself, whatever its type.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations import KINDS, Aggregation
from slidewise.errors import ResultOverflowError, SpecError

__all__ = ["Call", "Feeds", "Plan", "Values", "group_codes", "plan"]

# (kind, of, by, ddof) with indices into the fed columns, -1 for none.
Call = tuple[str, int, int, int]
# From the kernel's answers, one array per call, to the result.
Finish = Callable[[Sequence[pa.Array]], pa.Array]

_INT64 = pa.int64()
_SIGN = 2**63
_LOW_HALF = 2**32 - 1

_ORDERED = ("number", "bool", "duration", "instant", "text")
_TAKES: Mapping[str, tuple[str, ...]] = {
    "sum": ("number", "bool", "duration"),
    "mean": ("number", "bool"),
    "variance": ("number", "bool"),
    "stddev": ("number", "bool"),
    "geometric_mean": ("number", "bool"),
    "range": ("number", "duration", "instant"),
    "min": _ORDERED,
    "max": _ORDERED,
    "min_count": _ORDERED,
    "max_count": _ORDERED,
    "arg_min": _ORDERED,
    "arg_max": _ORDERED,
}
_IN_WORDS = {
    "number": "integers and floats",
    "bool": "bool",
    "duration": "durations",
    "instant": "timestamps and dates",
    "text": "text and decimals",
}


class Values:
    """One column that is aggregated, in all the forms it may be needed in."""

    def __init__(self, name: str, column: pa.Array, nan: str = "propagate") -> None:
        self.name = name
        self.type: pa.DataType = column.type
        self.original = _settle_nan(_plain(column), nan, name)

    @cached_property
    def family(self) -> str:
        """What kind of values these are, where aggregations differ."""
        kind = self.original.type
        if pa.types.is_boolean(kind):
            return "bool"
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return "number"
        if pa.types.is_duration(kind):
            return "duration"
        if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
            return "instant"
        return "text" if _is_sortable(kind) else "other"

    @cached_property
    def number(self) -> pa.Array:
        """As int64, or float64 where the values are not integers that fit it."""
        kind = self.original.type
        if pa.types.is_uint64(kind) or pa.types.is_floating(kind):
            return self.original.cast(pa.float64(), safe=False)
        if self.family in ("number", "bool"):
            return self.original.cast(_INT64)
        return self.order

    @cached_property
    def order(self) -> pa.Array:
        """As int64 or float64 that sorts like the values."""
        kind = self.original.type
        if self.family == "text":
            return self._ranks
        if pa.types.is_uint64(kind):
            flipped = pc.bit_wise_xor(self.original, pa.scalar(_SIGN, pa.uint64()))
            return flipped.view(_INT64)
        if self.family in ("number", "bool"):
            return self.number
        if kind.bit_width == 32:
            return self.original.view(pa.int32()).cast(_INT64)
        return self.original.view(_INT64)

    def unorder(self, answers: pa.Array) -> pa.Array:
        """Brings back what the kernel picked from `order`."""
        kind = self.original.type
        if self.family == "text":
            return pc.take(self._sorted, answers)
        if pa.types.is_uint64(kind):
            flipped = answers.view(pa.uint64())
            return pc.bit_wise_xor(flipped, pa.scalar(_SIGN, pa.uint64()))
        if self.family in ("number", "bool"):
            return answers.cast(kind)
        if kind.bit_width == 32:
            return answers.cast(pa.int32()).view(kind)
        return answers.view(kind)

    @cached_property
    def rows(self) -> pa.Array:
        """Row numbers, null where the value is null."""
        rows = row_numbers(len(self.original))
        if self.original.null_count == 0:
            return rows
        return pc.if_else(self.original.is_valid(), rows, None)

    @cached_property
    def halves(self) -> tuple[pa.Array, pa.Array]:
        """The upper and lower 32 bits of uint64, as int64: their sums always fit."""
        high = pc.shift_right(self.original, pa.scalar(32, pa.uint64()))
        low = pc.bit_wise_and(self.original, pa.scalar(_LOW_HALF, pa.uint64()))
        return high.cast(_INT64), low.cast(_INT64)

    @cached_property
    def _distinct(self) -> tuple[pa.Array, pa.Array]:
        """Codes into a dictionary, and how to sort that dictionary."""
        encoded = self.original.dictionary_encode()
        return encoded, pc.sort_indices(encoded.dictionary)

    @cached_property
    def _sorted(self) -> pa.Array:
        encoded, order = self._distinct
        return encoded.dictionary.take(order)

    @cached_property
    def _ranks(self) -> pa.Array:
        encoded, order = self._distinct
        rank_of_code = pc.sort_indices(order).cast(_INT64)
        return rank_of_code.take(encoded.indices)

    def pick(self, rows: pa.Array) -> pa.Array:
        """The values at row numbers, null where those are null."""
        return pc.take(self.original, rows)

    def as_came(self, array: pa.Array) -> pa.Array:
        """In the type of the column as it came."""
        if isinstance(self.type, pa.BaseExtensionType):
            return self.type.wrap_array(array)
        return array if array.type == self.type else array.cast(self.type)


class Feeds:
    """The columns handed to the kernel, each once."""

    def __init__(self) -> None:
        self.columns: list[pa.Array] = []
        self._known: dict[tuple[str, str], int] = {}

    def add(self, values: Values, form: str) -> int:
        """The index of a column in one of its forms."""
        key = (values.name, form)
        if key not in self._known:
            self._known[key] = len(self.columns)
            if form in ("high", "low"):
                column = values.halves[form == "low"]
            else:
                column = getattr(values, form)
            self.columns.append(column)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Plan:
    """How one aggregation is asked of the kernel.

    Attributes:
        calls: What to ask; nothing for aggregations of the user's own, whose answers
            come another way.
        finish: From the answers, one array per call, to the result.
        present: What is counted for `min_rows`; None where it has no say.
        source: The column whose flavour of types the result follows.
        keeps: Whether the result has the type of `source`.
        reads: The columns it computes with.
    """

    calls: tuple[Call, ...]
    finish: Finish
    present: Call | None
    source: str | None
    keeps: bool
    reads: tuple[str, ...]


def plan(
    agg: Aggregation, columns: Mapping[str, Values], feeds: Feeds, on: str
) -> Plan:
    """Plans one aggregation over columns.

    Args:
        agg: What to compute.
        columns: The columns it names, and `on`.
        feeds: Where the kernel's columns are gathered.
        on: The column of times, which `arg_min` and `arg_max` give without `of`.

    Raises:
        SpecError: If the aggregation does not fit its column; the message says what
        does.
    """
    if agg.kind in ("arg_min", "arg_max"):
        return _plan_arg(agg, columns, feeds, on)
    if agg.of is None:
        return Plan((("count", -1, -1, 0),), _only, None, None, False, ())
    values = columns[agg.of]
    if agg.kind == "own":
        present = ("count", feeds.add(values, "rows"), -1, 0)
        return Plan((), _only, present, None, False, (values.name,))
    _check_fit(agg, values)
    if agg.kind in ("first", "last", "collect"):
        return _plan_pick(agg, values, feeds)
    if agg.kind == "sum" and pa.types.is_uint64(values.original.type):
        return _plan_sum_uint64(values, feeds)
    if agg.kind == "range":
        return _plan_range(values, feeds)
    return _plan_plain(agg, values, feeds)


def _only(answers: Sequence[pa.Array]) -> pa.Array:
    return answers[0]


def _plan_plain(agg: Aggregation, values: Values, feeds: Feeds) -> Plan:
    form, finish = _form(agg.kind, values)
    at = feeds.add(values, form)
    present = None if agg.kind == "count" else ("count", at, -1, 0)
    call = (agg.kind, at, -1, agg.ddof)
    keeps = finish is not _only
    return Plan((call,), finish, present, values.name, keeps, (values.name,))


def _form(kind: str, values: Values) -> tuple[str, Finish]:
    """In which form a column goes to the kernel, and how the answer comes back."""
    if kind == "count":
        return ("number" if values.family in ("number", "bool") else "rows"), _only
    if kind in ("min", "max"):
        return "order", lambda answers: values.as_came(values.unorder(answers[0]))
    if kind in ("min_count", "max_count"):
        return "order", _only
    if kind in ("variance", "stddev"):
        # A shift changes no distance from the mean, and uint64 shifted is int64.
        return "order", _only
    if values.family == "duration":
        return "number", lambda answers: answers[0].view(values.type)
    return "number", _only


def _plan_pick(agg: Aggregation, values: Values, feeds: Feeds) -> Plan:
    at = feeds.add(values, "rows")

    def finish(answers: Sequence[pa.Array]) -> pa.Array:
        rows = answers[0]
        if agg.kind != "collect":
            return values.as_came(values.pick(rows))
        items = values.as_came(values.pick(rows.values))
        return pa.ListArray.from_arrays(rows.offsets, items)

    return Plan(
        calls=((agg.kind, at, -1, 0),),
        finish=finish,
        present=("count", at, -1, 0),
        source=values.name,
        keeps=agg.kind != "collect",
        reads=(values.name,),
    )


def _plan_arg(
    agg: Aggregation, columns: Mapping[str, Values], feeds: Feeds, on: str
) -> Plan:
    assert agg.by is not None, "a Spec does not let this through"
    by = columns[agg.by]
    _check_fit(agg, by)
    of = columns[agg.of or on]
    at = feeds.add(by, "order")

    def finish(answers: Sequence[pa.Array]) -> pa.Array:
        return of.as_came(of.pick(answers[0]))

    return Plan(
        calls=((agg.kind, feeds.add(by, "rows"), at, 0),),
        finish=finish,
        present=("count", at, -1, 0),
        source=of.name,
        keeps=True,
        reads=(of.name, by.name),
    )


def _plan_range(values: Values, feeds: Feeds) -> Plan:
    """Max − min, in a type that says what a distance is."""
    kind = values.original.type
    unsigned = pa.types.is_uint64(kind)
    at = feeds.add(values, "order")
    kinds = ("max", "min") if unsigned else ("range",)

    def finish(answers: Sequence[pa.Array]) -> pa.Array:
        if unsigned:
            largest, smallest = (values.unorder(answer) for answer in answers)
            return pc.subtract(largest, smallest)
        if pa.types.is_date32(kind):
            seconds = pc.multiply(answers[0], pa.scalar(86_400, _INT64))
            return seconds.view(pa.duration("s"))
        if pa.types.is_temporal(kind):
            return answers[0].view(pa.duration(getattr(kind, "unit", "ms")))
        return answers[0]

    return Plan(
        calls=tuple((asked, at, -1, 0) for asked in kinds),
        finish=finish,
        present=("count", at, -1, 0),
        source=values.name,
        keeps=unsigned,
        reads=(values.name,),
    )


def _plan_sum_uint64(values: Values, feeds: Feeds) -> Plan:
    """Sums the halves apart, and puts them together if they fit."""
    high, low = feeds.add(values, "high"), feeds.add(values, "low")

    def finish(answers: Sequence[pa.Array]) -> pa.Array:
        carry = pc.shift_right(answers[1], pa.scalar(32, _INT64))
        top = pc.add(answers[0], carry)
        beyond = pc.index(pc.greater(top, _LOW_HALF), True).as_py()
        if beyond >= 0:
            error = ResultOverflowError("the sum does not fit uint64")
            error.row = beyond  # type: ignore[attr-defined]
            raise error
        shifted = pc.shift_left(top.cast(pa.uint64()), pa.scalar(32, pa.uint64()))
        rest = pc.bit_wise_and(answers[1], _LOW_HALF).cast(pa.uint64())
        return pc.bit_wise_or(shifted, rest)

    return Plan(
        calls=(("sum", high, -1, 0), ("sum", low, -1, 0)),
        finish=finish,
        present=("count", high, -1, 0),
        source=values.name,
        keeps=True,
        reads=(values.name,),
    )


def _check_fit(agg: Aggregation, values: Values) -> None:
    taken = _TAKES.get(agg.kind)
    if taken is None or values.family in taken:
        return
    fitting = [
        kind for kind in KINDS if values.family in _TAKES.get(kind, (values.family,))
    ]
    words = ", ".join(_IN_WORDS[family] for family in taken)
    raise SpecError(
        f"{agg!r} does not fit column {values.name!r}, which holds {values.type}: "
        f"{agg.kind} takes {words}. For {values.type} there are {', '.join(fitting)}."
    )


def _settle_nan(column: pa.Array, nan: str, name: str) -> pa.Array:
    """NaN as the user wants it: as a value, as a missing one, or not at all."""
    if nan == "propagate" or not pa.types.is_floating(column.type):
        return column
    is_nan = pc.is_nan(column)
    if nan == "skip":
        return pc.if_else(pc.fill_null(is_nan, False), None, column)
    row = pc.index(is_nan, True).as_py()
    if row >= 0:
        raise SpecError(
            f"column {name!r} is NaN in row {row} (counting from 0), and nan='raise'"
        )
    return column


def _plain(column: pa.Array) -> pa.Array:
    """The column in a type that Arrow's kernels can take rows of."""
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage)
    if column.type == pa.string_view():
        return column.cast(pa.large_string())
    if column.type == pa.binary_view():
        return column.cast(pa.large_binary())
    return column


def _is_sortable(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_decimal(kind)
    )


def row_numbers(count: int) -> pa.Array:
    """0, 1, 2, ... as int64."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, _INT64), count), start=-1)


def group_codes(columns: Sequence[tuple[str, pa.Array]]) -> pa.Array | None:
    """Dense codes of the distinct keys, a null being a key like any other.

    Raises:
        SpecError: If a column cannot be a key.
    """
    codes: pa.Array | None = None
    for name, column in columns:
        own, count = _codes(name, column)
        if codes is not None:
            # Both factors are at most the number of rows, so the product fits int64.
            pairs = pc.add(pc.multiply(codes, pa.scalar(count, _INT64)), own)
            own, _ = _codes(name, pairs)
        codes = own
    return codes


def _codes(name: str, column: pa.Array) -> tuple[pa.Array, int]:
    column = _plain(column)
    if pa.types.is_dictionary(column.type):
        # A dictionary may hold a key twice, or null; its values decide.
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # −0.0 and 0.0 are one key
    try:
        encoded = column.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError as error:
        raise SpecError(
            f"column {name!r} ({column.type}) cannot be a key: "
            "keys are numbers, text, times and the like"
        ) from error
    return encoded.indices.cast(_INT64), len(encoded.dictionary)
