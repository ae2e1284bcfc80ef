"""The pages for contributors: examples run, and files they name hold what they say."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "contributing" / "add-an-aggregation.md"
TEXT = PAGE.read_text("utf-8")


def rows(heading: str) -> list[str]:
    """The first cells of the tables below a heading."""
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [re.split(r" *\| *", line)[1] for line in lines]


def files(cells: list[str]) -> list[str]:
    return [path for cell in cells for path in re.findall(r"`([^`]+/[^`]+)`", cell)]


def test_the_example_gives_what_it_says():
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.S | re.M)
    code, _, promised = block.rpartition("\n")[0].rpartition("\n")[2].partition("  # ")
    names: dict[str, object] = {}
    exec(compile(block, PAGE.name, "exec"), names)
    assert eval(code, names) == pytest.approx(eval(promised))


def test_the_example_fits_on_a_screen():
    blocks = re.findall(r"^```(?:rust|text)\n(.*?)^```", TEXT, re.S | re.M)
    lines = [line for line in "".join(blocks).splitlines() if line.strip()]
    assert 20 < len(lines) < 60


@pytest.mark.parametrize("path", files(rows("What changes")))
def test_files_are_there(path):
    found = [*ROOT.glob(path), *ROOT.glob(f"crates/core/src/aggregate/{path}")]
    assert found, f"{path} is gone: {PAGE.name} must name its successor"


@pytest.mark.parametrize("path", files(rows("What changes"))[:13])
def test_files_name_the_model(path):
    text = (ROOT / path).read_text("utf-8")
    assert re.search(r'Kind::Range|Self::Range|"range"|\brange,\n|## range\n', text), (
        f"{path} no longer names the model"
    )


def test_contributing_names_recipes_and_pages_that_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    recipes = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert set(re.findall(r"\bmake ([a-z-]+)`", text)) <= set(recipes)
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert len(links) >= 5
    assert [link for link in links if not (ROOT / link).exists()] == []
    tests = re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert [path for path in tests if not (ROOT / path).exists()] == []
