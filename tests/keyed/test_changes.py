"""`emit="change"`: the last result of each key is as of the watermark or later."""

import random

import pyarrow as pa
import pytest
from keyed_streams import FOLDED, SEEDS, WHOLE, Stream, near, page

import slidewise as sw

__all__ = ["page"]

KINDS: dict[str, dict[str, object]] = {
    "folded": {"windows": [7, 60], "aggs": FOLDED},
    "both ends": {"windows": [30], "aggs": FOLDED, "closed": "both", "offset": 3},
    "left": {"windows": [50, 3], "aggs": {**FOLDED, **WHOLE}, "closed": "left"},
    "rows": {"windows": [sw.rows(3), 20], "aggs": WHOLE},
    "deletes": {"windows": [40], "aggs": FOLDED, "deletes": "ok"},
    "few": {"windows": [40], "aggs": FOLDED, "min_rows": 2},
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_last_results_is_current(page: int, kind: str, seed: int) -> None:
    """Results are as of the watermark, or the key's latest row if that is later."""
    stream = Stream(seed * 1000 + page)
    spec = {"on": "t", "by": "key", **KINDS[kind]}
    windows = sw.KeyedWindows(**spec, emit="change", late=stream.random.choice([0, 40]))
    last: dict[object, dict[str, object]] = {}
    for _ in range(8):
        windows.ingest(stream.batch())
        windows.advance()
        for row in windows.collect().to_pylist():
            known = last.get(row["key"])
            assert known is None or known["t"] <= row["t"], "times do not fall"
            last[row["key"]] = row
        if windows.watermark is None:
            continue
        assert {row["key"] for row in windows.keys().to_pylist()} <= last.keys()
        for key, row in last.items():
            time = max(row["t"], windows.watermark)
            now = windows.query((key,), at=time)
            for name, value in now.items():
                mine, theirs = row[name], value
                same = (
                    near(mine, theirs) if isinstance(value, float) else mine == theirs
                )
                assert same, f"{name} of {key} at {time}: {mine}, not {theirs}"


EXACT = {
    "n": sw.count(),
    "sum": sw.sum("x"),
    "top": sw.max("word"),
    "good": sw.count("x", where="ok"),
}
CHANGED: dict[str, dict[str, object]] = {
    "folded": {"windows": [7, 60], "aggs": EXACT},
    "left": {"windows": [50, 3], "aggs": EXACT, "closed": "left", "offset": 2},
    "rows": {"windows": [sw.rows(3), 20], "aggs": {"n": sw.count(), **WHOLE}},
    "top": {"windows": [40], "aggs": {"n": sw.count(), "top": sw.max("ok")}},
    "deletes": {"windows": [40], "aggs": EXACT, "deletes": "ok"},
    "correct": {"windows": [40], "aggs": EXACT, "late_rows": "correct"},
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", CHANGED)
def test_changed_leaves_out_results_that_equal_the_last(
    page: int, kind: str, seed: int
) -> None:
    stream = Stream(seed * 1000 + page)
    spec = {"on": "t", "by": "key", "emit": "change", **CHANGED[kind]}
    late = stream.random.choice([0, 40])
    every = sw.KeyedWindows(**spec, late=late)
    changed = sw.KeyedWindows(**spec, late=late, changed=True)
    last: dict[object, dict[str, object]] = {}
    for _ in range(10):
        batch = stream.batch()
        wanted = []
        for step in ("ingest", "advance"):
            for windows in (every, changed):
                windows.ingest(batch) if step == "ingest" else windows.advance()
            for row in every.collect().to_pylist():
                answers = {
                    name: repr(cell)
                    for name, cell in row.items()
                    if name not in ("key", "t", "_correction")
                }
                if last.get(row["key"]) != answers:
                    wanted.append(row)
                last[row["key"]] = answers
            found = changed.collect().to_pylist()
            if kind in ("left", "deletes"):
                # A key that returns without a row in its windows is given again.
                found = [row for row in found if row.get("n_50") or row.get("n_40")]
                wanted = [row for row in wanted if row.get("n_50") or row.get("n_40")]
            assert repr(found) == repr(wanted)
            wanted = []
        changed.check()
        if stream.random.random() < 0.3:
            blob = changed.to_bytes()
            names = ("on", "by", "windows", "aggs", "closed", "offset")
            again = {name: spec[name] for name in names if name in spec}
            changed = sw.KeyedWindows.from_bytes(blob, **again)


def test_a_key_that_had_left_its_windows_is_given_again() -> None:
    windows = sw.KeyedWindows(
        on="t",
        by="k",
        windows=10,
        aggs={"n": sw.count(where="ok"), "nan": sw.max("y")},
        emit="change",
        changed=True,
    )
    nan = float("nan")
    batch = {"t": [1, 2], "k": [*"aa"], "ok": [False, False], "y": [nan, -0.0]}
    windows.ingest(pa.table(batch))
    assert len(windows.collect()) == 1
    windows.ingest(pa.table({**batch, "t": [3, 4], "y": [0.0, nan]}))
    assert len(windows.collect()) == 0, "NaN equals NaN, and 0 equals 0"
    windows.advance(20)
    assert windows.collect().to_pylist() == [
        {"k": "a", "t": 20, "n_10": 0, "nan_10": None}
    ]
    windows.ingest(pa.table({**batch, "t": [21, 21], "y": pa.nulls(2)}))
    assert windows.collect()["t"].to_pylist() == [21], "as for a key that is new"


def test_changed_goes_with_emit_change() -> None:
    request = {"on": "t", "windows": 5, "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match="give that, or leave it out"):
        sw.KeyedWindows(**request, changed=True)
    with pytest.raises(sw.SpecError, match="changed= is True or False, got 'yes'"):
        sw.KeyedWindows(**request, emit="change", changed="yes")


def test_a_row_at_the_last_time_never_enters_a_window_that_ends_before_it() -> None:
    """The next time, at which it would enter, is beyond int64."""
    windows = sw.KeyedWindows(
        on="t",
        by="k",
        windows=10,
        closed="left",
        aggs={"n": sw.count()},
        emit="change",
    )
    windows.ingest(pa.table({"t": [2**63 - 1, 1], "k": [*"ab"]}))
    windows.collect()
    windows.advance(2)
    assert windows.collect().to_pylist() == [{"k": "b", "t": 2, "n_10": 1}]


def test_a_key_is_emitted_when_a_row_leaves_a_window() -> None:
    """A watermark emits a key once, however many of its rows leave."""
    windows = sw.KeyedWindows(
        on="t", by="k", windows=10, aggs={"n": sw.count()}, emit="change"
    )
    windows.ingest(pa.table({"t": [1, 3, 2], "k": [*"aab"]}))
    assert windows.collect().to_pylist() == [
        {"k": "a", "t": 3, "n_10": 2},
        {"k": "b", "t": 2, "n_10": 1},
    ]
    windows.advance(10)
    assert len(windows.collect()) == 0, "(0, 10] still holds them"
    windows.advance(11)
    assert windows.collect().to_pylist() == [{"k": "a", "t": 11, "n_10": 1}]
    windows.advance(99)
    gone = windows.collect().sort_by("k").to_pylist()
    assert gone == [{"k": "a", "t": 99, "n_10": 0}, {"k": "b", "t": 99, "n_10": 0}]
    windows.advance(500)
    assert len(windows.collect()) == 0, "nothing is left to change"


@pytest.mark.long
def test_results_do_not_depend_on_other_keys() -> None:
    """Keys without changes are not emitted."""
    windows = sw.KeyedWindows(
        on="t", by="k", windows=1000, aggs={"n": sw.count()}, emit="change"
    )
    windows.ingest(pa.table({"t": [*range(100)], "k": [*range(100)]}))
    windows.collect()
    draw = random.Random(5)
    for time in range(100, 1000):
        windows.ingest(pa.table({"t": [time], "k": [draw.randrange(100)]}))
        windows.advance()
        assert len(windows.collect()) == 1


CORRECTED: dict[str, dict[str, object]] = {
    "folded": {"windows": [60, 7], "aggs": FOLDED},
    "offset": {"windows": [30], "aggs": {**FOLDED, **WHOLE}, "offset": 3},
    "ends": {"windows": [50, 3], "aggs": FOLDED, "closed": "neither", "min_rows": 2},
    "rows": {"windows": [sw.rows(3), 20], "aggs": WHOLE},
    "order": {"windows": [40], "aggs": WHOLE, "then_by": "x"},
}


@pytest.mark.parametrize("deletes", [None, "ok"], ids=["kept", "deletes"])
@pytest.mark.parametrize("kind", CORRECTED)
@pytest.mark.parametrize("seed", SEEDS)
def test_late_rows_correct_what_is_current(
    page: int, kind: str, deletes: str | None, seed: int
) -> None:
    """After every batch, the last result of each key is that of all accepted rows."""
    script = Corrected(seed * 1000 + page, CORRECTED[kind], deletes)
    steps = 0
    while steps < 12 or not script.late:
        script.step()
        script.compare()
        steps += 1


class Corrected:
    """A stream that accepts late rows, its sink, and the rows that it should have."""

    def __init__(self, seed: int, spec: dict[str, object], deletes: str | None) -> None:
        self.stream = Stream(seed)
        self.stream.disorder = self.stream.random.choice([20, 60, 150])
        self.deletes = deletes
        self.spec = {"on": "t", "by": "key", **spec}
        self.then_by = self.spec.pop("then_by", None)
        lengths = [length for length in spec["windows"] if isinstance(length, int)]
        self.counts = len(lengths) < len(spec["windows"])
        self.reach = max(lengths) + spec.get("offset", 0)
        self.windows = sw.KeyedWindows(
            **self.spec,
            emit="change",
            late=self.stream.random.choice([0, 10]),
            late_rows="correct",
            deletes=deletes,
            then_by=self.then_by,
        )
        self.rows: list[dict[str, object]] = []
        self.sink: dict[object, dict[str, object]] = {}
        self.late = 0

    def step(self) -> None:
        """Ingests a batch, advances, evicts idle keys, or restarts."""
        draw, windows = self.stream.random, self.windows
        watermark = windows.watermark
        if draw.random() < 0.8:
            batch = self.stream.batch()
            windows.ingest(batch)
            self._accept(batch.to_pylist(), watermark)
        if draw.random() < 0.5:
            windows.advance()
        elif windows.watermark is not None and draw.random() < 0.5:
            windows.advance(windows.watermark + draw.choice([1, 5, 40]))
        # Windows of rows(n) lose their rows by it.
        if windows.watermark is not None and not self.counts and draw.random() < 0.2:
            windows.evict_idle(windows.watermark - 2 * self.reach)
        windows.check()
        if windows.watermark is None and not self.rows:
            return
        for row in windows.collect().to_pylist():
            known = self.sink.get(row["key"])
            assert known is None or known["t"] <= row["t"], "times do not fall"
            self.sink[row["key"]] = row
        if draw.random() < 0.2:
            saved = windows.to_bytes()
            self.windows = sw.KeyedWindows.from_bytes(saved, **self.spec)

    def _accept(self, batch: list[dict[str, object]], watermark: int | None) -> None:
        """Late rows up to the longest window are accepted, deletions only in time."""
        bound = -float("inf") if watermark is None else watermark
        gone = [row for row in batch if self.deletes and row[self.deletes]]
        for row in batch:
            if row not in gone and row["t"] > bound - self.reach:
                self.rows.append(row)
                self.late += row["t"] <= bound
        for row in gone:
            if row["t"] > bound:
                same = [
                    r for r in self.rows if (r["t"], r["key"]) == (row["t"], row["key"])
                ]
                if self.then_by:
                    same.sort(key=lambda r: (r["x"] is None, r["x"] or 0))
                if same:
                    self.rows.remove(same[0])

    def compare(self) -> None:
        """Compares the sink with queries, and with the table of all rows."""
        watermark = self.windows.watermark
        keys = {row["key"] for row in self.rows}
        assert keys <= self.sink.keys()
        if not self.rows:
            return
        times = [
            row["t"] if watermark is None else max(row["t"], watermark)
            for row in self.sink.values()
        ]
        keys = pa.array(list(self.sink), pa.string())
        labels = pa.table({"key": keys, "t": pa.array(times, pa.int64())})
        rows = sorted(self.rows, key=lambda row: row["t"])
        if self.then_by:
            rows.sort(key=lambda r: (r["t"], r["x"] is None, r["x"] or 0))
        table = pa.Table.from_pylist(rows, self.stream.batch().schema)
        meant = sw.rolling(table, **self.spec, at=labels).to_pylist()
        queried = self.windows.query_many(labels, at="t").to_pylist()
        for at, (wanted, found) in enumerate(zip(meant, queried, strict=True)):
            mine = self.sink[wanted["key"]]
            for name in set(wanted) - {"key", "t"}:
                for other in (found[name], wanted[name]):
                    same = mine[name] == other or (
                        isinstance(other, float) and near(mine[name], other)
                    )
                    assert same, f"{name} of {labels.slice(at, 1)}: {mine}, not {other}"


def test_a_late_row_corrects_the_result_at_the_watermark() -> None:
    """A late row outside those windows does not; an unknown key is not corrected."""
    windows = sw.KeyedWindows(
        on="t",
        by="k",
        windows=10,
        aggs={"n": sw.count()},
        emit="change",
        late_rows="correct",
    )
    windows.ingest(pa.table({"t": [1, 20, 30], "k": [*"aab"]}))
    windows.advance(22)
    windows.collect()
    windows.ingest(pa.table({"t": [15, 14, 21, 29], "k": [*"acbb"]}))
    windows.ingest(pa.table({"t": [14, 12], "k": [*"ca"]}))
    windows.ingest(pa.table({"t": [13], "k": ["b"]}))
    answers = windows.collect().to_pylist()
    assert [tuple(row.values()) for row in answers] == [
        ("a", 22, 2, True),
        ("c", 22, 1, False),
        ("b", 30, 3, True),
        ("c", 22, 2, True),
    ]
    assert windows.late_count == 1, "a row at 12 is in no window at 22"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", CHANGED)
def test_results_say_until_when_they_are_valid(page: int, kind: str, seed: int) -> None:
    """The last result of each key has the times that a query gives at the watermark."""
    stream = Stream(seed * 1000 + page)
    spec = {"on": "t", "by": "key", "emit": "change", **CHANGED[kind]}
    late, changed = stream.random.choice([0, 40]), stream.random.choice([False, True])
    windows = sw.KeyedWindows(**spec, late=late, changed=changed, valid_until=True)
    last: dict[object, dict[str, object]] = {}
    found = set()
    for _ in range(5):
        windows.ingest(stream.batch())
        windows.advance()
        for row in windows.collect().to_pylist():
            last[row["key"]] = row
        if stream.random.random() < 0.3:
            windows = sw.KeyedWindows.from_bytes(windows.to_bytes())
        if windows.watermark is None:
            continue
        keys = [row["key"] for row in windows.keys().to_pylist()]
        times = [max(last[key]["t"], windows.watermark) for key in keys]
        asked = pa.table({"key": pa.array(keys, pa.string()), "at": times})
        now = windows.query_many(asked, at="at", valid_until=True).drop_columns("at")
        found |= {name for name in now.column_names if "valid_until" in name}
        for key, row in zip(keys, now.to_pylist(), strict=True):
            assert {name: last[key][name] for name in row} == row
    assert found


def test_an_update_says_until_when_it_is_valid() -> None:
    request = {"on": "t", "by": "k", "windows": 10, "aggs": {"top": sw.max("x")}}
    windows = sw.KeyedWindows(**request, emit="update", valid_until=True)
    windows.ingest({"t": [1, 2, 3], "k": [*"aab"], "x": [5, 9, None]})
    assert windows.collect().to_pylist() == [
        {"k": "a", "t": 2, "top_10": 9, "valid_until_10": 12},
        {"k": "b", "t": 3, "top_10": None, "valid_until_10": None},
    ]


def test_valid_until_goes_with_results_per_key() -> None:
    request = {"on": "t", "windows": 5, "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match=r"emit='final' emits others: give emit"):
        sw.KeyedWindows(**request, valid_until=True)
    with pytest.raises(sw.SpecError, match="valid_until= is True or False, got 1"):
        sw.KeyedWindows(**request, emit="change", valid_until=1)
    since = {**request, "aggs": {"since": sw.since_last()}, "emit": "update"}
    with pytest.raises(sw.SpecError, match=r"valid_until=True asks when results"):
        sw.KeyedWindows(**since, valid_until=True)
