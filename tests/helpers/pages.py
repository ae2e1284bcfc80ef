"""Runs the code of a page from top to bottom, and checks the answers that it shows.

A block of Python promises values (`w.query()  # [5]`), or prints the block after it; a
block `sh` runs the lines that call the command, and prints the block after it, too. A
block `csv` is a file of that name, `trips.csv`.
"""

import ast
import itertools
import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from slidewise.cli import main

__all__ = ["blocks", "run_page", "run_python"]

# A value in a comment, and what may follow.
_PROMISED = re.compile(r"(\[.*?\]|\{.*?\}|[\d.]+|True|False)(:|$)")

# Blocks that name one of these are left out where it is not installed.
OPTIONAL = ("narwhals", "sklearn")


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each block."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)


def promised(block: str) -> Iterator[tuple[str, object]]:
    """Expressions followed by their values: `w.query()  # 5.0: the whole window`."""
    for line in block.splitlines():
        code, _, comment = line.partition("  # ")
        found = _PROMISED.match(comment)
        if found:
            yield code, ast.literal_eval(found[1])


def run_python(block: str, page: str, names: dict[str, object]) -> int:
    """Runs a block, and returns the number of its values and assertions.

    Answers change from line to line, so each is checked in its line.
    """
    looked, checked = block, 0
    for code, value in promised(block):
        looked = looked.replace(f"{code}  #", f"assert ({code}) == {value!r}  #")
        checked += 1
    exec(compile(looked, page, "exec"), names)
    return checked + len(re.findall(r"^ *assert ", block, re.M))


def is_installed(block: str) -> bool:
    return all(find_spec(name) for name in OPTIONAL if name in block)


def run_page(page: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """Runs a page in the current folder; the number of values and outputs checked."""
    names: dict[str, object] = {}
    checked = 0
    for (kind, block), (_, after) in itertools.pairwise([*blocks(page), ("", "")]):
        if kind == "csv":
            Path("trips.csv").write_text(block)
        elif kind == "python" and is_installed(block):
            checked += run_python(block, page.name, names)
        elif kind == "sh":
            for line in block.replace("\\\n", "").splitlines():
                if line.startswith("slidewise "):
                    assert main.main(shlex.split(line)[1:]) == 0, line
        if printed := capsys.readouterr().out:
            assert trimmed(printed) == trimmed(after)
            checked += 1
    return checked


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]
