"""The code of each guide runs, and its answers are those that the page shows.

`test_doctests.py` runs the examples of pages that come from docstrings, and
`tests/spark/test_guides.py` the guides for Spark.
"""

from pathlib import Path

import pytest
from pages import blocks, run_page

DOCS = Path(__file__).resolve().parents[2] / "docs"
ELSEWHERE = (
    *("aggregations.md", "api.md"),
    *("spark.md", "spark-streams.md", "spark-operating.md"),
)
GUIDES = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page.name not in ELSEWHERE
    and page.parent.name not in ("contributing", "design")
    and any(kind in ("python", "sh") for kind, _ in blocks(page))
]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_runs_as_pasted(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(page, capsys) > 0, "shows no answer"
