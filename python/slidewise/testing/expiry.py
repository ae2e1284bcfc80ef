"""`valid_until_<window>` by its definition: when the rows of a window leave.

The result of a window at a point holds until the first time at which `rolling(at=)`
over the rows that the window has differs.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from slidewise.aggregations import collect
from slidewise.spec.outputs import until_column
from slidewise.spec.spec import Spec, derive
from slidewise.spec.windows.base import Window
from slidewise.testing.case import BATCH, ROW, Case, rolled
from slidewise.testing.differences import (
    cell,
    equal_rows,
    rounded,
    row_text,
    values_of,
)

__all__ = ["check_until"]

# The column of the number of a point, which is the key of the rows of its window.
_POINT = "_point_of_the_check"


def check_until(
    case: Case, specs: Sequence[Spec], rows: pa.Table, found: pa.Table
) -> None:
    """Compares the times at which results of a stream change.

    Args:
        case: The stream.
        specs: Its Specs, as of a query.
        rows: The rows that it has.
        found: Its results at keys and times.

    Raises:
        DifferenceError: With the first time that differs.
    """
    for spec in specs:
        for window in spec.windows:
            name = until_column(spec, window)
            mine = values_of(found, name)
            wanted = _until(case, derive(spec, windows=(window,)), rows, found)
            for at, times in enumerate(wanted):
                if mine[at] in times:
                    continue
                shown = row_text(found, case.shown, at)
                raise cell(name, shown, _text(case, mine[at]), _text(case, times[-1]))


def _until(
    case: Case, spec: Spec, rows: pa.Table, found: pa.Table
) -> Iterator[list[int | None]]:
    """The times that are right for each result; the last one is by the table.

    Those before are times at which floats differ by rounding alone.
    """
    points = found.select(case.shown)
    number = pa.array(range(points.num_rows), pa.int64())
    points = points.append_column(_POINT, number)
    listing = derive(spec, aggs=(("rows", collect(ROW)),), min_rows=0, own=(), fill=())
    (name,) = listing.results
    members = rolled(rows, [listing], points)[name].to_pylist()
    members = [each or [] for each in members]
    own, moments = _of_points(case, spec, rows, points, members)
    answers = rolled(own, [derive(spec, by=(_POINT,))], moments)
    of = answers[_POINT].to_pylist()
    ticks = values_of(answers, spec.on)
    places: list[list[int]] = [[] for _ in members]
    for at, point in enumerate(of):
        places[point].append(at)
    rounds = rounded(answers, spec.results)
    for here, *later in places:
        right: list[int | None] = []
        now = answers.slice(here, 1)
        for at in later:
            equal = equal_rows(now, answers.slice(at, 1), spec.results)
            if rounds or not equal:
                right.append(ticks[at])
            if not equal:
                break
        else:
            right.append(None)
        yield right


def _of_points(
    case: Case,
    spec: Spec,
    rows: pa.Table,
    points: pa.Table,
    members: Sequence[Sequence[int]],
) -> tuple[pa.Table, pa.Table]:
    """The rows of each point's window, and the times at which to ask: its own first."""
    (window,) = spec.windows
    place = {row: at for at, row in enumerate(rows[ROW].to_pylist())}
    taken = [place[row] for each in members for row in each]
    of = [point for point, each in enumerate(members) for _ in each]
    own = rows.take(pa.array(taken, pa.int64())).drop_columns([ROW, BATCH])
    own = own.append_column(_POINT, pa.array(of, pa.int64()))
    tick = dict(zip(place, values_of(rows, spec.on), strict=True))
    asked: list[tuple[int, int]] = []
    for point, (at, each) in enumerate(
        zip(values_of(points, spec.on), members, strict=True)
    ):
        asked.append((point, at))
        asked += [(point, time) for time in _leaving(case, window, at, each, tick)]
    times = case.times.restore(pa.array([time for _, time in asked], pa.int64()))
    numbers = pa.array([point for point, _ in asked], pa.int64())
    return own, pa.Table.from_arrays([numbers, times], names=[_POINT, spec.on])


def _leaving(
    case: Case,
    window: Window,
    at: int,
    members: Sequence[int],
    ticks: dict[int, int],
) -> list[int]:
    """The times after a point at which a row may leave, whichever ends are closed."""
    if window.timed is None:
        return []
    reach = window.reach(case.ticks)
    times = {ticks[row] + reach + more for row in members for more in (0, 1)}
    return sorted(time for time in times if time > at)


def _text(case: Case, tick: int | None) -> str:
    """A time as text."""
    if tick is None:
        return "None"
    if case.times.unit is None:
        return str(tick)
    return str(case.times.restore(pa.array([tick], pa.int64())).cast(pa.string())[0])
