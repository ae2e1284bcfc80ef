"""The design pages name files and items that exist."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
DESIGN = ROOT / "docs" / "design"
# The folders of paths that begin with no folder of the repository.
ELSEWHERE = {
    ".rs": ROOT / "crates" / "core" / "src",
    ".py": ROOT / "python" / "slidewise",
    ".md": DESIGN,
}
PAPERS = ["FiBA", "Bulk FiBA", "DABA", "Reactive Aggregator", "SlickDeque", "Others"]
FOLDERS = ("bench/", "crates/", "docs/", "examples/", "python/", "tests/")

# `path` or `path: item, item`.
REFERENCE = re.compile(r"`([\w./]+\.(?:rs|py|md))(?:: ([\w, ]+))?`")
DEFINITION = r"\b(?:fn|struct|enum|trait|type|const|mod|def|class)\s+{}\b"


OTHERWISE = "*decided otherwise* "


class Row(NamedTuple):
    """A row of the map."""

    paper: str
    part: str
    place: str
    tests: str
    remark: str


def rows() -> list[Row]:
    found, paper = [], ""
    for line in (DESIGN / "papers.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            paper = line[3:]
        elif line.startswith("| ") and not line.startswith("| part |"):
            part, place, *rest = (cell.strip() for cell in line.split("|")[1:-1])
            # Other papers are named where they are used.
            tests, remark = rest if len(rest) == 2 else ("", *rest)
            found.append(Row(paper, part, place, tests, remark))
    return found


@cache
def text_of(path: str) -> str:
    return file_of(path).read_text("utf-8")


def file_of(path: str) -> Path:
    if path.startswith(FOLDERS):
        return ROOT / path
    return ELSEWHERE[Path(path).suffix] / path


def missing(reference: re.Match[str]) -> list[str]:
    """The names in a reference that do not exist in the tree."""
    path, items = reference[1], reference[2]
    if not file_of(path).is_file():
        return [path]
    named = items.split(", ") if items else []
    return [
        f"{path}: {item}"
        for item in named
        if not re.search(DEFINITION.format(item), text_of(path))
    ]


def test_the_map_covers_the_papers():
    papers = [row.paper for row in rows()]
    assert list(dict.fromkeys(papers)) == PAPERS
    assert all(papers.count(paper) >= 15 for paper in PAPERS[:-1])


@pytest.mark.parametrize("paper", PAPERS)
def test_each_row_names_what_is_there(paper: str):
    for row in (row for row in rows() if row.paper == paper):
        for cell in (row.place.removeprefix(OTHERWISE), row.tests):
            references = list(REFERENCE.finditer(cell))
            assert not REFERENCE.sub("", cell).strip(", "), f"{row.part}: {cell}"
            named = [name for found in references for name in missing(found)]
            assert named == [], row.part
        assert REFERENCE.search(row.place), row.part


@pytest.mark.parametrize("paper", PAPERS[:-1])
def test_each_row_has_a_test_or_a_reason(paper: str):
    for row in (row for row in rows() if row.paper == paper):
        tests = [found[1] for found in REFERENCE.finditer(row.tests)]
        assert tests, row.part
        assert all("tests/" in path for path in tests), f"{row.part}: {tests}"
        assert row.remark or not row.place.startswith(OTHERWISE), row.part


@pytest.mark.parametrize(
    "page", sorted(DESIGN.glob("*.md")), ids=lambda page: page.name
)
def test_the_pages_name_what_is_there(page: Path):
    text = page.read_text("utf-8")
    named = [name for found in REFERENCE.finditer(text) for name in missing(found)]
    assert named == []


def test_a_wrong_name_is_found():
    assert missing(REFERENCE.match("`monoid.rs: Monoid`")) == []
    assert missing(REFERENCE.match("`monoid.rs: Monad`")) == ["monoid.rs: Monad"]
    assert missing(REFERENCE.match("`monad.rs`")) == ["monad.rs"]
