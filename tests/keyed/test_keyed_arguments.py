"""Arguments of `KeyedWindows`, and the columns that it takes."""

from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

import slidewise as sw


def test_keyed_windows_are_checked_when_they_are_made():
    given = {"on": "t", "windows": 5, "aggs": {"n": sw.count()}}
    with pytest.raises(sw.SpecError, match="emit='all' does not go with rolling"):
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


TYPES = {"t": pa.int64(), "k": "string", "x": "float64"}


def test_a_schema_decides_the_types_before_any_batch():
    for schema in (
        TYPES,
        pa.schema([(name, pa.array([], kind).type) for name, kind in TYPES.items()]),
    ):
        keyed = sw.KeyedWindows(**SUMS, emit="update", schema=schema)
        assert (len(keyed), len(keyed.keys()), len(keyed.collect())) == (0, 0, 0)
        assert keyed.query("a", at=3) == {"s_5": None}
        with pytest.raises(sw.SpecError, match="no latest time: give at="):
            keyed.query("a")
        keyed.advance()
        keyed = sw.KeyedWindows.from_bytes(keyed.to_bytes(), **SUMS)
        nothing = pa.table({"t": [1], "k": pa.nulls(1), "x": pa.nulls(1)})
        keyed.ingest(nothing)
        keyed.ingest(pa.table({"x": [1.5], "t": [2], "k": ["a"], "more": [0]}))
        assert keyed.query("a") == {"s_5": 1.5}
        answers = keyed.collect()
        assert answers.schema.field("k").type == pa.string()
        assert answers["s_5"].to_pylist() == [None, 1.5]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"t": "int64", "k": "string"}, "no column 'x'"),
        ({"k": "string", "x": "float64"}, "schema= has no column 't'"),
        ({**TYPES, "x": "floaty"}, "schema= has 'floaty' for column 'x'"),
        ({**TYPES, "x": float}, "not an Arrow type"),
        ({**TYPES, 3: "int64"}, "schema= names columns by text, got 3"),
        (["t", "k", "x"], "schema= takes a mapping"),
        (pa.schema([("t", pa.int64())] * 2), "schema= has two columns 't'"),
        ({**TYPES, "t": "string"}, "column 't' holds string, not times"),
    ],
)
def test_wrong_schemas(schema, message):
    with pytest.raises(sw.SpecError, match=message):
        sw.KeyedWindows(**SUMS, schema=schema)


def test_integers_in_a_column_of_floats_become_floats():
    """If the conversion changes a value, the batch is refused and changes nothing."""
    keyed = sw.KeyedWindows(**SUMS, emit="update")
    keyed.ingest(rows([1], values=[0.5]))
    keyed.ingest(rows([1, 1], values=[2, 2**60]))
    before = keyed.to_bytes() if keyed.collect() else b""
    for wrong in (2**53 + 1, 2**63 - 1):
        with pytest.raises(sw.SpecError, match=r"'x' is int64 .* hold all of its"):
            keyed.ingest(rows([1], values=[wrong]))
    assert keyed.to_bytes() == before
    assert keyed.query("a") == {"s_5": 2**60 + 2.5}
    integers = sw.KeyedWindows(**SUMS)
    integers.ingest(rows([1], values=[1]))
    with pytest.raises(sw.SpecError, match=r"'x' is double .* int64 in the stream"):
        integers.ingest(rows([1], values=[0.5]))


@pytest.mark.parametrize(
    ("kind", "given", "wrong"),
    [
        (pa.timestamp("us"), pa.timestamp("ns"), 1),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "Europe/Berlin"), 1),
        (pa.timestamp("ns"), pa.timestamp("s"), 2**62),
        (pa.int32(), pa.int64(), 2**31),
        (pa.int64(), pa.uint8(), None),
    ],
    ids=str,
)
def test_times_in_other_units_are_converted_without_loss(kind, given, wrong):
    keyed = sw.KeyedWindows(
        **{**SUMS, "windows": sw.rows(2)}, schema={**TYPES, "t": kind}
    )
    keyed.ingest(rows(pa.array([0], pa.uint8()).cast(pa.int64()).cast(given)))
    assert keyed.query("a") == {"s_2rows": 1.0}
    if wrong is not None:
        with pytest.raises(sw.SpecError, match=r"column 't' is .* cast it"):
            keyed.ingest(rows(pa.array([wrong], pa.int64()).cast(given)))
    assert keyed.query("a") == {"s_2rows": 1.0}


def test_a_lazy_frame_is_a_batch():
    keyed = sw.KeyedWindows(**SUMS, emit="update")
    keyed.ingest(pl.from_arrow(rows([1])).lazy())
    assert keyed.collect()["s_5"].to_pylist() == [1.0]


def test_times_without_a_zone_do_not_fit_a_column_with_one():
    keyed = sw.KeyedWindows(**{**SUMS, "windows": "5s"})
    keyed.ingest(rows(pa.array([0], pa.timestamp("us", "UTC"))))
    with pytest.raises(sw.SpecError, match=r"'t' of this batch has no zone .* one"):
        keyed.ingest(rows([NOON]))


def test_decimals_wider_than_those_of_the_first_batch_are_refused() -> None:
    """The message names `schema=`, with which they are taken."""
    rows = [
        pa.table({"t": [at], "x": [Decimal(x)]})
        for at, x in ((1, "1.10"), (2, "10.25"))
    ]
    request = {"on": "t", "windows": 5, "aggs": {"x": sw.last("x")}}
    windows = sw.KeyedWindows(**request)
    windows.ingest(rows[0])
    with pytest.raises(sw.SpecError, match=r"'x' is decimal.* cast it, or .* schema="):
        windows.ingest(rows[1])
    schema = {"t": "int64", "x": pa.decimal128(9, 2)}
    windows = sw.KeyedWindows(**request, schema=schema)
    for batch in rows:
        windows.ingest(batch)
    assert windows.query(at=2) == {"x_5": Decimal("10.25")}


def test_a_number_for_a_window_over_timestamps():
    keyed = sw.KeyedWindows(**SUMS)
    with pytest.raises(
        sw.SpecError, match=r"windows=5 is a bare number.*windows=rows\(5\)"
    ):
        keyed.ingest(rows([NOON]))


def test_arguments_that_name_no_column():
    for wrong in (3, [3], {"x": 1}, b"x"):
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
    """Pages keep only the values: aggregations that compare none accept them."""
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
