"""Specs as text: JSON, and YAML where PyYAML is installed."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from slidewise.errors import SpecError

__all__ = ["from_json", "read", "to_json", "write_document"]

_T = TypeVar("_T")

_ENDINGS = (".json", ".yaml", ".yml")
# The keys whose mappings have a line per key, and those within them; "*" for any key.
_SPEC: dict[str, Any] = {"aggs": {}}
_SPLIT = {**_SPEC, "features": {"*": _SPEC}}


def to_json(document: Mapping[str, Any]) -> str:
    """A document as JSON: a line per key, and per aggregation; of Features, per Spec.

    Example:
        >>> print(to_json({"on": "t", "aggs": {"n": {"kind": "count"}}}), end="")
        {
          "on": "t",
          "aggs": {
            "n": {"kind": "count"}
          }
        }
    """
    return _lines(document, "", _SPLIT) + "\n"


def _lines(given: Mapping[str, Any], indent: str, split: Mapping[str, Any]) -> str:
    inner = indent + "  "
    lines = []
    for key, value in given.items():
        within = split.get(key, split.get("*"))
        text = _dumps(value) if within is None else _lines(value, inner, within)
        lines.append(f"{inner}{_dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _dumps(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Characters that UTF-8 cannot encode stay escaped.
    return text if text.isprintable() else json.dumps(value)


def from_json(text: object) -> Any:
    """The document in a JSON text.

    Example:
        >>> from_json('{"on": "t", "on": "u"}')
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: the key 'on' is there twice
    """
    if not isinstance(text, str | bytes | bytearray):
        raise SpecError(f"a Spec is read from a str of JSON, got {text!r:.60}")
    try:
        return json.loads(
            text, object_pairs_hook=_distinct, parse_constant=_refuse_constant
        )
    except SpecError:
        raise
    except RecursionError:
        raise SpecError("the JSON of a Spec is nested too deeply") from None
    except ValueError as error:
        raise SpecError(f"this is not the JSON of a Spec: {error}") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise SpecError(f"the key {key!r:.60} is there twice")
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise SpecError(f"{name} is not a number of JSON")


def _path_of(given: object) -> Path:
    try:
        return Path(given)  # type: ignore[arg-type]
    except TypeError:
        raise SpecError(
            f"the file of a Spec is a path, such as 'spec.json'; got {given!r:.80}"
        ) from None


def write_document(document: Mapping[str, Any], given: object) -> None:
    """Writes a document to a file: JSON or YAML, by its ending.

    Raises:
        SpecError: If the name has another ending, or PyYAML is missing.
        OSError: If the file cannot be written.
    """
    path = _path_of(given)
    is_json = _ending(path) == ".json"
    text = to_json(document) if is_json else _yaml().to_yaml(document)
    path.write_text(text, encoding="utf-8")


def read(given: object, made: Callable[[object], _T]) -> _T:
    """What is made of the document in a file, whose name is in messages.

    Raises:
        SpecError: If it holds no document, or PyYAML is missing.
        OSError: If the file cannot be read.

    Example:
        >>> read(3, str)
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: 3: the file of a Spec is a path...
    """
    try:
        return made(_document(_path_of(given)))
    except SpecError as error:
        raise SpecError(f"{given}: {error}") from error


def _document(path: Path) -> Any:
    ending = _ending(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"it is not text in UTF-8: {error}") from error
    return from_json(text) if ending == ".json" else _yaml().from_yaml(text)


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise SpecError(
            f"the file of a Spec is named .json, .yaml or .yml; got {path.name!r:.80}"
        )
    return ending


def _yaml() -> Any:
    from slidewise.spec import yaml_text

    try:
        yaml_text.classes()
    except ImportError as error:
        raise SpecError(
            f"YAML needs PyYAML ({error}): pip install 'slidewise[yaml]', or use .json"
        ) from error
    return yaml_text
