"""`audit`: features as they were served, beside those that their rows give."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import Frame, Result, refuse_taken, require
from slidewise.frames.lazy import collected, is_lazy
from slidewise.hints import with_hints
from slidewise.spec.features import Features, parts_of
from slidewise.spec.given import given_specs
from slidewise.spec.spec import Spec, check_column_name, check_columns
from slidewise.table.arrays import decode_dictionary
from slidewise.table.asof import PointColumns
from slidewise.table.equality import equal_cells
from slidewise.table.kernel_call import map_lazily
from slidewise.table.rolling import compute_rolling
from slidewise.table.source import Source

__all__ = [
    "DIFFERS",
    "EQUAL",
    "LATER",
    "as_of_spec",
    "audit",
    "equal_to_served",
    "reasons_of",
    "spec_of_audit",
]

TableT = TypeVar("TableT")

EQUAL, LATER, DIFFERS = "equal", "arrived later", "differs"
# The attribute of a pandas DataFrame, or metadata of an Arrow schema, of the totals.
_TOTALS = "audit"


@with_hints
def audit(
    served: TableT,
    rows: Any,
    spec: Spec | Features,
    *,
    at: str,
    served_at: str | Sequence[str] | None = None,
    arrival: str | Sequence[str] | None = None,
    threads: int | None = None,
) -> TableT:
    """Compares features that were served with those that the rows give.

    Each feature (`spec.results`) gets up to three columns behind those of the table:

    - `<feature>_expected`: the result of `rolling(rows, spec, at=)` at the key and
      time, over all rows, whenever they arrived.
    - `<feature>_as_of`, with `served_at=`: the same over the rows that had arrived when
      the feature was served.
    - `<feature>_reason`: "equal", if the feature equals `_expected`; "arrived later",
      if it equals `_as_of` only, so that rows arrived after it was served; "differs"
      otherwise.

    Args:
        served: A table that `rolling` takes: the key columns, a column of times, and a
            column for each feature, named as `rolling` names it.
        rows: A table of the rows of which the features are computed.
        spec: The `Spec` of the features, or the `Features`. An `arrival=` of a Spec
            does not apply to `_expected`, and is the default of this function's.
        at: The column of `served` with the event time at which windows end.
        served_at: The column of `served` with the time at which a feature was served,
            of the kind of `arrival`; several, if `arrival` has several.
        arrival: The column of `rows` of arrival order, or several, as for `rolling`. A
            row had arrived if its arrival is at or before `served_at`.
        threads: As for `rolling`.

    Returns:
        A table of the type of `served` with these columns. A pandas DataFrame has the
        totals in `.attrs["audit"]`, by feature and reason; an Arrow table or record
        batch has them as JSON in the metadata of its schema under `b"audit"`. pandas
        and polars DataFrames have a method `summary()`, which gives them as a frame: a
        row per feature, a column per reason. A copy of the frame has none.

    Raises:
        SpecError: If a column is missing or a type does not fit, `served_at=` or
            `arrival=` is given alone, or the Spec has windows that are not one per row.
        ResultOverflowError: As for `rolling`.

    Floats are equal within 128 ulp, the bound of the documentation, or after rounding
    to the width in which they were served. Integers, times, text and lists are equal if
    all values are; nulls are equal, and NaNs. Integers that were served as floats, or
    the reverse, are equal if their values are.

    Cost: that of `rolling` with `at=`, twice with `served_at=`.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> spec = sw.Spec(on="t", by="card", windows=10, aggs={"n": sw.count()})
        >>> rows = pa.table({"t": [1, 2, 3], "card": [*"AAA"], "came": [1, 9, 3]})
        >>> served = pa.table({"card": [*"AAA"], "when": [1, 3, 3],
        ...                    "answered": [2, 5, 5], "n_10": [1, 2, 7]})
        >>> out = sw.audit(served, rows, spec, at="when", served_at="answered",
        ...                arrival="came")
        >>> out["n_10_expected"].to_pylist(), out["n_10_as_of"].to_pylist()
        ([1, 3, 3], [1, 2, 2])
        >>> out["n_10_reason"].to_pylist()
        ['equal', 'arrived later', 'differs']
        >>> out.schema.metadata[b"audit"]
        b'{"n_10": {"equal": 1, "arrived later": 1, "differs": 1}}'
        >>> print(sw.audit(served.to_pandas(), rows, spec, at="when").summary())
          feature  equal  differs
        0    n_10      1        2
    """
    spec = spec_of_audit(spec)
    check_column_name(at, "at")
    specs = parts_of(spec)
    whole = [each.replace(arrival=None) for each in specs]
    found = [as_of_spec(each, served_at, arrival) for each in specs]
    seen = [as_of for as_of, _ in found if as_of is not None]
    moments = found[0][1]
    rows = collected(rows)

    def audited(table: Any) -> Any:
        target = frame(table)
        columns = [*spec.by, at, *moments, *spec.results]
        require(target, [*dict.fromkeys(columns)], "served")
        source = Source(frame(rows))
        names = [PointColumns(at, each.by, ()) for each in specs]
        expected = compute_rolling(source, whole, target, names, threads)
        as_of: Mapping[str, Result] = {}
        if seen:
            names = [each._replace(arrivals=moments) for each in names]
            as_of = compute_rolling(source, seen, target, names, threads)
        return _compared(target, expected, as_of)

    answer: TableT
    answer = map_lazily(served, spec, audited) if is_lazy(served) else audited(served)
    return answer


def spec_of_audit(given: Spec | Features) -> Spec | Features:
    """Checks that windows end at a time.

    Example:
        >>> import slidewise as sw
        >>> spec_of_audit(sw.Spec(on="t", windows=5, aggs={"n": sw.count()})).results
        ('n_5',)
    """
    spec = given_specs(given, {}, "audit")
    if spec.is_hopping:
        raise SpecError(
            "audit compares windows that end at a time, and those of the Spec are not "
            "one per row: give a Spec of rolling with the lengths that were served"
        )
    return spec


def as_of_spec(
    spec: Spec,
    served_at: str | Sequence[str] | None,
    arrival: str | Sequence[str] | None,
) -> tuple[Spec | None, tuple[str, ...]]:
    """The Spec as of arrival and the columns of `served_at=`; None if not asked for."""
    if served_at is None:
        if arrival is not None:
            raise SpecError(
                Argument("arrival", arrival),
                " needs the time at which features were served: give ",
                Argument("served_at"),
            )
        return None, ()
    if arrival is not None:
        spec = spec.replace(arrival=arrival)
    if spec.arrival is None:
        raise SpecError(
            Argument("served_at", served_at),
            " needs the column of rows that tells when they arrived: give ",
            Argument("arrival"),
        )
    moments = check_columns(served_at, "served_at")
    if len(moments) != len(spec.arrivals):
        raise SpecError(
            Argument("served_at", served_at),
            f" names {len(moments)} columns, and {len(spec.arrivals)} stand for ",
            Argument("arrival", spec.arrival),
        )
    return spec, moments


def _compared(
    target: Frame, expected: Mapping[str, Result], as_of: Mapping[str, Result]
) -> Any:
    added: dict[str, Result] = {}
    totals = {}
    for name, result in expected.items():
        added[f"{name}_expected"] = result
        later = None
        if name in as_of:
            added[f"{name}_as_of"] = as_of[name]
            later = _equals(target, name, as_of[name])
        reasons = reasons_of(_equals(target, name, result), later)
        added[f"{name}_reason"] = Result(reasons, None, same_type=False, nullable=False)
        found = Counter(reasons.to_pylist())
        known = (EQUAL, LATER, DIFFERS) if as_of else (EQUAL, DIFFERS)
        totals[name] = {reason: found[reason] for reason in known}
    refuse_taken(target, [*added])
    return _with_totals(target.append(added), totals)


def _equals(target: Frame, name: str, result: Result) -> pa.BooleanArray:
    """Whether a served column has the values of a result.

    The result takes the way of the served one, through the caller's library: there a
    null may have become NaN.
    """
    made = frame(target.make({name: result})).column(name)
    return equal_to_served(name, target.column(name), made)


def equal_to_served(name: str, served: pa.Array, made: pa.Array) -> pa.BooleanArray:
    """Whether served values of a feature are those that were computed.

    Raises:
        SpecError: If one does not convert to the type of the other.

    Example:
        >>> import pyarrow as pa
        >>> equal_to_served("n", pa.array([1.0, 2.5]), pa.array([1, 2])).to_pylist()
        [True, False]
    """
    served, made = decode_dictionary(served), decode_dictionary(made)
    if served.type != made.type:
        try:
            if pa.types.is_floating(served.type):
                made = made.cast(served.type, safe=False)
            else:
                served = served.cast(made.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SpecError(
                f"the feature {name!r} was served as {served.type}, and is computed as "
                f"{made.type}, to which it does not convert without loss: cast it"
            ) from error
    return equal_cells(served, made)


def reasons_of(
    equal: pa.BooleanArray, later: pa.BooleanArray | None = None
) -> pa.StringArray:
    """The reasons of served values.

    Args:
        equal: Whether they are those over all rows.
        later: Whether they are those over the rows that had arrived.

    Example:
        >>> import pyarrow as pa
        >>> reasons_of(pa.array([True, False]), pa.array([True, True])).to_pylist()
        ['equal', 'arrived later']
    """
    others = DIFFERS if later is None else pc.if_else(later, LATER, DIFFERS)
    return pc.if_else(equal, EQUAL, others)


def _with_totals(table: Any, totals: Mapping[str, Mapping[str, int]]) -> Any:
    if isinstance(table, pa.Table | pa.RecordBatch):
        metadata = {**(table.schema.metadata or {}), _TOTALS: json.dumps(totals)}
        return table.replace_schema_metadata(metadata)
    counts = [*totals.values()]
    reasons = {reason: [each[reason] for each in counts] for reason in counts[0]}
    shown = pa.table({"feature": [*totals], **reasons})
    if hasattr(table, "attrs"):  # of pandas
        table.attrs[_TOTALS] = totals
        if "summary" not in table.columns:
            table.summary = shown.to_pandas
    elif type(table).__module__.startswith("polars."):
        table.summary = lambda: type(table)(shown)
    return table
