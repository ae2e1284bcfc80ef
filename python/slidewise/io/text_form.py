"""Files of text: their encoding, compression, delimiter, decimal point and nulls."""

import codecs
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pa_csv

from slidewise.errors import Argument, SpecError

__all__ = ["DELIMITERS", "Progress", "TextFile", "TextForm", "refuse_duplicates"]

# Called with the part that is done, from 0 to 1.
Progress = Callable[[float], None]

# Bytes of the start of a text, in which its delimiter is found.
_START = 1 << 16
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MISSING = ("NA", "N/A", "NULL", "null", "NaN", "nan")
DELIMITERS = ",;\t|"
# A field in quotes, at the start of the text or after a delimiter or line.
_QUOTED = re.compile(r'(^|[,;\t|\r\n])"(?:[^"]|"")*(?:"|$)')
# The line that tells Excel the delimiter.
_EXCEL = re.compile(rb"(?:\xef\xbb\xbf)?(sep=[ -~\t])\r?\n")


@dataclass(frozen=True)
class TextForm:
    r"""How a file of text is written.

    Args:
        delimiter: The character between fields; by default `,` `;` `|` or a tab, the
            one that the header has most of outside of quotes (of a `.tsv`, a tab).
        decimal: The decimal point of numbers in delimited text.
        missing: The texts that are missing values in delimited text, if not in quotes,
            besides an empty field; by default NA, N/A, NULL, null, NaN and nan.
        encoding: The encoding, as Python names it: "latin-1", "utf-16".
        text: The columns to read as text, whatever they hold.

    Example:
        >>> TextForm(delimiter=";;")
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: delimiter=';;': give one character
    """

    delimiter: str | None = None
    decimal: str | None = None
    missing: Sequence[str] | None = None
    encoding: str | None = None
    text: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Checks each value."""
        for name in ("delimiter", "decimal"):
            given = getattr(self, name)
            if given is not None and (len(given) != 1 or not given.isascii()):
                raise SpecError(Argument(name, given), ": give one character")
        if self.decimal is not None and self.decimal not in ".,":
            raise SpecError(Argument("decimal", self.decimal), ": give '.' or ','")
        if self.decimal is not None and self.decimal == self.delimiter:
            raise SpecError(
                Argument("decimal", self.decimal), " separates the fields already"
            )
        if self.encoding is not None:
            _check_encoding(self.encoding)

    @property
    def missing_texts(self) -> Sequence[str]:
        """The texts that are missing values, besides an empty field."""
        return _MISSING if self.missing is None else self.missing

    def refuse_for(self, kind: str, file: Path, times: Sequence[str]) -> None:
        """Refuses the options that a format does not have, and times as text."""
        without = {"CSV": (), "JSON": ("delimiter", "decimal", "missing")}
        every = ("delimiter", "decimal", "missing", "encoding", "text")
        for name in without.get(kind, every):
            value = getattr(self, name)
            if value:
                has = "its own syntax" if kind == "JSON" else "types and encodings"
                raise SpecError(
                    Argument(name, value),
                    f" does not go with {file.name}: {kind} has {has}; leave it out",
                )
        for name in self.text:
            if name in times:
                raise SpecError(
                    Argument("text", name),
                    " is a column of times, not of text: leave it out",
                )

    def csv_options(
        self,
        file: Path,
        start: bytes,
        types: Mapping[str, pa.DataType],
        columns: Sequence[str] | None = None,
        block_size: int = 1 << 23,
    ) -> dict[str, Any]:
        """The options of `pyarrow.csv` for a file that starts like this, in UTF-8."""
        excel = _EXCEL.match(start)
        if excel is not None:
            raise SpecError(
                f"{file} begins with {excel[1].decode()!r}, a line for Excel: remove it"
            )
        return {
            "read_options": pa_csv.ReadOptions(block_size=block_size),
            "parse_options": pa_csv.ParseOptions(
                delimiter=self.delimiter or self._guess(file, start),
                newlines_in_values=True,
            ),
            "convert_options": pa_csv.ConvertOptions(
                column_types=types,
                include_columns=columns,
                null_values=["", *self.missing_texts],
                decimal_point=self.decimal or ".",
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        }

    def _guess(self, file: Path, start: bytes) -> str:
        text = start.decode("utf-8", errors="replace").removeprefix("\ufeff")
        unquoted = _QUOTED.sub(r"\1", text).lstrip("\r\n")
        header = re.split(r"[\r\n]", unquoted, maxsplit=1)[0]
        if ".tsv" in file.suffixes and "\t" in header:
            return "\t"
        likely = [one for one in DELIMITERS if one != self.decimal and one in header]
        # Numbers with the delimiter as their decimal point are in quotes.
        return max(likely or DELIMITERS, key=header.count)


def _check_encoding(name: str) -> None:
    try:
        "".encode(name)
    except LookupError:
        raise SpecError(
            Argument("encoding", name),
            " is not an encoding that Python has, such as latin-1, cp1252 or utf-16",
        ) from None


@dataclass(frozen=True)
class TextFile:
    """A file of text.

    Attributes:
        path: Where it is.
        compression: As `kind_of` gives it.
        form: How it is written.
    """

    path: Path
    compression: str | None
    form: TextForm

    def open(self, progress: Progress | None = None) -> Any:
        """A stream of the text, uncompressed and in UTF-8.

        Args:
            progress: Called now and then with the part read so far.
        """
        if progress is None:
            stream = pa.input_stream(str(self.path), compression=self.compression)
        else:
            stream = pa.PythonFile(_ProgressFile(self.path, progress), mode="r")
            if self.compression is not None:
                stream = pa.CompressedInputStream(stream, self.compression)
        if self._is_utf8:
            return stream
        return pa.transcoding_input_stream(stream, self.form.encoding, "utf-8")

    def open_lines(self, progress: Progress | None = None) -> Any:
        """A stream as of `open`, that ends with a line break."""
        return pa.PythonFile(_WithLastLine(self.open(progress)), mode="r")

    @property
    def _is_utf8(self) -> bool:
        name = self.form.encoding
        return name is None or codecs.lookup(name).name in ("utf-8", "utf-8-sig")

    def start(self) -> bytes:
        """The bytes at the start."""
        with self.open() as stream:
            start: bytes = stream.read(_START)
        return start

    def refuse_other_encodings(self, kind: str) -> None:
        """Refuses a file that is not written in its encoding, and names the line.

        Does nothing if it is.
        """
        if not self._is_utf8:
            return
        with pa.input_stream(str(self.path), compression=self.compression) as stream:
            for number, line in enumerate(io.BufferedReader(stream), 1):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    wide = number == 1 and line.startswith(_UTF_16)
                    held = line[max(error.start - 40, 0) : error.end + 40].strip()
                    cut = "... " if error.start > 40 else ""
                    raise SpecError(
                        f"{self.path} cannot be read as {kind}: line {number} is not "
                        f"UTF-8 ({cut}{held!r}); name its encoding, as in ",
                        Argument("encoding", "utf-16" if wide else "latin-1"),
                    ) from None


def refuse_duplicates(file: Path, names: Sequence[str]) -> None:
    """Refuses a file with two columns of one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise SpecError(f"{file} has {count} columns {name!r}: rename all but one")


class _ProgressFile(io.RawIOBase):
    """A file that reports how much of it has been read, from front to end."""

    def __init__(self, path: Path, progress: Progress) -> None:
        super().__init__()
        self._file: BinaryIO = path.open("rb")
        self._size = max(os.fstat(self._file.fileno()).st_size, 1)
        self._progress = progress

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        data = self._file.read(-1 if size is None else size)
        self._progress(min(self._file.tell() / self._size, 1.0))
        return data

    def close(self) -> None:
        self._file.close()
        super().close()


class _WithLastLine(io.RawIOBase):
    """A text and a line break after it.

    Without one, pyarrow takes an empty last field after a quoted one for a quoted one.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        self._rest = b"\n"

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        data: bytes = self._stream.read(size)
        if not data:
            data, self._rest = self._rest, b""
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()
