"""Marks the micro-batches of published streams as committed, for their followers.

Spark tells the driver of a micro-batch after its commit. If the driver is killed
between the two, the next start of the query marks it.
"""

from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql.streaming import StreamingQueryListener

from slidewise.keyed.published import Folder

__all__ = ["mark_commits"]


class _Marker(StreamingQueryListener):  # type: ignore[misc]
    """Marks the micro-batches of the query that publishes to a folder.

    Args:
        spark: The SparkSession of the query.
        path: The folder.
    """

    def __init__(self, spark: Any, path: str) -> None:
        self._spark, self._folder = spark, Folder(path)

    def _is_of(self, query: Any) -> bool:
        """Whether a query publishes to the folder."""
        found = self._folder.query()
        return found is not None and found["query"] == str(query)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Marks what the checkpoint has committed before this start."""
        if not self._is_of(event.id) or not hasattr(self._spark, "_jsparkSession"):
            return
        query = self._spark._jsparkSession.streams().get(str(event.id))
        last = query.streamingQuery().commitLog().getLatestBatchId()
        if last.isDefined():
            self._folder.mark(int(last.get()))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Marks a micro-batch."""
        progress = event.progress
        if "addBatch" in progress["durationMs"] and self._is_of(progress["id"]):
            self._folder.mark(int(progress["batchId"]))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Does nothing."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Does nothing."""


# The folders of each session whose micro-batches are marked.
_marked: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def mark_commits(spark: Any, path: str) -> None:
    """Marks the committed micro-batches of the query that publishes to a folder."""
    paths = _marked.setdefault(spark, set())
    if path not in paths:
        spark.streams.addListener(_Marker(spark, path))
        paths.add(path)
