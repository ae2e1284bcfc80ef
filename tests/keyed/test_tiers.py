"""Rows in pages that are merged by size."""

import pyarrow as pa

from slidewise.keyed.columns import TIME
from slidewise.keyed.page_store import MemoryStore, Pages
from slidewise.keyed.tiers import Tiers

SCHEMA = pa.schema([(TIME, pa.int64())])


def row(time: int) -> pa.Table:
    return pa.table({TIME: [time]}, schema=SCHEMA)


def test_each_page_is_at_least_twice_as_large_as_the_next() -> None:
    """A row is written once per doubling, not once per row that is added."""
    store = MemoryStore()
    pages = Pages(store)
    tiers = Tiers(pages, SCHEMA)
    for time in range(1023):
        tiers.add(row(time))
    assert [count for _, count in tiers.record()] == [2**at for at in range(9, -1, -1)]
    assert pages.next_page < 2 * 1023
    pages.commit()
    assert store.page_numbers == {*tiers.page_numbers}
    again = Tiers(Pages(store), SCHEMA, tiers.record())
    again.check()
    assert again.rows[TIME].to_pylist() == [*range(1023)]


def test_rewritten_rows_are_in_one_page() -> None:
    store = MemoryStore()
    pages = Pages(store)
    tiers = Tiers(pages, SCHEMA)
    for time in range(3):
        tiers.add(row(time))
    tiers.rewrite(row(7))
    pages.commit()
    assert tiers.rows[TIME].to_pylist() == [7]
    assert len(store.page_numbers) == 1
    tiers.rewrite(SCHEMA.empty_table())
    pages.commit()
    assert not store.page_numbers
