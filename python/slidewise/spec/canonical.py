"""The canonical JSON of a `Spec`, which hashes and checkpoints compare."""

import json
from dataclasses import fields, is_dataclass
from typing import Any

from slidewise.aggregations.compiled import Compiled
from slidewise.aggregations.custom import Functions
from slidewise.spec.windows.base import Window

__all__ = ["canonical_json"]

# Part of every hash: a change of meaning changes all hashes.
_VERSION = 1


def canonical_json(spec: Any) -> str:
    """A `Spec` as JSON, with its keys in order.

    Example:
        >>> import slidewise as sw
        >>> spec = sw.Spec(on="t", windows=5, aggs={"n": sw.count()})
        >>> canonical_json(spec)
        '{"aggs":[["n",{"kind":"count"}]],"arrival":null,"by":[],...}'
    """
    record = {"version": _VERSION, **_record(spec)}
    # Of values of `fill=` that JSON does not know, such as times.
    return json.dumps(record, sort_keys=True, separators=(",", ":"), default=repr)


def _record(value: Any) -> Any:
    """Dataclasses as mappings, without fields at their defaults.

    So a field that a later release adds does not change existing hashes.
    """
    if isinstance(value, Functions | Compiled):
        return value.canonical
    if isinstance(value, tuple):
        return [_record(item) for item in value]
    kind: dict[str, Any] = {}
    if isinstance(value, Window):
        kind = {"window": type(value).__name__, "label": value.label}
    elif not is_dataclass(value):
        return value
    return kind | {
        each.name: _record(getattr(value, each.name))
        for each in fields(value)
        if each.metadata.get("canonical", True)
        and getattr(value, each.name) != each.default
    }
