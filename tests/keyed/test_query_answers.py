"""The columns of answers to queries: types, missing values, and many keys at once."""

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw

PLAIN: dict[str, Callable[[str], sw.Aggregation]] = {
    "sum": sw.sum,
    "mean": sw.mean,
    "min": sw.min,
    "max": sw.max,
    "range": sw.range,
    "first": sw.first,
    "last": sw.last,
    "variance": sw.variance,
    "stddev": sw.stddev,
    "skewness": sw.skewness,
    "kurtosis": sw.kurtosis,
    "product": sw.product,
    "sum_of_squares": sw.sum_of_squares,
    "min_count": sw.min_count,
    "max_count": sw.max_count,
}
# Around the words of bits, and around what is read together and answered in one piece.
COUNTS = [1, 2, 7, 8, 9, 63, 64, 65, 128, 1000, 4095, 4096, 4097]


def stream(values: pa.Array, aggs: dict[str, sw.Aggregation]) -> sw.KeyedWindows:
    """Windows over these values of the keys 0 to 8, some keys in order."""
    windows = sw.KeyedWindows(on="t", by="k", windows=[30, 9, 400], aggs=aggs)
    rows = range(len(values))
    table = pa.table({"t": list(rows), "k": [row % 9 for row in rows], "x": values})
    windows.ingest(table)
    return windows


def near(found: list[Any], expected: list[Any]) -> bool:
    """Whether values are equal up to rounding: queries of a key may share folds."""
    pairs = zip(found, expected, strict=True)
    return all(
        math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
        if isinstance(one, float) and isinstance(other, float)
        else one == other
        for one, other in pairs
        if one == one or other == other  # not both NaN
    )


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.float64()], ids=str)
@pytest.mark.parametrize("count", COUNTS)
def test_many_queries_are_answered_like_single_ones(
    kind: pa.DataType, count: int
) -> None:
    """Some keys have no rows, and some values are missing."""
    values = [None if at % 4 == 1 else at % 17 - 5 for at in range(300)]
    aggs = {"n": sw.count(), **{name: make("x") for name, make in PLAIN.items()}}
    windows = stream(pa.array(values, kind), aggs)
    keys = [(at * 7) % 12 for at in range(count)]
    table = pa.table({"k": pa.array(keys, pa.int64())})
    found = windows.query_many(table)
    found.validate(full=True)
    single = {key: windows.query(key) for key in range(12)}
    names = found.column_names[1:]
    assert names == list(single[0])
    for name in names:
        expected = [single[key][name] for key in keys]
        assert near(found[name].to_pylist(), expected)
        assert found[name].null_count == expected.count(None)
    timed = table.append_column("at", pa.array([299] * count, pa.int64()))
    by_column = windows.query_many(timed, at="at").drop_columns("at")
    assert found.schema.equals(by_column.schema, check_metadata=True)
    # The same folds in the same order.
    assert repr(by_column.to_pydict()) == repr(found.to_pydict())


def test_answers_without_keys_have_the_same_schema() -> None:
    """The table of keys is empty, with one chunk or none."""
    windows = stream(pa.array([1.5, None, 2.5]), {"n": sw.count(), "x": sw.max("x")})
    whole = windows.query_many(pa.table({"k": [0, 1, 2, 3]}))
    assert whole["x_9"].to_pylist() == [1.5, None, 2.5, None]
    empty = pa.array([], pa.int64())
    for keys in (empty, pa.chunked_array([], pa.int64()), pa.chunked_array([empty])):
        found = windows.query_many(pa.table({"k": keys}))
        assert found.schema.equals(whole.schema, check_metadata=True)
        assert found.num_rows == 0


def test_answers_of_only_unknown_keys_are_those_of_empty_windows() -> None:
    """Only counts are not null; values of other keys do not leak."""
    windows = stream(pa.array([1.5, 0.5, 2.5]), {"n": sw.count(), "x": sw.sum("x")})
    found = windows.query_many(pa.table({"k": [77, None, 78]}))
    found.validate(full=True)
    assert found["n_400"].to_pylist() == [0, 0, 0]
    assert found["x_400"].to_pylist() == [None] * 3
    assert found["x_400"].null_count == 3


def test_answers_outlive_the_windows() -> None:
    """A column, or a slice of it, keeps the memory alive that it shares with others."""
    windows = stream(pa.array([1.5, 0.5, 2.5]), {"n": sw.count(), "x": sw.sum("x")})
    found = windows.query_many(pa.table({"k": [0, 1, 2]}))
    kept, part = found["x_9"], found["n_9"].slice(1)
    del windows, found
    for size in range(1, 400):
        _ = bytearray(b"\xff" * size)
    assert (kept.to_pylist(), part.to_pylist()) == ([1.5, 0.5, 2.5], [1, 1])
    assert kept.chunk(0).to_numpy(zero_copy_only=True).tolist() == [1.5, 0.5, 2.5]


def test_answers_are_separate_dicts() -> None:
    """A caller's change of one answer does not change others."""
    windows = stream(pa.array([1.5, 0.5]), {"n": sw.count(), "x": sw.sum("x")})
    answer = windows.query(0)
    names = ["n_30", "x_30", "n_9", "x_9", "n_400", "x_400"]
    assert list(answer) == names
    answer.clear()
    answer["other"] = 1
    assert list(windows.query(0)) == names
    assert windows.query(55) == {name: 0 if name[0] == "n" else None for name in names}


def test_keys_may_be_in_slices_and_chunks() -> None:
    """The layout of the table of keys does not matter."""
    windows = stream(pa.array([float(at) for at in range(9)]), {"x": sw.sum("x")})
    keys = pa.table({"no": range(40), "k": [at % 11 for at in range(40)]})
    whole = windows.query_many(keys)
    expected = [None if at % 11 > 8 else float(at % 11) for at in range(40)]
    assert whole["x_9"].to_pylist() == expected
    chunks = pa.concat_tables([keys.slice(0, 5), keys.slice(5, 0), keys.slice(5)])
    assert windows.query_many(chunks).equals(whole)
    for start, count in ((0, 3), (3, 9), (39, 1), (40, 0)):
        found = windows.query_many(keys.slice(start, count))
        assert found.equals(whole.slice(start, count))
    # Columns with chunks of different lengths.
    mixed = pa.table({"no": chunks["no"], "k": keys["k"]})
    assert windows.query_many(mixed).equals(whole)


def test_tables_of_several_schemas_in_turn() -> None:
    """A query leaves no state for the next one."""
    windows = stream(pa.array([1.5, 0.5, 2.5]), {"x": sw.sum("x")})
    plain = pa.table({"k": [0, 2]})
    narrow = pa.table({"k": pa.array([0, 2], pa.int8())})
    noted = pa.table({"note": ["a", "b"], "k": [0, 2]}).replace_schema_metadata(
        {"a": "b"}
    )
    wrong = pa.table({"k": ["0", "2"]})
    for _ in range(2):
        for table in (plain, noted, narrow, plain, narrow, noted):
            found = windows.query_many(table)
            assert found["x_9"].to_pylist() == [1.5, 2.5]
            assert found.select(table.column_names).equals(table)
            assert found.schema.metadata == table.schema.metadata
        with pytest.raises(sw.SpecError, match="in the stream"):
            windows.query_many(wrong)


START = dt.datetime(2026, 3, 29, tzinfo=dt.UTC)
TYPED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.timestamp("us", "Europe/Berlin"), [START, START + dt.timedelta(hours=5)]),
    (pa.timestamp("s"), [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)]),
    (pa.date32(), [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]),
    (pa.duration("ms"), [dt.timedelta(0), dt.timedelta(1)]),
    (pa.decimal128(9, 2), [Decimal("1.25"), Decimal("7.50")]),
    (pa.string(), ["a", "b"]),
    (pa.bool_(), [False, True]),
    (pa.uint8(), [3, 255]),
    (pa.float32(), [0.5, 1.5]),
]


@pytest.mark.parametrize(
    ("kind", "values"), TYPED, ids=[str(kind) for kind, _ in TYPED]
)
def test_results_keep_their_types(kind: pa.DataType, values: list[Any]) -> None:
    """The table also has a column of numbers; some keys have no rows."""
    aggs = {"n": sw.count(), "first": sw.first("x"), "last": sw.last("x")}
    windows = sw.KeyedWindows(on="t", by="k", windows=[9], aggs=aggs)
    low, high = values
    held = pa.array([low, high, None], kind)
    windows.ingest(pa.table({"t": [1, 2, 3], "k": ["a", "a", "b"], "x": held}))
    keys = pa.table({"k": ["a", "z", "b", "a"]})
    for table in (keys, keys.slice(0, 0), keys.slice(1, 1)):
        found = windows.query_many(table)
        assert found.schema.names == ["k", "n_9", "first_9", "last_9"]
        assert found.schema.types[1:] == [pa.int64(), kind, kind]
    found = windows.query_many(keys)
    assert found["n_9"].to_pylist() == [2, 0, 1, 2]
    assert found["first_9"].to_pylist() == [low, None, None, low]
    assert found["last_9"].to_pylist() == [high, None, None, high]
    assert windows.query("a") == {"n_9": 2, "first_9": low, "last_9": high}


KEYS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["", "a", "a much longer key than fits into a few words"]),
    (pa.large_string(), ["a", "ab", ""]),
    (pa.binary(), [b"", b"\x00", b"\x00\x00"]),
    (pa.float64(), [0.5, math.inf, -1.5]),
    (pa.bool_(), [True, False, None]),
    (pa.decimal128(9, 2), [Decimal("1.25"), Decimal("7.50"), Decimal("-1.00")]),
    (pa.timestamp("us", "UTC"), [START, START + dt.timedelta(1), None]),
    (pa.date32(), [dt.date(2026, 1, 1), dt.date(2026, 1, 2), None]),
]


@pytest.mark.parametrize(("kind", "keys"), KEYS, ids=[str(kind) for kind, _ in KEYS])
def test_keys_of_all_types_are_found(kind: pa.DataType, keys: list[Any]) -> None:
    """Keys may be in any order, repeated, in a slice, or single; null is a key, too."""
    windows = sw.KeyedWindows(on="t", by="k", windows=9, aggs={"x": sw.sum("x")})
    table = {"t": [1, 2, 3], "k": pa.array(keys, kind), "x": [1, 2, 4]}
    windows.ingest(pa.table(table))
    order = [2, 0, 0, 1, 2, 1, 0]
    queried = pa.table({"k": pa.array([keys[at] for at in order], kind)})
    found = windows.query_many(queried)
    assert found["x_9"].to_pylist() == [2**at for at in order]
    assert windows.query_many(queried.slice(3))["x_9"].to_pylist() == [2, 4, 2, 1]
    for at, key in enumerate(keys):
        assert windows.query((key,)) == {"x_9": 2**at}


def test_integers_that_do_not_fit_are_named() -> None:
    """Single queries and queries of many keys name them."""
    windows = sw.KeyedWindows(on="t", by="k", windows=9, aggs={"x": sw.sum("x")})
    most = pa.array([2**62, 2**62, 1], pa.int64())
    windows.ingest(pa.table({"t": [1, 2, 3], "k": ["a", "a", "b"], "x": most}))
    for call in (
        lambda: windows.query("a"),
        lambda: windows.query_many(pa.table({"k": ["b", "a"]})),
    ):
        with pytest.raises(sw.ResultOverflowError, match="x"):
            call()
    assert windows.query_many(pa.table({"k": ["b"]}))["x_9"].to_pylist() == [1]
