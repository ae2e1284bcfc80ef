"""The `slidewise` command.

Parses a command line into a `Spec` and options, and runs them. An error of the user is
one line on standard error, with exit code 2. Results go to standard output, progress
and summaries to standard error.
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Container, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, NoReturn

import pyarrow as pa

from slidewise.aggregations import KINDS, Aggregation, sketches
from slidewise.cli import hopping, rolling, stream
from slidewise.cli.windows import (
    Window,
    are_hopping,
    parse_length,
    parse_window,
    split_colons,
)
from slidewise.errors import (
    Argument,
    ResultOverflowError,
    SlidewiseError,
    SpecError,
)
from slidewise.hints import suggest_name
from slidewise.spec.data_driven import Delta, Landmark
from slidewise.spec.durations import format_duration
from slidewise.spec.query import Query
from slidewise.spec.spec import NAN, OVERFLOW, TIES, Spec
from slidewise.spec.windows import CLOSED, WindowSpec
from slidewise.window.algorithms import algorithms

__all__ = ["main", "parse_aggregation", "parse_window"]

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
  slidewise stream incoming/ --on starttime --by "start station id" --window 1h \\
      --agg n=count --late 10m --checkpoint state/ -o features/
"""


class _UsageError(Exception):
    """The command line itself is wrong."""


class _Parser(argparse.ArgumentParser):
    """Raises where argparse would print its usage and leave."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message} (see {self.prog} --help)")


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
    """An argument of a function, by the option that stands for it.

    Example:
        >>> _as_option(["late_rows"], Argument("late_rows", "flag"))
        '--late-rows flag'
        >>> _as_option(["window"], Argument("windows", "0h"))
        '--window 0h'
        >>> _as_option(["window"], Argument("offset"))
        'offset='
    """
    names = (argument.name, argument.name.removesuffix("s"))
    name = next((name for name in names if name in options), None)
    if name is None:
        return str(argument)
    option = "--" + name.replace("_", "-")
    if argument.value is ...:
        return option
    return f"{option} {shlex.quote(str(argument.value))}"


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


def parse_aggregation(text: str) -> tuple[str, Aggregation]:
    r"""Reads an aggregation of the command line: `name=kind[:column[:by]]`.

    A colon in a column's name is written `\:`. For `variance` and its like the third
    part is the ddof, for `top_k` and `bottom_k` it is k, for `quantile` it is q; for
    sketches it is what they need most: capacity, k, q or error.

    Raises:
        SpecError: If it does not have that form or the kind is unknown.

    Example:
        >>> parse_aggregation("avg=mean:tripduration")
        ('avg', mean('tripduration'))
        >>> parse_aggregation("who=arg_max:name:price")
        ('who', arg_max('name', by='price'))
    """
    name, equals, what = text.partition("=")
    if not equals or not name or not what:
        raise SpecError(
            f"cannot read --agg {text!r}: write it name=kind:column, such as "
            "n=count or avg=mean:price"
        )
    try:
        agg = _aggregation(what)
        agg.check_columns()
    except SpecError as error:
        raise SpecError(
            f"--agg {text!r}: {error} (write it name=kind:column:by)"
        ) from None
    return name, agg


def _aggregation(what: str) -> Aggregation:
    parts = split_colons(what)
    if len(parts) > 3:
        raise SpecError("too many parts, and a colon in a column's name is written \\:")
    kind, of, last = (*parts, "", "")[:3]
    if kind in _SKETCHES:
        return _sketch(kind, of or None, last)
    if kind not in KINDS:
        raise _unknown(kind)
    if kind in ("top_k", "bottom_k"):
        return Aggregation(kind, of or None, k=_number(last or "1", "k"))
    if last and kind in ("variance", "stddev", "skewness", "kurtosis"):
        return Aggregation(kind, of or None, ddof=_number(last, "ddof"))
    if last and kind == "quantile":
        return Aggregation(kind, of or None, q=_share(last, "q"))
    return Aggregation(kind, of or None, last or None)


def _unknown(kind: str) -> SpecError:
    known = (*KINDS, *_SKETCHES)
    meant = suggest_name(kind, known)
    hint = f" (did you mean {meant!r}?)" if meant in known else ""
    return SpecError(f"unknown aggregation {kind!r}{hint}; there are {' '.join(known)}")


_SKETCHES: dict[str, tuple[Callable[..., Aggregation], str]] = {
    "bloom": (sketches.bloom, "capacity"),
    "approx_count_distinct": (sketches.approx_count_distinct, "error"),
    "approx_quantile": (sketches.approx_quantile, "q"),
    "count_min": (sketches.count_min, "error"),
    "heavy_hitters": (sketches.heavy_hitters, "k"),
}


def _sketch(kind: str, of: str | None, last: str) -> Aggregation:
    make, what = _SKETCHES[kind]
    if not last:
        return make(of)
    value = _number(last, what) if what in ("capacity", "k") else _share(last, what)
    return make(of, **{what: value})


def _number(digits: str, what: str) -> int:
    if not digits.isascii() or not digits.isdigit():
        raise SpecError(f"the {what} is an integer, got {digits!r}")
    return int(digits)


def _share(digits: str, what: str) -> float:
    try:
        return float(digits)
    except ValueError:
        raise SpecError(f"the {what} is a number from 0 to 1, got {digits!r}") from None


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
    _add_algorithms(commands)
    return parser


def _add_rolling(commands: Any) -> None:
    parser = _command(
        commands, "rolling", "compute rolling features of a file", _rolling
    )
    parser.add_argument(
        "file", help="CSV, Parquet, Arrow/Feather, JSON lines or a JSON array"
    )
    _add_spec(parser)
    rolling.add_options(parser)


def _add_hopping(commands: Any) -> None:
    about = "compute a result per window of a file: hops, sessions, windows by rows"
    parser = _command(commands, "hopping", about, _hopping)
    parser.add_argument("file", help="as for rolling")
    _add_spec(parser)
    _add_every(parser)
    hopping.add_options(parser)


def _add_stream(commands: Any) -> None:
    parser = _command(
        commands, "stream", "compute rolling features of a stream, on Spark", _stream
    )
    _add_spec(parser)
    _add_every(parser)
    stream.add_options(parser)


def _add_spec(parser: argparse.ArgumentParser) -> None:
    """The options that make a `Spec`."""
    parser.add_argument(
        "--on", required=True, metavar="COLUMN", help="the column of event times"
    )
    parser.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a key column: each key has its own windows (may be repeated)",
    )
    parser.add_argument(
        "--window",
        action="append",
        required=True,
        metavar="WINDOW",
        help="90s, 15m, 1h, 7d, 100rows, or a number if the times are integers; "
        "landmark:FLAG (all since a row with a flag), delta:COLUMN:WIDTH (back to the "
        "first row that is too far); one result per window: '1h every 5m', "
        "'1h every 10rows', session:30m, until:FLAG (may be repeated)",
    )
    parser.add_argument(
        "--agg",
        action="append",
        required=True,
        metavar="NAME=KIND[:COLUMN[:BY]]",
        help="what to compute (may be repeated), such as n=count, avg=mean:price, "
        "who=arg_max:name:price, p99=quantile:delay:0.99, top=top_k:price:3; kinds: "
        f"{' '.join((*KINDS, *_SKETCHES))}",
    )
    parser.add_argument(
        "--arrival",
        metavar="COLUMN",
        help="the column of arrival times: each row sees only rows arrived by then",
    )
    parser.add_argument(
        "--closed",
        choices=CLOSED,
        help="which ends belong to a window (default: right; of hops left)",
    )
    parser.add_argument(
        "--offset",
        metavar="LENGTH",
        help="how much earlier windows end; how much later than the epoch hops begin",
    )
    parser.add_argument(
        "--ties",
        choices=TIES,
        default="peers",
        help="whether rows of equal time see one another (peers, the default) or only "
        "those above them (rows)",
    )
    parser.add_argument(
        "--nan",
        choices=NAN,
        default="propagate",
        help="what a NaN does (default: propagate); in CSV, NaN is a missing value",
    )
    parser.add_argument(
        "--overflow",
        choices=OVERFLOW,
        default="raise",
        help="what an integer result that does not fit does (default: raise)",
    )
    parser.add_argument(
        "--min-rows",
        type=int,
        default=0,
        metavar="N",
        help="windows with fewer values are null",
    )


def _add_every(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every",
        metavar="LENGTH",
        help="hopping windows: one result per key and window, a window every LENGTH "
        "(5m, or 10rows)",
    )
    parser.add_argument(
        "--empty",
        action="store_true",
        help="hopping windows: also those without rows, between a key's first and last",
    )


def _add_explain(commands: Any) -> None:
    parser = _command(
        commands, "explain", "describe what a rolling command would compute", _explain
    )
    parser.add_argument(
        "file",
        nargs="?",
        help="also describe how the table in this file would be computed",
    )
    _add_spec(parser)
    _add_every(parser)
    rolling.add_time_format(parser)
    rolling.add_threads(parser)


def _add_algorithms(commands: Any) -> None:
    about = "compare the algorithms: order, laws, costs, memory"
    parser = _command(commands, "algorithms", about, _algorithms)
    parser.add_argument("name", nargs="*", help="show all that is known of these")


def _command(commands: Any, name: str, about: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=f"{about[0].upper()}{about[1:]}.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def _aggregations(options: argparse.Namespace) -> dict[str, Aggregation]:
    pairs = [parse_aggregation(text) for text in options.agg]
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"--agg {name}=... is there twice: give each its own name")
    return dict(pairs)


def _spec(options: argparse.Namespace, *, hops: bool = False) -> Spec:
    """The spec of a command: a result per row, or if it hops per window."""
    windows = [parse_window(text) for text in options.window]
    shared: dict[str, Any] = {
        "on": options.on,
        "by": options.by or None,
        "aggs": _aggregations(options),
        "closed": options.closed,
        "offset": None if options.offset is None else parse_length(options.offset),
        "nan": options.nan,
        "overflow": options.overflow,
        "min_rows": options.min_rows,
    }
    if hops or getattr(options, "every", None) is not None or are_hopping(windows):
        return _hopping_spec(options, windows, shared)
    if getattr(options, "empty", False):
        raise SpecError("--empty is for hopping windows: add --every, or leave it out")
    shared["closed"] = options.closed or "right"
    rolling: Any = windows
    return Spec.make(
        windows=rolling, ties=options.ties, arrival=options.arrival, **shared
    )


def _hopping_spec(
    options: argparse.Namespace, windows: Sequence[Window], shared: dict[str, Any]
) -> Spec:
    """The spec of windows at a distance from one another, or that rows close."""
    unset = {"arrival": None, "ties": "peers"}
    for name, usual in unset.items():
        if getattr(options, name) != usual:
            raise SpecError(
                f"--{name} does not go with windows that have one result each: leave "
                "it out"
            )
    every = None if options.every is None else parse_length(options.every)
    given: Any = {"windows": windows, "every": every}
    if len(windows) == 1:  # no column has to name it
        window = windows[0]
        if isinstance(window, Query):
            slide = window.every
            window, every = window.range, slide
        given = {"window": window, "every": every}
    return Spec.make_hopping(empty=options.empty, **given, **shared)


def _stream(options: argparse.Namespace) -> None:
    spec = _spec(options)
    stream.check(options, spec)
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
    for text in options.window:
        if are_hopping([parse_window(text)]):
            raise SpecError(
                f"--window {shlex.quote(text)} has one result per window, not per row: "
                "use slidewise hopping"
            )
    rolling.run(options, _spec(options))


def _hopping(options: argparse.Namespace) -> None:
    for text in options.window:
        if isinstance(parse_window(text), Landmark | Delta):
            raise SpecError(
                f"--window {shlex.quote(text)} has one result per row, not per window: "
                "use slidewise rolling"
            )
    hopping.run(options, _spec(options, hops=True))


def _explain(options: argparse.Namespace) -> None:
    spec = _spec(options)
    print("\n".join(_describe(spec)))
    if options.file is not None:
        print()
        rolling.explain(options, spec)


def _describe(spec: Spec) -> list[str]:
    keys = ", ".join(spec.by)
    group = f"one group per {keys}" if keys else "all rows in one group"
    kind = "hopping" if spec.is_hopping else "rolling"
    lines = [f"{kind} over {spec.on}, {group}", "", "windows"]
    width = max(10, *(len(window.name) for window in spec.windows))
    lines += [f"  {one.name:<{width}} {_interval(one)}" for one in spec.windows]
    lines += ["", "aggregations"]
    lines += [f"  {name:<10} {agg!r}" for name, agg in spec.aggs]
    lines += [] if spec.is_hopping else ["", *_order(spec)]
    lines += ["", "missing values", f"  null is skipped, NaN: {spec.nan}"]
    if spec.min_rows:
        lines.append(f"  windows with fewer than {spec.min_rows} values are null")
    lines += ["", "results", f"  {', '.join(spec.results)}"]
    lines += [
        "",
        f"spec hash {spec.hash[:16]}: a checkpoint of a stream is tied to it, and any",
    ]
    return [*lines, "  change to the request changes it"]


def _order(spec: Spec) -> list[str]:
    lines = ["order"]
    if spec.arrival is not None:
        lines.append(
            f"  each row sees only what had arrived by its own {spec.arrival}: entries "
            "go into one FiBA tree per key in that order, however late"
        )
    elif spec.ties == "peers":
        lines.append("  each row sees its whole window; rows of equal time are peers")
    else:
        lines.append("  each row sees its whole window; of equal times, the rows above")
    return lines


def _interval(window: WindowSpec) -> str:
    flag = f"row where {window.column!r} is true"
    if window.is_session:
        return f"rows at most {window.label} apart"
    if window.kind == "until":
        return f"up to a {flag}"
    if window.kind == "landmark":
        return f"from the last {flag} on"
    if window.column:
        far = window.width or format_duration(window.length)
        return f"back to the first row whose {window.column!r} is more than {far} away"
    often = f", after every {window.every_rows} rows" if window.every_rows else ""
    if window.kind == "rows":
        return f"the last {window.length} rows, this one included{often}"
    left = "[" if window.closed in ("left", "both") else "("
    right = "]" if window.closed in ("right", "both") else ")"
    length = window.label.partition(" every ")[0]
    if window.every:
        return f"{left}end − {length}, end{right}, every {window.as_every.label}"
    return f"{left}t − {length}, t{right}{often}"


def _algorithms(options: argparse.Namespace) -> None:
    cards = algorithms()
    whole = "\n\n".join(str(cards[name]) for name in options.name)
    print(whole or cards)
