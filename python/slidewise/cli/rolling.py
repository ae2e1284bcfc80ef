"""`slidewise rolling`: from a file to a table, a file or a picture.

Results are computed over the whole table in memory, in batches for a file larger than
memory (`slidewise.io.out_of_core`), or on Spark, and are the same.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from slidewise.cli.file_options import add_file_options, delimited_form, read_form
from slidewise.cli.inputs import (
    check_ends,
    files_of,
    is_pattern,
    joined,
    spooled,
    write,
)
from slidewise.cli.terminal import Stages, format_rate, print_table
from slidewise.errors import SpecError
from slidewise.formatting import format_count
from slidewise.spec.features import Features, parts_of
from slidewise.spec.given import only_spec
from slidewise.spec.spec import Spec

__all__ = [
    "add_options",
    "add_threads",
    "check_output",
    "explain",
    "print_written",
    "read",
    "run",
    "show",
    "summarize",
]

_PREVIEW = 10
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# A table, its sorted copy and its results must fit into memory together.
_COPIES_OF_TABLE = 3

# The options that Spark, which reads files by itself, does not know.
_IN_PROCESS = (
    *("plot", "memory", "missing", "decimal", "time_unit"),
    *("format", "at", "at_on", "at_by"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command, except those that make a `Spec`."""
    add_file_options(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the table there, in the format of its ending, or to - (standard "
        f"output); without it, the first {_PREVIEW} rows are shown",
    )
    parser.add_argument(
        "--at",
        metavar="FILE",
        help="give results at the times and keys in this file, instead of one per row",
    )
    parser.add_argument(
        "--at-on", metavar="COLUMN", help="its column of times, if not named as --on"
    )
    parser.add_argument(
        "--at-by",
        action="append",
        metavar="COLUMN",
        help="its key column, if not named as --by (may be repeated, in their order)",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="draw series and aggregates of the key with the most rows (.png, .svg, "
        ".pdf)",
    )
    parser.add_argument(
        "--key",
        action="append",
        metavar="KEY",
        help="the key to draw instead, the values of several columns with colons "
        "between them (may be repeated: a line per key)",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="keep to about this much memory (200MB or more) besides the rows in the "
        "longest window of one key, and sort the file on disk; 'unlimited' reads the "
        "whole file. By default a file too large for the free memory is sorted on disk",
    )
    parser.add_argument(
        "--any-order",
        action="store_true",
        help="for files sorted on disk: write rows by key and time instead of in the "
        "order of the file, which is faster",
    )
    add_threads(parser)
    parser.add_argument(
        "--engine",
        choices=("local", "spark"),
        default="local",
        help="where to compute (default: local); spark reads and writes Parquet, CSV "
        "and JSON lines, also folders of them, and writes a folder",
    )
    parser.add_argument(
        "--then-by",
        action="append",
        metavar="COLUMN",
        help="with --engine spark: a column that orders rows of equal time (may be "
        "repeated)",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="no progress and no summary"
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Adds the option for the number of threads."""
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads for a table in memory: they divide its keys, or its windows "
        "(default: one per core)",
    )


def explain(options: argparse.Namespace, spec: Spec | Features) -> None:
    """Prints how the table in a file would be computed.

    Raises:
        SpecError: If the spec does not fit the file.
    """
    from slidewise.io.bad_values import batches_of, naming_bad_value
    from slidewise.table import explain

    check_ends(options, options.file)
    with spooled(options):
        table = read(options, spec)
        form = delimited_form(options, files_of(options.file))
        with naming_bad_value(spec, batches_of(table), form):
            print(explain.explain(table, spec, threads=options.threads))


def read(
    options: argparse.Namespace,
    spec: Spec | Features,
    progress: Callable[[float], None] | None = None,
) -> pa.Table:
    """The table in the files of a command."""
    from slidewise.io import readers

    files = files_of(options.file)
    if not files:
        raise SpecError(f"there is no file to read in {options.file!r}")
    tables = []
    for file in files:
        table = _read(options, file, spec.times, spec.by, progress)
        tables.append(readers.with_empty_times(table, file, spec))
    return joined(tables)


def _read(
    options: argparse.Namespace,
    file: str | Path,
    times: Sequence[str],
    by: Sequence[str],
    progress: Callable[[float], None] | None = None,
) -> pa.Table:
    from slidewise.io import readers

    return readers.read_table(
        file,
        on=times,
        by=by,
        time_format=options.time_format,
        time_unit=options.time_unit,
        form=read_form(options),
        progress=progress,
    )


def run(options: argparse.Namespace, spec: Spec | Features) -> None:
    """Runs the command."""
    from slidewise.cli import plots

    if options.plot is not None:
        plots.check(options.plot)
    elif options.key is not None:
        raise SpecError("--key is for --plot: add it, or leave the key out")
    for name in ("at_on", "at_by"):
        if getattr(options, name) is not None and options.at is None:
            flag = "--" + name.replace("_", "-")
            raise SpecError(f"{flag} is for --at: add it, or leave {flag} out")
    if options.engine == "local":
        check_ends(options, options.file, options.output)
        check_output(options.output)
    if options.engine == "spark":
        if options.threads is not None:
            raise SpecError(
                "--threads does not go with --engine spark, which has cores"
            )
        _on_spark(options, spec)
        return
    if options.then_by is not None:
        raise SpecError("--then-by is for --engine spark: a file has an order")
    with spooled(options):
        memory = _memory(options, spec)
        if memory is None:
            _in_memory(options, spec)
        else:
            _on_disk(options, spec, memory)


def check_output(output: str | None) -> None:
    """Refuses an output that cannot be written, before any work is done."""
    from slidewise.io.readers import written_kind

    if output in (None, "-"):
        return
    file = Path(output)
    written_kind(file)
    if not file.resolve().parent.is_dir():
        raise SpecError(f"-o {file}: there is no folder {str(file.parent)!r}")


def _in_memory(options: argparse.Namespace, spec: Spec | Features) -> None:
    from slidewise.cli import plots
    from slidewise.io.bad_values import batches_of, naming_bad_value
    from slidewise.table.rolling import rolling

    plotted: Any = spec
    if options.plot is not None:
        plotted = only_spec(
            spec, "--plot", "give one of its Specs in a file of its own"
        )
    stages = Stages(quiet=options.quiet)
    with stages.stage("reading") as done:
        table = read(options, spec, done)
        points = _points(options, spec)
    form = delimited_form(options, files_of(options.file))
    naming = naming_bad_value(spec, batches_of(table), form)
    with stages.stage("rolling"), naming:
        given = {"at": points, "at_on": options.at_on, "at_by": options.at_by}
        table = rolling(table, spec, **given, threads=options.threads)
    if options.output is not None:
        with stages.stage("writing"):
            write(table, options)
    elif options.plot is None:
        names = [options.at_on or spec.on, *spec.results]
        show(table, [*(options.at_by or spec.by), *names])
    if options.plot is not None:
        with stages.stage("drawing"):
            plots.draw_rolling(table, plotted, options.plot, options.key or ())
    _summarize(table.num_rows, spec, options, stages)


def _points(options: argparse.Namespace, spec: Spec | Features) -> pa.Table | None:
    """The times and keys of `--at`."""
    if options.at is None:
        return None
    if options.plot is not None:
        raise SpecError("--plot draws the rows of a file: leave --at out, or --plot")
    on, by = options.at_on or spec.on, options.at_by or spec.by
    return _read(options, options.at, [on], by)


def _on_disk(options: argparse.Namespace, specs: Spec | Features, memory: int) -> None:
    from slidewise.io.out_of_core import LEAST_MEMORY, rolling_file

    way_out = "give --memory unlimited, which reads the whole file"
    spec: Spec = only_spec(specs, "a file that is sorted on disk", way_out)
    if options.output in (None, "-") or options.plot is not None:
        raise SpecError(
            f"{options.file} is sorted on disk: give -o FILE for the results, and no "
            "--plot, which draws a table in memory (--memory unlimited reads the whole "
            "file)"
        )
    if options.threads is not None:
        raise SpecError(
            f"{options.file} is sorted on disk by one thread: leave --threads out "
            "(--memory unlimited reads the whole file)"
        )
    if memory < LEAST_MEMORY and options.memory and not options.quiet:
        least = LEAST_MEMORY >> 20
        print(
            f"slidewise: note: --memory {options.memory} is not kept to: {least}MB is "
            "the least that is",
            file=sys.stderr,
        )
    stages = Stages(quiet=options.quiet)
    count = rolling_file(
        options.file,
        options.output,
        spec,
        memory=memory,
        time_format=options.time_format,
        time_unit=options.time_unit,
        form=read_form(options),
        in_order=not options.any_order,
        stage=stages.stage,
    )
    _summarize(count, spec, options, stages)


def _memory(options: argparse.Namespace, spec: Spec | Features) -> int | None:
    """The bytes to use where a file is sorted on disk; None to read it whole."""
    if options.memory == "unlimited":
        return None
    if is_pattern(options.file) or Path(options.file).is_dir() or options.at:
        if options.memory is not None:
            raise SpecError(
                "--memory sorts one file on disk, without --at: give one, or leave "
                "--memory out"
            )
        return None
    if options.memory is not None:
        return _size(options.memory)
    if any(part.unique_by for part in parts_of(spec)):
        return None
    free = _free_memory()
    can_sort = options.output not in (None, "-") and options.plot is None
    if free is None or not can_sort or not Path(options.file).exists():
        return None
    if Path(options.file).stat().st_size * _COPIES_OF_TABLE < free // 16:
        return None  # even if it is compressed
    from slidewise.io.scanner import can_scan, table_bytes

    file = Path(options.file)
    if not can_scan(file):
        return None
    held = table_bytes(file)
    return free // 4 if held * _COPIES_OF_TABLE > free else None


def _size(text: str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.I)
    if match is None:
        raise SpecError(f"--memory takes a size such as 500MB or 4GB, got {text!r}")
    size = int(float(match[1]) * _SIZES[match[2].upper()])
    if size == 0:
        raise SpecError(
            f"--memory {text} leaves no memory at all: give what may be taken, such as "
            "500MB"
        )
    return size


def _free_memory() -> int | None:
    """The bytes of free memory, where the system reports them."""
    try:
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
        free = int(meminfo.partition("MemAvailable:")[2].split()[0]) << 10
    except (OSError, ValueError, IndexError):
        return None
    group = Path("/sys/fs/cgroup")
    try:
        limit = int(group.joinpath("memory.max").read_text(encoding="ascii"))
        held = int(group.joinpath("memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return free  # no limit, or none that can be read
    return max(min(free, limit - held), 0)


def _on_spark(options: argparse.Namespace, spec: Spec | Features) -> None:
    try:
        from slidewise.cli.spark import roll
    except ImportError as error:
        raise SpecError(
            f"--engine spark needs PySpark ({error}): pip install 'slidewise[spark]'"
        ) from error
    for option in _IN_PROCESS:
        if getattr(options, option) is not None:
            flag = "--" + option.replace("_", "-")
            raise SpecError(f"{flag} does not go with --engine spark: leave it out")
    stages = Stages(quiet=options.quiet)
    with stages.stage("rolling"):
        shown = roll(
            options.file,
            options.output,
            spec,
            options.then_by,
            _PREVIEW,
            options.time_format,
            read_form(options),
        )
    if shown is not None:
        print_table(shown, _shown(spec))
    if not options.quiet and options.output is not None:
        print(f"wrote {options.output}", file=sys.stderr)


def show(table: pa.Table, names: Sequence[str]) -> None:
    """Prints the first rows of some columns of a table."""
    print_table(table.slice(0, _PREVIEW), names)
    if table.num_rows > _PREVIEW:
        print(f"... and {table.num_rows - _PREVIEW:,} more rows: -o FILE for all")


def _shown(spec: Spec | Features) -> list[str]:
    return [*spec.by, spec.on, *spec.results]


def _summarize(
    count: int, spec: Spec | Features, options: argparse.Namespace, stages: Stages
) -> None:
    if not options.quiet:
        speed = format_rate(count * len(spec.results), stages.seconds["rolling"])
        summarize(count, "row", spec.results, stages, f"; {speed} answers")
        print_written(options.output, options.plot)


def summarize(
    count: int, noun: str, results: Sequence[str], stages: Stages, more: str = ""
) -> None:
    """Prints how many results there are, and how long each stage took."""
    times = ", ".join(f"{name} {sec:.2f} s" for name, sec in stages.seconds.items())
    print(
        f"{format_count(count, noun)} × {format_count(len(results), 'result')} "
        f"({', '.join(results)}): {times}{more}",
        file=sys.stderr,
    )


def print_written(*files: str | None) -> None:
    """Prints which files were written."""
    for written in files:
        if written not in (None, "-"):
            print(f"wrote {written}", file=sys.stderr)
