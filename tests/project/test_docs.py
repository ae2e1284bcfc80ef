"""Pages agree with the code, and their examples run."""

import ast
import itertools
import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import slidewise as sw
import slidewise._core as _core
from slidewise.aggregations.records import kinds

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "aggregations.md"


def test_the_page_of_aggregations_is_current():
    made = runpy.run_path(str(ROOT / "tools" / "aggregation_page.py"))["page"]()
    assert PAGE.read_text(encoding="utf-8") == made, "run: make docs"


def test_it_names_every_aggregation():
    text = PAGE.read_text(encoding="utf-8")
    for kind in kinds():
        assert f"## {kind}\n" in text
        assert hasattr(sw, kind)


def test_laws_are_those_of_the_core():
    rows = {
        line.split("`")[1]: [cell.strip() for cell in line.split("|")[3:7]]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| [`")
    }
    assert rows["sum"] == ["yes", "yes", "yes", "–"]
    assert rows["max"] == ["yes", "yes", "–", "yes"]
    assert rows["collect"] == ["yes", "–", "–", "–"]
    assert rows["median"] == ["holistic"] * 4
    assert _core.commutes("sum", 1)
    assert not _core.commutes("first", 1)


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)


def promised(block: str) -> Iterator[tuple[str, object]]:
    """Expressions followed by their values: `w.query()  # 5.0: the whole window`."""
    for line in block.splitlines():
        code, _, comment = line.partition("  # ")
        found = re.match(r"(\[.*?\]|[\d.]+)(:|$)", comment)
        if found:
            yield code, ast.literal_eval(found[1])


def test_the_readme_runs_as_pasted():
    """From top to bottom; the blocks for Spark run with the guides for Spark."""
    names, checked = {}, 0
    for block in blocks(ROOT / "README.md"):
        if "slidewise.spark" in block:
            continue
        # Answers change from line to line, so each is checked in its line.
        looked = block
        for code, value in promised(block):
            looked = looked.replace(f"{code}  #", f"assert ({code}) == {value!r}  #")
            checked += 1
        exec(compile(looked, "README.md", "exec"), names)
    assert checked == 8
    assert len(names["features"]) == 3


@pytest.mark.parametrize("page", ["specs", "queries", "checks", "windows"])
def test_a_guide_runs_as_pasted(page, capsys):
    """The output of a block is the next block."""
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```", text, re.S | re.M)
    names, checked = {}, 0
    for (kind, block), (_, after) in itertools.pairwise([*found, ("", "")]):
        if kind != "python":
            continue
        looked = block
        for code, value in promised(block):
            looked = looked.replace(f"{code}  #", f"assert ({code}) == {value!r}  #")
            checked += 1
        exec(compile(looked, page, "exec"), names)
        if printed := capsys.readouterr().out:
            assert printed.strip() == after.strip()
            checked += 1
    counts = {"specs": 6, "queries": 6, "checks": 3, "windows": 8}
    assert checked == counts[page]


def test_the_yaml_of_the_guide_is_a_spec(tmp_path):
    pytest.importorskip("yaml", reason="slidewise[yaml]")
    text = (ROOT / "docs" / "specs.md").read_text("utf-8")
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", text, re.S | re.M)
    (tmp_path / "a.yaml").write_text(shown)
    assert sw.Spec.load(tmp_path / "a.yaml").results[:2] == ("n_1h", "avg_1h")


def test_the_readme_links_to_pages_that_are_there():
    text = (ROOT / "README.md").read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert {"docs/aggregations.md", "docs/numbers.md"} <= set(links)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_names_extras_and_recipes_that_are_there():
    text = (ROOT / "README.md").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = set(project["project"]["optional-dependencies"])
    named = re.findall(r"pip install '[\w.]+\[(.*?)\]'", text)
    assert named
    assert set(",".join(named).split(",")) <= extras
    recipes = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= set(recipes)
