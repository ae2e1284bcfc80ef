"""Each partition of the state has one bucket, however many are asked for."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as sf
from streams import LATE, ROLLING, FileSource, assert_same, read, start, written

from slidewise.spark import metrics, rolling
from slidewise.spark.buckets import PARTITIONS, bucket_keys
from slidewise.spark.checkpoint_guard import GUARD_BUCKET
from slidewise.spark.checkpoint_state import CheckpointState


def test_the_hash_of_a_key_is_its_bucket(spark: Any) -> None:
    keys = bucket_keys(1_000)
    assert GUARD_BUCKET not in keys
    rows = spark.createDataFrame([(key,) for key in keys], "bucket int")
    hashes = rows.select("bucket", sf.hash("bucket").alias("hash")).collect()
    assert {row.bucket: row.hash for row in hashes} == {
        key: bucket for bucket, key in enumerate(keys)
    }


@pytest.mark.parametrize(("buckets", "partitions"), [(8, 2), (8, 3), (5, 8), (32, 12)])
def test_partitions_get_equal_numbers_of_buckets(
    spark: Any, buckets: int, partitions: int
) -> None:
    rows = spark.createDataFrame([(key,) for key in bucket_keys(buckets)], "bucket int")
    placed = rows.repartition(partitions, "bucket").select(sf.spark_partition_id())
    counts = Counter(row[0] for row in placed.collect())
    per_partition = [counts[at] for at in range(partitions)]
    assert max(per_partition) - min(per_partition) <= 1


def test_a_task_has_one_bucket(spark: Any, tmp_path: Path) -> None:
    """The number is that of the checkpoint, also if the next session has another."""
    source = FileSource(tmp_path, 41, LATE)
    for partitions, most in [("3", 1_024), ("5", None), ("2", 1_024)]:
        source.write(2)
        spark.conf.set(PARTITIONS, partitions)
        answers = rolling(read(spark, tmp_path), **ROLLING, late=LATE, buckets=most)
        query = start(answers, tmp_path, "many")
        query.awaitTermination()
        assert max(metrics(one)["calls"] for one in query.recentProgress) == 3
    assert (
        len(CheckpointState.open(spark, str(tmp_path / "many-checkpoint")).heads) == 3
    )
    ours = written(spark, tmp_path, "many")
    assert_same(ours, source.expected("final", ROLLING), ["id"])
