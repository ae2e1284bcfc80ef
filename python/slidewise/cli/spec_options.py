"""The options that make a `Spec`, or name the file of one."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import slidewise.aggregations as aggregations
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import RECORDS, kinds
from slidewise.cli.windows import parse_length, parse_window, split_colons
from slidewise.errors import SpecError
from slidewise.hints import suggest_name
from slidewise.spec.attributes import EXCLUDE, NAN, OVERFLOW, TIES
from slidewise.spec.durations import Rows, read_rows
from slidewise.spec.features import Features, load_specs
from slidewise.spec.given import only_spec
from slidewise.spec.naming import refuse_group
from slidewise.spec.query import Query
from slidewise.spec.spec import Spec
from slidewise.spec.windows.parse import CLOSED, are_hopping

__all__ = ["add_every", "add_spec", "parse_aggregation", "read_spec", "read_specs"]

_NEEDED = ("on", "window", "agg")
# The options that make a spec, by their names in a namespace.
_FLAGS = (
    *_NEEDED,
    "by",
    "arrival",
    "closed",
    "offset",
    "exclude",
    "ties",
    "nan",
    "overflow",
    "min_rows",
    "unique_by",
    "every",
    "empty",
    "names",
    "prefix",
    "fill",
    "where",
)


def add_spec(parser: argparse.ArgumentParser) -> None:
    """Adds the options that make a `Spec`."""
    parser.add_argument(
        "--spec",
        metavar="FILE",
        help="a Spec in a file (.json, .yaml), in place of the options that make one; "
        "rolling, explain and spec also take Features",
    )
    parser.add_argument("--on", metavar="COLUMN", help="the column of event times")
    parser.add_argument(
        "--by",
        action="append",
        metavar="COLUMN",
        help="a key column: each key has its own windows (may be repeated)",
    )
    parser.add_argument(
        "--window",
        action="append",
        metavar="WINDOW",
        help="90s, 15m, 1h, 7d, 100rows, or a number if the times are integers; "
        "calendar:1mo, to_date:1mo:ZONE, unbounded, trailing:30d:1h (from a full hour "
        "on), length:COLUMN, landmark:FLAG (all since a row with a flag), "
        "delta:COLUMN:WIDTH (back to the first row that is too far); one result per "
        "window: '1h every 5m', '1h every 10rows', session:30m, until:FLAG, "
        "cumulate:1d:1h (may be repeated)",
    )
    parser.add_argument(
        "--agg",
        action="append",
        metavar="NAME=KIND[:COLUMN[:BY]]",
        help="what to compute (may be repeated), such as n=count, avg=mean:price, "
        "who=arg_max:name:price, p99=quantile:delay:0.99, top=top_k:price:3; kinds: "
        f"{' '.join(kinds(every=True))}",
    )
    parser.add_argument(
        "--arrival",
        action="append",
        metavar="COLUMN",
        help="the column of arrival times: each row sees only rows arrived by then "
        "(may be repeated: the next one orders rows that are equal in those before)",
    )
    parser.add_argument(
        "--closed",
        choices=CLOSED,
        help="which ends belong to a window (default: right; of hops left)",
    )
    parser.add_argument(
        "--offset",
        metavar="LENGTH",
        help="how much earlier windows end, or hops begin after the epoch",
    )
    parser.add_argument(
        "--exclude",
        choices=EXCLUDE,
        help="leave the row itself out of its window; rows of its time stay",
    )
    parser.add_argument(
        "--ties",
        choices=TIES,
        help="whether rows of equal time see one another (peers, the default) or only "
        "those above them (rows)",
    )
    parser.add_argument(
        "--nan",
        choices=NAN,
        help="how NaN is treated (default: propagate); in CSV, NaN is a missing value",
    )
    parser.add_argument(
        "--overflow",
        choices=OVERFLOW,
        help="what to do if an integer result does not fit (default: raise)",
    )
    parser.add_argument(
        "--min-rows",
        type=int,
        metavar="N",
        help="windows with fewer values are null",
    )
    parser.add_argument(
        "--unique-by",
        action="append",
        metavar="COLUMN",
        help="a column of ids: of rows with equal keys and ids, the first to arrive "
        "counts (may be repeated)",
    )
    parser.add_argument(
        "--names",
        metavar="TEXT",
        help="the names of result columns, with {agg} and {window} in it (default: "
        "'{agg}_{window}'; of windows that have one result each '{agg}')",
    )
    parser.add_argument(
        "--prefix", metavar="TEXT", help="a text before the name of each result column"
    )
    parser.add_argument(
        "--fill",
        action="append",
        metavar="[NAME=]VALUE",
        help="a value in place of null results, of one aggregation (may be repeated) "
        "or of all",
    )
    parser.add_argument(
        "--where",
        action="append",
        metavar="[NAME=]COLUMN",
        help="a column of true and false: only rows where it is true count, for one "
        "aggregation (may be repeated) or for all",
    )


def add_every(parser: argparse.ArgumentParser) -> None:
    """Adds the options of hopping windows."""
    parser.add_argument(
        "--every",
        metavar="LENGTH",
        help="hopping windows: one result per key and window, a window every LENGTH "
        "(5m, or 10rows)",
    )
    parser.add_argument(
        "--empty",
        action="store_true",
        default=None,
        help="hopping windows: also those without rows, between a key's first and last",
    )


def _aggregations(options: argparse.Namespace) -> dict[str, Aggregation]:
    pairs = [parse_aggregation(text) for text in options.agg]
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"--agg {name}=... is there twice: give each its own name")
    return dict(pairs)


def _conditioned(
    aggs: dict[str, Aggregation], texts: Sequence[str]
) -> dict[str, Aggregation]:
    """Aggregations with the columns of `--where`."""
    for text in texts:
        name, equals, column = text.partition("=")
        if equals and name not in aggs:
            raise SpecError(
                f"--where {text!r} names no --agg; there are {', '.join(aggs)}"
            )
        for each in [name] if equals else [*aggs]:
            aggs[each] = replace(aggs[each], where=column if equals else text)
    return aggs


def read_specs(
    options: argparse.Namespace, *, hops: bool | None = None
) -> Spec | Features:
    """The spec of a command, from its options or from a file, which may have Features.

    Where there is a file, the options that make a spec are removed. `hops` says whether
    the command has a result per window, not per row; None for either.
    """
    if options.spec is not None:
        return _from_file(options, hops)
    spec = _from_options(options, hops)
    refuse_group(spec.names)
    return spec


def read_spec(options: argparse.Namespace, *, hops: bool | None = None) -> Spec:
    """As `read_specs`, for a command that does not take Features."""
    way_out = "give each Spec in a file of its own"
    command, specs = f"slidewise {options.command}", read_specs(options, hops=hops)
    spec: Spec = only_spec(specs, command, way_out)
    return spec


def _from_options(options: argparse.Namespace, hops: bool | None) -> Spec:
    missing = [f"--{name}" for name in _NEEDED if getattr(options, name) is None]
    if missing:
        raise SpecError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: "
            "give what to compute, or --spec FILE"
        )
    values = ((name, getattr(options, name, None)) for name in _FLAGS)
    given: dict[str, Any] = {name: of for name, of in values if of is not None}
    windows = [parse_window(text) for text in given.pop("window")]
    del given["agg"]
    aggs = _conditioned(_aggregations(options), given.pop("where", ()))
    given |= {"windows": windows, "aggs": aggs}
    if "fill" in given:
        given["fill"] = _fill(given["fill"])
    for name in ("offset", "every"):
        if name in given:
            given[name] = parse_length(given[name])
    if not (hops or "every" in given or are_hopping(windows)):
        if "empty" in given:
            raise SpecError(
                "--empty is for hopping windows: add --every, or leave it out"
            )
        return Spec.make(**given)
    for name in ("arrival", "exclude", "ties"):
        if given.pop(name, "peers") != "peers":
            raise SpecError(
                f"--{name} does not go with windows that have one result each: leave "
                "it out"
            )
    if len(windows) == 1:  # no column has to name it
        (window,) = given.pop("windows")
        if isinstance(window, Query):
            given["every"], window = window.every, window.range
        given["window"] = window
    return Spec.make_hopping(**given)


def _fill(texts: Sequence[str]) -> Any:
    """The value of `fill=` that `--fill` gives, once or several times."""
    pairs = [text.partition("=") for text in texts]
    if all(equals for _, equals, _ in pairs):
        return {name: _filling(value) for name, _, value in pairs}
    if len(texts) > 1:
        raise SpecError(
            "--fill is there twice: give one value, or --fill NAME=VALUE for each"
        )
    return _filling(texts[0])


def _filling(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _from_file(options: argparse.Namespace, hops: bool | None) -> Spec | Features:
    given = [name for name in _FLAGS if getattr(options, name, None) is not None]
    if given:
        flags = ", ".join("--" + name.replace("_", "-") for name in given)
        raise SpecError(
            f"{flags} belong{'s' * (len(given) == 1)} in {options.spec}: give --spec "
            "or the options that make one, not both"
        )
    for name in _FLAGS:
        if hasattr(options, name):
            delattr(options, name)
    spec = load_specs(options.spec)
    if isinstance(spec, Spec):
        refuse_group(spec.names)
    if hops is not None and hops != spec.is_hopping:
        per, command = ("window", "hopping") if spec.is_hopping else ("row", "rolling")
        raise SpecError(
            f"the windows of {options.spec} have one result per {per}: use slidewise "
            f"{command}"
        )
    return spec


def parse_aggregation(text: str) -> tuple[str, Aggregation]:
    r"""Reads an aggregation of the command line: `name=kind[:column[:by]]`.

    A colon in a column's name is written `\:`. For `variance` and its like the third
    part is the ddof, for `top_k` and its like it is k, for `quantile` it is q, or
    several as `0.5,0.99`, for `histogram` its edges, written so, for `value_counts` the
    most values, for `rate` its unit, for `decayed_sum` and its like the half-life, for
    `integral` its hold; for sketches it is their main parameter: capacity, k, q or
    error.

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
            f"--agg {text!r}: {error} (write {_written(name, what)})"
        ) from None
    return name, agg


def _written(name: str, what: str) -> str:
    """How an aggregation that cannot be read is written.

    Example:
        >>> _written("avg", "mean(km)"), _written("p", "quantile:km:99")
        ('avg=mean:km', 'p=quantile:COLUMN:Q')
        >>> _written("s", "sum:km:where=paid")
        's=sum:COLUMN, and --where s=paid'
    """
    called = re.fullmatch(r"(\w+)\((.*)\)", what)
    if called is not None:
        column = called[2].strip("*'\"")
        return f"{name}={called[1]}{':' * bool(column)}{column}"
    parts = split_colons(what)
    kind, last, record = parts[0], parts[-1], RECORDS.get(parts[0])
    parts = [name + "=" + ("KIND" if record is None else kind), "COLUMN"]
    if record is None or record.second not in ("", "time"):
        parts.append("BY")
    elif record.parameters:
        parts.append(record.parameters[0].upper())
    _, where, flag = last.partition("where=")
    return ":".join(parts) + (f", and --where {name}={flag}" if where else "")


def _aggregation(what: str) -> Aggregation:
    parts = split_colons(what)
    if len(parts) > 3:
        raise SpecError("too many parts, and a colon in a column's name is written \\:")
    kind, of, last = (*parts, "", "")[:3]
    if kind not in kinds(every=True):
        raise _unknown(kind)
    record = RECORDS[kind]
    if record.second not in ("", "time") or not record.parameters:
        return Aggregation(kind, of or None, last or None)
    given: dict[str, Any] = {}
    if last:
        name = record.parameters[0]
        given[name] = _parameter(last, name)
    columns = [of] if of else []
    made: Aggregation = getattr(aggregations, kind)(*columns, **given)
    return made


def _unknown(kind: str) -> SpecError:
    known = kinds(every=True)
    hint = suggest_name(kind, known, _as_option).removeprefix(": ")
    shown = f" ({hint})" if hint else ""
    return SpecError(
        f"unknown aggregation {kind!r}{shown}; there are {' '.join(known)}"
    )


def _as_option(meant: str) -> str:
    """A kind that may have arguments, as in `--agg`."""
    kind, _, arguments = meant.removesuffix(")").partition("(")
    argument, _, value = arguments.partition("=")
    if argument == "ddof":
        return f"'{kind}:COLUMN:{value}'"
    return f"{kind!r} with {arguments} in a file for --spec" if value else repr(kind)


def _parameter(text: str, name: str) -> int | float | str | Rows | list[float]:
    if name == "edges" or (name == "q" and "," in text):
        return [_real(part, name) for part in text.split(",")]
    if name == "half_life" and (rows := read_rows(text)) is not None:
        return rows
    if name in ("unit", "half_life"):
        return int(text) if text.isascii() and text.isdigit() else text
    if name == "hold":
        return text
    return (_number if name in ("k", "top", "ddof", "capacity") else _real)(text, name)


def _number(digits: str, what: str) -> int:
    if not digits.isascii() or not digits.isdigit():
        raise SpecError(f"the {what} is an integer, got {digits!r}")
    return int(digits)


def _real(digits: str, what: str) -> float:
    try:
        return float(digits)
    except ValueError:
        meant = (
            "edges are numbers"
            if what == "edges"
            else f"{what} is a number from 0 to 1"
        )
        raise SpecError(f"the {meant}, got {digits!r}") from None
