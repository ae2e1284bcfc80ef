"""Reads the rows that the state of a stream holds, from its checkpoint.

Spark's own sources of state give heads and pages
([checkpoint_state.py](checkpoint_state.py)). A task reads those of a bucket as the
operator does, and returns the rows of its log, and the entries of folded cells.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from slidewise.frames.base import empty_table
from slidewise.keyed.columns import TIME, later_than
from slidewise.keyed.page_store import Pages
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.row_log import RowLog
from slidewise.keyed.snapshots import query_of
from slidewise.spark.checkpoint_state import CheckpointState, shard_of, with_kept
from slidewise.spark.versions import check_streams
from slidewise.spark.worker_errors import one_line_errors

__all__ = ["Reader", "read_state"]

_PENDING, _FOLDED = "_pending", "_folded"


def read_state(spark: Any, checkpoint: str) -> Any:
    """Reads the rows that a stream holds in its state, from its checkpoint.

    These are the rows that its windows may still hold, as of the last micro-batch that
    was committed. Rows that have left them are absent once the state dropped them; with
    `rows(n)` and windows that rows close, only after their pages were rewritten. The
    rows of a cell that was folded (`trailing`) are one row, at the latest of their
    times, or some where these take less.

    Args:
        spark: SparkSession.
        checkpoint: str, the `checkpointLocation` of the query, which may be running.

    Returns:
        A DataFrame: the key columns, the column of times, and the other columns of the
        state. `_pending` is true for rows that wait for the watermark, with
        `emit="final"`: these have all columns of the stream. Columns that no window
        needs are null once the row was emitted. With cells there is `_folded`, true for
        rows that stand for a folded cell: they have keys and a time alone.

    Raises:
        SpecError: If the folder is not a checkpoint, or that of another query.
        SnapshotError: If an aggregation of the query cannot be imported by its path.

    Cost:
        A job that reads the whole state, and holds a bucket of it per task.

    Example:
        >>> from slidewise.spark import read_state
        >>> held = read_state(spark, "checkpoints/features")  # doctest: +SKIP
        >>> held.groupBy("station").count().show()  # doctest: +SKIP
    """
    check_streams()
    state = CheckpointState.open(spark, checkpoint)
    reader = Reader(query_of(state.guard["query"]))
    schema = from_arrow_schema(reader.schema)

    def rows(bucket: pa.Table) -> pa.Table:  # Spark counts the `self` of a method
        return reader.rows(bucket)

    return state.stored.groupBy("bucket").applyInArrow(rows, schema)


class Reader:
    """A function for `applyInArrow`: the rows of a bucket.

    Attributes:
        schema: The columns of the rows.
    """

    def __init__(self, query: KeyedQuery) -> None:
        self._query, self._kept = query, query.stored_columns
        by, on = query.spec.by, query.spec.on
        waits = query.emit == "final"
        kept = query.schema.names if waits else query.stored_columns
        names = dict.fromkeys([*by, on, *kept])
        fields = [
            query.schema.field(name).with_type(
                query.times.original.type if name == on else query.stored_type(name)
            )
            for name in names
        ]
        flags = [_PENDING] if query.cells is None else [_PENDING, _FOLDED]
        self._fields = fields
        self.schema = pa.schema(
            [*fields, *(pa.field(name, pa.bool_()) for name in flags)]
        )

    def rows(self, stored: pa.Table) -> pa.Table:
        """The rows of a bucket, from its head and pages."""
        with one_line_errors():
            store, head = shard_of(stored)
            query, shard = with_kept(self._query, head), head["shard"]
            log = RowLog(query, Pages(store), shard["log"])
            fired = shard["flushed"]
            tables = [self._listed(*part, fired) for part in log.alive()]
            cells = log.cells.entries(log.until)
            tables += [self._listed(part, False, fired, folded=True) for part in cells]
            return pa.concat_tables([empty_table(self.schema), *tables])

    def _listed(
        self, rows: pa.Table, pending: bool, fired: int | None, *, folded: bool = False
    ) -> pa.Table:
        """The rows of a segment, or entries of cells, in the columns of the result."""
        rows, count = self._query.timed(rows), len(rows)
        if pending and fired is not None:
            waits = later_than(rows[TIME], fired)
        else:
            waits = pa.repeat(pending, count)
        known, kept = {*rows.column_names}, {self._query.spec.on, *self._kept}
        columns = []
        for field in self._fields:
            column = rows[field.name] if field.name in known else None
            if column is None:
                column = pa.nulls(count, field.type)
            elif field.name not in kept:  # its segment has other rows that wait
                column = pc.if_else(waits, column, pa.scalar(None, field.type))
            columns.append(column)
        flags = [waits, pa.repeat(folded, count)]
        columns += flags[: len(self.schema) - len(columns)]
        return pa.table(columns, schema=self.schema)
