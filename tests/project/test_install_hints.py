"""Every install command in messages, docstrings and pages works."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FILES = [
    *sorted((ROOT / "python" / "slidewise").rglob("*.py")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "README.md",
]


def hints():
    """(file, arguments of pip) for each command."""
    for file in FILES:
        for given in re.findall(r"pip install ([^\n`#]+)", file.read_text("utf-8")):
            yield pytest.param(given.strip(), id=f"{file.name}: {given.strip()[:40]}")


def named(given: str) -> list[str]:
    """The requirements among pip's arguments."""
    quoted = re.findall(r"'([^']+)'|\"([^\"]+)\"", given)
    return ["".join(pair) for pair in quoted] or given.split()[:1]


def allowed(name: str) -> set[str]:
    """The version specifiers that the extras have for a package."""
    every = [Requirement(one) for extra in EXTRAS.values() for one in extra]
    return {str(one.specifier) for one in every if one.name == name}


@pytest.mark.parametrize("given", list(hints()))
def test_what_is_named_exists(given):
    for one in named(given):
        if one.startswith(("./", ".[", "dist/")) or one == ".":
            extras = re.search(r"\[(.*)\]$", one)
            assert extras is None or set(extras[1].split(",")) <= set(EXTRAS)
            continue
        wanted = Requirement(one)
        assert wanted.name == "slidewise" or allowed(wanted.name) or one == "venv-pack"
        assert wanted.extras <= set(EXTRAS)
