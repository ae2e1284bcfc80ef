"""A table whose columns are read and converted once, for several kernel calls."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from slidewise.frames.base import Frame, Result
from slidewise.table.arrays import take
from slidewise.table.encoding import ValueColumns
from slidewise.table.time_columns import TimeColumn, read_times

__all__ = ["Source"]

_T = TypeVar("_T")


class Source:
    """A frame that keeps the columns which were read, and their encodings.

    Args:
        table: The frame.
        rows: The numbers of the rows that it has of the frame; None for all.
    """

    def __init__(self, table: Frame, rows: pa.Array | None = None) -> None:
        self._table, self._rows = table, rows
        self._columns: dict[str, pa.Array] = {}
        self._times: dict[str, TimeColumn] = {}
        self._values: dict[str, ValueColumns] = {}
        self.times_beside = table.times_beside

    @classmethod
    def of(cls, table: Frame) -> "Source":
        """A frame as a source, unless it is one."""
        return table if isinstance(table, Source) else cls(table)

    def of_rows(self, rows: pa.Array) -> "Source":
        """Some of its rows, by their numbers."""
        return Source(self, rows)

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""
        return self._table.names

    @property
    def length(self) -> int:
        """The number of rows."""
        return self._table.length if self._rows is None else len(self._rows)

    def column(self, name: str) -> pa.Array:
        """A column as one Arrow array."""
        return _once(self._columns, name, self._read)

    def _read(self, name: str) -> pa.Array:
        column = self._table.column(name)
        return column if self._rows is None else take(column, self._rows)

    def times(self, name: str) -> TimeColumn:
        """A column of times."""
        return _once(
            self._times, name, lambda name: read_times(self.column(name), name)
        )

    def values(self, nan: str) -> ValueColumns:
        """The aggregated columns, with `nan=` as given."""
        return _once(self._values, nan, lambda nan: ValueColumns(self.column, nan))

    def never_null(self, name: str) -> bool:
        """Whether the type of a column has no missing value."""
        return self._table.never_null(name)

    def dtype(self, name: str) -> Any:
        """The type of a column in its own library."""
        return self._table.dtype(name)

    def append(self, results: Mapping[str, Result]) -> Any:
        """The caller's table with the results appended as columns."""
        return self._table.append(results)

    def make(self, columns: Mapping[str, Result]) -> Any:
        """A table of the caller's type with these columns alone."""
        return self._table.make(columns)


def _once(known: dict[str, _T], name: str, make: Callable[[str], _T]) -> _T:
    if name not in known:
        known[name] = make(name)
    return known[name]
