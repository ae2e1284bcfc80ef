"""A sort key of 64 bits: a group of keys, then the time.

Spark sorts one integer column by radix sort, and several columns by comparisons, which
take several times as long. So if times fit into 59 bits, tasks sort by one number:

    ┌ group ┬───────────────── time ─────────────────┐
    │ 5 bits│ 59 bits: microseconds, days, integers  │
    └───────┴────────────────────────────────────────┘

The rows of all keys of a *key group* are then sorted by time; native code separates the
keys. So it holds the windows of a 32nd of a task's keys at a time, not those of one
key. Each split of a skewed key has a key group of its own.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ByteType,
    DateType,
    IntegerType,
    ShortType,
    TimestampType,
)

from slidewise.errors import Argument, SpecError
from slidewise.spark.columns import RESERVED_PREFIX, column, key_columns
from slidewise.spark.skew_split import SPLIT, SkewSplits
from slidewise.spark.versions import repartition_by_id
from slidewise.spec.spec import Spec

__all__ = [
    "KEY_GROUP",
    "KEY_GROUPS",
    "add_sort_key",
    "check_times",
    "fits_sort_key",
    "repartition_splits",
]

KEY_GROUP = f"{RESERVED_PREFIX}key_group"
KEY_GROUPS = 32
_TIME_BITS = 59
_TIME_LIMIT = 2 ** (_TIME_BITS - 1)
# The sort key is signed.
_FIRST_GROUP = -KEY_GROUPS // 2


def fits_sort_key(
    df: Any,
    spec: Spec,
    then_by: tuple[str, ...],
    splits: SkewSplits | None,
    tasks: int,
) -> bool:
    """Whether the rows of a query can be sorted by one number.

    They cannot with `arrival=` or `then_by=`, which sort by other columns; with bigint
    times, which need 64 bits; or with `empty=True`, as windows without rows are found
    key by key.
    """
    fitting = ByteType | ShortType | IntegerType | DateType | TimestampType
    return (
        (bool(spec.by) or splits is not None)
        and spec.arrival is None
        and not then_by
        and not spec.empty
        and isinstance(df.schema[spec.on].dataType, fitting)
        and 2 * _split_groups(splits, tasks) <= KEY_GROUPS
    )


def repartition_splits(df: Any, spec: Spec, tasks: int) -> Any:
    """Moves splits to tasks in turn, and other keys to tasks by their hash."""
    split = column(SPLIT)
    keys = key_columns(df, spec.by)
    key_hash = sf.hash(*keys) if keys else sf.lit(0)
    number = sf.when(split > 0, split).otherwise(key_hash)
    return repartition_by_id(df, tasks, sf.pmod(number, sf.lit(tasks)).cast("int"))


def add_sort_key(
    df: Any, spec: Spec, splits: SkewSplits | None, tasks: int
) -> tuple[Any, Any]:
    """Adds the column `KEY_GROUP`; also returns the column to sort by."""
    reserved = _split_groups(splits, tasks)
    keys = key_columns(df, spec.by)
    key_hash = sf.xxhash64(*keys) if keys else sf.lit(0)
    group = sf.pmod(key_hash, sf.lit(KEY_GROUPS - reserved)) + reserved
    if splits is not None:
        # The numbers of the splits of a task are `tasks` apart.
        split = column(SPLIT)
        group = sf.when(split > 0, sf.floor(split / tasks)).otherwise(group)
    rows = df.withColumns({KEY_GROUP: group.cast("byte")})
    time, kind = column(spec.on), df.schema[spec.on].dataType
    if isinstance(kind, TimestampType):
        time = sf.unix_micros(time)
    elif isinstance(kind, DateType):
        time = sf.unix_date(time)
    # Bit operations, as a sum may overflow before `check_times` sees the time.
    high = sf.shiftleft(column(KEY_GROUP).cast("long") + _FIRST_GROUP, _TIME_BITS)
    low = time.cast("long").bitwiseAND(2 * _TIME_LIMIT - 1)
    return rows, high.bitwiseOR(low.bitwiseXOR(sf.lit(_TIME_LIMIT)))


def _split_groups(splits: SkewSplits | None, tasks: int) -> int:
    """Returns the number of key groups that are reserved for the splits of a task."""
    return 0 if splits is None else sum(splits.counts) // tasks + 1


def check_times(ticks: pa.Array, on: str) -> None:
    """Checks that times fit into the sort key.

    Example:
        >>> check_times(pa.array([0, 2**58 - 1]), "t")
    """
    ends = pc.min_max(ticks).as_py()
    if ends["min"] is None or (
        ends["min"] >= -_TIME_LIMIT and ends["max"] < _TIME_LIMIT
    ):
        return
    raise SpecError(
        f"column {on!r} holds a time before the year -7164 or after 11103: drop such "
        "rows, or pass ",
        Argument("then_by", on),
        ", which sorts by columns instead",
    )
