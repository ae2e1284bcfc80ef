"""Aggregations that see the times of entries: units, gaps, and rows without a value."""

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from definitions import OVER_TIME
from seeds import SEED

import slidewise as sw

TIMES = [datetime(2024, 3, 30, 12), datetime(2024, 3, 31, 12), datetime(2024, 4, 1)]
AGGS = {
    "rate": sw.rate("x", unit="1h"),
    "slope": sw.slope("x", unit="1d"),
    "mean": sw.mean_gap(),
    "max": sw.max_gap(),
    "min": sw.min_gap(where="on"),
    "stddev": sw.stddev_gap(),
}
ROWS = {"x": [12, 24, 48], "on": [True, True, False]}
# Of 24 and 12 hours.
WANT = {
    "rate": pytest.approx(1.0),
    "slope": pytest.approx(22.285714285714285),
    "mean": 64_800.0,
    "max": timedelta(hours=24),
    "min": timedelta(hours=24),
    "stddev": pytest.approx(30_547.012947258853),
}


def test_windows_scale_by_the_unit_of_their_times() -> None:
    berlin = pd.to_datetime(TIMES).tz_localize("UTC").tz_convert("Europe/Berlin")
    for times in (
        TIMES,
        [t.replace(tzinfo=UTC) for t in TIMES],
        np.array(TIMES, "datetime64[s]"),
        list(pd.to_datetime(TIMES).as_unit("ns")),
        list(berlin),  # the clock is put forward between the first two
    ):
        w = sw.Window(AGGS)
        w.insert_many(times, ROWS)
        assert w.query() == WANT
        assert sw.Window.from_bytes(w.to_bytes()).query() == WANT


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_tables_scale_by_the_unit_of_their_column(unit: str) -> None:
    table = pa.table({"t": pa.array(TIMES, pa.timestamp(unit)), **ROWS})
    out = sw.rolling(table, on="t", windows="9d", aggs=AGGS)
    assert out["max_9d"].type == pa.duration(unit)
    assert {name: out[f"{name}_9d"][-1].as_py() for name in AGGS} == WANT
    hop = sw.hopping(table, on="t", window="28d", every="28d", aggs=AGGS)
    assert {name: hop[name][-1].as_py() for name in AGGS} == WANT
    kw = sw.KeyedWindows(on="t", windows="9d", aggs=AGGS, late="1d")
    kw.ingest(table)
    found = kw.query({}, at=TIMES[-1])
    assert {name: found[f"{name}_9d"] for name in AGGS} == WANT


def test_days_are_days() -> None:
    days = [date(2024, 3, 30), date(2024, 4, 1)]
    aggs = {"gap": sw.max_gap(), "mean": sw.mean_gap(), "rate": sw.rate("x", "1d")}
    want = {"gap": timedelta(2), "mean": 172_800.0, "rate": 1.5}
    w = sw.Window(aggs)
    w.insert_many(days, {"x": [1, 4]})
    assert w.query() == want
    table = pa.table({"t": days, "x": [1, 4]})
    out = sw.rolling(table, on="t", windows="9d", aggs=aggs)
    assert {name: out[f"{name}_9d"][-1].as_py() for name in aggs} == want


def test_times_of_uint64_are_those_of_int64() -> None:
    found = []
    for kind in (pa.int64(), pa.uint64()):
        table = pa.table({"t": pa.array([5, 10], kind), "x": [1, 2]})
        aggs = {"i": sw.intercept("x"), "r": sw.rate("x"), "gap": sw.max_gap()}
        found.append(sw.rolling(table, on="t", windows=9, aggs=aggs).to_pylist()[-1])
    assert found[0] == found[1]
    assert found[0] == {"t": 10, "x": 2, "i_9": 0.0, "r_9": 0.2, "gap_9": 5}


def test_integer_times_have_units_of_one() -> None:
    w = sw.Window({"r": sw.rate(), "ten": sw.rate(unit=10), "gap": sw.max_gap()})
    w.insert_many([5, 10], [1, 2])
    assert w.query() == {"r": 0.2, "ten": 2.0, "gap": 5}


@pytest.mark.parametrize("kind", OVER_TIME)
def test_times_of_nulls_are_skipped_in_every_insert(kind: str) -> None:
    times, values = [1, 2, 4, 9], [None, 3.0, 7.0, None]
    plain = sw.Window(getattr(sw, kind)())
    plain.insert_many([2, 4], [3.0, 7.0])
    want = plain.query()
    assert want is not None

    def bulk(w: sw.Window) -> None:
        w.insert_many(times, values)

    def array(w: sw.Window) -> None:
        w.insert_many(times, pa.array(values))

    def single(w: sw.Window) -> None:
        for t, value in zip(times, values, strict=True):
            w.insert(t, value)

    def columns(w: sw.Window) -> None:
        w.insert_many(times, {"x": values})

    def rows(w: sw.Window) -> None:
        w.insert_many(times, [{"x": value} for value in values])

    def mappings(w: sw.Window) -> None:
        for t, value in zip(times, values, strict=True):
            w.insert(t, None if value is None else {"x": value})

    ways: list[tuple[Callable[[sw.Window], None], sw.Aggregation]] = [
        *((way, getattr(sw, kind)()) for way in (bulk, array, single)),
        *((way, getattr(sw, kind)("x")) for way in (columns, rows, mappings)),
    ]
    for way, agg in ways:
        w = sw.Window(agg)
        way(w)
        assert w.query() == want, way.__name__
    table = pa.table({"t": times, "x": values})
    out = sw.rolling(table, on="t", windows=99, aggs={"a": getattr(sw, kind)("x")})
    assert out["a_99"][-1].as_py() == want


def test_nan_that_is_skipped_takes_its_time_along() -> None:
    times, values = [1, 2, 4], [float("nan"), 3.0, 7.0]
    w = sw.Window(sw.rate(), nan="skip")
    w.insert_many(times, values)
    w.insert(9, float("nan"))
    table = pa.table({"t": times, "x": values})
    out = sw.rolling(table, on="t", windows=9, aggs={"a": sw.rate("x")}, nan="skip")
    assert (w.query(), out["a_9"][-1].as_py()) == (2.0, 2.0)


def test_lines_over_times_far_from_the_epoch_keep_their_digits() -> None:
    rng = random.Random(SEED)
    start = 1_700_000_000_000_000_000
    times = sorted(start + rng.randrange(10**12) for _ in range(300))
    values = [1e6 + 3e-9 * (t - start) + rng.random() for t in times]
    x, y = [Fraction(t) for t in times], [Fraction(value) for value in values]
    dx, dy = ([v - sum(side) / len(side) for v in side] for side in (x, y))
    both = sum(a * b for a, b in zip(dx, dy, strict=True))
    slope = both / sum(a * a for a in dx)
    want = {
        "slope": float(slope),
        "intercept": float(sum(y) / 300 - slope * sum(x) / 300),
        "r_squared": float(slope * both / sum(b * b for b in dy)),
    }
    aggs: dict[str, Any] = {kind: getattr(sw, kind)("x") for kind in want}
    w = sw.Window(aggs)
    w.insert_many(times, {"x": values})
    table = pa.table({"t": times, "x": values})
    out = sw.rolling(table, on="t", windows=2**62, aggs=aggs)
    last = {kind: out[f"{kind}_{2**62}"][-1].as_py() for kind in want}
    assert last == w.query() == pytest.approx(want, rel=1e-15)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: sw.rate("x", unit=1.5), "unit is a duration such as '1s', or an int"),
        (lambda: sw.slope("y", "x", unit="1h"), "but slope.. is over column 'x'"),
        (lambda: sw.Aggregation("sum", "x", unit="1s"), "takes no unit="),
        (lambda: sw.Aggregation("rate", "x", "y"), "takes no by="),
        (lambda: sw.Aggregation("max_gap", "x"), "takes no column: it reads the times"),
    ],
)
def test_wrong_parameters(make: Callable[[], object], why: str) -> None:
    with pytest.raises(sw.SpecError, match=why):
        make()


@pytest.mark.parametrize("unit", ["0s", "-1h", "abc", "1mo", "3rows", 7])
def test_units_that_do_not_fit_instants(unit: str | int) -> None:
    table = pa.table({"t": pa.array(TIMES, pa.timestamp("s")), "x": [1, 2, 3]})
    with pytest.raises(sw.SpecError, match="unit"):
        sw.rolling(table, on="t", windows="1h", aggs={"r": sw.rate("x", unit)})
    w = sw.Window(sw.rate(unit=unit))
    w.insert_many(TIMES, [1, 2, 3])
    with pytest.raises(sw.SpecError, match="unit"):
        w.query()
