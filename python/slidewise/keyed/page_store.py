"""Pages: the units in which the state of a stream is read and written.

A page holds the rows of a leaf, or the folds over the children of an inner node, as one
Arrow record batch after a header. A store holds the bytes: a dict, or the state of a
streaming query. A page that was read stays decoded until it is dropped.

```text
magic "SWPG" | version u16 | level u16 | children u32 | crc32 of all behind u32
| (page, first, last, folded) i64 each, per child | record batch as Arrow IPC message
```
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from slidewise.errors import SnapshotError

__all__ = [
    "ARRIVAL",
    "FOLDED",
    "FRESH",
    "LAST",
    "NUMBER",
    "PARTIAL",
    "RESERVED",
    "ROWS",
    "SLOT",
    "TIME",
    "Child",
    "MemoryStore",
    "Node",
    "Pages",
    "Store",
]

# Columns of pages besides the user's: times as int64, the partial of a fold, and the
# page that a fold is over.
TIME = "__time"
PARTIAL = "__partial"
FOLDED = "__page"
# Columns in memory only: marks of late rows, the count of rows, the slot of a row.
FRESH = "__fresh"
ROWS = "__rows"
SLOT = "__slot"
# The number of a row in its batch.
NUMBER = "__number"
# In pages of last windows: the time of the key's latest row in its window.
LAST = "__last"
# The arrival of a row, for results as of arrival.
ARRIVAL = "__arrival"
RESERVED = (TIME, PARTIAL, FOLDED, FRESH, ROWS, SLOT, NUMBER, LAST, ARRIVAL)

_MAGIC = b"SWPG"
_VERSION = 1
_HEADER = struct.Struct("<4sHHII")
_CHILD = struct.Struct("<qqqq")


TRAFFIC = ("pages_read", "bytes_read", "pages_written", "bytes_written")


class Store(Protocol):
    """A store of the bytes of pages."""

    def get(self, page: int) -> bytes | memoryview | None:
        """The bytes of a page, or None."""

    def put(self, page: int, blob: bytes) -> None:
        """Stores the bytes of a page."""

    def remove(self, page: int) -> None:
        """Removes a page."""


class MemoryStore:
    """Pages in a dict."""

    def __init__(self) -> None:
        self.blobs: dict[int, bytes] = {}

    def get(self, page: int) -> bytes | None:
        """As in `Store`."""
        return self.blobs.get(page)

    def put(self, page: int, blob: bytes) -> None:
        """As in `Store`."""
        self.blobs[page] = blob

    def remove(self, page: int) -> None:
        """As in `Store`."""
        self.blobs.pop(page, None)

    def restore(self, pages: Mapping[int, bytes | None]) -> None:
        """Restores pages to earlier bytes; None removes a page."""
        for page, blob in pages.items():
            if blob is None:
                self.remove(page)
            else:
                self.put(page, blob)


@dataclass(slots=True)
class Child:
    """A reference from an inner node to a child.

    Attributes:
        page: The page of the child.
        first: The time of its earliest row, in ticks.
        last: The time of its latest row, in ticks.
        folded: Whether the parent holds the folds over it.
    """

    page: int
    first: int
    last: int
    folded: bool = False


@dataclass(slots=True)
class Node:
    """A decoded page: rows in order of time (level 0), or folds over children.

    Attributes:
        rows: The rows of a leaf; of an inner node, the folds over its folded children,
            with their page in the column `__page`.
        level: The distance from the leaves.
        children: The children in order of time; none for a leaf.
    """

    rows: pa.Table
    level: int = 0
    children: list[Child] = field(default_factory=list)

    def check_arrays(self) -> None:
        """Checks that the arrays are valid, which a checksum cannot tell.

        Raises:
            pyarrow.ArrowInvalid: If not.
        """
        self.rows.validate(full=True)


class Pages:
    """The decoded pages of a store, and their changes since the last commit."""

    def __init__(self, store: Store, leaf: pa.Schema, inner: pa.Schema) -> None:
        self.store = store
        self.leaf, self.inner = leaf, inner
        self._nodes: dict[int, Node] = {}
        self._changed: set[int] = set()
        self._removed: set[int] = set()
        self._traffic = dict.fromkeys(TRAFFIC, 0)

    def __getitem__(self, page: int) -> Node:
        node = self._nodes.get(page)
        if node is None:
            blob = self.store.get(page)
            if blob is None:
                raise SnapshotError(f"page {page} is missing from the state")
            self._traffic["pages_read"] += 1
            self._traffic["bytes_read"] += len(blob)
            node = self._nodes[page] = self._decode(page, blob)
        return node

    def __setitem__(self, page: int, node: Node) -> None:
        self._nodes[page] = node
        self._changed.add(page)
        self._removed.discard(page)

    def __delitem__(self, page: int) -> None:
        self._nodes.pop(page, None)
        self._changed.discard(page)
        self._removed.add(page)

    @property
    def changed(self) -> set[int]:
        """The pages that the next commit writes or removes."""
        return self._changed | self._removed

    def traffic(self) -> dict[str, int]:
        """Pages and bytes read and written since the last call."""
        counts, self._traffic = self._traffic, dict.fromkeys(TRAFFIC, 0)
        return counts

    def below(self, page: int) -> Iterator[int]:
        """A page and all pages below it, without reading leaves."""
        yield page
        node = self[page]
        for child in node.children:
            if node.level > 1:
                yield from self.below(child.page)
            else:
                yield child.page

    def commit(self) -> None:
        """Writes the changed pages to the store, and removes the removed ones."""
        for page in sorted(self._removed):
            self.store.remove(page)
        for page in sorted(self._changed):
            blob = self._encode(self._nodes[page])
            self._traffic["pages_written"] += 1
            self._traffic["bytes_written"] += len(blob)
            self.store.put(page, blob)
        self._changed.clear()
        self._removed.clear()

    def trim(self, most: int) -> None:
        """Drops decoded pages, those read first, until at most `most` are left."""
        for page in list(self._nodes)[: max(0, len(self._nodes) - most)]:
            del self._nodes[page]

    def _encode(self, node: Node) -> bytes:
        schema = self.inner if node.level else self.leaf
        batches = node.rows.combine_chunks().to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema)
        children = b"".join(
            _CHILD.pack(child.page, child.first, child.last, child.folded)
            for child in node.children
        )
        body = children + batch.serialize().to_pybytes()
        header = _HEADER.pack(
            _MAGIC, _VERSION, node.level, len(node.children), zlib.crc32(body)
        )
        page: bytes = header + body
        return page

    def _decode(self, page: int, blob: bytes | memoryview) -> Node:
        try:
            magic, version, level, count, checksum = _HEADER.unpack_from(blob)
            if magic != _MAGIC or version != _VERSION:
                raise SnapshotError(
                    f"page {page} has another format: it was not written by this "
                    "version of slidewise"
                )
            body = memoryview(blob)[_HEADER.size :]
            if zlib.crc32(body) != checksum:
                raise SnapshotError(f"page {page} is damaged: its checksum differs")
            children = [
                Child(child, first, last, bool(folded))
                for child, first, last, folded in _CHILD.iter_unpack(
                    body[: count * _CHILD.size]
                )
            ]
            rows = pa.ipc.read_record_batch(
                pa.py_buffer(body[count * _CHILD.size :]),
                self.inner if level else self.leaf,
            )
        except (struct.error, pa.ArrowInvalid, OSError) as error:
            raise SnapshotError(f"page {page} is damaged: {error}") from error
        return Node(pa.Table.from_batches([rows]), level, children)
