"""The last result of each key in Redis.

Each key has a hash with two fields: `batch`, the micro-batch, and `row`, its columns as
JSON. A script in the server writes both, unless the hash has a later micro-batch. The
hash `<prefix>query` has the checkpoint, its last micro-batch and the columns.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.spark.sinks.json_values import decoder, dumps, encoder
from slidewise.spark.sinks.sink import (
    COPIED,
    Layout,
    Sink,
    check_url,
    failures,
    gap,
    other_query,
    query_of,
    unsigned_zero,
)

__all__ = ["RedisSink", "redis"]

# Sets the fields of a hash, unless its micro-batch is later.
_PUT = """
local held = redis.call('HGET', KEYS[1], 'batch')
if held and tonumber(held) > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'batch', unpack(ARGV))
return 1
"""
# The rows of a message to the server.
_ROWS = 1_000


def redis(
    url: str, prefix: str, *, by: str | Sequence[str] | None = None
) -> "RedisSink":
    """Returns a sink for `foreachBatch` that keeps the last result of each key.

    A key is stored as `<prefix>["Broadway"]`, its values as a list in JSON. It is a
    hash with the fields `row`, all columns in JSON, and `batch`, the micro-batch.
    The hash `<prefix>query` holds the last whole micro-batch and the checkpoint.

    Each key changes as a whole, but not all keys of a micro-batch at once. A repeated
    micro-batch changes nothing, and an older one no key that a later one has written.

    Args:
        url: `"redis://host:6379/0"`, `"rediss://..."` or `"unix://..."`. One server or
            a primary, not Redis Cluster.
        prefix: The start of the names of all keys, such as `"features:"`.
        by: The key columns; by default those of `rolling`, and of `hopping` with the
            bounds of windows.

    Raises:
        SpecError: If an argument is wrong.
        SlidewiseError: If the server cannot be reached.
        ImportError: If redis is not installed: `pip install 'slidewise[redis]'`.

    Cost: a command per result of a micro-batch, sent by its tasks 1,000 at a time.

    Example:
        >>> from slidewise.spark import sinks
        >>> sink = sinks.redis("redis://localhost", "features:")  # doctest: +SKIP
        >>> features.writeStream.foreachBatch(sink).option(
        ...     "checkpointLocation", "checkpoints/features").start()  # doctest: +SKIP
        >>> sink.get("Broadway")["n_1h"]  # doctest: +SKIP
        12
    """
    return RedisSink(url, prefix, by=by)


class RedisSink(Sink):
    """What `redis` returns: a function for `foreachBatch`, and a reader by `get`."""

    def __init__(
        self, url: object, prefix: object, *, by: str | Sequence[str] | None = None
    ) -> None:
        super().__init__(by)
        self._url = check_url(url, "redis", ("redis", "rediss", "unix"))
        if not isinstance(prefix, str) or not prefix:
            raise SpecError(
                f"prefix= is the start of the names of keys, such as 'features:', got "
                f"{prefix!r}"
            )
        self._prefix, self._client = prefix, None
        with self._connected() as client:
            client.ping()

    def __repr__(self) -> str:
        """The call, without the URL, which may hold a password."""
        return f"sinks.redis(..., {self._prefix!r})"

    def __getstate__(self) -> dict[str, Any]:
        """All but the connections, for Spark Connect."""
        return {**vars(self), "_client": None}

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """The client, which threads share."""
        with failures(repr(self), _module().RedisError):
            if self._client is None:
                self._client = _module().Redis.from_url(self._url)
            yield self._client

    @property
    def _query(self) -> str:
        """The hash of the query."""
        return f"{self._prefix}query"

    def _layout(self, results: Any) -> Layout:
        return Layout.of(results, self._by, "redis(url, prefix, by='station')")

    def _prepare(self, layout: Layout) -> None:
        with self._connected() as client:
            client.hsetnx(self._query, "layout", layout.to_text())

    def _write(self, layout: Layout, results: Any, batch: int) -> None:
        task = _Put(repr(self), self._url, self._prefix, layout, batch)
        copied = results.mapInArrow(task, COPIED).collect()
        with self._connected() as client:
            check_query(client, self._query, query_of(copied), batch)
            client.eval(_PUT, 1, self._query, batch)

    def _read_layout(self) -> Layout:
        with self._connected() as client:
            found = client.hget(self._query, "layout")
        if found is None:
            raise SpecError(f"there are no results under {self._prefix!r} yet")
        return Layout.from_text(found)

    def _read(self, layout: Layout, key: list[Any]) -> dict[str, Any] | None:
        name = self._prefix + layout.key_text(key)
        with self._connected() as client:
            found = client.hget(name, "row")
        if found is None:
            return None
        row: Mapping[str, Any] = json.loads(found)
        if row.keys() != {*layout.schema.names}:
            # The query has other columns since.
            layout = self._known = self._read_layout()
        return {
            field.name: decoder(field.type)(row[field.name])
            for field in layout.schema
            if field.name in row
        }


@dataclass(frozen=True)
class _Put:
    """A function for `mapInArrow`: writes the rows of a task."""

    sink: str
    url: str
    prefix: str
    layout: Layout
    batch: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes all batches in order; returns the number of rows."""
        from slidewise.spark.sinks.tasks import copied
        from slidewise.spark.worker_errors import one_line_errors

        with one_line_errors():
            yield copied(self._put(batches))

    def _put(self, batches: Iterator[pa.RecordBatch]) -> int:
        from slidewise.spark.sinks.tasks import query_id

        client, script, rows = None, "", 0
        with failures(self.sink, _module().RedisError):
            for batch in batches:
                if not len(batch):
                    continue
                if client is None:
                    client = _module().Redis.from_url(self.url)
                    name = f"{self.prefix}query"
                    check_query(client, name, query_id(), self.batch)
                    client.hset(name, "layout", self.layout.to_text())
                    script = client.script_load(_PUT)
                table = self.layout.rows(batch)
                for start in range(0, len(table), _ROWS):
                    pipe = client.pipeline(transaction=False)
                    for key, row in self._rows(table.slice(start, _ROWS)):
                        pipe.evalsha(script, 1, key, self.batch, "row", row)
                    pipe.execute()
                rows += len(table)
        return rows

    def _rows(self, table: pa.Table) -> Iterator[tuple[str, str]]:
        """The names and JSON of rows."""
        convert = {field.name: encoder(field.type) for field in table.schema}
        for row in table.to_pylist():
            key = [unsigned_zero(row[name]) for name in self.layout.keys]
            held = {name: convert[name](value) for name, value in row.items()}
            yield self.prefix + self.layout.key_text(key), dumps(held)


def check_query(client: Any, name: str, query: str | None, batch: int) -> None:
    """Claims a prefix for a query, and checks that it has its last micro-batch.

    Raises:
        SpecError: If it belongs to another query, or has lost micro-batches.
    """
    if query is None:
        return
    is_new = client.hsetnx(name, "query", query)
    owner, last = client.hmget(name, "query", "batch")
    if owner.decode() != query:
        prefix = name.removesuffix("query")
        raise other_query(f"prefix {prefix!r}", f"deleting the keys '{prefix}*'")
    if not is_new and last is not None and int(last) < batch - 1:
        raise gap(int(last), batch, f"HSET {name} batch {batch - 1}")


def _module() -> Any:
    try:
        import redis
    except ImportError as error:
        raise ImportError(
            f"sinks.redis needs redis ({error}): pip install 'slidewise[redis]'"
        ) from error
    return redis
