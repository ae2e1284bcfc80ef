"""Sets up garbage collection and Arrow's memory in Python workers of Spark.

PySpark collects garbage after each task of a reused worker. A collection visits all
objects of PySpark, pandas, pyarrow and slidewise: 36 ms, six times per micro-batch,
half of the time of workers that only pack and unpack rows. So modules are excluded,
also those that the first task of a worker imports.

Arrow's own pool (mimalloc) returns large blocks to the system, and gets huge pages for
the next ones, which the system fills with zeros first: a third of the time of workers.
The allocator of the C library keeps the memory of blocks that were freed.
"""

import gc
import os
import sys
from functools import cache

import pyarrow as pa
from pyspark import TaskContext

__all__ = ["prepare_worker"]


def prepare_worker() -> None:
    """Sets up the memory of this worker. Does nothing on the driver.

    The objects that exist are excluded from garbage collection, now and once after
    further modules were imported. Objects that are made later are collected as before.
    `ARROW_DEFAULT_MEMORY_POOL`, if it is set, chooses Arrow's pool.
    """
    if TaskContext.get() is not None:
        _prepare(len(sys.modules))


@cache
def _prepare(_modules: int) -> None:
    """Sets up the memory, once for each number of modules."""
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
    gc.collect()
    gc.freeze()
