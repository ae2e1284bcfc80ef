"""Columns with nulls only: their memory, and their type after the first value."""

import random
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

COUNT = 30_000


def in_order() -> list[int]:
    return list(range(COUNT))


def backwards() -> list[int]:
    return list(range(COUNT, 0, -1))


def shuffled() -> list[int]:
    times = in_order()
    random.Random(1).shuffle(times)
    return times


def per_entry(window: sw.Window, times: Iterable[int], value: Any) -> float:
    for time in times:
        window.insert(time, value)
    window.check()
    return window.nbytes / len(window)


@pytest.mark.parametrize("times", [in_order, backwards, shuffled])
@pytest.mark.parametrize("algorithm", ["fiba", "auto"])
def test_a_column_without_values_costs_little_more_than_its_times(
    times: Callable[[], list[int]], algorithm: str
) -> None:
    order = times()
    typed = per_entry(
        sw.Window(sw.sum(), dtype="int64", algorithm=algorithm), order, None
    )
    opened = per_entry(sw.Window(sw.sum(), algorithm=algorithm), order, None)
    # Eight bytes for the time, and room for late rows if there are any.
    assert opened - typed < (10 if times is in_order else 18)


def test_only_columns_with_values_are_kept_beside_the_times() -> None:
    aggs = {"a": sw.sum("x"), "b": sw.sum("y"), "c": sw.max("z")}
    row = {"x": 1, "y": None, "z": None}
    typed = per_entry(sw.Window(aggs, dtype="int64"), in_order(), row)
    opened = per_entry(sw.Window(aggs), in_order(), row)
    assert opened - typed < 8 + 16 + 3


@pytest.mark.parametrize("ties", ["combine", "keep"])
@pytest.mark.parametrize("seed", range(6))
def test_the_first_float_finds_all_rows_whatever_happened(ties: str, seed: int) -> None:
    draw = random.Random(seed)
    aggs = {"n": sw.count(), "a": sw.sum("x"), "b": sw.sum("y"), "last": sw.last("x")}
    opened = sw.Window(aggs, ties=ties)
    typed = sw.Window(aggs, ties=ties)
    typed.insert(0, {"x": 1, "y": 0.5})
    typed.clear()  # the types stay
    for step in range(3000):
        time = draw.randrange(400 if seed % 2 else 10_000)
        kind = draw.random()
        for window in (opened, typed):
            if kind < 0.75:
                window.insert(time, {"x": None if step % 3 else step, "y": None})
            elif kind < 0.8:
                rows = {"x": pa.array([step, None, 7]), "y": pa.nulls(3, pa.int64())}
                window.insert_many([time, time - 3, time], rows)
            elif kind < 0.97:
                window.evict(time)
            else:
                window.evict_until(time // 20)
        if step % 100 == 0:
            opened.check()
    opened = sw.Window.from_bytes(opened.to_bytes())
    for window in (opened, typed):
        window.insert(5, {"x": 1, "y": 0.5})
        window.check()
    assert opened.items() == typed.items()
    assert opened.query() == typed.query()


NOTHING = {
    "text": lambda n: pa.nulls(n, pa.string()),
    "timestamps": lambda n: pa.nulls(n, pa.timestamp("us")),
    "dates": lambda n: pa.nulls(n, pa.date32()),
    "dictionary": lambda n: pa.nulls(n, pa.dictionary(pa.int8(), pa.string())),
    "pandas text": lambda n: pd.Series([None] * n, dtype="str"),
    "pandas objects": lambda n: pd.Series([np.nan] * n, dtype=object),
    "polars text": lambda n: pl.Series([None] * n, dtype=pl.String),
}


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("made", NOTHING)
def test_a_first_batch_without_values_has_no_type(made: str, rows: int) -> None:
    times = list(range(rows))
    one = sw.Window(sw.last())
    one.insert_many(times, NOTHING[made](rows))
    assert one.query() is None
    assert len(one) == rows
    one.insert(9, "later")
    assert one.query() == "later"
    aggs = {"most": sw.max("s"), "v": sw.variance("f"), "n": sw.count("s")}
    many = sw.Window(aggs)
    many.insert_many(times, {"s": NOTHING[made](rows), "f": [1.0] * rows})
    assert many.query() == {"most": None, "v": 0.0 if rows else None, "n": 0}


def test_no_times_and_no_values_are_no_entries() -> None:
    window = sw.Window(sw.sum())
    window.insert_many(np.array([]), np.array([]))
    assert len(window) == 0
    window.insert(pd.Timestamp("2026-01-01"), 1)
    window.insert_many([], [])
    assert window.query() == 1


def test_no_times_have_no_kind() -> None:
    for none in (pd.DatetimeIndex([]), pa.array([], pa.timestamp("us")), np.array([])):
        window = sw.Window(sw.sum(), last="1h")
        window.insert_many(none, [])
        window.insert(pd.Timestamp("2026-01-01"), 1)
        assert window.query() == 1


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("order", ["abc", "bca", "cba"])
def test_columns_of_objects_keep_their_values_when_others_become_such(
    order: str, restored: bool
) -> None:
    kinds = {"a": sw.sum("x"), "b": sw.last_k("y", 3), "c": sw.max("z")}
    window = sw.Window({name: kinds[name] for name in order})
    rows: list[dict[str, Any]] = [
        {"x": None, "y": "p", "z": None},
        {"x": None, "y": None, "z": "q"},
        {"x": timedelta(seconds=1), "y": "r", "z": "a"},
    ]
    for time, row in enumerate(rows):
        window.insert(time, row)
        if restored:
            window = sw.Window.from_bytes(window.to_bytes())
    window.check()
    found = {"a": timedelta(seconds=1), "b": ["p", "r"], "c": "q"}
    assert window.query() == found
    assert window.query(0, 1) == {"a": None, "b": ["p"], "c": "q"}
