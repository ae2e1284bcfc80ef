"""Writes docs/aggregations.md: all aggregations and their laws.

    python tools/aggregation_page.py [--check]

The content comes from the code: the laws from the core, the texts from the docstrings.
"""

import inspect
import re
import sys
from pathlib import Path

import slidewise as sw
import slidewise._core as _core
from slidewise import aggregations
from slidewise.aggregations import Aggregation
from slidewise.aggregations.records import kinds

PAGE = Path(__file__).resolve().parent.parent / "docs" / "aggregations.md"

HEAD = """\
# Aggregations

Algorithms require laws of an aggregation, as in Table 2 of Tangwongsan, Hirzel,
Schneider and Wu, *General Incremental Sliding-Window Aggregation* (VLDB 2015):

- **associative**: partial results may be grouped in any way. All algorithms require it.
- **commutative**: partial results may be combined in any order.
- **invertible**: what was combined can be taken out again (`subtract_on_evict`,
  `slick_deque`). `collect` is not treated as invertible: removing the oldest value
  means copying the list.
- **selective**: a combine returns one of its operands, or one per part of a partial, as
  for `range` (`slick_deque`). Several selective aggregations are selective together.

Aggregations without a partial result of bounded size are *holistic*: they need all
values of the window at once.

| aggregation | answers | associative | commutative | invertible | selective |
|-------------|---------|-------------|-------------|------------|-----------|
"""

OWN = """\

`sw.aggregation` defines your own. You promise associativity; declare commutativity or
an inverse if it has them; `sw.check_laws` looks for a counter-example. `sw.native` does
the same for numbers, at native speed.
"""


def page() -> str:
    """The page as it should be."""
    made = {name: _example(name) for name in sorted(_names())}
    rows = "".join(_row(name, agg) for name, agg in made.items())
    sections = "".join(_section(name) for name in made)
    return HEAD + rows + OWN + sections


def _names() -> list[str]:
    public = [name for name in aggregations.__all__ if name[0].islower()]
    return [name for name in public if callable(getattr(aggregations, name))]


def _example(name: str) -> Aggregation:
    made: Aggregation = getattr(aggregations, name)()
    return made


def _row(name: str, agg: Aggregation) -> str:
    laws = ["holistic"] * 4 if agg.record.group == "holistic" else _laws(agg)
    text = " | ".join([f"[`{name}`](#{name})", _summary(name), *laws])
    return f"| {text} |\n"


def _laws(agg: Aggregation) -> list[str]:
    kind = agg.core_kind
    columns = 2 if agg.record.second else 1
    held = [
        True,
        _core.commutes(kind, columns),
        _core.obeys_law("inverse", [(kind, False)], columns),
        _core.obeys_law("selection", [(kind, False)], columns),
    ]
    return ["yes" if holds else "–" for holds in held]


def _doc(name: str) -> str:
    doc = inspect.getdoc(getattr(aggregations, name))
    assert doc is not None, f"{name} has no docstring"
    return doc


def _summary(name: str) -> str:
    return _doc(name).splitlines()[0].rstrip(".")


def _section(name: str) -> str:
    function = getattr(aggregations, name)
    signature = str(inspect.signature(function)).rpartition(" ->")[0]
    text, _, example = _doc(name).partition("\nExample:\n")
    lines = inspect.cleandoc("\n" + example)
    return (
        f"\n## {name}\n\n```python\nsw.{name}{signature}\n```\n\n"
        f"{_listed(text.strip())}\n\n```python\n{lines}\n```\n"
    )


def _listed(text: str) -> str:
    """The sections of a docstring as Markdown lists."""
    return "\n\n".join(_section_text(part) for part in text.split("\n\n"))


def _section_text(text: str) -> str:
    if text.startswith("Returns:\n"):
        return re.sub(r"(?m)^ {4}", "", text.replace("Returns:\n    ", "Returns: "))
    if text.startswith(("Args:\n", "Raises:\n")):
        title, _, items = text.partition("\n")
        items = re.sub(r"(?m)^    (\w+): ", r"- `\1`: ", items)
        items = re.sub(r"(?m)^ {8}", "  ", items)
        return f"{title.replace('Args', 'Arguments')}\n\n{items}"
    return text


def main() -> int:
    """Writes the page, or checks that it is current."""
    missing = [kind for kind in kinds() if kind not in _names()]
    assert not missing, f"kinds without a function: {missing}"
    current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if "--check" in sys.argv[1:]:
        return 0 if current == page() else 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"slidewise {sw.__version__}: wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
