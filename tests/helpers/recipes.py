"""The calls of the recipes, to make again in other engines.

A section ends with where the same call works: `*The same: a stream, Spark.*`
"""

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pages import run_python

import slidewise as sw

__all__ = ["PAGES", "Call", "arrow", "calls", "comparable"]

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "recipes").glob("*.md"))
SAME = re.compile(r"^\*The same: (.*)\.\*$", re.M)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of `rolling` or `hopping`, its table as it was, and its result."""

    section: str
    places: tuple[str, ...]
    name: str
    table: Any
    positional: tuple[Any, ...]
    options: dict[str, Any]
    result: Any


def calls(page: Path, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Runs a page; its calls in sections that name another place."""
    made: list[tuple[str, Any, tuple[Any, ...], dict[str, Any], Any]] = []

    def recording(name: str, function: Any) -> Any:
        def call(table: Any, *positional: Any, **options: Any) -> Any:
            result = function(table, *positional, **options)
            # Recipes add columns to both.
            made.append((name, arrow(table), positional, options, arrow(result)))
            return result

        return call

    monkeypatch.setattr(sw, "rolling", recording("rolling", sw.rolling))
    monkeypatch.setattr(sw, "hopping", recording("hopping", sw.hopping))
    names: dict[str, object] = {}
    found = []
    for title, text in sections(page):
        made.clear()
        for block in re.findall(r"^```python\n(.*?)^```", text, re.S | re.M):
            run_python(block, page.name, names)
        if same := SAME.search(text):
            places = tuple(same[1].split(", "))
            found += [Call(f"{page.stem}: {title}", places, *each) for each in made]
    return found


def sections(page: Path) -> Iterator[tuple[str, str]]:
    """The titles and texts of the sections of a page."""
    for part in re.split(r"^## ", page.read_text("utf-8"), flags=re.M)[1:]:
        title, _, text = part.partition("\n")
        yield title, text


def arrow(table: Any) -> pa.Table:
    """A frame as Arrow, without an index."""
    if isinstance(table, pa.Table):
        return table
    if hasattr(table, "to_arrow"):
        return table.to_arrow()
    return pa.Table.from_pandas(table, preserve_index=False)


def comparable(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    """Rows as text in one order; floats with twelve digits, NaN and null alike."""
    return sorted(repr([plain(row[column]) for column in columns]) for row in rows)


def plain(value: Any) -> Any:
    """A value without the types that frames give it."""
    if value is None or value != value:
        return None
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value
