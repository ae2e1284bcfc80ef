"""`Publisher`: writes what the commits of a stream change, for followers."""

from dataclasses import dataclass
from typing import Any, Self

from slidewise.errors import SpecError
from slidewise.keyed.processor import Processor, encode_directory
from slidewise.keyed.published import CHANGES, SNAPSHOT, Entry, Folder, visible
from slidewise.keyed.shard import Directory
from slidewise.keyed.snapshots import QueryHeads, pack

__all__ = ["Commit", "Published", "Publisher"]

# A snapshot is written once the changes since are as large, or this many, but not
# before they have some bytes.
_LEAST_BYTES = 1 << 16
_MOST_CHANGES = 1024


@dataclass(frozen=True, slots=True)
class Published:
    """What a bucket has published; a part of its state.

    Attributes:
        path: The folder.
        serial: The number of commits before the last one.
        own: The checksum of the last one.
        largest: The latest time seen, in ticks; None without rows.
        late: The number of late rows.
        ahead: The number of rows that were ahead of the clock.
        duplicates: The number of duplicates, by `unique_by=`.
        batch: The micro-batch of the last snapshot.
        size: The bytes of that snapshot.
        count: The number of changes since.
        nbytes: The bytes of these.
    """

    path: str
    serial: int
    own: int
    largest: int | None
    late: int
    ahead: int
    duplicates: int
    batch: int
    size: int
    count: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a bucket.

    Attributes:
        batch: The micro-batch.
        bucket: The bucket.
        watermark: The watermark, in ticks; None before the first.
        largest: The latest time of its rows, in ticks; None without rows.
        late: The number of its late rows.
        ahead: The number of its rows that were ahead of the clock.
        duplicates: The number of its duplicates.
        changed: The pages that were written, and None for those removed.
    """

    batch: int
    bucket: int
    watermark: int | None
    largest: int | None
    late: int
    ahead: int
    duplicates: int
    changed: dict[int, bytes | None]


class Publisher:
    """Writes the commits of a stream to a folder.

    Args:
        path: The folder.
        buckets: The number of buckets of the stream.
    """

    def __init__(self, path: str, buckets: int) -> None:
        self._folder, self._buckets = Folder(path), buckets
        self._heads, self._claimed = QueryHeads(), ""

    @property
    def path(self) -> str:
        """The folder."""
        return self._folder.path

    def claim(self, query: str) -> Self:
        """Makes the folder that of a query.

        Raises:
            SpecError: If it is that of another query.
        """
        if self._claimed != query:
            self._folder.claim(query, self._buckets)
            self._claimed = query
        return self

    def write(
        self,
        processor: Processor,
        directory: Directory,
        commit: Commit,
        before: Published | None,
    ) -> Published:
        """Writes a commit; gives what the state of the bucket records.

        Args:
            processor: The bucket, which has written its pages.
            directory: The result of its commit.
            commit: What it changed.
            before: What the state recorded; None if it was empty.
        """
        encoded = encode_directory(directory)
        head = self._head(processor, commit, before)
        serial = 0 if before is None else before.serial + 1
        is_whole = before is None
        follows = None if before is None else before.own
        blob, own = pack({**head, "follows": follows}, encoded, commit.changed)
        place = commit.batch, commit.bucket, serial
        if before is not None:
            self._folder.write(Entry(*place, follows, own, CHANGES).name, blob)
            count, nbytes = before.count + 1, before.nbytes + len(blob)
            batch, size = before.batch, before.size
            is_whole = nbytes >= max(size, _LEAST_BYTES) or count >= _MOST_CHANGES
        if is_whole:
            since = {"follows": None, "since": own}
            blob, _ = pack({**head, **since}, encoded, _pages(processor))
            self._folder.write(Entry(*place, None, own, SNAPSHOT).name, blob)
            if before is not None and before.batch < commit.batch:
                self._remove(commit.bucket, before.batch)
            batch, size, count, nbytes = commit.batch, len(blob), 0, 0
        return Published(
            path=self.path,
            serial=serial,
            own=own,
            largest=head["largest"],
            late=head["late"],
            ahead=head["ahead_count"],
            duplicates=head["duplicates"],
            batch=batch,
            size=size,
            count=count,
            nbytes=nbytes,
        )

    def _head(
        self, processor: Processor, commit: Commit, before: Published | None
    ) -> dict[str, Any]:
        """The query, and the position of the bucket."""
        query = processor.query
        times = [commit.largest, None if before is None else before.largest]
        return {
            **self._heads.of(query),
            # A follower ingests no rows, so it compares none with a clock.
            "ahead": None,
            "idle": None,
            "silent": 0,
            "delay": 0,
            "kept": processor.shard.retention,
            "largest": max((time for time in times if time is not None), default=None),
            "watermark": commit.watermark,
            "late": commit.late + (0 if before is None else before.late),
            "ahead_count": commit.ahead + (0 if before is None else before.ahead),
            "duplicates": commit.duplicates
            + (0 if before is None else before.duplicates),
        }

    def _remove(self, bucket: int, before: int) -> None:
        """Removes the files of a bucket before a micro-batch.

        That of the last snapshot is committed, so every follower can start from it.
        Files of writers that were killed are removed, too.
        """
        names = self._folder.names()
        of_names = ((name, Entry.of(visible(name))) for name in names)
        self._folder.remove(
            name
            for name, entry in of_names
            if entry is not None and entry.bucket == bucket and entry.batch < before
        )

    def require(self, before: Published | None, *, is_new: bool) -> None:
        """Checks that the state has published everything here, or is empty.

        Raises:
            SpecError: If it has not.
        """
        if before is None and not is_new:
            raise SpecError(
                "publish= was not given when this checkpoint began, so the folder "
                "would lack what it holds: give a new checkpointLocation (and the rows "
                "so far as initial=)"
            )
        if before is not None and before.path != self.path:
            raise SpecError(
                f"this checkpoint publishes to {before.path!r}, and publish= is "
                f"{self.path!r}: give the same folder, or a new checkpointLocation "
                "(and the rows so far as initial=)"
            )


def _pages(processor: Processor) -> dict[int, bytes | None]:
    """All pages of a state."""
    found: dict[int, bytes | None] = {}
    for page in processor.page_numbers:
        blob = processor.pages.store.get(page)
        assert blob is not None, "the state has its pages"
        found[page] = bytes(blob)
    return found
