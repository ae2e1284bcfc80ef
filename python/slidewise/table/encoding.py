"""Encodes table columns as the int64 and float64 columns of the kernel, and back.

The kernel has these two types. A column of another type has three encodings:

- *number*, for arithmetic;
- *order*, an int64 or float64 that sorts like the values, for min, max and the like;
- *rows*, the row numbers, null where the value is null, for aggregations that select
  rows; the selected values are then taken from the column itself.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations.compiled import Compiled
from slidewise.caching import cached_property
from slidewise.errors import Argument, SpecError
from slidewise.frames.base import one_array
from slidewise.frames.column_types import type_without_view
from slidewise.table.decimals import as_numbers, can_sum, parts_of

__all__ = [
    "KernelInputs",
    "ValueColumn",
    "ValueColumns",
    "cast_lossless",
    "decode_dictionary",
    "group_codes",
    "is_same",
    "key_hashes",
    "one_column",
    "row_numbers",
    "single_group",
    "storage_of",
    "take",
    "with_nulls",
    "without_views",
]

_INT64 = pa.int64()
_CODE = pa.uint32()
_CODES = 2**32
_LARGEST = 2**63 - 1
_SIGN = 2**63
_LOW_HALF = 2**32 - 1


class ValueColumn:
    """One aggregated column in all its encodings, each computed on first use."""

    def __init__(self, name: str, column: pa.Array, nan: str = "propagate") -> None:
        self.name = name
        self.type: pa.DataType = column.type
        self.original = _apply_nan_policy(
            storage_of(decode_dictionary(column)), nan, name
        )
        self._dictionary: pa.Array | None = None
        if pa.types.is_dictionary(column.type):
            self._dictionary = column.dictionary
        # Distinguishes the masked views of one column.
        self.view: tuple[str, ...] = ()

    def masked(self, mask: pa.Array, *why: str) -> "ValueColumn":
        """A view that is null where the mask is not true."""
        other = copy(self)
        # Drop encodings of the unmasked values.
        for name, member in vars(type(self)).items():
            if isinstance(member, cached_property):
                other.__dict__.pop(name, None)
        other.original = pc.if_else(mask, self.original, None)
        other.view = (*self.view, *why)
        return other

    @cached_property
    def mask(self) -> pa.Array:
        """Where a column of booleans is true; null counts as false."""
        flags = self.original
        if pa.types.is_null(flags.type):
            flags = flags.cast(pa.bool_())
        if not pa.types.is_boolean(flags.type):
            raise SpecError(
                f"where={self.name!r} names a column of {self.type}: it takes a column "
                "of booleans"
            )
        return pc.fill_null(flags, False)

    @cached_property
    def family(self) -> str:
        """The family of types, by which aggregations accept columns."""
        kind = self.original.type
        if pa.types.is_boolean(kind):
            return "bool"
        whole = pa.types.is_integer(kind) or pa.types.is_null(kind)
        if whole or pa.types.is_floating(kind):
            return "number"
        if pa.types.is_duration(kind):
            return "duration"
        if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
            return "instant"
        return "text" if _is_sortable(kind) else "other"

    @cached_property
    def fine_family(self) -> str:
        """The family of types, as the records of aggregations name them."""
        kind = self.original.type
        if pa.types.is_null(kind):
            return "null"
        if pa.types.is_decimal(kind):
            return "decimal" if can_sum(kind) else "large_decimal"
        if pa.types.is_fixed_size_binary(kind):
            return "fixed_binary"
        if self.family == "number":
            return "float" if pa.types.is_floating(kind) else "integer"
        return self.family

    @cached_property
    def is_uint64(self) -> bool:
        """Whether its values may be beyond int64."""
        return bool(pa.types.is_uint64(self.original.type))

    @cached_property
    def number(self) -> pa.Array:
        """As int64, or float64 for floats and uint64."""
        kind = self.original.type
        if kind in (pa.float64(), _INT64):
            return self.original
        if pa.types.is_uint64(kind) or pa.types.is_floating(kind):
            return self.original.cast(pa.float64(), safe=False)
        if self.family in ("number", "bool"):
            return self.original.cast(_INT64)
        return self.order

    @cached_property
    def int64(self) -> pa.Array:
        """uint64 as int64."""
        largest = pa.scalar(_SIGN - 1, pa.uint64())
        beyond = pc.index(pc.greater(self.original, largest), True).as_py()
        if beyond >= 0:
            raise SpecError(
                f"row {beyond} of column {self.name!r} is {self.original[beyond]}, "
                "beyond int64, in which the result is computed: cast the column to "
                "float64 if rounding is fine"
            )
        return self.original.cast(_INT64)

    @cached_property
    def float64(self) -> pa.Array:
        """As the nearest float64."""
        return self.number.cast(pa.float64(), safe=False)

    @cached_property
    def logs(self) -> pa.Array:
        """Natural logarithms: -inf for zero, NaN for negative values."""
        return pc.ln(self.float64)

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

    @cached_property
    def bits(self) -> pa.Array:
        """Integers and bool as the int64 of the same bits, sign-extended."""
        kind = self.original.type
        if pa.types.is_uint64(kind):
            return self.original.view(_INT64)
        return self.original.cast(_INT64)

    @property
    def is_dictionary(self) -> bool:
        """Whether the column is dictionary-encoded."""
        return self._dictionary is not None

    @property
    def is_64_bit(self) -> bool:
        """Whether a value takes 64 bits."""
        kind = self.original.type
        return bool(
            pa.types.is_primitive(kind)
            and not pa.types.is_boolean(kind)
            and kind.bit_width == 64
        )

    @cached_property
    def raw_bits(self) -> pa.Array:
        """64-bit values reinterpreted as int64."""
        return self.original.view(_INT64)

    def decoded(self, answers: pa.Array, encoding: str) -> pa.Array:
        """The values of answers over an encoding that selects them."""
        if encoding == "raw_bits":
            return answers.view(self.original.type)
        if encoding == "order":
            return self.from_order(answers)
        return self.take(answers)

    def from_bits(self, answers: pa.Array) -> pa.Array:
        """Decodes answers over `bits`."""
        if pa.types.is_null(self.original.type):
            return pa.nulls(len(answers))
        kind = self.original.type
        return answers.view(kind) if pa.types.is_uint64(kind) else answers.cast(kind)

    def from_order(self, answers: pa.Array) -> pa.Array:
        """Decodes answers over `order`."""
        if pa.types.is_null(self.original.type):
            return pa.nulls(len(answers))
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
    def hashes(self) -> pa.Array:
        """The stable hashes of the values, as int64."""
        column = self.original
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            column = column.cast(pa.large_string())
        elif self.family == "text":
            column = column.cast(pa.large_binary())
        elif pa.types.is_floating(kind):
            column = column.cast(pa.float64())
        elif not pa.types.is_uint64(kind):
            column = column.cast(_INT64)
        return pa.array(_core.hashes(column))

    @cached_property
    def codes(self) -> pa.Array:
        """Dense int64 codes of the values, null where the value is null."""
        codes = group_codes([(self.name, self.original)])
        assert codes is not None, "one column is given"
        return pc.if_else(self.original.is_valid(), codes.cast(_INT64), None)

    @cached_property
    def halves(self) -> tuple[pa.Array, pa.Array]:
        """The upper 32 bits, with the sign, and the lower ones: their sums fit."""
        whole = self.original if self.is_uint64 else self.order
        high = pc.shift_right(whole, pa.scalar(32, whole.type))
        low = pc.bit_wise_and(whole, pa.scalar(_LOW_HALF, whole.type))
        return high.cast(_INT64), low.cast(_INT64)

    @cached_property
    def decimal(self) -> tuple[pa.Array, ...]:
        """The parts of decimals, which are summed separately."""
        return parts_of(self.original)

    @cached_property
    def _distinct(self) -> tuple[pa.Array, pa.Array]:
        """The dictionary-encoded values, and the sort order of the dictionary."""
        encoded = self.original.dictionary_encode()
        known = encoded.dictionary
        if self._dictionary is not None and self.type.ordered:
            known = pc.index_in(known, storage_of(self._dictionary))
        return encoded, pc.sort_indices(known)

    @cached_property
    def _sorted(self) -> pa.Array:
        encoded, order = self._distinct
        return encoded.dictionary.take(order)

    @cached_property
    def _ranks(self) -> pa.Array:
        encoded, order = self._distinct
        rank_of_code = pc.sort_indices(order).cast(_INT64)
        return rank_of_code.take(encoded.indices)

    def encoded(self, encoding: str) -> pa.Array:
        """The values in an encoding, by its name."""
        if encoding in ("high", "low"):
            return self.halves[encoding == "low"]
        if encoding == "unscaled":
            return as_numbers(self.original)[0]
        if encoding.startswith("decimal"):
            return self.decimal[int(encoding.removeprefix("decimal"))]
        column: pa.Array = getattr(self, encoding)
        return column

    def take(self, rows: pa.Array) -> pa.Array:
        """The values at row numbers, null where those are null."""
        return pc.take(self.original, rows)

    def restore_type(self, array: pa.Array) -> pa.Array:
        """Casts values to the column's original type."""
        if isinstance(self.type, pa.BaseExtensionType):
            return self.type.wrap_array(array)
        if array.type == self.type:
            return array
        if self._dictionary is not None and not pa.types.is_dictionary(array.type):
            codes = pc.index_in(array, self._dictionary.cast(array.type))
            codes = pc.if_else(array.is_valid(), codes, None)
            codes = codes.cast(self.type.index_type)
            return pa.DictionaryArray.from_arrays(
                codes, self._dictionary, ordered=self.type.ordered
            )
        return array.cast(self.type)

    def restore_computed(self, array: pa.Array) -> pa.Array:
        """As `restore_type`, but computed values need not be in the dictionary."""
        return array if self.is_dictionary else self.restore_type(array)


class ValueColumns:
    """The aggregated columns, each read on first use."""

    def __init__(self, read: Callable[[str], pa.Array], nan: str) -> None:
        self._read = read
        self._nan = nan
        self._values: dict[tuple[str, ...], ValueColumn] = {}

    def of(
        self,
        name: str,
        *,
        where: str | None = None,
        paired: str = "",
        others: tuple[str, ...] = (),
    ) -> ValueColumn:
        """A column, null where `where` is not true or another column is null."""
        key = (name, where or "", paired, *others)
        if key not in self._values:
            made = self._view(name, where, paired)
            for other in others:
                present = self.of(other).original.is_valid()
                made = made.masked(present, "with", other)
            self._values[key] = made
        return self._values[key]

    def view(self, name: str, masks: Sequence[str]) -> ValueColumn:
        """A column under the masks of another `ValueColumn`, as its `view` has them."""
        pairs = list(zip(masks[::2], masks[1::2], strict=True))
        by_kind = dict(pairs)
        where, paired = by_kind.get("where"), by_kind.get("paired", "")
        others = tuple(other for kind, other in pairs if kind == "with")
        return self.of(name, where=where, paired=paired, others=others)

    def _view(self, name: str, where: str | None, paired: str) -> ValueColumn:
        if paired:
            present = self.of(paired).original.is_valid()
            return self.of(name, where=where).masked(present, "paired", paired)
        if where is not None:
            return self.of(name).masked(self.of(where).mask, "where", where)
        return ValueColumn(name, self._read(name), self._nan)


class KernelInputs:
    """The input columns of one kernel call, each once."""

    def __init__(self) -> None:
        self.columns: list[pa.Array] = []
        # Whether an input means the same in every table; row numbers do not.
        self.portable: list[bool] = []
        self._natives: dict[Compiled, str] = {}
        self._known: dict[tuple[str, tuple[str, ...], str], int] = {}

    @property
    def recipe(self) -> list[tuple[str, tuple[str, ...], str]]:
        """Of each input its column, the masks of it, and its encoding."""
        return list(self._known)

    @property
    def natives(self) -> list[Compiled]:
        """The native aggregations, in the order of their numbers."""
        return list(self._natives)

    def native(self, compiled: Compiled) -> str:
        """The kernel's name for a native aggregation."""
        return self._natives.setdefault(compiled, f"native:{len(self._natives)}")

    def add(self, values: ValueColumn, encoding: str) -> int:
        """Adds a column in one encoding; returns its index."""
        key = (values.name, values.view, encoding)
        if key not in self._known:
            self._known[key] = len(self.columns)
            as_ranks = encoding == "order" and values.family == "text"
            self.portable.append(encoding not in ("rows", "codes") and not as_ranks)
            self.columns.append(values.encoded(encoding))
        return self._known[key]


def _apply_nan_policy(column: pa.Array, nan: str, name: str) -> pa.Array:
    """Applies `nan=`: keeps NaN, makes it null, or refuses it."""
    if nan == "propagate" or not pa.types.is_floating(column.type):
        return column
    is_nan = pc.is_nan(column)
    if nan == "skip":
        return pc.if_else(pc.fill_null(is_nan, False), None, column)
    row = pc.index(is_nan, True).as_py()
    if row >= 0:
        raise SpecError(
            f"column {name!r} is NaN in row {row} (counting from 0), and ",
            Argument("nan", "raise"),
        )
    return column


def storage_of(column: pa.Array) -> pa.Array:
    """The storage of an extension type, or a type of these values with more kernels.

    Arrow hashes and sorts large strings and decimal128, but neither string views nor
    decimals of 32 and 64 bits.
    """
    if isinstance(column, pa.ExtensionArray):
        return storage_of(column.storage)
    if pa.types.is_decimal32(column.type) or pa.types.is_decimal64(column.type):
        return column.cast(pa.decimal128(column.type.precision, column.type.scale))
    return without_views(column)


def without_views(column: pa.Array) -> pa.Array:
    """A column in its `type_without_view`."""
    kind = type_without_view(column.type)
    return column if column.type == kind else column.cast(kind)


def take(column: pa.Array, rows: pa.Array) -> pa.Array:
    """The values at some rows of a column of any type; Arrow's `take` lacks views."""
    plain = without_views(column).take(rows)
    return plain if plain.type == column.type else plain.cast(column.type)


def one_column(arrays: Sequence[pa.Array]) -> pa.Array:
    """Concatenates arrays; arrays of nulls only may have another type."""
    tables = [pa.table({"": array}) for array in arrays]
    column = pa.concat_tables(tables, promote_options="permissive").column(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return one_array(column)


def with_nulls(column: pa.Array, mask: pa.Array) -> pa.Array:
    """A column that is null where `mask` is true, of any type."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, with_nulls(column.storage, mask))
    if kind in (pa.string_view(), pa.binary_view()):
        return with_nulls(storage_of(column), mask).cast(kind)
    nulled = pc.if_else(mask, pa.scalar(None, kind), column)
    # Arrow widens decimals of 32 and 64 bits.
    return nulled if nulled.type == kind else nulled.cast(kind)


def decode_dictionary(column: pa.Array) -> pa.Array:
    """The values of a dictionary-encoded column; any other column unchanged."""
    if not pa.types.is_dictionary(column.type):
        return column
    return storage_of(column.dictionary).take(column.indices)


def cast_lossless(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Casts a column without loss.

    Raises:
        pyarrow.ArrowInvalid: If a value would change.
    """
    if column.type == kind:
        return column
    cast = column.cast(kind)
    if pa.types.is_null(column.type):
        return cast
    if not is_same(cast.cast(column.type), column):
        raise pa.ArrowInvalid(f"{column.type} does not go into {kind} without loss")
    return cast


def is_same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two columns of one type have equal values, NaN being equal to NaN."""
    if one.equals(other) or not pa.types.is_floating(one.type):
        return bool(one.equals(other))
    nans = [pc.is_nan(column) for column in (one, other)]
    rest = [
        pc.if_else(nan, None, column)
        for nan, column in zip(nans, (one, other), strict=True)
    ]
    return bool(nans[0].equals(nans[1]) and rest[0].equals(rest[1]))


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
    """The int64 numbers 0, 1, 2, ..."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, _INT64), count), start=-1)


def single_group(rows: int) -> pa.Array:
    """The key codes of a table without keys."""
    return pa.repeat(pa.scalar(0, _CODE), rows)


def group_codes(
    columns: Sequence[tuple[str, pa.Array]], *, in_order: bool = True
) -> pa.Array | None:
    """Dense codes of the distinct keys as uint32; null is a key.

    Args:
        columns: Names and key columns.
        in_order: Whether codes must be numbered in order of first occurrence.
    """
    if len(columns) == 1 and not in_order:
        near = _dense_integer_codes(columns[0][1])
        if near is not None:
            return near
    codes: pa.Array | None = None
    for name, column in columns:
        code, count = _codes(name, column)
        if codes is not None:
            # Both factors are at most the number of rows, so the product fits int64.
            ahead = pc.multiply(codes.cast(_INT64), pa.scalar(count, _INT64))
            pairs = pc.add(ahead, code.cast(_INT64))
            code, _ = _codes(name, pairs)
        codes = code
    return codes


def _dense_integer_codes(column: pa.Array) -> pa.Array | None:
    """Integers of a small range as codes without hashing; None for others.

    Hashing takes longer than most aggregations.
    """
    if not pa.types.is_integer(column.type) or column.null_count or len(column) == 0:
        return None
    ends = pc.min_max(column).as_py()
    codes = min(len(column), _CODES)
    if ends["max"] - ends["min"] >= codes or ends["max"] > _LARGEST:
        return None
    if ends["min"] >= 0 and ends["max"] < codes:
        # Some codes may be unused.
        return column.cast(_CODE)
    near = pc.subtract(column.cast(_INT64), pa.scalar(ends["min"], _INT64))
    return near.cast(_CODE)


def _codes(name: str, column: pa.Array) -> tuple[pa.Array, int]:
    column = storage_of(column)
    if pa.types.is_dictionary(column.type):
        # A dictionary may hold a key twice, or null; its values decide.
        column = decode_dictionary(column)
    if pa.types.is_floating(column.type):
        # −0.0 and 0.0 are one key, and all NaNs are one key.
        column = pc.add(column.cast(pa.float64()), 0.0)
        column = pc.if_else(pc.is_nan(column), float("nan"), column)
    if pa.types.is_nested(column.type):
        # Arrow hashes neither structs nor lists.
        column = _key_bytes(name, column)
    try:
        encoded = column.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError as error:
        raise _no_key(name, column) from error
    return encoded.indices.view(_CODE), len(encoded.dictionary)


def key_hashes(columns: Iterable[tuple[str, pa.Array]], rows: int) -> pa.Array:
    """An int64 hash of the key of each row, the same in all processes."""
    mixed = pa.repeat(pa.scalar(0, _INT64), rows)
    for name, column in columns:
        plain = storage_of(decode_dictionary(column))
        own = pa.array(_core.hashes(_key_bytes(name, plain)))
        mixed = pc.add(pc.multiply(mixed, pa.scalar(31, _INT64)), own)
    return mixed


def _key_bytes(name: str, column: pa.Array) -> pa.Array:
    """A key column as binary: equal values are equal keys, and null is one."""
    try:
        return pa.array(_core.key_bytes(column))
    except TypeError as error:
        raise _no_key(name, column) from error


def _no_key(name: str, column: pa.Array) -> SpecError:
    return SpecError(
        f"column {name!r} ({column.type}) cannot be a key: keys are numbers, text, "
        "times and the like, and structs and lists of these"
    )
