"""`View`: what queries know of a stream, while another thread changes it.

Each change publishes another view by one assignment, so the parts of a view always
belong together. The entries are no part of it: rows enter and leave in the native
store, which has locks of its own. A view with a later bound is published before the
store evicts rows up to this bound. So answers are those of whole windows if, after they
are computed, the published view has no later bound than their time allows.
"""

from typing import Any, NamedTuple, Self

from slidewise.errors import SpecError
from slidewise.keyed.columns import EARLIEST
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.points import LATEST
from slidewise.keyed.processor import Processor
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.reader import FoldReader
from slidewise.keyed.single_times import tick_of

__all__ = ["View", "is_latest"]


class View(NamedTuple):
    """The position of a stream, and how far back it can be queried.

    Attributes:
        query: The query.
        retention: How long rows are kept behind the watermark, in ticks.
        evicted: The time up to which rows may be evicted; None if none are.
        reader: Answers from the entries; None if results cannot be folded.
        largest: The latest time seen, in ticks; None without rows.
        watermark: The watermark, in ticks; None before the first.
        latest: The later one of these two.
        seen: The latest time seen, in seconds since 1970; None for integer times and
            durations, too.
        whole_from: The earliest time at which no row of the windows of the Spec was
            evicted, and no cell was folded that one has in part.
        folding: The last tick of the cells that may be folded; None if none are.
    """

    query: KeyedQuery
    retention: int
    evicted: int | None
    reader: FoldReader | None
    largest: int | None
    watermark: int | None
    latest: int | None
    seen: float | None
    whole_from: int
    folding: int | None

    @classmethod
    def of(
        cls, processor: Processor, largest: int | None, watermark: int | None
    ) -> Self:
        """The view of a state at a position."""
        query, shard = processor.query, processor.shard
        reader, evicted = processor.answer.reader(), shard.evicted(watermark)
        latest, whole_from = largest, EARLIEST
        if latest is None or (watermark is not None and watermark > latest):
            latest = watermark
        if evicted is not None and reader is not None:
            whole_from = evicted + reader.longest
        folding: int | None = None
        if query.cells is not None and watermark is not None:
            folding = query.cells.until(watermark)
            whole_from = max(whole_from, watermark)
        if query.flag_column:  # rows leave with the windows that were emitted
            evicted = watermark
        position = (largest, watermark, latest, _seconds(largest, query))
        kept = shard.retention
        return cls(query, kept, evicted, reader, *position, whole_from, folding)

    @property
    def horizon(self) -> Horizon:
        """How far back rows are kept."""
        return Horizon(self.query, self.retention, self.evicted, self.folding)

    @property
    def metrics(self) -> dict[str, float]:
        """The latest time and the watermark in seconds since 1970, where known."""
        watermark = _seconds(self.watermark, self.query)
        found = {"latest": self.seen, "watermark": watermark}
        return {name: time for name, time in found.items() if time is not None}

    def tick(self, at: Any) -> int:
        """A time of a query, in ticks."""
        if at is LATEST or is_latest(at):
            if self.latest is None:
                raise SpecError("there are no rows yet, and no latest time: give at=")
            return self.latest
        return tick_of(at, self.query.times)


def _seconds(tick: int | None, query: KeyedQuery) -> float | None:
    """A time in seconds since 1970; None for integer times and durations."""
    unit = query.clock_unit
    return None if tick is None or unit is None else tick * unit / 1e9


def is_latest(at: object) -> bool:
    """Whether `at=` asks for the latest time of the stream."""
    return at is None or (isinstance(at, str) and at == LATEST)
