"""Files that do not fit into memory, read in batches.

Reads the files of `slidewise.io.readers` with the same types and values, except arrays
of JSON objects, which have to be read as a whole.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from slidewise.errors import SpecError
from slidewise.io.csv_text import CsvText
from slidewise.io.json_text import JsonText, is_array
from slidewise.io.readers import arrow_reader, kind_of_existing, reading
from slidewise.io.text_form import TextFile, TextForm, refuse_duplicates

__all__ = ["Scan", "can_scan", "table_bytes"]

_BLOCK = 1 << 22
_ROWS = 1 << 16


def can_scan(file: Path) -> bool:
    """Whether a file that is there can be read in batches: not so a JSON array.

    Raises:
        SpecError: If its name has no known ending.
    """
    kind, compression = kind_of_existing(file)
    if kind != "JSON":
        return True
    with reading(file, kind, TextForm()):
        return not is_array(TextFile(file, compression, TextForm()).start())


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
        self._kind, compression = kind_of_existing(self._file)
        form.refuse_for(self._kind, self._file, times)
        self._times, self._by, self._form = times, by, form
        self._block = block or _BLOCK
        self._text = TextFile(self._file, compression, form)
        with reading(self._file, self._kind, form):
            self.schema = self._open_schema()
        refuse_duplicates(self._file, self.schema.names)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._file

    @property
    def form(self) -> TextForm:
        """How it is written, if it is text."""
        return self._form

    @property
    def is_delimited(self) -> bool:
        """Whether it is delimited text."""
        return self._kind == "CSV"

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
            self._csv = CsvText(
                self._text, by=self._by, times=self._times, block_size=self._block
            )
            return self._csv.find_schema()
        if self._kind == "JSON":
            if is_array(self._text.start()):
                raise SpecError(
                    f"{self._file.name} is one JSON array, which is read as a whole: "
                    "give one object per line (.jsonl), or leave the memory unlimited"
                )
            self._json = JsonText(
                self._text.open,
                by=self._by,
                times=self._times,
                text=self._form.text,
                block_size=self._block,
            )
            return self._json.schema
        with pa.memory_map(str(self._file)) as source:
            return arrow_reader(source).schema

    def _open(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        if self._kind == "Parquet":
            # By default pyarrow fetches the whole file ahead.
            with pa_parquet.ParquetFile(
                self._file, buffer_size=self._block, pre_buffer=False
            ) as source:
                yield from source.iter_batches(_ROWS, columns=names)
        elif self._kind == "CSV":
            yield from self._csv.batches(names)
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
