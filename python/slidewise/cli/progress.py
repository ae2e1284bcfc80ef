"""The progress of a stream on standard error: a line per micro-batch, and a total."""

import time
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.filesize import decimal
from rich.live import Live
from rich.text import Text

from slidewise.cli.terminal import format_rate
from slidewise.formatting import format_count

__all__ = ["Batch", "BatchReport"]


@dataclass(frozen=True, slots=True)
class Batch:
    """What one micro-batch did.

    Attributes:
        number: Its number.
        rows: Its rows.
        late: Those of them that were late.
        ahead: Those of them that were ahead of the clock.
        duplicates: Those of them that had come before.
        answers: The results that were emitted.
        seconds: How long it took.
        watermark: The watermark, as text; None before the first.
        state: The bytes of the state.
    """

    number: int
    rows: int
    late: int
    ahead: int
    duplicates: int
    answers: int
    seconds: float
    watermark: str | None
    state: int


class BatchReport:
    """Reports each micro-batch, and the total when it is closed.

    On a terminal, `in_place` replaces each line by the next one.
    """

    def __init__(self, *, quiet: bool, in_place: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        in_place = in_place and self._console.is_terminal
        self._live = (
            Live(console=self._console, auto_refresh=False) if in_place else None
        )
        self._began = time.monotonic()
        self._rows = self._late = self._answers = 0
        self._ahead = self._duplicates = 0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
        seconds = time.monotonic() - self._began
        others = "".join(f", {part}" for part in self._others())
        self._print(
            f"{format_count(self._rows, 'row')} in {seconds:.1f} s, {self._late:,} of "
            f"them late{others}, {format_count(self._answers, 'answer')}"
        )

    def add(self, batch: Batch) -> None:
        """Reports a micro-batch."""
        self._rows += batch.rows
        self._late += batch.late
        self._ahead += batch.ahead
        self._duplicates += batch.duplicates
        self._answers += batch.answers
        parts = [
            f"batch {batch.number}: {format_count(batch.rows, 'row')}",
            format_rate(batch.rows, batch.seconds),
            format_count(batch.answers, "answer"),
            f"watermark {_readable(batch.watermark)}",
            f"{self._late:,} late",
            *self._others(),
            f"state {decimal(batch.state)}",
        ]
        line = ", ".join(parts)
        if self._live is None:
            self._print(line)
        else:
            self._live.update(Text(line), refresh=True)

    def _others(self) -> list[str]:
        """The numbers of rows that did not count and were not late, if any."""
        parts = []
        if self._ahead:
            parts.append(f"{self._ahead:,} ahead")
        if self._duplicates:
            parts.append(format_count(self._duplicates, "duplicate"))
        return parts

    def _print(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


def _readable(watermark: str | None) -> str:
    if watermark is None:
        return "none yet"
    return watermark.replace("T", " ").removesuffix("Z").removesuffix(".000")
