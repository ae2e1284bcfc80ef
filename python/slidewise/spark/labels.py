"""Labels, the rows of `at=` on Spark: they travel among the rows that they ask about.

    rows    keys  time  arrival  values  null
    labels  keys  time  arrival  null    all columns of a label, as a struct

So labels take part in the same shuffle and sort. Their keys and times are cast to the
types of the rows for this; a value that such a type does not hold becomes null, or the
nearest one for integer times, and workers compare the label's own columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    IntegerType,
    IntegralType,
    LongType,
    ShortType,
    StructType,
)

from slidewise.errors import Argument, SpecError
from slidewise.spark.columns import RESERVED_PREFIX, column
from slidewise.spec.spec import Spec
from slidewise.table.asof import PointColumns
from slidewise.table.batched_points import PointRows

__all__ = ["LABEL", "Labels", "add_labels", "check_kinds"]

# The column of a label among the rows, which is null in these.
LABEL = f"{RESERVED_PREFIX}label"
_BITS = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a query.

    Attributes:
        df: Their DataFrame.
        columns: Their times, keys and arrival.
    """

    df: Any
    columns: PointColumns

    def in_workers(self, keys: Sequence[str] = ()) -> PointRows:
        """The labels among the rows of workers, with further keys of the plan."""
        columns = self.columns._replace(by=(*self.columns.by, *keys))
        return PointRows(LABEL, tuple(self.df.columns), columns)


def check_kinds(df: Any, labels: Labels, spec: Spec) -> None:
    """Checks what Spark asks of the columns of labels, beyond what tables do."""
    placed = _placed(labels, spec)
    for name, other in zip(spec.by, labels.columns.by, strict=True):
        if placed[name] != other:
            raise SpecError(
                Argument("at_by", {name: other}),
                f" gives the key {name!r} other values than the column "
                f"{placed[name]!r}, which is its time or arrival: Spark sorts by one",
            )
        kind, given = df.schema[name].dataType, labels.df.schema[other].dataType
        if not _same_shape(given, kind):
            raise SpecError(
                f"the key {name!r} is {kind.simpleString()} in the DataFrame, and "
                f"{given.simpleString()} in at=: cast one of them"
            )


def add_labels(df: Any, labels: Labels, spec: Spec, names: Sequence[str]) -> Any:
    """Returns the columns `names` of a DataFrame, with its labels as further rows."""
    held = labels.df.columns
    # Names may be equal, or have dots.
    numbered = labels.df.toDF(*(f"_{at}" for at in range(len(held))))
    label = sf.struct(*numbered.columns)
    kinds = {field.name: field.dataType for field in df.schema}
    given = {field.name: field.dataType for field in labels.df.schema}
    placed = _placed(labels, spec)
    columns = []
    for name in names:
        other, value = placed.get(name), sf.lit(None).cast(kinds[name])
        if other is not None:
            value = _in_type(f"_{held.index(other)}", given[other], kinds[name])
        columns.append(value.alias(name))
    points = numbered.select(*columns, label.alias(LABEL))
    none = sf.lit(None).cast(points.schema[LABEL].dataType)
    return df.select(*map(column, names), none.alias(LABEL)).union(points)


def _placed(labels: Labels, spec: Spec) -> dict[str, str]:
    """The column of labels for each column of the rows that orders them."""
    named = labels.columns
    return {
        **dict(zip(spec.by, named.by, strict=True)),
        **dict(zip(spec.arrivals, named.arrivals, strict=True)),
        spec.on: named.on,
    }


def _in_type(name: str, given: DataType, kind: DataType) -> Any:
    """Returns a column of labels in the type of that of the rows."""
    value, to = sf.col(name), kind.simpleString()
    if given.simpleString() == to:
        return value
    if isinstance(given, IntegralType) and isinstance(kind, IntegralType):
        if _BITS[type(given)] > _BITS[type(kind)]:
            end = 1 << _BITS[type(kind)] - 1
            # Null stays null, which `greatest` and `least` leave out.
            value = sf.when(value < -end, -end).otherwise(value)
            value = sf.when(value >= end, end - 1).otherwise(value)
        return value.cast(kind)
    if isinstance(kind, StructType | ArrayType):
        return value.cast(kind)
    return sf.expr(f"try_cast({name} as {to})")


def _same_shape(given: DataType, kind: DataType) -> bool:
    """Whether the fields of structs have the same names and order, as a cast needs."""
    if isinstance(given, StructType) and isinstance(kind, StructType):
        return given.names == kind.names and all(
            _same_shape(one.dataType, other.dataType)
            for one, other in zip(given, kind, strict=True)
        )
    if isinstance(given, ArrayType) and isinstance(kind, ArrayType):
        return _same_shape(given.elementType, kind.elementType)
    return True
