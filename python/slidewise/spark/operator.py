"""The stateful operator: one `Processor` of `slidewise.keyed` per bucket.

The state of a bucket is a `ValueState`, the *head*, and a `MapState`, `pages`. The head
holds a token, the timer, the guard and the directory of the shard; that of the guard's
bucket holds the guard and the query. In checkpoints its name is `directory`. A shard
stays in the worker process between micro-batches. If its token is that of the head, the
shard is current. If its token is one of those before it, the shard reads the commits
since. Otherwise a new shard is opened: Spark replays micro-batches, retries tasks and
moves partitions between workers.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, SupportsBytes

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import (
    BinaryType,
    DoubleType,
    LongType,
    StructField,
    StructType,
)

from slidewise.errors import SpecError
from slidewise.keyed.processor import Processor
from slidewise.keyed.publisher import Commit, Published, Publisher
from slidewise.keyed.query import AHEAD, CORRECTION, LATE, KeyedQuery, flagged
from slidewise.keyed.shard import Directory
from slidewise.keyed.snapshots import QueryHeads
from slidewise.spark.arrow_ipc import payloads, read_ipc
from slidewise.spark.buckets import bucket_count, bucket_number
from slidewise.spark.checkpoint_guard import GUARD_BUCKET, Guard, continued
from slidewise.spark.columns import EARLY
from slidewise.spark.heartbeats import BucketClock, Look
from slidewise.spark.local_page_cache import CachedStore, LocalPageCache, cache_folder
from slidewise.spark.shard_cache import CachedShard, ShardCache
from slidewise.spark.watermarks import (
    WATERMARK,
    in_spark,
    timer_for,
    watermark_of,
)
from slidewise.spark.worker_errors import one_line_errors
from slidewise.spark.worker_memory import prepare_worker

__all__ = [
    "HEAD",
    "METRICS",
    "OUTPUT",
    "PAGES",
    "Operator",
    "StatePages",
    "new_head",
]

# The names of the state variables in checkpoints.
HEAD, PAGES = "directory", "pages"

# The counts of a call of the operator; `metrics` sums them per micro-batch.
_COUNTS = (
    "rows",
    "late",
    "ahead",
    "duplicates",
    "keys",
    "answers",
    "corrections",
    "pages_read",
    "pages_written",
    "bytes_read",
    "bytes_written",
    "cached",
    "cached_pages",
    "calls",
)
OUTPUT = StructType(
    [
        StructField("payload", BinaryType()),
        *(StructField(name, LongType()) for name in _COUNTS),
        StructField("seconds", DoubleType()),
        StructField(WATERMARK, LongType()),
    ]
)
METRICS = (*_COUNTS, "seconds")

_BLOB = StructType([StructField("value", BinaryType())])
_PAGE = StructType([StructField("page", LongType())])
# Bytes of decoded pages that a shard keeps from one micro-batch to the next.
_MAX_DECODED_BYTES = 1 << 25
# Bytes of a payload of results. The JVM copies each payload to its heap. Arrays of half
# a megabyte or more get regions of their own: 500,000 results in payloads of 4 MB took
# 139 ms of CPU in garbage collection.
_RESULT_BYTES = 1 << 18
# The number of earlier tokens in the head: shards with these can follow the state.
_TOKENS = 32

_cache = ShardCache()


class StatePages:
    """The page store of a bucket: a `MapState` of Spark."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, page: int) -> bytes | None:
        """Reads a page; None if there is none."""
        found = self._state.getValue((page,))
        return None if found is None else bytes(found[0])

    def put(self, page: int, blob: SupportsBytes) -> None:
        """Writes a page."""
        self._state.updateValue((page,), (bytes(blob),))

    def remove(self, page: int) -> None:
        """Removes a page."""
        self._state.removeKey((page,))


class Operator(StatefulProcessor):  # type: ignore[misc]
    """Computes the results of the rows of one bucket.

    Attributes:
        query: The windows, aggregations and output mode.
        flags: Whether late rows are returned with `_late` true.
        retention: The least time for which rows are kept behind the watermark, in
            ticks.
        publish: The folder of the commits for followers; None for no publishing.
        idle: After how long without rows the watermark follows the clock, in
            milliseconds; None for never.
        handle: What Spark gives for timers; set by `init`, like all that follow.
        guard: The guard of the query; state with another guard is refused.
        publisher: Writes each commit for followers; None for no publishing.
        head: The head of the bucket.
        pages: The pages of the bucket.
    """

    def __init__(
        self,
        query: KeyedQuery,
        guard: Guard,
        publish: str | None,
        *,
        flags: Sequence[str],
        retention: int = 0,
        idle: int | None = None,
    ) -> None:
        self.query, self.flags, self.retention = query, flags, retention
        self._guard, self.publish, self.idle = guard, publish, idle

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declares the state variables; called once per task, and on the driver."""
        prepare_worker()
        self.handle = handle
        buckets, to = bucket_count(self._guard.buckets), self.publish
        self.guard = replace(self._guard, buckets=buckets).to_bytes()
        self.publisher = None if to is None else Publisher(to, buckets)
        # Checkpoints contain these names, so they cannot change.
        self.head = handle.getValueState(HEAD, _BLOB)
        self.pages = handle.getMapState(PAGES, _PAGE, _BLOB)

    @one_line_errors()
    def handleInitialState(  # noqa: N802
        self,
        key: Any,
        initialState: Any,  # noqa: N803
        timerValues: Any,  # noqa: N803, ARG002
    ) -> None:
        """Loads rows of `initial=` without results, or the latest time of all."""
        (bucket,) = key
        if bucket == GUARD_BUCKET:
            return
        transaction = StateTransaction(self, bucket, Look(), None)
        if initialState.payload is not None:
            transaction.load(read_ipc(bytes(initialState.payload)))
        if initialState.latest is not None:
            transaction.processor.begin(initialState.latest)
        transaction.commit()

    @one_line_errors()
    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Ingests new rows; returns all results that are due."""
        (bucket,) = key
        if bucket == GUARD_BUCKET:
            for _ in rows:
                pass  # Each task of the packing sends one.
            self._check()
            return iter(())
        tables, look = [], Look()
        for row in rows:
            if row.payload is None:
                look.add(row.now, row.came)
            else:
                tables.append(read_ipc(bytes(row.payload)))
        watermark = self._watermark(timerValues)
        if not tables and (clock := self._waits(look, watermark)) is not None:
            return output_rows([], {WATERMARK: clock.watermark})
        transaction = StateTransaction(self, bucket, look, watermark)
        transaction.advance()
        if tables:
            transaction.ingest(pa.concat_tables(tables).combine_chunks())
        transaction.commit()
        return transaction.output()

    @one_line_errors()
    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Returns the results that the watermark makes due in a bucket without rows."""
        (bucket,) = key
        watermark = self._watermark(timerValues)
        transaction = StateTransaction(self, bucket, Look(), watermark)
        transaction.fired = expiredTimerInfo.getExpiryTimeInMs()
        transaction.advance()
        transaction.commit()
        return transaction.output()

    def close(self) -> None:
        """Does nothing: no resource is open between calls."""

    def continued(self, state: bytes | None, kept: list[str] | None) -> KeyedQuery:
        """The query that goes on with a state, by its guard and the columns it kept.

        Raises:
            SpecError: If the query did not make the state, or grew beyond it.
        """
        query = continued(self.query, self.guard, state, kept)
        if query is not self.query and self.publish is not None:
            raise SpecError(
                "publish= writes for followers of the earlier Spec: leave the Spec as "
                "it was, or make a checkpoint and a folder for the new one by "
                "slidewise.spark.migrate(spec=, publish=)"
            )
        return query

    def _watermark(self, timer_values: Any) -> int | None:
        """Returns the watermark in microseconds since 1970; None before the first."""
        return watermark_of(timer_values.getCurrentWatermarkInMs())

    def _waits(self, look: Look, watermark: int | None) -> BucketClock | None:
        """Records a look at the clock that gives a bucket without rows nothing to do.

        Its shard stays closed: another worker may have to read all of its pages. None
        if results are due, or followers have to know the watermark.
        """
        found = self.head.get()
        if found is None or self.idle is None:
            return None
        head = json.loads(bytes(found[0]))
        before = BucketClock.of(head)
        clock, timer = before.at(look, watermark, self.idle), head["timer"]
        if clock.watermark is not None and clock.watermark != before.watermark:
            is_due = timer is not None and timer <= in_spark(clock.watermark)
            if is_due or self.publisher is not None:
                return None
        self.head.update((json.dumps({**head, **clock.record()}).encode(),))
        return clock

    def _check(self) -> None:
        found = self.head.get()
        state = None if found is None else json.loads(bytes(found[0]))["guard"].encode()
        self.continued(state, None)
        if state != self.guard:
            query = QueryHeads().of(self.query)
            head = {"guard": self.guard.decode(), "query": query}
            self.head.update((json.dumps(head).encode(),))


class StateTransaction:
    """One call of the operator for one bucket: reads the state, updates, commits.

    The shard is removed from the cache at the beginning and put back by `commit`, so a
    call that fails leaves no shard in the cache.

    Args:
        operator: The operator.
        bucket: The key of the bucket.
        look: The look at the clock of the micro-batch.
        watermark: The watermark of Spark.

    Attributes:
        watermark: That of the bucket: of Spark, or a later one after a silence.
        processor: What is in the state.
        fired: The timer that has fired; None for none.

    Raises:
        SpecError: If the state was made for another query.
    """

    def __init__(
        self, operator: Operator, bucket: int, look: Look, watermark: int | None
    ) -> None:
        self._operator, self._bucket = operator, bucket
        self._started = time.perf_counter()
        context = TaskContext.get()
        query = context.getLocalProperty("sql.streaming.queryId") if context else None
        batch = context.getLocalProperty("streaming.sql.batchId") if context else None
        self._query_id, self._batch = str(query), int(batch or 0)
        self._results: list[pa.Table] = []
        self._counts = dict.fromkeys(_COUNTS, 0)
        self.fired: int | None = None
        found = operator.head.get()
        head = {} if found is None else json.loads(bytes(found[0]))
        self._clock, self.watermark = BucketClock(), watermark
        if operator.idle is not None:
            self._clock = BucketClock.of(head).at(look, watermark, operator.idle)
            self.watermark = self._clock.watermark
        # A timer fires without new rows, and so without a call for the guard's bucket.
        guard: str | None = head.get("guard")
        state = None if guard is None else guard.encode()
        self._query = operator.continued(state, head.get("kept"))
        self._timer: int | None = head.get("timer")
        self._token: str = head.get("token", "")
        self._earlier: list[str] = head.get("earlier", [])
        # The latest time of the rows of this call.
        self._largest: int | None = None
        self._published: Published | None = None
        if operator.publisher is not None:
            self._publisher = operator.publisher.claim(self._query_id)
            if (published := head.get("published")) is not None:
                self._published = Published(**published)
            self._publisher.require(self._published, is_new=found is None)
        cached = self._cached()
        is_current = cached is not None and cached.token == self._token
        self._pages = cached.pages if cached and is_current else self._open_pages()
        self._store = CachedStore(StatePages(operator.pages), self._pages)
        directory: dict[str, Any] | None = head.get("shard")
        if cached is None:
            # `ordered=False`, because Spark does not keep the order of rows.
            self.processor = Processor(
                self._query,
                self._store,
                directory,
                operator.retention,
                ordered=False,
            )
            return
        self.processor = cached.processor
        self.processor.pages.store = self._store
        self._counts["cached"] = 1
        if not is_current and directory is not None:
            self.processor.follow(directory)

    def _cached(self) -> CachedShard | None:
        """The cached shard, if its token is that of the state or an earlier one.

        The Spec, `overflow=`, `changed=`, `valid_until=` and `late=` must be equal,
        too: a query may continue with others.
        """
        cached = _cache.pop(self._query_id, self._bucket, self._batch)
        if cached is None or cached.token not in (self._token, *self._earlier):
            return None
        processor, own = cached.processor, self._query
        same = self._free(processor.query, processor.retention)
        return cached if same == self._free(own, self._operator.retention) else None

    @staticmethod
    def _free(query: KeyedQuery, retention: int) -> tuple[Any, ...]:
        """What may differ from one run of a query to the next."""
        given = query.changed, query.valid_until, retention
        return query.spec.hash, query.spec.overflow, *given

    def _open_pages(self) -> LocalPageCache | None:
        """Opens the page cache of this bucket on the disk of the node."""
        folder = cache_folder()
        if folder is None:
            return None
        own = folder / f"{self._query_id}-{self._bucket}"
        return LocalPageCache.open(own, self._token)

    def load(self, rows: pa.Table) -> None:
        """Loads rows from before the stream, without results."""
        self.processor.load(rows)
        if len(rows):
            self._largest = pc.max(self.processor.query.ticks(rows)).as_py()

    def advance(self) -> None:
        """Computes the results that the watermark makes due."""
        due, watermark = self.processor.due, self.watermark
        if watermark is not None and due is not None and due <= watermark:
            self._collect(self.processor.advance(watermark))
            self.processor.evict(watermark)

    def ingest(self, rows: pa.Table) -> None:
        """Ingests rows; counts those late or ahead, and returns them if asked to."""
        watermark = self.watermark
        self._counts["rows"] += len(rows)
        # No copy: the memory of payloads does not change.
        query, flags = self.processor.query, self._operator.flags
        ahead = rows.slice(0, 0)
        if EARLY in rows.column_names:
            is_ahead = rows[EARLY]
            ahead, _ = query.arrived(rows.filter(is_ahead), copies=False)
            rows = rows.filter(pc.invert(is_ahead))
        rows, ends = query.arrived(rows, copies=False)
        self._largest = None if ends is None else ends[1]
        accepted, late = query.by_lateness(rows, watermark, ends)
        rows = self.processor.counting(accepted, watermark)
        self._counts["duplicates"] += len(accepted) - len(rows)
        for refused, name, flag in ((late, "late", LATE), (ahead, "ahead", AHEAD)):
            self._counts[name] += len(refused)
            if len(refused) and flags:
                self._results.append(query.returned(refused, flags, flag))
        if len(rows):
            before = self.processor.changed_keys
            self._collect(self.processor.ingest(rows, watermark))
            self._counts["keys"] += self.processor.changed_keys - before

    def _collect(self, results: pa.Table | None) -> None:
        if results is None or not len(results):
            return
        self._counts["answers"] += len(results)
        if self.processor.query.corrects:
            corrections = pc.sum(results[CORRECTION]).as_py()
            self._counts["corrections"] += corrections
        if self._operator.flags:
            results = flagged(results, self._operator.flags)
        self._results.append(results)

    def commit(self) -> None:
        """Writes the state: the pages, then the head, whose token makes them valid."""
        processor, operator = self.processor, self._operator
        changed = processor.pages.changed
        directory = processor.commit()
        timer = self._set_timer()
        head = new_head(self._batch, operator.guard, directory, timer)
        token: str = head["token"]
        head["earlier"] = [self._token, *self._earlier][:_TOKENS]
        if processor.query.kept is not None:
            head["kept"] = processor.query.kept
        if operator.idle is not None:
            head |= self._clock.record()
        if operator.publisher is not None:
            head["published"] = self._publish(directory, changed)
        operator.head.update((json.dumps(head).encode(),))
        self._counts["cached_pages"] = self._store.hits
        self._store.commit(self._token, token)
        processor.pages.trim(_MAX_DECODED_BYTES)
        entry = CachedShard(token, processor, self._pages, self._batch)
        _cache.put(self._query_id, self._bucket, entry)

    def _publish(self, directory: Directory, changed: set[int]) -> dict[str, Any]:
        """Writes the commit for followers; gives what the head records of it."""
        commit = Commit(
            batch=self._batch,
            bucket=bucket_number(self._bucket),
            watermark=self.watermark,
            largest=self._largest,
            late=self._counts["late"],
            ahead=self._counts["ahead"],
            duplicates=self._counts["duplicates"],
            changed={page: self._store.get(page) for page in changed},
        )
        written = self._publisher.write(
            self.processor, directory, commit, self._published
        )
        return asdict(written)

    def _set_timer(self) -> int | None:
        """Registers a timer for the next result that falls due, and returns it."""
        due = self.processor.due
        handle, timer = self._operator.handle, self._timer
        wanted = None if due is None else timer_for(due, self.watermark)
        if wanted == timer and timer != self.fired:
            return timer
        # Spark itself deletes a timer that has fired.
        if timer is not None and timer != self.fired:
            handle.deleteTimer(timer)
        if wanted is not None:
            handle.registerTimer(wanted)
        return wanted

    def output(self) -> Iterator[Row]:
        """Returns the results as rows of `OUTPUT`, with the counts of the call."""
        counts: dict[str, float | None] = {
            **self._counts,
            **self.processor.pages.traffic(),
            "calls": 1,
            "seconds": time.perf_counter() - self._started,
            WATERMARK: self.watermark,
        }
        return output_rows(self._results, counts)


def new_head(
    batch: int, guard: bytes, directory: Directory, timer: int | None
) -> dict[str, Any]:
    """The head of a bucket as of a micro-batch, for JSON."""
    return {
        "token": f"{batch}:{os.urandom(8).hex()}",
        "timer": timer,
        "earlier": [],
        "guard": guard.decode(),
        "shard": directory,
    }


def output_rows(
    results: list[pa.Table], counts: dict[str, float | None]
) -> Iterator[Row]:
    """Yields results as payloads; the first row carries the call's counts."""
    zeros = {**dict.fromkeys(METRICS, 0), "seconds": 0.0, WATERMARK: None}
    blobs: Iterable[memoryview | None] = [None]
    if results:
        table = pa.concat_tables(results, promote_options="permissive")
        blobs = payloads(table.combine_chunks(), _RESULT_BYTES)
    for at, payload in enumerate(blobs):
        row = zeros if at else zeros | counts
        yield Row(*OUTPUT.names)(payload, *(row[name] for name in OUTPUT.names[1:]))
