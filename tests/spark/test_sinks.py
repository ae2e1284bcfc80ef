"""Sinks keep the last result of each key, in real servers that are killed, too."""

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import sink_servers
from streams import LATE, ROLLING, FileSource, assert_same, read

import slidewise as sw
from slidewise.errors import SlidewiseError
from slidewise.spark import hopping, rolling, sinks

# Spark starts several times.
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

HELPERS = Path(__file__).parents[1] / "helpers"
CHANGE: dict[str, Any] = {**ROLLING, "emit": "change", "late": LATE, "buckets": 2}


@pytest.fixture(scope="module", params=["postgres", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[sink_servers.Server]:
    if why := sink_servers.reason(request.param):
        pytest.skip(why)
    with sink_servers.server(request.param) as made:
        yield made


@pytest.fixture
def postgres(server: sink_servers.Server) -> sink_servers.Server:
    if server.kind != "postgres":
        pytest.skip("a test of tables")
    return server


def sink_of(server: Any, name: str, **options: Any) -> Any:
    if server.kind == "postgres":
        return sinks.postgres(name, server.url, **options)
    return sinks.redis(server.url, f"{name}:", **options)


def stored(server: sink_servers.Server, name: str) -> list[dict[str, Any]]:
    """All rows of a sink as they are served, each with its micro-batch in `_batch`."""
    sink = sink_of(server, name)
    if server.kind == "postgres":
        import psycopg

        query = f"SELECT key, _batch FROM {name} ORDER BY key"
        with psycopg.connect(server.url) as connection:
            found = connection.execute(query).fetchall()
        return [{**sink.get(key), "_batch": batch} for key, batch in found]
    import redis

    client = redis.Redis.from_url(server.url)
    names = sorted(each.decode() for each in client.keys(f"{name}:[[]*"))
    return [
        {
            **sink.get(json.loads(each.removeprefix(f"{name}:"))[0]),
            "_batch": int(client.hget(each, "batch")),
        }
        for each in names
    ]


def assert_current(rows: list[dict[str, Any]], source: FileSource) -> None:
    """The rows of all keys are those of a call over all rows, at the watermark."""
    accepted = pa.concat_tables(source.accepted()).drop_columns("batch")
    assert len(rows) == pc.count_distinct(accepted["key"], mode="all").as_py() > 10
    watermark = source.watermark(len(source.batches))
    points = [{"key": row["key"], "t": max(row["t"], watermark)} for row in rows]
    schema = pa.schema([accepted.schema.field(name) for name in ("key", "t")])
    at = pa.Table.from_pylist(points, schema)
    expected = sw.rolling(accepted, **ROLLING, at=at)
    held = [{**row, **point} for row, point in zip(rows, points, strict=True)]
    assert_same(pa.Table.from_pylist(held, expected.schema), expected, ["key"])


def run(spark: Any, folder: Path, sink: Any, **options: Any) -> None:
    """Runs a stream over the files of a folder to their end."""
    answers = rolling(read(spark, folder), **{**CHANGE, **options})
    writer = answers.writeStream.foreachBatch(sink).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.start().awaitTermination()


def test_the_last_result_of_each_key(
    spark: Any, server: sink_servers.Server, tmp_path: Path
) -> None:
    """Also when a micro-batch runs again, and when the query starts again."""
    source = FileSource(tmp_path, 3, LATE)
    source.write(4)
    sink = sink_of(server, "last")
    run(spark, tmp_path, sink)
    rows = stored(server, "last")
    assert_current(rows, source)
    log = tmp_path / "checkpoint" / "commits"
    last = max(int(path.name) for path in log.glob("[0-9]*"))
    (log / str(last)).unlink()
    run(spark, tmp_path, sink_of(server, "last"))
    assert stored(server, "last") == rows
    source.write(3)
    run(spark, tmp_path, sink)
    assert_current(stored(server, "last"), source)
    assert sink.get("no such key") is None


VALUES = """
SELECT * FROM VALUES
 ('a', 1.5D, 1.25BD, TIMESTAMP'2026-01-01 12:00:00.123456',
  ARRAY(1.5D, DOUBLE('NaN'), NULL), NAMED_STRUCT('x', 1, 'y', DOUBLE('Infinity')),
  MAP('k', 1), X'00ff', DATE'2026-02-03', INTERVAL '1 00:00:01.5' DAY TO SECOND,
  TIMESTAMP_NTZ'2026-01-01 12:00:00', TRUE, ARRAY(TIMESTAMP'2026-01-01 00:00:00.1'),
  MAP(1, 'x'), 9007199254740993L, FLOAT(0.1), ARRAY(1.10BD), ARRAY('"', '\\\\', 'é')),
 (NULL, DOUBLE('NaN'), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL),
 ('', -0.0D, -1.25BD, TIMESTAMP'0001-01-01 12:00:00', ARRAY(),
  NAMED_STRUCT('x', NULL, 'y', DOUBLE('NaN')), MAP(), X'', DATE'9999-02-03',
  INTERVAL '-1 00:00:01.5' DAY TO SECOND, TIMESTAMP_NTZ'2026-01-01 12:00:00', FALSE,
  ARRAY(NULL), NULL, -1L, FLOAT('-Infinity'), ARRAY(NULL), ARRAY('', NULL, 'null')),
 ('"\\n,\\\\', 1D, 0BD, NULL, ARRAY(DOUBLE('-Infinity')), NULL, MAP('"', NULL), X'22',
  NULL, NULL, NULL, NULL, NULL, MAP(2, NULL), 0L, FLOAT('NaN'), NULL, NULL)
AS t(k, `50%`, d, t, fs, s, m, b, date, u, n, o, ts, pairs, i, r, ds, words)
"""


def test_values_of_every_type(spark: Any, server: sink_servers.Server) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        rows = spark.sql(VALUES)
        sink = sink_of(server, "types", by="k")
        sink(rows, 0)
        for row in rows.toArrow().to_pylist():
            found = sink.get(row["k"])
            assert list(found) == list(row)
            for name, value in row.items():
                mine = found[name]
                same = repr(mine) == repr(value) or mine == value
                assert same, f"{name} of {row['k']}: {mine!r}, not {value!r}"
                assert type(mine) is type(value)
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


KEYS = """
SELECT * FROM VALUES
 (1.5D, TIMESTAMP'2026-01-01 12:00:00.1', 1.50BD, FLOAT(0.1), 'a'),
 (0.0D, NULL, NULL, NULL, 'zero'),
 (DOUBLE('NaN'), NULL, NULL, NULL, 'nan')
AS t(f, t, d, r, x)
"""


def test_keys_of_several_columns(spark: Any, server: sink_servers.Server) -> None:
    """Zeros are one key, and so is NaN; nulls are values."""
    sink = sink_of(server, "keys", by=["f", "t", "d", "r"])
    sink(spark.sql(KEYS), 0)
    sink(spark.sql(KEYS.replace("0.0D", "-0.0D").replace("'zero'", "'minus'")), 1)
    time = dt.datetime(2026, 1, 1, 12, 0, 0, 100_000, tzinfo=dt.UTC)
    key = {"f": 1.5, "t": time, "d": Decimal("1.5"), "r": 0.1}
    assert sink.get(key)["x"] == "a"
    assert sink.get((0.0, None, None, None))["x"] == "minus"
    assert sink.get((-0.0, None, None, None))["x"] == "minus"
    assert sink.get((float("nan"), None, None, None))["x"] == "nan"
    with pytest.raises(sw.SpecError, match="'x' is not a key of column 'f'"):
        sink.get(("x", None, None, None))
    with pytest.raises(sw.SpecError, match="has 1 value, and needs 4"):
        sink.get((1.5,))


def test_columns_may_change(spark: Any, server: sink_servers.Server) -> None:
    """As by a select before the sink; of Redis also those of rows that stay."""
    sink_of(server, "columns", by="k")(spark.sql("SELECT 'a' AS k, 1L AS n, 2 AS m"), 0)
    reader = sink_of(server, "columns")
    assert reader.get("a") == {"k": "a", "n": 1, "m": 2}
    fewer = sink_of(server, "columns", by="k")
    fewer(spark.sql("SELECT 'a' AS k, 3L AS n"), 1)
    assert fewer.get("a") == {"k": "a", "n": 3}
    if server.kind == "redis":
        assert reader.get("a") == {"k": "a", "n": 3}


def test_an_older_micro_batch_changes_nothing(
    spark: Any, server: sink_servers.Server
) -> None:
    """As one of a driver that was thought dead; a repeated one replaces itself."""
    sink = sink_of(server, "older", by="k")

    def rows(text: str) -> Any:
        return spark.sql(f"SELECT 'a' AS k, '{text}' AS x")

    for batch, text, then in [
        (4, "first", "first"),
        (4, "again", "again"),
        (3, "older", "again"),
        (5, "later", "later"),
        (0, "oldest", "later"),
    ]:
        sink(rows(text), batch)
        assert sink.get("a")["x"] == then


def test_the_last_of_several_results_of_a_key_counts(
    spark: Any, server: sink_servers.Server
) -> None:
    sink = sink_of(server, "several", by="k")
    sink(spark.range(300, numPartitions=1).selectExpr("id % 7 AS k", "id"), 0)
    assert [sink.get(key)["id"] for key in range(7)] == [294, *range(295, 300), 293]


def test_a_result_past_its_time_is_refused(
    spark: Any, server: sink_servers.Server, tmp_path: Path
) -> None:
    """`get(at=)` gives what a call over all rows gives at that time, or refuses."""
    source = FileSource(tmp_path, 4, LATE)
    source.write(4)
    sink = sink_of(server, "stale")
    exact = {name: ROLLING["aggs"][name] for name in ("n", "x", "top", "word")}
    run(spark, tmp_path, sink, aggs=exact, valid_until=True)
    accepted = pa.concat_tables(source.accepted()).drop_columns("batch")
    kind, refused = accepted.schema.field("t").type, 0
    for key in pc.unique(accepted["key"]).to_pylist():
        row = sink.get(key)
        first = max(row["t"], source.watermark(len(source.batches)))
        for seconds in (0, 3, 30, 200):
            time = first + dt.timedelta(seconds=seconds)
            at = {"key": pa.array([key], "string"), "t": pa.array([time], kind)}
            spec = {**ROLLING, "aggs": exact, "at": pa.table(at)}
            (now,) = sw.rolling(accepted, **spec).to_pylist()
            is_same = all(now[name] == row[name] for name in now if name != "t")
            try:
                assert sink.get(key, at=time) == row
                assert is_same
            except sw.StaleResultError:
                assert not is_same
                refused += 1
    assert refused > 10


def test_windows_are_kept_by_key_and_bounds(
    spark: Any, server: sink_servers.Server, tmp_path: Path
) -> None:
    FileSource(tmp_path, 5, LATE).write(4)
    call = {"on": "t", "by": "key", "window": "1m", "aggs": {"n": sw.count()}}
    windows = hopping(read(spark, tmp_path), **call, late=LATE, buckets=2)
    kept: list[dict[str, Any]] = []
    sink = sink_of(server, "windows")

    def both(rows: Any, batch: int) -> None:
        rows = rows.persist()
        sink(rows, batch)
        kept.extend(rows.toArrow().to_pylist())
        rows.unpersist()

    writer = windows.writeStream.foreachBatch(both).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start().awaitTermination()
    assert len(kept) > 10
    for row in kept:
        key = {name: row[name] for name in ("key", "window_start", "window_end")}
        assert sink.get(key) == row


def test_a_store_belongs_to_a_checkpoint(
    spark: Any, server: sink_servers.Server, tmp_path: Path
) -> None:
    for name in ("one", "other"):
        FileSource(tmp_path / name, 5, LATE).write(2)
    run(spark, tmp_path / "one", sink_of(server, "owned"))
    rows = stored(server, "owned")
    with pytest.raises(Exception, match="holds the results of another checkpoint"):
        run(spark, tmp_path / "other", sink_of(server, "owned"))
    assert stored(server, "owned") == rows
    run(spark, tmp_path / "one", sink_of(server, "owned"))


def test_lost_micro_batches_are_noticed(
    spark: Any, server: sink_servers.Server, tmp_path: Path
) -> None:
    """As of a server that was restored from a backup."""
    source = FileSource(tmp_path, 6, LATE)
    source.write(3)
    run(spark, tmp_path, sink_of(server, "lost"))
    if server.kind == "postgres":
        import psycopg

        with psycopg.connect(server.url) as connection:
            text = "UPDATE slidewise_sinks SET batch = 0 WHERE name = 'lost'"
            connection.execute(text)
    else:
        import redis

        redis.Redis.from_url(server.url).hset("lost:query", "batch", 0)
    source.write(1)
    with pytest.raises(Exception, match="has results up to micro-batch 0, and this is"):
        run(spark, tmp_path, sink_of(server, "lost"))


# Points of the kills, one per run; the last run has none.
POINTS = (
    "driver in a task",
    "server in a task",
    "driver before the end",
    "server before the end",
    "driver before commit",
)


@pytest.mark.timeout(3600)
def test_kills_of_drivers_and_servers(
    server: sink_servers.Server, tmp_path: Path
) -> None:
    """What is served stays until a later micro-batch; in the end nothing is missing."""
    source = FileSource(tmp_path, 8, LATE)
    paths = [str(HELPERS / "spark_workers"), str(HELPERS)]
    paths.append(os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    before: dict[Any, Any] = {}
    for point in (*POINTS, None):
        source.write(2)
        log = tmp_path / "checkpoint" / "commits"
        done = max((int(path.name) for path in log.glob("[0-9]*")), default=-1)
        plan = [(point, done + 2)] if point else []
        process = server._process
        assert process is not None
        call = [str(tmp_path), server.kind, server.url, str(process.pid)]
        with (tmp_path / "log").open("ab") as out:
            ended = subprocess.run(
                [
                    sys.executable,
                    str(HELPERS / "sink_killing.py"),
                    *call,
                    json.dumps(plan),
                ],
                env=environment,
                stdout=out,
                stderr=out,
                timeout=600,
                check=False,
            )
        text = (tmp_path / "log").read_text()[-4000:]
        expected = -9 if point and point.startswith("driver") else int(bool(point))
        assert ended.returncode == expected, text
        if point and point.startswith("server"):
            server.kill()
            server.start()
        now = {row["key"]: row for row in stored(server, "features")}
        # A kill may leave in Redis an earlier one of the results of a micro-batch.
        again = 1 if server.kind == "redis" else 0
        for key, row in before.items():
            newer = now[key]["_batch"] + again > row["_batch"]
            assert newer or now[key] == row, key
        before = now
    assert_current(list(before.values()), source)


def test_a_server_that_is_away(spark: Any, server: sink_servers.Server) -> None:
    away = f"{server.url.partition(':')[0]}://127.0.0.1:1/0"
    with pytest.raises(SlidewiseError, match="sinks") as raised:
        sink_of(SimpleNamespace(kind=server.kind, url=away), "away")
    assert "\n" not in str(raised.value)


def test_results_without_keys(spark: Any, server: sink_servers.Server) -> None:
    sink = sink_of(server, "keyless")
    with pytest.raises(sw.SpecError, match="have no key columns"):
        sink.prepare(spark.range(3))
    with pytest.raises(sw.SpecError, match=r"by= names 'x', and the results have id"):
        sink_of(server, "keyless", by="x").prepare(spark.range(3))
    with pytest.raises(sw.SpecError, match=r"holds no results yet|are no results"):
        sink.get("a")


def test_a_table_that_is_there(spark: Any, postgres: sink_servers.Server) -> None:
    """Its columns and a unique index are checked before the query starts."""
    import psycopg

    rows = spark.sql("SELECT 'a' AS k, 1L AS n")

    def table(text: str) -> None:
        with psycopg.connect(postgres.url) as connection:
            connection.execute("DROP TABLE IF EXISTS given")
            connection.execute(f"CREATE TABLE given ({text})")

    for text, message in [
        ("k text PRIMARY KEY, n integer, _batch bigint", "has column 'n' as integer"),
        ("k text PRIMARY KEY, _batch bigint", "has no column 'n'"),
        ("k text PRIMARY KEY, n bigint", "has no column '_batch'"),
        ("k text, n bigint, _batch bigint", "has no unique index of k"),
    ]:
        table(text)
        with pytest.raises(sw.SpecError, match=message):
            sinks.postgres("given", postgres.url, by="k").prepare(rows)
    table("k text PRIMARY KEY, n bigint, _batch bigint, note text DEFAULT 'mine'")
    sink = sinks.postgres("given", postgres.url, by="k")
    sink(rows, 0)
    assert sink.get("a") == {"k": "a", "n": 1}
    with psycopg.connect(postgres.url) as connection:
        found = connection.execute("SELECT note, _batch FROM given").fetchall()
    assert found == [("mine", 0)]


def test_a_table_that_was_dropped_begins_anew(
    spark: Any, postgres: sink_servers.Server
) -> None:
    import psycopg

    sinks.postgres("dropped", postgres.url, by="k")(spark.sql("SELECT 1 AS k"), 9)
    with psycopg.connect(postgres.url) as connection:
        connection.execute("DROP TABLE dropped")
    sink = sinks.postgres("dropped", postgres.url, by="k")
    sink(spark.sql("SELECT 2L AS k, 3 AS n"), 0)
    assert sink.get(2) == {"k": 2, "n": 3}


def test_a_reader_survives_a_restart(spark: Any, server: sink_servers.Server) -> None:
    sink = sink_of(server, "restart", by="k")
    sink(spark.sql("SELECT 1 AS k"), 0)
    assert sink.get(1) == {"k": 1}
    server.kill()
    with pytest.raises(SlidewiseError, match="sinks"):
        sink.get(1)
    server.start()
    assert sink.get(1) == {"k": 1}
