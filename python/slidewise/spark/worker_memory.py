"""Excludes imported modules from garbage collection in Python workers of Spark.

PySpark collects garbage after each task of a reused worker. A collection visits all
objects of PySpark, pandas, pyarrow and slidewise: 36 ms, six times per micro-batch,
half of the time of workers that only pack and unpack rows.
"""

import gc
from functools import cache

from pyspark import TaskContext

__all__ = ["freeze_modules"]


def freeze_modules() -> None:
    """Excludes the existing objects from garbage collection, once per worker.

    Objects that are made later are collected as before. Does nothing on the driver.
    """
    if TaskContext.get() is not None:
        _freeze()


@cache
def _freeze() -> None:
    gc.collect()
    gc.freeze()
