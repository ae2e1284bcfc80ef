"""The state of a stream in its checkpoint, by Spark's own sources of state."""

import json
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import functions as sf

from slidewise.errors import SpecError
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.query import KeyedQuery
from slidewise.spark.checkpoint_guard import GUARD_BUCKET
from slidewise.spark.operator import HEAD, PAGES

__all__ = ["CheckpointState", "shard_of", "with_kept"]

_OPERATOR = "transformWithState"


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """The state of a stream as of its last committed micro-batch.

    Attributes:
        spark: SparkSession.
        path: The checkpoint.
        batch: The number of the micro-batch.
        guard: The head of the guard's bucket.
        heads: The heads of the other buckets.
    """

    spark: Any
    path: str
    batch: int
    guard: dict[str, Any]
    heads: list[dict[str, Any]]

    @classmethod
    def open(cls, spark: Any, path: str) -> Self:
        """The state in a checkpoint.

        Raises:
            SpecError: If the folder is not a checkpoint of a query of slidewise, or no
                micro-batch with rows was committed.
        """
        batch = _last_batch(spark, path)
        heads = {
            row["bucket"]: json.loads(bytes(row["blob"]))
            for row in _heads(spark, path, batch).collect()
        }
        guard = heads.pop(GUARD_BUCKET, None)
        if guard is None:
            raise SpecError(f"no micro-batch with rows is in the checkpoint {path!r}")
        return cls(spark, path, batch, guard, [*heads.values()])

    @property
    def stored(self) -> Any:
        """The heads and pages of buckets: bucket, page (null for a head) and blob."""
        pages = _variable(self.spark, self.path, self.batch, PAGES).select(
            sf.col("key.bucket").alias("bucket"),
            sf.col("user_map_key.page").alias("page"),
            sf.col("user_map_value.value").alias("blob"),
        )
        heads = _heads(self.spark, self.path, self.batch)
        return heads.where(sf.col("bucket") != GUARD_BUCKET).unionByName(pages)


def _variable(spark: Any, path: str, batch: int, name: str) -> Any:
    """The DataFrame of a state variable as of a micro-batch."""
    source = spark.read.format("statestore").option("stateVarName", name)
    return source.option("batchId", batch).load(path)


def _heads(spark: Any, path: str, batch: int) -> Any:
    """The heads of all buckets, the guard's too: bucket, page (null) and blob."""
    return _variable(spark, path, batch, HEAD).select(
        sf.col("key.bucket").alias("bucket"),
        sf.lit(None).cast("long").alias("page"),
        sf.col("value.value").alias("blob"),
    )


def shard_of(stored: pa.Table) -> tuple[MemoryStore, dict[str, Any]]:
    """The pages and the head of a bucket, of its rows in `CheckpointState.stored`."""
    store, head = MemoryStore(), b""
    for row in stored.select(["page", "blob"]).to_pylist():
        if row["page"] is None:
            head = row["blob"]
        else:
            store.put(row["page"], row["blob"])
    return store, json.loads(head)


def with_kept(query: KeyedQuery, head: dict[str, Any]) -> KeyedQuery:
    """The query of a checkpoint, with the columns that the pages of a bucket have."""
    kept = head.get("kept")
    return query if kept is None else replace(query, kept=tuple(kept))


def _last_batch(spark: Any, checkpoint: str) -> int:
    """The number of the last committed micro-batch.

    Raises:
        SpecError: If the folder is not a checkpoint of a query of slidewise.
    """
    operators = spark.read.format("state-metadata").load(checkpoint).collect()
    for operator in operators:
        if operator["operatorName"].startswith(_OPERATOR):
            properties = json.loads(operator["operatorProperties"] or "{}")
            variables = properties.get("stateVariables", ())
            if {HEAD, PAGES} <= {variable["stateName"] for variable in variables}:
                return int(operator["maxBatchId"])
    if not operators:
        raise SpecError(
            f"{checkpoint!r} is not a checkpoint with state: give the "
            "checkpointLocation of a stream of slidewise"
        )
    found = ", ".join(sorted({operator["operatorName"] for operator in operators}))
    raise SpecError(
        f"{checkpoint!r} is the checkpoint of a query without windows of slidewise "
        f"({found}): give that of a stream of slidewise"
    )
