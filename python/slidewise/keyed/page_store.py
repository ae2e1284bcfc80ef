"""Pages: what a stream keeps, in pieces that are read and written on their own.

A page holds rows (of a leaf), or the folds over its children (of an inner node), as one
Arrow record batch behind a header. A store keeps the bytes: a dict, or the state of a
streaming query. Pages once read stay decoded until they are forgotten.

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

# Columns of pages beside the user's: times as int64, what a row stands for if it stands
# for many, and the page that a row of an inner node stands for.
TIME = "__time"
PARTIAL = "__partial"
FOLDED = "__page"
# Of columns that are not kept: which rows are late, how many there are, whose they are.
FRESH = "__fresh"
ROWS = "__rows"
SLOT = "__slot"
# Which row of its batch a row is.
NUMBER = "__number"
# Of pages of last windows: the time of the key's latest row in them.
LAST = "__last"
# When rows of a table that is asked as of arrival came.
ARRIVAL = "__arrival"
RESERVED = (TIME, PARTIAL, FOLDED, FRESH, ROWS, SLOT, NUMBER, LAST, ARRIVAL)

_MAGIC = b"SWPG"
_VERSION = 1
_HEADER = struct.Struct("<4sHHII")
_CHILD = struct.Struct("<qqqq")


TRAFFIC = ("pages_read", "bytes_read", "pages_written", "bytes_written")


class Store(Protocol):
    """Where the bytes of pages lie."""

    def get(self, page: int) -> bytes | memoryview | None:
        """The bytes of a page; None if there is none."""

    def put(self, page: int, blob: bytes) -> None:
        """Keeps the bytes of a page."""

    def remove(self, page: int) -> None:
        """Forgets a page."""


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
        """Puts back what pages held before; None: there was no such page."""
        for page, blob in pages.items():
            if blob is None:
                self.remove(page)
            else:
                self.put(page, blob)


@dataclass(slots=True)
class Child:
    """A part of a node's time, on a page of its own.

    Attributes:
        page: Where it is.
        first: The time of its oldest row, in ticks.
        last: The time of its youngest row.
        folded: Whether the node above holds the folds over it.
    """

    page: int
    first: int
    last: int
    folded: bool = False


@dataclass(slots=True)
class Node:
    """A decoded page: rows in order of time (level 0), or folds over children.

    Attributes:
        rows: The rows; of an inner node, those that stand for its folded children, with
            their page in the column `__page`.
        level: Distance from the leaves.
        children: In order of time; none for a leaf.
    """

    rows: pa.Table
    level: int = 0
    children: list[Child] = field(default_factory=list)

    def check_arrays(self) -> None:
        """Checks what a checksum does not know: that offsets lie within their buffers.

        Raises:
            pyarrow.ArrowInvalid: If they do not.
        """
        self.rows.validate(full=True)


class Pages:
    """The decoded pages of a store, and what became of them since the last commit."""

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
        """The pages to be written or removed at the next commit."""
        return self._changed | self._removed

    def traffic(self) -> dict[str, int]:
        """Pages and bytes read and written since the last call."""
        told, self._traffic = self._traffic, dict.fromkeys(TRAFFIC, 0)
        return told

    def below(self, page: int) -> Iterator[int]:
        """A page and all pages below it; leaves are not read for that."""
        yield page
        node = self[page]
        for child in node.children:
            if node.level > 1:
                yield from self.below(child.page)
            else:
                yield child.page

    def commit(self) -> None:
        """Writes what changed, page after page."""
        for page in sorted(self._removed):
            self.store.remove(page)
        for page in sorted(self._changed):
            blob = self._encode(self._nodes[page])
            self._traffic["pages_written"] += 1
            self._traffic["bytes_written"] += len(blob)
            self.store.put(page, blob)
        self._changed.clear()
        self._removed.clear()

    def forget(self) -> None:
        """Drops what is decoded; it is read anew when needed."""
        self._nodes.clear()
        self._changed.clear()
        self._removed.clear()

    def trim(self, most: int) -> None:
        """Drops decoded pages, the longest known first, down to so many."""
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
