"""Tables to which `query_many` appends results."""

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw


def test_results_are_appended_to_any_table_of_keys() -> None:
    """Its order, columns and metadata stay, in any layout in memory."""
    windows = sw.KeyedWindows(
        on="t", by=["k", "j"], windows=[5, 20], aggs={"n": sw.count(), "x": sw.sum("x")}
    )
    rows = {"t": [1, 2, 30], "k": [*"aba"], "j": [7, 7, 7], "x": [1.5, None, 2.5]}
    windows.ingest(
        pa.table(
            rows,
            pa.schema(
                {"t": pa.int64(), "k": pa.string(), "j": pa.int64(), "x": pa.float64()}
            ),
        )
    )
    fields = [
        pa.field("note", pa.string(), nullable=False, metadata={"of": "field"}),
        pa.field("j", pa.int64()),
        pa.field("k", pa.string()),
    ]
    schema = pa.schema(fields, {"of": "table"})
    columns = {"note": [*"tuvwx"], "j": [7, 7, 8, None, 7], "k": [*"abaab"]}
    keys = pa.table(columns, schema)
    at = keys.append_column("at", pa.array([30] * 5))
    expected = windows.query_many(at, at="at").drop_columns("at")
    for table in (keys, pa.concat_tables([keys.slice(0, 2), keys.slice(2)])):
        found = windows.query_many(table)
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.equals(expected)
    assert windows.query_many(keys.slice(1, 3)).equals(expected.slice(1, 3))
    assert windows.query_many(keys.slice(0, 0)).equals(expected.slice(0, 0))
    encoded = keys.set_column(2, "k", keys["k"].dictionary_encode())
    assert windows.query_many(encoded)["n_20"].equals(expected["n_20"])
    with pytest.raises(sw.SpecError, match="already"):
        windows.query_many(keys.append_column("n_5", keys["j"]))
    with pytest.raises(sw.SpecError, match="no column 'k'"):
        windows.query_many(keys.drop_columns("k"))


def text_of(kind: pa.DataType) -> pa.Array:
    """Text with nulls, in a slice."""
    return pa.array(["cut", "a", None, "", "über", "a"], kind).slice(1)


COLUMNS = {
    "string": text_of(pa.string()),
    "large_string": text_of(pa.large_string()),
    "binary": text_of(pa.string()).cast(pa.binary()),
    "large_binary": text_of(pa.string()).cast(pa.large_binary()),
    "int8": pa.array([9, 1, None, 3, 4, 5], pa.int8()).slice(1),
    "uint64": pa.array([9, 1, 2, 3, 4, 2**64 - 1], pa.uint64()).slice(1),
    "float16": pa.array([1, 2, None, 4, 5], pa.float16()),
    "float32": pa.array([1.5, None, 3, 4, 5], pa.float32()),
    "decimal": pa.array([1, 2, None, 4, 5], pa.decimal128(9, 2)),
    "wide decimal": pa.array([1, 2, None, 4, 5], pa.decimal256(50, 2)),
    "timestamp": pa.array([1, 2, None, 4, 5], pa.timestamp("us", "Europe/Berlin")),
    "date32": pa.array([1, 2, None, 4, 5], pa.date32()),
    "date64": pa.array([0, 86_400_000, None, 0, 0], pa.date64()),
    "time32": pa.array([1, 2, None, 4, 5], pa.time32("ms")),
    "duration": pa.array([1, 2, None, 4, 5], pa.duration("ns")),
    "interval": pa.array(
        [(1, 2, 3), None] * 2 + [(1, 2, 3)], pa.month_day_nano_interval()
    ),
    "fixed binary": pa.array([b"ab", None, b"cd", b"ef", b"gh"], pa.binary(2)),
    "bool": pa.array([True, None, False, True, False]),
    "null": pa.nulls(5),
    "list": pa.array([[1], None, [], [2, 3], [4]]),
    "struct": pa.array([{"a": 1}, None, {"a": 2}, {"a": 3}, {"a": None}]),
    "dictionary": pa.array([*"abcab"]).dictionary_encode(),
    "view": pa.array([*"abcab"], pa.string_view()),
    "run ends": pa.RunEndEncodedArray.from_arrays([2, 5], ["a", "b"]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_all_types_are_unchanged(name: str) -> None:
    """Columns are before and after the keys, whole and sliced; fields are unchanged."""
    windows = sw.KeyedWindows(on="t", by="k", windows=9, aggs={"x": sw.sum("x")})
    windows.ingest(pa.table({"t": [1, 2], "k": [1, 2], "x": [1, 2]}))
    column = COLUMNS[name]
    fields = [
        pa.field("column", column.type, metadata={"of": name}),
        pa.field("k", pa.int64(), nullable=False),
        pa.field("again", column.type),
    ]
    schema = pa.schema(fields, {"of": "table"})
    table = pa.table([column, pa.array([1, 2, 3, 1, 2]), column], schema=schema)
    for part, sums in (
        (table, [1, 2, None, 1, 2]),
        (table.slice(1), [2, None, 1, 2]),
        (table.slice(2, 1), [None]),
        (table.slice(5), []),
    ):
        found = windows.query_many(part)
        found.validate(full=True)
        assert found["x_9"].to_pylist() == sums
        assert found.drop_columns("x_9").equals(part)
        assert found.drop_columns("x_9").schema.equals(schema, check_metadata=True)
        for batch in part.combine_chunks().to_batches():
            record = windows.query_many(batch)
            assert isinstance(record, pa.RecordBatch)
            record.validate(full=True)
            assert pa.Table.from_batches([record]).equals(found)


@pytest.mark.parametrize("keys", ["za", "az", "bza", "zyba", "zy"])
@pytest.mark.parametrize("windows", [sw.landmark("f"), sw.rows(3), 5], ids=str)
def test_unknown_keys_may_be_anywhere(keys, windows):
    k = sw.KeyedWindows(
        on="t", by="k", windows=windows, aggs={"n": sw.count()}, late=100
    )
    k.ingest(pa.table({"t": [5, 6, 7], "k": [*"aba"], "f": [True, True, False]}))
    points = pa.table({"k": [*keys], "t": [9] * len(keys)})
    found = k.query_many(points, at="t")
    assert found.column(2).to_pylist() == [{"a": 2, "b": 1}.get(key, 0) for key in keys]


MIXED = {"n": sw.count(), "x": sw.sum("x"), "y": sw.max("y"), "low": sw.min("s")}


@pytest.mark.parametrize("names", [["n", "x", "y"], ["low", "n"]], ids=["fold", "rows"])
@pytest.mark.parametrize("by", [["k"], ["k", "j"], []], ids=["one", "two", "none"])
def test_lists_of_keys_have_lists_of_results(by: list[str], names: list[str]) -> None:
    """The values are those of a table of these keys, as Python objects."""
    windows = sw.KeyedWindows(
        on="t", by=by, windows=[5, 20], aggs={name: MIXED[name] for name in names}
    )
    rows = {
        "t": [1, 2, 3, 9],
        "k": ["a", "b", "a", None],
        "j": [7, 7, 8, 7],
        "x": [None, 2, 2**60, 4],
        "y": [0.5, None, 1.5, -0.0],
        "s": [*"abcd"],
    }
    windows.ingest(pa.table(rows))
    keys = {
        "j": [7, 8, 7, None, 9],
        "k": ["a", "a", None, "b", "z"],
        "note": [*"vwxyz"],
    }
    given = {name: [*values] for name, values in keys.items()}
    for call in ({}, {"at": 9}, {"at": 4, "windows": 3}, {"valid_until": True}):
        expected = windows.query_many(pa.table(keys), **call).to_pydict()
        assert windows.query_many(keys, **call) == expected
        assert keys == given, "the lists of the caller stay"
    timed = {**keys, "when": [9, 3, 9, 9, 9], "x": [1, 2, 3, 4, 5]}
    expected = windows.query_many(pa.table(timed), at="when", plus=["x"]).to_pydict()
    assert windows.query_many(timed, at="when", plus=["x"]) == expected
    others = {**keys, "j": [np.int8(7), np.int8(8), np.int8(7), None, np.int8(9)]}
    assert windows.query_many(others)["n_5"] == windows.query_many(keys)["n_5"]
    assert windows.query_many({"k": [], "j": []})["n_5"] == []


def test_lists_without_keys_have_no_results() -> None:
    windows = sw.KeyedWindows(on="t", by="k", windows=5, aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [1], "k": ["a"]}))
    keys: dict[str, list[object]] = {"k": [], "when": []}
    assert windows.query_many(keys, at="when") == {"k": [], "when": [], "n_5": []}
    assert windows.query_many(pa.table(keys), at="when").num_rows == 0


def test_other_lists_are_unchanged() -> None:
    """They may hold any objects, for all ways to compute results."""
    aggs = {"n": sw.count(), "x": sw.sum("x")}
    windows = sw.KeyedWindows(on="t", by="k", windows=5, aggs=aggs)
    windows.ingest(pa.table({"t": [1], "k": ["a"], "x": [2]}))
    things, mixed = [object(), object()], [1, "a"]
    keys = {"things": things, "k": ["a", "b"], "mixed": mixed, "when": [1, 2]}
    timed = {**keys, "y": [3, 4]}
    for found in (
        windows.query_many(keys, at=1),
        windows.query_many(keys, at=1, windows=5),
        windows.query_many(keys, at=1, valid_until=True),
        windows.query_many({**keys, "k": np.array(["a", "b"])}, at=1),
        windows.query_many(timed, at="when", plus={"x": "y"}),
        windows.query_many({**timed, "x": timed["y"]}, at="when", plus="x"),
    ):
        assert found["things"] is things
        assert found["mixed"] is mixed
        assert found["n_5"] == ([2, 1] if "y" in found else [1, 0])
        assert found["x_5"] == ([5, 4] if "y" in found else [2, None])


@pytest.mark.parametrize(
    "keys",
    [
        {"k": ["a"], "j": (1,)},
        {"k": ("a",), "j": [1]},
        {"k": ["a"], "j": np.array([1])},
        {"j": np.array([1]), "k": ["a"]},
    ],
    ids=str,
)
def test_columns_beside_lists_may_be_other_sequences(keys: dict[str, object]) -> None:
    windows = sw.KeyedWindows(on="t", by=["k", "j"], windows=5, aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [1], "k": ["a"], "j": [1]}))
    found = windows.query_many(keys)
    assert found["n_5"] == [1]
    assert all(found[name] is values for name, values in keys.items())


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"k": ["a"], "z": 5}, "column 'z' of keys= is not a list: 5"),
        ({1: ["a"], "k": ["a"]}, "names of columns in keys= are text, not 1"),
        ({"k": ["a"], 1: ["a"]}, "names of columns in keys= are text, not 1"),
        ({"k": ["a"], "z": [1, 2]}, "a dict of lists of one length"),
        ({"k": ["a", "b"], "j": [1]}, "a dict of lists of one length"),
        ({"k": ["a", 1]}, "^1 is not a key of column 'k', which holds string"),
        ({"k": [1]}, "^1 is not a key of column 'k', which holds string"),
        ({"j": [1]}, "keys= has no column 'k'"),
        ({"k": ["a"], "n_5": [1]}, "has a column 'n_5' already"),
        ({"k": ["\ud800"]}, "is not a key of column 'k'"),
    ],
    ids=str,
)
def test_wrong_lists_of_keys_are_refused(
    keys: dict[str, list[object]], message: str
) -> None:
    windows = sw.KeyedWindows(on="t", by="k", windows=5, aggs={"n": sw.count()})
    windows.ingest(pa.table({"t": [1], "k": ["a"]}))
    with pytest.raises(sw.SpecError, match=message):
        windows.query_many(keys)


def test_a_sum_of_lists_of_keys_that_does_not_fit_is_refused() -> None:
    windows = sw.KeyedWindows(on="t", by="k", windows=5, aggs={"x": sw.sum("x")})
    windows.ingest(pa.table({"t": [1, 1], "k": [*"aa"], "x": [2**62, 2**62]}))
    with pytest.raises(sw.ResultOverflowError):
        windows.query_many({"k": ["b", "a"]})
