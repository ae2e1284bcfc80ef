"""Operations that Arrow lacks for arrays of some types.

Views, decimals of 32 and 64 bits, dictionaries and extension types are among them.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.frames.base import one_array
from slidewise.frames.column_types import type_without_view

__all__ = [
    "cast_lossless",
    "decode_dictionary",
    "is_same",
    "one_column",
    "row_numbers",
    "storage_of",
    "take",
    "with_nulls",
    "without_views",
]

_INT64 = pa.int64()


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


def row_numbers(count: int) -> pa.Array:
    """The int64 numbers 0, 1, 2, ..."""
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, _INT64), count), start=-1)
