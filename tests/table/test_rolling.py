"""`sw.rolling` against the definition of its windows and aggregations."""

import bisect
import math
import random
import signal
import statistics
import threading
import time
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from definitions import BITS, OF_AGES, OF_TIMES, OVER_TIME, PAIRS
from hypothesis import example, given, settings
from tables_oracle import SIDES, answer, same, windows

import slidewise as sw
from slidewise.aggregations.records import kinds

CLOSED = ("right", "left", "both", "neither")
ENDS = (-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1)

INTEGERS = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**40), 2**40))
FLOATS = st.one_of(
    st.none(),
    st.sampled_from([0.0, 1.0, -2.5, 0.1, 1e16, math.inf, -math.inf, math.nan]),
)
LENGTHS = st.one_of(
    st.integers(1, 6),
    st.integers(1, 5).map(sw.rows),
    st.sampled_from([2**63 - 1, 2**62]),
)

# `tests/aggregations/test_catalogue.py` tests these over tables.
ELSEWHERE = {
    *("arg_min", "arg_max", "quantile", "top_k", "bottom_k", *PAIRS),  # need arguments
    *("lag", "first_k", "last_k", *OF_TIMES, *OVER_TIME, *OF_AGES),  # likewise
    *("last_distinct", "histogram"),  # likewise
    *("product", "sum_of_squares"),  # overflow with such integers
    *("skewness", "kurtosis"),  # differ by more than last bits
    *("concat", *BITS),  # take no floats
}
ALL = {
    "rows": sw.count(),
    **{
        f"{kind}_{column}": getattr(sw, kind)(column)
        for kind in kinds()
        if kind not in ELSEWHERE
        for column in ("i", "f")
    },
    "population": sw.variance("f", ddof=0),
    "steep": sw.stddev("i", ddof=2),
    "arg_max": sw.arg_max("f", by="i"),
    "arg_min": sw.arg_min("i", by="f"),
    "when": sw.arg_max(by="f"),
    "p90": sw.quantile("f", 0.9),
    "p10": sw.quantile("i", 0.1, interpolation="nearest"),
}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    count = draw(st.integers(0, 14))
    time = st.one_of(st.integers(-2, 8), st.sampled_from(ENDS))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    return {
        "t": column(time),
        "a": column(st.integers(0, 6)),
        "k": column(st.sampled_from(["x", "y", None])),
        "i": column(INTEGERS),
        "f": column(FLOATS),
    }


SCHEMA = pa.schema(
    [
        ("t", pa.int64()),
        ("a", pa.int64()),
        ("k", pa.string()),
        ("i", pa.int64()),
        ("f", pa.float64()),
    ]
)


def check(
    table: dict[str, list[Any]],
    window: Any,
    aggs: dict[str, sw.Aggregation] = ALL,
    **options: Any,
) -> None:
    by = options.get("by")
    minimum = options.get("min_rows", 0)
    out = sw.rolling(
        pa.table(table, schema=SCHEMA), on="t", windows=window, aggs=aggs, **options
    )
    arrival = options.get("arrival")
    rows = windows(
        table["t"],
        window,
        keys=None if by is None else table[by],
        closed=options.get("closed", "right"),
        ties=options.get("ties", "peers"),
        arrival=None if arrival is None else table[arrival],
    )
    label = (
        f"{window.n}rows" if isinstance(window, sw.rows(1).__class__) else str(window)
    )
    for name, agg in aggs.items():
        expected = [answer(agg, seen, table) for seen in rows]
        if not agg.kind.startswith("count"):
            column = table[agg.by or agg.of]
            present = [sum(column[row] is not None for row in seen) for seen in rows]
            expected = [
                value if number >= minimum else None
                for value, number in zip(expected, present, strict=True)
            ]
        got = out[f"{name}_{label}"].to_pylist()
        assert all(map(same, got, expected)), (name, got, expected)


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(
    tables(),
    LENGTHS,
    st.sampled_from(SIDES),
    st.sampled_from([None, "k"]),
    st.sampled_from([None, "a"]),
    st.integers(0, 3),
)
@example({name: [] for name in "takif"}, 1, ("right", "peers"), "k", "a", 0)
def test_rolling_is_its_definition(
    table: dict[str, list[Any]],
    window: Any,
    sides: tuple[str, str],
    by: str | None,
    arrival: str | None,
    min_rows: int,
) -> None:
    closed, ties = sides if isinstance(window, int) else ("right", sides[1])
    check(
        table,
        window,
        closed=closed,
        ties=ties,
        by=by,
        arrival=arrival,
        min_rows=min_rows,
    )


@settings(max_examples=50, deadline=None)
@given(tables(), LENGTHS, st.sampled_from(sorted(ALL)), st.booleans())
def test_one_aggregation_alone_equals_all_together(
    table: dict[str, list[Any]], window: Any, name: str, arrival: bool
) -> None:
    order = "a" if arrival else None
    check(table, window, {name: ALL[name]}, by="k", arrival=order)


@pytest.mark.parametrize(("closed", "ties"), SIDES)
def test_equal_times_and_closed_sides(closed: str, ties: str) -> None:
    """Conventions on which other libraries differ."""
    table = pa.table({"t": [0, 1, 1, 2, 3, 3], "x": [1, 2, 4, 8, 16, 32]})
    out = sw.rolling(
        table, on="t", windows=2, aggs={"s": sw.sum("x")}, closed=closed, ties=ties
    )
    expected = {
        ("right", "peers"): [1, 7, 7, 14, 56, 56],
        ("right", "rows"): [1, 3, 7, 14, 24, 56],
        ("left", "peers"): [None, 1, 1, 7, 14, 14],
        ("both", "peers"): [1, 7, 7, 15, 62, 62],
        ("both", "rows"): [1, 3, 7, 15, 30, 62],
        ("neither", "peers"): [None, 1, 1, 6, 8, 8],
    }
    assert out["s_2"].to_pylist() == expected[closed, ties]


def test_whole_table_and_as_of_arrival() -> None:
    table = pa.table({"t": [0, 1, 5, 3, 4, 6], "x": [1, 2, 3, 4, 5, 6], "a": range(6)})

    def sums(**options: Any) -> list[int]:
        aggs = {"s": sw.sum("x")}
        return sw.rolling(table, on="t", windows=2, aggs=aggs, **options)[
            "s_2"
        ].to_pylist()

    assert sums() == [1, 3, 8, 4, 9, 9]
    assert sums(arrival="a") == [1, 3, 3, 4, 9, 9]


@pytest.mark.parametrize("rows", [3, 40, 700])
def test_rows_of_equal_arrival_see_one_another(rows: int) -> None:
    """Only rows whose arrival is no later count, as in a query of each row by `at=`."""
    draw = random.Random(rows)
    table = pa.table(
        {
            "t": [draw.randrange(rows) for _ in range(rows)],
            "a": [draw.randrange(rows // 3) for _ in range(rows)],
            "k": [draw.choice("ab") for _ in range(rows)],
            "x": range(rows),
            "y": [draw.uniform(-1, 1) for _ in range(rows)],
        }
    )
    own = sw.aggregation(
        lambda x: [x], lambda a, b: a + b, list, (), returns=pa.list_(pa.int64())
    )
    aggs = {
        "n": sw.count(),
        "all": sw.collect("x"),
        "own": own("x"),
        "last": sw.last("x"),
        "median": sw.median("x"),
        "mode": sw.mode("x"),
        "at": sw.arg_min("x", by="y"),
        "sd": sw.stddev("y"),
    }
    request: dict[str, Any] = {"on": "t", "by": "k", "aggs": aggs, "arrival": "a"}
    request["windows"] = [5, rows, sw.rows(3)]
    out = sw.rolling(table, **request)
    assert out.equals(sw.rolling(table, **request, at=table))
    assert out.equals(sw.rolling(table, **request, ties="rows", threads=3))
    all_rows = table.to_pylist()
    for at, row in enumerate(all_rows):
        seen = [
            other
            for other in all_rows
            if other["k"] == row["k"] and other["a"] <= row["a"]
        ]
        seen.sort(key=lambda other: (other["t"], other["a"], other["x"]))
        for length in (5, rows):
            near = [
                other["x"]
                for other in seen
                if row["t"] - length < other["t"] <= row["t"]
            ]
            assert out[f"all_{length}"][at].as_py() == near
            assert out[f"own_{length}"][at].as_py() == near
            assert out[f"median_{length}"][at].as_py() == statistics.median(near)
        youngest = [other["x"] for other in seen][-3:]
        assert out["all_3rows"][at].as_py() == youngest
        assert out["last_3rows"][at].as_py() == youngest[-1]


def test_rows_as_of_arrival_are_the_youngest_that_had_arrived() -> None:
    table = pa.table(
        {"t": [10, 30, 20, 5], "x": ["a", "b", "c", "d"], "at": [1, 2, 3, 4]}
    )
    out = sw.rolling(
        table, on="t", windows=sw.rows(2), aggs={"x": sw.collect("x")}, arrival="at"
    )
    assert out["x_2rows"].to_pylist() == [["a"], ["a", "b"], ["c", "b"], ["c", "b"]]


def test_a_large_value_leaves_no_trace() -> None:
    table = pa.table({"t": range(6), "x": [1.0, 1e300, math.inf, math.nan, 1.0, 1.0]})
    aggs = {"s": sw.sum("x"), "sd": sw.stddev("x"), "top": sw.max("x")}
    out = sw.rolling(table, on="t", windows=2, aggs=aggs)
    assert [out[f"{name}_2"][5].as_py() for name in aggs] == [2.0, 0.0, 1.0]


def test_nan_as_a_value_as_missing_and_refused() -> None:
    table = pa.table({"t": [1, 2, 3], "x": [1.0, math.nan, 4.0]})

    def run(nan: str) -> list[Any]:
        aggs = {"n": sw.count("x"), "s": sw.sum("x"), "x": sw.collect("x")}
        out = sw.rolling(table, on="t", windows=2, aggs=aggs, nan=nan)
        return [out[name + "_2"].to_pylist() for name in aggs]

    count, total, _ = run("propagate")
    assert count == [1, 2, 2]
    assert math.isnan(total[1])
    assert run("skip") == [[1, 1, 1], [1.0, 1.0, 4.0], [[1.0], [1.0], [4.0]]]
    with pytest.raises(sw.SpecError, match="column 'x' is NaN in row 1"):
        run("raise")


def test_integer_sums_overflow_only_in_the_answer() -> None:
    top = 2**63 - 1
    table = pa.table({"t": [1, 2, 3], "x": [top, top, -top]})
    aggs = {"s": sw.sum("x")}
    assert sw.rolling(table, on="t", windows=1, aggs=aggs)["s_1"].to_pylist() == [
        top,
        top,
        -top,
    ]
    message = (
        r"sum\('x'\) over the window '2' of row 1 .* 18446744073709551614 does not"
    )
    with pytest.raises(sw.ResultOverflowError, match=message):
        sw.rolling(table, on="t", windows=[1, 2], aggs={"n": sw.count(), **aggs})
    out = sw.rolling(
        table.slice(1), on="t", windows=2, aggs={**aggs, "m": sw.mean("x")}
    )
    assert out["s_2"].to_pylist() == [top, 0]


def test_range_overflows_cleanly() -> None:
    table = pa.table({"t": [1, 2], "x": [-(2**63), 2**63 - 1]})
    with pytest.raises(sw.ResultOverflowError, match=r"range\('x'\)"):
        sw.rolling(table, on="t", windows=2, aggs={"r": sw.range("x")})


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("arrival", [None, "t"])
def test_windows_at_the_ends_of_int64(closed: str, arrival: str | None) -> None:
    times = [*ENDS, -1, 0, 1]
    table = pa.table({"t": times})
    for length in (1, 2, 2**63 - 1):
        out = sw.rolling(
            table,
            on="t",
            windows=length,
            aggs={"n": sw.count()},
            closed=closed,
            arrival=arrival,
        )
        order = times if arrival else None
        rows = windows(times, length, closed=closed, arrival=order)
        assert out[f"n_{length}"].to_pylist() == [len(seen) for seen in rows]


@pytest.mark.parametrize(
    "options", [{}, {"by": "k"}, {"arrival": "t"}, {"by": ["k", "t"], "min_rows": 2}]
)
def test_empty_table_and_one_row(options: dict[str, Any]) -> None:
    schema = pa.schema(
        [("t", pa.timestamp("us")), ("k", pa.string()), ("x", pa.int32())]
    )
    aggs = {
        "n": sw.count(),
        "s": sw.sum("x"),
        "top": sw.max("x"),
        "all": sw.collect("x"),
    }
    empty = sw.rolling(
        schema.empty_table(), on="t", windows=["1h", sw.rows(2)], aggs=aggs, **options
    )
    assert empty.num_rows == 0
    assert empty.column_names[3:] == [
        f"{name}_{window}" for window in ("1h", "2rows") for name in aggs
    ]
    one = sw.rolling(
        pa.table([[5], ["a"], [7]], schema=schema),
        on="t",
        windows="1h",
        aggs=aggs,
        **{**options, "min_rows": 0},
    )
    assert (
        one.schema
        == sw.rolling(schema.empty_table(), on="t", windows="1h", aggs=aggs).schema
    )
    assert one.to_pylist()[0] | {"t": 0} == {
        "t": 0,
        "k": "a",
        "x": 7,
        "n_1h": 1,
        "s_1h": 7,
        "top_1h": 7,
        "all_1h": [7],
    }


def test_all_rows_equal_in_time() -> None:
    table = pa.table({"t": [5] * 4, "x": [1, 2, 3, 4]})
    aggs = {"x": sw.collect("x")}
    peers = sw.rolling(table, on="t", windows=1, aggs=aggs)
    assert peers["x_1"].to_pylist() == [[1, 2, 3, 4]] * 4
    rows = sw.rolling(table, on="t", windows=[1, sw.rows(2)], aggs=aggs, ties="rows")
    assert rows["x_1"].to_pylist() == [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]
    assert rows["x_2rows"].to_pylist() == [[1], [1, 2], [2, 3], [3, 4]]
    open_ended = sw.rolling(table, on="t", windows=1, aggs=aggs, closed="neither")
    assert open_ended["x_1"].to_pylist() == [[]] * 4


@pytest.mark.parametrize(
    "keys",
    [
        [1, 2, None, 1, None, 2],
        [1.5, math.nan, None, 1.5, None, math.nan],
        [0.0, 1.0, None, -0.0, None, 1.0],
        ["a", "b", None, "a", None, "b"],
        [True, False, None, True, None, False],
        [b"a", b"", None, b"a", None, b""],
    ],
)
def test_keys_of_any_type_and_null_as_a_key(keys: list[Any]) -> None:
    table = pa.table({"t": range(6), "k": keys})
    for column in (table["k"], table["k"].combine_chunks().dictionary_encode()):
        keyed = table.set_column(1, "k", column)
        out = sw.rolling(keyed, on="t", by="k", windows=10, aggs={"n": sw.count()})
        assert out["n_10"].to_pylist() == [1, 1, 1, 2, 2, 2]


def test_several_keys_and_many_of_them() -> None:
    count = 1000
    table = pa.table(
        {
            "t": [0] * count,
            "a": [row % 10 for row in range(count)],
            "b": [str(row % 7) for row in range(count)],
            "c": [None if row % 3 else row % 2 for row in range(count)],
        }
    )
    out = sw.rolling(
        table, on="t", by=["a", "b", "c"], windows=1, aggs={"n": sw.count()}
    )
    rows = out.select(["a", "b", "c"]).to_pylist()
    sizes: dict[tuple[Any, ...], int] = {}
    for row in rows:
        sizes[tuple(row.values())] = sizes.get(tuple(row.values()), 0) + 1
    assert out["n_1"].to_pylist() == [sizes[tuple(row.values())] for row in rows]


def test_components_shared_by_aggregations_do_not_change_them() -> None:
    table = pa.table({"t": range(50), "x": [math.sin(row) * 1e8 for row in range(50)]})
    kinds = (sw.count, sw.sum, sw.mean, sw.stddev, sw.variance, sw.min, sw.range)
    aggs = {make.__name__: make("x") for make in kinds}
    together = sw.rolling(table, on="t", windows=[3, 17], aggs=aggs)
    for name, agg in aggs.items():
        alone = sw.rolling(table, on="t", windows=[3, 17], aggs={name: agg})
        for window in (3, 17):
            column = f"{name}_{window}"
            assert same(together[column].to_pylist(), alone[column].to_pylist())


def in_turn(
    times: list[int],
    arrival: list[int],
    order: list[int],
    closed: str,
    length: int,
    n: int,
) -> tuple[list[list[int]], list[list[int]]]:
    """The rows that each row sees as of its arrival, by time and by number of rows."""
    seen: list[tuple[int, int]] = []
    by_time: list[list[int]] = [[] for _ in times]
    by_rows: list[list[int]] = [[] for _ in times]
    last = {arrival[row]: place for place, row in enumerate(order)}
    came = 0
    for row in order:
        # All rows that arrived no later, including those of the same arrival.
        for place in range(came, last[arrival[row]] + 1):
            bisect.insort(seen, (times[order[place]], place))
        came = last[arrival[row]] + 1
        lo, hi = times[row] - length, times[row]
        start = bisect.bisect_left(
            seen, (lo if closed in ("left", "both") else lo + 1,)
        )
        end = bisect.bisect_left(seen, (hi + 1 if closed in ("right", "both") else hi,))
        by_time[row] = [order[other] for _, other in seen[start:end]]
        by_rows[row] = [order[other] for _, other in seen[-n:]]
    return by_time, by_rows


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("lag", [0, 3, 100, 5_000])
def test_long_tables_as_of_arrival(closed: str, lag: int) -> None:
    """Long enough for trees of several levels, with many equal times."""
    draw = random.Random(f"{closed} {lag}")
    count = 3_000
    times = [row // 3 + draw.randint(-lag, 0) for row in range(count)]
    arrival = [row + draw.choice([0, 0, 5]) for row in range(count)]
    order = sorted(range(count), key=lambda row: (arrival[row], row))
    table = pa.table({"t": times, "at": arrival, "row": range(count)})
    aggs = {"all": sw.collect("row"), "s": sw.sum("row"), "top": sw.max("row")}
    expected = in_turn(times, arrival, order, closed, 40, 90)
    windows = [40, sw.rows(90)] if closed == "right" else [40]
    for wanted in (aggs, {"s": aggs["s"]}):
        out = sw.rolling(
            table, on="t", windows=windows, aggs=wanted, arrival="at", closed=closed
        )
        for label, seen in zip(("40", "90rows"), expected, strict=True):
            if f"s_{label}" not in out.column_names:
                continue
            sums = [sum(rows) if rows else None for rows in seen]
            assert out[f"s_{label}"].to_pylist() == sums
            if "all" in wanted:
                assert out[f"all_{label}"].to_pylist() == seen
                assert out[f"top_{label}"].to_pylist() == [
                    max(rows, default=None) for rows in seen
                ]


@pytest.mark.parametrize(("closed", "ties"), SIDES)
def test_long_tables(closed: str, ties: str) -> None:
    """Long enough for many flips of the two stacks."""
    draw = random.Random(f"{closed} {ties}")
    count = 2_000
    times = [draw.randint(0, 900) for _ in range(count)]
    order = sorted(range(count), key=lambda row: (times[row], row))
    ordered = [(times[row], row) for row in order]
    table = pa.table({"t": times, "row": range(count)})
    aggs = {"all": sw.collect("row"), "first": sw.first("row"), "n": sw.count()}
    for length in (1, 30, 2_000):
        out = sw.rolling(
            table, on="t", windows=length, aggs=aggs, closed=closed, ties=ties
        )
        expected = []
        for row, now in enumerate(times):
            lo = now - length + (closed in ("right", "neither"))
            start = bisect.bisect_left(ordered, (lo,))
            end = bisect.bisect_left(ordered, (now + (closed in ("right", "both")),))
            if ties == "rows":
                end = bisect.bisect_right(ordered, (now, row))
            expected.append([other for _, other in ordered[start:end]])
        assert out[f"all_{length}"].to_pylist() == expected
        assert out[f"n_{length}"].to_pylist() == [len(rows) for rows in expected]
        firsts = [rows[0] if rows else None for rows in expected]
        assert out[f"first_{length}"].to_pylist() == firsts


def work() -> dict[str, Any]:
    """A call that takes seconds."""
    count = 500_000
    table = pa.table({"t": range(count), "x": pa.nulls(count, pa.float64())})
    aggs = {f"s{ddof}": sw.stddev("x", ddof=ddof) for ddof in range(12)}
    return {"table": table, "on": "t", "windows": list(range(2, 40)), "aggs": aggs}


def test_a_signal_stops_a_running_call() -> None:
    def raised(signum: int, frame: Any) -> None:
        raise InterruptedError("enough")

    options = work()
    before = signal.signal(signal.SIGALRM, raised)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        began = time.monotonic()
        with pytest.raises(InterruptedError, match="enough"):
            sw.rolling(options.pop("table"), **options)
        assert time.monotonic() - began < 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_other_threads_go_on_while_a_call_runs() -> None:
    options = {**work(), "windows": [2, 3]}
    table = options.pop("table")
    thread = threading.Thread(target=lambda: sw.rolling(table, **options))
    ticks = 0
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        ticks += 1
    assert ticks > 20


def test_a_long_table_stays_linear_in_the_window() -> None:
    """A window as long as the table costs about as much as a short one."""
    count = 200_000
    table = pa.table({"t": range(count), "x": [row % 97 for row in range(count)]})
    out = sw.rolling(
        table, on="t", windows=[10, count], aggs={"s": sw.sum("x"), "top": sw.max("x")}
    )
    assert out[f"s_{count}"][-1].as_py() == sum(row % 97 for row in range(count))
