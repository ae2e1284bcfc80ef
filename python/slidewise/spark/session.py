"""A local Spark session in which everything here works."""

import os
import sys
from typing import Any

from slidewise.spark.java import java_home

__all__ = ["session"]

_ROCKSDB = "spark.sql.streaming.stateStore"
_SETTINGS = {
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    f"{_ROCKSDB}.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    f"{_ROCKSDB}.rocksdb.changelogCheckpointing.enabled": "true",
    f"{_ROCKSDB}.rocksdb.trackTotalNumberOfRows": "false",
}


def session(
    app: str = "slidewise",
    *,
    master: str = "local[*]",
    config: dict[str, Any] | None = None,
) -> Any:
    """A local SparkSession, or the one that is there already.

    It is set up for `slidewise.spark`: Python workers are this very Python, the state
    of streams lies in RocksDB (the only provider their operator runs on), nothing
    listens beyond this machine, and the log is quiet. On a machine without Java it
    takes the one of `pip install 'slidewise[spark]'`.

    On a cluster make the session as usual there; docs/spark.md lists what to set.

    Args:
        app: The name of the application.
        master: Where to run: `"local[4]"` for four cores.
        config: Further settings of Spark, or others than these.

    Returns:
        The `pyspark.sql.SparkSession`.

    Raises:
        SlidewiseError: If there is no Java that Spark 4 runs on.

    Example:
        >>> spark = session(master="local[2]")  # doctest: +SKIP
    """
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is None:
        home = java_home()
        if home is not None:
            os.environ["JAVA_HOME"] = home
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Workers follow no virtual environment by themselves.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app).master(master)
    for name, value in {**_SETTINGS, **(config or {})}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made
