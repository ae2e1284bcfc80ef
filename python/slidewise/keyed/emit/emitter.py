"""`Emitter`: decides which results of a stream are emitted, and when."""

from collections.abc import Collection, Iterator

import pyarrow as pa

from slidewise.keyed.columns import Ends
from slidewise.keyed.shard import Directory

__all__ = ["Emitter"]


class Emitter:
    """Emits results for rows that arrive, and as the watermark advances.

    Its state is what it must know beside the rows. Only `PerWindow` has one, so the
    methods for it do nothing by default.
    """

    @property
    def due(self) -> int | None:
        """The least watermark at which `advance` emits results, or None."""
        return None

    def ingest(
        self, rows: pa.Table, watermark: int | None, ends: Ends | None
    ) -> pa.Table | None:
        """Gives rows to the shard, and the results to emit at once."""
        raise NotImplementedError

    def advance(self, watermark: int) -> pa.Table | None:  # noqa: ARG002
        """The results that are due at a watermark."""
        return None

    def read(self, directory: Directory) -> None:
        """Reads the state from a directory."""

    def record(self) -> Directory:
        """The state, for JSON."""
        return {"earliest": None, "last": []}

    def resume(self, earliest: int | None, last: pa.Table) -> None:
        """Begins with the state of other emitters of the same stream.

        Args:
            earliest: The time of the earliest row.
            last: The last emitted windows of keys.
        """

    @property
    def page_numbers(self) -> Iterator[int]:
        """The pages of the state."""
        return iter(())

    def check(self, pages: Collection[int] | None) -> None:
        """Checks the pages, or some of them, against the directory."""

    def expire(self, until: int) -> None:
        """Notes that rows up to a time are about to be evicted."""

    def drop_idle(self, idle: pa.Table, until: int) -> None:
        """Forgets keys that were evicted as idle."""
