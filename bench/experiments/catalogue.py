"""Every figure and table with data of the five papers.

A row has the figure, its axes, structures, operators, sizes and data, and the claims
of the paper; the rows of a paper are in `papers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.experiments.papers import bulk, bulk_billion, daba, fiba, ra, slickdeque

if TYPE_CHECKING:
    from bench.experiments.shapes import Artefact

__all__ = ["CATALOGUE", "PAPERS", "find"]

PAPERS = {
    "fiba": "Tangwongsan, Hirzel, Schneider: Sub-O(log n) Out-of-Order Sliding-Window "
    "Aggregation, arXiv 2018",
    "bulk": "Tangwongsan, Hirzel, Schneider: Out-of-Order Sliding-Window Aggregation "
    "with Efficient Bulk Evictions and Insertions, extended version, 2023",
    "daba": "Tangwongsan, Hirzel, Schneider: Constant-Time Sliding Window Aggregation, "
    "IBM Research Report, 2015",
    "ra": "Tangwongsan, Hirzel, Schneider, Wu: General Incremental Sliding-Window "
    "Aggregation, PVLDB 8(7), 2015",
    "slickdeque": "Shein, Chrysanthis, Labrinidis: SlickDeque: High Throughput and Low "
    "Latency Incremental Sliding-Window Aggregation, EDBT 2018",
}

CATALOGUE: tuple[Artefact, ...] = (
    *fiba.ROWS,
    *bulk.ROWS,
    *bulk_billion.ROWS,
    *daba.ROWS,
    *ra.ROWS,
    *slickdeque.ROWS,
)


def find(only: str) -> list[Artefact]:
    """The rows whose key is one of some words, or begins with one.

    Raises:
        ValueError: If a word is not a beginning of any key.
    """
    words = only.replace(",", " ").split()
    for word in words:
        if not any(_is(row.key, word) for row in CATALOGUE):
            keys = ", ".join(row.key for row in CATALOGUE)
            raise ValueError(f"no figure {word!r}; there are {keys}")
    return [
        row
        for row in CATALOGUE
        if not words or any(_is(row.key, word) for word in words)
    ]


def _is(key: str, word: str) -> bool:
    return key == word or key.startswith(f"{word}-")
