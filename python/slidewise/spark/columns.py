"""Spark columns by name."""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType

__all__ = [
    "ASKED",
    "BEAT",
    "EARLY",
    "END",
    "NOW",
    "RESERVED_PREFIX",
    "ROLE",
    "ROW",
    "START",
    "ascending",
    "column",
    "key_columns",
]

# The prefix of the columns that slidewise adds to a DataFrame within its plan.
RESERVED_PREFIX = "__slidewise_"
# The number of a row in the order in which Spark reads it.
ROW = f"{RESERVED_PREFIX}row"
# The role of a row, as `slidewise.table.batched_rolling.Order` has it.
ROLE = f"{RESERVED_PREFIX}role"
# Whether the condition of `only=` holds for a row.
ASKED = f"{RESERVED_PREFIX}asked"
# The ticks after which the windows of a row are to end, and those up to which.
START = f"{RESERVED_PREFIX}start"
END = f"{RESERVED_PREFIX}end"
# Whether a row is ahead of the time of its micro-batch.
EARLY = f"{RESERVED_PREFIX}early"
# Whether a row is a heartbeat, and the time of its micro-batch in milliseconds.
BEAT = f"{RESERVED_PREFIX}beat"
NOW = f"{RESERVED_PREFIX}now"


def column(name: str) -> Any:
    """Returns a column by its exact name, dots and backticks included."""
    quoted = name.replace("`", "``")
    return sf.col(f"`{quoted}`")


def ascending(names: Iterable[str]) -> list[Any]:
    """Returns the sort columns of `then_by`: values, NaN, nulls."""
    return [column(name).asc_nulls_last() for name in names]


def key_columns(df: Any, names: Iterable[str]) -> list[Any]:
    """Returns key columns; -0.0 becomes 0.0, as both are the same key."""
    kinds = {field.name: field.dataType for field in df.schema}
    return [
        column(name) + sf.lit(0.0).cast(kinds[name])
        if isinstance(kinds[name], FloatType | DoubleType)
        else column(name)
        for name in names
    ]
