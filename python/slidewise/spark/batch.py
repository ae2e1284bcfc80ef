"""Batch queries: rows sorted by key and time within partitions, one pass over each.

    repartition(n, keys) → sortWithinPartitions(keys, time) → mapInArrow

There is one shuffle and one sort for any number of windows and aggregations. The sort
is by one number where possible (`sort_key`). The number of partitions is explicit,
so that adaptive query execution neither merges nor splits them. Skewed keys are split
by time first (`skew`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.keyed.query import CORRECTION
from slidewise.keyed.validation import refuse_flag
from slidewise.spark.batch_worker import partition_function
from slidewise.spark.buckets import PARTITIONS
from slidewise.spark.columns import (
    END,
    RESERVED_PREFIX,
    ROLE,
    ROW,
    START,
    ascending,
    column,
    key_columns,
)
from slidewise.spark.jobs import name_of
from slidewise.spark.labels import Labels, add_labels
from slidewise.spark.only import Only
from slidewise.spark.options import BatchOptions, StreamOptions
from slidewise.spark.schemas import (
    arrow_schema,
    check_boolean,
    check_reserved_names,
    result_struct,
)
from slidewise.spark.skew import find_splits
from slidewise.spark.skew_split import SPLIT, SkewSplits, SplitBounds, add_splits
from slidewise.spark.sort_key import (
    KEY_GROUP,
    add_sort_key,
    fits_sort_key,
    repartition_splits,
)
from slidewise.spec.spec import Spec, derive
from slidewise.table.asof import PointColumns
from slidewise.table.batched_rolling import Order

__all__ = [
    "BatchPlan",
    "add_flags",
    "cores_of",
    "drop_deleted",
    "drop_duplicates",
    "drop_markers",
    "plan_batch",
    "transform_specs",
]

# Spark's default of spark.sql.shuffle.partitions; this value counts as not set.
_DEFAULT_PARTITIONS = "200"
_TASKS_PER_CORE = 2
# Columns that `drop_deleted` adds and drops besides `ROW`: how many rows of the key and
# time of a row are deletions, and its rank among the others. `drop_duplicates` adds the
# rank, too.
_DELETIONS = f"{RESERVED_PREFIX}deletions"
_RANK = f"{RESERVED_PREFIX}rank"


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The plan of a batch query.

    Attributes:
        rows: The DataFrame of rows, with labels among them.
        spec: The windows and aggregations.
        schema: The schema of the results.
        tasks: The number of shuffle partitions.
        splits: The splits of skewed keys; None without skewed keys.
        then_by: The columns that order rows of equal time.
        by_sort_key: Whether rows are sorted by one number (`sort_key`).
        labels: The labels; None for results at the rows.
        only: What `only=` means; None for results of all rows.
    """

    rows: Any
    spec: Spec
    schema: StructType
    tasks: int
    splits: SkewSplits | None
    then_by: tuple[str, ...]
    by_sort_key: bool
    labels: Labels | None
    only: Only | None


def transform_specs(
    df: Any,
    specs: Sequence[Spec],
    options: BatchOptions,
    at: Any = None,
    columns: Sequence[PointColumns] = (),
    only: Only | None = None,
) -> Any:
    """Returns the results of each Spec, one shuffle and sort after another.

    `at` are the labels, and `columns` those of them that each Spec reads.
    """
    df = drop_duplicates(df, specs[0], options.then_by)
    results = df if at is None else at
    for place, spec in enumerate(specs):
        if at is None:
            read = df if place else None
            plan = plan_batch(results, spec, options, only=only, read=read)
        else:
            labels = Labels(results, columns[place])
            plan = plan_batch(df, spec, options, labels, only)
        results = _apply(plan)
    return results


def add_flags(results: Any, options: StreamOptions) -> Any:
    """Adds the flags of streams, such as `_late`, which are all false."""
    names = [CORRECTION] if options.corrects else []
    for flag in options.flags:
        refuse_flag(results.columns, options.late_rows, flag)
        names.append(flag)
    # Spark Connect refuses withColumns({}).
    if not names:
        return results
    return results.withColumns({name: sf.lit(False) for name in names})


def drop_markers(df: Any, marker: str | None) -> Any:
    """Drops marker rows, which only move the watermark of a stream."""
    if marker is None:
        return df
    check_boolean(df, marker, "marker")
    return df.where(sf.coalesce(~column(marker), sf.lit(True)))


def number_rows(df: Any) -> Any:
    """Appends the numbers of rows in the order in which Spark reads them."""
    return df.withColumn(ROW, sf.monotonically_increasing_id())


def drop_deleted(
    df: Any,
    spec: Spec,
    options: StreamOptions,
    number: Callable[[Any], Any] = number_rows,
) -> Any:
    """Drops the rows that are true in `deletes=`, and the rows that they delete.

    A deletion removes the first row of its key and time by `then_by`; of rows that are
    equal in `then_by`, the first that Spark reads.
    """
    if options.deletes is None:
        return df
    check_reserved_names(df)
    names = [*spec.columns, *options.then_by, options.deletes]
    require(frame(arrow_schema(df).empty_table()), names, "the DataFrame")
    check_boolean(df, options.deletes, "deletes")
    is_deletion = sf.coalesce(column(options.deletes), sf.lit(False))
    key_and_time = [*key_columns(df, spec.by), column(spec.on)]
    order = [*ascending(options.then_by), column(ROW)]
    peers = Window.partitionBy(*key_and_time, is_deletion).orderBy(*order)
    deletions = sf.sum(is_deletion.cast("int"))
    numbered = number(df).withColumns(
        {
            _DELETIONS: deletions.over(Window.partitionBy(*key_and_time)),
            _RANK: sf.row_number().over(peers),
        }
    )
    kept = numbered.where(~is_deletion & (column(_RANK) > column(_DELETIONS)))
    return kept.drop(ROW, _DELETIONS, _RANK)


def drop_duplicates(df: Any, spec: Spec, then_by: Sequence[str]) -> Any:
    """Drops the duplicates of `unique_by=`: of equal keys and ids the first stays.

    Rows are in order of arrival, those that arrived together in order of time, and
    those of equal time in that of `then_by`.
    """
    if not spec.unique_by:
        return df
    check_reserved_names(df)
    names = [*spec.columns, *then_by]
    require(frame(arrow_schema(df).empty_table()), names, "the DataFrame")
    same = key_columns(df, dict.fromkeys([*spec.by, *spec.unique_by]))
    order = [column(name) for name in (*spec.arrivals, spec.on)]
    rows = Window.partitionBy(*same).orderBy(*order, *ascending(then_by))
    ids = [column(name).isNotNull() for name in spec.unique_by]
    rank = sf.when(reduce(and_, ids), sf.row_number().over(rows)).otherwise(1)
    return df.withColumn(_RANK, rank).where(column(_RANK) == 1).drop(_RANK)


def plan_batch(
    df: Any,
    spec: Spec,
    options: BatchOptions,
    labels: Labels | None = None,
    only: Only | None = None,
    read: Any = None,
) -> BatchPlan:
    """Plans a batch query; the search for skewed keys may run small jobs.

    With `only`, `read` are all rows, if `df` are those that another query answered.
    """
    then_by = options.then_by
    if only is not None and labels is not None:
        labels = replace(labels, df=only.labels(labels.df, labels.columns.on))
    schema = result_struct(df, spec, then_by, labels)
    needed = [*dict.fromkeys([*spec.columns, *then_by])]
    rows = df
    if labels is not None:
        rows = add_labels(df, labels, spec, needed)
    elif spec.is_hopping:
        rows = df.select(*map(column, needed))
    elif only is not None:
        rows = only.with_roles(df, read)
    tasks = _task_count(df, options)
    splits = find_splits(rows, spec, options, tasks, arrow_schema(rows))
    tasks = 1 if not spec.by and splits is None else tasks
    by_sort_key = fits_sort_key(rows, spec, then_by, splits, tasks)
    return BatchPlan(
        rows, spec, schema, tasks, splits, then_by, by_sort_key, labels, only
    )


def _apply(plan: BatchPlan) -> Any:
    """Returns the DataFrame of a plan's results."""
    spec, rows = plan.spec, plan.rows
    order, within = Order(), None
    if plan.only is not None and spec.is_hopping:
        order, within = Order(within=(START, END)), plan.only.ticks
    elif plan.only is not None and plan.labels is None:
        order = Order(roles=ROLE)
    keys = key_columns(rows, spec.by)
    bounds = None
    if plan.splits is not None:
        rows = add_splits(rows, spec, plan.splits)
        rows = repartition_splits(rows, spec, plan.tasks)
        keys.append(column(SPLIT))
        bounds = SplitBounds.of(plan.splits)
    elif keys:
        rows = rows.repartition(plan.tasks, *keys)
    else:
        rows = rows.repartition(1)
    if plan.by_sort_key:
        rows, sort_key = add_sort_key(rows, spec, plan.splits, plan.tasks)
        rows = rows.sortWithinPartitions(sort_key)
        order = replace(order, runs=(KEY_GROUP,))
    else:
        times = map(column, spec.arrivals or (spec.on,))
        rows = rows.sortWithinPartitions(*keys, *times, *ascending(plan.then_by))
    added = () if bounds is None else (SPLIT,)
    points = None if plan.labels is None else plan.labels.in_workers(added)
    if bounds is not None:
        spec = derive(spec, by=(*spec.by, *added))
    function = partition_function(
        spec,
        order,
        bounds,
        tuple(rows.columns),
        tuple(plan.schema.names),
        points,
        within,
    )
    function.__name__ = name_of(plan.spec)
    # PySpark parses dots and backticks in names here; workers have the true names.
    numbered = rows.toDF(*(f"_{at}" for at in range(len(rows.columns))))
    return numbered.mapInArrow(function, plan.schema)


def _task_count(df: Any, options: BatchOptions) -> int:
    """Returns the number of shuffle partitions: the setting, else two per core."""
    if options.partitions is not None:
        return options.partitions
    spark = df.sparkSession
    setting = spark.conf.get(PARTITIONS, _DEFAULT_PARTITIONS)
    cores = cores_of(spark)
    if setting != _DEFAULT_PARTITIONS or cores is None:
        return int(setting)
    return min(_TASKS_PER_CORE * cores, int(setting))


def cores_of(spark: Any) -> int | None:
    """Returns the number of cores; None for Spark Connect, which does not tell it."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 - its error varies
        return None
