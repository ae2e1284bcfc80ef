"""Casts the columns of batches to the types of a stream."""

from contextlib import suppress

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.table.key_types import cast_key

__all__ = ["cast_to_schema"]


def cast_to_schema(
    column: pa.ChunkedArray, field: pa.Field, given: pa.DataType
) -> pa.ChunkedArray:
    """A column in the type of the stream, if that keeps its values.

    The type of a column may differ between batches. In pandas and JSON a column without
    values is of nulls, and the values decide between floats and integers. Text has
    offsets of 32 bits in Arrow and of 64 bits in pandas and polars, which also have
    times in other units. The indices of categories have the least width. Pages hold
    categories as values.

    Args:
        column: The column, without views.
        field: The column of the stream.
        given: The type in the user's batch, for messages.

    Raises:
        SpecError: If the types differ otherwise, or a value does not fit.
    """
    kind, before = column.type, field.type
    if kind == before:
        return column
    is_ordered = pa.types.is_dictionary(kind) and kind.ordered
    if pa.types.is_dictionary(kind) and not is_ordered:
        kind = kind.value_type
    if pa.types.is_dictionary(before):
        before = before.value_type
    if not is_ordered and (
        kind in (before, pa.null())
        or {kind, before} == {pa.string(), pa.large_string()}
        or {kind, before} == {pa.binary(), pa.large_binary()}
    ):
        return column.cast(before)
    if pa.types.is_nested(kind) and pa.types.is_nested(before):
        # Text, bytes and numbers within them may have other widths.
        with suppress(pa.ArrowException):
            return cast_key(column, before)
    refusal = (
        f"column {field.name!r} is {given} in this batch, and was {field.type} before"
    )
    if not is_ordered and _may_fit(kind, before):
        try:
            return _exactly(column.cast(kind), before)
        except pa.ArrowInvalid as error:
            raise SpecError(
                f"{refusal}, which cannot hold all of its values ({error}): cast it, "
                "or make KeyedWindows with schema=, which has the types of all batches"
            ) from error
    fixed = "cast it"
    if not pa.types.is_null(before):
        fixed += ", or name its type in schema="
    if pa.types.is_null(before):
        fixed = "the first batch fixes it, if KeyedWindows are made without schema="
    raise SpecError(f"{refusal}: {fixed}")


def _may_fit(kind: pa.DataType, into: pa.DataType) -> bool:
    """Whether values of a type may be converted to another type."""
    types = pa.types
    if types.is_integer(kind):
        return bool(types.is_integer(into) or types.is_floating(into))
    if types.is_floating(kind):
        return bool(types.is_floating(into) and kind.bit_width < into.bit_width)
    if types.is_timestamp(kind) and types.is_timestamp(into):
        return (kind.tz is None) == (into.tz is None)
    return bool(types.is_decimal(kind) and types.is_decimal(into))


def _exactly(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column cast without loss.

    Raises:
        pyarrow.ArrowInvalid: If a value would change.
    """
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        # Arrow refuses all large integers, even those that a float represents exactly.
        if not (pa.types.is_integer(column.type) and pa.types.is_float64(kind)):
            raise
        if any(int(float(value)) != value for value in column.drop_null().to_pylist()):
            raise
        return column.cast(kind, safe=False)
