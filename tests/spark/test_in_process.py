"""Calls for tables refuse a Spark DataFrame, which they would have to collect."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.classic.dataframe import DataFrame as Classic

import slidewise as sw

ROWS = pa.table({"t": [1, 2], "x": [1, 2]})
COUNT = {"n": sw.count()}


def keyed(batch: Any) -> None:
    sw.KeyedWindows(on="t", windows=5, aggs=COUNT).ingest(batch)


CALLS: dict[str, Callable[[Any], object]] = {
    "rolling": lambda df: sw.rolling(df, on="t", windows=5, aggs=COUNT),
    "rolling at": lambda df: sw.rolling(ROWS, on="t", windows=5, aggs=COUNT, at=df),
    "hopping": lambda df: sw.hopping(df, on="t", window=5, aggs=COUNT),
    "explain": lambda df: sw.explain(df, on="t", windows=5, aggs=COUNT),
    "ingest": keyed,
    "values": lambda df: sw.Window(sw.sum("x")).insert_many([1, 2], df),
    "times": lambda df: sw.Window(sw.sum()).insert_many(df, [1, 2]),
    "values of one column": lambda df: sw.Window(sw.sum()).insert_many([1, 2], df),
    "shared": lambda df: sw.SharedWindow(sw.sum(), ranges=[5]).insert_many([1, 2], df),
}


class Unread(Classic):
    """A DataFrame without a session: reading its rows fails."""

    def __init__(self) -> None: ...

    def __new__(cls) -> Any:
        return object.__new__(cls)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise AssertionError("the rows of the DataFrame were collected")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_dataframe_of_spark_is_refused(call: Callable[[Any], object]) -> None:
    with pytest.raises(
        sw.SpecError, match=r"PySpark DataFrame.*slidewise\.spark\.rolling"
    ) as raised:
        call(Unread())
    assert "\n" not in str(raised.value)


def test_a_dataframe_of_spark_connect_is_refused() -> None:
    connect = pytest.importorskip("pyspark.sql.connect.dataframe")
    df = object.__new__(connect.DataFrame)
    with pytest.raises(sw.SpecError, match=r"slidewise\.spark\.rolling"):
        CALLS["rolling"](df)


def test_a_dataframe_with_a_session_is_refused(spark: Any) -> None:
    df = spark.createDataFrame([(1, 2)], "t long, x long")
    for call in CALLS.values():
        with pytest.raises(sw.SpecError, match=r"slidewise\.spark\.rolling"):
            call(df)
