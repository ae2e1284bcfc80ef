"""Exact sliding-window aggregates on Apache Spark, batch and streaming, from PySpark.

- `rolling`, `hopping`: as for tables, over a PySpark DataFrame; whether it is a stream
  decides how it is answered, not what.
- `explain`: how that would be done.
- `metrics`, `Listener`: what the windows of a running query do.
- `session`: a local SparkSession in which all of this works.

Plain functions of a DataFrame; without one they give a function for `df.transform`.
Nothing is patched and no jar is needed, so Spark Connect serves as well.
"""

from typing import TYPE_CHECKING, Any

from slidewise.spark.api import explain, hopping, rolling
from slidewise.spark.session import session

if TYPE_CHECKING:
    from slidewise.spark.listener import Listener, metrics

__all__ = ["Listener", "explain", "hopping", "metrics", "rolling", "session"]


def __getattr__(name: str) -> Any:
    """What needs PySpark is imported when it is asked for."""
    if name in ("Listener", "metrics"):
        from slidewise.spark import listener

        return getattr(listener, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
