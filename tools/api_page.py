"""Writes docs/api.md: every public name, from its docstring.

    python tools/api_page.py

Aggregations are in docs/aggregations.md, with the same texts.
"""

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import slidewise as sw
from docstrings import call, documentation, markdown
from slidewise import aggregations
from slidewise.keyed import Follower

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"

HEAD = """\
# API

All public names of `slidewise` and its packages, except for the
[aggregations](aggregations.md). The text of each is that of `help()`.
"""

# The order of a reader; a name that is missing here raises.
GROUPS: dict[str, tuple[str, ...]] = {
    "Tables": ("rolling", "hopping", "audit", "explain"),
    "Specifications": ("Spec", "Features"),
    "Kinds of windows": (
        *("rows", "trailing", "length", "unbounded", "calendar", "to_date"),
        *("landmark", "cumulate", "session", "until"),
    ),
    "Streams": (
        *("KeyedWindows", "follow", "Window", "SharedWindow", "Query", "algorithms"),
    ),
    "Your own aggregations": ("Aggregation", "aggregation", "native", "check_laws"),
    "Sketches": ("Bloom", "CountMin"),
    "Errors": (
        *("SlidewiseError", "SpecError", "ResultOverflowError", "EmptyWindowError"),
        *("OutOfOrderError", "SnapshotError", "WindowBusyError", "LawError"),
        "StaleResultError",
    ),
}
# Classes that a public function returns, after it.
RETURNED = {"follow": Follower}
PACKAGES = (
    *("slidewise.spark", "slidewise.spark.sinks", "slidewise.testing"),
    "slidewise.metrics",
    *("slidewise.pandas", "slidewise.polars", "slidewise.sklearn"),
)


def page() -> str:
    """The page as it should be."""
    listed = {name for names in GROUPS.values() for name in names}
    made = {name for name in aggregations.__all__ if name[0].islower()}
    missing = set(sw.__all__) - listed - made - {"__version__"}
    assert not missing, f"give them a group in tools/api_page.py: {sorted(missing)}"
    parts = [HEAD]
    for title, names in GROUPS.items():
        parts.append(f"\n## {title}\n")
        for name in names:
            parts.append(section(f"sw.{name}", getattr(sw, name)))
            if returned := RETURNED.get(name):
                parts.append(section(returned.__name__, returned))
    for package in PACKAGES:
        module = importlib.import_module(package)
        parts.append(f"\n## {package}\n")
        parts += [
            section(f"{package.partition('.')[2]}.{name}", getattr(module, name))
            for name in sorted(module.__all__)
        ]
    return "".join(parts)


def section(name: str, item: Any) -> str:
    """The text of a name, then of the members of a class: first those of one line."""
    text = f"\n### {name}\n\n{call(name, item)}{markdown(documentation(item))}"
    if not inspect.isclass(item) or issubclass(item, Exception):
        return text
    short = name.rpartition(".")[2]
    found = {member: documentation(static) for member, static in members(item)}
    brief = [member for member, told in found.items() if "\n" not in told]
    if brief:
        text += "\n" + "".join(f"- `.{each}`: {found[each]}\n" for each in brief)
    for member in [each for each in found if each not in brief]:
        text += f"\n#### {short}.{member}\n\n"
        text += call(f"{short}.{member}", getattr(item, member))
        text += markdown(found[member])
    return text


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that have a text."""
    for name in dir(kind):
        static = inspect.getattr_static(kind, name)
        is_member = (
            inspect.isroutine(static)
            or inspect.isdatadescriptor(static)
            or hasattr(static, "__func__")
        )
        if is_member and not name.startswith("_") and inspect.getdoc(static):
            yield name, static


def main() -> int:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"slidewise {sw.__version__}: wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
