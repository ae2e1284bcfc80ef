"""Rows that count once: `unique_by=` over tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.frames.base import Result
from slidewise.spec.spec import Spec
from slidewise.table.arrays import one_column, row_numbers, take
from slidewise.table.group_codes import group_codes
from slidewise.table.source import Source
from slidewise.table.time_columns import order_by

__all__ = ["UniqueRows", "explain_ids"]


def explain_ids(spec: Spec) -> list[str]:
    """Says which rows count, in a line; none without `unique_by`.

    Example:
        >>> import slidewise as sw
        >>> spec = Spec(
        ...     on="t", by="k", windows=5, aggs={"n": sw.count()}, unique_by="id"
        ... )
        >>> explain_ids(spec)
        ['of rows with equal k and id, the first to arrive counts']
    """
    if not spec.unique_by:
        return []
    *most, last = dict.fromkeys([*spec.by, *spec.unique_by])
    names = f"{', '.join(most)} and {last}" if most else last
    return [f"of rows with equal {names}, the first to arrive counts"]


@dataclass(frozen=True)
class UniqueRows:
    """The rows of a table by `unique_by=`: those that count, and their duplicates.

    Attributes:
        source: The table.
        counting: The rows that count; None if all do.
        duplicates: The other rows.
    """

    source: Source
    counting: pa.Array | None
    duplicates: pa.Array

    @classmethod
    def of(cls, source: Source, spec: Spec) -> "UniqueRows":
        """Those of a Spec.

        Of rows with equal keys and ids, the first to arrive counts. A row without an id
        always does.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> from slidewise.frames.adapt import frame
            >>> spec = Spec(on="t", windows=5, aggs={"n": sw.count()}, unique_by="id")
            >>> source = Source.of(frame(pa.table({"t": [1, 2, 3], "id": [*"aba"]})))
            >>> UniqueRows.of(source, spec).duplicates.to_pylist()
            [2]
        """
        rows = row_numbers(source.length)
        all_count = cls(source, None, rows.slice(0, 0))
        if not spec.unique_by or not source.length:
            return all_count
        names = dict.fromkeys((*spec.by, *spec.unique_by))
        codes = group_codes([(name, source.column(name)) for name in names])
        assert codes is not None, "there are columns"
        order = order_by([source.times(name).ticks for name in spec.arrivals])
        places = rows if order is None else pc.sort_indices(order)
        same_time = pa.repeat(pa.scalar(0, pa.int64()), len(rows))
        first, _ = _core.distinct_keys([codes.take(places)], same_time)
        counts = pc.is_in(rows, places.take(pa.array(first)).cast(rows.type))
        for name in spec.unique_by:
            counts = pc.or_(counts, source.column(name).is_null())
        duplicates = pc.indices_nonzero(pc.invert(counts))
        if not len(duplicates):
            return all_count
        # Messages about values name the row of the whole table.
        source.times(spec.on)
        if spec.nan == "raise":
            for name in dict.fromkeys(c for _, agg in spec.aggs for c in agg.columns):
                source.values(spec.nan).of(name)
        return cls(source, pc.indices_nonzero(counts), duplicates)

    @property
    def counted(self) -> Source:
        """The rows that count."""
        if self.counting is None:
            return self.source
        return self.source.of_rows(self.counting)

    def name_row(self, rows: pa.Array | None) -> Callable[[int], str] | None:
        """Names one of some rows in messages, by its number in the table."""
        if rows is None:
            return None
        return lambda row: f"row {rows[row]} (counting from 0)"

    def joined(
        self, counted: Mapping[str, Result], others: Mapping[str, Result]
    ) -> dict[str, Result]:
        """The results of the rows that count and of the duplicates, in table order.

        Results that the duplicates do not have are null there.
        """
        assert self.counting is not None, "there are duplicates"
        order = pc.sort_indices(pa.concat_arrays([self.counting, self.duplicates]))
        found = {}
        for name, result in counted.items():
            nulls = pa.nulls(len(self.duplicates), result.array.type)
            other = others.get(name) or result._replace(array=nulls, nullable=True)
            array = take(one_column([result.array, other.array]), order)
            nullable = result.nullable or other.nullable
            found[name] = result._replace(array=array, nullable=nullable)
        return found
