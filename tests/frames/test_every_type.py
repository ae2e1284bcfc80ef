"""Columns of every Arrow type, in tables of every library, in every role.

Each call gives the answer over an equivalent plain type, or an error of slidewise.
"""

import os
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.spec.document import document_of

CALLS = int(os.environ.get("SLIDEWISE_TYPE_CALLS", "400"))


class Column(NamedTuple):
    """A column, and the same values in a plain type, if there is one."""

    array: pa.Array
    plain: pa.Array | None


def dictionary(values: list[Any] | pa.Array, index: str = "int8") -> pa.Array:
    kind = getattr(pa, index)()
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], kind), values)


def runs(values: pa.Array, ends: str = "int32") -> pa.Array:
    kind = getattr(pa, ends)()
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], kind), values)


def plain_columns() -> Iterator[Column]:
    whole, floats = pa.array([1, 2, None, 2]), pa.array([1.5, 2.0, None, 2.0])
    text, raw = pa.array(["a", "b", None, "b"]), pa.array([b"a", b"b", None, b"b"])
    money = [Decimal("1.5"), Decimal("2.0"), None, Decimal("2.0")]
    for bits in (8, 16, 32, 64):
        for name in (f"int{bits}", f"uint{bits}"):
            yield Column(whole.cast(getattr(pa, name)()), whole)
    for name in ("float16", "float32", "float64"):
        yield Column(floats.cast(getattr(pa, name)()), floats)
    for width, digits in ((32, 9), (64, 18), (128, 38), (256, 9), (256, 76)):
        kind = getattr(pa, f"decimal{width}")(digits, 1)
        yield Column(pa.array(money, kind), pa.array(money, pa.decimal128(9, 1)))
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield Column(text.cast(kind), text)
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)):
        yield Column(raw.cast(kind), raw)
    for values in (whole, text, pa.array(money, pa.decimal256(50, 1))):
        yield Column(runs(values), values)
        yield Column(dictionary(values.slice(0, 2)), values)
    yield Column(dictionary(["a", "b"], "uint64"), text)
    yield Column(runs(dictionary(["a", "b"]), "int64"), text)
    yield Column(runs(text.cast(pa.string_view()), "int16"), text)


def times() -> Iterator[Column]:
    ticks = pa.array([1, 2, None, 2])
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Berlin"):
            yield Column(ticks.view(pa.timestamp(unit, zone)), None)
        yield Column(ticks.view(pa.duration(unit)), None)
    for kind in (pa.date32(), pa.time32("s"), pa.time64("ns")):
        bits = pa.int32() if kind.bit_width == 32 else pa.int64()
        yield Column(ticks.cast(bits).view(kind), None)
    yield Column(pa.array([0, 1, None, 1], pa.date32()).cast(pa.date64()), None)
    month = pa.MonthDayNano([1, 2, 3])
    yield Column(pa.array([month, month, None, month]), None)


def others() -> Iterator[Column]:
    lists = [[1, 2], [2, 3], None, [2, 3]]
    number = pa.int64()
    for kind in (
        pa.list_(number),
        pa.large_list(number),
        pa.list_view(number),
        pa.large_list_view(number),
        pa.list_(number, 2),
    ):
        yield Column(pa.array(lists, kind), None)
    for item in (
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.list_(pa.string()),
        pa.null(),
    ):
        yield Column(pa.array([[], [None], None, [None]], pa.list_(item)), None)
    wide = [[Decimal(1)], [], None, []]
    yield Column(pa.array(wide, pa.list_(pa.decimal256(50, 1))), None)
    yield Column(dictionary(pa.array([[1], [2]])), None)
    yield Column(dictionary(pa.nulls(2)), None)
    yield Column(runs(pa.array([[1], [2], None, [2]])), None)
    fields = pa.struct([("a", number), ("b", pa.string_view())])
    yield Column(pa.array([{"a": 1}, {"b": "x"}, None, {}], fields), None)
    yield Column(pa.array([{}, {}, None, {}], pa.struct([])), None)
    yield Column(pa.array([[("a", 1)], [], None, []], pa.map_("string", number)), None)
    codes, text = pa.array([0, 1, 0, 1], pa.int8()), pa.array([*"abcd"])
    children = [pa.array([1, 2, 3, 4]), text]
    yield Column(pa.UnionArray.from_sparse(codes, children), None)
    at = pa.array([0, 0, 1, 1], pa.int32())
    yield Column(pa.UnionArray.from_dense(codes, at, children), None)
    yield Column(pa.nulls(4), None)
    yield Column(pa.array([True, False, None, False]), None)
    for kind, values in (
        (pa.uuid(), pa.array([b"a" * 16, b"b" * 16, None, None], pa.binary(16))),
        (pa.json_(), pa.array(["1", "2", None, "2"])),
        (pa.bool8(), pa.array([1, 0, None, 0], pa.int8())),
        (pa.opaque(number, "x", "y"), pa.array([1, 2, None, 2])),
        (pa.fixed_shape_tensor(number, [2]), pa.array(lists, pa.list_(number, 2))),
    ):
        yield Column(pa.ExtensionArray.from_storage(kind, values), None)


COLUMNS = [*plain_columns(), *times(), *others()]
FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda table: table,
    "batch": lambda table: table.to_batches()[0],
    "reader": lambda table: table.to_reader(),
    "chunks": lambda table: pa.concat_tables([table.slice(0, 1), table.slice(1)]),
    "pandas": lambda table: table.to_pandas(),
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.LazyFrame(pl.from_arrow(table)),
    "duckdb": duckdb.from_arrow,
    "numpy": lambda table: {
        name: column.to_numpy()
        for name, column in zip(table.column_names, table.columns, strict=True)
    },
}
AGGS = [
    *(sw.count("x"), sw.count_distinct("x"), sw.first("x"), sw.last("x")),
    *(sw.min("x"), sw.max("x"), sw.sum("x"), sw.mean("x"), sw.mode("x")),
    *(sw.median("x"), sw.quantile("x", 0.5), sw.collect("x"), sw.top_k("x", 2)),
    *(sw.collect_distinct("x"), sw.arg_max("t", by="x"), sw.arg_min("x", by="t")),
    *(sw.any("x"), sw.bit_or("x"), sw.concat("x"), sw.stddev("x"), sw.range("x")),
    *(sw.approx_count_distinct("x"), sw.approx_quantile("x", 0.5), sw.product("x")),
    *(sw.heavy_hitters("x", 2), sw.correlation("x", "t"), sw.count(where="x")),
]
EMITS = ("arrival", "final", "update", "change")


def given(rng: random.Random) -> dict[str, Any]:
    """The keywords of a Spec with the column `x` in some role."""
    of_column: dict[str, Any] = {
        "on": "t",
        "windows": 9,
        "aggs": {"a": rng.choice(AGGS)},
    }
    counted = {"on": "t", "windows": 9, "aggs": {"a": sw.count()}}
    return rng.choice(
        [
            of_column,
            of_column,
            counted,
            {**counted, "by": "x"},
            {**counted, "by": ["x", "y"]},
            {**counted, "on": "x", "windows": rng.choice([9, "9s", "9d"])},
            {**counted, "arrival": "x"},
            {**counted, "windows": sw.landmark("x")},
            {**counted, "windows": sw.delta("x", rng.choice([1, "1s"]))},
        ]
    )


def stream(
    make: Callable[[], Any], spec: sw.Spec, rng: random.Random
) -> sw.KeyedWindows:
    emit = "slide" if spec.is_hopping else rng.choice(EMITS)
    options = rng.choice([{}, {"late_rows": "correct"}, {"then_by": "x"}])
    windows = sw.KeyedWindows(spec, emit=emit, **options)
    windows.ingest(make())
    return windows


def collected(make: Callable[[], Any], spec: sw.Spec, rng: random.Random) -> None:
    windows = stream(make, spec, rng)
    windows.ingest(make())
    windows.advance()
    windows.ingest(make())
    windows.collect()
    windows.keys()
    sw.KeyedWindows.from_bytes(windows.to_bytes(), spec)


def queried(make: Callable[[], Any], spec: sw.Spec, rng: random.Random) -> None:
    windows = stream(make, spec, rng)
    key = {name: windows.keys()[name][0].as_py() for name in spec.by}
    windows.query(key, valid_until=rng.choice([True, False]))
    plus = [] if "x" in (*spec.by, spec.on) else ["x"]
    options = rng.choice([{}, {"valid_until": True}, {"plus": plus}, {"windows": 2}])
    windows.query_many(make(), **options)


def rolled(make: Callable[[], Any], spec: sw.Spec, rng: random.Random) -> None:
    sw.rolling(make(), spec)
    sw.rolling(make(), spec, at=make())
    sw.explain(make(), spec)


def hopped(make: Callable[[], Any], spec: sw.Spec, rng: random.Random) -> None:
    window = rng.choice(["9s", "9d", 9, sw.until("x")])
    hops = {"on": spec.on, "by": spec.by, "aggs": dict(spec.aggs), "window": window}
    sw.hopping(make(), **hops)
    collected(make, sw.Spec(**hops), rng)


@pytest.mark.filterwarnings("ignore")
def test_no_type_raises_an_error_of_a_library():
    rng = random.Random(SEED)
    for _ in range(CALLS):
        column, (name, frame) = rng.choice(COLUMNS), rng.choice([*FRAMES.items()])
        call = rng.choice([rolled, hopped, collected, queried])
        table = pa.table({"t": [1, 2, 3, 4], "x": column.array, "y": [1] * 4})
        spec = sw.Spec(**given(rng))
        if spec.on == "x":
            table = table.slice(0, 2)  # times cannot be null
        try:
            frame(table)
        except BaseException:  # noqa: BLE001 - the library lacks the type
            continue
        try:
            call(lambda frame=frame, table=table: frame(table), spec, rng)
        except sw.SlidewiseError:
            pass
        except BaseException as error:
            made = document_of(spec.keywords)
            what = f"{call.__name__} of {name} of {column.array.type}: {made}"
            raise AssertionError(f"SLIDEWISE_SEED={SEED}: {what}") from error


def test_every_type_has_the_answers_of_its_plain_type():
    rng = random.Random(SEED)
    columns = [column for column in COLUMNS if column.plain is not None]
    for column in rng.sample(columns, len(columns)):
        agg = rng.choice(
            [sw.count_distinct("x"), sw.last("x"), sw.max("x"), sw.mode("x")]
        )
        by, aggs = rng.choice([None, "x"]), {"a": agg, "n": sw.count()}
        answers = []
        for array in column:
            table = pa.table({"t": [1, 2, 3, 4], "x": array})
            windows = sw.KeyedWindows(on="t", by=by, windows=9, aggs=aggs)
            windows.ingest(table)
            windows.advance()
            rolled = sw.rolling(table, on="t", by=by, windows=9, aggs=aggs)
            names = ["a_9", "n_9"]
            answers.append([rolled.select(names).to_pylist()])
            answers[-1].append(windows.collect().select(names).to_pylist())
        assert answers[0] == answers[1], (SEED, column.array.type, agg, by)


def test_long_decimals_become_those_of_polars():
    kind = pa.decimal256(50, 1)
    table = pa.table({"t": [1], "k": [1], "x": pa.array([Decimal("2.5")], kind)})
    windows = sw.KeyedWindows(on="t", by="k", windows=9, aggs={"x": sw.last("x")})
    windows.ingest(table)
    keys = pl.DataFrame({"k": [1], "t": [1]})
    answers = windows.query_many(keys, at="t")
    assert answers["x_9"].to_list() == [Decimal("2.5")]
    assert answers["x_9"].dtype == pl.Decimal(38, 1)
    collect = {"x": sw.collect("x")}
    lists = sw.rolling(table, on="t", by="k", windows=9, aggs=collect, at=keys)
    assert lists["x_9"].to_list() == [[Decimal("2.5")]]
    windows.ingest(table.set_column(2, "x", pa.array([Decimal(10) ** 45], kind)))
    with pytest.raises(sw.SpecError, match=r"the result 'x_9' of decimal256\(50, 1\)"):
        windows.query_many(keys, at="t")


class Panic(BaseException):
    """As the runtime of Rust extensions raises it."""


Panic.__module__ = "pyo3_runtime"


def test_a_panic_of_a_library_is_an_error_of_slidewise():
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise Panic("index out of bounds")

    with pytest.raises(sw.SpecError, match=r"Broken .*index out of bounds"):
        sw.rolling(Broken(), on="t", windows=9, aggs={"n": sw.count()})


def test_run_end_encoded_dictionaries_are_read():
    encoded = runs(dictionary(["a", "b"]))
    for array in (encoded, encoded.slice(1, 2)):
        table = pa.table({"t": [1, 2, 3, 4][: len(array)], "x": array})
        out = sw.rolling(table, on="t", windows=1, aggs={"x": sw.last("x")})
        assert out["x_1"].to_pylist() == array.to_pylist()


def test_streams_hold_types_that_arrow_makes_no_empty_arrays_of():
    codes = pa.array([0, 1], pa.int8())
    union = pa.UnionArray.from_sparse(codes, [pa.array([1, 2]), pa.array(["a", "b"])])
    uuids = pa.array([b"a" * 16, b"b" * 16], pa.uuid())
    table = pa.table({"t": [1, 2], "u": union, "x": uuids})
    windows = sw.KeyedWindows(on="t", windows=9, aggs={"x": sw.collect("x")})
    windows.ingest(table)
    windows.advance()
    answers = windows.collect()
    assert answers["u"].to_pylist() == [1, "b"]
    assert list(map(len, answers["x_9"].to_pylist())) == [1, 2]


def test_dictionaries_of_lists_are_keys_and_values():
    lists = dictionary(pa.array([[1], [2]]))
    table = pa.table({"t": [1, 2, 3, 4], "x": lists})
    out = sw.rolling(table, on="t", by="x", windows=9, aggs={"n": sw.count()})
    assert out["n_9"].to_pylist() == [1, 1, 1, 2]
    windows = sw.KeyedWindows(on="t", by="x", windows=9, aggs={"n": sw.count()})
    windows.ingest(table)
    assert windows.query(([2],)) == {"n_9": 2}


def test_a_stream_refuses_an_arrival_that_is_no_time():
    table = pa.table({"t": [1], "x": [[1]]})
    windows = sw.KeyedWindows(
        on="t", windows=9, aggs={"n": sw.count()}, arrival="x", emit="arrival"
    )
    with pytest.raises(sw.SpecError, match=r"'x' holds list.*, not times"):
        windows.ingest(table)
