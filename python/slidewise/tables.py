"""Rolling aggregates over tables.

`rolling` takes a table of any make and gives it back with a column per window and
aggregation. The way there: the `Spec` says what is asked, a frame gives the columns, a
plan per aggregation hands them to the kernel in a form it knows, and the answers come
back in the types one expects.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from slidewise import _core
from slidewise.aggregations import Aggregation
from slidewise.columns import Columns, Feeds, group_codes
from slidewise.durations import WindowLike
from slidewise.errors import ResultOverflowError, SpecError
from slidewise.frames import Frame, Result, frame, refuse_taken, require
from slidewise.own import OwnAggregation
from slidewise.spec import Spec, WindowSpec
from slidewise.table_plans import Call, Plan, in_one_type, plan
from slidewise.times import TimeColumn, read_times, window_units

__all__ = ["rolling", "rolling_spec"]

TableT = TypeVar("TableT")


def rolling(
    table: TableT,
    *,
    on: str,
    windows: WindowLike | Iterable[WindowLike],
    aggs: Mapping[str, Aggregation],
    by: str | Sequence[str] | None = None,
    closed: str = "right",
    ties: str = "peers",
    nan: str = "propagate",
    arrival: str | None = None,
    min_rows: int = 0,
) -> TableT:
    """Rolling aggregates: for every row, over the rows in the window that it ends.

    The table comes back as the same type, rows in their original order, with one column
    `<name>_<window>` per window and aggregation appended. It need not be sorted.

    The window of a row at time t and of length w, by `closed`:

    ```
        "right"    (t−w, t]      "left"     [t−w, t)
        "both"     [t−w, t]      "neither"  (t−w, t)
    ```

    Args:
        table: A pyarrow Table or RecordBatch, a pandas or polars DataFrame, or anything
            with `__arrow_c_stream__` (which comes back as a pyarrow Table). In pandas
            the names of index levels work like columns.
        on: The column of event times: timestamps of any unit and zone, dates, durations
            or integers.
        windows: One window or several: `"90s"`, `"15m"`, `"1h"`, `"7d"`, a `timedelta`,
            an int in the units of an integer time column, or `rows(n)`.
        aggs: Names and aggregations, such as `{"avg": sw.mean("price")}`.
        by: The key column, or several: each key has its own windows. A null is a key of
            its own.
        closed: Which ends belong to the window.
        ties: Rows of equal time see all of one another ("peers", as SQL does), or only
            those before them in the table ("rows", as pandas does).
        nan: NaN is a value and propagates ("propagate"), is missing ("skip"), or is
            refused ("raise"). In numpy-backed pandas columns NaN is how a missing value
            is written, and is a null.
        arrival: The column that says in which order rows arrived. Each row then sees
            only rows that arrived no later than itself, equal arrivals in table order:
            what a server would have answered at that moment. `ties` has no say then.
        min_rows: Windows with fewer values that are not null give null (counts stay).

    Returns:
        The table with the results. In pandas, integer results that can be null are
        nullable integers (`Int64`), and all results follow the flavour of their column
        (numpy, masked or Arrow).

    Raises:
        SpecError: If an argument, a column or a value is wrong; nothing is computed.
        ResultOverflowError: If an integer result does not fit its type.

    Cost: O(n log n) to sort what is not sorted; then per window ≤ 3 combines per row,
    whatever its length. With `arrival=`, O(log n) combines per row and window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = pa.table({"t": [10, 11, 14], "at": [*"AAB"], "km": [3, 5, 4]})
        >>> out = sw.rolling(trips, on="t", by="at", windows=[2, sw.rows(10)],
        ...                  aggs={"n": sw.count(), "km": sw.sum("km")})
        >>> out["n_2"].to_pylist(), out["km_10rows"].to_pylist()
        ([1, 2, 1], [3, 8, 4])
    """
    spec = Spec.make(
        on=on,
        windows=windows,
        aggs=aggs,
        by=by,
        closed=closed,
        ties=ties,
        nan=nan,
        arrival=arrival,
        min_rows=min_rows,
    )
    return rolling_spec(table, spec)


def rolling_spec(table: TableT, spec: Spec) -> TableT:
    """The same as `rolling`, for a `Spec` that is made already.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> from slidewise.spec import Spec
        >>> spec = Spec.make(on="t", windows=5, aggs={"n": sw.count()})
        >>> rolling_spec(pa.table({"t": [1, 2]}), spec)["n_5"].to_pylist()
        [1, 2]
    """
    source = frame(table)
    require(source, spec.columns)
    refuse_taken(source, spec.results)
    request = _Request(source, spec)
    answers = request.ask()
    results = iter(spec.results)
    appended = {
        next(results): request.result(index, agg, plan, answers[index])
        for index, _ in enumerate(spec.windows)
        for (_, agg), plan in zip(spec.aggs, request.plans, strict=True)
    }
    answer: TableT = source.append(appended)
    return answer


class _Request:
    """One call of the kernel: what is asked of it, and what its answers mean."""

    def __init__(self, source: Frame, spec: Spec) -> None:
        self._source = source
        self._spec = spec
        times = read_times(source.column(spec.on), spec.on)
        self._times = times.ticks
        self._spans = [_span(window, times) for window in spec.windows]
        self._arrival = None
        if spec.arrival is not None:
            arrival = source.column(spec.arrival)
            self._arrival = read_times(arrival, spec.arrival).ticks
        self._feeds = Feeds()
        self._columns = Columns(source.column, spec.nan)
        self._own: dict[OwnAggregation, list[list[Any]]] = {}
        self.plans = []
        for _, agg in spec.aggs:
            with _in_arrow_for(agg):
                self.plans.append(plan(agg, self._columns, self._feeds, spec.on))
        asked = [call for plan in self.plans for call in self._calls_of(plan)]
        # Aggregations may ask for the same; each call is asked once.
        self._calls = {call: at for at, call in enumerate(dict.fromkeys(asked))}

    def _calls_of(self, plan: Plan) -> tuple[Call, ...]:
        if self._spec.min_rows and plan.present is not None:
            return (*plan.calls, plan.present)
        return plan.calls

    def ask(self) -> list[list[pa.Array]]:
        """The kernel's answers: per window, per call."""
        keys = [(name, self._source.column(name)) for name in self._spec.by]
        groups = group_codes(keys)
        self._ask_own(groups)
        try:
            answers = _core.rolling(
                self._times,
                groups,
                self._feeds.columns,
                list(self._calls),
                self._spans,
                self._spec.ties,
                self._arrival,
                self._feeds.natives,
            )
        except ResultOverflowError as error:
            raise self._overflow(error) from None
        return [[pa.array(column) for column in window] for window in answers]

    def _ask_own(self, groups: pa.Array | None) -> None:
        """The answers of the user's own aggregations: per window, per row."""
        for _, agg in self._spec.aggs:
            if isinstance(agg, OwnAggregation) and agg not in self._own:
                assert agg.of is not None, "a Spec does not let this through"
                values = self._columns.of(agg.of, where=agg.where)
                self._own[agg] = _core.rolling_own(
                    self._times,
                    groups,
                    values.original.to_pylist(),
                    agg.functions,
                    self._spans,
                    self._spec.ties,
                    self._arrival,
                )

    def result(
        self, index: int, agg: Aggregation, plan: Plan, answers: list[pa.Array]
    ) -> Result:
        """The result of one aggregation over one window."""
        window = self._spec.windows[index]
        try:
            with _in_arrow_for(agg):
                if isinstance(agg, OwnAggregation):
                    array = in_one_type(agg, self._own[agg][index])
                else:
                    asked = [answers[self._calls[call]] for call in plan.calls]
                    array = plan.finish(asked)
        except ResultOverflowError as error:
            raise _overflow(agg, window, error) from None
        if self._spec.min_rows and plan.present is not None:
            few = pc.less(answers[self._calls[plan.present]], self._spec.min_rows)
            array = pc.if_else(few, pa.scalar(None, array.type), array)
        there = agg.where is None and self._always_there(window, plan)
        nullable = plan.present is not None and not there
        return Result(array, plan.source, plan.keeps, nullable)

    def _always_there(self, window: WindowSpec, plan: Plan) -> bool:
        """Whether every window holds a value, whatever the data: the row's own."""
        return (
            window.closed in ("right", "both")
            and self._spec.min_rows <= 1
            and all(self._source.never_null(name) for name in plan.reads)
        )

    def _overflow(self, error: Any) -> ResultOverflowError:
        call = list(self._calls)[error.aggregation]
        plans = zip(self._spec.aggs, self.plans, strict=True)
        agg = next(agg for (_, agg), plan in plans if call in plan.calls)
        return _overflow(agg, self._spec.windows[error.window], error)


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


def _overflow(agg: Aggregation, window: WindowSpec, error: Any) -> ResultOverflowError:
    return ResultOverflowError(
        f"{agg!r} over the window {window.label!r} of row {error.row} (counting from "
        f"0): {error}; cast the column to float64 if rounding is fine"
    )


def _span(window: WindowSpec, times: TimeColumn) -> tuple[str, int, str]:
    kind = "rows" if window.kind == "rows" else "time"
    return kind, window_units(window.as_length, times), window.closed
