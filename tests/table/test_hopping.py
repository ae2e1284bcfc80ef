"""Windows on a grid and between gaps, against their definition and other engines."""

import random
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.spec.spec import Spec
from slidewise.spec.windows.hop import Hop
from slidewise.table.batched_rolling import rolling_batches

AGGS = {
    "n": sw.count(),
    "values": sw.collect("x"),
    "total": sw.sum("x"),
    "mid": sw.median("x"),
    "first": sw.first("x"),
}


def held(
    table: dict[str, list[Any]], key: Any, start: int, end: int, closed: bool = False
) -> list[int]:
    """The values of a window, earliest first."""
    rows = range(len(table["t"]))
    inside = [
        row
        for row in rows
        if table["k"][row] == key
        and start <= table["t"][row]
        and (table["t"][row] <= end if closed else table["t"][row] < end)
    ]
    return [table["x"][row] for row in sorted(inside, key=lambda row: table["t"][row])]


def answers(values: list[Any]) -> dict[str, Any]:
    present = [value for value in values if value is not None]
    ordered, middle = sorted(present), len(present) // 2
    return {
        "n": len(values),
        "values": present,
        "total": sum(present) if present else None,
        "mid": float(Fraction(ordered[middle] + ordered[~middle], 2))
        if present
        else None,
        "first": present[0] if present else None,
    }


def made(rng: random.Random) -> dict[str, list[Any]]:
    rows = rng.choice([0, 1, 2, 40])
    span = rng.choice([5, 60, 2000])
    return {
        "t": [rng.randrange(-span, span) for _ in range(rows)],
        "k": [rng.choice(["a", "b", None]) for _ in range(rows)],
        "x": [rng.choice([None, *range(9)]) for _ in range(rows)],
    }


@pytest.mark.parametrize("seed", range(150))
def test_hopping_windows_hold_their_rows(seed: int) -> None:
    rng = random.Random(seed)
    table = made(rng)
    window, every = rng.randrange(1, 40), rng.randrange(1, 40)
    offset, empty = rng.randrange(-50, 50), rng.random() < 0.5
    got = sw.hopping(
        as_arrow(table),
        on="t",
        by="k",
        window=window,
        every=every,
        offset=offset,
        empty=empty,
        aggs=AGGS,
    )
    expected = []
    for key in dict.fromkeys(table["k"]):
        starts = [
            start
            for start in range(-2100, 2100)
            if (start - offset) % every == 0 and held(table, key, start, start + window)
        ]
        if empty and starts:
            starts = list(range(starts[0], starts[-1] + 1, every))
        for start in starts:
            end = start + window
            values = held(table, key, start, end)
            where = {"k": key, "window_start": start, "window_end": end}
            expected.append({**where, **answers(values)})
    assert got.to_pylist() == expected


@pytest.mark.parametrize("seed", range(80))
def test_sessions_end_where_the_gap_is_exceeded(seed: int) -> None:
    rng = random.Random(seed)
    table = made(rng)
    gap = rng.choice([1, 3, 30])
    got = sw.hopping(as_arrow(table), on="t", by="k", window=sw.session(gap), aggs=AGGS)
    expected = []
    for key in dict.fromkeys(table["k"]):
        mine = zip(table["t"], table["k"], strict=True)
        times = sorted(time for time, of in mine if of == key)
        while times:
            session = [times.pop(0)]
            while times and times[0] - session[-1] <= gap:
                session.append(times.pop(0))
            start, end = session[0], session[-1]
            values = held(table, key, start, end, closed=True)
            where = {"k": key, "window_start": start, "window_end": end}
            expected.append({**where, **answers(values)})
    assert got.to_pylist() == expected


def as_arrow(table: dict[str, list[Any]]) -> pa.Table:
    types = {"t": pa.int64(), "k": pa.string(), "x": pa.int64()}
    return pa.table({name: pa.array(table[name], types[name]) for name in table})


def test_hops_are_those_of_polars() -> None:
    rng = random.Random(3)
    start = datetime(2024, 2, 28, 23, 59)
    times = [start + timedelta(seconds=rng.randrange(90_000)) for _ in range(2000)]
    frame = pl.DataFrame(
        {
            "t": times,
            "k": [rng.randrange(5) for _ in times],
            "x": [rng.gauss(0, 1) for _ in times],
        }
    )
    ours = sw.hopping(
        frame,
        on="t",
        by="k",
        window="15m",
        every="4m",
        aggs={"n": sw.count(), "hi": sw.max("x"), "x": sw.sum("x")},
    )
    assert ours.schema["window_start"] == frame.schema["t"]
    theirs = (
        frame.sort("t")
        .group_by_dynamic(
            "t", group_by="k", every="4m", period="15m", start_by="window"
        )
        .agg(n=pl.len(), hi=pl.max("x"), s=pl.sum("x"))
    )
    ours = ours.sort("k", "window_start")
    # polars leaves out windows that begin before the first row's tumbling window.
    both = theirs.join(
        ours, left_on=["k", "t"], right_on=["k", "window_start"], how="left"
    )
    assert both["n"].cast(pl.Int64).to_list() == both["n_right"].to_list()
    assert both["hi"].to_list() == both["hi_right"].to_list()
    assert both["s"].to_list() == pytest.approx(both["x"].to_list(), abs=1e-12)


def test_pandas_keeps_its_types() -> None:
    frame = pd.DataFrame(
        {
            "t": pd.to_datetime(["2024-01-01 10:01", "2024-01-01 10:07"], utc=True),
            "k": pd.Categorical(["b", "a"]),
            "x": [1, 2],
        }
    )
    got = sw.hopping(
        frame, on="t", by="k", window="10m", aggs={"x": sw.sum("x"), "t": sw.max("t")}
    )
    assert got.columns.tolist() == ["k", "window_start", "window_end", "x", "t"]
    assert got.index.tolist() == [0, 1]
    assert got["k"].tolist() == ["b", "a"]
    assert got["k"].dtype == "category"
    assert got["x"].dtype == "int64"
    assert got["window_end"].dtype == got["t"].dtype
    assert str(got["window_start"][0]) == "2024-01-01 10:00:00+00:00"


def test_days_can_begin_at_six() -> None:
    times = pa.array([datetime(2024, 1, 1, 5), datetime(2024, 1, 1, 7)])
    got = sw.hopping(
        pa.table({"t": times}),
        on="t",
        window="1d",
        offset="6h",
        aggs={"n": sw.count()},
    )
    starts = [datetime(2023, 12, 31, 6), datetime(2024, 1, 1, 6)]
    assert got["window_start"].to_pylist() == starts
    assert got["window_start"].type == times.type


def test_user_defined_aggregations_over_hopping_windows() -> None:
    listed = sw.aggregation(
        lift=lambda x: (x,),
        combine=lambda a, b: a + b,
        lower=list,
        identity=(),
    )
    got = sw.hopping(
        pa.table({"t": [4, 1, 12], "x": [1, 2, 3]}),
        on="t",
        window=10,
        every=5,
        aggs={"x": listed("x")},
    )
    assert got["x"].to_pylist() == [[2, 1], [2, 1], [3], [3]]


def test_few_rows_give_null() -> None:
    table = pa.table({"t": [1, 2, 12], "x": [1, 2, 3]})
    aggs = {"n": sw.count(), "x": sw.sum("x")}
    got = sw.hopping(table, on="t", window=10, aggs=aggs, min_rows=2)
    assert got["n"].to_pylist() == [2, 1]
    assert got["x"].to_pylist() == [3, None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": sw.rows(3), "every": "1h"}, "a window of rows slides by rows"),
        ({"window": 3, "every": sw.rows(2), "closed": "left"}, "closed= does not"),
        ({"window": 3, "every": sw.rows(2), "empty": True}, "empty= does not apply"),
        ({"window": sw.until("k"), "every": 2}, "every= does not apply to until('k')"),
        ({"window": sw.session(3), "closed": "right"}, "closed= does not apply"),
        ({"window": 3, "closed": "both"}, "closed= is one of left, right"),
        ({"window": sw.delta("t", 3)}, "delta('t', 3) is a window of rolling"),
        ({"window": sw.Query(5, every=2)}, "slide of its own: give it in windows="),
        (
            {"windows": [5, sw.until("f")], "every": 2},
            "until('f'): leave it out, and give other windows theirs by sw.Query",
        ),
        ({}, "either window=, such as '1h', or windows="),
        ({"window": 3, "windows": [4]}, "both are given"),
        ({"windows": []}, "windows= is empty"),
        ({"windows": [3, sw.Query(3, every=3), 3]}, "the window '3' is given twice"),
        ({"windows": [3], "aggs": {"window": sw.count()}}, "would occur twice"),
        ({"window": 3, "every": "1h"}, "differ in kind"),
        ({"window": 3, "offset": "1h"}, "differ in kind"),
        ({"window": 3, "every": 0}, "every=0 must be longer than zero"),
        ({"window": "1h"}, "window='1h' is a duration, but column 't' holds integers"),
        ({"window": sw.session(3), "every": 2}, "every= does not apply to session(3)"),
        ({"window": sw.session(3), "empty": True}, "empty= does not apply"),
        ({"window": 3, "empty": 1}, "empty= takes True or False, got 1"),
        ({"window": 3, "aggs": {"t": sw.count("y")}}, "no column 'y'"),
        ({"window": 3, "aggs": {"window_end": sw.count()}}, "would occur twice"),
        (
            {"window": 3, "by": "k", "aggs": {"k": sw.count()}},
            "by= names 'k', as a column",
        ),
        ({"window": 3, "by": "window_end"}, "by= names 'window_end', as"),
        (
            {"window": [3, 5]},
            "window=[3, 5] is a list: give several windows as windows=",
        ),
    ],
)
def test_refused_arguments(options: dict[str, Any], message: str) -> None:
    table = pa.table({"t": [1], "k": ["a"]})
    with pytest.raises(sw.SpecError) as raised:
        sw.hopping(table, on="t", **{"aggs": {"n": sw.count()}, **options})
    assert message in str(raised.value)


def test_windows_beyond_int64_name_the_row() -> None:
    table = pa.table({"t": [0, 2**63 - 1]})
    with pytest.raises(sw.SpecError, match=r"around row 1 .* beyond the times"):
        sw.hopping(table, on="t", window=10, aggs={"n": sw.count()})


def test_an_empty_table_gives_an_empty_one() -> None:
    table = pa.table({"t": pa.array([], pa.timestamp("s")), "x": pa.array([], "f8")})
    got = sw.hopping(table, on="t", window="1h", aggs={"x": sw.mean("x")})
    assert got.num_rows == 0
    assert got.schema.names == ["window_start", "window_end", "x"]
    assert got.schema.field("window_end").type == pa.timestamp("s")


def test_overflow_names_the_window() -> None:
    table = pa.table({"t": [0, 50, 51], "x": [1, 2**62, 2**62]})
    with pytest.raises(sw.ResultOverflowError, match="of window_end=60: "):
        sw.hopping(table, on="t", window=10, aggs={"x": sw.sum("x")})


def test_the_spec_holds_all_arguments() -> None:
    spec = Spec.make_hopping(
        on="t", window="1h", every="5m", offset="1m", aggs={"n": sw.count()}
    )
    (window,) = spec.windows
    assert isinstance(window, Hop)
    assert (window.closed, window.label) == ("left", "1h")
    assert window.every.amount == 300 * 10**9
    assert window.offset is not None
    assert window.offset.amount == 60 * 10**9
    assert spec.hash != Spec.make(on="t", windows="1h", aggs={"n": sw.count()}).hash


def test_messages_about_gaps() -> None:
    rows = pd.DataFrame({"t": pd.to_datetime([1, 2], unit="s")})
    with pytest.raises(sw.SpecError, match=r"^gap=5 is a bare number"):
        sw.hopping(rows, on="t", window=sw.session(5), aggs={"n": sw.count()})


@pytest.mark.parametrize(
    "kind",
    [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.int8(), pa.int32()],
    ids=str,
)
def test_the_type_of_window_ends_does_not_depend_on_the_rows(kind: pa.DataType) -> None:
    """Windows may begin before unsigned times, and end beyond narrow types."""
    for times in ([3, 100], [60, 100], [127], []):
        table = pa.table({"t": pa.array(times, kind)})
        out = sw.hopping(table, on="t", window=20, every=2, aggs={"n": sw.count()})
        assert out.schema.field("window_start").type == pa.int64()
        assert out.schema.field("window_end").type == pa.int64()
        starts = out["window_start"].to_pylist()
        covers = [
            start
            for start in range(-20, 140, 2)
            if any(start <= time < start + 20 for time in times)
        ]
        assert starts == covers
        assert out["window_end"].to_pylist() == [start + 20 for start in covers]


@pytest.mark.parametrize(
    ("last", "kind", "text"),
    [
        (
            253_402_214_400_000_000,
            pa.timestamp("us"),
            "window_end=10000-01-01 00:00:00",
        ),
        (253_402_214_400, pa.timestamp("s", "UTC"), "window_end=10000-01-01 00:00:00"),
        (2_932_896, pa.date32(), "window_end=10000-01-01"),
        (
            2**62,
            pa.timestamp("us", "UTC"),
            r"window_end=4611686054400000000 \(timestamp\[us, tz=UTC\]\)",
        ),
        (
            2**62 - 1,
            pa.duration("s"),
            r"window_end=4611686018427446400 \(duration\[s\]\)",
        ),
    ],
    ids=str,
)
def test_overflow_messages_beyond_the_year_9999(
    last: int, kind: pa.DataType, text: str
) -> None:
    day = pa.array([last], pa.int32() if kind == pa.date32() else pa.int64())
    days = pa.concat_arrays([day, day]).view(kind)
    table = pa.table({"t": days, "x": [2**62] * 2})
    request: dict[str, Any] = {"on": "t", "window": "1d", "aggs": {"s": sw.sum("x")}}
    with pytest.raises(sw.ResultOverflowError, match=text):
        sw.hopping(table, **request)


def test_batches_compare_keys_beyond_the_year_9999() -> None:
    days = pa.array([253_402_300_800 + day for day in (0, 0, 1)], pa.timestamp("s"))
    table = pa.table({"t": days, "k": days, "x": [2**62, 2**62, 1]})
    spec = Spec.make(on="t", by="k", windows="1h", aggs={"s": sw.sum("x")})
    text = r"k=10000-01-01 00:00:00, t=10000-01-01 00:00:00"
    with pytest.raises(sw.ResultOverflowError, match=text):
        list(rolling_batches(table.to_batches(max_chunksize=1), spec, table.schema))
    fine = Spec.make(on="t", by="k", windows="1h", aggs={"n": sw.count()})
    parts = list(rolling_batches(table.to_batches(max_chunksize=1), fine, table.schema))
    assert pa.concat_tables(parts)["n_1h"].to_pylist() == [2, 2, 1]


def test_window_ends_beyond_date32():
    last = pa.array([2**31 - 1], pa.int32()).view(pa.date32())
    with pytest.raises(sw.SpecError, match="beyond the days that column 'd'"):
        sw.hopping(pa.table({"d": last}), on="d", window="1d", aggs={"n": sw.count()})


@pytest.mark.parametrize("empty", [False, True])
def test_more_windows_than_there_can_be(empty):
    table = pa.table({"t": [0, 2**62]})
    options = {"on": "t", "every": 1, "window": 2**61, "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match=r"there are \d{19} windows.* larger every="):
        sw.hopping(table, **options, empty=empty)


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_dates_take_whole_days(kind: pa.DataType) -> None:
    days = pa.array([0, 1, 2], pa.int32()).cast(pa.date32()).cast(kind)
    table = pa.table({"t": days, "x": [1, 2, 3]})
    with pytest.raises(sw.SpecError, match="'36h' is not a whole number of units"):
        sw.hopping(table, on="t", window="36h", every="12h", aggs={"n": sw.count()})
    aggs = {"n": sw.sum("x")}
    out = sw.hopping(table, on="t", window="2d", every="1d", aggs=aggs)
    assert out["n"].to_pylist() == [1, 3, 5, 3]
    assert out["window_end"].type == kind
