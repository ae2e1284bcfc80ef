"""Files of text that are refused by the line or the option that is wrong."""

from pathlib import Path

import pytest

from slidewise.cli import main

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
