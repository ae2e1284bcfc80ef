"""Many rows from several batches that are due together."""

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw


@pytest.mark.parametrize("step", [1, 1 << 20, 1 << 50])
def test_many_due_rows_come_in_order_of_time(step: int) -> None:
    """Rows of equal time are in order of arrival, for any distance of times."""
    draw = np.random.default_rng(step)
    spec = {"on": "t", "by": "key", "windows": 40 * step, "aggs": {"n": sw.count()}}
    windows, batches = sw.KeyedWindows(**spec), []
    for number in range(3):
        columns = {
            "t": draw.integers(-1000, 1000, 6000) * step,
            "key": draw.integers(0, 50, 6000),
            "row": np.arange(6000) + 6000 * number,
        }
        batches.append(pa.table(columns))
        windows.ingest(batches[-1])
    rows = pa.concat_tables(batches)
    expected = sw.rolling(rows, **spec).sort_by(
        [("t", "ascending"), ("row", "ascending")]
    )
    for watermark in (-300 * step, 1000 * step):
        windows.advance(watermark)
    assert windows.collect().combine_chunks().equals(expected.combine_chunks())


def test_windows_before_all_times_hold_no_row() -> None:
    """The first window of the key ends before the least int64, the third at it."""
    least = -(2**63)
    spec = {"on": "t", "windows": 2, "closed": "both", "offset": 2**63 - 1}
    rows = pa.table({"t": [least, least + 1, -1, 0]})
    windows = sw.KeyedWindows(**spec, aggs={"n": sw.count()})
    windows.ingest(rows)
    windows.advance()
    expected = sw.rolling(rows, **spec, aggs={"n": sw.count()})
    assert expected["n_2"].to_pylist() == [0, 0, 1, 2]
    assert windows.collect()["n_2"].to_pylist() == [0, 0, 1, 2]
