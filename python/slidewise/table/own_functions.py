"""What user-defined aggregations see besides a value: times, columns, windows' ends."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.table.encoding import ValueColumns
from slidewise.table.source import Source
from slidewise.table.time_columns import TimeColumn

__all__ = ["lifted_values", "lowered"]


def lifted_values(
    agg: CustomAggregation, columns: ValueColumns, source: Source, on: str
) -> tuple[list[Any], Functions]:
    """What the lift of an aggregation takes for each row, and its functions.

    Args:
        agg: The aggregation.
        columns: The columns of values.
        source: The table.
        on: The column of times.
    """
    assert agg.of is not None, "a Spec does not let this through"
    values = columns.of(agg.of, where=agg.where, others=agg.others)
    column, seen, functions = values.original.to_pylist(), agg.seen, agg.functions
    taken = [column]
    taken += [columns.of(name).original.to_pylist() for name in agg.others]
    if seen.time:
        taken.insert(0, source.column(on).to_pylist())
    if len(taken) > 1:
        lift = functions.lift
        assert lift is not None, "it has parameters"
        rows = zip(column, zip(*taken, strict=True), strict=True)
        column = [None if value is None else row for value, row in rows]
        functions = replace(functions, lift=lambda row: lift(*row))
    return column, replace(functions, lower=None) if seen.ends else functions


def lowered(
    agg: CustomAggregation,
    partials: list[Any],
    times: TimeColumn,
    starts: pa.Array | None,
    ends: pa.Array,
) -> list[Any]:
    """The answers of partials whose lower sees the ends of the windows.

    Args:
        agg: The aggregation.
        partials: A partial per window; None for one without values.
        times: The column of times, as which lower takes the ends.
        starts: The starts in ticks; None for windows without one.
        ends: The ends in ticks.
    """
    lower, names = agg.functions.lower, agg.seen.ends
    assert lower is not None, "it has parameters"
    bounds: dict[str, list[Any]] = {"start": [None] * len(partials)}
    for name, ticks in (("start", starts), ("end", ends)):
        if ticks is not None:
            bounds[name] = times.window_ends(ticks).to_pylist()
    given = zip(*(bounds[name] for name in names), strict=True)
    return [
        None if partial is None else lower(partial, **dict(zip(names, at, strict=True)))
        for partial, at in zip(partials, given, strict=True)
    ]
