"""What the native core knows of its algorithms, and what to say if one does not fit."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import slidewise._core as _core
from slidewise.errors import SpecError
from slidewise.spec.durations import Length, parse_length

__all__ = [
    "FACTS",
    "Facts",
    "checked_name",
    "checked_options",
    "law_error",
]


@dataclass(frozen=True, slots=True)
class Facts:
    """An algorithm as the core has it.

    Attributes:
        name: As in `Window(..., algorithm=name)`.
        in_order: Whether it takes entries in order only.
        law: The law it needs beside associativity, a key of `LAWS`, or None.
        ranges: Whether it answers for parts of the window.
        shared: Whether it serves many ranges over one stream, as `SharedWindow` has.
        parameters: Name, default and allowed values (None: from 1 on) of each.
    """

    name: str
    in_order: bool
    law: str | None
    ranges: bool
    shared: bool
    parameters: tuple[tuple[str, int, tuple[int, ...] | None], ...]


def _read() -> dict[str, Facts]:
    found = {}
    for name, in_order, law, ranges, shared, given in _core.algorithms():
        parameters = tuple(
            (parameter, default, None if allowed is None else tuple(allowed))
            for parameter, default, allowed in given
        )
        found[name] = Facts(name, in_order, law, ranges, shared, parameters)
    return found


FACTS = _read()

# What each law asks of an aggregation.
LAWS = {
    "inverse": "an inverse (it subtracts what leaves)",
    "selection": "results that are one of the values (as max gives)",
    "inverse or selection": "an inverse, or results that are one of the values (as max "
    "gives)",
}


def checked_name(name: str, shared: bool = False) -> str:
    """The name of an algorithm, or "auto".

    Args:
        name: What the user gave.
        shared: Whether it is to serve many ranges over one stream.

    Raises:
        SpecError: If there is none of that name, or it serves one range only.
    """
    fits = [other for other, facts in FACTS.items() if facts.shared or not shared]
    if name == "auto" or name in fits:
        return name
    there = ", ".join(["auto", *fits])
    if name in FACTS:
        raise SpecError(
            f"algorithm {name!r} serves one range only: for several over one stream "
            f"there are {there}"
        )
    raise SpecError(f"unknown algorithm {name!r}; there are {there}")


def checked_options(
    algorithm: str, given: Mapping[str, Any]
) -> tuple[tuple[str, int | Length], ...]:
    """Parameters of an algorithm, in the order in which it names them.

    Args:
        algorithm: Its name.
        given: What the user gave. Those that are lengths of time come as `last=` does,
            or as a `Length`.

    Raises:
        SpecError: If it has none of that name, or it cannot have that value.
    """
    parameters = FACTS[algorithm].parameters if algorithm in FACTS else ()
    known = {name: allowed for name, _, allowed in parameters}
    for name in given:
        if name not in known:
            raise SpecError(_no_parameter(name, algorithm, known))
    return tuple(
        (name, _checked(name, given[name], allowed))
        for name, allowed in known.items()
        if name in given
    )


def _checked(name: str, value: Any, allowed: Sequence[int] | None) -> int | Length:
    if name == "latency":
        return _time(name, value)
    try:
        number = operator.index(value)
    except TypeError:  # what has no whole number, or is an array of several
        number = -1
    if not (1 <= number < 2**63 if allowed is None else number in allowed):
        raise SpecError(f"{name}= takes {_choices(allowed)}; got {value!r}")
    return number


def _time(name: str, value: Any) -> Length:
    length = value if isinstance(value, Length) else parse_length(value, name)
    if length.kind == "rows":
        raise SpecError(f"{name}= takes a duration or an int, not a number of rows")
    return length


def _no_parameter(name: str, algorithm: str, known: Iterable[str]) -> str:
    has = [
        repr(facts.name)
        for facts in FACTS.values()
        if name in (parameter for parameter, *_ in facts.parameters)
    ]
    if has:
        return f"{name}= is for algorithm={' or '.join(has)}, not {algorithm!r}"
    takes = ", ".join(f"{one}=" for one in known) or "none"
    given = f"there is no argument {name}="
    return f"{given}; algorithm {algorithm!r} takes {takes} of its own"


def _choices(allowed: Sequence[int] | None) -> str:
    if allowed is None:
        return "an int from 1 to 2**63 - 1"
    if tuple(allowed) == (0, 1):
        return "True or False"
    return "one of " + ", ".join(map(str, allowed))


def law_error(
    algorithm: str, law: str, lacking: str, shared: bool = False
) -> SpecError:
    """What to say to those whose aggregations lack a law."""
    fits = (facts for facts in FACTS.values() if facts.shared or not shared)
    others = [facts.name for facts in fits if facts.law is None]
    return SpecError(
        f"algorithm {algorithm!r} needs {LAWS[law]}, which {lacking} cannot offer; "
        f"without it there are auto, {', '.join(others)}"
    )
