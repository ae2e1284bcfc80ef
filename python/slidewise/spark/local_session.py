"""Makes a local Spark session with the settings that `slidewise.spark` needs."""

import os
import sys
import warnings
from typing import Any

from slidewise.spark.jre import java_home

__all__ = ["PROVIDER", "ROCKSDB", "existing_session", "session"]

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
    # Heartbeats of idle= have no end of their own.
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
}


def session(
    app: str = "slidewise",
    *,
    master: str = "local[*]",
    config: dict[str, Any] | None = None,
) -> Any:
    """Returns a local SparkSession, or the existing one.

    A new session runs its Python workers on this Python, keeps the state of streams in
    RocksDB (which `transformWithState` requires), binds to the loopback interface only
    and logs errors only. On a machine without Java it uses the runtime that
    `pip install 'slidewise[spark]'` installs.

    An existing session, of Spark Connect as well, is returned unchanged. A warning
    names settings that it lacks: those that streams of slidewise need, and those of
    `config`.

    On a cluster make the session as usual; docs/spark.md lists what to set.

    Args:
        app: str, the name of the application.
        master: str, Spark's master URL, such as `"local[4]"` for four cores.
        config: dict of Spark settings; they take precedence over those above.

    Returns:
        A `pyspark.sql.SparkSession`.

    Cost:
        Some seconds for a new session, which starts a JVM.

    Raises:
        SlidewiseError: If there is no Java runtime that Spark runs on.
        ImportError: If PySpark is not installed.

    Example:
        >>> spark = session(master="local[2]")  # doctest: +SKIP
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ImportError(
            f"session() needs PySpark ({error}): pip install 'slidewise[spark]'"
        ) from error

    existing = existing_session()
    if existing is not None:
        _warn(existing, config or {})
        return existing
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Without this, workers run the first python3 of the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app).master(master)
    for name, value in {**_SETTINGS, **(config or {})}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def existing_session() -> Any:
    """Returns the session of this thread, else of this process; None without one."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        found = SparkSession.active()
        found.range(1)
    except (PySparkException, AttributeError):
        # There is none, or its context was stopped: PySpark still returns it as active.
        return None
    return found


def _warn(spark: Any, config: dict[str, Any]) -> None:
    """Warns of settings that an existing session lacks."""
    if "RocksDB" not in spark.conf.get(PROVIDER, ""):
        config = {PROVIDER: ROCKSDB, **config}
    missing = {
        name: _setting(value)
        for name, value in config.items()
        if spark.conf.get(name, None) != _setting(value)
    }
    if missing:
        advice = "; ".join(_advise(spark, *item) for item in missing.items())
        warnings.warn(
            f"the existing session is unchanged, and lacks settings: {advice}; or "
            "stop() it, and get a new one",
            stacklevel=3,
        )


def _advise(spark: Any, name: str, value: str) -> str:
    """Returns how to make a setting."""
    if not spark.conf.isModifiable(name):
        return f"{name}={value} can only be set before a session starts"
    reason = ", which streams of slidewise need" if name == PROVIDER else ""
    return f"call spark.conf.set({name!r}, {value!r}){reason}"


def _setting(value: Any) -> str:
    """Returns a setting as the text that Spark stores."""
    return str(value).lower() if isinstance(value, bool) else str(value)
