"""Converts the windows of a command line to arguments of functions."""

import re

from slidewise.errors import SpecError
from slidewise.spec.durations import WindowLike, read_rows
from slidewise.spec.query import Query
from slidewise.spec.windows.parse import KINDS, HoppingLike, RollingLike

__all__ = ["parse_length", "parse_window", "split_colons"]

_KINDS = {kind.keys[0]: kind for kind in KINDS}


def parse_window(text: str) -> RollingLike | HoppingLike | Query:
    r"""Reads a window of the command line.

    `1h`, `100rows`, or `3` for integer times; `1h every 5m`; `until:flag`,
    `landmark:flag`, `delta:column:width`, `length:column`, `session:30m`,
    `calendar:1mo`, `calendar:1mo:Europe/Berlin`, `to_date:1d`, `cumulate:1d:1h`,
    `trailing:30d:1h` and `unbounded`. A colon in a column's name is written `\:`.

    Example:
        >>> parse_window("1h"), parse_window("100rows"), parse_window("3")
        ('1h', rows(100), 3)
        >>> parse_window("1h every 5m"), parse_window("landmark:reset")
        (Query('1h', every='5m'), landmark('reset'))
        >>> parse_window("delta:km:5.0"), parse_window("session:30m")
        (delta('km', 5.0), session('30m'))
        >>> parse_window("to_date:1d:Asia/Tokyo"), parse_window("unbounded")
        (to_date('1d', tz='Asia/Tokyo'), unbounded())
    """
    if match := re.fullmatch(r"(.+?)\s+every\s+(.+)", text):
        return Query(parse_length(match[1]), every=parse_length(match[2]))
    word, *parts = split_colons(text)
    kind = _KINDS.get(word)
    needed = 0 if kind is None else kind.form.partition("[")[0].count(":")
    if kind is None or (needed and not parts):
        return parse_length(text)
    _, *wanted = re.split(r"\[?:", kind.form.rstrip("]"))
    if not needed <= len(parts) <= len(wanted) or not all(parts):
        raise SpecError(
            f"cannot read --window {text!r}: write it {kind.form}, a colon in a "
            "column's name as \\:"
        )
    values = [
        part if what == "COLUMN" else parse_length(part)
        for what, part in zip(wanted, parts, strict=False)
    ]
    return kind.of_document(dict(zip(kind.keys, values or [True], strict=False)))


def parse_length(text: str) -> WindowLike:
    """Reads a length of the command line.

    Example:
        >>> parse_length("100rows"), parse_length("3"), parse_length("1h")
        (rows(100), 3, '1h')
    """
    if found := read_rows(text):
        return found
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    return text


def split_colons(text: str) -> list[str]:
    r"""Splits a text at colons, except at those written `\:`.

    Example:
        >>> split_colons(r"who=max:a\:b:c")
        ['who=max', 'a:b', 'c']
    """
    return [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", text)]
