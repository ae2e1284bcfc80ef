"""The results per row: when it arrives, or when the watermark passes it."""

import pyarrow as pa

from slidewise.keyed.answer import FromEntries, FromRows, answering
from slidewise.keyed.columns import Ends
from slidewise.keyed.emit.corrections import correct
from slidewise.keyed.emit.emitter import Emitter
from slidewise.keyed.shard import Shard

__all__ = ["AsFinal", "OnArrival"]


class OnArrival(Emitter):
    """Emits a result per row when it arrives, over the rows that have arrived."""

    def __init__(self, shard: Shard, answer: FromEntries | FromRows) -> None:
        self._shard, self._answer = shard, answer

    def ingest(
        self,
        rows: pa.Table,
        watermark: int | None,  # noqa: ARG002
        ends: Ends | None,  # noqa: ARG002
    ) -> pa.Table | None:
        """Inserts rows; gives a result for each, in their order."""
        query = self._shard.query
        rows, _ = self._shard.apply_deletes(rows)
        return query.marked(query.answered(rows, self._answer.arrive(rows)))


class AsFinal(Emitter):
    """Emits a result per row when the watermark passes it."""

    def __init__(self, shard: Shard) -> None:
        self._shard, self._answer = shard, answering(shard, among_peers=True)

    @property
    def due(self) -> int | None:
        """The time of the earliest pending row."""
        return self._shard.pending.earliest

    def ingest(
        self, rows: pa.Table, watermark: int | None, ends: Ends | None
    ) -> pa.Table | None:
        """Inserts rows; gives the results that late ones correct."""
        count, shard = len(rows), self._shard
        rows, _ = shard.apply_deletes(rows)
        rows, corrections = correct(shard, rows, watermark)
        whole = ends if len(rows) == count else None
        shard.append(shard.query.sort_batch(rows), pending=True, ends=whole)
        return corrections

    def advance(self, watermark: int) -> pa.Table | None:
        """A result per pending row up to the watermark."""
        shard = self._shard
        ordered = shard.ordered or self._answer.needs_order
        rows = shard.pending.take_due(watermark, ordered=ordered)
        if rows is None:
            return None
        if shard.query.then_by:
            rows = shard.query.sort(rows)
        return self._answer.due(rows)
