"""Binds a table to a Spec and runs the native kernel."""

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.call import Call
from slidewise.aggregations.custom import CustomAggregation
from slidewise.aggregations.scalars import as_int
from slidewise.caching import cached_property
from slidewise.errors import Argument, ResultOverflowError, SpecError
from slidewise.frames.base import Frame, Result
from slidewise.frames.lazy import map_lazy
from slidewise.spec.features import Features, parts_of
from slidewise.spec.outputs import column_of, covers
from slidewise.spec.spec import Spec, derive
from slidewise.spec.windows.base import Span, Window
from slidewise.table.carried import Before, entries_before, starts_of
from slidewise.table.data_driven import Positions
from slidewise.table.encoding import (
    KernelInputs,
    group_codes,
    one_column,
    row_numbers,
    with_nulls,
)
from slidewise.table.filling import fill_nulls
from slidewise.table.lowering import Plan, in_one_type, plan
from slidewise.table.own_functions import lifted_values, lowered
from slidewise.table.points import QueryPoints
from slidewise.table.source import Source
from slidewise.table.time_columns import (
    RowKeys,
    TicksOf,
    order_by,
    subtract_clamped,
)

__all__ = ["KernelCall", "map_lazily", "resolve_threads"]

_MAX_THREADS = 1 << 10
# The span of windows whose ends are positions.
_AMONG_POSITIONS = Span("time", 1, "both")
# The ends of a window without the time of its row.
_BEFORE = {"right": "neither", "both": "left"}
# By default a thread is started for no fewer rows.
_ROWS_PER_THREAD = 1 << 16


class KernelCall:
    """Binds a table to a `Spec`; `compute` runs the kernel.

    Args:
        source: The table.
        spec: The windows and aggregations.
        history: The first `history` rows are context: other rows' windows see them, and
            they get no results.
        name_row: Formats a row for messages, by its index after the history.
        threads: The number of threads.
    """

    def __init__(
        self,
        source: Frame,
        spec: Spec,
        *,
        history: int = 0,
        name_row: Callable[[int], str] | None = None,
        threads: int = 1,
    ) -> None:
        self._history = history
        self.threads = _check_threads(threads)
        self.name_row = name_row
        self.source = Source.of(source)
        self.spec = spec
        self.times = self.source.times(spec.on)
        self.arrivals = [self.source.times(name) for name in spec.arrivals]
        self.points: QueryPoints | None = None
        self._places: pa.Array | None = None
        # Per window, the rows that are answered again after the present pass.
        self._again: dict[int, pa.Array] = {}
        # Whether passes, or other calls, share the sorted rows.
        self.sorts_once = False
        self.spans = [self.span(window) for window in spec.windows]
        self.inputs = KernelInputs()
        self._columns = self.source.values(spec.nan)
        self._custom: dict[tuple[CustomAggregation, int], list[Any]] = {}
        self.plans = []
        for _, agg in spec.aggs:
            try:
                self.plans.append(plan(agg, self._columns, self.inputs, spec.on))
            except pa.ArrowNotImplementedError as error:
                raise _no_function(agg, error) from error
        calls = [call for plan in self.plans for call in self.calls_of(plan)]
        # Aggregations share equal calls.
        self._calls = {call: at for at, call in enumerate(dict.fromkeys(calls))}

    def span(self, window: Window) -> Span:
        """A window in the ticks of the column of times."""
        return window.span(TicksOf(self.times))

    @cached_property
    def groups(self) -> pa.Array | None:
        """The key codes of the rows; None without keys. `at=` replaces them."""
        # Hopping windows are listed in key order, and history relies on it.
        in_order = self.spec.is_hopping or self._history > 0
        return group_codes(self.key_columns, in_order=in_order)

    @cached_property
    def arrival(self) -> pa.Array | None:
        """The order of arrival of the rows; None without one. `at=` replaces it."""
        return order_by([column.ticks for column in self.arrivals])

    @property
    def key_columns(self) -> list[tuple[str, pa.Array]]:
        """The names and columns of the keys."""
        return [(name, self.source.column(name)) for name in self.spec.by]

    @property
    def rows(self) -> RowKeys:
        """The times, groups and arrival of the rows."""
        return RowKeys(self.times.ticks, self.groups, self.arrival)

    @cached_property
    def layout(self) -> _core.SortLayout:
        """The rows sorted by key and time, shared by all passes over them."""
        return _core.sort_rows(self.rows, self.threads)

    def take_order(self, other: "KernelCall") -> None:
        """Takes the keys and the order of the rows from a call with the same keys."""
        self.groups, self.arrival = other.groups, other.arrival
        self.layout, self.sorts_once = other.layout, True

    @cached_property
    def layout_by_position(self) -> _core.SortLayout:
        """The same of rows whose times are their positions."""
        return self.layout.by_position()

    @cached_property
    def positions(self) -> Positions:
        """The rows in that order."""
        keys, column = self.key_columns, self.source.column
        peers = self.spec.ties == "peers"
        return Positions(
            self.times, self.groups, self.layout, column, keys, peers=peers
        )

    def kernel_kind(self, call: Call) -> str:
        """The kernel that the core chooses for a call."""
        chosen = _core.kernel_kind(call.kind, call.number)
        column = None if call.of is None else self.inputs.columns[call.of]
        integer = column is not None and pa.types.is_integer(column.type)
        return "whole sums" if chosen == "sums" and integer else chosen

    def calls_of(self, plan: Plan) -> tuple[Call, ...]:
        """The kernel calls of an aggregation."""
        if self.spec.min_rows and plan.count_call is not None:
            return (*plan.calls, plan.count_call)
        return plan.calls

    def naming(self, name_row: Callable[[int], str]) -> "KernelCall":
        """A copy that names rows in messages by another function."""
        other = object.__new__(KernelCall)
        other.__dict__.update(self.__dict__, name_row=name_row)
        return other

    def allowing_overflow(self) -> "KernelCall":
        """A copy whose integer results are null where they do not fit their type.

        It decodes all aggregations over any window.
        """
        other = self.naming(str)
        other.spec = derive(self.spec, overflow="null", own=())
        return other

    @cached_property
    def reads(self) -> list[tuple[list[int], int | None]]:
        """Per aggregation the places of its calls, and of the count for `min_rows`."""
        counts = self._calls if self.spec.min_rows else {}
        return [
            (
                [self._calls[call] for call in plan.calls],
                None if plan.count_call is None else counts.get(plan.count_call),
            )
            for plan in self.plans
        ]

    def compute(self, points: QueryPoints | None = None) -> list[dict[str, Result]]:
        """Computes the results by name, per window: at every row or at query points.

        Raises:
            ResultOverflowError: If an integer result does not fit its type, unless
                `min_rows` makes it null.
        """
        self.points = points
        at_rows = points is None and not self.arrivals
        windows = list(enumerate(self.spec.windows))
        leaves_out = self.spec.exclude if points is None else None
        by_position, alone = [], []
        # Windows of the same aggregations share a pass.
        by_time: dict[tuple[bool, ...], list[int]] = {}
        for at, window in windows:
            if self._finds_positions(window, leaves_out=bool(leaves_out) and at_rows):
                by_position.append(at)
            elif window.by_calendar and points is not None and not self.arrivals:
                alone.append(at)
            else:
                by_time.setdefault(self._covering(window), []).append(at)
        self._again = self._rows_again(by_time) if at_rows else {}
        several = len(by_time) > 1 or alone or self._again or leaves_out
        self.sorts_once |= bool(several)
        given = self._own_points if leaves_out and not at_rows else points
        answered = [self._pass(ats, given) for ats in by_time.values()]
        again, self._again = self._again, {}
        for at in by_position:
            window = self.spec.windows[at]
            if self.points is None:
                results = self._pass([at], self._ends_at_rows(window))[at]
                answered.append({at: _without(results, window.missing(self.positions))})
            else:
                answered.append(self._pass([at], self._ends_at_points(window)))
        for at in alone:
            assert points is not None, "rows are answered together"
            every = row_numbers(len(points.ends))
            answered.append({at: self._in_passes(at, points, every)})
        found = {at: named for each in answered for at, named in each.items()}
        for at, rows in again.items():
            points = self._own_points.take(rows)
            found[at] = _replaced(found[at], rows, self._in_passes(at, points, rows))
        return [found[at] for at, _ in windows]

    def _finds_positions(self, window: Window, *, leaves_out: bool) -> bool:
        """Whether the ends of a window are found as positions beforehand."""
        if window.by_position or not window.rows:
            return window.by_position
        return leaves_out or not (window.holds_its_row or self.arrivals)

    def _rows_again(
        self, by_time: Mapping[tuple[bool, ...], list[int]]
    ) -> dict[int, pa.Array]:
        """Per window the rows, after those of the history, that a pass answers wrongly.

        Without its row, the window of a row ends before it only if no other row has its
        time. The windows of a calendar may begin before those of earlier rows.
        """
        found = {}
        ticks = self.times.ticks
        for at in itertools.chain.from_iterable(by_time.values()):
            window, rows = self.spec.windows[at], []
            if self.spec.exclude and window.holds_its_row:
                rows.append(self._peers)
            if window.by_calendar:
                rows.append(pa.array(self.spans[at].calendar.out_of_order(ticks)))
            if not rows:
                continue
            numbers = pc.subtract(pa.concat_arrays(rows), self._history)
            numbers = pc.unique(numbers.filter(pc.greater_equal(numbers, 0)))
            if len(numbers):
                found[at] = numbers.take(pc.sort_indices(numbers))
        return found

    @cached_property
    def _peers(self) -> pa.Array:
        """The rows whose time other rows of their key have, too."""
        return pa.array(self.layout.peers(self.times.ticks))

    def _covering(self, window: Window) -> tuple[bool, ...]:
        """Of each aggregation, whether it is given over a window."""
        places = range(len(self.spec.aggs))
        return tuple(covers(self.spec, at, window) for at in places)

    def compute_window(self, at: int, points: QueryPoints) -> dict[str, Result]:
        """Computes the results by name of one of the windows, at query points.

        Raises:
            ResultOverflowError: As for `compute`.
        """
        self.points = points
        return self._pass([at], points)[at]

    def _in_passes(
        self, at: int, points: QueryPoints, places: pa.Array
    ) -> dict[str, Result]:
        """The results of a window at query points, with their numbers.

        Kernels take windows whose starts go forward; those of a calendar that do not
        are taken in several passes.
        """
        calendar = self.spans[at].calendar
        if calendar is None:
            return self._pass([at], points, places)[at]
        found, passes = calendar.starts(points.ends)
        points = replace(points, starts=pa.array(found))
        if self.points is None and self.spec.ties == "rows" and not self.spec.exclude:
            points = self._among_peers(at, points, places)
        if passes is None:
            return self._pass([at], points, places)[at]
        passes = pa.array(passes)
        rows = [
            pc.indices_nonzero(pc.equal(passes, number)) for number in passes.unique()
        ]
        parts = [
            self._pass([at], points.take(some), places.take(some))[at] for some in rows
        ]
        order = pc.sort_indices(pa.concat_arrays(rows))
        return {
            name: result._replace(
                array=one_column([part[name].array for part in parts]).take(order)
            )
            for name, result in parts[0].items()
        }

    @cached_property
    def _own_points(self) -> QueryPoints:
        """The rows as query points, without those of the history."""
        keys = [
            None if column is None else column.slice(self._history)
            for column in self.rows
        ]
        own = None
        if self.spec.exclude:
            own = row_numbers(len(self.times.ticks)).cast(pa.int64())
            own = own.slice(self._history)
        return QueryPoints(keys[0], None, keys[1], keys[2], "row", own=own)

    def _among_peers(self, at: int, points: QueryPoints, rows: pa.Array) -> QueryPoints:
        """The windows of some rows, each up to its row, as positions."""
        places = self.positions.of_rows.slice(self._history).take(rows)
        before = points.starts
        assert before is not None, "a calendar gives them"
        if self.spec.windows[at].includes_start:
            before = subtract_clamped(before, 1)
        last = self.positions.at(before, points.groups, self.threads)
        starts = pc.coalesce(pc.add(last, 1), self.positions.begins.take(places))
        return replace(
            points,
            ends=places,
            starts=starts,
            by_position=True,
            times=points.ends,
            since=points.starts,
        )

    def _ends_at_rows(self, window: Window) -> QueryPoints:
        """The windows that end at each row, without those of the history."""
        places = self.positions.of_rows.slice(self._history)
        starts, ends = window.bounds(self.positions, own=not self.spec.exclude)
        # A tree answers starts that go back, as if all rows had arrived together.
        before, after = starts.slice(0, max(len(starts) - 1, 0)), starts.slice(1)
        forward = pc.all(pc.greater_equal(after, before)).as_py()
        since = window.since(self.positions)
        return QueryPoints(
            ends=ends.take(places),
            starts=starts.take(places),
            groups=None if self.groups is None else self.groups.slice(self._history),
            arrival=None if forward else _together(len(places)),
            noun="row",
            by_position=True,
            times=self.times.ticks.slice(self._history),
            since=None if since is None else since.slice(self._history),
        )

    def _ends_at_points(self, window: Window) -> QueryPoints:
        """The windows that end with the last row up to each query point."""
        points = self.points
        assert points is not None, "compute sets them"
        times = points.ends
        if not window.includes_end:
            times = subtract_clamped(times, 1)
        last = self.positions.at(times, points.groups, self.threads)
        starts = window.starts(self.positions).take(last)
        ends = pc.subtract(last, min(window.behind, len(self.positions.rows)))
        holds = pc.fill_null(pc.less_equal(starts, ends), False)
        # No row is at a position below zero.
        return replace(
            points,
            ends=pc.if_else(holds, ends, -1),
            starts=pc.if_else(holds, starts, -1),
            by_position=True,
            times=points.ends,
        )

    def _pass(
        self,
        windows: list[int],
        points: QueryPoints | None,
        places: pa.Array | None = None,
    ) -> dict[int, dict[str, Result]]:
        """One pass of the kernel: the results by name, by window.

        Args:
            windows: The windows.
            points: The query points; None for the rows.
            places: The numbers of the points, if these are some of several passes.
        """
        self._places = places
        history = self._history if points is None else 0
        by_position = points is not None and points.by_position
        # As of arrival the rows of a key are in table order.
        shares = self.spec.is_hopping or (self.sorts_once and not self.arrivals)
        rows, layout = self.rows, self.layout if shares else None
        # The places of the calls of the aggregations that these windows have.
        covering = self._covering(self.spec.windows[windows[0]])
        used = {
            call for by in compress(self.plans, covering) for call in self.calls_of(by)
        }
        calls = [at for call, at in self._calls.items() if call in used]
        if by_position:
            assert points is not None, "positions are those of points"
            together = None if points.arrival is None else _together(len(rows.times))
            rows = RowKeys(self.positions.of_rows, self.groups, together)
            layout = self.layout_by_position if together is None else None
        spans = [
            _AMONG_POSITIONS if by_position else self._pass_span(at, points)
            for at in windows
        ]
        ends = self.times.ticks.slice(history)
        if points is not None:
            ends = points.ends if points.times is None else points.times
        self._compute_custom(windows, spans, rows, points, history, ends)
        raises = self.spec.overflow == "raise"
        try:
            answers, beyond = _core.rolling(
                rows,
                self.inputs.columns,
                [call for call in self._calls if call in used],
                spans,
                self.spec.ties,
                points,
                self.inputs.natives,
                history,
                self.threads,
                layout,
                # `min_rows` makes some results null, even if they overflow.
                raises and self.spec.min_rows <= 1 and not self._again,
            )
        except ResultOverflowError as error:
            call = calls[error.aggregation]  # type: ignore[attr-defined]
            where = (windows[error.window], call, error.row)  # type: ignore[attr-defined]
            raise self._overflow(where, history, str(error)) from None
        found = [dict(zip(calls, window, strict=True)) for window in answers]
        named = ((at, calls[call], row, value) for at, call, row, value in beyond)
        found_by = dict(zip(windows, found, strict=True))
        return self._decode(found_by, named, history, ends, points)

    def _pass_span(self, at: int, points: QueryPoints | None) -> Span:
        """The span of a window in a pass."""
        span = self.spans[at]
        leaves_out = self.spec.exclude and self.spec.windows[at].holds_its_row
        if points is not None or not leaves_out:
            return span
        return span._replace(closed=_BEFORE[span.closed])

    def decode(
        self,
        answers: Sequence[Sequence[Any]],
        beyond: Iterable[tuple[int, int, int, int]],
        points: QueryPoints | None,
        ends: pa.Array,
    ) -> list[dict[str, Result]]:
        """The results by name, per window, of answers that the caller computed.

        Python aggregations have no such answers, and need `compute`.

        Args:
            answers: Per window and kernel call, in the order of `calls`, a column.
            beyond: Sums beyond int64: their window, call, row and value.
            points: The query points of the answers; None for the table's rows.
            ends: The ends of the windows, in ticks.

        Raises:
            ResultOverflowError: As for `compute`.
        """
        self.points = points
        found = {at: dict(enumerate(window)) for at, window in enumerate(answers)}
        results = self._decode(found, beyond, 0, ends)
        return [results[at] for at in range(len(answers))]

    def _decode(
        self,
        answers: Mapping[int, Mapping[int, Any]],
        beyond: Iterable[tuple[int, int, int, int]],
        history: int,
        ends: pa.Array,
        points: QueryPoints | None = None,
    ) -> dict[int, dict[str, Result]]:
        """The results of answers by window and call, which are places."""
        columns = {
            at: {
                call: _without_history(history, pa.array(column))
                for call, column in window.items()
            }
            for at, window in answers.items()
        }
        windows = list(columns)
        for place, call, row, value in beyond if self.spec.overflow == "raise" else ():
            window = windows[place]
            caller = self._caller(call, window)
            if caller is None:  # no aggregation of this window
                continue
            again = self._again.get(window)
            if again is not None and pc.index(again, row - history).as_py() >= 0:
                continue
            if not self._below_min_rows(caller[1], columns[window], row - history):
                why = f"{value} does not fit int64"
                raise self._overflow((window, call, row), history, why)
        of_windows, fill = {}, dict(self.spec.fill)
        for index in windows:
            holds_a_row = self._holds_a_row(self.spec.windows[index])
            results = {}
            covering = self._covering(self.spec.windows[index])
            for (name, agg), by, never_null, dtype in compress(self.decoding, covering):
                array = self._array(index, agg, by, columns[index], ends, points)
                nullable = by.count_call is not None and not (
                    never_null and holds_a_row
                )
                if name in fill:
                    column = column_of(self.spec, name, self.spec.windows[index])
                    array, nullable = fill_nulls(array, fill[name], column), False
                results[name] = Result(array, dtype, by.same_type, nullable)
            of_windows[index] = results
        return of_windows

    @cached_property
    def decoding(self) -> list[tuple[tuple[str, Aggregation], Plan, bool, Any]]:
        """The decoding of each aggregation.

        Its plan; whether every window with a row has a result; and the library type
        that the result follows.
        """
        return [
            (
                (name, agg),
                by,
                self._never_null(agg, by),
                None if by.source is None else self.source.dtype(by.source),
            )
            for (name, agg), by in zip(self.spec.aggs, self.plans, strict=True)
        ]

    @cached_property
    def calls(self) -> list[Call]:
        """The kernel calls, each once, in the order of their answers."""
        return list(self._calls)

    @property
    def folds(self) -> bool:
        """Whether rows can be folded into partials of an index.

        Holistic and Python aggregations cannot, nor inputs that are row numbers or
        ranks of this table.
        """
        return all(self.folds_each)

    @property
    def folds_each(self) -> list[bool]:
        """Of each aggregation, whether rows can be folded for it."""
        portable = self.inputs.portable
        return [
            bool(plan.calls)
            and agg.record.group != "holistic"
            # Of the row numbers, count needs only the nulls.
            and all(
                agg.record.of_rows or portable[at]
                for call in plan.calls
                for at in (call.of, call.by)
                if at is not None
            )
            for (_, agg), plan in zip(self.spec.aggs, self.plans, strict=True)
        ]

    def _compute_custom(
        self,
        windows: list[int],
        spans: list[Span],
        rows: RowKeys,
        points: QueryPoints | None,
        history: int,
        ends: pa.Array,
    ) -> None:
        """Computes Python aggregations: per window, the answers at rows or points."""
        covering = self._covering(self.spec.windows[windows[0]])
        covered = compress(self.spec.aggs, covering)
        for agg in dict.fromkeys(agg for _, agg in covered):
            if isinstance(agg, CustomAggregation):
                assert agg.of is not None, "a Spec does not let this through"
                values, functions = lifted_values(
                    agg, self._columns, self.source, self.spec.on
                )
                answers = _core.rolling_udaf(
                    rows,
                    values,
                    functions,
                    spans,
                    self.spec.ties,
                    points,
                    history,
                )
                for window, of_window in zip(windows, answers, strict=True):
                    found = of_window[history:]
                    if agg.seen.ends:
                        until = self._moved(window, ends)
                        starts = starts_of(self.spans[window], points, until)
                        found = lowered(agg, found, self.times, starts, until)
                    self._custom[agg, window] = found

    def _moved(self, window: int, ends: pa.Array) -> pa.Array:
        """The ends of a window in ticks, moved by its offset if this is one of time."""
        span = self.spans[window]
        moves = span.offset and span.kind != "rows"
        return pc.subtract(ends, span.offset) if moves else ends

    def _array(
        self,
        index: int,
        agg: Aggregation,
        plan: Plan,
        answers: Mapping[int, pa.Array],
        ends: pa.Array,
        points: QueryPoints | None,
    ) -> pa.Array:
        """The result of one aggregation over one window."""
        window = self.spec.windows[index]
        too_few = None
        if self.spec.min_rows and plan.count_call is not None:
            too_few = pc.less(answers[self._calls[plan.count_call]], self.spec.min_rows)
        raw = [answers[self._calls[call]] for call in plan.calls]
        if plan.ended:
            ends = self._moved(index, ends)
            raw.append(ends)
        try:
            if isinstance(agg, CustomAggregation):
                array = in_one_type(agg, self._custom[agg, index], agg.functions)
            else:
                array = plan.decode(raw, *self._before(index, agg, plan, ends, points))
        except pa.ArrowNotImplementedError as error:
            raise _no_function(agg, error) from error
        if plan.overflow_reason is not None and self.spec.overflow == "raise":
            beyond = pc.and_(array.is_null(), raw[0].is_valid())
            if too_few is not None:
                beyond = pc.and_(beyond, pc.invert(too_few))
            if index in self._again:
                again = pc.is_in(row_numbers(len(beyond)), self._again[index])
                beyond = pc.and_not(beyond, again)
            row = pc.index(beyond, True).as_py()
            if row >= 0:
                raise self._overflow_of(agg, window, row, plan.overflow_reason)
        return array if too_few is None else with_nulls(array, too_few)

    def _before(
        self,
        index: int,
        agg: Aggregation,
        plan: Plan,
        ends: pa.Array,
        points: QueryPoints | None,
    ) -> tuple[Before | None, ...]:
        """The entries before the windows, for an aggregation that carries them."""
        if not agg.carries:
            return ()
        if self.arrivals:
            raise SpecError(
                f"{agg!r} does not go with ",
                Argument("arrival"),
                ": give edge='first' to begin at the first entry of each window",
            )
        window = self.spec.windows[index]
        # Sessions begin at a row.
        begins_at_time = window.per_row or window.on_grid or window.by_position
        starts = starts_of(self.spans[index], points, ends)
        if starts is None or not begins_at_time:
            return (None,)
        groups = self.groups if points is None else points.groups
        found = entries_before(
            starts,
            window.includes_start,
            groups,
            self.rows,
            self.inputs.columns,
            plan.calls[0],
            self.layout,
            self.threads,
        )
        return (found,)

    def _holds_a_row(self, window: Window) -> bool:
        """Whether every window holds a row, for any data."""
        if self.spec.is_hopping:
            return not self.spec.empty
        holds_its_row = window.holds_its_row and not self.spec.exclude
        return self.points is None and holds_its_row

    def _never_null(self, agg: Aggregation, plan: Plan) -> bool:
        """Whether every window with a row has a result."""
        return (
            agg.where is None
            and not agg.record.sparse
            and self.spec.overflow == "raise"
            and self.spec.min_rows <= 1
            and all(self.source.never_null(name) for name in plan.reads)
        )

    def _caller(self, call: int, window: int) -> tuple[Aggregation, Plan] | None:
        """The first aggregation of a window that makes a call; None without one."""
        covering = self._covering(self.spec.windows[window])
        pairs = zip(self.spec.aggs, self.plans, strict=True)
        for (_, agg), by in compress(pairs, covering):
            if self.calls[call] in self.calls_of(by):
                return agg, by
        return None

    def _below_min_rows(
        self, plan: Plan, answers: Mapping[int, pa.Array], row: int
    ) -> bool:
        """Whether a window holds fewer values than `min_rows`."""
        if not self.spec.min_rows or plan.count_call is None:
            return False
        count: int = answers[self._calls[plan.count_call]][row].as_py()
        return count < self.spec.min_rows

    def _overflow(
        self, where: tuple[int, int, int], history: int, why: str
    ) -> ResultOverflowError:
        index, call, row = where
        caller = self._caller(call, index)
        assert caller is not None, "a window has only the calls of its aggregations"
        window = self.spec.windows[index]
        return self._overflow_of(caller[0], window, row - history, why)

    def _overflow_of(
        self, agg: Aggregation, window: Window, row: int, why: str
    ) -> ResultOverflowError:
        if self._places is not None:
            row = self._places[row].as_py()
        if self.name_row is not None:
            name = self.name_row(row)
        else:
            what = "row" if self.points is None else self.points.noun
            name = f"{what} {row} (counting from 0)"
        return ResultOverflowError(
            f"{agg!r} over the window {window.label!r} of {name}: {why}; cast the "
            "column to float64 if rounding is fine, or give ",
            Argument("overflow", "null"),
        )


def _replaced(
    results: Mapping[str, Result], rows: pa.Array, again: Mapping[str, Result]
) -> dict[str, Result]:
    """Results with others in some rows."""
    made = {}
    for name, result in results.items():
        count = len(result.array)
        places = row_numbers(count).cast(pa.int64())
        others = pc.add(row_numbers(len(rows)).cast(pa.int64()), count)
        places = pc.replace_with_mask(places, pc.is_in(places, rows), others)
        both = one_column([result.array, again[name].array])
        made[name] = result._replace(array=both.take(places))
    return made


def _together(count: int) -> pa.Array:
    """The arrival of rows that have all arrived together."""
    return pa.repeat(pa.scalar(0, pa.int64()), count)


def _without(results: dict[str, Result], missing: pa.Array | None) -> dict[str, Result]:
    """Results that are null in some rows, if there are such."""
    if missing is None:
        return results
    places = pc.if_else(missing, None, row_numbers(len(missing)))
    return {
        name: result._replace(array=result.array.take(places), nullable=True)
        for name, result in results.items()
    }


def _without_history(history: int, answers: pa.Array) -> pa.Array:
    """The answers without those of the history."""
    if history == 0:
        return answers
    if not pa.types.is_list(answers.type):
        return answers.slice(history)
    # A slice of a list array keeps all its values; take copies those needed.
    rows = row_numbers(len(answers)).slice(history)
    return answers.take(rows)


def _no_function(agg: Aggregation, error: Exception) -> SpecError:
    """An error that names the aggregation whose column Arrow has no function for."""
    return SpecError(
        f"pyarrow {pa.__version__} cannot compute with the column of {agg!r}: "
        f"{error}; cast the column to a simpler type"
    )


def map_lazily(
    lazy: Any, spec: Spec | Features, answer: Callable[..., Any], *others: Any
) -> Any:
    """Maps a LazyFrame, which stays lazy; `answer` takes its rows and other tables."""
    for _, agg in (pair for part in parts_of(spec) for pair in part.aggs):
        if isinstance(agg, CustomAggregation) and agg.functions.returns is None:
            raise SpecError(
                f"a LazyFrame needs the type of {agg!r} before there are answers: give "
                "sw.aggregation(..., returns=float), or call .collect() first"
            )
    return map_lazy(lazy, answer, *others)


def resolve_threads(threads: int | None, rows: int) -> int:
    """The number of threads for a table of so many rows.

    By default the cores that this process may use, but one per 65,536 rows: with fewer,
    a second thread took 30 % more processor time and saved 10 % of the time to wait.

    Example:
        >>> resolve_threads(3, rows=10), resolve_threads(None, rows=10)
        (3, 1)
    """
    if threads is not None:
        return _check_threads(threads)
    return max(min(_cores(), rows // _ROWS_PER_THREAD), 1)


def _cores() -> int:
    if sys.version_info >= (3, 13):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_threads(threads: object) -> int:
    number = as_int(threads)
    if number is not None and number >= 1:
        return min(number, _MAX_THREADS)
    raise SpecError(
        Argument("threads", threads),
        ": give 1 or more threads, or leave it out for the default",
    )
