"""Keys that share a store: rows come in, a watermark moves on, answers go out.

What is due and what leaves depends on times and the watermark alone, so that the same
rows give the same answers however they are dealt out.
"""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.keyed import page_tree, updates
from slidewise.keyed import watermark as watermarks
from slidewise.keyed.corrections import corrected
from slidewise.keyed.page_store import NUMBER, TIME
from slidewise.keyed.page_tree import Cover
from slidewise.keyed.partitions import Slot
from slidewise.keyed.shard_state import EVER, ShardState
from slidewise.table.encoding import row_numbers

__all__ = ["Shard", "Slot"]


class Shard(ShardState):
    """Takes rows in, and answers what a watermark has passed."""

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
                first = max(part[TIME][0].as_py() - self.job.reach, EVER[0])
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
        if last is not None and self._rows[last].rows.nbytes < page_tree.PAGE // 2:
            rows = pa.concat_tables([self._rows[last].rows, rows]).combine_chunks()
            del self._rows[last]
            slot.waiting.pop()
        most = max(1, len(rows) * page_tree.PAGE // max(1, rows.nbytes))
        for start in range(0, len(rows), most):
            self._keep(slot, self.forest.new_page(), rows.slice(start, most))

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
        self.forest.cover(slot.tree, EVER, cover)
        if not cover.rows:
            return
        rows = pa.concat_tables(cover.rows).combine_chunks()
        keep = self.job.youngest(rows, until)
        if len(rows) - len(keep) < max(64, len(rows) // 4):
            return
        self.forest.clear(slot.tree)
        self.forest.insert(slot.tree, keep)
        self.forest.settle()
