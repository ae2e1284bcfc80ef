"""Excludes imported modules from garbage collection in Python workers of Spark.

PySpark collects garbage after each task of a reused worker. A collection visits all
objects of PySpark, pandas, pyarrow and slidewise: 36 ms, six times per micro-batch,
half of the time of workers that only pack and unpack rows.
"""

import gc

from pyspark import TaskContext

__all__ = ["freeze_modules"]

_state = {"frozen": False}


def freeze_modules() -> None:
    """Excludes the existing objects from garbage collection, once per worker.

    Objects that are made later are collected as before. Does nothing on the driver.
    """
    if _state["frozen"] or TaskContext.get() is None:
        return
    _state["frozen"] = True
    gc.collect()
    gc.freeze()
