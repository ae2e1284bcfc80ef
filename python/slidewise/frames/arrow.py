"""Adapters of pyarrow's tables and record batches."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from slidewise.frames.base import Frame, Result, guarded, one_array

__all__ = ["append_columns", "arrow_frame", "batch_frame"]

# Up to this number, columns are appended one by one, which copies the others each time.
_FEW = 8


def arrow_frame(table: pa.Table) -> Frame:
    """Wraps a pyarrow Table."""
    return _ArrowFrame(table, _as_table)


def batch_frame(batch: pa.RecordBatch) -> Frame:
    """Wraps a pyarrow RecordBatch, which comes back as one."""
    return _ArrowFrame(pa.Table.from_batches([batch]), _as_batch)


class _ArrowFrame:
    """A pyarrow Table; `restore` makes the caller's type of one."""

    times_beside = ""

    def __init__(self, table: pa.Table, restore: Callable[[pa.Table], Any]) -> None:
        self._table = table
        self._restore = restore

    @property
    def names(self) -> Sequence[str]:
        return list(self._table.column_names)

    @property
    def length(self) -> int:
        return int(self._table.num_rows)

    def column(self, name: str) -> pa.Array:
        column = self._table.column(name)
        with guarded(f"column {name!r} of {column.type}"):
            return one_array(column)

    def never_null(self, name: str) -> bool:
        return not self._table.schema.field(name).nullable

    def dtype(self, name: str) -> Any:  # noqa: ARG002
        return None

    def append(self, results: Mapping[str, Result]) -> Any:
        arrays = [result.array for result in results.values()]
        return self._restore(append_columns(self._table, [*results], arrays))

    def make(self, columns: Mapping[str, Result]) -> Any:
        arrays = {name: result.array for name, result in columns.items()}
        return self._restore(pa.table(arrays))


def append_columns(
    table: pa.Table, names: Collection[str], arrays: Iterable[pa.Array]
) -> pa.Table:
    """A table with further columns, in time linear in all of them."""
    if len(names) <= _FEW:
        for name, array in zip(names, arrays, strict=True):
            table = table.append_column(name, array)
        return table
    added = pa.Table.from_arrays([*arrays], names=[*names])
    schema = pa.schema([*table.schema, *added.schema], table.schema.metadata)
    return pa.Table.from_arrays([*table.columns, *added.columns], schema=schema)


def _as_table(table: pa.Table) -> pa.Table:
    return table


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    # As they are: `one_array` decodes run ends.
    arrays = [
        column.chunk(0) if column.num_chunks == 1 else one_array(column)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)
