"""Sums and means of decimals over tables: exact to the last digit, or refused."""

import math
import random
import statistics
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.table.decimals import from_parts, parts_of

ENDS = [10**38 - 1, 1 - 10**38, 2**64, -(2**64), 2**32 - 1, -(2**32), 2**96, -1, 0]


def total(values):
    with localcontext(prec=100):
        return sum(values[1:], values[0]) if values else None


@pytest.mark.parametrize("scale", [0, 2, 38])
def test_parts_make_the_whole(scale):
    array = pa.array([None, *map(Decimal, ENDS)], pa.decimal128(38, 0))
    array = array.view(pa.decimal128(38, scale)).slice(1)
    parts = parts_of(array)
    assert all(0 <= part.as_py() < 2**32 for low in parts[1:] for part in low)
    assert from_parts(parts, scale).equals(array)


@pytest.mark.parametrize(("digits", "scale"), [(5, 2), (18, 0), (38, 9), (9, -3)])
@pytest.mark.parametrize("seed", range(5))
def test_sums_are_exact(digits, scale, seed):
    rng = random.Random(f"{digits} {scale} {seed}")
    most = 10 ** (digits - 2)
    values = [
        None
        if rng.random() < 0.2
        else Decimal(rng.randrange(-most, most)).scaleb(-scale)
        for _ in range(60)
    ]
    flags = [rng.random() < 0.5 for _ in values]
    table = pa.table(
        {
            "t": range(60),
            "x": pa.array(values, pa.decimal128(digits, scale)),
            "w": flags,
        }
    ).slice(7)
    aggs = {"all": sw.sum("x"), "some": sw.sum("x", where="w"), "top": sw.max("x")}
    out = sw.rolling(table, on="t", windows=9, aggs=aggs)
    assert out["all_9"].type == pa.decimal128(38, scale)
    for row, answers in enumerate(out.to_pylist(), start=7):
        inside = range(max(7, row - 8), row + 1)
        there = [at for at in inside if values[at] is not None]
        assert answers["all_9"] == total([values[at] for at in there])
        assert answers["some_9"] == total([values[at] for at in there if flags[at]])
    keyed = sw.KeyedWindows(on="t", windows=9, aggs=aggs, late=1000)
    batches = table.to_batches(max_chunksize=11)
    rng.shuffle(batches)
    for batch in batches:
        keyed.ingest(batch)
    keyed.advance(10_000)
    assert keyed.collect().sort_by("t").combine_chunks() == out.combine_chunks()


def test_a_sum_of_too_many_digits():
    values = [Decimal(9 * 10**37), Decimal(10**37), Decimal(-(10**37))]
    table = pa.table({"t": [1, 2, 2], "x": pa.array(values, pa.decimal128(38, 0))})
    assert sw.rolling(table, on="t", windows=2, aggs={"s": sw.sum("x")})["s_2"][
        1
    ].as_py() == Decimal(9 * 10**37)
    with pytest.raises(sw.ResultOverflowError, match=r"row 1 .* more than 38 digits"):
        sw.rolling(table.slice(0, 2), on="t", windows=2, aggs={"s": sw.sum("x")})


def test_polars_keeps_decimals():
    table = pl.DataFrame({"t": [1, 2], "x": [Decimal("0.10"), Decimal("0.20")]})
    out = sw.rolling(table, on="t", windows=2, aggs={"s": sw.sum("x")})
    assert out["s_2"].to_list() == [Decimal("0.10"), Decimal("0.30")]


@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(18, 2)], ids=str)
def test_narrow_decimals_are_compared_and_are_keys(kind):
    """pyarrow neither hashes nor sorts them."""
    values = [Decimal(text) for text in ("1.50", "-2.25", "1.50")]
    table = pa.table({"t": [1, 2, 3], "x": pa.array(values, kind)})
    aggs = {
        "top": sw.max("x"),
        "mode": sw.mode("x"),
        "most": sw.top_k("x", k=2),
        "distinct": sw.count_distinct("x"),
        "when": sw.arg_min(by="x"),
    }
    out = sw.rolling(table, on="t", windows=3, aggs=aggs, min_rows=3)
    assert out["top_3"].null_count == 2
    assert out["top_3"].type == out["mode_3"].type == kind
    last = sw.rolling(table, on="t", windows=3, aggs=aggs).slice(2)
    assert last["top_3"].type == last["mode_3"].type == kind
    assert last["most_3"].type == pa.list_(kind)
    assert last.drop_columns(["t", "x"]).to_pylist() == [
        {
            "top_3": values[0],
            "mode_3": values[0],
            "most_3": [values[0], values[0]],
            "distinct_3": 2,
            "when_3": 2,
        }
    ]
    count = {"n": sw.count()}
    by_key = sw.rolling(table, on="t", by="x", windows=3, aggs=count)
    assert by_key["n_3"].to_pylist() == [1, 1, 2]
    keyed = sw.KeyedWindows(on="t", by="x", windows=3, aggs=count)
    keyed.ingest(table)
    assert keyed.query(values[0]) == {"n_3": 2}


def test_wider_decimals_are_refused():
    table = pa.table({"t": [1], "x": pa.array([Decimal(1)], pa.decimal256(50, 0))})
    for agg, way in (
        (sw.sum("x"), r"Cast the column to decimal128\(38, 0\), or to float64 if"),
        (sw.mean("x"), r"Cast the column to decimal128\(38, 0\), or to float64 if"),
        (sw.skewness("x"), "Cast the column to float64 if rounding is fine"),
    ):
        with pytest.raises(sw.SpecError, match=f"does not fit column 'x'.*{way}"):
            sw.rolling(table, on="t", windows=2, aggs={"s": agg})
    cast = table.set_column(1, "x", table["x"].cast(pa.decimal128(38, 0)))
    out = sw.rolling(cast, on="t", windows=2, aggs={"s": sw.sum("x")})
    assert out["s_2"].to_pylist() == [Decimal(1)]


def mean_of(values, scale):
    with localcontext(prec=200):
        exact = sum(values[1:], values[0]) / len(values)
        return exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_EVEN)


@pytest.mark.parametrize(
    ("digits", "scale", "to"), [(5, 2, 8), (18, 0, 6), (38, 20, 26), (9, -3, 3)]
)
def test_means_are_divided_once(digits, scale, to):
    rng = random.Random(f"mean {digits} {scale}")
    most = 10 ** min(digits, 28) - 1
    drawn = (Decimal(rng.randrange(-most, most)).scaleb(-scale) for _ in range(60))
    values = [None if rng.random() < 0.2 else value for value in drawn]
    kind = pa.decimal128(digits, scale)
    table = pa.table({"t": range(60), "x": pa.array(values, kind)})
    spec = sw.Spec(on="t", windows=9, aggs={"m": sw.mean("x"), "sd": sw.stddev("x")})
    out = sw.rolling(table, spec)
    assert out["m_9"].type == pa.decimal128(38, to)
    keyed = sw.KeyedWindows(spec, late=1000)
    batches = table.to_batches(max_chunksize=11)
    rng.shuffle(batches)
    for batch in batches:
        keyed.ingest(batch)
    for row in range(60):
        inside = [v for v in values[max(0, row - 8) : row + 1] if v is not None]
        expected = mean_of(inside, to) if inside else None
        assert out["m_9"][row].as_py() == expected
        assert keyed.query(at=row)["m_9"] == expected
        window = sw.Window(sw.mean())
        window.insert_many(range(len(inside)), inside)
        assert window.query() == expected


def test_a_mean_of_too_many_digits():
    values = [Decimal(10**30), Decimal(1)]
    table = pa.table({"t": [1, 20], "x": pa.array(values, pa.decimal128(38, 4))})
    spec = sw.Spec(on="t", windows=2, aggs={"m": sw.mean("x")})
    with pytest.raises(sw.ResultOverflowError, match=r"row 0 .* more than 38 digits"):
        sw.rolling(table, spec)
    out = sw.rolling(table, spec.replace(overflow="null"))
    assert out["m_2"].to_pylist() == [None, Decimal(1)]


@pytest.mark.parametrize("digits", [15, 38])
def test_moments_and_quantiles_of_decimals_are_floats(digits):
    rng = random.Random(f"moments {digits}")
    # Far from zero, as amounts in cents are.
    far = 10**9 if digits == 15 else 0
    cents = [far * 100 + rng.randrange(-500, 500) for _ in range(40)]
    values = [Decimal(cent).scaleb(-2) for cent in cents]
    table = pa.table({"t": range(40), "x": pa.array(values, pa.decimal128(digits, 2))})
    aggs = {
        "v": sw.variance("x"),
        "sd": sw.stddev("x", ddof=0),
        "m": sw.median("x"),
        "q": sw.quantile("x", 0.3),
        "low": sw.quantile("x", 0.3, interpolation="lower"),
    }
    spec = sw.Spec(on="t", windows=7, aggs=aggs)
    out = sw.rolling(table, spec)
    keyed = sw.KeyedWindows(spec, emit="arrival")
    keyed.ingest(table)
    assert keyed.collect().drop_columns(["x"]).to_pylist() == (
        out.drop_columns(["x"]).to_pylist()
    )
    assert keyed.query(at=39) == out.drop_columns(["t", "x"]).to_pylist()[-1]
    for row in range(6, 40):
        inside = values[row - 6 : row + 1]
        answers = out.slice(row, 1).to_pylist()[0]
        low, high = sorted(inside)[1:3]
        for name, expected in (
            ("v", statistics.variance(inside)),
            ("sd", statistics.pstdev(inside)),
            ("m", statistics.median(inside)),
            ("q", low + (high - low) * Decimal("0.8")),
        ):
            assert isinstance(answers[f"{name}_7"], float)
            assert math.isclose(answers[f"{name}_7"], expected, rel_tol=1e-13)
        assert answers["low_7"] == low
