"""Exact sliding-window aggregates on Apache Spark, batch and streaming, from PySpark.

- `rolling`, `hopping`: as for tables, over a PySpark DataFrame; whether it is a stream
  decides how it is answered, not what.
- `session`: a local SparkSession in which all of this works.

Plain functions of a DataFrame; without one they give a function for `df.transform`.
Nothing is patched and no jar is needed, so Spark Connect serves as well.
"""

from slidewise.spark.entry import hopping, rolling
from slidewise.spark.session import session

__all__ = ["hopping", "rolling", "session"]
