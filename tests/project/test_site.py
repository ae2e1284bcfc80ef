"""The site of the documentation: all links lead somewhere.

`mkdocs build` makes it (.github/workflows/docs.yml). Where mkdocs is not installed,
links are resolved in the sources, as mkdocs does.
"""

import html
import importlib.util
import json
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
dead_links: Any = runpy.run_path(str(ROOT / "tools" / "follow_links.py"))["dead_links"]


def text_of(page: Path) -> str:
    """A page without its code, in which nothing is a link or a heading."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as Python-Markdown makes them."""
    found: Counter[str] = Counter()
    made = set()
    for heading in re.findall(r"^#+ (.*)$", text_of(page), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        plain = plain.encode("ascii", "ignore").decode()
        words = re.sub(r"[^\w\s-]", "", plain).strip().lower()
        anchor = re.sub(r"[-\s]+", "-", words)
        made.add(f"{anchor}_{found[anchor]}" if found[anchor] else anchor)
        found[anchor] += 1
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_of_a_page_lead_to_pages_of_the_site(page: Path) -> None:
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = DOCS in target.parents and target.is_file()
        is_page = target.suffix == ".md"
        if not inside or (anchor and is_page and anchor not in anchors(target)):
            dead.append(link)
    assert dead == [], "name files outside docs/ without a link: the site has none"


def test_each_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    nav = text.partition("\nnav:\n")[2].partition("\nmarkdown_extensions:")[0]
    named = re.findall(r"(?:- |: )([\w/-]+\.md)$", nav, re.M)
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


def test_the_index_names_each_guide() -> None:
    listed = text_of(DOCS / "index.md")
    guides = {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    assert guides == set(re.findall(r"\]\(([\w-]+\.md)\)", listed))


# What a newcomer looks for, and a page that must be among those found.
SEARCHED = {
    "rolling": "tables",
    "tumbling": "windows",
    "session": "windows",
    "point-in-time": "tables",
    "getting started": "start",
    "ingest": "serving",
    "query_many": "serving",
    "fastapi": "serving",
    "fraud": "recipes/fraud",
    "ewm": "recipes/time-series",
    "half-life": "recipes/time-series",
    "month to date": "recipes/time-series",
    "uptime": "recipes/machines",
    "rate limit": "recipes/events",
    "vwap": "recipes/markets",
    "lag": "aggregations",
    "slope": "aggregations",
    "merge_asof": "coming-from",
    "flink": "coming-from",
    "group_by_dynamic": "coming-from",
    "expanding": "coming-from",
    "timezone": "windows",
    "daylight saving": "windows",
    "tumbling window": "windows",
    "look-ahead": "tables",
    "leakage": "tables",
    "deduplicate": "recipes/events",
    "stdin": "command",
    "glob": "command",
    "leading zeros": "command",
    "latin-1": "command",
    "gil": "threads",
    "gunicorn": "threads",
    "jupyter": "threads",
    "udf": "start",
    "performance": "start",
    "benchmark": "start",
    "precision": "start",
    "macos": "start",
    "uvicorn": "serving",
    "gdpr": "spark-operating",
    "--window": "command",
    "keyedwindows": "api",
    "moving average": "questions",
    "time buckets": "questions",
    "training set": "questions",
    "last n rows": "questions",
    "target leakage": "questions",
    "centred window": "questions",
    "business days": "questions",
    "holidays": "questions",
    "nan": "questions",
    "nullable": "questions",
    "p99": "questions",
    "asyncio": "questions",
    "multiprocessing": "questions",
    "memory": "questions",
    "kafka without spark": "questions",
    "docker": "questions",
    "alpine": "questions",
    "wsl": "questions",
    "gpu": "questions",
    "pypi": "questions",
}


@pytest.mark.parametrize("words", SEARCHED)
def test_words_of_newcomers_are_on_their_page(words: str) -> None:
    page = (DOCS / f"{SEARCHED[words]}.md").read_text("utf-8")
    assert words in " ".join(page.lower().split())


def test_dead_links_of_a_built_site_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "design"
    folder.mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">a</h1> <a href="design/">b</a> <a href="design/a.html#x">c</a>'
        '<a href="#top">d</a> <a href="https://example.org/e">e</a> <img src="f.png">'
        '<a href="#none">g</a> <a href="../README.md">h</a> <a href="/index.html">i</a>'
    )
    (folder / "index.html").write_text('<a href="../index.html#top">a</a>')
    (folder / "a.html").write_text('<a href="%C3%A9.html?q=1">a</a>')
    (folder / "é.html").write_text("")
    assert list(dead_links(tmp_path)) == [
        ("index.html", "design/a.html#x"),
        ("index.html", "f.png"),
        ("index.html", "#none"),
        ("index.html", "../README.md"),
    ]


def test_no_link_of_the_built_site_is_dead(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("needs mkdocs-material: the workflow Docs builds the site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    subprocess.run([*command, "--site-dir", tmp_path], cwd=ROOT, check=True)
    assert len(list(tmp_path.rglob("*.html"))) > len(PAGES)
    assert list(dead_links(tmp_path)) == []
    index = json.loads((tmp_path / "search" / "search_index.json").read_text("utf-8"))
    for words, page in SEARCHED.items():
        found = {
            each["location"].partition(".html")[0]
            for each in index["docs"]
            if words in html.unescape(f"{each['title']} {each['text']}".lower())
        }
        assert page in found, words
