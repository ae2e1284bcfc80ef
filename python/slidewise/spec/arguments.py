"""Checks of arguments that several specifications share."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slidewise.aggregations import Aggregation
from slidewise.aggregations.scalars import BYTES, as_int
from slidewise.errors import Argument, SpecError, describe_value
from slidewise.spec.durations import read_half_life

__all__ = [
    "TWICE",
    "check_aggs",
    "check_arrival",
    "check_bool",
    "check_column_name",
    "check_columns",
    "check_min_rows",
    "named_aggs",
    "one_of",
    "refuse_duplicates",
]


def check_column_name(value: object, argument: str) -> str:
    """Checks the name of a column, and returns it."""
    if not isinstance(value, str):
        raise SpecError(
            Argument(argument), f" takes the name of a column, got {value!r}"
        )
    return value


def check_bool(value: object, argument: str) -> None:
    """Refuses a value that is neither true nor false."""
    if not isinstance(value, bool):
        raise SpecError(Argument(argument), f" takes True or False, got {value!r}")


def one_of(value: object, argument: str, allowed: tuple[str, ...]) -> str:
    """Checks the value of an argument that takes one of some words, and returns it.

    Example:
        >>> one_of("skip", "nan", ("propagate", "skip", "raise"))
        'skip'
    """
    if not isinstance(value, str) or value not in allowed:  # arrays compare otherwise
        raise SpecError(
            Argument(argument), f" is one of {', '.join(allowed)}; got {value!r}"
        )
    return value


TWICE = (
    "the result column {} would occur twice: give each aggregation a different name, "
    "and each window once"
)


def refuse_duplicates(names: Iterable[str], message: str = TWICE) -> None:
    """Refuses duplicate result columns."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SpecError(message.format(repr(name)))
        seen.add(name)


def check_columns(given: str | Sequence[str] | None, argument: str) -> tuple[str, ...]:
    """Checks the columns of an argument that takes one or several; each once.

    Example:
        >>> check_columns("id", "by"), check_columns(None, "then_by")
        (('id',), ())
    """
    if given is None:
        return ()
    names: object = (given,) if isinstance(given, str) else given
    if not isinstance(names, Iterable) or isinstance(names, Mapping | BYTES):
        raise SpecError(
            Argument(argument), f" takes a column or a list of columns, got {given!r}"
        )
    return tuple(dict.fromkeys(check_column_name(name, argument) for name in names))


def check_arrival(
    arrival: str | Sequence[str] | None,
) -> str | tuple[str, ...] | None:
    """Checks `arrival=`; returns its column, or its columns if they are several.

    Example:
        >>> check_arrival(["batch", "offset"]), check_arrival(["batch"])
        (('batch', 'offset'), 'batch')
    """
    if arrival is None:
        return None
    given: object = (arrival,) if isinstance(arrival, str) else arrival
    # A set has no order.
    if not isinstance(given, Sequence) or isinstance(given, BYTES):
        raise SpecError(
            Argument("arrival"),
            f" takes a column, or a list of columns in order, got {arrival!r}",
        )
    if not given:
        raise SpecError(
            Argument("arrival", arrival),
            " names no column: name one or several, or leave it out",
        )
    names = tuple(check_column_name(name, "arrival") for name in given)
    for name, count in Counter(names).items():
        if count > 1:
            raise SpecError(
                Argument("arrival", names), f" names {name!r} twice: name it once"
            )
    return names if len(names) > 1 else names[0]


def check_aggs(aggs: Mapping[str, Aggregation]) -> tuple[tuple[str, Aggregation], ...]:
    """Checks `aggs=`, and returns its items."""
    if not isinstance(aggs, Mapping):
        raise SpecError(
            Argument("aggs"),
            " takes a mapping from names to aggregations, such as {'n': sw.count()}, "
            f"got {describe_value(aggs)}",
        )
    named = named_aggs(aggs)
    for _, agg in named:
        agg.check_columns()
        if "half_life" in agg.record.parameters:
            read_half_life(agg.half_life)
    return named


def named_aggs(
    aggs: Mapping[str, Aggregation],
) -> tuple[tuple[str, Aggregation], ...]:
    """Checks the names and values of `aggs=`, and returns its items, one per result."""
    if not aggs:
        raise SpecError(
            Argument("aggs"), " is empty: give at least one, such as {'n': sw.count()}"
        )
    for name, agg in aggs.items():
        if not isinstance(name, str):
            raise SpecError(
                Argument("aggs"),
                f" names an aggregation {name!r}: a name is a str, such as "
                f"{str(name)!r}",
            )
        if not isinstance(agg, Aggregation):
            raise SpecError(
                f"aggs[{name!r}] is not an aggregation: {describe_value(agg)}; "
                "give one such as sw.count()"
            )
    each = [one for name, agg in aggs.items() for one in agg.each_share(name).items()]
    named = [(name, agg) for name, agg in each if name is not None]
    refuse_duplicates(name for name, _ in named)
    return tuple(named)


def check_min_rows(value: Any) -> int:
    """Checks `min_rows=`, and returns it."""
    number = as_int(value)
    if number is None or not 0 <= number < 2**63:
        raise SpecError(
            Argument("min_rows"), f" takes an int from 0 to 2**63 - 1; got {value!r}"
        )
    return number
