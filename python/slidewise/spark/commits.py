"""Marks the micro-batches of published streams as committed, for their followers.

Spark tells the driver of a micro-batch after its commit, in a thread of its own. What
it could not tell, the driver reads from the commit log of the query: when it exits, and
if it was killed, when the query starts again.
"""

import atexit
from contextlib import suppress
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
        # The commit logs of the queries of the session, by their ids.
        self._logs: dict[str, Any] = {}
        atexit.register(self._at_exit)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Marks what the checkpoint has committed before this start."""
        if not hasattr(self._spark, "_jsparkSession"):
            return  # Spark Connect shows no logs
        query = self._spark._jsparkSession.streams().get(str(event.id))
        self._logs[str(event.id)] = query.streamingQuery().commitLog()
        self._mark_logged()

    def _mark_logged(self) -> None:
        """Marks what the commit log of the query has."""
        found = self._folder.query()
        log = None if found is None else self._logs.get(found["query"])
        if log is not None and (last := log.getLatestBatchId()).isDefined():
            self._folder.mark(int(last.get()))

    def _at_exit(self) -> None:
        with suppress(Exception):  # the JVM may be gone, or the folder
            self._mark_logged()

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Marks a micro-batch."""
        progress, found = event.progress, self._folder.query()
        is_own = found is not None and found["query"] == str(progress["id"])
        if is_own and "addBatch" in progress["durationMs"]:
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
