"""Exact values and types of the answers of `sw.rolling`, by the type of the column."""

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw


def test_products_of_unsigned_integers_are_exact_over_tables() -> None:
    column = pa.array([2**30 + 1, 2**30 + 1], pa.uint64())
    table = pa.table({"t": [1, 2], "x": column})
    aggs = {"p": sw.product("x"), "s": sw.sum_of_squares("x")}
    made = sw.rolling(table, on="t", windows=10, aggs=aggs)
    window = sw.Window(aggs)
    window.insert_many([1, 2], table)
    answers = {"p": (2**30 + 1) ** 2, "s": 2 * (2**30 + 1) ** 2}
    assert window.query() == answers
    assert made.slice(1).select(["p_10", "s_10"]).to_pylist() == [
        {f"{name}_10": answer for name, answer in answers.items()}
    ]
    large = pa.table({"t": [1], "x": pa.array([2**63], pa.uint64())})
    with pytest.raises(
        sw.SpecError, match="row 0 of column 'x' is 9223372036854775808"
    ):
        sw.rolling(large, on="t", windows=10, aggs=aggs)


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.float64(), pa.uint64(), pa.duration("s")]
)
def test_a_column_with_and_without_where(kind: pa.DataType) -> None:
    values = pa.array([1, 2, 3], pa.int64()).cast(kind)
    table = pa.table({"t": [1, 2, 3], "x": values, "w": [True, False, False]})
    aggs = {
        "all_last": sw.last("x"),
        "last": sw.last("x", where="w"),
        "all_first": sw.first("x"),
        "first": sw.first("x", where="w"),
    }
    made = sw.rolling(table, on="t", windows=5, aggs=aggs)
    assert made["last_5"].combine_chunks() == pa.array([1, 1, 1]).cast(kind)
    assert made["all_last_5"].combine_chunks() == values
    hops = sw.hopping(table, on="t", window=5, every=5, aggs=aggs)
    assert hops["last"].to_pylist() == made["first_5"].to_pylist()[:1]


@pytest.mark.parametrize("spread", [0.001, 8.0])
def test_variances_stay_exact_however_long_a_single_window(
    spread: float,
) -> None:
    rows = 50_000
    random = np.random.default_rng(3)
    values = 1e9 + spread * random.normal(size=rows)
    if spread > 1:
        values = np.exp(spread * random.normal(size=rows))
    table = pa.table({"t": np.arange(rows), "x": values, "same": np.zeros(rows, int)})
    exact = [Fraction(value) for value in values.tolist()]
    whole = sum(exact)
    squares = sum(value * value for value in exact)
    variance = (squares - whole * whole / rows) / (rows - 1)
    aggs = {"v": sw.variance("x")}
    end = pa.table({"t": [rows - 1]})
    answers = {
        "hopping": sw.hopping(table, on="t", window=rows, aggs=aggs)["v"][0],
        "session": sw.hopping(table, on="t", window=sw.session(5), aggs=aggs)["v"][0],
        "burst": sw.rolling(table, on="same", windows=5, aggs=aggs)["v_5"][0],
        "at": sw.rolling(table, on="t", windows=rows, aggs=aggs, at=end)[f"v_{rows}"][
            0
        ],
        "rolling": sw.rolling(table, on="t", windows=rows, aggs=aggs)[f"v_{rows}"][-1],
    }
    for how, answer in answers.items():
        error = abs(Fraction(answer.as_py()) / variance - 1)
        assert error <= 8 * math.ldexp(1, -50), (how, float(error * 2**50))


def test_more_text_than_a_column_holds_is_refused_by_name() -> None:
    rows = 3_000
    table = pa.table({"t": np.arange(rows), "x": ["0123456789" * 100] * rows})
    with pytest.raises(MemoryError, match=r"concat\('x'\) gives more than 2 GiB"):
        sw.rolling(table, on="t", windows=rows, aggs={"c": sw.concat("x")})


@pytest.mark.parametrize("rows", [1, 1023, 1024, 1025, 2048])
@pytest.mark.parametrize("keys", [1, 2])
def test_tables_of_any_number_of_rows_are_answered(rows: int, keys: int) -> None:
    times = np.arange(rows)
    values = times % 97
    table = pa.table({"t": times, "k": times % keys, "x": values, "f": values + 0.5})
    kinds = [sw.sum, sw.mean, sw.max, sw.variance, sw.first, sw.median, sw.product]
    kinds += [sw.skewness, sw.count_distinct, sw.last, sw.count]
    aggs = {f"{kind.__name__}_{of}": kind(of) for kind in kinds for of in "xf"}
    for windows in (5, sw.rows(3)):
        options = {"on": "t", "by": "k", "windows": windows, "aggs": aggs}
        whole = sw.rolling(table, **options)
        part = sw.rolling(table.slice(0, max(rows - 1, 1)), **options)
        assert whole.num_rows == rows
        assert whole.slice(0, part.num_rows) == part


def test_bits_of_categories_are_plain_numbers() -> None:
    column = pa.array([1, 2, 4]).dictionary_encode()
    table = pa.table({"t": [1, 2, 3], "x": column})
    aggs = {"all": sw.bit_or("x"), "none": sw.bit_and("x"), "most": sw.max("x")}
    made = sw.rolling(table, on="t", windows=5, aggs=aggs)
    assert made["all_5"].to_pylist() == [1, 3, 7]
    assert made["none_5"].to_pylist() == [1, 0, 0]
    assert made["most_5"].to_pylist() == [1, 2, 4]
    assert pa.types.is_dictionary(made["most_5"].type)


def test_many_rows_of_one_time_are_looked_at_once() -> None:
    rows = 300_000
    table = pa.table({"t": np.zeros(rows, int)})
    made = sw.rolling(table, on="t", windows=5, aggs={"n": sw.count()})
    assert made["n_5"].unique().to_pylist() == [rows]


def test_lists_of_different_values_are_short_whatever_the_window() -> None:
    rng = random.Random(3)
    rows = 400
    made = {
        "t": sorted(rng.randrange(300) for _ in range(rows)),
        "k": [rng.choice("ab") for _ in range(rows)],
        "x": [rng.choice(["p", "q", None, "r"]) for _ in range(rows)],
    }
    table = pa.table(made)
    for window in (1, 13, 1000):
        aggs = {"d": sw.collect_distinct("x"), "all": sw.collect("x")}
        out = sw.rolling(table, on="t", by="k", windows=window, aggs=aggs)
        whole = out[f"all_{window}"].to_pylist()
        assert out[f"d_{window}"].to_pylist() == [
            list(dict.fromkeys(values)) for values in whole
        ]
        early = sw.rolling(table, on="t", by="k", windows=window, offset=40, aggs=aggs)
        assert early[f"d_{window}"].to_pylist() == [
            list(dict.fromkeys(values)) for values in early[f"all_{window}"].to_pylist()
        ]


def test_a_column_of_nulls():
    table = pa.table({"t": [1, 2], "x": pa.nulls(2)})
    aggs = {
        "sum": sw.sum("x"),
        "top": sw.max("x"),
        "n": sw.count("x"),
        "m": sw.mode("x"),
        "text": sw.concat("x"),
        "flagged": sw.sum("t", where="x"),
    }
    out = sw.rolling(table, on="t", windows=2, aggs=aggs)
    assert out["n_2"].to_pylist() == [0, 0]
    for name in ("sum_2", "top_2", "m_2", "text_2", "flagged_2"):
        assert out[name].to_pylist() == [None, None]


def test_nan_is_one_key_whatever_its_bits():
    keys = pa.array(np.array([math.nan, -math.nan, math.nan]))
    table = pa.table({"t": [1, 2, 3], "k": keys})
    aggs = {"n": sw.count(), "kinds": sw.collect_distinct("k")}
    out = sw.rolling(table, on="t", by="k", windows=5, aggs=aggs)
    assert out["n_5"].to_pylist() == [1, 2, 3]
    assert all(len(kinds) == 1 for kinds in out["kinds_5"].to_pylist())


def test_half_floats_as_keys():
    table = pa.table({"t": [1, 2, 3], "k": pa.array(np.array([1, 2, 1], np.float16))})
    keyed = sw.KeyedWindows(
        on="t", by="k", windows=5, aggs={"n": sw.count()}, emit="arrival"
    )
    keyed.ingest(table)
    out = sw.rolling(table, on="t", by="k", windows=5, aggs={"n": sw.count()})
    assert keyed.collect()["n_5"].to_pylist() == out["n_5"].to_pylist() == [1, 1, 2]


@pytest.mark.parametrize("keys", [[3, 0, 3, 9], [7, 8, 7, 8], [-1, 2, -1, 2]])
def test_integers_as_keys(keys):
    rows = [*keys, *keys, *keys]
    table = pa.table({"t": range(12), "k": rows, "x": [float(at) for at in range(12)]})
    request = {"on": "t", "windows": 6, "aggs": {"s": sw.sum("x"), "n": sw.count()}}
    out = sw.rolling(table, by="k", **request)
    text = table.set_column(1, "k", table["k"].cast(pa.string()))
    assert out.drop(["k"]).equals(sw.rolling(text, by="k", **request).drop(["k"]))


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array([b"a", None, b"b"], pa.binary_view()),
        pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16)).cast(pa.uuid()),
        pa.array([1, None, 0], pa.bool8()),
        pa.array([[1], None, [2]]),
    ],
    ids=lambda column: str(column.type),
)
def test_min_rows_gives_null_for_every_type(column: Any) -> None:
    table = pa.table({"t": [1, 2, 3], "x": column})
    request = {"on": "t", "windows": 5, "aggs": {"f": sw.first("x"), "l": sw.last("x")}}
    whole = sw.rolling(table, **request)
    few = sw.rolling(table, **request, min_rows=2)
    for name in ("f_5", "l_5"):
        assert few[name].type == whole[name].type
        expected = [None, None, whole[name][2].as_py()]
        assert few[name].to_pylist() == expected


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
def test_views_are_keys_of_hopping_windows(kind):
    keys = pa.array(["a", None, "b", "a"]).cast(pa.binary()).cast(pa.large_binary())
    keys = (keys.cast(pa.large_string()) if kind == pa.string_view() else keys).cast(
        kind
    )
    table = pa.table({"t": [1, 2, 3, 4], "k": keys})
    for query in ({"window": 5}, {"window": sw.rows(1)}):
        found = sw.hopping(table, on="t", by="k", aggs={"n": sw.count()}, **query)
        assert found.schema.field("k").type == kind
        assert set(found["k"].to_pylist()) == set(keys.to_pylist())


@pytest.mark.parametrize("missing", [False, True])
def test_extremes_of_integers_that_ascend_are_those_of_the_window(
    missing: bool,
) -> None:
    numbers = [3, 3, 4, None if missing else 4, 9, 1, 2, 2, 7, 8]
    keys = ["a"] * 5 + ["b"] * 5
    table = pa.table({"t": list(range(10)), "k": keys, "n": numbers})
    aggs = {"hi": sw.max("n"), "lo": sw.min("n"), "end": sw.last("n")}
    out = sw.rolling(table, on="t", by="k", windows=3, aggs=aggs)
    assert out["hi_3"].to_pylist() == [3, 3, 4, 4, 9, 1, 2, 2, 7, 8]
    assert out["lo_3"].to_pylist() == [3, 3, 3, 3, 4, 1, 1, 1, 2, 2]
    assert out["end_3"].to_pylist() == out["hi_3"].to_pylist()
    # Not in order over all keys, nor within one.
    mixed = table.set_column(2, "n", pa.array([5, 4, 6, 5, 5, 3, 1, 2, 0, 9]))
    out = sw.rolling(mixed, on="t", by="k", windows=3, aggs=aggs)
    assert out["hi_3"].to_pylist() == [5, 5, 6, 6, 6, 3, 3, 3, 2, 9]
    assert out["lo_3"].to_pylist() == [5, 4, 4, 4, 5, 3, 1, 1, 0, 0]
