"""Batch results on Spark equal those over tables, row by row."""

import datetime as dt
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest
from random_tables import AGGS, random_table, same, with_batches
from shared_aggregations import Longest

import slidewise as sw
from slidewise.spark import explain, hopping, rolling, skew, skew_split, sort_key

DATA = Path(
    os.environ.get(
        "SLIDEWISE_TEST_DATA", Path(__file__).parents[3].joinpath("shared", "data")
    )
)


def timed(table: pa.Table) -> pa.Table:
    """Integer times as timestamps, some milliseconds apart."""
    for name in ("t", "a"):
        ticks = pc.multiply(table[name], 1000)
        at = table.column_names.index(name)
        table = table.set_column(at, name, ticks.cast(pa.timestamp("us", "UTC")))
    return table


def in_spark(spark: Any, table: pa.Table) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(table, from_arrow_schema(table.schema, True))


def by_row(frame: Any) -> pa.Table:
    return frame.toArrow().sort_by("row")


def expect_same(frame: Any, expected: pa.Table) -> None:
    got = by_row(frame)
    same(got, expected.cast(got.schema))


@pytest.mark.parametrize("by", [None, "k", ["k", "g"]])
@pytest.mark.parametrize("ties", ["peers", "rows"])
def test_every_window_and_aggregation(spark: Any, by: Any, ties: str) -> None:
    table = timed(random_table(random.Random(f"{by} {ties}"), 300, keys=5, span=90))
    call = {
        "on": "t",
        "by": by,
        "windows": ["1ms", "17ms", sw.rows(9)],
        "aggs": AGGS,
        "ties": ties,
    }
    frame = rolling(in_spark(spark, table), then_by="row", **call)
    expect_same(frame, sw.rolling(table, **call))


@pytest.mark.parametrize("closed", ["left", "both", "neither"])
@pytest.mark.parametrize("offset", [None, "5ms", "-5ms"])
def test_windows_with_other_ends(spark: Any, closed: str, offset: Any) -> None:
    table = timed(random_table(random.Random(closed), 200, keys=4, span=60))
    call = {
        "on": "t",
        "by": "k",
        "windows": ["2ms", "30ms"],
        "aggs": {"n": sw.count(), "sum": sw.sum("i"), "max": sw.max("x")},
        "closed": closed,
        "offset": offset,
        "min_rows": 2,
    }
    expect_same(
        in_spark(spark, table).transform(rolling(**call)),
        sw.rolling(table, **call),
    )


def test_as_of_arrival(spark: Any) -> None:
    rng = random.Random(3)
    table = with_batches(rng, timed(random_table(rng, 300, keys=4, span=60)))
    call = {
        "on": "t",
        "by": "k",
        "windows": ["9ms", sw.rows(5)],
        "aggs": AGGS,
        "arrival": ["batch", "a"],
    }
    frame = rolling(in_spark(spark, table), then_by="row", **call)
    # Rows of equal arrival have arrived together.
    expect_same(frame, sw.rolling(table, at=table, **call))


@pytest.mark.parametrize(
    "windows",
    [
        {"window": "10ms", "every": "3ms"},
        {"window": "4ms", "empty": True},
        {"window": sw.session("3ms")},
    ],
)
def test_hops_and_sessions(spark: Any, windows: dict[str, Any]) -> None:
    table = timed(random_table(random.Random(4), 300, keys=4, span=200))
    call = {"on": "t", "by": ["k", "g"], "aggs": AGGS, **windows}
    frame = hopping(in_spark(spark, table), then_by="row", **call)
    expect_same_windows(frame, sw.hopping(table, **call), ["k", "g"])


def test_calls_follow_and_stand_beside_one_another(spark: Any) -> None:
    table = timed(random_table(random.Random(9), 120, keys=3, span=60))
    one: dict[str, Any] = {"on": "t", "by": "k", "windows": "9ms"}
    one["aggs"] = {"n": sw.count()}
    two = {**one, "by": "g", "aggs": {"most": sw.max("n_9ms")}}
    df = in_spark(spark, table)
    first, second = (rolling(rolling(df, **one), **two) for _ in range(2))
    frame = first.where("row < 50").union(second.where("row >= 50"))
    expect_same(frame, sw.rolling(sw.rolling(table, **one), **two))


SPLIT: list[Any] = [
    ("sample", None, {}),
    (3, "k", {}),
    ("sample", ["k", "z"], {"closed": "left"}),
    (4, "k", {"closed": "neither", "offset": "20ms"}),
    (3, ["k", "z"], {"closed": "both", "offset": "-40ms"}),
    (5, "k", {"windows": ["9ms", sw.rows(1), sw.rows(40)], "ties": "rows"}),
    ("sample", None, {"windows": sw.rows(300)}),
    (4, "k", {"arrival": ["batch", "a"]}),
    (3, None, {"arrival": "a", "offset": "-9ms", "closed": "left"}),
]


@pytest.fixture
def small_keys_are_skewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skew, "_MIN_SKEWED_ROWS", 60)
    monkeypatch.setattr(skew, "_MIN_SKEWED_ROWS_EXPLICIT", 40)


def with_zeros(rng: random.Random) -> pa.Table:
    table = timed(random_table(rng, 600, keys=3, span=2_000))
    zeros = [rng.choice([0.0, -0.0, None]) for _ in range(600)]
    return with_batches(rng, table).append_column("z", pa.array(zeros, pa.float64()))


def is_split(frame: Any) -> bool:
    return skew_split.SPLIT in frame._jdf.queryExecution().toString()


@pytest.mark.parametrize(("split", "by", "more"), SPLIT)
@pytest.mark.usefixtures("small_keys_are_skewed")
def test_skewed_keys_are_split(spark: Any, split: Any, by: Any, more: Any) -> None:
    table = with_zeros(random.Random(f"{by} {more}"))
    call = {"on": "t", "by": by, "windows": ["3ms", "90ms"], "aggs": AGGS, **more}
    df = in_spark(spark, table)
    frame = rolling(df, then_by="row", split=split, partitions=8, **call)
    assert frame.columns == [*table.column_names, *frame.columns[table.num_columns :]]
    assert is_split(frame)
    arrived = {"at": table} if "arrival" in more else {}
    expect_same(frame, sw.rolling(table, **call, **arrived))


@pytest.mark.parametrize(
    ("split", "by", "hops"),
    [
        ("sample", None, {"window": "10ms", "every": "3ms"}),
        (3, "k", {"window": "60ms", "offset": "7ms"}),
        (5, ["k", "z"], {"window": "3ms", "every": "40ms"}),
    ],
)
@pytest.mark.usefixtures("small_keys_are_skewed")
def test_windows_of_skewed_keys(spark: Any, split: Any, by: Any, hops: Any) -> None:
    table = with_zeros(random.Random(f"{by}"))
    call = {"on": "t", "by": by, "aggs": AGGS, **hops}
    df = in_spark(spark, table)
    frame = hopping(df, then_by="row", split=split, partitions=8, **call)
    assert is_split(frame)
    expect_same_windows(frame, sw.hopping(table, **call), by or [])


def expect_same_windows(frame: Any, expected: pa.Table, by: str | list[str]) -> None:
    names = [*([by] if isinstance(by, str) else by), "window_end"]
    order = [(name, "ascending") for name in names]
    numbers = pa.array(range(len(expected)), pa.int64())
    got = frame.toArrow().sort_by(order).append_column("row", numbers)
    expected = expected.sort_by(order).append_column("row", numbers)
    same(got, expected.cast(got.schema))


@pytest.mark.usefixtures("small_keys_are_skewed")
def test_a_call_runs_jobs_only_for_splits(spark: Any) -> None:
    df = in_spark(spark, with_zeros(random.Random(5)))
    call = {"on": "t", "by": "k", "windows": "9ms", "aggs": {"n": sw.count()}}
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("planning", "")
    for split in ("auto", False, "sample", 3):
        before = len(tracker.getJobIdsForGroup("planning"))
        rolling(df, partitions=8, split=split, **call)
        jobs = len(tracker.getJobIdsForGroup("planning")) - before
        assert (jobs > 0) == (split in ("sample", 3)), split


@pytest.mark.usefixtures("small_keys_are_skewed")
def test_a_split_point_with_too_few_overlap_rows_is_dropped(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = timed(random_table(random.Random(2), 600, keys=1, span=2_000))
    call = {"on": "t", "windows": sw.rows(30), "aggs": {"n": sw.count("i")}}
    df = in_spark(spark, table)

    def too_few(ticks: Any, start: int, *_: Any) -> Any:
        return skew_split.SplitPoint(start, start - 5_000, start, min_rows=29)

    monkeypatch.setattr(skew, "_split_point", too_few)
    assert not is_split(rolling(df, then_by="row", split=3, **call))
    # This looks as if rows were deleted after they were counted.
    monkeypatch.setattr(skew, "_with_enough_overlap", lambda df, spec, splits: splits)
    frame = rolling(df, then_by="row", split=3, **call)
    with pytest.raises(Exception, match="the rows have changed since"):
        frame.collect()


def test_keys_are_split_at_times_of_any_type(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skew, "_MIN_SKEWED_ROWS_EXPLICIT", 10)
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=n // 3) for n in range(200)]
    columns = {
        "day": pa.array(days, pa.date32()),
        "local": pa.array(days, pa.date32()).cast(pa.timestamp("us")),
        "tick": pa.array([n - 100 for n in range(200)], pa.int8()),
        "since": pa.array([n * 7 for n in range(200)], pa.duration("us")),
    }
    for on, window in (("day", "2d"), ("local", "36h"), ("tick", 5), ("since", "20us")):
        table = pa.table({**columns, "row": range(200)})
        call = {"on": on, "windows": window, "aggs": {"n": sw.count()}}
        frame = rolling(in_spark(spark, table), split=4, **call)
        expect_same(frame, sw.rolling(table, **call))


PLAIN = {
    "n": sw.count(),
    "sum": sw.sum("i"),
    "max": sw.max("x"),
    "dev": sw.stddev("x"),
    "mid": sw.median("i"),
}


@pytest.mark.parametrize("split", [False, 3])
@pytest.mark.parametrize("kind", ["instant", "day", "tick"])
@pytest.mark.usefixtures("small_keys_are_skewed")
def test_rows_sorted_by_the_sort_key(spark: Any, kind: str, split: Any) -> None:
    table = random_table(random.Random(kind), 600, keys=9, span=2_000)
    ticks = pc.subtract(table["t"], 1_000).cast(pa.int32())
    columns = {
        "instant": ticks.cast(pa.int64()).cast(pa.timestamp("us", "UTC")),
        "day": ticks.cast(pa.date32()),
        "tick": ticks.cast(pa.int16()),
    }
    table = table.set_column(table.column_names.index("t"), "t", columns[kind])
    windows = {"instant": ["9us", "80us"], "day": ["9d", "80d"], "tick": [9, 80]}[kind]
    df = in_spark(spark, table)
    call = {"on": "t", "by": ["k", "g"], "aggs": PLAIN}
    frame = rolling(df, windows=windows, split=split, partitions=3, **call)
    assert sort_key.KEY_GROUP in frame._jdf.queryExecution().toString()
    expect_same(frame, sw.rolling(table, windows=windows, **call))
    frame = hopping(df, window=windows[0], split=split, partitions=3, **call)
    expect_same_windows(frame, sw.hopping(table, window=windows[0], **call), ["k", "g"])


def test_times_beyond_the_sort_key(spark: Any) -> None:
    rows = "id % 2 k", "timestamp_micros(if(id > 2, 9223372036854775807, id)) t"
    df = spark.range(5).selectExpr(*rows)
    call = {"on": "t", "by": "k", "windows": "1h", "aggs": {"n": sw.count()}}
    with pytest.raises(Exception, match="drop such rows, or pass then_by='t'"):
        rolling(df, **call).toArrow()
    got = rolling(df, then_by="t", **call).select("n_1h").toArrow()
    assert sorted(got["n_1h"].to_pylist()) == [1, 1, 1, 1, 2]


def test_all_types_of_keys_and_values(spark: Any) -> None:
    count = 40
    rng = random.Random(9)

    def some(kind: pa.DataType, values: list[Any]) -> pa.Array:
        return pa.array([rng.choice([None, *values]) for _ in range(count)], kind)

    moment = dt.datetime(2018, 7, 3, 17, 48, 39, 250)
    columns = {
        "bool": some(pa.bool_(), [True, False]),
        "int8": some(pa.int8(), [-1, 7]),
        "float": some(pa.float32(), [0.0, -0.0, 1.5, float("nan")]),
        "double": some(pa.float64(), [0.0, -0.0, float("inf"), float("nan")]),
        "text": some(pa.string(), ["", "ä", "b"]),
        "bytes": some(pa.binary(), [b"", b"\x00"]),
        "decimal": some(pa.decimal128(9, 2), [dt_decimal("1.50"), dt_decimal("-2")]),
        "date": some(pa.date32(), [moment.date()]),
        "instant": some(pa.timestamp("us", "UTC"), [moment]),
        "local": some(pa.timestamp("us"), [moment]),
        "duration": some(pa.duration("us"), [dt.timedelta(microseconds=5)]),
    }
    nested = {
        "struct": some(
            pa.struct([("a", pa.float64()), ("b", pa.string())]),
            [{"a": zero, "b": "x"} for zero in (0.0, -0.0, None, float("nan"))],
        ),
        "list": some(pa.list_(pa.float32()), [[], [0.0], [-0.0], [None, 1.5]]),
    }
    ids = {"t": pa.array(range(count), pa.int64()), "row": range(count)}
    table = pa.table({**columns, **nested, **ids})
    df = in_spark(spark, table)
    aggs = {}
    for name in columns:
        aggs[f"first {name}"] = sw.first(name)
        aggs[f"kinds {name}"] = sw.count_distinct(name)
        aggs[f"all {name}"] = sw.collect(name)
    names = list(columns)
    by = (["bool"], names[1:3], names[3:6], names[6:9], names[9:])
    for keys in (*by, ["struct"], ["list", "int8"]):
        call = {"on": "t", "by": keys, "windows": [3, 100], "aggs": aggs}
        expected = sw.rolling(table, **call)
        got = by_row(rolling(df, then_by="row", **call))
        assert got.column_names == expected.column_names
        for column in expected.column_names:
            ours, theirs = (one[column].to_pylist() for one in (got, expected))
            assert repr(ours) == repr(theirs), (keys, column)


def dt_decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


def test_strings_keep_their_collation(spark: Any, tmp_path: Path) -> None:
    """Those that pass through, and results that are values of a column."""
    rows = "values (1, 'B', 'b'), (2, 'b', 'c'), (3, 'a', 'd') as _(t, s, k)"
    df = spark.sql(f"select t, s collate UTF8_LCASE s, k from {rows}")
    aggs = {
        "last": sw.last("s"),
        "all": sw.collect("s"),
        "text": sw.concat("s"),
        "best": sw.arg_max("s", by="k"),
        "n": sw.count("s"),
    }
    frame = rolling(df, on="t", windows=2, aggs=aggs, then_by="k")
    kind = df.schema["s"].dataType
    text = "string collate UTF8_LCASE"
    kinds = [field.dataType.simpleString() for field in frame.schema][3:]
    assert kinds == [text, f"array<{text}>", text, text, "bigint"]
    windows = hopping(df, on="t", window=2, aggs=aggs, then_by="k")
    assert [windows.schema[name].dataType for name in ("last", "text")] == [kind] * 2
    timed = df.selectExpr("timestamp_seconds(t) t", "s", "k").schema
    stream = spark.readStream.schema(timed).parquet(str(tmp_path))
    call = {"on": "t", "windows": "2s", "aggs": aggs, "then_by": "k", "late": "1s"}
    assert [field.dataType for field in rolling(stream, **call).schema][1:] == [
        field.dataType for field in frame.schema
    ][1:]
    # Spark compares the results by the collation.
    found = frame.where("last_2 = 'B' and best_2 = 'B'").orderBy("t").collect()
    assert [(row.t, row.s, row.last_2, row.all_2) for row in found] == [
        (1, "B", "B", ["B"]),
        (2, "b", "b", ["B", "b"]),
    ]
    lower = df.selectExpr("t", "cast(lower(s) as string) s")
    grouped = rolling(lower, on="t", by="s", windows=2, aggs={"n": sw.count()})
    counts = sorted((row.t, row.s, row.n_2) for row in grouped.collect())
    assert counts == [(1, "b", 1), (2, "b", 2), (3, "a", 1)]


def test_every_aggregation_has_a_type_in_spark(spark: Any) -> None:
    table = timed(random_table(random.Random(7), 80, keys=2, span=60))
    aggs = {
        name: make(column)
        for name, make, column in (
            ("mean", sw.mean, "x"),
            ("product", sw.product, "i"),
            ("range", sw.range, "t"),
            ("any", sw.any, "w"),
            ("bits", sw.bit_or, "i"),
            ("top", sw.top_k, "i"),
            ("mode", sw.mode, "s"),
            ("rank", sw.rank, "i"),
            ("share", sw.percent_rank, "x"),
            ("distinct", sw.collect_distinct, "s"),
            ("about", sw.approx_count_distinct, "s"),
            ("filter", sw.bloom, "s"),
            ("counts", sw.count_min, "s"),
            ("often", sw.heavy_hitters, "i"),
            ("low", sw.approx_quantile, "x"),
        )
    }
    call = {"on": "t", "by": "k", "windows": "20ms", "aggs": aggs}
    frame = rolling(in_spark(spark, table), then_by="row", **call)
    got, expected = by_row(frame), sw.rolling(table, **call)
    for name in expected.column_names:
        ours, theirs = got[name].to_pylist(), expected[name].to_pylist()
        assert repr(ours) == repr(theirs), name


def test_custom_aggregations(spark: Any) -> None:
    table = timed(random_table(random.Random(8), 120, keys=3, span=60))
    pairs = sw.aggregation(
        lift=lambda value: (value, 1),
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lower=lambda pair: pair[0] / pair[1],
        identity=(0, 0),
        commutative=True,
        returns=float,
    )
    aggs = {"long": Longest("s"), "avg": pairs("i"), "n": sw.count()}
    call = {"on": "t", "by": "k", "windows": "20ms", "aggs": aggs}
    frame = rolling(in_spark(spark, table), **call)
    assert dict(frame.dtypes)["avg_20ms"] == "double"
    expect_same(frame, sw.rolling(table, **call))


def greatest(a: float, b: float) -> float:
    return a if a > b else b


def test_native_custom_aggregations(spark: Any) -> None:
    pytest.importorskip("numba", reason="Numba is not installed: slidewise[numba]")
    table = timed(random_table(random.Random(8), 60, keys=3, span=60))
    most = sw.native(greatest, "float64", commutative=True)
    call = {"on": "t", "by": "k", "windows": "20ms", "aggs": {"most": most("x")}}
    frame = rolling(in_spark(spark, table), **call)
    expect_same(frame, sw.rolling(table, **call))


def test_the_same_call_as_on_a_stream(spark: Any) -> None:
    table = timed(random_table(random.Random(8), 50, keys=3, span=60))
    call = {"on": "t", "by": "k", "windows": "20ms", "aggs": {"n": sw.count()}}
    frame = rolling(
        in_spark(spark, table),
        late="10 minutes",
        emit="final",
        late_rows="flag",
        **call,
    )
    assert frame.columns[-1] == "_late"
    assert not any(row._late for row in frame.collect())
    expect_same(frame.drop("_late"), sw.rolling(table, **call))
    frame = rolling(in_spark(spark, table), late_rows="correct", **call)
    assert frame.columns[-2:] == ["_correction", "_late"]


def test_odd_names_of_columns(spark: Any) -> None:
    table = pa.table({"a b": [1, 1, 2], "t.x": [1, 2, 3], "q`q": [1, 2, 3]})
    call = {"on": "t.x", "by": "a b", "windows": 5, "aggs": {"s.s": sw.sum("q`q")}}
    got = rolling(in_spark(spark, table), split=2, **call).toArrow()
    assert got.sort_by("t.x")["s.s_5"].to_pylist() == [1, 3, 3]


def test_no_rows(spark: Any) -> None:
    df = spark.createDataFrame([], "k string, t timestamp, x double")
    frame = rolling(df, on="t", by="k", windows="1h", aggs={"m": sw.max("x")})
    assert frame.collect() == []
    assert frame.schema["m_1h"].dataType.typeName() == "double"
    empty = hopping(df, on="t", by="k", window="1h", aggs={"m": sw.max("x")})
    assert empty.collect() == []


def test_citi_bike_trips(spark: Any) -> None:
    path = DATA / "citibike-2018-07-sample.csv"
    if not path.exists():
        pytest.skip(f"the Citi Bike sample is not in {DATA}")
    from slidewise.io.readers import read_table

    times = ["starttime", "stoptime"]
    table = read_table(path, on=times, time_format="%m/%d/%y %H:%M:%S")
    table = table.append_column("row", pa.array(range(len(table)), pa.int64()))
    df = in_spark(spark, table)
    aggs = {
        "n": sw.count(),
        "avg": sw.mean("tripduration"),
        "dev": sw.stddev("tripduration"),
        "max": sw.max("tripduration"),
        "last": sw.last("bikeid"),
    }
    call = {
        "on": "starttime",
        "by": "start station id",
        "windows": ["1h", "24h"],
        "aggs": aggs,
    }
    expect_same(rolling(df, then_by="row", **call), sw.rolling(table, **call))
    call["arrival"] = "stoptime"
    expected = sw.rolling(table, at=table, **call)
    expect_same(rolling(df, then_by="row", **call), expected)


def test_the_aggregation_of_the_guide(spark: Any) -> None:
    guide = Path(__file__).parents[2] / "docs" / "spark.md"
    blocks = guide.read_text(encoding="utf-8").split("```python\n")[1:]
    (code,) = [block.partition("```")[0] for block in blocks if "class Spread" in block]
    # It is defined as in a notebook: workers cannot import it from a module.
    made: dict[str, Any] = {"sw": sw, "__name__": "__main__"}
    exec(code, made)
    table = random_table(random.Random(5), 60, keys=2, span=40)
    call = {"on": "t", "by": "k", "windows": 9, "aggs": {"wide": made["Spread"]("x")}}
    expect_same(rolling(in_spark(spark, table), **call), sw.rolling(table, **call))


def test_unused_columns_pass_through(spark: Any) -> None:
    df = spark.range(50).selectExpr(
        "id % 3 k",
        "id t",
        "array(id, null) items",
        "map('a', id) pairs",
        "struct(id x, string(id) y) both",
        "cast(null as void) nothing",
    )
    frame = rolling(df, on="t", by="k", windows=9, aggs={"n": sw.count()})
    assert frame.schema.fields[:-1] == df.schema.fields
    got = sorted(frame.drop("n_9").collect(), key=lambda row: row.t)
    assert got == df.collect()


def test_a_spec_in_place_of_keywords(spark: Any) -> None:
    table = timed(random_table(random.Random(5), 50, keys=3, span=60))
    frame = in_spark(spark, table)
    spec = sw.Spec(on="t", by="k", windows="30ms", aggs={"n": sw.count()})
    expect_same(rolling(frame, spec), sw.rolling(table, spec))
    expect_same(frame.transform(rolling(spec=spec)), sw.rolling(table, spec))
    assert "rolling" in explain(frame, spec)
    hops = sw.Spec(on="t", by="k", window="30ms", aggs={"n": sw.count()})
    order = [("k", "ascending"), ("window_start", "ascending")]
    got, expected = hopping(frame, hops).toArrow(), sw.hopping(table, hops)
    assert got.sort_by(order).equals(expected.sort_by(order).cast(got.schema))
    with pytest.raises(sw.SpecError, match="give it to hopping"):
        rolling(frame, hops)
