"""Pages agree with the code, and their examples run."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pages import blocks, run_python

import aggregation_page
import api_page
import llms_page
import slidewise as sw
import slidewise._core as _core
import window_pictures
from slidewise.aggregations.records import kinds

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "aggregations.md"


def test_the_page_of_aggregations_is_current():
    assert PAGE.read_text(encoding="utf-8") == aggregation_page.page(), "run: make docs"


def test_the_page_of_public_names_is_current():
    pytest.importorskip("pyspark", reason="slidewise[spark]")
    pytest.importorskip("sklearn", reason="slidewise[sklearn]")
    made = api_page.page()
    shown = (ROOT / "docs" / "api.md").read_text("utf-8")
    assert shown == made, "run: make docs"
    for name in ("sw.rolling", "sw.KeyedWindows", "spark.rolling"):
        assert f"\n### {name}\n" in shown
    assert "\n#### KeyedWindows.query\n" in shown


def test_the_list_of_pages_for_programs_is_current():
    text = (ROOT / "docs" / "llms.txt").read_text("utf-8")
    assert text == llms_page.page(), "run: make docs"
    named = re.findall(r"\]\((.*?)\.html\)", text)
    assert "recipes" in named
    assert [one for one in named if not (ROOT / "docs" / f"{one}.md").exists()] == []


def test_the_pictures_of_windows_are_current():
    for name, draw in window_pictures.PICTURES.items():
        assert (ROOT / "docs" / name).read_text("utf-8") == draw(), "run: make docs"


def test_it_names_every_aggregation():
    text = PAGE.read_text(encoding="utf-8")
    for kind in kinds():
        assert f"\n### {kind}\n" in text
        assert f"| [`{kind}`](#{kind}) | " in text
        assert hasattr(sw, kind)


def test_the_table_by_purpose_has_what_small_windows_give():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    shown = {
        found[1]: (found[2], found[3])
        for line in lines
        if (found := re.match(r"\| [^`\[].*\| \[`(\w+)`.*?\) \| (.*?) \| (\d) ", line))
    }
    assert shown.keys() >= set(kinds())
    assert shown["sum"] == ("null", "1")
    assert shown["count"] == ("0", "1")
    assert shown["skewness"] == ("null", "3")
    assert shown["collect"] == ("[]", "1")
    assert shown["max_gap"] == ("null", "2")


def test_laws_are_those_of_the_core():
    rows = {
        line.split("`")[1]: [cell.strip() for cell in line.split("|")[2:6]]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| [`")
    }
    assert rows.keys() >= set(kinds())
    assert list(rows) == sorted(rows)
    assert rows["sum"] == ["yes", "yes", "yes", "–"]
    assert rows["max"] == ["yes", "yes", "–", "yes"]
    assert rows["collect"] == ["yes", "–", "–", "–"]
    assert rows["median"] == ["holistic"] * 4
    assert _core.commutes("sum", 1)
    assert not _core.commutes("first", 1)


def test_the_readme_runs_as_pasted():
    names: dict[str, Any] = {}
    checked = 0
    for kind, block in blocks(ROOT / "README.md"):
        if kind == "python":
            checked += run_python(block, "README.md", names)
    assert checked == 5
    assert len(names["features"]) == 3
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 110


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
