"""Functions over tables that the modules of keyed windows share."""

import pyarrow as pa

from slidewise.keyed.columns import joined


def test_tables_are_joined_until_they_have_enough_rows_or_bytes() -> None:
    tables = [
        pa.table({"x": pa.array([at] * count, pa.int64())})
        for at, count in enumerate([3, 4, 0, 1, 9, 2])
    ]
    by_rows = list(joined(tables, 7))
    assert [len(table) for table in by_rows] == [7, 10, 2]
    assert pa.concat_tables(by_rows).equals(pa.concat_tables(tables))
    assert all(table.column(0).num_chunks == 1 for table in by_rows)
    by_bytes = list(joined(tables, 1000, 8 * 8))
    assert [len(table) for table in by_bytes] == [8, 9, 2]
    assert list(joined([], 7)) == []
