"""Metrics of running queries: rows, results and state of each micro-batch."""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener

from slidewise.errors import SpecError
from slidewise.measuring import AGES, BATCHES, Histogram, Reading, observe
from slidewise.spark.watermarks import WATERMARK, seconds

__all__ = ["OBSERVATION", "Listener", "metrics"]

# The name of the observed metrics in a query's progress.
OBSERVATION = "slidewise"

# Metrics that are not summed: the value of the last micro-batch applies.
_GAUGES = ("state_bytes", WATERMARK)


def metrics(progress: Any, *, total: bool = True) -> dict[str, float]:
    """Returns the metrics of a query's windows, as sums over its micro-batches.

    Args:
        progress: A `StreamingQuery`, for its micro-batches since it was started; or one
            of its `recentProgress`, for one micro-batch.
        total: bool, for a query: True sums over the micro-batches that Spark keeps (the
            last 100, or `spark.sql.streaming.numRecentProgressUpdates`), False takes
            the last one only. After `availableNow=True` the last one often has no
            rows, and only emits the last results.

    Returns:
        A dict of numbers; empty before the first micro-batch since the start, and if
        there was no new data:

        - `rows` ingested, among them `late` ones, those `ahead` of the clock and
          `duplicates`, and `keys` with new rows (a key counts once per micro-batch);
        - `answers`: rows emitted, `corrections` among them;
        - `pages_read`, `pages_written`, `bytes_read`, `bytes_written`: of the state;
        - `calls` of the operator, and `cached`, the calls that found their state
          decoded in the worker process;
        - `cached_pages`: pages read from the cache on the node's disk instead of the
          state;
        - `seconds` spent in the operator, summed over all tasks;
        - `state_bytes`: the size of the state store after the last micro-batch, in its
          files and in memory;
        - `watermark`: that of the last micro-batch, in seconds since 1970; missing
          before the first watermark;
        - `batches`: the number of micro-batches summed.

    Cost:
        No job: O(number of micro-batches), from what Spark has reported.

    Raises:
        SpecError: If the query has run a micro-batch without windows of slidewise.

    Example:
        >>> metrics(query)["late"]  # doctest: +SKIP
        3
    """
    is_query = hasattr(progress, "recentProgress")
    batches = [
        batch
        for batch in (progress.recentProgress if is_query else [progress])
        if _has_run(batch)
    ]
    counts = [_batch_metrics(batch) for batch in (batches if total else batches[-1:])]
    if not counts:
        return {}
    last = counts[-1]
    sums = {
        name: sum(batch[name] for batch in counts)
        for name in last
        if name not in _GAUGES
    }
    gauges = {name: last[name] for name in _GAUGES if name in last}
    return {**sums, **gauges, "batches": len(counts)}


def _has_run(progress: Any) -> bool:
    """Whether a micro-batch has run; Spark also reports progress without one."""
    return "addBatch" in progress["durationMs"]


def _batch_metrics(progress: Any) -> dict[str, float]:
    """Returns the metrics of one micro-batch."""
    observed = (progress["observedMetrics"] or {}).get(OBSERVATION)
    if observed is None:
        raise SpecError("this query has no windows of slidewise")
    values = _by_name(observed)
    mark = values.pop(WATERMARK, None)
    counts = {name: value or 0 for name, value in values.items()}
    watermark = _watermark(progress) if mark is None else {WATERMARK: mark / 1e6}
    return {**counts, "state_bytes": _state_bytes(progress), **watermark}


def _by_name(observed: Any) -> dict[str, Any]:
    """Returns observed metrics by name; Spark Connect sends two lists."""
    row: dict[str, Any] = observed.asDict()
    if set(row) != {"values", "schema"}:
        return row
    names = (field["name"] for field in row["schema"]["fields"])
    return dict(zip(names, row["values"], strict=True))


def _state_bytes(progress: Any) -> float:
    """Returns the size of RocksDB, in its files and in memory."""
    total = 0.0
    for operator in progress["stateOperators"]:
        custom = operator["customMetrics"]
        total += operator["memoryUsedBytes"] + custom.get("rocksdbSstFileSize", 0)
    return total


def _watermark(progress: Any) -> dict[str, float]:
    """Returns Spark's watermark under its name; empty before the first one."""
    shifted = (progress["eventTime"] or {}).get("watermark")
    watermark = None if shifted is None else seconds(shifted)
    return {} if watermark is None else {WATERMARK: watermark}


class Listener(StreamingQueryListener):  # type: ignore[misc]
    """Keeps the metrics of all queries with windows, and tells those of micro-batches.

    `slidewise.metrics` exports what it keeps.

    Args:
        tell: A function of the progress and its `metrics`, called in the driver after
            each micro-batch of each query of the session that has windows of slidewise.
            Default: none is called.

    Cost:
        No job. Spark calls all listeners in one thread: a slow function delays the
        reports of all queries, but not the queries. It keeps some kilobytes per query,
        also after the query ended: a query that is started again has the same name.

    Example:
        >>> report = lambda progress, counts: print(counts["late"])
        >>> spark.streams.addListener(Listener(report))  # doctest: +SKIP
    """

    def __init__(
        self, tell: Callable[[Any, dict[str, float]], None] | None = None
    ) -> None:
        self._report = tell
        self._streams: dict[str, _Totals] = {}

    def metrics(self) -> dict[str, dict[str, float]]:
        """Returns the metrics of each query since the listener was added.

        Returns:
            A dict by the name of the query, or its id if it has none: what `metrics`
            gives, over all micro-batches since, and `latest`, the latest time of the
            rows of a micro-batch, in seconds since 1970.

        Cost: O(queries).

        Example:
            >>> listener.metrics()["features"]["late"]  # doctest: +SKIP
            3
        """
        return {name: of.values for name, of in list(self._streams.items())}

    def _measured(self) -> list[Reading]:
        """What an exporter reads."""
        return [
            Reading(name, of.values, of.histograms)
            for name, of in list(self._streams.items())
        ]

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Does nothing."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Reports a micro-batch."""
        progress = event.progress
        if OBSERVATION not in progress["observedMetrics"]:
            return
        counts = metrics(progress)
        if counts:
            name = progress["name"] or str(progress["id"])
            self._streams.setdefault(name, _Totals()).add(progress, counts)
        if self._report is not None:
            self._report(progress, counts)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Does nothing."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Does nothing."""


class _Totals:
    """The metrics of a query.

    Attributes:
        values: Those that `metrics` gives, and `latest`; replaced, never changed.
        histograms: Of the durations of micro-batches, and of their rows' freshness.
    """

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.histograms = {
            "batch_duration": Histogram(BATCHES),
            "freshness": Histogram(AGES),
        }

    def add(self, progress: Any, counts: Mapping[str, float]) -> None:
        """Adds a micro-batch."""
        before = self.values
        values = {
            name: value if name in _GAUGES else before.get(name, 0) + value
            for name, value in counts.items()
        }
        duration = progress["durationMs"]["triggerExecution"] / 1e3
        shifted = (progress["eventTime"] or {}).get("max")
        latest = None if shifted is None else seconds(shifted)
        durations, ages = self.histograms.values()
        observe(durations, duration, ages, latest)
        if latest is not None:
            values["latest"] = max(latest, before.get("latest", latest))
        self.values = {**before, **values}
