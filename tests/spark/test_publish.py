"""A follower answers what a stream holds, as of its last committed micro-batch."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streams import LATE, ROLLING, FileSource, assert_follows, read, start

import slidewise as sw
from slidewise.keyed.published import Folder
from slidewise.spark import commits, migrate, rolling
from slidewise.spark.options import StreamOptions


def wait_for(holds: Callable[[], bool]) -> None:
    """Spark tells its listeners of a commit in a thread of its own."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("this takes too long")


def test_a_follower_of_a_stream(spark: Any, tmp_path: Path) -> None:
    folder, log = tmp_path / "published", tmp_path / "a-checkpoint" / "commits"
    source = FileSource(tmp_path, 5, LATE)

    def run() -> int:
        """Runs the new files; gives the number of the last committed micro-batch."""
        options = {"late": LATE, "buckets": 2, "publish": folder}
        answers = rolling(read(spark, tmp_path), **ROLLING, **options)
        start(answers, tmp_path, "a").awaitTermination()
        return max(int(path.name) for path in log.iterdir() if path.name.isdigit())

    def marked(batch: int) -> bool:
        return (folder / f"{batch}.committed").exists()

    source.write(2)
    last = run()
    wait_for(lambda: marked(last))
    follower = sw.follow(folder)
    assert follower.batch == last
    assert_follows(follower, source)
    # The driver was killed after the commit and before the mark.
    for path in folder.glob("*.committed"):
        path.unlink()
    assert not follower.refresh()
    assert run() == last
    wait_for(lambda: marked(last))
    # It was killed before the commit, which is run again.
    (log / str(last)).unlink()
    files = {path.name for path in folder.iterdir()}
    source.write(1)
    again = run()
    wait_for(lambda: marked(again))
    replayed = {path.name for path in folder.iterdir() if path.name[0] == str(last)}
    assert replayed - {f"{last}.committed"} <= files, "the same files"
    assert follower.refresh()
    assert follower.batch == again > last
    assert_follows(follower, source)
    assert_follows(sw.follow(folder), source)


def test_a_published_stream_goes_on_in_another_folder(
    spark: Any, tmp_path: Path
) -> None:
    """With fewer buckets; its followers see all rows at once, and then the new ones."""
    source, folder = FileSource(tmp_path, 6, LATE), tmp_path / "fewer"

    def run(name: str, publish: Path) -> None:
        answers = rolling(read(spark, tmp_path), **ROLLING, late=LATE, publish=publish)
        start(answers, tmp_path, name).awaitTermination()

    source.write(3)
    run("a", tmp_path / "published")
    places = str(tmp_path / "a-checkpoint"), str(tmp_path / "b-checkpoint")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    with pytest.raises(sw.SpecError, match=r"published', where .*: give publish=, an"):
        migrate(*places, buckets=2)
    with pytest.raises(sw.SpecError, match=r"published' has files, and migrate publ"):
        migrate(*places, buckets=2, publish=tmp_path / "published")
    migrate(*places, buckets=2, publish=folder)
    follower = sw.follow(folder)
    assert_follows(follower, source)
    late = sum(map(len, source.batches)) - sum(map(len, source.accepted()))
    assert follower.late_count == late > 0
    source.write(2)
    run("b", folder)
    log = tmp_path / "b-checkpoint" / "commits"
    last = max(int(path.name) for path in log.iterdir() if path.name.isdigit())
    wait_for(lambda: follower.refresh() and follower.batch == last)
    assert_follows(follower, source)


def test_a_batch_dataframe_publishes_nothing() -> None:
    spec = sw.Spec(on="t", windows="1h", aggs={"n": sw.count()})
    with pytest.raises(sw.SpecError, match=r"publish= is for streams"):
        StreamOptions.make(spec, publish="folder").check_batch(spec)


def test_the_driver_marks_what_spark_could_not_tell(tmp_path: Path) -> None:
    """When the query starts again, and when the driver exits; not of other queries."""
    Folder(tmp_path).claim("own", 1)
    last = {"own": 3, "other": 9}

    def query(name: str) -> SimpleNamespace:
        batch = SimpleNamespace(isDefined=lambda: True, get=lambda: last[name])
        log = SimpleNamespace(getLatestBatchId=lambda: batch)
        return SimpleNamespace(
            streamingQuery=lambda: SimpleNamespace(commitLog=lambda: log)
        )

    manager = SimpleNamespace(get=query)
    session = SimpleNamespace(_jsparkSession=SimpleNamespace(streams=lambda: manager))
    marker = commits._Marker(session, str(tmp_path))
    for name in last:
        marker.onQueryStarted(SimpleNamespace(id=name))
    assert [path.name for path in tmp_path.glob("*.committed")] == ["3.committed"]
    last["own"] = 5
    marker._at_exit()
    assert [path.name for path in tmp_path.glob("*.committed")] == ["5.committed"]
