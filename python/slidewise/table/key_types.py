"""Keys of one table in the types of another, so that equal keys are equal there.

Integers, floats and text may have another width, decimals and times another scale, and
what is missing has no type of its own; both also within structs and lists.
"""

import pyarrow as pa

from slidewise.frames.column_types import is_list
from slidewise.table.arrays import cast_lossless

__all__ = ["cast_key"]


def cast_key(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Casts a key column without loss.

    Raises:
        pyarrow.ArrowInvalid: If a key would change, or can never be equal to one of
            this type.
    """
    if column.type == kind:
        return column
    return cast_lossless(column.cast(_typed(column.type, kind)), kind)


def _typed(given: pa.DataType, kind: pa.DataType) -> pa.DataType:
    """The given type, with types of `kind` for parts that hold nulls only."""
    types = pa.types
    if given == kind or types.is_null(given):
        return kind
    if types.is_struct(given) and types.is_struct(kind):
        known = {field.name: field.type for field in kind.fields}
        fields = given.fields
        names = [field.name for field in fields]
        if sorted(names) != sorted(known):
            raise pa.ArrowInvalid(f"its fields are {names}, not {list(known)}")
        parts = [(part.name, _typed(part.type, known[part.name])) for part in fields]
        return pa.struct(parts)
    if is_list(given) and is_list(kind):
        item = _typed(given.value_type, kind.value_type)
        if types.is_fixed_size_list(given):
            return pa.list_(item, given.list_size)
        return pa.large_list(item) if types.is_large_list(given) else pa.list_(item)
    if _family(given) != _family(kind):
        raise pa.ArrowInvalid("keys of different kinds are never equal")
    return given


def _family(kind: pa.DataType) -> str:
    types = pa.types
    families = {
        "integer": types.is_integer,
        "float": types.is_floating,
        "decimal": types.is_decimal,
        "time": types.is_time,
        "duration": types.is_duration,
    }
    for family, holds in families.items():
        if holds(kind):
            return family
    if types.is_date(kind) or (types.is_timestamp(kind) and kind.tz is None):
        return "local"
    if types.is_timestamp(kind):
        return "instant"
    if kind in (pa.string(), pa.large_string(), pa.string_view()):
        return "text"
    if types.is_fixed_size_binary(kind) or kind in (
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
    ):
        return "binary"
    return str(kind)
