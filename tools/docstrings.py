"""Docstrings as Markdown, for the pages that are made of them."""

import inspect
import re
import textwrap
from typing import Any

__all__ = ["call", "documentation", "markdown", "summary"]

_TITLES = {"Args": "Arguments", "Raises": "Raises", "Attributes": "Attributes"}


def documentation(item: Any) -> str:
    """The docstring of an object that has one."""
    found = inspect.getdoc(item)
    assert found is not None, f"{item} has no docstring"
    return found


def summary(item: Any) -> str:
    """The first line of a docstring, without its full stop."""
    return documentation(item).splitlines()[0].rstrip(".")


def call(name: str, item: Any) -> str:
    """A call of a function or class, without types: `f(a, *, b=1)`; "" for others."""
    is_class = inspect.isclass(item)
    if not callable(item) or (is_class and issubclass(item, Exception)):
        return ""
    signature = inspect.signature(item)
    plain = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
    ]
    if plain and plain[0].name in ("self", "cls"):
        del plain[0]
    if is_class and not plain:  # users do not make objects of it
        return ""
    bare = signature.replace(
        parameters=plain, return_annotation=inspect.Signature.empty
    )
    wrapped = textwrap.fill(f"{name}{bare}", 88, subsequent_indent="    ")
    return f"```python\n{wrapped}\n```\n\n"


def markdown(text: str) -> str:
    """A docstring: its arguments as lists, its example as code."""
    before, _, example = text.partition("\nExample:\n")
    parts = "\n\n".join(_part(part) for part in before.strip().split("\n\n"))
    if not example:
        return f"{parts}\n"
    code = inspect.cleandoc(f"\n{example}")
    return f"{parts}\n\n```python\n{code}\n```\n"


def _part(text: str) -> str:
    title, _, items = text.partition(":\n")
    if title in ("Returns", "Cost"):
        return f"{title}: {inspect.cleandoc(items)}"
    if title in _TITLES:
        items = re.sub(r"(?m)^(\w[^:\n]*): ", _item, textwrap.dedent(items))
        return f"{_TITLES[title]}:\n\n" + re.sub(r"(?m)^ {4}", "  ", items)
    return text


def _item(found: re.Match[str]) -> str:
    names = re.sub(r"\w+(?=,|$)", r"`\g<0>`", found[1])
    return f"- {names}: "
