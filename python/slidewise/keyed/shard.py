"""`Shard`: ingests rows of some keys, and emits results as the watermark advances.

Results and evictions depend on times and the watermark alone, so the same rows give the
same results however the keys are partitioned into shards.
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
    """The state of some keys, with the steps of a stream: ingest, advance, evict."""

    def load(self, rows: pa.Table) -> None:
        """Inserts rows whose results were emitted before."""
        self.insert(self.partition_rows(self._arrange(rows)))

    def _arrange(self, rows: pa.Table) -> pa.Table:
        """Checks rows, and gives them in the columns of waiting rows.

        Raises:
            SpecError: If a value or a window of one is not allowed.
        """
        self.query.refuse_nan(rows)
        arranged = self.query.arranged(rows, self.query.ticks(rows))
        self.query.refuse_beyond(arranged)
        return arranged

    @property
    def due(self) -> int | None:
        """The least watermark at which `advance` emits results, or None."""
        if self.query.emit == "final":
            waiting = (slot.earliest_waiting for slot in self.slots)
            return min((time for time in waiting if time is not None), default=None)
        if self.query.emit == "slide":
            return watermarks.due(self)
        return None

    def ingest(self, rows: pa.Table, watermark: int | None) -> pa.Table | None:
        """Ingests accepted rows; gives the results to emit at once."""
        query = self.query
        arranged, deleted = self._apply_deletes(self._arrange(rows))
        corrections = None
        if query.emit in ("final", "slide"):
            arranged, corrections = self._correct(arranged, watermark)
        partitioned = self.partition_rows(arranged)
        if query.emit == "final":
            for slot, part in partitioned:
                self._wait(slot, part)
            return corrections
        answers = corrections
        if query.emit == "arrival":
            cover = self.cover((slot, part[TIME]) for slot, part in partitioned)
            answers = query.answered(arranged, query.answer_arrival(cover, arranged))
            answers = query.marked(answers)
        if query.emit == "slide" and len(arranged):
            self._note_earliest(pc.min(arranged[TIME]).as_py())
        before = None
        if query.emit == "update" and query.corrects:
            before = updates.latest(self, arranged)
        touched = self.insert(partitioned)
        if query.emit == "update":
            answers = updates.answer(self, arranged, touched, deleted, watermark)
            if before is not None:
                answers = query.marked(
                    answers, updates.were_given(self, answers, before)
                )
        self._evict(touched, watermark)
        return answers

    def _correct(
        self, rows: pa.Table, watermark: int | None
    ) -> tuple[pa.Table, pa.Table | None]:
        """Inserts accepted late rows; gives the other rows, and the corrections."""
        if watermark is None or not self.query.corrects:
            return rows, None
        in_time = pc.greater(rows[TIME], watermark)
        late = rows.filter(pc.invert(in_time)).combine_chunks()
        if not len(late):
            return rows, None
        answers = corrected(self, late, watermark)
        if self.query.emit == "slide":
            # All non-empty windows up to here have been emitted now.
            known = watermark if self.flushed is None else self.flushed
            self.flushed = max(known, watermark)
        self._evict(self.insert(self.partition_rows(late)), watermark)
        return rows.filter(in_time).combine_chunks(), answers

    def _note_earliest(self, time: int) -> None:
        """Updates the time of the earliest row."""
        self.earliest = time if self.earliest is None else min(time, self.earliest)

    def _apply_deletes(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Applies deletions; gives the rows to insert, and the deletions."""
        if self.query.deletes is None:
            return rows, rows.slice(0, 0)
        marked = pc.fill_null(rows.column(self.query.deletes), False)
        deleted = rows.filter(marked).combine_chunks()
        rows = rows.filter(pc.invert(marked)).combine_chunks()
        open_ones = deleted
        if self.query.then_by and len(deleted):
            rows, open_ones = self._delete_in_batch(rows, deleted)
        left = []
        for slot, part in self.partition_rows(open_ones):
            left.append(self._delete(slot, part))
            if slot.closing is not None:
                # Their sessions may end at the row before them.
                first = max(part[TIME][0].as_py() - self.query.reach, EVER[0])
                slot.closing = min(slot.closing, first)
        self.forest.refold()
        if left:
            # A row and its deletion in one batch cancel.
            rows = self.query.without_in_batch(rows, pa.concat_tables(left))
        return rows, deleted

    def _delete_in_batch(
        self, rows: pa.Table, deleted: pa.Table
    ) -> tuple[pa.Table, pa.Table]:
        """Deletes rows of a batch that precede stored ones by `then_by`.

        Gives the rows that are left, and the deletions of stored rows.
        """
        names = [TIME, *self._by, *self.query.then_by]
        names = [name for name in dict.fromkeys(names) if name in self.query.leaf.names]
        new = self.query.sort_batch(rows.append_column(NUMBER, row_numbers(len(rows))))
        tables: list[pa.Table] = []
        for slot, part in self.partition_rows(deleted):
            tables += self.forest.holding(slot.tree, part)
            tables += [self._rows[page.page].rows for page in slot.waiting]
        both = pa.concat_tables(
            [*(table.select(names) for table in tables), new.select([*names, NUMBER])],
            promote_options="default",
        )
        rest, _ = self.query.without(both.combine_chunks(), deleted)
        kept = pc.drop_null(rest.column(NUMBER).combine_chunks())
        is_kept = pc.is_in(row_numbers(len(rows)), kept)
        gone = rows.filter(pc.invert(is_kept)).combine_chunks()
        open_ones, _ = self.query.without(deleted, gone)
        return rows.filter(is_kept).combine_chunks(), open_ones

    def _delete(self, slot: Slot, deleted: pa.Table) -> pa.Table:
        """Deletes rows of a slot; gives the deletions without a match."""
        deleted = self.forest.delete(slot.tree, deleted)
        if self.query.then_by and len(deleted) and len(slot.waiting) > 1:
            # By `then_by`, the first row may be on any of these pages.
            held = [self._rows[page.page].rows for page in slot.waiting]
            for page in slot.waiting:
                del self._rows[page.page]
            slot.waiting = []
            self._wait(slot, self.query.sort(pa.concat_tables(held)))
        pages, slot.waiting = slot.waiting, []
        for page in pages:
            held = self._rows[page.page].rows
            rest, deleted = self.query.without(held, deleted)
            if len(rest) == len(held):
                slot.waiting.append(page)
                continue
            del self._rows[page.page]
            if len(rest):
                self._keep(slot, page.page, rest)
        return deleted

    def advance(self, watermark: int) -> pa.Table | None:
        """Advances the watermark; gives the results that are due."""
        answers: pa.Table | None = None
        touched: Iterable[Slot] = ()
        if self.query.emit == "final":
            answers, touched = self._answer_final(watermark)
        elif self.query.emit == "slide":
            answers, touched = watermarks.answer(self, watermark), self.slots
        known = watermark if self.flushed is None else self.flushed
        self.flushed = max(known, watermark)
        self._evict(touched, watermark)
        return None if answers is None else self.query.marked(answers)

    def _answer_final(self, watermark: int) -> tuple[pa.Table | None, list[Slot]]:
        due = []
        for slot in self.slots:
            earliest = slot.earliest_waiting
            if earliest is not None and earliest <= watermark:
                due.append((slot, self.query.sort(self._take_due(slot, watermark))))
        if not due:
            return None, []
        rows = self.query.sort(pa.concat_tables([part for _, part in due]))
        cover = self.cover((slot, part[TIME]) for slot, part in due)
        answers = self.query.answered(rows, self.query.answer_final(cover, rows))
        return answers, self.insert(due)

    # Rows that wait for the watermark.

    def _wait(self, slot: Slot, rows: pa.Table) -> None:
        """Stores sorted rows until they are due."""
        last = slot.waiting[-1].page if slot.waiting else None
        if last is not None and self._rows[last].rows.nbytes < page_tree.PAGE // 2:
            rows = pa.concat_tables([self._rows[last].rows, rows]).combine_chunks()
            del self._rows[last]
            slot.waiting.pop()
        most = max(1, len(rows) * page_tree.PAGE // max(1, rows.nbytes))
        for start in range(0, len(rows), most):
            self._keep(slot, self.forest.new_page(), rows.slice(start, most))

    def _take_due(self, slot: Slot, watermark: int) -> pa.Table:
        """Removes and gives the waiting rows up to a watermark, in order of arrival."""
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
        """Evicts the keys whose latest row is at or before a time; gives their number.

        None of their rows may wait for the watermark.
        """
        found = self.keys(None)
        ticks = self.query.ticks(found)
        idle = found.filter(pc.less_equal(ticks, until)).combine_chunks()
        watermarks.drop_idle_keys(self, idle, until)
        if not len(idle):
            return 0
        slots = self.partition_rows(idle.append_column(TIME, self.query.ticks(idle)))
        for slot, keys in slots:
            tables = list(self.forest.rows(slot.tree))
            self.forest.clear(slot.tree)
            if tables:
                rows = self._without(pa.concat_tables(tables), keys)
                self.forest.insert(slot.tree, rows)
        self.forest.refold()
        return len(idle)

    def _without(self, rows: pa.Table, keys: pa.Table) -> pa.Table:
        """The rows without those of some keys."""
        codes = self.query.codes([rows.select(self._by), keys.select(self._by)])
        theirs = codes.slice(len(rows))
        gone = pc.is_in(codes.slice(0, len(rows)), theirs)
        return rows.filter(pc.invert(gone)).combine_chunks()

    def _evict(self, touched: Iterable[Slot], watermark: int | None) -> None:
        until = self.evicted(watermark)
        if until is None:
            return
        if self.query.rows:
            for slot in touched:
                self._keep_latest_rows(slot, until)
            return
        for slot in touched:
            self.forest.evict(slot.tree, until)
        for slot in self.slots:
            if slot.latest_time is not None and slot.latest_time <= until:
                self.forest.evict(slot.tree, until)
                slot.latest_time = None

    def _keep_latest_rows(self, slot: Slot, until: int) -> None:
        """Evicts rows that no window of time and no `rows(n)` holds."""
        cover = Cover()
        self.forest.cover(slot.tree, EVER, cover)
        if not cover.rows:
            return
        rows = pa.concat_tables(cover.rows).combine_chunks()
        keep = self.query.latest_rows(rows, until)
        if len(rows) - len(keep) < max(64, len(rows) // 4):
            return
        self.forest.clear(slot.tree)
        self.forest.insert(slot.tree, keep)
        self.forest.refold()
