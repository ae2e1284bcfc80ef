"""Encodes table columns as the int64 and float64 columns of the kernel, and back.

The kernel has these two types. A column of another type has three encodings:

- *number*, for arithmetic;
- *order*, an int64 or float64 that sorts like the values, for min, max and the like;
- *rows*, the row numbers, null where the value is null, for aggregations that select
  rows; the selected values are then taken from the column itself.
"""

from collections.abc import Callable, Sequence
from copy import copy

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations.compiled import Compiled
from slidewise.caching import cached_property
from slidewise.errors import Argument, SpecError
from slidewise.table.arrays import decode_dictionary, row_numbers, storage_of
from slidewise.table.decimals import as_numbers, can_sum, parts_of
from slidewise.table.group_codes import group_codes

__all__ = ["KernelInputs", "ValueColumn", "ValueColumns"]

_INT64 = pa.int64()
_SIGN = 2**63
_LOW_HALF = 2**32 - 1
_NUMBERS = ("number", "bool")


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

    def encoding_of(self, name: str) -> str:
        """The encoding of the column, by the name that a record has for it."""
        if name == "present":
            return "number" if self.family in _NUMBERS else "rows"
        if name == "distinct":
            has_order = self.family in (*_NUMBERS, "duration", "instant")
            return "order" if has_order else "codes"
        if name == "time":
            return "int64" if self.is_uint64 else "order"
        if name == "raw":
            return "raw_bits" if self.is_64_bit else "rows"
        if name == "whole":
            return "int64" if self.is_uint64 else "number"
        return name

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


def _is_sortable(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_decimal(kind)
    )
