"""`Follower`: answers queries of a stream that another process publishes."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from threading import Event, RLock, Thread
from types import MethodType
from typing import Any, Self
from weakref import finalize, proxy, ref

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SnapshotError, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import Result, refuse_taken
from slidewise.frames.lazy import is_lazy
from slidewise.hints import readable
from slidewise.keyed.buckets import buckets_of
from slidewise.keyed.measured import Answers, Measured
from slidewise.keyed.points import (
    LATEST,
    Lists,
    Points,
    key_table,
    key_values,
    points_of,
)
from slidewise.keyed.published import Entry, Folder, committed, paths_to
from slidewise.keyed.queries import holds_lists
from slidewise.keyed.spec_windows import SpecWindows
from slidewise.keyed.view import View, is_latest
from slidewise.measuring import Reading
from slidewise.spec.arguments import check_bool
from slidewise.spec.durations import WindowLike, parse_offset
from slidewise.spec.spec import Spec
from slidewise.table.arrays import one_column
from slidewise.table.kernel_call import map_lazily

__all__ = ["Follower", "follow"]

# How often a listing is repeated whose files are removed meanwhile.
_TRIES = 5
# The number of keys whose buckets are remembered.
_KEYS = 1 << 16


@readable
def follow(
    path: str | os.PathLike[str],
    spec: Spec | None = None,
    *,
    every: WindowLike | None = None,
) -> "Follower":
    """Follows a stream that publishes to a folder, and answers queries of it.

    The stream is a query of Spark with `publish=path`. Answers are as of its last
    micro-batch that is complete and committed.

    Args:
        path: The folder, such as `/data/features` or `s3://bucket/features`: a path, or
            a URI of a file system that pyarrow knows.
        spec: The Spec of the stream. By default the one in the folder, unless an
            aggregation of yours cannot be imported by its path; it imports the modules
            of those that can: read only folders that you trust.
        every: How often a thread looks for new micro-batches, such as "1s". By default
            only `refresh` does.

    Raises:
        SpecError: If an argument is wrong.
        SnapshotError: If there is no committed micro-batch in the folder yet, or its
            files are damaged, or of another Spec.

    Cost: O(n): the last snapshot of each bucket of keys, and the changes since.

    Beside a stream with `publish="/data/features"`, `sw.follow("/data/features",
    every="1s").query("A")` gives results such as `{"n_1h": 3}`.

    Example:
        >>> import slidewise as sw
        >>> try:
        ...     features = sw.follow("/data/features")
        ... except sw.SnapshotError as error:  # no stream has published yet
        ...     print(error)
        no committed micro-batch is in '/data/features': start the stream with it ...
    """
    return Follower(path, spec, every)


class Follower:
    """The windows of a stream that another process publishes; `follow` makes it.

    `query`, `query_many`, `keys`, `in` and `len` are those of `KeyedWindows`. Threads
    may share an object; a query waits for a `refresh` that applies changes. It has no
    calls that change the stream. Make it after a fork, not before. An object that is no
    longer used ends its thread, as `close` and the end of a `with` block do.

    Attributes:
        error: The exception of the last look of the thread of `every=`, which looks
            again; None if there was none.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: Spec | None,
        every: WindowLike | None,
    ) -> None:
        self._folder, self._given = Folder(path), spec
        seconds = None if every is None else _seconds(every)
        self._batch, self._query, self._buckets = -1, "", 0
        self._parts: dict[int, SpecWindows] = {}
        self._none: SpecWindows | None = None
        # One refresh at a time; and the lock of the parts.
        self._refreshing, self._lock = RLock(), RLock()
        self.error: Exception | None = None
        closed = Event()
        # Neither the cache, nor the queries, nor the thread keeps this object alive.
        self._bucket_of = lru_cache(_KEYS)(MethodType(Follower._hashed, proxy(self)))
        self._queries: Answers = _Queries(proxy(self))
        self._close = finalize(self, closed.set)
        self.refresh()
        if seconds is not None:
            looked = ref(self), closed, seconds
            Thread(target=_keep_up, args=looked, daemon=True).start()

    # Keeping up.

    def refresh(self) -> bool:
        """Applies what was committed since the last call; tells whether there was any.

        Raises:
            SnapshotError: If files are damaged or missing, or no micro-batch was ever
                committed. Answers stay as they were; if changes were applied in part,
                queries raise until a call succeeds.

        Cost: O(changed pages), and a listing of the folder.

        Example:
            >>> features = sw.follow("/data/features")  # doctest: +SKIP
            >>> features.refresh()  # doctest: +SKIP
            True
        """
        with self._refreshing:
            for left in reversed(range(_TRIES)):
                try:
                    return self._refresh()
                except FileNotFoundError as error:
                    # The publisher has removed it: a later snapshot replaces it.
                    if not left:
                        raise SnapshotError(
                            f"a file of {self._folder.path!r} is missing: {error}"
                        ) from error
        raise AssertionError("a try returns or raises")

    def _refresh(self) -> bool:
        batch, entries = committed(self._folder.names())
        if batch <= self._batch or not entries:
            if self._batch < 0:
                raise SnapshotError(
                    f"no committed micro-batch is in {self._folder.path!r}: start the "
                    "stream with it as publish=, and wait for its first rows"
                )
            return False
        query = self._folder.query()
        if query is None:
            raise FileNotFoundError(self._folder.path)
        if self._query not in ("", query["query"]):
            raise SnapshotError(
                f"another query publishes to {self._folder.path!r} now: follow it anew"
            )
        opened: dict[int, SpecWindows] = {}
        changes: list[tuple[SpecWindows, list[bytes]]] = []
        of_buckets: dict[int, list[Entry]] = {}
        for entry in entries:
            of_buckets.setdefault(entry.bucket, []).append(entry)
        for bucket, own in of_buckets.items():
            part = self._parts.get(bucket)
            path = paths_to(own, None if part is None else part.state.checksum)
            if path is None:
                raise FileNotFoundError(f"the first files of bucket {bucket}")
            start, later = path
            blobs = [self._folder.read(entry.name) for entry in later]
            if start is None:
                assert part is not None, "a path from a commit that is known"
                changes.append((part, blobs))
            else:
                blob = self._folder.read(start.name)
                opened[bucket] = SpecWindows.opened(blob, self._given, blobs)
        with self._lock:
            try:
                self._apply(opened, changes)
            except BaseException:
                # Some parts have changed: the next call opens all of them anew.
                self._parts, self._batch = {}, -1
                raise
            self._batch, self._query = batch, query["query"]
            self._buckets = query["buckets"]
        return True

    def _apply(
        self,
        opened: Mapping[int, SpecWindows],
        changes: Iterable[tuple[SpecWindows, list[bytes]]],
    ) -> None:
        """Applies changes, and gives all parts the position of the whole stream."""
        for part, blobs in changes:
            for blob in blobs:
                part.snapshots.apply(blob)
        self._parts |= opened
        if self._none is None:
            self._none = next(iter(self._parts.values())).emptied()
        views = [part.state.view for part in self._parts.values()]
        largest = _latest(None if view is None else view.largest for view in views)
        watermark = _latest(None if view is None else view.watermark for view in views)
        for part in (*self._parts.values(), self._none):
            part.state.publish(largest, watermark)

    def _look(self) -> None:
        try:
            self.refresh()
            self.error = None
        except Exception as error:  # noqa: BLE001 - the next look may succeed
            self.error = error

    def close(self) -> None:
        """Ends the thread of `every=`. Queries go on, as of the last refresh."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def batch(self) -> int:
        """The number of the micro-batch as of which queries are answered."""
        return self._batch

    # Queries.

    def query(
        self,
        key: Any = (),
        at: Any = LATEST,
        windows: WindowLike | Iterable[WindowLike] | None = None,
        plus: Mapping[str, Any] | None = None,
        valid_until: bool = False,
    ) -> dict[str, Any]:
        """Returns the results of a key at any time: see `KeyedWindows.query`.

        Raises:
            SpecError: As there.
            SnapshotError: If the last `refresh` failed while it applied changes.
        """
        return self._queries.query(key, at, windows, plus, valid_until)

    def query_many(
        self,
        keys: Any,
        at: Any = None,
        windows: WindowLike | Iterable[WindowLike] | None = None,
        plus: Mapping[str, str] | Sequence[str] | None = None,
        valid_until: bool = False,
    ) -> Any:
        """Appends results to a table of keys: see `KeyedWindows.query_many`.

        All are as of one micro-batch.

        Raises:
            SpecError: As there.
            SnapshotError: As for `query`.
        """
        return self._queries.query_many(keys, at, windows, plus, valid_until)

    def _results(
        self, points: Points, windows: Any, valid_until: bool
    ) -> dict[str, Result]:
        """The results of query points, each from the part of its key."""
        by = self._view.query.spec.by
        buckets = buckets_of(by, points.keys, self._buckets)
        of_buckets: dict[int, list[int]] = {}
        for place, bucket in enumerate(buckets.to_pylist()):
            of_buckets.setdefault(bucket, []).append(place)
        found, order = [], pa.array([], pa.int64())
        for bucket, places in (of_buckets or {-1: []}).items():
            part = self._parts.get(bucket, self._empty)
            taken = pa.array(places, pa.int64())
            view = part.state.published()
            assert view is not None, "the columns are known"
            own = points.take(taken)
            found.append(part.queries.results(view, own, windows, valid_until))
            order = pa.concat_arrays([order, taken])
        back = pc.sort_indices(order)
        return {
            name: result._replace(
                array=one_column([each[name].array for each in found]).take(back)
            )
            for name, result in found[0].items()
        }

    @property
    def _empty(self) -> SpecWindows:
        """The part of the buckets without files, with the position of the stream."""
        if not self._parts or self._none is None:
            raise SnapshotError(
                "the last refresh() failed while it applied changes: call it again"
            )
        return self._none

    @property
    def _view(self) -> View:
        view = self._empty.state.view
        assert view is not None, "the columns are known"
        return view

    def _part_of(self, key: tuple[Any, ...]) -> SpecWindows:
        """The part of a key."""
        try:
            bucket = self._bucket_of(key)
        except TypeError:  # a list or dict is no key of a cache
            bucket = self._hashed(key)
        return self._parts.get(bucket, self._empty)

    def _hashed(self, key: tuple[Any, ...]) -> int:
        query = self._view.query
        keys = key_table(query, key)
        return int(buckets_of(query.spec.by, keys, self._buckets)[0].as_py())

    # What it holds.

    def __contains__(self, key: object) -> bool:
        """Whether a key has rows: see `KeyedWindows`."""
        with self._lock:
            values = key_values(self._view.query.spec.by, key)
            return self._part_of(tuple(values.values())).holds(values)

    def keys(self) -> pa.Table:
        """Returns the keys that have rows in the horizon, each with its latest time.

        Cost: O(keys).
        """
        with self._lock:
            empty = self._empty.keys()
            return pa.concat_tables([empty, *(x.keys() for x in self._parts.values())])

    def __len__(self) -> int:
        """The number of keys that have rows. Cost: O(keys)."""
        with self._lock:
            return sum(part.count() for part in self._parts.values())

    @property
    def watermark(self) -> Any:
        """The watermark of that micro-batch; None before the first."""
        return self._empty.watermark

    @property
    def late_count(self) -> int:
        """The number of late rows so far."""
        with self._lock:
            return sum(part.late_count for part in self._parts.values())

    @property
    def ahead_count(self) -> int:
        """The number of rows so far that were ahead of their micro-batch."""
        with self._lock:
            return sum(part.ahead_count for part in self._parts.values())

    @property
    def duplicate_count(self) -> int:
        """The number of duplicates so far, by `unique_by=`."""
        with self._lock:
            return sum(part.duplicate_count for part in self._parts.values())

    @property
    def nbytes(self) -> int:
        """The bytes of the rows and of their index. Cost: O(pages)."""
        with self._lock:
            return sum(part.nbytes for part in self._parts.values())

    def metrics(self) -> dict[str, float]:
        """Returns what a monitor asks of a stream: see `KeyedWindows.metrics`.

        Cost: O(pages).
        """
        with self._lock:
            counts = {
                "late": self.late_count,
                "ahead": self.ahead_count,
                "duplicates": self.duplicate_count,
                "state_bytes": self.nbytes,
            }
            return {**counts, **self._view.metrics}

    def _measured(self) -> list[Reading]:
        """What an exporter reads; from the first call on, queries are counted."""
        with self._lock:
            if not isinstance(self._queries, Measured):
                self._queries = Measured(self._queries, _Queries(proxy(self)))
            return [self._queries.reading(self.metrics())]

    def __repr__(self) -> str:
        with self._lock:
            title, position = self._empty.title(), self._empty.position(self.nbytes)
            return f"<Follower {title}: micro-batch {self._batch}, {position}>"


class _Queries:
    """The queries of a follower."""

    def __init__(self, of: Follower) -> None:
        self._of = of

    @property
    def view(self) -> View | None:
        """The position of the stream; None while an apply has failed."""
        none = self._of._none
        return None if none is None else none.state.view

    def query(
        self, key: Any, at: Any, windows: Any, plus: Any, valid_until: bool, /
    ) -> dict[str, Any]:
        """The results of a key."""
        of = self._of
        with of._lock:
            values = key_values(of._view.query.spec.by, key)
            queries = of._part_of(tuple(values.values())).queries
            return queries.query(values, at, windows, plus, valid_until)

    def query_many(
        self, keys: Any, at: Any, windows: Any, plus: Any, valid_until: bool, /
    ) -> Any:
        """A table of keys with their results."""
        of = self._of
        check_bool(valid_until, "valid_until")
        if isinstance(windows, Iterator):
            windows = [*windows]

        def answered(table: Any) -> Any:
            with of._lock:
                view = of._view
                target = Lists(table) if holds_lists(table) else frame(table)
                of_column = isinstance(at, str) and not is_latest(at)
                tick = None if of_column else view.tick(at)
                points = points_of(view.query, target, at, tick, plus)
                results = of._results(points, windows, valid_until)
                refuse_taken(target, list(results))
                return target.append(results)

        if is_lazy(keys):
            return map_lazily(keys, of._view.query.spec, answered)
        return answered(keys)


def _keep_up(follower: "ref[Follower]", closed: Event, seconds: float) -> None:
    """Looks for new micro-batches, until a follower is closed or gone."""
    while not closed.wait(seconds):
        if (found := follower()) is not None:
            found._look()
        del found


def _latest(times: Iterable[int | None]) -> int | None:
    """The latest of some times; None for none."""
    return max((time for time in times if time is not None), default=None)


def _seconds(every: WindowLike) -> float:
    """The seconds of `every=`.

    Raises:
        SpecError: If it is not a duration above 0.
    """
    nanoseconds = parse_offset(every, "every").amount
    if isinstance(every, int) or nanoseconds <= 0:
        raise SpecError(
            Argument("every", every),
            ' is not a duration above 0: give one, such as "1s"',
        )
    return nanoseconds / 1e9
