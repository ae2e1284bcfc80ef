"""Queries of a window that runs: added and dropped, evicted from, over late entries.

The oracle has a list of entries per query, and makes its windows of these from scratch.
"""

import random
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from seeds import SEED
from shared_windows import GENERAL_FINAL

import slidewise as sw

AGGS = {"n": sw.count(), "all": sw.collect("x")}
FLAGS = ("f", "g")
# Before all times.
NEVER = -(10**9)
Due = tuple[int, int, dict[str, Any]]


class Entry(NamedTuple):
    """In order of time, then of arrival."""

    time: int
    number: int
    value: dict[str, Any]


def answer(entries: list[Entry]) -> dict[str, Any]:
    x = [entry.value["x"] for entry in entries]
    return {"n": len(x), "all": [value for value in x if value is not None]}


@dataclass
class Running:
    """A query, and the entries that it has seen and that were not evicted."""

    kind: str
    length: int
    slide: int
    flag: str = "f"
    entries: list[Entry] = field(default_factory=list)
    done: int = NEVER

    @property
    def query(self) -> sw.Query:
        match self.kind:
            case "time":
                return sw.Query(self.length, every=self.slide)
            case "rows":
                return sw.Query(sw.rows(self.length), every=sw.rows(self.slide))
            case "time by rows":
                return sw.Query(self.length, every=sw.rows(self.slide))
            case "session":
                return sw.Query(sw.session(self.length))
            case "until":
                return sw.Query(sw.until(self.flag))
            case "landmark":
                return sw.Query(sw.landmark(self.flag), every=self.slide)
        return sw.Query(sw.landmark(self.flag), every=sw.rows(self.slide))

    def since_flag(self, entries: list[Entry], skip: int = 0) -> list[Entry]:
        flagged = [
            at for at, entry in enumerate(entries) if entry.value[self.flag] is True
        ]
        return entries[flagged[-1] + skip :] if flagged else entries

    def window(self, end: int) -> list[Entry]:
        """The window that ends at a time, or with the last entry."""
        entries = [entry for entry in self.entries if entry.time <= end]
        match self.kind:
            case "time" | "time by rows":
                return [e for e in entries if e.time > end - self.length]
            case "rows":
                return entries[-self.length :]
            case "session":
                return self.sessions()[-1] if entries else []
            case "until":
                return entries
        return self.since_flag(entries)

    def sessions(self) -> list[list[Entry]]:
        found: list[list[Entry]] = []
        for entry in self.entries:
            if found and entry.time - found[-1][-1].time <= self.length:
                found[-1].append(entry)
            else:
                found.append([entry])
        return found


class Stage:
    """A window beside the oracle."""

    def __init__(self, algorithm: str, rng: random.Random) -> None:
        self.rng = rng
        self.late = rng.choice([None, 0, 3, 30])
        self.empty = rng.random() < 0.3
        self.offset = rng.choice([0, 0, 3, -5])
        drawn = [self.draw() for _ in range(rng.choice([1, 2, 3]))]
        if self.late is None:  # a window keeps the flags that it is made with
            drawn += [
                Running("until", 0, 0, "f"),
                Running("landmark by rows", 0, 2, "g"),
            ]
        self.running = dict(enumerate(drawn))
        self.window = sw.SharedWindow(
            AGGS,
            queries=[running.query for running in drawn],
            algorithm=algorithm,
            late=self.late,
            offset=self.offset,
            empty=self.empty,
        )
        self.count, self.held = 0, list[Entry]()
        self.latest = self.advanced = NEVER
        self.first: int | None = None

    def draw(self) -> Running:
        rng, kinds = self.rng, ["time", "time", "session"]
        if self.late is None:
            kinds += ["rows", "time by rows", "until", "landmark", "landmark by rows"]
        length = rng.choice([1, 2, 5, 8, 24])
        return Running(
            rng.choice(kinds), length, rng.choice([1, 2, 3, 7]), rng.choice(FLAGS)
        )

    @property
    def closed(self) -> int:
        """Up to here no entries come any more."""
        return max(self.latest - (self.late or 0) - 1, self.advanced)

    # What falls due.

    def passed(self) -> list[Due]:
        """The answers that fall due as time passes."""
        due: list[Due] = []
        for index, running in self.running.items():
            if running.kind in ("time", "landmark"):
                due += [(index, *one) for one in self.ends(running)]
            if running.kind == "session":
                sessions = running.sessions()
                over = [
                    s for s in sessions if s[-1].time + running.length <= self.closed
                ]
                due += [(index, one[-1].time, answer(one)) for one in over]
                running.entries = [e for one in sessions[len(over) :] for e in one]
        return due

    def ends(self, running: Running) -> list[tuple[int, dict[str, Any]]]:
        since, running.done = running.done, max(running.done, self.closed)
        if self.first is None:
            return []
        begin = max(self.first, since + 1)
        begin += (self.offset - begin) % running.slide
        found = []
        for end in range(begin, self.closed + 1, running.slide):
            window = running.window(end)
            length = running.length if running.kind == "time" else running.slide
            is_new = any(end - length < entry.time <= end for entry in window)
            if is_new or self.empty:
                found.append((end, answer(window)))
        return found

    def by_entries(self, entry: Entry) -> list[Due]:
        """The answers that fall due with an entry."""
        due: list[Due] = []
        for index, running in self.running.items():
            if running.kind == "until" and entry.value[running.flag] is True:
                due.append((index, entry.time, answer(running.entries)))
                running.entries = []
        for index, running in self.running.items():
            by_rows = running.kind in ("rows", "time by rows", "landmark by rows")
            if by_rows and self.count % running.slide == 0:
                due.append((index, entry.time, answer(running.window(entry.time))))
        return due

    def take_in(self, entries: list[Entry]) -> list[Due]:
        due: list[Due] = []
        for entry in sorted(entries):
            if self.late is None:
                self.latest = entry.time
                due += self.passed()
            self.latest = max(self.latest, entry.time)
            known = entry.time if self.first is None else self.first
            self.first = min(entry.time, known)
            self.count += 1
            for entries_ in (
                self.held,
                *(one.entries for one in self.running.values()),
            ):
                entries_.append(entry)
                entries_.sort()
            if self.late is None:
                due += self.by_entries(entry)
        if self.late is not None:
            due += self.passed()
        return sorted(due, key=lambda one: (one[1], one[0]))

    # What may be done.

    def entry(self, time: int, number: int) -> Entry:
        flags = {flag: self.rng.choice([True, False, False, None]) for flag in FLAGS}
        if self.late is not None:
            flags = {}
        return Entry(time, number, {"x": self.rng.choice([None, *range(9)]), **flags})

    def insert(self) -> None:
        rng, count = self.rng, self.rng.choice([1, 1, 1, 0, 5])
        entries = []
        time = 100 if self.latest == NEVER else self.latest
        for number in range(count):
            behind = rng.randint(0, self.late) if self.late else 0
            step = rng.choice([0, 0, 1, 2, 3, 9, 25])
            time = max(time + (step if rng.random() < 0.7 else -behind), 0)
            entries.append(self.entry(max(time, self.closed + 1), number))
        times = [entry.time for entry in entries]
        values = [entry.value for entry in entries]
        if count == 1:
            got = self.window.insert(times[0], values[0]) or []
        else:
            table = self.window.insert_many(times, values)
            assert table is not None
            got = [
                (due["query"], due["end"], due["value"]) for due in table.to_pylist()
            ]
        numbered = [e._replace(number=self.count + e.number) for e in entries]
        assert got == self.take_in(numbered)

    def advance(self) -> None:
        if self.latest > NEVER:
            time = max(self.latest, self.advanced) + self.rng.choice([-3, 0, 1, 5, 30])
            self.advanced = max(self.advanced, time)
            due = sorted(self.passed(), key=lambda one: (one[1], one[0]))
            assert self.window.advance(time) == due

    def evict(self) -> None:
        if not self.held:
            return
        if self.rng.random() < 0.3:
            until = self.held[0][:2]
            assert self.window.evict() == until[0]
        else:
            until = self.rng.choice(self.held).time + self.rng.choice([-1, 0, 3]), 10**9
            gone = sum(entry[:2] <= until for entry in self.held)
            assert self.window.evict_until(until[0]) == gone
        for running in self.running.values():
            running.entries = [entry for entry in running.entries if entry[:2] > until]
        self.held = [entry for entry in self.held if entry[:2] > until]

    def add(self) -> None:
        running = self.draw()
        index = self.window.add(running.query)
        assert index not in self.running
        running.entries, running.done = [*self.held], self.closed
        if running.kind == "until":
            running.entries = running.since_flag(running.entries, 1)
        if running.kind == "session":
            open_ = [
                s
                for s in running.sessions()
                if s[-1].time + running.length > self.closed
            ]
            running.entries = [entry for one in open_ for entry in one]
        self.running[index] = running

    def drop(self) -> None:
        if self.running:
            index = self.rng.choice([*self.running])
            self.window.drop(index)
            del self.running[index]

    def restore(self) -> None:
        self.window = sw.SharedWindow.from_bytes(self.window.to_bytes())

    def compare(self) -> None:
        """What there is as of now; entries that no query needs may be gone."""
        self.window.check()
        now = max(self.latest, self.advanced)
        wanted = [answer(running.window(now)) for running in self.running.values()]
        assert self.window.query() == wanted
        self.held = self.held[len(self.held) - len(self.window) :]
        assert [time for time, _ in self.window.items()] == [e.time for e in self.held]


@pytest.mark.parametrize("algorithm", ["auto", *GENERAL_FINAL])
def test_random_scripts(algorithm: str) -> None:
    for seed in range(SEED, SEED + 10):
        rng = random.Random(f"{algorithm} {seed}")
        stage = Stage(algorithm, rng)
        acts = [stage.insert] * 8 + [stage.evict] * 2
        acts += [stage.advance, stage.add, stage.drop, stage.restore]
        for _ in range(30):
            rng.choice(acts)()
            stage.compare()


def test_empty_windows_begin_with_an_entry_that_was_evicted_while_it_waited() -> None:
    for late in (None, 3):
        w = sw.SharedWindow(
            sw.sum(), queries=[sw.Query(2, every=2)], late=late, empty=True
        )
        assert w.insert(5, 1) == []
        assert w.evict() == 5
        assert w.insert(12 + (late or 0), 7) == [
            (0, 6, None),
            (0, 8, None),
            (0, 10, None),
        ]
        assert w.advance(14)[0] == (0, 12, 7 if late is None else None)


def test_empty_windows_begin_with_the_earliest_entry_that_was_evicted() -> None:
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(2, every=2)], late=9, empty=True)
    w.insert(8, 1)
    w.insert(5, 1)
    assert w.evict_until(6) == 1
    w = sw.SharedWindow.from_bytes(w.to_bytes())
    w.insert(7, 4)
    assert w.advance(8) == [(0, 6, None), (0, 8, 5)]


def test_a_session_without_entries_is_none() -> None:
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(sw.session(2))], empty=True)
    w.insert(1, 1)
    assert w.evict_until(1) == 1
    assert w.insert(9, 4) == []
    assert w.advance(20) == [(0, 9, 4)]


def test_sessions_that_are_added_to_an_empty_window_are_over_in_time() -> None:
    for late in (None, 0):
        w = sw.SharedWindow(sw.collect(), queries=[sw.Query(3, every=3)], late=late)
        w.insert_many([1, 2, 8], "abc")
        w.evict_until(9)
        w.add(sw.Query(sw.session(2)))
        w.drop(0)
        assert w.insert(12, "d") == w.insert(13, "e") == []
        assert w.insert(20, "f") == [(1, 13, ["d", "e"])]


def test_answers_that_wait_are_in_no_snapshot_and_not_lost() -> None:
    queries = [sw.Query(2, every=2), sw.Query(1, every=1)]
    w = sw.SharedWindow(sw.sum(), queries=queries)
    w.insert_many([1, 2], [2**63 - 1, 1])
    with pytest.raises(sw.ResultOverflowError):
        w.insert(3, 5)
    with pytest.raises(
        sw.SpecError, match=r"answers wait.* by insert_many\(\[\], \[\]\)"
    ):
        w.to_bytes()
    cleared, copied = w.copy(), w.copy()
    cleared.clear()
    assert cleared.insert(1, 7) == []
    assert copied.insert(4, 5) == [(1, 2, 1), (1, 3, 5)]
    table = w.insert_many([], [])
    assert table is not None
    assert table.to_pylist() == [{"query": 1, "end": 2, "value": 1}]
    again = sw.SharedWindow.from_bytes(w.to_bytes())
    assert again.insert(4, 5) == w.insert(4, 5) == [(1, 3, 5)]


def test_a_dropped_query_gives_no_answers_that_wait() -> None:
    queries = [sw.Query(2, every=2), sw.Query(1, every=1), sw.Query(1, every=2)]
    w = sw.SharedWindow(sw.sum(), queries=queries)
    w.insert_many([1, 2], [2**63 - 1, 1])
    with pytest.raises(sw.ResultOverflowError):
        w.insert(3, 5)
    left = w.copy()
    w.drop(1)
    with pytest.raises(sw.SpecError, match="answers wait"):
        w.to_bytes()
    w.drop(2)
    assert w.to_bytes()
    assert w.insert(5, 1) == [(0, 4, 5)]
    assert left.insert(3, 0) == [(1, 2, 1), (2, 2, 1)]


def test_flags_are_known_that_no_query_reads_meanwhile() -> None:
    queries = [sw.Query(sw.until("f")), sw.Query(9), sw.Query(sw.landmark("g"), 3)]
    w = sw.SharedWindow({"all": sw.collect("x")}, queries=queries)
    w.drop(2)
    w.insert(1, {"x": 1, "f": False, "g": True})
    w.insert(2, {"x": 2, "f": True, "g": False})
    w.drop(0)
    w.insert(3, {"x": 3, "f": False, "g": False})
    for again in (w, sw.SharedWindow.from_bytes(w.to_bytes())):
        assert again.add(sw.Query(sw.landmark("g"), every=9)) == 3
        assert again.add(sw.Query(sw.until("f"))) == 4
        again.insert(4, {"x": 4, "f": False, "g": False})
        since = [answer["all"] for answer in again.query()]
        assert since == [[1, 2, 3, 4], [1, 2, 3, 4], [3, 4]]
