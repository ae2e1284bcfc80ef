"""Pages on the disk of a node, for the next worker that asks for them.

Spark gives a bucket's next micro-batch to whichever worker is idle, and one that has
not decoded the bucket's pages reads them from the state, at half a millisecond a page.
So each commit also leaves what it wrote and read as a *segment* in Spark's own folder
for temporary files: an immutable file, named by the token of the state that it belongs
to, which names the segment before it.

    state has token c:   segment c → segment b → segment a      a page: the first found

Nothing of it is trusted but that token: a state that was rolled back has another one,
and so other segments or none. A file that is missing ends the chain, and the state is
asked; the folder goes with the executor. Pages are read when they are asked for: a file
that is mapped into memory counts as memory of each worker that has it.
"""

import contextlib
import json
import os
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from slidewise.keyed.page_store import Store

__all__ = ["Shelf", "Shelved", "folder"]

# Bytes of segments that are kept per bucket, and how many of them: the worker that gets
# it next opens each.
_MOST = 1 << 25
_FILES = 128
# Files of others that nobody has used for so long were left behind by a failed attempt.
_OLD = 600.0
_HEADER = struct.Struct("<Q")


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
        size: Of the file.
        places: Where each page lies in it; None for one that was removed.
    """

    path: Path
    before: str
    size: int
    places: dict[int, tuple[int, int] | None]

    def read(self, page: int) -> bytes | None:
        """The bytes of a page; None if it was removed, or the file is gone."""
        place = self.places[page]
        if place is None:
            return None
        start, length = place
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                found = file.read(length)
        except OSError:
            return None
        return found if len(found) == length else None


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
        while token and size <= _MOST and len(shelf._segments) < _FILES:
            segment = _opened(shelf._path(token))
            if segment is None:
                break
            shelf._segments.append(segment)
            size += segment.size
            token = segment.before
        return shelf

    def _path(self, token: str) -> Path:
        return self.place / f"{self.name}-{token.replace(':', '-')}"

    def get(self, page: int) -> bytes | None:
        """The bytes of a page; None if it is not here."""
        for segment in self._segments:
            if page in segment.places:
                return segment.read(page)
        return None

    def add(self, before: str, token: str, pages: dict[int, bytes | None]) -> None:
        """Leaves a segment for the state with this token, and drops old ones."""
        path = self._path(token)
        hidden = path.with_name(f".{path.name}")
        blob, places = _segment(before, pages)
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            hidden.write_bytes(blob)
            hidden.rename(path)
        except OSError:
            # What lies here is older than the state from now on: that is asked.
            self._segments.clear()
            with contextlib.suppress(OSError):
                hidden.unlink(missing_ok=True)
            return
        self._segments.insert(0, _Segment(path, before, len(blob), places))
        with contextlib.suppress(OSError):
            self._drop()

    def _drop(self) -> None:
        """Removes segments that are of no use, and those that nobody has used for long.

        Of no use are those beyond the most, and at the end of the chain those of which
        every page is also in a younger one.
        """
        seen: set[int] = set()
        size = kept = 0
        for at, segment in enumerate(self._segments[:_FILES]):
            size += segment.size
            if size > _MOST:
                break
            pages = {page for page, place in segment.places.items() if place}
            if not pages <= seen or at == 0:
                kept = at + 1
            seen |= segment.places.keys()
        for segment in self._segments[kept:]:
            segment.path.unlink(missing_ok=True)
        del self._segments[kept:]
        ours = {segment.path for segment in self._segments}
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

    def get(self, page: int) -> bytes | None:
        """As in `slidewise.keyed.page_store.Store`."""
        if page in self._pages:
            return self._pages[page]
        found = None if self._shelf is None else self._shelf.get(page)
        if found is not None:
            self.hits += 1
            return found
        blob = self._store.get(page)
        if blob is None:
            return None
        read = self._pages[page] = bytes(blob)
        return read

    def put(self, page: int, blob: bytes) -> None:
        """As in `slidewise.keyed.page_store.Store`."""
        self._store.put(page, blob)
        self._pages[page] = blob

    def remove(self, page: int) -> None:
        """As in `slidewise.keyed.page_store.Store`."""
        self._store.remove(page)
        self._pages[page] = None

    def keep(self, before: str, token: str) -> None:
        """Leaves what was read and written for the state with this token."""
        if self._shelf is not None:
            self._shelf.add(before, token, self._pages)
        self._pages = {}


def _segment(
    before: str, pages: dict[int, bytes | None]
) -> tuple[bytes, dict[int, tuple[int, int] | None]]:
    """A file (length of its head, head, pages), and where pages lie in it."""
    places: dict[int, tuple[int, int] | None] = {}
    at = 0
    for page, blob in pages.items():
        places[page] = None if blob is None else (at, len(blob))
        at += 0 if blob is None else len(blob)
    head = json.dumps([before, list(places.items())], separators=(",", ":")).encode()
    blobs = [blob for blob in pages.values() if blob is not None]
    whole = b"".join([_HEADER.pack(len(head)), head, *blobs])
    return whole, _moved(places.items(), _HEADER.size + len(head))


def _moved(
    places: Iterable[tuple[int, tuple[int, int] | None]], start: int
) -> dict[int, tuple[int, int] | None]:
    """Places in a file whose pages begin there."""
    return {
        page: None if place is None else (place[0] + start, place[1])
        for page, place in places
    }


def _opened(path: Path) -> _Segment | None:
    """A segment; None if there is none."""
    try:
        with path.open("rb") as file:
            (length,) = _HEADER.unpack(file.read(_HEADER.size))
            before, places = json.loads(file.read(length))
            size = os.fstat(file.fileno()).st_size
    except (OSError, ValueError, struct.error):
        return None
    found = _moved(places, _HEADER.size + length)
    ends = (sum(place) for place in found.values() if place is not None)
    if max(ends, default=0) > size:
        return None
    return _Segment(path, before, size, found)
