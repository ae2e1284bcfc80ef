"""Bools are returned as bools, and summed as 0 and 1."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw

KEPT = {
    "min": (sw.min(), False),
    "max": (sw.max(), True),
    "first": (sw.first(), True),
    "last": (sw.last(), True),
    "mode": (sw.mode(), True),
    "collect": (sw.collect(), [True, False, True]),
    "top": (sw.top_k(k=2), [True, True]),
    "bottom": (sw.bottom_k(k=2), [False, True]),
    "distinct": (sw.collect_distinct(), [True, False]),
    "and": (sw.bit_and(), False),
    "or": (sw.bit_or(), True),
    "xor": (sw.bit_xor(), False),
    "nearest": (sw.quantile(q=0.5, interpolation="lower"), True),
}


def same(got: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return len(got) == len(expected) and all(map(same, got, expected))
    return got == expected and type(got) is type(expected)


FLAGS = [True, False, None, True]


def windows(agg: Any) -> list[Any]:
    """Windows over the same flags, inserted in different ways."""
    made = []
    for values in (FLAGS, pa.array(FLAGS), np.array(FLAGS, dtype=object)):
        window = sw.Window(agg)
        window.insert_many([1, 2, 3, 4], values)
        made.append(window)
    window = sw.Window(agg)
    for time, flag in enumerate(FLAGS):
        window.insert(time, flag)
    return [*made, window, window.copy(), sw.Window.from_bytes(window.to_bytes())]


@pytest.mark.parametrize("name", KEPT)
def test_bools_come_back_as_bools(name: str) -> None:
    agg, expected = KEPT[name]
    for window in windows(agg):
        assert same(window.query(), expected), window.query()
    for window in windows({"a": agg, "n": sw.count()}):
        assert same(window.query()["a"], expected)


COUNTED = {
    "sum": (sw.sum(), 2),
    "n": (sw.count(), 4),
    "mean": (sw.mean(), 2 / 3),
    "distinct": (sw.count_distinct(), 2),
    "most": (sw.max_count(), 2),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counts_and_sums_of_bools_are_numbers(name: str) -> None:
    agg, expected = COUNTED[name]
    for window in windows({"a": agg, "b": sw.max()}):
        assert same(window.query()["a"], expected)


def test_rows_of_bools_and_by_bools() -> None:
    rows = [{"x": True, "y": 2}, {"x": False, "y": 7}, {"x": True, "y": 1}]
    aggs = {
        "arg": sw.arg_max("x", by="y"),
        "by": sw.arg_min("y", by="x"),
        "where": sw.max("x", where="x"),
    }
    window = sw.Window(aggs)
    window.insert_many([1, 2, 3], rows)
    answer = window.query()
    assert (answer["arg"], answer["by"], answer["where"]) == (False, 7, True)
    assert type(answer["arg"]) is type(answer["where"]) is bool
    table = sw.Window(aggs)
    table.insert_many([1, 2, 3], pa.Table.from_pylist(rows))
    assert table.query() == answer


def test_numpys_bools_are_bools() -> None:
    window = sw.Window(sw.max())
    window.insert(1, np.bool_(True))
    assert window.query() is True
    window.insert_many([2, 3], np.array([True, False]))
    assert window.query(3, 3) is False


def test_an_int_among_bools_makes_all_ints() -> None:
    window = sw.Window(sw.max())
    window.insert(1, True)
    assert window.query() is True
    window.insert(2, 0)
    assert type(window.query()) is int
    window.insert(3, True)
    assert same(sw.Window.from_bytes(window.to_bytes()).query(), 1)
    window.insert(4, 0.5)
    assert same(window.query(), 1.0)
    typed = sw.Window(sw.max(), dtype="int64")
    typed.insert(1, True)
    assert same(typed.query(), 1)


def test_bits_of_bools_and_an_int_are_those_of_ints() -> None:
    window = sw.Window(sw.bit_or())
    window.insert(1, True)
    assert window.query() is True
    window.insert(2, 4)
    assert same(window.query(), 5)
    window.insert(3, False)
    again = sw.Window.from_bytes(window.to_bytes())
    again.insert(4, True)
    assert same(again.query(), 5)
    with pytest.raises(sw.SpecError, match="computes with int64"):
        again.insert(5, 0.5)


def test_bools_in_shared_and_keyed_windows() -> None:
    shared = sw.SharedWindow({"m": sw.max(), "s": sw.sum()}, ranges=[1, 3])
    shared.insert_many([1, 2, 3], [True, True, False])
    last, whole = shared.query()
    assert same([last["m"], last["s"]], [False, 0])
    assert same([whole["m"], whole["s"]], [True, 2])
    assert sw.SharedWindow.from_bytes(shared.to_bytes()).query() == shared.query()
    table = pa.table({"t": [1, 2, 3], "k": [0, 0, 0], "x": [True, None, False]})
    aggs = {name: type(agg)(agg.kind, "x") for name, (agg, _) in list(KEPT.items())[:4]}
    keyed = sw.KeyedWindows(on="t", by="k", windows=9, aggs=aggs)
    keyed.ingest(table)
    keyed.advance(9)
    out = keyed.collect()
    expected = sw.rolling(table, on="t", by="k", windows=9, aggs=aggs)
    for name in aggs:
        column = out[f"{name}_9"]
        assert column.type == pa.bool_()
        assert column.to_pylist() == expected[f"{name}_9"].to_pylist()
