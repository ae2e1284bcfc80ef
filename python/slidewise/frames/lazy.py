"""Frames whose rows are computed on demand: polars LazyFrames."""

import sys
from collections.abc import Callable
from typing import Any

from slidewise.frames.base import guarded

__all__ = ["collected", "is_lazy", "map_lazy"]


def is_lazy(table: Any) -> bool:
    """Whether this is a polars LazyFrame."""
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(table, polars.LazyFrame)


def collected(table: Any) -> Any:
    """The rows of a LazyFrame; any other table as it is."""
    if not is_lazy(table):
        return table
    with guarded("the LazyFrame", Exception, way_out="its own query panics"):
        return table.collect()


def map_lazy(lazy: Any, function: Callable[[Any], Any]) -> Any:
    """Applies a function of DataFrames to a LazyFrame.

    The function is checked now, on a frame without rows.
    """
    with guarded("the LazyFrame", Exception, way_out="its own query panics"):
        empty = sys.modules["polars"].DataFrame(schema=lazy.collect_schema())
    schema = function(empty).schema
    # Each answer needs all rows and columns before it.
    return lazy.map_batches(
        function,
        schema=schema,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )
