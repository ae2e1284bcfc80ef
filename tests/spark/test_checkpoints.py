"""A checkpoint continues with its own query, and refuses any other."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from streams import (
    AGGS,
    LATE,
    ROLLING,
    SCHEMA,
    FileSource,
    assert_same,
    read,
    start,
    written,
)

import slidewise as sw
from slidewise.errors import SpecError
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.validation import checked
from slidewise.spark import rolling
from slidewise.spark.checkpoint_guard import Guard, continued
from slidewise.spec.spec import Spec

sf = pytest.importorskip("pyspark.sql.functions", reason="slidewise[spark]")


def guard(emit: str = "final", schema: pa.Schema = SCHEMA, **change: Any) -> bytes:
    """The guard of the query that most tests run."""
    query = checked(KeyedQuery(Spec.make(**{**ROLLING, **change}), schema, emit))
    return Guard.of(query, change.pop("buckets", 8)).to_bytes()


def test_state_of_another_format_is_refused() -> None:
    old = json.loads(guard())
    old.update(format=0, columns="t: timestamp[us, tz=UTC], key: int64")
    with pytest.raises(SpecError, match=r"another version of slidewise \(format 0 of"):
        Guard.check(guard(), json.dumps(old).encode())


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (guard("update"), "emit was final, and is update"),
        (guard(windows=["10s", "3m"]), r"windows was \[10s .*\], and is \[10s .* 3m "),
        (
            guard(aggs={**AGGS, "least": sw.min("x")}),
            r"aggs was .* and is .*least=min\(of=",
        ),
        (
            guard(schema=SCHEMA.append(pa.field("more", pa.int32()))),
            r"column 'more' \(int32\) is new\. .* select\(\) and cast\(\) the columns",
        ),
        (guard(schema=SCHEMA.remove(6)), "column 'came' is gone. A checkpoint"),
        (
            guard(schema=SCHEMA.set(3, pa.field("x", pa.float64()))),
            "column 'x' was int64, and is double. A checkpoint",
        ),
        (
            guard(schema=pa.schema(list(SCHEMA)[::-1])),
            "the columns' order was id, t, key, x, y, word, came. A checkpoint",
        ),
    ],
)
def test_what_changed_is_named(now: bytes, message: str) -> None:
    with pytest.raises(SpecError, match=f"for another query: {message}"):
        Guard.check(now, guard())


def going_on(query: KeyedQuery, state: bytes) -> KeyedQuery:
    return continued(query, Guard.of(query, 8).to_bytes(), state, None)


def grown(emit: str = "final", **change: Any) -> KeyedQuery:
    return checked(KeyedQuery(Spec.make(**{**ROLLING, **change}), SCHEMA, emit))


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
def test_a_query_may_have_more_windows_and_aggregations(emit: str) -> None:
    """Its pages keep the columns in the order of the query that made them."""
    aggs = {"words": sw.count("word"), **AGGS, "least": sw.min("x")}
    query = grown(emit, aggs=aggs, windows=["1m", "10s", "2m"])
    found = going_on(query, guard(emit))
    assert found.spec == query.spec
    assert found.stored_columns == ("key", "x", "y", "word") != query.stored_columns
    # The state then has the guard of the new query, and its columns.
    again = Guard.of(query, 8).to_bytes()
    assert continued(query, again, again, ["key", "x", "y", "word"]) == found


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (grown(windows=["10s", "2m", "3m"]), "the window '3m' is beyond its horizon"),
        (
            grown(aggs={**AGGS, "came": sw.max("came")}),
            "reads the column 'came', which it does not keep",
        ),
        (grown(windows=["10s"]), r"query: windows was \[10s .*\], and is \[10s "),
        (grown(min_rows=2), "query: min_rows was 0, and is 2"),
        (grown("change", windows=["10s", "2m", "1m"]), "emit was final, and is change"),
    ],
)
def test_a_query_that_grew_beyond_the_state_is_refused(
    query: KeyedQuery, message: str
) -> None:
    with pytest.raises(SpecError, match=f"{message}(.|\n)*slidewise.spark.migrate"):
        going_on(query, guard())


def test_windows_with_timers_grow_by_migrate() -> None:
    """The timers of buckets without rows are those of the earlier windows."""
    query = grown("change", windows=["10s", "2m", "1m"])
    with pytest.raises(SpecError, match="emit='change' only migrate adds windows"):
        going_on(query, guard("change"))
    aggs = {**AGGS, "least": sw.min("x")}
    assert going_on(grown("change", aggs=aggs), guard("change")).kept is not None


def test_a_query_whose_cells_were_folded_keeps_its_aggregations() -> None:
    cells: dict[str, Any] = {"windows": [sw.trailing("2m", resolution="30s")]}
    cells["aggs"] = {"n": sw.count(), "x": sw.sum("x")}
    state, aggs = guard("update", **cells), {**cells["aggs"], "top": sw.max("x")}
    with pytest.raises(SpecError, match="its rows are folded by its aggregations into"):
        going_on(grown("update", **cells | {"aggs": aggs}), state)
    more = [*cells["windows"], sw.trailing("1m", resolution="1m")]
    assert going_on(grown("update", **cells | {"windows": more}), state).cells


def test_timers_of_another_query_are_refused() -> None:
    """A timer fires without new rows, and so without a call for the guard's bucket."""
    from slidewise.spark.heartbeats import Look
    from slidewise.spark.operator import Operator, StateTransaction

    state = json.dumps({"token": "0:aa", "timer": 5, "guard": guard().decode()})
    found = SimpleNamespace(get=lambda: (state.encode(),))
    query = checked(KeyedQuery(Spec.make(**ROLLING), SCHEMA, "update"))
    operator = Operator(query, Guard.of(query, 8), None, flags=())
    handle = SimpleNamespace(getValueState=lambda *_: found, getMapState=lambda *_: ())
    operator.init(handle)
    with pytest.raises(SpecError, match="emit was final, and is update"):
        StateTransaction(operator, 3, Look(), None)


def test_new_rows_under_another_schema(spark: Any, tmp_path: Path) -> None:
    """The micro-batch is refused as a whole; the first query then continues."""
    source = FileSource(tmp_path, 11, LATE)
    source.write(2)
    call: dict[str, Any] = {**ROLLING, "late": LATE}
    stream = read(spark, tmp_path)
    start(rolling(stream, **call), tmp_path, "guarded").awaitTermination()
    source.write(1)
    message = "for another query: column 'x' was int64, and is double"
    retyped = rolling(stream.withColumn("x", sf.col("x").cast("double")), **call)
    with pytest.raises(Exception, match=message):
        start(retyped, tmp_path, "guarded").awaitTermination()
    fewer = rolling(stream.drop("came"), **call, buckets=2)
    with pytest.raises(Exception, match="column 'came' is gone; buckets was 3, and is"):
        start(fewer, tmp_path, "guarded").awaitTermination()
    start(rolling(stream, **call), tmp_path, "guarded").awaitTermination()
    ours = written(spark, tmp_path, "guarded")
    assert_same(ours, source.expected("final", ROLLING), ["id"])


def test_unused_columns_and_output_modes_may_change(spark: Any, tmp_path: Path) -> None:
    """The state contains neither of them."""
    source = FileSource(tmp_path, 12, LATE)
    given: list[pa.Table] = []

    def keep(rows: Any, _batch: int) -> None:
        given.append(rows.toArrow())

    stream = read(spark, tmp_path)
    more = stream.drop("came").withColumn("more", sf.lit(1))
    for mode, rows in [("append", stream), ("update", more)]:
        source.write(2)
        answers = rolling(rows, **ROLLING, late=LATE, emit="update")
        writer = answers.writeStream.outputMode(mode).foreachBatch(keep)
        writer = writer.option("checkpointLocation", str(tmp_path / "state"))
        writer.trigger(availableNow=True).start().awaitTermination()
    ours = pa.concat_tables(table for table in given if len(table))
    by = ["key", "t", "n_2m"]
    assert_same(ours, source.expected("update", ROLLING), by)
