"""`slidewise rolling --engine spark` gives what the local engine gives."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slidewise as sw
from random_tables import random_table, same
from slidewise.cli import main
from slidewise.files import write_table

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


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--memory", "1GB"], "--memory does not go with --engine spark"),
        (["--agg", "l=last:x"], "add --then-by column"),
        (["--agg", "s=sum:g"], "sum takes integers, floats, decimals"),
        (["-o", "features"], "cannot tell from its name what 'features' is to Spark"),
        (["--by", "none"], "the DataFrame has no column 'none'"),
        (["--on", "i"], "column 'i' has no time in the row of k="),
    ],
)
def test_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    table = random_table(random.Random(1), 20, keys=4, span=90)
    source = tmp_path / "in.parquet"
    write_table(table, source)
    assert main(["rolling", str(source), *SPEC, "--engine", "spark", *more]) == 2
    said: Any = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
