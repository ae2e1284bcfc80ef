"""The state of a shard: pages of rows in slots of keys.

A shard partitions its keys into *slots* by hash. Each slot has a [tree](page_tree.py)
of the rows that windows may hold, and pages of rows that wait for the watermark. A slot
of many keys whose rows need more than a page is split into slots of fewer keys; a slot
of few keys grows a tree.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SnapshotError
from slidewise.keyed import page_tree
from slidewise.keyed.page_store import TIME, Child, Node, Pages, Store
from slidewise.keyed.page_tree import Cover, Forest, ticks_of
from slidewise.keyed.partitions import DEEPEST, Slot, read_slots
from slidewise.keyed.query import later_than
from slidewise.keyed.snapshots import BROKEN, checked_ints
from slidewise.keyed.stream_query import StreamQuery

__all__ = ["EVER", "ShardState"]

_FORMAT = 3
EVER = (-(2**63), 2**63 - 1)
# Slots are split until a key has so many rows in a full page: then folds save work.
_ROWS_PER_KEY_IN_PAGE = 16


class ShardState:
    """The state of some keys of a query.

    Args:
        query: The query.
        store: The store of the pages.
        directory: The directory that `commit` gave for the same query; None for an
            empty state.
        kept: For how long rows are kept behind the watermark at least, in ticks.

    Raises:
        SnapshotError: If the directory is of another format.
    """

    def __init__(
        self,
        query: StreamQuery,
        store: Store,
        directory: bytes | None = None,
        kept: int = 0,
    ) -> None:
        self.query = query
        self.kept = max(kept, query.reach + query.allowance)
        self._by = list(query.spec.by)
        self.pages = Pages(store, query.leaf, query.inner)
        self._rows = Pages(store, query.waiting, query.waiting)
        self.ends = Pages(store, query.ended, query.ended)
        self.slots = [Slot(0, 0)]
        self.flushed: int | None = None
        # The time of the earliest row, where windows begin before the first flush.
        self.earliest: int | None = None
        next_page = 0
        if directory is not None:
            next_page = self._read_directory(directory)
        self.forest = Forest(self.pages, query, next_page)

    def _read_directory(self, directory: bytes) -> int:
        try:
            state = json.loads(directory)
            if state["format"] != _FORMAT:
                raise SnapshotError(
                    f"the state has format {state['format']}, and this version of "
                    f"slidewise reads {_FORMAT}"
                )
            self.slots = read_slots(state["slots"])
            self.flushed, self.earliest = state["flushed"], state["oldest"]
            for time in (self.flushed, self.earliest):
                checked_ints(0 if time is None else time)
            return checked_ints(state["next"])
        except BROKEN as error:
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(
                f"the directory of a state is damaged: {error}"
            ) from error

    def commit(self) -> bytes:
        """Writes the changed pages; gives the directory, to be stored with them."""
        for pages in self._page_sets:
            pages.commit()
        state = {
            "format": _FORMAT,
            "next": self.forest.next_page,
            "flushed": self.flushed,
            "oldest": self.earliest,
            "slots": [slot.record() for slot in self.slots],
        }
        return json.dumps(state, separators=(",", ":")).encode()

    @property
    def _page_sets(self) -> tuple[Pages, ...]:
        return self.pages, self._rows, self.ends

    def check_pages(self) -> None:
        """Checks that all pages of the directory exist, and each is used once.

        Raises:
            SnapshotError: If a page is missing, damaged, or used twice.
        """
        seen: set[int] = set()

        def check(pages: Iterable[int], store: Pages) -> None:
            for page in pages:
                if page in seen or page >= self.forest.next_page:
                    raise SnapshotError(f"page {page} is used twice")
                seen.add(page)
                store[page].check_arrays()

        for slot in self.slots:
            check((page.page for page in slot.waiting), self._rows)
            if slot.ended is not None:
                check([slot.ended], self.ends)
            if slot.tree.root is not None:
                check(self.pages.below(slot.tree.root), self.pages)

    def reopen(self, store: Store) -> None:
        """Replaces the store by one that was reopened with the same pages."""
        for pages in self._page_sets:
            pages.store = store

    def trim(self, most: int) -> None:
        """Keeps at most `most` decoded pages of each set."""
        for pages in self._page_sets:
            pages.trim(most)

    def traffic(self) -> dict[str, int]:
        """Pages and bytes read and written since the last call."""
        counts = [pages.traffic() for pages in self._page_sets]
        return {name: sum(one[name] for one in counts) for name in counts[0]}

    @property
    def changed(self) -> set[int]:
        """The pages that the next commit writes or removes."""
        return set().union(*(pages.changed for pages in self._page_sets))

    def evicted(self, watermark: int | None) -> int | None:
        """The time up to which rows may be evicted; None if all rows are kept."""
        if watermark is None or self.query.sessions:
            return None
        return watermark - self.kept

    def cover(self, points: Iterable[tuple[Slot, pa.ChunkedArray]]) -> Cover:
        """The cover of the windows of rows at these times, by slot."""
        cover = Cover()
        for slot, times in points:
            ends = self.query.ends(times.combine_chunks())
            self.forest.cover(slot.tree, self._reached(ends), cover)
        return cover

    def _reached(self, ends: pa.Array) -> Sequence[int]:
        """The ends of windows; all of time with `rows(n)`."""
        return EVER if self.query.rows else ticks_of(ends)

    def gather(self, slot: Slot, ends: Sequence[int], cover: Cover) -> None:
        """Adds the rows and folds that cover windows with these ends, sorted.

        Those of rows that wait for the watermark, too.
        """
        self.forest.cover(slot.tree, ends, cover)
        cover.rows += self._waiting_rows(slot, ends[0], ends[-1])

    def rows_between(self, slot: Slot, since: int, until: int) -> Iterator[pa.Table]:
        """The rows of a closed range of times; all waiting ones that it reaches."""
        yield from self.forest.between(slot.tree, since, until)
        yield from self._waiting_rows(slot, since, until)

    def _waiting_rows(self, slot: Slot, since: int, until: int) -> Iterator[pa.Table]:
        for page in slot.waiting:
            if page.first <= until and page.last >= since:
                yield self.query.kept(self._rows[page.page].rows)

    def _keep(self, slot: Slot, page: int, rows: pa.Table) -> None:
        ends = pc.min_max(rows[TIME])
        slot.waiting.append(Child(page, ends["min"].as_py(), ends["max"].as_py()))
        self._rows[page] = Node(rows)

    def partition_rows(self, rows: pa.Table) -> list[tuple[Slot, pa.Table]]:
        """Partitions rows of a batch by slot, in the order of `Query.sort_batch`."""
        if not len(rows):
            return []
        rows = self.query.sort_batch(rows)
        deepest = max(slot.depth for slot in self.slots)
        of_prefix = [0] * (1 << deepest)
        for at, slot in enumerate(self.slots):
            for prefix in range(slot.prefix, 1 << deepest, 1 << slot.depth):
                of_prefix[prefix] = at
        prefixes = pc.bit_wise_and(self.query.hashes(rows), (1 << deepest) - 1)
        of_row = pa.array(of_prefix, pa.int64()).take(prefixes)
        return [(self.slots[at], part) for at, part in _parted(rows, of_row)]

    def insert(self, partitioned: Iterable[tuple[Slot, pa.Table]]) -> list[Slot]:
        """Inserts sorted rows; gives the slots that have them."""
        touched = []
        for slot, rows in partitioned:
            for part, own in self._split_if_full(slot, self.query.kept(rows)):
                latest_time = own[TIME][-1].as_py()
                known = latest_time if part.latest_time is None else part.latest_time
                part.latest_time = max(latest_time, known)
                if self.query.sessions:
                    first = own[TIME][0].as_py()
                    known = first if part.closing is None else part.closing
                    part.closing = min(first, known)
                self.forest.insert(part.tree, own)
                touched.append(part)
        self.forest.refold()
        return touched

    def _split_if_full(self, slot: Slot, rows: pa.Table) -> list[tuple[Slot, pa.Table]]:
        """The rows for a slot; if it must be split, all its rows, for the new slots."""
        root = None if slot.tree.root is None else self.pages[slot.tree.root]
        held = rows.slice(0, 0) if root is None else root.rows
        size = held.nbytes + rows.nbytes
        if (
            (root is not None and root.level)
            or size <= 2 * page_tree.PAGE
            or not self.query.spec.by
        ):
            return [(slot, rows)]
        both = pa.concat_tables([held, rows]).combine_chunks()
        hashes = self.query.hashes(both)
        keys = pc.count_distinct(hashes).as_py()
        most = max(1, 2 * page_tree.PAGE * len(both) // (size * _ROWS_PER_KEY_IN_PAGE))
        bits = min(math.ceil(math.log2(keys / most)), DEEPEST - slot.depth)
        if bits <= 0 or keys < 1 << bits:
            return [(slot, rows)]
        if slot.tree.root is not None:
            del self.pages[slot.tree.root]
        parts = self._split(slot, bits)
        own = pc.bit_wise_and(pc.shift_right(hashes, slot.depth), (1 << bits) - 1)
        return [(parts[at], self.query.sort(part)) for at, part in _parted(both, own)]

    def _split(self, slot: Slot, bits: int) -> list[Slot]:
        """Splits a slot into slots of fewer keys, but for its tree."""
        parts = [
            Slot(slot.depth + bits, slot.prefix | low << slot.depth)
            for low in range(1 << bits)
        ]
        at = self.slots.index(slot)
        self.slots[at : at + 1] = parts
        for page in slot.waiting:
            rows = self._rows[page.page].rows
            hashes = self.query.hashes(rows)
            own = pc.bit_wise_and(pc.shift_right(hashes, slot.depth), (1 << bits) - 1)
            for low, part in _parted(rows, own):
                self._keep(parts[low], self.forest.new_page(), part)
            del self._rows[page.page]
        if slot.ended is not None:
            ends = self.ends[slot.ended].rows
            hashes = self.query.hashes(ends)
            own = pc.bit_wise_and(pc.shift_right(hashes, slot.depth), (1 << bits) - 1)
            for low, part in _parted(ends, own):
                self.store_ends(parts[low], part)
            del self.ends[slot.ended]
        return parts

    def store_ends(self, slot: Slot, ends: pa.Table) -> None:
        """Stores the last emitted window of each key."""
        if not len(ends):
            if slot.ended is not None:
                del self.ends[slot.ended]
                slot.ended = None
            return
        if slot.ended is None:
            slot.ended = self.forest.new_page()
        self.ends[slot.ended] = Node(ends.combine_chunks())

    def check(self) -> None:
        """Checks the invariants of all slots."""
        for slot in self.slots:
            self.forest.check(slot.tree)
            for page in slot.waiting:
                rows = self._rows[page.page].rows
                ends = pc.min_max(rows[TIME])
                held = (ends["min"].as_py(), ends["max"].as_py())
                assert held == (page.first, page.last), f"page {page.page}: {held}"
            tables = list(self.forest.rows(slot.tree))
            tables += [self._rows[page.page].rows for page in slot.waiting]
            for table in tables:
                low = pc.bit_wise_and(self.query.hashes(table), (1 << slot.depth) - 1)
                misplaced = pc.any(pc.not_equal(low, slot.prefix)).as_py()
                assert not misplaced, f"keys in the wrong slot: {slot}"

    def keys(
        self, watermark: int | None, slots: Sequence[Slot] | None = None
    ) -> pa.Table:
        """The keys with rows that a window can hold, each with its latest time.

        Args:
            watermark: The watermark, or None.
            slots: Those whose keys are given; by default all.
        """
        by, on = self._by, self.query.spec.on
        tables = [self.query.leaf.empty_table().select([*by, TIME])]
        for slot in self.slots if slots is None else slots:
            tables += [
                table.select([*by, TIME]) for table in self.forest.latest(slot.tree)
            ]
            tables += [
                self._rows[page.page].rows.select([*by, TIME]) for page in slot.waiting
            ]
        table = pa.concat_tables(tables)
        if watermark is not None and not self.query.rows:
            reached = later_than(table[TIME], watermark - self.query.reach)
            table = table.filter(reached)
        found = self.query.latest(table)
        times = self.query.restore(found.column(TIME).combine_chunks())
        return found.set_column(len(by), on, times)

    def holds(self, key: pa.Table, watermark: int | None) -> bool:
        """Whether a key has rows that a window can hold.

        Args:
            key: A row in the columns of keys.
            watermark: The watermark, or None.
        """
        slots = [slot for slot, _ in self.partition_rows(key)]
        found = self.keys(watermark, slots)
        if not self._by:
            return len(found) > 0
        codes = self.query.codes([found.select(self._by), key.select(self._by)])
        return bool(pc.is_in(codes.slice(len(found)), codes.slice(0, len(found)))[0])


def _parted(rows: pa.Table, numbers: pa.Array) -> Iterator[tuple[int, pa.Table]]:
    """Partitions rows by number, in stable order."""
    order = pc.sort_indices(numbers)
    rows, numbers = rows.take(order).combine_chunks(), numbers.take(order)
    start = 0
    for run in pc.value_counts(numbers).to_pylist():
        yield run["values"], rows.slice(start, run["counts"])
        start += run["counts"]
