"""`slidewise rolling --engine spark`: from files to files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType

from slidewise.errors import SlidewiseError, SpecError
from slidewise.spark.batch import answered
from slidewise.spark.columns import column
from slidewise.spark.options import BatchOptions, check_order
from slidewise.spark.session import session
from slidewise.spec import Spec

__all__ = ["KINDS", "cause", "roll"]

KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
}


def roll(
    source: str,
    target: str | None,
    spec: Spec,
    then_by: Sequence[str] | None,
    preview: int,
) -> pa.Table | None:
    """Rolling aggregates of a file or folder, into a folder.

    Args:
        source: What to read.
        target: The folder to write; None for a look at the first rows.
        spec: What is asked.
        then_by: What orders rows of equal time.
        preview: How many rows to look at.

    Returns:
        The first rows, if there is no target.

    Raises:
        SpecError: If the spec does not fit, or a file cannot be read or written so.
        SlidewiseError: If the job fails.
    """
    options = BatchOptions.make(then_by=then_by)
    check_order(spec, options.then_by)
    kind = None if target is None else _kind(target)
    if target is not None and Path(target).exists():
        raise SpecError(f"{target} is there already, and Spark writes a folder of it")
    if not Path(source).exists():
        raise FileNotFoundError(2, "there is no such file", source)
    ours = SparkSession.getActiveSession() is None
    spark = session(config={"spark.ui.showConsoleProgress": "false"})
    try:
        frame = answered(_read(spark, source, spec), spec, options)
        if target is None:
            return frame.limit(preview).toArrow()
        writer = frame.write.option("header", True)
        writer = writer.option("sep", "\t" if target.endswith(".tsv") else ",")
        writer.format(kind).save(target)
    except PySparkException as error:
        raise SlidewiseError(cause(str(error))) from error
    finally:
        if ours:
            spark.stop()
    return None


def _read(spark: Any, source: str, spec: Spec) -> Any:
    kind = _kind(source)
    reader = spark.read.format(kind)
    if kind == "csv":
        separator = "\t" if source.endswith(".tsv") else ","
        reader = reader.options(header=True, inferSchema=True, sep=separator)
    df = reader.load(source)
    times = [spec.on] + ([spec.arrival] if spec.arrival else [])
    for name in times:
        if name in df.columns and isinstance(df.schema[name].dataType, StringType):
            df = df.withColumn(name, sf.to_timestamp(column(name)))
    return df


def _kind(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    found = [KINDS[suffix] for suffix in suffixes if suffix in KINDS]
    if not found:
        known = " ".join(KINDS)
        raise SpecError(
            f"cannot tell from its name what {Path(path).name!r} is to Spark; "
            f"known: {known}"
        )
    return found[-1]


def cause(told: str) -> str:
    """The one line of a failed job that says what was wrong."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("slidewise.errors.")]
    return own[-1].partition(": ")[2] if own else lines[0]
