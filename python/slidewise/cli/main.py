"""The `slidewise` command.

Parses a command line into a `Spec` and options, and runs them. An error of the user is
one line on standard error, with exit code 2. Results go to standard output, progress
and summaries to standard error.
"""

import argparse
import re
import shlex
import sys
from collections.abc import Container, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, NoReturn

import pyarrow as pa

from slidewise.cli import hopping, rolling, stream
from slidewise.cli.file_options import add_file_options
from slidewise.cli.spec_options import add_every, add_spec, read_spec, read_specs
from slidewise.cli.windows import parse_window
from slidewise.errors import (
    Argument,
    ResultOverflowError,
    SlidewiseError,
    SpecError,
)
from slidewise.hints import find_argument
from slidewise.spec.features import Features
from slidewise.spec.spec import Spec
from slidewise.spec.windows.base import Window
from slidewise.spec.windows.parse import are_hopping
from slidewise.table.unique import explain_ids
from slidewise.window.algorithms import algorithms

__all__ = ["main"]

_EXAMPLES = """\
examples:
  slidewise rolling trips.csv --on starttime --by "start station id" \\
      --window 1h --window 24h --agg n=count --agg avg=mean:tripduration \\
      --time-format "%m/%d/%y %H:%M:%S" -o features.parquet
  slidewise rolling ticks.parquet --on t --window 100rows --agg top=max:price
  slidewise rolling meter.csv --on t --window landmark:reset --agg used=sum:kwh
  slidewise hopping trips.csv ... --window "1h every 5m" --window "1d every 1h"
  slidewise rolling trips.csv ... --arrival stoptime     (as of each row's arrival)
  slidewise rolling years.parquet ... --memory 4GB -o features.parquet
  slidewise rolling years.parquet ... --engine spark -o features.parquet
  slidewise rolling trips.csv --spec features.yaml -o features.parquet
  slidewise stream incoming/ --on starttime --by "start station id" --window 1h \\
      --agg n=count --late 10m --checkpoint state/ -o features/
"""


class _UsageError(Exception):
    """The command line itself is wrong."""


class _Parser(argparse.ArgumentParser):
    """Raises an error; argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message} (see {self.prog} --help)")

    def parse_known_args(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuses unknown options, so that the error names the help of the command."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            meant = self._meant([one.partition("=")[0] for one in unknown])
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return known, []

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Keeps `--` as the value of an option, which Python 3.11 and 3.12 drop."""
        is_text = action.option_strings and action.type is None and not action.choices
        if is_text and arg_strings == ["--"]:
            return "--"
        return super()._get_values(action, arg_strings)

    def _meant(self, unknown: Sequence[str]) -> str:
        """The suggestion for unknown options, as the end of a message."""
        known = [
            option.removeprefix("--").replace("-", "_")
            for option in self._option_string_actions
            if option.startswith("--")
        ]
        words = [one[2:].replace("-", "_") for one in unknown if one.startswith("--")]
        found = (find_argument(word, known) for word in words)
        meant = [f"--{name.replace('_', '-')}" for name in found if name is not None]
        return f": did you mean {', '.join(meant)}?" if meant else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: As on a command line; by default those of the process.

    Returns:
        The exit code: 0; 2 for an error of the user or in a file; 130 after Ctrl-C.

    Example:
        >>> main(["explain", "--on", "t", "--window", "1h", "--agg", "n=count"])
        rolling over t, all rows in one group
        ...
        0
    """
    options = argparse.Namespace()
    try:
        _parser().parse_args(arguments, options)
        options.run(options)
    except (SpecError, ResultOverflowError) as error:
        return _fail(error.format(partial(_as_option, vars(options))))
    except (_UsageError, SlidewiseError, pa.ArrowException) as error:
        return _fail(str(error))
    except BrokenPipeError:
        # The reader of the output (head, less) has closed it.
        sys.stderr.close()
        return 0
    except OSError as error:
        return _fail(_file_message(error))
    except KeyboardInterrupt:
        print("slidewise: interrupted", file=sys.stderr)
        return 130
    return 0


def _as_option(options: Container[str], argument: Argument) -> str:
    """An argument of a function, as the option of the command.

    Example:
        >>> _as_option(["late_rows"], Argument("late_rows", "flag"))
        '--late-rows flag'
        >>> _as_option(["window"], Argument("windows", "0h"))
        '--window 0h'
        >>> _as_option(["window"], Argument("offset"))
        'offset='
        >>> _as_option(["arrival"], Argument("arrival", ("file", "line")))
        '--arrival file --arrival line'
    """
    names = (argument.name, argument.name.removesuffix("s"))
    name = next((name for name in names if name in options), None)
    if name is None:
        return str(argument)
    option = "--" + name.replace("_", "-")
    if argument.value is ...:
        return option
    given = argument.value
    values = given if isinstance(given, list | tuple) else [given]
    return " ".join(_with_value(option, str(value)) for value in values)


def _with_value(option: str, value: str) -> str:
    """An option and its value, which argparse may take for another option."""
    joint = "=" if re.match(r"-\D", value) else " "
    return f"{option}{joint}{shlex.quote(value)}"


def _fail(message: str) -> int:
    line = " ".join(message.split())
    print(f"slidewise: error: {line}", file=sys.stderr)
    return 2


def _file_message(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    if isinstance(error, FileNotFoundError):
        return f"there is no file or folder {str(error.filename)!r}"
    return f"{error.filename}: {error.strerror}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="slidewise",
        description="Exact sliding-window aggregates on event time.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"slidewise {version('slidewise')}"
    )
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    _add_rolling(commands)
    _add_hopping(commands)
    _add_stream(commands)
    _add_explain(commands)
    _add_spec_command(commands)
    _add_algorithms(commands)
    return parser


def _add_rolling(commands: Any) -> None:
    parser = _command(
        commands, "rolling", "compute rolling features of a file", _rolling
    )
    parser.add_argument(
        "file",
        help="CSV, Parquet, Arrow/Feather, JSON lines or a JSON array; a folder of "
        "such files, a pattern ('in/*.csv'), or - for standard input with --format",
    )
    add_spec(parser)
    rolling.add_options(parser)


def _add_hopping(commands: Any) -> None:
    about = "compute a result per window of a file: hops, sessions, windows by rows"
    parser = _command(commands, "hopping", about, _hopping)
    parser.add_argument("file", help="as for rolling")
    add_spec(parser)
    add_every(parser)
    hopping.add_options(parser)


def _add_stream(commands: Any) -> None:
    parser = _command(
        commands, "stream", "compute rolling features of a stream", _stream
    )
    add_spec(parser)
    add_every(parser)
    stream.add_options(parser)


def _add_explain(commands: Any) -> None:
    parser = _command(
        commands, "explain", "describe what a rolling command would compute", _explain
    )
    parser.add_argument(
        "file",
        nargs="?",
        help="also describe the computation of the table in this file",
    )
    add_spec(parser)
    add_every(parser)
    add_file_options(parser)
    rolling.add_threads(parser)


def _add_spec_command(commands: Any) -> None:
    about = "print the options that make a spec as JSON, for --spec"
    parser = _command(commands, "spec", about, _print_spec)
    add_spec(parser)
    add_every(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write it to this file: .json, .yaml"
    )


def _add_algorithms(commands: Any) -> None:
    about = "compare the algorithms: order, laws, costs, memory"
    parser = _command(commands, "algorithms", about, _algorithms)
    parser.add_argument("name", nargs="*", help="show the full description of these")


def _command(commands: Any, name: str, about: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=f"{about[0].upper()}{about[1:]}.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def _stream(options: argparse.Namespace) -> None:
    spec = read_spec(options)
    stream.check(options, spec)
    if options.engine == "local":
        from slidewise.cli.local_stream import run_local

        run_local(options, spec)
        return
    try:
        from slidewise.spark.versions import check_streams

        check_streams()  # first: older versions lack what the next module imports
        from slidewise.cli.spark_stream import run_stream
    except ImportError as error:
        raise SpecError(
            f"streams need PySpark ({error}): pip install 'slidewise[spark]'"
        ) from error
    run_stream(options, spec)


def _rolling(options: argparse.Namespace) -> None:
    for text in options.window or ():
        if are_hopping([parse_window(text)]):
            raise SpecError(
                f"--window {shlex.quote(text)} has one result per window, not per row: "
                "use slidewise hopping"
            )
    rolling.run(options, read_specs(options, hops=False))


def _hopping(options: argparse.Namespace) -> None:
    for text in options.window or ():
        window = parse_window(text)
        if isinstance(window, Window) and window.per_row and not window.by_calendar:
            raise SpecError(
                f"--window {shlex.quote(text)} has one result per row, not per window: "
                "use slidewise rolling"
            )
    hopping.run(options, read_spec(options, hops=True))


def _explain(options: argparse.Namespace) -> None:
    spec = read_specs(options)
    named = spec.parts if isinstance(spec, Features) else {"": spec}
    for name, part in named.items():
        if name:
            print(f"{name}:")
        print("\n".join(_describe(part)))
    if options.file is not None:
        print()
        rolling.explain(options, spec)


def _print_spec(options: argparse.Namespace) -> None:
    spec = read_specs(options)
    if options.output is None:
        print(spec.to_json(), end="")
    else:
        spec.save(options.output)


def _describe(spec: Spec) -> list[str]:
    keys = ", ".join(spec.by)
    group = f"one group per {keys}" if keys else "all rows in one group"
    kind = "hopping" if spec.is_hopping else "rolling"
    lines = [f"{kind} over {spec.on}, {group}", "", "windows"]
    width = max(10, *(len(window.name) for window in spec.windows))
    lines += [f"  {one.name:<{width}} {one.interval}" for one in spec.windows]
    lines += ["", "aggregations"]
    lines += [f"  {name:<10} {agg!r}" for name, agg in spec.aggs]
    lines += [] if spec.is_hopping else ["", *_order(spec)]
    for line in explain_ids(spec):
        lines += ["", "ids", f"  {line}"]
    lines += ["", "missing values", f"  null is skipped, NaN: {spec.nan}"]
    if spec.min_rows:
        lines.append(f"  windows with fewer than {spec.min_rows} values are null")
    lines += [f"  null results of {name} are {value!r}" for name, value in spec.fill]
    lines += ["", "results", f"  {', '.join(spec.results)}"]
    lines += [
        "",
        f"spec hash {spec.hash[:16]}: a checkpoint of a stream is tied to it, and any",
    ]
    return [*lines, "  change to the request changes it"]


def _order(spec: Spec) -> list[str]:
    lines = ["order"]
    if spec.arrival is not None:
        came = ", ".join(spec.arrivals)
        lines.append(
            f"  each row sees only what had arrived by its own {came}: "
            "entries go into one FiBA tree per key in that order, however late"
        )
    elif spec.ties == "peers":
        lines.append("  each row sees its whole window; rows of equal time are peers")
    else:
        lines.append("  each row sees its whole window; of equal times, the rows above")
    return lines


def _algorithms(options: argparse.Namespace) -> None:
    cards = algorithms()
    whole = "\n\n".join(str(cards[name]) for name in options.name)
    print(whole or cards)
