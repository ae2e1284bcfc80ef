"""Keys that share a store: rows come in, a watermark moves on, answers go out.

A shard deals its keys into *slots* by their hash; each slot has a [tree](tree.py) of
what was answered or can be asked for, and pages of rows that wait for the watermark. A
slot of many keys whose rows outgrow a page is cut into slots of fewer keys; one of few
keys grows a tree.

What is due and what leaves depends on times and the watermark alone, so that the same
rows give the same answers however they are dealt out.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SnapshotError
from slidewise.keyed import updates
from slidewise.keyed import watermark as watermarks
from slidewise.keyed.corrections import corrected
from slidewise.keyed.page_store import NUMBER, TIME, Child, Node, Pages, Store
from slidewise.keyed.page_tree import PAGE, Cover, Forest, ticks_of
from slidewise.keyed.partitions import DEEPEST, Slot, read_slots
from slidewise.keyed.query import Job, later_than
from slidewise.keyed.snapshots import BROKEN, checked_ints
from slidewise.table.encoding import row_numbers

__all__ = ["Shard", "Slot"]

_FORMAT = 3
_EVER = (-(2**63), 2**63 - 1)
# Slots are cut up so that a key has this many rows in a page that is full: folds pay
# then.
_FEW = 16


class Shard:
    """The state of some keys of a job.

    Args:
        job: What is asked.
        store: Where pages lie.
        directory: What `commit` gave, of the same job; None to begin with.

    Raises:
        SnapshotError: If the directory is of another format.
    """

    def __init__(self, job: Job, store: Store, directory: bytes | None = None) -> None:
        self.job = job
        self._by = list(job.spec.by)
        self.pages = Pages(store, job.leaf, job.inner)
        self._rows = Pages(store, job.waiting, job.waiting)
        self.ends = Pages(store, job.ended, job.ended)
        self.slots = [Slot(0, 0)]
        self.flushed: int | None = None
        # The first row, for windows that end before anything was flushed.
        self.oldest: int | None = None
        next_page = 0
        if directory is not None:
            next_page = self._read_directory(directory)
        self.forest = Forest(self.pages, job, next_page)

    def _read_directory(self, directory: bytes) -> int:
        try:
            state = json.loads(directory)
            if state["format"] != _FORMAT:
                raise SnapshotError(
                    f"the state has format {state['format']}, and this version of "
                    f"slidewise reads {_FORMAT}"
                )
            self.slots = read_slots(state["slots"])
            self.flushed, self.oldest = state["flushed"], state["oldest"]
            for time in (self.flushed, self.oldest):
                checked_ints(0 if time is None else time)
            return checked_ints(state["next"])
        except BROKEN as error:
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(
                f"the directory of a state is damaged: {error}"
            ) from error

    def commit(self) -> bytes:
        """Writes the pages that changed; what it gives must be kept beside them."""
        for pages in self._stores:
            pages.commit()
        state = {
            "format": _FORMAT,
            "next": self.forest.next_page,
            "flushed": self.flushed,
            "oldest": self.oldest,
            "slots": [slot.record() for slot in self.slots],
        }
        return json.dumps(state, separators=(",", ":")).encode()

    @property
    def _stores(self) -> tuple[Pages, ...]:
        return self.pages, self._rows, self.ends

    def check_pages(self) -> None:
        """Refuses a directory whose pages are not there, each in one place.

        Raises:
            SnapshotError: If a page is missing or damaged, or is there twice.
        """
        seen: set[int] = set()

        def check(pages: Iterable[int], store: Pages) -> None:
            for page in pages:
                if page in seen or page >= self.forest.next_page:
                    raise SnapshotError(f"page {page} has no place of its own")
                seen.add(page)
                store[page].check_arrays()

        for slot in self.slots:
            check((page.page for page in slot.waiting), self._rows)
            if slot.ended is not None:
                check([slot.ended], self.ends)
            if slot.tree.root is not None:
                check(self.pages.below(slot.tree.root), self.pages)

    def reopen(self, store: Store) -> None:
        """Goes on with the same pages in a store that was opened anew."""
        for pages in self._stores:
            pages.store = store

    def trim(self, most: int) -> None:
        """Keeps at most so many decoded pages; others are read when needed."""
        for pages in self._stores:
            pages.trim(most)

    def traffic(self) -> dict[str, int]:
        """Pages and bytes read and written since the last call."""
        told = [pages.traffic() for pages in self._stores]
        return {name: sum(one[name] for one in told) for name in told[0]}

    def load(self, rows: pa.Table) -> None:
        """Takes rows in that need no answer, as if they had been answered before."""
        self.insert(self.deal(self._taken_in(rows)))

    def _taken_in(self, rows: pa.Table) -> pa.Table:
        """Rows as they wait for an answer, or none of them.

        Raises:
            SpecError: If one holds what is refused.
        """
        self.job.refuse_nan(rows)
        arranged = self.job.arranged(rows, self.job.ticks(rows))
        self.job.refuse_beyond(arranged)
        return arranged

    @property
    def changed(self) -> set[int]:
        """The pages to be written or removed at the next commit."""
        return set().union(*(pages.changed for pages in self._stores))

    @property
    def due(self) -> int | None:
        """The watermark from which on `advance` has something to answer; or None."""
        if self.job.emit == "final":
            waiting = (slot.oldest_waiting for slot in self.slots)
            return min((time for time in waiting if time is not None), default=None)
        if self.job.emit == "slide":
            return watermarks.due(self)
        return None

    def ingest(self, rows: pa.Table, watermark: int | None) -> pa.Table | None:
        """Takes rows in, none of them late; gives what is to be answered at once."""
        job = self.job
        arranged, deleted = self._settle_deletes(self._taken_in(rows))
        corrections = None
        if job.emit in ("final", "slide"):
            arranged, corrections = self._correct(arranged, watermark)
        dealt = self.deal(arranged)
        if job.emit == "final":
            for slot, part in dealt:
                self._wait(slot, part)
            return corrections
        answers = corrections
        if job.emit == "arrival":
            cover = self.cover((slot, part[TIME]) for slot, part in dealt)
            answers = job.answered(arranged, job.answer_arrival(cover, arranged))
            answers = job.marked(answers)
        if job.emit == "slide" and len(arranged):
            self._see(pc.min(arranged[TIME]).as_py())
        before = None
        if job.emit == "update" and job.corrects:
            before = updates.latest(self, arranged)
        touched = self.insert(dealt)
        if job.emit == "update":
            answers = updates.answer(self, arranged, touched, deleted, watermark)
            if before is not None:
                answers = job.marked(answers, updates.were_given(self, answers, before))
        self._retire(touched, watermark)
        return answers

    def _correct(
        self, rows: pa.Table, watermark: int | None
    ) -> tuple[pa.Table, pa.Table | None]:
        """Takes late rows in and answers them; gives the others, and these answers."""
        if watermark is None or not self.job.corrects:
            return rows, None
        in_time = pc.greater(rows[TIME], watermark)
        late = rows.filter(pc.invert(in_time)).combine_chunks()
        if not len(late):
            return rows, None
        answers = corrected(self, late, watermark)
        if self.job.emit == "slide":
            # All windows that hold rows were given up to here, or are now.
            known = watermark if self.flushed is None else self.flushed
            self.flushed = max(known, watermark)
        self._retire(self.insert(self.deal(late)), watermark)
        return rows.filter(in_time).combine_chunks(), answers

    def _see(self, time: int) -> None:
        """Remembers the first row, which windows may end before."""
        self.oldest = time if self.oldest is None else min(time, self.oldest)

    def _settle_deletes(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Rows that are to be taken in, and those that took others back."""
        if self.job.deletes is None:
            return rows, rows.slice(0, 0)
        marked = pc.fill_null(rows.column(self.job.deletes), False)
        deleted = rows.filter(marked).combine_chunks()
        rows = rows.filter(pc.invert(marked)).combine_chunks()
        open_ones = deleted
        if self.job.then_by and len(deleted):
            rows, open_ones = self._delete_in_batch(rows, deleted)
        left = []
        for slot, part in self.deal(open_ones):
            left.append(self._delete(slot, part))
            if slot.closing is not None:
                # Their sessions may end with the row before them.
                first = max(part[TIME][0].as_py() - self.job.reach, _EVER[0])
                slot.closing = min(slot.closing, first)
        self.forest.settle()
        if left:
            # What came with its own deletion was never there.
            rows = self.job.without_in_batch(rows, pa.concat_tables(left))
        return rows, deleted

    def _delete_in_batch(
        self, rows: pa.Table, deleted: pa.Table
    ) -> tuple[pa.Table, pa.Table]:
        """Takes rows of a batch back that come before those held, by `then_by`.

        Gives the rows that are left, and the deletions that take rows held.
        """
        names = [TIME, *self._by, *self.job.then_by]
        names = [name for name in dict.fromkeys(names) if name in self.job.leaf.names]
        new = self.job.sort_batch(rows.append_column(NUMBER, row_numbers(len(rows))))
        tables: list[pa.Table] = []
        for slot, part in self.deal(deleted):
            tables += self.forest.holding(slot.tree, part)
            tables += [self._rows[page.page].rows for page in slot.waiting]
        both = pa.concat_tables(
            [*(table.select(names) for table in tables), new.select([*names, NUMBER])],
            promote_options="default",
        )
        rest, _ = self.job.without(both.combine_chunks(), deleted)
        kept = pc.drop_null(rest.column(NUMBER).combine_chunks())
        is_kept = pc.is_in(row_numbers(len(rows)), kept)
        gone = rows.filter(pc.invert(is_kept)).combine_chunks()
        open_ones, _ = self.job.without(deleted, gone)
        return rows.filter(is_kept).combine_chunks(), open_ones

    def _delete(self, slot: Slot, deleted: pa.Table) -> pa.Table:
        """Takes rows of a slot back; gives those for which there was none."""
        deleted = self.forest.delete(slot.tree, deleted)
        if self.job.then_by and len(deleted) and len(slot.waiting) > 1:
            # The first goes by other columns than arrival, wherever it waits.
            held = [self._rows[page.page].rows for page in slot.waiting]
            for page in slot.waiting:
                del self._rows[page.page]
            slot.waiting = []
            self._wait(slot, self.job.sort(pa.concat_tables(held)))
        pages, slot.waiting = slot.waiting, []
        for page in pages:
            held = self._rows[page.page].rows
            rest, deleted = self.job.without(held, deleted)
            if len(rest) == len(held):
                slot.waiting.append(page)
                continue
            del self._rows[page.page]
            if len(rest):
                self._keep(slot, page.page, rest)
        return deleted

    def advance(self, watermark: int) -> pa.Table | None:
        """Answers what the watermark has passed."""
        answers: pa.Table | None = None
        touched: Iterable[Slot] = ()
        if self.job.emit == "final":
            answers, touched = self._answer_final(watermark)
        elif self.job.emit == "slide":
            answers, touched = watermarks.answer(self, watermark), self.slots
        known = watermark if self.flushed is None else self.flushed
        self.flushed = max(known, watermark)
        self._retire(touched, watermark)
        return None if answers is None else self.job.marked(answers)

    # Answers.

    def cover(self, asked: Iterable[tuple[Slot, pa.ChunkedArray]]) -> Cover:
        """What answers the windows of rows at these times, slot by slot."""
        cover = Cover()
        for slot, times in asked:
            ends = self.job.ends(times.combine_chunks())
            self.forest.cover(slot.tree, self._reached(ends), cover)
        return cover

    def _reached(self, ends: pa.Array) -> Sequence[int]:
        """The ends of windows; all of time where rows are counted."""
        return _EVER if self.job.rows else ticks_of(ends)

    def _answer_final(self, watermark: int) -> tuple[pa.Table | None, list[Slot]]:
        due = []
        for slot in self.slots:
            oldest = slot.oldest_waiting
            if oldest is not None and oldest <= watermark:
                due.append((slot, self.job.sort(self._take_due(slot, watermark))))
        if not due:
            return None, []
        rows = self.job.sort(pa.concat_tables([part for _, part in due]))
        cover = self.cover((slot, part[TIME]) for slot, part in due)
        answers = self.job.answered(rows, self.job.answer_final(cover, rows))
        return answers, self.insert(due)

    # Rows that wait for the watermark.

    def _wait(self, slot: Slot, rows: pa.Table) -> None:
        """Keeps rows, sorted, until they are due."""
        last = slot.waiting[-1].page if slot.waiting else None
        if last is not None and self._rows[last].rows.nbytes < PAGE // 2:
            rows = pa.concat_tables([self._rows[last].rows, rows]).combine_chunks()
            del self._rows[last]
            slot.waiting.pop()
        most = max(1, len(rows) * PAGE // max(1, rows.nbytes))
        for start in range(0, len(rows), most):
            self._keep(slot, self.forest.new_page(), rows.slice(start, most))

    def _keep(self, slot: Slot, page: int, rows: pa.Table) -> None:
        ends = pc.min_max(rows[TIME])
        slot.waiting.append(Child(page, ends["min"].as_py(), ends["max"].as_py()))
        self._rows[page] = Node(rows)

    def _take_due(self, slot: Slot, watermark: int) -> pa.Table:
        """The rows up to the watermark, in order of arrival; they wait no more."""
        due = []
        pages, slot.waiting = slot.waiting, []
        for page in pages:
            if page.first > watermark:
                slot.waiting.append(page)
                continue
            rows = self._rows[page.page].rows
            if page.last <= watermark:
                due.append(rows)
                del self._rows[page.page]
                continue
            now = pc.less_equal(rows[TIME], watermark)
            due.append(rows.filter(now))
            self._keep(slot, page.page, rows.filter(pc.invert(now)).combine_chunks())
        return pa.concat_tables(due).combine_chunks()

    # Slots.

    def deal(self, rows: pa.Table) -> list[tuple[Slot, pa.Table]]:
        """Rows of one batch by slot; in order, as `Job.sort_batch` says."""
        if not len(rows):
            return []
        rows = self.job.sort_batch(rows)
        deepest = max(slot.depth for slot in self.slots)
        of_prefix = [0] * (1 << deepest)
        for at, slot in enumerate(self.slots):
            for prefix in range(slot.prefix, 1 << deepest, 1 << slot.depth):
                of_prefix[prefix] = at
        prefixes = pc.bit_wise_and(self.job.hashes(rows), (1 << deepest) - 1)
        of_row = pa.array(of_prefix, pa.int64()).take(prefixes)
        return [(self.slots[at], part) for at, part in _parted(rows, of_row)]

    def insert(self, dealt: Iterable[tuple[Slot, pa.Table]]) -> list[Slot]:
        """Inserts rows, sorted; gives the slots that have them."""
        touched = []
        for slot, rows in dealt:
            for part, own in self._make_room(slot, self.job.kept(rows)):
                youngest = own[TIME][-1].as_py()
                known = youngest if part.youngest is None else part.youngest
                part.youngest = max(youngest, known)
                if self.job.sessions:
                    first = own[TIME][0].as_py()
                    known = first if part.closing is None else part.closing
                    part.closing = min(first, known)
                self.forest.insert(part.tree, own)
                touched.append(part)
        self.forest.settle()
        return touched

    def _make_room(self, slot: Slot, rows: pa.Table) -> list[tuple[Slot, pa.Table]]:
        """Rows for a slot; or all its rows, for those that it is cut into."""
        root = None if slot.tree.root is None else self.pages[slot.tree.root]
        held = rows.slice(0, 0) if root is None else root.rows
        size = held.nbytes + rows.nbytes
        if (
            (root is not None and root.level)
            or size <= 2 * PAGE
            or not self.job.spec.by
        ):
            return [(slot, rows)]
        both = pa.concat_tables([held, rows]).combine_chunks()
        hashes = self.job.hashes(both)
        keys = pc.count_distinct(hashes).as_py()
        most = max(1, 2 * PAGE * len(both) // (size * _FEW))
        bits = min(math.ceil(math.log2(keys / most)), DEEPEST - slot.depth)
        if bits <= 0 or keys < 1 << bits:
            return [(slot, rows)]
        if slot.tree.root is not None:
            del self.pages[slot.tree.root]
        parts = self._cut(slot, bits)
        own = pc.bit_wise_and(pc.shift_right(hashes, slot.depth), (1 << bits) - 1)
        return [(parts[at], self.job.sort(part)) for at, part in _parted(both, own)]

    def _cut(self, slot: Slot, bits: int) -> list[Slot]:
        """Slots of fewer keys in the place of one; its trees are left to the caller."""
        parts = [
            Slot(slot.depth + bits, slot.prefix | low << slot.depth)
            for low in range(1 << bits)
        ]
        at = self.slots.index(slot)
        self.slots[at : at + 1] = parts
        for page in slot.waiting:
            rows = self._rows[page.page].rows
            hashes = self.job.hashes(rows)
            own = pc.bit_wise_and(pc.shift_right(hashes, slot.depth), (1 << bits) - 1)
            for low, part in _parted(rows, own):
                self._keep(parts[low], self.forest.new_page(), part)
            del self._rows[page.page]
        if slot.ended is not None:
            ends = self.ends[slot.ended].rows
            hashes = self.job.hashes(ends)
            own = pc.bit_wise_and(pc.shift_right(hashes, slot.depth), (1 << bits) - 1)
            for low, part in _parted(ends, own):
                self.remember(parts[low], part)
            del self.ends[slot.ended]
        return parts

    def remember(self, slot: Slot, ends: pa.Table) -> None:
        """Keeps which window of each key was answered last."""
        if not len(ends):
            if slot.ended is not None:
                del self.ends[slot.ended]
                slot.ended = None
            return
        if slot.ended is None:
            slot.ended = self.forest.new_page()
        self.ends[slot.ended] = Node(ends.combine_chunks())

    def check(self) -> None:
        """Checks the invariants of all slots; for tests."""
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
                low = pc.bit_wise_and(self.job.hashes(table), (1 << slot.depth) - 1)
                astray = pc.any(pc.not_equal(low, slot.prefix)).as_py()
                assert not astray, f"keys in a slot that is not theirs: {slot}"

    # What no window can reach any more.

    def keys(self, watermark: int | None) -> pa.Table:
        """The keys that have rows a window can hold, each with its latest time."""
        by, on = self._by, self.job.spec.on
        tables = [self.job.leaf.empty_table().select([*by, TIME])]
        for slot in self.slots:
            tables += [
                table.select([*by, TIME]) for table in self.forest.latest(slot.tree)
            ]
            tables += [
                self._rows[page.page].rows.select([*by, TIME]) for page in slot.waiting
            ]
        table = pa.concat_tables(tables)
        if watermark is not None and not self.job.rows:
            reached = later_than(table[TIME], watermark - self.job.reach)
            table = table.filter(reached)
        found = self.job.latest(table)
        times = self.job.restore(found.column(TIME).combine_chunks())
        return found.set_column(len(by), on, times)

    def evict_idle(self, until: int) -> int:
        """Forgets keys whose latest row is not younger; gives how many.

        None of their rows may wait for its answer.
        """
        found = self.keys(None)
        ticks = self.job.ticks(found)
        idle = found.filter(pc.less_equal(ticks, until)).combine_chunks()
        watermarks.forget(self, idle, until)
        if not len(idle):
            return 0
        slots = self.deal(idle.append_column(TIME, self.job.ticks(idle)))
        for slot, keys in slots:
            tables = list(self.forest.rows(slot.tree))
            self.forest.clear(slot.tree)
            if tables:
                rows = self._without(pa.concat_tables(tables), keys)
                self.forest.insert(slot.tree, rows)
        self.forest.settle()
        return len(idle)

    def _without(self, rows: pa.Table, keys: pa.Table) -> pa.Table:
        """Rows of other keys than these."""
        codes = self.job.codes([rows.select(self._by), keys.select(self._by)])
        theirs = codes.slice(len(rows))
        gone = pc.is_in(codes.slice(0, len(rows)), theirs)
        return rows.filter(pc.invert(gone)).combine_chunks()

    def _retire(self, touched: Iterable[Slot], watermark: int | None) -> None:
        if watermark is None:
            return
        if self.job.sessions:
            return
        until = watermark - self.job.reach - self.job.allowance
        if self.job.rows:
            for slot in touched:
                self._keep_youngest(slot, until)
            return
        for slot in touched:
            self.forest.evict(slot.tree, until)
        for slot in self.slots:
            if slot.youngest is not None and slot.youngest <= until:
                self.forest.evict(slot.tree, until)
                slot.youngest = None

    def _keep_youngest(self, slot: Slot, until: int) -> None:
        """Of rows that no window of time holds, keeps as many per key as others do."""
        cover = Cover()
        self.forest.cover(slot.tree, _EVER, cover)
        if not cover.rows:
            return
        rows = pa.concat_tables(cover.rows).combine_chunks()
        keep = self.job.youngest(rows, until)
        if len(rows) - len(keep) < max(64, len(rows) // 4):
            return
        self.forest.clear(slot.tree)
        self.forest.insert(slot.tree, keep)
        self.forest.settle()


def _parted(rows: pa.Table, numbers: pa.Array) -> Iterator[tuple[int, pa.Table]]:
    """Rows by number, in their order."""
    order = pc.sort_indices(numbers)
    rows, numbers = rows.take(order).combine_chunks(), numbers.take(order)
    start = 0
    for run in pc.value_counts(numbers).to_pylist():
        yield run["values"], rows.slice(start, run["counts"])
        start += run["counts"]
