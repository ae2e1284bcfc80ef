"""Runs `slidewise stream`: source, windows, sink and progress."""

import logging
import os
import shutil
import signal
import tempfile
import threading
import time
import warnings
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyspark
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, TimestampNTZType

from slidewise.cli.progress import BatchReport
from slidewise.cli.spark import KINDS, running
from slidewise.cli.spark_progress import Batches
from slidewise.cli.stream import record_key, trigger
from slidewise.cli.terminal import print_table
from slidewise.errors import SpecError
from slidewise.spark.checkpoint_guard import Guard
from slidewise.spark.columns import column
from slidewise.spark.options import StreamOptions, check_order
from slidewise.spark.stream import make_query, most_buckets, transform_stream
from slidewise.spec.spec import Spec

__all__ = ["run_stream"]

_PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
_SHOWN = 20
# Seconds between two checks of the progress of the query.
_POLL_SECONDS = 0.5
# By default Spark writes milliseconds.
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def run_stream(options: Namespace, spec: Spec) -> None:
    """Runs a stream until it ends, fails or is interrupted.

    Raises:
        SpecError: If the spec does not fit the rows, or the session.
        SlidewiseError: If the stream fails.
    """
    stream_options = StreamOptions.make(
        spec,
        late=options.late,
        emit=options.emit,
        late_rows=options.late_rows,
        then_by=options.then_by,
        marker=options.marker,
        deletes=options.deletes,
        changed=options.changed,
        ahead=options.ahead,
        idle=options.idle,
    )
    stream_options.check_stream()
    check_order(spec, stream_options.then_by)
    explain = partial(_explain_failure, options)
    explain_start = partial(_explain_start_failure, options)
    scratch = None if options.checkpoint else tempfile.mkdtemp(prefix="slidewise-")
    try:
        with running(
            "slidewise stream", _config(options), explain, explain_start
        ) as spark:
            rows = _with_times(_source(spark, options), spec)
            answers = transform_stream(rows, spec, stream_options)
            if options.checkpoint is not None:
                job = make_query(rows, spec, stream_options)
                _compare(
                    options.checkpoint,
                    Guard.of(job, most_buckets(spec, stream_options)),
                )
            _run(_sink(answers, options, spec, scratch), options)
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _compare(checkpoint: str, guard: Guard) -> None:
    """Refuses the checkpoint of another query before Spark starts it.

    Otherwise the state would refuse it with the first new rows.
    """
    if "://" in checkpoint:
        return
    folder = Path(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "slidewise.json"
    if not any(folder.glob("offsets/[0-9]*")):
        file.write_bytes(guard.to_bytes())
    elif file.exists():
        Guard.check(guard.to_bytes(), file.read_bytes())


def _config(options: Namespace) -> dict[str, str]:
    # On one machine, more tasks than cores cost time; Spark's default is 200.
    config = {"spark.sql.shuffle.partitions": str(os.cpu_count() or 1)}
    config["spark.ui.showConsoleProgress"] = "false"
    if options.kafka or options.to_kafka:
        connector = options.connector or _PACKAGE
        jars = connector.endswith(".jar")
        config["spark.jars" if jars else "spark.jars.packages"] = connector
    return config


def _explain_start_failure(options: Namespace, reason: str) -> str:
    message = f"Spark did not start: {reason}"
    if options.kafka or options.to_kafka:
        message += (
            f" It fetches {options.connector or _PACKAGE}: if that cannot be reached, "
            "--connector takes another version, or the paths of its jars"
        )
    return message


def _explain_failure(options: Namespace, reason: str) -> str:
    if "Failed to find data source: kafka" in reason:
        return (
            "Spark's connector for Kafka is missing, and a running session cannot load "
            f"it: start the session with spark.jars.packages={_PACKAGE}"
        )
    if "Python worker failed to connect back" in reason:
        return (
            "Spark waits ten seconds for a Python worker, and the machine was too "
            "busy: start the stream again, it continues where it was"
        )
    if "UnknownTopicOrPartition" in reason:
        return f"there is no topic {options.topic!r} at {options.kafka}"
    return reason


def _source(spark: Any, options: Namespace) -> Any:
    reader = spark.readStream
    if options.kafka is not None:
        reader = reader.format("kafka").option("subscribe", options.topic)
        reader = reader.option("kafka.bootstrap.servers", options.kafka)
        reader = reader.option("startingOffsets", options.offsets)
        if options.rows_per_trigger is not None:
            reader = reader.option("maxOffsetsPerTrigger", options.rows_per_trigger)
        value = sf.from_json(sf.col("value").cast("string"), options.schema)
        return reader.load().select(value.alias("row")).select("row.*")
    kind = _kind_of(Path(options.folder))
    form = {"sep": "\t" if kind == "tsv" else ",", "header": True}
    kind = "csv" if kind == "tsv" else kind
    schema = options.schema
    if schema is None:
        there = spark.read.format(kind).options(**form, inferSchema=True)
        schema = there.load(options.folder).schema
    reader = reader.format(kind).options(**form).schema(schema)
    if options.files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", options.files_per_trigger)
    return reader.load(options.folder)


def _kind_of(folder: Path) -> str:
    """The format of the files in a folder, by the first with a known ending."""
    for file in sorted(folder.rglob("*")):
        if file.name.startswith(("_", ".")) or not file.is_file():
            continue
        for suffix in file.suffixes:
            if suffix == ".tsv":
                return "tsv"
            if suffix in KINDS:
                return KINDS[suffix]
    raise SpecError(
        f"there is no file in {str(folder)!r} whose ending shows the format of the "
        f"stream (known: {' '.join(KINDS)}): move the first one in"
    )


def _with_times(rows: Any, spec: Spec) -> Any:
    """Times as Spark keeps watermarks for them; those without a zone are UTC."""
    for name in spec.times:
        if name not in rows.columns:
            continue
        kind = rows.schema[name].dataType
        if isinstance(kind, StringType):
            rows = rows.withColumn(name, sf.to_timestamp(column(name)))
        elif isinstance(kind, TimestampNTZType):
            rows = rows.withColumn(name, column(name).cast("timestamp"))
    return rows


def _sink(answers: Any, options: Namespace, spec: Spec, scratch: str | None) -> Any:
    if options.to_topic is not None:
        answers = _records(answers, record_key(options, spec))
    writer = answers.writeStream.option(
        "checkpointLocation", options.checkpoint or scratch
    )
    if chosen := trigger(options.trigger):
        writer = writer.trigger(**chosen)
    if options.to_topic is not None:
        writer = writer.format("kafka").option("topic", options.to_topic)
        servers = options.to_kafka or options.kafka
        return writer.option("kafka.bootstrap.servers", servers)
    if options.output is not None:
        return writer.format("parquet").option("path", options.output)
    return writer.foreachBatch(_show)


def _records(answers: Any, key: list[str]) -> Any:
    for name in key:
        if name not in answers.columns:
            raise SpecError(
                f"there is no column {name!r} for --record-key; there are "
                f"{', '.join(answers.columns)}"
            )
    names = [column(name) for name in key]
    text = names[0].cast("string") if len(key) == 1 else sf.to_json(sf.struct(*names))
    value = sf.to_json(sf.struct("*"), _JSON)
    return answers.select(text.alias("key"), value.alias("value"))


def _show(answers: Any, _batch: int) -> None:
    # Reads all rows: Spark refuses a batch that was read in part.
    rows = answers.toArrow()
    if len(rows):
        print_table(rows.slice(0, _SHOWN))
    if len(rows) > _SHOWN:
        print(f"... and {len(rows) - _SHOWN:,} more rows", flush=True)


def _run(writer: Any, options: Namespace) -> None:
    elsewhere = options.output is not None or options.to_topic is not None
    report = BatchReport(quiet=options.quiet, in_place=elsewhere)
    batches = Batches()

    def show(query: Any) -> None:
        for batch in batches.since(query.recentProgress):
            report.add(batch)

    with _Interrupt() as interrupt:
        query = writer.start()
        with report:
            while query.isActive and not interrupt.came:
                time.sleep(_POLL_SECONDS)
                show(query)
            query.stop()
            show(query)
    if interrupt.came:
        raise KeyboardInterrupt
    if query.exception() is not None:
        raise query.exception()


class _Interrupt:
    """Records Ctrl-C.

    PySpark's own handler calls the JVM, which fails in the middle of another call.
    """

    def __init__(self) -> None:
        self.came = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._come)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _come(self, _number: int, _frame: object) -> None:
        if self.came:
            # A second Ctrl-C ends the process at once, without warnings about the
            # interrupted call.
            logging.disable()
            warnings.simplefilter("ignore")
            raise KeyboardInterrupt
        self.came = True
