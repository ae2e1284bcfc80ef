"""Pages: the units in which the state of a stream is read and written.

A page is one Arrow record batch as an IPC message, behind the header of its format. A
store holds the bytes: a dict, or the state of a streaming query. A page that was read
stays decoded until it is trimmed. The bytes of a new page are made when they are
requested: a page of few rows is merged with others soon, so many are in no snapshot.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, SupportsBytes

import pyarrow as pa

from slidewise.caching import cached_property
from slidewise.errors import SnapshotError
from slidewise.keyed.columns import NUMBER, TIME, bytes_of, one_batch
from slidewise.keyed.formats import Format

__all__ = ["MemoryStore", "Page", "Pages", "Store", "buffers_of"]

_PAGE = Format(b"SWPG", 1)
_TRAFFIC = ("pages_read", "bytes_read", "pages_written", "bytes_written")


class Page:
    """The rows of a page, in memory that does not change, before its bytes are made."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows.combine_chunks()

    def __bytes__(self) -> bytes:
        """The page as it is stored."""
        return _PAGE.seal(one_batch(self.rows).serialize())[0]

    @cached_property
    def _size(self) -> int:
        body: int = pa.ipc.get_record_batch_size(one_batch(self.rows))
        return _PAGE.size(body)

    def __len__(self) -> int:
        """The number of bytes, which depends on the rows only."""
        return self._size

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles a page as bytes."""
        return bytes, (bytes(self),)


class Store(Protocol):
    """A store of the bytes of pages."""

    def get(self, page: int) -> bytes | memoryview | None:
        """The bytes of a page, or None."""

    def put(self, page: int, blob: SupportsBytes) -> None:
        """Stores the bytes of a page, which may be made later."""

    def remove(self, page: int) -> None:
        """Removes a page."""


class MemoryStore:
    """Pages in a dict."""

    def __init__(self) -> None:
        self._pages: dict[int, bytes | Page] = {}

    def get(self, page: int) -> bytes | None:
        """The bytes of a page, made now if they were not, or None."""
        found = self._pages.get(page)
        return None if found is None else bytes(found)

    def put(self, page: int, blob: SupportsBytes) -> None:
        """Stores a page; its bytes are made when they are requested."""
        self._pages[page] = blob if isinstance(blob, Page) else bytes(blob)

    def remove(self, page: int) -> None:
        """Removes a page, if it is stored."""
        self._pages.pop(page, None)

    @property
    def page_numbers(self) -> set[int]:
        """The numbers of the pages."""
        return {*self._pages}

    def blobs(self) -> dict[int, bytes]:
        """The bytes of all pages."""
        return {page: bytes(blob) for page, blob in self._pages.items()}

    @property
    def nbytes(self) -> int:
        """The number of these bytes."""
        return sum(map(len, self._pages.values()))

    def tables(self) -> Iterator[pa.Table]:
        """The rows of the pages whose bytes were not made yet."""
        yield from (
            page.rows for page in self._pages.values() if isinstance(page, Page)
        )

    def held(self, pages: Iterable[int]) -> dict[int, SupportsBytes | None]:
        """The contents of some pages; None for those that are missing."""
        return {page: self._pages.get(page) for page in pages}

    def restore(self, pages: Mapping[int, SupportsBytes | None]) -> None:
        """Restores the earlier contents of pages; None removes a page."""
        for page, blob in pages.items():
            if blob is None:
                self.remove(page)
            else:
                self.put(page, blob)


class Pages:
    """The decoded pages of a store, and their changes since the last commit.

    A page never changes: other rows make another page.

    Args:
        store: The store.
        trusts: Whether pages are known to hold valid arrays. If not, the arrays are
            validated: a checksum shows only that the bytes are unchanged.
    """

    def __init__(self, store: Store, *, trusts: bool = True) -> None:
        self.store = store
        self.trusts = trusts
        self.next_page = 0
        # Least recently read first.
        self._tables: OrderedDict[int, pa.Table] = OrderedDict()
        # The pages that no commit has written yet.
        self._written: dict[int, Page] = {}
        self._removed: set[int] = set()
        self._traffic = dict.fromkeys(_TRAFFIC, 0)

    def add(self, table: pa.Table) -> int:
        """Adds a page of rows, in memory that does not change; returns its number."""
        page = self.next_page
        self.next_page += 1
        written = self._written[page] = Page(table)
        self._tables[page] = written.rows
        return page

    def size(self, page: int) -> int:
        """The bytes of a page that no commit has written yet."""
        return len(self._written[page])

    def read(self, page: int, schema: pa.Schema) -> pa.Table:
        """The rows of a page.

        Raises:
            SnapshotError: If it is missing or damaged.
        """
        table = self._tables.get(page)
        if table is None:
            blob = self.store.get(page)
            if blob is None:
                raise SnapshotError(f"page {page} is missing from the state")
            self._traffic["pages_read"] += 1
            self._traffic["bytes_read"] += len(blob)
            table = _decode(page, blob, schema)
            if not self.trusts:
                table.validate(full=True)
            self._tables[page] = table
        else:
            self._tables.move_to_end(page)
        return table

    def check(self, page: int, schema: pa.Schema, count: int) -> None:
        """Reads a page; checks its number of rows, and that no time is missing.

        Raises:
            SnapshotError: If a check fails, or the page is missing or damaged.
        """
        rows = self.read(page, schema)
        needed = [name for name in (TIME, NUMBER) if name in schema.names]
        if len(rows) != count or any(rows[name].null_count for name in needed):
            raise SnapshotError(f"page {page} has other rows than the directory states")

    def remove(self, page: int) -> None:
        """Removes a page."""
        self.drop([page])
        if page in self._written:
            del self._written[page]
        else:
            self._removed.add(page)

    def drop(self, pages: Iterable[int]) -> None:
        """Drops decoded pages that may differ from those of the store."""
        for page in pages:
            self._tables.pop(page, None)

    def keep(self, pages: Iterable[int]) -> None:
        """Drops all decoded pages but some."""
        self.drop(self._tables.keys() - set(pages))

    @property
    def changed(self) -> set[int]:
        """The pages that the next commit writes or removes."""
        return self._written.keys() | self._removed

    def traffic(self) -> dict[str, int]:
        """Pages and bytes read and written since the last call."""
        counts, self._traffic = self._traffic, dict.fromkeys(_TRAFFIC, 0)
        return counts

    def commit(self) -> None:
        """Writes the new pages to the store, and removes the removed ones."""
        for page in sorted(self._removed):
            self.store.remove(page)
        for page in sorted(self._written):
            blob = self._written[page]
            self._traffic["pages_written"] += 1
            self._traffic["bytes_written"] += len(blob)
            self.store.put(page, blob)
        self._written.clear()
        self._removed.clear()

    def decoded(self) -> list[pa.Table]:
        """The decoded pages."""
        return [*self._tables.values()]

    def trim(self, most: int) -> None:
        """Drops decoded pages, least recently read first, until `most` bytes remain."""
        held = sum(bytes_of(table) for table in self._tables.values())
        for page in list(self._tables):
            if held <= most:
                break
            if page not in self._written:
                held -= bytes_of(self._tables.pop(page))


def buffers_of(table: pa.Table) -> dict[int, int]:
    """The sizes of the buffers of a table, by address."""
    return {
        buffer.address: buffer.size
        for column in table.columns
        for chunk in column.chunks
        for buffer in chunk.buffers()
        if buffer is not None
    }


def _decode(page: int, blob: bytes | memoryview, schema: pa.Schema) -> pa.Table:
    body, _ = _PAGE.open(blob, f"page {page}")
    try:
        # A copy is aligned; behind the header, offsets of eight bytes are not.
        batch = pa.ipc.read_record_batch(pa.py_buffer(bytes(body)), schema)
        return pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, OSError) as error:
        raise SnapshotError(f"page {page} is damaged: {error}") from error
