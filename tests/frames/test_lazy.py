"""Tables that are not in memory yet: LazyFrames, relations, streams."""

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw

FRAME = pl.DataFrame(
    {"t": [5, 1, 3, 9], "k": ["a", "b", "a", "a"], "x": [1.5, 2.5, 3.5, 4.5]}
)
REQUEST = {"on": "t", "by": "k", "aggs": {"n": sw.count(), "x": sw.max("x")}}


def test_lazy_frames_stay_lazy() -> None:
    eager = sw.rolling(FRAME, windows=3, **REQUEST)
    lazy = sw.rolling(FRAME.lazy(), windows=3, **REQUEST)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == eager.schema
    assert lazy.collect().equals(eager)


def test_filters_that_follow_do_not_change_answers() -> None:
    late = pl.col("t") > 4
    eager = sw.rolling(FRAME, windows=3, **REQUEST).filter(late).select("x_3")
    lazy = (
        FRAME.lazy().pipe(sw.rolling, windows=3, **REQUEST).filter(late).select("x_3")
    )
    assert lazy.collect().equals(eager)
    first = FRAME.lazy().pipe(sw.rolling, windows=3, **REQUEST).head(1)
    assert first.collect().equals(sw.rolling(FRAME, windows=3, **REQUEST).head(1))


def test_hops_of_lazy_frames() -> None:
    eager = sw.hopping(FRAME, window=4, every=2, **REQUEST)
    lazy = sw.hopping(FRAME.lazy(), window=4, every=2, **REQUEST)
    assert lazy.collect().equals(eager)


@pytest.mark.parametrize("table", [FRAME, FRAME.lazy()])
def test_lazy_query_points(table: pl.DataFrame | pl.LazyFrame) -> None:
    labels = pl.DataFrame({"t": [6, 2], "k": ["a", "b"], "y": [True, False]})
    eager = sw.rolling(FRAME, windows=3, **REQUEST, at=labels)
    lazy = sw.rolling(table, windows=3, **REQUEST, at=labels.lazy())
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(eager)
    assert sw.rolling(table, windows=3, **REQUEST, at=labels).equals(eager)


def test_lazy_frames_are_checked_before_collecting() -> None:
    with pytest.raises(sw.SpecError, match="no column 'z'"):
        sw.rolling(FRAME.lazy(), on="t", windows=3, aggs={"z": sw.sum("z")})
    joined = sw.aggregation(lambda x: (x,), lambda a, b: a + b, list, ())
    with pytest.raises(sw.SpecError, match=r"call \.collect\(\) first"):
        sw.rolling(FRAME.lazy(), on="t", windows=3, aggs={"z": joined("x")})


def test_relations_and_streams() -> None:
    table = FRAME.to_arrow()
    expected = sw.rolling(table, windows=3, **REQUEST)
    with duckdb.connect() as connection:
        relation = connection.from_arrow(table)
        got = sw.rolling(relation, windows=3, **REQUEST)
        again = connection.sql("SELECT x_3 FROM got").fetchall()
    assert isinstance(got, pa.Table)
    assert [x for (x,) in again] == got["x_3"].to_pylist()
    assert got["x_3"].to_pylist() == expected["x_3"].to_pylist()
    reader = table.to_reader(max_chunksize=1)
    assert sw.rolling(reader, windows=3, **REQUEST)["n_3"].to_pylist() == [2, 1, 1, 1]
