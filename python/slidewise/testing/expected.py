"""The results of a stream by their definition: those of tables over accepted rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations import count
from slidewise.keyed.query import CORRECTION
from slidewise.spec.outputs import outputs_of
from slidewise.spec.spec import Spec, derive
from slidewise.table.equality import equal_values
from slidewise.table.hopping import hopping_spec
from slidewise.testing.accepted import Accepted
from slidewise.testing.case import BATCH, ROW, Case, rolled
from slidewise.testing.differences import (
    NONE,
    cell,
    compare,
    equal_rows,
    identities,
    rounded,
    row_text,
    values_of,
)
from slidewise.testing.expiry import check_until

__all__ = ["Expected", "key_of"]


def key_of(point: pa.Table, by: Sequence[str]) -> dict[str, Any]:
    """The key of a point as `query` takes it."""
    keys: list[dict[str, Any]] = point.select(by).to_pylist()
    return keys[0] if keys else {}


class Expected(Accepted):
    """The rows that a stream has accepted so far, and what they give."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        # The results that were emitted: rows or windows by their identity, and keys
        # with their times; and the last one of each key.
        self._given: pa.Table | None = None
        self._times_given: set[str] = set()
        self._last: dict[str, pa.Table] = {}
        # The keys of rows and of deletions.
        self._ever: set[str] = set()
        # With `changed=True`: the latest row of each key, and the rows, as of the batch
        # before.
        self._before = self.latest(), self.table()
        answers: dict[str, Callable[[int | None, pa.Table], None]] = {
            "arrival": self._arrival,
            "final": self._final,
            "update": self._update,
            "change": self._change,
            "slide": self._slide,
        }
        self._answer = answers.get(case.emit)

    def check(self, before: int | None, found: pa.Table) -> None:
        """Compares what was emitted for a batch and the watermark after it.

        Args:
            before: The watermark before.
            found: What was emitted.

        Raises:
            DifferenceError: If a cell differs.
        """
        refused = (self._dropped, self._early)
        for flag, rows in zip(self.case.flags, refused, strict=False):
            mask = pc.equal(found[flag], True)
            self._check_refused(found.filter(mask), rows)
            found = found.filter(pc.invert(mask))
        if self._answer is not None:
            self._answer(before, found)
        if self.case.options[0].changed:
            self._before = self.latest(), self.table()

    def check_queries(self, points: pa.Table, found: pa.Table) -> None:
        """Compares the results of `query_many`, appended to the points."""
        compare(found, self.at(points), [ROW], self.case.shown, self._asked())

    def check_query(self, point: pa.Table, found: Mapping[str, Any]) -> None:
        """Compares the results of `query` at a point that have a form in Python."""
        expected = self.at(point)
        for name in self._asked():
            value = expected[name].to_pylist()[0]
            if not equal_values(found[name], value):
                shown = row_text(point, self.case.shown, 0)
                raise cell(name, shown, repr(found[name]), repr(value))

    def _asked(self) -> list[str]:
        """The names of the results of queries."""
        return [name for spec in self.queried() for name in spec.results]

    # What each `emit=` means. `before` is the watermark before the batch.

    def _arrival(self, before: int | None, found: pa.Table) -> None:  # noqa: ARG002
        """New rows, each over the rows that arrived no later."""
        table = self.table()
        by_arrival = [
            spec.replace(arrival=[BATCH, *spec.arrivals]) for spec in self._specs
        ]
        given = rolled(table, by_arrival).filter(pc.equal(table[BATCH], self._batch))
        if self.case.corrects:
            none = pa.repeat(pa.scalar(False), given.num_rows)
            given = given.append_column(CORRECTION, none)
        self._compare(found, given.drop_columns(BATCH), [ROW])

    def _final(self, before: int | None, found: pa.Table) -> None:
        """Rows that the watermark has passed, each over all rows."""
        given = rolled(self.table(), self._specs).drop_columns(BATCH)
        ticks = [self._ticks[row] for row in given[ROW].to_pylist()]
        self._compare(found, self._passed(given, [ROW], ticks, before, found), [ROW])

    def _slide(self, before: int | None, found: pa.Table) -> None:
        """Windows that the watermark has passed."""
        (spec,), table = self._specs, self.table().drop_columns([ROW, BATCH])
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
        rows = [*spec.by, *names, "window_start", "window_end"]
        expected = self._passed(given, rows, ends, before, found)
        compare(found, expected, rows, rows, self._named(spec))

    def _passed(
        self,
        given: pa.Table,
        names: Sequence[str],
        ticks: Sequence[int],
        before: int | None,
        found: pa.Table,
    ) -> pa.Table:
        """The results to emit: those due, and those that late rows correct.

        A result that late rows leave as it was may come again.

        Args:
            given: Results.
            names: The columns that identify them.
            ticks: The watermarks at which they are due.
            before: The watermark before.
            found: What was emitted.
        """
        due = [self.is_due(tick, before) for tick in ticks]
        if not self.case.corrects:
            return given.filter(pa.array(due, pa.bool_()))
        each, emitted = identities(given, names), {*identities(found, names)}
        known, earlier = {}, self._given
        if earlier is not None:
            known = {one: at for at, one in enumerate(identities(earlier, names))}
        results = [*given.column_names]
        was = [known.get(one) for one in each]
        for at, one in enumerate(each):
            if before is None or ticks[at] > before:
                continue
            old = was[at]
            if earlier is None or old is None or one in emitted:
                due[at] = True
            else:
                rows = given.slice(at, 1), earlier.slice(old, 1)
                due[at] = not equal_rows(*rows, results)
        again = pa.array([place is not None for place in was], pa.bool_())
        passed = [self.watermark is not None and x <= self.watermark for x in ticks]
        self._given = given.filter(pa.array(passed, pa.bool_()))
        corrected = given.append_column(CORRECTION, again)
        return corrected.filter(pa.array(due, pa.bool_()))

    def _due(self, windows: pa.Table) -> list[int]:
        """The watermark that closes each window: its last tick, or that and the gap."""
        (spec,) = self._specs
        ends = values_of(windows, "window_end")
        which = values_of(windows, "window") if spec.several else [None] * len(ends)
        by_name = {window.name: window for window in spec.windows}
        due = []
        for name, end in zip(which, ends, strict=True):
            window = spec.windows[0] if name is None else by_name[name]
            if window.on_grid:
                due.append(end - window.includes_start)
            elif window.leaves_whole and window.timed is not None:
                due.append(end + self.case.ticks(window.timed))
            else:
                due.append(end)
        return due

    def _update(self, before: int | None, found: pa.Table) -> None:  # noqa: ARG002
        """Keys with new rows, each at its latest row."""
        names, latest = self.case.shown, self.latest()
        keys = dict.fromkeys(self._keys[row] for row in self._new)
        # A key whose rows were deleted may come, if it has others.
        emitted = {*identities(found, self.case.spec.by)}
        freed = dict.fromkeys(self._keys[row] for row in self._deletions)
        keys |= {key: None for key in freed if key in latest and key in emitted}
        rows = [latest[key] for key in keys]
        expected = self.at(self.points_of(rows, [self._ticks[row] for row in rows]))
        expected = expected.drop_columns(ROW)
        times = identities(expected, names)
        if self.case.corrects and self.case.deletes is None:
            again = [each in self._times_given for each in times]
            expected = expected.append_column(CORRECTION, pa.array(again, pa.bool_()))
        self._times_given.update(times)
        self._compare(found, expected, names)
        self._check_until(found)

    def _change(self, before: int | None, found: pa.Table) -> None:
        """Right results, of which the last ones of all keys are current."""
        case, latest = self.case, self.latest()
        keys = identities(found, case.spec.by)
        self._ever.update(latest, (self._keys[row] for row in self._deletions))
        for at, key in enumerate(keys):
            if key not in self._ever:
                shown = row_text(found, case.shown, at)
                raise cell(case.spec.results[0], shown, "given", NONE)
        last = {key: at for at, key in enumerate(keys)}
        final = pa.array([last[key] == at for at, key in enumerate(keys)], pa.bool_())
        for mask, fresh in ((final, True), (pc.invert(final), not case.advance_first)):
            part = found.filter(mask)
            numbers = pa.array(range(part.num_rows), pa.int64())
            part = part.append_column(ROW, numbers)
            expected = self.at(part.select([*case.shown, ROW]), fresh=fresh)
            compare(part, expected, [ROW], case.shown, case.spec.results)
            self._check_until(part, fresh=fresh)
        if case.options[0].changed:
            self._check_changed(before, found, keys)
        elif not case.corrects:  # which leaves out keys whose windows they left
            self._check_new(found, latest)
        if case.corrects:
            for at in pc.indices_nonzero(found[CORRECTION]).to_pylist():
                if keys[at] not in self._last:
                    shown = row_text(found, case.shown, at)
                    raise cell(CORRECTION, shown, "True", "False")
        self._last |= {key: found.slice(at, 1) for key, at in last.items()}
        self._check_last(latest)

    def _check_new(self, found: pa.Table, latest: Mapping[str, int]) -> None:
        """Each key with new rows is given at its latest row."""
        rows = [latest[key] for key in {self._keys[row]: 0 for row in self._new}]
        points = self.points_of(rows, [self._ticks[row] for row in rows])
        given = {*identities(found, self.case.shown)}
        for at, each in enumerate(identities(points, self.case.shown)):
            if each not in given:
                name = self.case.spec.results[0]
                value = repr(self.at(points)[name][at].as_py())
                raise cell(name, row_text(points, self.case.shown, at), NONE, value)

    def _check_last(self, latest: Mapping[str, int]) -> None:
        """The last result of each key is that at the watermark or its latest row."""
        case, floor = self.case, self.watermark
        if not latest:
            return
        ticks = [self._ticks[row] for row in latest.values()]
        ticks = [tick if floor is None else max(tick, floor) for tick in ticks]
        points = self.points_of([*latest.values()], ticks)
        now = self.at(points)
        # A key without a result is one without rows in its windows.
        empty = rolled(self.table().slice(0, 0), self.queried(), points)
        names = now.drop_columns([case.spec.on, ROW]).column_names
        last = [
            self._last[key].select(names)
            if key in self._last
            else empty.slice(at, 1).select(names)
            for at, key in enumerate(latest)
        ]
        held = pa.concat_tables(last, promote_options="permissive")
        held = held.append_column(case.spec.on, now[case.spec.on])
        self._compare(held, now.drop_columns(ROW), case.spec.by)
        known = pa.array([key in self._last for key in latest], pa.bool_())
        tables = [self._last[key] for key in latest if key in self._last]
        if case.options[0].valid_until and tables:
            until = pa.concat_tables(tables, promote_options="permissive")
            place = until.column_names.index(case.spec.on)
            moments = now.filter(known)[case.spec.on]
            self._check_until(until.set_column(place, case.spec.on, moments))

    def _check_changed(
        self, before: int | None, found: pa.Table, keys: Sequence[str]
    ) -> None:
        """No result equals the last one of its key, while that had rows in windows.

        Equal to the last bit, which those of floats need not be: they are left out.
        """
        case = self.case
        names = [name for name in found.column_names if name not in case.shown]
        names = [name for name in names if name != CORRECTION]
        if rounded(found, names):
            return
        latest, table = self._before
        seen: set[str] = set()
        for at, key in enumerate(keys):
            row, old = found.slice(at, 1), self._last.get(key)
            if key in seen or key not in latest or old is None:
                continue
            seen.add(key)
            if not equal_rows(row, old, names):
                continue
            tick = self._ticks[latest[key]]
            tick = tick if before is None else max(tick, before)
            points = self.points_of([latest[key]], [tick])
            specs = [derive(x, aggs=(("n", count()),), own=()) for x in self.queried()]
            held = rolled(table, specs, points)
            if any(held[name][0].as_py() for x in specs for name in x.results):
                name = case.spec.results[0]
                shown = row_text(row, case.shown, 0)
                raise cell(name, shown, "given again", "left out")

    def _check_until(self, found: pa.Table, *, fresh: bool = True) -> None:
        """Compares `valid_until_<window>` of results per key."""
        if self.case.options[0].valid_until and found.num_rows:
            rows = self.table(fresh=fresh)
            check_until(self.case, self.queried(), rows, found)

    # Comparisons.

    def _named(self, spec: Spec) -> list[str]:
        """The names of results."""
        return [output.column for output in outputs_of(spec)]

    def _compare(
        self, found: pa.Table, expected: pa.Table, names: Sequence[str]
    ) -> None:
        case = self.case
        compare(found, expected, names, case.shown, case.spec.results)

    def _check_refused(self, found: pa.Table, refused: Sequence[int]) -> None:
        """Late rows, and those ahead of the clock, come back without results."""
        rows = self.case.rows.take(pa.array(refused, pa.int64()))
        for name in self.case.spec.results:
            rows = rows.append_column(
                name, pa.nulls(rows.num_rows, found.schema.field(name).type)
            )
        self._compare(found, rows, [ROW])
