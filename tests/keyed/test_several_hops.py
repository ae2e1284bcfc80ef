"""Several hopping windows over a stream, compared with those of the whole table."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from keyed_streams import FOLDED, SEEDS, WHOLE, Stream, assert_same, page, stream_of

import slidewise as sw

__all__ = ["page"]

SEVERAL: dict[str, dict[str, Any]] = {
    "own slides": {"windows": [60, sw.Query(60, every=7), sw.Query(4, every=9)]},
    "one slide": {"windows": [60, 5], "every": 5},
    "right": {"windows": [60, sw.Query(9, every=2)], "closed": "right", "offset": 2},
    "alone": {"windows": [sw.Query(20, every=5)]},
}


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("by", [["key"], []], ids=["key", "none"])
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_window_is_emitted_when_it_is_closed(
    page: int, seed: int, name: str, by: list[str], aggs: dict[str, object]
) -> None:
    spec: dict[str, object] = {"on": "t", "by": by, "aggs": aggs, **SEVERAL[name]}
    rows, answers, watermark = stream_of(seed * 1000 + page + 31, spec)
    expected = sw.hopping(rows, **spec)
    last = watermark + (name != "right")
    over = pc.less_equal(expected["window_end"], last)
    assert_same(answers, expected.filter(over), [*by, "window", "window_end"])


@pytest.mark.parametrize(
    ("window", "wait"), [(sw.until("ok"), 0), (sw.session(5), 5), (sw.rows(3), 0)]
)
def test_a_window_without_a_grid_may_be_the_only_one(
    page: int, window: Any, wait: int
) -> None:
    spec: dict[str, object] = {"on": "t", "by": "key", "aggs": WHOLE}
    spec["windows"] = [sw.Query(window)]
    rows, answers, watermark = stream_of(page, spec)
    expected = sw.hopping(rows, **spec)
    over = pc.less_equal(expected["window_end"], watermark - wait)
    assert_same(answers, expected.filter(over), ["key", "window_end"])


@pytest.mark.parametrize("aggs", [FOLDED, WHOLE], ids=["folded", "whole"])
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("seed", SEEDS)
def test_late_rows_correct_all_windows_that_hold_them(
    page: int, seed: int, name: str, aggs: dict[str, object]
) -> None:
    """The last result of each window is that over all rows that were accepted."""
    stream = Stream(seed * 1000 + page + 33)
    spec: dict[str, object] = {"on": "t", "by": "key", "aggs": aggs, **SEVERAL[name]}
    windows = sw.KeyedWindows(**spec, late=3, late_rows="correct")
    reach = 20 if name == "alone" else 60
    rows, answers = [], []
    for _ in range(12):
        batch, watermark = stream.batch(), windows.watermark
        windows.ingest(batch)
        if watermark is not None:
            batch = batch.filter(pc.greater(batch["t"], watermark - reach))
        rows.append(batch)
        windows.advance()
        answers.append(windows.collect())
        windows.check()
    expected = sw.hopping(pa.concat_tables(rows), **spec)
    last = windows.watermark + (name != "right")
    expected = expected.filter(pc.less_equal(expected["window_end"], last))
    known: dict[object, int] = {}
    table = pa.concat_tables(answers)
    for at, row in enumerate(table.to_pylist()):
        key = (row["key"], row["window"], row["window_end"])
        assert row["_correction"] == (key in known)
        known[key] = at
    ours = table.take(pa.array(sorted(known.values()), pa.int64()))
    ours = ours.drop_columns("_correction")
    assert_same(ours, expected, ["key", "window", "window_end"])


def test_a_watermark_emits_windows_by_their_ends() -> None:
    windows = sw.KeyedWindows(
        on="t", windows=[10, sw.Query(10, every=5)], aggs={"n": sw.count()}
    )
    windows.ingest(pa.table({"t": [1, 2, 7]}))
    windows.advance(30)
    found = windows.collect()
    assert found["window"].to_pylist() == ["10 every 5", "10", *["10 every 5"] * 2]
    assert found["window_end"].to_pylist() == [5, 10, 10, 15]
    assert found["n"].to_pylist() == [2, 3, 3, 1]


def test_windows_of_one_length_are_queried_once() -> None:
    """A query has no grid, so it has no slide."""
    windows = sw.KeyedWindows(
        on="t", windows=[10, sw.Query(10, every=5), 4], aggs={"n": sw.count()}
    )
    windows.ingest(pa.table({"t": [1, 2, 7]}))
    assert windows.query(at=9) == {"n_10": 3, "n_4": 1}


def test_empty_windows_of_a_single_window_are_labelled() -> None:
    windows = sw.KeyedWindows(
        on="t", windows=[2], every=2, empty=True, aggs={"n": sw.count()}
    )
    windows.ingest(pa.table({"t": [1, 5]}))
    windows.advance(9)
    found = windows.collect().sort_by("window_end")
    assert found["window"].to_pylist() == ["2"] * 3
    assert found["n"].to_pylist() == [1, 0, 1]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"windows": [5, sw.session(2)]}, "'session_2' beside other windows"),
    ({"windows": [5, sw.until("f")]}, "'until_f' beside other windows"),
    ({"windows": [5, sw.Query(5, every=sw.rows(2))]}, "'5 every 2rows' beside"),
    ({"windows": [5, 6], "every": 2, "empty": True}, "empty=True for several windows"),
]


@pytest.mark.parametrize(("request_", "message"), REFUSED)
def test_windows_that_keep_other_rows_are_refused_beside_others(
    request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(sw.SpecError, match=f"{message}.* a call of its own"):
        sw.KeyedWindows(on="t", aggs={"n": sw.count()}, **request_)
