"""`slidewise rolling --engine spark`, and sessions of Spark for commands."""

import logging
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions
from pyspark.sql.types import (
    DateType,
    DecimalType,
    DoubleType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from slidewise.errors import Argument, SlidewiseError, SpecError
from slidewise.io.text_form import TextForm
from slidewise.spark.batch import transform_specs
from slidewise.spark.local_session import existing_session, session
from slidewise.spark.options import BatchOptions, check_order
from slidewise.spark.text_times import read_text_times
from slidewise.spark.versions import to_arrow
from slidewise.spec.features import Features, parts_of
from slidewise.spec.spec import Spec

__all__ = ["KINDS", "roll", "running"]

KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
}
_TIMES = (DateType, TimestampType, TimestampNTZType)
# PySpark logs an exception as JSON, besides raising it.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
# An error of slidewise in the message of a failed job.
_OWN_ERROR = re.compile(r"slidewise\.errors\.\w+: (.*)")
# Integers that a float may round, and those beyond 64 bits.
_ROUNDED = r"^[+-]?0*[1-9]\d{15,}$"
_BEYOND = r"^[+-]?0*[1-9]\d{19,}$"


def roll(
    source: str,
    target: str | None,
    spec: Spec | Features,
    then_by: Sequence[str] | None,
    preview: int,
    time_format: str | None = None,
    form: TextForm = TextForm(),  # noqa: B008 - immutable
) -> pa.Table | None:
    """Rolling aggregates of a file or folder, into a folder.

    Args:
        source: The file or folder to read.
        target: The folder to write; None to return the first rows.
        spec: The spec, or Features.
        then_by: The columns that order rows of equal time.
        preview: The number of first rows to return.
        time_format: The format of times that are text.
        form: The delimiter and encoding of text, and the columns to read as text.

    Returns:
        The first rows, if there is no target.

    Raises:
        SpecError: If the spec does not fit, or a file cannot be read or written so.
        SlidewiseError: If the job fails.
    """
    options = BatchOptions.make(then_by=then_by)
    for part in parts_of(spec):
        check_order(part, options.then_by)
    kind = None if target is None else _kind(target)
    if target is not None and Path(target).exists():
        raise SpecError(f"{target} exists already: Spark writes a new folder")
    if not Path(source).exists():
        raise FileNotFoundError(2, "there is no such file", source)
    with running("slidewise", {"spark.ui.showConsoleProgress": "false"}) as spark:
        rows = _read(spark, source, spec, time_format, form)
        frame = transform_specs(rows, parts_of(spec), options)
        if target is None:
            return to_arrow(frame.limit(preview))
        writer = frame.write.option("header", True)
        writer = writer.option("sep", "\t" if target.endswith(".tsv") else ",")
        writer.format(kind).save(target)
    return None


@contextmanager
def running(
    app: str,
    config: dict[str, str],
    explain_failure: Callable[[str], str] = str,
    explain_start_failure: Callable[[str], str] = str,
) -> Iterator[Any]:
    """Yields the session that runs already, or one that stops with the command.

    The output of the latter goes into a file, which is named if Spark fails. PySpark's
    warnings and its log of exceptions are dropped: a failure is one line.

    Args:
        app: The name of the application.
        config: Settings of Spark.
        explain_failure: Makes a message of the reason of a failure.
        explain_start_failure: Likewise, if Spark does not start.

    Raises:
        SlidewiseError: If Spark fails, in one line.
    """
    there = existing_session()
    ours = there is None
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    for name in _LOGGERS:
        logging.getLogger(name).disabled = True
    folder = Path(tempfile.mkdtemp(prefix="slidewise-"))
    log = folder / "spark.log"
    is_wanted = False
    try:
        try:
            with _printing_to(log) if ours else nullcontext():
                spark = session(app, config=config) if ours else there
        except (PySparkException, Py4JError, RuntimeError) as error:
            raise SlidewiseError(explain_start_failure(_cause(str(error)))) from error
        try:
            yield spark
        finally:
            if ours:
                spark.stop()
    except (PySparkException, Py4JError) as error:
        reason = explain_failure(_cause(str(error)))
        if ours and _OWN_ERROR.search(str(error)) is None:
            is_wanted = True
            reason += f" (more of it in Spark's log, {log})"
        raise SlidewiseError(reason) from error
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).disabled = False
        if not is_wanted:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _printing_to(log: Path) -> Iterator[None]:
    """Redirects the output of processes that are started in the block into a file."""
    outs = (sys.stdout, sys.stderr)
    places = (1, 2)
    for out in outs:
        out.flush()
    held = [os.dup(place) for place in places]
    with log.open("ab") as file:
        for place in places:
            os.dup2(file.fileno(), place)
    try:
        yield
    finally:
        for out in outs:
            out.flush()
        for place, before in zip(places, held, strict=True):
            os.dup2(before, place)
            os.close(before)


def _read(
    spark: Any,
    source: str,
    spec: Spec | Features,
    time_format: str | None,
    form: TextForm,
) -> Any:
    """The rows of a file or folder, times read as from a file without Spark."""
    kind = _kind(source)
    name = {"csv": "CSV", "json": "JSON"}.get(kind, kind)
    form.refuse_for(name, Path(source), spec.times)
    reader = spark.read.format(kind)
    if kind == "csv":
        separator = form.delimiter or ("\t" if source.endswith(".tsv") else ",")
        reader = reader.options(header=True, inferSchema=True, sep=separator)
    if form.encoding is not None:
        reader = reader.option("encoding", form.encoding)
    df = reader.load(source)
    text = set(form.text)
    if kind == "csv" and time_format is not None:
        # Spark has already parsed the times that it recognizes.
        times = (field for field in df.schema if isinstance(field.dataType, _TIMES))
        text |= {field.name for field in times if field.name in spec.times}
    if kind != "parquet":
        text.update(_large_keys(df, reader, source, spec, text))
    if text:
        df = reader.schema(_with_text(df.schema, text)).load(source)
    return read_text_times(df, spec.times, time_format)


def _with_text(schema: Any, names: Collection[str]) -> Any:
    return StructType(
        [
            StructField(field.name, StringType()) if field.name in names else field
            for field in schema
        ]
    )


def _large_keys(
    df: Any, reader: Any, source: str, spec: Spec | Features, text: Collection[str]
) -> list[str]:
    """The keys with integers beyond int64, which Spark reads as decimals or floats.

    Raises:
        SpecError: If another column has one.
    """
    # Spark takes a column of integers for decimals, or for floats beside fractions.
    patterns = {
        field.name: _ROUNDED
        if field.name in spec.by or isinstance(field.dataType, DecimalType)
        else _BEYOND
        for field in df.schema
        if isinstance(field.dataType, DecimalType | DoubleType)
        and field.name not in text
    }
    if not patterns:
        return []
    written = reader.schema(_with_text(df.schema, patterns)).load(source)
    large = []
    for name, pattern in patterns.items():
        value = functions.trim(functions.col(f"`{name}`"))
        found = functions.max(functions.when(value.rlike(pattern), value))
        large.append(found.alias(name))
    (row,) = written.agg(*large).collect()
    keys = [name for name in patterns if row[name] is not None]
    for name in keys:
        if name not in spec.by:
            raise SpecError(
                f"column {name!r} holds {row[name]}, which Spark's integers do not "
                "hold: read the column as text with ",
                Argument("text", name),
            )
    return keys


def _kind(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    found = [KINDS[suffix] for suffix in suffixes if suffix in KINDS]
    if not found:
        known = " ".join(KINDS)
        raise SpecError(
            f"{Path(path).name!r} has no ending that Spark reads and writes; "
            f"known: {known}"
        )
    return found[-1]


def _cause(message: str) -> str:
    """The line of a failed job that names the reason."""
    own = _OWN_ERROR.findall(message)
    if own:
        return str(own[-1])
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    # Java's errors follow the failed call, with the full names of their classes.
    java = [line for line in lines if line.startswith(": ")]
    return re.sub(r"^: (\w+\.)*", "", (java or lines or [""])[0])
