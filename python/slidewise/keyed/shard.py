"""`Shard`: ingests rows of some keys, and emits results as the watermark advances.

Results and evictions depend on times and the watermark alone, so the same rows give the
same results however the keys are partitioned into shards.
"""

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.keyed import closed_windows, updates
from slidewise.keyed.columns import NUMBER, TIME, Ends
from slidewise.keyed.corrections import corrected
from slidewise.keyed.index import EARLIEST, LATEST
from slidewise.keyed.row_ends import passed_rows, surplus_rows
from slidewise.keyed.shard_state import ShardState, without
from slidewise.table.encoding import row_numbers

__all__ = ["Shard"]

# Entries are evicted each time a further 1/16 of the horizon has passed.
_SHARE = 16


class Shard(ShardState):
    """The state of some keys, with the steps of a stream: ingest, advance, evict."""

    def load(self, rows: pa.Table) -> None:
        """Inserts a batch of rows whose results were emitted before.

        Its deletions apply to its own rows and to those that are held.
        """
        rows, _ = self.query.arrived(rows)
        self.query.refuse_values(rows)
        rows, _ = self._apply_deletes(rows)
        self.hold(self.query.sort_batch(rows), waits=False)
        self.enter()

    def begin(self, history: int) -> None:
        """Records the latest time of the rows before the stream, in all shards.

        Windows that a watermark at this time closes count as emitted. The time is the
        same in all shards, also in those without such rows, so results do not depend on
        which keys share a shard.
        """
        self.history = history

    @property
    def due(self) -> int | None:
        """The least watermark at which `advance` emits results, or None."""
        if self.query.emit == "final":
            return min((held.earliest for held in self.waiting), default=None)
        if self.query.emit == "slide":
            return closed_windows.due(self)
        return updates.due(self) if self.query.emit == "change" else None

    def ingest(
        self, rows: pa.Table, watermark: int | None, ends: Ends | None = None
    ) -> pa.Table | None:
        """Ingests rows; gives the results to emit at once.

        Args:
            rows: The accepted rows of a batch that has `arrived`.
            watermark: The watermark, or None.
            ends: Their earliest and latest times, if these are known.
        """
        self.query.refuse_values(rows)
        query, arranged = self.query, rows
        before = None
        if query.emits_keys and query.corrects:
            before = updates.last_results(self, arranged, watermark)
        arranged, deleted = self._apply_deletes(arranged)
        corrections = None
        if query.emit in ("final", "slide"):
            arranged, corrections = self._correct(arranged, watermark)
        answers = corrections
        if query.emit == "arrival":
            answers = query.marked(query.answered(arranged, self._arrive(arranged)))
        elif query.emits_keys:
            self.hold(query.sort_batch(arranged), waits=False)
            self.enter()
            answers = updates.answer(self, arranged, deleted, watermark)
            if before is not None:
                again = updates.are_updates(self, answers, before)
                answers = query.marked(answers, again)
        else:
            if query.emit == "slide" and len(arranged):
                first = pc.min(arranged[TIME]).as_py()
                known = self.earliest
                self.earliest = first if known is None else min(first, known)
            batch = query.sort_batch(arranged)
            whole = ends if len(arranged) == len(rows) else None
            self.hold(batch, waits=query.emit == "final", ends=whole)
        self.enter()
        self.evict(watermark)
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
            # All non-empty windows up to the watermark have been emitted now.
            known = watermark if self.flushed is None else self.flushed
            self.flushed = max(known, watermark)
        self.hold(self.query.sort_batch(late), waits=False)
        return rows.filter(in_time).combine_chunks(), answers

    # Rows leave.

    def _apply_deletes(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Applies deletions; gives the rows to insert, and the deletions."""
        query = self.query
        if query.deletes is None:
            return rows, rows.slice(0, 0)
        marked = pc.fill_null(rows.column(query.deletes), False)
        deleted = rows.filter(marked).combine_chunks()
        rows = rows.filter(pc.invert(marked)).combine_chunks()
        if not len(deleted):
            return rows, deleted
        # Rows of the batch get negative numbers, since it may delete its own rows.
        own = pc.subtract(-1, row_numbers(len(rows)).cast(pa.int64()))
        new = query.sort_batch(rows.append_column(NUMBER, own))
        held = self.held_at(deleted)
        both = pa.concat_tables([held, new.select(held.column_names)]).combine_chunks()
        rest = query.without(both, deleted)[NUMBER].combine_chunks()
        stays = pc.is_in(own, rest)
        gone = held.filter(pc.invert(pc.is_in(held[NUMBER], rest)))
        self._remove(gone.combine_chunks())
        return rows.filter(stays).combine_chunks(), deleted

    def _remove(self, rows: pa.Table) -> None:
        """Removes rows with their numbers."""
        if not len(rows):
            return
        self.leaving = rows
        self.log.delete(rows)
        waiting, self.waiting = self.waiting, []
        for held in waiting:
            self.wait(without(held.left, rows))

    def evict_idle(self, until: int) -> int:
        """Evicts the keys whose latest row is at or before a time; gives their number.

        None of their rows may wait for the watermark. Keys without rows in the horizon,
        of which the index may still have entries, do not count.
        """
        known = pc.less_equal(self.query.ticks(self.keys(self.flushed)), until)
        found = self.keys(None)
        idle = found.filter(pc.less_equal(self.query.ticks(found), until))
        self.index.store.drop_idle(until)
        self.last.drop_idle(idle.combine_chunks(), self.index, until)
        if len(idle):
            self.log.lose(pc.max(self.query.ticks(idle)).as_py())
            self.log.compact(self.index.is_held)
        return int(known.true_count)

    def evict(self, watermark: int | None) -> None:
        """From time to time, evicts the rows that no window can hold.

        The caller has published the watermark, with its bound, to readers.
        """
        until = self.evicted(watermark)
        if until is None or until < EARLIEST:
            return
        if self.query.closing or self.query.reaching:
            if self.log.is_sparse:
                find = surplus_rows if self.query.closing else passed_rows
                gone = find(self.query, self.index, self.log, until)
                if len(gone):
                    self.log.lose(until)
                self.index.insert(self.no_rows, gone)
                self.note_left(gone[NUMBER].combine_chunks())
                self.compact()
            return
        known = self.log.until
        if known is None or until - known > self.kept // _SHARE:
            if self.query.spec.empty:
                closed_windows.note_history(self)
                keys = self.index.keys()
                self.last.note(keys.filter(pc.less_equal(keys[TIME], until)))
            self.log.evict(until)
            self.index.store.evict(until, self.query.rows)
            if self.log.is_sparse:
                self.log.compact(self.index.is_held if self.query.rows else None)

    # Results as the watermark advances.

    def advance(self, watermark: int) -> pa.Table | None:
        """Advances the watermark; gives the results that are due. `evict` follows."""
        answers: pa.Table | None = None
        if self.query.emit == "final":
            answers = self._answer_final(watermark)
        elif self.query.emit == "slide":
            answers = closed_windows.answer(self, watermark)
        elif self.query.emit == "change":
            answers = updates.answer_expired(self, watermark)
        known = watermark if self.flushed is None else self.flushed
        self.flushed = max(known, watermark)
        if self.query.emit == "final":
            self.log.release(self.flushed)
        if self.query.sessions or self.query.until:
            self.compact()
        return None if answers is None else self.query.marked(answers)

    def _answer_final(self, watermark: int) -> pa.Table | None:
        query = self.query
        folds = query.folds and query.spec.ties == "peers"
        rows = self.take_due(watermark, ordered=self.ordered or not folds)
        if rows is None:
            return None
        if query.then_by:
            rows = query.sort(rows)
        if folds:
            return query.answered(rows, self.answers_at(rows, query.naming(rows)))
        due = rows.column(NUMBER).combine_chunks()
        rows = rows.drop_columns(NUMBER)
        numbers = self.numbers_near(rows)
        earlier = numbers.filter(pc.invert(pa.array(_core.are_among(numbers, due))))
        before = self.log.take(earlier)
        return query.answered(rows, query.answer_final(before, rows))

    def _arrive(self, rows: pa.Table) -> list[pa.Array]:
        """Inserts new rows; gives their results as of arrival."""
        query = self.query
        batch = query.sort_batch(rows)
        if query.folds and query.spec.arrival is None:
            self.hold(batch, waits=False)
            self.enter()
            return self.answers_at(rows, query.naming(rows))
        if query.folds:
            return self._arrive_in_order(rows)
        # rows(n) holds the latest rows that have arrived, whatever their time.
        behind = LATEST if query.rows else 0
        earlier = self.log.take(self.numbers_between(rows, query.reach, behind))
        answers = query.answer_arrival(earlier, rows)
        self.hold(batch, waits=False)
        return answers

    def _arrive_in_order(self, rows: pa.Table) -> list[pa.Array]:
        """Inserts new rows in order of `arrival=`; gives their results as of then."""
        query = self.query
        places = row_numbers(len(rows)).cast(pa.int64())
        batch = query.sort_batch(rows.append_column(NUMBER, places))
        places = batch.column(NUMBER).combine_chunks()
        batch = batch.drop_columns(NUMBER)
        held = self._numbered(batch, self.log.next_row)
        self.log.append(batch, waits=False)
        naming, arrivals = query.naming(batch), query.arrivals(batch)
        gone, self.leaving = self.leaving, self.no_rows
        windows = self.windows
        found, keys = self.index.insert_answering(held, arrivals, windows, naming, gone)
        self.changed_keys += keys
        back = pc.sort_indices(places)
        return [
            result.array.take(back) for window in found for result in window.values()
        ]
