"""What the windows of a running query do: counts per micro-batch."""

from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener

from slidewise.errors import SpecError
from slidewise.spark.watermarks import seconds

__all__ = ["NAME", "Listener", "metrics"]

# The name under which a query's progress shows what the operators counted.
NAME = "slidewise"


# What is as of the last micro-batch, and not summed over several.
_STATES = ("state_bytes", "watermark")


def metrics(progress: Any, *, total: bool = True) -> dict[str, float]:
    """What the windows of a query did.

    Args:
        progress: A query since its start, or one of its progresses.
        total: Of a query, whether to sum over the micro-batches that Spark keeps (the
            last 100, unless `spark.sql.streaming.numRecentProgressUpdates` is set), or
            to tell the last one alone. After `availableNow=True` the last one often
            has no rows, and only gives the last answers.

    Returns:
        `rows` taken in and how many of them were `late`, how many `keys` had
        new rows (a key counts once per micro-batch),
        `answers` given and how many of them were `corrections`, `pages_read` and
        `pages_written` of the state with `bytes_read` and `bytes_written`, `calls` of
        the operator and how many of them found their state `cached` in the process,
        how many pages were not read from it but `shelved` on the node, and the
        `seconds` spent in them, summed over all tasks. And `state_bytes`, what the
        state store holds in its files and in memory, and, once there is one, the
        `watermark` of the micro-batch, in seconds since 1970: both of the last one. And
        how many `batches` this is about. Empty before the first micro-batch since the
        start, as where there was nothing new.

    Raises:
        SpecError: If it has run a micro-batch, and has no windows of slidewise.

    Example:
        >>> metrics(query)["late"]  # doctest: +SKIP
        3
    """
    is_query = hasattr(progress, "recentProgress")
    batches = [
        one
        for one in (progress.recentProgress if is_query else [progress])
        if _has_run(one)
    ]
    told = [_of_batch(one) for one in (batches if total else batches[-1:])]
    if not told:
        return {}
    names = [name for name in told[-1] if name not in _STATES]
    sums = {name: sum(one[name] for one in told) for name in names}
    states = {name: told[-1][name] for name in _STATES if name in told[-1]}
    return {**sums, **states, "batches": len(told)}


def _has_run(progress: Any) -> bool:
    """Whether there was a micro-batch; Spark also tells that there is nothing new."""
    return "addBatch" in progress["durationMs"]


def _of_batch(progress: Any) -> dict[str, float]:
    """What the windows did in a micro-batch.

    Raises:
        SpecError: If there are none.
    """
    found = (progress["observedMetrics"] or {}).get(NAME)
    if found is None:
        raise SpecError("this query has no windows of slidewise")
    counts = {name: value or 0 for name, value in _named(found).items()}
    return {**counts, "state_bytes": _held(progress), **_watermark(progress)}


def _named(observed: Any) -> dict[str, Any]:
    """Observed metrics by name, which Spark Connect tells beside their values."""
    told: dict[str, Any] = observed.asDict()
    if set(told) != {"values", "schema"}:
        return told
    names = (field["name"] for field in told["schema"]["fields"])
    return dict(zip(names, told["values"], strict=True))


def _held(progress: Any) -> float:
    """What RocksDB holds, in its files and in memory."""
    total = 0.0
    for operator in progress["stateOperators"]:
        custom = operator["customMetrics"]
        total += operator["memoryUsedBytes"] + custom.get("rocksdbSstFileSize", 0)
    return total


def _watermark(progress: Any) -> dict[str, float]:
    """The watermark, if there is one."""
    told = (progress["eventTime"] or {}).get("watermark")
    found = None if told is None else seconds(told)
    return {} if found is None else {"watermark": found}


class Listener(StreamingQueryListener):  # type: ignore[misc]
    """Tells the metrics of every micro-batch of every query with windows.

    Args:
        tell: Called with the progress and its `metrics`, in the driver.

    Example:
        >>> tell = lambda progress, counts: print(counts["late"])
        >>> spark.streams.addListener(Listener(tell))  # doctest: +SKIP
    """

    def __init__(self, tell: Callable[[Any, dict[str, float]], None]) -> None:
        self._tell = tell

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to tell yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Tells what a micro-batch did."""
        progress = event.progress
        if NAME in progress["observedMetrics"]:
            self._tell(progress, metrics(progress))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing to tell."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Nothing to tell."""
