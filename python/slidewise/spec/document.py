"""A `Spec` as a document: the content of its file, keyed by parameter names.

Only values that differ from the defaults are written. Lengths are as the user wrote
them; other windows are mappings with the function that makes them. The document is for
people; `Spec.canonical` is for hashes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from slidewise.aggregations import Aggregation
from slidewise.errors import SpecError
from slidewise.spec.agg_records import (
    agg_of_record,
    record_of_agg,
    refuse_unknown,
    shorten,
)
from slidewise.spec.data_driven import delta, landmark, until
from slidewise.spec.durations import (
    format_duration,
    monday_shift,
    parse_length,
    read_rows,
    session,
)
from slidewise.spec.query import Query
from slidewise.spec.windows import WindowSpec

__all__ = ["VERSION", "document_of", "keywords_of", "keywords_of_spec"]

# The version of the document format.
VERSION = 1

_DEFAULTS = {
    "ties": "peers",
    "nan": "propagate",
    "arrival": None,
    "min_rows": 0,
    "overflow": "raise",
}


def document_of(spec: Any) -> dict[str, Any]:
    """The document of a `Spec`, of plain values.

    Example:
        >>> import slidewise as sw
        >>> spec = sw.Spec(on="t", windows=["1h", "1d"], aggs={"n": sw.count()})
        >>> document_of(spec)
        {'version': 1, 'on': 't', 'windows': ['1h', '1d'], 'aggs': ...}
    """
    document, others = {"version": VERSION, **_windows(spec)}, _others(spec)
    aggs = document["aggs"] = {}
    for name, agg in spec.aggs:
        try:
            aggs[name] = record_of_agg(agg)
        except SpecError as error:
            raise SpecError(f"aggs[{name!r}]: {error}") from error
    # Values of numpy, and subclasses of str, become plain ones.
    plain: dict[str, Any] = json.loads(json.dumps(document | others))
    return plain


def _windows(spec: Any) -> dict[str, Any]:
    """The columns and windows of a document."""
    by = {"by": [*spec.by]} if spec.by else {}
    windows = _hops(spec) if spec.is_hopping else _rolls(spec)
    return {"on": spec.on, **by, **windows}


def _others(spec: Any) -> dict[str, Any]:
    """The values that differ from defaults."""
    values = {name: getattr(spec, name) for name in _DEFAULTS}
    return {name: of for name, of in values.items() if of != _DEFAULTS[name]}


def keywords_of_spec(spec: Any) -> dict[str, Any]:
    """The keywords that make an equal `Spec`, with any aggregations.

    Example:
        >>> import slidewise as sw
        >>> spec = sw.Spec(on="t", windows="1h", aggs={"n": sw.count()})
        >>> keywords_of_spec(spec)
        {'on': 't', 'windows': ['1h'], 'aggs': {'n': count()}}
    """
    windows = _windows(spec)
    given = keywords_of(windows, [*windows])
    return {**given, "aggs": dict(spec.aggs), **_others(spec)}


def keywords_of(document: object, known: Sequence[str]) -> dict[str, Any]:
    """The keywords of a `Spec` that a document gives."""
    if not isinstance(document, Mapping):
        raise SpecError(
            f"a Spec is a mapping with on, windows and aggs; got {shorten(document)}"
        )
    given = dict(document)
    version = given.pop("version", VERSION)
    if type(version) is not int or version < 1:
        raise SpecError(f"version={shorten(version)} is not a version: it is {VERSION}")
    if version > VERSION:
        raise SpecError(
            f"version={version} was written by a later release of slidewise: this one "
            f"reads up to version {VERSION}"
        )
    refuse_unknown(given, known, "")
    given = {name: value for name, value in given.items() if value is not None}
    if "aggs" in given:
        given["aggs"] = _aggs(given["aggs"])
    for name in ("windows", "window", "every"):
        if name in given:
            given[name] = _named(name, given[name])
    return given


def _aggs(records: object) -> dict[str, Aggregation]:
    if not isinstance(records, Mapping):
        raise SpecError(
            f"aggs={shorten(records)} is not a mapping from names to aggregations, "
            'such as {"n": {"kind": "count"}}'
        )
    aggs = {}
    for name, record in records.items():
        try:
            aggs[name] = agg_of_record(record)
        except SpecError as error:
            raise SpecError(f"aggs[{shorten(name)}]: {error}") from error
    return aggs


def _named(name: str, given: Any) -> Any:
    """Reads windows or a slide."""
    if name == "windows" and isinstance(given, list):
        return [_window(one, f"windows[{at}]") for at, one in enumerate(given)]
    return _window(given, name)


# The keys of windows that are mappings, the identifying key first, and the functions
# that make the windows.
_FORMS: dict[tuple[str, ...], Any] = {
    ("range", "every"): lambda given: Query(
        _window(given["range"], "range"), _window(given.get("every"), "every")
    ),
    ("session",): lambda given: session(given["session"]),
    ("until",): lambda given: until(given["until"]),
    ("landmark",): lambda given: landmark(given["landmark"]),
    ("delta", "width"): lambda given: delta(given["delta"], _width(given.get("width"))),
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


def _width(given: Any) -> Any:
    """A width of `delta`: decimals and fractions are written as text."""
    if isinstance(given, str) and re.fullmatch(r"\d[\d.]*([Ee][+-]?\d+)?", given):
        try:
            return Decimal(given)
        except InvalidOperation:
            return given
    if isinstance(given, str) and re.fullmatch(r"\d+/[1-9]\d*", given):
        return Fraction(given)
    return given


def _number(label: str) -> Any:
    """The value of a width's digits, which `delta` gives the same digits."""
    for kind in (int, float):
        try:
            number = kind(label)
        except ValueError:
            continue
        if repr(number) == label:
            return number
    return label


def _length(label: str) -> int | str:
    """A length as written: an int in the units of integer times, or a str."""
    return int(label) if re.fullmatch(r"[+-]?\d+", label) else label


def _amount(window: WindowSpec, amount: int) -> int | str:
    """An amount in the units of a window."""
    return amount if window.kind == "integer" else format_duration(amount)


def _rolls(spec: Any) -> dict[str, Any]:
    document: dict[str, Any] = {"windows": [_rolling(one) for one in spec.windows]}
    for window in spec.windows:
        if window.closed != "right":
            document["closed"] = window.closed
        if window.offset:
            document["offset"] = _amount(window, window.offset)
    return document


def _rolling(window: WindowSpec) -> Any:
    if window.kind == "landmark":
        return {"landmark": window.column}
    if window.kind == "delta":
        return {"delta": window.column, "width": _number(window.width)}
    if window.kind == "delta_time":
        width = window.label.removeprefix(f"delta_{window.column}_")
        return {"delta": window.column, "width": width}
    return _length(window.label)


def _hops(spec: Any) -> dict[str, Any]:
    every, offset = _grid(spec.windows)
    windows = [_hopping(window) for window in spec.windows]
    document: dict[str, Any] = {"windows" if spec.several else "window": windows}
    if not spec.several:
        (document["window"],) = windows
    if every is not None:
        document["every"] = every
    for window in spec.windows:
        if window.every and window.closed != "left":
            document["closed"] = window.closed
    if offset:
        document["offset"] = offset
    own_grid = every is not None or any(isinstance(one, dict) for one in windows)
    if spec.empty or (spec.several and not own_grid):
        # This also shows that they are windows of hopping, not one per row.
        document["empty"] = spec.empty
    return document


def _hopping(window: WindowSpec) -> Any:
    if window.kind == "until":
        return {"until": window.column}
    if window.is_session:
        return {"session": _length(window.label)}
    length, own, slide = window.label.partition(" every ")
    if own:
        return {"range": _length(length), "every": _length(slide)}
    return _length(length)


def _grid(windows: Sequence[WindowSpec]) -> tuple[int | str | None, int | str]:
    """The slide and the offset that windows share.

    Returns:
        The slide of windows without their own, None if it is their length; the offset.
    """
    found = [*_shared_slides(windows)]
    every: int | str | None = None
    if not all(tumbles for tumbles, _ in found):
        every = found[0][1]
    grids = [(spelled, [*_offsets(windows, spelled)]) for spelled in _spellings(every)]
    # The offsets show whether a slide of whole weeks was written in weeks or in days.
    shared = [(spelled, [*set(of)]) for spelled, of in grids if len(set(of)) <= 1]
    if not shared:
        return every, 0  # `Spec` refuses documents that do not load to the same spec
    every, offsets = min(shared, key=lambda one: bool(one[1] and one[1][0]))
    gridded = [window for window in windows if window.every]
    return every, _amount(gridded[0], offsets[0]) if offsets and offsets[0] else 0


def _spellings(every: int | str | None) -> Iterator[int | str | None]:
    yield every
    if isinstance(every, str) and every.endswith("d") and int(every[:-1]) % 7 == 0:
        yield f"{int(every[:-1]) // 7}w"


def _offsets(windows: Sequence[WindowSpec], every: int | str | None) -> Iterator[int]:
    """The offset that the user gave, by each window with a grid."""
    for window in windows:
        if window.kind == "time" and window.every:
            range_, own, slide = window.label.partition(" every ")
            length = parse_length(range_)
            step = parse_length(slide if own else every or range_)
            yield window.offset - monday_shift(length, step)
        elif window.every:
            yield window.offset


def _shared_slides(windows: Sequence[WindowSpec]) -> Iterator[tuple[bool, int | str]]:
    """Whether a window tumbles, and its slide."""
    for window in windows:
        if " every " in window.label:
            continue
        if window.every_rows:
            tumbles = window.kind == "rows" and window.every_rows == window.length
            yield tumbles, f"{window.every_rows}rows"
        elif window.every:
            yield window.every == window.length, _amount(window, window.every)
