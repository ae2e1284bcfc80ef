"""Tables of every library and columns of every type, as input and output."""

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

T = [3, 1, 2]
PICKS = {
    "n": sw.count("x"),
    "first": sw.first("x"),
    "last": sw.last("x"),
    "all": sw.collect("x"),
    "at": sw.arg_max("x", by="t"),
}
ORDERED = {
    **PICKS,
    "low": sw.min("x"),
    "top": sw.max("x"),
    "lows": sw.min_count("x"),
    "when": sw.arg_min(by="x"),
}


def decimals(*values: str) -> list[decimal.Decimal]:
    return [decimal.Decimal(value) for value in values]


NUMBERS = [
    *(
        getattr(pa, f"{sign}int{bits}")()
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    ),
    pa.float16(),
    pa.float32(),
    pa.float64(),
]
SORTABLE = [
    (pa.bool_(), [True, False, True]),
    (pa.string(), ["b", "a", "c"]),
    (pa.large_string(), ["b", "a", "c"]),
    (pa.string_view(), ["b", "a", "c"]),
    (pa.binary(), [b"b", b"a", b"c"]),
    (pa.binary_view(), [b"b", b"a", b"c"]),
    (pa.binary(1), [b"b", b"a", b"c"]),
    (pa.decimal128(9, 2), decimals("2.00", "1.50", "10.00")),
    (pa.decimal256(50, 2), decimals("2.00", "1.50", "10.00")),
    (pa.date32(), [dt.date(2020, 1, day) for day in (2, 1, 3)]),
    (pa.date64(), [dt.date(2020, 1, day) for day in (2, 1, 3)]),
    (pa.time32("ms"), [dt.time(2), dt.time(1), dt.time(3)]),
    (pa.time64("us"), [dt.time(2), dt.time(1), dt.time(3)]),
    *(
        (pa.timestamp(unit, zone), [dt.datetime(2020, 1, day) for day in (2, 1, 3)])
        for unit in ("s", "ms", "us")
        for zone in (None, "UTC", "Asia/Tokyo")
    ),
    (pa.duration("ms"), [dt.timedelta(seconds=value) for value in (2, -1, 3)]),
]
OTHERS = [
    (pa.list_(pa.int8()), [[1], [], [2, 3]]),
    (pa.struct([("a", pa.int8())]), [{"a": 1}, {"a": None}, {"a": 2}]),
    (pa.dictionary(pa.int8(), pa.string()), ["b", "a", "b"]),
    (pa.null(), [None, None, None]),
]


def roll(column: pa.Array, aggs: dict[str, sw.Aggregation]) -> dict[str, Any]:
    """Each result over two rows, as a value per row; types are checked on the way."""
    table = pa.table({"t": T, "x": column})
    out = sw.rolling(table, on="t", windows=2, aggs=aggs)
    for name, agg in aggs.items():
        result = out.schema.field(f"{name}_2").type
        if agg.kind in ("first", "last", "min", "max") or name == "at":
            assert result == column.type
        elif agg.kind == "collect":
            assert result == pa.list_(column.type)
        else:
            assert result == pa.int64()
    return {name: out[f"{name}_2"].to_pylist() for name in aggs}


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_numbers_of_every_type(kind: pa.DataType) -> None:
    got = roll(pa.array([5, None, 7], kind), ORDERED)
    assert got == {
        "n": [2, 0, 1],
        "first": [7, None, 7],
        "last": [5, None, 7],
        "all": [[7, 5], [], [7]],
        "at": [5, None, 7],
        "low": [5, None, 7],
        "top": [7, None, 7],
        "lows": [1, None, 1],
        "when": [3, None, 2],
    }
    arithmetic = {
        make.__name__: make("x") for make in (sw.sum, sw.mean, sw.range, sw.variance)
    }
    table = pa.table({"t": T, "x": pa.array([5, None, 7], kind)})
    out = sw.rolling(table, on="t", windows=2, aggs=arithmetic)
    whole = pa.uint64() if kind == pa.uint64() else pa.int64()
    exact = whole if pa.types.is_integer(kind) else pa.float64()
    types = [exact, pa.float64(), exact, pa.float64()]
    assert out.schema.types[2:] == types
    results = [out[f"{name}_2"].to_pylist() for name in arithmetic]
    assert results == [[12, None, 7], [6, None, 7], [2, None, 0], [2, None, None]]


@pytest.mark.parametrize(("kind", "values"), SORTABLE, ids=str)
def test_everything_that_has_an_order(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, kind)
    late, early, middle = column.to_pylist()
    got = roll(column, ORDERED)
    assert got["n"] == [2, 1, 2]
    assert got["first"] == [middle, early, early]
    assert got["last"] == [late, early, middle]
    assert got["all"] == [[middle, late], [early], [early, middle]]
    assert got["low"] == [min(middle, late), early, min(early, middle)]
    assert got["top"] == [max(middle, late), early, max(early, middle)]
    assert got["at"] == [late, early, middle]
    assert got["when"] == [3 if late < middle else 2, 1, 1]


@pytest.mark.parametrize(("kind", "values"), OTHERS, ids=str)
def test_everything_else_can_be_picked(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, kind)
    late, early, middle = column.to_pylist()
    got = roll(column, PICKS)
    assert got["last"] == [late, early, middle]
    assert got["at"] == [late, early, middle]


@pytest.mark.parametrize(
    ("kind", "distance"),
    [
        (pa.timestamp("ns", "UTC"), pa.duration("ns")),
        (pa.timestamp("s"), pa.duration("s")),
        (pa.date32(), pa.duration("s")),
        (pa.date64(), pa.duration("ms")),
        (pa.time32("s"), pa.duration("s")),
        (pa.duration("us"), pa.duration("us")),
    ],
    ids=str,
)
def test_a_range_of_times_is_a_duration(
    kind: pa.DataType, distance: pa.DataType
) -> None:
    day = 1 if kind == pa.date32() else 86_400_000
    ticks = pa.array([2 * day, None, 5 * day], pa.int32() if day == 1 else pa.int64())
    if kind == pa.time32("s"):
        ticks = ticks.cast(pa.int32(), safe=False)
    table = pa.table({"t": T, "x": ticks.view(kind)})
    out = sw.rolling(table, on="t", windows=2, aggs={"r": sw.range("x")})
    assert out.schema.field("r_2").type == distance
    expected = 3 * (86_400 if day == 1 else day)
    assert out["r_2"].cast(pa.int64()).to_pylist() == [expected, None, 0]


def test_sums_of_durations_and_of_bool() -> None:
    table = pa.table(
        {
            "t": T,
            "d": pa.array([1, None, 2], pa.duration("s")),
            "b": [True, None, True],
        }
    )
    aggs = {"d": sw.sum("d"), "b": sw.sum("b"), "m": sw.mean("b")}
    out = sw.rolling(table, on="t", windows=2, aggs=aggs)
    assert out.schema.types[3:] == [pa.duration("s"), pa.int64(), pa.float64()]
    assert out["d_2"].cast(pa.int64()).to_pylist() == [3, None, 2]
    assert out["b_2"].to_pylist() == [2, None, 1]


def test_uint64_is_exact_to_its_end() -> None:
    top = 2**64 - 1
    table = pa.table({"t": [1, 2, 9], "x": pa.array([top - 5, 5, None], pa.uint64())})
    aggs = {
        name: getattr(sw, name)("x")
        for name in ("sum", "min", "max", "range", "stddev")
    }
    out = sw.rolling(table, on="t", windows=2, aggs=aggs)
    assert out["sum_2"].to_pylist() == [top - 5, top, None]
    assert out["min_2"].to_pylist() == [top - 5, 5, None]
    assert out["max_2"].to_pylist() == [top - 5, top - 5, None]
    assert out["range_2"].to_pylist() == [0, top - 10, None]
    assert out["stddev_2"].to_pylist() == [
        None,
        pytest.approx((top - 10) / 2**0.5),
        None,
    ]
    table = pa.table({"t": [1, 2], "x": pa.array([top, 1], pa.uint64())})
    with pytest.raises(
        sw.ResultOverflowError, match=r"of row 1 .* does not fit uint64"
    ):
        sw.rolling(table, on="t", windows=2, aggs={"s": sw.sum("x")})


def test_extension_types_are_kept() -> None:
    column = pa.array([b"b" * 16, b"a" * 16, None], pa.uuid())
    got = roll(column, {"last": sw.last("x"), "low": sw.min("x")})
    assert got["last"] == column.to_pylist()[:2] + column.to_pylist()[1:2]
    table = pa.table({"t": T, "x": column})
    out = sw.rolling(table, on="t", by="x", windows=9, aggs={"n": sw.count()})
    assert out["n_9"].to_pylist() == [1, 1, 1]


TIMES = [
    *(pa.timestamp(unit, zone) for unit in ("s", "us", "ns") for zone in (None, "UTC")),
    pa.timestamp("ms", "America/New_York"),
    pa.date32(),
    pa.date64(),
    pa.duration("s"),
]


@pytest.mark.parametrize("kind", TIMES, ids=str)
def test_times_of_every_type(kind: pa.DataType) -> None:
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    day = 86_400 * ticks[getattr(kind, "unit", "ms")] if kind != pa.date32() else 1
    number = pa.int32() if kind == pa.date32() else pa.int64()
    times = pa.array([day * value for value in (0, 3, 1, 5)], number).view(kind)
    table = pa.table({"at": times, "x": [1, 2, 3, 4]})
    windows = ["2d", dt.timedelta(days=4), sw.rows(2)]
    aggs = {"s": sw.sum("x"), "when": sw.arg_max(by="x")}
    out = sw.rolling(table, on="at", windows=windows, aggs=aggs)
    assert out.column_names[2:] == [
        f"{name}_{window}" for window in ("2d", "4d", "2rows") for name in aggs
    ]
    assert out["s_2d"].to_pylist() == [1, 2, 4, 4]
    assert out["s_4d"].to_pylist() == [1, 6, 4, 6]
    assert out["s_2rows"].to_pylist() == [1, 5, 4, 6]
    assert out.schema.field("when_2d").type == kind
    assert out["when_4d"].to_pylist()[1] == times[2].as_py()


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.uint64()], ids=str)
def test_integer_times_of_every_width(kind: pa.DataType) -> None:
    table = pa.table({"at": pa.array([9, 1, 2], kind)})
    out = sw.rolling(table, on="at", windows=2, aggs={"n": sw.count()})
    assert out["n_2"].to_pylist() == [1, 1, 2]


# The result has the type of the table ------------------------------------------------

AGGS = {"n": sw.count(), "s": sw.sum("i"), "m": sw.mean("f"), "last": sw.last("k")}
COLUMNS = {"t": [3, 1, 2], "i": [1, 2, 3], "f": [1.0, 2.0, 4.0], "k": ["a", "b", None]}
EXPECTED = {"n_2": [2, 1, 2], "s_2": [4, 2, 5], "m_2": [2.5, 2.0, 3.0]}


class Stream:
    """Anything that speaks the Arrow C stream interface."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (pa.table, pa.Table),
        (pa.record_batch, pa.RecordBatch),
        (pl.DataFrame, pl.DataFrame),
        (pd.DataFrame, pd.DataFrame),
        (lambda columns: pa.table(columns).to_reader(), pa.Table),
        (lambda columns: Stream(pa.table(columns)), pa.Table),
    ],
)
def test_the_same_type_out_as_in(make: Any, kind: type) -> None:
    out = sw.rolling(make(COLUMNS), on="t", windows=2, aggs=AGGS)
    assert type(out) is kind
    for name, values in {**COLUMNS, **EXPECTED}.items():
        column = out[name]
        got = (
            column.tolist()
            if isinstance(out, pd.DataFrame)
            else column.to_pylist()
            if (not isinstance(out, pl.DataFrame))
            else column.to_list()
        )
        assert [None if value != value else value for value in got] == values


def test_chunks_and_metadata_of_arrow_tables() -> None:
    chunks = [pa.table(COLUMNS), pa.table(COLUMNS).slice(1), pa.table(COLUMNS).slice(3)]
    table = pa.concat_tables(chunks).replace_schema_metadata({"made": "here"})
    out = sw.rolling(table, on="t", windows=1, aggs=AGGS)
    assert out.schema.metadata == {b"made": b"here"}
    assert out["s_1"].to_pylist() == [1, 4, 6, 4, 6]
    assert table.column_names == list(COLUMNS)


def test_pandas_keeps_index_and_dtypes() -> None:
    index = pd.Index([7, 7, 9], name="id")
    frame = pd.DataFrame(COLUMNS, index=index).astype({"i": "int16", "k": "category"})
    frame.attrs["made"] = "here"
    before = frame.copy()
    out = sw.rolling(frame, on="t", windows=2, aggs=AGGS)
    assert out.index.equals(index)
    assert out.index.name == "id"
    assert out.attrs == {"made": "here"}
    assert out.dtypes[list(COLUMNS)].equals(before.dtypes)
    pd.testing.assert_frame_equal(frame, before)
    assert out.dtypes[["n_2", "s_2", "m_2"]].tolist() == ["int64", "int64", "float64"]
    assert out["last_2"].dtype == frame["k"].dtype


def test_numpy_floats_write_missing_values_as_nan() -> None:
    frame = pd.DataFrame({"t": [1, 2, 3], "x": [1.0, np.nan, 4.0]})
    aggs = {"n": sw.count("x"), "s": sw.sum("x"), "low": sw.min("x")}
    out = sw.rolling(frame, on="t", windows=1, aggs=aggs, nan="raise")
    assert out["n_1"].tolist() == [1, 0, 1]
    np.testing.assert_array_equal(out["s_1"], [1.0, np.nan, 4.0])
    arrow = frame.astype({"x": pd.ArrowDtype(pa.float64())})
    arrow["x"] = pd.array(pa.array([1.0, float("nan"), 4.0]), dtype=arrow["x"].dtype)
    out = sw.rolling(arrow, on="t", windows=1, aggs=aggs)
    assert out["n_1"].tolist() == [1, 1, 1]


def test_pandas_results_follow_the_flavour_of_their_column() -> None:
    numpy = pd.DataFrame({"t": [1, 2], "x": [1, 2], "b": [True, False]})
    aggs = {"n": sw.count(), "s": sw.sum("x"), "m": sw.mean("x"), "top": sw.max("b")}

    def dtypes(frame: pd.DataFrame, **options: Any) -> list[str]:
        out = sw.rolling(frame, on="t", windows=1, aggs=aggs, **options)
        return [str(dtype) for dtype in out.dtypes[3:]]

    assert dtypes(numpy) == ["int64", "int64", "float64", "bool"]
    # If a window can be empty, integers must have a missing value.
    for options in ({"closed": "left"}, {"min_rows": 2}):
        assert dtypes(numpy, **options) == ["int64", "Int64", "float64", "boolean"]
    masked = numpy.astype({"x": "Int32", "b": "boolean"})
    assert dtypes(masked) == ["int64", "Int64", "Float64", "boolean"]
    arrow = numpy.convert_dtypes(dtype_backend="pyarrow")
    assert dtypes(arrow) == [
        "int64",
        "int64[pyarrow]",
        "double[pyarrow]",
        "bool[pyarrow]",
    ]


def test_pandas_index_levels_can_be_named() -> None:
    times = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-04"], utc=True)
    frame = pd.DataFrame({"x": [1, 2, 3]}, index=pd.Index(times, name="day"))
    aggs = {"s": sw.sum("x"), "when": sw.arg_max(by="x")}
    out = sw.rolling(frame, on="day", windows="48h", aggs=aggs)
    assert out["s_48h"].tolist() == [1, 3, 3]
    assert out["when_48h"].tolist() == list(times)
    many = frame.assign(k=["a", "b", "a"]).set_index("k", append=True)
    assert sw.rolling(many, on="day", by="k", windows="7d", aggs=aggs)[
        "s_7d"
    ].tolist() == [
        1,
        2,
        4,
    ]


def test_polars_keeps_its_types() -> None:
    frame = pl.DataFrame(
        {
            "t": [dt.datetime(2020, 1, day) for day in (1, 2, 4)],
            "x": pl.Series([1, None, 3], dtype=pl.UInt8),
            "c": pl.Series(["b", "a", "b"], dtype=pl.Categorical),
            "e": pl.Series(["b", "a", "b"], dtype=pl.Enum(["b", "a"])),
        }
    )
    aggs = {
        "s": sw.sum("x"),
        "top": sw.max("x"),
        "c": sw.last("c"),
        "e": sw.first("e"),
        "all": sw.collect("x"),
        "when": sw.arg_max(by="x"),
    }
    out = sw.rolling(frame, on="t", by="c", windows="7d", aggs=aggs)
    assert out.columns[:4] == frame.columns
    assert out.select(frame.columns).equals(frame)
    assert out.dtypes[4:] == [
        pl.Int64,
        pl.UInt8,
        pl.Categorical,
        pl.Enum(["b", "a"]),
        pl.List(pl.UInt8),
        frame["t"].dtype,
    ]
    assert out["all_7d"].to_list() == [[1], [], [1, 3]]
    assert out["s_7d"].to_list() == [1, None, 4]


def test_nan_in_polars_is_a_value_and_null_is_missing() -> None:
    frame = pl.DataFrame({"t": [1, 2, 3], "x": [1.0, float("nan"), None]})
    out = sw.rolling(frame, on="t", windows=1, aggs={"n": sw.count("x")})
    assert out["n_1"].to_list() == [1, 1, 0]


@pytest.mark.parametrize(
    "make", [pa.table, pd.DataFrame, pl.DataFrame, pa.record_batch]
)
def test_empty_frames(make: Any) -> None:
    empty = pa.table(COLUMNS).slice(0, 0)
    table = {
        pd.DataFrame: empty.to_pandas,
        pl.DataFrame: lambda: pl.from_arrow(empty),
        pa.table: lambda: empty,
        pa.record_batch: lambda: pa.RecordBatch.from_pydict(
            {name: [] for name in COLUMNS}, schema=empty.schema
        ),
    }[make]()
    out = sw.rolling(table, on="t", by="k", windows=[2, sw.rows(2)], aggs=AGGS)
    assert len(out) == 0
    assert type(out) is type(table)
    assert out.shape[1] == len(COLUMNS) + 2 * len(AGGS)


# NumPy


def arrays(**others):
    return {
        "t": np.array([1, 2, 4, 4]),
        "k": np.array(["a", "b", "a", "b"]),
        "x": np.array([10, 20, 30, 40], "int32"),
        "y": np.array([0.5, np.nan, 1.5, 2.5]),
        **others,
    }


def test_a_mapping_of_arrays_comes_back_as_one():
    table = arrays()
    aggs = {"n": sw.count(), "sum": sw.sum("x"), "top": sw.max("x"), "y": sw.max("y")}
    out = sw.rolling(table, on="t", by="k", windows=[2], aggs=aggs)
    want = sw.rolling(pa.table(table), on="t", by="k", windows=[2], aggs=aggs)
    assert list(out) == want.column_names
    assert all(out[name] is table[name] for name in table)
    for name in ("n_2", "sum_2", "top_2", "y_2"):
        assert type(out[name]) is np.ndarray
        np.testing.assert_array_equal(out[name], want[name].to_numpy())
    assert [out[name].dtype.name for name in ("n_2", "sum_2", "top_2", "y_2")] == [
        *("int64", "int64", "int32", "float64")
    ]


def test_missing_numpy_results_are_masked_or_nan():
    aggs = {"sum": sw.sum("x"), "mean": sw.mean("x"), "when": sw.last("at")}
    at = np.array(["2024-01-01"] * 4, "M8[D]")
    out = sw.rolling(arrays(at=at), on="t", windows=[2], closed="left", aggs=aggs)
    assert isinstance(out["sum_2"], np.ma.MaskedArray)
    assert out["sum_2"].tolist() == [None, 10, 20, 20]
    assert np.isnan(out["mean_2"]).tolist() == [True, False, False, False]
    assert np.isnat(out["when_2"]).tolist() == [True, False, False, False]


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_times_of_numpy_in_any_unit(unit, order):
    times = np.array(["2024-01-01", "2024-01-02", "2024-01-05"]).astype(f"M8[{unit}]")
    table = {
        "t": times.astype(f"{order}M8[{unit}]"),
        "x": np.array([1, 2, 3], f"{order}i8"),
    }
    out = sw.rolling(table, on="t", windows=["2d"], aggs={"s": sw.sum("x")})
    assert out["s_2d"].tolist() == [1, 3, 3]
    hops = sw.hopping(table, on="t", window="2d", aggs={"s": sw.sum("x")})
    assert hops["s"].sum() == 6
    assert hops["window_end"].dtype.kind == "M"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"t": np.arange(3), "x": np.arange(2)}, "differ in length: t 3, x 2"),
        ({"t": np.zeros((2, 2))}, "'t' has 2 dimensions"),
        ({"t": [1, 2]}, "a dict of NumPy arrays, or .* of it"),
        ({}, "is not a table"),
        ({1: np.arange(3)}, "the name of a column is a str, got 1"),
        ({"t": np.arange(2), "x": np.array([1, "a"], object)}, "has no Arrow type"),
        ({"t": np.array(["NaT"], "M8[s]"), "x": np.arange(1)}, "no time in row 0"),
    ],
)
def test_mappings_that_are_no_tables(table, message):
    with pytest.raises(sw.SpecError, match=message):
        sw.rolling(table, on="t", windows=[2], aggs={"s": sw.sum("x")})


def test_an_error_of_a_stream_passes_through():
    def batches():
        yield pa.record_batch({"t": [1]})
        raise OverflowError("row 7 is broken")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"t": pa.int64()}), batches())
    with pytest.raises(pa.ArrowInvalid, match="row 7 is broken"):
        sw.rolling(reader, on="t", windows=[2], aggs={"n": sw.count()})


@pytest.mark.parametrize("count", [1, 9])
def test_columns_and_metadata_stay_beside_few_results_and_many(count: int) -> None:
    schema = pa.schema(
        [pa.field("t", pa.int64(), nullable=False), pa.field("x", pa.int64())],
        metadata={"made": "by hand"},
    )
    parts = [pa.record_batch([[1, 2], [3, None]], schema=schema)] * 2
    table = pa.Table.from_batches(parts)
    aggs = {f"n{at}": sw.count("x") for at in range(count)}
    answers = sw.rolling(table, on="t", windows=[2], aggs=aggs)
    assert answers.select(["t", "x"]).equals(table, check_metadata=True)
    assert answers.column_names == ["t", "x", *(f"{name}_2" for name in aggs)]
    assert answers.schema.metadata == schema.metadata
    for name in aggs:
        assert answers[f"{name}_2"].to_pylist() == [2, 2, 2, 2]
