"""Frames whose rows are computed on demand: LazyFrames of polars and of narwhals."""

import sys
from collections.abc import Callable
from typing import Any

from slidewise.frames.adapt import refuse_spark
from slidewise.frames.base import guarded
from slidewise.frames.narwhals import is_narwhals, rewrapped

__all__ = ["collected", "is_lazy", "map_lazy"]


def is_lazy(table: Any) -> bool:
    """Whether this is a LazyFrame."""
    return _is_polars(table) or is_narwhals(table, "LazyFrame")


def _is_polars(table: Any) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(table, polars.LazyFrame)


def collected(table: Any) -> Any:
    """The rows of a LazyFrame; any other table as it is."""
    if not is_lazy(table):
        return table
    if not _is_polars(table):
        refuse_spark(table.to_native())
    with guarded("the LazyFrame", Exception, way_out="its own query panics"):
        return table.collect()


def map_lazy(lazy: Any, function: Callable[..., Any], *others: Any) -> Any:
    """Applies a function of tables to a LazyFrame, and to other tables.

    The function is checked now, on a frame without rows. Of narwhals LazyFrames those
    of polars stay lazy; others are computed now.

    Args:
        lazy: The LazyFrame.
        function: Takes the rows of the LazyFrame, and of the others.
        others: Tables, lazy or not, whose rows are computed with it.
    """
    if _is_polars(lazy):
        return _map_polars(lazy, function, others)
    native = lazy.to_native()
    if _is_polars(native):
        return rewrapped(lazy, _map_polars(native, function, others))
    answer = function(collected(lazy), *map(collected, others))
    duckdb = lazy.implementation if lazy.implementation.is_duckdb() else None
    return answer.lazy(backend=duckdb)


def _map_polars(
    lazy: Any, function: Callable[..., Any], others: tuple[Any, ...]
) -> Any:
    schema = function(*map(_without_rows, (lazy, *others))).schema
    # Each answer needs all rows and columns before it.
    return lazy.map_batches(
        lambda rows: function(rows, *map(collected, others)),
        schema=schema,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def _without_rows(table: Any) -> Any:
    """A frame of the columns of a LazyFrame; any other table as it is."""
    if not is_lazy(table):
        return table
    if not _is_polars(table):
        return collected(table.head(0))
    with guarded("the LazyFrame", Exception, way_out="its own query panics"):
        return sys.modules["polars"].DataFrame(schema=table.collect_schema())
