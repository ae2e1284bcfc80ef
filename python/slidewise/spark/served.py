"""`audit`: features as they were served, on Spark.

    served → rolling(at=) → rolling(at=), as of arrival → reasons, in Python workers

The results and reasons have the definitions of `slidewise.audit`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.hints import with_hints
from slidewise.keyed.validation import check_unique
from slidewise.spark.api import check_frame
from slidewise.spark.batch import transform_specs
from slidewise.spark.columns import column
from slidewise.spark.names import keeps_case, named
from slidewise.spark.options import BatchOptions, check_order
from slidewise.spark.schemas import arrow_schema
from slidewise.spark.versions import check_batch
from slidewise.spark.worker_errors import one_line_errors
from slidewise.spark.worker_memory import prepare_worker
from slidewise.spec.features import Features, parts_of
from slidewise.spec.naming import ANSWERS
from slidewise.spec.spec import Spec, check_column_name
from slidewise.table.asof import PointColumns
from slidewise.table.audit import (
    DIFFERS,
    EQUAL,
    LATER,
    as_of_spec,
    equal_to_served,
    reasons_of,
    spec_of_audit,
)

__all__ = ["Audited", "audit"]

_EXPECTED, _AS_OF, _REASON = "_expected", "_as_of", "_reason"


class Audited(NamedTuple):
    """What `audit` returns.

    Attributes:
        table: The served DataFrame with the columns of the audit.
        summary: A row per feature, with the number of its values per reason.
    """

    table: Any
    summary: Any


@with_hints
def audit(
    served: Any,
    rows: Any,
    spec: Spec | Features,
    *,
    at: str,
    served_at: str | Sequence[str] | None = None,
    arrival: str | Sequence[str] | None = None,
    then_by: str | Sequence[str] | None = None,
    partitions: int | None = None,
) -> Audited:
    """Compares features that were served with those that the rows give.

    The columns and reasons are those of `slidewise.audit`: `<feature>_expected`, with
    `served_at=` also `<feature>_as_of`, and `<feature>_reason`.

    Args:
        served: A batch DataFrame: the key columns, a column of times, and a column for
            each feature, named as `rolling` names it.
        rows: A batch DataFrame of the rows of which the features are computed.
        spec: The `slidewise.Spec` of the features, or the `slidewise.Features`.
        at: str, the column of `served` with the event time at which windows end.
        served_at: str or list of str, the column of `served` with the time at which a
            feature was served; several, if `arrival` has several.
        arrival: str or list of str, the column of `rows` of arrival order.
        then_by: str or list of str, the columns that order rows of equal time, as for
            `rolling`.
        partitions: int, the number of tasks, as for `rolling`.

    Returns:
        `Audited`, a pair of DataFrames: `table` has the rows of `served` with these
        columns, and `summary` has a row per feature, with a column per reason. Spark
        computes each when it runs it: cache `table` to use both.

    Cost:
        That of `rolling` with `at=`, twice with `served_at=`.

    Raises:
        SpecError: If an argument or a column is wrong, before any job starts.

    Example:
        >>> from slidewise.spark import audit
        >>> table, summary = audit(served, rows, spec, at="when", served_at="answered",
        ...                        arrival="came")  # doctest: +SKIP
        >>> summary.show()  # doctest: +SKIP
    """
    spec = spec_of_audit(spec)
    check_column_name(at, "at")
    for df, name in ((served, "served"), (rows, "rows")):
        check_frame(df, f"{name} is one; ")
        if df.isStreaming:
            raise SpecError(
                f"audit compares batch DataFrames, and {name} is a stream: read what "
                "it wrote"
            )
    check_batch()
    specs = parts_of(spec)
    check_unique(specs, "call audit")
    options = BatchOptions.make(partitions=partitions, then_by=then_by)
    found = [as_of_spec(each, served_at, arrival) for each in specs]
    seen, moments = [one for one, _ in found if one is not None], found[0][1]
    labels = named(served, [*spec.by, at, *moments, *spec.results])
    names = [*spec.columns, *(name for one in seen for name in one.arrivals)]
    table = named(rows, [*names, *options.then_by]).df
    require(
        frame(arrow_schema(labels.df).empty_table()),
        [*dict.fromkeys([*spec.by, at, *moments, *spec.results])],
        "served",
    )
    columns = [PointColumns(at, each.by, ()) for each in specs]
    whole = [each.replace(arrival=None) for each in specs]
    results = labels.df
    for of, arrivals, ending in ((whole, (), _EXPECTED), (seen, moments, _AS_OF)):
        called = [_called(each, ending) for each in of]
        for each in called:
            check_order(each, options.then_by)
        if called:
            places = [each._replace(arrivals=arrivals) for each in columns]
            results = transform_specs(table, called, options, results, places)
    reasons = _Reasons(
        tuple(results.columns), tuple(labels.df.columns), spec.results, bool(seen)
    )
    audited = labels.restored(_with_reasons(results, reasons))
    return Audited(audited, _summary(audited, spec.results, with_later=bool(seen)))


def _called(spec: Spec, ending: str) -> Spec:
    """The Spec, with an ending to the names of its results."""
    return spec.replace(names=(spec.names or ANSWERS) + ending)


@dataclass(frozen=True, slots=True)
class _Reasons:
    """Puts the reasons behind the results of each feature; for `mapInArrow`.

    Attributes:
        inputs: The columns of batches: those that were served, then the results.
        served: The columns that were served.
        features: The features among them.
        with_later: Whether there are results as of arrival.
    """

    inputs: tuple[str, ...]
    served: tuple[str, ...]
    features: tuple[str, ...]
    with_later: bool

    @property
    def outputs(self) -> list[str]:
        """The columns of the answer, in their order."""
        endings = [_EXPECTED, *[_AS_OF] * self.with_later, _REASON]
        added = [name + ending for name in self.features for ending in endings]
        return [*self.served, *added]

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with the reasons.

        Raises:
            SpecError: If a feature was served in a type that does not convert.
        """
        columns = dict(zip(self.inputs, batch.columns, strict=True))
        for name in self.features:
            served = columns[name]
            equal = equal_to_served(name, served, columns[name + _EXPECTED])
            later = None
            if self.with_later:
                later = equal_to_served(name, served, columns[name + _AS_OF])
            columns[name + _REASON] = reasons_of(equal, later)
        names = self.outputs
        return pa.RecordBatch.from_arrays([columns[name] for name in names], names)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with the reasons."""
        prepare_worker()
        with one_line_errors():
            for batch in batches:
                yield self.of(batch)


def _with_reasons(results: Any, reasons: _Reasons) -> Any:
    """The DataFrame of results, with the reasons."""
    # A type that does not convert is refused now.
    empty = pa.RecordBatch.from_pylist([], arrow_schema(results))
    reasons.of(empty)
    _refuse_taken(results, reasons)
    fields = {field.name: field for field in results.schema}
    text = StringType()
    schema = StructType(
        [
            fields.get(name) or StructField(name, text, nullable=False)
            for name in reasons.outputs
        ]
    )
    # PySpark parses dots and backticks in names here.
    numbered = results.toDF(*(f"_{at}" for at in range(len(results.columns))))
    return numbered.mapInArrow(reasons, schema)


def _refuse_taken(results: Any, reasons: _Reasons) -> None:
    """Checks that the name of no reason is that of a served column to the session."""
    exact = keeps_case(results)
    names = {name if exact else name.lower(): name for name in reasons.served}
    for feature in reasons.features:
        reason = feature + _REASON
        other = names.get(reason if exact else reason.lower())
        if other is not None:
            raise SpecError(
                f"served has a column {other!r} already, which audit adds: drop or "
                "rename it"
            )


def _summary(audited: Any, features: Sequence[str], *, with_later: bool) -> Any:
    """A row per feature, with the number of its values per reason."""
    reasons = [EQUAL, *[LATER] * with_later, DIFFERS]
    counts = [
        sf.count_if(column(name + _REASON) == reason).alias(f"_{at}_{place}")
        for at, name in enumerate(features)
        for place, reason in enumerate(reasons)
    ]
    rows = [
        sf.struct(
            sf.lit(name).alias("feature"),
            *(
                sf.col(f"_{at}_{place}").alias(reason)
                for place, reason in enumerate(reasons)
            ),
        )
        for at, name in enumerate(features)
    ]
    return audited.agg(*counts).select(sf.inline(sf.array(*rows)))
