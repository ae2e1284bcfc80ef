"""Aggregations that depend on the ends of windows, in every engine.

Each engine has windows whose ends are not the times of their rows. The definitions are
those of `definitions.py`, over the rows of each window and its end.
"""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from definitions import AREAS, OF_AGES, answer, carried
from seeds import SEED

import slidewise as sw
from slidewise.io.out_of_core import rolling_file

AGGS = {
    "last": sw.since_last(),
    "last_where": sw.since_last(where="w"),
    "first": sw.since_first(),
    "first_where": sw.since_first(where="w"),
    "sum": sw.decayed_sum("x", 5),
    "sum_where": sw.decayed_sum("y", 1, where="w"),
    "sum_rows": sw.decayed_sum("y", sw.rows(2)),
    "count": sw.decayed_count(3),
    "count_where": sw.decayed_count(sw.rows(2), where="w"),
    "mean": sw.decayed_mean("y", 4),
    "mean_rows": sw.decayed_mean("x", sw.rows(3), where="w"),
    "variance": sw.decayed_variance("y", 6),
    "variance_rows": sw.decayed_variance("x", sw.rows(1)),
    "area": sw.integral("x", edge="first", unit=10),
    "line": sw.integral("y", "linear", "first", where="w"),
    "level": sw.time_weighted_mean("y", edge="first"),
    "slope": sw.time_weighted_mean("x", "linear", "first"),
}
ENDS = sw.aggregation(
    combine=lambda a, b: a, lower=lambda _, start, end: [start, end], identity=None
)
AREA_OF_LINE = sw.integral("x", "linear")
Rows = list[dict[str, Any]]


def drawn(seed: int, count: int) -> Rows:
    """Rows in order of time, with ties, gaps and nulls."""
    rng, time, rows = random.Random(f"{SEED}{seed}"), -20, []
    for number in range(count):
        time += rng.choice([0, 0, 1, 2, 3, 9])
        rows.append(
            {
                "t": time,
                "k": rng.choice("ab"),
                "x": rng.choice([None, *range(-4, 9)]),
                "y": rng.choice([None, 1e9 + 0.25, -0.5, 3.0, rng.random()]),
                "w": rng.choice([None, True, True, False]),
                "n": number,
            }
        )
    return rows


def table_of(rows: Rows) -> pa.Table:
    names = ("t", "k", "x", "y", "w", "n")
    types = (pa.int64(), pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.int64())
    return pa.table(
        [
            pa.array([row[c] for row in rows], of)
            for c, of in zip(names, types, strict=True)
        ],
        names=names,
    )


def check(got: dict[str, Any], rows: Rows, end: int, *, suffix: str = "") -> None:
    """Compares answers over rows, in a window that ends at `end`."""
    for name, agg in AGGS.items():
        found, want = got[f"{name}{suffix}"], answer(agg, rows, end=end)
        if isinstance(want, float):
            size = 1e9 if agg.of == "y" else 1.0
            size = size**2 if agg.kind == "decayed_variance" else size
            near = isinstance(found, float) and math.isclose(
                found, want, rel_tol=1e-12, abs_tol=size * 1e-15
            )
            assert near, (name, found, want, rows, end)
        else:
            assert found == want, (name, found, want, rows, end)


def among(rows: Rows, key: str, since: int, until: int) -> Rows:
    """The rows of a key in (since, until]."""
    return [row for row in rows if row["k"] == key and since < row["t"] <= until]


def shuffled(rows: Rows, seed: int) -> Rows:
    """The rows in another order, those of equal time in theirs."""
    rng = random.Random(f"{SEED}{seed}")
    order = {row["t"]: rng.random() for row in rows}
    return sorted(rows, key=lambda row: order[row["t"]])


@pytest.mark.parametrize("seed", range(3))
def test_rows_and_points_end_windows_of_tables(seed: int) -> None:
    rows = drawn(seed, 60)
    given = shuffled(rows, seed)
    table = table_of(given)
    common: dict[str, Any] = {"on": "t", "by": "k", "aggs": AGGS}
    windows = [7, sw.rows(4), sw.unbounded()]
    out = sw.rolling(table, windows=windows, **common).to_pylist()
    labels = ["_7", "_4rows", "_unbounded"]
    names = [
        next(c for c in out[0] if c.startswith("last_") and c.endswith(s))
        for s in labels
    ]
    suffixes = [name.removeprefix("last") for name in names]
    for row, got in zip(given, out, strict=True):
        end = row["t"]
        whole = among(rows, row["k"], -99, end)
        place = [other["n"] for other in whole].index(row["n"])
        check(got, among(rows, row["k"], end - 7, end), end, suffix=suffixes[0])
        check(got, whole[max(0, place - 3) : place + 1], end, suffix=suffixes[1])
        check(got, whole, end, suffix=suffixes[2])
    points = [{"k": k, "t": t} for t in range(-25, 160, 7) for k in "bac"]
    out = sw.rolling(
        table, windows=[7], at=pa.Table.from_pylist(points), **common
    ).to_pylist()
    for point, got in zip(points, out, strict=True):
        inside = among(rows, point["k"], point["t"] - 7, point["t"])
        check(got, inside, point["t"], suffix="_7")


@pytest.mark.parametrize("options", [{"exclude": "self"}, {"closed": "left"}])
def test_windows_without_their_row_end_at_it(options: dict[str, str]) -> None:
    rows = drawn(7, 50)
    out = sw.rolling(
        table_of(rows), on="t", by="k", windows=9, aggs=AGGS, **options
    ).to_pylist()
    for row, got in zip(rows, out, strict=True):
        if "exclude" in options:
            inside = among(rows, row["k"], row["t"] - 9, row["t"])
            inside = [other for other in inside if other is not row]
        else:
            inside = among(rows, row["k"], row["t"] - 10, row["t"] - 1)
        check(got, inside, row["t"], suffix="_9")


def test_an_offset_moves_the_ends() -> None:
    rows = drawn(8, 50)
    out = sw.rolling(table_of(rows), on="t", by="k", windows=9, offset=4, aggs=AGGS)
    for row, got in zip(rows, out.to_pylist(), strict=True):
        end = row["t"] - 4
        check(got, among(rows, row["k"], end - 9, end), end, suffix="_9")


def test_an_offset_of_rows_leaves_the_ends() -> None:
    rows = sorted(drawn(8, 50), key=lambda row: (row["k"], row["t"]))
    given = {"on": "t", "by": "k", "windows": sw.rows(3), "offset": sw.rows(2)}
    table = table_of(rows)
    kw = sw.KeyedWindows(sw.Spec(**given, aggs=AGGS))
    kw.ingest(table.sort_by("t"))
    kw.advance(10**6)
    streamed = kw.collect().sort_by([("k", "ascending"), ("t", "ascending")])
    for out in (sw.rolling(table, **given, aggs=AGGS), streamed):
        of_rows = {row["n"]: row for row in out.to_pylist()}
        for at, row in enumerate(rows):
            before = [one for one in rows[:at] if one["k"] == row["k"]][-4:]
            check(of_rows[row["n"]], before[:-1], row["t"], suffix="_3rows")


@pytest.mark.parametrize("arrival", [None, "n"])
def test_an_offset_of_rows_does_not_move_the_ends(arrival: str | None) -> None:
    table = pa.table({"t": [0, 3, 3, 7], "x": [1, 2, 3, 4], "n": range(4)})
    aggs = {"last": sw.since_last(), "n": sw.decayed_count(1), "own": ENDS("x")}
    options: dict[str, Any] = {"on": "t", "windows": sw.rows(2), "aggs": aggs}
    options["offset"] = sw.rows(1)
    out = sw.rolling(table, arrival=arrival, **options)
    assert out["last_2rows"].to_pylist() == [None, 3, 0, 4]
    assert out["n_2rows"].to_pylist() == [None, 1 / 8, 1 + 1 / 8, 1 / 16 + 1 / 16]
    assert out["own_2rows"].to_pylist() == [None, [None, 3], [None, 3], [None, 7]]
    if arrival is None:
        out = sw.rolling(table, at=pa.table({"t": [5, 9]}), **options)
        assert out["last_2rows"].to_pylist() == [2, 6]
        stream = sw.KeyedWindows(**options, emit="none", late=99)
        stream.ingest(table)
        assert stream.query(at=5)["last_2rows"] == 2


def test_windows_of_a_length_begin_at_a_time_wherever_rows_find_them() -> None:
    aggs = {"own": ENDS("x"), "area": sw.integral("x"), "line": AREA_OF_LINE}
    table = pa.table({"t": [0, 4, 10, 11], "x": [2, 4, 1, 3], "w": [2, 3, None, 0]})
    out = sw.rolling(table, on="t", windows=sw.length("w"), aggs=aggs)
    assert out["own_length_w"].to_pylist() == [[-2, 0], [1, 4], None, None]
    assert out["area_length_w"].to_pylist() == [0, 6, None, 0]
    assert out["line_length_w"].to_pylist() == [0, 9.75, None, 0]
    # Every second row ends a window of a length.
    hops = sw.hopping(table, on="t", window=3, every=sw.rows(2), aggs=aggs)
    assert hops["own"].to_pylist() == [[1, 4], [8, 11]]
    assert hops["area"].to_pylist() == [6, 4 + 4 + 1]
    # The month before begins earlier for the later one of two rows.
    days = [datetime(2026, 2, 28, 20), datetime(2026, 3, 29, 18)]
    days += [datetime(2026, 3, 30, 6)]
    bills = pa.table({"t": pa.array(days, pa.timestamp("s")), "x": [1, 2, 3]})
    month = sw.calendar("1mo")
    out = sw.rolling(bills, on="t", windows=month, ties="rows", aggs={"own": ENDS("x")})
    starts = [datetime(2026, 1, 28, 20), datetime(2026, 2, 28, 18)]
    starts += [datetime(2026, 2, 28, 6)]
    assert [own[0] for own in out["own_calendar_1mo"].to_pylist()] == starts


def test_rows_that_close_windows_are_their_ends() -> None:
    rows = drawn(9, 40)
    options: dict[str, Any] = {"on": "t", "by": "k", "aggs": AGGS}
    sessions = sw.hopping(table_of(rows), window=sw.session(4), **options).to_pylist()
    assert len(sessions) > 5
    for got in sessions:
        start, end = got["window_start"], got["window_end"]
        check(got, among(rows, got["k"], start - 1, end), end)
    table = pa.table({"t": [1, 3, 7, 8], "f": [False, None, True, False]})
    aggs = {"first": sw.since_first(), "n": sw.decayed_count(2)}
    (got,) = sw.hopping(table, on="t", window=sw.until("f"), aggs=aggs).to_pylist()
    assert (got["first"], got["n"]) == (6, 1 + 0.25 + 0.125)


@pytest.mark.parametrize("closed", ["left", "right"])
def test_hopping_windows_end_at_their_end(closed: str) -> None:
    rows = drawn(10, 60)
    options: dict[str, Any] = {"on": "t", "by": "k", "window": 12, "every": 5}
    options |= {"closed": closed, "offset": 2, "aggs": AGGS}
    table = table_of(shuffled(rows, 1))
    late = 200
    kw = sw.KeyedWindows(sw.Spec(**options), late=late)
    for at in (0, 20, 40):
        kw.ingest(table.slice(at, 20))
    kw.advance(500)
    streamed = kw.collect()
    for out in (sw.hopping(table, **options), streamed):
        assert len(out) > 20
        for got in out.to_pylist():
            shift = 0 if closed == "right" else -1
            start, end = got["window_start"] + shift, got["window_end"] + shift
            check(got, among(rows, got["k"], start, end), got["window_end"])


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
def test_streams_end_windows_at_their_rows_and_queries_at_theirs(emit: str) -> None:
    rows = drawn(11, 60)
    spec = sw.Spec(on="t", by="k", windows=8, aggs=AGGS)
    kw = sw.KeyedWindows(spec, late=30, emit=emit)
    batches = [shuffled(rows[at : at + 12], at) for at in range(0, 60, 12)]
    emitted = 0
    for number, batch in enumerate(batches):
        kw.ingest(table_of(batch))
        seen = rows[: 12 * (number + 1)]
        if number == 4:
            kw.advance(1000)
        out = kw.collect()
        emitted += len(out)
        kw = sw.KeyedWindows.from_bytes(kw.to_bytes(), spec)
        for got in out.to_pylist():
            inside = among(seen, got["k"], got["t"] - 8, got["t"])
            check(got, inside, got["t"], suffix="_8")
        if number == 4:
            assert emitted >= 10
            break
        at = seen[-1]["t"]
        points = [(key, at + wait) for key in "ab" for wait in (0, 3, 7)]
        asked = pa.table({"k": [k for k, _ in points], "t": [t for _, t in points]})
        many = kw.query_many(asked, at="t").to_pylist()
        for (key, end), got in zip(points, many, strict=True):
            inside = among(seen, key, end - 8, end)
            check(got, inside, end, suffix="_8")
            check(kw.query(key, at=end), inside, end, suffix="_8")
            more = {"x": 3, "y": 0.5, "w": True, "t": end, "n": 0, "k": key}
            plus = {name: more[name] for name in "xyw"}
            check(kw.query(key, at=end, plus=plus), [*inside, more], end, suffix="_8")


def columns_of(rows: Rows) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in ("x", "y", "w")}


@pytest.mark.parametrize("algorithm", ["auto", "fiba", "recalculate"])
def test_a_window_ends_at_its_latest_entry_or_at_the_bound_asked_for(
    algorithm: str,
) -> None:
    rows = drawn(12, 50)
    w = sw.Window(AGGS, algorithm=algorithm, ties="keep")
    given = shuffled(rows, 2)
    w.insert_many([row["t"] for row in given[:30]], columns_of(given[:30]))
    for row in given[30:]:
        w.insert(row["t"], row)
    last = rows[-1]["t"]
    check(w.query(), rows, last)
    w = sw.Window.from_bytes(w.to_bytes())
    for lo, hi in ((-5, None), (None, 9), (-3, 30), (0, last + 50), (9999, 9999)):
        end = last if hi is None else hi
        low = -99 if lo is None else lo
        inside = [row for row in rows if low <= row["t"] <= end]
        check(w.query(lo, hi), inside, end)
    w.evict_until(5)
    check(w.query(), [row for row in rows if row["t"] > 5], last)


def test_shared_windows_end_at_the_end_of_each_query() -> None:
    rows = drawn(13, 40)
    queries = [sw.Query(10, every=4), sw.Query(sw.rows(3), every=sw.rows(2))]
    w = sw.SharedWindow(AGGS, queries=queries)
    due = []
    for row in rows:
        due += w.insert(row["t"], row) or []
    assert len(due) > 20
    table = sw.SharedWindow(AGGS, queries=queries).insert_many(
        [row["t"] for row in rows], columns_of(rows)
    )
    assert table is not None
    of_time = [one for one in table.to_pylist() if one["query"] == 0]
    want = [(end, got) for query, end, got in due if query == 0]
    for one, (end, got) in zip(of_time, want, strict=True):
        assert one["end"] == end
        for name, found in one["value"].items():
            same = found == got[name]
            assert same or math.isclose(found, got[name], rel_tol=1e-12), name
    for query, end, got in due:
        if query == 0:
            inside = [row for row in rows if end - 10 < row["t"] <= end]
            check(got, inside, end)
    apart = list({row["t"]: row for row in rows}.values())
    shared = sw.SharedWindow(AGGS, ranges=[6, 12])
    shared.insert_many([row["t"] for row in apart], columns_of(apart))
    for count, got in zip((6, 12), shared.query(), strict=True):
        check(got, apart[-count:], rows[-1]["t"])


def test_times_decay_by_their_unit() -> None:
    """A half-life of one hour, over times of any unit and library."""
    hours = [datetime(2024, 3, 30, 12), datetime(2024, 3, 30, 14)]
    aggs = {
        "sum": sw.decayed_sum("x", "1h"),
        "count": sw.decayed_count(timedelta(hours=1)),
        "area": sw.integral("x", edge="first", unit="30m"),
        "last": sw.since_last(where="w"),
    }
    values = {"x": [8, 3], "w": [True, False]}
    want = {"sum": 5.0, "count": 1.25, "area": 32.0, "last": timedelta(hours=2)}
    for times in (
        hours,
        [t.replace(tzinfo=UTC) for t in hours],
        np.array(hours, "datetime64[s]"),
        list(pd.to_datetime(hours).as_unit("ns")),
    ):
        w = sw.Window(aggs)
        w.insert_many(times, values)
        assert w.query() == want
        assert sw.Window.from_bytes(w.to_bytes()).query() == want
    for unit in ("s", "ms", "us", "ns"):
        table = pa.table({"t": pa.array(hours, pa.timestamp(unit)), **values})
        out = sw.rolling(table, on="t", windows="9h", aggs=aggs)
        assert out["last_9h"].type == pa.duration(unit)
        assert {name: out[f"{name}_9h"][-1].as_py() for name in aggs} == want
    days = pa.table({"t": [date(2024, 1, 1), date(2024, 1, 3)], **values})
    aggs = {"sum": sw.decayed_sum("x", "2d"), "last": sw.since_first()}
    out = sw.rolling(days, on="t", windows="9d", aggs=aggs).to_pylist()[-1]
    assert (out["sum_9d"], out["last_9d"]) == (7.0, timedelta(2))


def test_any_span_of_half_lives_is_zero() -> None:
    times = [0, 7 * 86_400, 7 * 86_400 + 1]
    table = pa.table({"t": times, "x": [1e308, 0.0, 6.0]})
    aggs = {"s": sw.decayed_sum("x", 1), "m": sw.decayed_mean("x", 1)}
    out = sw.rolling(table, on="t", windows=10**9, aggs=aggs).to_pylist()
    assert [row["s_1000000000"] for row in out] == [1e308, 0.0, 6.0]
    assert [row["m_1000000000"] for row in out] == [1e308, 0.0, 4.0]
    week = sw.rolling(
        table, on="t", windows=2**62, at=pa.table({"t": [2**61]}), aggs=aggs
    ).to_pylist()
    assert week[0]["s_4611686018427387904"] == 0.0
    assert week[0]["m_4611686018427387904"] == 4.0
    w = sw.Window(sw.decayed_sum(half_life=1))
    w.insert_many(times, [1e308, 0.0, 6.0])
    assert w.query() == 6.0
    assert w.query(None, 10**9) == 0.0


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_values_that_are_not_finite_stay(value: float) -> None:
    table = pa.table({"t": [0, 1, 5000], "x": [value, 1.0, 2.0]})
    aggs = {"s": sw.decayed_sum("x", 1), "v": sw.decayed_variance("x", 1)}
    out = sw.rolling(table, on="t", windows=[3, 9999], aggs=aggs).to_pylist()
    for row in out[:2]:
        assert repr(row["s_3"]) == repr(value)
        assert math.isnan(row["v_3"])
    assert (out[2]["s_3"], out[2]["v_3"]) == (2.0, 0.0)
    assert repr(out[2]["s_9999"]) == repr(value)


def test_columns_of_integers_widen() -> None:
    aggs = {name: agg for name, agg in AGGS.items() if agg.of in (None, "x")}
    aggs = {name: agg for name, agg in aggs.items() if agg.where is None}
    widened, plain = sw.Window(aggs), sw.Window(aggs)
    times, values = [1, 3, 3, 8], [2, -1, 4, 0.5]
    for t, x in zip(times, values, strict=True):
        widened.insert(t, {"x": x})
    plain.insert_many(times, {"x": [float(x) for x in values]})
    assert widened.query() == pytest.approx(plain.query(), rel=1e-15)


def test_files_have_the_answers_of_tables(tmp_path: Path) -> None:
    table = table_of(drawn(14, 50))
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source, row_group_size=7)
    spec = sw.Spec(on="t", by="k", windows=6, aggs=AGGS)
    rolling_file(source, target, spec, memory=1)
    assert pq.read_table(target).equals(sw.rolling(table, spec))


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(sw.SpecError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("given", [0, -1, "0s", "-1h", timedelta(0), 1.5, True, [1]])
def test_a_half_life_is_longer_than_zero(given: Any) -> None:
    def spec() -> object:
        return sw.Spec(on="t", windows=5, aggs={"s": sw.decayed_sum("x", given)})

    def window() -> object:
        return sw.Window(sw.decayed_mean(half_life=given))

    for call in (spec, window):
        message = refused(call)
        assert "half_life" in message
        assert "longer than zero" in message


def test_a_half_life_suits_the_times() -> None:
    table = pa.table({"t": [1], "x": [1]})
    aggs = {"s": sw.decayed_sum("x", "1h")}
    message = refused(lambda: sw.rolling(table, on="t", windows=5, aggs=aggs))
    assert message.startswith("half_life='1h' does not fit the times: give an int")
    w = sw.Window(sw.decayed_sum(half_life="1h"))
    assert "does not fit the times" in refused(lambda: w.insert(1, 1))
    w.insert(datetime(2024, 1, 1), 8)
    assert w.query(None, datetime(2024, 1, 1, 2)) == 2.0
    assert "is missing" in refused(lambda: sw.Window(sw.decayed_sum()))


CARRIED = {
    "area": sw.integral("y", unit=2),
    "area_where": sw.integral("x", where="w"),
    "line": sw.integral("x", "linear"),
    "level": sw.time_weighted_mean("x"),
    "slope": sw.time_weighted_mean("y", "linear", where="w"),
}


def check_carried(
    got: dict[str, Any],
    rows: Rows,
    earlier: Rows,
    ends: tuple[int, int],
    suffix: str = "",
) -> None:
    for name, agg in CARRIED.items():
        want, found = carried(agg, rows, earlier, *ends), got[f"{name}{suffix}"]
        near = found == want or math.isclose(found, want, rel_tol=1e-12, abs_tol=1e-5)
        assert near, (name, found, want, rows, earlier, ends)


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
def test_a_window_begins_with_the_entry_before_it(closed: str) -> None:
    rows = drawn(15, 60)
    given = shuffled(rows, 4)
    options: dict[str, Any] = {"on": "t", "by": "k", "closed": closed, "aggs": CARRIED}
    out = sw.rolling(table_of(given), windows=[6], **options).to_pylist()

    def parts(key: str, since: int, until: int) -> tuple[Rows, Rows]:
        own = [row for row in rows if row["k"] == key]
        earlier = [t for t in own if t["t"] <= since - (closed in ("left", "both"))]
        last = until - (closed in ("left", "neither"))
        return [row for row in own if row not in earlier and row["t"] <= last], earlier

    for row, got in zip(given, out, strict=True):
        ends = (row["t"] - 6, row["t"])
        check_carried(got, *parts(row["k"], *ends), ends, "_6")
    points = [{"k": k, "t": t} for t in range(-25, 160, 7) for k in "bac"]
    at = pa.Table.from_pylist(points)
    out = sw.rolling(table_of(given), windows=[6], at=at, **options).to_pylist()
    for point, got in zip(points, out, strict=True):
        ends = (point["t"] - 6, point["t"])
        check_carried(got, *parts(point["k"], *ends), ends, "_6")
    if closed in ("left", "right"):
        hops = sw.hopping(table_of(given), window=8, every=3, **options).to_pylist()
        assert len(hops) > 20
        for got in hops:
            ends = (got["window_start"], got["window_end"])
            check_carried(got, *parts(got["k"], *ends), ends)


def test_windows_without_a_start_begin_at_their_first_entry() -> None:
    table = table_of(drawn(16, 40))
    windows = [sw.rows(3), sw.unbounded()]
    firsts = {name: replace(agg, edge="first") for name, agg in CARRIED.items()}
    options: dict[str, Any] = {"on": "t", "by": "k", "windows": windows}
    found, want = (
        sw.rolling(table, aggs=aggs, **options) for aggs in (CARRIED, firsts)
    )
    assert found.equals(want)
    gaps = pa.table({"t": [0, 9, 11], "x": [5, None, 2]})
    aggs = {"area": sw.integral("x")}
    sessions = sw.hopping(gaps, on="t", window=sw.session(3), aggs=aggs)
    assert sessions["area"].to_pylist() == [0, 0]


def test_files_carry_entries_over_their_parts(tmp_path: Path) -> None:
    table = table_of(sorted(drawn(17, 80), key=lambda row: row["k"]))
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source, row_group_size=7)
    spec = sw.Spec(on="t", by="k", windows=4, aggs=CARRIED)
    rolling_file(source, target, spec, memory=1)
    found, want = (
        each.sort_by("n") for each in (pq.read_table(target), sw.rolling(table, spec))
    )
    assert found.to_pylist() == want.to_pylist()


def test_windows_as_of_arrival_begin_with_the_entry_that_had_arrived() -> None:
    rows = drawn(18, 60)
    given = [row | {"c": at // 3} for at, row in enumerate(shuffled(rows, 5))]
    came = pa.array([row["c"] for row in given])
    table = table_of(given).append_column("c", came)
    options: dict[str, Any] = {"on": "t", "by": "k", "windows": 6, "arrival": "c"}
    points = [{"k": k, "t": t, "c": t % 20} for t in range(-25, 160, 7) for k in "ab"]
    at = pa.Table.from_pylist(points)
    for ends, more in ((given, {}), (points, {"at": at})):
        out = sw.rolling(table, aggs=CARRIED, **options, **more).to_pylist()
        for end, got in zip(ends, out, strict=True):
            start, until = end["t"] - 6, end["t"]
            seen = [r for r in given if r["k"] == end["k"] and r["c"] <= end["c"]]
            seen.sort(key=lambda row: (row["t"], row["c"]))
            held = [row for row in seen if start < row["t"] <= until]
            earlier = [row for row in seen if row["t"] <= start]
            check_carried(got, held, earlier, (start, until), "_6")


@pytest.mark.parametrize("kind", AREAS)
def test_an_entry_before_the_window_is_refused_where_none_is_kept(kind: str) -> None:
    make: Callable[..., sw.Aggregation] = getattr(sw, kind)
    for call in (
        lambda: sw.Window(make()),
        lambda: sw.Window({"a": make("x")}, last=5),
        lambda: sw.SharedWindow(make(), ranges=[5]),
    ):
        message = refused(call)
        assert "which a Window evicts: give edge='first' to begin" in message


def test_results_that_always_change_have_no_time_of_change() -> None:
    spec = sw.Spec(on="t", by="k", windows=5, aggs={"s": sw.since_last()})
    kw = sw.KeyedWindows(spec, late=5)
    kw.ingest(pa.table({"t": [1], "k": ["a"]}))
    asked = refused(lambda: kw.query("a", at=2, valid_until=True))
    assert "since_last() change with the time" in asked
    emitted = refused(lambda: sw.KeyedWindows(spec, late=5, emit="change"))
    assert emitted.startswith("emit='change' asks when results change")


def test_every_one_of_them_is_here() -> None:
    assert {agg.kind for agg in AGGS.values()} == set(OF_AGES)


def test_specs_hold_half_lives() -> None:
    spec = sw.Spec(on="t", windows=5, aggs=AGGS)
    again = sw.Spec.from_json(spec.to_json())
    assert again == spec
    assert again.hash == spec.hash
    assert (
        repr(sw.decayed_mean("x", sw.rows(3))) == "decayed_mean('x', half_life=rows(3))"
    )
