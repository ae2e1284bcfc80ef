"""Streams, compared with the same call over the rows that they accepted."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from parity import HOPPING, ORDERED, QUERIES, Script
from streams import (
    AGGS,
    LATE,
    ROLLING,
    SCHEMA,
    START,
    FileSource,
    assert_same,
    flights,
    last_of,
    read,
    start,
    start_keyed,
    trips,
    written,
)

import slidewise as sw
from slidewise.errors import SpecError
from slidewise.spark import hopping, metrics, rolling

sf = pytest.importorskip("pyspark.sql.functions", reason="slidewise[spark]")


@pytest.mark.parametrize("seed", range(4))
def test_streams_equal_tables(spark: Any, tmp_path: Path, seed: int) -> None:
    """Every `emit`, with restarts; `make test-streams` runs more streams."""
    names = list(QUERIES)[2 * seed : 2 * seed + 2]
    counts = Script(spark, tmp_path, seed, 6, names).run()
    assert counts["cells"] > 0 < counts["late"]


SHORT = {**ROLLING, "windows": ["10s", "50s"]}
CORRECTED = {"slide": {**HOPPING, "window": "40s"}} | dict.fromkeys(
    ["final", "update", "arrival"], SHORT
)
SECONDS = {"slide": 40, "final": 50, "update": 50, "arrival": 50}


@pytest.mark.parametrize("emits", [["final", "slide"], ["update", "arrival"]])
def test_late_rows_correct_results(
    spark: Any, tmp_path: Path, emits: list[str]
) -> None:
    """The last results are those over all rows that were ingested."""
    source = FileSource(tmp_path, 100, LATE)
    for _ in range(2):
        source.write(3)
        queries = []
        for emit in emits:
            spec = CORRECTED[emit]
            function = hopping if emit == "slide" else rolling
            stream = read(spark, tmp_path)
            answers = function(
                stream, **spec, late=LATE, emit=emit, late_rows="correct"
            )
            queries.append(start_keyed(answers, tmp_path, emit))
        for query in queries:
            query.awaitTermination()
    for emit, query in zip(emits, queries, strict=True):
        allowance = dt.timedelta(seconds=SECONDS[emit])
        expected = source.expected(emit, CORRECTED[emit], allowance=allowance)
        ours = written(spark, tmp_path, emit)
        counts = [metrics(progress) for progress in query.recentProgress]
        if emit in ("final", "slide"):
            assert sum(batch["corrections"] for batch in counts) > 0
        # As of arrival, who came earlier did not see the late row.
        corrected = pc.any(ours["_correction"]).as_py()
        assert corrected == (emit != "arrival")
        if emit == "update":
            # Of each micro-batch all keys with new rows, the late ones among them.
            last_of(ours, ["key", "t"])
            by = ["key", "t", "n_10s", "n_50s"]
            assert_same(ours.drop_columns(["batch", "_correction"]), expected, by)
            continue
        by = ["key", "window_end"] if emit == "slide" else ["id"]
        assert_same(last_of(ours, by), expected, by)


def test_late_rows_correct_what_is_current(spark: Any, tmp_path: Path) -> None:
    """`emit="change"`: a key's last result is that of all rows, at the watermark."""
    source = FileSource(tmp_path, 100, LATE)
    for changed in (False, True):  # a checkpoint continues with either
        source.write(3)
        answers = rolling(
            read(spark, tmp_path),
            **SHORT,
            late=LATE,
            emit="change",
            late_rows="correct",
            changed=changed,
            valid_until=True,
        )
        query = start_keyed(answers, tmp_path, "change")
        query.awaitTermination()
    ours = written(spark, tmp_path, "change")
    assert pc.any(ours["_correction"]).as_py()
    last: dict[Any, dict[str, Any]] = {}
    for row in ours.sort_by([("batch", "ascending"), ("t", "ascending")]).to_pylist():
        last[row["key"]] = row
    end = source.watermark(len(source.batches))
    keys = pa.array(list(last), SCHEMA.field("key").type)
    times = pa.array([max(row["t"], end) for row in last.values()])
    labels = pa.table({"key": keys, "t": times.cast(SCHEMA.field("t").type)})
    accepted = pa.concat_tables(source.accepted(dt.timedelta(seconds=50)))
    assert set(accepted["key"].to_pylist()) == set(last)
    table = accepted.drop_columns("batch").sort_by("id")
    expected = sw.rolling(table, **SHORT, at=labels)
    got = ours.schema.empty_table().from_pylist(list(last.values()), ours.schema)
    got = got.set_column(got.column_names.index("t"), "t", labels["t"])
    assert_same(got.select(expected.column_names), expected, ["key"])
    windows = sw.KeyedWindows(**SHORT, emit="none")
    windows.ingest(table)
    asked = windows.query_many(labels, at="t", valid_until=True)
    until = ["key", "valid_until_10s", "valid_until_50s"]
    assert got.select(until).to_pylist() == asked.select(until).to_pylist()


def test_real_trips_and_flights(spark: Any, tmp_path: Path) -> None:
    """Trips arrive in order of their ends, flights in order of their departures."""
    tables = {"final": trips, "arrival": flights}
    late = dt.timedelta(hours=2)
    sources, queries = {}, []
    call = {**ROLLING, "windows": ["1h", "24h"], "aggs": {**AGGS, **ORDERED}}
    for emit, table in tables.items():
        source = sources[emit] = FileSource(tmp_path / emit, 0, late)
        rows = table()
        share = len(rows) // 4 + 1
        for start_at in range(0, len(rows), share):
            source.put(rows.slice(start_at, share))
        stream = read(spark, source.folder)
        answers = rolling(stream, **call, late=late, emit=emit, then_by="id")
        queries.append(start(answers, source.folder, "out"))
    for query in queries:
        query.awaitTermination()
    for emit, source in sources.items():
        expected = source.expected(emit, call)
        assert_same(written(spark, source.folder, "out"), expected, ["id"])


def test_ranks_are_those_of_tables(spark: Any, tmp_path: Path) -> None:
    """As of its own micro-batch, a row is among the rows until then."""
    source = FileSource(tmp_path, 9, LATE)
    source.write(4)
    aggs = {"rank": sw.rank("x"), "share": sw.percent_rank("y"), "n": sw.count()}
    call = {**ROLLING, "aggs": aggs, "late": LATE}
    emits = ("final", "arrival")
    stream = read(spark, tmp_path)
    queries = [
        start(rolling(stream, **call, emit=emit), tmp_path, emit) for emit in emits
    ]
    for query in queries:
        query.awaitTermination()
    spec = {name: value for name, value in call.items() if name != "late"}
    final = written(spark, tmp_path, "final")
    assert_same(final, source.expected("final", spec), ["id"])
    accepted = source.accepted()
    expected = []
    for batch in range(len(accepted)):
        seen = sw.rolling(pa.concat_tables(accepted[: batch + 1]), **spec)
        expected.append(seen.filter(pc.equal(seen["batch"], batch)))
    each = pa.concat_tables(expected).drop_columns("batch")
    assert pc.max(each["rank_2m"]).as_py() > 3
    assert_same(written(spark, tmp_path, "arrival"), each, ["id"])


def test_late_rows_are_flagged_and_counted(spark: Any, tmp_path: Path) -> None:
    """Every row has results, or is late."""
    source = FileSource(tmp_path, 4, LATE)
    source.write(4)
    answers = rolling(
        read(spark, tmp_path), **ROLLING, late=LATE, emit="arrival", late_rows="flag"
    )
    query = start(answers, tmp_path, "flagged")
    query.awaitTermination()
    ours = written(spark, tmp_path, "flagged")
    accepted = pa.concat_tables(source.accepted())["id"]
    late = ours.filter(ours["_late"])
    everything = sorted(pa.concat_tables(source.batches)["id"].to_pylist())
    assert sorted(ours["id"].to_pylist()) == everything
    assert late["n_10s"].null_count == len(late) == len(everything) - len(accepted) > 0
    counts = [metrics(progress) for progress in query.recentProgress]
    assert sum(row["late"] for row in counts) == len(late)
    assert sum(row["rows"] for row in counts) == len(everything)
    keys = [pc.count_distinct(rows["key"], mode="all") for rows in source.accepted()]
    assert [row["keys"] for row in counts if row["rows"]] == [
        key.as_py() for key in keys
    ]
    assert counts[-1]["state_bytes"] > 0
    assert all(row["pages_written"] > 0 for row in counts if row["rows"])


def test_a_marker_emits_the_last_rows(spark: Any, tmp_path: Path) -> None:
    """A marker moves the watermark, and is in no window."""
    source = FileSource(tmp_path, 3, LATE)
    source.write(2)
    end = START + dt.timedelta(days=1)
    source.put(pa.Table.from_pylist([{"id": -1, "t": end, "key": None}], SCHEMA))
    marked = read(spark, tmp_path).withColumn("end", sf.col("id") == -1)
    answers = rolling(marked, **ROLLING, late=LATE, emit="final", marker="end")
    start(answers, tmp_path, "marked").awaitTermination()
    ours = written(spark, tmp_path, "marked").drop_columns("end")
    table = pa.concat_tables(source.accepted()[:2]).drop_columns("batch")
    assert_same(ours, sw.rolling(table, **ROLLING), ["id"])


def test_days_decimals_and_structs_are_keys(spark: Any, tmp_path: Path) -> None:
    """The rule is that for tables: both zeros are one key, in structs and lists too."""
    source = FileSource(tmp_path, 6, LATE)
    source.write(3)
    exprs = {
        "day": "cast(t AS date)",
        "price": "cast(x AS decimal(21, 2))",
        "pair": "struct(key, array(x * 0.0D))",
    }
    keyed = read(spark, tmp_path).withColumns(
        {name: sf.expr(expr) for name, expr in exprs.items()}
    )
    by = {"days": ["day", "price"], "pairs": ["pair"]}
    call = {**ROLLING, "aggs": {"n": sw.count()}}
    queries = []
    for name, keys in by.items():
        answers = rolling(keyed, **{**call, "by": keys}, late=LATE, emit="arrival")
        queries.append(start(answers, tmp_path, name))
    for query in queries:
        query.awaitTermination()
    table = pa.concat_tables(source.accepted())
    table = table.append_column("day", table["t"].cast(pa.date32()))
    table = table.append_column("price", table["x"].cast(pa.decimal128(21, 2)))
    zeros = [None if x is None else x * 0.0 for x in table["x"].to_pylist()]
    pairs = zip(table["key"].to_pylist(), zeros, strict=True)
    kind = pa.struct([("key", pa.string()), ("col2", pa.list_(pa.float64()))])
    pair = pa.array([{"key": key, "col2": [zero]} for key, zero in pairs], kind)
    table = table.append_column("pair", pair)
    for name, keys in by.items():
        expected = sw.rolling(
            table, at=table, **{**call, "by": keys}, arrival="batch"
        ).drop_columns("batch")
        assert_same(written(spark, tmp_path, name), expected, ["id"])


def test_history_is_in_the_first_windows(spark: Any, tmp_path: Path) -> None:
    """Rows of initial= are in windows, and get no results."""
    source = FileSource(tmp_path, 5, LATE)
    source.write(5)
    history, source.batches = pa.concat_tables(source.batches[:3]), source.batches[3:]
    pq.write_table(history, tmp_path / "history.parquet")
    source.rewrite()
    initial = spark.read.parquet(str(tmp_path / "history.parquet"))
    answers = rolling(
        read(spark, tmp_path), **ROLLING, late=LATE, emit="final", initial=initial
    )
    start(answers, tmp_path, "begun").awaitTermination()
    new = pa.concat_tables(source.accepted()).drop_columns("batch")
    expected = sw.rolling(pa.concat_tables([history, new]), **ROLLING)
    expected = expected.slice(len(history))
    end = source.watermark(len(source.batches))
    expected = expected.filter(pc.less_equal(expected["t"], end))
    assert_same(written(spark, tmp_path, "begun"), expected, ["id"])


def test_history_closes_windows_in_all_buckets(spark: Any, tmp_path: Path) -> None:
    """The history has deletions; results do not depend on the buckets."""
    source = FileSource(tmp_path, 6, LATE)
    source.write(6)
    history, source.batches = pa.concat_tables(source.batches[:3]), source.batches[3:]
    source.rewrite()
    gone = sf.col("id").isNull()
    # Those that are alone at their key and time, so that it is known what is deleted.
    alone = history.group_by(["key", "t"]).aggregate([("id", "min"), ("id", "count")])
    alone = alone.filter(pc.equal(alone["id_count"], 1))["id_min"]
    chosen = pc.equal(pc.bit_wise_and(history["id"], 3), 1)
    chosen = pc.and_(chosen, pc.is_in(history["id"], alone.combine_chunks()))
    deleted = history.filter(chosen)
    assert len(deleted)
    nowhere = pa.nulls(len(deleted), pa.int64())
    deletes = deleted.set_column(0, SCHEMA.field("id"), nowhere)
    for at, part in enumerate([deletes, history]):
        pq.write_table(part, tmp_path / f"history-{at}.parquet")
    paths = [str(tmp_path / f"history-{at}.parquet") for at in range(2)]
    initial = spark.read.parquet(paths[0]).union(spark.read.parquet(paths[1]))
    call = {**HOPPING, "window": "40s", "late": LATE, "deletes": "gone"}
    for buckets in (1, 8):
        answers = hopping(
            read(spark, tmp_path).withColumn("gone", gone),
            **call,
            initial=initial.withColumn("gone", gone),
            buckets=buckets,
        )
        start(answers, tmp_path, f"buckets-{buckets}").awaitTermination()
    left = history.filter(pc.invert(chosen))
    new = pa.concat_tables(source.accepted()).drop_columns("batch")
    expected = sw.hopping(pa.concat_tables([left, new]), **{**HOPPING, "window": "40s"})
    begun = pc.max(left["t"]).as_py()
    ended = source.watermark(len(source.batches))
    tick = dt.timedelta(microseconds=1)
    expected = expected.filter(pc.greater(expected["window_end"], begun + tick))
    expected = expected.filter(pc.less_equal(expected["window_end"], ended + tick))
    assert len(expected)
    for buckets in (1, 8):
        ours = written(spark, tmp_path, f"buckets-{buckets}")
        assert_same(ours, expected, ["key", "window_end"])


def test_deleted_rows_are_dropped(spark: Any, tmp_path: Path) -> None:
    """Results are those of a batch DataFrame without the late rows."""
    source = FileSource(tmp_path, 4, LATE)
    source.write(4)
    for at, batch in enumerate(source.batches):
        deletes = batch.filter(pc.equal(pc.bit_wise_and(batch["id"], 7), 1))
        nowhere = pa.nulls(len(deletes), pa.int64())
        deletes = deletes.set_column(0, SCHEMA.field("id"), nowhere)
        source.batches[at] = pa.concat_tables([batch, deletes])
    source.rewrite()
    call = {**ROLLING, "late": LATE, "deletes": "gone", "emit": "final"}
    gone = sf.col("id").isNull()
    answers = rolling(read(spark, tmp_path).withColumn("gone", gone), **call)
    start(answers, tmp_path, "deleted").awaitTermination()
    accepted = pa.concat_tables(source.accepted()).drop_columns("batch")
    pq.write_table(accepted, tmp_path / "accepted.parquet")
    table = spark.read.parquet(str(tmp_path / "accepted.parquet"))
    expected = rolling(table.withColumn("gone", gone), **call).toArrow()
    end = source.watermark(len(source.batches))
    expected = expected.filter(pc.less_equal(expected["t"], end))
    ours = written(spark, tmp_path, "deleted")
    assert 0 < len(ours) < len(accepted) - pc.sum(pc.is_null(accepted["id"])).as_py()
    assert_same(ours, expected, ["id"])


def test_wrong_streaming_calls_are_refused_before_they_start(
    spark: Any, tmp_path: Path
) -> None:
    """Each raises one SpecError, which names a correct call."""
    source = FileSource(tmp_path, 0, LATE)
    source.write(1)
    stream = read(spark, tmp_path)
    with pytest.raises(SpecError, match="add late='10 minutes'"):
        rolling(stream, **ROLLING)
    marked = {**ROLLING, "late": LATE}
    with pytest.raises(SpecError, match="the DataFrame has no column 'gone'"):
        rolling(stream, **marked, marker="gone")
    with pytest.raises(SpecError, match="marker='x' names a column of bigint"):
        rolling(stream, **marked, marker="x")
    came = sf.timestamp_seconds("came")
    watched = stream.withColumn("came", came).withWatermark("came", "1 minute")
    with pytest.raises(SpecError, match="a watermark on 'came' already"):
        rolling(watched, **marked)
    answers = rolling(stream, **marked)
    with pytest.raises(SpecError, match="is a result of slidewise already"):
        rolling(answers, **{**marked, "windows": "3s"})
    with pytest.raises(SpecError, match="cannot be a key"):
        rolling(stream.withColumn("key", sf.create_map("key", "key")), **marked)
    with pytest.raises(SpecError, match="cast it"):
        rolling(stream.withColumn("t", sf.col("t").cast("date")), **ROLLING, late=LATE)
    initial = spark.range(3)
    with pytest.raises(SpecError, match="columns"):
        rolling(stream, **ROLLING, late=LATE, initial=initial)
    call = {**HOPPING, "window": sw.session("1m"), "every": None}
    with pytest.raises(SpecError, match="may join two sessions"):
        hopping(stream, **call, late=LATE, late_rows="correct")
    with pytest.raises(SpecError, match="returns none"):
        hopping(stream, **HOPPING, late=LATE, late_rows="flag")
    provider = "spark.sql.streaming.stateStore.providerClass"
    held = spark.conf.get(provider)
    spark.conf.set(provider, held.replace("RocksDB", "HDFSBacked"))
    try:
        with pytest.raises(SpecError, match="RocksDB"):
            rolling(stream, **ROLLING, late=LATE)
    finally:
        spark.conf.set(provider, held)


def test_results_of_hopping_windows_may_be_named_as_input_columns(spark, tmp_path):
    """They have the types of the results, as over a batch."""
    kinds = "t timestamp, k string, x string, window_start string"
    spec = sw.Spec(on="t", by="k", window="1m", aggs={"x": sw.count("x")})
    batch = hopping(spark.createDataFrame([], kinds), spec)
    rows = spark.readStream.schema(kinds).parquet(str(tmp_path))
    stream = hopping(rows, spec, late="1m")
    assert stream.schema == batch.schema
