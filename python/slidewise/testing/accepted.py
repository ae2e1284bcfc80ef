"""The rows that a stream has accepted, by the definitions of its options."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.spec.spec import Spec, derive
from slidewise.testing.case import BATCH, ROW, Case, rolled
from slidewise.testing.differences import identities, values_of

__all__ = ["Accepted"]


class Accepted:
    """The rows that a stream has accepted so far, and its watermark.

    Attributes:
        watermark: In ticks; None before the first.
        largest: The latest time seen, in ticks.
        late_count: The number of rows that were late.
        ahead_count: That of rows that were ahead of the clock.
        duplicate_count: That of duplicates.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        # Rows that are accepted hold no duplicates; an id may count again later.
        self._specs = [spec.replace(unique_by=None) for spec in case.specs]
        by, rows = [*case.spec.by], case.rows
        self._ids = identities(rows, [*by, *case.unique_by])
        missing = (rows[name].is_null().to_pylist() for name in case.unique_by)
        self._has_id = [not any(each) for each in zip(*missing, strict=True)]
        arrivals = (values_of(rows, name) for name in case.arrivals)
        self._arrivals = [*zip(*arrivals, strict=True)]
        # The latest time of a row that counts, by its id.
        self._known: dict[str, int] = {}
        self._ticks: list[int] = case.times.ticks.to_pylist()
        self._keys = identities(rows, by)
        self._ties = [*case.then_by]
        self._came = [BATCH, *case.arrivals]
        self._deletes = [False] * len(self._ticks)
        if case.deletes is not None:
            self._deletes = pc.fill_null(rows[case.deletes], False).to_pylist()
        # The accepted rows, their batches, and the new and refused ones of this batch.
        self._accepted: list[int] = []
        self._batches: list[int] = []
        self._new: list[int] = []
        self._deletions: list[int] = []
        self._dropped: list[int] = []
        self._early: list[int] = []
        self._batch = 0
        # The last time of the clock, and for how long no row had come then.
        self._now: int | None = None
        self._silent = 0
        self.watermark: int | None = None
        self.largest: int | None = None
        self.late_count = self.ahead_count = self.duplicate_count = 0

    def look(self, now: int) -> None:
        """Looks at the clock, which the watermark follows after a silence."""
        before = self._silent
        self._silent += 0 if self._now is None else max(0, now - self._now)
        self._now, self._new, self._dropped, self._early = now, [], [], []
        self._deletions = []
        self._batch += 1
        mark = self.watermark
        if mark is None and self.largest is not None:
            mark = self.largest - self.case.late
        pace = 0
        if self.case.idle is not None:
            pace = max(0, self._silent - max(before, self.case.idle))
        if pace and mark is not None:
            self.advance(mark + pace)

    def ingest(self, rows: Sequence[int]) -> None:
        """Accepts the rows that the watermark has not passed."""
        ticks = self._ticks
        early = {row for row in rows if self._is_ahead(ticks[row])}
        self._early = [row for row in rows if row in early]
        self.ahead_count += len(early)
        rows = [row for row in rows if row not in early]
        self._silent = 0 if rows else self._silent
        self._dropped = [row for row in rows if self._is_late(row)]
        self.late_count += len(self._dropped)
        dropped = {*self._dropped}
        new = [row for row in rows if row not in dropped]
        if self._has_id:
            came = new
            if self._arrivals:
                came = sorted(came, key=self._arrivals.__getitem__)
            counting = {row for row in came if self._counts(row)}
            new = [row for row in new if row in counting]
        self._new = [row for row in new if not self._deletes[row]]
        self._deletions = [row for row in new if self._deletes[row]]
        self._batch += 1
        self._accepted += self._new
        self._batches += [self._batch] * len(self._new)
        if self._deletions:
            self._delete()
        seen = [ticks[row] for row in rows]
        seen += [] if self.largest is None else [self.largest]
        self.largest = max(seen, default=None)

    def _is_ahead(self, tick: int) -> bool:
        if self.case.ahead is None or self._now is None:
            return False
        return tick > self._now + self.case.ahead

    def _is_late(self, row: int) -> bool:
        """Whether a row is refused; late deletions always are."""
        if self.watermark is None:
            return False
        allowance = 0 if self._deletes[row] else self.case.allowance
        return self._ticks[row] <= self.watermark - allowance

    def _counts(self, row: int) -> bool:
        """Whether a row is not a duplicate, by its id, which is remembered then."""
        if not self._has_id[row]:
            return True
        known = self._known.get(self._ids[row])
        floor = self.watermark
        if known is not None and (floor is None or known > floor - self.case.horizon):
            self.duplicate_count += 1
            return False
        self._known[self._ids[row]] = self._ticks[row]
        return True

    def _delete(self) -> None:
        """Removes, for each deletion, the first row of its key and time, if any."""
        held = zip(self._accepted, self._batches, strict=True)
        first = self._sorted(held, self._ties + self._came)[ROW].to_pylist()
        gone: set[int] = set()
        for deletion in self._deletions:
            same = (self._keys[deletion], self._ticks[deletion])
            for row in first:
                if row not in gone and (self._keys[row], self._ticks[row]) == same:
                    gone.add(row)
                    break
        kept = [at for at, row in enumerate(self._accepted) if row not in gone]
        self._accepted = [self._accepted[at] for at in kept]
        self._batches = [self._batches[at] for at in kept]
        self._new = [row for row in self._new if row not in gone]

    def advance(self, watermark: int | None = None) -> None:
        """Moves the watermark to a time, by default to the latest less the delay."""
        step = self.case.step
        if watermark is None and self.largest is not None:
            latest, late = self.largest // step, self.case.late // step
            watermark = (latest - late) * step
        if watermark is not None:
            known = watermark if self.watermark is None else self.watermark
            self.watermark = max(known, watermark)

    def is_due(self, tick: int, before: int | None) -> bool:
        """Whether the watermark passes a time in this step."""
        if self.watermark is None or tick > self.watermark:
            return False
        return before is None or tick > before

    # Query points.

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
        ticks = [self.tick(*each) for each in asked]
        return self.points_of([row for row, _ in asked], ticks)

    def points_of(self, rows: Sequence[int], ticks: Sequence[int]) -> pa.Table:
        """Query points: the keys of rows, at times."""
        case = self.case
        points = case.rows.select(case.spec.by).take(pa.array(rows, pa.int64()))
        times = case.times.restore(pa.array(ticks, pa.int64()))
        number = pa.array(range(len(rows)), pa.int64())
        columns = [*points.columns, times, number]
        return pa.Table.from_arrays(columns, names=[*case.shown, ROW])

    # Tables.

    def table(self, *, fresh: bool = True) -> pa.Table:
        """The accepted rows, with rows of equal time in their order.

        Args:
            fresh: Whether with those of this batch.
        """
        pairs = zip(self._accepted, self._batches, strict=True)
        held = [pair for pair in pairs if fresh or pair[1] != self._batch]
        # `arrival=` comes before `then_by`, and batches come before `arrival=`.
        ties, came = self._ties, self._came
        return self._sorted(held, came + ties if self.case.arrivals else ties + came)

    def _sorted(
        self, held: Iterable[tuple[int, int]], order: Sequence[str]
    ) -> pa.Table:
        """Rows with their batches, in an order, and of equal rank as they came."""
        held = [*held]
        table = self.case.rows.take(pa.array([row for row, _ in held], pa.int64()))
        batches = pa.array([batch for _, batch in held], pa.int64())
        table = table.append_column(BATCH, batches)
        place = pa.array(range(len(held)), pa.int64())
        keyed = table.select(dict.fromkeys(order)).append_column(ROW, place)
        ranks = [(name, "ascending") for name in (*order, ROW)]
        return table.take(pc.sort_indices(keyed, ranks))

    def latest(self) -> dict[str, int]:
        """The latest accepted row of each key."""
        latest: dict[str, int] = {}
        for row in self._accepted:
            other = latest.setdefault(self._keys[row], row)
            if self._ticks[row] > self._ticks[other]:
                latest[self._keys[row]] = row
        return latest

    def at(self, points: pa.Table, *, fresh: bool = True) -> pa.Table:
        """The points, with the results of `rolling(at=)`."""
        return rolled(self.table(fresh=fresh), self.queried(), points)

    def queried(self) -> list[Spec]:
        """The Specs as of a query: hopping windows are rolling ones of their length."""
        ties = {"arrival": None, "ties": "peers", "empty": False, "several": False}
        return [
            derive(spec, windows=tuple(w.as_query() for w in spec.windows), **ties)
            for spec in self._specs
        ]
