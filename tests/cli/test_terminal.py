"""Progress is shown on a terminal only; tables are plain text."""

import io

import pyarrow as pa

from slidewise.cli.terminal import Stages, print_table


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    stages = Stages()
    with stages.stage("reading") as report:
        report(0.5)
    assert "reading" in terminal.getvalue()
    assert stages.seconds["reading"] >= 0


def test_no_progress_into_a_file(capsys):
    stages = Stages()
    with stages.stage("reading") as report:
        report(0.5)
    assert capsys.readouterr() == ("", "")
    assert list(stages.seconds) == ["reading"]


def test_progress_can_be_turned_off(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Stages(quiet=True).stage("reading") as report:
        report(0.5)
    assert terminal.getvalue() == ""


def test_tables_are_aligned_plain_text_of_any_width(capsys):
    text = "[bold]not markup[/bold] " * 9
    table = pa.table({"key": ["a", None], "x": [1.25, 1e12], "n": [1, 20]})
    print_table(table.append_column("text", [[text, ""]]), ["key", "n", "x", "text"])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "key    n       x   text",
        "─" * (19 + len(text)),
        f"a      1     1.2   {text}".rstrip(),
        "·     20   1e+12",
    ]
