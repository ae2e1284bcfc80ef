"""Tables, progress and figures on a terminal.

Results go to standard output, progress and summaries to standard error. A file or a
pipe gets plain text without progress.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from slidewise.frames.column_types import is_number

__all__ = ["Stages", "format_rate", "print_table"]

# A table is as wide as its values; none is cut off.
_UNLIMITED = 1_000_000


def print_table(table: pa.Table, columns: Sequence[str] | None = None) -> None:
    """Prints a table: numbers to the right, a dot where a value is missing.

    Args:
        table: The rows to print, all of them.
        columns: The columns, in order; by default all.

    Example:
        >>> print_table(pa.table({"key": ["a", "b"], "n": [1, None]}))
        key  n
        ───────
        a    1
        b    ·
    """
    shown = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    names = list(table.column_names if columns is None else columns)
    for name in names:
        numeric = is_number(table.schema.field(name).type)
        shown.add_column(Text(name), justify="right" if numeric else "left")
    for row in table.select(names).to_pylist():
        shown.add_row(*(Text(_cell(row[name])) for name in names))
    Console(width=_UNLIMITED).print(shown)


def _cell(value: object) -> str:
    if value is None:
        return "·"
    if isinstance(value, float):
        return f"{value:.1f}" if 0.1 <= abs(value) < 1e9 else f"{value:.6g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return str(value)


def format_rate(count: int, seconds: float) -> str:
    """Formats a number per second.

    Example:
        >>> format_rate(3_000_000, 2.0), format_rate(500, 1.0)
        ('1.5 M/s', '500/s')
    """
    per_second = count / max(seconds, 1e-9)
    for unit, size in ((" M", 1e6), (" k", 1e3)):
        if per_second >= size:
            return f"{per_second / size:.3g}{unit}/s"
    return f"{per_second:.0f}/s"


class Stages:
    """Times the stages of a command, each with a bar on standard error.

    Attributes:
        seconds: How long each finished stage took, by name.

    Example:
        >>> stages = Stages(quiet=True)
        >>> with stages.stage("read") as report:
        ...     report(0.5)
        >>> list(stages.seconds)
        ['read']
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._quiet = quiet or not sys.stderr.isatty()

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[float], None]]:
        """Times a stage, also one that fails, and yields a function of its progress.

        The function takes the fraction that is done, from 0 to 1. Until it is called
        the bar pulses.
        """
        begin = time.perf_counter()
        columns = (
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=40),
            TimeElapsedColumn(),
        )
        console = Console(stderr=True)
        try:
            # Into a file, rich 13 prints an empty line though nothing is to show.
            if self._quiet:
                yield lambda _: None
                return
            with Progress(*columns, console=console, transient=True) as bars:
                task = bars.add_task(name, total=None)
                yield lambda done: bars.update(task, completed=done, total=1.0)
        finally:
            self.seconds[name] = time.perf_counter() - begin
