"""`slidewise hopping`: from a file to a table or a file with a row per window."""

import argparse

from slidewise.cli.file_options import add_file_options, delimited_form
from slidewise.cli.inputs import check_ends, files_of, spooled, write
from slidewise.cli.rolling import (
    add_threads,
    check_output,
    print_written,
    read,
    show,
    summarize,
)
from slidewise.cli.terminal import Stages
from slidewise.spec.outputs import outputs_of
from slidewise.spec.spec import Spec

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command, except those that make a `Spec`."""
    add_file_options(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the windows there, in the format of its ending, or to - (standard "
        "output); without it, the first of them are shown",
    )
    add_threads(parser)
    parser.add_argument(
        "--quiet", action="store_true", help="no progress and no summary"
    )


def run(options: argparse.Namespace, spec: Spec) -> None:
    """Runs the command.

    Memory: the whole table and its windows.
    """
    from slidewise.io.bad_values import batches_of, naming_bad_value
    from slidewise.table.hopping import hopping_spec

    check_ends(options, options.file, options.output)
    check_output(options.output)
    stages = Stages(quiet=options.quiet)
    with stages.stage("reading") as done, spooled(options):
        table = read(options, spec, done)
        form = delimited_form(options, files_of(options.file))
    naming = naming_bad_value(spec, batches_of(table), form)
    with stages.stage("hopping"), naming:
        windows = hopping_spec(table, spec, threads=options.threads)
    if options.output is not None:
        with stages.stage("writing"):
            write(windows, options)
    else:
        show(windows, [*spec.by, *spec.results])
    if not options.quiet:
        results = [one.column for one in outputs_of(spec)]
        summarize(windows.num_rows, "window", results, stages)
        print_written(options.output)
