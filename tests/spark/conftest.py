"""One Spark session for the whole suite."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hangs
import kafka_broker
import pytest
import streams

from slidewise.errors import SlidewiseError

pytest.importorskip("pyspark", reason="PySpark is not installed: slidewise[spark]")

# Settings of every Spark, also of those in separate processes.
os.environ.setdefault("SPARK_SUBMIT_OPTS", streams.JVM)

PARTITIONS = "spark.sql.shuffle.partitions"

# Seconds for a test that works: cores may be shared. A test that hangs fails after IDLE
# seconds; if it still hangs after GRACE seconds, the process ends.
SECONDS = 240
IDLE, GRACE = 40, 10
WATCH = pytest.StashKey[hangs.Watch]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[WATCH] = hangs.Watch(IDLE, GRACE, os.dup(2))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    watch = item.config.stash[WATCH]
    watch.test = item.nodeid if Path(__file__).parent in item.path.parents else None
    try:
        return (yield)
    finally:
        watch.test = None
        if watch.hung:
            # The next tests would wait for the same Spark.
            item.session.shouldfail = f"{watch.hung} hangs"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SECONDS))


@pytest.fixture(autouse=True)
def _as_configured(request: pytest.FixtureRequest) -> None:
    """Each test begins with three partitions, as tests and demos change the number."""
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").conf.set(PARTITIONS, "3")


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> Iterator[Any]:
    from slidewise.spark import session

    # Workers import the definitions of tests from the folders of the tests.
    helpers = Path(__file__).parents[1] / "helpers"
    paths = [str(helpers / "spark_workers"), str(helpers), str(Path(__file__).parent)]
    paths.append(os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    config = {
        PARTITIONS: "3",
        "spark.default.parallelism": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        "spark.ui.showConsoleProgress": "false",
        # Streams of tests/spark/test_kills.py rename files as Spark does by default.
        **streams.RENAMES,
        **streams.WORKERS,
    }
    if jars := kafka_broker.connector():
        config["spark.jars"] = jars
    try:
        made = session("slidewise tests", master="local[2]", config=config)
    except SlidewiseError as error:
        pytest.skip(str(error))
    yield made
    if pytestconfig.stash[WATCH].hung:
        made.sparkContext._gateway.proc.kill()  # its stop would wait for tasks
    else:
        made.stop()
