"""Writes docs/aggregations.md: all aggregations, by purpose, and their laws.

    python tools/aggregation_page.py [--check]

The content comes from the code: the families are the modules, the texts the docstrings,
the laws those of the core. What windows with few values give is computed.
"""

import dataclasses
import importlib
import inspect
import re
import sys
from itertools import groupby, product
from pathlib import Path
from typing import Any

import pyarrow as pa

import slidewise as sw
import slidewise._core as _core
from docstrings import documentation, markdown, summary
from slidewise import aggregations
from slidewise.aggregations import Aggregation
from slidewise.aggregations.records import kinds

PAGE = Path(__file__).resolve().parent.parent / "docs" / "aggregations.md"

HEAD = """\
# Aggregations

What can be computed over a window, by purpose. Nulls are skipped everywhere. The
tables have

- **empty**: the result of a window without values. `fill=` replaces null.
- **needs**: the number of values, or rows, from which on there is a result. `min_rows=`
  demands more.
- **cost** per row and window, whatever the length of the window. A *combine* joins two
  partial results.
- **inverse**: whether a value that leaves can be taken out again. Tables do not need
  it; some structures of `Window` [require it](#laws).

Results of integers and decimals are exact, and sums of floats are error-compensated
([numbers](numbers.md)). Sketches state their error in their section.

"""

OWN = """\

## Your own

`sw.aggregation` defines your own, of one column or several, with the time of each row
and the ends of the window if it asks for them. You promise associativity; declare
commutativity or an inverse if it has them; `sw.check_laws` looks for a counter-example.
`sw.native` does the same for one column of numbers, at native speed.
[The API](api.md#your-own-aggregations) has both.
"""

LAWS = """\

## Laws

Algorithms of `Window` require laws of an aggregation, as in Table 2 of Tangwongsan,
Hirzel, Schneider and Wu, *General Incremental Sliding-Window Aggregation* (VLDB 2015):

- **associative**: partial results may be grouped in any way. All algorithms require it.
- **commutative**: partial results may be combined in any order.
- **invertible**: what was combined can be taken out again (`subtract_on_evict`,
  `slick_deque`). `collect` is not treated as invertible: removing the oldest value
  means copying the list.
- **selective**: a combine returns one of its operands, or one per part of a partial, as
  for `range` (`slick_deque`). Several selective aggregations are selective together.

Aggregations without a partial result of bounded size are *holistic*: they need all
values of the window at once.

| aggregation | associative | commutative | invertible | selective |
|-------------|-------------|-------------|------------|-----------|
"""

# Windows of 0 to 4 values; aggregations take the first type that they can.
VALUES: dict[str, list[Any]] = {
    "float": [1.0, 2.0, 4.0, 8.0],
    "int": [1, 2, 4, 8],
    "bool": [True, False, True, True],
    "text": ["a", "b", "c", "d"],
}


def page() -> str:
    """The page as it should be."""
    made = {name: _example(name) for name in _names()}
    parts = [HEAD]
    families = [(title, list(each)) for title, each in groupby(made, key=_family)]
    for title, names in families:
        rows = "".join(_purpose(name, made[name]) for name in names)
        parts.append(f"**{title}**\n\n{PURPOSES}{rows}\n")
    parts[-1] = parts[-1].rstrip("\n") + "\n"
    parts.append(OWN)
    for title, names in families:
        parts.append(f"\n## {title}\n")
        parts += [_section(name) for name in names]
    laws = "".join(_row(name, agg) for name, agg in sorted(made.items()))
    return "".join([*parts, LAWS, laws])


PURPOSES = """\
| you want | function | empty | needs | cost | inverse |
|----------|----------|-------|-------|------|---------|
"""


def _names() -> list[str]:
    """The functions, family by family, in the order of messages."""
    public = [name for name in aggregations.__all__ if name[0].islower()]
    functions = [name for name in public if callable(getattr(aggregations, name))]
    families = list(dict.fromkeys(map(_family, functions)))
    return sorted(functions, key=lambda name: families.index(_family(name)))


def _family(name: str) -> str:
    """What the module of a function is about."""
    module = importlib.import_module(getattr(aggregations, name).__module__)
    first = documentation(module).splitlines()[0]
    return re.split(r"[:.]", first)[0]


def _purpose(name: str, agg: Aggregation) -> str:
    want = summary(getattr(aggregations, name))
    empty, needs = _few(name, agg)
    cost = re.search(r"\nCost: (.*?)(?:\n\n|$)", _doc(name), re.S)
    assert cost is not None, f"{name} names no cost"
    brief = " ".join(cost[1].split()).partition(", shared with")[0].rstrip(".")
    brief = brief.replace(" per row and window", "")
    inverse = _laws(agg)[2] if agg.record.group == "" else "–"
    cells = [want, f"[`{name}`](#{name})", empty, needs, brief, inverse]
    return f"| {' | '.join(cells)} |\n"


def _few(name: str, agg: Aggregation) -> tuple[str, str]:
    """The result of an empty window, and the number of values that give another."""
    second = agg.record.second in ("compared", "paired")
    of = None if agg.record.inputs[:1] == ("time",) else "x"
    made = dataclasses.replace(agg, of=of, by="x" if second else None)
    labels = pa.table({"t": range(5)})
    for values, at in product(VALUES.values(), (labels, None)):
        rows = pa.table({"t": range(1, 5), "x": values})
        try:
            out = sw.rolling(rows, on="t", windows=9, aggs={"a": made}, at=at)
        except sw.SpecError:
            continue
        found = out["a_9"].to_pylist()
        empty = "–" if at is None else found.pop(0)  # some need a row
        needs = next(n for n, one in enumerate(found, 1) if one is not None)
        shown = "null" if empty is None else "a sketch" if _is_blob(empty) else empty
        return str(shown), str(needs)
    raise AssertionError(f"{name} takes none of {list(VALUES)}")


def _is_blob(value: Any) -> bool:
    return isinstance(value, bytes)


def _example(name: str) -> Aggregation:
    function = getattr(aggregations, name)
    needed = {"edges": [0.0], "half_life": 1}
    known = needed.keys() & inspect.signature(function).parameters.keys()
    made: Aggregation = function(**{each: needed[each] for each in known})
    return made


def _row(name: str, agg: Aggregation) -> str:
    laws = ["holistic"] * 4 if agg.record.group == "holistic" else _laws(agg)
    text = " | ".join([f"[`{name}`](#{name})", *laws])
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
    return documentation(getattr(aggregations, name))


def _section(name: str) -> str:
    function = getattr(aggregations, name)
    signature = str(inspect.signature(function)).rpartition(" ->")[0]
    shown = f"```python\nsw.{name}{signature}\n```"
    return f"\n### {name}\n\n{shown}\n\n{markdown(_doc(name))}"


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
