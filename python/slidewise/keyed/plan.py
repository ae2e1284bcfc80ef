"""`StreamPlan`: what a `Spec` needs of the rows of a stream.

Columns of the state, windows in ticks, and how long rows matter.
"""

from dataclasses import dataclass, field, replace
from typing import Self

import pyarrow as pa

from slidewise.caching import cached_property
from slidewise.frames.base import empty_table
from slidewise.keyed.columns import ENTRY, LAST, TIME
from slidewise.keyed.grid import Grid
from slidewise.spec.durations import Length
from slidewise.spec.outputs import until_column
from slidewise.spec.spec import Spec, derive
from slidewise.spec.windows.base import Window
from slidewise.table.time_columns import TicksOf, TimeColumn, read_times, window_ticks

__all__ = ["StreamPlan"]

# In the milliseconds of a date64.
_DAY = 86_400_000


@dataclass(frozen=True)
class StreamPlan:
    """A Spec over a stream of rows, and the options of the stream.

    Attributes:
        spec: The Spec.
        schema: The columns of the rows.
        emit: When results are emitted: "arrival", "final", "update", "change" or, for
            hopping windows, "slide"; "none" for never.
        then_by: Columns that order rows of equal time; if empty, order of arrival.
        deletes: A column of booleans. A row where it is true deletes one row with its
            key and time: the first by `then_by`, otherwise the first that arrived.
        corrects: Whether late rows are accepted, and changed results emitted again.
        kept: The columns of rows of the state, if an earlier Spec chose them.
        changed: Whether results that equal the last one of their key are left out.
        valid_until: Whether results come with the times at which they change, as in
            queries.
        output: The columns of the results, if the query was checked.
    """

    spec: Spec
    schema: pa.Schema
    emit: str
    then_by: tuple[str, ...] = ()
    deletes: str | None = None
    corrects: bool = False
    kept: tuple[str, ...] | None = None
    changed: bool = False
    valid_until: bool = False
    output: pa.Schema = field(default=pa.schema([]), compare=False)

    @cached_property
    def times(self) -> TimeColumn:
        """The column of times, without rows."""
        column = empty_table(self.schema).column(self.spec.on).combine_chunks()
        return read_times(column, self.spec.on)

    @cached_property
    def clock_unit(self) -> int | None:
        """Nanoseconds per tick since 1970; None for integer times and durations."""
        is_length = pa.types.is_duration(self.times.original.type)
        return None if is_length else self.times.unit

    @cached_property
    def step(self) -> int:
        """The least distance of two different times, in ticks."""
        return _DAY if pa.types.is_date64(self.times.original.type) else 1

    @cached_property
    def stored_columns(self) -> tuple[str, ...]:
        """The columns of the state: keys, ids, what is aggregated, those of `then_by`.

        If rows may be emitted again, all columns.
        """
        if self.kept is not None:
            return self.kept
        if self.corrects and self.emit == "final":
            return tuple(name for name in self.schema.names if name != self.spec.on)
        aggregated = (name for _, agg in self.spec.aggs for name in agg.columns)
        flags = (name for window in self.spec.windows for name in window.columns)
        names = dict.fromkeys(
            [*self.spec.by, *self.spec.unique_by, *aggregated, *flags, *self.then_by]
        )
        return tuple(name for name in names if name != self.spec.on)

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The columns of rows that stay in the state, and the ticks."""
        fields = [pa.field(TIME, pa.int64())]
        fields += [
            pa.field(name, self.stored_type(name)) for name in self.stored_columns
        ]
        return pa.schema(fields)

    @cached_property
    def pending_schema(self) -> pa.Schema:
        """The columns of rows that wait for the watermark: all of them.

        The column of times is made from the ticks.
        """
        names = [name for name in self.schema.names if name != self.spec.on]
        fields = [pa.field(name, self.stored_type(name)) for name in names]
        return pa.schema([pa.field(TIME, pa.int64()), *fields])

    def stored_type(self, name: str) -> pa.DataType:
        """The type of a column in the state: categories as values."""
        kind = self.schema.field(name).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    @cached_property
    def rows(self) -> int:
        """The largest n of `rows(n)`, or 0."""
        return max(window.rows for window in self.spec.windows)

    @cached_property
    def reach(self) -> int:
        """The length of the longest window of time, with its offset, in ticks."""
        return max(window.reach(self.ticks_of) for window in self.spec.windows)

    def ticks_of(self, length: Length) -> int:
        """A length in the ticks of the column of times."""
        return window_ticks(length, self.times)

    @cached_property
    def sessions(self) -> bool:
        """Whether there are sessions."""
        windows = self.spec.windows if self.spec.is_hopping else ()
        return any(not (w.on_grid or w.by_position) for w in windows)

    @cached_property
    def row_closed_window(self) -> Window | None:
        """The window that rows close, if there is one."""
        windows = self.spec.windows if self.spec.is_hopping else ()
        return next((window for window in windows if window.by_position), None)

    @cached_property
    def flag_column(self) -> str | None:
        """The column of flags, if these close windows."""
        columns = (
            () if self.row_closed_window is None else self.row_closed_window.columns
        )
        return columns[0] if columns else None

    @cached_property
    def backward_windows(self) -> tuple[Window, ...]:
        """The windows that end with a row, and whose start depends on other rows."""
        windows = () if self.spec.is_hopping else self.spec.windows
        return tuple(window for window in windows if window.by_position)

    @cached_property
    def carries(self) -> bool:
        """Whether windows begin with the entries before them, which are kept."""
        at_time = any(window.begins_at_time for window in self.spec.windows)
        return at_time and any(agg.carries for _, agg in self.spec.aggs)

    @cached_property
    def carried_by_calendar(self) -> tuple[Window, ...]:
        """The windows of a calendar that begin with the entries before them.

        Their starts are at no constant distance from their ends, so no span of the
        index ends with them: results come from rows.
        """
        windows = self.spec.windows if self.carries else ()
        return tuple(
            window
            for window in windows
            if window.by_calendar or (window.on_grid and window.as_query().by_calendar)
        )

    @property
    def keeps_rows(self) -> bool:
        """Whether some rows are kept as long as their key."""
        reaching = self.flag_column or self.backward_windows
        return bool(self.rows or reaching or self.carries)

    @property
    def evicts_rows(self) -> bool:
        """Whether the rows that leave are found one by one, not by their times."""
        by_rows = self.row_closed_window or self.backward_windows
        return bool(by_rows or self.carries)

    def id_horizon(self, retention: int) -> int:
        """How long an id is remembered behind the watermark, as rows are kept so long.

        Those of sessions and of `until` leave with their windows.
        """
        return self.reach if self.sessions or self.flag_column else retention

    @cached_property
    def folded_schema(self) -> pa.Schema:
        """The columns of folded entries."""
        keys = [self.stored_schema.field(name) for name in (*self.spec.by, TIME)]
        return pa.schema([*keys, pa.field(ENTRY, pa.binary())])

    @cached_property
    def ended(self) -> pa.Schema:
        """The columns of the last emitted windows of keys."""
        keys = empty_table(self.stored_schema).select([TIME, *self.spec.by]).schema
        return keys.append(pa.field(LAST, pa.int64()))

    @property
    def allowance(self) -> int:
        """How far behind the watermark an accepted late row may be, in ticks."""
        return self.reach if self.corrects else 0

    @cached_property
    def parts(self) -> tuple[Self, ...]:
        """Per window of several hopping windows, its query; else the query itself."""
        if not self.spec.several:
            return (self,)
        specs = [
            derive(self.spec, windows=(window,), several=False)
            for window in self.spec.windows
        ]
        return tuple(replace(self, spec=spec) for spec in specs)

    @cached_property
    def grid(self) -> Grid:
        """The grid of the only hopping window."""
        (window,) = self.spec.windows
        length, every, start = window.grid(self.ticks_of)
        shift = 0 if window.includes_start else 1
        return Grid(
            length=length,
            every=every,
            offset=start + shift,
            stop_shift=shift,
            step=self.step,
            calendar=window.units(TicksOf(self.times)),
            cumulates=window.slide(self.ticks_of) is not None,
        )

    @cached_property
    def computed(self) -> tuple[str, ...]:
        """The columns of results, then those of the times at which they change."""
        windows = self.spec.windows if self.valid_until else ()
        until = (until_column(self.spec, window) for window in windows)
        return (*self.spec.results, *until)

    @property
    def emits_keys(self) -> bool:
        """Whether results are emitted per key, not per row or window."""
        return self.emit in ("update", "change")

    @property
    def divides_peers(self) -> bool:
        """Whether the window of a row has some rows of its time, and lacks others."""
        return self.spec.ties == "rows" or self.spec.exclude is not None
