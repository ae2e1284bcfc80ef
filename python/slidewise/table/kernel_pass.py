"""One pass of the kernel over some windows, and the results of its answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.custom import CustomAggregation
from slidewise.errors import Argument, ResultOverflowError, SpecError
from slidewise.frames.base import Result
from slidewise.spec.outputs import column_of
from slidewise.spec.windows.base import Span, Window
from slidewise.table.arrays import row_numbers, with_nulls
from slidewise.table.binding import Binding, no_function
from slidewise.table.carried import Before, entries_before, starts_of
from slidewise.table.decoding import in_one_type
from slidewise.table.filling import fill_nulls
from slidewise.table.lowering import Plan
from slidewise.table.own_functions import lifted_values, lowered
from slidewise.table.points import QueryPoints
from slidewise.table.time_columns import RowKeys

__all__ = ["KernelPass", "together"]

# The span of windows whose ends are positions.
_AMONG_POSITIONS = Span("time", 1, "both")
# The ends of a window without the time of its row.
_BEFORE = {"right": "neither", "both": "left"}

# A kernel's answers by window and call, which are places.
_Answers: TypeAlias = Mapping[int, Mapping[int, pa.Array]]
# A sum beyond int64: its window, call, row and value.
_Beyond: TypeAlias = Iterable[tuple[int, int, int, int]]


@dataclass(eq=False)
class KernelPass:
    """The windows and query points that one pass answers, in `results`.

    Args:
        table: The table.
        windows: The places of the windows, which the same aggregations are given over.
        points: The query points; None for the rows.
        at_rows: Whether each window is that of a row of the table.
        places: The numbers of the points, if these are some of several passes.
        again: Per window, the rows that a later pass answers.
        ends: The ends of the windows in ticks, if not those of the points or rows.
        before: Per window, the answers over the entries before it by call, if the
            caller has them.
    """

    table: Binding
    windows: Sequence[int]
    points: QueryPoints | None
    at_rows: bool
    places: pa.Array | None = None
    again: Mapping[int, pa.Array] = field(default_factory=dict)
    ends: pa.Array | None = None
    before: _Answers | None = None

    def __post_init__(self) -> None:
        self.spec = self.table.spec
        self.history = self.table.history if self.points is None else 0
        # The answers of Python aggregations, by window.
        self.custom: dict[tuple[CustomAggregation, int], list[Any]] = {}
        if self.ends is None:
            points, rows = self.points, self.table.times.ticks
            self.ends = rows.slice(self.history) if points is None else points.in_ticks

    def results(self) -> dict[int, dict[str, Result]]:
        """Runs the kernel: the results by name, by window.

        Raises:
            ResultOverflowError: If an integer result does not fit its type, unless
                `min_rows` makes it null.
        """
        table, points = self.table, self.points
        self._refuse_without_row()
        # As of arrival the rows of a key are in table order.
        shares = self.spec.is_hopping or (table.sorts_once and not table.arrivals)
        rows, layout = table.rows, table.layout if shares else None
        by_position = points is not None and points.by_position
        if by_position:
            assert points is not None, "positions are those of points"
            arrived = None if points.arrival is None else together(len(rows.times))
            rows = RowKeys(table.positions.of_rows, table.groups, arrived)
            layout = table.layout_by_position if arrived is None else None
        spans = [
            _AMONG_POSITIONS if by_position else self._span(at) for at in self.windows
        ]
        self._compute_custom(spans, rows)
        calls = table.calls_over(self.windows[0])
        raises = self.spec.overflow == "raise"
        try:
            answers, beyond = _core.rolling(
                rows,
                table.inputs.columns,
                [table.calls[at] for at in calls],
                spans,
                self.spec.ties,
                points,
                table.inputs.natives,
                self.history,
                table.threads,
                layout,
                # `min_rows` makes some results null, even if they overflow.
                raises and self.spec.min_rows <= 1 and not self.again,
            )
        except ResultOverflowError as error:
            window = self.windows[error.window]  # type: ignore[attr-defined]
            call = calls[error.aggregation]  # type: ignore[attr-defined]
            row = error.row - self.history  # type: ignore[attr-defined]
            raise self._overflow(window, call, row, str(error)) from None
        found = [dict(zip(calls, window, strict=True)) for window in answers]
        named = ((at, calls[call], row, value) for at, call, row, value in beyond)
        return self.decode(dict(zip(self.windows, found, strict=True)), named)

    def _refuse_without_row(self) -> None:
        """Refuses aggregations that need a row, at points that are no rows."""
        if self.points is None or self.points.own is not None:
            return
        for _, agg in compress(self.spec.aggs, self.table.covering(self.windows[0])):
            if agg.record.needs_row:
                raise SpecError(agg.row_error)

    def _span(self, at: int) -> Span:
        """The span of a window in this pass."""
        span = self.table.spans[at]
        leaves_out = self.spec.exclude and self.spec.windows[at].holds_its_row
        if self.points is not None or not leaves_out:
            return span
        return span._replace(closed=_BEFORE[span.closed])

    def _compute_custom(self, spans: list[Span], rows: RowKeys) -> None:
        """Computes Python aggregations: per window, the answers at rows or points."""
        table = self.table
        covered = compress(self.spec.aggs, table.covering(self.windows[0]))
        for agg in dict.fromkeys(agg for _, agg in covered):
            if not isinstance(agg, CustomAggregation):
                continue
            assert agg.of is not None, "a Spec does not let this through"
            values, functions = lifted_values(
                agg, table.columns, table.source, self.spec.on
            )
            answers = _core.rolling_udaf(
                rows,
                values,
                functions,
                spans,
                self.spec.ties,
                self.points,
                self.history,
            )
            for window, of_window in zip(self.windows, answers, strict=True):
                found = of_window[self.history :]
                if agg.seen.ends:
                    until = self._moved_ends(window)
                    starts = starts_of(table.spans[window], self.points, until)
                    found = lowered(agg, found, table.times, starts, until)
                self.custom[agg, window] = found

    def decode(
        self, answers: _Answers, beyond: _Beyond
    ) -> dict[int, dict[str, Result]]:
        """The results by name, by window, of answers of the kernel.

        Raises:
            ResultOverflowError: As for `results`.
        """
        columns = {
            at: {
                call: _without_history(self.history, pa.array(column))
                for call, column in window.items()
            }
            for at, window in answers.items()
        }
        if self.spec.overflow == "raise":
            self._refuse_sums(columns, beyond)
        return {at: self._results_of(at, columns[at]) for at in columns}

    def _refuse_sums(self, columns: _Answers, beyond: _Beyond) -> None:
        """Refuses sums beyond int64, where a result shows them."""
        windows = list(columns)
        for place, call, number, value in beyond:
            window, row = windows[place], number - self.history
            caller = self._caller(call, window)
            if caller is None:  # no aggregation of this window
                continue
            again = self.again.get(window)
            if again is not None and pc.index(again, row).as_py() >= 0:
                continue
            if not self._below_min_rows(caller[1], columns[window], row):
                why = f"{value} does not fit int64"
                raise self._overflow(window, call, row, why)

    def _results_of(
        self, at: int, answers: Mapping[int, pa.Array]
    ) -> dict[str, Result]:
        """The results of a window by name."""
        window, fill = self.spec.windows[at], dict(self.spec.fill)
        holds_a_row = self._holds_a_row(window)
        results = {}
        covering = self.table.covering(at)
        for (name, agg), by, never_null, dtype in compress(
            self.table.decoding, covering
        ):
            array = self._array(at, agg, by, answers)
            nullable = by.count_call is not None and not (never_null and holds_a_row)
            if name in fill:
                column = column_of(self.spec, name, window)
                array, nullable = fill_nulls(array, fill[name], column), False
            results[name] = Result(array, dtype, by.same_type, nullable)
        return results

    def _moved_ends(self, window: int) -> pa.Array:
        """The ends of a window in ticks, moved by its offset if this is one of time."""
        span = self.table.spans[window]
        moves = span.offset and span.kind != "rows"
        return pc.subtract(self.ends, span.offset) if moves else self.ends

    def _array(
        self, at: int, agg: Aggregation, plan: Plan, answers: Mapping[int, pa.Array]
    ) -> pa.Array:
        """The result of one aggregation over one window."""
        place_of, min_rows = self.table.place_of, self.spec.min_rows
        too_few = None
        if min_rows and plan.count_call is not None:
            too_few = pc.less(answers[place_of[plan.count_call]], min_rows)
        raw = [answers[place_of[call]] for call in plan.calls]
        if plan.ended:
            raw.append(self._moved_ends(at))
        try:
            if isinstance(agg, CustomAggregation):
                array = in_one_type(agg, self.custom[agg, at], agg.functions)
            else:
                array = plan.decode(raw, *self._before(at, plan))
        except pa.ArrowNotImplementedError as error:
            raise no_function(agg, error) from error
        if plan.overflow_reason is not None and self.spec.overflow == "raise":
            beyond = pc.and_(array.is_null(), raw[0].is_valid())
            if too_few is not None:
                beyond = pc.and_(beyond, pc.invert(too_few))
            if at in self.again:
                again = pc.is_in(row_numbers(len(beyond)), self.again[at])
                beyond = pc.and_not(beyond, again)
            row = pc.index(beyond, True).as_py()
            if row >= 0:
                window = self.spec.windows[at]
                raise self._overflow_of(agg, window, row, plan.overflow_reason)
        return array if too_few is None else with_nulls(array, too_few)

    def _before(self, at: int, plan: Plan) -> tuple[Before | None, ...]:
        """The entries before the windows, for an aggregation that carries them."""
        table = self.table
        if plan.before is None:
            return ()
        window = self.spec.windows[at]
        starts = starts_of(table.spans[at], self.points, self._moved_ends(at))
        if starts is None or not window.begins_at_time:
            return (None,)
        if self.before is not None:
            places = map(table.place_of.__getitem__, plan.before)
            return (Before(starts, *(self.before[at][place] for place in places)),)
        arrivals = bool(table.arrivals)
        groups, arrival = table.groups, table.arrival
        if self.points is not None:
            groups, arrival = self.points.groups, self.points.arrival
        elif self.history:
            groups = None if groups is None else groups.slice(self.history)
        found = entries_before(
            starts,
            window.includes_start,
            (groups, arrival if arrivals else None),
            table.rows,
            table.inputs.columns,
            plan.before,
            None if arrivals else table.layout,
            table.threads,
        )
        return (found,)

    def _holds_a_row(self, window: Window) -> bool:
        """Whether every window holds a row, for any data."""
        if self.spec.is_hopping:
            return not self.spec.empty
        return self.at_rows and window.holds_its_row and not self.spec.exclude

    def _below_min_rows(
        self, plan: Plan, answers: Mapping[int, pa.Array], row: int
    ) -> bool:
        """Whether a window holds fewer values than `min_rows`."""
        if not self.spec.min_rows or plan.count_call is None:
            return False
        count: int = answers[self.table.place_of[plan.count_call]][row].as_py()
        return count < self.spec.min_rows

    def _caller(self, call: int, window: int) -> tuple[Aggregation, Plan] | None:
        """The first aggregation of a window that makes a call; None without one."""
        table = self.table
        pairs = zip(self.spec.aggs, table.plans, strict=True)
        for (_, agg), by in compress(pairs, table.covering(window)):
            if table.calls[call] in table.calls_of(by):
                return agg, by
        return None

    def _overflow(self, at: int, call: int, row: int, why: str) -> ResultOverflowError:
        caller = self._caller(call, at)
        assert caller is not None, "a window has only the calls of its aggregations"
        return self._overflow_of(caller[0], self.spec.windows[at], row, why)

    def _overflow_of(
        self, agg: Aggregation, window: Window, row: int, why: str
    ) -> ResultOverflowError:
        if self.places is not None:
            row = self.places[row].as_py()
        if self.table.name_row is not None:
            name = self.table.name_row(row)
        else:
            what = "row" if self.points is None else self.points.noun
            name = f"{what} {row} (counting from 0)"
        return ResultOverflowError(
            f"{agg!r} over the window {window.label!r} of {name}: {why}; cast the "
            "column to float64 if rounding is fine, or give ",
            Argument("overflow", "null"),
        )


def together(count: int) -> pa.Array:
    """The arrival of rows that have all arrived together."""
    return pa.repeat(pa.scalar(0, pa.int64()), count)


def _without_history(history: int, answers: pa.Array) -> pa.Array:
    """The answers without those of the history."""
    if history == 0:
        return answers
    if not pa.types.is_list(answers.type):
        return answers.slice(history)
    # A slice of a list array keeps all its values; take copies those needed.
    rows = row_numbers(len(answers)).slice(history)
    return answers.take(rows)
