"""Strings with a collation other than UTF8_BINARY, which Spark has since 4.0.

Python workers get the bytes of strings, and no public function of Spark gives the sort
key of a collation. So keys, orders and aggregations that compare such strings are
refused. Other columns keep their collation, and so do results that are their values.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from slidewise.aggregations import Aggregation
from slidewise.errors import Argument, SpecError
from slidewise.spec.outputs import outputs_of
from slidewise.spec.spec import Spec

__all__ = ["collated_results", "refuse_collations"]

_BINARY = "UTF8_BINARY"
_COLLATE = re.compile(r" collate \w+")


def refuse_collations(df: Any, spec: Spec, then_by: Iterable[str]) -> None:
    """Checks that no strings are compared that have a collation."""
    for subject, name in _compared(spec, then_by):
        kind = df.schema[name].dataType
        collation = _collation(kind)
        if collation is None:
            continue
        bare = _COLLATE.sub("", kind.simpleString())
        raise SpecError(
            subject,
            f" compares strings by {collation}, which Python workers do not know: cast "
            f"the column, e.g. .withColumn({name!r}, col({name!r}).cast({bare!r})), to "
            "compare bytes, after lower() to ignore case",
        )


def collated_results(df: Any, spec: Spec) -> dict[str, DataType]:
    """The types of results that are values of a column with a collation."""
    types: dict[str, DataType] = {}
    for _, agg, _, column in outputs_of(spec):
        if agg.of is None or agg.record.result not in ("value", "values", "joined"):
            continue
        kind = df.schema[agg.of].dataType
        if _collation(kind) is not None:
            kind = ArrayType(kind) if agg.record.result == "values" else kind
            types[column] = kind
    return types


def _compared(
    spec: Spec, then_by: Iterable[str]
) -> Iterator[tuple[str | Argument, str]]:
    """The columns whose values are compared, and what compares them."""
    for name in spec.by:
        yield Argument("by", name), name
    for name in then_by:
        yield Argument("then_by", name), name
    for _, agg in spec.aggs:
        compared = _compared_column(agg)
        if compared is not None:
            yield repr(agg), compared


def _compared_column(agg: Aggregation) -> str | None:
    if agg.record.second == "compared":
        return agg.by
    # A user-defined aggregation compares strings as its functions do.
    return agg.of if agg.record.reads else None


def _collation(kind: DataType) -> str | None:
    """The first collation within a type; None without one."""
    parts: list[DataType] = []
    if isinstance(kind, StructType):
        parts = [field.dataType for field in kind]
    elif isinstance(kind, ArrayType):
        parts = [kind.elementType]
    elif isinstance(kind, MapType):
        parts = [kind.keyType, kind.valueType]
    found = map(_collation, parts)
    own = getattr(kind, "collation", _BINARY)
    return next(filter(None, found), None) if own == _BINARY else str(own)
