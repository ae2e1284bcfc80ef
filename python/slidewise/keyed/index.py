"""`Index`: the entries of each key of a stream in a native store, in order of time.

It answers all queries of a stream: results over windows are folds of the entries, and
rows are found by the numbers that the log gave them. A store has numbers only if rows
must be found again: for aggregations that read all rows of a window, for sessions and
`rows(n)`, deletions, corrections, and an order by `then_by`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import Result, empty_table, one_array
from slidewise.keyed.columns import ENTRY, LATEST, NUMBER, TIME, order_of
from slidewise.keyed.expiry import changes_of_folds
from slidewise.keyed.grid import Grid
from slidewise.keyed.query import KeyedQuery
from slidewise.spec.outputs import covers, query_column
from slidewise.spec.windows.base import Span, Window
from slidewise.table.encoding import ValueColumns
from slidewise.table.filling import fill_nulls
from slidewise.table.kernel_call import KernelCall
from slidewise.table.points import QueryPoints

__all__ = ["DirectQuery", "Entries", "Index"]

# The number of changes of a query point in the first step, and its growth per step.
_FIRST_CHANGES, _GROWTH = 8, 8
# The first letters of the names of results that are not given.
_SURPLUS = "__surplus_"
# The number of sets of windows whose calls are kept.
_MAX_KEPT_CALLS = 64


class Entries(NamedTuple):
    """Entries of a numbered store.

    Attributes:
        keys: The key columns of their rows.
        times: The times, in ticks.
        numbers: The numbers of the rows.
    """

    keys: list[pa.Array]
    times: pa.Array
    numbers: pa.Array


@dataclass(frozen=True, slots=True)
class DirectQuery:
    """Windows whose results are the kernel's answers, without decoding.

    Attributes:
        store: The native store.
        prepared: The windows, and the names of the results, for the store.
        names: These names.
        schema: The schema of a record batch of the results.
        templates: Per result that is given, an empty column with its properties.
        fill: The results whose nulls are replaced, and by what.
        surplus: The results that are not given, as their aggregations have other
            windows.
    """

    store: _core.KeyedStore
    prepared: _core.PreparedQuery
    names: frozenset[str]
    schema: pa.Schema
    templates: dict[str, Result]
    fill: dict[str, pa.Scalar]
    surplus: list[str]

    def key(self, key: Any, tick: int) -> dict[str, Any] | None:
        """The results at a key and time; None if an integer does not fit."""
        found = self.store.query_key(self.prepared, key, tick)
        if found is not None:
            for name, value in self.fill.items():
                if found[name] is None:
                    found[name] = value.as_py()
            for name in self.surplus:
                del found[name]
        return found

    def lists(self, columns: list[Any], tick: int) -> dict[str, Any] | None:
        """The results as lists, at keys in lists; None as for `key`."""
        found = self.store.query_lists(self.prepared, columns, tick)
        if found is not None:
            for name, value in self.fill.items():
                own = value.as_py()
                found[name] = [own if one is None else one for one in found[name]]
            for name in self.surplus:
                del found[name]
        return found

    def finished(self, results: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of the store without surplus, and nulls that are replaced."""
        for name, value in self.fill.items():
            at = results.schema.get_field_index(name)
            column = pc.fill_null(results.column(at), value)
            results = results.set_column(at, results.schema.field(at), column)
        return results.drop_columns(self.surplus) if self.surplus else results

    def answers(self, keys: list[pa.Array], ticks: pa.Array) -> pa.RecordBatch | None:
        """The results at keys and times; None if an integer does not fit."""
        found = self.store.query_table(self.prepared, keys, ticks)
        return None if found is None else self.finished(pa.record_batch(found))


class Index:
    """The entries of the keys of a query.

    Any number of threads may query it while one inserts.
    """

    def __init__(self, query: KeyedQuery) -> None:
        self.query = query
        self._by = list(query.spec.by)
        self._calls: dict[tuple[Any, ...], KernelCall] = {}
        # For the windows of the last query, usually those of the Spec.
        self._direct: tuple[tuple[Window, ...], DirectQuery | None] | None = None
        self._stored: list[int] = []
        _, call = query.request([])
        columns, natives = call.inputs.columns, call.inputs.natives
        self._recipe = call.inputs.recipe
        calls = query.entry_calls
        # The places of the times of the entries with which windows begin.
        self._carried = [calls.index(call) for call in query.carried_calls]
        if calls:
            # Several encodings of a column may be one array, which is stored once.
            first = {id(column): at for at, column in reversed([*enumerate(columns)])}
            self._stored = sorted(first.values())
            stored_at = {at: place for place, at in enumerate(self._stored)}
            place: dict[int | None, int | None] = {None: None}
            place |= {at: stored_at[first[id(c)]] for at, c in enumerate(columns)}
            calls = [
                call._replace(of=place[call.of], by=place[call.by]) for call in calls
            ]
        stored = [columns[at] for at in self._stored]
        keys = self.keys_of(empty_table(query.stored_schema))
        self.numbered = query.finds_rows
        self.store = _core.KeyedStore(calls, keys, stored, natives, self.numbered)

    def keys_of(self, rows: pa.Table) -> list[pa.Array]:
        """The key columns of a table."""
        return [_column(rows, name) for name in self._by]

    def insert(self, rows: pa.Table, removals: pa.Table | None = None) -> int:
        """Inserts rows of the state with their numbers, in the order of the query.

        The rows in `removals`, with their numbers, are removed in the same step.

        Returns:
            The number of keys of these rows, those of `removals` included.
        """
        numbers = _column(rows, NUMBER) if self.numbered else None
        ticks = _column(rows, TIME)
        inputs, removed = self._inputs(rows), self._entries(removals)
        return self.store.insert(self.keys_of(rows), ticks, inputs, numbers, removed)

    def fold_cells(self, since: int | None, until: int) -> pa.Table:
        """Folds the entries of cells; gives those after `since` and up to `until`.

        They are in order of time, as `insert_folded` takes them.
        """
        cells = self.query.cells
        assert cells is not None, "the query has cells"
        keys, times, entries = self.store.fold_cells(
            cells.every, cells.start, since, until
        )
        # The order in the store differs between processes.
        ranks = pa.Table.from_arrays(
            [pa.array(times), *(pa.array(_core.key_bytes(key)) for key in keys)],
            names=[TIME, *self._by],
        )
        folded = self._table(keys, times).append_column(ENTRY, pa.array(entries))
        return folded.take(order_of(ranks, ranks.column_names))

    def insert_folded(self, entries: pa.Table) -> None:
        """Inserts entries of `fold_cells` into the index of the same query.

        Raises:
            ValueError: If one is damaged.
        """
        found = one_array(entries[ENTRY].cast(pa.large_binary()))
        keys, times = self.keys_of(entries), _column(entries, TIME)
        self.store.insert_folded(keys, times, found)

    def _entries(self, rows: pa.Table | None) -> Entries | None:
        """The entries of rows; None for no rows."""
        if rows is None or not len(rows):
            return None
        return Entries(self.keys_of(rows), _column(rows, TIME), _column(rows, NUMBER))

    def insert_answering(
        self,
        rows: pa.Table,
        arrivals: pa.Array,
        windows: tuple[Window, ...],
        name_row: Callable[[int], str],
        removals: pa.Table,
    ) -> tuple[list[Any], int]:
        """Inserts rows in order of arrival; gives their results as of arrival.

        It also gives the number of their keys, those of `removals` included.

        Args:
            rows: Rows of the state with their numbers.
            arrivals: When each arrived; equal ones have arrived together.
            windows: Windows of time, which end at the times of the rows.
            name_row: Names a row in messages.
            removals: As for `insert`.

        Raises:
            ResultOverflowError: As for `rolling`.
        """
        call = self.call(windows).naming(name_row)
        removed = self._entries(removals)
        numbers = _column(rows, NUMBER) if self.numbered else None
        ticks = _column(rows, TIME)
        (answers, beyond), changed = self.store.insert_answering(
            self.keys_of(rows),
            ticks,
            self._inputs(rows),
            arrivals,
            call.all_spans,
            numbers,
            removed,
        )
        return call.decode(answers, beyond, None, ticks), changed

    def _inputs(self, rows: pa.Table) -> list[pa.Array]:
        """The inputs of the kernel, in the order of rows of the state."""
        if not self._stored:
            return []
        query = self.query

        def read(name: str) -> pa.Array:
            if name == query.spec.on and name not in rows.column_names:
                return query.times.restore(_column(rows, TIME))
            return _column(rows, name)

        columns, recipe = ValueColumns(read, query.spec.nan), self._recipe
        return [
            columns.view(name, masks).encoded(encoding)
            for name, masks, encoding in (recipe[at] for at in self._stored)
        ]

    def answers(
        self,
        keys: pa.Table,
        ticks: pa.Array,
        windows: tuple[Window, ...],
        name_row: Callable[[int], str],
        plus: pa.Table | None = None,
        asked: tuple[str, ...] | None = None,
        bounds: tuple[pa.Array, pa.Array] | None = None,
    ) -> list[Any]:
        """The results by name, per window, of windows that end at keys and times.

        Args:
            keys: The keys.
            ticks: The times.
            windows: Windows of time.
            name_row: Names one of these points in messages.
            plus: An extra row for each, in the columns of the state.
            asked: As for `KeyedQuery.spec_over`.
            bounds: The starts and ends of the windows, if these are not the times.

        Raises:
            ResultOverflowError: As for `rolling`.
        """
        call = self.call(windows, asked).naming(name_row)
        extra = None if plus is None else self._inputs(plus)
        spans = call.all_spans
        answers, beyond = self.store.query(self.keys_of(keys), ticks, spans, extra)
        starts, ends = (None, ticks) if bounds is None else bounds
        points = QueryPoints(ticks, starts, None, None, "query")
        return call.decode(answers, beyond, points, ends)

    def results(
        self,
        keys: pa.Table,
        ticks: pa.Array,
        windows: tuple[Window, ...],
        name_row: Callable[[int], str],
    ) -> list[pa.Array]:
        """As `answers`, but a list of columns, window by window."""
        direct = self.direct(windows)
        found = None if direct is None else direct.answers(self.keys_of(keys), ticks)
        if found is not None:
            return list(found.columns)
        answers = self.answers(keys, ticks, windows, name_row)
        return [result.array for window in answers for result in window.values()]

    def direct(self, windows: tuple[Window, ...]) -> "DirectQuery | None":
        """The `DirectQuery` of some windows; None if their answers must be decoded."""
        known = self._direct
        if known is None or known[0] != windows:
            known = self._direct = windows, self._find_direct(windows)
        return known[1]

    def _find_direct(self, windows: tuple[Window, ...]) -> "DirectQuery | None":
        spec = self.query.spec
        if spec.is_hopping or spec.min_rows or spec.overflow != "raise":
            return None
        none, ticks = empty_table(self.query.stored_schema), pa.array([], pa.int64())
        call = self.call(windows)
        answers, _ = self.store.query(self.keys_of(none), ticks, call.all_spans, None)
        points = QueryPoints(ticks, None, None, None, "query")
        results: dict[str, Result] = {}
        for each in call.naming(str).decode(answers, [], points, ticks):
            results |= each
        kinds = [pa.array(answer).type for answer in answers[0]]
        for place, (name, agg) in enumerate(spec.aggs):
            (at, *others), _ = call.reads[place]
            plain = agg.record.undecoded and not call.plans[place].rescales
            direct = not others and plain and at == place
            if not direct or results[name].array.type != kinds[at]:
                return None
        # The store answers all aggregations over all windows; some have fewer.
        of_windows = [
            [
                query_column(spec, name, window)
                if covers(spec, at, window)
                else f"{_SURPLUS}{at}_{place}"
                for at, (name, _) in enumerate(spec.aggs)
            ]
            for place, window in enumerate(windows)
        ]
        floats = [pa.types.is_floating(kind) for kind in kinds]
        prepared = _core.PreparedQuery(call.spans, of_windows, floats)
        every = [name for window in of_windows for name in window]
        known = [results[name] for name, _ in spec.aggs] * len(windows)
        templates = {
            name: result
            for name, result in zip(every, known, strict=True)
            if not name.startswith(_SURPLUS)
        }
        types = kinds * len(windows)
        schema = pa.schema(list(zip(every, types, strict=True)))
        values, fill = dict(spec.fill), {}
        for window in windows:
            for at, (name, _) in enumerate(spec.aggs):
                if name in values and covers(spec, at, window):
                    none = pa.nulls(1, results[name].array.type)
                    (value,) = fill_nulls(none, values[name], name)
                    fill[query_column(spec, name, window)] = value
        surplus = [name for name in every if name.startswith(_SURPLUS)]
        return DirectQuery(
            self.store, prepared, frozenset(every), schema, templates, fill, surplus
        )

    def call(
        self, windows: tuple[Window, ...], asked: tuple[str, ...] | None = None
    ) -> KernelCall:
        """The call of some windows, bound to no rows; see `KeyedQuery.spec_over`."""
        known = (windows, asked)
        call = self._calls.get(known)
        if call is None:
            table = self.query.timed(empty_table(self.query.stored_schema))
            call = KernelCall(frame(table), self.query.spec_over(windows, asked))
            _ = call.decoding  # Copies of the call have it.
            if len(self._calls) >= _MAX_KEPT_CALLS:
                self._calls.clear()
            self._calls[known] = call
        return call

    def first_times(
        self, keys: pa.Table, ticks: pa.Array, windows: tuple[Window, ...]
    ) -> list[pa.Array]:
        """Per window, the time of its first row at keys and times; null without one."""
        spans = self.call(windows).spans
        firsts = self.store.first_times(self.keys_of(keys), ticks, spans)
        return [pa.array(first) for first in firsts]

    def answers_with_changes(
        self,
        keys: pa.Table,
        ticks: pa.Array,
        windows: tuple[Window, ...],
        name_row: Callable[[int], str],
        plus: pa.Table | None,
        asked: tuple[str, ...] | None,
    ) -> tuple[list[Any], list[pa.Array]]:
        """As `answers`; also gives, per window, when the results change.

        A result changes at the first row such that the window without this row and all
        earlier ones has another result: its time, or null if there is none.
        """
        extra = None if plus is None else self._inputs(plus)
        call = self.call(windows, asked).naming(name_row)
        # The Spec's own results come before that of `spec_of_points`.
        own = [name for name, _ in self.query.spec.aggs]
        exact = self._is_exact(call)
        points = QueryPoints(ticks, None, None, None, "query")
        fitting = None if exact else call.allowing_overflow()
        columns, reads = self.keys_of(keys), call.reads[: len(own)]
        most = pa.repeat(
            pa.scalar(1 if exact else _FIRST_CHANGES, pa.int64()), len(ticks)
        )
        while True:
            (answers, beyond), ends, times, (after, _) = self.store.query_with_changes(
                columns,
                ticks,
                call.spans,
                extra,
                reads,
                self.query.spec.min_rows,
                most,
            )
            counts = list(map(pa.array, ends))
            results = call.decode(answers, beyond, points, ticks)
            # A result beyond int64 becomes null, and null differs from any number.
            others = (
                None if fitting is None else fitting.decode(after, [], points, ticks)[0]
            )
            of = [
                {name: each[name] for name in own if name in each} for each in results
            ]
            first = changes_of_folds(of, counts, pa.array(times), others)
            # If `most` changes of folds changed no result, query all points again:
            # answers and changes must be of the same rows.
            none = pa.repeat(pa.scalar(False), len(ticks))
            pairs = zip(first, counts, strict=True)
            more = (pc.and_(t.is_null(), pc.equal(n, most)) for t, n in pairs)
            pending = reduce(pc.or_, more, none)
            if not pc.any(pending).as_py():
                return results, first
            most = pc.if_else(pending, pc.multiply(most, _GROWTH), most)

    def _is_exact(self, call: KernelCall) -> bool:
        """Whether results differ if, and only if, the answers of the kernel do."""
        spec = self.query.spec
        if spec.overflow != "raise" or spec.fill or spec.own:
            return False
        schema = self.query.schema
        # Both zeros are equal, but their bits differ.
        floats = {one.name for one in schema if pa.types.is_floating(one.type)}
        return all(
            len(plan.calls) == 1
            and agg.record.undecoded
            and not plan.rescales
            and not (agg.record.inputs == ("raw",) and agg.of in floats)
            for (_, agg), plan in zip(self.query.spec.aggs, call.plans, strict=False)
        )

    def first_since(self, keys: pa.Table, ticks: pa.Array, length: int) -> pa.Array:
        """The time of the first row in (tick − length, tick] of each key, or null."""
        spans = [Span("time", length, "right", 0)]
        (first,) = self.store.first_times(self.keys_of(keys), ticks, spans)
        return pa.array(first)

    def carried_times(self, keys: pa.Table, until: pa.Array) -> list[pa.Array]:
        """The times of the last entries of keys up to some times, or null.

        One array for each column with the entries of which windows begin.
        """
        if not self._carried:
            return []
        spans = [Span("unbounded", LATEST, "right")]
        (answers,), _ = self.store.query(self.keys_of(keys), until, spans, None)
        return [pa.array(answers[at]) for at in self._carried]

    def carried_since(self, keys: pa.Table, until: pa.Array) -> pa.Array:
        """From when on rows of keys are needed, by windows that begin after a time."""
        return reduce(pc.min_element_wise, self.carried_times(keys, until), until)

    def numbers(self, keys: pa.Table, since: pa.Array, until: pa.Array) -> pa.Array:
        """The numbers of the rows of keys in closed ranges of times.

        They are in the order of the ranges, and within each in the order of the query.
        """
        return self.numbers_by_key(keys, since, until)[1]

    def numbers_by_key(
        self, keys: pa.Table, since: pa.Array, until: pa.Array
    ) -> tuple[pa.Array, pa.Array]:
        """As `numbers`; also gives, first, the index of the range of each number."""
        points, numbers = self.store.rows(self.keys_of(keys), since, until)
        return pa.array(points), pa.array(numbers)

    def last_times(self, keys: pa.Table) -> pa.Array:
        """The latest time of each key; null for one without rows."""
        times = pa.array(self.store.last_times(self.keys_of(keys)))
        # Without key columns there is one key.
        return times if self._by else pa.repeat(times[0], len(keys))

    def keys(self) -> pa.Table:
        """All keys, with their latest times in `TIME`."""
        columns, times = self.store.keys()
        return self._table(columns, times)

    def windows(self, grid: Grid, since: int | None, until: int) -> pa.Table:
        """The non-empty windows of a grid with a stop in (since, until].

        They are given by their keys, with their stops in `TIME`.
        """
        try:
            found = self.store.windows(grid, since, until)
        except MemoryError as error:
            raise SpecError(
                f"more than {error} windows are closed at once: advance in smaller "
                "steps, or give a larger ",
                Argument("every"),
            ) from None
        return self._table(*found)

    def _table(self, keys: Sequence[Any], times: Any) -> pa.Table:
        arrays = [*map(pa.array, keys), pa.array(times)]
        return pa.Table.from_arrays(arrays, names=[*self._by, TIME])

    def is_held(self, rows: pa.Table) -> pa.Array:
        """A mask of the rows that have an entry, by key, time and number."""
        if not self.numbered:
            return pc.is_valid(self.last_times(rows.select(self._by)))
        keys = self.keys_of(rows)
        return pa.array(
            self.store.holds(keys, _column(rows, TIME), _column(rows, NUMBER))
        )


def _column(rows: pa.Table, name: str) -> pa.Array:
    return one_array(rows.column(name))
