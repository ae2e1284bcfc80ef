"""`emit="none"`: rows are kept for queries, and nothing is emitted."""

import pyarrow as pa

from slidewise.keyed.columns import Ends
from slidewise.keyed.emit.emitter import Emitter
from slidewise.keyed.shard import Shard

__all__ = ["Nothing"]


class Nothing(Emitter):
    """Keeps rows, and emits nothing."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    def ingest(
        self,
        rows: pa.Table,
        watermark: int | None,  # noqa: ARG002
        ends: Ends | None,
    ) -> None:
        """Inserts rows."""
        count, shard = len(rows), self._shard
        rows, _ = shard.apply_deletes(rows)
        whole = ends if len(rows) == count else None
        shard.append(shard.query.sort_batch(rows), pending=False, ends=whole)

    def advance(self, watermark: int) -> None:
        """Removes the windows that rows have closed, which queries do not see."""
        shard = self._shard
        if shard.query.row_closed_window:
            due = shard.pending.take_due(watermark)
            if shard.query.flag_column:
                shard.close(shard.index, due)
