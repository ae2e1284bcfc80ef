"""Finds the adapter of a table by its type."""

import sys
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.frames.arrow import arrow_frame, batch_frame
from slidewise.frames.base import Frame, guarded
from slidewise.frames.narwhals import is_narwhals, narwhals_frame
from slidewise.frames.numpy import holds_arrays, numpy_frame
from slidewise.frames.pandas import pandas_frame
from slidewise.frames.polars import polars_frame

__all__ = ["frame", "refuse_spark", "refuse_without_on"]

# The modules that define Spark's DataFrames; before PySpark 4.0 Connect has a separate
# one.
_SPARK_MODULES = (
    "pyspark.sql.dataframe",
    "pyspark.sql.connect.dataframe",
    "pyspark.pandas.frame",
)
_LIBRARIES: tuple[tuple[str, str, Callable[[Any], Frame]], ...] = (
    ("pandas", "DataFrame", pandas_frame),
    ("polars", "DataFrame", polars_frame),
)


def frame(table: Any) -> Frame:
    """Wraps a table."""
    if isinstance(table, type):
        raise SpecError(_no_table(table))
    refuse_spark(table)
    for library, type_name, wrap in _LIBRARIES:
        module = sys.modules.get(library)
        if module is not None and isinstance(table, getattr(module, type_name)):
            return wrap(table)
    if is_narwhals(table, "DataFrame"):
        return narwhals_frame(table, frame(table.to_native()))
    if isinstance(table, pa.RecordBatch):
        return batch_frame(table)
    if isinstance(table, pa.Table):
        return arrow_frame(table)
    if holds_arrays(table):
        return numpy_frame(table)
    if hasattr(table, "__arrow_c_stream__"):
        # An error in the rows of a stream is that of its producer.
        with guarded(_kind(table), Exception, way_out="give a pyarrow Table"):
            try:
                reader = pa.RecordBatchReader.from_stream(table)
            except pa.ArrowInvalid as error:  # a stream of no columns
                raise SpecError(_no_table(table)) from error
            return arrow_frame(reader.read_all())
    raise SpecError(_no_table(table))


def refuse_without_on(table: Any) -> None:
    """Refuses a call without `on=` where the table tells what it should be."""
    if _is_series(table):
        raise SpecError(_no_table(table))
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        index = table.index
        beside = frame(table).times_beside
        if isinstance(index.name, str) and index.dtype.kind in "mM":
            beside = f" The times are in its index: give on={index.name!r}."
        if beside:
            raise SpecError(f"on= is missing.{beside}")


def _is_series(table: Any) -> bool:
    modules = (sys.modules.get(name) for name in ("pandas", "polars"))
    return any(module and isinstance(table, module.Series) for module in modules)


def refuse_spark(table: Any) -> None:
    """Refuses a Spark DataFrame, whose rows would all be collected to the driver."""
    for name in _SPARK_MODULES:
        module = sys.modules.get(name)
        if module is not None and isinstance(table, module.DataFrame):
            raise SpecError(
                "this is a PySpark DataFrame: use slidewise.spark.rolling or "
                "slidewise.spark.hopping, or give df.toPandas() if its rows fit into "
                "memory"
            )


def _no_table(table: Any) -> str:
    if isinstance(table, str | PathLike):
        return (
            f"{str(table)!r} is a path or text, not a table: read the file first, "
            "such as with pyarrow.csv.read_csv, pyarrow.parquet.read_table or "
            "pandas.read_csv; in a shell, slidewise rolling takes files"
        )
    if isinstance(table, list | tuple) and table and _all_mappings(table):
        return (
            "a list of dicts is not a table: give pyarrow.Table.from_pylist(rows) or "
            "pandas.DataFrame(rows)"
        )
    if _is_series(table):
        named = ".rename_axis('t')" * (getattr(table, "index", None) is not None)
        return (
            f"a Series is not a table but a column: give series{named}.to_frame('x')"
            + ", and on='t' for the times in its index" * bool(named)
        )
    return (
        f"{_kind(table)} is not a table: give a pyarrow Table or RecordBatch, a "
        "pandas, polars or narwhals DataFrame, a dict of NumPy arrays, or anything "
        "with __arrow_c_stream__"
        + (" (such as pyarrow.table(...) of it)" * isinstance(table, Mapping))
    )


def _kind(table: Any) -> str:
    return f"{type(table).__module__}.{type(table).__qualname__}"


def _all_mappings(rows: Sequence[Any]) -> bool:
    return all(isinstance(row, Mapping) for row in rows)
