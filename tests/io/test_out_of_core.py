"""Files larger than memory give the same results as whole tables."""

import os
import random
import subprocess
import sys
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from random_tables import AGGS, random_table, same, with_batches

import slidewise as sw
from slidewise.cli import rolling
from slidewise.cli.main import main
from slidewise.io import external_sort, out_of_core
from slidewise.io.out_of_core import LEAST_MEMORY, rolling_file
from slidewise.io.readers import read_table, write_table
from slidewise.io.scanner import Scan
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import Order
from slidewise.table.rolling import rolling_spec

BY: list[Any] = [None, "k", ["k", "g"]]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(out_of_core, "_MIN_CHUNK", 1 << 12)
    monkeypatch.setattr(external_sort, "_BLOCK_ROWS", 7)
    monkeypatch.setattr("slidewise.io.scanner._ROWS", 50)
    # Results are computed many times, as for more rows than a kernel call takes.
    monkeypatch.setattr(out_of_core, "Order", partial(Order, min_rows=150))


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(
    ("by", "arrival"),
    [
        *((by, None) for by in BY),
        *((None, "a"), ("k", ("batch", "a")), (["k", "g"], ("batch", "a"))),
    ],
)
def test_every_window_and_aggregation(
    tmp_path: Path, by: Any, arrival: Any, in_order: bool
) -> None:
    rng = random.Random(f"{by}{arrival}")
    table = with_batches(rng, random_table(rng, 900, keys=9, span=400))
    source, target = tmp_path / "in.parquet", tmp_path / "out.arrow"
    write_table(table, source)
    windows = [5, 60, sw.rows(9)]
    spec = Spec.make(on="t", by=by, windows=windows, aggs=AGGS, arrival=arrival)
    assert rolling_file(source, target, spec, memory=1, in_order=in_order) == 900
    got, expected = read_table(target), rolling_spec(table, spec)
    if in_order:
        assert got["row"].equals(expected["row"])
    same(got, expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.parquet",
        target.name,
    ]


@pytest.mark.usefixtures("small_chunks")
def test_keys_of_structs_and_lists(tmp_path: Path) -> None:
    table = random_table(random.Random("nested"), 400, keys=9, span=400)
    pairs = pa.StructArray.from_arrays(
        [table["k"].combine_chunks(), table["g"].combine_chunks()], names=["k", "g"]
    )
    lists = pa.array([None if k is None else [k, None] for k in table["k"].to_pylist()])
    table = table.append_column("pair", pairs).append_column("list", lists)
    write_table(table, tmp_path / "in.parquet")
    for by in ("pair", "list"):
        spec = Spec.make(on="t", by=by, windows=60, aggs={"l": sw.last("row")})
        rolling_file(tmp_path / "in.parquet", tmp_path / "out.arrow", spec, memory=1)
        assert read_table(tmp_path / "out.arrow").equals(rolling_spec(table, spec))


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_keys_and_values_that_are_views(
    tmp_path: Path, kind: pa.DataType, in_order: bool
) -> None:
    table = random_table(random.Random("views"), 400, keys=9, span=400)
    words = table["k"].cast(pa.string()).cast(kind)
    table = table.append_column("word", words)
    write_table(table, tmp_path / "in.arrow")
    aggs = {"last": sw.last("word"), "all": sw.collect("word")}
    spec = Spec.make(on="t", by="word", windows=60, aggs=aggs)
    source, target = tmp_path / "in.arrow", tmp_path / "out.arrow"
    assert rolling_file(source, target, spec, memory=1, in_order=in_order) == 400
    got, expected = read_table(target), rolling_spec(table, spec)
    assert got.schema == expected.schema
    assert sorted(got.to_pylist(), key=itemgetter("row")) == expected.to_pylist()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(
    "name", ["x.csv", "x.csv.gz", "x.parquet", "x.arrow", "x.jsonl"]
)
def test_every_kind_of_file(tmp_path: Path, name: str) -> None:
    import gzip

    table = random_table(random.Random(name), 300, keys=9, span=400)
    table = table.drop_columns(["s"])
    source, target = tmp_path / name, tmp_path / "out.csv"
    plain = tmp_path / name.removesuffix(".gz")
    write_table(table, plain)
    if name.endswith(".gz"):
        source.write_bytes(gzip.compress(plain.read_bytes()))
    spec = Spec.make(
        on="t", by="g", windows=30, aggs={"s": sw.sum("i"), "n": sw.count()}
    )
    rolling_file(source, target, spec, memory=1)
    write_table(rolling_spec(read_table(source, on="t"), spec), tmp_path / "whole.csv")
    assert target.read_text() == tmp_path.joinpath("whole.csv").read_text()


def test_text_takes_the_type_that_all_of_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slidewise.io.scanner._BLOCK", 64)
    rows = [f"2020-01-01 00:00:{n:02d},{n},,{n}" for n in range(20)]
    rows += ["2020-01-01 00:01:00,0.5,7,x", "2020-01-01 00:01:01,,,"]
    source, target = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_text("\n".join(["t,a,b,c", *rows]) + "\n")
    aggs = {"s": sw.sum("a"), "n": sw.count("c")}
    spec = Spec.make(on="t", windows="5s", aggs=aggs)
    rolling_file(source, target, spec)
    got, whole = read_table(target), read_table(source, on="t")
    assert got.equals(rolling_spec(whole, spec))
    assert [str(kind) for kind in got.schema.types[1:4]] == [
        "double",
        "int64",
        "string",
    ]


VALUES = ["", "0", "7", "-5", str(2**63), str(2**65), "0.5", "true", "x"]
VALUES += ["2020-01-01", "12:00:00", "2020-01-01 12:00:00", "2020-01-01 12:00:00.5"]
VALUES += ["2020-01-01 12:00:00Z", "2020-01-01 12:00:00.5Z"]


@pytest.mark.parametrize("first", VALUES)
def test_text_has_the_types_of_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.setattr("slidewise.io.scanner._BLOCK", 1 << 9)
    names = [f"c{number}" for number in range(len(VALUES))]
    rows = [[first] * len(names)] * 200 + [[""] * len(names), VALUES]
    source = tmp_path / "in.csv"
    source.write_text("".join(",".join(row) + "\n" for row in [names, *rows]))
    whole, scan = read_table(source, by=names), Scan(source, by=names)
    assert scan.schema == whole.schema
    assert pa.Table.from_batches(scan.batches()).equals(whole)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,x\n2020-01-01,1\n,2\n", r"'t' has no time in row 1 \(counting from 0\)"),
        ("t,x\n2020-01-01,1\nsoon,2\n", r"'soon' in row 1 \(counting from 0\), which"),
        ("t,y\n2020-01-01,1\n", "the table has no column 'x'; it has t, y"),
        ("t,x\n2020-01-01,a\n", r"sum\('x'\) does not fit column 'x', which holds"),
        ("t,x,s_1d\n2020-01-01,1,1\n", "the table has a column 's_1d' already"),
    ],
)
def test_what_cannot_be_done_leaves_nothing(
    tmp_path: Path, text: str, message: str
) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(text)
    spec = Spec.make(on="t", windows="1d", aggs={"s": sw.sum("x")})
    with pytest.raises(sw.SpecError, match=message):
        rolling_file(source, target, spec)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_no_rows(tmp_path: Path) -> None:
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    write_table(pa.schema({"t": pa.int64()}).empty_table(), source)
    spec = Spec.make(on="t", windows=3, aggs={"n": sw.count()})
    for in_order in (True, False):
        assert rolling_file(source, target, spec, in_order=in_order) == 0
        assert read_table(target).schema.names == ["t", "n_3"]


SCRIPT = """
import resource, sys
from slidewise.cli.main import main
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_file_larger_than_the_memory_there_is(tmp_path: Path) -> None:
    count, limit = 1_000_000, 400_000_000
    source, target = tmp_path / "in.parquet", tmp_path / "out.arrow"
    places = pa.array(range(count), pa.int64())
    spread = pc.multiply(places, 2_654_435_761)
    times = pc.bit_wise_and(spread, (1 << 40) - 1)
    columns = {"t": times, "k": pc.bit_wise_and(places, 255)}
    values = times.cast(pa.float64())
    table = pa.table({**columns, **{f"v{n}": values for n in range(50)}})
    pq.write_table(
        table, source, row_group_size=1 << 15, use_dictionary=False, compression="none"
    )
    assert source.stat().st_size > limit
    command = ["rolling", str(source), "--on", "t", "--by", "k", "-o", str(target)]
    command += ["--window", str(1 << 33), "--agg", "s=sum:v0", "--agg", "m=max:v1"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        limited = [sys.executable, "-c", SCRIPT, str(limit), *command, *more]
        # This allocator reserves no memory ahead.
        env = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
        return subprocess.run(
            limited, capture_output=True, text=True, check=False, env=env
        )

    assert run("--memory", "unlimited").returncode != 0
    parts = run("--memory", "32MB")
    assert parts.returncode == 0, parts.stderr
    got = read_table(target).select(["t", f"s_{1 << 33}"])
    assert got["t"].equals(table["t"])
    some = sw.rolling(
        table.select(["t", "k", "v0"]).filter(pc.equal(table["k"], 7)),
        on="t",
        windows=1 << 33,
        aggs={"s": sw.sum("v0")},
    )
    ours = got.filter(pc.equal(table["k"], 7))
    assert ours.column(1).equals(some.column(3))


# The command line


ROLL = ["--on", "t", "--window", "3", "--agg", "n=count", "--quiet"]


def test_the_command_sorts_on_disk_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table = pa.table({"t": range(1000)})
    write_table(table, source)
    seen: list[int] = []

    def watched(*arguments: Any, **options: Any) -> int:
        seen.append(options["memory"])
        return rolling_file(*arguments, **options)

    monkeypatch.setattr(out_of_core, "rolling_file", watched)
    command = ["rolling", str(source), *ROLL, "-o", str(target)]
    assert main(command) == 0
    assert seen == []
    monkeypatch.setattr(rolling, "_free_memory", lambda: 16_000)
    assert main(command) == 0
    assert seen == [4_000]
    assert main([*command, "--memory", "1.5KB"]) == 0
    assert seen == [4_000, 1_536]
    assert main([*command, "--memory", "unlimited"]) == 0
    assert len(seen) == 2
    assert read_table(target)["n_3"].to_pylist()[:4] == [1, 2, 3, 3]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--memory", "much"],
            "--memory takes a size such as 500MB",
        ),
        (["--memory", "1GB"], "give -o FILE for the results"),
        (
            ["--memory", "1GB", "-o", "x.csv", "--plot", "x.png"],
            "and no --plot",
        ),
        (["--then-by", "t"], "--then-by is for --engine spark"),
    ],
)
def test_what_the_command_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    source = tmp_path / "in.parquet"
    write_table(pa.table({"t": [1]}), source)
    assert main(["rolling", str(source), *ROLL, *more]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("memory", ["unlimited", "1MB"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("18446744073709551615\n18446744073709551614\n5\n", pa.uint64()),
        ("1e19\n0.5\n1\n", pa.float64()),
    ],
)
def test_ids_beyond_int64(tmp_path, memory, text, expected):
    file, out = tmp_path / "ids.csv", tmp_path / "out.parquet"
    lines = [f"{at},{value}" for at, value in enumerate(text.split())]
    file.write_text("\n".join(["t,x", *lines, ""]))
    given = [*ROLL, "--agg", "top=max:x", "--memory", memory, "-o", str(out)]
    assert main(["rolling", str(file), *given]) == 0
    table = read_table(out)
    assert table.schema.field("top_3").type == expected
    first = text.split()[0]
    exact = float(first) if expected == pa.float64() else int(first)
    assert table["top_3"][0].as_py() == exact


@pytest.mark.parametrize("size", ["0", "0MB", "0.1"])
def test_no_memory(tmp_path, capsys, size):
    file = tmp_path / "rows.csv"
    file.write_text("t\n1\n")
    out = str(tmp_path / "out.parquet")
    assert main(["rolling", str(file), *ROLL, "--memory", size, "-o", out]) == 2
    assert f"--memory {size} leaves no memory" in capsys.readouterr().err


def test_blocks_of_text_follow_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, blocks = tmp_path / "in.csv", []

    class Seen(Scan):
        def __init__(self, *given: Any) -> None:
            blocks.append(given[-1])
            super().__init__(*given)

    monkeypatch.setattr(out_of_core, "Scan", Seen)
    source.write_text("t\n1\n")
    spec = Spec.make(on="t", windows=3, aggs={"n": sw.count()})
    for memory in (1, LEAST_MEMORY, 1 << 30, 1 << 40):
        rolling_file(source, tmp_path / "out.csv", spec, memory=memory)
    assert blocks == [1 << 18, 1 << 19, 1 << 22, 1 << 22]


def test_the_least_memory_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "in.csv", str(tmp_path / "out.csv")
    source.write_text("t\n1\n")
    command = ["rolling", str(source), *ROLL[:-1], "-o", out, "--memory"]
    assert main([*command, "199MB"]) == 0
    assert (
        "--memory 199MB is not kept to: 200MB is the least" in capsys.readouterr().err
    )
    assert main([*command, "200MB"]) == 0
    assert "kept" not in capsys.readouterr().err
