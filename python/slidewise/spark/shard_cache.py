"""Decoded shards that a worker process keeps from one micro-batch to the next.

Spark gives a bucket's micro-batch to any idle worker, so a worker also holds shards
that others have since updated. When the worker gets the bucket again, the shard reads
the commits since; it is evicted once its query is some micro-batches ahead.
"""

import time
from dataclasses import dataclass, field

from slidewise.keyed.processor import Processor
from slidewise.spark.local_page_cache import LocalPageCache

__all__ = ["CachedShard", "ShardCache"]

# Micro-batches for which an unused shard is kept.
_MAX_IDLE_BATCHES = 16
# Seconds after which unused shards of other queries, which may have ended, are evicted.
_STALE_SECONDS = 600.0


@dataclass(slots=True)
class CachedShard:
    """A decoded bucket.

    Attributes:
        token: The token of the state that the shard was committed to.
        processor: The decoded bucket.
        pages: Its pages on the local disk; None without a folder for them.
        batch: The micro-batch that committed it.
        used: The time of that commit, in seconds of the monotonic clock.
    """

    token: str
    processor: Processor
    pages: LocalPageCache | None
    batch: int
    used: float = field(default_factory=time.monotonic)


class ShardCache:
    """The decoded shards of a worker process, by query and bucket."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, int], CachedShard] = {}

    def pop(self, query: str, bucket: int, batch: int) -> CachedShard | None:
        """Removes and returns the shard of a bucket; also evicts stale shards."""
        found = self.entries.pop((query, bucket), None)
        now = time.monotonic()
        self.entries = {
            key: entry
            for key, entry in self.entries.items()
            if (
                0 <= batch - entry.batch <= _MAX_IDLE_BATCHES
                if key[0] == query
                else now - entry.used <= _STALE_SECONDS
            )
        }
        return found

    def put(self, query: str, bucket: int, entry: CachedShard) -> None:
        """Keeps the shard of a bucket for the next micro-batch."""
        self.entries[query, bucket] = entry
