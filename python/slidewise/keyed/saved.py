"""`Snapshots`: saves and restores the state of `KeyedWindows`, and follows changes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, SupportsBytes, TypeVar

import pyarrow as pa

from slidewise.errors import SnapshotError, SpecError
from slidewise.keyed.damage import BROKEN
from slidewise.keyed.locked import synchronized
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.processor import Processor, decode_directory, encode_directory
from slidewise.keyed.queries import Queryable
from slidewise.keyed.shard import Directory
from slidewise.keyed.snapshots import (
    damaged,
    pack,
    read_changes,
)
from slidewise.keyed.stream_query import StreamQuery
from slidewise.keyed.view import View

__all__ = ["Snapshots"]

_T = TypeVar("_T")

# The attributes that a failed transaction restores.
_FIELDS = (
    *("late_count", "_answers"),
    *("_directory", "_checksum", "_saved", "_is_ahead"),
    # The first batch sets these.
    *("_query", "_delay", "_retention"),
)


class Snapshots(Queryable):
    """The state of `KeyedWindows` as bytes; each change of the state is a transaction.

    Attributes:
        _store: The pages.
        _directory: The directory of the state; None before the first batch.
        _answers: Results that wait for `collect`.
        _saved: The pages of the snapshot on which `changes` is based: its last result,
            or the first of `to_bytes`.
        _checksum: The checksum of that snapshot; None before it.
        _is_ahead: Whether there was any change since.
        _before: The view, attributes and pages before an unfinished transaction, which
            restores them if it fails; None without one.
    """

    _store: MemoryStore
    _directory: Directory | None
    _answers: list[pa.Table]
    _saved: frozenset[int]
    _checksum: int | None
    _is_ahead: bool
    _before: (
        tuple[View | None, dict[str, Any], dict[int, SupportsBytes | None]] | None
    ) = None
    _query: StreamQuery | None
    _late_rows: str
    _delay: int
    _retention: int
    late_count: int

    def _publish(self, largest: int | None, watermark: int | None) -> None:
        """Publishes the view of the state at a position."""
        self._view = View.of(self._require_state(), largest, watermark)

    def _open(
        self, query: StreamQuery, directory: Directory | None, *, trusts: bool = True
    ) -> Processor:
        """The state in the store, as a directory describes it."""
        state = Processor(query, self._store, directory, self._retention, trusts=trusts)
        state.answer.drop_decoded()
        return state

    def _copied(self) -> dict[str, Any]:
        view = self._view
        position = None if view is None else (view.largest, view.watermark)
        return {**super()._copied(), "_processor": None, "_view": None, "_at": position}

    def _derive(self) -> None:
        """Opens the state of a copy."""
        position = vars(self).pop("_at")
        if position is not None:
            self._reopen(*position)

    def _reopen(self, largest: int | None, watermark: int | None) -> None:
        """Opens the state, which is in the pages, and publishes its view."""
        assert self._query is not None, "the columns are known"
        self._processor = self._open(self._query, self._directory)
        self._publish(largest, watermark)

    def _atomically(self, step: Callable[[Processor], _T]) -> _T:
        """Runs a step and commits it as one transaction; an exception rolls it back."""
        state = self._require_state()
        with self._transaction() as pages:
            result = step(state)
            pages |= self._store.held(state.pages.changed)
            self._is_ahead = True
            self._directory = state.commit()
        return result

    @contextmanager
    def _transaction(self) -> Iterator[dict[int, SupportsBytes | None]]:
        """Rolls back on an exception; the caller fills the dict with earlier pages.

        A transaction within another is part of it.
        """
        if self._before is not None:
            yield self._before[2]
            return
        before = {name: getattr(self, name) for name in _FIELDS}
        before["_answers"] = [*self._answers]
        pages: dict[int, SupportsBytes | None] = {}
        self._before = (self._view, before, pages)
        try:
            yield pages
            self._before = None
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        """Rolls back a transaction that did not end.

        Each step is idempotent: if this is interrupted, the next call repeats them all.
        """
        if self._before is None:
            return
        view, _, pages = self._before
        self._store.restore(pages)
        self._restore_attributes()
        if view is None:  # the first batch failed
            self._processor = None
        else:
            self._reopen(view.largest, view.watermark)
        self._before = None

    def _restore_attributes(self) -> None:
        if self._before is not None:
            view, fields, _ = self._before
            vars(self).update(fields)
            if view is None:
                self._view = None
            else:
                self._publish(view.largest, view.watermark)

    @synchronized
    def to_bytes(self) -> bytes:
        """Returns a snapshot of the state, which `from_bytes` restores.

        It may be taken between calls of `changes`, also of a follower: the next changes
        apply both to this snapshot and after the changes before it.

        Returns:
            The bytes of all pages, and of the watermark and counts.

        Raises:
            SpecError: If results wait for `collect()`, or there were no rows yet.

        Cost: O(n).

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> spec = sw.Spec(on="t", windows=10, aggs={"n": sw.count()})
            >>> w = sw.KeyedWindows(spec)
            >>> w.ingest(pa.table({"t": [1, 8]}))
            >>> sw.KeyedWindows.from_bytes(w.to_bytes(), spec).query()
            {'n_10': 2}
        """
        head, pages = self._head(), self._store.blobs()
        directory = encode_directory(self._directory)
        if self._checksum is None:
            self._mark(pack({**head, "follows": None}, directory, pages)[1])
        head |= {"follows": None, "since": self._checksum}
        return pack(head, directory, pages)[0]

    @synchronized
    def changes(self) -> bytes:
        """Returns an incremental snapshot: the changes since the last call.

        The first call returns the changes since the first `to_bytes`, or `from_bytes`;
        without these, the whole state.

        Returns:
            Bytes for `apply`, or for the `changes=` of `from_bytes`.

        Raises:
            SpecError: As for `to_bytes`.

        Cost: O(changed pages), and a look at the number of each page.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> spec = sw.Spec(on="t", windows=10, aggs={"n": sw.count()})
            >>> w = sw.KeyedWindows(spec)
            >>> w.ingest(pa.table({"t": [1, 8]}))
            >>> first = w.to_bytes()
            >>> w.ingest(pa.table({"t": [9]}))
            >>> changes = [w.changes()]
            >>> sw.KeyedWindows.from_bytes(first, spec, changes=changes).query()
            {'n_10': 3}
        """
        # A page is written once: a page in both sets has not changed.
        changed = {page: self._store.get(page) for page in self._pages ^ self._saved}
        head = {**self._head(), "follows": self._checksum}
        blob, checksum = pack(head, encode_directory(self._directory), changed)
        self._mark(checksum)
        return blob

    def _mark(self, checksum: int) -> None:
        """Records the snapshot on which `changes` is based."""
        # In one step: a call that ends between two would leave half a record.
        vars(self).update(_checksum=checksum, _saved=self._pages, _is_ahead=False)

    def _head(self) -> dict[str, Any]:
        """The query, and the position of the stream, for snapshots."""
        if self._answers:
            raise SpecError("results wait: collect() them before a snapshot")
        query, view = self._require_state().query, self._view
        return {
            "spec": query.spec.hash,
            "emit": query.emit,
            "then_by": query.then_by,
            "deletes": query.deletes,
            "late_rows": self._late_rows,
            "delay": self._delay,
            "kept": self._retention,
            "largest": None if view is None else view.largest,
            "watermark": None if view is None else view.watermark,
            "late": self.late_count,
            "schema": query.schema.serialize().to_pybytes().hex(),
        }

    @property
    def _pages(self) -> frozenset[int]:
        """The pages of the state."""
        return frozenset(self._require_state().page_numbers)

    @synchronized
    def apply(self, changes: bytes) -> None:
        """Applies the changes of another object, its leader, by their bytes.

        This object was restored from a snapshot of the leader (`from_bytes`).
        Afterwards both give the same answers, and `to_bytes` the same bytes. Queries of
        other threads do not wait. After a call of its own `changes`, this object is a
        leader, and no longer a follower.

        Args:
            changes: The result of the next call of the leader's `changes`.

        Raises:
            SnapshotError: If the bytes are damaged or do not follow the last changes
                applied, or if this object has ingested rows or advanced since. It is
                unchanged then.

        Cost: O(changed pages); it computes no results.

        Example:
            >>> import pyarrow as pa, slidewise as sw
            >>> spec = sw.Spec(on="t", by="card", windows=10,
            ...                aggs={"n": sw.count()})
            >>> leader = sw.KeyedWindows(spec, emit="update")
            >>> leader.ingest(pa.table({"t": [1, 8], "card": [*"AA"]}))
            >>> _ = leader.collect()
            >>> follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), spec)
            >>> leader.ingest(pa.table({"t": [9], "card": ["A"]}))
            >>> _ = leader.collect()
            >>> follower.apply(leader.changes())
            >>> follower.query("A")
            {'n_10': 3}
        """
        state = self._require_state()
        read = read_changes(changes, state.query.spec.hash, self._checksum)
        if self._is_ahead:
            raise SnapshotError(
                "these windows have taken rows or a watermark of their own since the "
                "snapshot: changes apply to windows that only follow"
            )
        directory = decode_directory(read.directory)
        if directory is None:
            raise SnapshotError("the changes have no directory: they are damaged")
        try:
            with self._transaction() as before:
                before |= self._store.held({*read.pages, *self._store.page_numbers})
                self._store.restore(read.pages)
                state.pages.drop(read.pages)
                state.pages.trusts = False
                self._directory, head = directory, read.head
                largest = None if self._view is None else self._view.largest
                self._publish(largest, head["watermark"])
                state.follow(directory, read.pages)
                state.pages.trusts = True
                self._drop_others(state)
                self._publish(head["largest"], head["watermark"])
                self.late_count = head["late"]
                self._mark(read.checksum)
        except BROKEN as error:
            raise damaged(error) from error
        state.answer.drop_decoded()

    def _drop_others(self, state: Processor) -> None:
        """Drops the stored pages that are not pages of the state.

        A snapshot may have pages that were added and removed between two `changes`.

        Raises:
            SnapshotError: If a page is missing.
        """
        own, held = set(state.page_numbers), self._store.page_numbers
        for page in own - held:
            raise SnapshotError(f"page {page} is missing from the state")
        for page in held - own:
            self._store.remove(page)
