"""The interface of a table, and the code that all adapters share.

A frame reads only the columns that are used. It returns the caller's type with the
results appended; rows and index are unchanged.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import SlidewiseError, SpecError
from slidewise.frames.column_types import type_without_view

__all__ = [
    "Frame",
    "Result",
    "combined",
    "decode_runs",
    "empty_table",
    "guarded",
    "one_array",
    "refuse_taken",
    "require",
]


class Result(NamedTuple):
    """One result column.

    Attributes:
        array: The values, in row order.
        dtype: `Frame.dtype` of the column it was computed from, or None.
        same_type: Whether the result has the type of that column.
        nullable: Whether a null can occur in it, for any data.
    """

    array: pa.Array
    dtype: Any
    same_type: bool
    nullable: bool


class Named(Protocol):
    """A table of named columns."""

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    @property
    def length(self) -> int:
        """The number of rows."""

    @property
    def times_beside(self) -> str:
        """Where times are that are no column, as the end of a message; often empty."""


class Frame(Named, Protocol):
    """A table of any library, as the kernel reads and extends it."""

    def column(self, name: str) -> pa.Array:
        """A column as one Arrow array; the name occurs once."""

    def never_null(self, name: str) -> bool:
        """Whether the type of a column has no missing value."""

    def dtype(self, name: str) -> Any:
        """The type of a column in its own library, or None; for `Result`."""

    def append(self, results: Mapping[str, Result]) -> Any:
        """The caller's table with the results appended as columns."""

    def make(self, columns: Mapping[str, Result]) -> Any:
        """A table of the caller's type with these columns alone."""


def require(frame: Named, names: Sequence[str], owner: str = "the table") -> None:
    """Refuses missing and duplicate columns.

    Raises:
        SpecError: Naming the column, the existing ones, and a near miss.
    """
    present = Counter(frame.names)
    for name in names:
        found = present[name]
        if found == 0:
            columns = [str(column) for column in present]
            raise SpecError(_no_column(name, columns, owner) + frame.times_beside)
        if found > 1:
            raise SpecError(f"{owner} has {found} columns {name!r}: rename one")


def refuse_taken(frame: Named, results: Sequence[str]) -> None:
    """Refuses result names that the table already has."""
    present = set(frame.names)
    for name in results:
        if name in present:
            raise SpecError(
                f"the table has a column {name!r} already: "
                "give the aggregation another name, or drop the column"
            )


def _no_column(name: str, present: list[str], owner: str) -> str:
    near = [known for known in present if known.casefold() == name.casefold()]
    near = near or difflib.get_close_matches(name, present, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if name == "*":
        hint = " sw.count() without a column counts rows."
    elif "," in name and {*map(str.strip, name.split(","))} <= {*present}:
        hint = " Name several columns one by one."
    elif re.search("[<>=]", name):
        hint = " Compute a comparison as a column of booleans first."
    shown = ", ".join(present[:20]) + (", ..." if len(present) > 20 else "")
    return f"{owner} has no column {name!r}; it has {shown or 'none'}.{hint}"


@contextmanager
def guarded(
    what: str, *passing: type[Exception], way_out: str = "cast it first"
) -> Iterator[None]:
    """Raises what a library raises while it converts a table as a `SpecError`.

    Panics of Rust, such as those of polars, are no `Exception`; these, too.

    Args:
        what: The subject of the message: the column and its type.
        passing: Exceptions that pass as they are.
        way_out: The end of the message.
    """
    try:
        yield
    except BaseException as error:
        is_panic = type(error).__module__ == "pyo3_runtime"
        passes = isinstance(error, (SlidewiseError, MemoryError, *passing))
        if passes or not (is_panic or isinstance(error, Exception)):
            raise
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise SpecError(f"{what} cannot be converted ({why}): {way_out}") from error


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table without rows; `Schema.empty_table` lacks unions, among others."""
    arrays = [pa.nulls(0, field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The chunks of a column as one array, run-end encoding decoded."""
    array = combined(column)
    if isinstance(array, pa.ChunkedArray):
        raise SpecError(
            "a column of text is too long for one Arrow array: cast it to large_string"
        )
    return array


def combined(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """As `one_array`; text that is too long for one array stays in chunks."""
    if pa.types.is_run_end_encoded(column.type):
        chunks = [decode_runs(chunk) for chunk in column.chunks]
        column = pa.chunked_array(chunks, type_without_view(column.type.value_type))
    if column.num_chunks == 1 and column.chunk(0).offset == 0:
        return column.chunk(0)  # combine_chunks would copy it
    # An empty slice that came through the C stream has empty buffers behind its offset,
    # over which combine_chunks fails.
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    return pa.chunked_array(chunks, column.type).combine_chunks()


def decode_runs(column: pa.Array) -> pa.Array:
    """The values of a run-end encoded column of any type; other columns unchanged."""
    if not pa.types.is_run_end_encoded(column.type):
        return column
    values = column.values
    kind = type_without_view(values.type)
    ones = pa.repeat(pa.scalar(1, pa.int32()), len(values))
    numbers = pc.cumulative_sum(ones, start=-1)
    runs = pa.RunEndEncodedArray.from_arrays(column.run_ends, numbers)
    places = pc.run_end_decode(runs).slice(column.offset, len(column))
    return (values if values.type == kind else values.cast(kind)).take(places)
