"""Files of text that are refused by the line or the option that is wrong."""

import re
from pathlib import Path

import pytest

from slidewise.cli import main
from slidewise.io.readers import read_table

ROLL = ["--on", "t", "--window", "3", "--agg", "s=sum:x"]


@pytest.fixture(params=["unlimited", "1MB"])
def refusal(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    """What the command prints about a text that it refuses, in memory and on disk."""

    def refused(content: bytes, *options: str, name: str = "a.csv") -> str:
        file, out = tmp_path / name, tmp_path / "out.csv"
        file.write_bytes(content)
        command = ["rolling", str(file), *ROLL, "--memory", request.param]
        assert main.main([*command, *options, "-o", str(out)]) == 2
        assert not out.exists()
        return capsys.readouterr().err

    return refused


@pytest.mark.parametrize("options", [[], ["--delimiter", ";"]])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_line_for_excel_is_refused(refusal, mark, options):
    printed = refusal(mark + b"sep=;\r\nt;x\r\n1;2\r\n", *options)
    assert "a.csv begins with 'sep=;', a line for Excel: remove it" in printed


def test_a_quote_that_is_not_closed_is_named(refusal):
    printed = refusal(b't,x\n1,5\n2,"3\n')
    expected = (
        "in row 1 (counting from 0), which is not a number (is its quote closed?)"
    )
    assert expected in printed


@pytest.mark.parametrize(
    ("text", "options", "way_out"),
    [
        (b't;x\n1;"2"\n2;1,5\n', [], "holds '1,5' in row 1 .* with --decimal ,$"),
        (b't,x\n1,"1,5"\n2,"7"\n', [], "holds '1,5' in row 0 .* with --decimal ,$"),
        (
            b"t;x\n1;2,5\n2;1.5\n",
            ["--decimal", ","],
            "'1.5' in row 1 .* --decimal [.]$",
        ),
        (
            b"t;x\n1;2,5\n2;-\n",
            ["--decimal", ","],
            "holds '-' in row 1 .* --missing -$",
        ),
        (b"t,x\n1,2\n2,-\n", [], "holds '-' in row 1 .* value, add --missing -$"),
        (b"t,x\n1,--\n2,--\n", [], "holds '--' in row 0 .* add --missing=--$"),
        (b"t,x\n1,2\n2,n.a.\n", [], "holds 'n.a.' .* add --missing n.a.$"),
        (b"t,x\n1,-\n2,5\n3,?\n", [], "'-' in .* add --missing - --missing '[?]'$"),
        (b"t,x\n1,NA\n2,5\n", ["--missing", "-"], "--missing - --missing NA$"),
        (b't,x\n1,"NA"\n2,5\n', [], "a missing value only if it is not in quotes$"),
        (b't,x\n1,2\n2,"1,500"\n3,$2\n', [], "without currency, unit and separators"),
        (b't,x\n1,"1,500.25"\n', [], "without currency, unit and separators"),
        (b't,x\n1,5\n2,"a\n3,b\n4,c\n5,d\n6,e"\n', [], "is its quote closed"),
        (b"t,x\n1,Pier\n2,Park\n", [], "not a number: sum[(]'x'[)] does not fit col"),
        (b"t,x\n1,2\n2,2026-01-01\n", [], "not a number: sum[(]'x'[)] does not fit"),
    ],
)
def test_text_among_numbers_names_its_way_out(refusal, text, options, way_out):
    assert re.search(way_out, refusal(text, *options).strip())


@pytest.mark.parametrize("memory", ["unlimited", "1MB"])
def test_the_options_that_messages_name_read_the_file(tmp_path, memory):
    out = str(tmp_path / "out.csv")
    for text, options in [
        ('t;x\n1;"2"\n2;1,5\n', ["--decimal", ","]),
        ('t,x\n1,"2,0"\n2,"1,5"\n', ["--decimal", ","]),
        ("t,x\n1,2\n2,1.5\n3,--\n", ["--missing=--"]),
        ("t,x\n1,2\n2,1.5\n3,-\n4,?\n", ["--missing", "-", "--missing", "?"]),
    ]:
        file = tmp_path / "a.csv"
        file.write_text(text)
        command = ["rolling", str(file), *ROLL, "--memory", memory, *options]
        assert main.main([*command, "-o", out]) == 0
        assert read_table(out)["s_3"][1].as_py() == 3.5


@pytest.mark.parametrize(
    "options", [["--where", "up"], ["--window", "landmark:up", "--agg", "n=count"]]
)
def test_a_flag_that_is_text_is_named(refusal, options):
    printed = refusal(b"t,x,up\n1,2,true\n2,3,yes\n", *options)
    expected = "column 'up' holds 'yes' in row 1 (counting from 0), which is not a flag"
    assert f"{expected}: write true or false" in printed


@pytest.mark.parametrize(
    ("text", "options", "way_out"),
    [
        (b"t;x\n1;2\n", ["--delimiter", ","], "has t;x. Name what .*: --delimiter ';'"),
        (b"2026-01-01 10:00,5\n", [], "The first line has to name the columns."),
        (b"1,5.5\n2,6.5\n", [], "The first line has to name the columns."),
        (b"at,x\n1,5\n", [], "no column 't'; it has at, x. Did you mean 'at'[?]$"),
        (b"t,x\n1,5,7\n", [], "a field with the delimiter in it has to be in quotes"),
    ],
)
def test_a_header_that_does_not_fit_is_explained(refusal, text, options, way_out):
    assert re.search(way_out, refusal(text, *options).strip())


def test_text_without_digits_is_no_time_of_a_format(refusal):
    printed = refusal(b"t,x\n-,5\n2026-01-01,6\n")
    assert "holds '-', which is not ISO 8601: name a column of times, or" in printed
    assert "--time-format" not in printed


def test_times_are_not_read_as_text(refusal):
    printed = refusal(b"t,x\n1,2\n", "--text", "t")
    assert "--text t is a column of times, not of text: leave it out" in printed


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b'{"t":1,"x2":"\xe9"}', r"""(b'{"t":1,"x2":"\xe9"}')"""),
        (b'{"x":"' + b"a" * 60 + b'\xe9"}', f"(... b'{'a' * 40}"),
    ],
)
def test_text_that_is_not_utf8_is_shown(refusal, line, shown):
    printed = refusal(b'{"t":1}\n' + line + b"\n", name="a.jsonl")
    assert "line 2 is not UTF-8" in printed
    assert shown in printed
