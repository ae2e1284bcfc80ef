"""`Processor`: ingests rows of some keys, and emits results as the watermark advances.

Results and evictions depend on times and the watermark alone, so the same rows give the
same results however the keys are partitioned into processors.
"""

import json
from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SnapshotError
from slidewise.keyed.answer import answering
from slidewise.keyed.columns import NUMBER, Ends
from slidewise.keyed.emit import emitter_of
from slidewise.keyed.formats import BROKEN, STATE_FORMAT, checked_ints
from slidewise.keyed.page_store import Pages, Store
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.shard import Directory, Shard

__all__ = ["Processor", "decode_directory", "encode_directory"]


class Processor:
    """The state of some keys of a stream, and what it emits.

    `KeyedWindows` drives one, Spark's operator one per bucket.

    Args:
        query: The query.
        store: The store of the pages.
        directory: The directory that `commit` gave for the same query; None for an
            empty state.
        retention: The least time for which rows are kept behind the watermark, in
            ticks.
        trusts: Whether the pages are known to be valid.
        ordered: Whether results are sorted by time even where that costs a sort.

    Attributes:
        retention: As given.
        pages: The pages of the state.
        shard: The rows.
        answer: What answers from them.

    Raises:
        SnapshotError: If the directory is damaged, or of another format.
    """

    def __init__(
        self,
        query: KeyedQuery,
        store: Store,
        directory: Directory | None = None,
        retention: int = 0,
        *,
        trusts: bool = True,
        ordered: bool = True,
    ) -> None:
        self.query, self.pages = query, Pages(store, trusts=trusts)
        self.retention = retention
        self.shard = Shard(query, self.pages, retention, ordered=ordered)
        self.answer = answering(self.shard)
        self._emitter = emitter_of(self.shard, self.answer)
        self._read(directory)
        if not trusts:
            self.check_pages()
        self.pages.trusts = True
        self.shard.open()

    def _read(self, directory: Directory | None) -> None:
        """Reads the position of the stream, and where its rows are."""
        try:
            if directory is not None:
                found = directory["format"]
                if found != STATE_FORMAT:
                    raise SnapshotError(
                        f"the state has format {found}, and this version of slidewise "
                        f"reads {STATE_FORMAT}"
                    )
                self.pages.next_page = checked_ints(directory["page"])
                self._emitter.read(directory)
            self.shard.read(directory)
        except BROKEN as error:
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(
                f"the directory of a state is damaged: {error}"
            ) from error

    @property
    def changed_keys(self) -> int:
        """The number of keys with new or removed rows, summed over batches."""
        return self.shard.changed_keys

    def commit(self) -> Directory:
        """Writes the changed pages; gives the directory, to be stored with them."""
        self.pages.commit()
        head = {"format": STATE_FORMAT, "page": self.pages.next_page}
        return {**head, **self._emitter.record(), **self.shard.record()}

    def follow(self, directory: Directory, changed: Collection[int] = ()) -> None:
        """Applies the commits of another process that followed this state.

        Args:
            directory: The directory of a later commit to the same state.
            changed: The pages to check, because they are not known to be valid.

        Raises:
            SnapshotError: If a page is missing or damaged.
        """
        log = self.shard.log
        deleted = log.deletions.rows[NUMBER].combine_chunks()
        self._read(directory)
        # Keep no rows in memory of pages that the other process dropped.
        self.pages.keep(self.page_numbers)
        self.check_pages(changed)
        self.shard.follow(log, deleted)

    @property
    def page_numbers(self) -> Iterator[int]:
        """The pages of the state."""
        yield from self.shard.log.page_numbers
        yield from self._emitter.page_numbers

    def check_pages(self, pages: Collection[int] | None = None) -> None:
        """Checks that each page of the directory is used once, and what pages hold.

        Args:
            pages: Those that are read; by default all.

        Raises:
            SnapshotError: If a page is missing, damaged, used twice, or beyond the
                last one.
        """
        seen: set[int] = set()
        for page in self.page_numbers:
            if not 0 <= page < self.pages.next_page:
                raise SnapshotError(
                    f"page {page} is beyond the last one, {self.pages.next_page - 1}"
                )
            if page in seen:
                raise SnapshotError(f"page {page} is used twice")
            seen.add(page)
        self.shard.log.check(pages)
        self._emitter.check(pages)

    def load(self, rows: pa.Table) -> None:
        """Inserts a batch of rows whose results were emitted before.

        Its deletions apply to its own rows and to those that are held.
        """
        query, shard = self.query, self.shard
        rows = self.counting(query.arrived(rows)[0], None)
        query.refuse_values(rows)
        rows, _ = shard.apply_deletes(rows)
        shard.append(query.sort_batch(rows), pending=False)
        shard.apply()

    def begin(self, history: int) -> None:
        """Records the latest time of the rows before the stream, in all shards.

        Windows that a watermark at this time closes count as emitted. The time is the
        same in all shards, also in those without such rows, so results do not depend on
        which keys share a shard.
        """
        self.shard.history = history

    def counting(self, rows: pa.Table, watermark: int | None) -> pa.Table:
        """The accepted rows of a batch without duplicates, by `unique_by=`.

        Args:
            rows: The rows of a batch that has `arrived`.
            watermark: The watermark, or None.
        """
        ids = self.shard.ids
        return rows if ids is None else ids.counting(rows, watermark)

    def resume(self, earliest: int | None, last: pa.Table) -> None:
        """Begins with what the emitters of other shards know besides the rows.

        Args:
            earliest: The time of the earliest row.
            last: The last emitted windows of keys.
        """
        self._emitter.resume(earliest, last)

    @property
    def due(self) -> int | None:
        """The least watermark at which `advance` emits results, or None."""
        return self._emitter.due

    def ingest(
        self, rows: pa.Table, watermark: int | None, ends: Ends | None = None
    ) -> pa.Table | None:
        """Ingests rows; gives the results to emit at once.

        Args:
            rows: The accepted rows of a batch that has `arrived`, without duplicates.
            watermark: The watermark, or None.
            ends: Their earliest and latest times, if these are known.
        """
        self.query.refuse_values(rows)
        results = self._emitter.ingest(rows, watermark, ends)
        self.shard.apply()
        self.evict(watermark)
        return results

    def advance(self, watermark: int) -> pa.Table | None:
        """Advances the watermark; gives the results that are due. `evict` follows."""
        results = self._emitter.advance(watermark)
        self.shard.fire(watermark)
        self.shard.release()
        return None if results is None else self.query.marked(results)

    def evict(self, watermark: int | None) -> None:
        """From time to time, evicts the rows that no window can hold, and folds cells.

        The caller has published the watermark, with its bound, to readers.
        """
        if self.shard.ids is not None:
            self.shard.ids.forget(watermark)
        until = self.shard.expiring(watermark)
        if until is not None:
            self._emitter.expire(until)
            self.shard.evict(until)
        self.shard.fold(watermark)

    def evict_idle(self, until: int) -> int:
        """Evicts the keys whose latest row is at or before a time; gives their number.

        None of their rows may wait for the watermark. Keys without rows in the horizon,
        of which the index may still have entries, do not count.
        """
        query, shard = self.query, self.shard
        known = pc.less_equal(query.ticks(shard.keys(shard.fired)), until)
        found = shard.keys(None)
        idle = found.filter(pc.less_equal(query.ticks(found), until)).combine_chunks()
        shard.evict_idle(idle, until)
        self._emitter.drop_idle(idle, until)
        return int(known.true_count)


def encode_directory(directory: Directory | None) -> bytes:
    """A directory as bytes; no bytes for an empty state."""
    if directory is None:
        return b""
    return json.dumps(directory, separators=(",", ":")).encode()


def decode_directory(blob: bytes) -> Directory | None:
    """Decodes the bytes of `encode_directory`.

    Raises:
        SnapshotError: If the bytes are damaged.
    """
    if not blob:
        return None
    try:
        directory = json.loads(blob)
    except ValueError as error:
        raise SnapshotError(f"the directory of a state is damaged: {error}") from error
    if not isinstance(directory, dict):
        raise SnapshotError("the directory of a state is damaged: it is not a mapping")
    return directory
