"""The stub agrees with the built module, name by name."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import slidewise
import slidewise._core as _core

STUB = Path(slidewise.__file__).parent / "_core.pyi"
ROOT = Path(__file__).parents[2]
TREE = ast.parse(STUB.read_text(encoding="utf-8"))
# Attributes of every class or module.
IMPLIED = {"__doc__", "__module__", "__weakref__", "__dict__"}


def stubbed(body):
    """Names a stub declares, with their nodes."""
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
    return found


def public(names):
    kept = (
        name for name in names if not name.startswith("__") or name == "__version__"
    )
    return set(kept)


def classes():
    return {name: node for name, node in stubbed(TREE.body).items() if is_class(node)}


def is_class(node):
    return isinstance(node, ast.ClassDef)


def test_the_module_has_what_the_stub_says_and_no_more():
    assert public(stubbed(TREE.body)) == public(vars(_core))


@pytest.mark.parametrize("name", classes())
def test_classes_have_what_the_stub_says_and_no_more(name):
    built = getattr(_core, name)
    declared = stubbed(classes()[name].body)
    assert public(declared) == public(set(vars(built)) - IMPLIED)
    for method in declared:
        assert method in vars(built), method


def functions():
    for name, node in stubbed(TREE.body).items():
        if isinstance(node, ast.FunctionDef):
            yield pytest.param(node, getattr(_core, name), id=name)
        elif is_class(node):
            for method, inner in stubbed(node.body).items():
                built = inspect.getattr_static(getattr(_core, name), method)
                yield pytest.param(inner, built, id=f"{name}.{method}")


@pytest.mark.parametrize(("node", "built"), list(functions()))
def test_signatures(node, built):
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    if "property" in decorators:
        assert inspect.isgetsetdescriptor(built)
        return
    assert inspect.isgetsetdescriptor(built) is False
    if isinstance(built, classmethod):
        assert "classmethod" in decorators
        built = built.__func__ if hasattr(built, "__func__") else built
    elif (
        inspect.ismethoddescriptor(built)
        and type(built).__name__ == "classmethod_descriptor"
    ):
        assert "classmethod" in decorators
    if node.name == "__new__":
        built = getattr(_core, built.__self__.__name__)
    try:
        signature = inspect.signature(built)
    except ValueError:
        # Slots such as __len__ have no signature: Python defines their arguments.
        assert node.name.startswith("__")
        return
    places = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    declared = [argument.arg for argument in places]
    has = [name for name in signature.parameters if name not in ("self", "cls")]
    assert [name for name in declared if name not in ("self", "cls")] == has
    defaults = [ast.literal_eval(default) for default in node.args.defaults]
    built_defaults = [
        parameter.default
        for parameter in signature.parameters.values()
        if parameter.default is not parameter.empty
    ]
    assert defaults == built_defaults


@pytest.mark.long
def test_mypy_agrees():
    """mypy's stubtest agrees; it reads the packages that `make lint` does."""
    done = subprocess.run(
        [
            *[sys.executable, "-m", "mypy.stubtest", "slidewise._core"],
            *["--mypy-config-file", str(ROOT / "pyproject.toml")],
        ],
        env={**os.environ, "MYPYPATH": str(STUB.parent.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_public_natives_are_wrapped():
    """The public names do not include the native module."""
    for name in public(vars(_core.Window)):
        assert hasattr(slidewise.Window, name)
