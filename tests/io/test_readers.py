"""Reading and writing files, and times written as text."""

import datetime as dt
import gzip
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

import slidewise as sw
from slidewise.cli import main
from slidewise.io import readers
from slidewise.io.parse_times import parse_times
from slidewise.io.readers import read_table, write_table
from slidewise.io.scanner import Scan
from slidewise.io.text_form import TextForm

TABLE = pa.table(
    {
        "at": pa.array(
            [1_530_000_000_000_000, 1_530_000_060_500_000], pa.timestamp("us")
        ),
        "n": [1, None],
        "x": [0.5, -2.0],
        "name": ['a "quoted", one', None],
        "ok": [True, False],
    }
)
NAMES = ["a.csv", "a.tsv", "a.parquet", "a.pq", "a.arrow", "a.feather", "a.ipc"]
NAMES += ["a.json", "a.jsonl", "a.ndjson", "a.b.CSV"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    seen: list[float] = []
    for table in (TABLE, TABLE.slice(0, 1)):
        write_table(table, file)
        assert read_table(file, on="at", progress=seen.append).equals(table)
    assert [file] == list(tmp_path.iterdir())
    assert seen == sorted(seen[: len(seen) // 2]) + sorted(seen[len(seen) // 2 :])
    assert seen[-1] == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_a_column_of_times_that_is_not_there(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    write_table(TABLE, file)
    with pytest.raises(sw.SpecError, match="no column 'y'"):
        read_table(file, on="y")


def test_an_empty_table_is_written_and_read(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.arrow", "a.csv"):
        write_table(TABLE.slice(0, 0), tmp_path / name)
        empty = read_table(tmp_path / name, on="at")
        assert empty.num_rows == 0
        assert empty.column_names == TABLE.column_names
    write_table(TABLE.slice(0, 0), tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2018-07-03", dt.datetime(2018, 7, 3)),
        ("2018/07/03 05:06", dt.datetime(2018, 7, 3, 5, 6)),
        ("2018-07-03 05:06:07", dt.datetime(2018, 7, 3, 5, 6, 7)),
        (" 2018-07-03T05:06:07.25 ", dt.datetime(2018, 7, 3, 5, 6, 7, 250_000)),
        ("2018-07-03T05:06:07Z", dt.datetime(2018, 7, 3, 5, 6, 7, tzinfo=dt.UTC)),
        ("2018-07-03 05:06+02:00", dt.datetime(2018, 7, 3, 3, 6, tzinfo=dt.UTC)),
        ("2018-07-03 05:06-0130", dt.datetime(2018, 7, 3, 6, 36, tzinfo=dt.UTC)),
        ("1530594367", 1530594367),
        (" -5 ", -5),
    ],
)
def test_times_that_read_themselves(text: str, expected: Any) -> None:
    times = parse_times(pa.array([text, None, ""]), "at")
    assert times.to_pylist() == [expected, None, None]


def test_nanoseconds_are_kept() -> None:
    times = parse_times(pa.array(["2018-07-03 05:06:07.123456789"]), "at")
    assert times.type == pa.timestamp("ns")
    assert times.cast(pa.int64())[0].as_py() % 10**9 == 123_456_789


@pytest.mark.parametrize(
    ("text", "time_format", "expected"),
    [
        ("07/03/18 17:48:39", "%m/%d/%y %H:%M:%S", dt.datetime(2018, 7, 3, 17, 48, 39)),
        ("7/3/2018 5:48 PM", "%m/%d/%Y %I:%M %p", dt.datetime(2018, 7, 3, 17, 48)),
        ("3 Jul 2018", "%d %b %Y", dt.datetime(2018, 7, 3)),
        (
            "03.07.18 01:02:03.5",
            "%d.%m.%y %H:%M:%S.%f",
            dt.datetime(2018, 7, 3, 1, 2, 3, 500_000),
        ),
        ("2018 +0200", "%Y %z", dt.datetime(2017, 12, 31, 22, tzinfo=dt.UTC)),
        ("20180703", "%Y%m%d", dt.datetime(2018, 7, 3)),
    ],
)
def test_times_with_a_format(text: str, time_format: str, expected: Any) -> None:
    for column in (pa.array([text, None]), pa.array([text, None]).dictionary_encode()):
        times = parse_times(column, "at", time_format)
        assert times.to_pylist() == [expected, None]


def test_text_tables_as_people_write_them(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes("\ufeffat;name\r\n2018-07-03;é\r\n2018-07-04;\r\n".encode())
    table = read_table(file, on="at")
    assert table.to_pydict() == {
        "at": [dt.datetime(2018, 7, 3), dt.datetime(2018, 7, 4)],
        "name": ["é", None],
    }
    file.write_text('at,note,\n1,"two\nlines",\n2,"",\n')
    table = read_table(file, on="at")
    assert table["at"].to_pylist() == [1, 2]
    assert table["note"].to_pylist() == ["two\nlines", ""]


def test_numbers_in_text_are_what_the_page_says(tmp_path: Path) -> None:
    file = tmp_path / "numbers.csv"
    file.write_text(
        "t,large,signed,decimal,x\n"
        "1,9223372036854775808,-9223372036854775808,9007199254740993,NaN\n"
        "2,1,+9007199254740993,0.5,nan\n"
        "3,,2,,0.5\n"
        "4,NA,3,NULL,\n"
    )
    table = read_table(file, on="t")
    assert table["large"].to_pylist() == [2**63, 1, None, None]
    assert table["signed"].to_pylist() == [-(2**63), 2**53 + 1, 2, 3]
    assert table["decimal"].to_pylist() == [2.0**53, 0.5, None, None]
    assert table["x"].to_pylist() == [None, None, 0.5, None]
    file = tmp_path / "nan.jsonl"
    file.write_text('{"t": 1, "x": NaN}\n')
    assert math.isnan(read_table(file, on="t")["x"][0].as_py())


def test_an_empty_last_field_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('k,x\n"a",5\n"b",')
    assert read_table(file).to_pydict() == {"k": ["a", "b"], "x": [5, None]}
    assert Scan(file).schema == read_table(file).schema


def test_compressed_text(tmp_path: Path) -> None:
    file = tmp_path / "a.csv.gz"
    file.write_bytes(gzip.compress(b"at,x\n1,2\n"))
    assert read_table(file, on="at").to_pydict() == {"at": [1], "x": [2]}
    file = tmp_path / "a.json.gz"
    file.write_bytes(gzip.compress(b'[{"at": 1}, {"x": 2}]'))
    assert read_table(file).to_pydict() == {"at": [1, None], "x": [None, 2]}


def test_json_has_no_nan_and_lists_are_lists(tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": [float("nan"), 1.0],
            "all": [[1, 2], []],
            "d": pa.array([1, 2], pa.duration("s")),
            "at": TABLE["at"],
        }
    )
    write_table(table, tmp_path / "a.jsonl")
    first = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])
    assert first == {
        "x": None,
        "all": [1, 2],
        "d": 1,
        "at": "2018-06-26 08:00:00.000000",
    }


def test_json_of_what_lies_within_lists(tmp_path: Path) -> None:
    times = pa.array([[1_000_000], None], pa.list_(pa.timestamp("us")))
    inner = pa.struct([("x", pa.float32()), ("d", pa.large_list(pa.date32()))])
    table = pa.table(
        {
            "times": times,
            "floats": [[float("nan"), 0.5], []],
            "structs": pa.array([{"x": float("inf"), "d": [1]}, None], inner),
            "pairs": pa.array([[1.0, float("-inf")], None], pa.list_(pa.float64(), 2)),
            "bytes": pa.array([b"a", None], pa.large_binary()),
            "names": pa.array(["a", None]).dictionary_encode(),
        }
    )
    write_table(table, tmp_path / "a.jsonl")
    first, second = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    assert first == {
        "times": ["1970-01-01 00:00:01.000000"],
        "floats": [None, 0.5],
        "structs": {"x": None, "d": ["1970-01-02"]},
        "pairs": [1.0, None],
        "bytes": "a",
        "names": "a",
    }
    empty = {"floats": []}
    assert second == {name: empty.get(name) for name in table.column_names}


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, name: str) -> None:
    table = pa.table({"filter": pa.array([b"\xff"], pa.large_binary())})
    with pytest.raises(sw.SpecError, match=r"cannot hold column 'filter'"):
        write_table(table, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_several_columns_of_times(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("start,stop\n07/03/18,07/04/18\n")
    table = read_table(file, on=["start", "stop"], time_format="%m/%d/%y")
    assert table.schema.types == [pa.timestamp("us")] * 2


@pytest.mark.parametrize("form", ["%m/%d/%y", "%m/%d/%y%z"])
def test_arrivals_are_numbers_or_times_of_the_format(form: str) -> None:
    def read(*texts: str) -> pa.Array:
        return parse_times(pa.array([None, *texts]), "a", form, arrival=True)

    assert read("2", " 10").to_pylist() == [None, 2, 10]
    zone = "" if form.endswith("y") else "+0000"
    assert pa.types.is_timestamp(read(f"07/03/18{zone}").type)
    with pytest.raises(sw.SpecError, match=r"'07/03/18' in row 2 .*, which is not"):
        read("2", "07/03/18")
    digits = parse_times(pa.array(["20180703"]), "a", "%Y%m%d", arrival=True)
    assert pa.types.is_timestamp(digits.type)
    with pytest.raises(sw.SpecError, match=r"'2' in row 0 .*, which time_format="):
        parse_times(pa.array(["2"]), "t", form)


def test_times_in_parquet_stay_as_they_are(tmp_path: Path) -> None:
    times = pa.array([1, 2], pa.timestamp("ms", "Asia/Tokyo"))
    pa_parquet.write_table(pa.table({"at": times}), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet", on="at")["at"].type == times.type


def test_arrow_streams_are_read_too(tmp_path: Path) -> None:
    with pa.ipc.new_stream(tmp_path / "a.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert read_table(tmp_path / "a.arrow", on="at").equals(TABLE)


def test_long_files_tell_how_far_they_are(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        "at,x\n" + "".join(f"{row},{row % 7}\n" for row in range(2_000_000))
    )
    seen: list[float] = []
    table = read_table(file, on="at", progress=seen.append)
    assert table.num_rows == 2_000_000
    assert len(seen) > 2
    assert 0 < seen[0] < seen[-1] == 1.0


ROLL = ["--on", "t", "--window", "3", "--agg", "n=count"]


def test_ids_beyond_int64_in_a_csv(tmp_path, capsys):
    file = tmp_path / "ids.csv"
    file.write_text("t,k\n1,18446744073709551615\n2,18446744073709551614\n")
    assert main.main(["rolling", str(file), *ROLL, "--by", "k"]) == 0
    out = capsys.readouterr().out
    assert "18446744073709551615   1     1" in out
    assert "18446744073709551614   2     1" in out
    file.write_text("t,x\n1,1e19\n2,0.5\n")
    assert readers.read_table(file)["x"].to_pylist() == [1e19, 0.5]
    file.write_text("t,x\n1,1e19\n2,3e18\n")
    assert readers.read_table(file)["x"].to_pylist() == [1e19, 3e18]


def test_empty_batches_leave_no_trace_in_a_csv(tmp_path: Path) -> None:
    one = pa.table({"k": ["a"], "t": [1]})
    nothing = pa.Table.from_batches([one.to_batches()[0][:0]])
    for parts, lines in (([nothing, one], 1), ([one, nothing, one], 2)):
        write_table(pa.concat_tables(parts), tmp_path / "x.csv")
        text = (tmp_path / "x.csv").read_text()
        assert text.splitlines() == ['"k","t"'] + ['"a",1'] * lines


@pytest.mark.parametrize("memory", ["unlimited", "1MB"])
@pytest.mark.parametrize("window", ["3", "1h"])
def test_a_csv_without_rows(tmp_path, memory, window):
    file, out = tmp_path / "empty.csv", tmp_path / "out.parquet"
    file.write_text("t,x\n")
    given = ["--on", "t", "--window", window, "--agg", "n=count", "--memory", memory]
    assert main.main(["rolling", str(file), *given, "-o", str(out), "--quiet"]) == 0
    assert readers.read_table(out).column_names == ["t", "x", f"n_{window}"]


@pytest.mark.parametrize("by_disk", [[], ["--memory", "1MB", "-o"]])
def test_columns_of_one_name_in_a_file(tmp_path, capsys, by_disk):
    file = tmp_path / "twice.csv"
    file.write_text("t,x,x\n1,1,2\n")
    if by_disk:
        by_disk = [*by_disk, str(tmp_path / "out.parquet")]
    assert main.main(["rolling", str(file), *ROLL, *by_disk]) == 2
    assert "has 2 columns 'x'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        '[{"t": 1, "x": "\\ud800"}]',
        "[" * 100_000,
        '[{"t": 1, "x": {"t": 1}',
        '[{"t": 1} {"t": 2}]',
        '[{"t": 1}] 2',
        '[{"t": 1}, 2]',
    ],
)
def test_json_that_cannot_be_held(tmp_path, capsys, text):
    file = tmp_path / "odd.json"
    file.write_text(text)
    assert main.main(["rolling", str(file), *ROLL]) == 2
    assert "cannot be read as JSON" in capsys.readouterr().err


# Integers beyond 64 bits


BIG = ["45395787636214861234", "45395787636214861235"]


def big_rows(name: str) -> str:
    if name.endswith(".csv"):
        return "t,k\n" + "".join(f"{at},{big}\n" for at, big in enumerate(BIG))
    lines = [f'{{"t": {at}, "k": {big}}}' for at, big in enumerate(BIG)]
    return "\n".join(lines) if name == "a.jsonl" else f"[{', '.join(lines)}]"


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
def test_keys_beyond_64_bits_stay_apart(tmp_path: Path, name: str) -> None:
    file, out = tmp_path / name, tmp_path / "out.csv"
    file.write_text(big_rows(name))
    assert main.main(["rolling", str(file), *ROLL, "--by", "k", "-o", str(out)]) == 0
    assert out.read_text().splitlines()[1:] == [
        f'{n},"{big}",1' for n, big in enumerate(BIG)
    ]
    hops = ["--on", "t", "--window", "9", "--by", "k", "--agg", "n=count"]
    assert main.main(["hopping", str(file), *hops, "-o", str(out)]) == 0
    assert [line.split(",")[0] for line in out.read_text().splitlines()[1:]] == [
        f'"{big}"' for big in BIG
    ]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
def test_values_beyond_64_bits_are_refused_or_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / name
    file.write_text(big_rows(name))
    assert main.main(["rolling", str(file), *ROLL]) == 2
    message = f"'k' holds {BIG[0]} in row 0 (counting from 0), which is beyond 64 bits"
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.strip().endswith("read the column as text with --text k")
    assert main.main(["rolling", str(file), *ROLL, "--text", "k"]) == 0


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("read", [read_table, Scan])
def test_the_first_column_beyond_64_bits_is_named(
    tmp_path: Path, name: str, read: Callable[[Path], object]
) -> None:
    """In the order of the file, also where it has many of them."""
    file, names = tmp_path / name, [f"c{at}" for at in range(30)]
    text = "\n".join([",".join(names), ",".join(BIG[:1] * len(names)), ""])
    if name == "a.jsonl":
        text = f"{{{', '.join(f'{json.dumps(one)}: {BIG[0]}' for one in names)}}}"
    file.write_text(text)
    with pytest.raises(sw.SpecError, match=f"column 'c0' holds {BIG[0]} in row 0 "):
        read(file)


def test_integers_of_json_beyond_int64_are_uint64(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"k": 9223372036854775809}\n{"k": 9223372036854775810}\n{"k": 1}')
    table = read_table(file)
    assert table["k"].type == pa.uint64()
    assert table["k"].to_pylist() == [2**63 + 1, 2**63 + 2, 1]


@pytest.mark.parametrize(
    "value", ['{"id": 9223372036854775808}', "[1, -1e3, 1e30, 9223372036854775808]"]
)
def test_integers_beyond_int64_within_values_are_refused(
    tmp_path: Path, value: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"k": null}}\n{{"k": {value}}}')
    with pytest.raises(sw.SpecError, match=r"9223372036854775808 within .* of row 1"):
        read_table(file, by=["k"])


# How text is written


def read_text(tmp_path: Path, content: str, name: str = "a.csv", **options: Any) -> Any:
    file = tmp_path / name
    file.write_bytes(content.encode(options.get("encoding", "utf-8")))
    return read_table(file, form=TextForm(**options)).to_pydict()


def test_columns_read_as_text(tmp_path: Path) -> None:
    rows = "id,x\n00123,1\n123,2\nNA,3\n"
    assert read_text(tmp_path, rows, text=["id"])["id"] == ["00123", "123", None]
    rows = '{"x": 1, "id": 1.50}\n{"x": 2, "id": "a"}\n{"id": true}\n{"x": 3}\n'
    table = read_text(tmp_path, rows, "a.jsonl", text=["id"])
    assert table == {"x": [1, 2, None, 3], "id": ["1.50", "a", "true", None]}
    with pytest.raises(sw.SpecError, match="no column 'key'"):
        read_text(tmp_path, '{"x": 1}', "a.jsonl", text=["key"])
    with pytest.raises(sw.SpecError, match=r"'id' holds both .* text with text='id'"):
        read_text(tmp_path, rows, "a.jsonl")


def test_missing_values_in_text(tmp_path: Path) -> None:
    rows = "land,x\nNA,-\n,2.5\n-,nan\n"
    table = read_text(tmp_path, rows, missing=["-"])
    assert table["land"] == ["NA", None, None]
    assert table["x"][:2] == [None, 2.5]
    assert math.isnan(table["x"][2])


def test_decimal_commas(tmp_path: Path) -> None:
    rows = "t;x\n1;1,5\n2;-2\n"
    assert read_text(tmp_path, rows, decimal=",") == {"t": [1, 2], "x": [1.5, -2.0]}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("\n\r\nt;x\n1;2\n", ["t", "x"]),
        ('"a,b,c,d";t;x\n7;1;2\n', ["a,b,c,d", "t", "x"]),
        ('\ufeff"a;\n""b|,,";t\n7;1\n', ['a;\n"b|,,', "t"]),
        ("t|5' 6\"; x|y\n1|2|3\n", ["t", "5' 6\"; x", "y"]),
        ("t\n1\n", ["t"]),
    ],
)
def test_delimiters_are_those_outside_of_quotes(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    assert list(read_text(tmp_path, text)) == names


def test_a_delimiter_that_is_given(tmp_path: Path) -> None:
    assert read_text(tmp_path, "t~a,b\n1~2\n", delimiter="~") == {"t": [1], "a,b": [2]}
    assert read_text(tmp_path, "a,b,c\td\n1\t2\n", "a.tsv") == {"a,b,c": [1], "d": [2]}


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
@pytest.mark.parametrize("memory", ["unlimited", "1MB"])
def test_text_in_another_encoding_is_refused_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, memory: str
) -> None:
    text = "t,k\n1,a\n2,é\n" if name == "a.csv" else '{"t": 1}\n\n{"t": 2, "k": "é"}\n'
    text = "[" + text.replace("\n\n", ",\n\n") + "]" if name == "a.json" else text
    file, out = tmp_path / name, tmp_path / "out.csv"
    file.write_bytes(text.encode("latin-1"))
    command = ["rolling", str(file), *ROLL, "--memory", memory, "-o", str(out)]
    if name == "a.json" and memory != "unlimited":
        return
    assert main.main(command) == 2
    printed = capsys.readouterr().err
    assert "line 3 is not UTF-8" in printed
    assert "as in --encoding latin-1" in printed
    assert main.main([*command, "--encoding", "latin-1"]) == 0
    assert '"é"' in out.read_text()
    assert main.main([*command, "--encoding", "klingon"]) == 2
    assert "--encoding klingon is not an encoding" in capsys.readouterr().err
    file.write_bytes(text.encode("utf-16"))
    assert main.main([*command, "--encoding", "utf-16"]) == 0
    assert '"é"' in out.read_text()


def test_a_byte_order_mark_before_json(tmp_path: Path) -> None:
    assert read_text(tmp_path, '\ufeff[{"t": 1}]', "a.json") == {"t": [1]}
    assert read_text(tmp_path, '\ufeff{"t": 1}', "a.jsonl") == {"t": [1]}


def test_text_of_json_lines_and_arrays_has_one_type(tmp_path: Path) -> None:
    rows = ['{"t": "2026-01-02", "k": "2026-01-02", "x": "2026-01-02"}']
    rows += ['{"t": "2026-01-03 00:00:00.5", "k": "2026-01-02 00:00:00"}']
    types = []
    for name, text in (("a.jsonl", "\n".join(rows)), ("a.json", f"[{','.join(rows)}]")):
        file = tmp_path / name
        file.write_text(text)
        table = read_table(file, on="t", by=["k"])
        types.append(table.schema)
        assert table["k"].to_pylist() == ["2026-01-02", "2026-01-02 00:00:00"]
        form = "%Y-%d-%m"
        file.write_text(text.replace(" 00:00:00.5", ""))
        assert read_table(file, on="t", time_format=form)["t"][0].as_py().month == 2
    assert types[0] == types[1]


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("13/01/2026", ["%d/%m/%Y"]),
        ("01-13-26 05:06", ["%m-%d-%y %H:%M"]),
        (
            "1/2/2026 5:06:07.5 pm",
            ["%m/%d/%Y %I:%M:%S.%f %p", "%d/%m/%Y %I:%M:%S.%f %p"],
        ),
        ("2026-1-5", ["%Y-%m-%d"]),
        ("3.4.26T01:02:03", ["%m.%d.%yT%H:%M:%S", "%d.%m.%yT%H:%M:%S"]),
    ],
)
def test_the_hint_for_dates_is_a_format_that_reads_them(
    tmp_path: Path, text: str, forms: list[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"t,x\n{text},1\n")
    with pytest.raises(sw.SpecError) as caught:
        read_table(file, on="t")
    assert re.findall("'(%.*?)'", str(caught.value)) == forms
    for form in forms:
        assert read_table(file, on="t", time_format=form)["t"][0].as_py().year == 2026


def test_the_hint_for_dates_reads_all_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("t,x\n01/02/2026,1\n13/02/2026,1\n")
    with pytest.raises(sw.SpecError, match=r"time_format= '%d/%m/%Y' \(day first\)$"):
        read_table(file, on="t")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("memory", ["unlimited", "1MB"])
def test_whole_numbers_since_1970(tmp_path: Path, name: str, memory: str) -> None:
    file, out = tmp_path / name, tmp_path / "out.parquet"
    write_table(pa.table({"t": [1_530_594_367_000, 1_530_594_367_500]}), file)
    command = ["rolling", str(file), *ROLL, "--memory", memory, "-o", str(out)]
    command[command.index("3")] = "1s"
    assert main.main([*command, "--time-unit", "ms"]) == 0
    table = read_table(out)
    assert table["t"].type == pa.timestamp("ms")
    assert table["t"][0].as_py() == dt.datetime(2018, 7, 3, 5, 6, 7)
    assert table["n_1s"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (["1", "1.5"], {"time_unit": "s"}, "'1.5' in row 1 .* number of seconds"),
        (["1", str(2**63)], {"time_unit": "ns"}, f"'{2**63}' in row 1 .* int64"),
        (["1"], {"time_unit": "h"}, "time_unit='h' is none of 's', 'ms', 'us', 'ns'"),
        (["1"], {"time_unit": "s", "time_format": "%Y"}, "give one of them"),
        ([0.5], {"time_unit": "s"}, "'t' holds double: leave it out"),
        ([str(2**63)], {}, f"'{2**63}' in row 0 .*, which is beyond int64"),
    ],
)
def test_numbers_that_are_no_times(
    values: list[Any], options: dict[str, str], message: str
) -> None:
    with pytest.raises(sw.SpecError, match=message):
        parse_times(pa.array(values), "t", **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.csv", {"delimiter": ";;"}, "delimiter=';;': give one character"),
        ("a.csv", {"decimal": "x"}, "decimal='x': give '.' or ','"),
        ("a.csv", {"decimal": ",", "delimiter": ","}, "separates the fields already"),
        ("a.csv", {"encoding": "utf9"}, "encoding='utf9' is not an encoding"),
        ("a.jsonl", {"decimal": ","}, "decimal=',' does not go with a.jsonl"),
        ("a.parquet", {"text": ["t"]}, r"text=\['t'\] does not go with a.parquet"),
    ],
)
def test_forms_that_do_not_fit(
    tmp_path: Path, name: str, options: dict[str, Any], message: str
) -> None:
    write_table(pa.table({"t": [1]}), tmp_path / name)
    with pytest.raises(sw.SpecError, match=message):
        read_table(tmp_path / name, form=TextForm(**options))


@pytest.mark.parametrize("memory", ["unlimited", "1MB"])
def test_a_value_that_is_no_number_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], memory: str
) -> None:
    file, out = tmp_path / "a.csv", tmp_path / "out.csv"
    file.write_text("t,k,x\n1,a,1e3\n2,b, -.5\n3,c,$15\n4,d,$16\n")
    command = ["rolling", str(file), *ROLL, "--agg", "s=sum:x"]
    assert main.main([*command, "--memory", memory, "-o", str(out)]) == 2
    printed = capsys.readouterr().err
    assert (
        "column 'x' holds '$15' in row 2 (counting from 0), which is not a number"
        in printed
    )
    assert "sum('x') does not fit column 'x', which holds string" in printed


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    for name in ("folder", "folder.csv"):
        tmp_path.joinpath(name).mkdir()
        with pytest.raises(sw.SpecError, match="is a folder: give one of its files"):
            read_table(tmp_path / name)
