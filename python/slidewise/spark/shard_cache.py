"""Shards that a worker keeps decoded from one micro-batch to the next.

Spark gives a bucket's micro-batch to whichever worker is idle, so each of them comes to
hold what another has long gone on with. Such a shard is never trusted again (its token
is not that of the state any more), and only takes memory: it is dropped once its query
is a few micro-batches ahead.
"""

import time
from dataclasses import dataclass, field

from slidewise.keyed.shard import Shard
from slidewise.spark.local_page_cache import Shelf

__all__ = ["Cache", "Held"]

# Micro-batches that a shard is kept without having been asked for: a bucket may have no
# rows in one of them, and its state is then as it was.
_BATCHES = 2
# Seconds after which what is held for another query is given up: it may have ended.
_OLD = 600.0


@dataclass(slots=True)
class Held:
    """What a worker keeps of a bucket.

    Attributes:
        token: Of the state that the shard stands for.
        shard: The bucket, decoded.
        shelf: Its pages on this node's disk, if there is a place for them.
        batch: The micro-batch that left it.
        used: When that was.
    """

    token: str
    shard: Shard
    shelf: Shelf | None
    batch: int
    used: float = field(default_factory=time.monotonic)


class Cache:
    """What a worker keeps, by query and bucket."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, int], Held] = {}

    def take(self, query: str, bucket: int, batch: int) -> Held | None:
        """Takes out what is held of a bucket, and drops what is too old for use."""
        found = self.held.pop((query, bucket), None)
        now = time.monotonic()
        self.held = {
            key: held
            for key, held in self.held.items()
            if (
                0 <= batch - held.batch <= _BATCHES
                if key[0] == query
                else now - held.used <= _OLD
            )
        }
        return found

    def put(self, query: str, bucket: int, held: Held) -> None:
        """Keeps a bucket for the next micro-batch."""
        self.held[query, bucket] = held
