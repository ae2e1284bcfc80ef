"""`sw.rolling` and `sw.hopping` from within each library of frames.

Every frame gives the same results and comes back as what it was.
"""

import datetime as dt
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw
import slidewise.pandas
import slidewise.polars

EIGHT, HALF_PAST, TEN = (
    dt.datetime(2026, 6, 1, *time) for time in [(8, 0), (8, 30), (10, 0)]
)
ROWS = {
    "t": [HALF_PAST, EIGHT, TEN, HALF_PAST],
    "k": ["a", "a", "a", "b"],
    "x": [3, 1, 4, 2],
}
LABELS = {"asked": [HALF_PAST, TEN], "who": ["b", "a"]}
AGGS = {"n": sw.count(), "sum": sw.sum("x")}
REQUEST = {"on": "t", "by": "k", "windows": "1h", "aggs": AGGS}


def narwhals_of(native: Any, version: str = "") -> Any:
    narwhals = pytest.importorskip("narwhals", reason="narwhals is not installed")
    if version:
        narwhals = pytest.importorskip(f"narwhals.{version}")
    return narwhals.from_native(native)


def indexed(columns: dict[str, list[Any]]) -> pd.DataFrame:
    """A frame whose first column is the index, without a name."""
    frame = pd.DataFrame(columns)
    return frame.set_index(frame.columns[0]).rename_axis(None)


MAKE: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas, times in the index": indexed,
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "Arrow": pa.table,
    "Arrow batch": lambda columns: pa.record_batch(columns),
    "NumPy": lambda columns: {
        name: np.array(values, "M8[us]" if isinstance(values[0], dt.datetime) else None)
        for name, values in columns.items()
    },
    "narwhals of pandas": lambda columns: narwhals_of(pd.DataFrame(columns)),
    "narwhals of polars": lambda columns: narwhals_of(pl.DataFrame(columns)),
    "narwhals of polars, lazy": lambda columns: narwhals_of(pl.LazyFrame(columns)),
    "narwhals of Arrow": lambda columns: narwhals_of(pa.table(columns)),
    "narwhals of pandas, lazy": lambda columns: narwhals_of(
        pd.DataFrame(columns)
    ).lazy(),
    "narwhals of DuckDB": lambda columns: narwhals_of(
        duckdb.from_arrow(pa.table(columns))
    ),
    "stable narwhals": lambda columns: narwhals_of(pa.table(columns), "stable.v1"),
}
FRAMES = pytest.mark.parametrize("kind", MAKE)


def call(name: str, table: Any, *args: Any, **keywords: Any) -> Any:
    """A function of slidewise, at home where the frame has a `sw`."""
    if hasattr(table, "sw"):
        return getattr(table.sw, name)(*args, **keywords)
    return getattr(sw, name)(table, *args, **keywords)


def on_of(kind: str, on: str) -> dict[str, str]:
    """`on=`, unless the times are in the index."""
    return {} if kind.endswith("index") else {"on": on}


def listed(frame: Any, name: str) -> list[Any]:
    """The values of a column of any frame."""
    if hasattr(frame, "collect"):
        frame = frame.collect()
    column = frame[name]
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    raise AssertionError(type(column))


def type_of(frame: Any) -> tuple[type, type]:
    return type(frame), type(frame.to_native() if hasattr(frame, "to_native") else None)


@FRAMES
def test_rolling_appends_to_every_frame(kind: str) -> None:
    table = MAKE[kind](ROWS)
    request = {"by": "k", "windows": "1h", "aggs": AGGS, **on_of(kind, "t")}
    got = call("rolling", table, **request)
    assert type_of(got) == type_of(table)
    assert listed(got, "sum_1h") == [4, 1, 4, 2]
    assert listed(got, "n_1h") == [2, 1, 1, 1]
    assert listed(got, "x") == ROWS["x"]
    named = call("rolling", table, **request, prefix="k_", names="{window} {agg}")
    assert listed(named, "k_1h sum") == [4, 1, 4, 2]


@FRAMES
def test_hopping_gives_a_frame_of_the_same_library(kind: str) -> None:
    table = MAKE[kind](ROWS)
    got = call("hopping", table, window="1h", aggs=AGGS, **on_of(kind, "t"))
    assert type_of(got) == type_of(table)
    assert listed(got, "sum") == [6, 4]
    assert [f"{start}"[:16] for start in listed(got, "window_start")] in (
        ["2026-06-01 08:00", "2026-06-01 10:00"],
        ["2026-06-01T08:00", "2026-06-01T10:00"],
        ["1780300800000000", "1780308000000000"],  # a list of NumPy's datetime64[us]
    )


@FRAMES
def test_labels_have_columns_of_other_names(kind: str) -> None:
    table, labels = MAKE[kind](ROWS), MAKE[kind](LABELS)
    request = {"by": "k", "windows": "1h", "aggs": AGGS, **on_of(kind, "t")}
    request |= {"at": labels, "at_by": {"k": "who"}, "prefix": "f_"}
    if at_on := on_of(kind, "asked"):
        request["at_on"] = at_on["on"]
    got = call("rolling", table, **request)
    assert type_of(got) == type_of(labels)
    assert listed(got, "f_sum_1h") == [2, 4]
    assert listed(got, "who") == LABELS["who"]


@FRAMES
def test_frames_without_the_column_are_refused(kind: str) -> None:
    table = MAKE[kind](ROWS)
    with pytest.raises(sw.SpecError, match="the table has no column 'y'; it has "):
        call("rolling", table, windows=9, aggs={"s": sw.sum("y")}, **on_of(kind, "t"))
    with pytest.raises(sw.SpecError, match="the table has no column 'at'; it has "):
        call("hopping", table, on="at", window="1h", aggs=AGGS)


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars, lazy"])
def test_a_spec_or_features_come_first(kind: str) -> None:
    table, spec = MAKE[kind](ROWS), sw.Spec(**REQUEST)
    assert listed(table.sw.rolling(spec), "sum_1h") == [4, 1, 4, 2]
    features = sw.Features(key=spec, all=spec.replace(by=None, prefix=""))
    got = table.sw.rolling(features)
    assert listed(got, "key_sum_1h") == [4, 1, 4, 2]
    assert listed(got, "all_sum_1h") == [6, 1, 4, 6]
    hops = sw.Spec(on="t", window="1h", aggs=AGGS)
    assert listed(table.sw.hopping(hops), "n") == [3, 1]
    assert table.sw.explain(spec).startswith("rolling over t: 4 rows")


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars, lazy"])
def test_the_methods_take_the_arguments_of_the_functions(kind: str) -> None:
    home = MAKE[kind](ROWS).sw
    for function in (sw.rolling, sw.hopping, sw.explain):
        taken = inspect.signature(getattr(home, function.__name__)).parameters
        assert [*taken] == [*inspect.signature(function).parameters][1:]
    with pytest.raises(TypeError, match=r"no argument 'window_size': did you mean"):
        home.rolling(on="t", window_size="1h", aggs=AGGS)
    with pytest.raises(TypeError, match="by name: on='t', windows='1h'"):
        home.rolling("t", "1h", AGGS)


class Counted:
    """A LazyFrame that counts how often its rows were computed."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.times = 0
        self.frame = pl.LazyFrame(columns).map_batches(self.seen)

    def seen(self, rows: pl.DataFrame) -> pl.DataFrame:
        self.times += 1
        return rows


def test_the_schema_of_a_lazy_frame_is_known_before_its_rows() -> None:
    rows, labels = Counted(ROWS), Counted({"t": [TEN], "k": ["a"]})
    rolled = rows.frame.sw.rolling(**REQUEST)
    assert rolled.collect_schema().names() == ["t", "k", "x", "n_1h", "sum_1h"]
    hops = rows.frame.sw.hopping(on="t", window="1h", aggs=AGGS)
    assert hops.collect_schema()["window_end"] == pl.Datetime("us")
    asked = rows.frame.sw.rolling(**REQUEST, at=labels.frame)
    assert asked.collect_schema().names() == ["t", "k", "n_1h", "sum_1h"]
    assert (rows.times, labels.times) == (0, 0)
    assert asked.collect()["sum_1h"].to_list() == [4]
    assert (rows.times, labels.times) == (1, 1)


def failing(message: str) -> pl.LazyFrame:
    def fail(rows: pl.DataFrame) -> pl.DataFrame:
        raise KeyError(message)

    return pl.LazyFrame(ROWS).map_batches(fail)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_errors_of_a_lazy_frame_come_through(engine: Any) -> None:
    with pytest.raises(KeyError, match="of the rows"):
        failing("of the rows").sw.rolling(**REQUEST).collect(engine=engine)
    labels = failing("of the labels")
    with pytest.raises(KeyError, match="of the labels"):
        pl.LazyFrame(ROWS).sw.rolling(**REQUEST, at=labels).collect(engine=engine)
    asked = failing("of the rows").sw.rolling(**REQUEST, at=pl.LazyFrame(ROWS))
    with pytest.raises(KeyError, match="of the rows"):
        asked.collect(engine=engine)
    text = pl.LazyFrame({**ROWS, "x": ["1", "2", "3", "four"]})
    cast = text.with_columns(pl.col("x").cast(pl.Int64))
    with pytest.raises(pl.exceptions.InvalidOperationError, match="four"):
        cast.sw.rolling(**REQUEST).collect(engine=engine)
    large = pl.LazyFrame({**ROWS, "x": [2**62] * 4})
    with pytest.raises(sw.ResultOverflowError, match="does not fit int64"):
        large.sw.rolling(**REQUEST).collect(engine=engine)
    with pytest.raises(FileNotFoundError):
        pl.scan_parquet("nowhere.parquet").sw.rolling(**REQUEST)


def test_a_lazy_narwhals_frame_stays_lazy() -> None:
    rows = Counted(ROWS)
    rolled = sw.rolling(narwhals_of(rows.frame), **REQUEST)
    assert rolled.collect_schema().names() == ["t", "k", "x", "n_1h", "sum_1h"]
    assert rows.times == 0
    assert listed(rolled, "sum_1h") == [4, 1, 4, 2]


def test_a_relation_gives_an_arrow_table_that_sql_reads() -> None:
    with duckdb.connect() as connection:
        connection.register("given", pa.table(ROWS))
        rolled = sw.rolling(connection.sql("FROM given"), **REQUEST)
        assert isinstance(rolled, pa.Table)
        sums = connection.sql("SELECT sum_1h FROM rolled ORDER BY x").fetchall()
    assert sums == [(1,), (2,), (4,), (4,)]


def test_pandas_keeps_the_index_of_times() -> None:
    frame = indexed(ROWS)
    before = frame.copy()
    got = frame.sw.rolling(by="k", windows="1h", aggs=AGGS)
    assert got.index.equals(frame.index)
    assert got.index.name is None
    assert [*got.columns] == ["k", "x", "n_1h", "sum_1h"]
    pd.testing.assert_frame_equal(frame, before)
    ahead = frame.assign(hour=[1, 2, 3, 4]).sw.rolling(
        None, on="hour", windows=2, aggs=AGGS
    )
    assert ahead["sum_2"].tolist() == [3, 4, 5, 6]
    named = frame.rename_axis("k")  # which is a column, too
    got = named.sw.rolling(by="k", windows="1h", aggs=AGGS)
    assert got.index.name == "k"
    assert got["sum_1h"].tolist() == [4, 1, 4, 2]
    taken = frame.assign(index=0).sw.rolling(windows="1h", aggs=AGGS)
    assert taken["n_1h"].tolist() == [3, 1, 1, 3]


def test_pandas_takes_the_level_of_times() -> None:
    frame = pd.DataFrame(ROWS).set_index(["k", "t"])
    got = frame.sw.rolling(by="k", windows="1h", aggs=AGGS)
    assert got["sum_1h"].tolist() == [4, 1, 4, 2]
    assert got.index.equals(frame.index)
    assert got.index.names == ["k", "t"]


def test_labels_of_pandas_have_times_in_the_index_or_a_column() -> None:
    frame, labels = indexed(ROWS), indexed({"asked": [TEN, HALF_PAST], "k": ["a", "b"]})
    request = {"by": "k", "windows": "1h", "aggs": AGGS}
    got = frame.sw.rolling(**request, at=labels)
    assert got["sum_1h"].tolist() == [4, 2]
    assert got.index.equals(labels.index)
    assert got.index.name is None
    column = labels.reset_index(names="asked")
    got = frame.sw.rolling(**request, at=column, at_on="asked")
    assert got["sum_1h"].tolist() == [4, 2]
    same = column.rename(columns={"asked": "t"})
    got = frame.rename_axis("t").sw.rolling(**request, at=same)
    assert got["sum_1h"].tolist() == [4, 2]
    with pytest.raises(sw.SpecError, match=r"of times in its index.* by at_on="):
        frame.sw.rolling(**request, at=column)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.reset_index(drop=True), "no level .* RangeIndex: name "),
        (lambda frame: frame.to_period("h"), r"PeriodIndex: give frame.to_timestamp\("),
        (lambda frame: frame.set_index(frame.index, append=True), "has 2 levels of"),
    ],
)
def test_pandas_without_one_index_of_times_is_refused(
    change: Callable[[pd.DataFrame], pd.DataFrame], message: str
) -> None:
    with pytest.raises(sw.SpecError, match=message):
        change(indexed(ROWS)).sw.rolling(windows="1h", aggs=AGGS)


def test_the_function_still_asks_for_the_name_of_an_index() -> None:
    with pytest.raises(sw.SpecError, match=r"on= is missing.*rename_axis\('t'\)"):
        sw.rolling(indexed(ROWS), windows="1h", aggs=AGGS)


def test_without_scikit_learn_the_import_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "slidewise.sklearn", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'slidewise\[sklearn\]'"):
        importlib.import_module("slidewise.sklearn")
