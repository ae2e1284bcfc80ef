"""`OnSpark`: plays a script through a stream of Spark, in a local session."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from slidewise.errors import SpecError
from slidewise.spark import hopping, rolling, session
from slidewise.spark.local_session import PROVIDER, ROCKSDB, existing_session
from slidewise.testing.case import ROW, Case
from slidewise.testing.differences import RAISES, DifferenceError, cell
from slidewise.testing.expected import Expected
from slidewise.testing.script import Script, Step

__all__ = ["OnSpark", "rows_of_spark"]

# Few tasks, as each micro-batch starts them anew.
_SETTINGS = {"spark.sql.shuffle.partitions": "2", PROVIDER: ROCKSDB}
# The time of the first file, in seconds: Spark reads files in order of their times.
_FIRST = 1_000_000_000
# The metrics of a stream that are compared, and those of the rows accepted.
_COUNTS = {"late": "late_count", "duplicates": "duplicate_count"}


def _own_session() -> Any:
    """A session with settings of its own, in the Spark of this process."""
    try:
        spark = existing_session()
    except ImportError:
        spark = None  # `session` says what to install
    spark = session("slidewise check") if spark is None else spark
    if not hasattr(spark, "sparkContext"):
        raise SpecError(
            "check_stream(engine='spark') needs a local session, and that of this "
            "process is of Spark Connect: call it in another process"
        )
    spark = spark.newSession()
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    return spark


def rows_of_spark(rows: pa.Table) -> tuple[Any, Any, pa.Table]:
    """A session, the schema of rows as Spark reads them, and these rows."""
    spark = _own_session()
    with TemporaryDirectory(prefix="slidewise-check-") as folder:
        path = Path(folder) / "rows.parquet"
        _write(rows, path)
        read = spark.read.parquet(str(path))
        return spark, read.schema, read.toArrow().sort_by(ROW).combine_chunks()


def _write(rows: pa.Table, path: Path) -> None:
    pq.write_table(rows, path, coerce_timestamps="us", allow_truncated_timestamps=True)


class OnSpark:
    """Plays scripts of a case on Spark: a file per micro-batch.

    Attributes:
        batches: The most batches of a script.
        tries: The most scripts that are played to find a smaller one.

    Args:
        case: The case, with rows as Spark reads them.
        given: The arguments of `slidewise.spark.rolling`.
        spark: The session.
        schema: The Spark schema of the rows.
        results: The Arrow schema of the table's results.
    """

    batches = 5
    tries = 30

    def __init__(
        self,
        case: Case,
        given: Mapping[str, Any],
        spark: Any,
        schema: Any,
        results: pa.Schema,
    ) -> None:
        self._case, self._results = case, results
        self._spark, self._schema = spark, schema
        late = timedelta(microseconds=case.late)
        unset = (None, False)
        options = {name: x for name, x in given.items() if x not in unset}
        call: Any = hopping if case.spec.is_hopping else rolling
        self._call = call(spec=case.spec, **{**options, "late": late})
        ranks = [(name, "ascending") for name in (case.spec.on, *case.then_by, ROW)]
        order = case.rows.sort_by(ranks)[ROW].to_pylist()
        # Of rows that arrive together the first one by time is no duplicate.
        self._rank = {row: at for at, row in enumerate(order)}
        with TemporaryDirectory(prefix="slidewise-check-") as folder:
            self._call(self._read(Path(folder)))  # what is refused is refused now

    def _read(self, folder: Path) -> Any:
        """The stream of the files of a folder, in the order of their times."""
        stream = self._spark.readStream.schema(self._schema)
        return stream.option("maxFilesPerTrigger", 1).parquet(str(folder))

    def adapted(self, script: Script, random: Random) -> Script:  # noqa: ARG002
        """Without queries; the watermark advances with each micro-batch."""
        return tuple(
            replace(step, advance=False, asked=()) for step in script if step.rows
        )

    def play(self, script: Script) -> None:
        """Plays a script.

        Raises:
            DifferenceError: If a cell differs.
        """
        expected, number = Expected(self._case), 0
        counts = dict.fromkeys(_COUNTS, 0)
        with TemporaryDirectory(prefix="slidewise-check-") as made:
            folder = Path(made)
            (folder / "in").mkdir()
            for steps in _runs(script):
                for step in steps:
                    rows = self._case.rows.take(pa.array(step.rows, pa.int64()))
                    path = folder / "in" / f"{number:04}.parquet"
                    _write(rows, path)
                    os.utime(path, (_FIRST + number, _FIRST + number))
                    number += 1
                batches, counted = self._run(folder)
                self._compare(expected, steps, batches)
                for name, attribute in _COUNTS.items():
                    counts[name] += int(counted.get(name, 0))
                    wanted = getattr(expected, attribute)
                    if counts[name] != wanted:
                        pair = (str(counts[name]), str(wanted))
                        raise cell(f"the count {name!r}", "the stream", *pair)

    def _compare(
        self, expected: Expected, steps: Sequence[Step], batches: Sequence[pa.Table]
    ) -> None:
        """Compares micro-batches; those after all rows only move the watermark."""
        rows = [step.rows for step in steps]
        rows += [()] * (len(batches) - len(rows))
        for each, found in zip(rows, batches, strict=True):
            before = expected.watermark
            expected.advance()
            expected.ingest(sorted(each, key=self._rank.__getitem__))
            expected.check(before, self._in_types_of_tables(found))

    def _run(self, folder: Path) -> tuple[list[pa.Table], Mapping[str, float]]:
        """Runs a query until it has read all files; its results, and its metrics."""
        from pyspark.errors import StreamingQueryException

        from slidewise.spark.listener import metrics

        batches: list[pa.Table] = []

        def put(results: Any, batch: int) -> None:  # noqa: ARG001
            batches.append(results.toArrow())

        writer = self._call(self._read(folder / "in")).writeStream.foreachBatch(put)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            text = str(error)
            if "ResultOverflowError" in text:
                raise
            raise DifferenceError(f"{RAISES} {text.splitlines()[0]}") from error
        return batches, metrics(query)

    def _in_types_of_tables(self, found: pa.Table) -> pa.Table:
        """Results in the types that `rolling` gives, of which Spark has fewer."""
        for at, field in enumerate(found.schema):
            wanted = self._results.get_field_index(field.name)
            if wanted >= 0:
                kind = self._results.field(wanted).type
                column = found[field.name].cast(kind)
                found = found.set_column(at, field.name, column)
        return found

    def lines(self, script: Script) -> list[str]:
        """A script as micro-batches."""
        lines = []
        for step in script:
            lines.append(f"  micro-batch({self._case.text_of(step.rows)})")
            lines += ["  restart from the checkpoint"] * step.restart
        return lines


def _runs(script: Script) -> Iterator[list[Step]]:
    """The steps between restarts, without those that have no rows."""
    steps: list[Step] = []
    for step in script:
        steps += [step] if step.rows else []
        if step.restart and steps:
            yield steps
            steps = []
    if steps:
        yield steps
