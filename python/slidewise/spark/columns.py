"""Columns by their names, as Spark wants them."""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType

__all__ = ["OWN", "ascending", "column", "key_column"]

# How the names of columns begin that slidewise adds to a DataFrame on the way.
OWN = "__slidewise_"


def column(name: str) -> Any:
    """A column by its name, whatever characters it has."""
    quoted = name.replace("`", "``")
    return sf.col(f"`{quoted}`")


def ascending(names: Iterable[str]) -> list[Any]:
    """What to sort by for the order of `then_by`: values, NaN, nulls."""
    return [column(name).asc_nulls_last() for name in names]


def key_column(df: Any, name: str) -> Any:
    """A key column; the two zeros of floats, which are one key, as one."""
    kind = df.schema[name].dataType
    if isinstance(kind, FloatType | DoubleType):
        return column(name) + sf.lit(0.0).cast(kind)
    return column(name)
