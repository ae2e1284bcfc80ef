"""The progress of a stream on Spark, for the report of `slidewise stream`."""

from collections.abc import Iterable, Iterator
from typing import Any

from slidewise.cli.progress import Batch
from slidewise.spark.listener import OBSERVATION, metrics
from slidewise.spark.watermarks import text_of

__all__ = ["Batches"]


class Batches:
    """The micro-batches of a query, each once."""

    def __init__(self) -> None:
        self._last = -1

    def since(self, progresses: Iterable[Any]) -> Iterator[Batch]:
        """Those of the latest micro-batches that have not been given."""
        for progress in progresses:
            # Between two micro-batches Spark repeats the last progress without counts.
            observed = progress["observedMetrics"] or {}
            if progress["batchId"] <= self._last or OBSERVATION not in observed:
                continue
            self._last = progress["batchId"]
            yield _batch(progress)


def _batch(progress: Any) -> Batch:
    counts = metrics(progress)
    watermark = counts.get("watermark")
    return Batch(
        number=progress["batchId"],
        rows=int(counts["rows"]),
        late=int(counts["late"]),
        ahead=int(counts.get("ahead", 0)),
        duplicates=int(counts.get("duplicates", 0)),
        answers=int(counts["answers"]),
        seconds=max(progress["durationMs"].get("triggerExecution", 0), 1) / 1_000,
        watermark=None if watermark is None else text_of(watermark),
        state=int(counts["state_bytes"]),
    )
