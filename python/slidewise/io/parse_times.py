"""Event times written as text.

Without a format, text is ISO 8601 (`2018-07-03 17:48:39`, `2018-07-03T17:48:39.5Z`, and
the same with slashes) or whole numbers. Dates such as 07/03/18 need a format: they name
different days in different countries.
"""

import re
from collections.abc import Callable
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError
from slidewise.frames.column_types import is_text

__all__ = ["parse_times"]

_INTEGER = r"^\s*[+-]?\d+\s*$"
_YEAR_FIRST = r"^\s*\d{4}[-/]\d{2}[-/]\d{2}"
# A date with the day or month first, or without zeros, and perhaps a time of day.
_DATE = re.compile(
    r"(?:\d{1,2}([/.-])\d{1,2}\1(?P<year>\d{4}|\d\d)|\d{4}([/.-])\d{1,2}\3\d{1,2})"
    r"(?:(?P<gap>[T ])\d{1,2}:\d\d(?P<sec>:\d\d(?P<part>\.\d{1,6})?)?"
    r"(?P<half> ?[AP]M)?)?",
    re.IGNORECASE,
)
_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}
_UNITS["ns"] = "nanoseconds"
_ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)\s*$"
_NINE_DIGITS = r"\.\d{7,9}"
# Directives that Arrow's own parser lacks or reads differently.
_PYTHON_ONLY = ("%f", "%z", "%Z")

Converter = Callable[[pa.Array], pa.Array]


def parse_times(
    column: pa.Array,
    name: str,
    time_format: str | None = None,
    time_unit: str | None = None,
    *,
    first_row: int | None = 0,
    arrival: bool = False,
) -> pa.Array:
    """Reads a column of text as timestamps or integers; other columns stay as they are.

    Args:
        column: The column. Nulls and empty text stay missing.
        name: For messages.
        time_format: As for `datetime.strptime`, such as "%m/%d/%y %H:%M:%S".
        time_unit: Of whole numbers since 1970, also in columns of integers, which are
            timestamps then: "s", "ms", "us" or "ns". Columns of arrival stay integers.
        first_row: The number of the first row, for messages; None where rows have none.
        arrival: Whether the column may hold whole numbers, whatever the format: a
            column of arrival order whose first value the format does not read.

    Returns:
        Timestamps in microseconds (nanoseconds if the text has that many digits), in
        UTC where the text names a zone; or int64.

    Raises:
        SpecError: If a value cannot be read (the message names the row, counting from
            0), or if there is no format and the dates can be read in several ways.

    Example:
        >>> import pyarrow as pa
        >>> parse_times(pa.array(["07/03/18"]), "day", "%m/%d/%y")[0].as_py()
        datetime.datetime(2018, 7, 3, 0, 0)
    """
    if time_unit is not None and not arrival:
        return _since_1970(column, name, time_format, time_unit, first_row)
    if not is_text(column.type):
        return column
    text = _without_empty(column)
    first = next((value.as_py() for value in text if value.is_valid), None)
    if time_format is not None and not (
        arrival and _is_number_beside(time_format, first)
    ):
        return _with_format(text, name, time_format, first_row)
    if first is None:
        return pa.nulls(len(text), pa.timestamp("us"))
    convert: Converter
    if _matches(_INTEGER, first):
        convert = _to_integers
    elif _matches(_YEAR_FIRST, first):
        convert = _iso_converter(text)
    else:
        what = f"column {name!r} holds {first!r}, which is not ISO 8601"
        if not re.search(r"\d", first):
            raise SpecError(f"{what}: name a column of times, or drop such rows")
        raise SpecError(
            f"{what}: write its format as ",
            Argument("time_format"),
            f" {_likely_formats(text, name, first)}",
        )
    return _or_name_row(text, name, convert, first_row)


def _without_empty(column: pa.Array) -> pa.Array:
    text = column.cast(pa.large_string())
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(text), ""), None, text)


def _since_1970(
    column: pa.Array,
    name: str,
    time_format: str | None,
    unit: str,
    first_row: int | None,
) -> pa.Array:
    if time_format is not None:
        raise SpecError(
            Argument("time_format"),
            " reads text, and ",
            Argument("time_unit"),
            " numbers: give one of them",
        )
    if unit not in _UNITS:
        units = ", ".join(map(repr, _UNITS))
        raise SpecError(Argument("time_unit", unit), f" is none of {units}")
    if not is_text(column.type) and not pa.types.is_integer(column.type):
        raise SpecError(
            Argument("time_unit", unit),
            f" is of whole numbers since 1970, and column {name!r} holds "
            f"{column.type}: leave it out",
        )
    text = _without_empty(column)
    try:
        return _to_integers(text).cast(pa.timestamp(unit))
    except pa.ArrowInvalid:
        row = _first_failing(text, _to_integers)
    raise SpecError(
        f"column {name!r} holds {text[row].as_py()!r}{_place(first_row, row)}, which "
        f"is not a whole number of {_UNITS[unit]} within int64"
    )


def _likely_formats(text: pa.Array, name: str, first: str) -> str:
    """Formats that read all of a text, or the like of them."""
    found = _DATE.fullmatch(first.strip())
    if found is None:
        return "'%m/%d/%y %H:%M:%S' or the like"
    mark = found[1] or found[3]
    clock = ""
    if found["gap"]:
        clock = f"{found['gap']}{'%I' if found['half'] else '%H'}:%M"
        clock += (":%S" if found["sec"] else "") + (".%f" if found["part"] else "")
        clock += found["half"][:-2] + "%p" if found["half"] else ""
    year = "%y" if found["year"] and len(found["year"]) == 2 else "%Y"
    orders = {"month first": ("%m", "%d", year), "day first": ("%d", "%m", year)}
    if not found["year"]:
        orders = {"year first": (year, "%m", "%d")}
    forms = {mark.join(order) + clock: said for said, order in orders.items()}
    fitting = [form for form in forms if _reads(text, name, form)]
    return ", ".join(f"{form!r} ({forms[form]})" for form in fitting or forms)


def _reads(text: pa.Array, name: str, form: str) -> bool:
    try:
        _with_format(text, name, form, None)
    except SpecError:
        return False
    return True


def _is_number_beside(time_format: str, text: str | None) -> bool:
    """Whether a text is a whole number that the format does not read."""
    if text is None or not _matches(_INTEGER, text):
        return False
    try:
        datetime.strptime(text, time_format)
    except ValueError:
        return True
    return False


def _matches(pattern: str, text: str) -> bool:
    return bool(pc.match_substring_regex(pa.array([text]), pattern)[0].as_py())


def _to_integers(text: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(text).cast(pa.int64())


def _iso_converter(text: pa.Array) -> Converter:
    fine = pc.any(pc.match_substring_regex(text, _NINE_DIGITS)).as_py()
    zoned = pc.any(pc.match_substring_regex(text, r"\d:\d.*" + _ZONE)).as_py()
    kind = pa.timestamp("ns" if fine else "us", "UTC" if zoned else None)

    def convert(part: pa.Array) -> pa.Array:
        trimmed = pc.utf8_trim_whitespace(part)
        return pc.replace_substring(trimmed, "/", "-", max_replacements=2).cast(kind)

    return convert


def _or_name_row(
    text: pa.Array, name: str, convert: Converter, first_row: int | None
) -> pa.Array:
    """Converts, or raises an error that names the row."""
    try:
        return convert(text)
    except pa.ArrowInvalid:
        row = _first_failing(text, convert)
    value = text[row].as_py()
    if convert is _to_integers and _matches(_INTEGER, value):
        raise SpecError(
            f"column {name!r} holds {value!r}{_place(first_row, row)}, which is beyond "
            "int64: times are int64"
        )
    raise SpecError(
        f"column {name!r} holds {value!r}{_place(first_row, row)}, "
        "which is not written like the rows before it: correct it, or give a ",
        Argument("time_format"),
        " that reads every row",
    )


def _place(first_row: int | None, row: int) -> str:
    """Where a value is, for messages."""
    return "" if first_row is None else f" in row {first_row + row} (counting from 0)"


def _first_failing(text: pa.Array, convert: Converter) -> int:
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(text.slice(low, middle - low))
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def _with_format(
    text: pa.Array, name: str, time_format: str, first_row: int | None
) -> pa.Array:
    if "%" not in time_format:
        raise SpecError(
            Argument("time_format", time_format),
            " is not a format: write it as for datetime.strptime, such as "
            "'%m/%d/%y %H:%M:%S'",
        )
    if any(directive in time_format for directive in _PYTHON_ONLY):
        return _strptime(text, name, time_format, first_row, range(len(text)))
    seconds = pc.strptime(text, format=time_format, unit="s", error_is_null=True)
    # Arrow's parser reads 30 February as 2 March. Text that does not format back to
    # itself is read again by a strict parser.
    again = pc.strftime(seconds, format=time_format)
    odd = pc.and_(text.is_valid(), pc.fill_null(pc.not_equal(again, text), True))
    times = seconds.cast(pa.timestamp("us"))
    rows = pc.indices_nonzero(odd)
    if len(rows) == 0:
        return times
    odd_text, numbers = text.take(rows), rows.to_pylist()
    strict = _strptime(odd_text, name, time_format, first_row, numbers)
    return pc.replace_with_mask(times, odd, strict)


def _strptime(
    text: pa.Array,
    name: str,
    time_format: str,
    first_row: int | None,
    rows: range | list[int],
) -> pa.Array:
    times: list[datetime | None] = []
    for value, row in zip(text.to_pylist(), rows, strict=True):
        try:
            times.append(value and datetime.strptime(value, time_format))
        except ValueError as error:
            raise SpecError(
                f"column {name!r} holds {value!r}{_place(first_row, row)}, which ",
                Argument("time_format", time_format),
                f" does not read: {error}",
            ) from None
    zoned = any(time is not None and time.tzinfo is not None for time in times)
    return pa.array(times, pa.timestamp("us", "UTC" if zoned else None))
