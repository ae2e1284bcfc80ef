"""The bytes of rows and of folded cells in the log, before there are any."""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations.registry import UserDefinedAggregation
from slidewise.frames.base import one_array
from slidewise.keyed.columns import ENTRY, repeated
from slidewise.keyed.index import Index
from slidewise.keyed.query import KeyedQuery
from slidewise.table.arrays import row_numbers

__all__ = ["Width", "folded_width", "width_of"]

# The bytes of an offset of text, binary and lists.
_OFFSET = 4


class Width(NamedTuple):
    """The bytes of a row in the log, about.

    Attributes:
        fixed: Those that do not depend on its values.
        more: What else depends on them, for a sentence.
    """

    fixed: int
    more: str = ""

    def __str__(self) -> str:
        return f"{self.fixed:,} bytes{self.more}"


def width_of(schema: pa.Schema) -> Width:
    """The width of rows with these columns.

    Example:
        >>> print(width_of(pa.schema({"t": pa.int64(), "k": pa.string()})))
        12 bytes and its text
    """
    widths = [_width(kind) for kind in schema.types]
    fixed = sum(_OFFSET if width is None else width for width in widths)
    return Width(fixed, " and its text" if None in widths else "")


def _width(kind: pa.DataType) -> int | None:
    """The bytes of a value of a type; None if they vary."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return None


def folded_width(query: KeyedQuery, rows: int) -> Width | None:
    """The width of the entry of a folded cell of some rows, with values of no meaning.

    None with user-defined aggregations, which may not expect such values.
    """
    cells = query.cells
    assert cells is not None, "the query has cells"
    if any(isinstance(agg, UserDefinedAggregation) for _, agg in query.spec.aggs):
        return None
    first, last = cells.last_tick(0) + 1, cells.every - query.step
    places = row_numbers(rows).cast(pa.int64())
    behind = pc.min_element_wise(pc.multiply(places, query.step), last)
    ticks = pc.add(behind, first)
    schema, by = query.stored_schema, query.spec.by
    key = repeated(0, rows)
    columns = [
        _values(key if one.name in by else places, one.type) for one in [*schema][1:]
    ]
    index = Index(query)
    index.insert(pa.Table.from_arrays([ticks, *columns], schema=schema))
    entries = one_array(index.fold_cells(None, cells.last_tick(first))[ENTRY])
    held = pc.sum(pc.binary_length(entries)).as_py()
    each, more = width_of(query.folded_schema.remove(len(by) + 1))
    return Width((each + _OFFSET) * len(entries) + held, more)


def _values(numbers: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers as values of a type; nulls of types that have none."""
    if pa.types.is_floating(kind):
        # Of such sums the rounding errors are kept, too.
        numbers = pc.multiply(numbers.cast(pa.float64()), 0.1)
    elif pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        numbers = numbers.cast(pa.int32()) if kind.bit_width == 32 else numbers
        numbers = pc.bit_wise_and(numbers, 127) if kind.bit_width == 8 else numbers
    elif not (pa.types.is_decimal(kind) or pa.types.is_boolean(kind)):
        numbers = numbers.cast(pa.string())
    try:
        return numbers.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(numbers), kind)
