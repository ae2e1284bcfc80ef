"""Batch: rows sorted by key and time in partitions, one pass over each.

    repartition(n, keys) → sortWithinPartitions(keys, time) → mapInArrow

One shuffle and one sort, whatever the number of windows and aggregations. The number of
partitions is given, so that adaptive execution neither merges nor splits them.
"""

from typing import Any

from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType

from slidewise.batches import Order
from slidewise.spark.options import BatchOptions
from slidewise.spark.schemas import with_results
from slidewise.spark.workers import answer
from slidewise.spec import Spec

__all__ = ["answered"]

# Spark's own default of spark.sql.shuffle.partitions, which nobody has chosen.
_UNSAID = "200"
_PER_CORE = 2


def answered(df: Any, spec: Spec, options: BatchOptions, *, flag: bool = False) -> Any:
    """The DataFrame of answers.

    Args:
        df: A batch DataFrame.
        spec: What is asked.
        options: How the job is cut into tasks.
        flag: Whether a column `_late` is wanted, as streams have it.

    Raises:
        SpecError: If the spec does not fit the columns.
    """
    schema = with_results(df, spec, options.then_by)
    keys = [key_column(df, name) for name in spec.by]
    order = [spec.arrival or spec.on, *options.then_by]
    if spec.arrival is not None and options.then_by:
        order = [spec.arrival, *options.then_by]
    spread = df.repartition(partitions(df, spec, options), *keys)
    rows = spread.sortWithinPartitions(*keys, *map(column, order))
    run = answer(spec, Order(together=True), tuple(schema.names))
    out = rows.mapInArrow(run, schema)
    return out.withColumn("_late", sf.lit(False)) if flag else out


def partitions(df: Any, spec: Spec, options: BatchOptions) -> int:
    """How many tasks there will be."""
    if not spec.by:
        return 1
    if options.partitions is not None:
        return options.partitions
    spark = df.sparkSession
    asked = spark.conf.get("spark.sql.shuffle.partitions", _UNSAID)
    if asked != _UNSAID:
        return int(asked)
    try:
        cores = spark.sparkContext.defaultParallelism
    except Exception:  # noqa: BLE001 - Spark Connect has no context, and says so its way
        return int(asked)
    return min(_PER_CORE * int(cores), int(asked))


def column(name: str) -> Any:
    """A column by its name, whatever characters it has."""
    quoted = name.replace("`", "``")
    return sf.col(f"`{quoted}`")


def key_column(df: Any, name: str) -> Any:
    """A key column; the two zeros of floats, which are one key, as one."""
    kind = df.schema[name].dataType
    if isinstance(kind, FloatType | DoubleType):
        return column(name) + sf.lit(0.0).cast(kind)
    return column(name)
