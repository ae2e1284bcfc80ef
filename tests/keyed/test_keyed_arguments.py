"""Arguments of `KeyedWindows`, and the columns that it takes."""

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import slidewise as sw


def test_keyed_windows_are_checked_when_they_are_made():
    given = {"on": "t", "windows": 5, "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match="emit='all' does not fit rolling"):
        sw.KeyedWindows(**given, emit="all")
    with pytest.raises(sw.SpecError, match="on=, windows=, aggs=, is missing"):
        sw.KeyedWindows()
    with pytest.raises(sw.SpecError, match="a Spec, or aggs=, is missing"):
        sw.KeyedWindows(on="t", window=5)


SUMS = {"on": "t", "by": "k", "windows": 5, "aggs": {"s": sw.sum("x")}}


@pytest.mark.parametrize(
    ("spec", "request_", "error", "message"),
    [
        (None, {**SUMS, "foo": 1}, TypeError, r"KeyedWindows\(\) .* 'foo'"),
        (None, {**SUMS, "tie": 1}, TypeError, "did you mean ties="),
        (None, {**SUMS, "window": 5}, sw.SpecError, "not both"),
        (sw.sum(), {}, sw.SpecError, "takes a Spec or the keywords"),
    ],
)
def test_wrong_arguments(spec, request_, error, message):
    with pytest.raises(error, match=message):
        sw.KeyedWindows(spec, **request_)
    with pytest.raises(error, match=message.replace("KeyedWindows", r"from_bytes")):
        sw.KeyedWindows.from_bytes(b"", spec, **request_)


NOON = datetime(2024, 3, 1, 12)


def rows(times, keys="a", values=1.0):
    """A batch with one key and one value throughout, or those given."""
    keys = [keys] * len(times) if isinstance(keys, str) else keys
    values = values if isinstance(values, list) else [values] * len(times)
    return pa.table({"t": times, "k": keys, "x": values})


def test_a_number_for_a_window_over_timestamps():
    keyed = sw.KeyedWindows(**SUMS)
    with pytest.raises(
        sw.SpecError, match=r"windows=5 is a bare number.*windows=rows\(5\)"
    ):
        keyed.ingest(rows([NOON]))


def test_arguments_that_name_no_column():
    for wrong in (3, [3]):
        with pytest.raises(sw.SpecError, match="then_by="):
            sw.KeyedWindows(**SUMS, then_by=wrong)
    assert sw.KeyedWindows(**SUMS, then_by=None) is not None
    with pytest.raises(sw.SpecError, match="deletes="):
        sw.KeyedWindows(**SUMS, deletes=3)


def test_a_column_named_like_the_flag_is_refused():
    keyed = sw.KeyedWindows(**SUMS, late_rows="flag")
    batch = rows([1]).append_column("_late", pa.array([True]))
    with pytest.raises(sw.SpecError, match="'_late' is taken by late_rows='flag'"):
        keyed.ingest(batch)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([date(2024, 5, 1), None, date(1, 1, 1)]),
        pa.array([Decimal("1.50"), None, Decimal("-1.50")]),
        pa.array([Decimal("1.50"), None, Decimal(2)], pa.decimal256(40, 2)),
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array([b"a", None, b"b"], pa.binary_view()),
    ],
    ids=lambda keys: str(keys.type),
)
def test_keys_of_all_types_that_tables_take(keys):
    table = pa.table({"t": [1, 2, 3], "k": keys, "x": [1, 2, 3]})
    keyed = sw.KeyedWindows(**SUMS)
    for _ in range(2):
        keyed.ingest(table)
    keyed = sw.KeyedWindows.from_bytes(keyed.to_bytes(), **SUMS)
    keyed.advance(9)
    got = keyed.collect()
    assert got["s_5"].to_pylist() == [2, 2, 4, 4, 6, 6]
    assert got["k"].unique().to_pylist() == keys.to_pylist()


def test_keys_may_be_times_of_day():
    for kind in (pa.time32("s"), pa.time32("ms")):
        keyed = sw.KeyedWindows(**SUMS)
        keys = pa.array([1, 2, 1], pa.int32()).cast(kind)
        keyed.ingest(pa.table({"t": [1, 2, 3], "k": keys, "x": [1.0, 2.0, 3.0]}))
        keyed.advance(9)
        assert keyed.collect()["s_5"].to_pylist() == [1.0, 2.0, 4.0]


def test_categories_with_an_order_are_refused():
    """Pages keep their values alone; what compares none of them goes on."""
    ordered = pa.DictionaryArray.from_arrays([0, 1], ["small", "large"], ordered=True)
    batch = pa.table({"t": [1, 2], "x": ordered})
    for agg in (sw.max("x"), sw.top_k("x", 1), sw.arg_min("t", by="x")):
        keyed = sw.KeyedWindows(on="t", windows=5, aggs={"m": agg})
        with pytest.raises(sw.SpecError, match="with a declared order"):
            keyed.ingest(batch)
    aggs = {"last": sw.last("x"), "best": sw.arg_max("x", by="t")}
    keyed = sw.KeyedWindows(on="t", windows=5, aggs=aggs)
    keyed.ingest(batch)
    keyed.advance()
    answers = keyed.collect()
    for name in ("last_5", "best_5"):
        assert answers[name].to_pylist() == ["small", "large"]
