"""The progress of a stream on standard error: a line per micro-batch, and a total."""

import time
from collections.abc import Iterable
from typing import Any, Self

from rich.console import Console
from rich.filesize import decimal
from rich.live import Live
from rich.text import Text

from slidewise.cli.terminal import format_rate
from slidewise.formatting import format_count
from slidewise.spark.listener import OBSERVATION, metrics
from slidewise.spark.watermarks import from_progress

__all__ = ["BatchReport"]


class BatchReport:
    """Reports each micro-batch once, and the total when it is closed.

    On a terminal, `in_place` replaces each line by the next one.
    """

    def __init__(self, *, quiet: bool, in_place: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        in_place = in_place and self._console.is_terminal
        self._live = (
            Live(console=self._console, auto_refresh=False) if in_place else None
        )
        self._last, self._began = -1, time.monotonic()
        self._rows = self._late = self._answers = 0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
        seconds = time.monotonic() - self._began
        self._print(
            f"{format_count(self._rows, 'row')} in {seconds:.1f} s, {self._late:,} of "
            f"them late, {format_count(self._answers, 'answer')}"
        )

    def update(self, progresses: Iterable[Any]) -> None:
        """Reports those of the latest micro-batches that have not been reported."""
        for progress in progresses:
            # Between two micro-batches Spark repeats the last progress without counts.
            observed = progress["observedMetrics"] or {}
            if progress["batchId"] <= self._last or OBSERVATION not in observed:
                continue
            self._last = progress["batchId"]
            counts = metrics(progress)
            self._rows += int(counts["rows"])
            self._late += int(counts["late"])
            self._answers += int(counts["answers"])
            line = self._line(progress, counts)
            if self._live is None:
                self._print(line)
            else:
                self._live.update(Text(line), refresh=True)

    def _line(self, progress: Any, counts: dict[str, float]) -> str:
        seconds = max(progress["durationMs"].get("triggerExecution", 0), 1) / 1_000
        event_time = progress["eventTime"].get("watermark")
        watermark = None if event_time is None else from_progress(event_time)
        rows = int(counts["rows"])
        parts = [
            f"batch {progress['batchId']}: {format_count(rows, 'row')}",
            format_rate(rows, seconds),
            format_count(int(counts["answers"]), "answer"),
            f"watermark {_readable(watermark)}",
            f"{self._late:,} late",
            f"state {decimal(int(counts['state_bytes']))}",
        ]
        return ", ".join(parts)

    def _print(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


def _readable(watermark: str | None) -> str:
    if watermark is None:
        return "none yet"
    return watermark.replace("T", " ").removesuffix("Z").removesuffix(".000")
