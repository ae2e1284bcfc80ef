"""Scripts of windows with queries, by every final aggregator, against a definition."""

import contextlib
import copy
import math
import pickle
import random
from datetime import datetime, timedelta

import pytest
from seeds import SEED
from shared_windows import AGGS, FINAL, START

import slidewise as sw

# Some of the aggregations; each script folds its whole list of entries anew.
NAMES = ("sum", "max", "first", "all", "joined", "several")
# Those that commute take late entries into slices.
COMMUTES = dict.fromkeys(NAMES, False) | dict.fromkeys(("sum", "max", "ties"), True)


class Model:
    """The definition of queries: entries in order of time, and the ends up to now."""

    tick = 1

    def __init__(self, answer, queries, late, offset, empty):
        self.answer, self.late, self.offset = answer, late or 0, offset
        self.in_order, self.empty = late is None, empty
        self.queries = dict(enumerate(queries))
        self.entries, self.count = [], 0
        self.latest = self.advanced = self.first = -math.inf
        self.done = dict.fromkeys(self.queries, -math.inf)

    @property
    def closed(self):
        return max(self.latest - self.late - 1, self.advanced)

    def held(self, unit, length, end):
        if unit == "rows":
            return self.entries[-length:]
        return [entry for entry in self.entries if end - length < entry[0] <= end]

    def due(self):
        answers = []
        if self.entries and self.first == -math.inf:
            earliest = self.entries[0][0]
            if self.in_order or earliest <= self.closed:
                self.first = earliest
        for index, (unit, length, slide) in self.queries.items():
            if unit == "rows":
                continue
            done, self.done[index] = (
                self.done[index],
                max(self.done[index], self.closed),
            )
            if self.first == -math.inf:
                continue
            end = max(self.first, done + 1)
            end += (self.offset - end) % slide
            while end <= self.closed:
                values = [value for _, value in self.held(unit, length, end)]
                if values or self.empty:
                    answers.append((index, end, self.answer(values)))
                end += slide
        return answers

    def insert(self, entries):
        """The entries of one call."""
        answers = []
        entries = sorted(entries, key=lambda entry: entry[0])
        if not self.in_order:
            self.entries = sorted(self.entries + entries, key=lambda entry: entry[0])
            self.latest = max([self.latest, *(time for time, _ in entries)])
            self.count += len(entries)
            answers = self.due()
        else:
            for time, value in entries:
                self.latest = time
                answers += self.due()
                self.entries.append((time, value))
                self.count += 1
                answers += self.due()
                for index, (unit, length, slide) in self.queries.items():
                    if unit == "rows" and self.count % slide == 0:
                        held = self.held(unit, length, time)
                        answers.append(
                            (index, time, self.answer([value for _, value in held]))
                        )
        self.shed()
        return sorted(answers, key=lambda answer: (answer[1], answer[0]))

    def advance(self, time):
        self.advanced = max(self.advanced, time)
        answers = sorted(self.due(), key=lambda answer: (answer[1], answer[0]))
        self.shed()
        return answers

    def shed(self):
        now = max(self.latest, self.advanced)
        bound = min(now, max(self.latest - self.late, self.advanced + self.tick))
        lengths = {"rows": 0, "time": 0}
        for unit, length, _ in self.queries.values():
            lengths[unit] = max(lengths[unit], length)
        most = max(0, len(self.entries) - lengths["rows"])
        gone = [time <= bound - lengths["time"] for time, _ in self.entries[:most]]
        self.entries = self.entries[gone.index(False) if False in gone else len(gone) :]

    def now(self):
        time = max(self.latest, self.advanced)
        return [
            self.answer([value for _, value in self.held(unit, length, time)])
            for unit, length, _ in self.queries.values()
        ]


class Pair:
    """A window and its model, driven by one script."""

    def __init__(self, algorithm, name, rng, keep="entries"):
        agg, answer, _ = AGGS[name]
        self.slices = keep == "slices"
        self.rng, self.timed = rng, rng.random() < 0.4
        self.floats = rng.random() < 0.3 and name != "joined"
        late = rng.choice([None, None, 0, 4, 30])
        if self.slices and not COMMUTES[name]:
            late = None
        offset, empty = rng.choice([0, 0, 3, -50]), rng.random() < 0.2
        drawn = [self.draw(late) for _ in range(rng.choice([1, 2, 2, 3, 8, 20]))]
        self.window = sw.SharedWindow(
            agg,
            queries=[self.query(*one) for one in drawn],
            algorithm=algorithm,
            late=None if late is None else self.length(late),
            offset=self.length(offset) if offset else None,
            empty=empty,
            keep=keep,
        )
        if self.timed:  # minutes since START, whose offset is from the epoch
            offset -= int((START - datetime(1970, 1, 1)).total_seconds() // 60)
        self.model = Model(answer, drawn, late, offset, empty)
        self.model.tick = 0 if self.timed else 1  # of minutes: a microsecond

    def draw(self, late):
        counts = late is None and not self.slices and self.rng.random() < 0.4
        unit = "rows" if counts else "time"
        slide = self.rng.choice([1, 2, 3, 4, 6, 7, 12])
        length = self.rng.choice([slide, 2 * slide, 5 * slide, 1, 5, 8, 24, 40])
        return unit, length, slide

    def length(self, amount):
        return timedelta(minutes=amount) if self.timed else amount

    def query(self, unit, length, slide):
        if unit == "rows":
            return sw.Query(sw.rows(length), every=sw.rows(slide))
        return sw.Query(self.length(length), every=self.length(slide))

    def time(self, minutes):
        return START + timedelta(minutes=minutes) if self.timed else minutes

    def entry(self):
        latest = 100 if self.model.latest == -math.inf else self.model.latest
        behind = self.rng.randint(0, self.model.late)
        ahead = self.rng.choice([0, 0, 1, 1, 2, 9, 40])
        time = latest + (ahead if self.rng.random() < 0.6 else -behind)
        time = max(time, self.model.closed + 1)
        drawn = self.rng.randrange(-1000, 1000)
        value = drawn / 4 if self.floats else drawn
        return time, None if self.rng.random() < 0.1 else value

    def got(self, answers):
        return [(index, self.time(end), value) for index, end, value in answers]

    def one(self):
        time, value = self.entry()
        got = self.window.insert(self.time(time), value)
        assert got == self.got(self.model.insert([(time, value)]))

    def many(self):
        entries, (time, _) = [], self.entry()
        for _ in range(self.rng.choice([0, 1, 5, 40])):
            entries.append((time, self.entry()[1]))
            time += self.rng.choice([0, 0, 1, 2, 9])
        self.rng.shuffle(entries)
        times = [self.time(time) for time, _ in entries]
        table = self.window.insert_many(times, [value for _, value in entries])
        assert table.column_names == ["query", "end", "value"]
        rows = table.to_pylist()
        got = [(row["query"], row["end"], row["value"]) for row in rows]
        assert got == self.got(self.model.insert(entries))

    def late(self):
        if self.model.closed > -math.inf:
            with pytest.raises(sw.OutOfOrderError, match="is too late"):
                self.window.insert(self.time(self.model.closed), None)

    def advance(self):
        if self.model.latest > -math.inf:
            now = max(self.model.latest, self.model.advanced)
            time = now + self.rng.randrange(-3, 20)
            got = self.window.advance(self.time(time))
            assert got == self.got(self.model.advance(time))

    def add(self):
        late = None if self.model.in_order else 0
        drawn = self.draw(late)
        index = len(self.window.queries)
        refused = contextlib.suppress(sw.SpecError)
        with refused if self.slices else contextlib.nullcontext():
            assert self.window.add(self.query(*drawn)) == index
        if len(self.window.queries) == index:  # it needs finer slices
            return
        self.model.queries[index] = drawn
        self.model.done[index] = self.model.closed

    def drop(self):
        if len(self.model.queries) > 1:
            index = self.rng.choice(list(self.model.queries))
            self.window.drop(index)
            del self.model.queries[index], self.model.done[index]
            if self.model.latest > -math.inf:
                self.model.shed()

    def again(self):
        old = self.window
        self.window = self.rng.choice(
            [
                lambda: old.copy(),
                lambda: copy.deepcopy(old),
                lambda: pickle.loads(pickle.dumps(old)),
                lambda: sw.SharedWindow.from_bytes(old.to_bytes()),
            ]
        )()
        assert self.window.queries == old.queries
        assert [*self.window.items()] == [*old.items()]
        old.clear()

    def compare(self):
        w, entries = self.window, self.model.entries
        w.check()
        if self.slices:
            with contextlib.suppress(sw.SpecError):
                assert w.query() == self.model.now()
            return
        assert w.query() == self.model.now()
        assert [time for time, _ in w.items()] == [self.time(t) for t, _ in entries]
        assert len(w) == len(entries)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("algorithm", [*FINAL, "auto"])
def test_scripts(algorithm, name):
    agg, _, lawful = AGGS[name]
    if algorithm == "slick_deque" and not lawful:
        with pytest.raises(sw.SpecError, match="an inverse, or results that are one"):
            sw.SharedWindow(agg, queries=[sw.Query(3, 2)], algorithm=algorithm)
        return
    for seed in range(6):
        rng = random.Random(f"{SEED} {algorithm} {name} {seed}")
        pair = Pair(algorithm, name, rng)
        acts = [pair.one] * 9 + [pair.many] * 2
        acts += [pair.late, pair.advance, pair.add, pair.drop, pair.again]
        for _ in range(40):
            rng.choice(acts)()
            pair.compare()


@pytest.mark.parametrize("name", COMMUTES)
@pytest.mark.parametrize("algorithm", ["fiba", "auto"])
def test_slices_answer_as_entries_do(algorithm, name):
    for seed in range(6):
        rng = random.Random(f"{SEED} slices {algorithm} {name} {seed}")
        pair = Pair(algorithm, name, rng, keep="slices")
        acts = [pair.one] * 9 + [pair.many] * 2
        acts += [pair.late, pair.advance, pair.add, pair.drop, pair.again]
        for _ in range(40):
            rng.choice(acts)()
            pair.compare()
