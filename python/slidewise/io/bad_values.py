"""Names the value that made a column of a file text where numbers are needed."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError
from slidewise.frames.column_types import is_text
from slidewise.io.text_form import TextForm
from slidewise.spec.features import Features
from slidewise.spec.spec import Spec

__all__ = ["batches_of", "naming_bad_value"]

_match = pc.match_substring_regex
# The rows of some columns.
Batches = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
# How many texts of a column may stand for a missing value, and how long they are.
_MOST, _LONGEST = 3, 20
# What errors say of a column of text in place of flags, and of numbers.
_NO_FLAGS = r"column {0} holds string, not bool|where={0} names a column of string"
_NO_NUMBERS = r"fit column {0}|column {0} is string in this batch, and (?:double|u?int)"
_FLAG = r"^(true|false|True|False|TRUE|FALSE|0|1)\z"


def batches_of(table: pa.Table) -> Batches:
    """The rows of a table, for `naming_bad_value`."""
    return lambda names: table.select(list(names)).to_batches()


@contextmanager
def naming_bad_value(
    spec: Spec | Features, batches: Batches, form: TextForm | None = None
) -> Iterator[None]:
    """Adds the first text that does not fit to the error that a column does not.

    Args:
        spec: What is computed in the block.
        batches: The rows of the file.
        form: How it is written, if it is delimited text.

    Example:
        >>> import slidewise as sw
        >>> table = pa.table({"t": [1, 2], "x": ["7", "1,5"]})
        >>> spec = Spec.make(on="t", windows=5, aggs={"s": sw.sum("x")})
        >>> with naming_bad_value(spec, batches_of(table), TextForm()):
        ...     sw.rolling(table, spec)
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: column 'x' holds '1,5' in row 1 (counting from 0)...
    """
    try:
        yield
    except SpecError as error:
        message = str(error)
        for name in spec.columns:
            column = re.escape(repr(name))
            is_flag = re.search(_NO_FLAGS.format(column), message) is not None
            if is_flag or re.search(_NO_NUMBERS.format(column), message):
                break
        else:
            raise
        point = (form and form.decimal) or "."
        fitting = _FLAG if is_flag else _number(point)
        bad = _find_bad(batches([name]), fitting)
        if bad is None:
            raise
        way_out: tuple[str | Argument, ...] = (": write true or false",)
        if not is_flag:
            found = () if form is None else _way_out(bad, form, point)
            way_out = found or (_cause(bad.values[0]), ": ", *error.args)
        raise SpecError(
            f"column {name!r} holds {bad.values[0]!r} in row {bad.row} (counting from "
            f"0), which is not {'a flag' if is_flag else 'a number'}",
            *way_out,
        ) from error


@dataclass
class _Bad:
    """The texts of a column that do not fit.

    Attributes:
        row: The row of the first.
        values: Each once, one more than `_MOST` at most.
        beside_fitting: Whether the column has others that fit.
    """

    row: int
    values: list[str] = field(default_factory=list)
    beside_fitting: bool = False


def _find_bad(batches: Iterable[pa.RecordBatch], fitting: str) -> _Bad | None:
    bad, first, fits_some = None, 0, False
    for batch in batches:
        text = batch.column(0)
        if not is_text(text.type):
            return None
        fits = _match(text, fitting)
        fits_some = fits_some or bool(pc.any(fits).as_py())
        row = pc.index(fits, pa.scalar(False)).as_py()
        if row >= 0:
            bad = bad or _Bad(first + row)
            for value in pc.unique(text.filter(pc.invert(fits))).to_pylist():
                if len(bad.values) <= _MOST and value not in bad.values:
                    bad.values.append(value)
        first += len(batch)
    if bad is not None:
        bad.beside_fitting = fits_some
    return bad


def _way_out(bad: _Bad, form: TextForm, point: str) -> tuple[str | Argument, ...]:
    """The option that reads the texts, as the end of a message; none for other texts.

    Args:
        bad: The texts.
        form: How the file is written.
        point: Its decimal point.
    """
    other = "." if point == "," else ","
    words = [value for value in bad.values if not re.search(r"\d", value)]
    numbers = [value for value in bad.values if value not in words]
    if numbers and pc.all(_match(pa.array(numbers), _number(other))).as_py():
        return ": read it with ", Argument("decimal", other)
    marks = not any(map(str.isalpha, "".join(words)))
    fits = len(words) <= _MOST and max(map(len, bad.values)) <= _LONGEST
    if numbers or not fits or not (bad.beside_fitting or marks):
        return ()
    if words[0] in form.missing_texts:
        return (": it is a missing value only if it is not in quotes",)
    missing = [*(form.missing or ()), *words]
    return ": if that is a missing value, add ", Argument("missing", missing)


def _cause(value: str) -> str:
    if "\n" in value:
        return " (is its quote closed?)"
    if re.fullmatch(r"\D{0,4}\d[\d.,' ]*\D{0,4}", value):
        return " (write it without currency, unit and separators of thousands)"
    return ""


def _number(point: str) -> str:
    """The pattern of numbers with a decimal point."""
    digits = rf"(\d+[{point}]?\d*|[{point}]\d+)"
    return rf"^[ \t]*[+-]?{digits}([eE][+-]?\d+)?[ \t]*\z"
