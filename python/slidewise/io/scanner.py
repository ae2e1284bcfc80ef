"""Files that do not fit into memory, read in batches.

Reads the files of `slidewise.io.readers` with the same types and values, except arrays
of JSON objects, which have to be read as a whole.
"""

import errno
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pa_parquet

from slidewise.errors import SpecError
from slidewise.io.readers import (
    START_BYTES,
    arrow_reader,
    csv_options,
    kind_of,
    reading,
    refuse_duplicates,
)

__all__ = ["Scan"]

_BLOCK = 1 << 22
_ROWS = 1 << 16
# The types that pyarrow.csv tries for a column in this order, which are the same for a
# whole file; and uint64, see `readers`.
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
    pa.uint64(),
    pa.float64(),
    pa.string(),
    pa.binary(),
)
_FAILED = re.compile(r"In CSV column #(\d+)")


class Scan:
    r"""A file to be read in batches, as often as needed.

    Args:
        path: The file; its name ends with its format.
        times: Columns whose text stays text.

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

    def __init__(self, path: str | Path, times: Sequence[str] = ()) -> None:
        self._file = Path(path)
        if not self._file.exists():
            raise FileNotFoundError(errno.ENOENT, "there is no such file", str(path))
        self._kind, self._compression = kind_of(self._file)
        self._csv_types = dict.fromkeys(times, pa.string())
        with reading(self._file, self._kind):
            self.schema = self._open_schema()
        refuse_duplicates(self._file, self.schema.names)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._file

    @property
    def bytes(self) -> int:
        """The approximate memory of its table in bytes."""
        size = self._file.stat().st_size
        if self._kind == "Parquet":
            with pa_parquet.ParquetFile(self._file) as source:
                groups = range(source.num_row_groups)
                held = source.metadata.row_group
                # Dictionaries and packed bits are expanded.
                return 2 * sum(int(held(group).total_byte_size) for group in groups)
        packed = 6 if self._compression else 1
        return size * packed * (2 if self._kind in ("CSV", "JSON") else 1)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, of these columns or all, some ten thousand at a time.

        Raises:
            SpecError: If the content is of another format than the name.
        """
        names = self.schema.names if columns is None else list(columns)
        with reading(self._file, self._kind):
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
            with self._stream() as stream:
                start = stream.read(START_BYTES)
            if start.lstrip().startswith(b"["):
                raise SpecError(
                    f"{self._file.name} is one JSON array, which is read as a whole: "
                    "give one object per line (.jsonl), or leave the memory unlimited"
                )
            with self._stream() as stream:
                return self._json(stream).schema
        with pa.memory_map(str(self._file)) as source:
            return arrow_reader(source).schema

    def _stream(self) -> Any:
        return pa.input_stream(str(self._file), compression=self._compression)

    def _open(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        if self._kind == "Parquet":
            # By default pyarrow fetches the whole file ahead.
            with pa_parquet.ParquetFile(
                self._file, buffer_size=_BLOCK, pre_buffer=False
            ) as source:
                yield from source.iter_batches(_ROWS, columns=names)
        elif self._kind == "CSV":
            with self._stream() as stream:
                yield from self._csv(stream, names)
        elif self._kind == "JSON":
            with self._stream() as stream:
                yield from self._json(stream)
        else:
            with pa.memory_map(str(self._file)) as source:
                reader = arrow_reader(source)
                if isinstance(reader, pa.RecordBatchStreamReader):
                    yield from reader
                    return
                for index in range(reader.num_record_batches):
                    yield reader.get_batch(index)

    def _json(self, stream: Any) -> Any:
        options = pa_json.ReadOptions(block_size=_BLOCK)
        return pa_json.open_json(stream, read_options=options)

    def _csv(self, stream: Any, names: list[str] | None) -> Any:
        with self._stream() as text:
            start = text.read(START_BYTES)
        options = csv_options(start, self._csv_types, names, _BLOCK)
        return pa_csv.open_csv(stream, **options)

    def _csv_schema(self) -> pa.Schema:
        """The types of the columns of a text, found by reading it.

        The first block determines the types. If a later value does not fit a type, the
        next type is tried, and the text is read again.
        """
        with self._stream() as stream:
            schema: pa.Schema = self._csv(stream, None).schema
        for field in schema:
            floats = field.type == pa.float64()  # or whole numbers beyond int64
            self._csv_types.setdefault(
                field.name, pa.uint64() if floats else field.type
            )
        while (failed := self._failing_column()) is not None:
            name = schema.names[failed]
            place = _CSV_TYPES.index(self._csv_types[name])
            self._csv_types[name] = _CSV_TYPES[place + 1]
        kinds = [(name, self._csv_types[name]) for name in schema.names]
        return pa.schema(kinds)

    def _failing_column(self) -> int | None:
        """The first column that cannot be read as its type."""
        try:
            with self._stream() as stream:
                for _ in self._csv(stream, None):
                    pass
        except pa.ArrowInvalid as error:
            failed = _FAILED.search(str(error))
            if failed is None or "conversion error" not in str(error):
                raise
            return int(failed[1])
        return None
