"""Every wrong argument gives one message that names the value and the way out."""

import math
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.io.readers import read_table, write_table
from slidewise.spec.durations import parse_length

TIMES = pa.array([1, 2, 3], pa.timestamp("s"))
TABLE = pa.table(
    {
        "at": TIMES,
        "t": [1, 2, 3],
        "x": [1.0, 2.0, 3.0],
        "name": ["a", "b", "c"],
        "flag": [True, False, True],
        "list": [[1], [], [2]],
        "map": pa.array([[(1, 2)], [], None], pa.map_(pa.int64(), pa.int64())),
    }
)
COUNT = {"n": sw.count()}


def roll(table: Any = TABLE, **options: Any) -> Any:
    return sw.rolling(table, **{"on": "at", "windows": "1h", "aggs": COUNT, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": "att"}, r"no column 'att'; it has at, t, .* Did you mean 'at'\?"),
        ({"on": "T"}, r"no column 'T'; it has at, t, .* Did you mean 't'\?"),
        ({"by": ["name", "nam"]}, r"no column 'nam'; .* Did you mean 'name'\?"),
        ({"arrival": "stop"}, "no column 'stop'"),
        ({"aggs": {"s": sw.sum("price")}}, "no column 'price'"),
        ({"aggs": {"s": sw.arg_max("x", by="y")}}, "no column 'y'"),
        ({"on": 3}, "on= takes the name of a column, got 3"),
        ({"by": 3}, "by= takes a column or a list of columns, got 3"),
        ({"by": b"x"}, "by= takes a column or a list of columns, got b'x'"),
        ({"arrival": 3}, "arrival= takes a column, or a list of columns in order, got"),
        ({"arrival": b"x"}, "arrival= takes a column, or a list .*, got b'x'"),
    ],
)
def test_unknown_columns(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.SpecError, match=message):
        roll(**options)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("1 month", "'1 month' has no fixed length.* in days, e.g. '30d'"),
        ("1mo", "'1mo' has no fixed length"),
        ("2M", "'2M' has no fixed length"),
        ("1y", "'1y' has no fixed length"),
        ("3 quarters", "'3 quarters' has no fixed length"),
        ("0s", "windows='0s' must be longer than zero: give a duration"),
        ("-5m", "windows='-5m' must be longer than zero"),
        (0, "windows=0 must be longer than zero"),
        (-3, "windows=-3 must be longer than zero"),
        (timedelta(0), "must be longer than zero"),
        (timedelta(seconds=-1), "must be longer than zero"),
        ("an hour", "windows='an hour' is not a duration: write it like '90s'"),
        ("1.5h", "windows='1.5h' is not a duration"),
        ("1h30m", "windows='1h30m' is not a duration"),
        ("", "windows='' is not a duration"),
        ("h", "windows='h' is not a duration"),
        ("--5m", "windows='--5m' is not a duration"),
        ("5fortnights", "unknown unit 'fortnights'.* units are w d h m s ms us ns"),
        (1.5, "windows=1.5 is not a length of time: give a duration such as '1h'"),
        (None, "windows=, is missing"),
        (True, "windows=True is not a length of time"),
        ([], "windows= is empty"),
        (
            sw.session("5m"),
            r"of hopping, not of rolling: give window=sw.session\('5m'\)",
        ),
        (sw.Query("1h", "5m"), r"give windows=\[sw.Query\('1h', every='5m'\)\] to hop"),
        (3, "windows=3 is a bare number, but column 'at' holds times"),
        (["1h", 3], r"windows=3 is a bare number.* or windows=rows\(3\)"),
        (
            "1500ms",
            r"'1500ms' is not a whole number of units of column 'at' \(timestamp\[s\]",
        ),
        ("99999999999999w", "too long: int64 cannot hold it"),
        (["1h", "1h"], "result column 'n_1h' would occur twice"),
    ],
)
def test_windows(window: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=message):
        roll(windows=window)


@pytest.mark.parametrize("n", [0, -1, 1.5, "3", None, True])
def test_windows_of_rows(n: Any) -> None:
    with pytest.raises(sw.SpecError, match="number of rows"):
        sw.rows(n)


def test_mixed_units() -> None:
    with pytest.raises(
        sw.SpecError, match="windows='1h' is a duration, but column 't' holds int"
    ):
        roll(on="t")
    days = pa.table({"day": [date(2020, 1, 1)]})
    with pytest.raises(
        sw.SpecError, match="'1h' is not a whole number of units of column"
    ):
        roll(days, on="day")
    with pytest.raises(
        sw.SpecError, match=r"closed='both' does not apply to windows=rows\(3\)"
    ):
        roll(windows=["1h", sw.rows(3)], closed="both")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pa.array([1, None, 3], pa.timestamp("s")),
            "no time in row 1 .counting from 0",
        ),
        (pa.array([None, None, None]), "no time in row 0"),
        (
            pa.array([1.0, 2.0, math.nan]),
            "missing in row 2 .counting from 0.: drop the rows",
        ),
        (pa.array([1.0, 2.0, 3.0]), "floats cannot hold times exactly"),
        (
            pa.array(["1", "2", "3"]),
            r"holds string, not times .*'1'.* give time_format=",
        ),
        (pa.array([True, False, True]), "holds bool, not times"),
        (pa.array([[1], [2], [3]]), "holds list<item: int64>, not times"),
        (
            pa.array([1, 2, 3], pa.time64("us")),
            "holds time64.us., not times: times are .* dates, durations or integers",
        ),
        (
            pa.array([1, 2**63, 3], pa.uint64()),
            r"holds times beyond int64 \(uint64\): drop",
        ),
        (
            pa.array([1, 2, 3]).dictionary_encode(),
            r"not times: cast it to its values \(int64\)",
        ),
    ],
)
@pytest.mark.parametrize("role", ["on", "arrival"])
def test_times(column: pa.Array, message: str, role: str) -> None:
    table = pa.table({"at": TIMES, "bad": column})
    with pytest.raises(sw.SpecError, match=f"column 'bad'.*{message}"):
        roll(table, **{role: "bad"})


@pytest.mark.parametrize("missing", [pd.NaT, None])
def test_missing_times_in_data_frames(missing: Any) -> None:
    frame = pd.DataFrame({"at": pd.to_datetime(["2020-01-01", missing])})
    with pytest.raises(sw.SpecError, match="no time in row 1"):
        roll(frame)
    with pytest.raises(sw.SpecError, match="no time in row 1"):
        roll(pl.DataFrame({"at": [date(2020, 1, 1), None]}), windows="1d")


@pytest.mark.parametrize(
    ("agg", "message"),
    [
        (
            sw.sum("name"),
            r"sum\('name'\) does not fit column 'name', which holds string",
        ),
        (
            sw.sum("name"),
            "sum takes integers, floats, decimals of up to 38 digits, bool and dur",
        ),
        (sw.sum("name"), "For string there are count, min, max, .* collect"),
        (
            sw.mean("at"),
            r"holds timestamp\[s\]: mean takes .* there are count, min, max",
        ),
        (sw.stddev("list"), "For list<.*> there are count, first, last, collect"),
        (sw.min("list"), "min takes integers and floats, bool, durations, timestamps"),
        (sw.range("flag"), "range takes"),
        (sw.arg_max("name", by="list"), r"arg_max\('name', by='list'\) does not fit"),
    ],
)
def test_aggregations_that_do_not_fit(agg: sw.Aggregation, message: str) -> None:
    with pytest.raises(sw.SpecError, match=message):
        roll(aggs={"a": agg})


def test_intervals_have_no_order() -> None:
    interval = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    table = pa.table({"at": TIMES.slice(0, 1), "x": interval})
    with pytest.raises(sw.SpecError, match="Cast the column to a duration or a num"):
        sw.rolling(table, on="at", windows="1h", aggs={"top": sw.max("x")})


@pytest.mark.parametrize(
    ("aggs", "message"),
    [
        ({}, "aggs= is empty"),
        (sw.count(), "aggs= takes a mapping from names to aggregations"),
        ({"n": "count"}, r"aggs\['n'\] is not an aggregation: 'count'"),
        ({"n": sw.count}, r"aggs\['n'\] is not an aggregation: .* write sw.count\(\)"),
        ({1: sw.count()}, "aggs= names an aggregation 1: a name is a str, such as '1'"),
        ({"s": sw.sum()}, r"sum\(\) needs a column: sum\('...'\)"),
        ({"s": sw.collect()}, r"collect\(\) needs a column"),
        ({"s": sw.arg_max("x")}, "needs the column to compare: .*by="),
    ],
)
def test_aggregations_written_wrongly(aggs: Any, message: str) -> None:
    with pytest.raises(sw.SpecError, match=message):
        roll(aggs=aggs)


def test_aggregations_made_wrongly() -> None:
    with pytest.raises(
        sw.SpecError, match=r"sum\(\) takes the name of a column, got 3"
    ):
        sw.sum(3)  # type: ignore[arg-type]
    with pytest.raises(sw.SpecError, match="ddof must be 0 or more, got -1"):
        sw.variance("x", ddof=-1)
    with pytest.raises(sw.SpecError, match=r"ddof must be an integer, got 1\.5"):
        sw.stddev("x", ddof=1.5)  # type: ignore[arg-type]
    for given in (np.array(1.5), np.array([1, 2]), np.True_, True):
        with pytest.raises(sw.SpecError, match="ddof must be an integer, got"):
            sw.variance("x", ddof=given)
        with pytest.raises(sw.SpecError, match="k must be from 1 to 1000, got"):
            sw.top_k("x", given)
        with pytest.raises(sw.SpecError, match="is not a number of rows"):
            sw.rows(given)
    for share in (np.int64(1), Fraction(1, 2), [True], [2], "1"):
        with pytest.raises(sw.SpecError, match="q= takes a number from 0 to 1, got"):
            sw.approx_quantile("x", share)
    with pytest.raises(sw.SpecError, match="unknown aggregation 'average'"):
        sw.Aggregation("average")
    with pytest.raises(sw.SpecError, match=r"sum\(\) takes no by="):
        sw.Aggregation("sum", "x", by="y")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"closed": "rihgt"},
            "closed= is one of right, left, both, neither; got 'rihgt'",
        ),
        ({"ties": "all"}, "ties= is one of peers, rows; got 'all'"),
        ({"nan": None}, "nan= is one of propagate, skip, raise; got None"),
        ({"nan": np.array([1, 2])}, "nan= is one of propagate, skip, raise; got array"),
        ({"min_rows": -1}, r"min_rows= takes an int from 0 to 2\*\*63 - 1; got -1"),
        ({"min_rows": 1.0}, "min_rows= takes an int from 0"),
        ({"min_rows": np.bool_(True)}, "min_rows= takes an int from 0"),
        ({"by": "map"}, r"column 'map' \(map<.*>\) cannot be a key"),
    ],
)
def test_other_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sw.SpecError, match=message):
        roll(**options)


def test_result_names_that_are_taken() -> None:
    with pytest.raises(sw.SpecError, match="has a column 'n_1h' already"):
        roll(TABLE.append_column("n_1h", TABLE["t"]))
    with pytest.raises(sw.SpecError, match="'n_1h' would occur twice"):
        roll(windows=["1h", timedelta(hours=1)])


def test_values_that_are_not_tables() -> None:
    for table in (3, [1, 2], {"at": [1]}, pa.Table, pd.Series([1]).to_numpy()):
        with pytest.raises(sw.SpecError, match="is not a table"):
            roll(table)
    with pytest.raises(sw.SpecError, match="no column 'at'"):
        roll(pl.LazyFrame({"t": [1]}))


@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        ([{"at": 1}, {"at": 2}], r"a list of dicts.* pyarrow\.Table\.from_pylist"),
        (({"at": 1},), r"a list of dicts.* pyarrow\.Table\.from_pylist"),
        ("trips.csv", r"'trips\.csv' is a path or text.*read_csv"),
        (Path("trips.parquet"), r"'trips\.parquet' is a path.*read_table"),
        ([{"at": 1}, 2], "builtins.list is not a table"),
        ([], "builtins.list is not a table"),
        ("select 1", "'select 1' is a path or text, not a table"),
        ({"at": [1, 2]}, r"such as pyarrow\.table\(\.\.\.\) of it"),
    ],
)
def test_refused_tables_name_a_conversion(given: Any, way_out: str) -> None:
    for call in (roll, lambda table: roll(at=table)):
        with pytest.raises(sw.SpecError, match=way_out):
            call(given)


def test_duplicate_columns() -> None:
    twice = pa.Table.from_arrays([TIMES, TIMES], ["at", "at"])
    with pytest.raises(sw.SpecError, match="the table has 2 columns 'at'"):
        roll(twice)
    frame = pd.DataFrame([[1, 2]], columns=["at", "at"])
    with pytest.raises(sw.SpecError, match="the table has 2 columns 'at'"):
        roll(frame)


def test_mixed_objects_in_pandas() -> None:
    frame = pd.DataFrame({"at": [1, 2], "x": pd.Series([1, "a"], dtype=object)})
    with pytest.raises(sw.SpecError, match="column 'x' holds values of several types"):
        roll(frame, windows=1, aggs={"s": sw.sum("x")})


def test_files_that_are_not_there_or_not_that(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no such file: .*trips\.csv"):
        read_table(tmp_path / "trips.csv", on="at")
    with pytest.raises(
        sw.SpecError, match=r"'trips.xls' has no known ending; known: .csv"
    ):
        read_table(written(tmp_path / "trips.xls", b""), on="at")
    for name in ("a.csv", "a.parquet", "a.arrow", "a.jsonl", "a.json"):
        for content in (b"", b"\x89PNG\r\n\x1a\n\x00\x00\xff", b"a,b\n1\n1,2,3\n"):
            with pytest.raises(sw.SpecError, match=f"{name} cannot be read as "):
                read_table(written(tmp_path / name, content), on="at")
    with pytest.raises(sw.SpecError, match="cannot be read as CSV"):
        read_table(written(tmp_path / "a.csv.gz", b"no gzip"), on="at")
    with pytest.raises(sw.SpecError, match="array holds something else than objects"):
        read_table(written(tmp_path / "a.json", b"[1, 2]"), on="at")
    with pytest.raises(sw.SpecError, match="no column 'at'; it has a, b"):
        read_table(written(tmp_path / "a.csv", b"a,b\n1,2\n"), on="at")


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("text", "time_format", "message"),
    [
        (
            "07/03/18 17:48:39",
            None,
            "holds '07/03/18 17:48:39', which is not ISO 8601: write its format as "
            r"time_format= '%m/%d/%y %H:%M:%S' \(month first\), "
            r"'%d/%m/%y %H:%M:%S' \(day first\)",
        ),
        ("31.12.2018", None, "'31.12.2018', which is not ISO 8601"),
        ("yesterday", None, "'yesterday', which is not ISO 8601"),
        ("2018-02-30", None, "'2018-02-30' in row 0"),
        ("02/30/18", "%m/%d/%y", "'02/30/18' in row 0 .* does not read: day"),
        ("2018", "year", "time_format='year' is not a format"),
        ("2018-07-03", "%m/%d/%y", "'2018-07-03' in row 0"),
    ],
)
def test_times_in_files(
    tmp_path: Path, text: str, time_format: str | None, message: str
) -> None:
    file = written(tmp_path / "a.csv", f"at,x\n{text},1\n".encode())
    with pytest.raises(sw.SpecError, match=message):
        read_table(file, on="at", time_format=time_format)


def test_a_time_in_a_file_unlike_the_others_is_named(tmp_path: Path) -> None:
    good = ["2018-07-03 10:00:00"] * 7
    for row, bad in ((2, "noon"), (6, "07/03/18"), (1, "2018-13-01")):
        lines = good.copy()
        lines[row] = bad
        file = written(tmp_path / "a.csv", ("at\n" + "\n".join(lines)).encode())
        with pytest.raises(sw.SpecError, match=f"'{bad}' in row {row} "):
            read_table(file, on="at")


def test_unwritable_types_leave_no_file(tmp_path: Path) -> None:
    table = pa.table({"x": [[1]], "b": [b"\xff"]})
    with pytest.raises(sw.SpecError, match="CSV cannot hold column 'x'"):
        write_table(table, tmp_path / "a.csv")
    with pytest.raises(sw.SpecError, match="JSON cannot hold column 'b'"):
        write_table(table, tmp_path / "a.json")
    with pytest.raises(sw.SpecError, match="has no known ending; known: "):
        write_table(table, tmp_path / "a.xls")
    assert list(tmp_path.iterdir()) == []


def test_kinds_of_lengths() -> None:
    assert parse_length("10 minutes").amount == parse_length("10m").amount
    assert parse_length(timedelta(minutes=90)).label == "90m"
    assert parse_length(timedelta(days=14)).label == "14d"
    assert parse_length(pd.Timedelta(1_500, "ns")).label == "1500ns"
    assert parse_length(pd.Series([3])[0]).label == "3"


def test_types_that_arrow_cannot_handle_itself() -> None:
    lists = pa.DictionaryArray.from_arrays([0, 1, 0], pa.array([[1], [2]]))
    with pytest.raises(
        sw.SpecError, match=r"cannot compute with the column of first\('x'\)"
    ):
        roll(pa.table({"at": TIMES, "x": lists}), aggs={"x": sw.first("x")})


def test_huge_numbers_are_answered_or_named() -> None:
    def rolling(**options: Any) -> Any:
        return roll(on="t", windows=2, aggs={"n": sw.sum("x")}, **options)

    with pytest.raises(sw.SpecError, match=r"min_rows= takes an int from 0 to 2\*\*63"):
        rolling(min_rows=2**70)
    assert rolling(min_rows=2**62)["n_2"].to_pylist() == [None] * 3
    assert rolling(threads=2**70).equals(rolling())
    for offset in (2**70, -(2**70)):
        with pytest.raises(sw.SpecError, match="int64 cannot hold it"):
            rolling(offset=offset)


@pytest.mark.parametrize(
    ("call", "end"),
    [
        (
            lambda: sw.hopping(
                TABLE,
                on="t",
                window=[sw.Query(i) for i in range(1, 4001)],
                aggs={"n": sw.count()},
            ),
            "Quer... is a list: give several windows as windows=",
        ),
        (
            lambda: sw.rolling(
                TABLE, on="t", windows={i: i for i in range(4000)}, aggs={}
            ),
            "3999: 3999}",
        ),
        (lambda: sw.quantile("x", 0.5, interpolation="a" * 4000), "aaaa'"),
    ],
)
def test_messages_have_a_limit(call: Any, end: str) -> None:
    with pytest.raises(sw.SpecError) as raised:
        call()
    message = str(raised.value)
    assert len(message) <= 1005
    assert message.endswith(end)


def test_values_of_arguments_are_cut_in_messages() -> None:
    options: Any = {"on": "t", "windows": 5, "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError) as raised:
        sw.rolling(TABLE, **{**options, "windows": "a" * 4000})
    assert str(raised.value).startswith(f"windows='{'a' * 196}... is not a duration: ")
