"""Windows whose ends are rows, against their definition."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from windows_by_rows import (
    AGGS,
    BY,
    Rows,
    answers,
    as_arrow,
    closed_by,
    made,
    only,
    rolled,
)

import slidewise as sw
from slidewise.spec.spec import Spec
from slidewise.table.batched_hopping import hopping_batches
from slidewise.table.batched_rolling import Order, rolling_batches


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
def test_landmark_begins_at_the_last_row_with_a_flag(seed: int, by: list[str]) -> None:
    rows = made(random.Random(seed))

    def since(upto: list[int]) -> list[int]:
        marks = [place for place, at in enumerate(upto) if rows[at]["f"] is True]
        return upto[marks[-1] if marks else 0 :]

    windows = [sw.landmark("f"), 50]
    got = sw.rolling(as_arrow(rows), on="t", by=by, windows=windows, aggs=AGGS)
    label = "landmark_f"
    assert only(got, label) == rolled(rows, by, since, label)


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
def test_until_closes_a_window_at_a_flag(seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows, min_rows = made(rng), rng.choice([0, 0, 2])
    got = sw.hopping(
        as_arrow(rows),
        on="t",
        by=by,
        window=sw.until("f"),
        aggs=AGGS,
        min_rows=min_rows,
    )
    expected = [
        {
            **key,
            "window_start": rows[window[0]]["t"],
            "window_end": rows[window[-1]]["t"],
            **answers(rows, window, min_rows),
        }
        for key, window, _ in closed_by(rows, by, lambda upto: rows[upto[-1]]["f"])
    ]
    assert got.to_pylist() == expected


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("of", ["rows", "time"])
def test_slides_by_rows_answer_every_nth_row(of: str, seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows = made(rng)
    every, length = rng.choice([1, 2, 3, 10]), rng.choice([1, 2, 5, 70])
    got = sw.hopping(
        as_arrow(rows),
        on="t",
        by=by,
        window=sw.rows(length) if of == "rows" else length,
        every=sw.rows(every),
        aggs=AGGS,
    )
    expected = []
    for key, _, upto in closed_by(rows, by, lambda upto: len(upto) % every == 0):
        end = rows[upto[-1]]["t"]
        if of == "rows":
            window = upto[-length:]
            start = rows[window[0]]["t"]
        else:
            start = end - length
            window = [at for at in upto if rows[at]["t"] > start]
        ends = {"window_start": start, "window_end": end}
        expected.append({**key, **ends, **answers(rows, window)})
    assert got.to_pylist() == expected


def test_rows_tumble() -> None:
    table = pa.table({"t": [3, 1, 2, 9, 4], "x": [3, 1, 2, 5, 4]})
    got = sw.hopping(table, on="t", window=sw.rows(2), aggs={"x": sw.collect("x")})
    assert got["x"].to_pylist() == [[1, 2], [3, 4]]
    assert got["window_start"].to_pylist() == [1, 3]


@pytest.mark.parametrize("windows", [sw.landmark("f"), sw.delta("f", 1)], ids=repr)
def test_a_column_that_is_not_there_is_named(windows: Any) -> None:
    with pytest.raises(sw.SpecError, match="no column 'f'"):
        sw.rolling(
            pa.table({"t": [0]}), on="t", windows=windows, aggs={"n": sw.count()}
        )


@pytest.mark.parametrize("values", [[1, 0], ["a", "b"], [1.0, 0.0]], ids=str)
def test_a_flag_is_of_booleans(values: list[Any]) -> None:
    table = pa.table({"t": [1, 2], "f": values})
    aggs = {"n": sw.count()}
    with pytest.raises(sw.SpecError, match=r"column 'f' holds .*, not booleans"):
        sw.rolling(table, on="t", windows=sw.landmark("f"), aggs=aggs)
    with pytest.raises(sw.SpecError, match=r"column 'f' holds .*, not booleans"):
        sw.hopping(table, on="t", window=sw.until("f"), aggs=aggs)


def test_flags_that_are_all_missing_close_nothing() -> None:
    table = pa.table({"t": [1, 2], "f": [None, None]})
    aggs = {"n": sw.count()}
    assert not len(sw.hopping(table, on="t", window=sw.until("f"), aggs=aggs))
    got = sw.rolling(table, on="t", windows=sw.landmark("f"), aggs=aggs)
    assert got["n_landmark_f"].to_pylist() == [1, 2]


@pytest.mark.parametrize("library", ["pandas", "polars", "lazy"])
def test_frames_come_back_as_they_are(library: str) -> None:
    day = datetime(2026, 1, 1, tzinfo=UTC)
    rows = {
        "t": [day + timedelta(hours=at) for at in (3, 1, 2)],
        "k": ["a", "b", "a"],
        "f": [True, True, False],
        "km": [4.5, 0.0, 1.5],
    }
    frame: Any = pd.DataFrame(rows) if library == "pandas" else pl.DataFrame(rows)
    if library == "lazy":
        frame = frame.lazy()
    aggs = {"n": sw.count()}
    windows = [sw.landmark("f"), sw.delta("km", 3.0)]
    got = sw.rolling(frame, on="t", by="k", windows=windows, aggs=aggs)
    several = [sw.until("f"), sw.Query("2h", every=sw.rows(2)), "1h"]
    hops = sw.hopping(frame, on="t", by="k", windows=several, aggs=aggs)
    assert type(got) is type(hops) is type(frame)
    if library == "lazy":
        got, hops = got.collect(), hops.collect()
    assert got["n_landmark_f"].to_list() == [1, 1, 1]
    assert got["n_delta_km_3.0"].to_list() == [2, 1, 1]
    assert hops["window"].to_list()[:3] == ["until_f", "2h every 2rows", "1h"]
    assert hops["n"].to_list() == [2, 2, 1, 1, 1, 1]
    assert hops["window_end"].dtype == got["t"].dtype


def test_an_overflow_names_the_window() -> None:
    table = pa.table({"t": [1, 2], "x": [2**62, 2**62], "f": [False, False]})
    aggs = {"x": sw.sum("x")}
    with pytest.raises(sw.ResultOverflowError, match=r"'landmark_f' of row 1 "):
        sw.rolling(table, on="t", windows=[1, sw.landmark("f")], aggs=aggs)
    closed = table.set_column(2, "f", [[False, True]])
    with pytest.raises(sw.ResultOverflowError, match=r"'until_f' of window_end=2"):
        sw.hopping(closed, on="t", window=sw.until("f"), aggs=aggs)


ONE: dict[str, Any] = {"on": "t", "aggs": {"n": sw.count()}}
WINDOWS: list[dict[str, Any]] = [
    {"windows": [sw.landmark("f"), sw.delta("d", 9), 5]},
    {"window": sw.until("f")},
    {"window": sw.rows(3), "every": sw.rows(2)},
    {"window": 9, "every": sw.rows(4)},
    {"windows": [5, sw.until("f"), sw.Query(9, every=sw.rows(2))], "min_rows": 1},
    {"windows": [5, sw.Query(9, every=2)], "closed": "right"},
    {"window": 9, "every": 4, "closed": "right", "empty": True},
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("by", [[], ["k"]], ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_batches_answer_as_the_table(
    seed: int, by: list[str], window: dict[str, Any]
) -> None:
    rng = random.Random(seed)
    table = as_arrow(made(rng))
    table = table.sort_by([(name, "ascending") for name in [*by, "t"]])
    typed = {name: agg for name, agg in AGGS.items() if agg is not AGGS["own"]}
    request: dict[str, Any] = {"on": "t", "by": by, "aggs": typed, **window}
    rolls = len(window) == 1 and "windows" in window
    make = Spec.make if rolls else Spec.make_hopping
    compute = rolling_batches if rolls else hopping_batches
    order = Order(min_rows=rng.choice([1, 30]))
    batches = table.to_batches(max_chunksize=rng.choice([1, 7]))
    parts = list(compute(batches, make(**request), table.schema, order))
    whole = (sw.rolling if rolls else sw.hopping)(table, **request)
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
def test_landmark_ends_at_labels(seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows, labels = made(rng), made(rng)
    expected: Rows = []
    for label in labels:
        key = [label[name] for name in by]
        upto = [
            at
            for at in sorted(range(len(rows)), key=lambda at: rows[at]["t"])
            if rows[at]["t"] <= label["t"] and [rows[at][name] for name in by] == key
        ]
        begin = max((at for at, row in enumerate(upto) if rows[row]["f"]), default=0)
        named = answers(rows, upto[begin:])
        expected.append({f"{name}_landmark_f": value for name, value in named.items()})
    out = sw.rolling(
        as_arrow(rows),
        on="t",
        by=by,
        windows=[4, sw.landmark("f"), sw.rows(2)],
        aggs=AGGS,
        at=as_arrow(labels).select(["t", "k", "g"]),
        threads=rng.choice([1, 2]),
    )
    assert only(out, "landmark_f") == expected


@pytest.mark.parametrize("window", [sw.landmark("f"), sw.delta("km", 1)], ids=repr)
def test_as_of_answers_have_no_rows_to_end_at(window: Any) -> None:
    table = pa.table({"t": [1], "f": [True], "km": [1], "a": [1]})
    with pytest.raises(sw.SpecError, match=r"arrival='a' does not apply to the window"):
        sw.rolling(table, windows=window, arrival="a", **ONE)


def test_explain_names_the_windows() -> None:
    table = pa.table({"t": [1], "f": [True], "km": [1]})
    text = sw.explain(table, windows=[5, sw.landmark("f"), sw.delta("km", 1)], **ONE)
    assert "landmark_f: from the last row where 'f' is true" in text
    assert "delta_km_1: back to the first row whose 'km' is too far" in text
    assert "5: every row's window is found once" in text
    text = sw.explain(table, windows=[sw.until("f"), 5, sw.rows(3)], **ONE)
    assert "until_f: a row where 'f' is true closes a window" in text
    assert "3rows: one window per 3 rows of a key" in text
    assert "5: windows do not overlap" in text
