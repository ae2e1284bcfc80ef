"""Errors of slidewise in Python workers of Spark, as one line.

PySpark sends the traceback of an exception to the JVM, as the message of Spark's own
exception. The errors of slidewise name the value and the way out, so they go without.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import TaskContext

from slidewise.errors import SlidewiseError

__all__ = ["one_line_errors"]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Raises errors of slidewise without their traceback; other errors keep theirs.

    The limit holds for the whole process, which ends with the error: PySpark starts
    another worker for the next task. On the driver errors stay as they are.
    """
    try:
        yield
    except SlidewiseError as error:
        if TaskContext.get() is None:
            raise
        sys.tracebacklimit = 0
        raise error from None
