"""Hopping and session windows over a sorted stream of batches, in bounded memory.

A window is emitted once, when a row after its end has come. Between batches the rows
of the current key that open windows need are held.
"""

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import empty_table
from slidewise.spec.spec import Spec
from slidewise.spec.windows.base import Window
from slidewise.table.batched_rolling import (
    Order,
    checked_batches,
    describe_row,
    needs_whole_keys,
    run_codes,
    whole_keys,
)
from slidewise.table.hopping import (
    Windows,
    compute_several,
    compute_windows,
    find_windows,
    hopping_spec,
)
from slidewise.table.kernel_call import KernelCall
from slidewise.table.time_columns import window_ticks

__all__ = ["hopping_batches", "hopping_schema"]


def hopping_schema(spec: Spec, schema: pa.Schema) -> pa.Schema:
    """The schema of the windows over rows of this schema.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> spec = Spec.make_hopping(on="t", window=5, aggs={"n": sw.count()})
        >>> hopping_schema(spec, pa.schema({"t": pa.int64()})).names
        ['window_start', 'window_end', 'n']
    """
    answered: pa.Schema = hopping_spec(empty_table(schema), spec, threads=1).schema
    return answered


def hopping_batches(
    batches: Iterable[pa.RecordBatch],
    spec: Spec,
    schema: pa.Schema,
    order: Order | None = None,
) -> Iterator[pa.Table]:
    """Yields the windows with their results, in parts.

    Args:
        batches: Sorted by key and time.
        spec: The window and aggregations.
        schema: The schema of the batches.
        order: Their order, beyond key and time; `roles` are ignored.

    Raises:
        SpecError: If the spec does not fit, or a row has no time.
        ResultOverflowError: If an integer result does not fit its type.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> rows = pa.table({"t": [1, 4, 11]})
        >>> spec = Spec.make_hopping(on="t", window=10, aggs={"n": sw.count()})
        >>> parts = hopping_batches(rows.to_batches(max_chunksize=1), spec, rows.schema)
        >>> pa.concat_tables(parts)["n"].to_pylist()
        [2, 1]
    """
    order = order or Order()
    batches = checked_batches(batches, spec, order)
    if needs_whole_keys(spec):
        results = hopping_schema(spec, schema)
        compute = partial(_whole, within=order.within)
        yield from whole_keys(batches, compute, spec, results, order)
        return
    run = _Hopping(spec, schema, order)
    for batch in batches:
        run.add_rows(pa.Table.from_batches([batch]))
        if run.enough:
            yield from run.emit_ready()
    yield from run.emit_ready(done=True)


def _whole(
    rows: pa.Table, spec: Spec, *, threads: int, within: tuple[str, str] | None
) -> pa.Table:
    """The windows of a table that are within two columns of it."""
    if within is None:
        return hopping_spec(rows, spec, threads=threads)
    request = KernelCall(frame(rows), spec, threads=threads)
    found = [
        _bounded(rows, find_windows(request, spec, at), within, window)
        for at, window in enumerate(spec.windows)
    ]
    table: pa.Table = frame(rows).make(compute_several(request, found))
    return table


def _bounded(
    rows: pa.Table, windows: Windows, within: tuple[str, str] | None, window: Window
) -> Windows:
    """The windows within two columns of the rows, as `Order.within` is meant."""
    if within is None or not len(windows.ends):
        return windows
    first, last = (frame(rows).column(name).take(windows.rows) for name in within)
    after, until = pc.greater, pc.less_equal
    if not window.includes_start:
        after, until = pc.greater_equal, pc.less
    inside = pc.and_(
        pc.fill_null(after(windows.ends, first), True),
        pc.fill_null(until(windows.ends, last), True),
    )
    return windows.filter(inside)


class _Hopping:
    """The state between batches."""

    def __init__(self, spec: Spec, schema: pa.Schema, order: Order) -> None:
        self._spec = spec
        self._min_rows = order.min_rows
        self._within = order.within
        self._schema = hopping_schema(spec, schema)
        self._runs = order.runs_of(spec)
        self._input_columns = list(
            dict.fromkeys([*spec.columns, *self._runs, *(order.within or ())])
        )
        self._rows = [empty_table(schema).select(self._input_columns)]
        self._needed = self._count = 0
        # The end of the last emitted window of the current run.
        self._emitted: int | None = None

    def add_rows(self, rows: pa.Table) -> None:
        """Adds rows."""
        self._rows.append(rows.select(self._input_columns))
        self._count += rows.num_rows

    @property
    def enough(self) -> bool:
        """Whether there are enough new rows to compute them with those still needed."""
        return self._count >= max(self._min_rows, self._needed)

    def emit_ready(self, *, done: bool = False) -> Iterator[pa.Table]:
        """Yields the windows that are over; all windows if `done`."""
        rows = pa.concat_tables(self._rows).combine_chunks()
        if not rows.num_rows:
            return
        request = KernelCall(frame(rows), self._spec)
        request.name_row = lambda row: describe_row(rows, row, self._spec)
        windows = find_windows(request, self._spec)
        codes = run_codes(rows, self._runs)
        runs = codes.take(windows.rows)
        going = pc.equal(runs, -1 if done else codes[-1])
        over = pc.or_(pc.invert(going), self._over(request, windows.ends))
        due = windows.filter(pc.and_(over, self._fresh(windows, runs, codes[0])))
        due = _bounded(rows, due, self._within, self._spec.windows[0])
        if len(due.ends):
            yield self._table(request, due)
        passed = windows.filter(pc.and_(going, over))
        if len(passed.ends):
            self._emitted = pc.max(passed.ends).as_py()
        elif done or codes[0] != codes[-1]:
            self._emitted = None
        ahead = windows.filter(pc.and_(going, pc.invert(over)))
        ticks = request.times.ticks
        # Keep the last row, to compare its run with that of the next row.
        needed = [ticks[-1].as_py(), pc.min(ahead.starts).as_py()]
        if self._spec.empty and len(passed.ends):
            # Empty windows are emitted only after the first one with rows.
            needed.append(passed.starts[-1].as_py())
        bound = min(tick for tick in needed if tick is not None)
        start = int(pc.index(codes, codes[-1]).as_py())
        rest = rows.slice(start).filter(pc.greater_equal(ticks.slice(start), bound))
        self._rows = [rest.combine_chunks()]
        self._needed, self._count = rest.num_rows, 0

    def _fresh(self, windows: Windows, runs: pa.Array, first: pa.Scalar) -> pa.Array:
        """The windows that have not been emitted."""
        if self._emitted is None:
            return pa.repeat(pa.scalar(True), len(runs))
        # Rows that are still needed come first, and belong to one run.
        later = pc.greater(windows.ends, self._emitted)
        return pc.or_(later, pc.not_equal(runs, first))

    def _over(self, request: KernelCall, ends: pa.Array) -> pa.Array:
        """Whether no later row of the last run can be in a window."""
        last = request.times.ticks[-1]
        (window,) = self._spec.windows
        ahead = window.open_until(lambda length: window_ticks(length, request.times))
        bound = last.as_py() - ahead
        if bound < -(2**63):
            return pa.repeat(pa.scalar(False), len(ends))
        return pc.less_equal(ends, bound)

    def _table(self, request: KernelCall, windows: Windows) -> pa.Table:
        answers = compute_windows(request, windows)
        try:
            columns = [
                answers[field.name].array.cast(field.type) for field in self._schema
            ]
        except pa.ArrowInvalid as error:
            raise SpecError(
                f"a window ends beyond what column {self._spec.on!r} can hold "
                f"({error}): cast the column to int64"
            ) from error
        return pa.Table.from_arrays(columns, schema=self._schema)
