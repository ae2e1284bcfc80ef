"""`Query`: a `Spec` over a stream of rows.

A query defines the columns of the state, the folds over a page of rows, and the results
from rows and folds. It calls the kernels of tables, so its results are the same.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations import count
from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.keyed.grid import Grid
from slidewise.keyed.page_store import (
    ARRIVAL,
    FOLDED,
    LAST,
    NUMBER,
    PARTIAL,
    ROWS,
    TIME,
)
from slidewise.keyed.page_tree import Cover
from slidewise.keyed.single_times import tick_of
from slidewise.spec.spec import Spec
from slidewise.table.asof import query_points_of
from slidewise.table.batched_rolling import describe_row
from slidewise.table.encoding import (
    ValueColumn,
    decode_dictionary,
    group_codes,
    row_numbers,
    single_group,
)
from slidewise.table.kernel_call import KernelCall, QueryPoints
from slidewise.table.time_columns import (
    TimeColumn,
    read_times,
    subtract_clamped,
    window_ticks,
)

__all__ = ["CORRECTION", "LATE", "Query", "flagged", "later_than"]

# The flags of a late row, and of a result that replaces an earlier one.
LATE = "_late"
CORRECTION = "_correction"

_INT64_MIN = -(2**63)
_NO_KEY = 0x9E3779B97F4A7C15 - 2**64


@dataclass(frozen=True)
class Query:
    """A Spec over a stream of rows, and the options of the stream.

    Attributes:
        spec: The Spec.
        schema: The columns of the rows.
        emit: When results are emitted: "arrival", "final", "update" or, for hopping
            windows, "slide".
        then_by: Columns that order rows of equal time; without, order of arrival.
        deletes: A column of booleans: a row where it is true deletes one with its key
            and time, the first by `then_by`, otherwise the first that arrived.
        corrects: Whether late rows are accepted, and changed results emitted again.
    """

    spec: Spec
    schema: pa.Schema
    emit: str
    then_by: tuple[str, ...] = ()
    deletes: str | None = None
    corrects: bool = False

    @cached_property
    def times(self) -> TimeColumn:
        """The column of times, without rows."""
        column = self.schema.empty_table().column(self.spec.on).combine_chunks()
        return read_times(column, self.spec.on)

    @cached_property
    def _kept(self) -> tuple[str, ...]:
        """The columns of the state: keys, aggregated columns, and those of `then_by`.

        All columns if rows may be emitted again.
        """
        if self.corrects and self.emit == "final":
            return tuple(name for name in self.schema.names if name != self.spec.on)
        aggregated = (name for _, agg in self.spec.aggs for name in agg.columns)
        names = dict.fromkeys([*self.spec.by, *aggregated, *self.then_by])
        return tuple(name for name in names if name != self.spec.on)

    @cached_property
    def leaf(self) -> pa.Schema:
        """The columns of pages that hold rows."""
        fields = [pa.field(TIME, pa.int64())]
        fields += [pa.field(name, self._plain(name)) for name in self._kept]
        return pa.schema(fields)

    @cached_property
    def inner(self) -> pa.Schema:
        """The columns of pages that hold folds."""
        fields = [pa.field(TIME, pa.int64())]
        fields += [pa.field(name, self._plain(name)) for name in self.spec.by]
        fields += [pa.field(PARTIAL, pa.large_binary()), pa.field(FOLDED, pa.int64())]
        return pa.schema(fields)

    @cached_property
    def waiting(self) -> pa.Schema:
        """The columns of pages that hold waiting rows: all columns."""
        fields = [pa.field(name, self._plain(name)) for name in self.schema.names]
        return pa.schema([pa.field(TIME, pa.int64()), *fields])

    def _plain(self, name: str) -> pa.DataType:
        kind = self.schema.field(name).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    @cached_property
    def rows(self) -> int:
        """The largest n of `rows(n)`, or 0."""
        return max(
            (window.length for window in self.spec.windows if window.kind == "rows"),
            default=0,
        )

    @cached_property
    def reach(self) -> int:
        """The length of the longest window of time, with its offset, in ticks."""
        lengths = [0]
        for window in self.spec.windows:
            if window.kind != "rows":
                lengths.append(window_ticks(window.as_length, self.times))
                if window.offset and not window.every:
                    lengths[-1] += window_ticks(window.as_offset, self.times)
        return max(lengths)

    @property
    def sessions(self) -> bool:
        """Whether there are sessions."""
        return any(window.is_session for window in self.spec.windows)

    @cached_property
    def ended(self) -> pa.Schema:
        """The columns of pages with the last emitted window of each key."""
        keys = self.leaf.empty_table().select([TIME, *self.spec.by]).schema
        return keys.append(pa.field(LAST, pa.int64()))

    @property
    def allowance(self) -> int:
        """How far behind the watermark an accepted late row may be, in ticks."""
        return self.reach if self.corrects else 0

    @cached_property
    def grid(self) -> Grid:
        """The grid of the hopping window."""
        (window,) = self.spec.windows
        return Grid(
            length=window_ticks(window.as_length, self.times),
            every=window_ticks(window.as_every, self.times),
            offset=window_ticks(window.as_offset, self.times),
        )

    @cached_property
    def _lags(self) -> tuple[int, ...]:
        """The distances from a row back to the starts and ends of its windows."""
        lags = {0}
        for window in self.spec.windows:
            if window.kind != "rows":
                # The offset of a grid is not a shift from the row.
                shift = 0 if window.every else window.as_offset.amount
                shift = window_ticks(window.as_offset, self.times) if shift else 0
                lags |= {shift, shift + window_ticks(window.as_length, self.times)}
        return tuple(lags)

    @cached_property
    def folds(self) -> bool:
        """Whether rows can be folded in advance."""
        whole = self.rows or self.sessions
        return not whole and self.request([])[1].folds

    def ends(self, ticks: pa.Array) -> pa.Array:
        """The distinct starts and ends of windows of rows at these times, sorted."""
        moved = [subtract_clamped(ticks, lag) for lag in self._lags]
        ends = pc.unique(pa.concat_arrays(moved))
        return ends.take(pc.sort_indices(ends))

    def ticks(self, rows: pa.Table) -> pa.Array:
        """The times of rows as int64.

        Raises:
            SpecError: If one is missing.
        """
        column = rows.column(self.spec.on).combine_chunks()
        return read_times(column, self.spec.on).ticks

    def tick(self, time: Any) -> int:
        """A single time in ticks.

        Raises:
            SpecError: If it is not of the kind of the stream's times.
        """
        return tick_of(time, self.times)

    def restore(self, ticks: pa.Array) -> pa.Array:
        """Ticks as times of the type of the stream's times."""
        return self.times.restore(ticks)

    def timed(self, rows: pa.Table) -> pa.Table:
        """Rows of the state with their column of times."""
        times = self.restore(rows.column(TIME).combine_chunks())
        return rows.append_column(self.spec.on, times)

    def arranged(self, rows: pa.Table, ticks: pa.Array) -> pa.Table:
        """Rows in the columns of waiting rows, with their ticks."""
        columns = [ticks]
        for name in self.schema.names:
            column = rows.column(name).combine_chunks()
            plain = self._plain(name)
            columns.append(column if column.type == plain else column.cast(plain))
        return pa.Table.from_arrays(columns, schema=self.waiting)

    def kept(self, waiting: pa.Table) -> pa.Table:
        """The columns of waiting rows that stay in the state after their results."""
        return waiting.select([TIME, *self._kept])

    def sort(self, rows: pa.Table) -> pa.Table:
        """Sorts rows in order of arrival by time.

        Rows of equal time are sorted by `then_by`, nulls last. With `arrival=` they
        stay in order of arrival.
        """
        ties = self.then_by if self.spec.arrival is None else ()
        return self._sorted(rows, (TIME, *ties))

    def sort_batch(self, rows: pa.Table) -> pa.Table:
        """Sorts rows of one batch by time, then arrival, then `then_by`."""
        arrival = () if self.spec.arrival is None else (self.spec.arrival,)
        return self._sorted(rows, (TIME, *arrival, *self.then_by))

    @staticmethod
    def _sorted(rows: pa.Table, names: Iterable[str]) -> pa.Table:
        return rows.take(_order(rows, names)).combine_chunks()

    def hashes(self, rows: pa.Table) -> pa.Array:
        """A hash of the key of each row, the same in all versions."""
        mixed: pa.Array = None
        for name in self.spec.by:
            column = rows.column(name).combine_chunks()
            own = pc.fill_null(ValueColumn(name, _hashable(column)).hashes, _NO_KEY)
            mixed = own if mixed is None else pc.add(pc.multiply(mixed, 31), own)
        if mixed is None:
            return pa.repeat(pa.scalar(0, pa.int64()), len(rows))
        return mixed

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
        table = rows.select([*self.spec.by, TIME]).combine_chunks()
        spread = pa.table(
            {
                "code": self.codes([table.select(list(self.spec.by))]),
                "row": row_numbers(len(table)),
                "time": table.column(TIME),
            }
        )
        found = spread.group_by("code", use_threads=False)
        found = found.aggregate([("row", "min"), ("time", "max")]).combine_chunks()
        keys = table.take(found.column("row_min"))
        return keys.set_column(len(self.spec.by), TIME, found.column("time_max"))

    def refuse_nan(self, rows: pa.Table, watermark: int | None = None) -> None:
        """Checks a batch for NaN, for `nan="raise"`.

        Args:
            rows: The batch. Late rows and deletions may hold NaN.
            watermark: The watermark, or None.

        Raises:
            SpecError: Naming the column and the row of the batch.
        """
        if self.spec.nan != "raise":
            return
        taken = None if watermark is None else self._on_time(rows, watermark)
        if self.deletes is not None:
            deletes = pc.fill_null(rows.column(self.deletes), False).combine_chunks()
            kept = pc.invert(deletes)
            taken = kept if taken is None else pc.and_(taken, kept)
        for name in dict.fromkeys(
            name for _, agg in self.spec.aggs for name in agg.columns
        ):
            column = decode_dictionary(rows.column(name).combine_chunks())
            if pa.types.is_floating(column.type):
                column = column if taken is None else pc.if_else(taken, column, None)
                ValueColumn(name, column, "raise")

    def refuse_beyond(self, rows: pa.Table) -> None:
        """Checks that the windows of rows on the grid lie within int64.

        Raises:
            SpecError: Naming the time.
        """
        if self.emit != "slide" or self.sessions:
            return
        time = self.grid.beyond(rows.column(TIME))
        if time is not None:
            (window,) = self.spec.windows
            raise SpecError(
                f"the window of {window.label!r} around the time {time} (ticks of "
                f"column {self.spec.on!r}) reaches beyond the times that int64 can "
                "hold: drop the row, or cast the column to a coarser unit"
            )

    def by_lateness(
        self, rows: pa.Table, watermark: int | None
    ) -> tuple[pa.Table, pa.Table]:
        """Splits rows into accepted and late ones."""
        if watermark is None:
            return rows, rows.slice(0, 0)
        on_time = self._on_time(rows, watermark)
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

    def without(self, rows: pa.Table, deleted: pa.Table) -> tuple[pa.Table, pa.Table]:
        """As in `Folder`."""
        names = [TIME, *self.spec.by]
        codes = self.codes([rows.select(names), deleted.select(names)])
        own, theirs = codes.slice(0, len(rows)), codes.slice(len(rows))
        # Deletions are few, so that a loop over them is fast.
        wanted: dict[int, list[int]] = {}
        for at, code in enumerate(theirs.to_pylist()):
            wanted.setdefault(code, []).append(at)
        near = pc.indices_nonzero(pc.is_in(own, theirs))
        near = near.take(_order(rows.take(near), self.then_by))
        found = zip(near.to_pylist(), own.take(near).to_pylist(), strict=True)
        gone, met = set(), set()
        for at, code in found:
            if wanted[code]:
                gone.add(at)
                met.add(wanted[code].pop(0))
        return _less(rows, gone), _less(deleted, met)

    def without_in_batch(self, rows: pa.Table, deleted: pa.Table) -> pa.Table:
        """Rows of a batch without those that its own deletions delete, in its order."""
        numbered = rows.append_column(NUMBER, row_numbers(len(rows)))
        left, _ = self.without(self.sort_batch(numbered), deleted)
        places = left.column(NUMBER).combine_chunks()
        return rows.take(places.take(pc.sort_indices(places))).combine_chunks()

    def latest_rows(self, rows: pa.Table, until: int) -> pa.Table:
        """Rows after a time, and the last n of each key before it, for `rows(n)`."""
        # A row may come after any of the later ones, and its window begins there.
        later = later_than(rows.column(TIME), until)
        older = rows.filter(pc.invert(later)).combine_chunks()
        kept = self._last_ones(older)
        return pa.concat_tables([kept, rows.filter(later)]).combine_chunks()

    def _last_ones(self, rows: pa.Table) -> pa.Table:
        return rows.filter(self._are_last(rows)) if len(rows) else rows

    def _are_last(self, rows: pa.Table) -> pa.Array:
        """A mask of the last n rows of each key, for sorted rows."""
        codes = self.codes([rows.select(self.spec.by)])
        order = pc.sort_indices(codes)
        grouped = codes.take(order)
        counts = pc.value_counts(grouped).field("counts")
        ends = pc.cumulative_sum(counts)
        rank = pc.subtract(ends.take(grouped), row_numbers(len(rows)))
        near = pc.less_equal(rank, self.rows)
        return near.take(pc.sort_indices(order))

    def fold(self, parts: Sequence[tuple[int, pa.Table]]) -> pa.Table:
        """Folds rows: one row per page and key."""
        marked = []
        for page, rows in parts:
            pages = pa.repeat(pa.scalar(page, pa.int64()), len(rows))
            marked.append(rows.append_column(FOLDED, pages))
        table, request = self.request(marked)
        of_page = table.column(FOLDED).combine_chunks()
        codes = group_codes([(FOLDED, of_page), *request.key_columns])
        assert codes is not None, "pages are keys"
        spread = pa.table(
            {"code": codes, "at": request.times.ticks, "row": row_numbers(len(codes))}
        )
        aggs = [("at", "min"), ("at", "max"), ("row", "min")]
        found = spread.group_by("code", use_threads=False).aggregate(aggs)
        found = found.combine_chunks()
        column = {
            name: found.column(name).combine_chunks() for name in found.column_names
        }
        request.groups = codes
        points = QueryPoints(
            ends=column["at_max"],
            starts=column["at_min"],
            groups=column["code"],
            arrival=None,
            noun="fold",
        )
        rows = column["row_min"]
        keys = [key.take(rows) for _, key in request.key_columns]
        partials = request.partials(points)
        arrays = [column["at_max"], *keys, partials, of_page.take(rows)]
        folded = pa.Table.from_arrays(arrays, schema=self.inner)
        return folded.take(pc.sort_indices(folded.column(FOLDED)))

    def request(
        self, tables: Sequence[pa.Table], spec: Spec | None = None, history: int = 0
    ) -> tuple[pa.Table, KernelCall]:
        """Concatenates rows and folds, and binds them to a kernel call."""
        spec = spec or self.spec_of_points
        parts = [self.leaf.empty_table(), *tables]
        table = pa.concat_tables(parts, promote_options="default").combine_chunks()
        if self.then_by and not history and self.spec.arrival is None:
            table = self.sort(table)
        lifted = None
        if PARTIAL in table.column_names:
            lifted = table.column(PARTIAL).combine_chunks()
        table = self.timed(table)
        return table, KernelCall(
            frame(table), spec, history=history, row_partials=lifted
        )

    def answer_points(self, cover: Cover, points: pa.Table) -> list[pa.Array]:
        """Results at the query points in a table of times and keys."""
        _, request = self.request([*cover.rows, *cover.folds])
        request.name_row = self.naming(points)
        at = query_points_of(frame(points), request, self.spec_of_points)
        return _columns(request, at)

    def naming(self, rows: pa.Table) -> Callable[[int], str]:
        """A function that names a row in messages, by key and time."""
        return lambda row: describe_row(rows, row, self.spec_of_points)

    @cached_property
    def spec_of_points(self) -> Spec:
        """The Spec without `arrival=`, by which pages are folded and read.

        For hopping windows it counts rows, too, to find the non-empty windows.
        """
        counted = self.emit == "slide" and not self.sessions
        rows = ((ROWS, count()),) if counted else ()
        return replace(self.spec, arrival=None, aggs=(*self.spec.aggs, *rows))

    def answer_final(self, cover: Cover, due: pa.Table) -> list[pa.Array]:
        """Results of due rows, in order; all rows before them have arrived."""
        earlier = [*cover.rows, *cover.folds]
        history = sum(map(len, earlier))
        _, request = self.request([*earlier, self.kept(due)], history=history)
        request.name_row = self.naming(due)
        return _columns(request, None)

    def query_points(self, rows: pa.Table) -> pa.Table:
        """The times and keys of rows, as query points."""
        ticks = rows.column(TIME).combine_chunks()
        keys = rows.select(list(self.spec.by))
        return keys.append_column(self.spec.on, self.restore(ticks))

    def answer_arrival(self, cover: Cover, rows: pa.Table) -> list[pa.Array]:
        """Results of new rows; `cover` holds the earlier rows."""
        points = self.query_points(rows)
        if self.spec.arrival is None and not self.rows:
            cover.rows.append(self.kept(rows))
            return self.answer_points(cover, points)
        # rows(n) holds the latest rows that have arrived, and so depends on arrival.
        spec = replace(self.spec, arrival=ARRIVAL)
        points = points.append_column(ARRIVAL, self._arrival(rows))
        new = self.sort_batch(rows)
        new = self.kept(new).append_column(ARRIVAL, self._arrival(new))
        before = 0 if self.spec.arrival is None else _INT64_MIN
        earlier = [
            table.append_column(ARRIVAL, _repeated(before, len(table)))
            for table in (*cover.rows, *cover.folds)
        ]
        _, request = self.request([*earlier, new], spec)
        request.name_row = self.naming(points)
        return _columns(request, query_points_of(frame(points), request, spec))

    def _arrival(self, rows: pa.Table) -> pa.Array:
        """When rows of a batch arrived: as `arrival=` says, or all at once."""
        name = self.spec.arrival
        if name is None:
            return _repeated(0, len(rows))
        return read_times(rows.column(name).combine_chunks(), name).ticks

    def marked(self, answers: pa.Table, again: pa.Array | None = None) -> pa.Table:
        """Results with the flag `_correction`, if late rows are accepted."""
        if not self.corrects:
            return answers
        if again is None:
            again = pa.repeat(pa.scalar(False), len(answers))
        return answers.append_column(CORRECTION, again)

    def answered(self, rows: pa.Table, answers: list[pa.Array]) -> pa.Table:
        """Rows with their results; for "update", keys and times with results."""
        update = self.emit == "update"
        table = rows.select(
            [*self.spec.by, self.spec.on] if update else self.schema.names
        )
        for name, array in zip(self.spec.results, answers, strict=True):
            table = table.append_column(name, array)
        return table


def later_than(ticks: pa.Array, bound: int) -> pa.Array:
    """A mask of the ticks that are later than a bound, which may be beyond int64.

    Example:
        >>> later_than(pa.array([-(2**63), 0]), -(2**64)).to_pylist()
        [True, True]
    """
    if bound < _INT64_MIN:
        return pc.is_valid(ticks)
    return pc.greater(ticks, bound)


def flagged(answers: pa.Table, *, late: bool) -> pa.Table:
    """Results with the flag `_late`."""
    return answers.append_column(LATE, pa.repeat(pa.scalar(late), len(answers)))


def _order(rows: pa.Table, names: Iterable[str]) -> pa.Array:
    """Indices that sort rows stably by those of the columns that they have."""
    keys = [(name, "ascending") for name in names if name in rows.column_names]
    return pc.sort_indices(rows, sort_keys=keys) if keys else row_numbers(len(rows))


def _repeated(number: int, times: int) -> pa.Array:
    return pa.repeat(pa.scalar(number, pa.int64()), times)


def _hashable(keys: pa.Array) -> pa.Array:
    """Keys in a type that can be hashed; equal ones stay equal."""
    if pa.types.is_floating(keys.type):
        # Both zeros are one key.
        return pc.add(keys.cast(pa.float64()), 0.0)
    if pa.types.is_date32(keys.type) or pa.types.is_time32(keys.type):
        return keys.cast(pa.int32())
    return keys.cast(pa.string()) if pa.types.is_decimal(keys.type) else keys


def _less(rows: pa.Table, gone: set[int]) -> pa.Table:
    """Rows without those of some numbers."""
    if not gone:
        return rows
    present = [at not in gone for at in range(len(rows))]
    return rows.filter(pa.array(present, pa.bool_())).combine_chunks()


def _columns(request: KernelCall, points: QueryPoints | None) -> list[pa.Array]:
    """The columns of results, window by window."""
    windows = request.compute(points)
    return [result.array for window in windows for result in window.values()]
