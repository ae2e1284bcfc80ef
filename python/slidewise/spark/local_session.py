"""A local Spark session in which everything here works."""

import os
import sys
import warnings
from typing import Any

from slidewise.spark.jre import java_home

__all__ = ["PROVIDER", "ROCKSDB", "existing", "session"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_STATE = "spark.sql.streaming.stateStore.rocksdb"
_SETTINGS = {
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    PROVIDER: ROCKSDB,
    f"{_STATE}.changelogCheckpointing.enabled": "true",
    f"{_STATE}.trackTotalNumberOfRows": "false",
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

    A session that is there already, of Spark Connect as well, comes back as it is:
    none of its settings is changed. A warning names those that streams of slidewise
    need, and those of `config`, where the session has others.

    On a cluster make the session as usual there; docs/spark.md lists what to set.

    Args:
        app: The name of the application.
        master: Where to run: `"local[4]"` for four cores.
        config: Further settings of Spark, or others than these.

    Returns:
        The `pyspark.sql.SparkSession`.

    Raises:
        SlidewiseError: If there is no Java that Spark runs on.

    Example:
        >>> spark = session(master="local[2]")  # doctest: +SKIP
    """
    from pyspark.sql import SparkSession

    there = existing()
    if there is not None:
        _warn(there, config or {})
        return there
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


def existing() -> Any:
    """The session of this thread, or else of this process; None if there is none."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        found = SparkSession.active()
        found.range(1)
    except (PySparkException, AttributeError):
        # None, or one whose context was stopped, which PySpark goes on to tell.
        return None
    return found


def _warn(spark: Any, config: dict[str, Any]) -> None:
    """Says which settings the session would need that it has not."""
    if "RocksDB" not in spark.conf.get(PROVIDER, ""):
        config = {PROVIDER: ROCKSDB, **config}
    lacking = {
        name: _told(value)
        for name, value in config.items()
        if spark.conf.get(name, None) != _told(value)
    }
    if lacking:
        warnings.warn(
            "the session that is there already is left as it is, and lacks settings: "
            f"{'; '.join(_way(spark, *setting) for setting in lacking.items())}; or "
            "stop() it before, and get a new one",
            stacklevel=3,
        )


def _way(spark: Any, name: str, value: str) -> str:
    """How a setting is made that a session lacks."""
    if not spark.conf.isModifiable(name):
        return f"{name}={value} can only be set before a session starts"
    why = ", which streams of slidewise need" if name == PROVIDER else ""
    return f"call spark.conf.set({name!r}, {value!r}){why}"


def _told(value: Any) -> str:
    """A setting as Spark keeps it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
