"""Tables in files, read in batches: for those that do not fit into memory.

The same files as `slidewise.io.readers` reads, with the same answers, but an array of
JSON objects, which has to be read as a whole. A scan goes over its file as often as it
is asked to.
"""

import errno
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pa_parquet

from slidewise.errors import SpecError
from slidewise.io.readers import delimiter_of, kind_of, refuse_duplicates, told_as

__all__ = ["Scan"]

_BLOCK = 1 << 22
_ROWS = 1 << 16
# What a column of text is tried as, one after the other, as for whole files.
_LADDER = (
    pa.int64(),
    pa.uint64(),
    pa.float64(),
    pa.string(),
)
# A column that begins with nothing may hold anything; what Arrow takes for floats may
# be whole numbers beyond int64.
_BEGIN = {pa.null(): pa.int64(), pa.float64(): pa.uint64()}
_FAILED = re.compile(r"In CSV column #(\d+)")


class Scan:
    r"""A file of rows.

    Args:
        path: Its name says what it is.
        times: Columns whose text is to stay text.

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
        with told_as(self._file, self._kind):
            self.schema = self._open_schema()
        refuse_duplicates(self._file, self.schema.names)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._file

    @property
    def bytes(self) -> int:
        """About how much memory its table takes."""
        size = self._file.stat().st_size
        if self._kind == "Parquet":
            with pa_parquet.ParquetFile(self._file) as source:
                groups = range(source.num_row_groups)
                held = source.metadata.row_group
                # Dictionaries and packed bits unfold.
                return 2 * sum(int(held(group).total_byte_size) for group in groups)
        packed = 6 if self._compression else 1
        return size * packed * (2 if self._kind in ("CSV", "JSON") else 1)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, of these columns or all, some ten thousand at a time.

        Raises:
            SpecError: If the content is not what the name says.
        """
        names = self.schema.names if columns is None else list(columns)
        with told_as(self._file, self._kind):
            for batch in self._open(names):
                for start in range(0, batch.num_rows, _ROWS):
                    yield batch.select(names).slice(start, _ROWS)

    def _open_schema(self) -> pa.Schema:
        if self._kind == "Parquet":
            with pa_parquet.ParquetFile(self._file) as source:
                return source.schema_arrow
        if self._kind == "CSV":
            return self._settled_csv()
        if self._kind == "JSON":
            with self._stream() as stream:
                start = stream.read(1 << 16)
            if start.lstrip().startswith(b"["):
                raise SpecError(
                    f"{self._file.name} is one JSON array, which is read as a whole: "
                    "give one object per line (.jsonl), or leave the memory unlimited"
                )
            with self._stream() as stream:
                return self._json(stream).schema
        with pa.memory_map(str(self._file)) as source:
            return _arrow_reader(source).schema

    def _stream(self) -> Any:
        return pa.input_stream(str(self._file), compression=self._compression)

    def _open(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        if self._kind == "Parquet":
            # By default all of the file is fetched ahead.
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
                reader = _arrow_reader(source)
                if isinstance(reader, pa.RecordBatchStreamReader):
                    yield from reader
                    return
                for index in range(reader.num_record_batches):
                    yield reader.get_batch(index)

    def _json(self, stream: Any) -> Any:
        options = pa_json.ReadOptions(block_size=_BLOCK)
        return pa_json.open_json(stream, read_options=options)

    def _csv(self, stream: Any, names: list[str] | None) -> Any:
        with self._stream() as start:
            delimiter = delimiter_of(start.read(1 << 16))
        return pa_csv.open_csv(
            stream,
            read_options=pa_csv.ReadOptions(block_size=_BLOCK),
            parse_options=pa_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=self._csv_types,
                include_columns=names,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _settled_csv(self) -> pa.Schema:
        """The types that all of the text can be read as, by reading it once."""
        with self._stream() as stream:
            schema: pa.Schema = self._csv(stream, None).schema
        for field in schema:
            kind = _BEGIN.get(field.type, field.type)
            self._csv_types.setdefault(field.name, kind)
        while not self._is_readable(schema.names):
            pass
        kinds = [(name, self._csv_types[name]) for name in schema.names]
        return pa.schema(kinds)

    def _is_readable(self, names: list[str]) -> bool:
        try:
            with self._stream() as stream:
                for _ in self._csv(stream, None):
                    pass
        except pa.ArrowInvalid as error:
            failed = _FAILED.search(str(error))
            if failed is None:
                raise
            name = names[int(failed[1])]
            if self._csv_types[name] == pa.string():
                raise
            self._csv_types[name] = _wider(self._csv_types[name])
            return False
        return True


def _wider(kind: pa.DataType) -> pa.DataType:
    """What a column of text is tried as next."""
    if kind not in _LADDER:
        return pa.string()
    rest = islice(_LADDER, _LADDER.index(kind) + 1, None)
    return next(rest)


def _arrow_reader(source: Any) -> Any:
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)
