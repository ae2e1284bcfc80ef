"""Two executors with shipped slidewise: the same results as over tables."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from streams import LATE, Feed, assert_same, written

import slidewise as sw

pytest.importorskip("pyspark", reason="PySpark is not installed: slidewise[spark]")

HELPERS = Path(__file__).parents[1] / "helpers"


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_two_executors_and_an_archive(spark: Any, tmp_path: Path) -> None:
    """Keys and buckets of streams move between executors."""
    from on_cluster import BATCH, ROLLING

    feed = Feed(tmp_path, 9, LATE)
    feed.write(3)
    package = Path(sw.__file__).parent
    with zipfile.ZipFile(tmp_path / "slidewise.zip", "w") as archive:
        for path in package.rglob("*"):
            if path.suffix in (".py", ".so", ".typed"):
                archive.write(path, path.relative_to(package.parent))
    paths = [str(HELPERS), str(package.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("PYSPARK_PYTHON", None)
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, str(HELPERS / "on_cluster.py"), str(tmp_path)],
            env=environment,
            stdout=log,
            stderr=log,
            timeout=300,
            check=False,
        )
    log = (tmp_path / "log").read_text()
    assert done.returncode == 0, log[-4000:]
    assert "executors 2" in log
    table = pa.concat_tables(feed.batches)
    assert_same(written(spark, tmp_path, "batch"), sw.rolling(table, **BATCH), ["id"])
    for emit, call, by in [
        ("final", ROLLING, ["id"]),
        (
            "slide",
            {
                "on": "t",
                "by": "key",
                "window": "1m",
                "every": "10s",
                "aggs": {"n": sw.count()},
            },
            ["key", "window_end"],
        ),
    ]:
        expected = feed.expected(emit, call)
        assert_same(written(spark, tmp_path, emit), expected, by)
