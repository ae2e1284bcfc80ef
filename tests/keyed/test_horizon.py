"""The horizon of `KeyedWindows`, its keys, and the texts of `repr` and `explain`."""

import copy
import datetime as dt
import re

import pyarrow as pa
import pytest
from cards import OPTIONS, ROWS, batch, cards

import slidewise as sw


def test_queries_reach_back_to_the_horizon() -> None:
    """The horizon is the longest window and `late`, at the watermark and later."""
    for closed in ("right", "both"):
        windows = cards(*ROWS, closed=closed, late=3)
        windows.ingest(batch((30, "a", 5)))
        windows.advance(21)
        windows.ingest(batch((34, "a", 6)))
        expected = [4] if closed == "both" else []
        for at in (22, 21):
            answer = windows.query("a", at=at, windows=13)["xs_13"]
            assert answer == ([4] if at == 21 else expected)
        with pytest.raises(
            sw.SpecError, match=r"windows=14 is beyond .* horizon of 13"
        ):
            windows.query("a", windows=14)


def test_a_horizon_beyond_int64_is_clamped() -> None:
    """Such a horizon can be stored."""
    longest = 2**63 - 1
    windows = sw.KeyedWindows(on="t", windows=longest, aggs={"n": sw.count()}, late=5)
    windows.ingest(pa.table({"t": [1, 9]}))
    again = sw.KeyedWindows.from_bytes(
        windows.to_bytes(), on="t", windows=longest, aggs={"n": sw.count()}
    )
    assert again.query(at=9) == {f"n_{longest}": 2}


def test_keep_makes_the_horizon_longer() -> None:
    """A snapshot keeps the horizon."""
    windows = cards(*ROWS, keep=30)
    windows.ingest(batch((40, "a", 5)))
    windows.advance(31)
    again = sw.KeyedWindows.from_bytes(
        (windows.collect(), windows.to_bytes())[1], **OPTIONS
    )
    for one in (windows, again):
        assert one.query("a", at=31, windows=30)["xs_30"] == [3, 4]
        with pytest.raises(sw.SpecError, match="horizon of 30"):
            one.query("a", windows=31)


def test_windows_that_evicted_rows_may_be_in_are_refused() -> None:
    """Windows before the horizon are answered while all of their rows are kept."""
    windows = cards((1, "a", 1), (31, "a", 3), (40, "a", 2))
    windows.advance(40)
    assert windows.query("a", at=34, windows=4)["xs_4"] == [3]
    for at in (35, 11):
        assert windows.query("a", at=at)["xs_10"] == [3] * (at == 35)
        assert windows.query("a", at=at, valid_until=True)["n_10"] == (at == 35)
    message = (
        r"'10' at 10 begins .* the windows keep 10 behind the watermark. Ask for 11 or "
    )
    with pytest.raises(sw.SpecError, match=message):
        windows.query("a", at=10)
    points = pa.table({"card": ["a", "b", "a"], "when": [40, 20, 34]})
    found = windows.query_many(points, "when", windows=4)
    assert found["n_4"].to_pylist() == [1, 0, 1]
    with pytest.raises(sw.SpecError, match=r"window '4' at 4 .* Ask for 5 .* keep="):
        windows.query_many(points.append_column("w", pa.array([40, 4, 34])), "w", 4)


DAY = dt.timedelta(1)


@pytest.mark.parametrize("emit", ["final", "arrival", "update", "change"])
def test_a_query_before_the_horizon_is_answered_if_nothing_was_evicted(
    emit: str,
) -> None:
    """The row at 1060 is at the watermark; the other one is in all windows of 100."""
    windows = sw.KeyedWindows(
        on="t", by="k", windows=100, aggs={"n": sw.count()}, late=5, emit=emit
    )
    windows.ingest(pa.table({"t": [1000, 1060], "k": [*"aa"]}))
    windows.advance()
    for at, count in ((999, 0), (1000, 1), (1059, 1), (1060, 2), (-(2**63), 0)):
        assert windows.query("a", at=at) == {"n_100": count}
        assert windows.query_many({"k": [*"ab"]}, at=at)["n_100"] == [count, 0]
    start = dt.datetime(2026, 1, 1)
    windows = sw.KeyedWindows(on="t", windows="1d", aggs={"n": sw.count()}, late="5m")
    windows.ingest(pa.table({"t": [start, start + DAY, start + 2 * DAY]}))
    windows.advance()
    assert windows.query(at=start + 1.5 * DAY)["n_1d"] == 1
    with pytest.raises(sw.SpecError, match="windows keep 24h5m behind the watermark"):
        windows.query(at=start + 0.5 * DAY)


def reached(windows: sw.KeyedWindows, at: int) -> list[int] | None:
    """The rows of "a" at a time; None if they are refused."""
    try:
        answer = windows.query("a", at=at)
    except sw.SpecError:
        return None
    (rows,) = [values for name, values in answer.items() if name.startswith("xs")]
    return rows


@pytest.mark.long
@pytest.mark.parametrize("keep", [None, 30])
def test_snapshots_and_followers_know_which_rows_are_gone(keep: int | None) -> None:
    options = {**OPTIONS, "windows": [10]}
    windows = cards((1, "a", 1), **{**options, "keep": keep, "emit": "update"})
    windows.collect()
    follower = sw.KeyedWindows.from_bytes(windows.to_bytes(), **options)
    for at in (5, 22, 60, 90):
        windows.ingest(batch((at, "a", at)))
        windows.advance(at)
        windows.collect()
        follower.apply(windows.changes())
        again = sw.KeyedWindows.from_bytes(windows.to_bytes(), **options)
        for one in (windows, follower, again, copy.deepcopy(windows)):
            found = [reached(one, tick) for tick in range(95)]
            gone = max(
                (tick for tick in (1, 5, 22, 60) if tick <= at - (keep or 10)),
                default=None,
            )
            assert found == [
                None
                if gone is not None and tick < gone + 10
                else [x for x in (1, 5, 22, 60, 90) if tick - 10 < x <= min(tick, at)]
                for tick in range(95)
            ]


def test_rows_of_idle_keys_are_gone() -> None:
    """A query at the watermark has none of them; before it, it is refused."""
    windows = cards((1, "a", 1), (6, "b", 2), (9, "c", 3), emit="update")
    windows.advance(9)
    assert windows.query("b", at=7)["n_10"] == 1
    assert windows.evict_idle(6) == 2
    assert windows.query("b", at=9)["n_10"] == 0
    windows.advance(17)
    with pytest.raises(sw.SpecError, match="Ask for 16 or later"):
        windows.query("b", at=15, windows=10)
    assert windows.query("c", at=16, windows=10)["n_10"] == 1


def test_windows_that_begin_at_rows_are_answered_until_rows_leave() -> None:
    rows = {"t": [10, 20, 40], "f": [False, True, False]}
    aggs = {"ts": sw.collect("t")}
    last = sw.KeyedWindows(on="t", windows=sw.rows(2), aggs=aggs)
    last.ingest(pa.table(rows))
    last.advance(5)
    assert last.query(at=3) == {"ts_2rows": []}
    last.advance(30)
    assert last.query(at=30) == {"ts_2rows": [10, 20]}
    with pytest.raises(sw.SpecError, match="Ask for 30 or later"):
        last.query(at=29)

    since = sw.KeyedWindows(on="t", windows=sw.landmark("f"), aggs=aggs)
    since.ingest(pa.table(rows))
    since.advance(40)
    found = [since.query(at=at)["ts_landmark_f"] for at in (9, 10, 30, 40)]
    assert found == [[], [10], [20], [20, 40]]

    open_ones = sw.KeyedWindows(on="t", window=sw.until("f"), aggs=aggs)
    open_ones.ingest(pa.table(rows))
    open_ones.advance(15)
    assert open_ones.query(at=12) == {"ts_until_f": [10]}
    open_ones.advance(40)
    with pytest.raises(sw.SpecError, match="at 30 may have had rows that left"):
        open_ones.query(at=30)


def test_last_rows_are_kept_although_later_ones_arrive() -> None:
    """`rows(n)` at the watermark has n rows, although later rows would fill it."""
    windows = sw.KeyedWindows(
        on="t", windows=sw.rows(3), aggs={"ts": sw.collect("t")}, emit="arrival"
    )
    windows.ingest(pa.table({"t": range(200)}))
    windows.advance(100)
    windows.ingest(pa.table({"t": range(200, 210)}))
    windows.advance(101)
    assert windows.query(at=101)["ts_3rows"] == [99, 100, 101]
    assert windows.query(at=101, windows=sw.rows(2))["ts_2rows"] == [100, 101]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": 9}, "keep=9 is shorter than the window 10"),
        ({"keep": 10, "offset": 1}, "shorter than the window 10 with its offset"),
        ({"keep": "1h"}, "keep='1h' and the window 10 differ in kind"),
        ({"keep": "soon"}, "keep='soon' is not a duration"),
        ({"keep": -1, "windows": sw.rows(2)}, "keep=-1 is negative"),
    ],
)
def test_wrong_horizons_are_refused(options: dict[str, object], message: str) -> None:
    """The refusal comes before any row."""
    with pytest.raises(sw.SpecError, match=message):
        sw.KeyedWindows(**{**OPTIONS, **options})
    with pytest.raises(sw.SpecError, match="does not apply to sessions"):
        sw.KeyedWindows(on="t", window=sw.session(3), aggs=OPTIONS["aggs"], keep=5)


def test_a_key_is_in_while_windows_hold_its_rows() -> None:
    """`in` agrees with `keys()` and `len`."""
    windows = cards(*ROWS)
    assert "a" in windows
    assert ("b",) in windows
    assert {"card": "z"} not in windows
    windows.advance(14)
    assert "b" not in windows
    assert "a" in windows
    assert len(windows) == 1
    assert "a" not in sw.KeyedWindows(**OPTIONS)
    whole = sw.KeyedWindows(on="t", windows=3, aggs={"n": sw.count()})
    whole.ingest(pa.table({"t": [1]}))
    assert () in whole


@pytest.mark.parametrize(
    ("options", "length", "last"),
    [
        ({}, 10, 10),
        ({"closed": "both"}, 10, 11),
        ({"keep": 50}, 50, 50),
        ({"late": 5}, 15, 15),
        ({"late_rows": "correct"}, 20, 20),
        ({"offset": 3}, 10, 13),
    ],
    ids=str,
)
def test_keys_are_in_while_a_query_finds_their_rows(
    options: dict[str, object], length: int, last: int
) -> None:
    """The query is of the longest window within the horizon, at the watermark."""
    for at in range(last + 2):
        windows = cards((0, "a", 1), windows=10, **options)
        windows.advance(at)
        found = windows.query("a", at=at, windows=length)[f"n_{length}"]
        there = at < last
        assert bool(found) == (there and at >= options.get("offset", 0))
        assert ("a" in windows, len(windows), len(windows.keys())) == (there,) * 3
        assert windows.evict_idle(at) == there
        assert "a" not in windows


def test_idle_keys_without_rows_in_the_horizon_do_not_count() -> None:
    """`keys()` omits them, and `evict_idle` finds none."""
    windows = cards((0, "a", 1), (70, "b", 2), windows=10)
    windows.advance(60)
    assert windows.keys()["card"].to_pylist() == ["b"]
    assert windows.evict_idle(60) == 0


def test_the_repr_states_the_position_of_a_stream() -> None:
    """`repr` has the windows, times, late rows and size."""
    windows = sw.KeyedWindows(**OPTIONS)
    assert repr(windows) == "<KeyedWindows rolling 10, 4 over t by card: empty>"
    windows.ingest(batch(*ROWS))
    windows.advance(4)
    windows.ingest(batch((1, "a", 1)))
    assert re.fullmatch(
        r"<KeyedWindows rolling 10, 4 over t by card: latest 9, watermark 4, "
        r"1 late row, \d+(\.\d+)? kB>",
        repr(windows),
    )


def test_bytes_are_those_of_the_state_and_of_waiting_results() -> None:
    """`nbytes` grows by rows, and shrinks as rows are evicted and results collected."""
    windows = cards(*ROWS)
    few = windows.nbytes
    windows.ingest(batch(*((9, f"c{at}", at) for at in range(5000))))
    many = windows.nbytes
    assert many - few > 5000 * 8
    windows.advance(10**6)
    waiting = windows.nbytes
    assert waiting > windows.collect().nbytes
    assert windows.nbytes < min(few, many / 10)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, "results: from all rows of a window, because collect('x') cannot be"),
        (
            {"aggs": {"n": sw.count()}},
            "results: folds of the entries of a key",
        ),
        ({"windows": sw.rows(3)}, "all rows of a key: windows of rows(n) may begin at"),
        ({"emit": "update"}, "card: a result per batch and changed key"),
        (
            {"late": 3},
            "query: any window up to 13, at any time: no row was evicted yet",
        ),
    ],
)
def test_explain_states_the_columns_read(options: dict[str, object], line: str) -> None:
    """`explain` also describes the windows that `query` answers."""
    windows = cards(*ROWS, **options)
    assert line in windows.explain().replace("\n  ", " ")
    windows.advance(4)
    kept = "at any time: no row was evicted yet" in windows.explain().replace("\n", "")
    assert kept == ("windows" not in options)
    windows.advance(40)
    assert "at 40 (the watermark) or later" in windows.explain().replace("\n  ", " ")


def test_explain_knows_sessions_and_streams_without_rows() -> None:
    """`query` does not answer for sessions."""
    sessions = sw.KeyedWindows(on="t", window=sw.session(3), aggs={"n": sw.count()})
    first, *rest = sessions.explain().splitlines()
    assert first.startswith("sessions with a gap of 3 over t: a result per key and")
    assert rest == ["  passes its end", "no rows yet: the columns are unknown"]
    sessions.ingest(pa.table({"t": [1]}))
    assert "query: not for sessions" in sessions.explain()
