"""The YAML of documents, by PyYAML.

Reading follows the core schema of YAML 1.2: `on`, `yes` and `1:30` are text. Writing
quotes text that YAML 1.1 would read as another type.
"""

import functools
import re
from collections.abc import Mapping
from typing import Any

from slidewise.errors import SpecError

__all__ = ["classes", "from_yaml", "to_yaml"]

# The types other than text, by their first characters.
_SCALARS = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?(0|[1-9][0-9]*)", [*"-+0123456789"]),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?",
        [*"-+.0123456789"],
    ),
)


@functools.cache
def classes() -> tuple[Any, Any]:
    """A safe loader and a safe dumper.

    Raises:
        ImportError: If PyYAML is not installed.
    """
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Refuses aliases and merges; keys must be text and occur once."""

        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as PyYAML has it

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                name = self.peek_event().anchor
                raise SpecError(f"the alias *{name} is not taken: write the value out")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            made: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = self.construct_object(key_node, deep=True)
                if not isinstance(key, str):
                    raise SpecError(
                        f"the key {key!r:.60} is not text: put it in quotes"
                    )
                if key in made:
                    raise SpecError(f"the key {key!r:.60} is there twice")
                made[key] = self.construct_object(value_node, deep=deep)
            return made

        def flatten_mapping(self, node: Any) -> None:
            """`<<` is an ordinary key."""

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        """Also quotes text that the loader would take for a number."""

    for kind, pattern, first in _SCALARS:
        for one in (Loader, Dumper):
            one.add_implicit_resolver(
                f"tag:yaml.org,2002:{kind}", re.compile(rf"^(?:{pattern})$"), first
            )
    return Loader, Dumper


def to_yaml(document: Mapping[str, Any]) -> str:
    """A document as YAML."""
    import yaml

    text: str = yaml.dump(
        dict(document),
        Dumper=classes()[1],
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=88,
    )
    return text


def from_yaml(text: str) -> Any:
    """The document in a YAML text."""
    import yaml

    try:
        return yaml.load(text, Loader=classes()[0])
    except SpecError:
        raise
    except RecursionError:
        raise SpecError("the YAML of a Spec is nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        line = " ".join(str(error).split())
        raise SpecError(f"this is not the YAML of a Spec: {line:.200}") from error
