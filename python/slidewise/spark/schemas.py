"""Schemas of inputs and results, in Spark and in Arrow."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BooleanType, DataType, StructField, StructType

from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.spark.collations import collated_results, refuse_collations
from slidewise.spark.columns import RESERVED_PREFIX
from slidewise.spark.labels import Labels, check_kinds
from slidewise.spark.names import keeps_case
from slidewise.spark.versions import utc_schema
from slidewise.spec.spec import Spec
from slidewise.table.batched_hopping import hopping_schema
from slidewise.table.batched_points import point_schema
from slidewise.table.batched_rolling import result_schema

__all__ = ["arrow_schema", "check_boolean", "check_reserved_names", "result_struct"]


def arrow_schema(df: Any) -> pa.Schema:
    """Returns the Arrow schema of a DataFrame's rows in Python workers."""
    try:
        return utc_schema(df.schema)
    except PySparkTypeError:
        failed = next(field for field in df.schema if not _has_arrow_type(field))
        kind = failed.dataType.simpleString()
        raise SpecError(
            f"column {failed.name!r} ({kind}) cannot go through Arrow to Python: drop "
            "it before, or cast it"
        ) from None


def _has_arrow_type(field: StructField) -> bool:
    try:
        utc_schema(StructType([field]))
    except PySparkTypeError:
        return False
    return True


def check_reserved_names(df: Any) -> None:
    """Checks that no column name has the prefix of the columns that slidewise adds."""
    for name in df.columns:
        if name.lower().startswith(RESERVED_PREFIX):
            raise SpecError(
                f"the name of column {name!r} begins with {RESERVED_PREFIX!r}, "
                "which is reserved for columns that slidewise adds: rename the column"
            )


def check_boolean(df: Any, name: str | None, argument: str) -> None:
    """Checks that the column of an argument, if given, exists and holds booleans."""
    if name is None:
        return
    require(frame(arrow_schema(df).empty_table()), [name], "the DataFrame")
    kind = df.schema[name].dataType
    if not isinstance(kind, BooleanType):
        raise SpecError(
            Argument(argument, name),
            f" names a column of {kind.simpleString()}: it must be boolean",
        )


def result_struct(
    df: Any, spec: Spec, extra: tuple[str, ...] = (), labels: Labels | None = None
) -> StructType:
    """Checks the columns of a DataFrame, and returns the schema of its results.

    These are those of its labels, if it has some. The columns in `extra` must exist in
    the DataFrame, too.
    """
    _check_return_types(spec)
    check_reserved_names(df)
    rows = arrow_schema(df)
    require(frame(rows.empty_table()), [*spec.columns, *extra], "the DataFrame")
    if spec.is_hopping:
        results, inputs = hopping_schema(spec, rows), [df.schema[k] for k in spec.by]
    elif labels is not None:
        check_reserved_names(labels.df)
        points = arrow_schema(labels.df)
        _check_case(labels.df, spec, "at=")
        results = point_schema(spec, rows, points, labels.columns)
        check_kinds(df, labels, spec)
        inputs = list(labels.df.schema)
    else:
        _check_case(df, spec, "the DataFrame")
        results, inputs = result_schema(spec, rows), list(df.schema)
    refuse_collations(df, spec, extra)
    return _append_results(results, inputs, collated_results(df, spec))


def _check_return_types(spec: Spec) -> None:
    """Checks that every custom aggregation declares its return type."""
    for _, agg in spec.aggs:
        functions = getattr(agg, "functions", None)
        if functions is not None and functions.known_type is None:
            raise SpecError(
                f"Spark must know the type of {agg!r} before there are results: "
                "give sw.aggregation(..., returns=float), or write it "
                "on lower: def lower(partial) -> float"
            )


def _append_results(
    schema: pa.Schema, inputs: list[StructField], collated: Mapping[str, DataType]
) -> StructType:
    """Returns the input fields as they are, followed by those of the results."""
    results = [
        StructField(
            field.name,
            collated.get(field.name) or from_arrow_type(field.type, True),
            field.nullable,
        )
        for field in list(schema)[len(inputs) :]
    ]
    return StructType([*inputs, *results])


def _check_case(df: Any, spec: Spec, owner: str) -> None:
    """Checks that the name of no result is that of a column to the session."""
    present = {name.lower(): name for name in df.columns}
    for name in spec.results:
        other = present.get(name.lower())
        if other is not None and (other == name or not keeps_case(df)):
            raise SpecError(
                f"{owner} has a column {other!r} already, which is {name!r} to "
                "Spark: give the aggregation another name, or drop the column"
            )
