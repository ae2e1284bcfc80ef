"""Kinds of windows: no engine asks for the kind, and the guide names what changes."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from slidewise.spec.windows.base import Window
from slidewise.spec.windows.parse import KINDS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "slidewise"
HOUSE = PACKAGE / "spec" / "windows"
PAGE = ROOT / "docs" / "contributing" / "add-a-window-kind.md"
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if HOUSE not in path.parents]


def kinds_of(kind: type[Window]) -> set[str]:
    """The names of a class and of those below it."""
    return {kind.__name__}.union(*map(kinds_of, kind.__subclasses__()))


NAMES = kinds_of(Window) - {"Window"}


def test_there_is_a_file_per_kind() -> None:
    files = {kind.__module__ for kind in KINDS}
    assert len(files) == len(KINDS)
    assert {"Trailing", "RowCount", "Hop", "Session", "Until", "Delta"} <= NAMES


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_engine_asks_for_the_kind_of_a_window(path: Path) -> None:
    """No `isinstance` of a kind, and no comparison of a kind by its name."""
    asked = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        called = isinstance(node, ast.Call) and getattr(node.func, "id", None)
        if called == "isinstance":
            named = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            asked += sorted(named & NAMES)
        if isinstance(node, ast.Compare):
            left = ast.unparse(node.left)
            asked += re.findall(r"^(?:window|w|longest)\.kind$", left)
    assert asked == []


def test_the_guide_names_the_files_of_the_model() -> None:
    text = PAGE.read_text("utf-8").split("\n## What changes\n")[1]
    listed = set(re.findall(r"^\| `([^`]+)` \|", text, re.M))
    assert 3 <= len(listed) <= 6
    folders = ["python/slidewise", "tests/table/test_data_driven.py", "docs/specs.md"]
    call = ["git", "grep", "-lP", r"\blandmark\b|Landmark\b", "--", *folders]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        pytest.skip(f"no repository of git: {done.stderr.strip()}")
    found = {path for path in done.stdout.split() if not in_words_only(ROOT / path)}
    assert found == listed


def in_words_only(path: Path) -> bool:
    """Whether a source names the model only in docstrings, comments and messages."""
    if PACKAGE not in path.parents:
        return False
    tree = ast.parse(path.read_text("utf-8"))
    names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom):
            names |= {alias.name for alias in each.names}
        if isinstance(each, ast.ClassDef | ast.FunctionDef):
            names.add(each.name)
    return names.isdisjoint({"landmark", "Landmark"})


def test_the_guide_names_properties_that_are_there() -> None:
    table = PAGE.read_text("utf-8").split("| question |")[1].split("\n\n")[0]
    named = re.findall(r"`([a-z_]+)`", table)
    assert len(named) > 25
    assert [name for name in named if not hasattr(Window, name)] == []
