"""`migrate` makes a checkpoint with which a stream goes on."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from streams import AGGS, LATE, ROLLING, FileSource, assert_same, read

import slidewise as sw
from slidewise.errors import SpecError
from slidewise.spark import hopping, migrate, read_state, rolling

PARTITIONS = "spark.sql.shuffle.partitions"
HOPPING: dict[str, Any] = {"on": "t", "by": "key", "aggs": AGGS}
HOPPING |= {"window": "20s", "every": "5s"}


def run(
    spark: Any, answers: Any, folder: Path, checkpoint: str, *, fails: bool = False
) -> pa.Table:
    """Runs a query that ends once all files are processed; the rows of its sink.

    The sink may fail, before it asks for the results of a micro-batch.
    """
    out = folder / f"{checkpoint}-out"

    def put(rows: Any, batch: int) -> None:
        if fails:
            raise OSError("the disk is full")
        rows.write.mode("overwrite").parquet(str(out / f"batch={batch}"))

    writer = answers.writeStream.foreachBatch(put).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / checkpoint))
    query = writer.start()
    if fails:
        with pytest.raises(Exception, match="the disk is full"):
            query.awaitTermination()
    else:
        query.awaitTermination()
    rows = spark.read.option("mergeSchema", True).parquet(str(out)).toArrow()
    return rows.drop_columns("batch")


@pytest.mark.parametrize(
    ("emit", "call", "by", "partitions", "buckets"),
    [
        ("final", ROLLING, ["id"], 4, 5),
        ("slide", HOPPING, ["key", "window_end"], 2, 1),
    ],
)
def test_a_stream_goes_on_with_other_buckets(
    spark: Any,
    tmp_path: Path,
    emit: str,
    call: dict[str, Any],
    by: list[str],
    partitions: int,
    buckets: int,
) -> None:
    """With more than the three before, and fewer; the planned micro-batch, too."""
    source = FileSource(tmp_path, 31, LATE)
    source.write(3)
    engine = hopping if emit == "slide" else rolling
    stream = engine(read(spark, tmp_path), **call, late=LATE)
    first = run(spark, stream, tmp_path, "old")
    source.write(1)
    run(spark, stream, tmp_path, "old", fails=True)
    before = files_of(tmp_path / "old")
    spark.conf.set(PARTITIONS, str(partitions))
    migrate(tmp_path / "old", tmp_path / "new", buckets=buckets)
    assert files_of(tmp_path / "old") == before
    assert not (tmp_path / "new.migrating").exists()
    source.write(3)
    stream = engine(read(spark, tmp_path), **call, late=LATE, buckets=buckets)
    ours = pa.concat_tables([first, run(spark, stream, tmp_path, "new")])
    assert_same(ours, source.expected(emit, call), by)
    state = tmp_path / "new" / "state" / "0"
    numbers = {path.name for path in state.iterdir() if path.name.isdigit()}
    assert numbers == set(map(str, range(partitions)))


def files_of(checkpoint: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(checkpoint)): path.read_bytes()
        for path in checkpoint.rglob("*")
        if path.is_file()
    }


def test_a_stream_goes_on_with_a_grown_spec(spark: Any, tmp_path: Path) -> None:
    source = FileSource(tmp_path, 32, LATE)
    source.write(3)
    stream = rolling(read(spark, tmp_path), **ROLLING, late=LATE)
    before = run(spark, stream, tmp_path, "old")
    aggs = {"n": sw.count(), "most": sw.max("x"), "first": sw.min("t")}
    grown = {**ROLLING, "windows": ["2m", "45s"], "aggs": aggs}
    spec = sw.Spec(**grown)
    # By default a new query of this session has one bucket less, and so has this one.
    spark.conf.set(PARTITIONS, "2")
    migrate(str(tmp_path / "old"), str(tmp_path / "new"), spec=spec)
    source.write(3)
    stream = rolling(read(spark, tmp_path), spec, late=LATE)
    ours = run(spark, stream, tmp_path, "new")
    expected = source.expected("final", grown)
    assert not pc.any(pc.is_in(ours["id"], before["id"])).as_py()
    assert len(ours) + len(before) == len(expected)
    new = expected.filter(pc.is_in(expected["id"], ours["id"]))
    assert len(new) > 50
    assert_same(ours, new, ["id"])


def test_a_spec_grows_without_migrate(spark: Any, tmp_path: Path) -> None:
    """Pages that earlier queries made have their columns in another order."""
    source = FileSource(tmp_path, 34, LATE)
    source.write(3)
    stream = rolling(read(spark, tmp_path), **ROLLING, late=LATE)
    before = run(spark, stream, tmp_path, "old")
    aggs = {"words": sw.count("word"), **AGGS, "least": sw.min("y")}
    grown = {**ROLLING, "windows": ["45s", "10s", "2m"], "aggs": aggs}
    stream = rolling(read(spark, tmp_path), **grown, late=LATE)
    for _ in range(2):
        source.write(1)
        both = run(spark, stream, tmp_path, "old")
    expected = source.expected("final", grown)
    ours = both.filter(pc.invert(pc.is_in(both["id"], before["id"])))
    new = expected.filter(pc.invert(pc.is_in(expected["id"], before["id"])))
    assert len(new) > 20
    assert_same(ours.select(new.column_names), new, ["id"])
    assert len(both) == len(expected)
    held = read_state(spark, str(tmp_path / "old")).toArrow()
    words = pa.concat_tables(source.accepted()).select(["t", "key", "x", "word"])
    known = {tuple(row.values()) for row in words.to_pylist()}
    rows = held.select(words.column_names).to_pylist()
    assert len(rows) > 50
    assert all(tuple(row.values()) in known for row in rows)


def test_what_cannot_be_migrated_is_named(spark: Any, tmp_path: Path) -> None:
    source = FileSource(tmp_path, 33, LATE)
    source.write(2)
    stream = rolling(read(spark, tmp_path), **ROLLING, late=LATE, emit="update")
    run(spark, stream, tmp_path, "old")
    old, new, spec = tmp_path / "old", tmp_path / "new", sw.Spec(**ROLLING)
    more = {**AGGS, "came": sw.max("came")}
    longer = spec.replace(windows=["10s", "3m"])
    for arguments, message in [
        ({}, "migrate changes nothing: give buckets=, spec= or publish="),
        ({"buckets": 0}, "buckets= is an integer, 1 or more; got 0"),
        ({"spec": ROLLING}, "spec= takes a slidewise.Spec; got dict"),
        ({"publish": old}, "of a stream that publishes, and this one does not: leave"),
        ({"spec": longer}, "of another Spec: the window '3m' is beyond its horizon"),
        (
            {"spec": spec.replace(aggs=more)},
            r"aggs\['came'\], max\('came'\), reads the column 'came', which it does",
        ),
        ({"spec": spec.replace(by=None)}, r"Spec: by=\(\), and there \('key',\)"),
    ]:
        with pytest.raises(SpecError, match=message):
            migrate(old, new, **arguments)
    with pytest.raises(SpecError, match=r"there is no checkpoint .*/none'"):
        migrate(tmp_path / "none", new, buckets=3)
    with pytest.raises(SpecError, match="/in' is not a checkpoint with a committed"):
        migrate(tmp_path / "in", new, buckets=3)
    with pytest.raises(SpecError, match="old-out' exists, and migrate makes a new"):
        migrate(old, tmp_path / "old-out", buckets=3)
    last = max(int(path.name) for path in (old / "commits").glob("[0-9]*"))
    for name in (f"{last}", f".{last}.crc"):
        (old / "commits" / name).unlink()
    with pytest.raises(SpecError, match=f"micro-batch {last} of .*old' may have re"):
        migrate(old, new, buckets=3)
    noop = stream.writeStream.format("noop").option("checkpointLocation", str(old))
    query = noop.start()
    try:
        with pytest.raises(
            SpecError, match=r"a query runs on the checkpoint .*old': s"
        ):
            migrate(old, new, buckets=3)
    finally:
        query.stop()
    assert not new.exists()
    assert not (tmp_path / "new.migrating").exists()
