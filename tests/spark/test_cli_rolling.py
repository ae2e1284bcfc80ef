"""`slidewise rolling --engine spark` has the results of the local engine."""

import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from random_tables import random_table, same

import slidewise as sw
from slidewise.cli.main import main
from slidewise.io.readers import read_table, write_table

SPEC = [
    "--on",
    "t",
    "--by",
    "k",
    "--window",
    "9",
    "--agg",
    "m=max:x",
    "--agg",
    "n=count",
]


@pytest.mark.usefixtures("spark")
def test_files_to_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = random_table(random.Random(1), 200, keys=4, span=90)
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    write_table(table, source)
    command = ["rolling", str(source), *SPEC, "--engine", "spark"]
    assert main([*command, "-o", str(target)]) == 0
    assert "wrote" in capsys.readouterr().err
    aggs = {"m": sw.max("x"), "n": sw.count()}
    expected = sw.rolling(table, on="t", by="k", windows=9, aggs=aggs)
    same(pq.read_table(target), expected)
    assert main([*command, "--quiet"]) == 0
    assert "n_9" in capsys.readouterr().out


@pytest.mark.usefixtures("spark")
def test_a_file_of_features(tmp_path: Path) -> None:
    table = random_table(random.Random(2), 60, keys=3, span=40)
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    write_table(table, source)
    spec = sw.Spec(on="t", by="k", windows=9, aggs={"m": sw.max("x"), "n": sw.count()})
    features = sw.Features(key=spec, all=spec.replace(by=None))
    features.save(tmp_path / "features.json")
    command = ["rolling", str(source), "--spec", str(tmp_path / "features.json")]
    assert main([*command, "--engine", "spark", "--quiet", "-o", str(target)]) == 0
    same(pq.read_table(target).sort_by("row"), sw.rolling(table, features))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["in.csv", "in.tsv", "in.jsonl"])
def test_text_with_times_in_it(tmp_path: Path, name: str) -> None:
    times = pa.array([0, 5, 61], pa.timestamp("s")).cast(pa.timestamp("us"))
    table = pa.table({"t": times, "x": [1, 2, 3]})
    source, target = tmp_path / name, tmp_path / "out.parquet"
    write_table(table, source)
    command = [
        "rolling",
        str(source),
        "--on",
        "t",
        "--window",
        "1m",
        "--engine",
        "spark",
    ]
    assert main([*command, "--agg", "s=sum:x", "-o", str(target), "--quiet"]) == 0
    got = pq.read_table(target).sort_by("t")
    assert got["s_1m"].to_pylist() == [1, 3, 5]


US = "t,k,x\n07/03/18 17:48:39,a,1\n07/04/18 09:00:00,a,2\n07/13/18 10:00:00,b,3\n"
ISO = "t,x\n2018-07-03 17:48:39,1\n2018-03-07 17:48:39,2\n"
TIMES = ["--on", "t", "--window", "24h", "--agg", "s=sum:x", "--engine", "spark"]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        (US, "%m/%d/%y %H:%M:%S", [1, 3, 3]),
        (US.replace("07/", "Jul/"), "%b/%d/%y %H:%M:%S", [1, 3, 3]),
        # The format, not Spark, decides which number is the day and which the month.
        (ISO.replace("-07-03", "-04-03"), "%Y-%d-%m %H:%M:%S", [1, 2]),
    ],
)
def test_time_format(tmp_path: Path, text: str, form: str, expected: list[int]) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_text(text)
    command = ["rolling", str(source), *TIMES, "--time-format", form, "--quiet"]
    assert main([*command, "-o", str(target)]) == 0
    got = pq.read_table(target).sort_by("x")
    assert got["s_24h"].to_pylist() == expected
    table = read_table(source, on=["t"], time_format=form)
    assert got["t"].cast(pa.timestamp("us")).to_pylist() == table["t"].to_pylist()


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        (US, ["--time-format", "%d/%m/%y %H:%M:%S"], "'07/13/18 10:00:00', which .*"),
        (ISO + ",3\n", [], "no time in the row of t=None: drop the rows"),
        (ISO + "later,3\n", [], "holds 'later', which is not written like the rows"),
    ],
)
def test_wrong_times_print_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    more: list[str],
    message: str,
) -> None:
    source = tmp_path / "in.csv"
    source.write_text(text)
    assert main(["rolling", str(source), *TIMES, *more]) == 2
    printed = capsys.readouterr().err
    assert re.search(message, printed), printed
    assert printed.count("\n") == 1, printed


def test_a_separate_process_prints_one_line(tmp_path: Path) -> None:
    """The error is one line, without warnings and logs of PySpark."""
    source = tmp_path / "in.csv"
    source.write_text(US)
    command = [sys.executable, "-m", "slidewise", "rolling", str(source), *TIMES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    printed = done.stderr
    assert re.search("holds '07/03/18 17:48:39', which .*: .*--time-format", printed), (
        printed
    )
    assert printed.count("\n") == 1, printed
    assert "Spark's log" not in printed


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--memory", "1GB"], "--memory does not go with --engine spark"),
        (["--agg", "l=last:x"], "add --then-by column"),
        (["--agg", "s=sum:g"], "sum takes integers, floats, decimals"),
        (["-o", "features"], "'features' has no ending that Spark reads and writes"),
        (["--by", "none"], "the DataFrame has no column 'none'"),
        (["--on", "i"], "column 'i' has no time in the row of k="),
    ],
)
def test_wrong_calls_print_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    table = random_table(random.Random(1), 20, keys=4, span=90)
    source = tmp_path / "in.parquet"
    write_table(table, source)
    assert main(["rolling", str(source), *SPEC, "--engine", "spark", *more]) == 2
    printed: Any = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["in.csv", "in.jsonl"])
def test_keys_beyond_int64_stay_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    keys = ["45395787636214861234", "45395787636214861235", "0.5", "9" * 40, "1" * 40]
    source, target = tmp_path / name, tmp_path / "out.parquet"
    lines = [f'{{"t": {at}, "k": {key}}}' for at, key in enumerate(keys)]
    if name == "in.csv":
        lines = ["t;k", *(f"{at};{key}" for at, key in enumerate(keys))]
    source.write_text("\n".join(lines) + "\n")
    command = ["rolling", str(source), "--on", "t", "--window", "9", "--quiet"]
    command += ["--engine", "spark", "--agg", "n=count"]
    command += ["--delimiter", ";"] if name == "in.csv" else []
    command += ["-o", str(target)]
    assert main(command) == 2
    assert "column 'k' holds 9999" in capsys.readouterr().err
    assert main([*command, "--by", "k"]) == 0
    got = pq.read_table(target).sort_by("t")
    assert got["k"].to_pylist() == keys
    assert got["n_9"].to_pylist() == [1] * len(keys)
    assert main([*command[:-1], str(tmp_path / "text.parquet"), "--text", "k"]) == 0


def test_options_of_files_that_spark_does_not_take(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["--on", "t", "--window", "9", "--agg", "n=count", "--engine", "spark"]
    for more in (["--missing", "-"], ["--decimal", ","], ["--time-unit", "s"]):
        assert main(["rolling", "in.csv", *given, *more]) == 2
        assert f"{more[0]} does not go with --engine spark" in capsys.readouterr().err
