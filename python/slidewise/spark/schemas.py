"""Schemas of Spark and of Arrow."""

from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BooleanType, StructField, StructType

from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.spark.columns import OWN
from slidewise.spark.versions import in_arrow
from slidewise.spec.spec import Spec
from slidewise.table.batched_hopping import hopping_schema
from slidewise.table.batched_rolling import result_schema

__all__ = ["arrow_schema", "check_booleans", "refuse_own", "with_results"]


def arrow_schema(df: Any) -> pa.Schema:
    """What Python workers see of a DataFrame.

    Raises:
        SpecError: If a column cannot go to Python.
    """
    try:
        return in_arrow(df.schema)
    except PySparkTypeError:
        unfit = next(field for field in df.schema if not _goes(field))
        kind = unfit.dataType.simpleString()
        raise SpecError(
            f"column {unfit.name!r} ({kind}) cannot go through Arrow to Python: drop "
            "it before, or cast it"
        ) from None


def _goes(field: StructField) -> bool:
    try:
        in_arrow(StructType([field]))
    except PySparkTypeError:
        return False
    return True


def refuse_own(df: Any) -> None:
    """Refuses columns that are named like those that slidewise adds on the way.

    Raises:
        SpecError: Naming the first one.
    """
    for name in df.columns:
        if name.lower().startswith(OWN):
            raise SpecError(
                f"the name of column {name!r} begins with {OWN!r}, as those of the "
                "columns that slidewise adds on the way: rename the column"
            )


def check_booleans(df: Any, name: str | None, argument: str) -> None:
    """Refuses a column that does not say yes or no of each row.

    Raises:
        SpecError: If it is not there, or of another type.
    """
    if name is None:
        return
    require(frame(arrow_schema(df).empty_table()), [name], "the DataFrame")
    kind = df.schema[name].dataType
    if not isinstance(kind, BooleanType):
        raise SpecError(
            Argument(argument, name),
            f" names a column of {kind.simpleString()}: it takes one of booleans",
        )


def with_results(df: Any, spec: Spec, extra: tuple[str, ...] = ()) -> StructType:
    """The schema of a DataFrame's answers.

    Args:
        df: The DataFrame.
        spec: What is asked of it.
        extra: Further columns that must be there.

    Raises:
        SpecError: If the spec does not fit the columns.
    """
    _check_told(spec)
    refuse_own(df)
    rows = arrow_schema(df)
    require(frame(rows.empty_table()), [*spec.columns, *extra], "the DataFrame")
    if spec.is_hopping:
        own = {field.name: field for field in df.schema}
        return _of_arrow(hopping_schema(spec, rows), [own[name] for name in spec.by])
    _refuse_alike(rows.names, spec)
    return _of_arrow(result_schema(spec, rows), list(df.schema))


def _check_told(spec: Spec) -> None:
    """Refuses aggregations of the user's own of which nothing tells the type."""
    for _, agg in spec.aggs:
        functions = getattr(agg, "functions", None)
        if functions is not None and functions.known_type is None:
            raise SpecError(
                f"the type of {agg!r} is known once there are answers, and Spark must "
                "know it before: give sw.aggregation(..., returns=float), or write it "
                "on lower: def lower(partial) -> float"
            )


def _of_arrow(schema: pa.Schema, own: list[StructField]) -> StructType:
    """Results behind columns that stay as they were."""
    results = [
        StructField(field.name, from_arrow_type(field.type, True), field.nullable)
        for field in list(schema)[len(own) :]
    ]
    return StructType([*own, *results])


def _refuse_alike(names: list[str], spec: Spec) -> None:
    """Refuses results that differ from a column in case alone."""
    present = {name.lower(): name for name in names}
    for name in spec.results:
        other = present.get(name.lower())
        if other is not None:
            raise SpecError(
                f"the DataFrame has a column {other!r} already, which is {name!r} to "
                "Spark: give the aggregation another name, or drop the column"
            )
