"""What a stream says of itself while it runs: a line per micro-batch, and a sum."""

import sys
import time
from collections.abc import Iterable
from typing import Any, TextIO

from slidewise.cli.texts import rate
from slidewise.formatting import format_count
from slidewise.spark.listener import OBSERVATION, metrics
from slidewise.spark.watermarks import from_progress

__all__ = ["Told"]


class Told:
    """Tells each micro-batch once.

    Args:
        quiet: Whether to say nothing.
        in_place: Whether each line takes the place of the one before.
        stream: Where to say it.
    """

    def __init__(
        self, *, quiet: bool, in_place: bool, stream: TextIO | None = None
    ) -> None:
        self._quiet, self._in_place = quiet, in_place
        self._stream = sys.stderr if stream is None else stream
        self._last, self._began = -1, time.monotonic()
        self._rows = self._late = self._answers = 0

    def tell(self, progresses: Iterable[Any]) -> None:
        """Says what is new among the micro-batches of late."""
        for progress in progresses:
            # Between two micro-batches the last one is told again, without counts.
            is_new = progress["batchId"] > self._last
            if not is_new or OBSERVATION not in _observed(progress):
                continue
            self._last = progress["batchId"]
            counts = metrics(progress)
            self._rows += int(counts["rows"])
            self._late += int(counts["late"])
            self._answers += int(counts["answers"])
            self._say(self._line(progress, counts))

    def end(self) -> None:
        """Says what it was in all."""
        seconds = time.monotonic() - self._began
        if self._in_place and self._last >= 0:
            self._say("")
        if not self._quiet:
            print(
                f"{format_count(self._rows, 'row')} in {seconds:.1f} s, "
                f"{self._late:,} of them late, {format_count(self._answers, 'answer')}",
                file=self._stream,
            )

    def _line(self, progress: Any, counts: dict[str, float]) -> str:
        took = max(progress["durationMs"].get("triggerExecution", 0), 1) / 1_000
        told = progress["eventTime"].get("watermark")
        watermark = None if told is None else from_progress(told)
        rows = int(counts["rows"])
        parts = [
            f"batch {progress['batchId']}: {format_count(rows, 'row')}",
            rate(rows, took),
            format_count(int(counts["answers"]), "answer"),
            f"watermark {_readable(watermark)}",
            f"{self._late:,} late",
            f"state {_bytes(counts['state_bytes'])}",
        ]
        return ", ".join(parts)

    def _say(self, line: str) -> None:
        if self._quiet:
            return
        if self._in_place:
            print(f"\r\x1b[K{line}", end="", file=self._stream, flush=True)
        else:
            print(line, file=self._stream, flush=True)


def _observed(progress: Any) -> Any:
    return progress["observedMetrics"] or {}


def _readable(watermark: str | None) -> str:
    if watermark is None:
        return "none yet"
    return watermark.replace("T", " ").removesuffix("Z").removesuffix(".000")


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1_000 or unit == "GB":
            break
        count /= 1_000
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
