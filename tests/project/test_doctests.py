"""Every public name has a docstring of one form, and every example runs.

The form: a first line of one sentence; a cost; an example. An attribute without a cost
takes O(1). A class of values states the cost of its methods, and its example uses them.
"""

import dataclasses
import doctest
import importlib
import inspect
from collections.abc import Iterator

import pytest

import slidewise as sw

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Exceptions need neither costs nor examples; tests check their messages.
PLAIN = {name for name in sw.__all__ if name.endswith("Error")} | {"__version__"}
# Classes with state: each method has a cost and an example of its own.
STATEFUL = ("Window", "SharedWindow", "KeyedWindows")


def members(kind: type) -> Iterator[tuple[str, object]]:
    """Public methods and properties of a class, inherited natives included.

    The docstring of a dataclass lists its fields.
    """
    is_data = dataclasses.is_dataclass(kind)
    listed = {each.name for each in dataclasses.fields(kind)} if is_data else set()
    for name in dir(kind):
        static = inspect.getattr_static(kind, name)
        documented = (
            inspect.isroutine(static)
            or inspect.isdatadescriptor(static)
            or hasattr(static, "__func__")
        )
        if documented and not name.startswith("_") and name not in listed:
            yield name, static


def public_objects() -> Iterator[tuple[str, object, type | None]]:
    """The public surface: names and objects, and for members their class."""
    for name in sw.__all__:
        if name not in PLAIN:
            item = getattr(sw, name)
            yield name, item, None
            if inspect.isclass(item):
                for member, static in members(item):
                    yield f"{name}.{member}", static, item


SURFACE = [pytest.param(*each, id=each[0]) for each in public_objects()]


def documentation(item: object) -> str:
    return inspect.getdoc(item) or ""


def examples_of(text: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(text)


def is_attribute(item: object) -> bool:
    return inspect.isdatadescriptor(item)


@pytest.mark.parametrize(("name", "item", "owner"), SURFACE)
def test_public_names_have_running_examples(
    name: str, item: object, owner: type | None
) -> None:
    text = documentation(item)
    examples = examples_of(text)
    if owner is not None and owner.__name__ not in STATEFUL and not examples:
        shown = "".join(each.source for each in examples_of(documentation(owner)))
        assert f".{name.partition('.')[2]}" in shown, f"{name} has no example"
    else:
        assert examples, f"{name} has no example"
    names = {**vars(inspect.getmodule(item) or sw), "sw": sw}
    test = doctest.DocTest(examples, names, name, None, None, text)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert result.attempted == len(examples)
    assert result.failed == 0


@pytest.mark.parametrize(("name", "item", "owner"), SURFACE)
def test_public_names_say_what_they_are_and_cost(
    name: str, item: object, owner: type | None
) -> None:
    text = documentation(item)
    first, *rest = text.splitlines()
    assert first.endswith("."), f"{name}: the first line is no sentence"
    assert not rest or rest[0] == "", f"{name}: the first sentence is too long"
    assert all(len(line) <= 88 for line in rest)
    has_own_cost = owner is None or owner.__name__ in STATEFUL
    if has_own_cost and not is_attribute(item):
        assert "\nCost:" in text, f"{name} names no cost"


@pytest.mark.parametrize("kind", [sw.Aggregation, sw.Query, sw.Spec])
def test_classes_list_their_fields(kind: type) -> None:
    _, _, listed = documentation(kind).partition("Attributes:")
    for each in dataclasses.fields(kind):
        assert each.name.startswith("_") or f"    {each.name}: " in listed


@pytest.mark.parametrize("package", ["spark", "testing"])
def test_the_surface_of_a_package_has_the_same_form(package: str) -> None:
    """Tests of Spark run its calls; a session per example would take too long."""
    if package == "spark":
        pytest.importorskip("pyspark", reason="slidewise[spark]")
    module = importlib.import_module(f"slidewise.{package}")
    for name in module.__all__:
        text = documentation(getattr(module, name))
        assert text.splitlines()[0].endswith(".")
        assert "\nCost:" in text
        assert examples_of(text)
