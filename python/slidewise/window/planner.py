"""What a `Window` computes, spelled out once.

A plan turns the aggregations a user asked for into *feeds*: the columns that the native
core keeps, each with what it is needed for. Aggregations of one column share one feed.
A plan also makes the window's clock, and its header in a snapshot (`headers` reads it).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import slidewise._core as _core
from slidewise.aggregations import HOLISTIC, PAIRS, Aggregation, Sketch
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.aggregations.objects import OBJECT_KINDS, object_functions
from slidewise.aggregations.postprocess import POSTPROCESS
from slidewise.errors import SnapshotError, SpecError, describe_value
from slidewise.spec.durations import Length, WindowLike, parse_length
from slidewise.window.algorithms import (
    ALGORITHMS,
    checked_name,
    checked_options,
    law_error,
)
from slidewise.window.auto_rules import choose, choose_shared, kinds_of
from slidewise.window.inputs import TIME, Feed, Feeds, places_read
from slidewise.window.time_codec import Clock, clock_for, identify

__all__ = ["HEADER_LIMIT", "WindowPlan", "check_laws", "checked_ties", "make_plan"]

# A header is parsed as a whole, so its size is what bounds the memory that takes.
HEADER_LIMIT = 1 << 15

TIES = ("combine", "keep")
NAN = ("propagate", "skip", "raise")
PREFER = ("throughput", "latency")
# What keeps the values of a window in order, for aggregations that need them all.
KEEPS_VALUES = ("auto", "fiba", "recalculate")
DTYPES = {"int64": "int64", "float64": "float64", "object": "object", int: "int64"}
DTYPES |= {float: "float64", object: "object"}


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """A window, fully spelled out. Made by `make_plan`.

    Attributes:
        aggs: Name and aggregation; one without a name answers bare.
        asked: The algorithm by the name the user gave.
        options: Parameters of the algorithm that the user gave, by name; latency aside.
        prefer: The user's hint, or None.
        begins: What a window begins with: where its numbers are ints (or it has none),
            and where some are floats. Twice what was asked for, unless that is "auto".
        ties: "combine" or "keep".
        dtype: The type asked for, or None.
        nan: "propagate", "skip" or "raise".
        last: How much the window keeps by itself, or None.
        granularity: What times are rounded down to, or None.
        columns: The columns that values are mappings of, or None.
        feeds: Everything the core keeps per entry: the column, its role, and where it
            counts as missing, see `slidewise.window.inputs`.
        requests: Kind, feed, feed compared and ddof of every aggregation.
        own: What the aggregations of the user's own were made of, each once; behind
            them those that run built-in ones over objects.
        natives: What the native aggregations were made of, each once.
        ranges: How far each range of a shared window reaches, or None for a window.
        latency: How late an entry may be, where the user said so.
        objects: The columns that hold objects because the first value was one.
    """

    aggs: tuple[tuple[str | None, Aggregation], ...]
    asked: str
    options: tuple[tuple[str, int], ...]
    prefer: str | None
    begins: tuple[str, str]
    ties: str
    dtype: str | None
    nan: str
    last: Length | None
    granularity: Length | None
    columns: tuple[str, ...] | None
    feeds: tuple[Feed, ...]
    requests: tuple[tuple[str, int, int, int], ...]
    own: tuple[Functions, ...]
    natives: tuple[Compiled, ...] = ()
    ranges: tuple[Length, ...] | None = None
    objects: tuple[int, ...] = ()
    latency: Length | None = None

    def first(self, dtypes: Sequence[str | None]) -> str:
        """The algorithm that a window with columns of these types begins with."""
        return self.begins["float64" in dtypes]

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the answers; None where there is one, given bare."""
        names = tuple(name for name, _ in self.aggs if name is not None)
        return names if len(names) == len(self.aggs) else None

    @property
    def timed(self) -> tuple[bool, ...]:
        """Which answers are times."""
        times = [beside == TIME or role == "time" for _, role, _, beside in self.feeds]
        return tuple(of >= 0 and times[of] for _, of, _, _ in self.requests)

    @property
    def users_own(self) -> tuple[Functions | Compiled, ...]:
        """Those of `own` that the user brought, and all natives."""
        return (*_own(agg for _, agg in self.aggs), *self.natives)

    @property
    def finished(self) -> tuple[bool, ...]:
        """Which answers are lists that `finish` makes something of."""
        return tuple(agg.kind in POSTPROCESS for _, agg in self.aggs)

    def finish(self, at: int, values: list[Any]) -> Any:
        """What the user gets for a list of values."""
        return POSTPROCESS[self.aggs[at][1].kind](values)

    def lower_native(self, at: int, record: bytes) -> Any:
        """What the user gets for a record of a native aggregation."""
        agg = self.aggs[at][1]
        assert isinstance(agg, NativeAggregation), "only those have records"
        return agg.functions.lowered(record)

    @property
    def distinct(self) -> tuple[Length, ...]:
        """The ranges that differ: one of those that reach alike."""
        return tuple(_by_reach(self.ranges or ()).values())

    @property
    def range_count(self) -> int:
        """How many different ranges a shared window has; 0 for a window."""
        return len(self.distinct)

    @property
    def places(self) -> tuple[int, ...]:
        """Which of the different ranges each is."""
        ranges = self.ranges or ()
        places = {reach: place for place, reach in enumerate(_by_reach(ranges))}
        return tuple(places[reach.kind, reach.amount] for reach in ranges)

    @property
    def rows(self) -> int | None:
        """How many rows the window keeps by itself, or None."""
        if self.last is None or self.last.kind != "rows":
            return None
        return self.last.amount

    def with_objects(self, columns: Sequence[int]) -> "WindowPlan":
        """The same over columns that hold objects.

        Raises:
            SpecError: If an aggregation of one of them computes with numbers.
        """
        named = {name: agg for name, agg in self.aggs if name is not None}
        plan = make_plan(
            named if self.names is not None else self.aggs[0][1],
            algorithm=self.asked,
            ties=self.ties,
            nan=self.nan,
            prefer=self.prefer,
            options=dict(self.options),
            ranges=self.ranges,
            objects=tuple(sorted({*self.objects, *columns})),
        )
        return replace(
            plan,
            last=self.last,
            granularity=self.granularity,
            latency=self.latency,
        )

    def label(self, at: int) -> str:
        """One aggregation, for messages."""
        name, agg = self.aggs[at]
        return repr(agg) if name is None else f"{name!r}, {agg!r},"

    def clock(self, time: object) -> Clock:
        """The clock of a window whose first entry has this time."""
        return self.clock_for(*identify(time))

    def clock_for(self, kind: str, unit: str, zone: Any) -> Clock:
        """The clock for times of this kind."""
        last = None if self.rows is not None else self.last
        return clock_for(
            kind, unit, zone, last, self.granularity, self.distinct, self.latency
        )

    def header(
        self,
        dtypes: Sequence[str | None],
        clock: Clock | None,
        migrated: bool = False,
    ) -> bytes:
        """The plan as canonical JSON, with what the entries have decided since.

        Args:
            dtypes: The types of the columns.
            clock: The kind of the times.
            migrated: Whether the window went over to fiba.

        Raises:
            SnapshotError: If it is too long, or the zone of the times has no name.
        """
        header: dict[str, Any] = {
            "aggs": [[name, *self._record(agg)] for name, agg in self.aggs],
            "algorithm": self.asked,
            "clock": None if clock is None else clock.record(),
            "dtype": self.dtype,
            "dtypes": list(dtypes),
            "granularity": _length_record(self.granularity),
            "last": _length_record(self.last),
            "nan": self.nan,
            "options": [list(option) for option in self.options],
            "prefer": self.prefer,
            "ties": self.ties,
        }
        if self.latency is not None:
            header["latency"] = _length_record(self.latency)
        if self.objects:
            header["objects"] = list(self.objects)
        if self.asked == "auto":
            header["begins"] = list(self.begins)
            header["runs"] = "fiba" if migrated else self.first(dtypes)
        if self.ranges is not None:
            header["ranges"] = [_length_record(length) for length in self.ranges]
        if self.users_own:
            header["own"] = [_reference(functions) for functions in self.users_own]
        text = json.dumps(header, sort_keys=True, separators=(",", ":"))
        if len(text) > HEADER_LIMIT:
            raise SnapshotError(
                f"a window of {len(self.aggs)} aggregations is too much for a "
                "snapshot: use several windows"
            )
        return text.encode()

    def _record(self, agg: Aggregation) -> list[Any]:
        if isinstance(agg, CustomAggregation | NativeAggregation):
            number = self.users_own.index(agg.functions)
            return ["own", agg.of, None, number, agg.where, 0]
        record = [agg.kind, agg.of, agg.by, agg.ddof, agg.where, agg.k]
        if isinstance(agg, Sketch):
            return [*record, agg.parameters]
        return [*record, agg.q, agg.interpolation] if agg.kind == "quantile" else record


def _by_reach(ranges: Iterable[Length]) -> dict[tuple[str, int], Length]:
    return {(reach.kind, reach.amount): reach for reach in ranges}


def make_plan(
    aggs: Aggregation | Mapping[str, Aggregation],
    *,
    algorithm: str = "auto",
    ties: str | None = None,
    dtype: str | type | None = None,
    nan: str = "propagate",
    last: WindowLike | None = None,
    granularity: WindowLike | None = None,
    prefer: str | None = None,
    options: Mapping[str, Any] | None = None,
    ranges: Iterable[WindowLike | Length] | None = None,
    objects: tuple[int, ...] = (),
) -> WindowPlan:
    """Checks what the user asked of a window and spells it out.

    The arguments are those of `slidewise.Window` and `slidewise.SharedWindow`;
    `options` are their `**parameters`, and `objects` the columns that hold objects
    whatever `dtype` says.

    Raises:
        SpecError: If one of them is wrong; the message says which and how to mend it.

    Example:
        >>> import slidewise as sw
        >>> make_plan(sw.sum()).feeds
        ((0, 'number', (), -1),)
    """
    named = _aggregations(aggs)
    columns = _columns(named)
    kept = None if last is None else parse_length(last, "last")
    rounded = None if granularity is None else _granularity(granularity)
    asked_type = _dtype(dtype)
    own = _own(agg for _, agg in named)
    everything = asked_type == "object"
    built_in = (
        object_functions(agg)
        for _, agg in named
        if agg.kind in OBJECT_KINDS
        and (everything or not set(places_read(agg, columns)).isdisjoint(objects))
    )
    own += tuple(dict.fromkeys(built_in))
    natives = tuple(
        dict.fromkeys(
            agg.functions for _, agg in named if isinstance(agg, NativeAggregation)
        )
    )
    feeds = Feeds(named, columns, asked_type, own, natives, objects)
    requests = tuple(feeds.request(agg) for _, agg in named)
    reaches = None if ranges is None else _ranges(ranges)
    asked = checked_name(algorithm, reaches is not None)
    parameters = checked_options(algorithm, options or {})
    lengths = {name: of for name, of in parameters if isinstance(of, Length)}
    hint = None if prefer is None else _one_of(prefer, "prefer", PREFER)
    plan = WindowPlan(
        aggs=named,
        asked=asked,
        options=tuple((name, of) for name, of in parameters if isinstance(of, int)),
        prefer=hint,
        begins=_begins(
            asked, kinds_of(named, requests), hint, reaches, len(feeds.feeds)
        ),
        ties=checked_ties(ties, kept),
        dtype=asked_type,
        nan=_one_of(nan, "nan", NAN),
        last=kept,
        granularity=rounded,
        columns=columns,
        feeds=tuple(feeds.feeds),
        requests=requests,
        own=own,
        natives=natives,
        ranges=reaches,
        objects=objects,
        latency=lengths.get("latency"),
    )
    check_laws(plan)
    return plan


def _reference(functions: Functions | Compiled) -> Any:
    """What a header calls a user's own aggregation; the layout of records with it."""
    if isinstance(functions, Compiled):
        return [functions.name, functions.form]
    return functions.name


def _begins(
    asked: str,
    kinds: Sequence[tuple[str, bool]],
    prefer: str | None,
    ranges: tuple[Length, ...] | None,
    feeds: int,
) -> tuple[str, str]:
    if asked != "auto":
        return asked, asked
    rules = [
        choose(kinds, inexact, prefer)
        if ranges is None
        else choose_shared(kinds, inexact, feeds)
        for inexact in (False, True)
    ]
    ints, floats = (rule.take for rule in rules)
    return ints, floats


def _ranges(ranges: Iterable[WindowLike | Length]) -> tuple[Length, ...]:
    """Ints are numbers of entries, as in `rows(n)`.

    Raises:
        SpecError: If there are none, or one is no range.
    """
    single = isinstance(ranges, str | bytes) or not isinstance(ranges, Iterable)
    if single or isinstance(ranges, Mapping):
        mapping = ", not a mapping" if isinstance(ranges, Mapping) else ""
        raise SpecError(
            "ranges= takes several, such as [10, 100], [sw.rows(10)] or ['1m', '1h']"
            f"{mapping}; got {describe_value(ranges)}"
        )
    reaches = tuple(_range(one) for one in ranges)
    if not reaches:
        raise SpecError("ranges= is empty: give at least one, such as [10, 100]")
    return reaches


def _granularity(granularity: WindowLike) -> Length:
    length = parse_length(granularity, "granularity")
    if length.kind == "rows":
        raise SpecError("granularity= takes a duration or an int, not a number of rows")
    return length


def _range(one: WindowLike | Length) -> Length:
    length = one if isinstance(one, Length) else parse_length(one, "ranges")
    if length.kind == "integer":
        return Length("rows", length.amount, length.label)
    return length


def _aggregations(
    aggs: Aggregation | Mapping[str, Aggregation],
) -> tuple[tuple[str | None, Aggregation], ...]:
    if isinstance(aggs, Aggregation):
        return ((None, aggs),)
    if not isinstance(aggs, Mapping):
        raise SpecError(
            "a Window takes an aggregation such as sw.sum(), or a mapping from names "
            f"to aggregations such as {{'n': sw.count()}}; got {describe_value(aggs)}"
        )
    if not aggs:
        raise SpecError("no aggregations: give at least one, such as {'n': sw.count()}")
    for name, agg in aggs.items():
        if not isinstance(name, str):
            raise SpecError(f"the name of an aggregation is a str, got {name!r}")
        if not isinstance(agg, Aggregation):
            raise SpecError(
                f"{name!r} is not an aggregation: {describe_value(agg)}; give one such "
                "as sw.mean()"
            )
    return tuple(aggs.items())


def _own(aggs: Iterable[Aggregation]) -> tuple[Functions, ...]:
    own = (agg.functions for agg in aggs if isinstance(agg, CustomAggregation))
    return tuple(dict.fromkeys(own))


def _columns(
    aggs: tuple[tuple[str | None, Aggregation], ...],
) -> tuple[str, ...] | None:
    """The columns that are aggregated, or None where entries are single values."""
    columns = tuple(dict.fromkeys(name for _, agg in aggs for name in agg.columns))
    for _, agg in aggs:
        if agg.kind in PAIRS or (columns and agg.kind in ("arg_min", "arg_max")):
            agg.check_columns()
        elif columns and agg.of is None and agg.kind != "count":
            raise SpecError(
                f"{agg!r} names no column, but others do: either all aggregations name "
                "one and values are mappings, or none does and values are plain"
            )
    return columns or None


def check_laws(plan: WindowPlan) -> None:
    """Refuses an algorithm whose laws the aggregations lack, or that is not for them.

    Raises:
        SpecError: Naming the law and the algorithms that do without.
    """
    aggs = [agg for _, agg in plan.aggs]
    _check_holistic(plan, aggs)
    kinds = kinds_of(plan.aggs, plan.requests)
    for algorithm in plan.begins:
        law = ALGORITHMS[algorithm].law
        if law is not None and not _core.obeys_law(law, kinds, len(plan.feeds)):
            pairs = zip(aggs, kinds, strict=True)
            lacking = [
                repr(agg) for agg, kind in pairs if not _core.obeys_law(law, [kind], 1)
            ]
            shown = ", ".join(lacking) or "several aggregations at once"
            raise law_error(algorithm, law, shown, plan.ranges is not None)


def _check_holistic(plan: WindowPlan, aggs: Sequence[Aggregation]) -> None:
    lacking = [repr(agg) for agg in aggs if agg.kind in HOLISTIC]
    if lacking and plan.ranges is not None:
        raise SpecError(
            f"a SharedWindow combines partial results, and {', '.join(lacking)} cannot "
            "be told from any: take a Window for each range"
        )
    asked = plan.asked
    if lacking and asked not in KEEPS_VALUES:
        allowed = ", ".join(map(repr, KEEPS_VALUES))
        raise SpecError(
            f"algorithm {asked!r} combines partial results, and {', '.join(lacking)} "
            "cannot be told from any: all values of the window are needed at once; "
            f"leave algorithm= out, or take one of {allowed}"
        )


def _dtype(dtype: str | type | None) -> str | None:
    if dtype is None:
        return None
    try:
        known = DTYPES.get(dtype)
    except TypeError:
        known = None
    if known is None:
        raise SpecError(f"dtype= is one of int64, float64, object; got {dtype!r}")
    return known


def checked_ties(ties: str | None, last: Length | None) -> str:
    """What happens to equal times, which a number of rows leaves no choice.

    Raises:
        SpecError: If it is none of the ways, or does not go with `last`.
    """
    by_rows = last is not None and last.kind == "rows"
    if ties is None:
        return "keep" if by_rows else "combine"
    if by_rows and _one_of(ties, "ties", TIES) == "combine":
        raise SpecError(
            "last=rows(n) counts entries, so those of equal time must stay apart: "
            "leave ties= out, or give ties='keep'"
        )
    return _one_of(ties, "ties", TIES)


def _one_of(value: str, argument: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise SpecError(f"{argument}= is one of {', '.join(allowed)}; got {value!r}")
    return value


def _length_record(length: Length | None) -> list[object] | None:
    return None if length is None else [length.kind, length.amount, length.label]
