"""A table bound to a Spec: what the passes of the kernel over it read."""

from collections.abc import Callable
from itertools import compress
from typing import Any, Self

import pyarrow as pa

import slidewise._core as _core
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.call import Call
from slidewise.caching import cached_property
from slidewise.errors import SpecError
from slidewise.frames.base import Frame
from slidewise.spec.outputs import covers
from slidewise.spec.spec import Spec, derive
from slidewise.spec.windows.base import Span, Window
from slidewise.table.data_driven import Positions
from slidewise.table.encoding import KernelInputs
from slidewise.table.group_codes import group_codes
from slidewise.table.lowering import Plan, plan
from slidewise.table.source import Source
from slidewise.table.threads import check_threads
from slidewise.table.time_columns import RowKeys, TicksOf, order_by

__all__ = ["Binding", "no_function"]


class Binding:
    """Binds a table to a `Spec`: its rows, the windows, and the calls of the kernel.

    Args:
        source: The table.
        spec: The windows and aggregations.
        history: The first `history` rows are context: other rows' windows see them, and
            they get no results.
        name_row: Formats a row for messages, by its index after the history.
        threads: The number of threads.

    Attributes:
        calls: The kernel calls, each once, in the order of their answers.
        place_of: The place of each call among them.
        sorts_once: Whether passes, or other tables, share the sorted rows.
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
        self.history = history
        self.threads = check_threads(threads)
        self.name_row = name_row
        self.source = Source.of(source)
        self.spec = spec
        self.times = self.source.times(spec.on)
        self.arrivals = [self.source.times(name) for name in spec.arrivals]
        self.sorts_once = False
        self.spans = [self.span(window) for window in spec.windows]
        self.inputs = KernelInputs()
        self.columns = self.source.values(spec.nan)
        self.plans = []
        for _, agg in spec.aggs:
            try:
                self.plans.append(plan(agg, self.columns, self.inputs, spec.on))
            except pa.ArrowNotImplementedError as error:
                raise no_function(agg, error) from error
        calls = [call for plan in self.plans for call in self.calls_of(plan)]
        # Aggregations share equal calls.
        self.calls = list(dict.fromkeys(calls))
        self.place_of = {call: at for at, call in enumerate(self.calls)}

    def span(self, window: Window) -> Span:
        """A window in the ticks of the column of times."""
        return window.span(TicksOf(self.times))

    @cached_property
    def groups(self) -> pa.Array | None:
        """The key codes of the rows; None without keys. `at=` replaces them."""
        # Hopping windows are listed in key order, and history relies on it.
        in_order = self.spec.is_hopping or self.history > 0
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

    def calls_over(self, window: int) -> list[int]:
        """The places of the calls of the aggregations that a window has."""
        used = compress(self.plans, self.covering(window))
        places = {self.place_of[call] for by in used for call in self.calls_of(by)}
        return sorted(places)

    def naming(self, name_row: Callable[[int], str]) -> Self:
        """A copy that names rows in messages by another function."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, name_row=name_row)
        return other

    def allowing_overflow(self) -> Self:
        """A copy whose integer results are null where they do not fit their type.

        It decodes all aggregations over any window.
        """
        other = self.naming(str)
        other.spec = derive(self.spec, overflow="null", own=())
        return other

    @cached_property
    def reads(self) -> list[tuple[list[int], int | None]]:
        """Per aggregation the places of its calls, and of the count for `min_rows`."""
        counts = self.place_of if self.spec.min_rows else {}
        return [
            (
                [self.place_of[call] for call in plan.calls],
                None if plan.count_call is None else counts.get(plan.count_call),
            )
            for plan in self.plans
        ]

    def covering(self, window: int) -> tuple[bool, ...]:
        """Of each aggregation, whether it is given over a window."""
        places, over = range(len(self.spec.aggs)), self.spec.windows[window]
        return tuple(covers(self.spec, at, over) for at in places)

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

    def _never_null(self, agg: Aggregation, plan: Plan) -> bool:
        """Whether every window with a row has a result."""
        return (
            agg.where is None
            and not agg.record.sparse
            and self.spec.overflow == "raise"
            and self.spec.min_rows <= 1
            and all(self.source.never_null(name) for name in plan.reads)
        )

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


def no_function(agg: Aggregation, error: Exception) -> SpecError:
    """An error that names the aggregation whose column Arrow has no function for."""
    return SpecError(
        f"pyarrow {pa.__version__} cannot compute with the column of {agg!r}: "
        f"{error}; cast the column to a simpler type"
    )
