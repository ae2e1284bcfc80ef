"""Files that do not fit into memory, read in batches.

Reads the files of `slidewise.io.readers` with the same types and values, except arrays
of JSON objects, which have to be read as a whole.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from slidewise.errors import SpecError
from slidewise.io.exact_integers import ExactIntegers, has_large
from slidewise.io.json_text import JsonText, is_array
from slidewise.io.readers import (
    arrow_reader,
    exact_column,
    kind_of_existing,
    reading,
    refuse_duplicates,
)
from slidewise.io.text_form import (
    TextForm,
    open_csv,
    open_text,
    read_start,
    refuse_other_encodings,
)

__all__ = ["Scan", "can_scan", "table_bytes"]

_BLOCK = 1 << 22
_ROWS = 1 << 16
# The types that pyarrow.csv tries for a column in this order, which are the same for a
# whole file.
_CSV_TYPES = (
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


def can_scan(file: Path) -> bool:
    """Whether a file that is there can be read in batches: not so a JSON array.

    Raises:
        SpecError: If its name has no known ending.
    """
    kind, compression = kind_of_existing(file)
    if kind != "JSON":
        return True
    with reading(file, kind, TextForm()):
        return not is_array(read_start(file, compression, TextForm()))


def table_bytes(file: Path) -> int:
    """The approximate memory of the table in a file.

    Raises:
        SpecError: If its name has no known ending, or it is not of that format.
    """
    size = file.stat().st_size
    kind, compression = kind_of_existing(file)
    if kind == "Parquet":
        with (
            reading(file, kind, TextForm()),
            pa_parquet.ParquetFile(file) as source,
        ):
            groups = range(source.num_row_groups)
            held = source.metadata.row_group
            # Dictionaries and packed bits are expanded.
            return 2 * sum(int(held(group).total_byte_size) for group in groups)
    packed = 6 if compression else 1
    return size * packed * (2 if kind in ("CSV", "JSON") else 1)


class Scan:
    r"""A file to be read in batches, as often as needed.

    Args:
        path: The file; its name ends with its format.
        times: Columns whose text stays text.
        by: The keys: their integers beyond 64 bits are text.
        form: How a file of text is written.
        block: How many bytes to read at a time.

    Raises:
        FileNotFoundError: If there is no such file (or another `OSError`).
        SpecError: If it cannot be read in batches, or not at all.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp(), "trips.csv")
        >>> _ = file.write_text("at,n\n5,1\n6,2\n")
        >>> [batch.num_rows for batch in Scan(file).batches(["n"])]
        [2]
    """

    def __init__(
        self,
        path: str | Path,
        times: Sequence[str] = (),
        by: Sequence[str] = (),
        form: TextForm = TextForm(),  # noqa: B008 - immutable
        block: int | None = None,
    ) -> None:
        self._file = Path(path)
        self._kind, self._compression = kind_of_existing(self._file)
        form.refuse_for(self._kind, self._file)
        self._times, self._by, self._form = times, by, form
        self._block = block or _BLOCK
        self._csv_types = dict.fromkeys([*times, *form.text], pa.string())
        # The columns of a CSV to read as text first, and their types afterwards.
        self._exact: dict[str, pa.DataType] = {}
        with reading(self._file, self._kind, form):
            self.schema = self._open_schema()
        refuse_duplicates(self._file, self.schema.names)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._file

    @property
    def text(self) -> Sequence[str]:
        """The columns to read as text."""
        return self._form.text

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, of these columns or all, some ten thousand at a time.

        Raises:
            SpecError: If the content is of another format than the name.
        """
        names = self.schema.names if columns is None else list(columns)
        with reading(self._file, self._kind, self._form):
            for batch in self._open(names):
                for start in range(0, batch.num_rows, _ROWS):
                    yield batch.select(names).slice(start, _ROWS)

    def _open_schema(self) -> pa.Schema:
        if self._kind == "Parquet":
            with pa_parquet.ParquetFile(self._file) as source:
                return source.schema_arrow
        if self._kind == "CSV":
            return self._csv_schema()
        if self._kind == "JSON":
            start = read_start(self._file, self._compression, self._form)
            if is_array(start):
                raise SpecError(
                    f"{self._file.name} is one JSON array, which is read as a whole: "
                    "give one object per line (.jsonl), or leave the memory unlimited"
                )
            self._json = JsonText(
                self._stream,
                by=self._by,
                times=self._times,
                text=self._form.text,
                block_size=self._block,
            )
            return self._json.schema
        with pa.memory_map(str(self._file)) as source:
            return arrow_reader(source).schema

    def _stream(self) -> Any:
        return open_text(self._file, self._compression, self._form)

    def _open(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        if self._kind == "Parquet":
            # By default pyarrow fetches the whole file ahead.
            with pa_parquet.ParquetFile(
                self._file, buffer_size=self._block, pre_buffer=False
            ) as source:
                yield from source.iter_batches(_ROWS, columns=names)
        elif self._kind == "CSV":
            yield from self._csv_batches(names)
        elif self._kind == "JSON":
            for table in self._json.tables():
                yield from table.to_batches()
        else:
            with pa.memory_map(str(self._file)) as source:
                reader = arrow_reader(source)
                if isinstance(reader, pa.RecordBatchStreamReader):
                    yield from reader
                    return
                for index in range(reader.num_record_batches):
                    yield reader.get_batch(index)

    @contextmanager
    def _csv(self, names: Sequence[str] | None) -> Iterator[Any]:
        """A reader of columns, or all."""
        start = read_start(self._file, self._compression, self._form)
        options = self._form.csv_options(
            self._file, start, self._csv_types, names, self._block
        )
        with open_csv(self._file, self._compression, self._form) as stream:
            yield pa_csv.open_csv(stream, **options)

    def _csv_batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._csv(names) as batches:
            for batch in batches:
                for name, kind in self._exact.items():
                    if name in names:
                        text = pc.utf8_trim_whitespace(batch[name])
                        place = batch.schema.get_field_index(name)
                        column = exact_column(text, kind)
                        batch = batch.set_column(place, name, column)
                yield batch

    def _csv_schema(self) -> pa.Schema:
        """The types of the columns of a text, found by reading it.

        The first block determines the types. If a later value does not fit a type, the
        next type is tried, and the text is read again.
        """
        with self._csv(None) as batches:
            schema: pa.Schema = batches.schema
        if pa.binary() in schema.types:
            refuse_other_encodings(self._file, "CSV", self._compression, self._form)
        refuse_duplicates(self._file, schema.names)
        for field in schema:
            self._csv_types.setdefault(field.name, field.type)
        large: set[str] = set()
        while (failed := self._failing_column(large)) is not None:
            name = schema.names[failed]
            place = _CSV_TYPES.index(self._csv_types[name])
            self._csv_types[name] = _CSV_TYPES[place + 1]
        if large:
            self._find_exact(large)
        kinds = self._csv_types | self._exact
        return pa.schema([(name, kinds[name]) for name in schema.names])

    def _failing_column(self, large: set[str]) -> int | None:
        """The first column that cannot be read as its type.

        Adds the columns of floats that may be rounded integers to `large`.
        """
        large.clear()
        try:
            with self._csv(None) as batches:
                for batch in batches:
                    for name, column in zip(batch.schema.names, batch, strict=True):
                        if pa.types.is_floating(column.type) and has_large(column):
                            large.add(name)
        except pa.ArrowInvalid as error:
            failed = _FAILED.search(str(error))
            if failed is None or "conversion error" not in str(error):
                raise
            return int(failed[1])
        return None

    def _find_exact(self, large: set[str]) -> None:
        """Finds the types of columns whose integers floats would round."""
        self._csv_types |= dict.fromkeys(large, pa.string())
        checks = {name: ExactIntegers(name, is_key=name in self._by) for name in large}
        for batch in self._csv_batches(list(large)):
            for name, check in checks.items():
                check.add(pc.utf8_trim_whitespace(batch[name]))
        for name, check in checks.items():
            if check.type == pa.float64():
                self._csv_types[name] = check.type
            else:
                self._exact[name] = check.type
