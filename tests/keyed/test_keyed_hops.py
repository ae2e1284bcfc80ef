"""Sessions and windows without rows over a stream, against those of the whole table."""

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from keyed_streams import FOLDED, SEEDS, WHOLE, assert_same, page, stream_of

import slidewise as sw

__all__ = ["page"]


def on_grid(by: list[str], grid: tuple[int, int, int]) -> dict[str, object]:
    """Keywords of hopping windows, by length, slide and offset."""
    length, every, offset = grid
    windows = {"window": length, "every": every, "offset": offset}
    return {"on": "t", "by": by, **windows}


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("gap", [1, 9, 100])
@pytest.mark.parametrize("by", [["key"], ["key", "k2"], []], ids=["key", "two", "none"])
@pytest.mark.parametrize("seed", SEEDS)
def test_sessions_are_answered_once_they_are_closed(
    page: int, seed: int, by: list[str], gap: int, aggs: dict[str, object]
) -> None:
    """A session is answered when the watermark has passed its last row by the gap."""
    spec: dict[str, object] = {"on": "t", "by": by, "window": sw.session(gap)}
    spec["aggs"] = aggs
    rows, answers, watermark = stream_of(seed * 1000 + page + 5, spec)
    expected = sw.hopping(rows, **spec)
    over = pc.less_equal(expected["window_end"], watermark - gap)
    assert_same(answers, expected.filter(over), [*by, "window_end"])


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("grid", [(60, 10, 0), (60, 7, 3), (5, 5, -1), (4, 9, 1)])
@pytest.mark.parametrize("by", [["key"], []], ids=["key", "none"])
@pytest.mark.parametrize("seed", SEEDS)
def test_windows_that_include_their_end_wait_for_it(
    page: int,
    seed: int,
    by: list[str],
    grid: tuple[int, int, int],
    aggs: dict[str, object],
) -> None:
    """The least watermark that closes such a window is at its end."""
    spec = on_grid(by, grid) | {"closed": "right", "aggs": aggs}
    rows, answers, watermark = stream_of(seed * 1000 + page + 9, spec)
    expected = sw.hopping(rows, **spec)
    over = pc.less_equal(expected["window_end"], watermark)
    assert_same(answers, expected.filter(over), [*by, "window_end"])


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("grid", [(60, 10, 0), (60, 7, 3), (5, 5, 0), (4, 9, 1)])
@pytest.mark.parametrize("by", [["key"], []], ids=["key", "none"])
@pytest.mark.parametrize("seed", SEEDS)
def test_windows_without_rows_are_emitted_with_the_next_one(
    page: int,
    seed: int,
    by: list[str],
    grid: tuple[int, int, int],
    aggs: dict[str, object],
) -> None:
    """Empty windows are emitted when a later window of the key with rows is closed."""
    spec = on_grid(by, grid) | {"empty": True, "aggs": aggs}
    rows, answers, watermark = stream_of(seed * 1000 + page + 6, spec)
    expected = sw.hopping(rows, **spec)
    filled = sw.hopping(rows, **{**spec, "empty": False})
    filled = filled.filter(pc.less_equal(filled["window_end"], watermark + 1))
    last: dict[object, int] = {}
    for row in filled.to_pylist():
        key = tuple(row[name] for name in by)
        last[key] = max(row["window_end"], last.get(key, row["window_end"]))
    there = [
        row["window_end"]
        <= last.get(tuple(row[name] for name in by), row["window_start"])
        for row in expected.to_pylist()
    ]
    expected = expected.filter(pa.array(there, pa.bool_()))
    assert_same(answers, expected, [*by, "window_end"])


def test_empty_windows_of_a_custom_aggregation() -> None:
    total = sw.aggregation(combine=lambda a, b: a + b, identity=0)
    spec = {"on": "t", "window": 5, "aggs": {"x": total("x")}, "empty": True}
    rows = pa.table({"t": [1, 2, 14], "x": [1, 2, 3]})
    windows = sw.KeyedWindows(**spec)
    windows.ingest(rows)
    windows.advance(15)
    expected = sw.hopping(rows, **spec)
    assert expected["x"].to_pylist() == [3, None, 3]
    assert windows.collect().sort_by("window_end").equals(expected)


def test_sessions_begin_with_history_or_deletions_end_them() -> None:
    """A deletion of a session's last row lets it end with the row before."""
    windows = sw.KeyedWindows(
        on="t", window=sw.session(5), aggs={"n": sw.count()}, deletes="gone"
    )
    windows.ingest(pa.table({"t": [1, 5, 9], "gone": [False] * 3}))
    windows.advance(6)
    assert len(windows.collect()) == 0
    windows.ingest(pa.table({"t": [9], "gone": [True]}))
    windows.advance(10)
    assert windows.collect().to_pydict() == {
        "window_start": [1],
        "window_end": [5],
        "n": [2],
    }


def answers_by_day(kind: pa.DataType, late_rows: str, **window: object) -> list[object]:
    """The watermarks and answers of a stream whose times are days."""
    spec = {"on": "t", "by": "k", "aggs": {"n": sw.count()}, **window}
    keyed = sw.KeyedWindows(**spec, late="1d", late_rows=late_rows)
    found: list[object] = []
    for day, key in zip((1, 2, 2, 5, 4, 9, 7), "abaabaa", strict=True):
        days = pa.array([dt.date(2024, 1, day)]).cast(kind)
        keyed.ingest(pa.table({"t": days, "k": [key]}))
        keyed.advance()
        found += [keyed.watermark, keyed.collect().to_pylist()]
        if day == 5:
            keyed = sw.KeyedWindows.from_bytes(keyed.to_bytes(), **spec)
    keyed.advance(dt.date(2024, 1, 12))
    return [*found, keyed.watermark, keyed.collect().to_pylist()]


@pytest.mark.parametrize(
    ("empty", "late_rows"), [(False, "drop"), (True, "drop"), (False, "correct")]
)
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("grid", [("2d", "2d"), ("4d", "2d"), ("1d", "3d")])
def test_a_watermark_of_days_closes_the_same_windows_in_milliseconds(
    grid: tuple[str, str], closed: str, empty: bool, late_rows: str
) -> None:
    """A date64 counts milliseconds, but has no time between two days."""
    spec = {"window": grid[0], "every": grid[1], "closed": closed, "empty": empty}
    found = answers_by_day(pa.date64(), late_rows, **spec)
    assert found == answers_by_day(pa.date32(), late_rows, **spec)


def test_a_date64_within_a_day_is_refused() -> None:
    """Arrow has none, and a watermark would close its window too early."""
    times = pa.array([0, 43_200_000], pa.int64()).view(pa.date64())
    table = pa.table({"t": times, "k": ["a", "a"]})
    spec = {"on": "t", "by": "k", "window": "1d", "aggs": {"n": sw.count()}}
    message = "column 't' holds 43200000 ms in row 1 .counting from 0., which is within"
    with pytest.raises(sw.SpecError, match=message):
        sw.hopping(table, **spec)
    keyed = sw.KeyedWindows(**spec)
    keyed.ingest(table.slice(0, 1))
    with pytest.raises(sw.SpecError, match=message):
        keyed.ingest(table)
    with pytest.raises(sw.SpecError, match="holds 43200000 ms in row 0"):
        keyed.advance(times[1])
    keyed.advance(dt.date(1970, 1, 3))
    assert keyed.collect()["n"].to_pylist() == [1]


def test_idle_keys_drop_their_last_window() -> None:
    """No empty windows are emitted for the time before the new rows of the key."""
    spec = {"on": "t", "by": "key", "window": 2, "empty": True}
    windows = sw.KeyedWindows(**spec, aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [1, 1], "key": ["a", "b"]}))
    windows.advance(9)
    windows.collect()
    windows.evict_idle(9)
    windows.ingest(pa.table({"t": [11], "key": ["a"]}))
    windows.advance(20)
    assert windows.collect()["window_end"].to_pylist() == [12]


ALONE = {
    "count": sw.count("x"),
    "sum": sw.sum("x"),
    "sum of floats": sw.sum("y"),
    "mean": sw.mean("y"),
    "stddev": sw.stddev("y"),
    "min": sw.min("x"),
    "max": sw.max("y", where="ok"),
    "product": sw.product("y"),
    "range": sw.range("x"),
    "any": sw.any("ok"),
    "min_count": sw.min_count("x"),
    "top_k": sw.top_k("x", 3),
    "distinct": sw.approx_count_distinct("x"),
    "first": sw.first("word"),
}


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("grid", [(60, 10), (7, 7), (4, 90)], ids=str)
def test_hops_of_one_aggregation_without_a_count_of_rows(
    page: int, name: str, grid: tuple[int, int]
) -> None:
    """Every window that holds a row is emitted, although pages are folded."""
    length, every = grid
    spec: dict[str, object] = {"on": "t", "by": "key", "window": length}
    spec |= {"every": every, "aggs": {"answer": ALONE[name]}}
    table, answers, watermark = stream_of(page + length, spec)
    expected = sw.hopping(table, **spec)
    over = pc.less_equal(expected["window_end"], watermark + 1)
    assert_same(answers, expected.filter(over), ["key", "window_end"])


@pytest.mark.parametrize(
    "aggs",
    [
        {"avg": sw.mean("x")},
        {"total": sw.sum("x")},
        {"total": sw.sum("x"), "top": sw.max("x")},
        {"top": sw.max("x"), "many": sw.approx_count_distinct("x")},
        {"avg": sw.mean("x"), "n": sw.count()},
    ],
    ids=["mean", "sum", "sum+max", "max+distinct", "mean+count"],
)
def test_windows_whose_rows_all_lie_in_folded_pages(aggs: dict[str, object]) -> None:
    """Weeks have five days of 5,000 rows, and pages have full size."""
    days = [dt.date(2026, 1, 5) + dt.timedelta(day) for day in range(28)]
    days = [day for day in days if day.weekday() < 5 for _ in range(5000)]
    table = pa.table({"day": days, "x": [float(at % 7) for at in range(len(days))]})
    spec = {"on": "day", "window": "7d", "offset": "3d", "aggs": aggs}
    windows = sw.KeyedWindows(**spec)
    windows.ingest(table)
    windows.advance(dt.date(2026, 6, 1))
    assert_same(windows.collect(), sw.hopping(table, **spec), ["window_end"])


def test_a_tumbling_sum_continues_beyond_a_page() -> None:
    """One key has many batches, each followed by an advance."""
    spec = {"on": "t", "window": 1000, "aggs": {"total": sw.sum("x")}}
    windows = sw.KeyedWindows(**spec)
    table = pa.table({"t": [at // 10 for at in range(30_000)], "x": [1.0] * 30_000})
    for start in range(0, len(table), 1000):
        windows.ingest(table.slice(start, 1000))
        windows.advance()
    windows.advance(10_000)
    assert_same(windows.collect(), sw.hopping(table, **spec), ["window_end"])


def test_the_least_time_is_in_no_window_that_includes_its_end() -> None:
    """Its start would be before all times, as over a table."""
    spec = {"on": "t", "window": 5, "closed": "right", "aggs": {"n": sw.count()}}
    windows = sw.KeyedWindows(**spec)
    with pytest.raises(sw.SpecError, match="beyond the times"):
        windows.ingest(pa.table({"t": [-(2**63), 0]}))
    table = pa.table({"t": [-(2**63) + 9, 0, 2**63 - 9]})
    windows.ingest(table)
    windows.advance(2**63 - 1)
    assert_same(windows.collect(), sw.hopping(table, **spec), ["window_end"])


@pytest.mark.parametrize("name", ["__rows", "__time", "__fresh", "__arrival"])
def test_an_aggregation_with_a_reserved_name_is_refused(name: str) -> None:
    """Its column would collide with one of the state."""
    windows = sw.KeyedWindows(on="t", window=5, aggs={name: sw.sum("x")})
    with pytest.raises(sw.SpecError, match=f"'{name}' is reserved"):
        windows.ingest(pa.table({"t": [1, 2], "x": [10, 20]}))


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint32(), pa.uint64(), pa.int8()])
def test_windows_around_the_ends_of_small_time_types(kind: pa.DataType) -> None:
    """A window may begin before 0, in any batch."""
    spec = {"on": "t", "window": 20, "every": 2, "aggs": {"n": sw.count()}}
    table = pa.table({"t": pa.array([3, 30, 90], kind)})
    windows = sw.KeyedWindows(**spec)
    windows.ingest(table)
    windows.advance()
    windows.advance(127)
    assert_same(windows.collect(), sw.hopping(table, **spec), ["window_end"])


@pytest.mark.parametrize("time", [2**63 - 1, 2**63 - 8, -(2**63)])
def test_windows_beyond_int64_are_refused_by_their_row(time: int) -> None:
    """The row is refused as over a table; the other rows can be ingested."""
    windows = sw.KeyedWindows(on="t", window=10, aggs={"n": sw.count()})
    with pytest.raises(sw.SpecError, match=f"the time {time} .* beyond the times"):
        windows.ingest(pa.table({"t": [5, time]}))
    with pytest.raises(sw.SpecError, match="beyond the times"):
        sw.hopping(pa.table({"t": [time]}), on="t", window=10, aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [5]}))
    windows.advance(2**63 - 1)
    assert windows.collect()["window_end"].to_pylist() == [10]


def test_keys_are_idle_by_their_latest_row_after_its_eviction() -> None:
    """The end of the last window of the key, which is later, does not count."""
    windows = sw.KeyedWindows(
        on="t", by="key", window=20, every=7, empty=True, aggs={"n": sw.count()}
    )
    windows.ingest(pa.table({"t": [30], "key": ["a"]}))
    windows.advance(60)
    windows.collect()
    windows.evict_idle(40)
    windows.ingest(pa.table({"t": [100], "key": ["a"]}))
    windows.advance(200)
    assert windows.collect()["window_start"].to_pylist() == [84, 91, 98]


@pytest.mark.parametrize("min_rows", [0, 2])
def test_a_key_with_a_row_between_windows_is_not_idle(min_rows: int) -> None:
    """The row lies after the last window, and left the state before the eviction."""
    spec = {"on": "t", "by": "k", "window": 4, "every": 9, "aggs": {"n": sw.count("t")}}
    windows = sw.KeyedWindows(**spec, empty=True, min_rows=min_rows)
    windows.ingest(pa.table({"t": [10, 15], "k": ["a", "a"]}))
    windows.advance(100)
    assert windows.evict_idle(12) == 0, "15 is later, and gone already"
    windows.ingest(pa.table({"t": [108], "k": ["a"]}))
    windows.advance(200)
    ends = windows.collect()["window_end"].to_pylist()
    assert sorted(ends) == list(range(13, 113, 9))
    windows.advance(300)
    windows.evict_idle(200)
    windows.ingest(pa.table({"t": [360], "k": ["a"]}))
    windows.advance(400)
    assert windows.collect()["window_end"].to_pylist() == [364], "it began anew"


def test_windows_beyond_the_days_of_date32_are_refused_by_their_row() -> None:
    """Ingesting refuses the row; the other rows can be ingested."""
    days = pa.array([5, 2**31 - 1], pa.int32()).cast(pa.date32())
    windows = sw.KeyedWindows(on="t", window="1d", aggs={"n": sw.count()})
    with pytest.raises(sw.SpecError, match="beyond the times that int32 can hold"):
        windows.ingest(pa.table({"t": days}))
    windows.ingest(pa.table({"t": days.slice(0, 1)}))
    windows.advance()
    assert windows.collect()["n"].to_pylist() == [1]


def test_late_rows_are_corrected_behind_the_last_watermark() -> None:
    """The last watermark is the latest time of int64."""
    windows = sw.KeyedWindows(
        on="t", window=10, aggs={"n": sw.count()}, late_rows="correct"
    )
    windows.ingest(pa.table({"t": [2**63 - 20, 2**63 - 9]}))
    windows.advance(2**63 - 1)
    windows.ingest(pa.table({"t": [2**63 - 9]}))
    windows.ingest(pa.table({"t": [2**63 - 10]}))
    answers = windows.collect()
    assert answers["n"].to_pylist() == [1, 1, 2, 3]
    assert answers["_correction"].to_pylist() == [False, False, True, True]


@pytest.mark.parametrize("restores", [False, True], ids=["goes on", "is restored"])
def test_sessions_are_in_the_order_of_their_first_rows(restores: bool) -> None:
    """Results are in the order of the first row of each key, which the state lacks."""
    spec = {"on": "t", "by": "k", "window": sw.session(3), "aggs": {"n": sw.count()}}
    windows = sw.KeyedWindows(**spec)
    keys = [*"qzafmxbw", None]
    for start in (0, 20, 40):
        times = [start + at for at in range(9)]
        windows.ingest(pa.table({"t": times[::-1], "k": keys[::-1]}))
        windows.ingest(pa.table({"t": [start + 15], "k": ["a"]}))
        if restores:
            windows = sw.KeyedWindows.from_bytes(windows.to_bytes(), **spec)
    windows.advance(38)
    answers = windows.collect()
    assert answers["k"].unique().to_pylist() == keys[::-1]
    starts = [3, 23, 2, 15, 22, 35, 1, 21, 0, 20]
    assert answers["window_start"].to_pylist()[-10:] == starts


def test_more_windows_than_fit_into_memory_are_refused():
    """The refused call changes nothing, and smaller steps succeed."""
    k = sw.KeyedWindows(
        on="t", aggs={"n": sw.count()}, emit="slide", window=2**40, every=1
    )
    k.ingest(pa.table({"t": [0, 5], "x": [1, 2]}))
    with pytest.raises(sw.SpecError, match="in smaller steps, or give a larger"):
        k.advance(2**62)
    k.advance(3)
    assert k.collect()["n"].to_pylist() == [1] * 4


def test_last_windows_of_small_batches_are_in_few_pages() -> None:
    """The directory, which each commit writes, lists the pages."""
    spec = {"on": "t", "by": "k", "window": 10, "every": 10, "empty": True}
    spec["aggs"] = {"n": sw.count()}
    windows = sw.KeyedWindows(**spec)
    batches = [pa.table({"t": [0] * 200, "k": range(200)})]
    batches += [pa.table({"t": [at * 10 + 20], "k": [at]}) for at in range(200)]
    for at, rows in enumerate(batches):
        windows.ingest(rows)
        windows.advance(at * 10 + 15)
    assert len(windows._state.processor._emitter._last.record()) < 12
    windows.advance(5000)
    expected = sw.hopping(pa.concat_tables(batches), **spec)
    assert_same(windows.collect(), expected, ["k", "window_end"])
