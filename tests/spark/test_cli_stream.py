"""`slidewise stream` has the results of the functions, and reports its progress."""

import datetime as dt
import os
import re
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import kafka_broker
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from streams import SCHEMA, START, FileSource, assert_same, written

import slidewise as sw
from slidewise.cli.main import main

LATE = dt.timedelta(seconds=30)
SPEC = ["--on", "t", "--by", "key", "--agg", "n=count", "--agg", "x=sum:x"]
AGGS = {"n": sw.count(), "x": sw.sum("x")}
REQUEST = {"on": "t", "by": "key", "aggs": AGGS}


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    made = FileSource(tmp_path, 8, LATE)
    made.write(3)
    return made


def stream(source: FileSource, *more: str) -> list[str]:
    """The command over the files of a source, one file per micro-batch."""
    folder = str(source.folder / "in")
    several = ["--files-per-trigger", "1", "--late", "30s", "--trigger", "once"]
    return ["stream", folder, *SPEC, *several, *more]


def test_files_to_parquet_continue_from_the_checkpoint(
    spark, source, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Late rows are counted; the printed sum is of the last run only."""
    out = ["--checkpoint", str(tmp_path / "state"), "-o", str(tmp_path / "out")]
    command = stream(source, "--window", "10s", *out)
    assert main(command) == 0
    source.write(1)
    assert main(command) == 0
    spec = {**REQUEST, "windows": "10s"}
    assert_same(written(spark, tmp_path, "out"), source.expected("final", spec), ["id"])
    printed = capsys.readouterr().err
    line = r"batch \d+: [\d,]+ rows?, .+/s, \d+ answers?, watermark 2024-.+, \d+ late,"
    assert len(re.findall(line, printed)) >= 4
    sums = re.findall(
        r"^(\d+) rows? in .* s, (\d+) of them late", printed, re.MULTILINE
    )
    assert sum(int(rows) for rows, _ in sums) == sum(map(len, source.batches))
    late = sum(map(len, source.batches)) - sum(map(len, source.accepted()))
    assert sum(int(count) for _, count in sums) == late > 0


def test_hopping_without_a_sink_prints_results(
    spark, source, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results go to the terminal, and no checkpoint is kept."""
    command = stream(source, "--window", "1m", "--every", "30s", "--quiet")
    assert main(command) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    expected = source.expected("slide", {**REQUEST, "window": "1m", "every": "30s"})
    rows = len(re.findall(r"^(?:k\d+|·) ", captured.out, re.MULTILINE))
    rest = re.findall(r"^\.\.\. and ([\d,]+) more rows", captured.out, re.MULTILINE)
    assert rows + sum(int(more.replace(",", "")) for more in rest) == len(expected)


def test_text_and_times_without_a_zone(spark, tmp_path: Path) -> None:
    """CSV without options is read, with times in UTC."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(
        "t,x\n2024-05-01 10:00:00,1\n2024-05-01 10:00:05,2\n2024-05-01 11:00:00,3\n"
    )
    command = ["stream", str(tmp_path / "in"), "--on", "t", "--window", "1m"]
    command += ["--agg", "x=sum:x", "--late", "0s", "--trigger", "once", "--quiet"]
    command += ["--emit", "arrival", "--checkpoint", str(tmp_path / "state")]
    assert main([*command, "-o", str(tmp_path / "out")]) == 0
    got = written(spark, tmp_path, "out").sort_by("t")
    assert got["x_1m"].to_pylist() == [1, 3, 3]
    assert got["t"][0].as_py() == dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--late", "30s", "-o", "out"], "out the stream needs --checkpoint"),
        (["--checkpoint", "state", "-o", "out"], "add --late 10m"),
        (["--late", "soon"], "--late soon is not a duration"),
        (["--late", "1m", "--idle", "soon"], "--idle soon is not a duration"),
        (["--late", "1m", "--trigger", "5"], "--trigger is a length of time (10s)"),
        (["--late", "1m", "--emit", "slide"], "--emit slide does not go with rolling"),
        (["--late", "1m", "--every", "1h", "--ties", "rows"], "--ties does not go"),
        (["--late", "1m", "--every", "1h", "--window", "1m"], "'1m' is given twice"),
        (["--late", "1m", "--agg", "l=last:x"], "add --then-by column"),
        (["--late", "1m", "--late-rows", "flag", "--every", "1m"], "and --emit slide"),
        (["--late", "1m", "--marker", "x"], "--marker x names a column of"),
        (["--late", "1m", "--checkpoint", __file__], "File exists"),
        (["--late", "1m", "--on", "x"], "the time column 'x' is bigint"),
        (["--late", "1m", "--by", "none"], "no column 'none'"),
        (["--late", "1m", "--deletes", "gone"], "no column 'gone'"),
        (["--late", "1m", "--topic", "t"], "--topic reads from Kafka"),
        (["--late", "1m", "--files-per-trigger", "0"], "1 or more, got 0"),
        (["--late", "1m", "--kafka", "h:1"], "one of the two"),
        (["--late", "1m", "--to-topic", "t"], "needs --to-kafka"),
        (["--late", "1m", "--record-key", "id"], "goes with --to-topic"),
        (
            ["--late", "1m", "--to-topic", "t", "--to-kafka", "h:1"],
            "--to-topic needs --record-key",
        ),
    ],
)
def test_wrong_arguments_print_one_line(
    spark, source, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    command = ["stream", str(source.folder / "in"), *SPEC, "--window", "1m", *more]
    assert main(command) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_empty_folders_and_missing_schemas_are_refused(
    spark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*SPEC, "--window", "1m", "--late", "1m"]
    assert main(["stream", str(tmp_path), *arguments]) == 2
    assert "move the first one in" in capsys.readouterr().err
    assert main(["stream", str(tmp_path / "none"), *arguments]) == 2
    assert "there is no file or folder" in capsys.readouterr().err
    assert main(["stream", "--kafka", "h:1", "--topic", "t", *arguments]) == 2
    assert "--kafka needs --schema" in capsys.readouterr().err


def test_another_query_on_the_checkpoint_prints_one_line(
    spark, source, tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stream that fails prints the reason in one line, also without new rows."""
    out = ["--checkpoint", str(tmp_path / "state"), "-o", str(tmp_path / "out")]
    assert main(stream(source, "--window", "1m", "--quiet", *out)) == 0
    other = stream(source, "--window", "2m", "--quiet", *out)
    file = tmp_path / "state" / "slidewise.json"
    for more in (False, True):
        if more:
            # The state knows by itself.
            file.unlink()
            source.write(1)
        assert main(other) == 2
        printed = capsys.readouterr().err
        assert "was made for another query" in printed
        assert printed.count("\n") == 1
    assert main(stream(source, "--window", "1m", "--quiet", *out)) == 0


@pytest.mark.nightly
@pytest.mark.skipif(bool(kafka_broker.reason()), reason=str(kafka_broker.reason()))
def test_kafka_to_kafka(spark, source, tmp_path: Path) -> None:
    """The command has the results of the functions; a marker emits the last answers."""
    from pyspark.sql import functions as sf

    schema = "id long, t timestamp, key string, x long, end boolean"
    rows = pa.concat_tables(source.batches).select(["id", "t", "key", "x"])
    end = {"id": -1, "t": START + dt.timedelta(days=1), "end": True}
    table = pa.Table.from_pylist([*rows.to_pylist(), end])
    with kafka_broker.broker(tmp_path / "broker") as address:
        servers = {"kafka.bootstrap.servers": address}
        form = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
        sent = spark.createDataFrame(table).coalesce(1)
        sent = sent.select(sf.to_json(sf.struct("*"), form).alias("value"))
        sent.write.format("kafka").options(**servers, topic="in").save()
        arguments = ["--kafka", address, "--topic", "in", "--schema", schema]
        arguments += ["--to-topic", "out", "--record-key", "id", "--trigger", "once"]
        arguments += ["--checkpoint", str(tmp_path / "state"), "--marker", "end"]
        command = ["stream", *arguments, *SPEC, "--window", "1m", "--late", "1h"]
        assert main([*command, "--quiet"]) == 0
        got = spark.read.format("kafka").options(**servers, subscribe="out").load()
        answer = f"{schema}, n_1m long, x_1m long"
        value = sf.from_json(sf.col("value").cast("string"), answer)
        got = got.select(sf.expr("bigint(string(key)) AS of"), value.alias("row"))
        ours = got.select("of", "row.*").toArrow()
    assert ours["of"].equals(ours["id"])
    expected = sw.rolling(rows, windows="1m", **REQUEST)
    assert_same(ours.drop_columns(["of", "end"]), expected, ["id"])


def test_a_machine_too_busy_to_start_a_python() -> None:
    """The message does not contain all of Spark's message."""
    from slidewise.cli.spark_stream import _explain_failure

    reason = "[STREAM_FAILED] Query terminated: Python worker failed to connect back."
    assert "too busy" in _explain_failure(Namespace(), reason)


def test_an_error_of_slidewise_within_a_line_is_the_reason() -> None:
    from slidewise.cli.spark import _cause

    own = "slidewise.errors.SpecError: column 't' has no time: drop the rows"
    message = f"[STREAM_FAILED] Query terminated: {own}\n SQLSTATE: 38000\nPlan: x"
    assert _cause(message) == "column 't' has no time: drop the rows"


def test_ctrl_c_ends_the_stream(source, tmp_path: Path) -> None:
    """The answers so far are written, and the exit code is 130."""
    out = ["--checkpoint", str(tmp_path / "state"), "-o", str(tmp_path / "out")]
    command = stream(source, "--window", "1m", *out)
    command[command.index("once")] = "1s"
    with (tmp_path / "printed").open("w") as printed:
        running = subprocess.Popen(
            [sys.executable, "-m", "slidewise", *command],
            stderr=printed,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            start_new_session=True,
        )
    try:
        end = time.monotonic() + 120
        while "batch 1:" not in (tmp_path / "printed").read_text():
            assert running.poll() is None, (tmp_path / "printed").read_text()
            assert time.monotonic() < end
            time.sleep(0.2)
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(60) == 130
    finally:
        running.kill()
        running.wait()
    printed = (tmp_path / "printed").read_text()
    assert printed.endswith("slidewise: interrupted\n")
    assert "Traceback" not in printed
    names = list((tmp_path / "out").glob("*.parquet"))
    rows = pa.concat_tables([pq.read_table(name) for name in names])
    spec = {**REQUEST, "windows": "1m"}
    ids = source.expected("final", spec)["id"].to_pylist()
    assert set(rows["id"].to_pylist()) <= set(ids)
    assert pc.count_distinct(rows["id"]).as_py() == len(rows) > 0
    assert SCHEMA.names == rows.column_names[: len(SCHEMA.names)]
