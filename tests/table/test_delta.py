"""`delta` windows, against their definition."""

import itertools
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from windows_by_rows import AGGS, BY, as_arrow, made, only, rolled

import slidewise as sw


@pytest.mark.parametrize("by", BY, ids=str)
@pytest.mark.parametrize("seed", range(25))
def test_delta_goes_back_to_the_first_that_is_too_far(seed: int, by: list[str]) -> None:
    rng = random.Random(seed)
    rows = made(rng)
    width = rng.choice([1, 2, 5, 40, 10**30])

    def near(upto: list[int]) -> list[int]:
        now = rows[upto[-1]]["d"]
        back = itertools.takewhile(
            lambda at: now - rows[at]["d"] <= width, reversed(upto)
        )
        return list(back)[::-1]

    label = f"delta_d_{width}"
    windows = [3, sw.delta("d", width), sw.rows(4)]
    got = sw.rolling(as_arrow(rows), on="t", by=by, windows=windows, aggs=AGGS)
    assert only(got, label) == rolled(rows, by, near, label)
    assert only(got, "4rows") == rolled(rows, by, lambda upto: upto[-4:], "4rows")
    alone = sw.rolling(as_arrow(rows), on="t", by=by, windows=3, aggs=AGGS)
    assert only(got, "3") == only(alone, "3")


def km(values: list[Any]) -> pa.Table:
    return pa.table({"t": range(len(values)), "km": values})


WIDTHS: list[tuple[pa.Array, Any, list[int]]] = [
    (pa.array([0.0, 0.1, 0.3, 0.3, 5e300]), 0.2, [1, 2, 2, 3, 1]),
    (pa.array([0.1, 0.2, 0.3]), Decimal("0.1"), [1, 2, 2]),
    (pa.array([-1.0, float("inf"), float("inf")]), 3, [1, 1, 2]),
    (pa.array([1, 3, 4], pa.int8()), 2.5, [1, 2, 2]),
    (pa.array([0, 2**63, 2**64 - 1], pa.uint64()), 2**63 - 1, [1, 1, 2]),
    (pa.array([-(2**63), 0, 2**63 - 1]), 2**63 - 1, [1, 1, 2]),
    (pa.array([Decimal("0.10"), Decimal("0.25")]), 0.15, [1, 2]),
    (pa.array([Decimal("0.10"), Decimal("0.26")]), 0.15, [1, 1]),
    (pa.array([date(2026, 1, 1), date(2026, 1, 3)]), "2d", [1, 2]),
    (pa.array([datetime(2026, 1, 1), datetime(2026, 1, 3)]), "47h", [1, 1]),
    (pa.array([timedelta(hours=1), timedelta(hours=3)]), timedelta(hours=2), [1, 2]),
    (pa.array([1, 3, 4]).dictionary_encode(), 1, [1, 1, 2]),
    (pa.array([], pa.null()), 1, []),
    (pa.array([], pa.decimal128(20, 2)), 1, []),
    (pa.array([0.0, 0.25, 0.5]), Fraction(1, 3), [1, 2, 2]),
    (pa.array([0.0, 1e308]), 10**400, [1, 2]),
    (pa.array([0.0, 1.0, 4.0]).cast(pa.float16()), 1, [1, 2, 1]),
    (pa.array([0.0, 1.0, 4.0], pa.float32()), 3, [1, 2, 2]),
]


@pytest.mark.parametrize(("values", "width", "expected"), WIDTHS, ids=str)
def test_delta_takes_columns_with_differences(
    values: pa.Array, width: Any, expected: list[int]
) -> None:
    window = sw.delta("km", width)
    table = pa.table({"t": pa.array(range(len(values)), pa.int64()), "km": values})
    got = sw.rolling(table, on="t", windows=window, aggs={"n": sw.count()})
    assert got[f"n_{window.label}"].to_pylist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_delta_of_floats_subtracts_as_python_does(seed: int) -> None:
    rng = random.Random(seed)
    values = sorted(round(rng.random(), 2) for _ in range(300))
    got = sw.rolling(
        km(values), on="t", windows=sw.delta("km", 0.1), aggs={"n": sw.count()}
    )
    expected = [
        sum(now - then <= 0.1 for then in values[: at + 1])
        for at, now in enumerate(values)
    ]
    assert got["n_delta_km_0.1"].to_pylist() == expected


FALLS = pa.table({"t": [3, 1, 2], "k": ["a", "b", "a"], "km": [4.5, 0.0, 7.5]})


def test_a_column_that_falls_is_refused_with_its_rows() -> None:
    aggs = {"n": sw.count()}
    with pytest.raises(sw.SpecError) as error:
        sw.rolling(FALLS, on="t", by="k", windows=sw.delta("km", 5.0), aggs=aggs)
    assert str(error.value) == (
        "column 'km' falls from 7.5 in row 2 to 4.5 in row 0 (counting from 0) of "
        "k='a': sw.delta needs a column that does not fall in order of 't'"
    )


REFUSED: list[tuple[pa.Array, Any, str]] = [
    (pa.array([1.0, None]), 1, "'km' has no value in row 1"),
    (pa.array([1.0, float("nan")]), 1, "'km' has NaN in row 1"),
    (pa.array([1, 2]), "5m", "width='5m' is a duration, but column 'km' holds int64"),
    (pa.array([date(2026, 1, 1)] * 2), 5.0, "width=5.0 is a number, but column"),
    (pa.array([date(2026, 1, 1)] * 2), "5m", "width='5m' is not a whole number of"),
    (pa.array(["a", "b"]), 1, "column 'km' holds string: sw.delta takes integers"),
    (pa.array([True, True]), 1, "column 'km' holds bool: sw.delta takes integers"),
    (pa.array([None, None]), 1, "column 'km' holds null: sw.delta takes integers"),
    (pa.array([Decimal(10**20)] * 2), 1, "decimals of more than 18 digits"),
]


@pytest.mark.parametrize(("values", "width", "message"), REFUSED, ids=str)
def test_delta_refuses_columns_without_differences(
    values: pa.Array, width: Any, message: str
) -> None:
    table = pa.table({"t": [1, 2], "km": values})
    with pytest.raises(sw.SpecError, match=message):
        sw.rolling(table, on="t", windows=sw.delta("km", width), aggs={"n": sw.count()})


def test_delta_is_measured_from_rows() -> None:
    table = pa.table({"t": [1], "km": [1]})
    with pytest.raises(sw.SpecError, match=r"at= does not .* from the 'km' of a row"):
        sw.rolling(
            table, windows=sw.delta("km", 1), at=table, on="t", aggs={"n": sw.count()}
        )
