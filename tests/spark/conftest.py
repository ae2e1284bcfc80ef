"""One Spark session for the whole suite."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka_broker
import pytest
import streams

from slidewise.errors import SlidewiseError

pytest.importorskip("pyspark", reason="PySpark is not installed: slidewise[spark]")

# Settings of every Spark, also of those in separate processes.
os.environ.setdefault("SPARK_SUBMIT_OPTS", streams.JVM)

PARTITIONS = "spark.sql.shuffle.partitions"

# The first test starts a JVM, and workers share two cores with other processes.
SECONDS = 240


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
def spark() -> Iterator[Any]:
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
    made.stop()
