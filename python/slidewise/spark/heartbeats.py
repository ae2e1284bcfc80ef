"""`idle=`: a watermark that follows the clock while a stream has no rows.

    rows ∪ heartbeats → withWatermark → pack → operator of each bucket

Heartbeats are rows of a rate source without a time, so Spark's watermark, which they do
not move, stays that of the rows. Each packing task tells every bucket the time of the
micro-batch, and whether it saw a row. So all buckets measure one silence, and their
watermark is Spark's or, after a silence, a later one. It depends on the rows and the
times of micro-batches alone, which the checkpoint has: a replay decides the same.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from slidewise.errors import SpecError
from slidewise.keyed.clock import Silence
from slidewise.spark.columns import BEAT, EARLY, NOW

__all__ = ["BucketClock", "Look", "check_heartbeats", "with_heartbeats"]

_WRAPPER = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


def check_heartbeats(spark: Any) -> None:
    """Checks the setting that heartbeats need.

    Raises:
        SpecError: If the session lacks it.
    """
    if spark.conf.get(_WRAPPER, "false").lower() != "true":
        raise SpecError(
            "with idle=, trigger(availableNow=True) would run one micro-batch and "
            f"leave rows unread: call spark.conf.set({_WRAPPER!r}, 'true') before the "
            "query starts, or get a session by slidewise.spark.session()"
        )


def with_heartbeats(rows: Any) -> Any:
    """The rows of a stream and a heartbeat each second, with `BEAT` and `NOW`."""
    rates = rows.sparkSession.readStream.format("rate")
    beats = rates.option("rowsPerSecond", 1).option("numPartitions", 1).load()
    beats = beats.select(
        *(sf.lit(None).cast(field.dataType).alias(field.name) for field in rows.schema),
        sf.lit(True).alias(BEAT),
    )
    # Spark numbers sources in this order: those of the rows keep their numbers.
    both = rows.withColumn(BEAT, sf.lit(False)).union(beats)
    return both.withColumn(NOW, sf.unix_millis(sf.current_timestamp()))


@dataclass(slots=True)
class Look:
    """A look at the clock in a micro-batch.

    Attributes:
        now: The time of the micro-batch, in milliseconds; None without rows and
            heartbeats.
        came: Whether a row came that is not ahead.
    """

    now: int | None = None
    came: bool = False

    def beat(self, batch: pa.Table) -> pa.Table:
        """The rows of a batch without its heartbeats."""
        if len(batch):
            self.now = batch[NOW][0].as_py()
        return batch.filter(pc.invert(batch[BEAT]))

    def see(self, rows: pa.Table) -> None:
        """Sees rows, of which those that are ahead do not count."""
        is_ahead = EARLY in rows.column_names and pc.all(rows[EARLY]).as_py()
        self.came = self.came or (len(rows) > 0 and not is_ahead)

    def add(self, now: int, came: bool) -> None:
        """Adds what a task saw."""
        self.now, self.came = now, self.came or came


@dataclass(frozen=True, slots=True)
class BucketClock:
    """The watermark of a bucket, and the silence; a part of its state.

    Attributes:
        watermark: The watermark, in microseconds since 1970; None before the first.
        looked: The time of the last look at the clock, in milliseconds; None before it.
        silent: For how long no row had come then, in milliseconds.
    """

    watermark: int | None = None
    looked: int | None = None
    silent: int = 0

    @classmethod
    def of(cls, head: dict[str, Any]) -> Self:
        """That of the head of a bucket."""
        return cls(**head.get("clock", {}))

    @classmethod
    def latest(cls, heads: Sequence[dict[str, Any]]) -> Self:
        """That of all buckets: the one that looked last."""
        clocks = [cls.of(head) for head in heads]
        return max(clocks, key=lambda clock: clock.looked or 0, default=cls())

    def record(self) -> dict[str, Any]:
        """What the head of a bucket keeps of it."""
        return {"clock": asdict(self)}

    def at(self, look: Look, watermark: int | None, idle: int) -> "BucketClock":
        """The clock in another micro-batch.

        One with rows ends the silence, and lets nothing follow the clock: rows may have
        come at any time since the one before.

        Args:
            look: The look of the micro-batch.
            watermark: That of Spark.
            idle: After how long without rows the watermark follows the clock, in
                milliseconds.
        """
        known = [mark for mark in (self.watermark, watermark) if mark is not None]
        mark = max(known, default=None)
        if look.now is None:
            return BucketClock(mark, self.looked, self.silent)
        if look.came:
            return BucketClock(mark, look.now, 0)
        silence, pace = Silence(self.looked, self.silent).at(look.now, idle)
        if mark is not None:
            mark += pace * 1_000
        return BucketClock(mark, *silence)
