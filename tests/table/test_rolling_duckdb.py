"""`sw.rolling` on real data against an independent SQL engine, row by row.

The data are a sample of Citi Bike trips and of US flights. They are read from the
folder named by SLIDEWISE_TEST_DATA, or from `../shared/data` beside the checkout.
"""

import math
import os
from collections.abc import Callable, Iterator
from itertools import groupby, product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import slidewise as sw
from slidewise.io.readers import read_table

DATA = Path(
    os.environ.get(
        "SLIDEWISE_TEST_DATA", Path(__file__).parents[3].joinpath("shared", "data")
    )
)
CLOSED = ("right", "left", "both", "neither")
KINDS = ("count", "sum", "mean", "min", "max", "stddev")
SQL = {"count": "count", "mean": "avg", "stddev": "stddev_samp"}
SECONDS = {"1h": 3_600, "24h": 86_400, "7d": 604_800}


class Set:
    """One data set, and its times in whole seconds for SQL."""

    def __init__(
        self,
        file: str,
        on: str,
        by: list[str],
        columns: list[str],
        time_format: str | None,
    ) -> None:
        path = DATA / file
        if not path.is_file():
            pytest.skip(f"{path} is not there (SLIDEWISE_TEST_DATA names the folder)")
        self.on, self.by, self.columns = on, by, columns
        times = [on] if file.endswith("json") else [on, "stoptime"]
        table = read_table(path, on=times, time_format=time_format)
        seconds = table[on].cast(pa.timestamp("s")).cast(pa.int64())
        self.table = table.append_column("sec", seconds).append_column(
            "row", pa.array(range(table.num_rows))
        )

    @property
    def aggs(self) -> dict[str, sw.Aggregation]:
        return {
            f"{kind}_{number}": getattr(sw, kind)(column)
            for kind, (number, column) in product(KINDS, enumerate(self.columns))
        }

    def sql(self, by: list[str], frame: str, order: str = "sec") -> pa.Table:
        keys = ", ".join(f'"{name}"' for name in by)
        partition = f"PARTITION BY {keys}" if by else ""
        answers = ", ".join(
            f'{SQL.get(kind, kind)}("{column}") OVER w AS {kind}_{number}'
            for kind, (number, column) in product(KINDS, enumerate(self.columns))
        )
        with duckdb.connect() as connection:
            connection.execute("SET threads = 2")
            connection.register("data", self.table)
            found = connection.sql(
                f"SELECT {answers} FROM data WINDOW w AS ({partition} "
                f"ORDER BY {order} {frame}) ORDER BY row"
            )
            return found.to_arrow_table()


@pytest.fixture(scope="module")
def trips() -> Set:
    return Set(
        "citibike-2018-07-sample.csv",
        "starttime",
        ["start station id", "usertype"],
        ["tripduration", "start station latitude", "birth year"],
        "%m/%d/%y %H:%M:%S",
    )


@pytest.fixture(scope="module")
def flights() -> Set:
    return Set("flights-2001-20k.json", "date", ["origin"], ["delay", "distance"], None)


@pytest.fixture(params=["trips", "flights"])
def data(request: pytest.FixtureRequest) -> Set:
    found: Set = request.getfixturevalue(request.param)
    return found


def compare(out: pa.Table, window: str, aggs: Any, expected: pa.Table) -> None:
    """Equal; floats up to the rounding of either side."""
    for name in aggs:
        got = out[f"{name}_{window}"].combine_chunks()
        wanted = expected[name].combine_chunks().cast(got.type)
        assert got.is_null().equals(wanted.is_null()), (name, window)
        if pa.types.is_floating(got.type):
            gap = pc.abs(pc.subtract(got, wanted))
            allowed = pc.multiply(pc.max_element_wise(pc.abs(wanted), 1.0), 1e-9)
            equal = pc.less_equal(gap, allowed)
        else:
            equal = pc.equal(got, wanted)
        unequal = pc.indices_nonzero(pc.invert(pc.fill_null(equal, True)))
        shown = unequal[:3]
        assert not len(unequal), (
            name,
            window,
            shown,
            got.take(shown),
            wanted.take(shown),
        )


def range_frame(seconds: int, closed: str) -> str:
    """The window in SQL. RANGE has closed ends: open ends move in by a second."""
    start = seconds if closed in ("left", "both") else seconds - 1
    end = "CURRENT ROW" if closed in ("right", "both") else "1 PRECEDING"
    return f"RANGE BETWEEN {start} PRECEDING AND {end}"


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("keyed", [True, False])
def test_time_windows(data: Set, closed: str, keyed: bool) -> None:
    by = data.by if keyed else []
    out = sw.rolling(
        data.table,
        on=data.on,
        by=by,
        windows=list(SECONDS),
        aggs=data.aggs,
        closed=closed,
    )
    for window, seconds in SECONDS.items():
        compare(out, window, data.aggs, data.sql(by, range_frame(seconds, closed)))


@pytest.mark.parametrize("closed", ["right", "both"])
def test_rows_of_equal_time_one_by_one(data: Set, closed: str) -> None:
    """ties="rows" by a unique time: the second, then the row number."""
    out = sw.rolling(
        data.table,
        on=data.on,
        by=data.by,
        windows="24h",
        aggs=data.aggs,
        closed=closed,
        ties="rows",
    )
    start = 86_400 if closed == "both" else 86_399
    frame = f"RANGE BETWEEN {start * 1_000_000} + row PRECEDING AND CURRENT ROW"
    compare(out, "24h", data.aggs, data.sql(data.by, frame, "sec * 1000000 + row"))


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_row_windows(data: Set, keyed: bool, n: int) -> None:
    by = data.by if keyed else []
    out = sw.rolling(data.table, on=data.on, by=by, windows=sw.rows(n), aggs=data.aggs)
    frame = f"ROWS BETWEEN {n - 1} PRECEDING AND CURRENT ROW"
    compare(out, f"{n}rows", data.aggs, data.sql(by, frame, "sec, row"))


def together(arrived: list[Any], arrive: Callable[[int], None]) -> Iterator[int]:
    """The rows in order of arrival; each is answered after all rows of its arrival."""
    order = sorted(range(len(arrived)), key=lambda row: (arrived[row], row))
    for _, group in groupby(order, key=lambda row: arrived[row]):
        rows = list(group)
        for row in rows:
            arrive(row)
        yield from rows


def replay(data: Set, table: pa.Table, by: list[str], arrival: str, closed: str) -> Any:
    """Each row sees all rows of its key that arrived no later than itself."""
    times = table["sec"].to_pylist()
    keys = list(zip(*(table[name].to_pylist() for name in by), strict=True)) or [
        ()
    ] * len(times)
    arrived = table[arrival].to_pylist()
    values = {name: table[name].to_pylist() for name in data.columns}
    past: dict[Any, list[int]] = {}
    answers: list[Any] = [None] * len(times)

    def arrive(row: int) -> None:
        past.setdefault(keys[row], []).append(row)

    for row in together(arrived, arrive):
        seen = past[keys[row]]
        now = times[row]
        answers[row] = {}
        for window, seconds in SECONDS.items():
            inside = [
                other
                for other in seen
                if now - seconds <= times[other] <= now
                and (closed in ("left", "both") or times[other] != now - seconds)
                and (closed in ("right", "both") or times[other] != now)
            ]
            answers[row][window] = {
                f"{kind}_{number}": of_list(kind, [values[name][one] for one in inside])
                for kind, (number, name) in product(KINDS, enumerate(data.columns))
            }
    return answers


def of_list(kind: str, values: list[Any]) -> Any:
    values = [value for value in values if value is not None]
    if kind == "count":
        return len(values)
    if len(values) < (2 if kind == "stddev" else 1):
        return None
    if kind in ("min", "max"):
        return min(values) if kind == "min" else max(values)
    total = math.fsum(values) if isinstance(values[0], float) else sum(values)
    if kind == "sum":
        return total
    mean = total / len(values)
    if kind == "mean":
        return mean
    squares = math.fsum((value - mean) ** 2 for value in values)
    return math.sqrt(squares / (len(values) - 1))


def arrivals(data: Set) -> tuple[pa.Table, str]:
    """The table with the column of arrival: the trip's end, the flight's real start."""
    if "stoptime" in data.table.column_names:
        return data.table, "stoptime"
    minutes = pc.multiply(data.table["delay"], 60)
    return data.table.append_column("seen", pc.add(data.table["sec"], minutes)), "seen"


@pytest.mark.parametrize("closed", CLOSED)
def test_as_of_arrival_is_a_replay(data: Set, closed: str) -> None:
    table, arrival = arrivals(data)
    table = table.slice(0, 4_000)
    out = sw.rolling(
        table,
        on=data.on,
        by=data.by,
        windows=list(SECONDS),
        aggs=data.aggs,
        closed=closed,
        arrival=arrival,
    )
    expected = replay(data, table, data.by, arrival, closed)
    for window in SECONDS:
        compare(
            out,
            window,
            data.aggs,
            pa.Table.from_pylist([row[window] for row in expected]),
        )


def test_as_of_arrival_without_keys_is_a_replay(data: Set) -> None:
    table, arrival = arrivals(data)
    table = table.slice(0, 1_000)
    out = sw.rolling(
        table, on=data.on, windows=list(SECONDS), aggs=data.aggs, arrival=arrival
    )
    expected = replay(data, table, [], arrival, "right")
    for window in SECONDS:
        compare(
            out,
            window,
            data.aggs,
            pa.Table.from_pylist([row[window] for row in expected]),
        )


def test_row_windows_as_of_arrival_are_a_replay(data: Set) -> None:
    table, arrival = arrivals(data)
    out = sw.rolling(
        table,
        on=data.on,
        by=data.by,
        windows=sw.rows(5),
        aggs={"last": sw.collect("row")},
        arrival=arrival,
    )
    keys = list(zip(*(table[name].to_pylist() for name in data.by), strict=True))
    times, arrived = table["sec"].to_pylist(), table[arrival].to_pylist()
    past: dict[Any, list[int]] = {}
    expected: list[Any] = [None] * len(times)

    def arrive(row: int) -> None:
        past.setdefault(keys[row], []).append(row)

    for row in together(arrived, arrive):
        seen = past[keys[row]]
        seen.sort(key=lambda other: (times[other], arrived[other], other))
        expected[row] = seen[-5:]
    assert out["last_5rows"].to_pylist() == expected
