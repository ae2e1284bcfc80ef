"""Null results replaced by the values of `fill=`."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError
from slidewise.table.python_values import array_of

__all__ = ["fill_nulls"]


def fill_nulls(column: pa.Array, value: Any, name: str) -> pa.Array:
    """A result column with a value in place of nulls.

    Args:
        column: The column. One of nulls only has no type, and gets that of the value.
        value: The value.
        name: The name of the column, for messages.

    Raises:
        SpecError: If the value does not fit the type, or the type is nested.

    Example:
        >>> fill_nulls(pa.array([1.5, None]), 0, "mean_1h").to_pylist()
        [1.5, 0.0]
    """
    kind = column.type
    if pa.types.is_null(kind):
        return pa.repeat(pa.scalar(value), len(column))
    if pa.types.is_nested(kind):
        raise SpecError(
            Argument("fill"),
            f" does not apply to the result {name!r}, which holds {kind}: give a "
            "mapping from the other aggregations to their values",
        )
    try:
        (own,) = array_of([value], kind, rounds=True)
    except (ValueError, OverflowError) as error:
        raise SpecError(
            Argument("fill", value),
            f" does not fit the result {name!r}, which holds {kind} ({error}): give a "
            "mapping from names of aggregations to values that fit",
        ) from error
    if not column.null_count:
        return column
    if not pa.types.is_dictionary(kind):
        return pc.fill_null(column, own)
    values = column.dictionary
    place = pc.index(values, own.as_py()).as_py()
    if place < 0:
        place, values = (
            len(values),
            pa.concat_arrays([values, pa.array([own.as_py()], values.type)]),
        )
    indices = pc.fill_null(column.indices, pa.scalar(place, kind.index_type))
    return pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)
