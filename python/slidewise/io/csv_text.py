"""Delimited text with a header line, as one table or in batches of the same types.

pyarrow takes integers beyond int64 for floats: the columns that may hold one are read
once more as text, which keeps the digits.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.io.exact_integers import ExactIntegers, has_large
from slidewise.io.text_form import DELIMITERS, Progress, TextFile, refuse_duplicates

__all__ = ["CsvText"]

# The types that pyarrow.csv tries for a column in this order, which are the same for a
# whole file.
_TYPES = (
    pa.null(),
    pa.int64(),
    pa.bool_(),
    pa.date32(),
    pa.time32("s"),
    pa.timestamp("s"),
    pa.timestamp("ns"),
    pa.timestamp("s", "UTC"),
    pa.timestamp("ns", "UTC"),
    pa.float64(),
    pa.string(),
)
_FAILED = re.compile(r"In CSV column #(\d+)")


class CsvText:
    """The rows of delimited text.

    Args:
        file: The file.
        by: The keys: their integers beyond 64 bits are text.
        times: The columns of times, which are text.
        block_size: How many bytes to read at a time.
    """

    def __init__(
        self,
        file: TextFile,
        *,
        by: Collection[str] = (),
        times: Collection[str] = (),
        block_size: int = 1 << 23,
    ) -> None:
        self._file, self._by, self._block_size = file, by, block_size
        self._times = list(times)
        # The types that are given or found.
        self._types = dict.fromkeys([*times, *file.form.text], pa.string())
        # The columns to read as text first, and their types afterwards.
        self._exact: dict[str, pa.DataType] = {}

    def table(self, progress: Progress) -> pa.Table:
        """All rows; pyarrow finds the types of all columns at once."""
        table = self._read(progress=progress)
        self._check(table.schema)
        for place, name in enumerate(table.column_names):
            if _may_be_rounded(table[name]):
                self._types[name] = pa.string()
                text = self._read([name])
                self._find_exact([name], [text])
                if name in self._exact:
                    table = table.set_column(place, name, self._with_exact(text)[0])
        return table

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows in batches, of these columns, in the types of `find_schema`."""
        with self._opened(names) as batches:
            yield from map(self._with_exact, batches)

    def find_schema(self) -> pa.Schema:
        """The types of the columns, found by reading the text in batches.

        The first block determines the types. If a later value does not fit a type, the
        next type is tried, and the text is read again.
        """
        with self._opened() as batches:
            schema: pa.Schema = batches.schema
        self._check(schema)
        for field in schema:
            self._types.setdefault(field.name, field.type)
        names = schema.names
        while (large := self._large_columns(names)) is None:
            pass
        self._types |= dict.fromkeys(large, pa.string())
        self._find_exact(large, self.batches(large) if large else ())
        kinds = self._types | self._exact
        return pa.schema([(name, kinds[name]) for name in names])

    def _read(
        self, columns: Sequence[str] | None = None, progress: Progress | None = None
    ) -> pa.Table:
        with self._file.open_lines(progress) as stream:
            return pa_csv.read_csv(stream, **self._options(columns))

    @contextmanager
    def _opened(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        with self._file.open_lines() as stream:
            yield pa_csv.open_csv(stream, **self._options(columns))

    def _options(self, columns: Sequence[str] | None) -> dict[str, Any]:
        file = self._file
        return file.form.csv_options(
            file.path, file.start(), self._types, columns, self._block_size
        )

    def _check(self, schema: pa.Schema) -> None:
        if pa.binary() in schema.types:
            self._file.refuse_other_encodings("CSV")
        refuse_duplicates(self._file.path, schema.names)
        try:
            require(frame(schema.empty_table()), self._times)
        except SpecError as error:
            raise SpecError(*error.args, *_about_header(schema.names)) from None

    def _large_columns(self, names: Sequence[str]) -> list[str] | None:
        """The columns of floats that may be rounded integers.

        None if a value does not fit the type of its column, which then has the next
        type.
        """
        large: set[str] = set()
        try:
            for batch in self.batches(names):
                large |= {name for name in names if _may_be_rounded(batch[name])}
        except pa.ArrowInvalid as error:
            failed = _FAILED.search(str(error))
            if failed is None or "conversion error" not in str(error):
                raise
            name = names[int(failed[1])]
            self._types[name] = _TYPES[_TYPES.index(self._types[name]) + 1]
            return None
        return [name for name in names if name in large]

    def _find_exact(
        self, names: Sequence[str], parts: Iterable[pa.Table | pa.RecordBatch]
    ) -> None:
        """Finds the types of columns, read as text, whose integers may be large."""
        checks = {name: ExactIntegers(name, is_key=name in self._by) for name in names}
        for part in parts:
            for name, check in checks.items():
                check.add(pc.utf8_trim_whitespace(part[name]))
        for name, check in checks.items():
            if check.type == pa.float64():
                self._types[name] = check.type
            else:
                self._exact[name] = check.type

    def _with_exact(self, rows: Any) -> Any:
        """A table or batch whose exact columns have their types."""
        for name in self._exact.keys() & rows.schema.names:
            text, kind = pc.utf8_trim_whitespace(rows[name]), self._exact[name]
            if kind != pa.string():
                text = pc.utf8_ltrim(text, characters="+").cast(kind)
            rows = rows.set_column(rows.schema.get_field_index(name), name, text)
        return rows


def _about_header(names: Sequence[str]) -> tuple[str | Argument, ...]:
    """What is wrong with a first line that lacks a column, as the end of a message.

    Example:
        >>> _about_header(["at;x"])
        (' Name what separates its fields: ', Argument(name='delimiter', value=';'))
    """
    if len(names) == 1 and (marks := [one for one in DELIMITERS if one in names[0]]):
        return " Name what separates its fields: ", Argument("delimiter", marks[0])
    if any(re.fullmatch(r"[\d.,:/ T-]*\d[\d.,:/ T-]*", name) for name in names):
        return (" The first line has to name the columns.",)
    return ()


def _may_be_rounded(column: pa.Array | pa.ChunkedArray) -> bool:
    return bool(pa.types.is_floating(column.type)) and has_large(column)
