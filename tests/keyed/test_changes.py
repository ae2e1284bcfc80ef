"""`emit="change"`: a table of the last results is never behind the watermark."""

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
    """At the watermark, or at the latest row of a key if that is later."""
    stream = Stream(seed * 1000 + page)
    spec = {"on": "t", "by": "key", **KINDS[kind]}
    windows = sw.KeyedWindows(**spec, emit="change", late=stream.random.choice([0, 40]))
    last: dict[object, dict[str, object]] = {}
    for _ in range(15):
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


def test_a_key_is_emitted_when_a_row_leaves_a_window() -> None:
    """Once for all that the watermark passes, at the watermark."""
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


def test_results_do_not_depend_on_who_else_is_there() -> None:
    """Keys that nothing happens to are not emitted."""
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


def test_corrections_are_refused() -> None:
    """A row behind the watermark changes no window at it."""
    with pytest.raises(sw.SpecError, match="emit='update'"):
        sw.KeyedWindows(
            on="t",
            windows=5,
            aggs={"n": sw.count()},
            emit="change",
            late_rows="correct",
        ).ingest(pa.table({"t": [1]}))
