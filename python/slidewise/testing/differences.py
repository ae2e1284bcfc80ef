"""Compares results of a stream with those of tables, row by row."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import ResultOverflowError
from slidewise.table.arrays import decode_dictionary
from slidewise.table.equality import equal_cells

__all__ = [
    "NONE",
    "RAISES",
    "DifferenceError",
    "cell",
    "compare",
    "equal_rows",
    "identities",
    "reported",
    "rounded",
    "row_text",
    "texts",
    "values_of",
]

# The value of a cell of a row that there is not.
NONE = "no row"
# The beginning of a difference that is an exception.
RAISES = "it raises"


class DifferenceError(Exception):
    """A cell of a stream that differs, or a call that raises; its text is a clause."""


def cell(name: str, row: str, found: str, expected: str) -> DifferenceError:
    """The error for a cell: its column and row, and both values as text."""
    return DifferenceError(f"{name} of {row} is {found}, not {expected}")


@contextmanager
def reported() -> Iterator[None]:
    """Reports what a stream raises as a difference, as the table raised nothing.

    A sum of fewer rows may exceed its type, so that is raised as it is.
    """
    try:
        yield
    except ResultOverflowError:
        raise
    except Exception as error:
        text = f"{RAISES} {type(error).__name__}: {error}"
        raise DifferenceError(text) from error


def texts(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python dicts, with times as text."""
    for at, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type):
            table = table.set_column(at, field.name, table[at].cast(pa.string()))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def values_of(table: pa.Table, name: str) -> list[Any]:
    """A column as Python values; times as ticks, as Python has no nanoseconds."""
    column = _array(table, name)
    if pa.types.is_temporal(column.type):
        narrow = column.type.bit_width == 32
        column = column.view(pa.int32() if narrow else pa.int64())
    return [
        value + 0.0 if isinstance(value, float) else value  # -0.0 and 0.0 are one key
        for value in column.to_pylist()
    ]


def identities(table: pa.Table, names: Sequence[str]) -> list[str]:
    """What identifies each row; NaN is one key, unlike null."""
    if not names:
        return ["()"] * table.num_rows
    return [
        repr(row) for row in zip(*(values_of(table, n) for n in names), strict=True)
    ]


def compare(
    found: pa.Table,
    expected: pa.Table,
    rows: Sequence[str],
    shown: Sequence[str],
    results: Sequence[str],
) -> None:
    """Compares tables whose rows may be in any order, except those of one identity.

    Args:
        found: The rows of the stream.
        expected: The rows of tables, which have all columns to compare.
        rows: The columns that identify a row.
        shown: The columns that name it in a message: those of the key and time.
        results: The columns of results, whose types are compared, too.

    Raises:
        DifferenceError: With the first cell that differs.
    """
    name = results[0]
    places = {each: at for at, each in enumerate(_numbered(found, rows))}
    wanted = _numbered(expected, rows)
    for at, each in enumerate(wanted):
        if each not in places:
            value = _text(expected, name, at)
            raise cell(name, row_text(expected, shown, at), NONE, value)
    if more := places.keys() - set(wanted):
        at = min(places[each] for each in more)
        again = identities(found, rows)[at] in {each for each, _ in wanted}
        value = "given again" if again else _text(found, name, at)
        raise cell(name, row_text(found, shown, at), value, NONE)
    order = pa.array([places[each] for each in wanted], pa.int64())
    _compare_cells(found.take(order), expected, shown, results)


def equal_rows(one: pa.Table, other: pa.Table, names: Sequence[str]) -> bool:
    """Whether two tables of one row have equal cells."""
    cells = (equal_cells(_array(one, name), _array(other, name)) for name in names)
    return all(equal[0].as_py() for equal in cells)


def rounded(table: pa.Table, names: Sequence[str]) -> bool:
    """Whether columns may hold floats, which may differ by rounding."""
    kinds = [table.schema.field(name).type for name in names]
    return any(pa.types.is_floating(x) or pa.types.is_nested(x) for x in kinds)


def _numbered(table: pa.Table, names: Sequence[str]) -> list[tuple[str, int]]:
    """What identifies each row, with its number: rows may close equal windows."""
    seen: Counter[str] = Counter()
    numbered = []
    for each in identities(table, names):
        numbered.append((each, seen[each]))
        seen[each] += 1
    return numbered


def _compare_cells(
    found: pa.Table, expected: pa.Table, shown: Sequence[str], results: Sequence[str]
) -> None:
    for name in expected.column_names:
        if name not in found.column_names:
            raise cell(name, "any row", "no column", "one")
        ours, theirs = _array(found, name), _array(expected, name)
        if ours.type != theirs.type:
            if name in results:
                kinds = (str(ours.type), str(theirs.type))
                raise cell(f"the type of {name}", "any row", *kinds)
            ours = ours.cast(theirs.type)
        at = pc.index(equal_cells(ours, theirs), False).as_py()
        if at >= 0:
            cells = (_text(found, name, at), _text(expected, name, at))
            raise cell(name, row_text(expected, shown, at), *cells)


def _array(table: pa.Table, name: str) -> pa.Array:
    chunks = [decode_dictionary(chunk) for chunk in table.column(name).chunks]
    if len(chunks) == 1:
        return chunks[0]
    kind = table.schema.field(name).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.chunked_array(chunks, kind).combine_chunks()


def row_text(table: pa.Table, shown: Sequence[str], at: int) -> str:
    """What names a row in a message."""
    cells = [f"{name}={_text(table, name, at)}" for name in shown]
    return ", ".join(cells) or "all rows"


def _text(table: pa.Table, name: str, at: int) -> str:
    column = _array(table, name).slice(at, 1)
    if pa.types.is_temporal(column.type):
        return str(column.cast(pa.string())[0].as_py())
    return repr(column[0].as_py())
