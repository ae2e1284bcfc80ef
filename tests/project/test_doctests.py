"""Every public name has a docstring with an example, and every example runs."""

import doctest
import inspect

import pytest

import slidewise as sw
import slidewise._core as _core

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Exceptions need no examples; tests check their messages.
PLAIN = {name for name in sw.__all__ if name.endswith("Error")} | {"__version__"}


def members(kind):
    """Public methods and properties of a class, inherited natives included."""
    for name in dir(kind):
        static = inspect.getattr_static(kind, name)
        documented = inspect.isroutine(static) or isinstance(static, property)
        if not name.startswith("_") and (
            documented
            or inspect.isdatadescriptor(static)
            or hasattr(static, "__func__")
        ):
            yield name, static


def public_objects():
    for name in sw.__all__:
        if name not in PLAIN:
            yield name, getattr(sw, name)
    for kind in (sw.Window, sw.SharedWindow):
        for name, member in members(kind):
            yield f"{kind.__name__}.{name}", member


@pytest.mark.parametrize(
    ("name", "item"), [pytest.param(*each, id=each[0]) for each in public_objects()]
)
def test_public_names_have_running_examples(name, item):
    text = inspect.getdoc(item)
    assert text, f"{name} has no docstring"
    examples = doctest.DocTestParser().get_examples(text)
    assert examples, f"{name} has no example"
    names = {**vars(inspect.getmodule(item) or sw), "sw": sw}
    test = doctest.DocTest(examples, names, name, None, None, text)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test)
    assert result.attempted == len(examples)
    assert result.failed == 0


def test_operations_name_their_cost():
    for name, item in members(_core.Window):
        assert "Cost: " in inspect.getdoc(item), name


def test_no_line_of_a_docstring_is_longer_than_a_screen():
    for _, item in members(sw.Window):
        assert all(len(line) <= 88 for line in inspect.getdoc(item).splitlines())
