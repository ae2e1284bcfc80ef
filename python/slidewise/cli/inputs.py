"""The files of a command: one, those of a folder or pattern, or standard input."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.io.readers import kind_of, write_table, written_kind
from slidewise.io.writers import to_bytes

__all__ = ["check_ends", "files_of", "is_pattern", "joined", "spooled", "write"]


def is_pattern(path: str) -> bool:
    """Whether a path names several files by `*`, `?` or `[...]`, and none itself."""
    return any(one in path for one in "*?[") and not Path(path).exists()


def files_of(path: str) -> list[Path]:
    """The files that a path names, by name; hidden ones and those with _ are left out.

    Raises:
        SpecError: If there are none, or one has an ending that is not known.
    """
    where = Path(path)
    if is_pattern(path):
        listed = [*where.parent.glob(where.name)]
    elif where.is_dir():
        listed = [*where.iterdir()]
    else:
        return [where]
    hidden = ("_", ".")
    files = [one for one in listed if one.is_file() and one.name[0] not in hidden]
    for file in files:
        kind_of(file)
    return sorted(files)


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one; integers and floats become floats."""
    if len(tables) == 1:
        return tables[0]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SpecError(
            f"the files have columns of different types ({error}): read a column of "
            "ids by --text, or give files of one kind"
        ) from error


def check_ends(options: argparse.Namespace, *ends: str | None) -> None:
    """Checks that `--format` is given where `-` stands, and only there.

    Args:
        options: Those of the command.
        ends: Its files.
    """
    if "-" in ends and options.format is None:
        raise SpecError(
            "standard input and output (-) have no name that shows their format: add "
            "--format csv, or another one"
        )
    if "-" not in ends and options.format is not None:
        raise SpecError(
            "--format is for standard input and output (-): a file has an ending; "
            "leave it out"
        )


@contextmanager
def spooled(options: argparse.Namespace) -> Iterator[None]:
    """A block in which standard input, if it is the file of a command, is a file."""
    if options.file != "-":
        yield
        return
    with tempfile.TemporaryDirectory(prefix="slidewise-") as folder:
        file = Path(folder) / f"standard input.{options.format}"
        with file.open("wb") as sink:
            shutil.copyfileobj(sys.stdin.buffer, sink)
        options.file = str(file)
        try:
            yield
        finally:
            options.file = "-"


def write(table: pa.Table, options: argparse.Namespace) -> None:
    """Writes a table to the output of a command."""
    if options.output != "-":
        write_table(table, options.output)
        return
    name = Path(f"standard output.{options.format}")
    sys.stdout.buffer.write(to_bytes(table, name, written_kind(name)))
    sys.stdout.buffer.flush()
