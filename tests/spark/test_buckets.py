"""Spark spreads the buckets of a stream evenly over any number of partitions."""

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import functions as sf

from slidewise.spark.buckets import bucket_keys
from slidewise.spark.checkpoint_guard import GUARD_BUCKET


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
