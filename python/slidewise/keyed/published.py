"""The folder of a published stream: its files, whose names tell what they hold.

```text
query.json                                            the query, and its buckets
<batch>-<bucket>-<serial>-<follows>-<own>.changes     what a commit of a bucket changed
<batch>-<bucket>-<serial>-<own>.snapshot              the whole state of a bucket
<batch>.committed                                     micro-batches up to it committed
```

A bucket numbers its commits by *serials*. `own` and `follows` are the checksums of a
commit and of the one before it. Files do not change, and have their names only once
they are complete. A micro-batch that is run again writes other files of the same
serials, which follow the same ones.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.fs as pafs

from slidewise.errors import SnapshotError, SpecError

__all__ = ["CHANGES", "SNAPSHOT", "Entry", "Folder", "committed", "paths_to", "visible"]

CHANGES, SNAPSHOT = "changes", "snapshot"
_COMMITTED = "committed"
_QUERY = "query.json"
# The format of the folder.
_FORMAT = 1


class Entry(NamedTuple):
    """A file of a bucket.

    Attributes:
        batch: The micro-batch.
        bucket: The bucket.
        serial: How many commits of the bucket there were before.
        follows: The checksum of the commit before; None in a snapshot.
        own: The checksum of the commit.
        kind: `CHANGES` or `SNAPSHOT`.
    """

    batch: int
    bucket: int
    serial: int
    follows: int | None
    own: int
    kind: str

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{'-'.join(str(x) for x in self[:5] if x is not None)}.{self.kind}"

    @classmethod
    def of(cls, name: str) -> Self | None:
        """The entry of a name; None for other files."""
        stem, _, kind = name.partition(".")
        fields = stem.split("-")
        if not all(map(str.isdecimal, fields)):
            return None
        numbers = [int(field) for field in fields]
        if kind == SNAPSHOT and len(numbers) == 4:
            batch, bucket, serial, own = numbers
            return cls(batch, bucket, serial, None, own, kind)
        if kind == CHANGES and len(numbers) == 5:
            batch, bucket, serial, follows, own = numbers
            return cls(batch, bucket, serial, follows, own, kind)
        return None


class Folder:
    """A folder of a file system that Arrow knows, such as `/data/x` or `s3://a/x`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        if "://" not in self.path:
            self.path = str(Path(self.path).absolute())
        try:
            self._files, self._base = pafs.FileSystem.from_uri(self.path)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise SpecError(f"{self.path!r} is no folder: {error}") from error

    def names(self) -> list[str]:
        """The names of the files; none if there is no folder."""
        selector = pafs.FileSelector(self._base, allow_not_found=True)
        return [info.base_name for info in self._files.get_file_info(selector)]

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            FileNotFoundError: If it is missing.
        """
        with self._files.open_input_stream(f"{self._base}/{name}") as file:
            found: bytes = file.read()
        return found

    def write(self, name: str, blob: bytes) -> None:
        """Writes a file, which has its name only once it is complete."""
        # `visible` gives the name again.
        hidden = f"{self._base}/.{name}.{secrets.token_hex(4)}"
        with self._files.open_output_stream(hidden) as file:
            file.write(blob)
        self._files.move(hidden, f"{self._base}/{name}")

    def remove(self, names: Iterable[str]) -> None:
        """Removes files, if they are there."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self._files.delete_file(f"{self._base}/{name}")

    def claim(self, query: str, buckets: int) -> None:
        """Makes this the folder of a query.

        Raises:
            SpecError: If it is that of another query.
        """
        found = self.query()
        if found is None:
            self._files.create_dir(self._base)
            head = {"format": _FORMAT, "query": query, "buckets": buckets}
            self.write(_QUERY, json.dumps(head).encode())
            found = self.query()
        if found is None or found["query"] != query:
            raise SpecError(
                f"another query publishes to {self.path!r}: give each query, and each "
                "new checkpoint, a folder of its own in publish="
            )

    def query(self) -> dict[str, Any] | None:
        """The query that publishes here, by its id, and its buckets; None for none.

        Raises:
            SnapshotError: If the file is damaged, or of another format.
        """
        try:
            found = json.loads(self.read(_QUERY))
            number = found["format"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise SnapshotError(
                f"{_QUERY} in {self.path!r} is damaged ({error!r}): let the stream "
                "publish to another folder, from a new checkpoint"
            ) from error
        if number != _FORMAT:
            raise SnapshotError(
                f"the folder {self.path!r} has format {number}, and this version of "
                f"slidewise reads {_FORMAT}"
            )
        return dict(found)

    def mark(self, batch: int) -> None:
        """Marks a micro-batch as committed, with all before it."""
        marks = {_marked(name): name for name in self.names()}
        if batch not in marks:
            self.write(f"{batch}.{_COMMITTED}", b"")
        self.remove(name for at, name in marks.items() if at is not None and at < batch)


def visible(name: str) -> str:
    """The name of a file once it is complete."""
    return name[1:].rpartition(".")[0] if name.startswith(".") else name


def _marked(name: str) -> int | None:
    """The micro-batch that a file marks as committed; None for other files."""
    stem, _, kind = name.partition(".")
    return int(stem) if kind == _COMMITTED and stem.isdecimal() else None


def committed(names: Iterable[str]) -> tuple[int, list[Entry]]:
    """The last committed micro-batch, -1 for none, and the entries up to it.

    Spark starts a micro-batch once the one before it is committed.
    """
    names = [*names]
    entries = [entry for entry in map(Entry.of, names) if entry is not None]
    marks = [mark for mark in map(_marked, names) if mark is not None]
    last = max([*marks, *(entry.batch - 1 for entry in entries)], default=-1)
    return last, [entry for entry in entries if entry.batch <= last]


def paths_to(
    last: Iterable[Entry], known: int | None
) -> tuple[Entry | None, list[Entry]] | None:
    """The files that lead to the last commit of a bucket.

    Args:
        last: The entries of the bucket.
        known: The checksum of the commit that is known; None for none.

    Returns:
        A snapshot, or None if the path begins with the known commit; and the changes
        since. None if files are missing.
    """
    entries = [*last]
    by_own: dict[int, dict[str, Entry]] = {}
    for entry in entries:
        by_own.setdefault(entry.own, {})[entry.kind] = entry
    serial = max(entry.serial for entry in entries)
    tips = sorted({entry.own for entry in entries if entry.serial == serial})
    found: tuple[Entry | None, list[Entry]] | None = None
    for own in tips:
        changes: list[Entry] = []
        start: int | None = own
        snapshot: tuple[Entry, int] | None = None
        while start != known and start in by_own:
            kinds = by_own[start]
            if SNAPSHOT in kinds and snapshot is None:
                snapshot = kinds[SNAPSHOT], len(changes)
            if CHANGES not in kinds:
                break
            changes.append(kinds[CHANGES])
            start = kinds[CHANGES].follows
        if start == known and known is not None:
            return None, changes[::-1]
        if snapshot is not None and found is None:
            found = snapshot[0], changes[: snapshot[1]][::-1]
    return found
