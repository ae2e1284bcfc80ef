"""Sessions, flags and landmarks as queries, against their definition."""

import copy
import itertools
import pickle
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from seeds import SEED
from shared_windows import FINAL, GENERAL_FINAL

import slidewise as sw

GENERAL = ["auto", *GENERAL_FINAL]
AGGS = {
    "n": sw.count(),
    "all": sw.collect("x"),
    "top": sw.max("x"),
    "sum": sw.sum("x"),
}
Row = dict[str, Any]
Due = tuple[int, int, Row]


def answer(rows: list[Row]) -> Row:
    x = [row["x"] for row in rows if row["x"] is not None]
    top, total = (max(x), sum(x)) if x else (None, None)
    return {"n": len(rows), "all": x, "top": top, "sum": total}


class Model:
    """All answers that are due so far, computed anew from all entries in order."""

    def __init__(self, queries: list[sw.Query], late: int | None, empty: bool) -> None:
        self.queries, self.late, self.empty = queries, late, empty
        self.entries: list[tuple[int, Row]] = []
        self.advanced: int | None = None
        self.given: list[tuple[int, int, int]] = []

    @property
    def closed(self) -> int:
        times = [time - (self.late or 0) - 1 for time, _ in self.entries]
        return max([*times, -(10**9) if self.advanced is None else self.advanced])

    def insert(self, entries: list[tuple[int, Row]]) -> list[Due]:
        self.entries = sorted([*self.entries, *entries], key=lambda entry: entry[0])
        return self.due()

    def advance(self, time: int) -> list[Due]:
        self.advanced = time if self.advanced is None else max(self.advanced, time)
        return self.due()

    def due(self) -> list[Due]:
        """The answers that are new, identified by query, end and number."""
        found = {}
        for index in range(len(self.queries)):
            for number, (end, rows) in enumerate(self.answers(index)):
                found[index, end, number] = (index, end, answer(rows))
        new = [key for key in found if key not in self.given]
        self.given += new
        return sorted((found[key] for key in new), key=lambda due: (due[1], due[0]))

    def sessions(self, gap: int, until: int) -> list[list[tuple[int, Row]]]:
        sessions: list[list[tuple[int, Row]]] = []
        for entry in self.entries:
            if entry[0] > until:
                break
            if not sessions or entry[0] - sessions[-1][-1][0] > gap:
                sessions.append([])
            sessions[-1].append(entry)
        return sessions

    def since(self, upto: int, flag: str) -> list[Row]:
        """Of the first `count` rows, those from the last one with the flag on."""
        rows = [row for _, row in self.entries[:upto]]
        marks = [at for at, row in enumerate(rows) if row[flag]]
        return rows[marks[-1] if marks else 0 :]

    def recent(self, upto: int, length: int) -> list[Row]:
        """Of the first `count` rows, those within a length of the last one."""
        end = self.entries[upto - 1][0]
        return [row for time, row in self.entries[:upto] if time > end - length]

    def answers(self, index: int) -> list[tuple[int, list[Row]]]:
        query = self.queries[index]
        kind = type(query.range).__name__
        if kind == "Session":
            gap = query.range.gap.amount
            return [
                (session[-1][0], [row for _, row in session])
                for session in self.sessions(gap, self.closed)
                if session[-1][0] + gap <= self.closed
            ]
        found, window = [], []
        if kind == "Until":
            for time, row in self.entries:
                window.append(row)
                if row[query.flag]:
                    found.append((time, window))
                    window = []
            return found
        assert query.slide is not None
        slide = query.slide.amount
        if query.counts:
            places = range(slide, len(self.entries) + 1, slide)
            if kind == "Landmark":
                each = [(at, self.since(at, query.flag)) for at in places]
            elif kind == "int":
                each = [(at, self.recent(at, query.range)) for at in places]
            else:
                length = query.range.n
                each = [
                    (at, [row for _, row in self.entries[max(at - length, 0) : at]])
                    for at in places
                ]
            return [(self.entries[at - 1][0], rows) for at, rows in each]
        first = self.entries[0][0] if self.entries else self.closed + 1
        if first > self.closed:
            return []
        for end in range(first + -first % slide, self.closed + 1, slide):
            upto = sum(time <= end for time, _ in self.entries)
            length = slide if kind == "Landmark" else query.range
            recent = [row for time, row in self.entries[:upto] if time > end - length]
            if recent or self.empty:
                whole = self.since(upto, query.flag) if kind == "Landmark" else recent
                found.append((end, whole))
        return found

    def now(self, index: int) -> list[Row]:
        """The open window of a query."""
        query, rows = self.queries[index], [row for _, row in self.entries]
        kind = type(query.range).__name__
        if kind == "Session":
            sessions = self.sessions(query.range.gap.amount, 10**9)
            if (
                not sessions
                or sessions[-1][-1][0] + query.range.gap.amount <= self.closed
            ):
                return []
            return [row for _, row in sessions[-1]]
        if kind == "Until":
            marks = [at for at, row in enumerate(rows) if row[query.flag]]
            return rows[marks[-1] + 1 if marks else 0 :]
        assert kind == "Landmark"
        return self.since(len(rows), query.flag)


QUERIES = [
    sw.Query(sw.until("done")),
    sw.Query(sw.session(4)),
    sw.Query(sw.session(11)),
    sw.Query(sw.landmark("reset"), every=6),
    sw.Query(sw.landmark("reset"), every=sw.rows(3)),
    sw.Query(sw.landmark("done"), every=sw.rows(2)),
    sw.Query(sw.until("reset")),
    sw.Query(10, every=5),
    sw.Query(sw.rows(4), every=sw.rows(3)),
    sw.Query(7, every=sw.rows(3)),
    sw.Query(8),
]


def rows(rng: random.Random, count: int) -> list[tuple[int, Row]]:
    """Entries in order, with equal times, gaps and flags."""
    time, made = rng.randrange(-30, 30), []
    flags = rng.choice(
        [[True, False, None], [None, False, False, False, True], [False]]
    )
    for _ in range(count):
        time += rng.choice([0, 0, 1, 1, 2, 3, 5, 12, 40])
        row = {"x": rng.choice([None, *range(20)])}
        row |= {flag: rng.choice(flags) for flag in ("done", "reset")}
        made.append((time, row))
    return made


def columns(entries: list[tuple[int, Row]]) -> Any:
    names = {"x": pa.int64(), "done": pa.bool_(), "reset": pa.bool_()}
    return {
        name: pa.array([row[name] for _, row in entries], of)
        for name, of in names.items()
    }


def as_due(table: pa.Table) -> list[Due]:
    return [(row["query"], row["end"], row["value"]) for row in table.to_pylist()]


@pytest.mark.parametrize("algorithm", GENERAL)
@pytest.mark.parametrize("seed", range(12))
def test_answers_fall_due_as_they_are_meant(seed: int, algorithm: str) -> None:
    rng = random.Random(seed)
    options = rng.sample(QUERIES, rng.randrange(1, len(QUERIES)))
    if all(query.flag is None for query in options):
        options.append(QUERIES[0])
    empty = rng.random() < 0.2
    window = sw.SharedWindow(AGGS, queries=options, algorithm=algorithm, empty=empty)
    model = Model(options, None, empty)
    entries = rows(rng, 120)
    while entries:
        step = rng.choice([1, 1, 2, 7, 50])
        part, entries = entries[:step], entries[step:]
        if step == 1:
            time, row = part[0]
            assert window.insert(time, row) == model.insert(part)
        else:
            if rng.random() < 0.5:  # in any order, equal times as they are
                order = sorted(part, key=lambda entry: entry[0], reverse=True)
                part = order
            got = window.insert_many([time for time, _ in part], columns(part))
            assert as_due(got) == model.insert(part)
        if rng.random() < 0.1:
            to = model.entries[-1][0] + rng.randrange(0, 15)
            to = min(to, entries[0][0] - 1) if entries else to
            assert window.advance(to) == model.advance(to)
        if rng.random() < 0.2:
            window = rng.choice(
                [
                    copy.copy,
                    lambda one: pickle.loads(pickle.dumps(one)),
                    lambda one: sw.SharedWindow.from_bytes(one.to_bytes()),
                ]
            )(window)
        window.check()
        open_ones = [
            at
            for at, query in enumerate(options)
            if not isinstance(query.range, int | type(sw.rows(1)))
        ]
        now = window.query()
        for at in open_ones:
            assert now[at] == answer(model.now(at)), options[at]


@pytest.mark.parametrize(
    "aggs",
    [sw.max("x"), sw.range("x"), {"lo": sw.min("x"), "then": sw.last("x")}],
    ids=repr,
)
def test_slick_deque_takes_what_selects_beside_flags(aggs: Any) -> None:
    queries = [sw.Query(sw.until("f")), sw.Query(sw.landmark("f"), every=sw.rows(3))]
    deques, oracle = (
        sw.SharedWindow(aggs, queries=queries, algorithm=algorithm)
        for algorithm in ("slick_deque", "recalculate")
    )
    rng = random.Random(SEED)
    for time in range(200):
        x = rng.choice([None, rng.randrange(-9, 9)])
        row = {"x": x, "f": rng.random() < 0.2}
        assert deques.insert(time, row) == oracle.insert(time, row)
        assert deques.query() == oracle.query()
    deques.check()


@pytest.mark.parametrize("algorithm", FINAL)
@pytest.mark.parametrize("late", [None, 0, 3, 20])
@pytest.mark.parametrize("seed", range(5))
def test_sessions_are_right_however_late(
    seed: int, late: int | None, algorithm: str
) -> None:
    rng = random.Random(seed)
    options = [sw.Query(sw.session(4)), sw.Query(9, every=3), sw.Query(sw.session(7))]
    options = rng.sample(options, rng.randrange(1, 4))
    if not any(query.slide is None for query in options):
        options = [sw.Query(sw.session(4))]
    window = sw.SharedWindow(
        {"n": sw.count("x"), "x": sw.sum("x")}
        if algorithm != "slick_deque"
        else sw.max("x"),
        queries=options,
        algorithm=algorithm,
        late=late,
    )
    model = Model(options, late, empty=False)
    entries = [(time, {"x": row["x"] or 0}) for time, row in rows(rng, 150)]
    if late:
        shift = {id(entry): entry[0] + rng.randrange(late + 1) for entry in entries}
        entries.sort(key=lambda entry: shift[id(entry)])

    def named(row: Row) -> Any:
        return (
            row["top"]
            if algorithm == "slick_deque"
            else {
                "n": row["n"],
                "x": row["sum"],
            }
        )

    while entries:
        step = rng.choice([1, 1, 3, 20])
        part, entries = entries[:step], entries[step:]
        expected = [(q, end, named(row)) for q, end, row in model.insert(part)]
        if step == 1:
            assert window.insert(*part[0]) == expected
        else:
            x = [row["x"] for _, row in part]
            got = window.insert_many([time for time, _ in part], {"x": x})
            assert as_due(got) == expected
        window.check()
        if rng.random() < 0.2:
            window = sw.SharedWindow.from_bytes(window.to_bytes())
        now = window.query()
        for at, query in enumerate(options):
            if query.slide is None:
                held = model.now(at)
                assert now[at] == (named(answer(held)) if held else now[at])
                assert held or now[at] in (None, {"n": 0, "x": None})
    last = model.entries[-1][0] + 100
    expected = [(q, end, named(row)) for q, end, row in model.advance(last)]
    assert window.advance(last) == expected


def test_sessions_in_words() -> None:
    window = sw.SharedWindow(sw.sum(), queries=[sw.Query(sw.session("30m"))])
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    minutes = [timedelta(minutes=at) for at in (0, 10, 40, 71)]
    due = [window.insert(noon + at, 1) for at in minutes]
    assert due == [[], [], [], [(0, noon + minutes[2], 3)]]
    assert window.advance(noon + timedelta(minutes=100)) == []
    assert window.advance(noon + timedelta(minutes=101)) == [(0, noon + minutes[3], 1)]
    assert window.query() == [None]
    assert len(window) == 0


def test_only_what_windows_need_is_held() -> None:
    options = [sw.Query(sw.until("f")), sw.Query(sw.landmark("g"), every=sw.rows(1))]
    window = sw.SharedWindow(sw.count(), queries=options)
    for time in range(10):
        window.insert(time, {"f": time == 6, "g": time == 8})
    assert len(window) == 3  # since the row after 6
    assert window.query() == [3, 2]
    assert window.drop(0) is None
    assert len(window) == 2


@pytest.mark.parametrize(
    "make", [list, pa.table, pl.DataFrame], ids=["list", "arrow", "polars"]
)
def test_flags_come_in_any_table(make: Any) -> None:
    window = sw.SharedWindow(sw.sum("x"), queries=[sw.Query(sw.until("f"))])
    values: Any = {"x": [1, 2, 3], "f": [False, True, None]}
    if make is list:
        values = [{"x": 1, "f": False}, {"x": 2, "f": np.True_}, {"x": 3}]
        values[2]["f"] = None
    else:
        values = make(values)
    got = window.insert_many([1, 2, 3], values)
    assert got.to_pylist() == [{"query": 0, "end": 2, "value": 3}]
    assert window.query() == [3]


def test_a_call_that_raises_leaves_the_flags() -> None:
    window = sw.SharedWindow(sw.sum("x"), queries=[sw.Query(sw.until("f"))])
    window.insert(5, {"x": 1, "f": False})
    with pytest.raises(sw.OutOfOrderError):
        window.insert(3, {"x": 1, "f": True})
    with pytest.raises(sw.OutOfOrderError):
        window.insert_many([3, 6], {"x": [1, 1], "f": [True, True]})
    with pytest.raises(sw.SpecError):
        window.insert(6, {"x": "one", "f": True})
    assert window.insert(6, {"x": 1, "f": False}) == []
    assert window.insert(6, {"x": 5, "f": True}) == [(0, 6, 7)]


def test_queries_come_and_go() -> None:
    window = sw.SharedWindow(sw.collect("x"), queries=[sw.Query(sw.until("f"))])
    for time in (1, 2, 9, 10):
        window.insert(time, {"x": time, "f": False})
    assert window.add(sw.Query(sw.session(3))) == 1
    assert window.add(sw.Query(sw.landmark("f"), every=sw.rows(6))) == 2
    assert window.add(sw.Query(sw.until("f"))) == 3
    assert window.query() == [[1, 2, 9, 10], [9, 10], [1, 2, 9, 10], [1, 2, 9, 10]]
    assert window.insert(11, {"x": 11, "f": True}) == [
        (0, 11, [1, 2, 9, 10, 11]),
        (3, 11, [1, 2, 9, 10, 11]),
    ]
    window.drop(0)
    assert window.insert(20, {"x": 20, "f": True}) == [
        (1, 11, [9, 10, 11]),
        (2, 20, [20]),
        (3, 20, [20]),
    ]
    window.advance(30)
    assert window.add(sw.Query(sw.session(3))) == 4
    assert window.query()[-1] == []
    assert window.queries[4] == sw.Query(sw.session(3))


def test_sessions_at_the_ends_of_int64() -> None:
    last = 2**63 - 1
    window = sw.SharedWindow(sw.count(), queries=[sw.Query(sw.session(5))])
    assert window.insert(-(2**63)) == []
    assert window.insert(last - 1) == [(0, -(2**63), 1)]
    assert window.insert(last) == []
    assert window.advance(last) == [(0, last, 2)]


def test_a_column_given_as_the_time_makes_delta_windows() -> None:
    """The way out that the refusal of `delta` names."""
    rng = random.Random(13)
    metres = list(itertools.accumulate(rng.choice([0, 1, 3, 700]) for _ in range(300)))
    litres = [rng.randrange(9) for _ in metres]
    drive = pa.table({"t": range(300), "m": metres, "x": litres})
    expected = sw.rolling(
        drive,
        on="t",
        windows=[sw.delta("m", 5), sw.delta("m", 1000)],
        aggs={"all": sw.collect("x")},
    )
    queries = [sw.Query(width + 1, every=sw.rows(1)) for width in (5, 1000)]
    window = sw.SharedWindow(sw.collect(), queries=queries)
    found: list[list[Any]] = [[], []]
    for time, value in zip(metres, litres, strict=True):
        for query, _, answer in window.insert(time, value):
            found[query].append(answer)
    assert found[0] == expected["all_delta_m_5"].to_pylist()
    assert found[1] == expected["all_delta_m_1000"].to_pylist()


REFUSED: list[tuple[Any, str]] = [
    (
        lambda: sw.Query(sw.session(3), every=2),
        r"every= does not apply to session\(3\)",
    ),
    (
        lambda: sw.Query(sw.until("f"), every=2),
        r"every= does not apply to until\('f'\)",
    ),
    (lambda: sw.Query(sw.landmark("f")), r"landmark\('f'\) needs every="),
    (
        lambda: sw.Query(sw.delta("x", 3)),
        r"delta\('x', 3\) is a window of rolling .*: give 'x' as the times, .*"
        r"sw.Query\(width \+ 1, every=sw.rows\(1\)\), or use rolling over a table",
    ),
    (
        lambda: sw.SharedWindow(
            {"top": sw.max("x"), "n": sw.count()},
            queries=[sw.Query(sw.until("f"))],
            algorithm="slick_deque",
        ),
        "which the set of aggregations lacks; algorithms without",
    ),
    (
        lambda: sw.SharedWindow(sw.sum(), queries=[sw.Query(sw.until("f"))]),
        r"sum\(\) names no column, but queries= read the flag 'f'.*sw.sum\('x'\)",
    ),
    (
        lambda: sw.SharedWindow(sw.sum("x"), queries=[sw.Query(sw.until("f"))], late=3),
        "reads flags, which needs entries in order",
    ),
    (
        lambda: sw.SharedWindow(
            sw.sum("x"), queries=[sw.Query(sw.until(str(at))) for at in range(65)]
        ),
        "read 65 flags: 64 at most",
    ),
    (
        lambda: sw.SharedWindow(sw.sum("x"), queries=[sw.Query(5, 5)]).add(
            sw.Query(sw.until("f"))
        ),
        "reads the column 'f', but of flags the window keeps none",
    ),
    (
        lambda: sw.SharedWindow(
            sw.count(), queries=[sw.Query(sw.session("3m"))]
        ).insert(5),
        "gap='3m' is a duration, but the times are ints",
    ),
    (
        lambda: sw.SharedWindow(sw.count(), queries=[sw.Query(sw.until("f"))]).insert(
            5, {"f": "yes"}
        ),
        "str 'yes' is not a boolean: columns of where= and of flags",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_is_refused(make: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=message):
        make()


def test_explain_states_when_they_fall_due() -> None:
    options = [
        sw.Query(sw.session("30m")),
        sw.Query(sw.until("f")),
        sw.Query(sw.landmark("f"), every="5m"),
    ]
    window = sw.SharedWindow(sw.max("x"), queries=options)
    text = " ".join(window.explain().split())
    assert "Query(session('30m')): due when no entry can come within 30m" in text
    assert "Query(until('f')): due with the entry whose flag is true" in text
    assert "from the last entry whose flag is true" in text
    assert "queries of time: composite slide 5m" in text
    over = "session_30m, until_f and landmark_f every 5m"
    assert repr(window) == f"<SharedWindow max('x') over {over}: empty>"


def test_tumbling_is_a_query_without_a_slide() -> None:
    assert sw.Query("1h") == sw.Query("1h", every="1h")
    window = sw.SharedWindow(sw.sum(), queries=[sw.Query(10)])
    assert window.insert(3, 1) == []
    assert window.insert(10, 2) == []
    assert window.insert(11, 4) == [(0, 10, 3)]
