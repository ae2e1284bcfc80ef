"""What a `Query` refuses, before there is a row: what does not fit together.

Each refusal names what was asked, and the way out.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations import COMPARED
from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.keyed.page_store import RESERVED
from slidewise.keyed.query import CORRECTION, LATE, Query
from slidewise.spec.spec import Spec

__all__ = [
    "check_emit",
    "check_late_rows",
    "check_query",
    "refuse_flag",
    "then_columns",
]

_LATE_ROWS = ("drop", "flag", "correct")
_EMITS = ("arrival", "final", "update")
_CORRECT = Argument("late_rows", "correct")
# Aggregations that compare their own values.
_COMPARING = {"min", "max", "min_count", "max_count", "mode", "median", "quantile"}
_COMPARING |= {"top_k", "bottom_k"}


def check_emit(emit: str, spec: Spec) -> None:
    """Refuses a way to answer that does not fit the windows.

    Raises:
        SpecError: Naming those that do.
    """
    allowed = ("slide",) if spec.is_hopping else _EMITS
    if emit not in allowed:
        raise SpecError(
            Argument("emit", emit),
            f" does not fit {'hopping' if spec.is_hopping else 'rolling'}: it is one "
            f"of {', '.join(map(repr, allowed))}",
        )


def check_late_rows(late_rows: str) -> str:
    """What becomes of late rows.

    Raises:
        SpecError: If there is no such way.
    """
    if late_rows not in _LATE_ROWS:
        raise SpecError(
            Argument("late_rows"),
            f" is one of {', '.join(_LATE_ROWS)}; got {late_rows!r}",
        )
    return late_rows


def refuse_flag(names: Iterable[str], late_rows: str, flag: str = LATE) -> None:
    """Refuses a column with the name of one that says what an answer is.

    Raises:
        SpecError: If there is one among these.
    """
    if flag in names:
        raise SpecError(
            f"the column name {flag!r} is taken by ",
            Argument("late_rows", late_rows),
            ": rename the column or the aggregation",
        )


def then_columns(then_by: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of `then_by=`.

    Raises:
        SpecError: If it names none.

    Example:
        >>> then_columns("id"), then_columns(None)
        (('id',), ())
    """
    if then_by is None:
        return ()
    names = (then_by,) if isinstance(then_by, str) else then_by
    if not isinstance(names, Iterable):
        raise SpecError(
            Argument("then_by"),
            f" takes a column or a list of columns, got {then_by!r}",
        )
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise SpecError(
                Argument("then_by"), f" takes the names of columns, got {name!r}"
            )
    return names


def check_query(job: Query) -> None:
    """Refuses what does not fit together.

    Raises:
        SpecError: Naming it, and the way out.
    """
    spec = job.spec
    check_emit(job.emit, spec)
    empty = job.schema.empty_table()
    needed = [*spec.columns, *job.then_by]
    if job.deletes is not None:
        needed.append(job.deletes)
    require(frame(empty), needed, "the stream")
    if job.deletes is not None:
        kind = job.schema.field(job.deletes).type
        if not pa.types.is_boolean(kind):
            raise SpecError(
                Argument("deletes", job.deletes),
                f" names a column of {kind}: it takes one of booleans",
            )
    for name in job.schema.names:
        if name in RESERVED:
            raise SpecError(f"the column name {name!r} is reserved: rename the column")
    for name, _ in spec.aggs:
        if name in RESERVED:
            raise SpecError(
                f"the name {name!r} is reserved in streams: give the aggregation "
                "another one"
            )
    _refuse_unsortable(job)
    _refuse_declared_order(job)
    _check_streamable(job)
    if job.corrects:
        _check_correctable(job)


def _refuse_unsortable(job: Query) -> None:
    """Refuses to order rows by a column whose values have no order."""
    for name in job.then_by:
        kind = job.schema.field(name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        try:
            pc.sort_indices(pa.table({name: pa.nulls(0, plain)}), [(name, "ascending")])
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise SpecError(
                Argument("then_by", name),
                f" names a column of {kind}, which Arrow cannot sort: cast it, or name "
                "another column",
            ) from error


def _refuse_declared_order(job: Query) -> None:
    """Refuses to compare categories that have an order, which pages do not keep."""
    for _, agg in job.spec.aggs:
        name = agg.by if agg.kind in COMPARED else agg.of
        if name is None or agg.kind not in _COMPARING.union(COMPARED):
            continue
        kind = job.schema.field(name).type
        if pa.types.is_dictionary(kind) and kind.ordered:
            raise SpecError(
                f"{agg!r}: column {name!r} holds categories with an order of their own "
                f"({kind}), which streams do not keep: cast it to its values first, "
                "which have theirs"
            )


def _check_streamable(job: Query) -> None:
    """Refuses what cannot be answered while rows arrive."""
    spec = job.spec
    for window in spec.windows:
        if not window.every and window.offset < 0:
            raise SpecError(
                f"windows that end after their row (offset {window.offset}) cannot "
                "be answered while rows arrive: give an offset of zero or more"
            )
    if spec.on in spec.by:
        raise SpecError(f"by= names {spec.on!r}, the column of times")
    if spec.arrival is not None and job.emit != "arrival":
        raise SpecError(
            Argument("arrival", spec.arrival),
            " goes with ",
            Argument("emit", "arrival"),
            ": answers that wait for the watermark do not depend on the order of "
            "arrival",
        )


def _check_correctable(job: Query) -> None:
    """Refuses what cannot be set right by sending answers again."""
    spec = job.spec
    if job.sessions:
        raise SpecError(
            _CORRECT,
            " sends answers again, and a late row may join two sessions that were "
            "given, one of which nothing would take back: ask for ",
            Argument("late_rows", "drop"),
            ", a larger ",
            Argument("late"),
            ", or windows on a grid",
        )
    if spec.empty:
        raise SpecError(
            _CORRECT,
            " with empty=True: a late row before a key's first one makes windows "
            "without rows that were never due: leave one out",
        )
    if job.reach == 0:
        raise SpecError(
            _CORRECT,
            " takes rows that are late by the longest window of time at most, and "
            "there is none: add one beside rows(n)",
        )
    for name in (CORRECTION, LATE):
        refuse_flag([*job.schema.names, *spec.results], "correct", name)
