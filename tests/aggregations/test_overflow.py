"""Integers beyond their type: an error, or null by `overflow="null"`; never a wrap."""

import decimal
import random
from collections.abc import Iterator
from math import prod
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.spec.spec import Spec
from slidewise.table.batched_hopping import hopping_batches
from slidewise.table.batched_rolling import rolling_batches

HALF = 2**62
INT64 = range(-(2**63), 2**63)

AGGS = {
    "sum": (sw.sum("x"), sum),
    "product": (sw.product("x"), prod),
    "squares": (sw.sum_of_squares("x"), lambda xs: sum(x * x for x in xs)),
    "range": (sw.range("x"), lambda xs: max(xs) - min(xs)),
    "n": (sw.count("x"), len),
    "mean": (sw.mean("x"), lambda xs: sum(xs) / len(xs)),
}


def numbers(rows: int, seed: int = 1) -> pa.Table:
    """Values in two keys, of which a few are so large that their sums overflow."""
    draw = random.Random(seed)
    some = [None, 1, -3, HALF, HALF + 5, -HALF, 2**31]
    return pa.table(
        {
            "t": pa.array([draw.randrange(rows // 2) for _ in range(rows)], pa.int64()),
            "k": [draw.choice("ab") for _ in range(rows)],
            "x": pa.array([draw.choice(some) for _ in range(rows)], pa.int64()),
            "a": pa.array(range(rows), pa.int64()),
        }
    )


def fitting(value: Any) -> Any:
    return None if isinstance(value, int) and value not in INT64 else value


def expected(held: list[int], min_rows: int = 0) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for name, (_, of) in AGGS.items():
        if name == "n":
            answers[name] = len(held)
        elif not held or len(held) < min_rows:
            answers[name] = None
        else:
            answers[name] = fitting(of(held))
    return answers


def windows_of(
    table: pa.Table, length: int, seen_by: Any = lambda row, other: True
) -> Iterator[list[int]]:
    rows = table.to_pylist()
    for row in rows:
        yield [
            other["x"]
            for other in rows
            if other["k"] == row["k"]
            and row["t"] - length < other["t"] <= row["t"]
            and other["x"] is not None
            and seen_by(row, other)
        ]


def agree(answer: pa.Table, windows: Iterator[list[int]], min_rows: int = 0) -> None:
    overflows = 0
    for at, held in enumerate(windows):
        for name, value in expected(held, min_rows).items():
            column = next(c for c in answer.column_names if c.split("_")[0] == name)
            got = answer[column][at].as_py()
            if name == "mean" and value is not None:
                assert got == pytest.approx(value), (at, name)
            else:
                assert got == value, (at, name, held)
            overflows += value is None and bool(held)
    assert overflows > 3, "the data has too few overflows"


REQUEST: dict[str, Any] = {
    "on": "t",
    "by": "k",
    "aggs": {name: agg for name, (agg, _) in AGGS.items()},
    "overflow": "null",
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [40, 3_000])
def test_overflow_null_gives_null(rows: int, threads: int) -> None:
    table = numbers(rows)
    answer = sw.rolling(table, windows=9, **REQUEST, threads=threads)
    agree(answer, windows_of(table, 9))


def test_likewise_at_query_points_and_as_of_arrival() -> None:
    table = numbers(60)
    answer = sw.rolling(table, windows=9, **REQUEST, at=table)
    agree(answer, windows_of(table, 9))
    answer = sw.rolling(table, windows=9, **REQUEST, arrival="a")
    windows = windows_of(table, 9, lambda row, other: other["a"] <= row["a"])
    agree(answer, windows)


def test_likewise_in_windows_on_a_grid_and_between_gaps() -> None:
    table = numbers(80)
    for window in (7, sw.session(1)):
        answer = sw.hopping(table, window=window, **REQUEST)
        rows = table.to_pylist()
        closed = isinstance(window, int)
        held = [
            [
                row["x"]
                for row in rows
                if row["k"] == key
                and row["x"] is not None
                and (start <= row["t"] < end if closed else start <= row["t"] <= end)
            ]
            for key, start, end in zip(
                *(
                    answer[name].to_pylist()
                    for name in ("k", "window_start", "window_end")
                ),
                strict=True,
            )
        ]
        agree(answer, iter(held))


def test_likewise_in_batches() -> None:
    table = numbers(500).sort_by([("k", "ascending"), ("t", "ascending")])
    batches = table.to_batches(max_chunksize=17)
    request = {**REQUEST, "windows": 9}
    parts = list(rolling_batches(batches, Spec.make(**request), table.schema))
    agree(pa.concat_tables(parts), windows_of(table, 9))
    hops = Spec.make_hopping(**REQUEST, window=7)
    parts = list(hopping_batches(batches, hops, table.schema))
    assert pa.concat_tables(parts).equals(sw.hopping(table, window=7, **REQUEST))


def test_likewise_for_sums_beyond_other_types() -> None:
    large = decimal.Decimal(10**38 - 1)
    table = pa.table(
        {
            "t": [1, 2, 3],
            "u": pa.array([2**63, 2**63, 5], pa.uint64()),
            "d": pa.array([large, decimal.Decimal(1), large], pa.decimal128(38, 0)),
            "s": pa.array([2**62, 2**62, -1], pa.duration("us")),
        }
    )
    aggs = {"u": sw.sum("u"), "d": sw.sum("d"), "s": sw.sum("s")}
    answer = sw.rolling(table, on="t", windows=2, aggs=aggs, overflow="null")
    assert answer["u_2"].to_pylist() == [2**63, None, 2**63 + 5]
    assert answer["d_2"].to_pylist() == [large, None, None]
    assert answer["s_2"].cast(pa.int64()).to_pylist() == [2**62, None, 2**62 - 1]
    for name, agg in aggs.items():
        with pytest.raises(sw.ResultOverflowError, match=r"row [12].*overflow='null'"):
            sw.rolling(table, on="t", windows=2, aggs={name: agg})
    at = sw.rolling(table, on="t", windows=2, aggs=aggs, min_rows=3)
    assert at["u_2"].null_count == at["d_2"].null_count == at["s_2"].null_count == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sum", 2 * HALF),
        ("product", 2 * HALF),
        ("squares", HALF**2),
        ("range", 3 * HALF),
    ],
)
def test_the_error_names_the_value_and_the_ways_out(name: str, value: int) -> None:
    xs = {"sum": [HALF] * 2, "product": [HALF, 2], "squares": [HALF]}
    values = xs.get(name, [-2 * HALF, HALF])
    table = pa.table({"t": range(len(values)), "x": values})
    with pytest.raises(sw.ResultOverflowError) as caught:
        sw.rolling(table, on="t", windows=9, aggs={"s": AGGS[name][0]}, min_rows=1)
    message = str(caught.value)
    assert f": {value} does not fit int64; cast the column to float64 if" in message
    assert message.endswith("or give overflow='null'")


def test_windows_of_few_values_are_null_whatever_they_overflow() -> None:
    table = pa.table({"t": [1, 2], "x": [HALF, HALF]})
    request: dict[str, Any] = {
        "on": "t",
        "aggs": {"s": sw.sum("x"), "p": sw.product("x")},
    }
    answer = sw.rolling(table, windows=5, **request, min_rows=3)
    assert answer["s_5"].to_pylist() == answer["p_5"].to_pylist() == [None, None]
    assert sw.hopping(table, window=5, **request, min_rows=3)["s"].to_pylist() == [None]
    with pytest.raises(
        sw.ResultOverflowError, match=r"of row 1 .*: 9223372036854775808 "
    ):
        sw.rolling(table, windows=5, **request, min_rows=2)


def test_a_stream_answers_windows_of_few_values_with_null() -> None:
    table = pa.table({"t": [1, 2], "x": [HALF, HALF]})
    kept = sw.KeyedWindows(on="t", windows=5, aggs={"s": sw.sum("x")}, min_rows=3)
    kept.ingest(table)
    kept.advance(9)
    assert kept.collect()["s_5"].to_pylist() == [None, None]


def test_min_rows_and_null_together() -> None:
    table = numbers(60)
    answer = sw.rolling(table, windows=9, **REQUEST, min_rows=3)
    agree(answer, windows_of(table, 9), min_rows=3)


def test_overflow_is_not_part_of_the_hash() -> None:
    request: dict[str, Any] = {"on": "t", "aggs": {"s": sw.sum("x")}}
    for make, window in (
        (Spec.make, {"windows": 5}),
        (Spec.make_hopping, {"window": 5}),
    ):
        plain, null = (
            make(**request, **window),
            make(**request, **window, overflow="null"),
        )
        assert plain.overflow == "raise"
        assert null.overflow == "null"
        assert plain.hash == null.hash
        assert "overflow" not in null.canonical()
        with pytest.raises(
            sw.SpecError, match="overflow= is one of raise, null; got 'n"
        ):
            make(**request, **window, overflow="no")


def test_pandas_answers_that_may_be_null_are_nullable() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"t": [1, 2], "x": [HALF, HALF]})
    answer = sw.rolling(
        table, on="t", windows=5, aggs={"s": sw.sum("x")}, overflow="null"
    )
    assert str(answer["s_5"].dtype) == "Int64"
    assert answer["s_5"].isna().tolist() == [False, True]
