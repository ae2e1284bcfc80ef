"""A wrong call raises one SpecError, before any job starts."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException, StreamingQueryException
from streams import start

import slidewise as sw
from slidewise.spark import hopping, rolling

CALL: dict[str, Any] = {
    "on": "t",
    "by": "k",
    "windows": "1h",
    "aggs": {"n": sw.count()},
}


@pytest.fixture(scope="module")
def trips(spark: Any) -> Any:
    return spark.createDataFrame([], "k string, t timestamp, x double, m map<int,int>")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"on": "time"}, "the DataFrame has no column 'time'; it has k, t, x, m"),
        ({"on": "x"}, "column 'x' holds double, not times"),
        ({"by": "m"}, r"column 'm' \(map<int32, int32.*\) cannot be a key"),
        ({"windows": 5}, "windows=5 is a bare number, but column 't' holds times"),
        ({"aggs": {"s": sw.sum("k")}}, "sum takes integers"),
        ({"aggs": {"a": sw.last("x")}}, r"last\('x'\) depends on the order of rows"),
        ({"windows": sw.rows(3)}, r"rows\(3\) depends .* add then_by='column'"),
        ({"ties": "rows"}, "ties='rows' depends on the order"),
        ({"then_by": "id"}, "the DataFrame has no column 'id'"),
        ({"then_by": 3}, "then_by= takes"),
        ({"late": "soon"}, "'soon' is not a duration"),
        ({"late": "-1s"}, "late= is a whole number of microseconds, 0 or more"),
        ({"late": 5}, "late= is a duration such as '10 minutes', got 5"),
        ({"emit": "now"}, "does not go with rolling: it is one of 'arrival', 'final'"),
        ({"emit": "slide"}, "emit='slide' does not go with rolling"),
        ({"emit": "update"}, "a batch DataFrame has none"),
        ({"emit": "arrival"}, "add arrival='column'"),
        ({"emit": "final", "arrival": "t"}, "leave one out, or pass emit='arrival'"),
        ({"initial": "history"}, "initial= starts a stream from history"),
        ({"late_rows": "keep"}, "late_rows= is one of drop, flag, correct"),
        ({"split": "no"}, "split= is 'auto', 'sample', False, or a number"),
        ({"split": 0}, "split= is an integer, 1 or more; got 0"),
        (
            {"split": 3, "arrival": "t", "windows": sw.rows(2), "then_by": "x"},
            r"split=3 is not possible: with arrival=, rows\(2\) takes the latest of",
        ),
        ({"partitions": 0}, "partitions= is an integer, 1 or more; got 0"),
        ({"aggs": {"T": sw.count()}, "windows": "1h"}, None),
    ],
)
def test_wrong_calls_raise_one_message(
    trips: Any, other: dict[str, Any], message: str | None
) -> None:
    if message is None:
        assert rolling(trips, **{**CALL, **other}).columns[-1] == "T_1h"
        return
    with pytest.raises(sw.SpecError, match=message):
        rolling(trips, **{**CALL, **other})


@pytest.mark.parametrize("name", ["threads", "n_jobs"])
def test_threads_are_tasks_on_spark(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}': .* one thread: partitions= is the"):
        rolling(**CALL, **{name: 2})


def test_arguments_are_checked_without_a_frame() -> None:
    with pytest.raises(sw.SpecError, match="'soon' is not a duration"):
        rolling(**{**CALL, "late": "soon"})
    with pytest.raises(sw.SpecError, match="emit='final' does not go with hopping"):
        hopping(on="t", window="1h", aggs={"n": sw.count()}, emit="final")


def test_other_tables_are_refused() -> None:
    with pytest.raises(sw.SpecError, match=r"there is slidewise\.rolling"):
        rolling(pa.table({"t": [1]}), **CALL)


def test_a_stream_requires_late(spark: Any) -> None:
    rates = spark.readStream.format("rate").load()
    with pytest.raises(sw.SpecError, match="add late='10 minutes'"):
        rolling(rates, on="timestamp", windows="1h", aggs={"n": sw.count()})


def test_a_column_named_like_the_flag_is_refused(spark: Any, tmp_path: Path) -> None:
    for flag in ("_late", "_ahead"):
        message = f"'{flag}' is taken by late_rows='flag': rename the column"
        table = spark.createDataFrame([], f"k string, t timestamp, {flag} boolean")
        stream = spark.readStream.schema(table.schema).json(str(tmp_path))
        for df in (table, stream):
            with pytest.raises(sw.SpecError, match=message):
                rolling(df, **CALL, late="1s", late_rows="flag", ahead="1h")


def test_results_that_differ_from_a_column_in_case(spark: Any) -> None:
    df = spark.createDataFrame([], "t timestamp, N_1H long")
    with pytest.raises(sw.SpecError, match="'N_1H' already, which is 'n_1h' to Spark"):
        rolling(df, on="t", windows="1h", aggs={"n": sw.count()})


def test_columns_without_an_arrow_type(spark: Any) -> None:
    df = spark.range(1).selectExpr("id t", "make_ym_interval(1, 2) months")
    with pytest.raises(sw.SpecError, match=r"'months' .* cannot go through Arrow"):
        rolling(df, on="t", windows=1, aggs={"n": sw.count()})


def test_custom_aggregations_need_a_return_type(trips: Any) -> None:
    own = sw.aggregation(combine=lambda a, b: a + b, identity=0, commutative=True)
    with pytest.raises(sw.SpecError, match=r"returns=float\), or write it on lower"):
        rolling(trips, **{**CALL, "aggs": {"own": own("x")}})


NO_TIME = "SpecError: column 't' has no time in the row of k='a', t=None: drop the rows"
NAN = "SpecError: column 'x' is NaN in the row of k='a', t="
BEYOND = "around the row of k='a', t=9223372036854775807 (timestamp[us, tz=UTC]) rea"
OVERFLOW = "ResultOverflowError: sum('x') over the window '5s' of the row of k='a', t="
SUM: dict[str, Any] = {"on": "t", "by": "k", "aggs": {"s": sw.sum("x")}}
LATEST = "timestamp_micros(9223372036854775807)"


@pytest.mark.parametrize(
    ("time", "value", "call", "message"),
    [
        ("cast(null as timestamp)", "1", {"windows": "5s"}, NO_TIME),
        ("5", "double('NaN')", {"windows": 5, "nan": "raise"}, f"{NAN}5, and nan='ra"),
        ("timestamp_seconds(5)", str(2**62), {"windows": "5s"}, OVERFLOW),
        (LATEST, "1", {"windows": "5s"}, "SpecError: column 't' holds a time before"),
        (LATEST, "1", {"window": "5s", "then_by": "x"}, BEYOND),
    ],
)
def test_wrong_values_fail_the_job_in_one_line(
    spark: Any, time: str, value: str, call: dict[str, Any], message: str
) -> None:
    df = spark.sql(f"select 'a' k, {time} t, {value} x from range(2)")
    frame = (hopping if "window" in call else rolling)(df, **SUM, **call)
    with pytest.raises(PythonException, match=re.escape(message)) as raised:
        frame.collect()
    first, own = str(raised.value).splitlines()
    assert first == "An exception was thrown from the Python worker:"
    assert own.startswith("slidewise.errors.")


@pytest.mark.parametrize(
    ("row", "call", "message"),
    [
        ("null, 1", {}, NO_TIME),
        ("timestamp_seconds(7), double('NaN')", {"nan": "raise"}, NAN),
        (f"timestamp_seconds(7), {2**62}", {}, OVERFLOW),
    ],
)
def test_wrong_values_fail_the_stream_in_one_line(
    spark: Any, tmp_path: Path, row: str, call: dict[str, Any], message: str
) -> None:
    df = spark.sql(f"select 'a' k, {row} from range(2)").toDF("k", "t", "x")
    df = df.withColumn("t", df.t.cast("timestamp"))
    df.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(df.schema).parquet(str(tmp_path / "in"))
    results = rolling(stream, **SUM, **call, windows="5s", late="1s", emit="arrival")
    with pytest.raises(StreamingQueryException) as raised:
        start(results, tmp_path, "out").awaitTermination()
    first = str(raised.value).splitlines()[0]
    assert "An exception was thrown from the Python worker: slidewise.errors." in first
    assert message in first
    assert "Traceback" not in str(raised.value)


def test_errors_of_custom_aggregations_keep_their_traceback(spark: Any) -> None:
    def lift(value: int) -> float:
        return value / 0

    own = sw.aggregation(
        lift=lift, combine=max, identity=0, commutative=True, returns=float
    )
    df = spark.sql("select id t, id x from range(2)")
    frame = rolling(df, on="t", windows=1, aggs={"own": own("x")})
    with pytest.raises(PythonException, match=r"in lift\n(.*\n)*ZeroDivisionError"):
        frame.collect()


COLLATED = """
select timestamp_seconds(1) t, id, s collate UTF8_LCASE s,
struct(s collate UNICODE a) r, array(s collate UTF8_BINARY_RTRIM) l
from values (1, 'A'), (2, 'a') as _(id, s)
"""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"by": "s"}, "by='s' compares strings by UTF8_LCASE, which Python"),
        ({"by": "r"}, "by='r' .* by UNICODE, .*cast\\('struct<a:string>'\\)"),
        ({"by": "l"}, "by='l' compares strings by UTF8_BINARY_RTRIM"),
        ({"then_by": "s"}, "then_by='s' compares"),
        ({"aggs": {"n": sw.max("s")}}, r"max\('s'\) compares"),
        ({"aggs": {"n": sw.count_distinct("s")}}, r"count_distinct\('s'\) compares"),
        ({"aggs": {"n": sw.mode("s")}}, r"mode\('s'\) compares"),
        ({"aggs": {"n": sw.collect_distinct("s")}, "then_by": "id"}, "collect_dis"),
        ({"aggs": {"n": sw.arg_max("id", by="s")}, "then_by": "id"}, "arg_max"),
        ({"aggs": {"n": sw.approx_count_distinct("s")}}, "approx_count_distinct"),
    ],
)
def test_strings_with_a_collation_are_not_compared(
    spark: Any, tmp_path: Path, call: dict[str, Any], message: str
) -> None:
    rows = spark.sql(COLLATED)
    stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path))
    for df in (rows, stream):
        with pytest.raises(sw.SpecError, match=message):
            rolling(df, **{**CALL, "by": None, "late": "1s", **call})
