"""The options of `slidewise stream`, and their checks before it is started.

`cli/spark_stream.py` runs the stream on Spark, `cli/local_stream.py` without.
"""

import argparse
import re
from pathlib import Path

from slidewise.cli.file_options import add_file_options
from slidewise.cli.inputs import is_pattern
from slidewise.errors import SpecError
from slidewise.spec.durations import parse_offset
from slidewise.spec.spec import Spec

__all__ = ["add_options", "check", "record_key", "seconds_of", "trigger"]


# The options that only one engine has.
_LOCAL = (
    *("format", "time_format", "time_unit", "text", "missing"),
    *("decimal", "delimiter", "encoding"),
)
_OF_KAFKA = (*("kafka", "topic", "connector", "to_topic", "to_kafka", "record_key"),)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command, except those that make a `Spec`."""
    parser.add_argument(
        "--engine",
        choices=("spark", "local"),
        default="spark",
        help="where to compute (default: spark); local needs no Spark, and reads a "
        "folder, a file, a pattern or standard input in this process",
    )
    _add_source(parser)
    _add_answers(parser)
    _add_sink(parser)
    add_file_options(parser)


def _add_source(parser: argparse.ArgumentParser) -> None:
    source = parser.add_argument_group("source of rows")
    source.add_argument(
        "folder",
        nargs="?",
        help="a folder into which files (Parquet, CSV, JSON lines) are moved; with "
        "--engine local also a file, a pattern such as 'in/*.csv', or - for standard "
        "input with --format",
    )
    source.add_argument(
        "--files-per-trigger",
        type=int,
        metavar="N",
        help="at most N new files per micro-batch",
    )
    source.add_argument(
        "--kafka", metavar="SERVERS", help="read from Kafka, at host:port,host:port"
    )
    source.add_argument(
        "--topic", metavar="NAME", help="the topic to read; its values are JSON objects"
    )
    source.add_argument(
        "--from",
        dest="offsets",
        choices=("earliest", "latest"),
        default="earliest",
        help="where a new stream begins in the topic (default: earliest)",
    )
    source.add_argument(
        "--rows-per-trigger",
        type=int,
        metavar="N",
        help="at most N records of Kafka, or lines of standard input (default: "
        "1,000), per micro-batch",
    )
    source.add_argument(
        "--schema",
        metavar="COLUMNS",
        help='names and types, such as "id long, t timestamp, x double"; needed for '
        "Kafka, and for a folder without a file yet",
    )
    source.add_argument(
        "--connector",
        metavar="PACKAGE",
        help="Spark's connector for Kafka, as Maven coordinates or paths of jars "
        "(default: the package for this version of Spark)",
    )


def _add_answers(parser: argparse.ArgumentParser) -> None:
    answers = parser.add_argument_group("results")
    answers.add_argument(
        "--late",
        metavar="LENGTH",
        help="how long to wait for late rows, such as 10m (required)",
    )
    answers.add_argument(
        "--emit",
        choices=("final", "arrival", "update", "change", "slide"),
        help="final: when a row's window is complete (default); arrival: at once; "
        "update: per micro-batch and key; change: that, and when rows leave a window; "
        "slide: when a hopping window is",
    )
    answers.add_argument(
        "--changed",
        action="store_true",
        help="with --emit change: only results that differ from the last of their key",
    )
    answers.add_argument(
        "--late-rows",
        choices=("drop", "flag", "correct"),
        default="drop",
        help="rows later than that: drop and count them (default), pass them on with "
        "_late true, or correct the results that they change",
    )
    answers.add_argument(
        "--ahead",
        metavar="LENGTH",
        help="drop and count rows that are further ahead of the clock, such as 1h: "
        "they do not move the watermark (default: any may)",
    )
    answers.add_argument(
        "--idle",
        metavar="LENGTH",
        help="after so long without rows, such as 5m, the watermark follows the clock "
        "(default: it waits for rows)",
    )
    answers.add_argument(
        "--then-by",
        action="append",
        metavar="COLUMN",
        help="a column that orders rows of equal time (may be repeated)",
    )
    answers.add_argument(
        "--marker",
        metavar="COLUMN",
        help="a column of booleans: a true row only advances the watermark",
    )
    answers.add_argument(
        "--deletes",
        metavar="COLUMN",
        help="a column of booleans: a true row deletes one of its key and time",
    )


def _add_sink(parser: argparse.ArgumentParser) -> None:
    sink = parser.add_argument_group("sink of results (default: the terminal)")
    sink.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="a folder of Parquet files; with --engine local also - for standard "
        "output with --format",
    )
    sink.add_argument(
        "--to-topic", metavar="NAME", help="a topic of Kafka; values are JSON objects"
    )
    sink.add_argument(
        "--to-kafka",
        metavar="SERVERS",
        help="the servers of the topic (default: those of --kafka)",
    )
    sink.add_argument(
        "--record-key",
        action="append",
        metavar="COLUMN",
        help="a column that identifies a result in the topic (may be repeated): by it "
        "consumers can drop what a restart repeats",
    )
    sink.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="where the stream keeps its state; started again, it continues there",
    )
    sink.add_argument(
        "--trigger",
        metavar="WHEN",
        help="'10s': a micro-batch every ten seconds; 'once': process what there is, "
        "then stop (default: micro-batches without a pause)",
    )
    sink.add_argument("--quiet", action="store_true", help="no progress and no summary")


def check(options: argparse.Namespace, spec: Spec) -> None:
    """Checks that the options go together.

    Raises:
        SpecError: If they do not, or one is missing or malformed.
        FileNotFoundError: If there is no such folder.
    """
    if options.engine == "local":
        _check_local(options)
    else:
        _refuse(options, _LOCAL, "is for --engine local")
        _check_source(options)
    _check_sink(options, spec)
    trigger(options.trigger)
    if options.late is None:
        raise SpecError(
            "a stream has to know how long to wait for late rows: add --late 10m, or "
            "as long as your rows may be late"
        )


def trigger(text: str | None) -> dict[str, object]:
    """The trigger as an argument of Spark.

    Example:
        >>> trigger("10s"), trigger("once"), trigger(None)
        ({'processingTime': '10000 milliseconds'}, {'availableNow': True}, {})
    """
    if text is None:
        return {}
    if text == "once":
        return {"availableNow": True}
    if re.match(r"[1-9]", text) and not text.isdigit():
        milliseconds = parse_offset(text, "trigger").amount // 1_000_000
        if milliseconds:
            return {"processingTime": f"{milliseconds} milliseconds"}
    raise SpecError(f"--trigger is a length of time (10s) or 'once', got {text!r}")


def seconds_of(text: str | None) -> float | None:
    """The time between two looks for rows; None to end when there are none.

    Example:
        >>> seconds_of("10s"), seconds_of("once"), seconds_of(None)
        (10.0, None, 0.0)
    """
    if text == "once":
        return None
    return 0.0 if text is None else parse_offset(text, "trigger").amount / 1e9


def _check_local(options: argparse.Namespace) -> None:
    _refuse(options, _OF_KAFKA, "is for Kafka, which --engine spark reads and writes")
    if options.marker is not None and options.ahead is not None:
        raise SpecError(
            "--marker moves the watermark wherever its row is, and --ahead guards it: "
            "leave one of them out, or use --engine spark"
        )
    if options.folder is None:
        raise SpecError("give a folder, a file, a pattern, or - for standard input")
    ends = [name for name in ("folder", "output") if getattr(options, name) == "-"]
    if ends and options.format not in ("csv", "tsv", "jsonl"):
        what = "input" if "folder" in ends else "output"
        raise SpecError(
            f"standard {what} has no name that shows its format: add --format csv, tsv "
            "or jsonl"
        )
    if not ends:
        _refuse(options, ("format",), "is for standard input and output")
    if options.folder == "-":
        _refuse(options, ("files_per_trigger",), "is for files")
        return
    _refuse(options, ("rows_per_trigger",), "is for standard input")
    if not is_pattern(options.folder) and not Path(options.folder).exists():
        raise FileNotFoundError(2, "there is no such folder", options.folder)


def _check_source(options: argparse.Namespace) -> None:
    if (options.folder is None) == (options.kafka is None):
        raise SpecError(
            "give a folder of files, or --kafka SERVERS --topic NAME: one of the two"
        )
    for name in ("files_per_trigger", "rows_per_trigger"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise SpecError(f"{_flag(name)} is 1 or more, got {value}")
    if options.folder is not None:
        _refuse(options, ("topic", "rows_per_trigger"), "reads from Kafka")
        where = Path(options.folder)
        if options.folder == "-" or is_pattern(options.folder) or where.is_file():
            raise SpecError(
                f"on Spark a stream reads a folder, and {options.folder!r} is none: "
                "--engine local also reads a file, a pattern or standard input"
            )
        if not where.is_dir():
            raise FileNotFoundError(2, "there is no such folder", options.folder)
        return
    _refuse(options, ("files_per_trigger",), "reads a folder")
    if options.topic is None:
        raise SpecError("--kafka needs --topic NAME, the topic to read")
    if options.schema is None:
        raise SpecError(
            "--kafka needs --schema, what the JSON objects of the topic hold: "
            '--schema "id long, t timestamp, x double"'
        )


def _check_sink(options: argparse.Namespace, spec: Spec) -> None:
    if options.output is not None and options.to_topic is not None:
        raise SpecError("answers go to --output or --to-topic, not to both")
    if options.to_topic is None:
        _refuse(options, ("to_kafka", "record_key"), "goes with --to-topic")
    elif (options.to_kafka or options.kafka) is None:
        raise SpecError("--to-topic needs --to-kafka SERVERS")
    elif not record_key(options, spec):
        raise SpecError(
            "--to-topic needs --record-key COLUMN, which identifies a row: a restart "
            "may send a result twice, and consumers recognise it by its key"
        )
    if options.output == "-":
        return
    where = options.output or options.to_topic
    if where is not None and options.checkpoint is None:
        raise SpecError(
            f"to write {where} the stream needs --checkpoint FOLDER, where it keeps "
            "its state: without one it would begin anew with every start"
        )


def record_key(options: argparse.Namespace, spec: Spec) -> list[str]:
    """The columns that identify a result; none where only the user knows them."""
    if options.record_key:
        return list(options.record_key)
    if spec.is_hopping:
        return [*spec.by, *(["window"] if spec.several else []), "window_end"]
    return list(spec.by) if options.emit in ("update", "change") else []


def _refuse(options: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise SpecError(f"{_flag(name)} {why}: leave it out")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
