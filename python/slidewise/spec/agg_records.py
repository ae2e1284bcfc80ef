"""Aggregations in the file of a `Spec`: mappings of the parameters that make them.

`{"kind": "mean", "column": "km"}` is `sw.mean("km")`: `kind` is the function, the other
keys are its parameters. The kind of a user-defined aggregation is its import path, such
as "package.module:Name".
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import slidewise.aggregations as catalogue
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import kinds
from slidewise.aggregations.registry import UserDefinedAggregation, resolve
from slidewise.aggregations.sketches import Sketch
from slidewise.errors import SpecError
from slidewise.hints import suggest_argument, suggest_name

__all__ = ["agg_of_record", "record_of_agg", "refuse_unknown", "shorten"]

_BY_NAME = inspect.Parameter.KEYWORD_ONLY
_COLUMNS = ("column", "of", "by", "x", "y", "where")
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def record_of_agg(agg: Aggregation) -> dict[str, Any]:
    """An aggregation as a mapping, without parameters at their defaults.

    Example:
        >>> import slidewise as sw
        >>> record_of_agg(sw.quantile("delay", 0.99))
        {'kind': 'quantile', 'column': 'delay', 'q': 0.99}
    """
    if isinstance(agg, UserDefinedAggregation):
        named = {"column": agg.of, "where": agg.where, "windows": agg.windows}
        given = {name: value for name, value in named.items() if value is not None}
        if agg.others:
            given["column"] = [agg.of, *agg.others]
        return {"kind": _import_path(agg), **given}
    record: dict[str, Any] = {"kind": agg.kind}
    values: dict[str, Any] = {}
    if isinstance(agg, Sketch):
        values = agg.given
    parameters = inspect.signature(_function(agg.kind)).parameters
    # The first two are columns, whatever they are called.
    columns = [
        name
        for name, parameter in parameters.items()
        if name in _COLUMNS and (name, parameter.kind) != ("where", _BY_NAME)
    ]
    attributes = dict(zip(columns, ("of", "by"), strict=False))
    for name, parameter in parameters.items():
        attribute = attributes.get(name, name)
        value = values[name] if name in values else getattr(agg, attribute)
        default = parameter.default
        if type(value) is not type(default) or value != default:
            record[name] = [*value] if isinstance(value, tuple) else value
    if agg_of_record(record) != agg:
        raise SpecError(
            f"{agg!r} cannot be written, as sw.{agg.kind}() does not give it: make it "
            "with that function"
        )
    return record


def agg_of_record(record: object) -> Aggregation:
    """The aggregation of such a mapping; imports the module of an import path.

    Example:
        >>> agg_of_record({"kind": "top_k", "column": "price", "k": 3})
        top_k('price', k=3)
    """
    if not isinstance(record, Mapping):
        raise SpecError(
            f"{shorten(record)} is not an aggregation: write it as "
            '{"kind": "mean", "column": "price"}'
        )
    given = dict(record)
    kind = given.pop("kind", None)
    if not isinstance(kind, str):
        what = f"kind={shorten(kind)} is not one" if "kind" in record else "no kind"
        raise SpecError(
            f'{what}: an aggregation has a "kind", such as "count", or the import path '
            'of your own, such as "package.module:Name"'
        )
    make = _user_defined(kind) if ":" in kind else _function(kind)
    known = inspect.signature(make).parameters
    refuse_unknown(given, known, f" of {kind}")
    columns = given.get("column")
    if ":" in kind and isinstance(columns, list) and len(columns) > 1:
        make = partial(make, *_column_names(given.pop("column"), kind))
    for name in _COLUMNS:
        if not isinstance(given.get(name), str | None):
            raise SpecError(
                f"{name}={shorten(given[name])} of {kind} is not the name of a column"
            )
    try:
        made = make(**given)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(f"{kind} does not take {shorten(given)}: {error}") from error
    made.check_columns()
    return made


def _column_names(given: list[Any], kind: str) -> list[str]:
    for name in given:
        if not isinstance(name, str):
            raise SpecError(
                f"column={shorten(given)} of {kind} are not names of columns"
            )
    return given


def refuse_unknown(given: Iterable[Any], known: Iterable[str], where: str) -> None:
    """Refuses keys that are not known, with a suggestion."""
    known = list(known)
    for key in given:
        if key not in known:
            meant = suggest_argument(key, known) if isinstance(key, str) else ""
            there_are = f"; there are {', '.join(known)}" if not meant else ""
            raise SpecError(f"unknown key {shorten(key)}{where}{meant}{there_are}")


def shorten(value: object) -> str:
    """A value of a file, for messages.

    Example:
        >>> shorten("1h"), shorten([0] * 100)
        ("'1h'", '[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,...')
    """
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _function(kind: str) -> Callable[..., Aggregation]:
    known = kinds(every=True)
    if kind not in known:
        hint = suggest_name(kind, known, _in_a_file) or f"; there are {known}"
        raise SpecError(f"unknown kind {shorten(kind)} of aggregation{hint}")
    function: Callable[..., Aggregation] = getattr(catalogue, kind)
    return function


def _in_a_file(meant: str) -> str:
    """A kind that may have arguments, such as "stddev(ddof=0)"."""
    kind, _, arguments = meant.removesuffix(")").partition("(")
    return f"{kind!r} with {arguments}" if arguments else repr(kind)


def _import_path(agg: UserDefinedAggregation) -> str:
    """The import path of a user-defined aggregation."""
    name: str | None = agg.functions.name
    if name is None:
        raise SpecError(
            f"{agg!r} has no import path by which a file could name it: assign it at "
            "the top of a module that can be imported, and give it "
            "name='package.module:NAME'"
        )
    _check_path(name)
    found = resolve(name)
    if getattr(found, "functions", None) is not agg.functions:
        raise SpecError(
            f"{agg!r} cannot be written by its import path {name!r}, which "
            f"{'resolves to another object' if found else 'does not resolve'}: give "
            "it the path at which its module holds it"
        )
    return name


def _user_defined(path: str) -> UserDefinedAggregation:
    """The user-defined aggregation at an import path."""
    _check_path(path)
    module = path.partition(":")[0]
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise SpecError(
            f"cannot import {module!r} for the aggregation {path!r} ({error}): install "
            "it, or put its folder on PYTHONPATH"
        ) from error
    found = resolve(path)
    if not isinstance(found, UserDefinedAggregation):
        what = "" if found is None else f" but {shorten(found)}"
        raise SpecError(f"there is no aggregation at {path!r}{what}")
    if found.functions.name != path:
        raise SpecError(
            f"the aggregation at {path!r} has the name {found.functions.name!r}: give "
            f"it name={path!r}"
        )
    return found


def _check_path(path: str) -> None:
    if path.startswith("__main__:"):
        raise SpecError(
            f"the aggregation {path!r} is defined in __main__, which is another module "
            "in another process: move it to a module that can be imported"
        )
    if "<locals>" in path:
        raise SpecError(
            f"the aggregation {path!r} is defined within a function: move it to the "
            "top of its module"
        )
    if not _PATH.fullmatch(path):
        raise SpecError(
            f"{shorten(path)} is not the import path of an aggregation: write it "
            "'package.module:Name'"
        )
