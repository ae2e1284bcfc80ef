"""Windows of streams that begin with the last entry before them, `edge="carry"`.

Each result is compared with the definition over all rows that were accepted, whatever
was evicted.
"""

import math
import random
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from definitions import Row, carried
from seeds import SEED

import slidewise as sw
from slidewise.keyed import row_log
from slidewise.keyed.columns import EARLIEST, TIME
from slidewise.testing import check_stream

AREAS = {
    "area": sw.integral("y", unit=2),
    "area_where": sw.integral("x", where="w"),
    "level": sw.time_weighted_mean("x"),
    "slope": sw.time_weighted_mean("y", "linear", where="w"),
}
# With the second ones results come from rows, not from folds of entries.
BESIDE: dict[str, dict[str, sw.Aggregation]] = {
    "folds": {"c": sw.count(), "last": sw.last("y")},
    "rows": {"m": sw.median("x")},
}
SCHEMA = pa.schema(
    [
        ("t", pa.int64()),
        ("k", pa.string()),
        ("x", pa.int64()),
        ("y", pa.float64()),
        ("w", pa.bool_()),
        ("gone", pa.bool_()),
        ("n", pa.int64()),
    ]
)
LATE = 15


@pytest.fixture(autouse=True)
def sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets rows leave soon, from small pages."""
    monkeypatch.setattr(row_log, "_MIN_ROWS", 6)
    monkeypatch.setattr(row_log, "SEGMENT", 1 << 10)


class Script:
    """Batches with late rows, nulls, quiet keys and deletions, and what they leave."""

    def __init__(self, draw: random.Random, *, deletes: bool = False) -> None:
        self.draw, self.deletes = draw, deletes
        self.now, self.numbers = 0, count()
        # The rows that count.
        self.rows: list[Row] = []

    def batch(self, accepted: int | None) -> pa.Table:
        """Some rows around now; those up to a time are late, and do not count."""
        draw, rows = self.draw, []
        self.now += draw.choice([0, 1, 5, 5, 60])
        for _ in range(draw.choice([1, 3, 8])):
            row = {
                "t": self.now + draw.choice([0, 1, 2, 4, -3, -9, -LATE, -40]),
                "k": draw.choice("aaab"),
                "x": draw.choice([None, None, *range(-4, 9)]),
                "y": draw.choice([None, 1e9 + 0.25, -0.5, 3.0, draw.random()]),
                "w": draw.choice([None, True, True, False]),
                "gone": False,
                "n": next(self.numbers),
            }
            if self.deletes and self.rows and draw.random() < 0.2:
                row |= {"gone": True, "t": draw.choice(self.rows[-9:])["t"]}
            rows.append(row)
        on_time = [row for row in rows if accepted is None or row["t"] > accepted]
        for row in on_time:
            if not row["gone"]:
                self.rows.append(row)
        for row in on_time:
            if row["gone"]:
                self._delete(row)
        return pa.Table.from_pylist(rows, SCHEMA)

    def _delete(self, deleted: Row) -> None:
        """The first row that arrived with its key and time."""
        for at, row in enumerate(self.rows):
            if (row["t"], row["k"]) == (deleted["t"], deleted["k"]):
                del self.rows[at]
                return

    def want(self, key: str, start: int, end: int, closed: str) -> dict[str, Any]:
        """The results over a window, by the definition."""
        own = sorted(
            (row for row in self.rows if row["k"] == key), key=lambda row: row["t"]
        )
        since = start + (closed == "right")
        until = end - (closed == "left")
        rows = [row for row in own if since <= row["t"] <= until]
        earlier = [row for row in own if row["t"] < since]
        return {
            name: carried(agg, rows, earlier, start, end) for name, agg in AREAS.items()
        }

    def check(
        self,
        got: Row,
        key: str,
        ends: tuple[int, int],
        *,
        suffix: str = "",
        closed: str = "right",
    ) -> None:
        for name, value in self.want(key, *ends, closed).items():
            found = got[f"{name}{suffix}"]
            near = value is not None and found is not None
            near = near and math.isclose(found, value, rel_tol=1e-12, abs_tol=1e-5)
            assert near or found is value is None, (name, found, value, key, ends)


def restored(kw: Any, draw: random.Random) -> Any:
    """The windows, or their copy by one of the ways that there are."""
    way = draw.randrange(6)
    if way == 0:
        return sw.KeyedWindows.from_bytes(kw.to_bytes())
    if way == 1:
        twin = sw.KeyedWindows.from_bytes(kw.to_bytes())
        twin.apply(kw.changes())
        return twin
    return kw


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("emit", ["final", "update", "none"])
@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_results_begin_with_the_entry_before_the_window(
    seed: int, deletes: bool, emit: str, beside: str
) -> None:
    draw = random.Random(f"{SEED} {seed} {deletes} {emit} {beside}")
    script = Script(draw, deletes=deletes)
    kw = sw.KeyedWindows(
        on="t",
        by="k",
        windows=[4, 25],
        aggs=AREAS | BESIDE[beside],
        late=LATE,
        emit=emit,
        deletes="gone" if deletes else None,
        schema=SCHEMA,
    )
    emitted: list[Row] = []
    for _ in range(24):
        kw.ingest(script.batch(kw.watermark))
        if emit == "update":
            for row in kw.collect().to_pylist():
                for length in (4, 25):
                    ends = row["t"] - length, row["t"]
                    script.check(row, row["k"], ends, suffix=f"_{length}")
        if draw.random() < 0.8:
            kw.advance()
        if emit == "final":
            emitted += kw.collect().to_pylist()
        kw = restored(kw, draw)
        if kw.watermark is not None:
            key, at = draw.choice("ab"), kw.watermark + draw.choice([0, 3, 30])
            got = kw.query(key, at=at)
            for length in (4, 25):
                script.check(got, key, (at - length, at), suffix=f"_{length}")
    kw.check()
    for row in emitted:
        for length in (4, 25):
            ends = row["t"] - length, row["t"]
            script.check(row, row["k"], ends, suffix=f"_{length}")
    if emit == "final":
        due = {row["n"] for row in script.rows if row["t"] <= kw.watermark}
        assert {row["n"] for row in emitted} == due


def drawn(seed: int, rows: int) -> pa.Table:
    """Rows in order of arrival, around a time that goes on."""
    draw, now, made = random.Random(f"{SEED} {seed}"), 0, []
    for number in range(rows):
        now += draw.choice([0, 0, 1, 2, 9, 40])
        row = {"t": now - draw.choice([0, 0, 4]), "k": draw.choice("aab"), "n": number}
        row |= {"x": draw.choice([None, *range(6)]), "w": draw.random() < 0.6}
        made.append(row | {"y": draw.choice([None, 0.5, 3.0]), "gone": False})
    return pa.Table.from_pylist(made, SCHEMA)


KINDS: dict[str, dict[str, Any]] = {
    "hops": {"window": 12, "every": 5},
    "closed right": {"window": 12, "every": 4, "closed": "right", "empty": True},
    "quiet": {"window": 6, "empty": True},
    "quiet rows": {"window": 6, "empty": True, "more": {"m": sw.median("x")}},
    "several": {"windows": [4, 20], "every": 4},
    "by rows": {"window": 30, "every": sw.rows(3)},
    "sessions": {"window": sw.session(8)},
    "both": {"windows": [9], "closed": "both"},
    "left": {"windows": [9], "closed": "left"},
    "offset": {"windows": [9], "offset": 7},
    "beside rows": {"windows": [9, sw.rows(2)]},
    "beside landmarks": {"windows": [9, sw.landmark("w")]},
    "itself": {"windows": [9], "exclude": "self"},
    "ties": {"windows": [9], "ties": "rows"},
    "resolution": {"windows": [sw.trailing(9, resolution=7), 5]},
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_window_begins_with_it(kind: str) -> None:
    given = {"on": "t", "by": "k"} | KINDS[kind]
    given["aggs"] = AREAS | given.pop("more", {"c": sw.count()})
    check_stream(sw.Spec(**given), drawn(1, 50), late=9, runs=2, seed=SEED)


@pytest.mark.parametrize("length", [25, sw.rows(2)])
@pytest.mark.parametrize("arrival", [None, "n"])
def test_results_on_arrival_begin_with_what_has_arrived(
    arrival: str | None, length: Any
) -> None:
    windows, aggs = [4, length], AREAS | {"c": sw.count()}
    spec = sw.Spec(on="t", by="k", windows=windows, aggs=aggs, arrival=arrival)
    check_stream(spec, drawn(2, 60), late=9, emit="arrival", runs=2, seed=SEED)


def test_months_begin_with_the_entry_before_them() -> None:
    days = pc.multiply(drawn(3, 60)["t"], 86_400).cast(pa.timestamp("s", "UTC"))
    rows = drawn(3, 60).set_column(0, "t", days)
    windows = [sw.calendar("1mo"), sw.to_date("1mo")]
    aggs = {"a": sw.integral("x", unit="1d"), "l": sw.time_weighted_mean("y")}
    spec = sw.Spec(on="t", by="k", windows=windows, aggs=aggs)
    check_stream(spec, rows, late="9d", runs=2, seed=SEED)
    units = sw.calendar("1mo")
    spec = sw.Spec(on="t", by="k", every=units, aggs=aggs)
    check_stream(spec, rows, late="9d", runs=2, seed=SEED)


def small(**options: Any) -> Any:
    """Windows of 10 by key."""
    given = {"late": 5, "emit": "none", "aggs": {"a": sw.integral("x")}}
    given |= {"on": "t", "by": "k", "windows": 10, "schema": SCHEMA} | options
    return sw.KeyedWindows(**given)


def rows_of(times: range, key: str, every: int) -> pa.Table:
    """Rows of a key; only some have `x`, which is their time."""
    given = [
        {"t": t, "k": key, "x": None if t % every else t, "y": 1.0, "w": True}
        for t in times
    ]
    return pa.Table.from_pylist(given, SCHEMA)


def test_a_key_keeps_the_last_entry_of_each_column() -> None:
    kw = small(aggs={"a": sw.integral("x"), "b": sw.time_weighted_mean("y")})
    kw.ingest(rows_of(range(7, 8), "quiet", 7))
    for start in range(0, 400, 20):
        kw.ingest(rows_of(range(start, start + 20), "busy", 50))
        kw.advance()
    shard = kw._state.processor.shard
    assert len(shard.log) < 100
    shard.evict(shard.evicted(kw.watermark))
    keys = shard.index.keys().sort_by("k")
    since, until = ([time] * 2 for time in (EARLIEST, shard.evicted(kw.watermark)))
    kept = shard.index.numbers_by_key(keys, pa.array(since), pa.array(until))
    held = shard.log.take(pa.array(kept[1]))
    # The last entry of x, that of y, and the only row of the other key.
    assert held[TIME].to_pylist() == [350, 379, 7]
    assert kw.query("busy", at=399) == {"a_10": 3500.0, "b_10": 1.0}
    assert kw.query("quiet", at=399) == {"a_10": 70.0, "b_10": 1.0}
    assert kw.keys()["k"].to_pylist() == ["quiet", "busy"]
    assert "carry: of the rows behind the horizon each key keeps" in kw.explain()
    on_grid = small(windows=sw.trailing(10, resolution=5)).explain()
    assert "cells: their rows are kept, because of edge='carry'" in on_grid


def test_an_extra_row_ends_a_window_that_begins_with_an_earlier_entry() -> None:
    kw = small()
    kw.ingest(pa.Table.from_pylist([{"t": 3, "k": "a", "x": 2, "gone": False}], SCHEMA))
    kw.advance(90)
    assert kw.query("a", at=50, plus={"x": 9}) == {"a_10": 20.0}
    keys = pa.table({"k": ["a", "none"], "t": [51, 51], "more": [9, 9]})
    found = kw.query_many(keys, at="t", plus={"x": "more"})
    assert found["a_10"].to_pylist() == [20.0, 0.0]


def results(kw: Any) -> list[Any]:
    """The times of rows, their results, and whether these are corrections."""
    columns = ("t", "a_trailing_10_10", "_correction")
    return [tuple(map(row.get, columns)) for row in kw.collect().to_pylist()]


def test_late_rows_correct_rows_whose_windows_begin_with_them() -> None:
    windows = sw.trailing(10, resolution=10)
    kw = small(emit="final", late_rows="correct", windows=windows)
    rows = [{"t": t, "k": "a", "x": x} for t, x in [(0, 1), (25, 2), (30, 3)]]
    kw.ingest(pa.Table.from_pylist(rows, SCHEMA))
    kw.advance(30)
    # The windows begin at 10 and 20.
    assert results(kw) == [(0, 0.0, False), (25, 15.0, False), (30, 15.0, False)]
    kw.ingest(pa.Table.from_pylist([{"t": 12, "k": "a", "x": 9}], SCHEMA))
    assert results(kw) == [(12, 12.0, False), (25, 119.0, True), (30, 55.0, True)]
    kw.ingest(pa.Table.from_pylist([{"t": 26, "k": "b", "x": 9}], SCHEMA))
    kw.ingest(pa.Table.from_pylist([{"t": 18, "k": "b", "x": 7}], SCHEMA))
    # The window of 26 begins at 10, and holds the late row.
    assert results(kw) == [(26, 0.0, False), (18, 0.0, False), (26, 56.0, True)]


def test_late_rows_correct_windows_of_a_grid_that_begin_with_them() -> None:
    windows: dict[str, Any] = {"windows": [2, 30], "every": 2, "closed": "right"}
    kw = small(emit="slide", late_rows="correct", **windows)
    rows = [{"t": t, "k": "a", "x": x} for t, x in [(0, 1), (20, 3), (22, 4)]]
    kw.ingest(pa.Table.from_pylist(rows, SCHEMA))
    kw.advance(40)
    found = [row for row in kw.collect().to_pylist() if row["window"] == "2"]
    assert [(row["window_end"], row["a"]) for row in found] == [
        (0, 0.0),
        (20, 2.0),
        (22, 6.0),
    ]
    kw.ingest(pa.Table.from_pylist([{"t": 15, "k": "a", "x": 9}], SCHEMA))
    found = [row for row in kw.collect().to_pylist() if row["window"] == "2"]
    assert [(row["window_end"], row["a"], row["_correction"]) for row in found] == [
        (16, 10.0, False),
        (20, 18.0, True),
    ]


def test_a_snapshot_opens_with_more_of_the_entries_that_it_kept() -> None:
    kw = small(aggs={"a": sw.integral("x"), "c": sw.count("y")})
    for start in range(0, 200, 20):
        kw.ingest(rows_of(range(start, start + 20), "a", 50))
        kw.advance()
    blob = kw.to_bytes()
    options: dict[str, Any] = {"on": "t", "by": "k", "windows": [10, 5]}
    grown = sw.Spec(aggs={"l": sw.time_weighted_mean("x")}, **options)
    assert sw.KeyedWindows.from_bytes(blob, grown).query("a", at=199) == {
        "l_10": 150.0,
        "l_5": 150.0,
    }
    other = sw.Spec(aggs={"l": sw.time_weighted_mean("y")}, **options)
    with pytest.raises(sw.SnapshotError, match="the entry before its window, which it"):
        sw.KeyedWindows.from_bytes(blob, other)
    first = sw.Spec(aggs={"c": sw.sum("y")}, **options)
    shorter = sw.KeyedWindows.from_bytes(blob, first)
    assert shorter.query("a", at=199) == {"c_10": 10.0, "c_5": 5.0}
