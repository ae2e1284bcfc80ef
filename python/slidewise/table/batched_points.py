"""Query points among a sorted stream of rows, in bounded memory: `at=` by batches.

Rows and query points come together, sorted by key and time (with `arrival=`: by key and
arrival). Results come in the order of the query points. Between batches this is held:

- the rows of the current key within reach of the windows of query points that are still
  to come, with the input columns alone;
- the query points whose windows are still open, because rows of the same time, or later
  ones within an `offset=`, may follow.

As in `batched_rolling`, new rows are collected until they are as many as those held.
With `arrival=`, and for windows that may begin at any row, the rows and query points of
a key are held until all have come.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.arrow import append_columns
from slidewise.frames.base import empty_table, one_array
from slidewise.spec.spec import Spec
from slidewise.table.asof import PointColumns, query_points_of, ticks_as
from slidewise.table.batched_rolling import (
    Order,
    Reach,
    check_rows,
    copied,
    describe_row,
    first_from,
    needs_whole_keys,
    open_run,
)
from slidewise.table.kernel_call import KernelCall
from slidewise.table.rolling import rolling_spec
from slidewise.table.time_columns import read_times

__all__ = ["PointRows", "point_batches", "point_schema"]


@dataclass(frozen=True, slots=True)
class PointRows:
    """The query points of a stream of batches.

    A query point has its key, time and arrival in the columns of the rows, too, in
    their types: its place in the order. A value that such a type does not hold is null
    there, or the nearest one that it holds.

    Attributes:
        column: The column of query points: structs, which are null in rows.
        names: The names of the fields of a query point.
        columns: Those that hold its time, keys and arrival.
    """

    column: str
    names: tuple[str, ...]
    columns: PointColumns

    def split(self, batch: pa.RecordBatch) -> tuple[pa.Table, pa.Table]:
        """The rows and the query points of a batch, with all their columns."""
        table = pa.Table.from_batches([batch])
        is_point = batch.column(self.column).is_valid()
        return table.filter(pc.invert(is_point)), table.filter(is_point)

    def table_of(self, points: pa.Table) -> pa.Table:
        """The query points as a table of their fields, with keys that are not fields.

        Example:
            >>> import pyarrow as pa
            >>> columns = PointColumns("t", ["part"], [])
            >>> points = pa.table({"p": [{"0": 5}], "part": [1], "x": [2]})
            >>> PointRows("p", ("t",), columns).table_of(points).to_pylist()
            [{'t': 5, 'part': 1}]
        """
        fields = one_array(points.column(self.column)).flatten()
        table = pa.Table.from_arrays(fields, [*self.names])
        for name in self.columns.by:
            if name not in self.names:
                table = table.append_column(name, points.column(name))
        return table

    def checked(
        self, batches: Iterable[pa.RecordBatch], spec: Spec
    ) -> Iterator[pa.RecordBatch]:
        """The batches; their rows have passed `check_rows`, the query points as well.

        Raises:
            SpecError: If a query point has no time, or one that the column of times of
                the rows cannot be compared with.
        """
        times = None
        for batch in batches:
            # To copy the rows takes longer than all else here.
            missing = sum(batch[name].null_count for name in spec.times)
            if missing or spec.nan == "raise":
                for rows in self.split(batch)[0].to_batches():
                    check_rows(rows, spec)
            points = pa.Table.from_batches([batch])
            points = points.filter(batch.column(self.column).is_valid())
            if times is None:
                call = KernelCall(frame(empty_table(batch.schema)), spec)
                names = [self.columns.on, *self.columns.arrivals]
                times = [*zip([call.times, *call.arrivals], names, strict=True)]
            table = self.table_of(points)
            for column, name in times:
                if table[name].null_count:
                    row = pc.index(pc.is_null(table[name]), True).as_py()
                    raise SpecError(
                        f"column {name!r} of at= has no time in "
                        f"{describe_row(points, row, spec)}: drop the row, or fill it "
                        "in"
                    )
                ticks_as(column, frame(table), name, "at=")
            yield batch


def point_schema(
    spec: Spec, rows: pa.Schema, points: pa.Schema, columns: PointColumns
) -> pa.Schema:
    """The schema of the results of query points with this schema.

    Raises:
        SpecError: If the columns of both do not fit.

    Example:
        >>> import slidewise as sw
        >>> spec = Spec.make(on="t", windows=5, aggs={"n": sw.count()})
        >>> rows, points = pa.schema({"t": pa.int64()}), pa.schema({"at": pa.int64()})
        >>> point_schema(spec, rows, points, PointColumns.of(spec, "at")).names
        ['at', 'n_5']
    """
    at, rows = empty_table(points), empty_table(rows)
    results: pa.Schema = rolling_spec(rows, spec, at, [columns], threads=1).schema
    return results


def point_batches(
    batches: Iterable[pa.RecordBatch],
    spec: Spec,
    schema: pa.Schema,
    points: PointRows,
    order: Order | None = None,
) -> Iterator[pa.Table]:
    """Yields the query points with their results, in parts.

    Args:
        batches: Rows and query points, sorted by key and time, or by key and arrival if
            the spec has one. They have passed `PointRows.checked`.
        spec: The windows and aggregations.
        schema: The schema of the batches.
        points: Their query points.
        order: Their order, beyond key and time.

    Raises:
        SpecError: If the spec or a key of a query point does not fit.
        ResultOverflowError: If an integer result does not fit its type.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> at = [None, {"0": 2}, {"0": 4}, None]
        >>> rows = pa.table({"t": [1, 2, 4, 4], "x": [1, 0, 0, 3], "at": at})
        >>> spec = Spec.make(on="t", windows=2, aggs={"s": sw.sum("x")})
        >>> points = PointRows("at", ("when",), PointColumns.of(spec, "when"))
        >>> batches = rows.to_batches(max_chunksize=1)
        >>> parts = point_batches(batches, spec, rows.schema, points)
        >>> pa.concat_tables(parts).to_pylist()
        [{'when': 2, 's_2': 1}, {'when': 4, 's_2': 3}]
    """
    run = _Points(spec, schema, points, order or Order())
    for batch in batches:
        run.add(batch)
        if run.enough:
            yield from run.emit_ready()
    yield from run.emit_ready(done=True)


class _Points:
    """The state between batches."""

    def __init__(
        self, spec: Spec, schema: pa.Schema, points: PointRows, order: Order
    ) -> None:
        self._spec = spec
        self._points = points
        self._min_rows = order.min_rows
        self._runs = order.runs_of(spec)
        self._row_columns = [*dict.fromkeys([*spec.columns, *self._runs])]
        order_columns = [*spec.by, *spec.times, *self._runs, points.column]
        self._point_columns = [*dict.fromkeys(order_columns)]
        self._rows = [empty_table(schema).select(self._row_columns)]
        empty = empty_table(schema).select(self._point_columns)
        self._waiting = [empty]
        self._latest = empty
        # The numbers of new rows and query points, and of those held.
        self._count = self._held = 0
        self._reach = Reach.of(spec, schema)
        self._by_keys = bool(spec.arrivals) or needs_whole_keys(spec)
        fields = points.table_of(empty).schema
        results = point_schema(spec, schema, fields, points.columns)
        self._results = list(results)[len(fields) :]

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds rows and query points."""
        if not batch.num_rows:
            return
        rows, points = self._points.split(batch)
        self._rows.append(rows.select(self._row_columns))
        self._waiting.append(points.select(self._point_columns))
        latest = pa.Table.from_batches([batch]).slice(batch.num_rows - 1)
        self._latest = latest.select(self._point_columns)
        self._count += batch.num_rows

    @property
    def enough(self) -> bool:
        """Whether there are enough new rows to go over those held."""
        return self._count >= max(self._min_rows, self._held)

    def emit_ready(self, *, done: bool = False) -> Iterator[pa.Table]:
        """Yields the query points whose windows are over; all if `done`."""
        rows = pa.concat_tables(self._rows).combine_chunks()
        points = pa.concat_tables(self._waiting).combine_chunks()
        ready = len(points) if done else self._ready(points)
        if ready:
            yield self._with_results(points.slice(0, ready), rows)
        if done:
            return
        points = copied(points.slice(ready))
        rows = copied(rows.slice(self._first_needed(rows, points)))
        self._rows, self._waiting = [rows], [points]
        self._count, self._held = 0, len(rows) + len(points)

    def _ready(self, points: pa.Table) -> int:
        """The end of the query points whose windows are over."""
        start = open_run(points, self._runs, self._latest)
        if self._by_keys:
            return start
        end = self._ticks(self._latest)[0].as_py() - self._reach.ahead
        return first_from(self._ticks(points), end, start)

    def _first_needed(self, rows: pa.Table, waiting: pa.Table) -> int:
        """The first row that is still needed."""
        start = open_run(rows, self._runs, self._latest)
        if self._by_keys:
            return start
        ticks = self._ticks(rows)
        earliest = self._ticks(waiting if len(waiting) else self._latest)[0].as_py()
        first = first_from(ticks, earliest - self._reach.back, start)
        if not self._reach.rows:
            return first
        if self._runs != self._spec.by:
            return start  # its keys are mixed
        last = first_from(ticks, earliest, start)
        return min(first, max(start, last - self._reach.rows))

    def _ticks(self, rows: pa.Table) -> pa.Array:
        name = self._spec.on
        return read_times(one_array(rows.column(name)), name).ticks

    def _with_results(self, points: pa.Table, rows: pa.Table) -> pa.Table:
        name_row = partial(describe_row, points, spec=self._spec, noun="row of at=")
        call = KernelCall(frame(rows), self._spec, name_row=name_row)
        table = self._points.table_of(points)
        columns = self._points.columns
        found = call.compute(query_points_of(frame(table), call, call.spec, columns))
        arrays: list[Any] = [value.array for of in found for value in of.values()]
        names = [field.name for field in self._results]
        types = [field.type for field in self._results]
        results = [array.cast(to) for array, to in zip(arrays, types, strict=True)]
        fields = table.select([*range(len(self._points.names))])
        return append_columns(fields, names, results)
