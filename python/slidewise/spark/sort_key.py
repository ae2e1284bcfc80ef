"""How tasks sort their rows: by key and time, or by one number that says both.

Spark sorts by one number digit by digit, and by several columns row against row, which
takes several times as long. So where times fit, a number holds them below five bits for
a *run* of keys:

    ┌─ run ─┬───────────────── time ─────────────────┐
    │ 5 bits│ 59 bits: microseconds, days, integers  │
    └───────┴────────────────────────────────────────┘

The keys of a run lie in order of time among one another, and are told apart in native
code, which holds a 32nd of a task's keys at a time instead of one. Each piece of a hot
key has a run of its own.
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
from slidewise.spark.columns import column, key_column
from slidewise.spark.skew_split import PIECE, Cuts
from slidewise.spark.versions import repartitioned
from slidewise.spec.spec import Spec

__all__ = ["RUN", "RUNS", "by_one_number", "check_times", "placed", "with_runs"]

RUN = "__slidewise_run"
RUNS = 32
_BITS = 59
_MOST = 2 ** (_BITS - 1)
# The number is signed, as times are.
_FIRST_RUN = -RUNS // 2


def by_one_number(
    df: Any, spec: Spec, then_by: tuple[str, ...], cuts: Cuts | None, tasks: int
) -> bool:
    """Whether one number orders the rows.

    Not what else orders them, nor 64 bits of integers; nor where windows are answered
    that no row of their key lies in, as these are found key by key.
    """
    whole = ByteType | ShortType | IntegerType | DateType | TimestampType
    return (
        (bool(spec.by) or cuts is not None)
        and spec.arrival is None
        and not then_by
        and not spec.empty
        and isinstance(df.schema[spec.on].dataType, whole)
        and 2 * _own_runs(cuts, tasks) <= RUNS
    )


def placed(df: Any, spec: Spec, tasks: int) -> Any:
    """Rows in pieces, each piece in one task: one after the other, all evenly."""
    piece = column(PIECE)
    keys = [key_column(df, name) for name in spec.by]
    rest = sf.hash(*keys) if keys else sf.lit(0)
    place = sf.when(piece > 0, piece).otherwise(rest)
    return repartitioned(df, tasks, sf.pmod(place, sf.lit(tasks)).cast("int"))


def with_runs(df: Any, spec: Spec, cuts: Cuts | None, tasks: int) -> tuple[Any, Any]:
    """Rows with their run, and the number to sort them by."""
    own = _own_runs(cuts, tasks)
    keys = [key_column(df, name) for name in spec.by]
    place = sf.xxhash64(*keys) if keys else sf.lit(0)
    run = sf.pmod(place, sf.lit(RUNS - own)) + own
    if cuts is not None:
        # Of the pieces in a task, numbers are as many apart as there are tasks.
        piece = column(PIECE)
        run = sf.when(piece > 0, sf.floor(piece / tasks)).otherwise(run)
    rows = df.withColumns({RUN: run.cast("byte")})
    time, kind = column(spec.on), df.schema[spec.on].dataType
    if isinstance(kind, TimestampType):
        time = sf.unix_micros(time)
    elif isinstance(kind, DateType):
        time = sf.unix_date(time)
    # By bits, as sums may overflow where `check_times` is to speak.
    above = sf.shiftleft(column(RUN).cast("long") + _FIRST_RUN, _BITS)
    below = time.cast("long").bitwiseAND(2 * _MOST - 1).bitwiseXOR(sf.lit(_MOST))
    return rows, above.bitwiseOR(below)


def _own_runs(cuts: Cuts | None, tasks: int) -> int:
    """How many runs the pieces of a task take, each its own."""
    return 0 if cuts is None else sum(cuts.pieces) // tasks + 1


def check_times(ticks: pa.Array, on: str) -> None:
    """Refuses times that the number cannot hold.

    Raises:
        SpecError: If there are some.

    Example:
        >>> check_times(pa.array([0, 2**58 - 1]), "t")
    """
    ends = pc.min_max(ticks).as_py()
    if ends["min"] is None or (ends["min"] >= -_MOST and ends["max"] < _MOST):
        return
    raise SpecError(
        f"column {on!r} holds a time before the year -7164 or after 11103: drop such "
        "rows, or say ",
        Argument("then_by", on),
        ", and whole columns are compared in sorting",
    )
