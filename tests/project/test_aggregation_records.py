"""Facts about aggregations stand in their records: no engine asks for the kind."""

import ast
from pathlib import Path

import pytest

import slidewise as sw
from slidewise import aggregations
from slidewise.aggregations.records import RECORDS, kinds

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "slidewise"
HOUSE = PACKAGE / "aggregations"
# They map words of other libraries to names of aggregations.
WORDS = {PACKAGE / name for name in ("hint_words.py", "hints.py")}
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if HOUSE not in path.parents]


def constants(node: ast.AST) -> set[str]:
    """The names of aggregations that stand in an expression."""
    parts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return {each for each in parts if isinstance(each, str)} & RECORDS.keys()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_engine_asks_for_the_kind_of_an_aggregation(path: Path) -> None:
    """No comparison of a kind with a name, and no list of names."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Compare):
            sides = [ast.unparse(each) for each in (node.left, *node.comparators)]
            kind = any(side.split(".")[-1] == "kind" for side in sides)
            if "agg.kind" in sides or (kind and constants(node)):
                found.append(ast.unparse(node))
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            names = {each.value for each in parts if isinstance(each, ast.Constant)}
            if len(names) > 1 and names <= RECORDS.keys() and path not in WORDS:
                found.append(ast.unparse(node))
    assert found == []


def test_every_record_is_that_of_a_public_function() -> None:
    """Those that `__all__` forgets would be listed last, and not be exported."""
    public = [name for name in aggregations.__all__ if name in RECORDS]
    assert list(RECORDS) == public
    assert kinds(every=True) == tuple(public)
    assert set(aggregations.__all__) <= set(sw.__all__)
    assert len(set(sw.__all__)) == len(sw.__all__)
    assert len(kinds()) > 30
