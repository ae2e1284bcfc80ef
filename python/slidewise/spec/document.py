"""A `Spec` as a document: the content of its file, keyed by parameter names.

It holds the arguments as the author gave them. Lengths are as written; other windows
are mappings with the function that makes them. The document is for people;
`Spec.canonical` is for hashes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slidewise.aggregations import Aggregation
from slidewise.errors import SpecError
from slidewise.spec.agg_records import (
    agg_of_record,
    record_of_agg,
    refuse_unknown,
    shorten,
)
from slidewise.spec.durations import Rows, format_duration, parse_offset, read_rows
from slidewise.spec.fill import plain_fill
from slidewise.spec.query import Query
from slidewise.spec.windows.base import Window
from slidewise.spec.windows.parse import KINDS

__all__ = ["VERSION", "check_version", "document_of", "keywords_of"]

# The version of the document format.
VERSION = 1

# The keywords of lengths and windows.
_LENGTHS = ("windows", "window", "every", "offset")
# The order of keys; others follow.
_FIRST = ("on", "by", *_LENGTHS, "closed", "empty")


def document_of(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The document of the keywords of a `Spec`, of plain values.

    Example:
        >>> import slidewise as sw
        >>> document_of({"on": "t", "windows": ["1h"], "aggs": {"n": sw.count()}})
        {'version': 1, 'on': 't', 'windows': ['1h'], 'aggs': {'n': {'kind': 'count'}}}
    """
    document: dict[str, Any] = {"version": VERSION}
    given = {name: keywords[name] for name in _FIRST if name in keywords}
    for name, value in (given | {"aggs": {}, **keywords}).items():
        if name == "aggs":
            document[name] = {each: _record(each, agg) for each, agg in value.items()}
        else:
            plain = {**dict.fromkeys(_LENGTHS, _plain), "fill": plain_fill}.get(name)
            document[name] = value if plain is None else plain(value)
    # Values of numpy, and subclasses of str, become plain ones.
    written: dict[str, Any] = json.loads(json.dumps(document, default=_listed))
    return written


def _record(name: str, agg: Aggregation) -> dict[str, Any]:
    try:
        record = record_of_agg(agg)
    except SpecError as error:
        raise SpecError(f"aggs[{name!r}]: {error}") from error
    if agg.rows_of_half_life is not None:
        record["half_life"] = _plain(agg.half_life)
    if agg.windows is not None:
        own = _plain(agg.windows)
        record["windows"] = own[0] if len(own) == 1 else own
    return record


def _plain(value: Any) -> Any:
    """A length, a window, or several of them, as a document holds them."""
    if isinstance(value, Query):
        slide = {} if value.slide is None else {"every": value.slide.plain}
        return {"range": _plain(value.range), **slide}
    if isinstance(value, Window):
        return value.document
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return [_plain(one) for one in value]
    if isinstance(value, Rows):
        return str(value)
    length = parse_offset(value)
    is_time = length.kind == "time"
    return format_duration(length.amount) if is_time else length.amount


def _listed(value: Any) -> Any:
    """What JSON does not know: sequences, and numbers and arrays of numpy."""
    return value.tolist() if hasattr(value, "tolist") else [*value]


def keywords_of(document: object, known: Sequence[str]) -> dict[str, Any]:
    """The keywords of a `Spec` that a document gives."""
    if not isinstance(document, Mapping):
        raise SpecError(
            f"a Spec is a mapping with on, windows and aggs; got {shorten(document)}"
        )
    given = dict(document)
    if "features" in given:
        raise SpecError("these are Features, not a Spec: read them by sw.Features")
    check_version(given.pop("version", VERSION))
    refuse_unknown(given, known, "")
    given = {name: value for name, value in given.items() if value is not None}
    if "aggs" in given:
        given["aggs"] = _aggs(given["aggs"])
    for name in _LENGTHS:
        if name in given:
            given[name] = _named(name, given[name])
    return given


def check_version(version: object) -> None:
    """Refuses versions of the document format that this release does not read."""
    if type(version) is not int or version < 1:
        raise SpecError(f"version={shorten(version)} is not a version: it is {VERSION}")
    if version > VERSION:
        raise SpecError(
            f"version={version} was written by a later release of slidewise: this one "
            f"reads up to version {VERSION}"
        )


def _aggs(records: object) -> dict[str, Aggregation]:
    if not isinstance(records, Mapping):
        raise SpecError(
            f"aggs={shorten(records)} is not a mapping from names to aggregations, "
            'such as {"n": {"kind": "count"}}'
        )
    aggs = {}
    for name, record in records.items():
        try:
            if isinstance(record, Mapping) and "windows" in record:
                own = _named("windows", record["windows"])
                record = {**record, "windows": own}
            aggs[name] = agg_of_record(_with_rows(record))
        except SpecError as error:
            raise SpecError(f"aggs[{shorten(name)}]: {error}") from error
    return aggs


def _with_rows(record: object) -> object:
    """An aggregation whose half-life may be a number of rows."""
    if not isinstance(record, Mapping):
        return record
    given = record.get("half_life")
    found = read_rows(given) if isinstance(given, str) else None
    return record if found is None else {**record, "half_life": found}


def _named(name: str, given: Any) -> Any:
    """Reads windows, a slide or an offset, which is none of the mappings."""
    if name == "offset" and isinstance(given, Mapping):
        return given
    if name == "windows" and isinstance(given, list):
        return [_window(one, f"windows[{at}]") for at, one in enumerate(given)]
    return _window(given, name)


def _query(given: Mapping[str, Any]) -> Query:
    return Query(_window(given["range"], "range"), _window(given.get("every"), "every"))


# The keys of windows that are mappings, and the functions that make the windows.
_FORMS: dict[tuple[str, ...], Any] = {
    ("range", "every"): _query,
    **{kind.keys: kind.of_document for kind in KINDS},
}


def _window(given: Any, where: str) -> Any:
    if isinstance(given, str):
        return read_rows(given) or given
    if given is None or not isinstance(given, Mapping):
        return given
    for keys, make in _FORMS.items():
        if keys[0] in given:
            try:
                refuse_unknown(given, keys, "")
                return make(given)
            except SpecError as error:
                raise SpecError(f"{where}: {error}") from error
    forms = ", ".join(keys[0] for keys in _FORMS)
    raise SpecError(
        f"{where}={shorten(given)} is not a window: write '1h', or a mapping with one "
        f"of {forms}"
    )
