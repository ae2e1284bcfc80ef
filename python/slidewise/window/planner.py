"""Plans windows: checks arguments, chooses the algorithm, assigns input columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import slidewise._core as _core
from slidewise.aggregations import count
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.compiled import NativeAggregation
from slidewise.aggregations.objects import object_functions
from slidewise.aggregations.scalars import BYTES
from slidewise.errors import SpecError, describe_value
from slidewise.spec.arguments import named_aggs, one_of
from slidewise.spec.durations import Length, WindowLike, parse_length
from slidewise.window.algorithms import (
    ALGORITHMS,
    checked_duration,
    checked_name,
    checked_options,
    law_error,
)
from slidewise.window.auto_rules import choose, choose_shared, request_kinds
from slidewise.window.inputs import InputColumns, columns_read, numbered
from slidewise.window.queries import (
    Queries,
)
from slidewise.window.window_plan import WindowPlan, custom_functions

__all__ = ["check_laws", "checked_ties", "make_plan", "with_objects"]

TIES = ("combine", "keep")
NAN = ("propagate", "skip", "raise")
PREFER = ("throughput", "latency")
# The algorithms that keep all values of a window, as holistic aggregations need.
KEEPS_VALUES = ("auto", "fiba", "recalculate")
DTYPES = {"int64": "int64", "float64": "float64", "object": "object", int: "int64"}
DTYPES |= {float: "float64", object: "object"}


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
    functions = custom_functions(agg for _, agg in named)
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


def with_objects(plan: WindowPlan, columns: Sequence[int]) -> WindowPlan:
    """A plan with further columns that hold objects.

    Raises:
        SpecError: If an aggregation of one of them computes with numbers.
    """
    named = {name: agg for name, agg in plan.aggs if name is not None}
    made = make_plan(
        named if plan.names is not None else plan.aggs[0][1],
        algorithm=plan.algorithm,
        ties=plan.ties,
        nan=plan.nan,
        prefer=plan.prefer,
        options=dict(plan.options),
        ranges=plan.ranges,
        objects=tuple(dict.fromkeys((*plan.objects, *sorted(columns)))),
        queries=plan.shared_queries,
    )
    return replace(
        made,
        last=plan.last,
        granularity=plan.granularity,
        latency=plan.latency,
    )


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
    several: Iterable[object] = aggs.values() if isinstance(aggs, Mapping) else [aggs]
    for agg in several:
        if not isinstance(agg, Aggregation):  # refused below
            continue
        if agg.carries:
            raise SpecError(agg.carry_error)
        if agg.record.needs_row:
            raise SpecError(agg.row_error)
        if agg.windows is not None:
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
