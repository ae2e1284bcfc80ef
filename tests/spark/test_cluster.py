"""Two executors with shipped slidewise: the same results as over tables."""

import os
import site
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from streams import LATE, FileSource, assert_same, written

import slidewise as sw

pytest.importorskip("pyspark", reason="PySpark is not installed: slidewise[spark]")

HELPERS = Path(__file__).parents[1] / "helpers"
PACKAGE = Path(sw.__file__).parent


def write_archive(path: Path) -> None:
    """Writes all of the package, data included, but what Python has compiled."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in PACKAGE.rglob("*"):
            if file.is_file() and file.suffix != ".pyc":
                archive.write(file, file.relative_to(PACKAGE.parent))


def test_the_archive_is_the_whole_package(tmp_path: Path) -> None:
    """It is imported where slidewise is not installed."""
    write_archive(tmp_path / "slidewise.zip")
    with zipfile.ZipFile(tmp_path / "slidewise.zip") as archive:
        archive.extractall(tmp_path / "shipped")
    paths = [str(tmp_path / "shipped"), *site.getsitepackages()]
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import slidewise; print(slidewise.__file__)"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith(str(tmp_path)), done.stderr


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_two_executors_and_an_archive(spark: Any, tmp_path: Path) -> None:
    """Keys and buckets of streams move between executors."""
    from on_cluster import BATCH, ROLLING

    source = FileSource(tmp_path, 9, LATE)
    source.write(3)
    write_archive(tmp_path / "slidewise.zip")
    paths = [str(HELPERS), str(PACKAGE.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("PYSPARK_PYTHON", None)
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, str(HELPERS / "on_cluster.py"), str(tmp_path)],
            env=environment,
            stdout=log,
            stderr=log,
            timeout=540,
            check=False,
        )
    log = (tmp_path / "log").read_text()
    assert done.returncode == 0, log[-4000:]
    assert "executors 2" in log
    table = pa.concat_tables(source.batches)
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
        expected = source.expected(emit, call)
        assert_same(written(spark, tmp_path, emit), expected, by)
