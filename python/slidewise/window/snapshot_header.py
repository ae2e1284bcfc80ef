"""Headers of snapshots: reads JSON from untrusted bytes as the plan of a window."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from slidewise.aggregations import Aggregation
from slidewise.aggregations.compiled import NativeAggregation, find_native
from slidewise.aggregations.custom import find_custom
from slidewise.aggregations.records import RECORDS
from slidewise.aggregations.registry import UserDefinedAggregation
from slidewise.aggregations.sketches import Sketch
from slidewise.errors import SlidewiseError, SnapshotError
from slidewise.spec.durations import Length
from slidewise.window.algorithms import ALGORITHMS, checked_options
from slidewise.window.planner import check_laws, checked_ties, make_plan
from slidewise.window.queries import from_record, length_from_record
from slidewise.window.scalar_codec import zone_of_record
from slidewise.window.time_codec import SIZES, Clock
from slidewise.window.window_ends import read_options
from slidewise.window.window_plan import ALONE, HEADER_LIMIT, WindowPlan

__all__ = ["read_header"]


def read_header(
    header: bytes, custom: Sequence[UserDefinedAggregation] | None = None
) -> tuple[WindowPlan, list[str | None], Clock | None, bool]:
    """Reads a header of `WindowPlan.header`: plan, types, clock, whether it migrated.

    A header never names code to run. It must be canonical: writing the plan again gives
    the same bytes.

    Args:
        header: The bytes of the header.
        custom: The custom aggregations; by default those that this process has defined
            under the names in the header.

    Raises:
        SnapshotError: If it is not such a header.
    """
    if len(header) > HEADER_LIMIT:
        raise SnapshotError(f"a header of {len(header)} bytes is too long")
    try:
        fields = json.loads(header)
        plan = _read_plan(fields, custom)
        dtypes = list(fields["dtypes"])
        if not all(dtype is None or isinstance(dtype, str) for dtype in dtypes):
            raise SnapshotError(f"{str(dtypes)[:60]} are no types of columns")
        clock = _read_clock(plan, fields["clock"])
        runs = fields.get("runs", plan.initial_algorithm(dtypes))
        migrated = runs != plan.initial_algorithm(dtypes)
        same = plan.header(dtypes, clock, migrated) == header
    except SnapshotError:
        raise
    except (
        SlidewiseError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise SnapshotError(
            f"the header of the snapshot is damaged: {error}"
        ) from error
    if not same:
        raise SnapshotError("the header of the snapshot is not in canonical form")
    return plan, dtypes, clock, migrated


def _read_plan(
    fields: dict[str, Any],
    custom: Sequence[UserDefinedAggregation] | None,
) -> WindowPlan:
    if custom is None:
        custom = [_defined(name) for name in fields.get("udafs", ())]
    named = [_read_agg(record, custom) for record in fields["aggs"]]
    by_name = {name: agg for name, agg in named if name is not None}
    plan = make_plan(
        by_name if by_name else named[0][1],
        algorithm=fields["algorithm"],
        ties=fields["ties"],
        dtype=fields["dtype"],
        nan=fields["nan"],
        prefer=fields["prefer"],
        options=dict(fields["options"]),
        ranges=_read_ranges(fields.get("ranges")),
        objects=_read_objects(fields.get("objects", [])),
        queries=from_record(fields.get("queries")),
    )
    lengths = ("last", "granularity", "latency")
    last, granularity, latency = (_read_length(fields.get(name)) for name in lengths)
    checked_ties(plan.ties, last)
    if granularity is not None and granularity.kind == "rows":
        raise SnapshotError("the header of the snapshot rounds times to rows")
    begins = _read_begins(plan, fields.get("begins"))
    if latency is not None:
        checked_options(plan.algorithm, {"latency": latency})
    plan = replace(
        plan, last=last, granularity=granularity, latency=latency, begins=begins
    )
    check_laws(plan)
    return plan


def _read_ranges(record: object) -> list[Length] | None:
    match record:
        case None:
            return None
        case [*lengths]:
            found = [_read_length(length) for length in lengths]
            return [length for length in found if length is not None]
    raise SnapshotError(f"{str(record)[:60]!r} are not ranges")


def _read_objects(record: object) -> tuple[int, ...]:
    if isinstance(record, list) and all(type(at) is int and at >= 0 for at in record):
        return tuple(record)
    raise SnapshotError(f"{str(record)[:60]!r} are not columns")


def _read_begins(plan: WindowPlan, record: object) -> tuple[str, str]:
    """The initial algorithms of the snapshot; this version may choose others."""
    match record:
        case None if plan.algorithm != "auto":
            return plan.begins
        case [str(ints), str(floats)] if {ints, floats} <= ALGORITHMS.keys():
            return ints, floats
    raise SnapshotError(f"a window cannot begin with {str(record)[:60]!r}")


def _read_agg(
    record: Sequence[Any], custom: Sequence[UserDefinedAggregation]
) -> tuple[str | None, Aggregation]:
    name, kind, of, by, ddof, where, k, *rest = record
    if kind == "udaf":
        return name, custom[ddof](of, where=where)
    if len(rest) == 1 and isinstance(rest[0], dict):
        options: Any = read_options(rest[0])
        return name, Aggregation(kind, of, by, ddof, where, k, **options)
    known = RECORDS[kind].parameters if kind in RECORDS else ()
    for parameter in ALONE:
        if parameter in known:
            alone: Any = dict(zip((parameter,), rest, strict=True))
            return name, Aggregation(kind, of, by, ddof, where, k, **alone)
    if len(rest) == 2:
        q, interpolation = rest
        share: Any = {"q": q, "interpolation": interpolation}
        return name, Aggregation(kind, of, by, ddof, where, k, **share)
    if rest:
        (given,) = rest
        parameters = tuple(tuple(p) if isinstance(p, list) else p for p in given)
        return name, Sketch(kind, of, by, ddof, where, k, parameters)
    return name, Aggregation(kind, of, by, ddof, where, k)


def _defined(reference: object) -> UserDefinedAggregation:
    """Finds a defined custom aggregation by name; imports nothing, so runs no code."""
    name, form = reference if isinstance(reference, list) else (reference, None)
    if not isinstance(name, str):
        raise SnapshotError(
            "the snapshot is of a custom aggregation without a name: give it "
            "name='module:name', or pickle the window, which keeps its functions"
        )
    found = find_custom(name) if form is None else find_native(name)
    if found is None:
        raise SnapshotError(
            f"the snapshot is of the aggregation {name!r}, which has not been defined: "
            "import its module first"
        )
    if isinstance(found, NativeAggregation) and found.functions.form != form:
        raise SnapshotError(
            f"the snapshot is of {name!r} with records of {str(form)[:200]}, but it is "
            f"defined here with records of {found.functions.form}"
        )
    return found


def _read_length(record: object) -> Length | None:
    return None if record is None else length_from_record(record)


def _read_clock(plan: WindowPlan, record: object) -> Clock | None:
    match record:
        case None:
            return None
        case ["int", "", None]:
            return plan.clock_for("int", "", None)
        case ["date", "D", None]:
            return plan.clock_for("date", "D", None)
        case ["datetime" | "pandas" as kind, str(unit), zone] if unit in SIZES:
            named = None if zone is None else zone_of_record(zone)
            return plan.clock_for(str(kind), unit, named)
        case ["numpy", str(unit), None] if unit in SIZES:
            return plan.clock_for("numpy", unit, None)
    raise SnapshotError(f"{str(record)[:60]!r} is not a kind of time")
