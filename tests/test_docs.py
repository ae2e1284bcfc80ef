"""Pages that are made from the code say what the code does."""

import runpy
from pathlib import Path

import slidewise as sw
from slidewise import _core
from slidewise.aggregations import KINDS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "aggregations.md"


def test_the_page_of_aggregations_is_current():
    made = runpy.run_path(str(ROOT / "tools" / "aggregation_page.py"))["page"]()
    assert PAGE.read_text(encoding="utf-8") == made, "run: make docs"


def test_it_names_every_aggregation():
    text = PAGE.read_text(encoding="utf-8")
    for kind in KINDS:
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
