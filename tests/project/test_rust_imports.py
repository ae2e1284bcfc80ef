"""Rust modules import downwards: the floors in the header of each lib.rs are true, and
no modules of a folder import each other in a circle."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = [ROOT / "crates" / name / "src" for name in ("core", "papers", "py")]
# The programs of benchmarks, which are modules of their own.
PROGRAMS = sorted(path.parent for path in ROOT.glob("crates/*/benches/*/main.rs"))
PATH = re.compile(r"\b(crate|self|(?:super::)*super)::((?:\w+::)*(?:\{[^;]*\}|\w+))")


def floors_of(header):
    """The modules of each floor, top to bottom: the last text block of the header."""
    lines = [line[3:].strip() for line in header.splitlines() if line.startswith("//!")]
    block = "\n".join(lines).split("```text\n")[-1].split("```")[0]
    return [line.split() for line in block.splitlines() if line]


def split(group):
    """The paths in `{a, b::{c, d}}`, as strings."""
    depth, paths, path = 0, [], ""
    for sign in group[1:-1] + ",":
        if sign == "," and depth == 0:
            paths.append("".join(path.split()))
            path = ""
            continue
        depth += (sign == "{") - (sign == "}")
        path += sign
    return [path for path in paths if path]


def expanded(path):
    """The lists of names that `a::{b, c::d}` stands for."""
    before, brace, group = path.partition("{")
    names = [name for name in before.split("::") if name]
    if not brace:
        return [names]
    return [names + rest for one in split("{" + group) for rest in expanded(one)]


def paths_in(source, module):
    """The paths that a module names, from the root of the crate."""
    code = "\n".join(line.split("//")[0] for line in source.splitlines())
    for start, path in PATH.findall(code):
        levels = 0 if start == "crate" else len(module) - start.count("super")
        for names in expanded(path):
            yield module[: max(0, levels)] + names


def siblings(module, path):
    """The folder, and its two modules, if a module names a path below another one."""
    for at, (one, other) in enumerate(zip(module, path, strict=False)):
        if one != other:
            return tuple(module[:at]), one, other
    return None


@cache
def graphs(root):
    """The imports between the modules of each folder, the root's under ()."""
    found = {}
    for path in root.rglob("*.rs"):
        if path.name in ("lib.rs", "main.rs"):
            continue
        module = [part.removesuffix(".rs") for part in path.relative_to(root).parts]
        module = module[:-1] if module[-1] == "mod" else module
        source = path.read_text(encoding="utf-8")
        for at in range(len(module)):
            found.setdefault(tuple(module[:at]), {}).setdefault(module[at], set())
        for named in paths_in(source, module):
            if edge := siblings(module, named):
                folder, one, other = edge
                found.setdefault(folder, {}).setdefault(one, set()).add(other)
    return {
        folder: {one: others & graph.keys() for one, others in graph.items()}
        for folder, graph in found.items()
    }


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
    graph = graphs(crate)[()]
    floors = floors_of((crate / "lib.rs").read_text(encoding="utf-8"))
    named = [name for names in floors for name in names]
    assert sorted(named) == sorted(graph), "lib.rs names each module on one floor"
    assert upward(graph, floors) == []


def test_aggregations_know_neither_windows_nor_tables():
    graph = graphs(CRATES[0])[()]
    assert graph["aggregate"] & {"window", "rolling"} == set()
    assert graph["rolling"] >= {"aggregate"}, "no imports were found"


def test_a_cycle_and_an_upward_import_are_found():
    floors = floors_of("//! ```text\n//! upper\n//! lower other\n//! ```\n")
    assert upward({"upper": {"lower"}, "lower": set(), "other": set()}, floors) == []
    assert upward({"upper": set(), "lower": {"upper"}}, floors) == ["lower -> upper"]
    cycle = {"lower": {"other"}, "other": {"lower"}}
    assert upward(cycle, floors) == ["lower -> other", "other -> lower"]


def circles(graph):
    """The largest sets of modules each of which imports all others, over some way."""

    def reached(start):
        seen, to_see = set(), [start]
        while to_see:
            for other in graph[to_see.pop()] - seen:
                seen.add(other)
                to_see.append(other)
        return seen

    reach = {module: reached(module) for module in graph}
    round_trip = {
        module: sorted(other for other in reach[module] if module in reach[other])
        for module in graph
    }
    return sorted({tuple(all_of) for all_of in round_trip.values() if len(all_of) > 1})


@pytest.mark.parametrize(
    "root", [*CRATES, *PROGRAMS], ids=lambda root: root.relative_to(ROOT).as_posix()
)
def test_no_modules_of_a_folder_import_each_other_in_a_circle(root):
    found = {
        (root.relative_to(ROOT / "crates") / "/".join(folder)).as_posix(): circle
        for folder, graph in graphs(root).items()
        if (circle := circles(graph))
    }
    assert found == {}


def test_imports_are_found_at_every_level():
    window = graphs(CRATES[0])["window",]
    assert window["planned"] >= {"fiba", "fifo", "queries"}
    assert "fifo" not in window["fifo"]
    fiba = graphs(CRATES[0])["window", "fiba"]
    assert "leaf" in fiba["tree"]


@pytest.mark.parametrize(
    ("source", "paths"),
    [
        ("use crate::a::b::Name;", [["a", "b", "Name"]]),
        ("use super::{c, d::{E, F}};", [["x", "c"], ["x", "d", "E"], ["x", "d", "F"]]),
        ("use super::super::a::Name;", [["a", "Name"]]),
        ("use self::e::Name;", [["x", "y", "e", "Name"]]),
        ("fn f(x: crate::a::Name) {}", [["a", "Name"]]),
        ("//! [`crate::a::b`]", []),
        ("use std::mem;", []),
    ],
)
def test_paths_are_read_in_every_spelling(source, paths):
    assert list(paths_in(source, ["x", "y"])) == paths


def test_a_circle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert circles(graph) == [("a", "b", "c")]
