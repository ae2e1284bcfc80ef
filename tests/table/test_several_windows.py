"""Ends of windows on a grid, and several windows at once, against their definition."""

import random
from typing import Any

import pyarrow as pa
import pytest
from windows_by_rows import AGGS, BY, Rows, answers, as_arrow, keys_of, made

import slidewise as sw


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("closed", ["left", "right"])
def test_either_end_belongs_to_a_window(closed: str, seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows = made(rng)
    length, every = rng.randrange(1, 30), rng.randrange(1, 30)
    offset, empty = rng.randrange(-40, 40), rng.random() < 0.4
    got = sw.hopping(
        as_arrow(rows),
        on="t",
        by=by,
        window=length,
        every=every,
        offset=offset,
        empty=empty,
        closed=closed,
        aggs=AGGS,
    )
    expected = grid(rows, by, (length, every), closed, offset=offset, empty=empty)
    assert got.to_pylist() == expected


def grid(
    rows: Rows,
    by: list[str],
    hop: tuple[int, int],
    closed: str,
    *,
    offset: int = 0,
    empty: bool = False,
) -> Rows:
    """The windows of a grid, by key and time."""
    length, every = hop
    expected = []
    for key, own in keys_of(rows, by).items():
        first = min(rows[at]["t"] for at in own) - length - every
        last = max(rows[at]["t"] for at in own) + every
        found = []
        for start in range(first, last + 1):
            if (start - offset) % every:
                continue
            left = 0 if closed == "left" else 1
            inside = range(start + left, start + length + left)
            window = [at for at in own if rows[at]["t"] in inside]
            found.append((start, window))
        while found and not found[0][1]:
            found.pop(0)
        while found and not found[-1][1]:
            found.pop()
        for start, window in found:
            if window or empty:
                ends = {"window_start": start, "window_end": start + length}
                named = dict(zip(by, key, strict=True))
                expected.append({**named, **ends, **answers(rows, window)})
    return expected


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(15))
def test_several_windows_have_slides_of_their_own(seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows = made(rng)
    closed = rng.choice(["left", "right"])
    request: dict[str, Any] = {"on": "t", "by": by, "aggs": AGGS}
    alone: dict[str, dict[str, Any]] = {
        "7": {"window": 7, "closed": closed},
        "20 every 5": {"window": 20, "every": 5, "closed": closed},
        "3 every 11": {"window": 3, "every": 11, "closed": closed},
    }
    windows = [7, sw.Query(20, every=5), sw.Query(3, every=11)]
    got = sw.hopping(as_arrow(rows), windows=windows, closed=closed, **request)
    assert merged(rows, by, alone, request) == got.to_pylist()


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(15))
def test_several_windows_are_of_any_kind(seed: int, by: list[str]) -> None:
    rows = made(random.Random(seed))
    request: dict[str, Any] = {"on": "t", "by": by, "aggs": AGGS}
    alone: dict[str, dict[str, Any]] = {
        "until_f": {"window": sw.until("f")},
        "session_3": {"window": sw.session(3)},
        "5rows every 2rows": {"window": sw.rows(5), "every": sw.rows(2)},
        "9 every 4rows": {"window": 9, "every": sw.rows(4)},
        "30": {"window": 30},
    }
    windows = [
        sw.until("f"),
        sw.session(3),
        sw.Query(sw.rows(5), every=sw.rows(2)),
        sw.Query(9, every=sw.rows(4)),
        30,
    ]
    got = sw.hopping(as_arrow(rows), windows=windows, **request)
    assert merged(rows, by, alone, request) == got.to_pylist()


def merged(
    rows: Rows,
    by: list[str],
    alone: dict[str, dict[str, Any]],
    request: dict[str, Any],
) -> Rows:
    """The windows of several calls, by key, end and name."""
    found = []
    keys = list(keys_of(rows, by))
    for number, (name, window) in enumerate(alone.items()):
        for row in sw.hopping(as_arrow(rows), **window, **request).to_pylist():
            key = {column: row.pop(column) for column in by}
            rank = keys.index(tuple(key.values()))
            order = (rank, row["window_end"], number, row["window_start"])
            found.append((order, {**key, "window": name, **row}))
    # Windows by rows may begin and end at equal times; their order is kept.
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def test_every_holds_for_the_windows_without_one() -> None:
    table = pa.table({"t": [1, 12]})
    got = sw.hopping(
        table,
        on="t",
        windows=[10, sw.Query(20, every=20)],
        every=5,
        aggs={"n": sw.count()},
    )
    named = zip(got["window"].to_pylist(), got["window_start"].to_pylist(), strict=True)
    assert list(named) == [
        ("10", -5),
        ("10", 0),
        ("10", 5),
        ("10", 10),
        ("20 every 20", 0),
    ]


def test_keys_that_are_categories_stay_so() -> None:
    keys = pa.array(["b", "a", "b"]).dictionary_encode()
    table = pa.table({"t": [1, 2, 3], "k": keys})
    got = sw.hopping(table, on="t", by="k", windows=[2, 5], aggs={"n": sw.count()})
    assert got["k"].type == keys.type
    assert got["k"].to_pylist() == ["b", "b", "b", "a", "a"]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_keys_and_answers_that_are_views_stay_so(kind: pa.DataType) -> None:
    words = pa.array(["b", "a", "b"]).cast(kind)
    aggs = {"last": sw.last("x"), "all": sw.collect("x")}
    table = pa.table({"t": [1, 2, 3], "k": words, "x": words})
    got = sw.hopping(table, on="t", by="k", windows=[2, 5], aggs=aggs)
    assert got["k"].type == got["last"].type == kind
    assert got["all"].type.value_type == kind
    b, a = words[0].as_py(), words[1].as_py()
    assert got["k"].to_pylist() == got["last"].to_pylist() == [b, b, b, a, a]
    assert got["all"].to_pylist() == [[b], [b], [b, b], [a], [a]]


def test_a_window_at_the_end_of_int64_is_refused() -> None:
    table = pa.table({"t": [-(2**63), 0]})
    with pytest.raises(sw.SpecError, match="reaches beyond the times"):
        sw.hopping(table, on="t", window=5, closed="right", aggs={"n": sw.count()})
