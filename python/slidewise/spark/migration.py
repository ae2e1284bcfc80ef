"""`migrate`: a checkpoint for other buckets, or for a Spec that has grown.

The state is read from the old checkpoint, and put together for the new buckets. A query
of one micro-batch loads it into a new checkpoint, as initial state. Then the logs of
the old checkpoint replace those of that query, so that the stream goes on after the
last micro-batch that it committed.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from slidewise.errors import SpecError
from slidewise.keyed.buckets import split
from slidewise.keyed.growth import beyond
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.regroup import Position, put_together, take_out
from slidewise.keyed.snapshots import query_of
from slidewise.keyed.validation import check_emit, checked
from slidewise.spark.arrow_ipc import payloads, read_ipc
from slidewise.spark.buckets import (
    PARTITIONS,
    bucket_count,
    bucket_keys,
    bucket_number,
)
from slidewise.spark.checkpoint_files import Files, batches_of, edited
from slidewise.spark.checkpoint_guard import GUARD_BUCKET, Guard, check_format
from slidewise.spark.checkpoint_state import CheckpointState, shard_of, with_kept
from slidewise.spark.heartbeats import BucketClock
from slidewise.spark.local_session import existing_session
from slidewise.spark.operator import OUTPUT, Operator, StatePages, new_head
from slidewise.spark.options import check_order, check_positive
from slidewise.spark.payload import PACKED, packed
from slidewise.spark.publication import Publication
from slidewise.spark.stream import with_needed_columns
from slidewise.spark.versions import check_streams
from slidewise.spark.watermarks import SHIFTED, timer_for, watermark_of
from slidewise.spark.worker_errors import one_line_errors
from slidewise.spark.worker_memory import prepare_worker
from slidewise.spec.spec import Spec

__all__ = ["migrate"]

_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"

# A part of a table of an old bucket, for a new one.
_PIECES = StructType(
    [
        StructField("bucket", IntegerType()),
        StructField("source", IntegerType()),
        StructField("place", IntegerType()),
        StructField("name", StringType()),
        StructField("payload", BinaryType()),
    ]
)
# A page of a new bucket; without a page its head, with the timer.
_STATE = StructType(
    [
        StructField("bucket", IntegerType()),
        StructField("page", LongType()),
        StructField("blob", BinaryType()),
        StructField("timer", LongType()),
    ]
)


def migrate(
    checkpoint: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    buckets: int | None = None,
    spec: Spec | None = None,
    publish: str | os.PathLike[str] | None = None,
) -> None:
    """Makes a new checkpoint of a stream, with other buckets, or a Spec that has grown.

    The stream that is started with it goes on after the last micro-batch that the old
    checkpoint committed: no row is read twice or lost, and results that wait for the
    watermark still come. Give this stream the same source, the new `buckets=` and Spec,
    and the sink as it was. The old checkpoint stays as it is. The new one gets as many
    partitions as a new query of the session, `spark.sql.shuffle.partitions`.

    Args:
        checkpoint: str, the `checkpointLocation` of the stream, which must be stopped.
        to: str, the folder of the new checkpoint, which must not exist. It exists once
            it is complete.
        buckets: int, the most buckets, as the stream will have it; by default as
            before. A partition has one at most.
        spec: `slidewise.Spec` of the stream; by default as before. Its windows are no
            longer than the longest was, and its aggregations read columns of keys and
            of earlier aggregations.
        publish: str, for a stream with `publish=`: the folder that it will have, which
            must be empty. Followers can open it once `to` exists.

    Raises:
        SpecError: If there is no such checkpoint, a query runs on it, `to` exists, or
            the Spec needs rows or columns that the state has not kept; or if the stream
            publishes and `publish` is not given, or the reverse.
        SnapshotError: If the state is damaged.

    Cost:
        A micro-batch that reads and writes the whole state, and holds a bucket of it
        per task.

    Example:
        >>> from slidewise.spark import migrate
        >>> migrate("checkpoints/features", "checkpoints/more", buckets=64)
        ... # doctest: +SKIP
    """
    check_streams()
    checkpoint, to = os.fspath(checkpoint), os.fspath(to)
    if buckets is None and spec is None and publish is None:
        raise SpecError("migrate changes nothing: give buckets=, spec= or publish=")
    if buckets is not None:
        check_positive(buckets, "buckets")
    if spec is not None and not isinstance(spec, Spec):
        raise SpecError(f"spec= takes a slidewise.Spec; got {type(spec).__name__}")
    spark = existing_session()
    if spark is None:
        raise SpecError(
            "migrate runs in a Spark session, and there is none: make one, for example "
            "by slidewise.spark.session()"
        )
    old, new = Files(spark, checkpoint), Files(spark, to)
    _check_folders(spark, old, new)
    settings = _offsets_of(old, batches_of(old, "commits")[-1])["conf"]
    own = _session(spark, settings)
    partitions = int(settings[PARTITIONS]), int(own.conf.get(PARTITIONS))
    state = CheckpointState.open(own, old.path)
    plan = _Plan.of(state, buckets, spec, partitions)
    if old.names("state") != ["0"]:
        raise SpecError(
            f"the query of {old.path!r} has other operators with state beside the "
            "windows of slidewise, which migrate would lose: give a new "
            "checkpointLocation (and the rows so far as initial=)"
        )
    _check_planned(old, plan.state.batch)
    publication = Publication.of(
        None if publish is None else os.fspath(publish),
        state.heads,
        query=json.loads(old.read("metadata"))["id"],
        batch=state.batch,
        watermark=_watermark(old, state),
        buckets=plan.buckets,
    )
    made = Files(spark, f"{new.path}.migrating")
    made.remove()
    try:
        _load(plan, publication, own, made)
        _take_over(old, made, new.path, plan.state.batch)
        made.move(new)
    except BaseException:
        if publication is not None:
            publication.remove()
        raise
    finally:
        made.remove()
    if publication is not None:
        publication.mark()


def _check_folders(spark: Any, old: Files, new: Files) -> None:
    """Checks that the checkpoint exists and is at rest, and that `to` is absent."""
    if not old.exists():
        raise SpecError(f"there is no checkpoint {old.path!r}")
    if new.exists():
        raise SpecError(
            f"{new.path!r} exists, and migrate makes a new checkpoint: give a folder "
            "that does not exist"
        )
    if not old.exists("metadata") or not batches_of(old, "commits"):
        raise SpecError(
            f"{old.path!r} is not a checkpoint with a committed micro-batch: give the "
            "checkpointLocation of a stream of slidewise"
        )
    query = json.loads(old.read("metadata"))["id"]
    running = spark._jsparkSession.sharedState().activeStreamingQueries()
    if running.containsKey(spark._jvm.java.util.UUID.fromString(query)):
        raise SpecError(
            f"a query runs on the checkpoint {old.path!r}: stop() it, then migrate"
        )


def _check_planned(old: Files, batch: int) -> None:
    """Checks that no sink can have the results of a micro-batch that goes on in `to`.

    A sink that has them would skip the micro-batch, and the state with it.
    """
    version = str(batch + 2)
    partitions = [name for name in old.names("state/0") if name.isdigit()]
    names = [old.names(f"state/0/{partition}") for partition in partitions]
    written = all(
        any(re.fullmatch(rf"{version}[._].*", name) for name in each) for each in names
    )
    if written and batch + 1 in batches_of(old, "offsets"):
        raise SpecError(
            f"micro-batch {batch + 1} of {old.path!r} may have reached the sink, and "
            "is not committed: run the stream on this checkpoint once more, for "
            "example with trigger(availableNow=True), then migrate"
        )


def _offsets_of(old: Files, batch: int) -> dict[str, Any]:
    """What Spark keeps of a micro-batch beside the offsets of sources."""
    _, values, *_ = old.read(f"offsets/{batch}").split("\n")
    found: dict[str, Any] = json.loads(values)
    return found


def _watermark(old: Files, state: CheckpointState) -> int | None:
    """The watermark of the last micro-batch, in microseconds since 1970."""
    mark = watermark_of(_offsets_of(old, state.batch)["batchWatermarkMs"])
    marks = [mark, BucketClock.latest(state.heads).watermark]
    return max((mark for mark in marks if mark is not None), default=None)


def _session(spark: Any, settings: dict[str, str]) -> Any:
    """A session of its own, whose state store is that of the checkpoint."""
    own = spark.newSession()
    for name, value in settings.items():
        own.conf.set(name, value)
    for name in (PARTITIONS, _MANAGER):
        if (value := spark.conf.get(name, None)) is not None:
            own.conf.set(name, value)
    # A version of the state is then whole in its own files.
    own.conf.set(_CHANGELOG, "false")
    return own


@dataclass(frozen=True, slots=True)
class _Plan:
    """What becomes of the state of a checkpoint.

    Attributes:
        state: The state.
        saved: The query that made it.
        query: The query that goes on with it.
        buckets: The number of buckets.
        position: How far the stream came.
    """

    state: CheckpointState
    saved: KeyedQuery
    query: KeyedQuery
    buckets: int
    position: Position

    @classmethod
    def of(
        cls,
        state: CheckpointState,
        buckets: int | None,
        spec: Spec | None,
        partitions: tuple[int, int],
    ) -> "_Plan":
        """Checks the arguments of `migrate` against the state.

        The partitions are those of the old checkpoint and of the new one.
        """
        before, now = partitions
        guard = json.loads(state.guard["guard"])
        check_format(guard["format"])
        saved = _saved(state.guard["query"], spec)
        query = saved if spec is None else _grown(saved, spec)
        if buckets is None and guard["buckets"] < before:
            buckets = guard["buckets"]
        count = bucket_count(buckets, now)
        position = Position.of([head["shard"] for head in state.heads])
        return cls(state, saved, query, count if query.spec.by else 1, position)

    @property
    def guard(self) -> Guard:
        """The guard of the new checkpoint."""
        return Guard.of(self.query, self.buckets)

    def target(self, publication: Publication | None) -> "_Target":
        """What the new buckets are made of."""
        heads = self.state.heads
        timed = any("clock" in head for head in heads)
        return _Target(
            query=self.query,
            position=self.position,
            guard=self.guard.to_bytes(),
            batch=self.state.batch,
            clock=BucketClock.latest(heads).record() if timed else {},
            publication=publication,
        )


@dataclass(frozen=True, slots=True)
class _Target:
    """What new buckets have in common.

    Attributes:
        query: The query.
        position: How far the stream came.
        guard: The guard.
        batch: The last micro-batch that was committed.
        clock: The clock of `idle=`; empty without it.
        publication: What they publish to; None for nothing.
    """

    query: KeyedQuery
    position: Position
    guard: bytes
    batch: int
    clock: dict[str, Any]
    publication: Publication | None


def _saved(head: dict[str, Any], spec: Spec | None) -> KeyedQuery:
    """The query of a checkpoint."""
    if spec is not None and spec.hash == head["spec"]:
        return query_of(head, spec)
    if head["document"] is None:
        raise SpecError(
            "the checkpoint does not hold its Spec, of which an aggregation cannot be "
            "imported by its path: pass spec=, the one that its query has"
        )
    return query_of(head)


def _grown(saved: KeyedQuery, spec: Spec) -> KeyedQuery:
    """The query with another Spec.

    Raises:
        SpecError: If the state has not kept the rows or columns for it.
    """
    check_emit(saved.emit, spec)
    check_order(spec, saved.then_by)
    reason = beyond(saved, spec, saved.reach + saved.allowance)
    if reason is not None:
        raise SpecError(
            f"the checkpoint is of another Spec: {reason}. For the rest give a new "
            "checkpointLocation (and the rows so far as initial=)"
        )
    return checked(with_needed_columns(replace(saved, spec=spec, kept=None)))


class _Loader(Operator):
    """Loads the state of the new buckets."""

    def handleInitialState(  # noqa: N802
        self,
        key: Any,  # noqa: ARG002
        initialState: Any,  # noqa: N803
        timerValues: Any,  # noqa: N803, ARG002
    ) -> None:
        """Stores a page or the head of a bucket."""
        blob = bytes(initialState.blob)
        if initialState.page is not None:
            StatePages(self.pages).put(initialState.page, blob)
            return
        self.head.update((blob,))
        if initialState.timer is not None:
            self.handle.registerTimer(initialState.timer)


def _load(plan: _Plan, publication: Publication | None, own: Any, made: Files) -> None:
    """Makes a checkpoint with the new state, by a query of one micro-batch."""

    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield packed([(GUARD_BUCKET, b"") for _ in batches])

    source = own.readStream.format("rate-micro-batch").option("rowsPerBatch", 1)
    rows = source.option("numPartitions", 1).load()
    # A watermark passes over missing times, so no timer fires.
    rows = rows.withColumn(SHIFTED, sf.lit(None).cast("timestamp"))
    rows = rows.withWatermark(SHIFTED, "0 seconds").select("value")
    loaded = (
        rows.mapInArrow(send, PACKED)
        .groupBy("bucket")
        .transformWithState(
            statefulProcessor=_Loader(plan.query, plan.guard, None, flags=()),
            outputStructType=OUTPUT,
            outputMode="Append",
            timeMode="EventTime",
            initialState=_state(plan, publication, own).groupBy("bucket"),
        )
    )
    writer = loaded.writeStream.format("noop").trigger(availableNow=True)
    writer.option("checkpointLocation", made.path).start().awaitTermination()


def _state(plan: _Plan, publication: Publication | None, own: Any) -> Any:
    """The heads and pages of the new buckets."""
    saved, query, buckets = plan.saved, plan.query, plan.buckets
    target = plan.target(publication)

    def pieces(stored: pa.Table) -> pa.Table:
        prepare_worker()
        with one_line_errors():
            return _pieces(saved, query, buckets, stored)

    def together(parts: pa.Table) -> pa.Table:
        prepare_worker()
        with one_line_errors():
            return _together(target, parts)

    taken = plan.state.stored.groupBy("bucket").applyInArrow(pieces, _PIECES)
    keys = sf.explode(sf.array(*map(sf.lit, bucket_keys(buckets))))
    # Buckets without rows have the position of the stream, too.
    every = own.range(1).select(
        keys.alias("bucket"),
        *(sf.lit(None).cast(field.dataType).alias(field.name) for field in _PIECES[1:]),
    )
    both = taken.unionByName(every)
    return both.groupBy("bucket").applyInArrow(together, _STATE)


def _pieces(
    saved: KeyedQuery, query: KeyedQuery, buckets: int, stored: pa.Table
) -> pa.Table:
    """The rows of an old bucket for each of the new ones."""
    source, keys = stored["bucket"][0].as_py(), bucket_keys(buckets)
    store, head = shard_of(stored)
    found: list[tuple[int, int, int, str, memoryview]] = []
    made = with_kept(saved, head)
    for name, rows in take_out(made, store, head["shard"]).items():
        for bucket, part in split(query.spec.by, rows.combine_chunks(), buckets):
            for payload in payloads(part):
                found.append((keys[bucket], source, len(found), name, payload))
    return _table(_PIECES, found)


def _together(target: _Target, parts: pa.Table) -> pa.Table:
    """The head and the pages of a new bucket."""
    key = parts["bucket"][0].as_py()
    parts = parts.filter(parts["name"].is_valid())
    parts = parts.sort_by([("source", "ascending"), ("place", "ascending")])
    tables = defaultdict(list)
    for name, payload in zip(parts["name"], parts["payload"], strict=True):
        tables[name.as_py()].append(read_ipc(payload.as_buffer()))
    store = MemoryStore()
    directory, made = put_together(target.query, store, target.position, tables)
    timer = None if made.due is None else timer_for(made.due, None)
    head = new_head(target.batch, target.guard, directory, timer) | target.clock
    if target.publication is not None:
        bucket = bucket_number(key)
        head["published"] = target.publication.write(made, directory, bucket)
    pages = store.blobs()
    rows = [(key, page, blob, None) for page, blob in pages.items()]
    return _table(_STATE, [(key, None, json.dumps(head).encode(), timer), *rows])


def _table(schema: StructType, rows: list[Any]) -> pa.Table:
    """A table of rows, in the types of a schema of Spark."""
    from pyspark.sql.pandas.types import to_arrow_schema

    fields = to_arrow_schema(schema)
    columns = zip(*rows, strict=True) if rows else [() for _ in fields]
    arrays = [
        pa.array(column, field.type)
        for column, field in zip(columns, fields, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=fields)


def _take_over(old: Files, made: Files, path: str, batch: int) -> None:
    """Makes the checkpoint one of the old query, after a micro-batch of it.

    Args:
        old: The old checkpoint.
        made: The new one, whose state is as of its micro-batch 0.
        path: Where the new one will be.
        batch: The number of the last micro-batch that was committed.
    """
    partitions = json.loads(made.read("offsets/0").split("\n")[1])["conf"][PARTITIONS]
    committed = made.read("commits/0")
    for folder in ("offsets", "commits", "sources", "metadata"):
        made.remove(folder)
    old.copy(made, "metadata")
    if old.exists("sources"):
        old.copy(made, "sources")
    for number in batches_of(old, "offsets"):
        if number >= batch - 1:
            entry = old.read(f"offsets/{number}")
            made.write(
                f"offsets/{number}",
                edited(entry, lambda own: _with_setting(own, PARTITIONS, partitions)),
            )
    # It names the files of the new state, with the watermark of the old query.
    _, values = old.read(f"commits/{batch}").split("\n")
    watermark = {"nextBatchWatermarkMs": json.loads(values)["nextBatchWatermarkMs"]}
    made.write(f"commits/{batch}", edited(committed, lambda own: own | watermark))
    _renumber(made, batch)
    for name in made.names("state/0/_metadata/v2"):
        entry = f"state/0/_metadata/v2/{name}"
        made.write(entry, made.read(entry).replace(made.path, path))


def _with_setting(values: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    return values | {"conf": values["conf"] | {name: value}}


def _renumber(made: Files, batch: int) -> None:
    """Gives the files of the state the number of their version after a micro-batch."""
    for partition in made.names("state/0"):
        folder = f"state/0/{partition}"
        for name in made.names(folder) if partition.isdigit() else ():
            version, rest = name[:1], name[1:]
            if version == "1" and rest[:1] in (".", "_") and batch:
                made.rename(f"{folder}/{name}", f"{folder}/{batch + 1}{rest}")
