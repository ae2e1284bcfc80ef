"""The results of a stream by their definition: those of tables over accepted rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.keyed.columns import LATEST
from slidewise.spec.durations import Length
from slidewise.spec.outputs import outputs_of
from slidewise.spec.spec import Spec, derive
from slidewise.table.equality import equal_values
from slidewise.table.hopping import hopping_spec
from slidewise.table.rolling import rolling_spec
from slidewise.table.time_columns import TimeColumn, window_ticks
from slidewise.testing.differences import (
    NONE,
    cell,
    compare,
    identities,
    row_text,
    values_of,
)

__all__ = ["BATCH", "ROW", "Expected", "can_be_queried", "key_of", "longest"]

# Columns of the stream: the number of a row, and of its batch.
ROW, BATCH = "_row_of_the_check", "_batch_of_the_check"


def can_be_queried(spec: Spec) -> bool:
    """Whether `query` means a `rolling(at=)`: not for what needs a row."""
    ranks = any(agg.record.needs_row for _, agg in spec.aggs)
    end = any(window.leaves_whole or window.needs_row for window in spec.windows)
    return not (ranks or end)


def key_of(point: pa.Table, spec: Spec) -> dict[str, Any]:
    """The key of a point as `query` takes it."""
    keys: list[dict[str, Any]] = point.select(spec.by).to_pylist()
    return keys[0] if keys else {}


def longest(spec: Spec, times: TimeColumn) -> int:
    """The distance from a row to the end of its last window, in ticks.

    Windows without a start have no last one: of the others.
    """
    found = (window.reach(lambda n: window_ticks(n, times)) for window in spec.windows)
    return max((reach for reach in found if reach < LATEST), default=0)


class Expected:
    """The rows that a stream has accepted so far, and what they give.

    Args:
        spec: The Spec.
        rows: All rows of the stream, with their numbers in the column `ROW`.
        times: Their times.
        late: The delay of the watermark, in ticks.
        emit: As for `KeyedWindows`.
        then_by: The columns that order rows of equal time.
        flags: The flags of rows that are emitted without results.
        ahead: How far rows may be ahead of the clock, in ticks; None for any distance.
        idle: After how many ticks without rows the watermark follows the clock.
        horizon: How long an id is remembered behind the watermark, in ticks.
    """

    def __init__(
        self,
        spec: Spec,
        rows: pa.Table,
        times: TimeColumn,
        late: int,
        emit: str,
        then_by: Sequence[str],
        flags: Sequence[str] = (),
        ahead: int | None = None,
        idle: int | None = None,
        horizon: int = 0,
    ) -> None:
        # Rows that are accepted hold no duplicates; an id may count again later.
        self._spec = spec.replace(unique_by=None) if spec.unique_by else spec
        self._rows, self._times = rows, times
        self._ids = identities(rows, [*spec.by, *spec.unique_by])
        missing = (rows[name].is_null().to_pylist() for name in spec.unique_by)
        self._has_id = [not any(each) for each in zip(*missing, strict=True)]
        self._horizon = horizon
        arrivals = (values_of(rows, name) for name in spec.arrivals)
        self._arrivals = [*zip(*arrivals, strict=True)]
        # The latest time of a row that counts, by its id.
        self._known: dict[str, int] = {}
        self._late, self._emit, self._flags = late, emit, flags
        self._ticks: list[int] = times.ticks.to_pylist()
        self._keys = identities(rows, spec.by)
        ties = [(name, "ascending") for name in then_by]
        came = [(name, "ascending") for name in [BATCH, *spec.arrivals]]
        # `arrival=` comes before `then_by`, and batches come before `arrival=`.
        self._order = came + ties if spec.arrival else ties + came
        # The accepted rows, their batches, and the new and late ones of this batch.
        self._accepted: list[int] = []
        self._batches: list[int] = []
        self._new: list[int] = []
        self._dropped: list[int] = []
        self._early: list[int] = []
        self._batch = 0
        self._ahead, self._idle = ahead, idle
        # The last time of the clock, and for how long no row had come then.
        self._now: int | None = None
        self._silent = 0
        self.watermark: int | None = None
        self.largest: int | None = None
        self.late_count = self.ahead_count = self.duplicate_count = 0
        self._last: dict[str, pa.Table] = {}
        self._answers: dict[str, Callable[[int | None, pa.Table], None]] = {
            "arrival": self._arrival,
            "final": self._final,
            "update": self._update,
            "change": self._change,
            "slide": self._slide,
        }

    def look(self, now: int) -> None:
        """Looks at the clock, which the watermark follows after a silence."""
        before = self._silent
        self._silent += 0 if self._now is None else max(0, now - self._now)
        self._now, self._new, self._dropped, self._early = now, [], [], []
        self._batch += 1
        mark = self.watermark
        if mark is None and self.largest is not None:
            mark = self.largest - self._late
        pace = 0
        if self._idle is not None:
            pace = max(0, self._silent - max(before, self._idle))
        if pace and mark is not None:
            self.advance(mark + pace)

    def ingest(self, rows: Sequence[int]) -> None:
        """Accepts the rows that the watermark has not passed."""
        floor = self.watermark
        ticks = self._ticks
        early = {
            row
            for row in rows
            if self._ahead is not None
            and self._now is not None
            and ticks[row] > self._now + self._ahead
        }
        self._early = [row for row in rows if row in early]
        self.ahead_count += len(early)
        rows = [row for row in rows if row not in early]
        self._silent = 0 if rows else self._silent
        self._new = [row for row in rows if floor is None or ticks[row] > floor]
        self._dropped = [
            row for row in rows if floor is not None and ticks[row] <= floor
        ]
        self.late_count += len(self._dropped)
        if self._has_id:
            came = self._new
            if self._arrivals:
                came = sorted(came, key=self._arrivals.__getitem__)
            counting = {row for row in came if self._counts(row)}
            self._new = [row for row in self._new if row in counting]
        self._batch += 1
        self._accepted += self._new
        self._batches += [self._batch] * len(self._new)
        seen = [ticks[row] for row in rows]
        seen += [] if self.largest is None else [self.largest]
        self.largest = max(seen, default=None)

    def _counts(self, row: int) -> bool:
        """Whether a row is not a duplicate, by its id, which is remembered then."""
        if not self._has_id[row]:
            return True
        known = self._known.get(self._ids[row])
        floor = self.watermark
        if known is not None and (floor is None or known > floor - self._horizon):
            self.duplicate_count += 1
            return False
        self._known[self._ids[row]] = self._ticks[row]
        return True

    def advance(self, watermark: int | None = None) -> None:
        """Moves the watermark to a time, by default to the latest less the delay."""
        if watermark is None and self.largest is not None:
            watermark = self.largest - self._late
        if watermark is not None:
            known = watermark if self.watermark is None else self.watermark
            self.watermark = max(known, watermark)

    def check(self, before: int | None, found: pa.Table) -> None:
        """Compares what was emitted for a batch and the watermark after it.

        Args:
            before: The watermark before.
            found: What was emitted.

        Raises:
            DifferenceError: If a cell differs.
        """
        for flag, rows in zip(self._flags, (self._dropped, self._early), strict=False):
            mask = pc.equal(found[flag], True)
            self._check_refused(found.filter(mask), rows)
            found = found.filter(pc.invert(mask))
        self._answers[self._emit](before, found)

    def tick(self, row: int, later: int) -> int:
        """A time after that of a row, at the watermark or later."""
        tick = self._ticks[row] + later
        return tick if self.watermark is None else max(tick, self.watermark)

    def points(self, asked: Sequence[tuple[int, int]]) -> pa.Table:
        """Query points, numbered in the column `ROW`; none before the first rows.

        Args:
            asked: For each, the number of a row with the key, and how much later it is.
        """
        asked = asked if self.largest is not None else ()
        return self._points([row for row, _ in asked], [self.tick(*x) for x in asked])

    def check_queries(self, points: pa.Table, found: pa.Table) -> None:
        """Compares the results of `query_many`, appended to the points."""
        spec = self._queried()
        expected = self._at(points, spec)
        compare(found, expected, [ROW], [*spec.by, spec.on], spec.results)

    def check_query(self, point: pa.Table, found: Mapping[str, Any]) -> None:
        """Compares the results of `query` at a point that have a form in Python."""
        spec = self._queried()
        expected = self._at(point, spec)
        for name in spec.results:
            kind = expected.schema.field(name).type
            if not pa.types.is_primitive(kind) or pa.types.is_temporal(kind):
                continue
            value = expected[name][0].as_py()
            if not equal_values(found[name], value):
                row = row_text(expected, [*spec.by, spec.on], 0)
                raise cell(name, row, repr(found[name]), repr(value))

    # What each `emit=` means. `before` is the watermark before the batch.

    def _arrival(self, before: int | None, found: pa.Table) -> None:  # noqa: ARG002
        """New rows, each over the rows that arrived no later."""
        table = self._table()
        given = rolling_spec(table, self._by_arrival())
        self._compare_rows(found, given.filter(pc.equal(table[BATCH], self._batch)))

    def _final(self, before: int | None, found: pa.Table) -> None:
        """Rows that the watermark has passed, each over all rows."""
        table = self._table()
        given = rolling_spec(table, self._spec)
        passed = [
            self._is_due(self._ticks[row], before) for row in table[ROW].to_pylist()
        ]
        self._compare_rows(found, given.filter(pa.array(passed, pa.bool_())))

    def _update(self, before: int | None, found: pa.Table) -> None:  # noqa: ARG002
        """Keys with new rows, each at its latest row."""
        latest = self._latest()
        rows = [latest[key] for key in {self._keys[row]: 0 for row in self._new}]
        points = self._points(rows, [self._ticks[row] for row in rows])
        expected = self._at(points).drop_columns(ROW)
        self._compare_keys(found, expected)

    def _change(self, before: int | None, found: pa.Table) -> None:
        """As "update", and the last result of each key is that of the watermark."""
        spec, latest = self._spec, self._latest()
        keys = identities(found, spec.by)
        times = values_of(found, spec.on)
        rows = [latest.get(key) for key in keys]
        if None in rows:
            at = rows.index(None)
            raise cell(spec.results[0], keys[at], "given", NONE)
        points = self._points(rows, times)
        numbered = found.append_column(ROW, pa.array(range(len(rows)), pa.int64()))
        expected = self._at(points).drop_columns(ROW)
        expected = expected.append_column(ROW, numbered[ROW])
        shown = [*spec.by, spec.on]
        compare(numbered, expected, [ROW], shown, spec.results)
        first = len({self._keys[row] for row in self._new})
        self._update(before, found.slice(0, first))
        for at, key in enumerate(keys):
            self._last[key] = found.slice(at, 1)
        if not latest:
            return
        floor = self.watermark
        ticks = [self._ticks[row] for row in latest.values()]
        ticks = [tick if floor is None else max(tick, floor) for tick in ticks]
        now = self._at(self._points([*latest.values()], ticks)).drop_columns(ROW)
        last = pa.concat_tables([self._last[key] for key in latest])
        last = last.drop_columns(spec.on).append_column(spec.on, now[spec.on])
        compare(last, now, spec.by, shown, spec.results)

    def _slide(self, before: int | None, found: pa.Table) -> None:
        """Windows that the watermark has passed."""
        spec, table = self._spec, self._table().drop_columns([ROW, BATCH])
        given = hopping_spec(table, spec)
        names = ["window"] if spec.several else []
        ends = self._due(given)
        if spec.empty:
            # An empty window is due with the next one of its key that has rows.
            full = hopping_spec(table, spec.replace(empty=False))
            rows = [*spec.by, *names, "window_start"]
            held = {*identities(full, rows)}
            keys, each = identities(given, spec.by), identities(given, rows)
            following: dict[str, int] = {}
            for at in reversed(range(given.num_rows)):
                if each[at] in held:
                    following[keys[at]] = ends[at]
                ends[at] = following[keys[at]]
        due = pa.array([self._is_due(end, before) for end in ends], pa.bool_())
        rows = [*spec.by, *names, "window_start", "window_end"]
        compare(found, given.filter(due), rows, rows, self._named())

    def _due(self, windows: pa.Table) -> list[int]:
        """The watermark that closes each window: its last tick, or that and the gap."""
        spec = self._spec
        ends = values_of(windows, "window_end")
        which = values_of(windows, "window") if spec.several else [None] * len(ends)
        by_name = {window.name: window for window in spec.windows}
        due = []
        for name, end in zip(which, ends, strict=True):
            window = spec.windows[0] if name is None else by_name[name]
            if window.on_grid:
                due.append(end - window.includes_start)
            elif window.leaves_whole and window.timed is not None:
                due.append(end + self._length(window.timed))
            else:
                due.append(end)
        return due

    # Tables.

    def _length(self, length: Length) -> int:
        return window_ticks(length, self._times)

    def _table(self) -> pa.Table:
        """The accepted rows, with rows of equal time in their order."""
        table = self._rows.take(pa.array(self._accepted, pa.int64()))
        table = table.append_column(BATCH, pa.array(self._batches, pa.int64()))
        place = pa.array(range(len(self._accepted)), pa.int64())
        keyed = table.select(dict.fromkeys(name for name, _ in self._order))
        keyed = keyed.append_column(ROW, place)
        order = pc.sort_indices(keyed, [*self._order, (ROW, "ascending")])
        return table.take(order)

    def _latest(self) -> dict[str, int]:
        """The latest accepted row of each key."""
        latest: dict[str, int] = {}
        for row in self._accepted:
            other = latest.setdefault(self._keys[row], row)
            if self._ticks[row] > self._ticks[other]:
                latest[self._keys[row]] = row
        return latest

    def _points(self, rows: Sequence[Any], ticks: Sequence[int]) -> pa.Table:
        """Query points: the keys of rows, at times."""
        spec = self._spec
        points = self._rows.select(spec.by).take(pa.array(rows, pa.int64()))
        times = self._times.restore(pa.array(ticks, pa.int64()))
        number = pa.array(range(len(rows)), pa.int64())
        columns = [*points.columns, times, number]
        return pa.Table.from_arrays(columns, names=[*spec.by, spec.on, ROW])

    def _at(self, points: pa.Table, spec: Spec | None = None) -> pa.Table:
        table: pa.Table = rolling_spec(self._table(), spec or self._queried(), points)
        return table

    def _queried(self) -> Spec:
        """The Spec as of a query: hopping windows are rolling ones of their length."""
        spec = self._spec
        windows = tuple(window.as_query() for window in spec.windows)
        ties = {"arrival": None, "ties": "peers", "empty": False, "several": False}
        return derive(spec, windows=windows, **ties)

    def _by_arrival(self) -> Spec:
        """The Spec as of arrival, for which the rows of a batch arrive together."""
        return self._spec.replace(arrival=[BATCH, *self._spec.arrivals])

    def _named(self) -> list[str]:
        """The names of results."""
        return [output.column for output in outputs_of(self._spec)]

    def _is_due(self, tick: int, before: int | None) -> bool:
        """Whether the watermark passes a time in this step."""
        if self.watermark is None or tick > self.watermark:
            return False
        return before is None or tick > before

    # Comparisons.

    def _compare_rows(self, found: pa.Table, expected: pa.Table) -> None:
        spec = self._spec
        found = found.drop_columns(self._flags)
        shown = [*spec.by, spec.on]
        compare(found, expected.drop_columns(BATCH), [ROW], shown, spec.results)

    def _compare_keys(self, found: pa.Table, expected: pa.Table) -> None:
        names = [*self._spec.by, self._spec.on]
        compare(found, expected, names, names, self._spec.results)

    def _check_refused(self, found: pa.Table, refused: Sequence[int]) -> None:
        """Late rows, and those ahead of the clock, come back without results."""
        rows = self._rows.take(pa.array(refused, pa.int64()))
        for name in self._spec.results:
            rows = rows.append_column(
                name, pa.nulls(rows.num_rows, found.schema.field(name).type)
            )
        spec = self._spec
        compare(found, rows, [ROW], [*spec.by, spec.on], spec.results)
