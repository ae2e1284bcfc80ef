"""Pages of rows, as read from a store."""

import pyarrow as pa

from slidewise.keyed.columns import TIME
from slidewise.keyed.page_store import MemoryStore, Pages


def test_rows_that_are_read_are_aligned() -> None:
    """Native code reads offsets of eight bytes in place."""
    times = pa.array([1, 2, 3], pa.int64())
    words = pa.array(["a", None, "b"], pa.large_string())
    table = pa.table({TIME: times, "word": words})
    store = MemoryStore()
    written = Pages(store)
    page = written.add(table)
    written.commit()
    found = Pages(store).read(page, table.schema)
    assert found.equals(table)
    for column in found.columns:
        (chunk,) = column.chunks
        assert all(part is None or part.address % 8 == 0 for part in chunk.buffers())


def test_the_page_read_least_recently_is_dropped_first() -> None:
    store = MemoryStore()
    table = pa.table({TIME: pa.array(range(1000), pa.int64())})
    pages = Pages(store)
    numbers = [pages.add(table) for _ in range(3)]
    pages.commit()
    pages.read(numbers[0], table.schema)
    pages.trim(2 * table.nbytes)
    pages.traffic()
    counts = []
    for page in (numbers[0], numbers[2], numbers[1]):
        pages.read(page, table.schema)
        counts.append(pages.traffic()["pages_read"])
    assert counts == [0, 0, 1]
