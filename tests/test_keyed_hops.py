"""Sessions and windows without rows over a stream, against those of the whole table."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import slidewise as sw
from keyed_streams import FOLDED, WHOLE, assert_same, page, stream_of

__all__ = ["page"]


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("gap", [1, 9, 100])
@pytest.mark.parametrize("by", [["key"], ["key", "k2"], []], ids=["key", "two", "none"])
@pytest.mark.parametrize("seed", range(2))
def test_sessions_are_answered_once_they_are_over(
    page: int, seed: int, by: list[str], gap: int, aggs: dict[str, object]
) -> None:
    """Once the watermark has passed the last row by the gap."""
    spec: dict[str, object] = {"on": "t", "by": by, "window": sw.session(gap)}
    spec["aggs"] = aggs
    rows, answers, watermark = stream_of(seed * 1000 + page + 5, spec)
    expected = sw.hopping(rows, **spec)
    over = pc.less_equal(expected["window_end"], watermark - gap)
    assert_same(answers, expected.filter(over), [*by, "window_end"])


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("grid", [(60, 10, 0), (60, 7, 3), (5, 5, 0), (4, 9, 1)])
@pytest.mark.parametrize("by", [["key"], []], ids=["key", "none"])
@pytest.mark.parametrize("seed", range(2))
def test_windows_without_rows_come_with_the_next_one(
    page: int,
    seed: int,
    by: list[str],
    grid: tuple[int, int, int],
    aggs: dict[str, object],
) -> None:
    """As soon as a later window of the key with rows is over."""
    length, every, offset = grid
    spec: dict[str, object] = {"on": "t", "by": by, "window": length, "every": every}
    spec |= {"offset": offset, "empty": True, "aggs": aggs}
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


def test_idle_keys_forget_their_last_window() -> None:
    """Windows without rows begin anew behind it."""
    spec = {"on": "t", "by": "key", "window": 2, "empty": True}
    windows = sw.KeyedWindows(**spec, aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [1, 1], "key": ["a", "b"]}))
    windows.advance(9)
    windows.collect()
    windows.evict_idle(9)
    windows.ingest(pa.table({"t": [11], "key": ["a"]}))
    windows.advance(20)
    assert windows.collect()["window_end"].to_pylist() == [12]
