"""A snapshot opened with a Spec that has grown since it was made.

Pages hold rows, not results, so other windows and aggregations can be answered from
them, as far as rows and columns were kept.
"""

from dataclasses import replace

from slidewise.errors import SnapshotError
from slidewise.keyed.query import KeyedQuery
from slidewise.spec.spec import Spec
from slidewise.spec.windows.base import Window

__all__ = ["check_growth"]

# What decides which rows are kept, and in which order.
_FIXED = ("on", "by", "ties", "nan", "arrival", "unique_by", "empty")
_ANOTHER = "the snapshot is of another Spec: "


def check_growth(saved: KeyedQuery, spec: Spec, retention: int) -> None:
    """Checks that a Spec can be answered from the rows that a query kept.

    Args:
        saved: The query of the snapshot.
        spec: The Spec to open it with.
        retention: How long rows were kept behind the watermark, in ticks.

    Raises:
        SnapshotError: If it cannot; the message names what differs.
    """
    one, other = saved.spec, spec
    if one.is_hopping != other.is_hopping:
        kinds = ["rolling", "hopping"]
        raise SnapshotError(
            f"{_ANOTHER}its windows are of {kinds[one.is_hopping]}, not of "
            f"{kinds[other.is_hopping]}"
        )
    for name in _FIXED:
        if getattr(one, name) != getattr(other, name):
            raise SnapshotError(
                f"{_ANOTHER}{name}={getattr(other, name)!r}, and there "
                f"{getattr(one, name)!r}"
            )
    _check_windows(saved, replace(saved, spec=spec), retention)
    kept = {*saved.stored_schema.names, one.on}
    for name, agg in other.aggs:
        for column in agg.columns:
            if column not in kept:
                raise SnapshotError(
                    f"{_ANOTHER}aggs[{name!r}], {agg!r}, reads the column {column!r}, "
                    "which it does not keep: leave it out, or ingest the rows again"
                )


def _check_windows(saved: KeyedQuery, query: KeyedQuery, retention: int) -> None:
    fixed = [_fixed_windows(one.spec) for one in (saved, query)]
    if fixed[0] != fixed[1]:
        shown = [", ".join(map(repr, one)) or "none" for one in fixed]
        raise SnapshotError(
            f"{_ANOTHER}its windows that rows begin or end are {shown[0]}, not "
            f"{shown[1]}"
        )
    if query.spec.empty and query.spec.windows != saved.spec.windows:
        raise SnapshotError(
            f"{_ANOTHER}with empty=True its windows cannot change: leave them as they "
            "were"
        )
    for window in query.spec.windows:
        if window in saved.spec.windows or window in fixed[1]:
            continue
        needed = window.reach(query.ticks_of) + query.step * window.needs_edge
        needed += needed if query.corrects else 0
        if window.rows > saved.rows or needed > retention:
            raise SnapshotError(
                f"{_ANOTHER}the window {window.label!r} is beyond its horizon, for "
                "which rows were kept: the longest window and late=, or keep="
            )


def _fixed_windows(spec: Spec) -> list[Window]:
    """The windows for which rows are kept in another way than by time."""
    return [
        window
        for window in spec.windows
        if window.by_position or not (window.per_row or window.on_grid)
    ]
