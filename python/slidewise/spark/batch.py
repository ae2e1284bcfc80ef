"""Batch: rows sorted by key and time in partitions, one pass over each.

    repartition(n, keys) → sortWithinPartitions(keys, time) → mapInArrow

One shuffle and one sort (by one number where that will do: `sorting`), whatever the
number of windows and aggregations. The number of
partitions is given, so that adaptive execution neither merges nor splits them. Keys of
very many rows are cut into pieces of time first (`hot`).
"""

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.keyed.query import CORRECTION, LATE
from slidewise.keyed.validation import refuse_flag
from slidewise.spark import skew
from slidewise.spark.batch_worker import answer
from slidewise.spark.columns import OWN, ascending, column, key_column
from slidewise.spark.options import BatchOptions, StreamOptions
from slidewise.spark.schemas import (
    arrow_schema,
    check_booleans,
    refuse_own,
    with_results,
)
from slidewise.spark.skew_split import PIECE, Bounds, Cuts, in_pieces
from slidewise.spark.sort_key import RUN, by_one_number, placed, with_runs
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import Order

__all__ = [
    "Job",
    "answered",
    "planned",
    "with_flags",
    "without_deleted",
    "without_markers",
]

# Spark's own default of spark.sql.shuffle.partitions, which nobody has chosen.
_UNSAID = "200"
_PER_CORE = 2
# What `without_deleted` adds to rows for as long as it needs it: their number, how many
# rows of their key and time are taken back, and which of these they are.
_ROW = f"{OWN}row"
_DELETED = f"{OWN}deleted"
_PLACE = f"{OWN}place"


@dataclass(frozen=True, slots=True)
class Job:
    """A batch job, planned.

    Attributes:
        spec: What is asked.
        schema: Of the answers.
        tasks: How many tasks sort and answer.
        cuts: Where hot keys are cut, or None.
        then_by: What orders rows of equal time.
        in_runs: Whether rows are sorted by one number (`sorting`).
    """

    spec: Spec
    schema: StructType
    tasks: int
    cuts: Cuts | None
    then_by: tuple[str, ...]
    in_runs: bool


def answered(df: Any, spec: Spec, options: BatchOptions) -> Any:
    """The DataFrame of answers.

    Args:
        df: A batch DataFrame.
        spec: What is asked.
        options: How the job is cut into tasks.

    Raises:
        SpecError: If the spec does not fit the columns.
    """
    return _run(df, planned(df, spec, options))


def with_flags(answers: Any, options: StreamOptions) -> Any:
    """Answers with the columns by which those of a stream say what they are."""
    names = [CORRECTION] if options.corrects else []
    if options.flags:
        refuse_flag(answers.columns, options.late_rows)
        names.append(LATE)
    # Spark Connect refuses to add no columns.
    if not names:
        return answers
    return answers.withColumns({name: sf.lit(False) for name in names})


def without_markers(df: Any, marker: str | None) -> Any:
    """The rows that are rows: markers only move the watermark of a stream."""
    if marker is None:
        return df
    check_booleans(df, marker, "marker")
    return df.where(sf.coalesce(~column(marker), sf.lit(True)))


def without_deleted(df: Any, spec: Spec, options: StreamOptions) -> Any:
    """The rows that no other row takes back, and that take none back themselves.

    Of rows of equal key and time the first by `then_by` is taken back first; where that
    does not tell, the first in the order in which Spark reads them.
    """
    if options.deletes is None:
        return df
    refuse_own(df)
    names = [*spec.columns, *options.then_by, options.deletes]
    require(frame(arrow_schema(df).empty_table()), names, "the DataFrame")
    check_booleans(df, options.deletes, "deletes")
    gone = sf.coalesce(column(options.deletes), sf.lit(False))
    place = [*(key_column(df, name) for name in spec.by), column(spec.on)]
    order = [*ascending(options.then_by), column(_ROW)]
    alike = Window.partitionBy(*place, gone).orderBy(*order)
    marked = df.withColumn(_ROW, sf.monotonically_increasing_id()).withColumns(
        {
            _DELETED: sf.sum(gone.cast("int")).over(Window.partitionBy(*place)),
            _PLACE: sf.row_number().over(alike),
        }
    )
    rows = marked.where(~gone & (column(_PLACE) > column(_DELETED)))
    return rows.drop(_ROW, _DELETED, _PLACE)


def planned(df: Any, spec: Spec, options: BatchOptions) -> Job:
    """How the answers would be found.

    Raises:
        SpecError: If the spec does not fit the columns.
    """
    schema = with_results(df, spec, options.then_by)
    tasks = _tasks(df, options)
    cuts = skew.find_cuts(df, spec, options, tasks, arrow_schema(df))
    tasks = 1 if not spec.by and cuts is None else tasks
    in_runs = by_one_number(df, spec, options.then_by, cuts, tasks)
    return Job(spec, schema, tasks, cuts, options.then_by, in_runs)


def _run(df: Any, job: Job) -> Any:
    spec = job.spec
    order = Order()
    keys = [key_column(df, name) for name in spec.by]
    rows = _needed(df, job)
    bounds = None
    if job.cuts is not None:
        rows = in_pieces(rows, spec, job.cuts)
        rows = placed(rows, spec, job.tasks)
        keys.append(column(PIECE))
        bounds = Bounds.of(job.cuts)
    elif keys:
        rows = rows.repartition(job.tasks, *keys)
    else:
        rows = rows.repartition(1)
    if job.in_runs:
        rows, number = with_runs(rows, spec, job.cuts, job.tasks)
        rows = rows.sortWithinPartitions(number)
        order = replace(order, runs=(RUN,))
    else:
        time = column(spec.arrival or spec.on)
        rows = rows.sortWithinPartitions(*keys, time, *ascending(job.then_by))
    if bounds is not None:
        spec = replace(spec, by=(*spec.by, PIECE))
    run = answer(spec, order, bounds, tuple(rows.columns), tuple(job.schema.names))
    # PySpark takes names with dots and backticks apart here; the workers know them.
    plain = rows.toDF(*(f"_{at}" for at in range(len(rows.columns))))
    return plain.mapInArrow(run, job.schema)


def _needed(df: Any, job: Job) -> Any:
    """The rows with what goes through the shuffle: windows leave other columns out."""
    if not job.spec.is_hopping:
        return df
    names = dict.fromkeys([*job.spec.columns, *job.then_by])
    return df.select(*map(column, names))


def _tasks(df: Any, options: BatchOptions) -> int:
    """How many tasks there will be."""
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
