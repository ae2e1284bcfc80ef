"""Packages lie on floors and import downwards; no module imports in a circle.

Imports within functions and under TYPE_CHECKING count as well.
"""

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import slidewise as sw

PACKAGE = Path(sw.__file__).parent

# From the ground up. Packages on one floor do not import one another.
FLOORS = (
    {"_core", "caching", "errors", "formatting", "hint_words", "hints", "measuring"},
    {"frames", "aggregations"},
    {"spec"},
    {"table"},
    {"window", "io", "pandas", "polars", "sklearn"},
    {"keyed"},
    {"spark", "metrics"},
    {"cli", "testing"},
    {"slidewise", "__main__"},
)
# Modules of the ground floor may import one another, like modules of one package.
GROUND = FLOORS[0]


def imported(file: Path) -> Iterator[str]:
    """The modules of slidewise that a file imports, at any place."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file}: a relative import"
            if node.module.split(".")[0] == "slidewise":
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    yield name if name in MODULES else node.module
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "slidewise":
                    yield alias.name


def module_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}
MODULES = {*FILES, "slidewise._core"}
GRAPH = {name: sorted(set(imported(file))) for name, file in FILES.items()}


def part_of(module: str) -> str:
    """The package, or the module at the root, that a module belongs to."""
    return module.split(".")[1] if "." in module else module


def floor_of(module: str) -> int:
    part = part_of(module)
    return next(at for at, floor in enumerate(FLOORS) if part in floor)


def test_the_graph_is_not_empty() -> None:
    assert len(GRAPH) > 100
    assert sum(map(len, GRAPH.values())) > 300


@pytest.mark.parametrize("module", FILES)
def test_imports_go_down(module: str) -> None:
    for other in GRAPH[module]:
        same = part_of(other) == part_of(module)
        same |= {part_of(other), part_of(module)} <= GROUND
        assert same or floor_of(other) < floor_of(module), f"{module} -> {other}"


# The floors within `keyed`, from the ground up, by the first part of a module's name.
KEYED_FLOORS = (
    {
        *("columns", "grid", "formats", "python_rows", "single_times"),
        *("buckets", "cell_grid", "published"),
    },
    # The plan, and what depends on it alone.
    {
        *("plan", "query", "horizon", "points", "expiry", "hop_windows", "growth"),
        *("validation", "clock", "options"),
    },
    # Rows, stored and indexed.
    {
        *("page_store", "tiers", "row_log", "pending", "index", "ids", "row_ends"),
        *("cells", "cell_sizes", "shard"),
    },
    {"reader", "answer"},
    {"emit"},
    {"processor", "view", "transaction", "measured", "regroup"},
    {"stream", "queries", "snapshots", "explain"},
    {"spec_windows", "publisher"},
    {"feature_windows", "follower"},
    {"read_calls"},
    {"keyed_windows"},
)


def test_modules_of_keyed_import_from_their_floor_and_those_below() -> None:
    def floor(module: str) -> int:
        part = module.removeprefix("slidewise.keyed.").split(".")[0]
        return next(at for at, floor in enumerate(KEYED_FLOORS) if part in floor)

    for module in FILES:
        if module.startswith("slidewise.keyed."):
            within = (x for x in GRAPH[module] if x.startswith("slidewise.keyed."))
            for other in within:
                assert floor(other) <= floor(module), f"{module} -> {other}"


def test_no_module_imports_in_a_circle() -> None:
    try:
        tuple(TopologicalSorter(GRAPH).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_one_module_decides_what_answers_a_stream() -> None:
    """The others ask `answering`; the plan says whether results fold, in words too."""
    asking = {
        name.removeprefix("slidewise.keyed.")
        for name, file in FILES.items()
        if name.startswith("slidewise.keyed.")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "folds"
    }
    assert asking == {"answer", "query", "explain"}


PACKAGES = [name for name, file in FILES.items() if file.stem == "__init__"]


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_shows_the_public_names_of_a_package(package: str) -> None:
    """Neither submodules nor imported helpers nor constants."""
    if package == "slidewise.spark":
        pytest.importorskip("pyspark", reason="slidewise[spark]")
    module = importlib.import_module(package)
    assert dir(module) == sorted(module.__all__)
    for name in set(module.__all__) - {"__version__"}:
        assert callable(getattr(module, name)), name


@pytest.mark.parametrize("module", [name for name in FILES if name != "slidewise"])
def test_every_module_says_what_it_gives(module: str) -> None:
    """`__all__` names existing public objects only."""
    if part_of(module) == "__main__":
        return
    tree = ast.parse(FILES[module].read_text("utf-8"))
    assert ast.get_docstring(tree), module
    given = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and ast.unparse(node).partition(" =")[0].partition(":")[0] == "__all__"
    ]
    assert len(given) == 1, f"{module} has no __all__"
    assert not [name for name in given[0] if name.startswith("_")]


def used(file: Path) -> Iterator[tuple[str, str]]:
    """Each name that a file uses of another module, and that module."""
    tree = ast.parse(file.read_text("utf-8"))
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in FILES:
            for alias in node.names:
                if (name := f"{node.module}.{alias.name}") in MODULES:
                    modules[alias.asname or alias.name] = name
                else:
                    yield node.module, alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = modules.get(ast.unparse(node.value))
            if name in FILES:
                yield name, node.attr


@pytest.mark.parametrize("module", FILES)
def test_modules_use_names_that_others_offer(module: str) -> None:
    """A name that its module does not list in `__all__` is internal to it."""
    for other, name in used(FILES[module]):
        offered = [*importlib.import_module(other).__all__, "__all__", "*"]
        assert name in offered, f"{other} offers no {name}"


def test_what_is_imported_at_once() -> None:
    """slidewise imports neither Spark, nor the command, nor a table library."""
    script = "import sys, slidewise; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "slidewise.window.window" in loaded
    heavy = {"pyspark", "pandas", "polars", "numba", "matplotlib", "rich", "duckdb"}
    heavy |= {"narwhals", "sklearn"}
    assert not heavy & loaded
    optional = ("spark", "cli", "pandas", "polars", "sklearn")
    mine = tuple(f"slidewise.{name}" for name in optional)
    assert not [name for name in loaded if name.startswith(mine)]


def test_public_objects_say_where_they_are_from() -> None:
    for name in sw.__all__:
        item = getattr(sw, name)
        if inspect.isfunction(item) or inspect.isclass(item):
            assert item.__module__.split(".")[0] in ("slidewise", "builtins"), name
