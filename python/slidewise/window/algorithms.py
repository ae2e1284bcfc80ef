"""The table of algorithms: the properties that the core reports of each, and its card.

The core gives the costs, and its tests count them. The texts are in algorithms.toml.
"""

import re
import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from typing import Any, SupportsIndex, overload

import slidewise._core as _core
from slidewise.aggregations.scalars import as_int, is_bool
from slidewise.errors import SpecError
from slidewise.hints import suggest_argument
from slidewise.spec.durations import Length, parse_length
from slidewise.window.costs import cost_fields

__all__ = [
    "ALGORITHMS",
    "LAWS",
    "Algorithm",
    "Card",
    "algorithms",
    "card_of",
    "checked_duration",
    "checked_name",
    "checked_options",
    "law_error",
    "read_table",
]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """The properties of an algorithm, as the core reports them.

    Attributes:
        name: As in `Window(..., algorithm=name)`.
        in_order: Whether it takes entries in order only.
        law: The law it needs besides associativity, a key of `LAWS`, or None.
        ranges: Whether it answers queries of sub-ranges.
        shared: Whether it serves several ranges over one stream, for `SharedWindow`.
        parameters: Name, default and allowed values (None: 1 and more) of each.
    """

    name: str
    in_order: bool
    law: str | None
    ranges: bool
    shared: bool
    parameters: tuple[tuple[str, int, tuple[int, ...] | None], ...]

    @property
    def serves_queries(self) -> bool:
        """Whether it can be the final aggregator of `SharedWindow(queries=)`."""
        return self.shared or self.name == "fiba"


def _read_core() -> dict[str, Algorithm]:
    found = {}
    for name, in_order, law, ranges, shared, accepted in _core.algorithms():
        parameters = tuple(
            (parameter, default, None if allowed is None else tuple(allowed))
            for parameter, default, allowed in accepted
        )
        found[name] = Algorithm(name, in_order, law, ranges, shared, parameters)
    return found


ALGORITHMS = _read_core()

# The laws, as text that follows "needs".
LAWS = {
    "inverse": "an inverse (it subtracts evicted values)",
    "selection": "results that are one of the values (such as max) or their range",
    "inverse or selection": "an inverse, or results that are one of the values "
    "(such as max) or their range",
}


def checked_name(name: str, shared: bool = False, queries: bool = False) -> str:
    """Checks the name of an algorithm; "auto" is allowed.

    Args:
        name: The value of `algorithm=`.
        shared: Whether it must serve several ranges over one stream.
        queries: Whether it must be the final aggregator of queries.
    """
    fits = [
        other
        for other, one in ALGORITHMS.items()
        if one.shared or not shared or (queries and one.serves_queries)
    ]
    if name == "auto" or name in fits:
        return name
    names = ", ".join(["auto", *fits])
    if name in list(ALGORITHMS):  # a wrong value may not be hashable
        raise SpecError(
            f"algorithm {name!r} serves one range only: for several over one stream "
            f"there are {names}"
        )
    raise SpecError(f"unknown algorithm {name!r}; there are {names}")


def checked_options(
    algorithm: str, given: Mapping[str, Any], arguments: Iterable[str] = ()
) -> tuple[tuple[str, int | Length], ...]:
    """Checks the parameters of an algorithm, and sorts them as in the table.

    Args:
        algorithm: Its name.
        given: Values by name; a duration has the types of `last=`, or is a `Length`.
        arguments: The names of other arguments, of which an unknown one may be meant.
    """
    parameters = ALGORITHMS[algorithm].parameters if algorithm in ALGORITHMS else ()
    known = {name: allowed for name, _, allowed in parameters}
    for name in given:
        if name not in known:
            meant = suggest_argument(name, [*known, *arguments])
            raise SpecError(_no_parameter(name, algorithm, known, meant))
    return tuple(
        (name, _checked(name, given[name], allowed))
        for name, allowed in known.items()
        if name in given
    )


def _checked(name: str, value: Any, allowed: Sequence[int] | None) -> int | Length:
    if name == "latency":
        return checked_duration(name, value)
    takes_bool = allowed is not None and tuple(allowed) == (0, 1)
    number = int(value) if takes_bool and is_bool(value) else as_int(value)
    if number is None or not (
        1 <= number < 2**63 if allowed is None else number in allowed
    ):
        raise SpecError(f"{name}= takes {_allowed(allowed)}; got {value!r}")
    return number


def checked_duration(name: str, value: Any) -> Length:
    """Checks an argument that takes a duration, or an int for integer times."""
    length = parse_length(value, name)
    if length.kind == "rows":
        raise SpecError(f"{name}= takes a duration or an int, not a number of rows")
    return length


def _no_parameter(name: str, algorithm: str, known: Iterable[str], meant: str) -> str:
    has = [
        repr(one.name)
        for one in ALGORITHMS.values()
        if name in (parameter for parameter, *_ in one.parameters)
    ]
    if has:
        return f"{name}= is for algorithm={' or '.join(has)}, not {algorithm!r}"
    takes = ", ".join(f"{one}=" for one in known) or "none"
    given = f"there is no argument {name}={meant}"
    return f"{given}; the parameters of algorithm {algorithm!r}: {takes}"


def _allowed(allowed: Sequence[int] | None) -> str:
    if allowed is None:
        return "an int from 1 to 2**63 - 1"
    if tuple(allowed) == (0, 1):
        return "True or False"
    return "one of " + ", ".join(map(str, allowed))


def law_error(
    algorithm: str, law: str, lacking: str, shared: bool = False, objects: bool = False
) -> SpecError:
    """The error for aggregations that lack a law of the algorithm."""
    fits = (one for one in ALGORITHMS.values() if one.shared or not shared)
    others = [one.name for one in fits if one.law is None]
    needs = f"algorithm {algorithm!r} needs {LAWS[law]}"
    why = f"{needs}, which {lacking} lacks"
    if objects:
        why = f"{needs}, which {lacking} has over numbers, not over objects (str, ...)"
    return SpecError(f"{why}; algorithms without that law: auto, {', '.join(others)}")


@cache
def read_table() -> dict[str, Any]:
    """The contents of algorithms.toml: cards, and the rules of "auto"."""
    data = files("slidewise.window").joinpath("algorithms.toml").read_bytes()
    return tomllib.loads(data.decode())


@cache
def _cards() -> tuple["Card", ...]:
    return tuple(map(_card, read_table()["algorithm"]))


def _card(entry: Mapping[str, Any]) -> "Card":
    """The card of an entry of the table."""
    costs, remarks = cost_fields(entry["name"]), entry.get("remarks", {})
    for name, remark in remarks.items():
        costs[name] += f"; {remark}"
    known: dict[str, Any] = {**entry, **costs}
    known.pop("remarks", None)
    known["bytes_per_entry"] = tuple(entry["bytes_per_entry"])
    return Card(**known)


@dataclass(frozen=True, slots=True, repr=False)
class Card:
    """The properties of an algorithm: order, laws, costs, space, when to choose it.

    Costs are in combines and moves of entries, of windows of 16 entries and more. n is
    the most entries in the course of a call, d the number of entries between an entry
    and the nearer end, m the size of a bulk. With ties="combine", the default, a
    structure for entries in order keeps the latest entry aside, since others may be
    combined with it, so a query takes one combine more than with "keep". A custom
    aggregation defers its combines until a query needs them, and the card counts them
    for the call that deferred them: see `slidewise.aggregation`. Bytes were measured on
    sums of int64, whose partials take 16 bytes.

    Attributes:
        name: The name, as in `Window(..., algorithm=name)`.
        paper: The publication.
        order: The order of entries that it accepts.
        laws: The laws that the aggregation must satisfy.
        amortised: Combines of an insert, an evict and a query together, amortised, for
            entries in order unless stated otherwise.
        worst: Combines of the three together, worst case.
        insert: Cost of an insert.
        evict: Cost of an evict.
        query: Cost of a query of the whole window.
        range: Cost of a query of a sub-range.
        bulk: Cost of bulk inserts and evicts.
        moves: Entries and partials that a call moves, without the moves of the
            allocator when it enlarges a block.
        bytes_per_entry: Minimum and maximum over all lengths, of a window that keeps
            its length and has slid by twice as much.
        space: The parts of `bytes_per_entry`, and the cases in which it is more.
        differs: Deviations from the paper.
        choose: When to choose it.
    """

    name: str
    paper: str
    order: str
    laws: str
    amortised: str
    worst: str
    insert: str
    evict: str
    query: str
    range: str
    bulk: str
    moves: str
    bytes_per_entry: tuple[int, int]
    space: str
    differs: str
    choose: str

    def __str__(self) -> str:
        """All fields, each on its own lines."""
        least, most = self.bytes_per_entry
        lines = [self.name]
        for field in fields(self)[1:]:
            text = f"{field.name:<9} {getattr(self, field.name)}"
            if field.name == "bytes_per_entry":
                text = f"bytes     {least} to {most} per entry"
            lines += textwrap.wrap(
                text, 86, initial_indent="  ", subsequent_indent=" " * 12
            )
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def row(self) -> tuple[str, ...]:
        """Its row in the table of `algorithms`: the first clause of each field."""
        least, most = self.bytes_per_entry
        head = (self.name, _gist(self.order), _gist(self.laws))
        costs = (_cost(self.amortised), _cost(self.worst), f"{least} to {most}")
        return (*head, *costs, _gist(self.choose))


def _gist(text: str) -> str:
    return re.split(r"[:;.] ", text)[0]


def _cost(text: str) -> str:
    """The cost of the default."""
    return text.partition(";")[0].partition(" (")[0]


def card_of(name: str) -> Card:
    """The card of an algorithm.

    Example:
        >>> card_of("fiba").order
        'any'
    """
    for card in _cards():
        if card.name == name:
            return card
    names = ", ".join(card.name for card in _cards())
    raise SpecError(f"unknown algorithm {name!r}; there are {names}")


# The columns of the table: heading, and width in characters.
_COLUMNS = (
    ("name", 17),
    ("order", 8),
    ("laws", 13),
    ("amortised", 14),
    ("worst", 14),
    ("bytes per entry", 9),
    ("choose", 29),
)
_ABOUT = """\
amortised, worst: combines of an insert, an evict and a query together, of entries in
order, n at most. bytes per entry: sums of int64.
A whole card: slidewise algorithms NAME, or sw.algorithms()[NAME]."""


class Cards(tuple[Card, ...]):
    """A tuple of cards that prints as a table and can be indexed by name."""

    __slots__ = ()

    @overload
    def __getitem__(self, at: str | SupportsIndex) -> Card: ...
    @overload
    def __getitem__(self, at: slice) -> "Cards": ...
    def __getitem__(self, at: str | SupportsIndex | slice) -> "Card | Cards":
        """A card by the name of its algorithm, or by index.

        Raises:
            SpecError: If no algorithm has that name.

        Example:
            >>> algorithms()["daba_lite"].worst
            '7 (6 with ties="keep")'
        """
        if isinstance(at, str):
            return card_of(at)
        found = super().__getitem__(at)
        return found if isinstance(found, Card) else Cards(found)

    def __repr__(self) -> str:
        head = _line([name for name, _ in _COLUMNS])
        rule = "  ".join("-" * width for _, width in _COLUMNS)
        rows = [_line(card.row) for card in self]
        return "\n".join([head, rule, *rows, "", _ABOUT])


def _line(texts: Sequence[str]) -> str:
    """A row of the table, with wrapped cells."""
    widths = [width for _, width in _COLUMNS]
    cells = (
        textwrap.wrap(text, width) for text, width in zip(texts, widths, strict=True)
    )
    lines = zip_longest(*cells, fillvalue="")
    padded = (
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def algorithms() -> Cards:
    """The cards of all algorithms; they print as a table.

    Returns:
        A tuple of cards, which can also be indexed by the name of an algorithm.

    Cost: O(1) after the first call, which reads the table.

    Example:
        >>> [card.name for card in algorithms()][:3]
        ['fiba', 'daba_lite', 'two_stacks_lite']
        >>> algorithms()["fiba"].order
        'any'
        >>> min(algorithms(), key=lambda card: card.bytes_per_entry).name
        'fiba'
    """
    return Cards(_cards())
