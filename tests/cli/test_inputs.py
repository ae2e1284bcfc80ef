"""Standard input and output, folders, patterns, and query points of the command."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import slidewise as sw
from slidewise.cli.main import main
from slidewise.io.readers import read_table, write_table
from slidewise.io.text_form import TextForm

TABLE = pa.table(
    {
        "t": [1, 3, 4, 9],
        "key": ["007", "7", "007", "7"],
        "x": [5, 7, 1, 2],
        "sold": [True, False, True, True],
    }
)
SPEC = ["--text", "key", "--on", "t", "--by", "key", "--agg", "n=count"]
ROLLING = [*SPEC, "--window", "5", "--agg", "sum=sum:x"]
WANTED = sw.rolling(
    TABLE, on="t", by="key", windows=5, aggs={"n": sw.count(), "sum": sw.sum("x")}
)


class Standard:
    """Standard input and output as bytes."""

    def __init__(self, text: bytes = b"") -> None:
        self.buffer = io.BytesIO(text)

    def flush(self) -> None:
        """Does nothing."""


def piped(monkeypatch: pytest.MonkeyPatch, text: bytes, *command: str) -> bytes:
    """What a command writes to standard output."""
    written = Standard()
    monkeypatch.setattr("sys.stdin", Standard(text))
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", written)
        assert main(command) == 0
    return written.buffer.getvalue()


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json", "parquet", "arrow"])
def test_standard_input_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    given, found = tmp_path / f"given.{kind}", tmp_path / f"found.{kind}"
    write_table(TABLE, given)
    has_types = kind in ("parquet", "arrow")
    options = ROLLING[2:] if has_types else ROLLING
    command = ["rolling", "-", *options, "--format", kind, "-o", "-"]
    found.write_bytes(piped(monkeypatch, given.read_bytes(), *command))
    form = TextForm() if has_types else TextForm(text=["key"])
    assert read_table(found, form=form).equals(WANTED)


def test_hopping_and_explain_read_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(TABLE, sink)
    text = sink.getvalue().to_pybytes()
    command = ["-", *SPEC, "--format", "csv"]
    every = ["--window", "5", "--every", "5", "-o", "-"]
    out = piped(monkeypatch, text, "hopping", *command, *every).decode()
    assert out.splitlines()[0] == '"key","window_start","window_end","n"'
    assert out.splitlines()[1:] == ['"007",0,5,2', '"7",0,5,1', '"7",5,10,1']
    monkeypatch.setattr("sys.stdin", Standard(text))
    assert main(["explain", *command, "--window", "5"]) == 0
    assert "4 rows" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["folder", "pattern"])
def test_files_of_a_folder_or_pattern_are_one_table(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pa_csv.write_csv(TABLE.slice(0, 2), folder / "a.csv")
    pa_csv.write_csv(TABLE.slice(2), folder / "b.csv")
    (folder / "_SUCCESS").touch()
    (folder / ".a.csv.crc").touch()
    given = str(folder) if what == "folder" else str(folder / "*.csv")
    out = str(tmp_path / "out.parquet")
    assert main(["rolling", given, *ROLLING, "-o", out]) == 0
    assert pq.read_table(out).equals(WANTED)


def test_integers_of_one_file_and_fractions_of_another(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,key,x\n1,a,1\n")
    (tmp_path / "b.csv").write_text("t,key,x\n2,a,0.5\n")
    out = str(tmp_path / "out.parquet")
    assert main(["rolling", str(tmp_path / "*.csv"), *ROLLING, "-o", out]) == 0
    assert pq.read_table(out)["sum_5"].to_pylist() == [1.0, 1.5]


def test_query_points_of_a_file(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "rows.parquet")
    (tmp_path / "labels.csv").write_text("when,card,y\n5,007,1\n4,7,0\n3,none,1\n")
    command = ["rolling", str(tmp_path / "rows.parquet"), "--on", "t", "--by", "key"]
    spec = ["--window", "5", "--agg", "n=count"]
    at = ["--at", str(tmp_path / "labels.csv"), "--at-on", "when", "--at-by", "card"]
    # The labels are text, of which the ids have leading zeros.
    (tmp_path / "labels.jsonl").write_text(
        '{"when": 5, "card": "007", "y": 1}\n{"when": 4, "card": "7", "y": 0}\n'
        '{"when": 3, "card": "none", "y": 1}\n'
    )
    at[1] = str(tmp_path / "labels.jsonl")
    out = str(tmp_path / "out.parquet")
    assert main([*command, *spec, *at, "-o", out]) == 0
    found = pq.read_table(out)
    assert found.column_names == ["when", "card", "y", "n_5"]
    assert found["n_5"].to_pylist() == [2, 1, 0]


def test_where_counts_rows_of_a_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(TABLE, tmp_path / "rows.parquet")
    out = str(tmp_path / "out.parquet")
    command = ["rolling", str(tmp_path / "rows.parquet"), "--on", "t", "-o", out]
    aggs = ["--window", "9", "--agg", "n=count", "--agg", "sum=sum:x"]
    assert main([*command, *aggs, "--where", "sold"]) == 0
    assert pq.read_table(out)["n_9"].to_pylist() == [1, 1, 2, 3]
    assert main([*command, *aggs, "--where", "sum=sold"]) == 0
    found = pq.read_table(out)
    assert found["n_9"].to_pylist() == [1, 2, 3, 4]
    assert found["sum_9"].to_pylist() == [5, 5, 6, 8]
    capsys.readouterr()
    assert main([*command, *aggs, "--where", "no=sold"]) == 2
    assert "names no --agg; there are n, sum" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-"], "have no name that shows their format: add --format"),
        (["a.csv", "-o", "-"], "have no name that shows their format"),
        (["a.csv", "--format", "csv"], "--format is for standard input and output"),
        (["none/*.csv"], "there is no file to read in 'none/*.csv'"),
        (["*.csv", "--memory", "1GB"], "--memory sorts one file on disk"),
        (["two"], "the files have columns of different types"),
        (["a.csv", "--at-on", "t"], "--at-on is for --at"),
        (["a.csv", "--at", "a.csv", "--plot", "a.png"], "--plot draws the rows"),
        (
            ["a.csv", "--format", "csv", "-o", "-", "--memory", "1GB"],
            "is sorted on disk: give -o FILE",
        ),
    ],
)
def test_inputs_that_do_not_fit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("t,key\n1,a\n")
    Path("two").mkdir()
    Path("two/a.csv").write_text("t,key\n1,5\n")
    Path("two/b.csv").write_text("t,key\n1,a\n")
    spec = ["--on", "t", "--window", "5", "--agg", "n=count"]
    assert main(["rolling", *more, *spec]) == 2
    assert message in capsys.readouterr().err
