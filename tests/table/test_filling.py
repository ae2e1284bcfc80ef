"""Values in place of null results: any type of one value, exactly or refused."""

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.table.filling import fill_nulls

BERLIN = pa.timestamp("ns", "Europe/Berlin")


@pytest.mark.parametrize(
    ("kind", "value", "filled"),
    [
        (pa.int64(), 0, 0),
        (pa.uint64(), 2**64 - 1, 2**64 - 1),
        (pa.float64(), 0, 0.0),
        (pa.float32(), 0.5, 0.5),
        (pa.bool_(), False, False),
        (pa.string(), "none", "none"),
        (pa.large_string(), "none", "none"),
        (pa.binary(2), b"ab", b"ab"),
        (pa.decimal128(9, 2), 0, Decimal("0.00")),
        (pa.date32(), dt.date(2026, 1, 1), dt.date(2026, 1, 1)),
        (pa.duration("s"), dt.timedelta(), dt.timedelta()),
        (pa.timestamp("us"), dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1)),
        (pa.dictionary(pa.int8(), pa.string()), "none", "none"),
        (pa.null(), "none", "none"),
    ],
    ids=str,
)
def test_nulls_are_replaced(kind: pa.DataType, value: Any, filled: Any) -> None:
    found = fill_nulls(pa.nulls(2, kind), value, "x_1h")
    assert found.to_pylist() == [filled, filled]
    assert kind in (pa.null(), found.type)
    none = fill_nulls(pa.nulls(0, kind), value, "x_1h")
    assert (len(none), none.type) == (0, found.type)


def test_other_values_stay() -> None:
    assert fill_nulls(pa.array([1, None, 3]), 0, "n").to_pylist() == [1, 0, 3]
    words = pa.array(["a", None, "b"]).dictionary_encode()
    for value in ("a", "c"):
        assert fill_nulls(words, value, "n").to_pylist() == ["a", value, "b"]
    assert fill_nulls(words.slice(1), "c", "n").to_pylist() == ["c", "b"]


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (pa.int64(), 0.5, "fill=0.5 does not fit the result 'x_1h', which holds int64"),
        (pa.uint8(), 300, "fill=300 does not fit the result 'x_1h'"),
        (pa.string(), 0, "fill=0 does not fit the result 'x_1h', which holds string"),
        (pa.bool_(), 0, "fill=0 does not fit the result 'x_1h', which holds bool"),
        (BERLIN, dt.datetime(2026, 1, 1), "does not fit the result 'x_1h'"),
        (pa.list_(pa.int64()), 0, "fill= does not apply to the result 'x_1h', which"),
        (pa.struct({"a": pa.int64()}), 0, "does not apply to the result 'x_1h'"),
    ],
    ids=str,
)
def test_other_types_are_refused(kind: pa.DataType, value: Any, message: str) -> None:
    # Also without rows: a stream refuses it with its first batch.
    for rows in (0, 1):
        with pytest.raises(sw.SpecError, match=re.escape(message)):
            fill_nulls(pa.nulls(rows, kind), value, "x_1h")
