"""A snapshot opened with a Spec that has grown since it was made.

Pages hold rows, not results, so other windows and aggregations can be answered from
them, as far as rows and columns were kept.
"""

from dataclasses import replace

from slidewise.errors import SnapshotError
from slidewise.keyed.query import KeyedQuery
from slidewise.spec.spec import Spec
from slidewise.spec.windows.base import Window

__all__ = ["beyond", "check_growth"]

# What decides which rows are kept, and in which order.
_FIXED = ("on", "by", "ties", "nan", "arrival", "unique_by", "empty")


def check_growth(saved: KeyedQuery, spec: Spec, retention: int) -> None:
    """Checks that a Spec can be answered from the rows that a snapshot holds.

    Args:
        saved: The query of the snapshot.
        spec: The Spec to open it with.
        retention: How long rows were kept behind the watermark, in ticks.

    Raises:
        SnapshotError: If it cannot; the message names what differs.
    """
    reason = beyond(saved, spec, retention)
    if reason is not None:
        raise SnapshotError(f"the snapshot is of another Spec: {reason}")


def beyond(saved: KeyedQuery, spec: Spec, retention: int) -> str | None:
    """Why a Spec cannot be answered from the rows that a query kept; None if it can.

    Args:
        saved: The query.
        spec: The Spec.
        retention: How long rows were kept behind the watermark, in ticks.
    """
    one, other = saved.spec, spec
    if one.is_hopping != other.is_hopping:
        kinds = ["rolling", "hopping"]
        return (
            f"its windows are of {kinds[one.is_hopping]}, not of "
            f"{kinds[other.is_hopping]}"
        )
    for name in _FIXED:
        if getattr(one, name) != getattr(other, name):
            return f"{name}={getattr(other, name)!r}, and there {getattr(one, name)!r}"
    query = replace(saved, spec=spec)
    reason = _beyond_windows(saved, query, retention)
    if reason is not None:
        return reason
    kept = {*saved.stored_schema.names, one.on}
    for name, agg in other.aggs:
        for column in agg.columns:
            if column not in kept:
                return (
                    f"aggs[{name!r}], {agg!r}, reads the column {column!r}, "
                    "which it does not keep: leave it out, or ingest the rows again"
                )
    return _beyond_carried(saved, query) or _beyond_cells(saved, query)


def _beyond_windows(saved: KeyedQuery, query: KeyedQuery, retention: int) -> str | None:
    fixed = [_fixed_windows(one.spec) for one in (saved, query)]
    if fixed[0] != fixed[1]:
        shown = [", ".join(map(repr, one)) or "none" for one in fixed]
        return f"its windows that rows begin or end are {shown[0]}, not {shown[1]}"
    if query.spec.empty and query.spec.windows != saved.spec.windows:
        return "with empty=True its windows cannot change: leave them as they were"
    for window in query.spec.windows:
        if window in saved.spec.windows or window in fixed[1]:
            continue
        needed = window.reach(query.ticks_of) + query.step * window.needs_edge
        needed += needed if query.corrects else 0
        if window.rows > saved.rows or needed > retention:
            return (
                f"the window {window.label!r} is beyond its horizon, for "
                "which rows were kept: the longest window and late=, or keep="
            )
    return None


def _beyond_carried(saved: KeyedQuery, query: KeyedQuery) -> str | None:
    """Of the rows behind the horizon only the entries are kept that a Spec carries."""
    kept, needed = (
        {(agg.of, agg.where): name for name, agg in one.spec.aggs if agg.carries}
        if one.carries
        else {}
        for one in (saved, query)
    )
    for entry, name in needed.items():
        if entry not in kept:
            return (
                f"aggs[{name!r}] begins with the entry before its window, which it "
                "does not keep: give edge='first', or ingest the rows again"
            )
    return None


def _beyond_cells(saved: KeyedQuery, query: KeyedQuery) -> str | None:
    """Folded cells have the aggregations of their Spec alone, and no rows."""
    cells = saved.cells
    if cells is None:
        return None
    own = query.cells
    same = own is not None and own[:2] == cells[:2] and own.lag <= cells.lag
    aggs = [[agg for _, agg in one.spec.aggs] for one in (saved, query)]
    if same and aggs[0] == aggs[1]:
        return None
    return (
        "its rows are folded by its aggregations into the cells of resolution=: leave "
        "the aggregations and resolution= as they were, or ingest the rows again"
    )


def _fixed_windows(spec: Spec) -> list[Window]:
    """The windows for which rows are kept in another way than by time."""
    return [
        window
        for window in spec.windows
        if window.by_position or not (window.per_row or window.on_grid)
    ]
