"""What a Python worker of Spark holds, out of sight of its garbage collector.

After each task a worker that is used again collects garbage, and looks at all objects
of PySpark, pandas, pyarrow and slidewise: 36 ms, six times per micro-batch, half of
the time of workers that only pack and unpack rows.
"""

import gc

from pyspark import TaskContext

__all__ = ["freeze_modules"]

_state = {"frozen": False}


def freeze_modules() -> None:
    """Excludes what is there from garbage collection, once per worker; else nothing.

    What becomes garbage later is collected as before, except cycles of these objects.
    """
    if _state["frozen"] or TaskContext.get() is None:
        return
    _state["frozen"] = True
    gc.collect()
    gc.freeze()
