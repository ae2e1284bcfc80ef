"""One call of the kernel over a table: what is asked of it, what its answers mean."""

import operator
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.aggregations import HOLISTIC, Aggregation
from slidewise.aggregations.custom import CustomAggregation
from slidewise.errors import Argument, ResultOverflowError, SpecError
from slidewise.frames.base import Frame, Result
from slidewise.frames.polars import map_lazy
from slidewise.spec.spec import Spec, WindowSpec
from slidewise.table.encoding import (
    KernelInputs,
    ValueColumns,
    group_codes,
    row_numbers,
    with_nulls,
)
from slidewise.table.lowering import Call, Plan, in_one_type, plan
from slidewise.table.time_columns import TimeColumn, read_times, window_ticks

__all__ = ["KernelCall", "QueryPoints", "map_lazily", "resolve_threads"]

# Kind, length, closed and offset, in the ticks of the time column.
_MOST_THREADS = 1 << 10
_Span = tuple[str, int, str, int]
_Columns = tuple[pa.Array, pa.Array | None, pa.Array | None, pa.Array | None]


@dataclass(frozen=True, slots=True)
class QueryPoints:
    """When to answer, where it is not at every row.

    Attributes:
        times: Where windows end, in ticks of the table's time column.
        since: Where they begin, instead of a length before their end.
        groups: Their keys, in the codes of the table's rows; None without keys.
        arrival: What has arrived by then counts; None if all does.
        called: What a moment is to the user, for messages.
    """

    times: pa.Array
    since: pa.Array | None
    groups: pa.Array | None
    arrival: pa.Array | None
    called: str

    @property
    def columns(self) -> "_Columns":
        """For the kernel."""
        return (self.times, self.since, self.groups, self.arrival)


class KernelCall:
    """A table and a `Spec`, ready to be asked.

    Args:
        source: The table.
        spec: What is asked.
        history: So many rows from the top are seen by the others, not answered: the
            answers at rows begin behind them.
        named: How messages name a row, which is counted from the first answered one.
        lifted: Rows may stand for many: their `partials`, null where a row is itself.
            Only a request that `folds` takes and gives them.
        threads: How many threads may work.
    """

    def __init__(
        self,
        source: Frame,
        spec: Spec,
        *,
        history: int = 0,
        named: Callable[[int], str] | None = None,
        lifted: pa.Array | None = None,
        threads: int = 1,
    ) -> None:
        self._history = history
        self._threads = _checked_threads(threads)
        self.named = named
        self._lifted = lifted
        self.source = source
        self.spec = spec
        self.times = read_times(source.column(spec.on), spec.on)
        self.arrival: TimeColumn | None = None
        if spec.arrival is not None:
            column = source.column(spec.arrival)
            self.arrival = read_times(column, spec.arrival)
        self.moments: QueryPoints | None = None
        self.spans = [_span(window, self.times) for window in spec.windows]
        self._feeds = KernelInputs()
        self._columns = ValueColumns(source.column, spec.nan)
        self._own: dict[CustomAggregation, list[list[Any]]] = {}
        self.plans = []
        for _, agg in spec.aggs:
            with _in_arrow_for(agg):
                self.plans.append(plan(agg, self._columns, self._feeds, spec.on))
        asked = [call for plan in self.plans for call in self._calls_of(plan)]
        # Aggregations may ask for the same; each call is asked once.
        self._calls = {call: at for at, call in enumerate(dict.fromkeys(asked))}

    @cached_property
    def groups(self) -> pa.Array | None:
        """Codes of the rows' keys; None without keys. `at=` brings codes of its own."""
        # Windows at a distance come in the order of their keys, and history goes by it.
        in_order = self.spec.is_hopping or self._history > 0
        return group_codes(self.key_columns, in_order=in_order)

    @property
    def key_columns(self) -> list[tuple[str, pa.Array]]:
        """The key columns of the table itself."""
        return self.keys(self.source)

    def keys(self, source: Frame) -> list[tuple[str, pa.Array]]:
        """The key columns of a table."""
        return [(name, source.column(name)) for name in self.spec.by]

    @property
    def rows(self) -> tuple[pa.Array, pa.Array | None, pa.Array | None]:
        """Times, groups and arrival of the rows, for the kernel."""
        arrival = self.arrival and self.arrival.ticks
        return (self.times.ticks, self.groups, arrival)

    @cached_property
    def laid(self) -> _core.SortLayout:
        """The rows in order: once for their windows and for what these are asked."""
        return _core.sort_rows(self.rows, self._threads)

    def way(self, kind: str, of: int, number: int) -> str:
        """What the core does for a call."""
        way = _core.kernel_kind(kind, number)
        whole = of >= 0 and pa.types.is_integer(self._feeds.columns[of].type)
        return "whole sums" if way == "sums" and whole else way

    def _calls_of(self, plan: Plan) -> tuple[Call, ...]:
        if self.spec.min_rows and plan.present is not None:
            return (*plan.calls, plan.present)
        return plan.calls

    def ask(self, moments: QueryPoints | None = None) -> list[dict[str, Result]]:
        """The results by name, per window: at every row, or at moments.

        Raises:
            ResultOverflowError: If an integer result does not fit its type, and is
                null for no other reason.
        """
        self.moments = moments
        at = None if moments is None else moments.columns
        history = self._history if moments is None else 0
        self._ask_own(at, history)
        raises = self.spec.overflow == "raise"
        try:
            answers, beyond = _core.rolling(
                self.rows,
                self._feeds.columns,
                list(self._calls),
                self.spans,
                self.spec.ties,
                at,
                self._feeds.natives,
                history,
                self._lifted,
                self._threads,
                self.laid if self.spec.is_hopping else None,
                # Windows of few values are null, whatever they overflow.
                raises and self.spec.min_rows <= 1,
            )
        except ResultOverflowError as error:
            where = (error.window, error.aggregation, error.row)  # type: ignore[attr-defined]
            raise self._overflow(where, history, str(error)) from None
        columns = [
            [_behind(history, pa.array(column)) for column in window]
            for window in answers
        ]
        for window, call, row, value in beyond if raises else ():
            if not self._is_few(columns[window], call, row - history):
                why = f"{value} does not fit int64"
                raise self._overflow((window, call, row), history, why)
        aggs = list(zip(self.spec.aggs, self.plans, strict=True))
        return [
            {
                name: self._result(index, agg, plan, columns[index])
                for (name, agg), plan in aggs
            }
            for index in range(len(self.spec.windows))
        ]

    @property
    def folds(self) -> bool:
        """Whether rows can be folded beforehand, for answers over other tables, too.

        Not where values are told apart by their rows or ranks in this table, where all
        of them are needed, and where Python functions combine.
        """
        absolute = self._feeds.absolute
        return all(
            plan.calls
            and agg.kind not in HOLISTIC
            and all(
                kind == "count" or all(absolute[at] for at in (of, by) if at >= 0)
                for kind, of, by, _ in plan.calls
            )
            for (_, agg), plan in zip(self.spec.aggs, self.plans, strict=True)
        )

    def partials(self, moments: QueryPoints) -> pa.Array:
        """What is folded over moments, both ends included, as bytes."""
        return pa.array(
            _core.partials(
                self.rows,
                self._feeds.columns,
                list(self._calls),
                moments.columns,
                self._feeds.natives,
                self._lifted,
            )
        )

    def _ask_own(self, at: _Columns | None, history: int) -> None:
        """The answers of the user's own aggregations: per window, per moment."""
        for _, agg in self.spec.aggs:
            if isinstance(agg, CustomAggregation) and agg not in self._own:
                assert agg.of is not None, "a Spec does not let this through"
                values = self._columns.of(agg.of, where=agg.where)
                answers = _core.rolling_udaf(
                    self.rows,
                    values.original.to_pylist(),
                    agg.functions,
                    self.spans,
                    self.spec.ties,
                    at,
                    history,
                )
                self._own[agg] = [of_window[history:] for of_window in answers]

    def _result(
        self, index: int, agg: Aggregation, plan: Plan, answers: list[pa.Array]
    ) -> Result:
        """The result of one aggregation over one window."""
        window = self.spec.windows[index]
        few = None
        if self.spec.min_rows and plan.present is not None:
            few = pc.less(answers[self._calls[plan.present]], self.spec.min_rows)
        with _in_arrow_for(agg):
            if isinstance(agg, CustomAggregation):
                own = self._own[agg][index]
                array = in_one_type(agg, own, agg.functions)
            else:
                asked = [answers[self._calls[call]] for call in plan.calls]
                array = plan.finish(asked)
                if plan.limit is not None and self.spec.overflow == "raise":
                    beyond = pc.and_(array.is_null(), asked[0].is_valid())
                    if few is not None:
                        beyond = pc.and_(beyond, pc.invert(few))
                    row = pc.index(beyond, True).as_py()
                    if row >= 0:
                        raise self._overflow_of(agg, window, row, plan.limit)
        if few is not None:
            array = with_nulls(array, few)
        there = agg.where is None and self._always_there(window, plan)
        nullable = plan.present is not None and not there
        flavour = None if plan.source is None else self.source.flavour(plan.source)
        return Result(array, flavour, plan.keeps, nullable)

    def _always_there(self, window: WindowSpec, plan: Plan) -> bool:
        """Whether every window holds a value, whatever the data: the row's own."""
        if self.spec.is_hopping:
            holds_a_row = not self.spec.empty
        else:
            own = self.moments is None and window.offset == 0
            holds_a_row = own and window.closed in ("right", "both")
        return (
            holds_a_row
            and self.spec.overflow == "raise"
            and self.spec.min_rows <= 1
            and all(self.source.never_null(name) for name in plan.reads)
        )

    def _asker(self, call: int) -> tuple[Aggregation, Plan]:
        """The first aggregation that asks for a call."""
        asked = list(self._calls)[call]
        plans = zip(self.spec.aggs, self.plans, strict=True)
        return next(
            (agg, plan) for (_, agg), plan in plans if asked in self._calls_of(plan)
        )

    def _is_few(self, answers: list[pa.Array], call: int, row: int) -> bool:
        """Whether a window holds fewer values than it takes."""
        _, plan = self._asker(call)
        if not self.spec.min_rows or plan.present is None:
            return False
        count: int = answers[self._calls[plan.present]][row].as_py()
        return count < self.spec.min_rows

    def _overflow(
        self, where: tuple[int, int, int], history: int, why: str
    ) -> ResultOverflowError:
        index, call, row = where
        agg, _ = self._asker(call)
        window = self.spec.windows[index]
        return self._overflow_of(agg, window, row - history, why)

    def _overflow_of(
        self, agg: Aggregation, window: WindowSpec, row: int, why: str
    ) -> ResultOverflowError:
        if self.named is not None:
            called = self.named(row)
        else:
            what = "row" if self.moments is None else self.moments.called
            called = f"{what} {row} (counting from 0)"
        return ResultOverflowError(
            f"{agg!r} over the window {window.label!r} of {called}: {why}; cast the "
            "column to float64 if rounding is fine, or give ",
            Argument("overflow", "null"),
        )


def _behind(history: int, answers: pa.Array) -> pa.Array:
    """The answers behind those of history."""
    if history == 0:
        return answers
    if not pa.types.is_list(answers.type):
        return answers.slice(history)
    # Whoever reads a list's values reads all that its buffers hold.
    rows = row_numbers(len(answers)).slice(history)
    return answers.take(rows)


@contextmanager
def _in_arrow_for(agg: Aggregation) -> Iterator[None]:
    """Says whose column it is that Arrow has no function for."""
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise SpecError(
            f"pyarrow {pa.__version__} has no way to handle the column of {agg!r}: "
            f"{error}; cast the column to a plainer type"
        ) from error


def map_lazily(lazy: Any, spec: Spec, answer: Callable[[Any], Any]) -> Any:
    """The same of a LazyFrame, which stays lazy.

    Raises:
        SpecError: If only the rows tell which type a result has.
    """
    for _, agg in spec.aggs:
        if isinstance(agg, CustomAggregation) and agg.functions.returns is None:
            raise SpecError(
                f"the type of {agg!r} is known once there are answers, and a LazyFrame "
                "must know it before: give sw.aggregation(..., returns=float), or call "
                ".collect() on it first"
            )
    return map_lazy(lazy, answer)


def resolve_threads(threads: int | None) -> int:
    """So many threads; by default as many as this process may use cores.

    Example:
        >>> resolve_threads(3), resolve_threads(None) >= 1
        (3, True)
    """
    return _cores() if threads is None else _checked_threads(threads)


def _cores() -> int:
    if sys.version_info >= (3, 13):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _checked_threads(threads: object) -> int:
    if isinstance(threads, SupportsIndex) and not isinstance(threads, bool):
        number = operator.index(threads)
        if number >= 1:
            return min(number, _MOST_THREADS)
    raise SpecError(
        Argument("threads", threads),
        ": give how many threads may work, 1 or more, or leave it out for all cores",
    )


def _span(window: WindowSpec, times: TimeColumn) -> _Span:
    kind = "rows" if window.kind == "rows" else "time"
    length = window_ticks(window.as_length, times)
    # The offset of windows on a grid says where the grid lies, and moves no end.
    shift = 0 if window.every else window_ticks(window.as_offset, times)
    return kind, length, window.closed, shift
