"""`KeyedWindows`: windows of many keys over a stream, in one process."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Self

import pyarrow as pa

from slidewise.aggregations import Aggregation
from slidewise.errors import Argument, SpecError
from slidewise.hints import readable, with_hints
from slidewise.keyed.clock import Clock
from slidewise.keyed.feature_windows import FeatureWindows, SavedFeatures, are_features
from slidewise.keyed.formats import BROKEN
from slidewise.keyed.options import Options
from slidewise.keyed.read_calls import ReadCalls
from slidewise.keyed.snapshots import damaged
from slidewise.keyed.spec_windows import Saved, SpecWindows
from slidewise.keyed.transaction import State, synchronized
from slidewise.keyed.validation import parse_schema
from slidewise.spec.durations import WindowLike
from slidewise.spec.features import Features
from slidewise.spec.given import given_specs
from slidewise.spec.query import Query
from slidewise.spec.spec import (
    EveryLike,
    HoppingLike,
    RollingLike,
    Spec,
    given_keywords,
)

__all__ = ["KeyedWindows"]

# The arguments that a snapshot holds.
_OF_THE_STREAM = (
    *("emit", "late", "late_rows", "keep", "then_by", "deletes", "schema"),
    *("ahead", "idle", "changed", "valid_until"),
)


class KeyedWindows(ReadCalls):
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
    - "none": nothing, for a service that only asks by `query` and `query_many`. Rows
      are kept for these as with the others; `collect` is refused.

    Rows of one batch have arrived together, unless `arrival=` orders them, by a column
    or several.

    Threads may share an object: calls wait for one another. `query` and `query_many`
    do not wait if their results can be folded; they see a prefix of the batches. Those
    of `Features` wait, so that the results of all Specs are of the same rows.
    `watermark` and the counts may be read at any time. A call from within a call (from
    a function of a custom aggregation) raises `WindowBusyError`.

    A child of a fork (gunicorn `--preload`, multiprocessing) has a copy of its own. A
    call that another thread had not ended is in it as a whole or not at all; the child
    does not have that thread.

    Args:
        spec: A `Spec`. Instead of it, the keywords of `rolling` or `hopping` may be
            given. Or `Features`: each row is ingested by the windows of each Spec, and
            comes out once, with the results of all. Keys of queries then have the key
            columns of all Specs. They have `emit` "final" (the default), "arrival" or
            "none", and no `late_rows="correct"`; `deletes` only for equal keys.
        emit: "arrival", "final", "update", "change", "slide" or "none", as above.
            Default "final", and for hopping windows "slide".
        late: The delay of the watermark behind the latest time seen: a duration such as
            "10m", a timedelta, or an int for integer times. A row at the watermark is
            late, as in Spark. So with 0 the rows of the latest time are late, once
            `advance` was called; one tick (1 for integer times, "1us" for timestamps in
            microseconds) keeps them.
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
        ahead: How far the time of a row may be after the clock, of the type of `late`;
            default: any distance. A row that is further *ahead* never moves the
            watermark. It is dropped and counted in `ahead_count`; unless `late_rows` is
            "drop", "arrival" and "final" also emit it, without results and with
            `_ahead` true.
        idle: If no row came for that long, the watermark goes on from where it was, at
            the pace of the clock, until rows come again; before the first `advance`,
            from the latest time minus `late`. `tick` and `ingest` look at the clock,
            and rows that are ahead do not count. Default: it waits for rows. The time
            between a snapshot and its restoration does not count.
        clock: Returns the time: as `time.time`, the default, or a datetime; one without
            a zone is in UTC, as are times without one. For integer times and durations,
            of which there is no default, a time in their units. A reading before the
            last one counts as no time since then; `ahead` takes it as it is.
        changed: With `emit="change"`: leaves out results that equal the last one of
            their key, to the last bit of floats, with NaN equal to NaN. A key whose
            rows had all left its windows has no last one.
        valid_until: With `emit="change"` or "update": also emits `valid_until_<window>`
            per window, the first time at which one of its results changes because a
            row leaves, as in `query`; null for never. With `changed`, results with
            another such time are not equal.
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
            of time. `landmark` and `delta` go with `emit="final"`, `landmark` also with
            "none".
        unique_by: The column of ids, or several, as for `rolling`; duplicates have no
            results, and are counted in `duplicate_count`. An id is remembered until the
            watermark has passed its row by the horizon, which is the longest window and
            `late`, or `keep`; of sessions the gap, of `until` nothing. A duplicate that
            comes later counts again, unless it is late. Not with `unbounded`, nor with
            `deletes`.

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
        spec: Spec | Features | None = None,
        *,
        on: str | None = None,
        by: str | Sequence[str] | None = None,
        windows: RollingLike
        | HoppingLike
        | Iterable[RollingLike | HoppingLike | Query]
        | None = None,
        window: HoppingLike | None = None,
        every: EveryLike | None = None,
        aggs: Mapping[str, Aggregation] | None = None,
        closed: str | None = None,
        ties: str = "peers",
        nan: str = "propagate",
        arrival: str | Sequence[str] | None = None,
        min_rows: int = 0,
        unique_by: str | Sequence[str] | None = None,
        offset: WindowLike | None = None,
        exclude: str | None = None,
        empty: bool = False,
        overflow: str = "raise",
        names: str | None = None,
        prefix: str = "",
        fill: Any = None,
        emit: str | None = None,
        late: WindowLike = 0,
        late_rows: str = "drop",
        ahead: WindowLike | None = None,
        idle: WindowLike | None = None,
        clock: Callable[[], Any] | None = None,
        changed: bool = False,
        valid_until: bool = False,
        keep: WindowLike | None = None,
        then_by: str | Sequence[str] | None = None,
        deletes: str | None = None,
        schema: pa.Schema | Mapping[str, pa.DataType | str] | None = None,
    ) -> None:
        arguments = locals()
        specs = given_specs(spec, given_keywords(arguments), "KeyedWindows")
        options = {name: arguments[name] for name in _OF_THE_STREAM}
        del options["schema"]
        options["clock"] = Clock.given(clock, ahead, idle)
        state = State()
        made = (
            FeatureWindows(specs, options, state)
            if isinstance(specs, Features)
            else SpecWindows(Options.make(specs, **options), state)
        )
        super().__init__(made, state)
        columns = parse_schema(schema, specs.on)
        if columns is not None:
            self._windows.stream.begin(columns)

    def __copy__(self) -> Self:
        """An independent copy."""
        return deepcopy(self)

    @synchronized
    def ingest(self, batch: Any) -> None:
        """Ingests a batch of rows.

        Args:
            batch: A table of any library that `rolling` accepts, with rows in any
                order. All batches have the same columns. Integers in a column of floats
                become floats, but not floats integers. Other widths, and other units of
                times, are converted if no value changes. Or a dict of lists of Python
                values, or a mapping from columns to values for one row: values take the
                types of the stream, which `schema=` or the first batch gives.

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
            >>> w.ingest({"t": [8, 7]})  # 7 is late
            >>> w.ingest({"t": 9})
            >>> w.late_count
            1
        """
        self._windows.stream.ingest(batch)

    @synchronized
    def advance(self, watermark: Any = None) -> None:
        """Advances the watermark, and emits the results of the windows that it passes.

        Args:
            watermark: A time of the kind of the stream's times: an int for integer
                times, otherwise a date, datetime, numpy.datetime64, pandas Timestamp or
                Arrow scalar, with a zone if the column has one. Default: the latest
                time seen minus `late`. A time before the watermark changes nothing.
                With `schema=` it may come before the first row.

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
        self._windows.stream.advance(watermark)

    @synchronized
    def tick(self) -> None:
        """Looks at the clock: after `idle=` without rows, the watermark follows it.

        `ingest` does the same first, also with an empty batch. A service calls it from
        time to time, so that results do not wait for rows. Without `idle=` it does
        nothing.

        Raises:
            ResultOverflowError: As for `advance`.

        Cost: as for `advance`.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> now = 100
            >>> w = sw.KeyedWindows(on="t", windows=5, aggs={"n": sw.count()}, late=2,
            ...                     idle=10, clock=lambda: now)
            >>> w.ingest(pa.table({"t": [97, 99]}))
            >>> w.advance()
            >>> now = 113  # for 13, no row came
            >>> w.tick()
            >>> w.watermark, w.collect()["t"].to_pylist()
            (100, [97, 99])
        """
        self._windows.stream.tick()

    @synchronized
    def collect(self) -> pa.Table:
        """Returns the results emitted since the last call.

        Returns:
            An Arrow table. With `emit="final"` the results of each `advance` are in
            order of time; sessions are key by key, in the order of the batch and time
            of each key's first row.

        Raises:
            SpecError: If there was no batch yet: the columns are unknown then; or with
                `emit="none"`.

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
        return self._windows.stream.collect()

    @synchronized
    def evict_idle(self, until: Any) -> int:
        """Evicts all keys whose latest row is at or before a time.

        Without this call, a key is evicted when no window can hold its rows any more,
        unless there are windows of `rows(n)` or windows that rows close. Open hopping
        windows and sessions of the evicted keys are dropped, too. Queries answer an
        evicted key as one without rows, also where a window had some.

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
        return self._windows.stream.evict_idle(until)

    @synchronized
    def to_bytes(self) -> bytes:
        """Returns a snapshot of the state, which `from_bytes` restores.

        It may be taken between calls of `changes`, also of a follower: the next changes
        apply both to this snapshot and after the changes before it.

        Returns:
            The bytes of all pages, and of the watermark and counts.

        Raises:
            SpecError: If results wait for `collect()`, or there were no rows yet.

        Cost: O(n).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> spec = sw.Spec(on="t", windows=10, aggs={"n": sw.count()})
            >>> w = sw.KeyedWindows(spec)
            >>> w.ingest(pa.table({"t": [1, 8]}))
            >>> sw.KeyedWindows.from_bytes(w.to_bytes(), spec).query()
            {'n_10': 2}
        """
        return self._windows.snapshots.to_bytes()

    @synchronized
    def changes(self) -> bytes:
        """Returns an incremental snapshot: the changes since the last call.

        The first call returns the changes since the first `to_bytes`, or `from_bytes`;
        without these, the whole state.

        Returns:
            Bytes for `apply`, or for the `changes=` of `from_bytes`.

        Raises:
            SpecError: As for `to_bytes`.

        Cost: O(changed pages), and a look at the number of each page.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> spec = sw.Spec(on="t", windows=10, aggs={"n": sw.count()})
            >>> w = sw.KeyedWindows(spec)
            >>> w.ingest(pa.table({"t": [1, 8]}))
            >>> first = w.to_bytes()
            >>> w.ingest(pa.table({"t": [9]}))
            >>> changes = [w.changes()]
            >>> sw.KeyedWindows.from_bytes(first, spec, changes=changes).query()
            {'n_10': 3}
        """
        return self._windows.snapshots.changes()

    @synchronized
    def apply(self, changes: bytes) -> None:
        """Applies the changes of another object, its leader, by their bytes.

        This object was restored from a snapshot of the leader (`from_bytes`).
        Afterwards both give the same answers, and `to_bytes` the same bytes. Queries of
        other threads do not wait. After a call of its own `changes`, this object is a
        leader, and no longer a follower.

        Args:
            changes: The result of the next call of the leader's `changes`.

        Raises:
            SnapshotError: If the bytes are damaged or do not follow the last changes
                applied, or if this object has ingested rows or advanced since. It is
                unchanged then.

        Cost: O(changed pages); it computes no results.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> spec = sw.Spec(on="t", by="card", windows=10,
            ...                aggs={"n": sw.count()})
            >>> leader = sw.KeyedWindows(spec, emit="update")
            >>> leader.ingest(pa.table({"t": [1, 8], "card": [*"AA"]}))
            >>> _ = leader.collect()
            >>> follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), spec)
            >>> leader.ingest(pa.table({"t": [9], "card": ["A"]}))
            >>> _ = leader.collect()
            >>> follower.apply(leader.changes())
            >>> follower.query("A")
            {'n_10': 3}
        """
        self._windows.snapshots.apply(changes)

    @classmethod
    @readable
    def from_bytes(
        cls,
        blob: Any,
        spec: Spec | Features | None = None,
        *,
        changes: Iterable[bytes] = (),
        clock: Callable[[], Any] | None = None,
        **request: Any,
    ) -> Self:
        """Restores windows from snapshots.

        Args:
            blob: The bytes that `to_bytes` gave, or any object with a buffer of them.
            spec: The Spec of the original, or the keywords of `rolling` or `hopping`.
                By default the one that the snapshot holds, unless an aggregation of
                yours cannot be imported by its path; it imports the modules of those
                that can: read only snapshots that you trust. Or a Spec that has grown:
                with other windows within the horizon, and other aggregations of columns
                that were kept, which are those of the original's aggregations. Of
                `Features`, each Spec may have grown.
            changes: The bytes of all calls of `changes` since, in order.
            clock: As for the class; no snapshot holds it.
            **request: As for the class, without what the snapshot holds.

        Returns:
            Windows whose later results equal those of the original.

        Raises:
            SnapshotError: If the bytes are damaged, or of a spec that differs in more
                than windows and aggregations, which it names; or `changes` is not in
                order or not complete.
            SpecError: If an argument is given that the snapshot holds: `emit`, `late`
                and the like.

        Cost: O(n): every page is read and checked.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> spec = sw.Spec(on="t", by="card", windows=10, aggs={"n": sw.count()})
            >>> w = sw.KeyedWindows(spec)
            >>> w.ingest(pa.table({"t": [1, 8], "card": [*"AA"]}))
            >>> saved = w.to_bytes()
            >>> sw.KeyedWindows.from_bytes(saved).query("A")
            {'n_10': 2}
            >>> grown = spec.replace(windows=[10, 5], fill=0)
            >>> sw.KeyedWindows.from_bytes(saved, grown).query("A")
            {'n_10': 2, 'n_5': 1}
        """
        for name in _OF_THE_STREAM:
            if name in request:
                raise SpecError(
                    Argument(name),
                    " is in the snapshot, and cannot change: leave it out",
                )
        if spec is not None or request:
            spec = given_specs(spec, request, "KeyedWindows.from_bytes")
        saved: Any
        if isinstance(spec, Features) or are_features(blob):
            saved = SavedFeatures.of(blob, spec, changes)
        else:
            saved = Saved.of(blob, spec, changes)
        try:
            saved.check_growth()
            windows = cls(saved.spec, **saved.options, clock=clock)
            windows._windows.restore(saved)
        except BROKEN as error:
            raise damaged(error) from error
        windows._windows.stream.resume()
        return windows
