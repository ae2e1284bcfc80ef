"""The options that say how a file is written."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from slidewise.io.readers import kind_of
from slidewise.io.text_form import TextForm

__all__ = ["add_file_options", "delimited_form", "read_form"]


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for times, and for files of text."""
    group = parser.add_argument_group("how the file is written")
    group.add_argument(
        "--format",
        choices=("csv", "tsv", "jsonl", "json", "parquet", "arrow"),
        help="the format of standard input and output, for which - stands",
    )
    group.add_argument(
        "--time-format",
        metavar="FORMAT",
        help='how times are written, as for strptime: "%%m/%%d/%%y %%H:%%M:%%S"',
    )
    group.add_argument(
        "--time-unit",
        choices=("s", "ms", "us", "ns"),
        help="event times are whole numbers of this unit since 1970 (without it, "
        "whole numbers stay numbers)",
    )
    group.add_argument(
        "--text",
        action="append",
        metavar="COLUMN",
        help="read the column as text: ids with leading zeros (may be repeated)",
    )
    group.add_argument(
        "--missing",
        action="append",
        metavar="TEXT",
        help="a missing value in delimited text, besides an empty field (may be "
        "repeated; default: NA N/A NULL null NaN nan)",
    )
    group.add_argument(
        "--decimal", metavar="CHARACTER", help="the decimal point of delimited text"
    )
    group.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        help="what separates the fields of delimited text (default: , ; | or tab, the "
        "one that the header has most of)",
    )
    group.add_argument(
        "--encoding",
        metavar="NAME",
        help="the encoding of text, such as latin-1 or utf-16 (default: utf-8)",
    )


def delimited_form(
    options: argparse.Namespace, files: Iterable[Path]
) -> TextForm | None:
    """As `read_form`; None if the files are not delimited text."""
    kinds = {kind_of(file)[0] for file in files}
    return read_form(options) if kinds == {"CSV"} else None


def read_form(options: argparse.Namespace) -> TextForm:
    """How the file is written, where it is text."""
    tab = options.delimiter in ("\\t", "tab")
    return TextForm(
        delimiter="\t" if tab else options.delimiter,
        decimal=options.decimal,
        missing=options.missing,
        encoding=options.encoding,
        text=options.text or (),
    )
