"""Columns by their names, as Spark wants them."""

from typing import Any

from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType

__all__ = ["column", "key_column"]


def column(name: str) -> Any:
    """A column by its name, whatever characters it has."""
    quoted = name.replace("`", "``")
    return sf.col(f"`{quoted}`")


def key_column(df: Any, name: str) -> Any:
    """A key column; the two zeros of floats, which are one key, as one."""
    kind = df.schema[name].dataType
    if isinstance(kind, FloatType | DoubleType):
        return column(name) + sf.lit(0.0).cast(kind)
    return column(name)
