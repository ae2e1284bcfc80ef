"""Means, deviations and quantiles of durations, which are durations."""

from datetime import timedelta
from fractions import Fraction
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw

# Beyond 2^53 a float does not hold each tick.
LARGE = 2**61
TICKS = [LARGE + 3, None, LARGE + 8, LARGE, LARGE + 5, LARGE - 9, LARGE + 7]
AGGS = {
    "mean": sw.mean("x"),
    "median": sw.median("x"),
    "q": sw.quantile("x", 0.25),
    "mid": sw.quantile("x", 0.25, interpolation="midpoint"),
    "high": sw.quantile("x", 0.25, interpolation="higher"),
}


def between(values: list[int], q: Fraction, midpoint: bool = False) -> int:
    place = (len(values) - 1) * q
    low = sorted(values)[int(place)]
    high = sorted(values)[-int(-place // 1)]
    share = Fraction(1, 2) * (place % 1 > 0) if midpoint else place % 1
    return low + round((high - low) * share)


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_ticks_are_exact(unit: Any) -> None:
    kind = pa.duration(unit)
    table = pa.table({"t": range(7), "x": pa.array(TICKS, pa.int64()).view(kind)})
    spec = sw.Spec(on="t", windows=4, aggs=AGGS)
    out = sw.rolling(table, spec)
    keyed = sw.KeyedWindows(spec, late=9, emit="arrival")
    keyed.ingest(table)
    assert keyed.collect().select(out.column_names).equals(out)
    assert {out[name].type for name in spec.results} == {kind}
    for row in range(5):
        inside = [tick for tick in TICKS[max(0, row - 3) : row + 1] if tick is not None]
        got = {name: out[f"{name}_4"].cast(pa.int64())[row].as_py() for name in AGGS}
        quarter = Fraction(1, 4)
        assert got == {
            "mean": round(Fraction(sum(inside), len(inside))),
            "median": between(inside, Fraction(1, 2)),
            "q": between(inside, quarter),
            "mid": between(inside, quarter, midpoint=True),
            "high": sorted(inside)[-int(-(len(inside) - 1) * quarter // 1)],
        }


def test_a_deviation_has_the_unit_of_its_values_and_a_variance_has_none() -> None:
    spans = [timedelta(seconds=second) for second in (1, 3, 8)]
    table = pa.table({"t": [1, 2, 3], "x": pa.array(spans, pa.duration("ms"))})
    aggs = {"sd": sw.stddev("x", ddof=0)}
    found = sw.rolling(table, on="t", windows=2, aggs=aggs)["sd_2"]
    assert found.type == pa.duration("ms")
    assert found.to_pylist() == [timedelta(seconds=second) for second in (0, 1, 2.5)]
    with pytest.raises(sw.SpecError, match="variance takes integers, floats, decimals"):
        sw.rolling(table, on="t", windows=2, aggs={"v": sw.variance("x")})


def test_frames_keep_durations() -> None:
    frame = pd.DataFrame({"t": [1, 2], "x": pd.to_timedelta([1, 2], "s")})
    aggs = {"m": sw.mean("x"), "mid": sw.median("x")}
    out = sw.rolling(frame, on="t", windows=5, aggs=aggs)
    assert out["m_5"].tolist() == [pd.Timedelta("1s"), pd.Timedelta("1.5s")]
    assert out["mid_5"].dtype == frame["x"].dtype


def test_windows_have_means_of_durations() -> None:
    window = sw.Window(sw.mean())
    window.insert_many([1, 2], [timedelta(seconds=1), timedelta(seconds=2)])
    assert window.query() == timedelta(seconds=1.5)
