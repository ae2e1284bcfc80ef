"""The number of threads for a table."""

import os
import sys

from slidewise.aggregations.scalars import as_int
from slidewise.errors import Argument, SpecError

__all__ = ["check_threads", "resolve_threads"]

_MAX_THREADS = 1 << 10
# By default a thread is started for no fewer rows.
_ROWS_PER_THREAD = 1 << 16


def resolve_threads(threads: int | None, rows: int) -> int:
    """The number of threads for a table of so many rows.

    By default the cores that this process may use, but one per 65,536 rows: with fewer,
    a second thread took 30 % more processor time and saved 10 % of the time to wait.

    Example:
        >>> resolve_threads(3, rows=10), resolve_threads(None, rows=10)
        (3, 1)
    """
    if threads is not None:
        return check_threads(threads)
    return max(min(_cores(), rows // _ROWS_PER_THREAD), 1)


def _cores() -> int:
    if sys.version_info >= (3, 13):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: object) -> int:
    """The number of threads that a caller gave."""
    number = as_int(threads)
    if number is not None and number >= 1:
        return min(number, _MAX_THREADS)
    raise SpecError(
        Argument("threads", threads),
        ": give 1 or more threads, or leave it out for the default",
    )
