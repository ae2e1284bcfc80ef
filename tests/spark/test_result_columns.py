"""`names=`, `prefix=`, `fill=` and windows of an aggregation, as over tables."""

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from random_tables import random_table
from streams import LATE, FileSource, assert_same, read, start, written
from test_batch import expect_same, in_spark, timed

import slidewise as sw
from slidewise.spark import hopping, rolling

OPTIONS: dict[str, Any] = {
    "names": "{window} {agg}",
    "prefix": "p_",
    "fill": {"avg": -1},
}
AGGS = {
    "n": sw.count(),
    "avg": sw.mean("x"),
    "kinds": sw.count_distinct("x", windows="9ms"),
    "max": sw.max("x", windows=["50ms", sw.rows(3)]),
}


@pytest.mark.parametrize("split", [False, 3])
def test_batches_name_and_fill_results(spark: Any, split: Any) -> None:
    table = timed(random_table(random.Random(f"{split}"), 200, keys=3, span=90))
    call: dict[str, Any] = {"on": "t", "by": "k", "windows": "17ms", "aggs": AGGS}
    frame = rolling(
        in_spark(spark, table), then_by="row", split=split, **call, **OPTIONS
    )
    expected = sw.rolling(table, **call, **OPTIONS)
    assert frame.columns[-5:] == [*sw.Spec(**call, **OPTIONS).results]
    assert not expected["p_17ms avg"].null_count
    expect_same(frame, expected)


def test_hopping_batches_name_and_fill_results(spark: Any) -> None:
    table = timed(random_table(random.Random("hops"), 200, keys=3, span=90))
    aggs = {"n": sw.count(), "avg": sw.mean("x")}
    call: dict[str, Any] = {"on": "t", "by": "k", "window": "9ms", "aggs": aggs}
    found = hopping(in_spark(spark, table), **call, **OPTIONS, empty=True).toArrow()
    expected = sw.hopping(table, **call, **OPTIONS, empty=True)
    order = [("k", "ascending"), ("window_start", "ascending")]
    assert found.column_names == expected.column_names
    found, expected = (each.sort_by(order) for each in (found, expected))
    assert found.to_pydict() == expected.cast(found.schema).to_pydict()


@pytest.mark.parametrize("emit", ["final", "arrival", "slide"])
def test_streams_name_and_fill_results(spark: Any, tmp_path: Path, emit: str) -> None:
    source = FileSource(tmp_path, 7, LATE)
    source.write(3)
    aggs = {"n": sw.count(), "avg": sw.mean("x")}
    own = {
        "max": sw.max("x", windows="1s"),
        "kinds": sw.count_distinct("x", windows="2s"),
    }
    call: dict[str, Any] = {"on": "t", "by": "key", **OPTIONS}
    if emit == "slide":
        call |= {"window": "10s", "every": "10s", "aggs": aggs, "min_rows": 2}
    else:
        call |= {"windows": "5s", "aggs": aggs | own}
    function = hopping if emit == "slide" else rolling
    answers = function(read(spark, tmp_path), **call, late=LATE, emit=emit)
    start(answers, tmp_path, "out").awaitTermination()
    ours = written(spark, tmp_path, "out")
    by = ["key", "window_end"] if emit == "slide" else ["id"]
    assert {*ours.column_names} >= {f"p_{10 if emit == 'slide' else 5}s avg"}
    names = {name: call.pop(name) for name in ("names", "prefix")}
    plain, named = sw.Spec(**call).results, sw.Spec(**call, **names).results
    expected = source.expected(emit, call)
    columns = dict(zip(plain, named, strict=True))
    found = [columns.get(name, name) for name in expected.column_names]
    assert_same(ours, expected.rename_columns(found), by)


def test_values_that_do_not_fit_are_refused_before_a_job(spark: Any) -> None:
    table = timed(random_table(random.Random("refused"), 10, keys=2, span=9))
    call: dict[str, Any] = {"on": "t", "windows": "9ms", "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match="fill='x' does not fit the result 'n_9ms'"):
        rolling(in_spark(spark, table), **call, fill="x")
    with pytest.raises(sw.SpecError, match="emit='none' is for KeyedWindows, which"):
        rolling(**call, emit="none", late="1s")


def test_lists_structs_and_decimals_keep_their_types(spark: Any) -> None:
    table = timed(random_table(random.Random("lists"), 60, keys=2, span=40))
    cents = [
        None if row % 5 == 0 else Decimal(row * 7 % 31).scaleb(-2) for row in range(60)
    ]
    table = table.append_column("d", pa.array(cents, pa.decimal128(9, 2)))
    aggs = {
        "p": sw.quantile("i", [0.5, 0.9]),
        "last": sw.last_distinct("g", 2),
        "counts": sw.value_counts("g"),
        "floats": sw.value_counts("x", 2),
        "mixed": sw.entropy("i"),
        "bins": sw.histogram("i", edges=[-3, 3]),
        "best": sw.top_k("g", 2, by="i"),
        "mean": sw.mean("d"),
        "mid": sw.median("d"),
    }
    call: dict[str, Any] = {"on": "t", "by": "k", "windows": "17ms", "aggs": aggs}
    frame = rolling(in_spark(spark, table), then_by="row", **call)
    assert frame.columns[-10:] == [*sw.Spec(**call).results]
    got = frame.toArrow().sort_by("row")
    expected = sw.rolling(table, **call).cast(got.schema)
    assert got["mean_17ms"].type == pa.decimal128(38, 8)
    assert got.to_pylist() == expected.to_pylist()
