"""A cache of state pages on the local disk of a node, shared by its Python workers.

Spark gives a bucket's next micro-batch to any idle worker. A worker that has not
decoded the bucket's pages reads them from the state store, at half a millisecond a
page. So each commit also writes the pages that it read and wrote into a *segment* in
the bucket's folder, among Spark's temporary files. A segment is an immutable file,
named by the token of its state; it contains the token of the segment before it.

    state has token c:   segment c → segment b → segment a     page: from the first

Invariants:

1. A segment is read only if the state's token leads to it: a state that was rolled back
   has a different token, and so different segments or none.
2. A missing or short file ends the chain, and its pages are read from the state store.
   The folder is deleted with the executor.
3. Pages are read on demand, not mapped: a mapped file counts as memory of each worker.
"""

import contextlib
import json
import os
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import SupportsBytes

from slidewise.keyed.page_store import Store

__all__ = ["CachedStore", "LocalPageCache", "cache_folder"]

# The most bytes and segments per bucket; a worker that gets the bucket opens them all.
_MAX_BYTES = 1 << 25
_MAX_SEGMENTS = 128
# Seconds after which unused files of a failed attempt are deleted.
_STALE_SECONDS = 600.0
_HEADER = struct.Struct("<Q")

# Start and length of a page in its file; None for a page that was removed.
Extent = tuple[int, int] | None


def cache_folder() -> Path | None:
    """Returns the folder of segments; None where Spark has no local folder."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return Path(folders[0]) / "slidewise" if folders[0] else None


@dataclass(slots=True)
class _Segment:
    """The pages that one commit read and wrote.

    Attributes:
        path: The file.
        parent: The token of the segment before it.
        size: The size of the file, in bytes.
        extents: Start and length of each page in the file.
    """

    path: Path
    parent: str
    size: int
    extents: dict[int, Extent]

    def read(self, page: int) -> bytes | None:
        """Reads a page; None if it was removed, or the file is gone."""
        extent = self.extents[page]
        if extent is None:
            return None
        start, length = extent
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                found = file.read(length)
        except OSError:
            return None
        return found if len(found) == length else None


@dataclass
class LocalPageCache:
    """The segments of a bucket, the latest first.

    Attributes:
        folder: The folder of the files of this bucket only.
    """

    folder: Path
    _segments: list[_Segment] = field(default_factory=list)

    @classmethod
    def open(cls, folder: Path, token: str) -> "LocalPageCache":
        """Opens the chain of segments of the state with this token."""
        cache, size = cls(folder), 0
        while token and size <= _MAX_BYTES and len(cache._segments) < _MAX_SEGMENTS:
            segment = _open_segment(cache._path(token))
            if segment is None:
                break
            cache._segments.append(segment)
            size += segment.size
            token = segment.parent
        return cache

    def _path(self, token: str) -> Path:
        return self.folder / token.replace(":", "-")

    def get(self, page: int) -> bytes | None:
        """Reads a page; None if no segment has it."""
        for segment in self._segments:
            if page in segment.extents:
                return segment.read(page)
        return None

    def add(self, parent: str, token: str, pages: dict[int, bytes | None]) -> None:
        """Writes the segment of the state with this token, and evicts old segments."""
        path = self._path(token)
        hidden = path.with_name(f".{path.name}")
        parts, extents = _encode(parent, pages)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with hidden.open("wb") as file:
                file.writelines(parts)
            hidden.rename(path)
        except OSError:
            # The remaining segments are older than the state: drop them all.
            self._segments.clear()
            with contextlib.suppress(OSError):
                hidden.unlink(missing_ok=True)
            return
        self._segments.insert(0, _Segment(path, parent, sum(map(len, parts)), extents))
        with contextlib.suppress(OSError):
            self._evict()

    def _evict(self) -> None:
        """Deletes segments over the limits, superseded ones, and stale files.

        Superseded are the segments at the end of the chain whose every page is also in
        a later one.
        """
        seen: set[int] = set()
        size = kept = 0
        for at, segment in enumerate(self._segments[:_MAX_SEGMENTS]):
            size += segment.size
            if size > _MAX_BYTES:
                break
            pages = {page for page, extent in segment.extents.items() if extent}
            if not pages <= seen or at == 0:
                kept = at + 1
            seen |= segment.extents.keys()
        for segment in self._segments[kept:]:
            segment.path.unlink(missing_ok=True)
        del self._segments[kept:]
        ours = {segment.path.name for segment in self._segments}
        with os.scandir(self.folder) as files:
            for file in files:
                is_other = file.name not in ours
                if is_other and time.time() - file.stat().st_mtime > _STALE_SECONDS:
                    Path(file).unlink(missing_ok=True)


class CachedStore:
    """A page store that reads through a `LocalPageCache`, if there is one.

    The store gets every write.
    """

    def __init__(self, store: Store, cache: LocalPageCache | None) -> None:
        self._store, self._cache = store, cache
        # The pages of the next segment.
        self._pages: dict[int, bytes | None] = {}
        self.hits = 0

    def get(self, page: int) -> bytes | None:
        """Reads a page; None if there is none."""
        if page in self._pages:
            return self._pages[page]
        found = None if self._cache is None else self._cache.get(page)
        if found is not None:
            self.hits += 1
            return found
        blob = self._store.get(page)
        if blob is None:
            return None
        read = self._pages[page] = bytes(blob)
        return read

    def put(self, page: int, blob: SupportsBytes) -> None:
        """Writes a page."""
        written = self._pages[page] = bytes(blob)
        self._store.put(page, written)

    def remove(self, page: int) -> None:
        """Removes a page."""
        self._store.remove(page)
        self._pages[page] = None

    def commit(self, parent: str, token: str) -> None:
        """Writes the pages read and written as the segment of the state `token`."""
        if self._cache is not None:
            self._cache.add(parent, token, self._pages)
        self._pages = {}


def _encode(
    parent: str, pages: dict[int, bytes | None]
) -> tuple[list[bytes], dict[int, Extent]]:
    """Encodes a segment: length of the head, head, pages; also returns the extents."""
    extents: dict[int, Extent] = {}
    at = 0
    for page, blob in pages.items():
        extents[page] = None if blob is None else (at, len(blob))
        at += 0 if blob is None else len(blob)
    head = json.dumps([parent, list(extents.items())], separators=(",", ":")).encode()
    blobs = [blob for blob in pages.values() if blob is not None]
    encoded = [_HEADER.pack(len(head)), head, *blobs]
    return encoded, _shift(extents.items(), _HEADER.size + len(head))


def _shift(extents: Iterable[tuple[int, Extent]], start: int) -> dict[int, Extent]:
    """Returns extents in a file whose pages begin at `start`."""
    return {
        page: None if extent is None else (extent[0] + start, extent[1])
        for page, extent in extents
    }


def _open_segment(path: Path) -> _Segment | None:
    """Reads the head of a segment; None if the file is missing or short."""
    try:
        with path.open("rb") as file:
            (length,) = _HEADER.unpack(file.read(_HEADER.size))
            parent, encoded = json.loads(file.read(length))
            size = os.fstat(file.fileno()).st_size
    except (OSError, ValueError, struct.error):
        return None
    extents = _shift(encoded, _HEADER.size + length)
    ends = (sum(extent) for extent in extents.values() if extent is not None)
    if max(ends, default=0) > size:
        return None
    return _Segment(path, parent, size, extents)
