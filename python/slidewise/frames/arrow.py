"""Adapters of pyarrow's tables and record batches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from slidewise.frames.base import Frame, Result, one_array

__all__ = ["append_batch", "arrow_frame", "batch_frame"]


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
        return one_array(self._table.column(name))

    def never_null(self, name: str) -> bool:
        return not self._table.schema.field(name).nullable

    def dtype(self, name: str) -> Any:  # noqa: ARG002
        return None

    def append(self, results: Mapping[str, Result]) -> Any:
        table = self._table
        if table.num_columns < len(results):
            arrays = [result.array for result in results.values()]
            batch = pa.RecordBatch.from_arrays(arrays, names=list(results))
            return self._restore(append_batch(table, batch))
        for name, result in results.items():
            table = table.append_column(name, result.array)
        return self._restore(table)

    def make(self, columns: Mapping[str, Result]) -> Any:
        arrays = {name: result.array for name, result in columns.items()}
        return self._restore(pa.table(arrays))


def append_batch(table: pa.Table, batch: pa.RecordBatch) -> pa.Table:
    """A table with further columns; fast if it has fewer itself."""
    wide = pa.Table.from_batches([batch])
    schema = table.schema
    for at, field in enumerate(schema):
        wide = wide.add_column(at, field, table.column(at))
    return wide.replace_schema_metadata(schema.metadata) if schema.metadata else wide


def _as_table(table: pa.Table) -> pa.Table:
    return table


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    # As they are: `one_array` decodes run ends.
    arrays = [
        column.chunk(0) if column.num_chunks == 1 else one_array(column)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)
