"""Rust modules import downwards: the floors in the header of each lib.rs are true."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = [ROOT / "crates" / name / "src" for name in ("core", "papers", "py")]
PATH = re.compile(r"\b(crate|(?:super::)*super)::(\{[^;]*\}|\w+)")


def floors_of(header):
    """The modules of each floor, top to bottom: the last text block of the header."""
    lines = [line[3:].strip() for line in header.splitlines() if line.startswith("//!")]
    block = "\n".join(lines).split("```text\n")[-1].split("```")[0]
    return [line.split() for line in block.splitlines() if line]


def names_in(group):
    """The first name of each path in `{a, b::c, d::{e, f}}`."""
    depth, names, name = 0, [], ""
    for sign in group[1:-1] + ",":
        if sign == "," and depth == 0:
            names.append(name.split("::")[0].strip())
            name = ""
            continue
        depth += (sign == "{") - (sign == "}")
        name += sign
    return [name for name in names if name]


def imports_of(source, depth, modules):
    """The top-level modules that a file names; the file lies `depth` below the root."""
    found = set()
    code = "\n".join(line.split("//")[0] for line in source.splitlines())
    for start, rest in PATH.findall(code):
        if start == "crate" or start.count("super") >= depth:
            found |= set(names_in(rest) if rest.startswith("{") else [rest])
    return found & modules


def read(crate):
    """The imports of each top-level module, and the floors its lib.rs states."""
    files = {
        path: [part.removesuffix(".rs") for part in path.relative_to(crate).parts]
        for path in crate.rglob("*.rs")
        if path.name != "lib.rs"
    }
    modules = {parts[0] for parts in files.values()}
    graph = {module: set() for module in modules}
    for path, parts in files.items():
        depth = len(parts) - (parts[-1] == "mod")
        source = path.read_text(encoding="utf-8")
        graph[parts[0]] |= imports_of(source, depth, modules) - {parts[0]}
    floors = floors_of((crate / "lib.rs").read_text(encoding="utf-8"))
    return graph, floors


def upward(graph, floors):
    """The imports that do not lead to a floor below."""
    floor = {name: number for number, names in enumerate(floors) for name in names}
    return [
        f"{module} -> {other}"
        for module, others in sorted(graph.items())
        for other in sorted(others)
        if floor[module] >= floor[other]
    ]


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.parent.name)
def test_modules_import_from_lower_floors_only(crate):
    graph, floors = read(crate)
    named = [name for names in floors for name in names]
    assert sorted(named) == sorted(graph), "lib.rs names each module on one floor"
    assert upward(graph, floors) == []


def test_aggregations_know_neither_windows_nor_tables():
    graph, _ = read(CRATES[0])
    assert graph["aggregate"] & {"window", "rolling"} == set()
    assert graph["rolling"] >= {"aggregate"}, "no imports were found"


@pytest.mark.parametrize(
    ("source", "depth", "found"),
    [
        ("use crate::upper::Name;", 1, {"upper"}),
        ("use crate::{lower, upper::{Name, Other}};", 2, {"lower", "upper"}),
        ("fn f(x: crate::upper::Name) {}", 2, {"upper"}),
        ("use super::upper::Name;", 1, {"upper"}),
        ("use super::upper::Name;", 2, set()),
        ("use super::super::upper::Name;", 2, {"upper"}),
        ("//! [`crate::upper`]", 1, set()),
        ("use std::mem;", 1, set()),
    ],
)
def test_imports_are_read_in_every_spelling(source, depth, found):
    assert imports_of(source, depth, {"lower", "upper"}) == found


def test_a_cycle_and_an_upward_import_are_found():
    floors = floors_of("//! ```text\n//! upper\n//! lower other\n//! ```\n")
    assert upward({"upper": {"lower"}, "lower": set(), "other": set()}, floors) == []
    assert upward({"upper": set(), "lower": {"upper"}}, floors) == ["lower -> upper"]
    cycle = {"lower": {"other"}, "other": {"lower"}}
    assert upward(cycle, floors) == ["lower -> other", "other -> lower"]
