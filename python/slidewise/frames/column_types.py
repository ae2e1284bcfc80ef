"""Questions about the types of Arrow columns."""

from collections.abc import Callable

import pyarrow as pa

__all__ = ["is_list", "is_number", "is_text", "replace_types", "type_without_view"]


def is_list(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists, but not views of them.

    Example:
        >>> is_list(pa.list_(pa.int8(), 2)), is_list(pa.list_view(pa.int8()))
        (True, False)
    """
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds integers, floats or decimals."""
    types = pa.types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text.

    Example:
        >>> is_text(pa.string()), is_text(pa.int64())
        (True, False)
    """
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or kind == pa.string_view()
        or (pa.types.is_dictionary(kind) and is_text(kind.value_type))
    )


def type_without_view(kind: pa.DataType) -> pa.DataType:
    """The type of a column as text or bytes with offsets, if it is a view of these.

    Arrow cannot sort and take views. Those in structs and lists count as well.

    Example:
        >>> type_without_view(pa.list_(pa.string_view()))
        ListType(list<item: large_string>)
    """
    return replace_types(kind, _with_offsets)


def _with_offsets(kind: pa.DataType) -> pa.DataType | None:
    if kind == pa.string_view():
        return pa.large_string()
    return pa.large_binary() if kind == pa.binary_view() else None


def replace_types(
    kind: pa.DataType, replacement: Callable[[pa.DataType], pa.DataType | None]
) -> pa.DataType:
    """A type with some types replaced, those in structs and lists as well.

    Args:
        kind: The type.
        replacement: The type in place of one; None if it stays.
    """

    def replaced(field: pa.Field) -> pa.Field:
        return field.with_type(replace_types(field.type, replacement))

    other = replacement(kind)
    if other is not None:
        return other
    if pa.types.is_struct(kind):
        return pa.struct([replaced(field) for field in kind.fields])
    if pa.types.is_list(kind):
        return pa.list_(replaced(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(replaced(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(replaced(kind.value_field), kind.list_size)
    return kind
