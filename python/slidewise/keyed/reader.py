"""Readers: answer query points of a stream, from its entries or from its rows.

`FoldReader` folds the entries of the index. It answers windows of time, if results can
be folded. `RowReader` answers all others: the rows in the windows of the keys become
one table, and the kernel evaluates the windows at the times of the points. With
extra rows, each point becomes a group of its own, with copies of the rows in its
windows, because it alone sees its extra row.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.caching import cached_property
from slidewise.frames.adapt import frame
from slidewise.frames.arrow import append_columns
from slidewise.frames.base import Result
from slidewise.keyed.columns import LATEST, TIME, int64_view
from slidewise.keyed.expiry import changes_of_rows
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.index import DirectQuery
from slidewise.keyed.points import Points
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.shard import Shard
from slidewise.spec.naming import twice
from slidewise.spec.outputs import query_column, until_column
from slidewise.spec.spec import Spec, refuse_duplicates
from slidewise.spec.windows.base import Window
from slidewise.table.arrays import one_column, row_numbers
from slidewise.table.batched_rolling import describe_row
from slidewise.table.kernel_call import KernelCall
from slidewise.table.points import QueryPoints

__all__ = ["Answers", "FoldReader", "RowReader"]

# The most rows that are copied for groups of single points, in one kernel call.
_MAX_KERNEL_ROWS = 1 << 20
# The most points whose answers come as one Arrow message.
_MAX_MESSAGE_ROWS = 4096
_CODE = pa.uint32()


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers at query points, in their order.

    Attributes:
        results: Per window, the results by name, at least those of the Spec.
        until: Per window, the first ticks at which a result changes because a row
            leaves it, null for never; None if it was not requested.
    """

    results: list[dict[str, Result]]
    until: list[pa.Array] | None

    def named(self, windows: Sequence[Window], query: KeyedQuery) -> dict[str, Result]:
        """The results by column, window by window, then the times of their changes.

        Raises:
            SpecError: If two columns have one name.
        """
        pairs = [
            (query_column(query.spec, name, window), results[name])
            for window, results in zip(windows, self.results, strict=True)
            for name, _ in query.spec.aggs
            if name in results
        ]
        for window, ticks in zip(windows, self.until or (), strict=False):
            times = query.times.window_ends(ticks)
            same = times.type == query.times.original.type
            until = Result(times, None, same, nullable=True)
            pairs.append((until_column(query.spec, window), until))
        refuse_duplicates((name for name, _ in pairs), twice(query.spec.names))
        return dict(pairs)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the keys and answers of tables of one schema are read and written.

    Attributes:
        read: The columns that are read, by their places in the table.
        keys: The places of the keys among these, in the order of `by=`.
        schema: That of the answers.
        leads: Whether answers include the columns of the table, as the first ones.
    """

    read: list[int]
    keys: list[int]
    schema: pa.Schema
    leads: bool


class FoldReader:
    """Answers from the entries of an index, by folds."""

    def __init__(self, shard: Shard) -> None:
        self.query, self.index = shard.query, shard.index
        horizon = Horizon(self.query, shard.retention, None)
        # From a row's time to the first query whose windows of the Spec all lost it.
        self.longest = max(map(horizon.leaving, shard.windows), default=0)
        self._windows = shard.windows
        # The layout of the last table of keys; None if its schema needs `answer`.
        self._known: tuple[pa.Schema, Layout | None] | None = None

    @cached_property
    def _direct(self) -> DirectQuery | None:
        """The windows of the Spec, if their answers need no decoding."""
        return self.index.direct(self._windows)

    def query_key(self, key: Any, tick: int) -> dict[str, Any] | None:
        """The results over the windows of the Spec; None if they need `answer`.

        They need it if the kernel's answers must be decoded, or do not fit their type.
        """
        if self._direct is None:
            return None
        return self._direct.key(key, tick)

    def query_keys(self, keys: pa.Table, ticks: pa.Array) -> dict[str, Result] | None:
        """As `query_key`, for many keys."""
        if self._direct is None:
            return None
        found = self._direct.answers(self.index.keys_of(keys), ticks)
        if found is None:
            return None
        pairs = zip(self._direct.templates.items(), found.columns, strict=True)
        return {name: like._replace(array=column) for (name, like), column in pairs}

    def appended(
        self, table: pa.Table | pa.RecordBatch, tick: int
    ) -> pa.Table | pa.RecordBatch | None:
        """Appends to a table of keys the results at a time.

        None if the table needs `query_keys`, which also raises the errors of a wrong
        table. For a few keys this is twice as fast.
        """
        direct = self._direct
        if direct is None or not 0 < table.num_rows <= _MAX_MESSAGE_ROWS:
            return None
        schema, known = table.schema, self._known
        if known is None or not schema.equals(known[0], check_metadata=True):
            known = self._known = schema, self._layout(schema, direct)
        layout, whole = known[1], isinstance(table, pa.RecordBatch)
        batches = [table] if whole else table.to_batches()
        if layout is None or len(batches) != 1 or (whole and not layout.leads):
            return None
        batch = batches[0]
        found = direct.store.query_batch(
            direct.prepared,
            [batch.column(at) for at in layout.read],
            layout.keys,
            tick,
            layout.leads,
        )
        if found is None:
            return None
        answers = pa.ipc.read_record_batch(pa.py_buffer(found), layout.schema)
        answers = direct.finished(answers)
        if whole:
            return answers
        if layout.leads:
            return pa.Table.from_batches([answers])
        return append_columns(table, answers.schema.names, answers.columns)

    def listed(self, keys: Mapping[Any, Any], tick: int) -> dict[str, Any] | None:
        """Appends to lists of keys lists of the results at a time; else as `appended`.

        The answer contains the given lists, not copies.
        """
        direct = self._direct
        if direct is None:
            return None
        rows = None
        for name, values in keys.items():
            if (
                not isinstance(values, list)
                or not isinstance(name, str)
                or name in direct.names
                or (rows is not None and len(values) != rows)
            ):
                return None
            rows = len(values)
        try:
            columns = [keys[name] for name in self.query.spec.by]
        except KeyError:
            return None
        found = direct.lists(columns, tick) if columns else None
        return None if found is None else {**keys, **found}

    def _layout(self, schema: pa.Schema, direct: DirectQuery) -> Layout | None:
        """The layout of a table of keys; None if its types differ from the state's."""
        names, by = schema.names, self.query.spec.by
        kinds = dict(zip(names, schema.types, strict=True))
        held = [(name, self.query.stored_schema.field(name).type) for name in by]
        right = by and all(kinds.get(name) == kind for name, kind in held)
        apart = len(names) == len(kinds) and direct.names.isdisjoint(kinds)
        if not right or not apart:
            return None
        place = {name: at for at, name in enumerate(names)}
        places = [place[name] for name in by]
        if not all(map(_is_copied, schema.types)):
            return Layout(places, list(range(len(by))), direct.schema, leads=False)
        both = pa.schema([*schema, *direct.schema], schema.metadata)
        return Layout(list(range(len(names))), places, both, leads=True)

    def answer(
        self,
        points: Points,
        windows: Sequence[Window],
        horizon: Horizon,
        *,
        expiry: bool,
    ) -> Answers:
        """Answers query points over windows whose rows are all kept.

        Args:
            points: The points.
            windows: Windows of time or rows; any length.
            horizon: How far back rows are kept.
            expiry: Whether to find when results change because rows leave windows.

        Raises:
            ResultOverflowError: As for `rolling`.

        Cost: O(log n) per point, and the ends of its windows.
        """
        index, spans = self.index, tuple(windows)
        plus = None if points.plus is None else extra_rows(points, self.query)
        name_row = named_by(points, self.query)
        given = (points.keys, points.ticks, spans, name_row, plus, points.asked)
        if not expiry:
            return Answers(index.answers(*given), None)
        results, first = index.answers_with_changes(*given)
        return Answers(results, _leaving(first, windows, horizon))


class RowReader:
    """Answers from the rows of a shard, for every Spec."""

    def __init__(self, shard: Shard) -> None:
        self._shard, self._query = shard, shard.query
        self._by = list(self._query.spec.by)

    def answer(
        self,
        points: Points,
        windows: Sequence[Window],
        horizon: Horizon,
        *,
        expiry: bool,
    ) -> Answers:
        """As `FoldReader.answer`. Cost: a kernel call over the rows of the windows."""
        if points.plus is not None:
            # The extra row of a point belongs to the window that it closes.
            windows = [window.with_row() for window in windows]
        spec = self._query.spec_over(tuple(windows), points.asked)
        expires = horizon if expiry else None
        reach = max(window.reach(self._query.ticks_of) for window in windows)
        if any(window.chained for window in windows):
            reach = LATEST
        most = max(window.rows for window in windows)
        ends = points.keys.append_column(TIME, points.ticks)
        rows = self._shard.log.take(self._shard.numbers_between(ends, reach, 0))
        codes = self._codes(rows, points)
        own, theirs = codes.slice(0, len(rows)), codes.slice(len(rows))
        near = pc.is_in(own, theirs)
        rows, own = rows.filter(near).combine_chunks(), own.filter(near)
        if points.plus is None and not expiry:
            return self._computed(rows, own, points, theirs, spec, expires)
        parts = [
            self._computed(table, codes, some, _numbers(len(some)), spec, expires)
            for some, table, codes in self._with_rows(
                rows, own, points, theirs, reach, most
            )
        ]
        return _joined(parts)

    def _codes(self, rows: pa.Table, points: Points) -> pa.Array:
        """The codes of the keys of rows, then those of the points."""
        if not self._by:
            return pa.repeat(pa.scalar(0, _CODE), len(rows) + len(points))
        tables = [rows.select(self._by), points.keys.select(self._by)]
        return self._query.codes(tables)

    def _with_rows(
        self,
        rows: pa.Table,
        codes: pa.Array,
        points: Points,
        theirs: pa.Array,
        reach: int,
        most: int,
    ) -> Iterator[tuple[Points, pa.Table, pa.Array]]:
        """Yields some points at a time, with copies of the rows in their windows.

        Each point has a code of its own, so its windows can end with its extra row,
        and lose rows that are in the windows of others.

        Args:
            rows: The rows of their keys, in order.
            codes: The codes of their keys.
            points: The points.
            theirs: The codes of their keys.
            reach: How far the longest window reaches back.
            most: The length of the longest window of rows; 0 without one.
        """
        by_key = pa.table({"code": codes, "time": rows[TIME]})
        order = pc.sort_indices(by_key, [("code", "ascending"), ("time", "ascending")])
        codes = int64_view(codes.take(order).cast(pa.int64()))
        ticks = int64_view(rows[TIME].combine_chunks().take(order))
        first, size = 0, 0
        taken: list[pa.Array] = []
        for at, (code, tick) in enumerate(
            zip(theirs.to_pylist(), points.ticks.to_pylist(), strict=True)
        ):
            low = bisect_left(codes, code)
            high = bisect_right(codes, code, low)
            end = bisect_right(ticks, tick, low, high)
            start = bisect_left(ticks, tick - reach, low, end)
            # A window that holds no row of its end's time has `most` before them.
            start = min(start, max(low, bisect_left(ticks, tick, low, end) - most))
            if size and size + end - start > _MAX_KERNEL_ROWS:
                yield self._group(rows, points.slice(first, at - first), taken)
                first, size, taken = at, 0, []
            size += end - start
            taken.append(order.slice(start, end - start))
        yield self._group(rows, points.slice(first, len(points) - first), taken)

    def _group(
        self, rows: pa.Table, points: Points, taken: list[pa.Array]
    ) -> tuple[Points, pa.Table, pa.Array]:
        """Some points, the copies of their rows and extra rows, and their codes."""
        tables = [rows.take(pa.concat_arrays(taken))] if taken else [rows.slice(0, 0)]
        codes = [
            pa.repeat(pa.scalar(at, _CODE), len(own)) for at, own in enumerate(taken)
        ]
        if points.plus is not None:
            tables.append(extra_rows(points, self._query))
            codes.append(_numbers(len(points)))
        table = pa.concat_tables(tables, promote_options="default")
        codes.append(_numbers(0))
        return points, table.combine_chunks(), pa.concat_arrays(codes)

    def _computed(
        self,
        rows: pa.Table,
        codes: pa.Array,
        points: Points,
        theirs: pa.Array,
        spec: Spec,
        expires: Horizon | None,
    ) -> Answers:
        """Runs the kernel over rows; a point sees the rows with its code."""
        query = self._query
        # Codes are dense: first those of the rows, then those of the other points.
        keys = pc.unique(pa.concat_arrays([codes, theirs]))
        codes, theirs = (
            pc.index_in(part, keys).cast(_CODE) for part in (codes, theirs)
        )
        table = query.timed(rows)
        own = None
        if points.plus is not None:
            # The extra rows are the last ones.
            own = row_numbers(len(rows)).slice(len(rows) - len(points))
            own = own.cast(pa.int64())
        ends = QueryPoints(points.ticks, None, theirs, None, "query", own=own)
        call = KernelCall(frame(table), spec)
        call.groups = codes
        call.name_row = named_by(points, query)
        results = call.compute(ends)
        if expires is None:
            return Answers(results, None)
        first = changes_of_rows(table, codes, ends, spec, expires, results)
        return Answers(results, _leaving(first, spec.windows, expires))


def _leaving(
    first: Sequence[pa.Array], windows: Sequence[Window], horizon: Horizon
) -> list[pa.Array]:
    """Per window, the times at which rows of some times leave it; null for never."""
    pairs = zip(first, windows, strict=True)
    return [horizon.expiry(times, window) for times, window in pairs]


def extra_rows(points: Points, query: KeyedQuery) -> pa.Table:
    """The extra rows of query points, in the columns of the state."""
    assert points.plus is not None, "points without extra rows have none"
    columns, by = [points.ticks], {*query.spec.by}
    for field in query.stored_schema:
        if field.name != TIME:
            held = points.keys if field.name in by else points.plus
            columns.append(held.column(field.name).combine_chunks())
    return pa.Table.from_arrays(columns, schema=query.stored_schema)


def named_by(points: Points, query: KeyedQuery) -> Callable[[int], str]:
    """Returns a function that names a query point in messages, by key and time."""

    def name(row: int) -> str:
        times = query.times.restore(points.ticks)
        rows = points.keys.append_column(query.spec.on, times)
        return describe_row(rows, row, query.spec_of_points, "query")

    return name


def _is_copied(kind: pa.DataType) -> bool:
    """Whether `query_batch` copies columns of a type: faster than appending them."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal128(kind)
        or (types.is_temporal(kind) and not types.is_interval(kind))
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
    )


def _numbers(count: int) -> pa.Array:
    return pa.array(range(count), _CODE)


def _joined(parts: Sequence[Answers]) -> Answers:
    """Concatenates the answers of several groups of points."""
    first = parts[0]
    if len(parts) == 1:
        return first
    results = [
        {
            name: result._replace(
                array=one_column([part.results[at][name].array for part in parts]),
            )
            for name, result in window.items()
        }
        for at, window in enumerate(first.results)
    ]
    until = None
    if first.until is not None:
        until = [
            pa.concat_arrays([part.until[at] for part in parts if part.until])
            for at in range(len(first.until))
        ]
    return Answers(results, until)
