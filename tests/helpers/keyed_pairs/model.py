"""The answers of a stream of keyed windows, from the definitions of its options.

Rows are a list. Each step searches all of it: nothing is folded or evicted.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from keyed_pairs.factors import BY_ROWS, HOPPING
from keyed_pairs.plan import Plan
from keyed_pairs.stream import Row

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Due:
    """An answer that is due.

    Attributes:
        name: Its identity: the place of a row; or a key and its times.
        key: The key.
        tick: The time of its row.
        row: The row that is answered, or None.
        ends: The start and end of its window, for hopping windows and sessions.
        places: The first and last place of its rows, for windows that rows end.
        corrects: The value of `_correction`, or None if it is undefined.
        late: Whether it is a late row that is returned.
        must: Whether the answer is required.
    """

    name: tuple[Any, ...]
    key: Key
    tick: int
    row: Row | None = None
    ends: tuple[int, int] | None = None
    places: tuple[int, int] | None = None
    corrects: bool | None = False
    late: bool = False
    must: bool = True


class Ordered:
    """The rows of a key, in order."""

    def __init__(self, rows: Iterable[Row], plan: Plan) -> None:
        self.rows = list(rows)
        for row in self.rows:
            row.order = row.order or _order(row, plan)
        self.rows.sort(key=lambda row: row.order)
        self.ticks = [row.tick for row in self.rows]
        self.places = {row.at: place for place, row in enumerate(self.rows)}
        self.fresh = [0]
        for row in self.rows:
            self.fresh.append(self.fresh[-1] + row.fresh)


def _order(row: Row, plan: Plan) -> tuple[Any, ...]:
    """Time, then the order of ties; with `arrival=` arrival comes before ties."""
    if plan.case["arrival"]:
        return (row.tick, row.came, _ties(row, plan), row.at)
    return (row.tick, *_first(row, plan))


def _first(row: Row, plan: Plan) -> tuple[Any, ...]:
    """The order of ties, then arrival: batch, `arrival=`, place in the batch."""
    return (_ties(row, plan), row.came, row.at)


def _ties(row: Row, plan: Plan) -> tuple[Any, ...]:
    return tuple(rank(row.values[name]) for name in plan.then_by)


def rank(value: Any) -> tuple[int, Any]:
    """Numbers come before NaN, and NaN before nulls."""
    if value is None:
        return (2, 0)
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    return (0, value)


class Model:
    """The rows that are held, the watermark, and the answers due at each step.

    Attributes:
        held: Accepted rows that were neither deleted nor evicted, by key.
        largest: The largest time seen.
        watermark: In ticks; None before the first.
        late: The number of late rows so far.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.case = plan, plan.case
        self.held: dict[Key, list[Row]] = {}
        self.largest: int | None = None
        self.watermark: int | None = None
        self.late = 0
        self.corrects = self.case["late_rows"] == "correct"
        # The shift of the times of a window on the grid against [start, end).
        self.step = int(self.case["closed"] == "right")
        # The start of the last window with rows of each key; the times of answers.
        self.starts: dict[Key, int] = {}
        self.given: set[tuple[Any, ...]] = set()
        # Whether earlier rows may have been evicted or deleted.
        self.unsure = bool(self.case["deletes"])
        self._ordered: dict[Key, Ordered] = {}

    def ordered(self, key: Key) -> Ordered:
        """The rows of a key."""
        if key not in self._ordered:
            self._ordered[key] = Ordered(self.held.get(key, []), self.plan)
        return self._ordered[key]

    def ingest(self, rows: list[Row]) -> list[Due]:
        """Ingests a batch."""
        floor = -math.inf if self.watermark is None else self.watermark
        behind = floor - self.plan.reach if self.corrects else floor
        taken, late = [], []
        for row in rows:
            on_time = row.tick > (floor if row.gone else behind)
            (taken if on_time else late).append(row)
            seen = row.tick if self.largest is None else self.largest
            self.largest = max(row.tick, seen)
        self.late += len(late)
        new = [row for row in taken if not row.gone]
        deletions = [row for row in taken if row.gone]
        for row in new:
            row.fresh = row.tick <= floor
            self.held.setdefault(row.key, []).append(row)
        gone = {self._take_back(row) for row in deletions}
        self._ordered = {}
        new = [row for row in new if row.at not in gone]
        due = list(self._answers(new, deletions))
        for row in new:
            row.fresh = False
        self._ordered = {}
        if self.case["late_rows"] != "drop" and self.case["emit"] in _ROWS:
            due += [_back(row) for row in late]
        return due

    def _take_back(self, deletion: Row) -> int | None:
        """Deletes the first row by `then_by`, else the first that arrived."""
        found = [
            row for row in self.held.get(deletion.key, []) if row.tick == deletion.tick
        ]
        if not found:
            return None
        first = min(found, key=lambda row: _first(row, self.plan))
        self.held[deletion.key].remove(first)
        if not self.held[deletion.key]:
            del self.held[deletion.key]
        return first.at

    def _answers(self, new: list[Row], deletions: list[Row]) -> Iterator[Due]:
        emit = self.case["emit"]
        if emit == "arrival":
            yield from (_of_row(row) for row in new)
        elif emit == "update":
            yield from self._updates(new, deletions)
        elif any(row.fresh for row in new):
            late = [row for row in new if row.fresh]
            yield from (self._rows if emit == "final" else self._windows)(late)

    def _rows(self, late: list[Row]) -> Iterator[Due]:
        """Late rows, and rows that were answered and whose windows hold one."""
        for row in late:
            row.answered = True
            yield _of_row(row)
        for key in {row.key for row in late}:
            for row in self.held[key]:
                if not row.answered or row.fresh:
                    continue
                due = _of_row(row, corrects=True)
                ordered = self.ordered(key)
                for low, high in (self.span(due, s) for s in self.plan.spans):
                    if ordered.fresh[high] > ordered.fresh[low]:
                        yield due
                        break

    def _windows(self, late: list[Row]) -> Iterator[Due]:
        """Closed windows that hold a late row."""
        for key in {row.key for row in late}:
            ordered = self.ordered(key)
            for start, end in self._hops(key):
                last = end - 1 + self.step
                low, high = _between(ordered, start + self.step, last)
                fresh = ordered.fresh[high] - ordered.fresh[low]
                if last <= (self.watermark or 0) and fresh:
                    yield _window(key, start, end, corrects=fresh < high - low)

    def _updates(self, new: list[Row], deletions: list[Row]) -> Iterator[Due]:
        """Keys that changed, each at its latest row."""
        floor = -math.inf if self.watermark is None else self.watermark
        floor -= self.plan.reach if self.corrects else 0
        grown = {row.key for row in new}
        for key in grown | {row.key for row in deletions}:
            if key not in self.held:
                continue
            tick = max(row.tick for row in self.held[key])
            if tick <= floor:
                continue
            given = (key, tick) in self.given
            self.given.add((key, tick))
            yield Due(
                (key, tick),
                key,
                tick,
                corrects=None if self.unsure else given,
                must=key in grown,
            )

    def advance(self, watermark: int | None) -> list[Due]:
        """Moves the watermark."""
        if self.largest is None:
            return []
        ahead = self.largest - self.plan.late if watermark is None else watermark
        if self.watermark is not None and ahead <= self.watermark:
            return []
        before, self.watermark = self.watermark, ahead
        if self.case["emit"] == "final":
            return self._passed()
        if self.case["emit"] == "slide":
            return list(self._over(-math.inf if before is None else before))
        return []

    def _passed(self) -> list[Due]:
        """Rows that the watermark has passed."""
        due = []
        for rows in self.held.values():
            for row in rows:
                if row.tick <= self.watermark and not row.answered:
                    row.answered = True
                    due.append(_of_row(row))
        return due

    def _over(self, before: float) -> Iterator[Due]:
        """Windows that the watermark has passed."""
        gap = self.plan.grid[0]
        for key in list(self.held):
            if self.case["windows"] == "session":
                for first, last in self._sessions(key):
                    if before < last + gap <= self.watermark:
                        yield _window(key, first, last)
                continue
            if self.case["windows"] in BY_ROWS:
                for places, start, end in self._ended_by_rows(key):
                    if before < end <= self.watermark:
                        yield Due((key, start, end), key, end, None, None, places)
                continue
            due = [
                (start, end)
                for start, end in self._hops(key)
                if before < end - 1 + self.step <= self.watermark
            ]
            for start, end in due:
                if self.case["empty"]:
                    length, every, _ = self.plan.grid
                    since = self.starts.get(key, start)
                    for one in range(since + every, start, every):
                        yield _window(key, one, one + length)
                self.starts[key] = start
                yield _window(key, start, end)

    def _hops(self, key: Key) -> list[tuple[int, int]]:
        """The windows on the grid that hold rows."""
        length, every, offset = self.plan.grid
        found = set()
        for row in self.held[key]:
            tick = row.tick - self.step
            start = (tick - offset) // every * every + offset
            while start + length > tick:
                found.add((start, start + length))
                start -= every
        return sorted(found)

    def _ended_by_rows(self, key: Key) -> Iterator[tuple[tuple[int, int], int, int]]:
        """Their first and last places, and their times."""
        ordered, begin = self.ordered(key), 0
        length, every = HOPPING[self.case["windows"]]
        for at, row in enumerate(ordered.rows):
            first, until = ordered.rows[begin].tick, at + 1
            if self.case["windows"] == "until":
                if row.values["b"] is True:
                    yield (begin, until), first, row.tick
                    begin = until
            elif until % every == 0 and self.case["windows"] == "rows by rows":
                low = max(0, until - length)
                yield (low, until), ordered.ticks[low], row.tick
            elif until % every == 0:
                start = row.tick - self.plan.grid[0]
                yield (bisect_right(ordered.ticks, start), until), start, row.tick

    def _sessions(self, key: Key) -> Iterator[tuple[int, int]]:
        """The first and last times of runs of rows within the gap of one another."""
        ticks = self.ordered(key).ticks
        first = last = ticks[0]
        for tick in ticks:
            if tick - last > self.plan.grid[0]:
                yield first, last
                first = tick
            last = tick
        yield first, last

    def evict_idle(self, until: int) -> int:
        """Evicts keys whose latest row is at or before a time."""
        idle = [
            key
            for key, rows in self.held.items()
            if max(row.tick for row in rows) <= until
        ]
        for key in idle:
            del self.held[key]
            self.starts.pop(key, None)
        self.unsure |= bool(idle)
        self._ordered = {}
        return len(idle)

    def span(self, due: Due, window: tuple[str, int, str]) -> tuple[int, int]:
        """The first and last place of a window, among the ordered rows of its key."""
        ordered, case = self.ordered(due.key), self.case
        kind, length, _ = window
        if due.places is not None:
            return due.places
        if due.ends is not None:
            first, last = due.ends
            if case["windows"] == "session":
                return _between(ordered, first, last)
            return _between(ordered, first + self.step, last - 1 + self.step)
        if kind == "landmark":
            place = ordered.places[due.row.at]
            marks = (at for at in range(place, -1, -1) if _is_mark(ordered.rows[at]))
            return next(marks, 0), place + 1
        if kind == "rows":
            until = len(ordered.rows)
            if case["emit"] == "final":
                until = ordered.places[due.row.at] + 1
            return max(0, until - length), until
        end = due.tick - self.plan.offset
        start = end - length
        low, high = _between(
            ordered,
            start + (case["closed"] in ("right", "neither")),
            end - (case["closed"] in ("left", "neither")),
        )
        peers = case["ties"] == "peers" or case["emit"] != "final"
        if not peers and self.plan.offset == 0:
            high = min(high, ordered.places[due.row.at] + 1)
        return low, max(low, high)

    def members(self, due: Due, window: tuple[str, int, str]) -> list[Row]:
        """The rows of a window, in order."""
        rows = self.ordered(due.key).rows
        kind, length, _ = window
        if due.row is None or not self.case["arrival"]:
            low, high = self.span(due, window)
            return rows[low:high]
        arrived = due.row.came
        if kind == "rows":
            seen = (row for row in reversed(rows) if row.came <= arrived)
            return list(islice(seen, length))[::-1]
        low, high = self.span(due, window)
        return [row for row in rows[low:high] if row.came <= arrived]


_ROWS = ("final", "arrival")


def _is_mark(row: Row) -> bool:
    return row.values["b"] is True


def _between(ordered: Ordered, first: int, last: int) -> tuple[int, int]:
    """The rows at times from the first to the last."""
    low = bisect_left(ordered.ticks, first)
    return low, max(low, bisect_right(ordered.ticks, last))


def _of_row(row: Row, corrects: bool = False) -> Due:
    return Due((row.at, False), row.key, row.tick, row, corrects=corrects)


def _back(row: Row) -> Due:
    return Due((row.at, True), row.key, row.tick, row, late=True)


def _window(key: Key, start: int, end: int, corrects: bool = False) -> Due:
    return Due((key, start, end), key, end, None, (start, end), corrects=corrects)
