"""`landmark` and `delta` over a stream, compared with those of the whole table."""

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from keyed_streams import FOLDED, SEEDS, WHOLE, assert_same, page, stream_of

import slidewise as sw
from slidewise.keyed import row_log

__all__ = ["page"]

WINDOWS: dict[str, Any] = {
    "landmark": sw.landmark("ok"),
    "delta": sw.delta("t", 15),
    "several": [sw.landmark("ok"), 7, sw.rows(3)],
    "both": [sw.delta("t", 15), sw.landmark("ok"), 40],
}
BATCH = [("t", pa.int64()), ("k", pa.string()), ("f", pa.bool_()), ("x", pa.int64())]


@pytest.fixture
def sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets rows leave the log soon."""
    monkeypatch.setattr(row_log, "_MIN_ROWS", 20)


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("by", [["key"], []], ids=["key", "none"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("sparse")
def test_rows_are_answered_as_over_the_table(
    page: int, seed: int, by: list[str], name: str, aggs: dict[str, object]
) -> None:
    spec: dict[str, object] = {"on": "t", "by": by, "aggs": aggs}
    spec["windows"] = WINDOWS[name]
    rows, answers, watermark = stream_of(seed * 1000 + page + 41, spec)
    expected = sw.rolling(rows, **spec)
    expected = expected.filter(pc.less_equal(expected["t"], watermark))
    assert_same(answers, expected, ["id"])


@pytest.mark.long
@pytest.mark.usefixtures("sparse")
@pytest.mark.parametrize("window", [sw.landmark("f"), sw.delta("km", 20)], ids=repr)
def test_rows_before_a_window_leave(window: Any) -> None:
    """Every 25th row is a landmark, and a counter rises by one with each row."""
    windows = sw.KeyedWindows(on="t", by="k", windows=window, aggs={"n": sw.count()})
    largest, counts = 0, []
    for start in range(0, 6000, 10):
        times = range(start, start + 10)
        flags = [at % 25 == 0 for at in times]
        batch = {"t": times, "k": ["a"] * 10, "f": flags, "km": times}
        windows.ingest(pa.table(batch))
        windows.advance()
        counts += windows.collect().column(4).to_pylist()
        largest = max(largest, windows.nbytes)
    assert largest < 80_000  # all rows: 200,000
    rising = isinstance(window, type(sw.landmark("f")))
    wanted = [at % 25 + 1 if rising else min(at, 20) + 1 for at in range(6000)]
    assert counts == wanted
    windows.check()


def test_a_column_that_falls_is_refused_when_its_rows_are_answered() -> None:
    """The call changes nothing; the stream continues after a deletion of the row."""
    windows = sw.KeyedWindows(
        on="t", windows=sw.delta("km", 5), aggs={"n": sw.count()}, deletes="gone"
    )
    windows.ingest(pa.table({"t": [1], "km": [7], "gone": [False]}))
    windows.advance()
    windows.collect()
    windows.ingest(pa.table({"t": [2, 3], "km": [6, 9], "gone": [False] * 2}))
    for _ in range(2):
        with pytest.raises(sw.SpecError, match=r"column 'km' falls from 7 .* to 6"):
            windows.advance()
    windows.ingest(pa.table({"t": [2], "km": [6], "gone": [True]}))
    windows.advance()
    assert windows.collect()["n_delta_km_5"].to_pylist() == [2]


def test_windows_beside_a_landmark_are_queried() -> None:
    windows = sw.KeyedWindows(
        on="t", windows=[sw.landmark("f"), 5], aggs={"n": sw.count()}
    )
    windows.ingest(pa.table({"t": [1, 8], "f": [True, False]}))
    windows.advance()
    assert windows.query(at=8, windows=5) == {"n_5": 1}
    assert windows.query(at=8) == {"n_landmark_f": 2, "n_5": 1}
    assert windows.query(at=9, plus={"f": True}) == {"n_landmark_f": 1, "n_5": 2}
    answer = windows.query(at=9, valid_until=True)
    assert answer["valid_until_landmark_f"] is None
    assert answer["valid_until_5"] == 13
    assert "from all rows of a key: landmark('f')" in windows.explain()


def test_queries_of_delta_are_refused() -> None:
    windows = sw.KeyedWindows(
        on="t", windows=[sw.delta("km", 1), 5], aggs={"n": sw.count()}
    )
    windows.ingest(pa.table({"t": [1, 8], "km": [1, 2]}))
    assert windows.query(at=8, windows=5) == {"n_5": 1}
    with pytest.raises(sw.SpecError, match=r"from the 'km' of a row.* by windows="):
        windows.query(at=8)


@pytest.mark.parametrize("by", [["k"], []], ids=["key", "none"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("sparse")
def test_queries_of_landmarks_equal_those_of_the_table(
    seed: int, by: list[str]
) -> None:
    """Evicted rows are in no window that a query can have."""
    rng = random.Random(seed)
    spec: dict[str, Any] = {
        "on": "t",
        "by": by,
        "windows": [sw.landmark("f"), 7],
        "aggs": {"n": sw.count(), "x": sw.collect("x"), "m": sw.median("x")},
    }
    windows, batches, watermark = sw.KeyedWindows(**spec, late=5, keep=20), [], None
    for start in range(0, 400, 20):
        times = [start + rng.randrange(-5, 20) for _ in range(30)]
        rows = {
            "t": times,
            "k": [rng.choice("ab") for _ in times],
            "f": [rng.choice([None, *[False] * 9, True]) for _ in times],
            "x": [rng.choice([None, 1, 2, 3]) for _ in times],
        }
        batch = pa.table(rows, pa.schema(BATCH))
        in_time = pc.greater(batch["t"], -100 if watermark is None else watermark)
        batches.append(batch.filter(in_time))
        windows.ingest(batch)
        if rng.random() < 0.3:
            windows.collect()
            windows = sw.KeyedWindows.from_bytes(windows.to_bytes(), **spec)
        if rng.random() < 0.7:
            windows.advance()
            watermark = windows.watermark
        least = -10 if watermark is None else watermark - 13
        points = range(least, start + 25)
        columns = {"k": [rng.choice("abc") for _ in points], "t": points}
        table = pa.table(columns, pa.schema([("k", pa.string()), ("t", pa.int64())]))
        expected = sw.rolling(pa.concat_tables(batches), **spec, at=table)
        assert windows.query_many(table, at="t").equals(expected)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"emit": "arrival"}, r"emit='arrival' does not go with .* landmark\('f'\)"),
    ({"emit": "update"}, "emit='update' does not go with"),
    ({"emit": "change"}, "emit='change' does not go with"),
    ({"late_rows": "correct"}, "late_rows='correct' does not go with"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_answers_before_the_watermark_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(sw.SpecError, match=message):
        sw.KeyedWindows(
            on="t", windows=sw.landmark("f"), aggs={"n": sw.count()}, **options
        )
