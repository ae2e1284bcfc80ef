"""Windows that rows close over a stream, compared with those of the whole table."""

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from keyed_streams import FOLDED, SEEDS, WHOLE, assert_same, page, stream_of

import slidewise as sw
from slidewise.keyed import row_log

__all__ = ["page"]

JOINED = sw.aggregation(
    lift=str, combine=lambda a, b: f"{a}|{b}", identity=None, returns=str
)
WINDOWS: dict[str, dict[str, Any]] = {
    "until": {"window": sw.until("ok")},
    "every": {"window": sw.rows(4)},
    "overlap": {"window": sw.rows(7), "every": sw.rows(2)},
    "gaps": {"window": sw.rows(2), "every": sw.rows(5)},
    "range": {"window": 30, "every": sw.rows(3)},
}


@pytest.fixture
def sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets rows leave the log soon."""
    monkeypatch.setattr(row_log, "_MIN_ROWS", 20)


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("by", [["key"], ["key", "k2"], []], ids=["key", "two", "none"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("sparse")
def test_windows_are_answered_when_the_watermark_passes_their_last_row(
    page: int, seed: int, by: list[str], name: str, aggs: dict[str, object]
) -> None:
    spec: dict[str, object] = {"on": "t", "by": by, "aggs": aggs, **WINDOWS[name]}
    rows, answers, watermark = stream_of(seed * 1000 + page + 21, spec)
    expected = sw.hopping(rows, **spec)
    over = pc.less_equal(expected["window_end"], watermark)
    assert_same(answers, expected.filter(over), [*by, "window_end"])


def rows_of(seed: int) -> list[dict[str, Any]]:
    """Rows in order of arrival, up to 9 behind the latest, many of equal time."""
    draw = random.Random(seed)
    return [
        {
            "t": max(0, at // 3 - draw.randrange(10)),
            "k": draw.choice(["a", "a", "b", None]),
            "id": at,
            "o": draw.randrange(3),
            "f": draw.choice([True, False, False, None]),
        }
        for at in range(240)
    ]


def meant(
    rows: list[dict[str, Any]], name: str, watermark: int
) -> list[tuple[Any, ...]]:
    """Key, ends and joined ids of each window, found row by row."""
    found = []
    for key in {row["k"] for row in rows}:
        own = [row for row in rows if row["k"] == key and row["t"] <= watermark]
        begin = 0
        for at, row in enumerate(own):
            taken = own[begin : at + 1]
            if name == "until":
                if row["f"] is not True:
                    continue
                begin = at + 1
            elif name == "rows":
                if (at + 1) % 3:
                    continue
                taken = own[max(0, at - 4) : at + 1]
            else:
                if (at + 1) % 4:
                    continue
                taken = [one for one in own[: at + 1] if one["t"] > row["t"] - 6]
            start = row["t"] - 6 if name == "range" else taken[0]["t"]
            ids = "|".join(str(one["id"]) for one in taken)
            found.append((str(key), start, row["t"], ids))
    return sorted(found)


MEANT: dict[str, dict[str, Any]] = {
    "until": {"window": sw.until("f")},
    "rows": {"window": sw.rows(5), "every": sw.rows(3)},
    "range": {"window": 6, "every": sw.rows(4)},
}


@pytest.mark.parametrize("ties", [None, "o"])
@pytest.mark.parametrize("size", [1, 7, 240])
@pytest.mark.parametrize("name", MEANT)
@pytest.mark.usefixtures("sparse")
def test_windows_equal_their_definition(name: str, size: int, ties: str | None) -> None:
    """The batches of rows, and restarts in other processes, do not matter."""
    request = {"on": "t", "by": "k", "aggs": {"ids": JOINED("id")}, **MEANT[name]}
    rows = rows_of(size)
    table = pa.Table.from_pylist(rows)
    windows = sw.KeyedWindows(**request, late=10, then_by=ties)
    answers = []
    for start in range(0, len(table), size):
        windows.ingest(table.slice(start, size))
        windows.advance()
        answers.append(windows.collect())
        if start % 5 == 0:
            windows = sw.KeyedWindows.from_bytes(windows.to_bytes(), **request)
    windows.advance(70)
    answers.append(windows.collect())
    assert windows.late_count == 0
    got = pa.concat_tables(answers).to_pylist()
    names = ("window_start", "window_end", "ids")
    ours = sorted((str(row["k"]), *(row[name] for name in names)) for row in got)
    in_order = sorted(rows, key=lambda row: (row["t"], row["o"] if ties else 0))
    assert ours == meant(in_order, name, 70)
    assert len(ours) > 20


@pytest.mark.long
@pytest.mark.parametrize("name", MEANT)
@pytest.mark.usefixtures("sparse")
def test_the_state_has_only_rows_of_later_windows(name: str) -> None:
    """Rows of closed windows are evicted from memory and from the log."""
    request = {"on": "t", "by": "k", "aggs": {"n": sw.count()}, **MEANT[name]}
    windows = sw.KeyedWindows(**request)
    largest = 0
    for start in range(0, 6000, 10):
        times = range(start, start + 10)
        flags = [at % 5 == 0 for at in times]
        windows.ingest(pa.table({"t": times, "k": ["a", "b"] * 5, "f": flags}))
        windows.advance()
        windows.collect()
        largest = max(largest, windows.nbytes)
    assert windows.nbytes <= largest < 80_000  # all rows: 200,000
    windows.check()


def test_a_flag_that_is_deleted_closes_nothing() -> None:
    """The rows on both sides of it are in one window."""
    windows = sw.KeyedWindows(
        on="t", window=sw.until("f"), aggs={"n": sw.count()}, deletes="gone"
    )
    rows = {"t": [1, 2, 3, 4], "f": [False, True, False, True]}
    windows.ingest(pa.table({**rows, "gone": [False] * 4}))
    windows.advance(1)
    windows.ingest(pa.table({"t": [2], "f": [None], "gone": [True]}))
    windows.advance(9)
    assert windows.collect().to_pylist() == [
        {"window_start": 1, "window_end": 4, "n": 3}
    ]


@pytest.mark.parametrize(
    ("window", "counts"), [(sw.until("f"), [2, 1]), (sw.rows(2), [2, 2])], ids=repr
)
def test_late_rows_are_dropped_and_counted(window: Any, counts: list[int]) -> None:
    """A late row would change the start of later windows."""
    windows = sw.KeyedWindows(on="t", window=window, aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [1, 5], "f": [False, True]}))
    windows.advance()
    windows.ingest(pa.table({"t": [5, 3, 6, 7], "f": [False, True, True, False]}))
    windows.advance()
    assert windows.collect()["n"].to_pylist() == counts
    assert windows.late_count == 2


def test_idle_keys_restart() -> None:
    """A new row of an idle key starts a new window, and the count of rows restarts."""
    for window, counts in ((sw.until("f"), [1]), (sw.rows(2), [])):
        windows = sw.KeyedWindows(on="t", by="k", window=window, aggs={"n": sw.count()})
        windows.ingest(pa.table({"t": [1], "k": ["a"], "f": [False]}))
        windows.advance()
        assert windows.evict_idle(1) == 1
        assert len(windows) == 0
        windows.ingest(pa.table({"t": [2], "k": ["a"], "f": [True]}))
        windows.advance()
        assert windows.collect()["n"].to_pylist() == counts


def test_a_window_whose_answer_does_not_fit_stays_open() -> None:
    """The call that raises changes nothing; the stream continues with `overflow`."""
    request = {"on": "t", "window": sw.until("f"), "aggs": {"x": sw.sum("x")}}
    windows = sw.KeyedWindows(**request)
    big = 2**62
    windows.ingest(pa.table({"t": [1, 2], "x": [big, big], "f": [False, True]}))
    for _ in range(2):
        with pytest.raises(sw.ResultOverflowError):
            windows.advance()
    windows = sw.KeyedWindows.from_bytes(windows.to_bytes(), **request, overflow="null")
    windows.advance()
    assert windows.collect()["x"].to_pylist() == [None]


@pytest.mark.parametrize("window", [sw.rows(4), 9], ids=repr)
@pytest.mark.usefixtures("sparse")
def test_windows_that_slide_by_rows_are_queried_as_rolling(window: Any) -> None:
    """Queries have rolling windows of their length, at the watermark and later."""
    aggs = {"ids": sw.collect("id")}
    table = pa.Table.from_pylist(rows_of(3)).sort_by("t")
    windows = sw.KeyedWindows(
        on="t", by="k", window=window, every=sw.rows(3), aggs=aggs
    )
    for start in range(0, 240, 30):
        windows.ingest(table.slice(start, 30))
        windows.advance()
        windows.collect()
    for at in (80, 83):
        points = pa.table({"k": ["a", "b", None, "z"], "t": [at] * 4})
        wanted = sw.rolling(table, on="t", by="k", windows=window, aggs=aggs, at=points)
        assert windows.query_many(points, at="t").to_pylist() == wanted.to_pylist()


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"late_rows": "correct"},
        r"late row of the window until\('f'\) changes the",
    ),
    ({"late_rows": "flag"}, "late_rows='flag' gives rows back"),
    ({"keep": 9}, r"keep=9 does not apply to the window until\('f'\)"),
    ({"emit": "final"}, "emit='final' does not go with hopping"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_options_that_do_not_apply_are_refused(
    options: dict[str, Any], message: str
) -> None:
    table = pa.table({"t": [1], "f": [True]})
    aggs = {"n": sw.count()}
    with pytest.raises(sw.SpecError, match=message):
        sw.KeyedWindows(on="t", window=sw.until("f"), aggs=aggs, **options).ingest(
            table
        )


@pytest.mark.parametrize("ties", [None, "o"])
@pytest.mark.parametrize("size", [1, 7, 240])
@pytest.mark.usefixtures("sparse")
def test_queries_answer_the_open_window_of_a_key(size: int, ties: str | None) -> None:
    """It has the rows after the last flag up to a time, or the row of `plus=`."""
    draw = random.Random(size)
    request = {"on": "t", "by": "k", "aggs": {"ids": JOINED("id")}, **MEANT["until"]}
    windows = sw.KeyedWindows(**request, late=10, then_by=ties)
    rows, watermark = rows_of(size), -1
    for start in range(0, 240, size):
        windows.ingest(pa.Table.from_pylist(rows[start : start + size]))
        if draw.random() < 0.5:
            windows.advance()
            watermark = windows.watermark
        if draw.random() < 0.1:
            windows.collect()
            windows = sw.KeyedWindows.from_bytes(windows.to_bytes(), **request)
        at, key = watermark + draw.randrange(12), draw.choice(["a", "b", None, "c"])
        own = [row for row in rows[: start + size] if row["k"] == key]
        own = [row for row in own if row["t"] <= at]
        own.sort(key=lambda row: (row["t"], row["o"] if ties else 0))
        flags = [place for place, row in enumerate(own) if row["f"]]
        ids = [str(row["id"]) for row in own[flags[-1] + 1 if flags else 0 :]]
        assert windows.query(key, at) == {"ids_until_f": "|".join(ids) or None}
        flag = draw.choice([True, False, None])
        with_row = windows.query(key, at, plus={"id": -1, "f": flag})
        assert with_row == {"ids_until_f": "|".join([*ids, "-1"])}


def test_queries_of_windows_that_a_flag_closed_are_refused() -> None:
    """Their rows were evicted, or will be."""
    windows = sw.KeyedWindows(on="t", window=sw.until("f"), aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [1, 2, 5], "f": [False, True, False]}))
    assert "no flag has closed yet, at any time" in windows.explain()
    assert [windows.query(at=at)["n_until_f"] for at in (0, 1, 2, 5)] == [0, 1, 0, 1]
    windows.advance(4)
    assert windows.query(at=4) == {"n_until_f": 0}
    assert "at 4 (the watermark) or later" in windows.explain()
    with pytest.raises(sw.SpecError, match=r"at 3 may have .* ask for 4, the waterm"):
        windows.query(at=3)
    with pytest.raises(sw.SpecError, match="leave it out for the open window"):
        windows.query(at=5, windows=3)


def test_flags_are_booleans() -> None:
    windows = sw.KeyedWindows(on="t", window=sw.until("f"), aggs={"n": sw.count()})
    with pytest.raises(sw.SpecError, match="column 'f' holds int64, not booleans"):
        windows.ingest(pa.table({"t": [1], "f": [1]}))
    with pytest.raises(sw.SpecError, match="no column 'f'"):
        windows.ingest(pa.table({"t": [1]}))
