"""The stateful operator: a shard of `slidewise.keyed` per bucket, pages as its state.

State of a bucket, all of it bytes of our own: `directory`, with a token, and `pages`. A
shard stays decoded in the worker's process from batch to batch, and is trusted only if
its token is the one in the state: batches are replayed, tasks retried, and workers go
from one partition to another.
"""

import json
import os
import time
from collections.abc import Iterator
from typing import Any

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

from slidewise.keyed.query import CORRECTION, flagged
from slidewise.keyed.shard import Shard
from slidewise.keyed.stream_query import StreamQuery
from slidewise.spark.arrow_ipc import read_ipc, write_ipc
from slidewise.spark.checkpoint_guard import GUARDED, Guard
from slidewise.spark.local_page_cache import Shelf, Shelved, folder
from slidewise.spark.shard_cache import Cache, Held
from slidewise.spark.watermarks import alarm, watermark_of

__all__ = ["METRICS", "OUTPUT", "Operator"]

# What a call of the operator did, summed up per batch.
_COUNTS = (
    "rows",
    "late",
    "keys",
    "answers",
    "corrections",
    "pages_read",
    "pages_written",
    "bytes_read",
    "bytes_written",
    "cached",
    "shelved",
    "calls",
)
OUTPUT = StructType(
    [
        StructField("payload", BinaryType()),
        *(StructField(name, LongType()) for name in _COUNTS),
        StructField("seconds", DoubleType()),
    ]
)
METRICS = (*_COUNTS, "seconds")

_BLOB = StructType([StructField("value", BinaryType())])
_PAGE = StructType([StructField("page", LongType())])
# Answers per payload.
_ANSWERS = 1 << 16
# Decoded pages that a shard keeps from one batch to the next.
_DECODED = 4096

_cache = Cache()


class StatePages:
    """The pages of a bucket in Spark's state."""

    def __init__(self, states: Any) -> None:
        self._states = states

    def get(self, page: int) -> bytes | None:
        """As in `slidewise.keyed.page_store.Store`."""
        found = self._states.getValue((page,))
        return None if found is None else bytes(found[0])

    def put(self, page: int, blob: bytes) -> None:
        """As in `slidewise.keyed.page_store.Store`."""
        self._states.updateValue((page,), (blob,))

    def remove(self, page: int) -> None:
        """As in `slidewise.keyed.page_store.Store`."""
        self._states.removeKey((page,))


class Operator(StatefulProcessor):  # type: ignore[misc]
    """Answers the rows of one bucket.

    Args:
        job: What is asked.
        guard: What every bucket's state must have been made for.
        flags: Whether late rows come back.
    """

    def __init__(self, job: StreamQuery, guard: bytes, *, flags: bool) -> None:
        self._job, self._guard, self._flags = job, guard, flags

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Names the state; once per task, and on the driver."""
        self._handle = handle
        self._directory = handle.getValueState("directory", _BLOB)
        self._pages = handle.getMapState("pages", _PAGE, _BLOB)

    def handleInitialState(  # noqa: N802
        self,
        key: Any,
        initialState: Any,  # noqa: N803
        timerValues: Any,  # noqa: N803, ARG002
    ) -> None:
        """Takes rows of history in, which get no answers."""
        (bucket,) = key
        if bucket == GUARDED:
            return
        turn = Turn(self, bucket)
        turn.shard.load(read_ipc(bytes(initialState.payload)))
        turn.commit(None)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Answers new rows, and what the watermark has passed meanwhile."""
        (bucket,) = key
        if bucket == GUARDED:
            self._check([bytes(row.payload) for row in rows])
            return iter(())
        turn = Turn(self, bucket)
        watermark = self._watermark(timerValues)
        turn.advance(watermark)
        tables = [read_ipc(bytes(row.payload)) for row in rows]
        turn.ingest(pa.concat_tables(tables).combine_chunks(), watermark)
        turn.commit(watermark)
        return turn.rows()

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Answers what the watermark has passed in a bucket without new rows."""
        (bucket,) = key
        turn = Turn(self, bucket)
        turn.fired = expiredTimerInfo.getExpiryTimeInMs()
        watermark = self._watermark(timerValues)
        turn.advance(watermark)
        turn.commit(watermark)
        return turn.rows()

    def close(self) -> None:
        """Nothing is held open."""

    def _watermark(self, timer_values: Any) -> int | None:
        """The watermark in ticks; None before there is one."""
        return watermark_of(timer_values.getCurrentWatermarkInMs())

    def _check(self, guards: list[bytes]) -> None:
        found = self._directory.get()
        Guard.check(guards[0], None if found is None else bytes(found[0]))
        if found is None:
            self._directory.update((guards[0],))


class Turn:
    """One call for one bucket: from the state to answers and back."""

    def __init__(self, operator: Any, bucket: int) -> None:
        self._operator = operator
        self._started = time.perf_counter()
        context = TaskContext.get()
        query = context.getLocalProperty("sql.streaming.queryId") if context else None
        batch = context.getLocalProperty("streaming.sql.batchId") if context else None
        self._query, self._bucket = str(query), bucket
        self._batch = int(batch or 0)
        self._answers: list[pa.Table] = []
        self._counts = dict.fromkeys(_COUNTS, 0)
        self.fired: int | None = None
        found = operator._directory.get()
        state = {} if found is None else json.loads(bytes(found[0]))
        # Timers fire without new rows, and so without the bucket of the guard.
        told: str | None = state.get("guard")
        Guard.check(operator._guard, None if told is None else told.encode())
        self._timer: int | None = state.get("timer")
        # Taken out: a call that fails leaves nothing behind to be trusted.
        self._token: str = state.get("token", "")
        held = _cache.take(self._query, bucket, self._batch)
        if held is not None and (
            held.token != self._token
            # A query may go on with another one, which its state says nothing of.
            or held.shard.job.spec.overflow != operator._job.spec.overflow
        ):
            held = None
        self._shelf = self._on_disk() if held is None else held.shelf
        self._store = Shelved(StatePages(operator._pages), self._shelf)
        if held is not None:
            self.shard = held.shard
            self.shard.reopen(self._store)
            self._counts["cached"] = 1
        else:
            directory = state.get("shard")
            directory = directory and directory.encode()
            self.shard = Shard(operator._job, self._store, directory)

    def _on_disk(self) -> Shelf | None:
        """The pages that the worker before has left on this node, if it was here."""
        place = folder()
        if place is None:
            return None
        return Shelf.at(f"{self._query}-{self._bucket}", place, self._token)

    def advance(self, watermark: int | None) -> None:
        """Answers what the watermark has passed."""
        due = self.shard.due
        if watermark is not None and due is not None and due <= watermark:
            self._take(self.shard.advance(watermark))

    def ingest(self, rows: pa.Table, watermark: int | None) -> None:
        """Takes in what is not late."""
        self._counts["rows"] += len(rows)
        rows, late = self.shard.job.by_lateness(rows, watermark)
        self._counts["late"] += len(late)
        if len(late) and self._operator._flags:
            self._answers.append(self.shard.job.given_back(late))
        if len(rows):
            self._counts["keys"] += pc.count_distinct(
                self.shard.job.hashes(rows)
            ).as_py()
            self._take(self.shard.ingest(rows, watermark))

    def _take(self, answers: pa.Table | None) -> None:
        if answers is not None and len(answers):
            self._counts["answers"] += len(answers)
            if self.shard.job.corrects:
                again = pc.sum(answers[CORRECTION]).as_py()
                self._counts["corrections"] += again
            if self._operator._flags:
                answers = flagged(answers, late=False)
            self._answers.append(answers)

    def commit(self, watermark: int | None) -> None:
        """Writes the state: pages first, the token that makes them valid last."""
        shard, operator = self.shard, self._operator
        directory = shard.commit()
        token = f"{self._batch}:{os.urandom(8).hex()}"
        state = {"token": token, "timer": self._wake(watermark)}
        state["guard"] = operator._guard.decode()
        state["shard"] = directory.decode()
        operator._directory.update((json.dumps(state).encode(),))
        self._counts["shelved"] = self._store.hits
        self._store.keep(self._token, token)
        shard.trim(_DECODED)
        held = Held(token, shard, self._shelf, self._batch)
        _cache.put(self._query, self._bucket, held)

    def _wake(self, watermark: int | None) -> int | None:
        """Sets the timer for what is due next; gives it."""
        due = self.shard.due
        handle, timer = self._operator._handle, self._timer
        wanted = None
        if due is not None:
            wanted = alarm(due, watermark)
        if wanted == timer and timer != self.fired:
            return timer
        # Spark itself deletes the one that has fired.
        if timer is not None and timer != self.fired:
            handle.deleteTimer(timer)
        if wanted is not None:
            handle.registerTimer(wanted)
        return wanted

    def rows(self) -> Iterator[Row]:
        """The answers as payloads, and what the call did."""
        counts: dict[str, float] = {**self._counts, **self.shard.traffic(), "calls": 1}
        counts["seconds"] = time.perf_counter() - self._started
        nothing: dict[str, float] = {**dict.fromkeys(METRICS, 0), "seconds": 0.0}
        payloads: list[bytes | None] = []
        if self._answers:
            answers = pa.concat_tables(self._answers, promote_options="permissive")
            answers = answers.combine_chunks()
            for start in range(0, len(answers), _ANSWERS):
                payloads.append(write_ipc(answers.slice(start, _ANSWERS)))
        for at, payload in enumerate(payloads or [None]):
            told = nothing if at else counts
            yield Row(*OUTPUT.names)(payload, *(told[name] for name in METRICS))
