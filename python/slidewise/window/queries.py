"""Queries with range and slide: the `queries=` of a `SharedWindow`, and its plan."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import gcd, lcm
from typing import Any, NamedTuple

import slidewise._core as _core
from slidewise.errors import SnapshotError, SpecError, describe_value
from slidewise.spec.arguments import one_of
from slidewise.spec.durations import (
    Length,
    Rows,
    WindowLike,
    format_duration,
    monday_shift,
    parse_offset,
)
from slidewise.spec.query import Query, as_given
from slidewise.spec.windows.base import QueryTicks
from slidewise.spec.windows.parse import KINDS
from slidewise.window.time_codec import Clock, ticks_of

__all__ = [
    "Queries",
    "Query",
    "Schedule",
    "from_record",
    "length_from_record",
    "plan_lines",
    "query_ticks",
    "read_queries",
    "record_of",
]

KEEP = ("entries", "slices")
# The flags of an entry are the bits of one word.
_MAX_FLAGS = 64
# Nanoseconds that leave room within int64.
_MAX_SHIFT = 2**62


class Schedule(NamedTuple):
    """Queries in the ticks of a clock, as the core takes them.

    Attributes:
        offset: An end of every query of time.
        late: How late entries may be; None if they must be in order.
        empty: Whether windows without entries are answered.
        slices: Whether slices are kept in place of entries.
        queries: By index; None where one was dropped.
    """

    offset: int
    late: int | None
    empty: bool
    slices: bool
    queries: tuple[QueryTicks | None, ...]


@dataclass(frozen=True, slots=True)
class Queries:
    """The queries of a window.

    Attributes:
        each: By index; None where one was dropped.
        made: The number of queries that the window was made with.
        late: How late entries may be; None if they must be in order.
        offset: An end of every query of time; None for the epoch.
        empty: Whether windows without entries are answered.
        flags: The columns whose flags end or begin windows.
        shift: By how much the ends are moved, in nanoseconds, so that weeks end on
            Mondays.
        slices: Whether slices are kept in place of entries.
    """

    each: tuple[Query | None, ...]
    made: int
    late: Length | None = None
    offset: Length | None = None
    empty: bool = False
    flags: tuple[str, ...] = ()
    shift: int = 0
    slices: bool = False

    def __post_init__(self) -> None:
        """Refuses queries that need entries in order, or entries at all."""
        for query in self.live if self.slices else ():
            if query.counts or not isinstance(query.window, Length):
                raise SpecError(
                    f"{query} needs entries, but keep='slices' keeps none: leave keep= "
                    "out, or give the query a duration"
                )
        for query in self.live if self.late is not None else ():
            if query.counts or query.flag is not None:
                assert self.late is not None, "or there are none to look at"
                why = (
                    "counts entries, which needs them in order"
                    if query.counts
                    else "reads flags, which needs entries in order"
                )
                raise SpecError(
                    f"{query} {why}, but "
                    f"late={as_given(self.late)!r} takes them out of order: leave "
                    "late= out, or give the query a duration"
                )

    @property
    def live(self) -> Iterator[Query]:
        """The queries that were not dropped."""
        return (query for query in self.each if query is not None)

    def plus(self, query: object) -> "Queries":
        """Returns the queries with one more.

        Raises:
            SpecError: If it is not a query, or does not suit the window.
        """
        checked = _checked(query)
        if checked.flag is not None and checked.flag not in self.flags:
            known = ", ".join(map(repr, self.flags)) or "none"
            raise SpecError(
                f"{checked!r} reads the column {checked.flag!r}, but of flags the "
                f"window keeps {known}: give such a query when the window is made"
            )
        for slide, shift in _grids([checked]):
            if (self.shift - shift) % slide:
                raise SpecError(
                    f"{checked!r} {_grid_of(shift)}, but the queries of this window do "
                    "not: give it when the window is made"
                )
        return replace(self, each=(*self.each, checked))

    @property
    def origin(self) -> Length | None:
        """An end of every query of time; None for the epoch."""
        given = self.offset
        if not self.shift or (given is not None and given.kind != "time"):
            return given
        amount = self.shift + (0 if given is None else given.amount)
        return Length("time", amount, format_duration(amount))

    def schedule(self, kind: str, unit: str) -> Schedule:
        """The queries in the ticks of a clock.

        Raises:
            SpecError: If a length does not suit times of that kind.
        """
        clock = Clock(kind, unit, None)
        late, offset = (
            None if length is None else ticks_of(length, name, kind, unit)
            for length, name in ((self.late, "late"), (self.origin, "offset"))
        )
        each = (
            None if query is None else query_ticks(query, clock, self.flags)
            for query in self.each
        )
        if self.slices and late is None:
            late = 0
        return Schedule(offset or 0, late, self.empty, self.slices, tuple(each))


def _checked(query: object) -> Query:
    if not isinstance(query, Query):
        raise SpecError(
            f"{describe_value(query)} is not a query: give one such as "
            "sw.Query('1h', every='5m')"
        )
    return query


def query_ticks(query: Query, clock: Clock, flags: tuple[str, ...]) -> QueryTicks:
    """A query in the ticks of a clock.

    Example:
        >>> query_ticks(Query("1h", every="5m"), Clock("datetime", "s", None), ())
        QueryTicks(kind='time', range=3600, slide=300, flag=0)
    """

    def ticks(length: Length, name: str) -> int:
        if length.kind == "rows":
            return min(length.amount, 2**63 - 1)
        return ticks_of(length, name, clock.kind, clock.unit)

    flag = 0 if query.flag is None else flags.index(query.flag)
    kind = "rows" if query.counts else "time"
    if isinstance(query.window, Length):
        assert query.slide is not None, "a length without a slide tumbles"
        of_time = query.counts and query.window.kind != "rows"
        kind = "time_by_rows" if of_time else kind
        length = ticks(query.window, "range")
        return QueryTicks(kind, length, ticks(query.slide, "every"))
    slide = 1 if query.slide is None else ticks(query.slide, "every")
    return query.window.schedule(
        lambda length: ticks(length, length.argument), (kind, slide), flag
    )


def read_queries(
    queries: Iterable[Query] | None,
    late: WindowLike | Length | None = None,
    offset: WindowLike | Length | None = None,
    empty: bool = False,
    keep: str = "entries",
) -> Queries | None:
    """Checks the arguments `queries=`, `late=`, `offset=`, `empty=` and `keep=`.

    Example:
        >>> read_queries([Query("1h", every="5m")]).made
        1
    """
    slices = one_of(keep, "keep", KEEP) == "slices"
    if queries is None:
        for name, given in (
            ("late", late),
            ("offset", offset),
            ("empty", empty),
            ("keep", slices),
        ):
            if given is not None and given is not False:
                raise SpecError(f"{name}= is for queries=, which is not given")
        return None
    single = isinstance(queries, Query | str | bytes | Mapping)
    if single or not isinstance(queries, Iterable):
        raise SpecError(
            "queries= takes several, such as [sw.Query('1h', every='5m')]; got "
            f"{describe_value(queries)}"
        )
    each = tuple(_checked(query) for query in queries)
    if not each:
        raise SpecError(
            "queries= is empty: give at least one, such as sw.Query('1h', every='5m')"
        )
    if not isinstance(empty, bool):
        raise SpecError(f"empty= is True or False; got {empty!r}")
    lateness = None if late is None else _signed(late, "late")
    if lateness is not None and lateness.amount < 0:
        raise SpecError(f"late={late!r} is negative: give a length, or leave it out")
    start = None if offset is None else _signed(offset, "offset")
    flags = tuple(dict.fromkeys(query.flag for query in each if query.flag is not None))
    if len(flags) > _MAX_FLAGS:
        raise SpecError(f"queries= read {len(flags)} flags: {_MAX_FLAGS} at most")
    shift = _shared_shift(each)
    return Queries(each, len(each), lateness, start, empty, flags, shift, slices)


def _shared_shift(each: Iterable[Query]) -> int:
    """The distance from the epoch to a time at which windows of every query end.

    Raises:
        SpecError: If there is no such time: some end on Mondays, others cannot.
    """
    found, step = 0, 1
    for query in each:
        for slide, shift in _grids([query]):
            both = gcd(step, slide)
            # The least one for those so far and this one (Chinese remainders).
            apart, rest = divmod(shift - found, both)
            rounds = apart * pow(step // both, -1, slide // both) % (slide // both)
            found, step = found + step * rounds, lcm(step, slide)
            if rest or found >= _MAX_SHIFT:
                raise SpecError(
                    f"{query!r} {_grid_of(shift)}, but queries before it do not: "
                    "write all of them in days, as '7d', or give them a window of "
                    "their own"
                )
    return found


def _grids(queries: Iterable[Query]) -> Iterator[tuple[int, int]]:
    """The slides of queries of time, and the distance of their starts to the epoch."""
    for query in queries:
        slide = query.slide
        if slide is not None and slide.kind == "time":
            length = query.window if isinstance(query.window, Length) else slide
            yield slide.amount, monday_shift(length, slide)


def _grid_of(shift: int) -> str:
    return "ends on Mondays" if shift else "is counted from the epoch, a Thursday"


def _signed(given: WindowLike | Length, argument: str) -> Length:
    if isinstance(given, Length):
        return given
    if isinstance(given, Rows):
        raise SpecError(f"{argument}= takes a duration or an int, not a number of rows")
    return parse_offset(given, argument)


def record_of(queries: Queries) -> dict[str, Any]:
    """The queries as JSON."""
    flags = {"flags": list(queries.flags)} if queries.flags else {}
    shift = {"shift": queries.shift} if queries.shift else {}
    slices = {"keep": "slices"} if queries.slices else {}
    return {
        **flags,
        **shift,
        **slices,
        "each": [
            None if query is None else _query_record(query) for query in queries.each
        ],
        "empty": queries.empty,
        "late": None if queries.late is None else _record(queries.late),
        "made": queries.made,
        "offset": None if queries.offset is None else _record(queries.offset),
    }


def _query_record(query: Query) -> list[object]:
    slide = None if query.slide is None else _record(query.slide)
    if isinstance(query.window, Length):
        return [_record(query.window), slide]
    return [query.window.document, slide]


def _record(length: Length) -> list[object]:
    return [length.kind, length.amount, length.label]


def from_record(record: object) -> Queries | None:
    """Reads the record that `record_of` made.

    Raises:
        SnapshotError: If it is not such a record.
    """
    match record:
        case None:
            return None
        case {
            "each": [*each],
            "empty": bool(empty),
            "late": late,
            "made": int(made),
            "offset": offset,
            **rest,
        }:
            flags = rest.get("flags", [])
            if not isinstance(flags, list) or len(flags) > _MAX_FLAGS:
                raise SnapshotError(f"{str(flags)[:60]!r} are not flags")
            shift = rest.get("shift", 0)
            if type(shift) is not int or not 0 <= shift < _MAX_SHIFT:
                raise SnapshotError(f"{str(shift)[:60]!r} is not a shift of ends")
            keep = rest.get("keep", "entries")
            if keep not in KEEP:
                raise SnapshotError(f"{str(keep)[:60]!r} is not kept")
            lengths = (None if one is None else _of(one) for one in (late, offset))
            lateness, start = lengths
            if 0 <= made <= len(each) and (lateness is None or lateness.amount >= 0):
                found = tuple(None if one is None else _query_of(one) for one in each)
                read = {query.flag for query in found if query is not None} - {None}
                if read <= set(flags) and all(isinstance(of, str) for of in flags):
                    with suppress(SpecError):
                        return Queries(
                            found,
                            made,
                            lateness,
                            start,
                            empty,
                            tuple(flags),
                            shift,
                            keep == "slices",
                        )
    raise SnapshotError(f"{str(record)[:60]!r} are not queries")


def _query_of(record: object) -> Query:
    match record:
        case [{**document}, slide]:
            given = {str(key): value for key, value in document.items()}
            every = None if slide is None else length_from_record(slide)
            for kind in KINDS:
                if given.keys() == {*kind.keys}:
                    with suppress(SpecError):
                        return Query(kind.of_document(given), every)
        case [length, slide]:
            return Query(length_from_record(length), length_from_record(slide))
    raise SnapshotError(f"{str(record)[:60]!r} is not a query")


def length_from_record(record: object) -> Length:
    """A length above zero from JSON.

    Raises:
        SnapshotError: If the record is not of one.
    """
    length = _of(record)
    if length.amount <= 0:
        raise SnapshotError(f"{str(record)[:60]!r} is not a length")
    return length


def _of(record: object) -> Length:
    match record:
        case [("time" | "integer" | "rows") as kind, int(amount), str(label)]:
            if abs(amount) < 2**80 and not isinstance(amount, bool):
                return Length(kind, amount, label)
    raise SnapshotError(f"{str(record)[:60]!r} is not a length")


def plan_lines(queries: Queries, algorithm: str, slices: int | None) -> list[str]:
    """Explains what the queries share: composite slides, edges and held slices."""
    lines: list[str] = []
    for query in queries.live:
        if not isinstance(query.window, Length):
            lines.append(f"{query!r}: {query.window.due}")
    for name, composite, counts, kind in _axes(queries):
        by = "Pairs" if queries.slices else "Cutty"
        taken = dict(counts)[by]
        others = [f"{one} {_count(n)}" for one, n in counts if one != by]
        edges = "1 edge" if taken == 1 else f"{_count(taken)} edges"
        lines.append(
            f"queries of {name}: composite slide {_amount(composite, kind)}; {edges} "
            f"as by {by} ({', '.join(others)})"
        )
    held = f"{slices} slice" if slices == 1 else f"{slices} slices"
    lines.append(f"{held} held; final aggregator: {algorithm}")
    added = range(queries.made, len(queries.each))
    numbers = [str(at) for at in added if queries.each[at] is not None]
    if numbers:
        one = len(numbers) == 1
        named = f"query {numbers[0]}" if one else f"queries {', '.join(numbers)}"
        lines.append(
            f"{named}, added later, {'sees' if one else 'see'} the entries that the "
            "window still held: the longest range so far"
        )
    if queries.late is not None:
        what = "their slices wait" if queries.slices else "wait"
        lines.append(
            f"entries may be late by {queries.late.label}, and {what} that long"
        )
    if queries.slices:
        lines.append("slices are kept in place of entries")
    if queries.empty:
        lines.append("windows without entries are answered")
    return lines


def _axes(
    queries: Queries,
) -> Iterator[tuple[str, int | None, list[tuple[str, int | None]], str]]:
    """Yields the unit, composite slide, edges by technique, and kind of the slides."""
    sliding = [query for query in queries.live if query.slide is not None]
    origin = queries.origin
    for name in ("time", "entries"):
        of = [query for query in sliding if query.counts == (name == "entries")]
        amounts = [_amounts(query) for query in of]
        offset = 0 if origin is None or name == "entries" else origin.amount
        most = max((max(amount) for amount in amounts), default=0)
        if amounts and most < 2**63 and abs(offset) < 2**63:
            slide = of[0].slide
            assert slide is not None, "filtered above"
            yield name, *_core.query_plan(amounts, offset), slide.kind


def _amounts(query: Query) -> tuple[int, int]:
    slide = query.slide
    assert slide is not None, "filtered by the caller"
    length = query.window if isinstance(query.window, Length) else slide
    return (length if length.kind == slide.kind else slide).amount, slide.amount


def _amount(composite: int | None, kind: str) -> str:
    if composite is None:
        return "beyond int64"
    if kind == "rows":
        return f"{composite} entries"
    return format_duration(composite) if kind == "time" else str(composite)


def _count(count: int | None) -> str:
    return "many" if count is None else str(count)
