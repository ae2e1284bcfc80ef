"""The state of some keys of a stream: a log of rows, and an index of their entries.

The log ([row_log.py](row_log.py)) is what is stored. In memory an index holds the
entries of each key in order of time ([index.py](index.py)), from which results are
computed. It is made from the log when the state is opened, and follows the log from
then on.
"""

import json
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.caching import cached_property
from slidewise.errors import SnapshotError
from slidewise.frames.base import empty_table, one_array
from slidewise.keyed.columns import NUMBER, TIME, Ends, int64_view, joined, one_batch
from slidewise.keyed.damage import BROKEN, checked_ints
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.index import EARLIEST, LATEST, Index
from slidewise.keyed.last_windows import LastWindows
from slidewise.keyed.page_store import Pages, Store, buffers_of
from slidewise.keyed.query import later_than
from slidewise.keyed.row_ends import by_key, closed_rows
from slidewise.keyed.row_log import RowLog
from slidewise.keyed.stream_query import StreamQuery
from slidewise.spec.windows.base import Window
from slidewise.table.encoding import row_numbers
from slidewise.table.time_columns import subtract_clamped

__all__ = [
    "Directory",
    "ShardState",
    "Waiting",
    "decode_directory",
    "encode_directory",
    "without",
]

_FORMAT = 4
# The number of rows of small segments that enter the index in one step.
_STEP = 65_536
# This number of tables of waiting rows are joined, if they have no more rows than this.
_JOINED_TABLES, _JOINED_ROWS = 8, 4096

# The position of a stream and the places of its rows, as values that JSON can hold.
Directory = dict[str, Any]


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


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows that wait for the watermark, in order of their numbers.

    Attributes:
        rows: The rows; with their numbers if the index has them.
        earliest: The time of the earliest, in ticks.
        latest: The time of the latest, in ticks.
        after: Rows at or before this time no longer wait; None if all rows wait.
    """

    rows: pa.Table
    earliest: int
    latest: int
    after: int | None = None

    @property
    def left(self) -> pa.Table:
        """The rows that still wait."""
        if self.after is None:
            return self.rows
        return self.rows.filter(pc.greater(self.rows[TIME], self.after))

    def since(self, earliest: int, after: int) -> "Waiting":
        """The rows that wait after a time, given the time of the earliest of them.

        They stay in the memory of their batch while they are at least half of it.
        """
        rest = replace(self, earliest=earliest, after=after)
        waits = pc.greater(self.rows[TIME], after)
        if 2 * pc.sum(waits).as_py() >= len(self.rows):
            return rest
        return replace(rest, rows=self.rows.filter(waits).combine_chunks(), after=None)


class ShardState:
    """The state of some keys of a query.

    Args:
        query: The query.
        store: The store of the pages.
        directory: The directory that `commit` gave for the same query; None for an
            empty state.
        kept: The least time for which rows are kept behind the watermark, in ticks.
        trusts: Whether the pages are known to be valid.
        ordered: Whether results are sorted by time even where that costs a sort.

    Attributes:
        changed_keys: The number of keys with new or removed rows, summed over batches.
        flushed: The watermark up to which results were emitted; None before the first.
        earliest: The time of the earliest row, from which windows are closed before the
            first watermark.
        history: The latest time of the rows before the stream, in all shards: windows
            that a watermark there closes were emitted before. None without such rows.

    Raises:
        SnapshotError: If the directory is damaged, or of another format.
    """

    def __init__(
        self,
        query: StreamQuery,
        store: Store,
        directory: Directory | None = None,
        kept: int = 0,
        *,
        trusts: bool = True,
        ordered: bool = True,
    ) -> None:
        self.query, self.ordered = query, ordered
        self.changed_keys = 0
        self.kept = max(kept, query.reach + query.allowance)
        self._by = list(query.spec.by)
        self.flushed: int | None = None
        self.earliest: int | None = None
        self.history: int | None = None
        self.pages = Pages(store, trusts=trusts)
        self._read(directory)
        if not trusts:
            self.check_pages()
        self.pages.trusts = True
        self._open()

    def _read(self, directory: Directory | None) -> None:
        """Reads the position of the stream, and where its rows are."""
        state = directory or {}
        try:
            if directory is not None:
                if state["format"] != _FORMAT:
                    raise SnapshotError(
                        f"the state has format {state['format']}, and this version of "
                        f"slidewise reads {_FORMAT}"
                    )
                self.flushed, self.earliest = state["flushed"], state["earliest"]
                self.history = state.get("history")
                for time in (self.flushed, self.earliest, self.history):
                    checked_ints(0 if time is None else time)
                self.pages.next_page = checked_ints(state["page"])
            self.log = RowLog(self.query, self.pages, state.get("log"))
            self.last = LastWindows(self.query, self.pages, state.get("last", []))
        except BROKEN as error:
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(
                f"the directory of a state is damaged: {error}"
            ) from error

    def _open(self) -> None:
        """Builds the index from the log."""
        self.waiting: list[Waiting] = []
        # The numbers of rows that have left the index, and will leave the log.
        self.left = array("q")
        # The rows of the current batch, until they enter the index in one step.
        self.coming: list[pa.Table] = []
        self.leaving = self.no_rows
        index = Index(self.query)
        self._enter(index, 0)
        self.index = index

    def _enter(self, index: Index, since: int) -> None:
        """Inserts the rows of the log from a number on into an index."""
        # Small segments enter together, because each step has a fixed cost.
        for rows in joined(self._entering(since), _STEP):
            self._insert(index, rows)
        self._leave(index)

    def _leave(self, index: Index) -> None:
        """Removes the entries that leave before their rows leave the log."""
        if self.log.until is not None:
            index.store.evict(self.log.until, self.query.rows)
        reach = self.query.reach
        if self.query.sessions and self.flushed is not None:
            until = max(self.flushed - reach, EARLIEST)
            self.note_left(pa.array(index.store.sessions(reach, until)))
        if self.query.until and self.flushed is not None:
            self.close(index, self.take_due(self.flushed))

    def _entering(self, since: int) -> Iterator[pa.Table]:
        """Yields the rows of segments from a number on; records those that wait."""
        for rows, waits in self.log.alive(since):
            if self.query.closing:
                self.wait(self._unflushed(self.query.closers(rows)))
            elif waits:
                self.wait(self._unflushed(rows))
            yield rows.select(self.no_rows.column_names)

    def close(self, index: Index, ends: pa.Table | None) -> pa.Table:
        """Removes the windows of `until` that some rows close; gives their rows."""
        if ends is None:
            return self.no_rows
        rows = closed_rows(self.query, index, self.log, ends)
        if len(rows):
            self.log.lose(pc.max(rows[TIME]).as_py())
        index.insert(self.no_rows, rows)
        self.note_left(rows[NUMBER].combine_chunks())
        return rows

    def note_left(self, numbers: pa.Array) -> None:
        """Records the numbers of rows that have left the index, and will leave the log.

        Each call may have a few, so they are not kept as arrays of Arrow.
        """
        self.left.frombytes(int64_view(numbers).cast("B"))

    def compact(self) -> None:
        """Rewrites the log without the rows that have left the index, if many have."""
        if self.log.is_sparse:
            left, self.left = self.left, array("q")
            buffers = [None, pa.py_buffer(left)]
            gone = pa.Array.from_buffers(pa.int64(), len(left), buffers)
            self.log.compact(
                lambda rows: pc.invert(_among(one_array(rows[NUMBER]), gone))
            )

    def take_due(self, watermark: int, *, ordered: bool = True) -> pa.Table | None:
        """Removes and returns the rows that waited for a watermark.

        They are sorted by time if `ordered`, otherwise in order of arrival.
        """
        due = [held for held in self.waiting if held.earliest <= watermark]
        if not due:
            return None
        batches = [(one_batch(held.rows), held.after) for held in due]
        rows, earliest = _core.take_due(batches, watermark, ordered)
        left = dict(zip(map(id, due), earliest, strict=True))
        waiting, self.waiting = self.waiting, []
        for held in waiting:
            if id(held) not in left:
                self.waiting.append(held)
                continue
            first = left[id(held)]
            if first is not None:
                self.waiting.append(held.since(first, watermark))
        return pa.Table.from_batches([pa.record_batch(rows)])

    def follow(self, directory: Directory, changed: Collection[int] = ()) -> None:
        """Applies the commits of another process that followed this state.

        If the log was compacted since, it does not tell which rows left, so the index
        is built again.

        Args:
            directory: The directory of a later commit to the same state.
            changed: The pages to check, because they are not known to be valid.

        Raises:
            SnapshotError: If a page is missing or damaged.
        """
        log = self.log
        known, waiting = log.deleted[NUMBER].combine_chunks(), self.waiting
        self._read(directory)
        # Keep no rows in memory of pages that the other process dropped.
        self.pages.keep(self.page_numbers)
        self.check_pages(changed)
        if self.log.generation != log.generation:
            self._open()
            return
        deleted = self.log.deleted
        new = pc.and_(
            pc.invert(pc.is_in(deleted[NUMBER], known)),
            pc.less(deleted[NUMBER], log.next_row),
        )
        gone = deleted.filter(new).combine_chunks()
        self.waiting = []
        for held in waiting:
            self.wait(self._unflushed(without(held.left, gone)))
        coming = [self.no_rows, *self._entering(log.next_row)]
        self._insert(self.index, pa.concat_tables(coming).combine_chunks(), gone)
        self._leave(self.index)

    def _unflushed(self, rows: pa.Table) -> pa.Table:
        """The rows whose results were not emitted yet.

        If flags close windows, all rows: `close` removes those that were emitted.
        """
        if self.flushed is None or self.query.until:
            return rows
        return rows.filter(pc.greater(rows[TIME], self.flushed))

    @cached_property
    def no_rows(self) -> pa.Table:
        """No rows of the state, with their numbers."""
        numbered = self.query.kept_schema.append(pa.field(NUMBER, pa.int64()))
        return empty_table(numbered)

    def commit(self) -> Directory:
        """Writes the changed pages; gives the directory, to be stored with them."""
        self.pages.commit()
        begun = {} if self.history is None else {"history": self.history}
        return {
            "format": _FORMAT,
            "page": self.pages.next_page,
            "flushed": self.flushed,
            "earliest": self.earliest,
            "log": self.log.record(),
            "last": self.last.record(),
            **begun,
        }

    @property
    def page_numbers(self) -> Iterator[int]:
        """The pages of the state."""
        yield from self.log.page_numbers
        yield from self.last.page_numbers

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
        self.log.check(pages)
        self.last.check(pages)

    def check(self) -> None:
        """Checks the invariants.

        Raises:
            AssertionError: If one is violated.
        """
        self.index.store.check_invariants()
        for rows, _ in self.log.alive():
            rows.validate(full=True)

    def drop_decoded(self) -> None:
        """Drops decoded pages, if results read no rows: then few are read again."""
        if self.query.folds:
            self.pages.trim(0)

    def evicted(self, watermark: int | None) -> int | None:
        """The time up to which rows may be evicted; None if all rows are kept."""
        if watermark is None or self.query.sessions or self.query.until:
            return self.log.until
        until = watermark - self.kept
        return until if self.log.until is None else max(until, self.log.until)

    def nbytes(self, stored: Iterable[pa.Table] = ()) -> int:
        """The bytes of the index, and of the rows in memory besides those `stored`."""
        shared = {address for table in stored for address in buffers_of(table)}
        tables = [*self.pages.decoded(), *(held.rows for held in self.waiting)]
        own = {key: size for each in tables for key, size in buffers_of(each).items()}
        rows = sum(size for key, size in own.items() if key not in shared)
        left = len(self.left) * self.left.itemsize
        return rows + left + int(self.index.store.nbytes)

    def hold(self, rows: pa.Table, *, waits: bool, ends: Ends | None = None) -> None:
        """Appends rows of a batch to the log; `enter` inserts them into the index."""
        if not len(rows):
            return
        for segment, part in self.log.append(rows, waits=waits, ends=ends):
            if waits:
                numbered = self._numbered(part, segment.first)
                self._wait(numbered, segment.earliest, segment.latest)
        numbered = self._numbered(rows, self.log.next_row - len(rows))
        self.coming.append(numbered)
        if self.query.closing:
            self.wait(self.query.closers(numbered))

    def enter(self) -> None:
        """Applies a batch to the index: readers see all of it or nothing."""
        coming, self.coming = self.coming, []
        gone, self.leaving = self.leaving, self.no_rows
        if coming or len(gone):
            rows = coming[0] if coming else self.no_rows
            if len(coming) > 1:
                rows = pa.concat_tables(coming).combine_chunks()
            self.changed_keys += self._insert(self.index, rows, gone)

    def _numbered(self, rows: pa.Table, first: int) -> pa.Table:
        """Rows with their numbers, if the index has them."""
        if not self.index.numbered:
            return rows
        numbers = pc.add(row_numbers(len(rows)).cast(pa.int64()), first)
        return rows.append_column(NUMBER, numbers)

    def wait(self, rows: pa.Table) -> None:
        """Records rows that wait for the watermark."""
        if len(rows):
            ends = pc.min_max(rows[TIME])
            self._wait(rows, ends["min"].as_py(), ends["max"].as_py())

    def _wait(self, rows: pa.Table, earliest: int, latest: int) -> None:
        if not self.query.closing:
            numbers = [NUMBER] if self.query.finds_rows else []
            rows = rows.select([*self.query.waiting.names, *numbers])
        self.waiting.append(Waiting(rows, earliest, latest))
        self._join_waiting()

    def _join_waiting(self) -> None:
        """Joins the last tables of waiting rows, if they are several of about one size.

        A table of one row takes as much memory as a hundred rows, and each advance of
        the watermark looks at all tables.
        """
        while len(self.waiting) >= _JOINED_TABLES:
            last = self.waiting[-_JOINED_TABLES:]
            sizes = [len(held.rows) for held in last]
            if max(sizes) >= len(last) * sizes[-1] or sum(sizes) > _JOINED_ROWS:
                return
            rows = pa.concat_tables([held.left for held in last]).combine_chunks()
            earliest = min(held.earliest for held in last)
            latest = max(held.latest for held in last)
            self.waiting[-len(last) :] = [Waiting(rows, earliest, latest)]

    def _insert(
        self, index: Index, rows: pa.Table, gone: pa.Table | None = None
    ) -> int:
        """Inserts rows into an index; rows of equal time in the order of the query.

        The rows in `gone`, with their numbers, are removed in the same step.

        Returns:
            The number of keys of these rows, those of `gone` included.
        """
        query = self.query
        if not query.then_by or query.spec.arrival is not None or not len(rows):
            return index.insert(rows, gone)
        rows = rows.select([*query.kept_schema.names, NUMBER])
        held = self._held_in(index, rows, gone)
        both = pa.concat_tables([held, rows]).combine_chunks()
        if gone is not None:
            names = [*self._by, TIME, NUMBER]
            held = pa.concat_tables([held.select(names), gone.select(names)])
        return index.insert(query.sort(both), held)

    def held_at(self, rows: pa.Table) -> pa.Table:
        """The rows in the index with the key and time of one of these rows."""
        return self._held_in(self.index, rows)

    def _held_in(
        self, index: Index, rows: pa.Table, gone: pa.Table | None = None
    ) -> pa.Table:
        points = rows.take(self.query.distinct(rows, TIME)).combine_chunks()
        ticks = points.column(TIME).combine_chunks()
        numbers = _left_of(index.numbers(points, ticks, ticks), gone)
        return self.log.take(numbers).append_column(NUMBER, numbers)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The windows of the Spec; hopping ones as rolling ones of their length."""
        return Horizon(self.query, self.kept, None).windows(None)

    def answers_at(
        self, points: pa.Table, name_row: Callable[[int], str]
    ) -> list[pa.Array]:
        """The results of folded windows at keys and times, window by window."""
        ticks = one_array(points.column(TIME))
        return self.index.results(points, ticks, self.windows, name_row)

    def rows_near(self, points: pa.Table) -> pa.Table:
        """The rows of all windows of keys at times, key by key, in order."""
        return self.log.take(self.numbers_near(points))

    def numbers_near(self, points: pa.Table) -> pa.Array:
        """The numbers of the rows of `rows_near`."""
        return self.numbers_between(points, self.query.reach, 0)

    def numbers_between(self, points: pa.Table, before: int, behind: int) -> pa.Array:
        """The numbers of the rows of keys around their first and last points.

        With windows of `rows(n)`, from the first row of the key on.

        Args:
            points: The keys, and times in `TIME`.
            before: The ticks before the first time.
            behind: The ticks after the last time.
        """
        if not len(points):
            return pa.array([], pa.int64())
        keys, first, last, _ = by_key(self.query, points.select([*self._by, TIME]))
        if self.query.rows or self.query.reaching:
            since = pa.repeat(pa.scalar(EARLIEST, pa.int64()), len(keys))
        else:
            # The index may still have entries of evicted rows.
            least = EARLIEST if self.log.until is None else self.log.until + 1
            since = pc.max_element_wise(subtract_clamped(first, before), least)
        until = pc.add(pc.min_element_wise(last, LATEST - behind), behind)
        return _left_of(self.index.numbers(keys, since, until), self.leaving)

    def keys(self, watermark: int | None) -> pa.Table:
        """The keys with rows in the horizon, each with its latest time."""
        found = self.index.keys()
        if watermark is not None and not self.query.keeps_rows:
            reached = later_than(found[TIME], watermark - self.kept)
            found = found.filter(reached)
        times = self.query.times.restore(found.column(TIME).combine_chunks())
        on = self.query.spec.on
        return found.set_column(len(self._by), on, times)

    def holds(self, key: pa.Table, watermark: int | None) -> bool:
        """Whether a key has rows in the horizon."""
        last = self.index.last_times(key)[0].as_py()
        if last is None or watermark is None or self.query.keeps_rows:
            return last is not None
        return bool(last > watermark - self.kept)


def without(rows: pa.Table, gone: pa.Table) -> pa.Table:
    """The rows that are not in `gone`, by their numbers."""
    if not len(gone):
        return rows
    numbers = one_array(rows[NUMBER])
    left = pc.invert(_among(numbers, one_array(gone[NUMBER])))
    return rows.filter(left).combine_chunks()


def _left_of(numbers: pa.Array, gone: pa.Table | None) -> pa.Array:
    """The numbers that are not in `gone`: the index may still have those."""
    if gone is None or not len(gone):
        return numbers
    return numbers.filter(pc.invert(_among(numbers, one_array(gone[NUMBER]))))


def _among(numbers: pa.Array, some: pa.Array) -> pa.Array:
    """A mask of the numbers that are in `some`."""
    return pa.array(_core.are_among(numbers, some))
