"""What the sinks do in a task of Spark."""

import pyarrow as pa
from pyspark import TaskContext

__all__ = ["copied", "query_id"]


def query_id() -> str | None:
    """The id of the streaming query of this task; None outside of one."""
    context = TaskContext.get()
    found = context.getLocalProperty("sql.streaming.queryId") if context else None
    return None if found is None else str(found)


def copied(rows: int) -> pa.RecordBatch:
    """What a task returns after its rows."""
    columns = [pa.array([query_id()], pa.string()), pa.array([rows], pa.int64())]
    return pa.record_batch(columns, names=["query", "rows"])
