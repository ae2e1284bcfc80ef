"""`SharedWindow`: several ranges or queries over one stream, in one structure."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

import slidewise._core as _core
from slidewise.aggregations import Aggregation
from slidewise.aggregations.scalars import as_int
from slidewise.errors import SpecError, describe_value
from slidewise.formatting import wrap_lines
from slidewise.hints import readable
from slidewise.spec.durations import WindowLike
from slidewise.window.due_answers import due_table
from slidewise.window.explain import why_lines
from slidewise.window.planner import make_plan
from slidewise.window.queries import Query, plan_lines, read_queries
from slidewise.window.window import (
    Window,
    as_bytes,
    named,
    read_spec,
    result_in_words,
    spec_of_plan,
    widened_in_words,
)
from slidewise.window.window_plan import WindowPlan

__all__ = ["SharedWindow"]


class SharedWindow(_core.Window):
    """Several ranges over one stream, such as the last 10, 100 and 1000 entries.

    The ranges share entries and partials, so they cost much less than a window each.
    All of them end at the latest entry. An entry is evicted once no range holds it.

    With `queries=` instead of `ranges=`, each range is answered once per slide, such as
    the last hour every five minutes. Entries are then folded into slices between the
    edges of the queries, and all queries share the slices. Answers fall due as entries
    arrive:

    - `insert` returns the answers that fell due as a list of (query, end, value), by
      end and then by query; `insert_many` returns a pyarrow.Table of these columns.
    - A query of time has a window (end - range, end] for every `end` that is a multiple
      of its slide. It falls due when an entry later than `end` is inserted (later than
      end + late, with `late=`), or at `advance`. Windows without entries are left out,
      unless `empty=True`. An entry is refused if more than 4 million answers would
      fall due with it.
    - A query of entries falls due with every slide-th entry, counted from the first
      one. Its window holds the last `range` entries, at the beginning fewer; its `end`
      is the time of the last one.
    - `Query` also takes `session("30m")`, `until("flag")` and `landmark("flag")`. A
      flag is a column of the values: true, false or null. Values are mappings then, and
      entries come in order.
    - `add` and `drop` change the queries while the stream runs.

    In both cases:

    - `insert` and `insert_many` add entries, in order of time (with `late=` also late).
    - `evict` and `evict_until` remove entries from all ranges.
    - `query` returns a list of current results, one per range or query.
    - `len`, `oldest`, `youngest` and `items` are those of the longest range.
    - `copy`, `to_bytes`, `from_bytes` and pickle copy the window.
    - `explain`, `check` and `nbytes` show its internals.

    Args:
        aggs: An aggregation, or a mapping of names to aggregations: then each result is
            a dict. If aggregations name columns, values are mappings.
        ranges: The lengths: numbers of entries (`rows(n)` or an int n) or durations
            such as "1h" or a timedelta. The range "1h" is (latest - 1h, latest].
        queries: Queries with range and slide (`Query`), instead of `ranges`.
        algorithm: "auto", or one of "slick_deque", "flat_fit", "flat_fat", "b_int",
            "amta", "daba_chain" and "recalculate": see `slidewise.algorithms`. "auto"
            chooses slick_deque for integers that subtract exactly and for a few
            aggregations that select values (up to four such as min, max and range),
            else flat_fit, which needs no law. With `queries` the algorithm is the final
            aggregator, which may also be "fiba"; "auto" chooses slick_deque for a few
            aggregations that select values, otherwise flat_fit.
        late: How late entries may be, for queries of time: a duration or an int. An
            entry at most this far behind the latest is inserted in order of time; a
            later one raises `OutOfOrderError`. None if entries come in order.
        offset: A duration or an int: the ends of queries of time are the multiples of
            their slides, counted from there. Default: the epoch (or 0); for weeks the
            Monday after it.
        empty: Whether windows without entries are answered, from the first entry on,
            even if it was evicted. A session always has entries.
        keep: "entries", or "slices", for queries of time: entries join the partial of
            their slice and are kept no longer, so that the space is that of the slices.
            Answers are the same. Then `len`, `items`, `oldest` and `evict` are of
            slices, each with its first time; `query` and `evict_until` are refused
            where they would split a slice, and `add` takes queries whose windows begin
            and end where those of the others do, and are no longer. With `late=` the
            aggregations must not depend on the order of entries.
        dtype: "int64", "float64" or "object", as for `Window`.
        nan: "propagate", "skip" or "raise", as for `Window`.
        **parameters: Parameters of the algorithm, by the names on its card.

    Raises:
        SpecError: If an argument is wrong, or the aggregations lack a law that the
            algorithm needs.

    Entries of equal time are kept separate, in order of arrival, because ranges count
    entries. A late entry raises `OutOfOrderError`. A call that raises leaves the window
    unchanged. Threads may share a window: calls wait for one another, and one of them
    gets each answer that falls due. If an answer cannot be computed (a custom
    aggregation raises), the call raises after the insert, and the next call returns the
    other answers.

    Source: Shein, Chrysanthis, Labrinidis: SlickDeque, EDBT 2018.

    Cost: combines per entry, for q ranges: slick_deque < 2 in all for a result that is
    one of the values (< 2 per part of several: range has the ends and the presence of a
    value), otherwise 2q; flat_fit, if queried after every entry, 3 for one
    range, q for ranges of all lengths or each twice the next, and 2 to 4 per range for
    others; daba_chain at most 7q. With `queries`: one per entry (two by
    `keep="slices"`, more for late ones), and the above per slice instead of per entry.

    Example:
        >>> import slidewise as sw
        >>> w = sw.SharedWindow(sw.max(), ranges=[3, 5])
        >>> for time, value in enumerate([6, 5, 0, 1, 3, 4, 2, 7]):
        ...     w.insert(time, value)
        ...     print(w.query(), end=" ")
        [6, 6] [6, 6] [6, 6] [5, 6] [3, 6] [4, 5] [4, 4] [7, 7]
        >>> len(w), w.oldest
        (5, 3)

        Over the last minute and the last hour, two aggregations of a column:

        >>> from datetime import datetime
        >>> w = sw.SharedWindow(
        ...     {"n": sw.count(), "top": sw.max("load")}, ranges=["1m", "1h"]
        ... )
        >>> w.insert(datetime(2024, 3, 1, 12, 0), {"load": 0.75})
        >>> w.insert(datetime(2024, 3, 1, 12, 30), {"load": 0.5})
        >>> w.query()
        [{'n': 1, 'top': 0.5}, {'n': 2, 'top': 0.75}]

        Over the last hour every 20 minutes, and over the last two entries:

        >>> w = sw.SharedWindow(
        ...     sw.sum(),
        ...     queries=[sw.Query("1h", every="20m"), sw.Query(sw.rows(2), sw.rows(2))],
        ... )
        >>> w.insert(datetime(2024, 3, 1, 12, 10), 1)
        []
        >>> w.insert(datetime(2024, 3, 1, 12, 15), 2)
        [(1, datetime.datetime(2024, 3, 1, 12, 15), 3)]
        >>> w.insert(datetime(2024, 3, 1, 12, 30), 4)
        [(0, datetime.datetime(2024, 3, 1, 12, 20), 3)]
        >>> w.advance(datetime(2024, 3, 1, 12, 40))
        [(0, datetime.datetime(2024, 3, 1, 12, 40), 7)]
    """

    __slots__ = ()

    @readable
    def __new__(
        cls,
        aggs: Aggregation | Mapping[str, Aggregation],
        ranges: Iterable[WindowLike] | None = None,
        *,
        queries: Iterable[Query] | None = None,
        algorithm: str = "auto",
        dtype: str | type | None = None,
        nan: str = "propagate",
        late: WindowLike | None = None,
        offset: WindowLike | None = None,
        empty: bool = False,
        keep: str = "entries",
        **parameters: int,
    ) -> Self:
        """Checks the arguments, which the class documents."""
        read = read_queries(queries, late, offset, empty, keep)
        if (read is None) == (ranges is None):
            raise SpecError(
                "a SharedWindow takes either ranges=, such as [10, 100], or queries=, "
                "such as [sw.Query('1h', every='5m')]"
                + ("; both are given" if ranges is not None else "")
            )
        plan = make_plan(
            aggs,
            algorithm=algorithm,
            ties="keep",
            dtype=dtype,
            nan=nan,
            options=parameters,
            ranges=ranges,
            queries=read,
        )
        return super().__new__(cls, spec_of_plan(plan))

    if TYPE_CHECKING:  # methods of the base class

        def insert(  # type: ignore[override]
            self, time: Any, value: Any = ...
        ) -> list[tuple[int, Any, Any]] | None:
            """Inserts an entry; returns the answers that fell due."""

    def insert_many(self, times: Any, values: Any = None) -> pa.Table | None:
        """Inserts many entries at once, all of them or none.

        Args:
            times: As many times as there are values, in any order: a numpy array, an
                Arrow array, a pandas or polars Series, or any iterable. Entries of
                equal time stay in the order given. No entry is late because of another
                of the call.
            values: As many values, of the same types. If the aggregations name columns:
                a mapping from their names to such arrays, a table, or an iterable of
                mappings. May be left out for `count()` of rows.

        Returns:
            With `queries=` the answers that fell due, as a table with the columns
            query, end and value (a struct if there are several aggregations), by end
            and then by query. Its types depend on the aggregations and columns, not on
            the answers: `dtype=` sets them, otherwise they are null until the first
            value or time. Arrow infers those of objects. None with `ranges=`.

        Raises:
            SpecError: If the lengths differ, a time is missing, or a value does not
                fit; or, after the insert, if Arrow has no type for the answers.
            OutOfOrderError: If the earliest of the entries is late.
            WindowBusyError: If an iterable uses the window into which it is inserted.

        Cost: O(m) if sorted, else O(m log m), for m entries.

        Example:
            >>> import slidewise as sw
            >>> w = sw.SharedWindow(sw.sum(), queries=[sw.Query(10, every=5)])
            >>> w.insert_many([1, 4, 6, 11], [1, 2, 3, 4]).to_pylist()
            [{'query': 0, 'end': 5, 'value': 3}, {'query': 0, 'end': 10, 'value': 6}]
        """
        super().insert_many(times, values)
        if self._slices() is None:
            return None
        columns = self._due_columns()
        plan, _, clock = self._describe()
        return due_table(columns, plan, clock)

    def add(self, query: Query) -> int:
        """Adds a query while the stream runs.

        It sees the entries that the window still holds: those of the longest range so
        far. Its first window ends at the next multiple of its slide.

        Args:
            query: The query.

        Returns:
            Its index, as in answers and `drop`.

        Raises:
            SpecError: If it does not fit the window, its times or its slices, or the
                window was made with `ranges=`.

        Cost: O(n) combines: entries are cut into new slices.

        Example:
            >>> import slidewise as sw
            >>> w = sw.SharedWindow(sw.sum(), queries=[sw.Query(10, every=5)])
            >>> w.insert(3, 1)
            []
            >>> w.add(sw.Query(3, every=1))
            1
            >>> w.insert(5, 1)
            [(1, 3, 1), (1, 4, 1)]
        """
        self._needs_queries("add()")
        return self._add_query(query)

    def drop(self, index: int) -> None:
        """Drops a query. The indices of other queries do not change.

        It gives no further answers, nor those that are pending because a call raised.

        Args:
            index: The index of the query.

        Raises:
            SpecError: If there is no query of that index.

        Cost: O(n) combines: entries are cut into new slices.

        Example:
            >>> import slidewise as sw
            >>> w = sw.SharedWindow(sw.sum(), queries=[sw.Query(10, 5), sw.Query(2, 1)])
            >>> w.drop(0)
            >>> w.queries
            [None, Query(2, every=1)]
        """
        self._needs_queries("drop()")
        number = _query_number(index)
        if number is None or not self._drop_query(number):
            valid = [str(at) for at, one in enumerate(self.queries) if one is not None]
            raise SpecError(
                f"there is no query {describe_value(index)}: the remaining ones are "
                f"{', '.join(valid) or 'none'}"
            )

    def advance(self, time: Any) -> list[tuple[int, Any, Any]]:
        """Declares that no more entries arrive at or before a time.

        Args:
            time: The time. Entries at or before it are late from then on. A time before
                that of an earlier call has no effect.

        Returns:
            The answers that fall due: those of all ends at or before the time.

        Raises:
            SpecError: If the time is of another kind than those in the window, or the
                window was made with `ranges=`.

        Cost: per answer that falls due, as for `query`.

        Example:
            >>> import slidewise as sw
            >>> w = sw.SharedWindow(sw.sum(), queries=[sw.Query(10, every=5)])
            >>> w.insert(3, 1)
            []
            >>> w.advance(10)
            [(0, 5, 1), (0, 10, 1)]
        """
        self._needs_queries("advance()")
        return self._advance(time) or []

    def _needs_queries(self, call: str) -> None:
        if self._slices() is None:
            raise SpecError(f"{call} is for windows with queries=, not with ranges=")

    @property
    def queries(self) -> list[Query | None]:
        """The queries by index; None for a dropped one.

        Example:
            >>> import slidewise as sw
            >>> sw.SharedWindow(sw.sum(), queries=[sw.Query("1h", every="5m")]).queries
            [Query('1h', every='5m')]
        """
        return list(self._describe()[0].queries)

    def query(self) -> list[Any]:  # type: ignore[override]
        """Returns the current results, one per range or query, in the order given.

        The window of a query of time ends at the latest entry, or at the time of
        `advance` if that is later. That of a query of entries holds the last ones.

        Returns:
            A list of results; of dicts by name if there are several aggregations. The
            result over no entries is None (0 for `count`, [] for `collect`). Dropped
            queries have no result.

        Raises:
            ResultOverflowError: If an exact integer does not fit int64.
            SpecError: If a window begins within a slice, and only slices are kept.

        Cost: in combines, for q ranges: slick_deque 0; flat_fit q to 4q if queried
        after every entry, by their lengths; daba_chain at most 2q; flat_fat, b_int and
        amta 2q log n; recalculate the sum of their lengths.

        Example:
            >>> import slidewise as sw
            >>> w = sw.SharedWindow(sw.sum(), ranges=[sw.rows(2), sw.rows(3)])
            >>> w.insert_many([1, 2, 3, 4], [10, 20, 30, 40])
            >>> w.query()
            [70, 90]
        """
        results: list[Any] = super().query()
        return results

    @classmethod
    def from_bytes(cls, blob: Any) -> Self:
        """Restores a window from a snapshot.

        Args:
            blob: The bytes of `to_bytes`, or any object with a buffer of them.

        Returns:
            A window whose later results equal those of the original, bit for bit.

        Raises:
            SnapshotError: If the bytes are not a snapshot of a SharedWindow, are
                damaged or of another version. They are not trusted: they run no code,
                and sizes in them are checked before memory is allocated.

        Cost: O(n).

        Example:
            >>> import slidewise as sw
            >>> w = sw.SharedWindow(sw.mean(), ranges=[2, 10])
            >>> w.insert(1, 0.5)
            >>> sw.SharedWindow.from_bytes(w.to_bytes()).query()
            [0.5, 0.5]
        """
        return cls._restore(as_bytes(blob), read_spec, True)

    @property
    def ranges(self) -> list[str]:
        """The labels of the ranges, in the order given.

        Example:
            >>> import slidewise as sw
            >>> sw.SharedWindow(sw.sum(), ranges=["1h", sw.rows(10), 20]).ranges
            ['1h', '10rows', '20']
        """
        return _labels(self._describe()[0])

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that runs.

        Example:
            >>> import slidewise as sw
            >>> sw.SharedWindow(sw.min(), ranges=[5, 10]).algorithm
            'slick_deque'
        """
        plan, dtypes, _ = self._describe()
        return plan.initial_algorithm(dtypes)

    aggs = Window.aggs
    dtype = Window.dtype
    __reduce__ = Window.__reduce__

    def explain(self) -> str:
        """Describes in a few lines which algorithm runs, why, and with which options.

        Cost: O(1) in the number of entries.

        Example:
            >>> import slidewise as sw
            >>> print(sw.SharedWindow(sw.min(), ranges=[5, "1h"]).explain())
            slick_deque: chosen by "auto" for up to 4 aggregations such as max, because
              dominated values are dropped, and each range searches the rest
            min() over 5 and 1h; entries of equal time are kept, in order of arrival
            >>> w = sw.SharedWindow(sw.max(), queries=[sw.Query(5, every=3)])
            >>> print(w.explain())
            slick_deque: chosen by "auto" for up to 4 aggregations such as max, because
              dominated values are dropped, and each query searches the rest
            max() over 5 every 3; entries of equal time are kept, in order of arrival
            queries of time: composite slide 3; 1 edge as by Cutty (Panes 3, Pairs 2)
            0 slices held; final aggregator: slick_deque
        """
        plan, dtypes, _ = self._describe()
        lines = why_lines(plan, dtypes, None)
        entries = "entries of equal time are kept, in order of arrival"
        lines += wrap_lines([f"{named(plan)} over {_listed(plan)}; {entries}"])
        if plan.shared_queries is not None:
            algorithm = plan.initial_algorithm(dtypes)
            slices = self._slices()
            lines += wrap_lines(plan_lines(plan.shared_queries, algorithm, slices))
        if plan.nan != "propagate":
            lines.append(f"NaN: {plan.nan}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        plan, length = self._describe()[0], len(self)
        parts = [named(plan), *widened_in_words(plan, self._widened())]
        head = f"<{type(self).__name__} {', '.join(parts)} over {_listed(plan)}"
        if length == 0:
            return f"{head}: empty>"
        queries = plan.shared_queries
        one, many = "entry", "entries"
        if queries is not None and queries.slices:
            one, many = "slice", "slices"
        held = f"1 {one}" if length == 1 else f"{length} {many}"
        return f"{head}: {held}{result_in_words(self, plan, length)}>"


def _labels(plan: WindowPlan) -> list[str]:
    return [length.label for length in plan.ranges or ()]


def _listed(plan: WindowPlan) -> str:
    queries = [query.label for query in plan.queries if query is not None]
    labels = _labels(plan) or queries or ["no queries"]
    if len(labels) > 6:
        labels = [*labels[:3], f"{len(labels) - 4} more", labels[-1]]
    *most, last = labels
    return f"{', '.join(most)} and {last}" if most else last


def _query_number(index: Any) -> int | None:
    """The index of a query as an int; None if it cannot be one.

    Example:
        >>> _query_number(2), _query_number(-1), _query_number(True)
        (2, None, None)
    """
    number = as_int(index)
    return number if number is not None and 0 <= number < 2**63 else None
