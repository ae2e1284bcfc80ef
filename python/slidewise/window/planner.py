"""Plans of windows: arguments checked, algorithm chosen, input columns assigned.

A plan maps the aggregations to *input columns* (see `inputs`), which the core keeps.
A plan also makes the clock of a window and the header of its snapshots, which
`snapshot_header` reads.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import slidewise._core as _core
from slidewise.aggregations import count
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.call import Call
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.aggregations.objects import object_functions
from slidewise.aggregations.registry import UserDefinedAggregation
from slidewise.aggregations.scalars import BYTES
from slidewise.aggregations.sketches import Sketch
from slidewise.errors import SnapshotError, SpecError, describe_value
from slidewise.spec.arguments import named_aggs, one_of
from slidewise.spec.durations import Length, WindowLike, parse_length
from slidewise.spec.windows.base import QueryTicks
from slidewise.window.algorithms import (
    ALGORITHMS,
    checked_duration,
    checked_name,
    checked_options,
    law_error,
)
from slidewise.window.auto_rules import choose, choose_shared, request_kinds
from slidewise.window.inputs import InputColumn, InputColumns, columns_read, numbered
from slidewise.window.queries import (
    Queries,
    Query,
    query_ticks,
    record_of,
)
from slidewise.window.time_codec import Clock, clock_for, identify
from slidewise.window.window_ends import check_spans, result_at_end, span_options

__all__ = [
    "ALONE",
    "HEADER_LIMIT",
    "WindowPlan",
    "check_laws",
    "checked_ties",
    "make_plan",
]

# Bytes of a header, at most. The limit bounds the memory for parsing it as a whole.
HEADER_LIMIT = 1 << 15

# The parameters of which an aggregation has one, which ends its record in a header.
ALONE = ("unit", "top", "edges")
TIES = ("combine", "keep")
NAN = ("propagate", "skip", "raise")
PREFER = ("throughput", "latency")
# The algorithms that keep all values of a window, as holistic aggregations need.
KEEPS_VALUES = ("auto", "fiba", "recalculate")
DTYPES = {"int64": "int64", "float64": "float64", "object": "object", int: "int64"}
DTYPES |= {float: "float64", object: "object"}


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The plan of a window, made by `make_plan`.

    Attributes:
        aggs: Names and aggregations; one without a name gives its bare result.
        algorithm: The value of `algorithm=`: a name, or "auto".
        options: Parameters of the algorithm that the user gave, without `latency=`.
        prefer: The value of `prefer=`.
        begins: The initial algorithm without float columns, and with some. They are
            equal unless `algorithm="auto"`.
        ties: "combine" or "keep".
        dtype: The type that `dtype=` names, or None.
        nan: "propagate", "skip" or "raise".
        last: The length that the window evicts down to by itself, or None.
        granularity: The multiple that times are rounded down to, or None.
        columns: The names of the columns if values are mappings, or None.
        inputs: The input columns that the core keeps.
        requests: Of every aggregation, its call of the core.
        functions: Those of the custom aggregations, each once; then those of built-in
            aggregations over objects.
        natives: The functions of the compiled aggregations, each once.
        ranges: The ranges of a shared window, or None for a window.
        latency: The value of `latency=`, or None.
        shared_queries: The queries of a shared window, or None.
        flags: The input columns that are not null in entries with each flag.
        objects: The columns that hold objects because their first value is one, in the
            order in which these came.
    """

    aggs: tuple[tuple[str | None, Aggregation], ...]
    algorithm: str
    options: tuple[tuple[str, int], ...]
    prefer: str | None
    begins: tuple[str, str]
    ties: str
    dtype: str | None
    nan: str
    last: Length | None
    granularity: Length | None
    columns: tuple[str, ...] | None
    inputs: tuple[InputColumn, ...]
    requests: tuple[Call, ...]
    functions: tuple[Functions, ...]
    natives: tuple[Compiled, ...] = ()
    ranges: tuple[Length, ...] | None = None
    objects: tuple[int, ...] = ()
    latency: Length | None = None
    shared_queries: Queries | None = None
    flags: tuple[int, ...] = ()

    def initial_algorithm(self, dtypes: Sequence[str | None]) -> str:
        """The initial algorithm of a window with columns of these types."""
        return self.begins[has_floats(dtypes)]

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the results; None for one bare result."""
        names = tuple(name for name, _ in self.aggs if name is not None)
        return names if len(names) == len(self.aggs) else None

    @property
    def timed(self) -> tuple[bool, ...]:
        """The results that are times."""
        times = ["time" in (column.role, column.paired) for column in self.inputs]
        return tuple(
            agg.record.second == "compared" and call.of is not None and times[call.of]
            for (_, agg), call in zip(self.aggs, self.requests, strict=True)
        )

    @property
    def clocked(self) -> tuple[bool, ...]:
        """The results in ticks, or per tick, which `in_units` converts."""
        return tuple(bool(agg.scale) for _, agg in self.aggs)

    @property
    def ended(self) -> tuple[bool, ...]:
        """The results that depend on the end of the window, which `at_end` makes."""
        return tuple(agg.is_ended for _, agg in self.aggs)

    def at_end(self, at: int, clock: Clock, parts: list[Any], end: int) -> Any:
        """A result at the end of a window, from the core's parts; times are ticks."""
        return result_at_end(self.aggs[at][1], clock, parts, end)

    def in_units(self, at: int, clock: Clock, ticks: float) -> Any:
        """A result in units of time, from one in ticks, or per tick."""
        agg = self.aggs[at][1]
        return clock.scaled(ticks, agg.scale, agg.unit)

    @property
    def custom(self) -> tuple[Functions | Compiled, ...]:
        """The functions of custom and compiled aggregations, not of built-in ones."""
        return (*_custom_functions(agg for _, agg in self.aggs), *self.natives)

    @property
    def finished(self) -> tuple[bool, ...]:
        """The results that are lists, which `finish` postprocesses."""
        return tuple(agg.record.finish is not None for _, agg in self.aggs)

    def finish(self, at: int, values: list[Any]) -> Any:
        """The result of an aggregation, made from the core's list of values."""
        finish = self.aggs[at][1].record.finish
        assert finish is not None, "only those are finished that need it"
        made = finish(values)
        top = self.aggs[at][1].top
        return made if top is None else made[:top]

    def lower_native(self, at: int, record: bytes) -> Any:
        """The result of a compiled aggregation, from its record."""
        agg = self.aggs[at][1]
        assert isinstance(agg, NativeAggregation), "only those have records"
        return agg.functions.lowered(record)

    @property
    def distinct_ranges(self) -> tuple[Length, ...]:
        """The ranges, each length once."""
        return tuple(_by_length(self.ranges or ()).values())

    @property
    def range_count(self) -> int:
        """The number of distinct ranges of a shared window; 0 for a window."""
        return len(self.distinct_ranges)

    @property
    def is_shared(self) -> bool:
        """Whether the window has several ranges or queries."""
        return self.ranges is not None or self.shared_queries is not None

    @property
    def places(self) -> tuple[int, ...]:
        """The index of each range among the distinct ones."""
        ranges = self.ranges or ()
        indices = {key: index for index, key in enumerate(_by_length(ranges))}
        return tuple(indices[length.kind, length.amount] for length in ranges)

    @property
    def queries(self) -> tuple[Query | None, ...]:
        """The queries by index; None where one was dropped."""
        return () if self.shared_queries is None else self.shared_queries.each

    @property
    def query_count(self) -> int | None:
        """The number of queries, dropped ones included; None for windows without."""
        return None if self.shared_queries is None else len(self.shared_queries.each)

    def with_queries(self, each: tuple[Query | None, ...]) -> "WindowPlan":
        """The same plan with other queries."""
        assert self.shared_queries is not None, "only windows with queries change them"
        return replace(self, shared_queries=replace(self.shared_queries, each=each))

    def with_query(self, query: object) -> "WindowPlan":
        """The same plan with one more query.

        Raises:
            SpecError: If it is not a query, or does not suit the window.
        """
        assert self.shared_queries is not None, "only windows with queries change them"
        return replace(self, shared_queries=self.shared_queries.plus(query))

    def query_ticks(self, query: Query, clock: Clock) -> QueryTicks:
        """The ticks of a query, for the core.

        Raises:
            SpecError: If its lengths do not suit times of that kind.
        """
        assert self.shared_queries is not None, "only windows with queries have some"
        return query_ticks(query, clock, self.shared_queries.flags)

    @property
    def rows(self) -> int | None:
        """The `n` of `last=rows(n)`, or None."""
        if self.last is None or self.last.kind != "rows":
            return None
        return self.last.amount

    def with_objects(self, columns: Sequence[int]) -> "WindowPlan":
        """The same plan with columns that hold objects.

        Raises:
            SpecError: If an aggregation of one of them computes with numbers.
        """
        named = {name: agg for name, agg in self.aggs if name is not None}
        plan = make_plan(
            named if self.names is not None else self.aggs[0][1],
            algorithm=self.algorithm,
            ties=self.ties,
            nan=self.nan,
            prefer=self.prefer,
            options=dict(self.options),
            ranges=self.ranges,
            objects=tuple(dict.fromkeys((*self.objects, *sorted(columns)))),
            queries=self.shared_queries,
        )
        return replace(
            plan,
            last=self.last,
            granularity=self.granularity,
            latency=self.latency,
        )

    def label(self, at: int) -> str:
        """An aggregation, for messages."""
        name, agg = self.aggs[at]
        return repr(agg) if name is None else f"{name!r}, {agg!r},"

    def clock(self, time: object) -> Clock:
        """The clock of a window whose first entry has this time."""
        return self.clock_for(*identify(time))

    def clock_for(self, kind: str, unit: str, zone: Any) -> Clock:
        """The clock for times of this kind."""
        for _, agg in self.aggs:
            check_spans(agg, kind, unit)
        last = None if self.rows is not None else self.last
        queries = self.shared_queries
        return clock_for(
            kind,
            unit,
            zone,
            last,
            self.granularity,
            self.distinct_ranges,
            self.latency,
            None if queries is None else queries.schedule(kind, unit),
        )

    def header(
        self,
        dtypes: Sequence[str | None],
        clock: Clock | None,
        migrated: bool = False,
    ) -> bytes:
        """The plan as canonical JSON, with the types of the columns, and the clock.

        Raises:
            SnapshotError: If it is too long, or the zone of the times has no name.
        """
        header: dict[str, Any] = {
            "aggs": [[name, *self._record(agg)] for name, agg in self.aggs],
            "algorithm": self.algorithm,
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
        if self.algorithm == "auto":
            header["begins"] = list(self.begins)
            header["runs"] = "fiba" if migrated else self.initial_algorithm(dtypes)
        if self.ranges is not None:
            header["ranges"] = [_length_record(length) for length in self.ranges]
        if self.shared_queries is not None:
            header["queries"] = record_of(self.shared_queries)
        if self.custom:
            header["udafs"] = [_reference(functions) for functions in self.custom]
        text = json.dumps(header, sort_keys=True, separators=(",", ":"))
        if len(text) > HEADER_LIMIT:
            raise SnapshotError(
                f"a window of {len(self.aggs)} aggregations is too large for a "
                "snapshot: use several windows"
            )
        return text.encode()

    def _record(self, agg: Aggregation) -> list[Any]:
        if isinstance(agg, UserDefinedAggregation):
            number = self.custom.index(agg.functions)
            return ["udaf", agg.of, None, number, agg.where, 0]
        record = [agg.kind, agg.of, agg.by, agg.ddof, agg.where, agg.k]
        if isinstance(agg, Sketch):
            return [*record, agg.parameters]
        if options := span_options(agg):
            return [*record, *options]
        for name in ALONE:
            if name in agg.record.parameters:
                return [*record, getattr(agg, name)]
        return (
            [*record, agg.q, agg.interpolation]
            if "q" in agg.record.parameters
            else record
        )


def _by_length(ranges: Iterable[Length]) -> dict[tuple[str, int], Length]:
    return {(length.kind, length.amount): length for length in ranges}


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
    queries: Queries | None = None,
) -> WindowPlan:
    """Checks the arguments of a window and makes its plan.

    The arguments are those of `slidewise.Window` and `slidewise.SharedWindow`;
    `options` are their `**parameters`, `queries` the result of `read_queries`, and
    `objects` the columns that hold objects for any `dtype`.

    Raises:
        SpecError: If one of them is wrong; the message names it and a remedy.

    Example:
        >>> import slidewise as sw
        >>> make_plan(sw.sum()).inputs
        (InputColumn(source=0, role='number', masks=(), paired=None),)
    """
    named = _aggregations(aggs)
    names = () if queries is None else queries.flags
    columns = _columns(named, names)
    places = numbered(columns)
    length = None if last is None else parse_length(last, "last")
    rounded = None
    if granularity is not None:
        rounded = checked_duration("granularity", granularity)
    checked_type = _dtype(dtype)
    functions = _custom_functions(agg for _, agg in named)
    all_objects = checked_type == "object"
    # Inputs keep the numbers of their functions when further columns hold objects.
    over_objects = {
        agg: object_functions(agg, any_object=all_objects)
        for column in ([None] if all_objects else objects)
        for _, agg in named
        if agg.record.objects is not None
        and (column is None or column in columns_read(agg, places))
    }
    functions += tuple(dict.fromkeys(over_objects.values()))
    natives = tuple(
        dict.fromkeys(
            agg.functions for _, agg in named if isinstance(agg, NativeAggregation)
        )
    )
    inputs = InputColumns(
        named, places, checked_type, functions, natives, objects, over_objects
    )
    requests = tuple(inputs.request(agg) for _, agg in named)
    flag_calls = (inputs.request(count(where=name)) for name in names)
    flags = tuple(call.of for call in flag_calls if call.of is not None)
    lengths = None if ranges is None else _ranges(ranges)
    shared = lengths is not None or queries is not None
    checked_algorithm = checked_name(algorithm, shared, queries is not None)
    arguments = ("ties", "nan", "ranges" if shared else "last", "prefer", "dtype")
    parameters = checked_options(algorithm, options or {}, arguments)
    durations = {name: of for name, of in parameters if isinstance(of, Length)}
    hint = None if prefer is None else one_of(prefer, "prefer", PREFER)
    plan = WindowPlan(
        aggs=named,
        algorithm=checked_algorithm,
        options=tuple((name, of) for name, of in parameters if isinstance(of, int)),
        prefer=hint,
        begins=_begins(
            checked_algorithm,
            request_kinds(named, requests),
            hint,
            shared,
            queries is not None,
            len(inputs.columns),
        ),
        ties=checked_ties(ties, length),
        dtype=checked_type,
        nan=one_of(nan, "nan", NAN),
        last=length,
        granularity=rounded,
        columns=columns,
        inputs=tuple(inputs.columns),
        requests=requests,
        functions=functions,
        natives=natives,
        ranges=lengths,
        objects=objects,
        latency=durations.get("latency"),
        shared_queries=queries,
        flags=flags,
    )
    check_laws(plan)
    return plan


def _reference(functions: Functions | Compiled) -> Any:
    """A custom aggregation in a header: its name, and of a compiled one its layout."""
    if isinstance(functions, Compiled):
        return [functions.name, functions.form]
    return functions.name


def _begins(
    algorithm: str,
    kinds: Sequence[tuple[str, bool]],
    prefer: str | None,
    shared: bool,
    queries: bool,
    columns: int,
) -> tuple[str, str]:
    if algorithm != "auto":
        return algorithm, algorithm
    rules = [
        choose_shared(kinds, inexact, columns, queries)
        if shared
        else choose(kinds, inexact, prefer)
        for inexact in (False, True)
    ]
    ints, floats = (rule.take for rule in rules)
    return ints, floats


def _ranges(ranges: Iterable[WindowLike | Length]) -> tuple[Length, ...]:
    """The lengths of `ranges=`; ints are numbers of entries, as in `rows(n)`."""
    single = isinstance(ranges, str | BYTES) or not isinstance(ranges, Iterable)
    if single or isinstance(ranges, Mapping):
        mapping = ", not a mapping" if isinstance(ranges, Mapping) else ""
        raise SpecError(
            "ranges= takes several, such as [10, 100], [sw.rows(10)] or ['1m', '1h']"
            f"{mapping}; got {describe_value(ranges)}"
        )
    lengths = tuple(_range(one) for one in ranges)
    if not lengths:
        raise SpecError("ranges= is empty: give at least one, such as [10, 100]")
    return lengths


def _range(one: WindowLike | Length) -> Length:
    length = parse_length(one, "ranges")
    if length.kind == "integer":
        return Length("rows", length.amount, length.label)
    return length


def _aggregations(
    aggs: Aggregation | Mapping[str, Aggregation],
) -> tuple[tuple[str | None, Aggregation], ...]:
    several = aggs.values() if isinstance(aggs, Mapping) else [aggs]
    for agg in several:
        if getattr(agg, "windows", None) is not None:
            raise SpecError(
                f"{agg!r} has windows=, which are for tables and streams: give the "
                "ranges of a Window by query() or last=, of a SharedWindow by ranges="
            )
    if isinstance(aggs, Aggregation):
        return tuple(aggs.each_share().items())
    if not isinstance(aggs, Mapping):
        raise SpecError(
            "a Window takes an aggregation such as sw.sum(), or a mapping from names "
            f"to aggregations such as {{'n': sw.count()}}; got {describe_value(aggs)}"
        )
    return named_aggs(aggs)


def _custom_functions(aggs: Iterable[Aggregation]) -> tuple[Functions, ...]:
    custom = (agg.functions for agg in aggs if isinstance(agg, CustomAggregation))
    return tuple(dict.fromkeys(custom))


def _columns(
    aggs: tuple[tuple[str | None, Aggregation], ...], flags: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The columns that are read, or None if entries are single values."""
    read = [name for _, agg in aggs for name in agg.columns]
    columns = tuple(dict.fromkeys([*read, *flags]))
    for _, agg in aggs:
        if flags and not read and not agg.record.of_rows:
            raise SpecError(
                f"{agg!r} names no column, but queries= read the flag {flags[0]!r}, so "
                f"values are mappings: name one, such as sw.{agg.kind}('x')"
            )
        second = agg.record.second
        if second == "paired" or (columns and second):
            agg.check_columns()
        elif columns and agg.of is None and not agg.record.of_rows:
            raise SpecError(
                f"{agg!r} names no column, but others do: either all aggregations name "
                "one and values are mappings, or none does and values are plain"
            )
    return columns or None


def check_laws(plan: WindowPlan) -> None:
    """Checks that the aggregations satisfy the laws of the algorithm.

    Raises:
        SpecError: If not. The message names the law, and the algorithms without it.
    """
    aggs = [agg for _, agg in plan.aggs]
    _check_holistic(plan, aggs)
    _check_commutes(plan)
    kinds = request_kinds(plan.aggs, plan.requests)
    for algorithm in plan.begins:
        law = ALGORITHMS[algorithm].law
        if law is not None and not _core.obeys_law(law, kinds, len(plan.inputs)):
            pairs = zip(aggs, kinds, strict=True)
            lacking = [
                repr(agg) for agg, kind in pairs if not _core.obeys_law(law, [kind], 1)
            ]
            shown = ", ".join(lacking) or "the set of aggregations"
            numbers = [
                (agg.kind, False) if agg.record.objects is not None else kind
                for agg, kind in zip(aggs, kinds, strict=True)
            ]
            objects = _core.obeys_law(law, numbers, len(plan.inputs))
            raise law_error(algorithm, law, shown, plan.is_shared, objects)


def _check_commutes(plan: WindowPlan) -> None:
    """Refuses late entries into slices if the order within a slice matters."""
    queries = plan.shared_queries
    if queries is None or not queries.slices or queries.late is None:
        return
    objects = not all(functions.commutative for functions in plan.functions)
    lacking = [
        repr(agg)
        for _, agg in plan.aggs
        if not agg.commutes or (objects and agg.record.objects is not None)
    ]
    if lacking:
        raise SpecError(
            f"late entries join their slice in order of arrival, by keep='slices', and "
            f"the order of values matters to {', '.join(lacking)}: leave out late= or "
            "keep="
        )


def _check_holistic(plan: WindowPlan, aggs: Sequence[Aggregation]) -> None:
    lacking = [repr(agg) for agg in aggs if agg.record.group == "holistic"]
    if lacking and plan.is_shared:
        raise SpecError(
            "a SharedWindow combines partial results, but holistic aggregations "
            f"({', '.join(lacking)}) need all values: use one Window per range"
        )
    algorithm = plan.algorithm
    if lacking and algorithm not in KEEPS_VALUES:
        allowed = ", ".join(map(repr, KEEPS_VALUES))
        raise SpecError(
            f"algorithm {algorithm!r} combines partial results, but holistic "
            f"aggregations ({', '.join(lacking)}) need all values of the window: leave "
            f"algorithm= out, or use one of {allowed}"
        )


def has_floats(dtypes: Sequence[str | None]) -> bool:
    """Whether any of these columns holds float64, or int64 that may widen to it."""
    return any(dtype is not None and dtype.startswith("float64") for dtype in dtypes)


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
    """The value of `ties=`: by default "combine", but "keep" with `last=rows(n)`."""
    by_rows = last is not None and last.kind == "rows"
    if ties is None:
        return "keep" if by_rows else "combine"
    if by_rows and one_of(ties, "ties", TIES) == "combine":
        raise SpecError(
            "last=rows(n) counts entries, so those of equal time must stay apart: "
            "leave ties= out, or give ties='keep'"
        )
    return one_of(ties, "ties", TIES)


def _length_record(length: Length | None) -> list[object] | None:
    return None if length is None else [length.kind, length.amount, length.label]
