"""What a long command says while it works.

Stages go to standard error, so that standard output stays the answer's. On a terminal
with `rich` installed (`pip install "slidewise[cli]"`) each stage shows a bar and its
time; otherwise nothing is shown until the end.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

__all__ = ["Progress"]


class Progress:
    """Times the stages of a command and shows the one at work.

    Attributes:
        seconds: How long each finished stage took, by name.

    Example:
        >>> progress = Progress(quiet=True)
        >>> with progress.stage("read"):
        ...     pass
        >>> list(progress.seconds)
        ['read']
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._stream = sys.stderr if stream is None else stream
        self._bars = None if quiet else _bars(self._stream)

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[float], None]]:
        """Shows and times one stage, also when it fails.

        What it gives takes the part that is done, from 0 to 1; a stage that never calls
        it has a bar that only moves.
        """
        begin = time.perf_counter()
        try:
            if self._bars is None:
                yield _ignore
            else:
                with self._bars() as bars:
                    task = bars.add_task(name, total=None)
                    yield lambda done: bars.update(task, completed=done, total=1.0)
        finally:
            self.seconds[name] = time.perf_counter() - begin


def _ignore(done: float) -> None:
    """Where there is nobody to see it."""


def _bars(stream: TextIO) -> Any:
    """A function that makes rich's bars, or None where they cannot be shown."""
    if not stream.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars
    except ImportError:
        return None

    def make() -> Bars:
        return Bars(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=40),
            TimeElapsedColumn(),
            console=Console(file=stream),
            transient=True,
        )

    return make
