"""Bulk inserts from arrays of every library."""

import array
import re
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

MIN, MAX = -(2**63), 2**63 - 1


def filled(agg, pairs, **options):
    window = sw.Window(agg, **options)
    for time, value in pairs:
        window.insert(time, value)
    return window


INTS = {
    "list": lambda v: v,
    "tuple": tuple,
    "generator": lambda v: (x for x in v),
    "numpy": np.array,
    "numpy int32": lambda v: np.array(v, dtype="int32"),
    "numpy big endian": lambda v: np.array(v, dtype=">i8"),
    "numpy strided": lambda v: np.repeat(np.array(v), 2)[::2],
    "numpy objects": lambda v: np.array(v, dtype=object),
    "array": lambda v: array.array("q", v),
    "memoryview": lambda v: memoryview(array.array("q", v)),
    "array of ints": lambda v: array.array("i", v),
    "arrow": pa.array,
    "arrow slice": lambda v: pa.array([99, *v, 99])[1:-1],
    "arrow int8": lambda v: pa.array(v, pa.int8()),
    "arrow dictionary": lambda v: pa.array(v).dictionary_encode(),
    "arrow chunks": lambda v: pa.chunked_array([v[:1], v[1:]]),
    "pandas": pd.Series,
    "pandas index": pd.Index,
    "pandas arrow": lambda v: pd.Series(v, dtype="int64[pyarrow]"),
    "pandas masked": lambda v: pd.Series(v, dtype="Int64"),
    "pandas array": lambda v: pd.array(v, dtype="Int64"),
    "polars": pl.Series,
}


@pytest.mark.parametrize("times", INTS)
@pytest.mark.parametrize("values", INTS)
def test_arrays_of_every_make(times, values):
    w = sw.Window({"s": sw.sum(), "all": sw.collect()})
    w.insert_many(INTS[times]([3, 1, 2]), INTS[values]([30, 10, 20]))
    assert w.query() == {"s": 60, "all": [10, 20, 30]}
    assert w.query(2) == {"s": 50, "all": [20, 30]}
    assert w.dtype == "int64"
    assert w.oldest == 1


NULLS = {
    "list": lambda v: v,
    "arrow": pa.array,
    "arrow slice": lambda v: pa.array([9, None, *v])[2:],
    "numpy objects": lambda v: np.array(v, dtype=object),
    "numpy mask": lambda v: np.ma.MaskedArray(
        [x or 0 for x in v], [x is None for x in v]
    ),
    "pandas": lambda v: pd.Series(v),
    "pandas masked": lambda v: pd.Series(v, dtype="Int64"),
    "polars": pl.Series,
}


@pytest.mark.parametrize("make", NULLS)
@pytest.mark.parametrize("count", [3, 300])
def test_nulls_in_arrays(make, count):
    values = [None if i % 3 == 1 else i for i in range(count)]
    w = sw.Window(
        {
            "rows": sw.count(),
            "s": sw.sum("x"),
            "n": sw.count("x"),
            "ones": sw.count("y"),
            "all": sw.collect("x"),
        }
    )
    w.insert_many(range(count), {"x": NULLS[make](values), "y": NULLS[make](values)})
    there = [value for value in values if value is not None]
    assert w.query() == {
        "rows": count,
        "s": sum(there),
        "n": len(there),
        "ones": len(there),
        "all": there,
    }


TIME_ARRAYS = {
    "list": lambda t: list(t),
    "numpy": lambda t: np.array(t, dtype="datetime64[us]"),
    "numpy s": lambda t: np.array(t, dtype="datetime64[s]"),
    "numpy h": lambda t: np.array(t, dtype="datetime64[h]"),
    "numpy big endian": lambda t: np.array(t, dtype=">M8[us]"),
    "arrow us": lambda t: pa.array(t, pa.timestamp("us")),
    "arrow s": lambda t: pa.array(t, pa.timestamp("s")),
    "arrow ns": lambda t: pa.array(t, pa.timestamp("ns")),
    "pandas": lambda t: pd.Series(list(t)),
    "pandas index": lambda t: pd.DatetimeIndex(list(t)),
    "pandas objects": lambda t: pd.Series(list(t), dtype=object),
    "polars": lambda t: pl.Series(list(t)),
}


@pytest.mark.parametrize("first", TIME_ARRAYS)
@pytest.mark.parametrize("then", TIME_ARRAYS)
def test_arrays_of_instants(first, then):
    times = [datetime(2024, 3, 1, hour) for hour in (3, 1, 2)]
    later = [datetime(2024, 3, 2, hour) for hour in (3, 1, 2)]
    w = sw.Window(sw.collect())
    w.insert_many(TIME_ARRAYS[first](times), [3, 1, 2])
    w.insert_many(TIME_ARRAYS[then](later), [6, 4, 5])
    assert w.query() == [1, 2, 3, 4, 5, 6]
    assert w.query(datetime(2024, 3, 1, 2), datetime(2024, 3, 2, 1)) == [2, 3, 4]
    assert pd.Timestamp(w.oldest) == pd.Timestamp(times[1])
    if first.startswith("numpy"):
        assert isinstance(w.oldest, np.datetime64)
    elif first in ("pandas", "pandas index", "arrow ns"):
        assert type(w.oldest) is pd.Timestamp
    else:
        assert type(w.oldest) is datetime


def test_arrays_of_instants_with_a_zone():
    times = pd.Series(pd.to_datetime(["2024-10-27 02:30", "2024-10-26 00:00"]))
    aware = times.dt.tz_localize("Europe/Berlin", ambiguous=True)
    w = sw.Window(sw.collect())
    w.insert_many(aware, [2, 1])
    assert w.youngest == aware[0]
    assert str(w.youngest.tzinfo) == "Europe/Berlin"
    w = sw.Window(sw.collect())
    w.insert_many(pa.array(aware), [2, 1])
    assert w.youngest == aware[0]
    with pytest.raises(
        sw.SpecError, match="are not of the kind of this window's times"
    ):
        w.insert_many(times, [2, 1])
    w = sw.Window(sw.collect())
    w.insert_many(pl.Series(times.tolist()).dt.replace_time_zone("+02:00"), [2, 1])
    assert w.query() == [1, 2]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([MAX], pa.timestamp("us")),
        pa.array([0, MIN], pa.timestamp("s", tz="UTC")),
        pa.array([2**31 - 1], pa.date32()),
        pytest.param(
            pd.Series(np.array([2**60], "M8[s]")),
            marks=pytest.mark.skipif(
                pd.__version__ < "3", reason="pandas 2 has a Timestamp of this time"
            ),
        ),
    ],
)
def test_times_that_could_not_be_given_back(times):
    w = sw.Window(sw.sum())
    with pytest.raises(sw.SpecError, match="since 1970 is a time out of the range of"):
        w.insert_many(times, [1] * len(times))
    assert len(w) == 0


def test_arrays_of_dates():
    for make in (pa.array, pl.Series, list, lambda d: pa.array(d, pa.date64())):
        w = sw.Window(sw.collect())
        w.insert_many(make([date(2024, 3, 1), date(2024, 2, 29)]), [2, 1])
        assert w.items() == [(date(2024, 2, 29), [1]), (date(2024, 3, 1), [2])]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (pa.array([1, None, 3]), "row 1 has no time"),
        (pd.Series([1.0, None]), "row 1 has no time"),
        (pd.to_datetime(pd.Series(["2024-01-01", None])), "row 1 has no time"),
        (np.array(["2024-01-01", "NaT"], "M8[s]"), r"row 1 has no time \(NaT"),
        ([1, None], r"row 1: a time is missing \(None\)"),
        ([1, 2.0], "row 1: 2.0 is a float"),
        ([1, "2"], "row 1: '2' is text"),
        ([1, datetime(2024, 1, 1)], "row 1: .*not of the kind of this window's times"),
        (np.array([1.0, 2.0]), "the times are of type double: floats cannot hold"),
        (np.array(["a", "b"]), "row 0: .*is text"),
        (np.array([True, False]), "the times are of type bool"),
        (pl.Series(["a", "b"]), "the times are of type"),
        (pa.array([2**63], pa.uint64()), r"row 0: 9223372036854775808 \(uint64\)"),
        (np.zeros((2, 2), "int64"), "an array of 2 dimensions"),
        (np.zeros((2, 2), "M8[s]"), "times have 2 dimensions"),
        (np.array(["2024"], "M8[Y]"), "have no unit of fixed length"),
        (5, "insert_many takes times as an array.*got int 5"),
    ],
)
def test_arrays_that_hold_no_times(times, message):
    w = sw.Window(sw.sum())
    with pytest.raises(sw.SpecError, match=message):
        w.insert_many(times, [1, 2])
    assert len(w) == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1], "there are 2 times, but values has 1"),
        (np.array([1, 2, 3]), "there are 2 times, but values has 3"),
        (None, "needs a value for every time"),
        ([2**53 + 1, 2.5], "row 1: 2.5 is a float"),
        ([1, "a"], "row 1: str 'a' is not a number"),
        ([1, 2**64], "row 1: int 18446744073709551616 does not fit int64"),
        (np.array([1, 2j]), "row 0: complex .*is not a number"),
        (np.zeros((2, 2)), "an array of 2 dimensions"),
        (7, "insert_many takes values as an array.*got int 7"),
    ],
)
def test_values_that_do_not_fit(values, message):
    w = sw.Window(sw.sum())
    with pytest.raises(sw.SpecError, match=message):
        w.insert_many([1, 2], values)
    assert len(w) == 0
    assert w.dtype is None
    w.insert(datetime(2024, 1, 1), 1.5)  # no type was decided


def test_arrays_of_the_wrong_type_for_a_window():
    w = filled(sw.sum(), [(1, 1)], dtype="int64")
    with pytest.raises(
        sw.SpecError, match="the values are float64, but this window holds"
    ):
        w.insert_many([2, 3], np.array([1.0, 2.0]))
    w = filled(sw.sum(), [(1, 1.5)])
    w.insert_many([2, 3], np.array([1, 2]))
    assert w.query() == 4.5
    w = filled({"s": sw.sum("x")}, [(1, {"x": 2**53 + 1})])
    with pytest.raises(sw.SpecError, match='column "x": the values are float64'):
        w.insert_many([2], {"x": np.array([0.5])})


COLUMNS = {
    "mapping": lambda x, y: {"x": x, "y": y, "z": None},
    "mapping of arrays": lambda x, y: {"x": np.array(x), "y": pa.array(y)},
    "rows": lambda x, y: [{"x": a, "y": b} for a, b in zip(x, y, strict=True)],
    "generator": lambda x, y: ({"x": a, "y": b} for a, b in zip(x, y, strict=True)),
    "pandas": lambda x, y: pd.DataFrame({"y": y, "x": x, "z": y}),
    "polars": lambda x, y: pl.DataFrame({"y": y, "x": x, "z": y}),
    "arrow": lambda x, y: pa.table({"y": y, "x": x, "z": y}),
    "record batch": lambda x, y: pa.record_batch({"y": y, "x": x, "z": y}),
}


@pytest.mark.parametrize("make", COLUMNS)
def test_columns_of_every_make(make):
    w = sw.Window({"x": sw.sum("x"), "y": sw.collect("y"), "when": sw.arg_min(by="x")})
    w.insert_many([2, 1, 3], COLUMNS[make]([20, 10, 5], ["b", "a", "c"]))
    assert w.query() == {"x": 35, "y": ["a", "b", "c"], "when": 3}


def test_missing_columns():
    w = sw.Window({"x": sw.sum("x"), "y": sw.sum("y")})
    for use in (
        lambda: w.insert(1, {"x": 1, "z": 2}),
        lambda: w.insert_many([1], {"x": [1], "z": [2]}),
    ):
        with pytest.raises(sw.SpecError, match=r"""no "y": it has 'x', 'z'"""):
            use()
    with pytest.raises(sw.SpecError, match='row 1: the value has no "y"'):
        w.insert_many([1, 2], [{"x": 1, "y": 2}, {"x": 1}])
    with pytest.raises(sw.SpecError, match="the table has no column 'y'; it has 'x'"):
        w.insert_many([1], pa.table({"x": [1]}))
    with pytest.raises(
        sw.SpecError, match='aggregates columns, such as "x": give a mapping'
    ):
        w.insert(1, 5)
    with pytest.raises(
        sw.SpecError, match='row 0: this window aggregates columns, such as "x"'
    ):
        w.insert_many([1], [5])
    with pytest.raises(sw.SpecError, match='column "x", row 1: str'):
        w.insert_many([1, 2], {"x": [1, "a"], "y": [1, 2]})
    with pytest.raises(sw.SpecError, match='times, but column "y" has 1'):
        w.insert_many([1, 2], {"x": [1, 2], "y": [1]})
    with pytest.raises(
        sw.SpecError, match=r"dict .*is not a number: to aggregate columns, name"
    ):
        sw.Window(sw.sum()).insert(1, {"x": 1})
    assert len(w) == 0


def test_count_needs_no_values():
    w = sw.Window(sw.count())
    w.insert(1)
    w.insert(2, "anything")
    w.insert_many([3, 4])
    w.insert_many([5, 6], ["any", "thing"])
    with pytest.raises(sw.SpecError, match="there are 2 times, but values has 1"):
        w.insert_many([7, 8], [1])
    assert w.query() == 6


def test_empty_bulk():
    w = sw.Window(sw.sum())
    for times, values in (
        ([], []),
        (np.array([], "i8"), np.array([], "f8")),
        ((), pa.array([])),
    ):
        w.insert_many(times, values)
    assert w.query() is None
    w.insert(datetime(2024, 1, 1), 1)  # no type was decided


def test_all_null_bulk_decides_no_type():
    w = sw.Window({"n": sw.count(), "s": sw.sum()})
    w.insert_many([1, 2], pa.array([None, None], pa.int64()))
    w.insert_many([3, 4], [None, None])
    w.insert_many([5, 6], pd.Series([None, None], dtype="float64"))
    assert w.dtype is None
    w.insert_many([7], [0.5])
    assert w.query() == {"n": 7, "s": 0.5}
    w.check()


def test_large_bulk_equals_single_inserts():
    rng = np.random.default_rng(1)
    times = rng.integers(0, 50_000, 100_000)
    values = rng.integers(-1000, 1000, 100_000)
    w = sw.Window(sw.sum())
    w.insert_many(times, values)
    w.check()
    assert w.query() == values.sum()
    assert len(w) == len(np.unique(times))
    order = np.argsort(times, kind="stable")
    sorted_window = sw.Window(sw.sum())
    sorted_window.insert_many(times[order], values[order])
    assert sorted_window.items() == w.items()
    for lo, hi in ((0, 10), (777, 23_456), (49_000, 60_000)):
        inside = (times >= lo) & (times <= hi)
        assert w.query(lo, hi) == values[inside].sum()


@pytest.mark.parametrize(
    ("values", "total"),
    [
        (np.array([True, False, True]), 2),
        (pa.array([True, None, True]), 2),
        (pa.array([Decimal("1.5"), Decimal("2.25"), None]), Decimal("3.75")),
        (np.array([1.5, 2.0, 0.0], dtype="longdouble"), 3.5),
        (np.array([1.5, 2.0, 0.0], dtype="float16"), 3.5),
        (pa.array([1.5, 2.0, None], pa.float32()), 3.5),
        (pd.Series([1, 2, None], dtype=object), 3),
        (pd.Series([1.5, 2.5, pd.NA], dtype="Float64"), 4.0),
        ([1, pd.NA, 2], 3),
    ],
)
def test_numbers_of_every_type(values, total):
    w = sw.Window(sw.sum())
    w.insert_many([1, 2, 3], values)
    assert w.query() == total
    assert type(w.query()) is type(total)


@pytest.mark.parametrize(
    ("values", "collected"),
    [
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([True, False]), [True, False]),
        (pa.array([True, None]), [True]),
        (np.array(["2024-01-01", "2024-01-02"], "M8[D]"), None),
        (pa.array([[1], None]), [[1]]),
        (pd.Series(["a", None], dtype=object), ["a"]),
        (pd.Series(["a", None]).astype("category"), ["a"]),
        (pa.array([None, None]), []),
        ("xy", ["x", "y"]),
    ],
)
def test_collecting_from_arrays_of_every_type(values, collected):
    w = sw.Window({"all": sw.collect(), "n": sw.count()})
    w.insert_many([1, 2], values)
    expected = list(values) if collected is None else collected
    assert w.query() == {"all": expected, "n": 2}
    assert [type(one) for one in w.query()["all"]] == [type(one) for one in expected]


def test_counting_in_arrays_of_every_type():
    for values in (["a", None], pa.array(["a", None]), pl.Series([[1], None])):
        w = sw.Window(sw.count("x"))
        w.insert_many([1, 2], {"x": values})
        assert w.query() == 1


def test_a_stream_is_read_once():
    class Stream:
        def __init__(self, values):
            self.chunks = pa.chunked_array([values])

        def __arrow_c_stream__(self, requested_schema=None):
            chunks, self.chunks = self.chunks, None
            return chunks.__arrow_c_stream__()

    w = sw.Window({"n": sw.count("x"), "all": sw.collect("x"), "rows": sw.count()})
    w.insert_many(Stream([1, 2]), {"x": Stream(["a", None])})
    assert w.query() == {"n": 1, "all": ["a"], "rows": 2}


def test_a_chunk_may_be_an_empty_slice():
    times = pa.array([1, 2], pa.timestamp("us"))
    w = sw.Window(sw.sum())
    w.insert_many(pa.chunked_array([times, times[2:]]), [10, 20])
    assert w.query() == 30


def test_an_array_is_no_table():
    w = sw.Window(sw.sum("x"))
    for values in (pa.chunked_array([[1]]), pl.Series([1]), np.array([1])):
        with pytest.raises(sw.SpecError, match='aggregates columns, such as "x"'):
            w.insert_many([1], values)


def test_instants_beyond_the_unit_of_the_window():
    w = sw.Window(sw.sum())
    w.insert_many(np.array([1], "M8[ns]"), [1])
    with pytest.raises(sw.SpecError, match="a time in D does not fit int64 in ns"):
        w.insert_many(np.array([2**40], "M8[D]"), [1])
    w = sw.Window(sw.sum())
    w.insert_many(np.array([1], "M8[h]"), [1])
    with pytest.raises(sw.SpecError, match=r"row 1: the time is not a whole.*\(h\)"):
        w.insert_many(np.array([3600, 5], "M8[s]"), [1, 2])
    w.insert_many(np.array([-3600, 7200], "M8[s]"), [1, 2])
    assert w.oldest == np.datetime64(-1, "h")
    assert len(w) == 3


def test_zones_of_arrow_columns():
    def column(zone):
        return pa.array([0], pa.timestamp("s", tz=zone))

    for zone in ("UTC", "+02:00", "-0930", "Europe/Berlin", "Etc/GMT+5"):
        w = sw.Window(sw.sum())
        w.insert_many(column(zone), [1])
        assert w.oldest == datetime(1970, 1, 1, tzinfo=UTC)
        other = sw.Window.from_bytes(w.to_bytes())
        assert other.oldest.utcoffset() == w.oldest.utcoffset()
    for zone in ("Mars/Olympus", "+99:00", "../etc"):
        with pytest.raises(sw.SpecError, match=re.escape(f"no time zone '{zone}'")):
            sw.Window(sw.sum()).insert_many(column(zone), [1])


def test_objects_of_polars_are_not_their_addresses():
    things = [object(), object()]
    series = pl.Series(things, dtype=pl.Object)
    window = sw.Window(sw.collect())
    window.insert_many([1, 2], series)
    assert window.query() == things
    table = pl.DataFrame({"t": [1, 2], "o": series})
    with pytest.raises(sw.SpecError, match="'o' holds Python objects"):
        sw.rolling(table, on="t", windows=1, aggs={"l": sw.collect("o")})


def test_bulk_entries_without_values() -> None:
    window = sw.Window({"n": sw.count(), "s": sw.sum("x")})
    window.insert(1, None)
    window.insert_many([2, 3, 4], [None, {"x": 5}, None])
    assert window.query() == {"n": 4, "s": 5}
