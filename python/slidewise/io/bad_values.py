"""Names the value that made a column of a file text where numbers are needed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SpecError
from slidewise.frames.column_types import is_text
from slidewise.spec.features import Features
from slidewise.spec.spec import Spec

__all__ = ["batches_of", "naming_bad_value"]

# The rows of some columns.
Batches = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
_NUMBER = r"^[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*\z"


def batches_of(table: pa.Table) -> Batches:
    """The rows of a table, for `naming_bad_value`."""
    return lambda names: table.select(list(names)).to_batches()


@contextmanager
def naming_bad_value(spec: Spec | Features, batches: Batches) -> Iterator[None]:
    """Adds the first text that is not a number to the error that a column does not fit.

    Args:
        spec: What is computed in the block.
        batches: The rows of the file.

    Example:
        >>> import slidewise as sw
        >>> table = pa.table({"t": [1, 2], "x": ["7", "$15"]})
        >>> spec = Spec.make(on="t", windows=5, aggs={"s": sw.sum("x")})
        >>> with naming_bad_value(spec, batches_of(table)):
        ...     sw.rolling(table, spec)
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: column 'x' holds '$15' in row 1 (counting from 0)...
    """
    try:
        yield
    except SpecError as error:
        message = str(error)
        columns = [name for name in spec.columns if f"fit column {name!r}" in message]
        found = _first_bad(batches(columns[:1])) if columns else None
        if found is None:
            raise
        row, value = found
        hint = " (is its quote closed?)" if "\n" in value else ""
        raise SpecError(
            f"column {columns[0]!r} holds {value!r} in row {row} (counting from 0), "
            f"which is not a number{hint}: ",
            *error.args,
        ) from error


def _first_bad(batches: Iterable[pa.RecordBatch]) -> tuple[int, str] | None:
    first = 0
    for batch in batches:
        text = batch.column(0)
        if not is_text(text.type):
            return None
        is_bad = pc.invert(pc.match_substring_regex(text, _NUMBER))
        row = pc.index(is_bad, pa.scalar(True)).as_py()
        if row >= 0:
            return first + row, text[row].as_py()
        first += len(batch)
    return None
