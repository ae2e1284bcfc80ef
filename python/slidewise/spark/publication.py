"""What `migrate` publishes: the buckets of the new checkpoint, for followers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

from slidewise.errors import SpecError
from slidewise.keyed.processor import Processor
from slidewise.keyed.published import Folder
from slidewise.keyed.publisher import Commit, Published, Publisher
from slidewise.keyed.shard import Directory

__all__ = ["Publication"]


@dataclass(frozen=True)
class Publication:
    """The folder, and the position of the stream in it.

    Attributes:
        path: The folder.
        query: The id of the query.
        batch: The last micro-batch that was committed.
        watermark: The watermark of it.
        before: What the buckets of the old checkpoint have published.
        buckets: The number of new buckets.
    """

    path: str
    query: str
    batch: int
    watermark: int | None
    before: tuple[Published, ...]
    buckets: int

    @classmethod
    def of(
        cls,
        publish: str | None,
        heads: Sequence[dict[str, Any]],
        *,
        query: str,
        batch: int,
        watermark: int | None,
        buckets: int,
    ) -> Self | None:
        """That of a stream, by the heads of its old buckets; None if it has none.

        Raises:
            SpecError: If the stream publishes and `publish` is no new folder for it, or
                it does not publish.
        """
        before = [
            Published(**head["published"]) for head in heads if "published" in head
        ]
        if publish is None and before:
            raise SpecError(
                f"the stream publishes to {before[0].path!r}, where followers read its "
                "buckets: give publish=, an empty folder, which the stream then has"
            )
        if publish is None:
            return None
        if not before:
            raise SpecError(
                "publish= is the folder of a stream that publishes, and this one does "
                "not: leave it out"
            )
        folder = Folder(publish)
        if folder.names():
            raise SpecError(
                f"publish={folder.path!r} has files, and migrate publishes to a new "
                "folder: give an empty one"
            )
        return cls(folder.path, query, batch, watermark, tuple(before), buckets)

    @cached_property
    def _publisher(self) -> Publisher:
        return Publisher(self.path, self.buckets).claim(self.query)

    def write(
        self, processor: Processor, directory: Directory, bucket: int
    ) -> dict[str, Any]:
        """Writes the snapshot of a new bucket; gives what its head records of it.

        Followers add the counts of buckets, so the first one has those of all.
        """
        before = self.before if bucket == 0 else ()
        commit = Commit(
            batch=self.batch,
            bucket=bucket,
            watermark=self.watermark,
            largest=max(
                (each.largest for each in self.before if each.largest is not None),
                default=None,
            ),
            late=sum(each.late for each in before),
            ahead=sum(each.ahead for each in before),
            duplicates=sum(each.duplicates for each in before),
            changed={},
        )
        return asdict(self._publisher.write(processor, directory, commit, None))

    def mark(self) -> None:
        """Shows the snapshots to followers."""
        Folder(self.path).mark(self.batch)

    def remove(self) -> None:
        """Removes what was written."""
        folder = Folder(self.path)
        folder.remove(folder.names())
