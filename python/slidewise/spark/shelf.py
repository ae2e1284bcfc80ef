"""Pages on the disk of a node, for the next worker that asks for them.

Spark gives a bucket's next micro-batch to whichever worker is idle, and one that has
not decoded the bucket's pages reads them from the state, at half a millisecond a page.
So each commit also leaves what it wrote and read as a *segment* in Spark's own folder
for temporary files: an immutable file, named by the token of the state that it belongs
to, which names the segment before it.

    state has token c:   segment c → segment b → segment a      a page: the first found

Nothing of it is trusted but that token: a state that was rolled back has another one,
and so other segments or none. A file that is missing ends the chain, and the state is
asked; the folder goes with the executor.
"""

import contextlib
import json
import mmap
import os
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path

from slidewise.keyed.pages import Store

__all__ = ["Shelf", "Shelved", "folder"]

# Bytes of segments that are kept per bucket.
_MOST = 1 << 25
# Files of others that nobody has used for so long were left behind by a failed attempt.
_OLD = 600.0
_HEADER = struct.Struct("<Q")
_ALIGNED = 64


def folder() -> Path | None:
    """Where segments lie; None where Spark has no folder of its own."""
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return Path(places[0]) / "slidewise" if places[0] else None


@dataclass(slots=True)
class _Segment:
    """The pages of one commit.

    Attributes:
        path: Where the file is.
        before: The token of the segment before it.
        bytes: The file, mapped.
        places: Where each page lies in it; None for one that was removed.
    """

    path: Path
    before: str
    bytes: memoryview
    places: dict[int, tuple[int, int] | None]


@dataclass
class Shelf:
    """The segments of a bucket, the youngest first.

    Attributes:
        name: What the files' names begin with: a query and its bucket.
        place: The folder.
    """

    name: str
    place: Path
    _segments: list[_Segment] = field(default_factory=list)

    @classmethod
    def at(cls, name: str, place: Path, token: str) -> "Shelf":
        """The segments of the state with this token, as far as they are there."""
        shelf, size = cls(name, place), 0
        while token and size <= _MOST:
            segment = _opened(shelf._path(token))
            if segment is None:
                break
            shelf._segments.append(segment)
            size += len(segment.bytes)
            token = segment.before
        return shelf

    def _path(self, token: str) -> Path:
        return self.place / f"{self.name}-{token.replace(':', '-')}"

    def get(self, page: int) -> memoryview | None:
        """The bytes of a page; None if it is not here."""
        for segment in self._segments:
            if page in segment.places:
                found = segment.places[page]
                return None if found is None else segment.bytes[found[0] :][: found[1]]
        return None

    def add(self, before: str, token: str, pages: dict[int, bytes | None]) -> None:
        """Leaves a segment for the state with this token, and drops old ones."""
        with contextlib.suppress(OSError):
            self.place.mkdir(parents=True, exist_ok=True)
            path = self._path(token)
            hidden = path.with_name(f".{path.name}")
            hidden.write_bytes(_segment(before, pages))
            hidden.rename(path)
            segment = _opened(path)
            if segment is not None:
                self._segments.insert(0, segment)
            self._drop()

    def _drop(self) -> None:
        """Removes segments beyond the most, and those that nobody has used for long."""
        size, kept = 0, []
        for segment in self._segments:
            size += len(segment.bytes)
            if size > _MOST:
                segment.path.unlink(missing_ok=True)
            else:
                kept.append(segment)
        self._segments = kept
        ours = {segment.path for segment in kept}
        for path in self.place.glob(f"{self.name}-*"):
            if path not in ours and time.time() - path.stat().st_mtime > _OLD:
                path.unlink(missing_ok=True)


class Shelved:
    """A store of pages with a shelf before it."""

    def __init__(self, store: Store, shelf: Shelf | None) -> None:
        self._store, self._shelf = store, shelf
        # What the next segment holds.
        self._pages: dict[int, bytes | None] = {}
        self.hits = 0

    def get(self, page: int) -> bytes | memoryview | None:
        """As in `slidewise.keyed.pages.Store`."""
        if page in self._pages:
            return self._pages[page]
        found = None if self._shelf is None else self._shelf.get(page)
        if found is not None:
            self.hits += 1
            return found
        blob = self._store.get(page)
        if blob is not None:
            self._pages[page] = bytes(blob)
        return blob

    def put(self, page: int, blob: bytes) -> None:
        """As in `slidewise.keyed.pages.Store`."""
        self._store.put(page, blob)
        self._pages[page] = blob

    def remove(self, page: int) -> None:
        """As in `slidewise.keyed.pages.Store`."""
        self._store.remove(page)
        self._pages[page] = None

    def keep(self, before: str, token: str) -> None:
        """Leaves what was read and written for the state with this token."""
        if self._shelf is not None:
            self._shelf.add(before, token, self._pages)
        self._pages = {}


def _segment(before: str, pages: dict[int, bytes | None]) -> bytes:
    """A file: the length of its head, the head, and the pages."""
    places: dict[int, tuple[int, int] | None] = {}
    parts, at = [], 0
    for page, blob in pages.items():
        if blob is None:
            places[page] = None
            continue
        places[page] = (at, len(blob))
        padding = -len(blob) % _ALIGNED
        parts += [blob, bytes(padding)]
        at += len(blob) + padding
    head = json.dumps([before, list(places.items())], separators=(",", ":")).encode()
    head += b" " * (-(len(head) + _HEADER.size) % _ALIGNED)
    return b"".join([_HEADER.pack(len(head)), head, *parts])


def _opened(path: Path) -> _Segment | None:
    """A segment; None if there is none."""
    try:
        with path.open("rb") as file:
            held = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        (length,) = _HEADER.unpack_from(held)
        start = _HEADER.size + length
        before, places = json.loads(bytes(held[_HEADER.size : start]))
    except (OSError, ValueError, struct.error):
        return None
    found = {
        page: None if place is None else (place[0] + start, place[1])
        for page, place in places
    }
    ends = (sum(place) for place in found.values() if place is not None)
    if max(ends, default=0) > len(held):
        return None
    return _Segment(path, before, held, found)
