"""Keyed windows of a few cards."""

import pyarrow as pa

import slidewise as sw

OPTIONS = {
    "on": "t",
    "by": "card",
    "windows": [10, 4],
    "aggs": {"n": sw.count(), "sum": sw.sum("x"), "xs": sw.collect("x")},
}


def cards(*rows: tuple[int, str, int], **options: object) -> sw.KeyedWindows:
    """Windows with rows of a time, a card and a value."""
    windows = sw.KeyedWindows(**{**OPTIONS, **options})
    windows.ingest(batch(*rows))
    return windows


def batch(*rows: tuple[int, str, int]) -> pa.Table:
    """Rows of a time, a card and a value."""
    t, card, x = zip(*rows, strict=True)
    return pa.table({"t": t, "card": card, "x": pa.array(x, pa.int64())})


ROWS = [(1, "a", 1), (4, "b", 2), (4, "a", 3), (9, "a", 4)]
