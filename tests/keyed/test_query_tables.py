"""Tables that `query_many` appends results to."""

import pyarrow as pa
import pytest

import slidewise as sw


def test_results_are_appended_to_any_table_of_keys() -> None:
    """In its order, with its own columns and metadata, however it lies in memory."""
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
