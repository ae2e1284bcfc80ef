"""`KeyedQuery`: a `Spec` over a stream of rows.

It orders and checks rows, and makes their results. It calls the kernels of tables, so
its results equal those of tables.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations import count
from slidewise.aggregations.call import Call
from slidewise.caching import cached_property
from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.arrow import append_columns
from slidewise.frames.base import empty_table, one_array
from slidewise.keyed.cell_grid import CellGrid
from slidewise.keyed.columns import (
    ARRIVAL,
    EARLIEST,
    LATEST,
    NUMBER,
    ROWS,
    TIME,
    Ends,
    ends_of,
    later_than,
    order_of,
    repeated,
)
from slidewise.keyed.plan import StreamPlan
from slidewise.spec.outputs import outputs_of, own_beside
from slidewise.spec.spec import Spec, derive
from slidewise.spec.windows.base import Window
from slidewise.table.arrays import decode_dictionary, row_numbers
from slidewise.table.asof import query_points_of
from slidewise.table.batched_rolling import describe_row
from slidewise.table.group_codes import group_codes, single_group
from slidewise.table.kernel_call import KernelCall
from slidewise.table.points import QueryPoints
from slidewise.table.time_columns import order_by, read_times

__all__ = ["AHEAD", "CORRECTION", "LATE", "KeyedQuery", "flagged"]

# The flags of a late row, of a row that is ahead of the clock, and of a result that
# replaces an earlier one.
LATE = "_late"
AHEAD = "_ahead"
CORRECTION = "_correction"


class KeyedQuery(StreamPlan):
    """The plan of a Spec over a stream, with what it makes of rows."""

    def closing_rows(self, rows: pa.Table) -> pa.Table:
        """A copy of the rows that may close a window, by key, time and number."""
        places = row_numbers(len(rows))
        if self.flag_column is not None:
            flags = rows[self.flag_column].cast(pa.bool_()).combine_chunks()
            places = places.filter(pc.fill_null(flags, False))
        return rows.select([TIME, *self.spec.by, NUMBER]).take(places).combine_chunks()

    @cached_property
    def folds(self) -> bool:
        """Whether results are folds of entries, which need no rows."""
        whole = (
            self.rows
            or self.sessions
            or self.row_closed_window
            or self.backward_windows
            or self.carried_by_calendar
        )
        return not whole and self.request([])[1].folds

    @cached_property
    def entry_calls(self) -> Sequence[Call]:
        """The folds of entries that results are made of.

        If they need rows, only those of `carried_calls`.
        """
        return self.request([])[1].calls if self.folds else self.carried_calls

    @cached_property
    def carried_calls(self) -> tuple[Call, ...]:
        """The folds that give the times of the entries with which windows begin."""
        if not self.carries:
            return ()
        plans = self.request([])[1].plans
        return tuple(dict.fromkeys(by.before[0] for by in plans if by.before))

    @cached_property
    def finds_rows(self) -> bool:
        """Whether rows must be found again after their arrival."""
        again = self.then_by or self.deletes is not None or self.corrects
        found = not self.folds or self.divides_peers or self.carries
        return found or bool(again)

    @cached_property
    def cells(self) -> CellGrid | None:
        """The cells whose rows are folded behind the watermark; None if rows are kept.

        Rows are kept where they must be found again, or their ids are known by them.
        """
        if self.spec.is_hopping or self.spec.unique_by or self.finds_rows:
            return None
        return CellGrid.of(self.spec.windows, self.ticks_of, self.step)

    def ticks(self, rows: pa.Table) -> pa.Array:
        """The times of rows as int64.

        Raises:
            SpecError: If one is missing.
        """
        if TIME in rows.column_names:
            return one_array(rows.column(TIME))
        return read_times(one_array(rows.column(self.spec.on)), self.spec.on).ticks

    def timed(self, rows: pa.Table) -> pa.Table:
        """Rows of the state with their column of times."""
        if self.spec.on in rows.column_names:
            return rows
        times = self.times.restore(one_array(rows.column(TIME)))
        return rows.append_column(self.spec.on, times)

    def arrived(
        self, rows: pa.Table, *, copies: bool = True
    ) -> tuple[pa.Table, Ends | None]:
        """A batch in the columns of pending rows.

        Args:
            rows: The batch.
            copies: Whether to copy it, as its memory may change.

        Returns:
            The rows, and their earliest and latest time; None without rows.

        Raises:
            SpecError: As for `ticks`.
        """
        columns = [self.ticks(rows)]
        for one in list(self.pending_schema)[1:]:
            column = decode_dictionary(one_array(rows.column(one.name)))
            columns.append(column if column.type == one.type else column.cast(one.type))
        batch = pa.RecordBatch.from_arrays(columns, schema=self.pending_schema)
        if not copies:
            return pa.Table.from_batches([batch]), ends_of(columns[0])
        own, ends = _core.copy_rows(batch)
        return pa.Table.from_batches([pa.record_batch(own)]), ends

    def stored(self, pending: pa.Table) -> pa.Table:
        """The columns of pending rows that stay in the state after their results."""
        return pending.select([TIME, *self.stored_columns])

    def sort(self, rows: pa.Table) -> pa.Table:
        """Sorts rows in order of arrival by time.

        Rows of equal time are sorted by `then_by`, nulls last. With `arrival=` they
        stay in order of arrival.
        """
        ties = self.then_by if self.spec.arrival is None else ()
        return self._sorted(rows, (TIME, *ties))

    def sort_batch(self, rows: pa.Table) -> pa.Table:
        """Sorts rows of one batch by time, then by `arrival=`, then by `then_by`.

        Without either of these, rows stay in their order.
        """
        names = (*self.spec.arrivals, *self.then_by)
        return self._sorted(rows, (TIME, *names)) if names else rows

    @staticmethod
    def _sorted(rows: pa.Table, names: Iterable[str]) -> pa.Table:
        return rows.take(order_of(rows, names)).combine_chunks()

    @staticmethod
    def codes(tables: Sequence[pa.Table]) -> pa.Array:
        """Dense codes of the rows of several tables; equal rows have equal codes."""
        table = pa.concat_tables(tables).combine_chunks()
        columns = [
            (name, table.column(name).combine_chunks()) for name in table.column_names
        ]
        codes = group_codes(columns)
        if codes is None:
            return single_group(sum(map(len, tables)))
        return codes

    def latest(self, rows: pa.Table) -> pa.Table:
        """The distinct keys of rows, in order of first occurrence, with latest times.

        Keys are equal as in tables: both zeros are one key, and NaN is one.
        """
        by, ticks = list(self.spec.by), one_array(rows.column(TIME))
        found, latest = self._distinct(rows, by, ticks)
        keys = rows.select([*by, TIME]).take(found)
        return keys.set_column(len(by), TIME, latest)

    def refuse_nan(
        self,
        rows: pa.Table,
        watermark: int | None = None,
        name_row: Callable[[int], str] = "row {} (counting from 0)".format,
        limit: int = LATEST,
    ) -> None:
        """Checks a batch for NaN, for `nan="raise"`.

        Args:
            rows: The batch. Rows that are late or ahead, and deletions, may hold NaN.
            watermark: The watermark, or None.
            name_row: Names a row of the batch in the message.
            limit: The latest time of a row that is not ahead of the clock.

        Raises:
            SpecError: Naming the column and the row of the batch.
        """
        if self.spec.nan != "raise":
            return
        taken = None if watermark is None else self._on_time(rows, watermark)
        if limit < LATEST:
            in_time = pc.less_equal(self.ticks(rows), limit)
            taken = in_time if taken is None else pc.and_(taken, in_time)
        if self.deletes is not None:
            deletes = pc.fill_null(rows.column(self.deletes), False).combine_chunks()
            inserted = pc.invert(deletes)
            taken = inserted if taken is None else pc.and_(taken, inserted)
        names = dict.fromkeys(name for _, agg in self.spec.aggs for name in agg.columns)
        # Times are not floats.
        names.pop(self.spec.on, None)
        for name in names:
            column = decode_dictionary(rows.column(name).combine_chunks())
            if pa.types.is_floating(column.type):
                is_nan = pc.is_nan(column)
                row = pc.index(
                    is_nan if taken is None else pc.and_(is_nan, taken), True
                ).as_py()
                if row >= 0:
                    raise SpecError(
                        f"column {name!r} is NaN in {name_row(row)}, and ",
                        Argument("nan", "raise"),
                    )

    def refuse_values(self, rows: pa.Table) -> None:
        """As `refuse_nan`; also refuses windows on the grid that are beyond their type.

        Raises:
            SpecError: Naming the column and the row by its key and time, or the time.
        """
        self.refuse_nan(rows, name_row=self.naming(rows))
        if self.emit != "slide" or self.sessions or self.row_closed_window:
            return
        bits = 32 if pa.types.is_date32(self.times.original.type) else 64
        for part, window in zip(self.parts, self.spec.windows, strict=True):
            time = part.grid.beyond(rows.column(TIME), bits)
            if time is None:
                continue
            raise SpecError(
                f"the window of {window.label!r} around the time {time} (ticks of "
                f"column {self.spec.on!r}) reaches beyond the times that int{bits} can "
                "hold: drop the row, or cast the column to a coarser unit"
            )

    def by_lateness(
        self, rows: pa.Table, watermark: int | None, ends: Ends | None
    ) -> tuple[pa.Table, pa.Table]:
        """Splits rows into accepted and late ones.

        Args:
            rows: The rows.
            watermark: The watermark, or None.
            ends: The earliest and the latest time of the rows; None without rows.
        """
        none = rows.slice(0, 0)
        if watermark is None or ends is None or ends[0] > watermark:
            return rows, none
        on_time = self._on_time(rows, watermark)
        if pc.all(on_time).as_py():
            return rows, none
        return rows.filter(on_time).combine_chunks(), rows.filter(pc.invert(on_time))

    def _on_time(self, rows: pa.Table, watermark: int) -> pa.Array:
        """A mask of the accepted rows."""
        ticks = self.ticks(rows)
        on_time = later_than(ticks, watermark - self.allowance)
        if self.corrects and self.deletes is not None:
            deletes = pc.fill_null(rows.column(self.deletes), False).combine_chunks()
            in_time = pc.or_(pc.greater(ticks, watermark), pc.invert(deletes))
            on_time = pc.and_(on_time, in_time)
        return on_time

    def without(self, rows: pa.Table, deleted: pa.Table) -> pa.Table:
        """Removes, for each row of `deleted`, one row with its time and key.

        This is the first by `then_by`, otherwise the first in order.
        """
        names = [TIME, *self.spec.by]
        codes = self.codes([rows.select(names), deleted.select(names)])
        own, theirs = codes.slice(0, len(rows)), codes.slice(len(rows))
        # Deletions are few, so a loop over them is fast.
        wanted = Counter(theirs.to_pylist())
        near = pc.indices_nonzero(pc.is_in(own, theirs))
        near = near.take(order_of(rows.take(near), self.then_by))
        dropped = []
        for at, code in zip(near.to_pylist(), own.take(near).to_pylist(), strict=True):
            if wanted[code]:
                dropped.append(at)
                wanted[code] -= 1
        places = row_numbers(len(rows))
        stays = pc.invert(pc.is_in(places, pa.array(dropped, places.type)))
        return rows.filter(stays).combine_chunks()

    def distinct(self, rows: pa.Table, *names: str) -> pa.Array:
        """The first row of each distinct key and value of these columns."""
        ticks = pa.repeat(pa.scalar(0, pa.int64()), len(rows))
        return self._distinct(rows, [*self.spec.by, *names], ticks)[0]

    @staticmethod
    def _distinct(
        rows: pa.Table, names: Iterable[str], ticks: pa.Array
    ) -> tuple[pa.Array, pa.Array]:
        """Per distinct key, in order, its first row and its latest tick."""
        keys = [one_array(rows.column(name)) for name in names]
        firsts, latest = _core.distinct_keys(keys, ticks)
        return pa.array(firsts), pa.array(latest)

    def request(
        self, tables: Sequence[pa.Table], spec: Spec | None = None, history: int = 0
    ) -> tuple[pa.Table, KernelCall]:
        """Concatenates rows, and binds them to a kernel call."""
        spec = spec or self.spec_of_points
        parts = [empty_table(self.stored_schema), *tables]
        table = pa.concat_tables(parts, promote_options="default").combine_chunks()
        table = self.timed(table)
        return table, KernelCall(frame(table), spec, history=history)

    def answer_points(
        self, rows: pa.Table, points: pa.Table, own: pa.Array | None = None
    ) -> list[pa.Array]:
        """The results of rows at query points, a table of times and keys.

        `own` are the numbers of the rows that the points are, if they are rows.
        """
        _, request = self.request([rows])
        request.name_row = self.naming(points)
        at = query_points_of(frame(points), request, self.spec_of_points)
        return _columns(request, replace(at, own=own))

    def naming(self, rows: pa.Table) -> Callable[[int], str]:
        """A function that names a row in messages, by key and time."""
        return lambda row: describe_row(self.timed(rows), row, self.spec_of_points)

    @cached_property
    def spec_of_points(self) -> Spec:
        """The Spec for rows of the state: without `arrival=`.

        For hopping windows it also counts rows, to find the non-empty windows, and
        results have the names of their aggregations until `marked`.
        """
        counted = self.emit == "slide" and not (self.sessions or self.row_closed_window)
        rows = ((ROWS, count()),) if counted else ()
        names = {"names": None, "prefix": ""} if self.emit == "slide" else {}
        return derive(self.spec, arrival=None, aggs=(*self.spec.aggs, *rows), **names)

    def spec_over(
        self, windows: tuple[Window, ...], asked: tuple[str, ...] | None = None
    ) -> Spec:
        """The Spec of a query over some windows, for rows of the state.

        `asked` are the labels of those that were asked for, in place of the Spec's.
        """
        spec = self.spec_of_points
        own = spec.own if asked is None else own_beside(spec, asked)
        return derive(spec, windows=windows, empty=False, own=own)

    def answer_final(self, earlier: pa.Table, due: pa.Table) -> list[pa.Array]:
        """The results of due rows, in order; all rows before them have arrived."""
        history = len(earlier)
        _, request = self.request([earlier, self.stored(due)], history=history)
        request.name_row = self.naming(due)
        return _columns(request, None)

    def query_points(self, rows: pa.Table) -> pa.Table:
        """The times and keys of rows, as query points."""
        ticks = rows.column(TIME).combine_chunks()
        keys = rows.select(list(self.spec.by))
        return keys.append_column(self.spec.on, self.times.restore(ticks))

    def answer_arrival(self, earlier: pa.Table, rows: pa.Table) -> list[pa.Array]:
        """The results of new rows, over earlier rows and those that arrived first."""
        points = self.query_points(rows)
        if self.spec.arrival is None and not self.rows:
            new = self._numbered(self.stored(rows))
            both = pa.concat_tables([earlier, new], promote_options="default")
            both = both.combine_chunks()
            both = self.sort(both) if self.then_by else both
            return self._answer_new(both, points, self.spec_of_points)
        # rows(n) holds the latest rows that have arrived, so it depends on arrival.
        spec = derive(self.spec, arrival=ARRIVAL)
        points = points.append_column(ARRIVAL, self.arrivals(rows))
        new = self.sort_batch(self._numbered(rows))
        numbers = [new[NUMBER]] if self.spec.asks_for_rows else []
        new = self.stored(new).append_column(ARRIVAL, self.arrivals(new))
        new = append_columns(new, [NUMBER] * len(numbers), numbers)
        before = 0 if self.spec.arrival is None else EARLIEST
        earlier = earlier.append_column(ARRIVAL, repeated(before, len(earlier)))
        both = pa.concat_tables([earlier, new], promote_options="default")
        both = both.combine_chunks()
        if self.then_by and self.spec.arrival is None:
            both = self.sort(both)
        return self._answer_new(both, points, spec)

    def _numbered(self, rows: pa.Table) -> pa.Table:
        """New rows with their numbers, if they are to be found among others."""
        if not self.spec.asks_for_rows:
            return rows
        return rows.append_column(NUMBER, row_numbers(len(rows)).cast(pa.int64()))

    def _answer_new(
        self, both: pa.Table, points: pa.Table, spec: Spec
    ) -> list[pa.Array]:
        """The results of new rows among others, at the points that they are."""
        # Rows of a batch arrive together, and see one another.
        spec = derive(spec, ties="peers")
        _, request = self.request([both], spec)
        request.name_row = self.naming(points)
        at = query_points_of(frame(points), request, spec)
        if spec.asks_for_rows:
            numbers = row_numbers(len(points)).cast(pa.int64())
            own = pc.index_in(numbers, one_array(both.column(NUMBER)))
            own, out = own.cast(pa.int64()), spec.exclude is not None
            at = replace(at, own=own, leaves_out=out)
        return _columns(request, at)

    def arrivals(self, rows: pa.Table) -> pa.Array:
        """When rows of a batch arrived: as `arrival=` says, or all together."""
        order = order_by([self._ticks_of(rows, name) for name in self.spec.arrivals])
        return repeated(0, len(rows)) if order is None else order

    def _ticks_of(self, rows: pa.Table, name: str) -> pa.Array:
        if name == self.spec.on:
            return self.ticks(rows)
        return read_times(one_array(rows.column(name)), name).ticks

    def marked(self, answers: pa.Table, again: pa.Array | None = None) -> pa.Table:
        """Results with their names, and, if late rows are accepted, `_correction`."""
        if self.emit == "slide":
            columns = {output.name: output.column for output in outputs_of(self.spec)}
            names = [columns.get(name, name) for name in answers.column_names]
            answers = answers.rename_columns(names)
        if not self.corrects:
            return answers
        if again is None:
            again = pa.repeat(pa.scalar(False), len(answers))
        return answers.append_column(CORRECTION, again)

    def returned(self, rows: pa.Table, flags: Sequence[str], flag: str) -> pa.Table:
        """Late rows or rows that are ahead, with null results, and with their flag."""
        table = self.timed(rows).select(self.schema.names)
        kinds = [self.output.field(name).type for name in self.spec.results]
        nulls = [pa.nulls(len(rows), kind) for kind in kinds]
        table = append_columns(table, self.spec.results, nulls)
        return flagged(self.marked(table), flags, flag)

    def answered(self, rows: pa.Table, answers: list[pa.Array]) -> pa.Table:
        """Rows with their results, or keys and times with them."""
        names, on = self.schema.names, self.spec.on
        if self.emits_keys:
            names = [*self.spec.by, on]
        times = None
        if on not in rows.column_names:
            times = self.times.restore(one_array(rows.column(TIME)))
        held = [
            times if name == on and times is not None else rows.column(name)
            for name in names
        ]
        names = [*names, *self.computed]
        return pa.Table.from_arrays([*held, *answers], names=names)


def flagged(answers: pa.Table, flags: Sequence[str], true: str = "") -> pa.Table:
    """Results with flags, of which at most one is true."""
    columns = [pa.repeat(pa.scalar(name == true), len(answers)) for name in flags]
    return append_columns(answers, flags, columns)


def _columns(request: KernelCall, points: QueryPoints | None) -> list[pa.Array]:
    """The columns of results, window by window."""
    windows = request.compute(points)
    return [result.array for window in windows for result in window.values()]
