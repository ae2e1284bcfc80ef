"""`Snapshots`: saves and restores a state as bytes, and follows changes."""

from typing import Any

from slidewise.errors import SnapshotError, SpecError
from slidewise.keyed.damage import BROKEN
from slidewise.keyed.processor import Processor, decode_directory, encode_directory
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.snapshots import Snapshot, damaged, pack, read_changes
from slidewise.keyed.transaction import State

__all__ = ["Snapshots"]


class Snapshots:
    """A state as bytes.

    Args:
        state: The state.
        late_rows: The `late_rows=` of the windows.
    """

    def __init__(self, state: State, late_rows: str) -> None:
        self._state, self._late_rows = state, late_rows

    def to_bytes(self) -> bytes:
        """A snapshot: see `KeyedWindows.to_bytes`."""
        head, pages = self._head(), self._state.store.blobs()
        directory = encode_directory(self._state.directory)
        if self._state.checksum is None:
            self._mark(pack({**head, "follows": None}, directory, pages)[1])
        head |= {"follows": None, "since": self._state.checksum}
        return pack(head, directory, pages)[0]

    def changes(self) -> bytes:
        """An incremental snapshot: see `KeyedWindows.changes`."""
        state = self._state
        # A page is written once: a page in both sets has not changed.
        changed = {page: state.store.get(page) for page in self._pages ^ state.saved}
        head = {**self._head(), "follows": state.checksum}
        blob, checksum = pack(head, encode_directory(state.directory), changed)
        self._mark(checksum)
        return blob

    def _mark(self, checksum: int) -> None:
        """Records the snapshot on which `changes` is based."""
        # In one step: a call that ends between two would leave half a record.
        marked = {"checksum": checksum, "saved": self._pages, "is_ahead": False}
        vars(self._state).update(marked)

    def _head(self) -> dict[str, Any]:
        """The query, and the position of the stream, for snapshots."""
        if self._state.results:
            raise SpecError("results wait: collect() them before a snapshot")
        query, view = self._state.require().query, self._state.view
        return {
            "spec": query.spec.hash,
            "emit": query.emit,
            "then_by": query.then_by,
            "deletes": query.deletes,
            "late_rows": self._late_rows,
            "delay": self._state.delay,
            "kept": self._state.retention,
            "largest": None if view is None else view.largest,
            "watermark": None if view is None else view.watermark,
            "late": self._state.late_count,
            "schema": query.schema.serialize().to_pybytes().hex(),
        }

    @property
    def _pages(self) -> frozenset[int]:
        """The pages of the state."""
        return frozenset(self._state.require().page_numbers)

    def restore(self, query: KeyedQuery, read: Snapshot) -> None:
        """Restores the state of a snapshot."""
        state, head = self._state, read.head
        state.query, state.late_count = query, head["late"]
        state.delay, state.retention = head["delay"], head["kept"]
        state.store.restore(read.pages)
        state.directory = decode_directory(read.directory)
        processor = state.open(trusts=False)
        processor.shard.check()
        processor.answer.drop_decoded()
        self._drop_others(processor)
        state.processor = processor
        state.publish(head["largest"], head["watermark"])
        self._mark(read.checksum)

    def apply(self, changes: bytes) -> None:
        """Applies the changes of a leader: see `KeyedWindows.apply`."""
        state, processor = self._state, self._state.require()
        read = read_changes(changes, processor.query.spec.hash, state.checksum)
        if state.is_ahead:
            raise SnapshotError(
                "these windows have taken rows or a watermark of their own since the "
                "snapshot: changes apply to windows that only follow"
            )
        directory = decode_directory(read.directory)
        if directory is None:
            raise SnapshotError("the changes have no directory: they are damaged")
        try:
            with state.transaction() as before:
                before |= state.store.held({*read.pages, *state.store.page_numbers})
                state.store.restore(read.pages)
                processor.pages.drop(read.pages)
                processor.pages.trusts = False
                state.directory, head = directory, read.head
                largest = None if state.view is None else state.view.largest
                state.publish(largest, head["watermark"])
                processor.follow(directory, read.pages)
                processor.pages.trusts = True
                self._drop_others(processor)
                state.publish(head["largest"], head["watermark"])
                state.late_count = head["late"]
                self._mark(read.checksum)
        except BROKEN as error:
            raise damaged(error) from error
        processor.answer.drop_decoded()

    def _drop_others(self, state: Processor) -> None:
        """Drops the stored pages that are not pages of the state.

        A snapshot may have pages that were added and removed between two `changes`.

        Raises:
            SnapshotError: If a page is missing.
        """
        own, held = set(state.page_numbers), self._state.store.page_numbers
        for page in own - held:
            raise SnapshotError(f"page {page} is missing from the state")
        for page in held - own:
            self._state.store.remove(page)
