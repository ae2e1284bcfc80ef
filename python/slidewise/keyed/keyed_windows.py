"""`KeyedWindows`: windows of many keys over a stream, in one process."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar

import pyarrow as pa

from slidewise.aggregations import Aggregation
from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import empty_table, require
from slidewise.frames.polars import collected
from slidewise.hints import with_hints
from slidewise.keyed.damage import BROKEN
from slidewise.keyed.horizon import kept_ticks, parse_keep
from slidewise.keyed.inspection import Inspection
from slidewise.keyed.locked import synchronized
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.processor import Processor, decode_directory
from slidewise.keyed.query import LATE, flagged
from slidewise.keyed.single_times import format_tick, tick_of
from slidewise.keyed.snapshots import Snapshot, damaged, read_all
from slidewise.keyed.stream_query import StreamQuery, cast_to_schema
from slidewise.keyed.validation import (
    LATE_ROWS,
    check_emit,
    check_options,
    parse_late,
    parse_schema,
    refuse_flag,
)
from slidewise.spec.durations import WindowLike
from slidewise.spec.query import Query
from slidewise.spec.spec import (
    HoppingLike,
    RollingLike,
    Spec,
    check_column_name,
    check_columns,
    given_keywords,
    given_spec,
    one_of,
    refuse_mixed,
)
from slidewise.table.encoding import without_views
from slidewise.table.time_columns import window_ticks

__all__ = ["KeyedWindows"]

_T = TypeVar("_T")

_EARLIEST = -(2**63)
# The arguments that a snapshot holds.
_OF_THE_STREAM = (
    *("emit", "late", "late_rows", "keep", "then_by", "deletes", "schema"),
)


class KeyedWindows(Inspection):
    """Windows of many keys over a stream: batches of rows in, rows with results out.

    It computes what `rolling` and `hopping` do, while rows arrive in any order. The
    *watermark* is the time up to which the stream is complete: rows at or before it are
    late and are dropped. `emit` chooses when results are emitted:

    - "arrival": per row, when it arrives, over the rows that have arrived.
    - "final": per row, when the watermark passes it, over the whole table.
    - "update": per batch and key with new rows, the window at the key's latest row.
    - "change": as "update", plus a new result for each key whose window lost a row as
      the watermark moved on. Keep the last result per key, and you have a table as of
      the watermark, or of the latest row of a key.
    - "slide": per key and hopping window, when the watermark passes its end. A session
      is emitted when the watermark passes its last row by the gap. A window that a row
      closes (`until("flag")`, `every=rows(k)`) is emitted when it passes that row.
      Empty windows (`empty=True`) are emitted with the key's next non-empty one.

    Rows of one batch have arrived together, unless `arrival=` orders them, by a column
    or several.

    Threads may share an object: calls wait for one another. `query` and `query_many`
    do not wait if their results can be folded; they see a prefix of the batches.
    `watermark` and `late_count` may be read at any time. A call from within a call
    (from a function of a custom aggregation) raises `WindowBusyError`.

    A child of a fork (gunicorn `--preload`, multiprocessing) has a copy of its own. A
    call that another thread had not ended is in it as a whole or not at all; the child
    does not have that thread.

    Args:
        spec: A `Spec`. Instead of it, the keywords of `rolling` or `hopping` may be
            given.
        emit: "arrival", "final", "update", "change" or "slide", as above. Default
            "final", and for hopping windows "slide".
        late: The delay of the watermark behind the latest time seen: a duration such as
            "10m", a timedelta, or an int for integer times.
        late_rows: The treatment of late rows. "drop" drops and counts them. "flag" also
            emits them, without results and with `_late` true (for "arrival" and
            "final"). "correct" accepts rows that are behind the watermark by less than
            the longest window, and emits the results that they change again, with
            `_correction` true, so that the last results are those of the whole table;
            rows are kept for twice the longest window for that, and rows that are later
            still are treated as by "flag". With `emit="change"` the last result of a
            key is emitted again, not those before it. "correct" supports neither
            sessions, nor windows that rows close or begin, nor `empty=True`, nor
            `rows(n)` alone.
        keep: The least time for which rows are kept behind the watermark, of the type
            of `late`: the horizon of `query`. Default: the longest window and `late`.
        then_by: A column, or several, to order rows of equal time: values, then NaN,
            then nulls. By default they stay in order of arrival: by batch, within it by
            `arrival=`, otherwise as they are. With `arrival=`, that order comes first,
            and `then_by` orders the rows that arrived together.
        deletes: A column of booleans. A row where it is true deletes one row with its
            key and time (the first by `then_by`, otherwise the first that arrived), and
            gets no result.
        schema: The columns of the stream with their Arrow types: a mapping such as
            `{"t": pa.timestamp("us"), "x": "float64"}`, or a `pyarrow.Schema`. Batches
            may have more columns. By default those of the first batch.
        on, by, windows, aggs, ...: The keywords of `rolling` or `hopping`. `windows=`
            are those of `hopping` with `every=`, or if one is a `Query`; these must be
            of time. `landmark` and `delta` go with `emit="final"`.

    Raises:
        SpecError: If an argument is wrong. Without `schema=` columns are checked with
            the first batch.
        TypeError: If a keyword is unknown.

    Cost: O(log n) per row of a batch, with the n rows of its key, whatever the length
    of a window. Holistic aggregations (quantiles and such), aggregations of text and
    custom ones in Python, `rows(n)` and `ties="rows"` read all rows of a window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = sw.KeyedWindows(on="t", by="at", windows=5, aggs={"n": sw.count()},
        ...                         late=2)
        >>> trips.ingest(pa.table({"t": [3, 1, 9], "at": [*"AAB"]}))
        >>> trips.advance()  # the watermark is 9 − 2
        >>> trips.collect().to_pydict()
        {'t': [1, 3], 'at': ['A', 'A'], 'n_5': [1, 2]}
    """

    @with_hints
    def __init__(
        self,
        spec: Spec | None = None,
        *,
        on: str | None = None,
        by: str | Sequence[str] | None = None,
        windows: RollingLike
        | HoppingLike
        | Iterable[RollingLike | HoppingLike | Query]
        | None = None,
        window: HoppingLike | None = None,
        every: WindowLike | None = None,
        aggs: Mapping[str, Aggregation] | None = None,
        closed: str | None = None,
        ties: str = "peers",
        nan: str = "propagate",
        arrival: str | Sequence[str] | None = None,
        min_rows: int = 0,
        offset: WindowLike | None = None,
        empty: bool = False,
        overflow: str = "raise",
        emit: str | None = None,
        late: WindowLike = 0,
        late_rows: str = "drop",
        keep: WindowLike | None = None,
        then_by: str | Sequence[str] | None = None,
        deletes: str | None = None,
        schema: pa.Schema | Mapping[str, pa.DataType | str] | None = None,
    ) -> None:
        super().__init__()
        request = given_keywords(locals())
        self._spec = given_spec(spec, request, "KeyedWindows")
        refuse_mixed(self._spec, "KeyedWindows")
        hops = "slide" if self._spec.is_hopping else "final"
        self._emit = hops if emit is None else emit
        check_emit(self._emit, self._spec)
        self._then_by = check_columns(then_by, "then_by")
        self._late_rows = one_of(late_rows, "late_rows", LATE_ROWS)
        check_options(self._spec, self._emit, corrects=late_rows == "correct")
        if late_rows == "flag" and self._emit not in ("arrival", "final"):
            instead = "" if self._spec.is_hopping else ", or use emit='final'"
            raise SpecError(
                f"late_rows='flag' gives rows back, and emit={self._emit!r} gives "
                f"none: count them by `late_count`{instead}"
            )
        self._late = parse_late(late)
        self._keep = parse_keep(keep, self._spec)
        gives_rows = self._emit in ("arrival", "final")
        self._flags = late_rows != "drop" and gives_rows
        self._deletes = (
            None if deletes is None else check_column_name(deletes, "deletes")
        )
        self._query: StreamQuery | None = None
        # `late=` and `keep=` in ticks, once the columns are known.
        self._delay, self._retention = 0, 0
        self._store = MemoryStore()
        self._directory = None
        self._processor: Processor | None = None
        self._view = None
        self._answers: list[pa.Table] = []
        self._saved: frozenset[int] = frozenset()
        # The last snapshot, on which `changes` is based.
        self._checksum: int | None = None
        self._is_ahead = False
        self.late_count = 0
        columns = parse_schema(schema)
        if columns is not None:
            require(frame(empty_table(columns)), [self._spec.on], "schema=")
            self._begin(columns)

    @synchronized
    def ingest(self, batch: Any) -> None:
        """Ingests a batch of rows.

        Args:
            batch: A table of any library that `rolling` accepts, with rows in any
                order. All batches have the same columns. Integers in a column of floats
                become floats, but not floats integers. Other widths, and other units of
                times, are converted if no value changes.

        Raises:
            SpecError: If a column is missing or of a wrong type, a time is missing, or
                there is NaN with `nan="raise"`.
            ResultOverflowError: As for `rolling`.

        A call that raises leaves the windows unchanged.

        Cost: O(log n) per row of the batch, with the n rows of its key, whatever the
        windows' lengths. Results that are emitted at once, for "arrival", "update" and
        "change", cost as those of `query`.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()}, late=2)
            >>> w.ingest(pa.table({"t": [3, 1, 9]}))
            >>> w.advance()  # to 9 − 2
            >>> w.ingest(pa.table({"t": [8, 7]}))  # 7 is late
            >>> w.late_count
            1
        """
        if self._query is not None:
            self._ingest(*self._read_batch(batch))
            return
        # If it fails, the columns are not fixed.
        with self._transaction():
            self._ingest(*self._read_batch(batch))

    def _ingest(self, query: StreamQuery, rows: pa.Table) -> None:
        view = self._view
        assert view is not None, "the columns are known"
        largest, watermark = view.largest, view.watermark
        query.refuse_nan(rows, watermark)
        rows, ends = query.arrived(rows)
        rows, late = query.by_lateness(rows, watermark, ends)

        def step(state: Processor) -> None:
            known = None if len(late) else ends
            self._keep_answers(state.ingest(rows, watermark, known))
            if len(late):
                self.late_count += len(late)
                if self._flags:
                    self._answers.append(query.given_back(late))
            if ends is not None and (largest is None or ends[1] > largest):
                self._publish(ends[1], watermark)

        self._atomically(step)

    @synchronized
    def advance(self, watermark: Any = None) -> None:
        """Advances the watermark, and emits the results of the windows that it passes.

        Args:
            watermark: A time of the kind of the stream's times: an int for integer
                times, otherwise a date, datetime, numpy.datetime64, pandas Timestamp or
                Arrow scalar, with a zone if the column has one. Default: the latest
                time seen minus `late`. A time before the watermark changes nothing.

        Raises:
            SpecError: If it is not such a time, or not a whole number of the column's
                units.
            ResultOverflowError: As for `rolling`; the watermark does not move. To
                continue: `collect()`, then
                `KeyedWindows.from_bytes(w.to_bytes(), ..., overflow="null")`.

        Cost: O(log n) per result, with the n rows of its key; O(rows of the window) for
        results that cannot be folded, which `explain` names. With `emit="change"` also
        O(log n) per key with rows in its windows, and with `empty=True` O(keys). Rows
        that no window can hold any more are evicted, O(1) each.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()}, late=2)
            >>> w.ingest(pa.table({"t": [3, 1, 9]}))
            >>> w.advance()  # to 9 − 2
            >>> w.watermark, w.collect()["t"].to_pylist()
            (7, [1, 3])
            >>> w.advance(9)
            >>> w.collect()["t"].to_pylist()
            [9]
        """
        view = self._view
        largest = None if view is None else view.largest
        if view is None or largest is None:
            if watermark is not None:
                raise SpecError("there are no rows yet: ingest some before advance()")
            return
        ahead = largest - self._delay
        if watermark is not None:
            ahead = tick_of(watermark, view.query.times)
        # No row is at or before a time below the least int64.
        if ahead < (_EARLIEST if view.watermark is None else view.watermark + 1):
            return

        def step(state: Processor) -> None:
            self._keep_answers(state.advance(ahead))
            self._publish(largest, ahead)
            state.evict(ahead)

        self._atomically(step)

    @synchronized
    def collect(self) -> pa.Table:
        """Returns the results emitted since the last call.

        Returns:
            An Arrow table. With `emit="final"` the results of each `advance` are in
            order of time; sessions are key by key, in the order of the batch and time
            of each key's first row.

        Raises:
            SpecError: If there was no batch yet: the columns are unknown then.

        Cost: O(results), without copies if `advance` was called once.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"sum": sw.sum("x")},
            ...                     emit="arrival")
            >>> w.ingest(pa.table({"t": [3, 1], "x": [5, 7]}))
            >>> w.collect().to_pydict()
            {'t': [3, 1], 'x': [5, 7], 'sum_5': [12, 7]}
            >>> w.collect().num_rows
            0
        """
        if self._query is None:
            raise SpecError(
                "there are no rows yet: ingest some before collect(), or give schema="
            )
        schema = self._query.output
        if self._flags:
            schema = schema.append(pa.field(LATE, pa.bool_()))
        kept, self._answers = self._answers, []
        if len(kept) == 1 and kept[0].schema == schema:
            return kept[0]
        kept = [empty_table(schema), *kept]
        if all(table.schema == schema for table in kept):
            return pa.concat_tables(kept)
        return pa.concat_tables(kept, promote_options="permissive")

    def _keep_answers(self, answers: pa.Table | None) -> None:
        """Keeps results until `collect`."""
        if answers is None or self._query is None:
            return
        output = self._query.output
        try:
            if answers.schema != output:
                kept = [table.schema for table in self._answers]
                pa.unify_schemas(
                    [output, *kept, answers.schema], promote_options="permissive"
                )
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SpecError(
                f"results of a custom aggregation changed their type ({error}): give "
                "its type with returns=, such as returns=float"
            ) from error
        self._answers.append(flagged(answers, late=False) if self._flags else answers)

    @synchronized
    def evict_idle(self, until: Any) -> int:
        """Evicts all keys whose latest row is at or before a time.

        Without this call, a key is evicted when no window can hold its rows any more,
        unless there are windows of `rows(n)` or windows that rows close. Open hopping
        windows and sessions of the evicted keys are dropped, too.

        Args:
            until: A time, as for `advance`. With `emit="final"` or "slide", at most the
                watermark.

        Returns:
            The number of keys evicted.

        Raises:
            SpecError: If it is not such a time or later than the watermark, or if there
                were no rows yet.

        Cost: O(n).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> w = sw.KeyedWindows(on="t", by="card", windows=sw.rows(3),
            ...                     aggs={"n": sw.count()}, emit="update")
            >>> w.ingest(pa.table({"t": [1, 8], "card": [*"AB"]}))
            >>> w.evict_idle(5), w.keys()["card"].to_pylist()
            (1, ['B'])
        """
        query = self._require_state().query
        tick = tick_of(until, query.times)
        known = None if self._view is None else self._view.watermark
        late = known is None or tick > known
        if query.emit in ("final", "slide") and late:
            shown = "none yet" if known is None else format_tick(known, query.times)
            raise SpecError(
                f"evict_idle({format_tick(tick, query.times)}) is later than the "
                f"watermark ({shown}), and rows after it wait for results: advance() "
                "first"
            )
        return self._atomically(lambda state: state.evict_idle(tick))

    def _read_batch(self, batch: Any) -> tuple[StreamQuery, pa.Table]:
        """The columns of a batch as a table; those of the first batch are required."""
        known = self._query
        if (
            known is not None
            and isinstance(batch, pa.Table)
            and batch.schema.equals(known.schema)
        ):
            return known, batch
        source = frame(collected(batch))
        names = list(source.names) if self._query is None else self._query.schema.names
        require(source, [*dict.fromkeys([self._spec.on, *names])], "the batch")
        rows = pa.table({name: without_views(source.column(name)) for name in names})
        query = self._begin(rows.schema) if self._query is None else self._query
        columns = {
            field.name: cast_to_schema(
                rows.column(field.name), field, source.column(field.name).type
            )
            for field in query.schema
        }
        return query, pa.table(columns)

    def _begin(self, schema: pa.Schema) -> StreamQuery:
        """Opens the state, once the columns are known."""
        query, late = self._make_query(schema), self._late
        self._delay = window_ticks(late, query.times) if late.amount else 0
        self._retention = kept_ticks(query, self._delay, self._keep)
        self._query, self._processor = query, self._open(query, None)
        self._publish(None, None)
        self._directory = self._processor.commit()
        return query

    def _make_query(self, schema: pa.Schema) -> StreamQuery:
        if self._flags:
            refuse_flag([*schema.names, *self._spec.results], self._late_rows)
        return StreamQuery(
            self._spec,
            schema,
            self._emit,
            self._then_by,
            self._deletes,
            self._late_rows == "correct",
        )

    @classmethod
    def from_bytes(
        cls,
        blob: Any,
        spec: Spec | None = None,
        *,
        changes: Iterable[bytes] = (),
        **request: Any,
    ) -> Self:
        """Restores windows from snapshots.

        Args:
            blob: The bytes that `to_bytes` gave, or any object with a buffer of them.
            spec: The Spec of the original, or the keywords of `rolling` or `hopping`.
            changes: The bytes of all calls of `changes` since, in order.
            **request: As for the class, without what the snapshot holds.

        Returns:
            Windows whose later results equal those of the original.

        Raises:
            SnapshotError: If the bytes are damaged, or of another spec, or `changes`
                is not in order or not complete.
            SpecError: If an argument is given that the snapshot holds: `emit`, `late`
                and the like.

        Cost: O(n): every page is read and checked.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> spec = sw.Spec(on="t", by="card", windows=10, aggs={"n": sw.count()})
            >>> w = sw.KeyedWindows(spec)
            >>> w.ingest(pa.table({"t": [1, 8], "card": [*"AA"]}))
            >>> saved = w.to_bytes()
            >>> sw.KeyedWindows.from_bytes(saved, spec).query("A")
            {'n_10': 2}
        """
        for name in _OF_THE_STREAM:
            if name in request:
                raise SpecError(
                    Argument(name),
                    " is in the snapshot, and cannot change: leave it out",
                )
        spec = given_spec(spec, request, "KeyedWindows.from_bytes")
        read = read_all(blob, changes, spec.hash)
        try:
            return cls._restored(spec, read)
        except BROKEN as error:
            raise damaged(error) from error

    @classmethod
    def _restored(cls, spec: Spec, read: Snapshot) -> Self:
        head = read.head
        windows = cls(
            spec,
            emit=head["emit"],
            late_rows=head["late_rows"],
            then_by=head["then_by"],
            deletes=head["deletes"],
        )
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(head["schema"])))
        windows._query = windows._make_query(schema)
        windows._store.restore(read.pages)
        windows._directory = decode_directory(read.directory)
        windows._delay, windows._retention = head["delay"], head["kept"]
        state = windows._open(windows._query, windows._directory, trusts=False)
        state.shard.check()
        state.answer.drop_decoded()
        windows._drop_others(state)
        windows._processor = state
        windows._mark(read.checksum)
        windows._publish(head["largest"], head["watermark"])
        windows.late_count = head["late"]
        return windows
