"""The first time at which answers change because rows leave their windows.

A row leaves a window at its time plus the length of the window. Answers are computed
over the rows that remain after each such time, and compared by value: NaN equals NaN,
both zeros are equal, and null equals null.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.frames.adapt import frame
from slidewise.frames.base import Result
from slidewise.keyed.columns import LATEST, TIME, int64_view
from slidewise.keyed.horizon import Horizon
from slidewise.spec.spec import Spec, derive
from slidewise.spec.windows.base import Window
from slidewise.spec.windows.trailing import Trailing
from slidewise.table.arrays import (
    decode_dictionary,
    one_column,
    row_numbers,
    storage_of,
)
from slidewise.table.kernel_call import KernelCall
from slidewise.table.points import QueryPoints

__all__ = ["any_different", "changes_of_folds", "changes_of_rows"]

_INT64, _CODE = pa.int64(), pa.uint32()
# The number of times of a query point in the first step, and its growth per step.
_FIRST_TIMES, _GROWTH = 1, 8
# The greatest number of windows that a step answers.
_MAX_WINDOWS = 1 << 18

_Results = Mapping[str, Result]


def changes_of_folds(
    of: Sequence[_Results],
    counts: Sequence[pa.Array],
    times: pa.Array,
    after: _Results | None,
) -> list[pa.Array]:
    """The times of the first rows with which results change, per window.

    Args:
        of: Per window, the results of the query points.
        counts: Per window, the number of changes of its fold of each point.
        times: The times of these changes, concatenated.
        after: The results after these changes; None if all of them change the result.
    """
    first, found = 0, []
    for results, each in zip(of, counts, strict=True):
        point = _places(each)
        here, first = slice(first, first + len(point)), first + len(point)
        ticks = times[here]
        if after is not None:
            rest = {
                name: result._replace(array=result.array[here])
                for name, result in after.items()
            }
            changed = _changed(results, rest, point)
            ticks, point = ticks.filter(changed), point.filter(changed)
        found.append(ticks.take(pc.index_in(row_numbers(len(each)), point)))
    return found


def changes_of_rows(
    rows: pa.Table,
    codes: pa.Array,
    points: QueryPoints,
    spec: Spec,
    horizon: Horizon,
    of: Sequence[_Results],
) -> list[pa.Array]:
    """As `changes_of_folds`, for query points that are answered from rows.

    Each point has a code of its own, and sees the rows with that code. Codes of rows
    are dense, and precede those of points without rows.
    """
    by_key = pa.table({"code": codes, "time": rows[TIME]})
    by_key = by_key.sort_by([("code", "ascending"), ("time", "ascending")])
    keys = int64_view(by_key["code"].cast(_INT64).combine_chunks())
    ticks = int64_view(by_key["time"].combine_chunks())
    found = []
    for window, results in zip(spec.windows, of, strict=True):
        never: list[int | None] = [None] * len(points.ends)
        if window.timed is None:
            found.append(pa.array(never, _INT64))
            continue
        rest = Trailing(window.timed, "both")
        # A result beyond int64 becomes null, and null differs from any number.
        call = KernelCall(frame(rows), derive(spec, windows=(rest,), overflow="null"))
        call.groups = codes
        assert points.groups is not None, "each point has a code"
        held, ends = points.groups.to_pylist(), points.ends.to_pylist()
        rest_of = _Points(held, ends, (keys, ticks), window, horizon)
        names = (name for name, _ in horizon.query.spec.aggs if name in results)
        own = {name: results[name] for name in names}
        found.append(rest_of.changes(call, own))
    return found


class _Points:
    """Query points of one window, whose rows leave in order of time."""

    def __init__(
        self,
        codes: list[int],
        ends: list[int],
        rows: tuple[Sequence[int], Sequence[int]],
        window: Window,
        horizon: Horizon,
    ) -> None:
        self._codes = codes
        keys, ticks = rows
        self._ticks = ticks
        self._ends: list[int] = []
        # Per point, the range of the rows that are still in its window.
        self._rows: list[tuple[int, int]] = []
        for code, tick in zip(codes, ends, strict=True):
            since, until = horizon.bounds(window, tick)
            low = bisect_left(keys, code)
            high = bisect_right(keys, code, low)
            low = bisect_left(ticks, since, low, high)
            # A row of the last time never leaves.
            high = bisect_right(ticks, min(until, LATEST - 1), low, high)
            self._rows.append((low, high))
            self._ends.append(until)

    def changes(self, call: KernelCall, results: _Results) -> pa.Array:
        """The times of the first rows with which results change."""
        first: list[int | None] = [None] * len(self._codes)
        pending = [at for at, (low, high) in enumerate(self._rows) if low < high]
        count = _FIRST_TIMES
        while pending:
            points, times = self._leave(pending, count)
            ends = QueryPoints(
                ends=pa.array([self._ends[at] for at in points], _INT64),
                starts=pa.array([time + 1 for time in times], _INT64),
                groups=pa.array([self._codes[at] for at in points], _CODE),
                arrival=None,
                noun="query",
            )
            after = call.compute_window(0, ends)
            changed = _changed(results, after, pa.array(points, _INT64))
            # Backwards, so that the first change overwrites later ones.
            for place in reversed(pc.indices_nonzero(changed).to_pylist()):
                first[points[place]] = times[place]
            pending = [
                at
                for at in pending
                if first[at] is None and self._rows[at][0] < self._rows[at][1]
            ]
            count = min(count * _GROWTH, max(1, _MAX_WINDOWS // max(1, len(pending))))
        return pa.array(first, _INT64)

    def _leave(self, pending: list[int], count: int) -> tuple[list[int], list[int]]:
        """Removes the rows of the next `count` times; gives the points and times."""
        points, times = [], []
        for at in pending:
            low, high = self._rows[at]
            for _ in range(count):
                if low == high:
                    break
                time = self._ticks[low]
                low = bisect_right(self._ticks, time, low, high)
                points.append(at)
                times.append(time)
            self._rows[at] = low, high
        return points, times


def _changed(results: _Results, after: _Results, point: pa.Array) -> pa.Array:
    """Whether the result of a point differs from one after a change."""
    pairs = (
        (result.array.take(point), after[name].array)
        for name, result in results.items()
    )
    return any_different(pairs, len(point))


def any_different(pairs: Iterable[tuple[pa.Array, pa.Array]], count: int) -> pa.Array:
    """Whether any of so many results of each row differs from its other one."""
    masks = (_differ(one_column([*pair])) for pair in pairs)
    return reduce(pc.or_, masks, pa.repeat(pa.scalar(False), count))


def _differ(both: pa.Array) -> pa.Array:
    """Whether each value of the first half differs from its value in the second."""
    both = storage_of(decode_dictionary(both))
    one, other = both.slice(0, len(both) // 2), both.slice(len(both) // 2)
    differ = pc.xor(one.is_valid(), other.is_valid())
    return pc.or_(differ, pc.fill_null(_differ_in_value(one, other), False))


def _differ_in_value(one: pa.Array, other: pa.Array) -> pa.Array:
    """As `_differ`, where both columns have a value; others may be null."""
    types, kind = pa.types, one.type
    if types.is_floating(kind):
        one, other = one.cast(pa.float64()), other.cast(pa.float64())
        nan = pc.and_(pc.is_nan(one), pc.is_nan(other))
        return pc.and_(pc.not_equal(one, other), pc.invert(nan))
    one, other = _as_lists(one), _as_lists(other)
    if types.is_list(one.type) or types.is_large_list(one.type):
        longer = pc.not_equal(pc.list_value_length(one), pc.list_value_length(other))
        rows = pc.indices_nonzero(pc.fill_null(pc.invert(longer), False))
        one, other = one.take(rows), other.take(rows)
        items = _differ(one_column([one.flatten(), other.flatten()]))
        parents = rows.take(pc.list_parent_indices(one).filter(items))
        places = row_numbers(len(longer)).cast(parents.type)
        return pc.or_(longer, pc.is_in(places, parents))
    if types.is_struct(kind):
        pairs = zip(one.flatten(), other.flatten(), strict=True)
        none = pa.repeat(pa.scalar(False), len(one))
        return reduce(pc.or_, (_differ(one_column(pair)) for pair in pairs), none)
    try:
        return pc.not_equal(one, other)
    except pa.ArrowNotImplementedError:
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return pa.array([mine != theirs for mine, theirs in pairs], pa.bool_())


def _as_lists(column: pa.Array) -> pa.Array:
    """Lists of other layouts, and maps, as lists; other columns as they are."""
    types, kind = pa.types, column.type
    if types.is_map(kind):
        return column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    if types.is_fixed_size_list(kind):
        return column.cast(pa.list_(kind.value_field))
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        # Arrow's cast of a slice is wrong.
        return pa.array(column.to_pylist(), pa.list_(kind.value_field))
    return column


def _places(counts: pa.Array) -> pa.Array:
    """The position of each count, repeated by the count."""
    ends = pc.cumulative_sum(counts).cast(_INT64)
    offsets = pa.concat_arrays([pa.array([0], _INT64), ends])
    lists = pa.LargeListArray.from_arrays(offsets, pa.nulls(offsets[-1].as_py()))
    return pc.list_parent_indices(lists)
