"""Exact sliding-window aggregates on Apache Spark, batch and streaming, from PySpark.

- `rolling`, `hopping`: as for tables, over a batch or a streaming PySpark DataFrame,
  with the same results.
- `audit`: features as they were served, beside those that their rows give.
- `explain`: the plan of such a call, as text.
- `metrics`, `Listener`: counts of rows, results and state of running queries.
- `history`: the rows before a stream that it needs as `initial=`.
- `migrate`: the checkpoint of a stream with other buckets, or a Spec that has grown.
- `read_state`: the rows that a stream holds, from its checkpoint.
- `sinks`: a module, of functions for `foreachBatch` that keep the last result of each
  key in PostgreSQL or Redis.
- `session`: makes a local SparkSession with the settings that they need.

All are plain functions of a DataFrame; without one, `rolling` and `hopping` return a
function for `df.transform`. They patch nothing and need no jar, so they also work on
Spark Connect.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from slidewise.spark.api import explain, hopping, rolling
from slidewise.spark.local_session import session

if TYPE_CHECKING:
    from slidewise.spark.history_rows import history
    from slidewise.spark.listener import Listener, metrics
    from slidewise.spark.migration import migrate
    from slidewise.spark.served import audit
    from slidewise.spark.state_reader import read_state

__all__ = [
    "Listener",
    "audit",
    "explain",
    "history",
    "hopping",
    "metrics",
    "migrate",
    "read_state",
    "rolling",
    "session",
]
# The names whose modules need PySpark.
_LATE = {
    "Listener": "listener",
    "history": "history_rows",
    "metrics": "listener",
    "audit": "served",
    "migrate": "migration",
    "read_state": "state_reader",
}


def __getattr__(name: str) -> Any:
    """Imports names on first use, if their modules need PySpark."""
    if name in _LATE:
        return getattr(import_module(f"slidewise.spark.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
