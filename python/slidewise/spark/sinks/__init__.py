"""Sinks for `foreachBatch` that keep the last result of each key, and read it.

- `postgres`: a table, which changes by a whole micro-batch at a time.
- `redis`: a hash per key, which changes key by key.

A micro-batch that is repeated writes the same rows; one that is older than the rows of
a key writes nothing. Reading needs no PySpark.
"""

from slidewise.spark.sinks.postgres_sink import postgres
from slidewise.spark.sinks.redis_sink import redis
from slidewise.spark.sinks.sink import Sink

__all__ = ["Sink", "postgres", "redis"]


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
