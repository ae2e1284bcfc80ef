"""Snapshot headers: from JSON that may be anything to the plan of a window."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from slidewise.aggregations import Aggregation, Sketch
from slidewise.aggregations.compiled import NativeAggregation, find_native
from slidewise.aggregations.custom import CustomAggregation, find_custom
from slidewise.errors import SlidewiseError, SnapshotError
from slidewise.spec.durations import Length
from slidewise.window.algorithms import ALGORITHMS, checked_options
from slidewise.window.planner import (
    HEADER_LIMIT,
    WindowPlan,
    check_laws,
    checked_ties,
    make_plan,
)
from slidewise.window.scalar_codec import zone_of_record
from slidewise.window.time_codec import SIZES, Clock

__all__ = ["read_header"]


def read_header(
    header: bytes, own: Sequence[CustomAggregation | NativeAggregation] | None = None
) -> tuple[WindowPlan, list[str | None], Clock | None, bool]:
    """Reads what `WindowPlan.header` wrote: plan, types, clock, whether it migrated.

    Nothing in a header names code, and one that does not come out again as it went in
    is refused.

    Args:
        header: What was written.
        own: The aggregations of the user's own; by default they are looked up by name
            among those that this process has defined.

    Raises:
        SnapshotError: If it is anything else.
    """
    if len(header) > HEADER_LIMIT:
        raise SnapshotError(f"a header of {len(header)} bytes is too long")
    try:
        fields = json.loads(header)
        plan = _read_plan(fields, own)
        dtypes = list(fields["dtypes"])
        if not all(dtype is None or isinstance(dtype, str) for dtype in dtypes):
            raise SnapshotError(f"the types {str(dtypes)[:60]} are none")
        clock = _read_clock(plan, fields["clock"])
        runs = fields.get("runs", plan.first(dtypes))
        migrated = runs != plan.first(dtypes)
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
    fields: dict[str, Any], own: Sequence[CustomAggregation | NativeAggregation] | None
) -> WindowPlan:
    if own is None:
        own = [_defined(name) for name in fields.get("own", ())]
    named = [_read_agg(record, own) for record in fields["aggs"]]
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
    )
    lengths = ("last", "granularity", "latency")
    last, granularity, latency = (_read_length(fields.get(name)) for name in lengths)
    checked_ties(plan.ties, last)
    if granularity is not None and granularity.kind == "rows":
        raise SnapshotError("the header of the snapshot rounds times to rows")
    begins = _read_begins(plan, fields.get("begins"))
    if latency is not None:
        checked_options(plan.asked, {"latency": latency})
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
    raise SnapshotError(f"{str(record)[:60]!r} are no ranges")


def _read_objects(record: object) -> tuple[int, ...]:
    if isinstance(record, list) and all(type(at) is int and at >= 0 for at in record):
        return tuple(record)
    raise SnapshotError(f"{str(record)[:60]!r} are no columns")


def _read_begins(plan: WindowPlan, record: object) -> tuple[str, str]:
    """Not what this version would choose: the entries lie in what was chosen then."""
    match record:
        case None if plan.asked != "auto":
            return plan.begins
        case [str(ints), str(floats)] if {ints, floats} <= ALGORITHMS.keys():
            return ints, floats
    raise SnapshotError(f"a window cannot begin with {str(record)[:60]!r}")


def _read_agg(
    record: Sequence[Any], own: Sequence[CustomAggregation | NativeAggregation]
) -> tuple[str | None, Aggregation]:
    name, kind, of, by, ddof, where, k, *rest = record
    if kind == "own":
        return name, own[ddof](of, where=where)
    if kind == "quantile":
        q, interpolation = rest
        share: Any = {"q": q, "interpolation": interpolation}
        return name, Aggregation(kind, of, by, ddof, where, k, **share)
    if rest:
        (given,) = rest
        parameters = tuple(tuple(p) if isinstance(p, list) else p for p in given)
        return name, Sketch(kind, of, by, ddof, where, k, parameters)
    return name, Aggregation(kind, of, by, ddof, where, k)


def _defined(reference: object) -> CustomAggregation | NativeAggregation:
    """One of the user's own by name. It is never imported: bytes must not run code."""
    name, form = reference if isinstance(reference, list) else (reference, None)
    if not isinstance(name, str):
        raise SnapshotError(
            "the snapshot is of an aggregation of one's own without a name, which only "
            "a pickle of the window brings along: give it name='module:name'"
        )
    found = find_custom(name) if form is None else find_native(name)
    if found is None:
        raise SnapshotError(
            f"the snapshot is of the aggregation {name!r}, which has not been defined: "
            "import its module first"
        )
    if isinstance(found, NativeAggregation) and found.functions.form != form:
        raise SnapshotError(
            f"the snapshot is of {name!r} with records of {str(form)[:200]}, and here "
            f"they are of {found.functions.form}"
        )
    return found


def _read_length(record: object) -> Length | None:
    match record:
        case None:
            return None
        case [("time" | "integer" | "rows") as kind, int(amount), str(label)]:
            if 0 < amount < 2**80 and not isinstance(amount, bool):
                return Length(kind, amount, label)
    raise SnapshotError(f"{str(record)[:60]!r} is no length")


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
    raise SnapshotError(f"{str(record)[:60]!r} is no kind of time")
