"""Computes the windows of a table in passes of the native kernel."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations.custom import CustomAggregation
from slidewise.caching import cached_property
from slidewise.errors import SpecError
from slidewise.frames.base import Result
from slidewise.frames.lazy import map_lazy
from slidewise.spec.features import Features, parts_of
from slidewise.spec.spec import Spec
from slidewise.spec.windows.base import Span, Window
from slidewise.table.arrays import one_column, row_numbers
from slidewise.table.binding import Binding
from slidewise.table.carried import span_before
from slidewise.table.kernel_pass import KernelPass, together
from slidewise.table.points import QueryPoints
from slidewise.table.time_columns import subtract_clamped

__all__ = ["KernelCall", "map_lazily"]


class KernelCall(Binding):
    """A table bound to a `Spec`; `compute` runs the kernel."""

    def take_order(self, other: "KernelCall") -> None:
        """Takes the keys and the order of the rows from a call with the same keys."""
        self.groups, self.arrival = other.groups, other.arrival
        self.layout, self.sorts_once = other.layout, True

    def compute(self, points: QueryPoints | None = None) -> list[dict[str, Result]]:
        """Computes the results by name, per window: at every row or at query points.

        Raises:
            ResultOverflowError: If an integer result does not fit its type, unless
                `min_rows` makes it null.
        """
        at_rows = points is None and not self.arrivals
        leaves_out = self.spec.exclude if points is None else None
        by_position, alone = [], []
        # Windows of the same aggregations share a pass.
        by_time: dict[tuple[bool, ...], list[int]] = {}
        for at, window in enumerate(self.spec.windows):
            if self._finds_positions(window, leaves_out=bool(leaves_out) and at_rows):
                by_position.append(at)
            elif window.by_calendar and points is not None and not self.arrivals:
                alone.append(at)
            else:
                by_time.setdefault(self.covering(at), []).append(at)
        again = self._rows_again(by_time) if at_rows else {}
        several = len(by_time) > 1 or alone or again or leaves_out
        self.sorts_once |= bool(several)
        given = self._own_points if leaves_out and not at_rows else points
        found: dict[int, dict[str, Result]] = {}
        for ats in by_time.values():
            one = KernelPass(self, ats, given, points is None, again=again)
            found.update(one.results())
        for at in by_position:
            window = self.spec.windows[at]
            if points is None:
                results = self._pass(at, self._ends_at_rows(window), at_rows=True)
                found[at] = _without(results, window.missing(self.positions))
            else:
                found[at] = self._pass(at, self._ends_at_points(window, points))
        for at in alone:
            assert points is not None, "rows are answered together"
            found[at] = self._in_passes(at, points, row_numbers(len(points.ends)))
        for at, rows in again.items():
            own = self._own_points.take(rows)
            later = self._in_passes(at, own, rows, at_rows=True)
            found[at] = _replaced(found[at], rows, later)
        return [found[at] for at in range(len(self.spec.windows))]

    def _pass(
        self,
        at: int,
        points: QueryPoints,
        places: pa.Array | None = None,
        *,
        at_rows: bool = False,
    ) -> dict[str, Result]:
        """The results of one window by one pass."""
        return KernelPass(self, [at], points, at_rows, places).results()[at]

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
            numbers = pc.subtract(pa.concat_arrays(rows), self.history)
            numbers = pc.unique(numbers.filter(pc.greater_equal(numbers, 0)))
            if len(numbers):
                found[at] = numbers.take(pc.sort_indices(numbers))
        return found

    @cached_property
    def _peers(self) -> pa.Array:
        """The rows whose time other rows of their key have, too."""
        return pa.array(self.layout.peers(self.times.ticks))

    def compute_window(self, at: int, points: QueryPoints) -> dict[str, Result]:
        """Computes the results by name of one of the windows, at query points.

        Raises:
            ResultOverflowError: As for `compute`.
        """
        return self._pass(at, points)

    def _in_passes(
        self, at: int, points: QueryPoints, places: pa.Array, *, at_rows: bool = False
    ) -> dict[str, Result]:
        """The results of a window at query points, with their numbers.

        Kernels take windows whose starts go forward; those of a calendar that do not
        are taken in several passes.
        """
        calendar = self.spans[at].calendar
        if calendar is None:
            return self._pass(at, points, places, at_rows=at_rows)
        found, passes = calendar.starts(points.ends)
        points = replace(points, starts=pa.array(found))
        if at_rows and self.spec.ties == "rows" and not self.spec.exclude:
            points = self._among_peers(at, points, places)
        if passes is None:
            return self._pass(at, points, places, at_rows=at_rows)
        passes = pa.array(passes)
        rows = [
            pc.indices_nonzero(pc.equal(passes, number)) for number in passes.unique()
        ]
        parts = [
            self._pass(at, points.take(some), places.take(some), at_rows=at_rows)
            for some in rows
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
            None if column is None else column.slice(self.history)
            for column in self.rows
        ]
        return QueryPoints(
            *(keys[0], None, keys[1], keys[2], "row"),
            own=self._own_rows,
            leaves_out=self.spec.exclude is not None,
        )

    @cached_property
    def _own_rows(self) -> pa.Array | None:
        """The numbers of the rows after the history, if results need them."""
        if not self.spec.asks_for_rows:
            return None
        return row_numbers(len(self.times.ticks)).cast(pa.int64()).slice(self.history)

    def _among_peers(self, at: int, points: QueryPoints, rows: pa.Array) -> QueryPoints:
        """The windows of some rows, each up to its row, as positions."""
        places = self.positions.of_rows.slice(self.history).take(rows)
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
        places = self.positions.of_rows.slice(self.history)
        starts, ends = window.bounds(self.positions, own=not self.spec.exclude)
        # A tree answers starts that go back, as if all rows had arrived together.
        before, after = starts.slice(0, max(len(starts) - 1, 0)), starts.slice(1)
        forward = pc.all(pc.greater_equal(after, before)).as_py()
        since = window.since(self.positions)
        return QueryPoints(
            ends=ends.take(places),
            starts=starts.take(places),
            groups=None if self.groups is None else self.groups.slice(self.history),
            arrival=None if forward else together(len(places)),
            noun="row",
            by_position=True,
            times=self.times.ticks.slice(self.history),
            since=None if since is None else since.slice(self.history),
            own=self._own_rows,
        )

    def _ends_at_points(self, window: Window, points: QueryPoints) -> QueryPoints:
        """The windows that end with the last row up to each query point."""
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

    def decode(
        self,
        answers: Sequence[Sequence[Any]],
        beyond: Iterable[tuple[int, int, int, int]],
        points: QueryPoints | None,
        ends: pa.Array,
    ) -> list[dict[str, Result]]:
        """The results by name, per window, of answers over `all_spans` of a caller.

        Python aggregations have no such answers, and need `compute`.

        Args:
            answers: Per window and kernel call, in the order of `calls`, a column.
            beyond: Sums beyond int64: their window, call, row and value.
            points: The query points of the answers; None for the table's rows.
            ends: The ends of the windows, in ticks.

        Raises:
            ResultOverflowError: As for `compute`.
        """
        # Those after changes are in one list, whatever the number of windows.
        count = min(len(self.spans), len(answers))
        windows = range(count)
        found = {at: dict(enumerate(answers[at])) for at in windows}
        before = {
            at: {call: pa.array(column) for call, column in enumerate(window)}
            for at, window in zip(self._spans_before, answers[count:], strict=True)
        }
        answered = KernelPass(
            self, windows, points, points is None, ends=ends, before=before
        )
        # A sum of the entries before a window is no result.
        of_windows = (each for each in beyond if each[0] < count)
        results = answered.decode(found, of_windows)
        return [results[at] for at in windows]

    @property
    def all_spans(self) -> list[Span]:
        """The spans of the windows, then those of the entries before some of them."""
        return [*self.spans, *self._spans_before.values()]

    @cached_property
    def _spans_before(self) -> dict[int, Span]:
        """By window, the span of the entries before it, if it begins with the last."""
        found = {}
        for at, window in enumerate(self.spec.windows):
            plans = itertools.compress(self.plans, self.covering(at))
            before = span_before(window, self.spans[at])
            if before is not None and any(by.before for by in plans):
                found[at] = before
        return found


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


def _without(results: dict[str, Result], missing: pa.Array | None) -> dict[str, Result]:
    """Results that are null in some rows, if there are such."""
    if missing is None:
        return results
    places = pc.if_else(missing, None, row_numbers(len(missing)))
    return {
        name: result._replace(array=result.array.take(places), nullable=True)
        for name, result in results.items()
    }


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
