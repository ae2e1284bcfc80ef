"""`slidewise stream --engine local`: files and standard input, without Spark."""

import io
import itertools
import json
import os
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.cli import stream_source
from slidewise.cli.main import main
from slidewise.keyed import clock

START = datetime(2026, 1, 1)
SPEC = ["--on", "t", "--by", "key", "--window", "1m", "--agg", "n=count"]
REQUEST: dict[str, Any] = {
    "on": "t",
    "by": "key",
    "windows": "1m",
    "aggs": {"n": sw.count(), "x": sw.sum("x")},
}
COLUMNS = {"t": pa.timestamp("us"), "key": pa.string(), "x": pa.int64()}


def batch(draw: random.Random, second: int) -> pa.Table:
    """Rows around a time, some of them late."""
    rows = [
        {
            "t": START + timedelta(seconds=second - draw.randrange(60)),
            "key": draw.choice(["007", "7"]),
            "x": draw.randrange(100),
        }
        for _ in range(20)
    ]
    return pa.Table.from_pylist(rows, pa.schema(COLUMNS))


def batches(count: int = 4) -> list[pa.Table]:
    draw = random.Random(SEED)
    return [batch(draw, 40 * number) for number in range(count)]


def expected(tables: list[pa.Table], **options: Any) -> pa.Table:
    """What `KeyedWindows` emit for these batches."""
    keyed = sw.KeyedWindows(**REQUEST, late="20s", **options)
    for table in tables:
        keyed.ingest(table)
        keyed.advance()
    return keyed.collect()


def local(*more: str) -> list[str]:
    given = [*SPEC, "--agg", "x=sum:x", "--late", "20s", "--text", "key"]
    return ["stream", "--engine", "local", *given, *more]


@pytest.mark.parametrize("emit", ["final", "arrival", "update", "change"])
def test_files_in_a_folder_continue_from_the_checkpoint(
    tmp_path: Path, emit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    out = ["--checkpoint", str(tmp_path / "state"), "-o", str(tmp_path / "out")]
    command = local(str(tmp_path / "in"), *out, "--trigger", "once", "--emit", emit)
    tables = batches()
    for number, table in enumerate(tables):
        pa_csv.write_csv(table, tmp_path / "in" / f"{number}.csv")
        (tmp_path / "in" / "_SUCCESS").touch()
        if number != 1:  # two files in the second batch
            assert main(command) == 0
    assert main(command) == 0, "there is nothing new"
    written = [pq.read_table(file) for file in sorted((tmp_path / "out").iterdir())]
    cut = [tables[0], pa.concat_tables(tables[1:3]), tables[3]]
    found = pa.concat_tables(written)
    assert found.equals(expected(cut, emit=emit).cast(found.schema))
    printed = capsys.readouterr().err
    assert "batch 2: 20 rows" in printed
    assert printed.count("late") >= 4


def test_a_repeated_batch_replaces_its_results(tmp_path: Path) -> None:
    """A stream that was killed between its results and its state writes them again."""
    (tmp_path / "in").mkdir()
    state = tmp_path / "state"
    out = ["--checkpoint", str(state), "-o", str(tmp_path / "out")]
    command = local(str(tmp_path / "in"), *out, "--trigger", "once")
    tables = batches(3)
    for number, table in enumerate(tables):
        before = (state / "slidewise-local").read_bytes() if number else b""
        pa_csv.write_csv(table, tmp_path / "in" / f"{number}.csv")
        assert main(command) == 0
        if number == 1:
            (state / "slidewise-local").write_bytes(before)
            assert main(command) == 0
    files = sorted((tmp_path / "out").iterdir())
    found = pa.concat_tables([pq.read_table(file) for file in files])
    assert found.equals(expected(tables).cast(found.schema))


def test_a_repeated_batch_without_results_leaves_none(tmp_path: Path) -> None:
    """After a kill the batch may have other rows, as of files that came since."""
    (tmp_path / "in").mkdir()
    state, out = tmp_path / "state", tmp_path / "out"
    options = ["--checkpoint", str(state), "-o", str(out), "--trigger", "once"]
    command = local(str(tmp_path / "in"), *options)
    first, second, _ = batches(3)
    pa_csv.write_csv(first, tmp_path / "in" / "0.csv")
    assert main(command) == 0
    before, files = (state / "slidewise-local").read_bytes(), sorted(out.iterdir())
    pa_csv.write_csv(second, tmp_path / "in" / "1.csv")
    assert main(command) == 0
    assert len(sorted(out.iterdir())) > len(files)
    (state / "slidewise-local").write_bytes(before)
    late = pa.array([START - timedelta(days=1)], pa.timestamp("us"))
    pa_csv.write_csv(first.slice(0, 1).set_column(0, "t", late), tmp_path / "in/1.csv")
    assert main(command) == 0
    assert sorted(out.iterdir()) == files


class Standard:
    """Standard input and output as bytes."""

    def __init__(self, text: bytes = b"") -> None:
        self.buffer = io.BytesIO(text)

    def flush(self) -> None:
        """Does nothing."""


def piped(
    monkeypatch: pytest.MonkeyPatch, text: bytes, *command: str
) -> tuple[int, str]:
    """The exit code of a command with this standard input, and what it writes."""
    written = Standard()
    monkeypatch.setattr("sys.stdin", Standard(text))
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", written)
        code = main(command)
    return code, written.buffer.getvalue().decode()


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_standard_input_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    tables = batches()
    table = pa.concat_tables(tables)
    if kind == "jsonl":
        rows = [{**row, "t": row["t"].isoformat()} for row in table.to_pylist()]
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    else:
        sink = pa.BufferOutputStream()
        options = pa_csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
        pa_csv.write_csv(table, sink, options)
        text = sink.getvalue().to_pybytes()
    command = local("-", "--format", kind, "-o", "-", "--rows-per-trigger", "20")
    code, written = piped(monkeypatch, text, *command)
    assert code == 0
    wanted = expected(tables)
    if kind == "jsonl":
        found = [json.loads(line) for line in written.splitlines()]
        assert [row["x_1m"] for row in found] == wanted["x_1m"].to_pylist()
        assert [row["key"] for row in found] == wanted["key"].to_pylist()
    else:
        assert written.count("n_1m") == 1, "one header"
        parsed = pa_csv.read_csv(
            io.BytesIO(written.encode()),
            parse_options=pa_csv.ParseOptions(delimiter="\t" if kind == "tsv" else ","),
            convert_options=pa_csv.ConvertOptions(column_types={"key": pa.string()}),
        )
        assert parsed.drop_columns("t").to_pydict() == (
            wanted.drop_columns("t").to_pydict()
        )


def test_a_quoted_line_break_is_in_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b't,key\n1,"a\nb"\n2,c\n9,d\n'
    command = ["--on", "t", "--by", "key", "--window", "5", "--agg", "n=count"]
    stream = ["stream", "-", "--engine", "local", "--late", "1", "--format", "csv"]
    more = ["-o", "-", "--rows-per-trigger", "1"]
    code, written = piped(monkeypatch, text, *stream, *command, *more)
    assert code == 0
    assert written == '"t","key","n_5"\n1,"a\nb",1\n2,"c",1\n'


def test_ahead_and_idle(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A look at the clock emits what waited, where no file comes."""
    file = tmp_path / "in" / "a.csv"
    file.parent.mkdir()
    file.write_text("t,key,x\n2026-01-01,a,1\n2099-01-01,a,2\n")
    ticks = itertools.count(START.replace(tzinfo=UTC).timestamp(), 15)
    monkeypatch.setattr(clock, "time", lambda: next(ticks))
    looks = itertools.count()

    def pause(_: float) -> None:
        if next(looks) == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(stream_source.time, "sleep", pause)
    command = local(str(file.parent), "--ahead", "1h", "--idle", "30s")
    assert main(command) == 130
    output = capsys.readouterr()
    assert "1 ahead, state" in output.err
    assert output.out.split()[-6:] == ["2026-01-01", "00:00:00", *"a111"]


def test_rows_count_once_by_their_ids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("t,key,x\n2026-01-01,a,1\n2026-01-01,a,1\n2026-01-01,a,2\n")
    assert main([*local(str(file)), "--unique-by", "x", "--emit", "arrival"]) == 0
    output = capsys.readouterr()
    assert [line.split()[-2] for line in output.out.splitlines()[-2:]] == ["2", "2"]
    assert "3 rows in" in output.err
    assert "0 of them late, 1 duplicate, 2 answers" in output.err


def test_markers_advance_the_watermark_only(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        "t,key,x,end\n2026-01-01,a,1,false\n2026-01-01 00:00:09,a,2,\n"
        "2026-01-01 01:00:00,,,true\n"
    )
    out = ["--checkpoint", str(tmp_path / "state"), "-o", str(tmp_path / "out")]
    assert main(local(str(file), "--marker", "end", *out)) == 0
    found = pq.read_table(tmp_path / "out" / "part-000000.parquet")
    assert found["n_1m"].to_pylist() == [1, 2]


def test_a_schema_types_the_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("t,key,x\n2026-01-01,007,1\n2026-01-02,B,2\n")
    (tmp_path / "b.csv").write_text("t,key,x\n2026-01-03,7,2.5\n2026-01-04,7,1\n")
    command = ["stream", str(tmp_path / "*.csv"), "--engine", "local", *SPEC]
    more = ["--late", "0s", "--trigger", "once", "--emit", "arrival"]
    schema = ["--schema", "t timestamp, key string, x double"]
    assert main([*command, *more, *schema, "--files-per-trigger", "1"]) == 0
    printed = capsys.readouterr().out
    assert " 007 " in printed
    assert "2026-01-03 00:00:00+00:00" in printed
    typed = pa.table({"t": [START], "key": ["007"], "x": [1.0]})
    pq.write_table(typed, tmp_path / "c.parquet")
    file = ["stream", str(tmp_path / "c.parquet"), *command[2:]]
    assert main([*file, *more, *schema]) == 0
    assert " 007 " in capsys.readouterr().out
    assert main([*command, *more, "--files-per-trigger", "1"]) == 2
    error = capsys.readouterr().err
    assert "cast it, or give --schema a type that fits all batches" in error


@pytest.mark.parametrize("source", ["-", "in/*.csv", "in.csv"])
def test_a_source_that_spark_does_not_read_names_the_engine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    source: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("t\n1\n")
    given = ["--on", "t", "--window", "5", "--agg", "n=count", "--late", "1"]
    assert main(["stream", source, *given]) == 2
    error = capsys.readouterr().err
    assert f"reads a folder, and {source!r} is none: --engine local also reads" in error


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-"], "standard input .* add --format csv, tsv or jsonl"),
        (["in", "-o", "-"], "standard output .* add --format"),
        (["in", "--kafka", "a:9"], "--kafka is for Kafka.*: leave it out"),
        (["in", "--format", "csv"], "--format is for standard input and output"),
        (["in", "--rows-per-trigger", "5"], "is for standard input: leave it out"),
        (["-", "--format", "csv", "--files-per-trigger", "5"], "is for files"),
        (["nowhere"], "no file or folder 'nowhere'"),
        ([], "give a folder, a file, a pattern, or - for standard input"),
        (["in", "-o", "out"], "needs --checkpoint FOLDER"),
        (["in", "--schema", "t when"], "--schema 't when' is not a column"),
        (["in", "--marker", "x", "--ahead", "1h"], "leave one of them out"),
        (["in", "--changed"], "--changed True leaves out"),
        (["in", "--idle=-5m"], "--idle -5m is negative"),
        (["in", "--checkpoint", "spark"], "is one of Spark"),
    ],
)
def test_options_that_do_not_fit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("spark/offsets").mkdir(parents=True)
    Path("spark/offsets/0").touch()
    assert main(local(*more)) == 2
    (line,) = [
        each
        for each in capsys.readouterr().err.splitlines()
        if each.startswith("slidewise: error")
    ]
    assert re.search(message, line), line


def test_a_checkpoint_is_tied_to_its_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("t,key,x\n2026-01-01,a,1\n")
    command = local(str(file), "--checkpoint", str(tmp_path / "state"))
    assert main(command) == 0
    assert main([*command, "--ahead", "1h"]) == 2
    assert "was made without --ahead: do the same" in capsys.readouterr().err
    assert main([*command, "--window", "5m"]) == 2
    assert "the snapshot is of another Spec" in capsys.readouterr().err


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_source, "_POLL", 0.01)


@pytest.mark.parametrize("first", ["", "1.5", "7"])
def test_a_value_that_is_no_number_names_its_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: str
) -> None:
    for number, values in enumerate(filter(None, [first, "-,2"])):
        rows = [f"2026-01-01 00:00:0{number},7,{x}\n" for x in values.split(",")]
        file = tmp_path / f"{number}.csv"
        file.write_text("".join(["t,key,x\n", *rows]))
        os.utime(file, (number, number))
    one_by_one = ("--trigger", "once", "--files-per-trigger", "1")
    assert main(local(str(tmp_path), *one_by_one)) == 2
    expected = "column 'x' holds '-' in row 0 (counting from 0), which is not a number"
    error = capsys.readouterr().err
    assert f"{expected}: if that is a missing value, add --missing -\n" in error
