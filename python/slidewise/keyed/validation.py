"""Validation of the arguments of `KeyedWindows` and of a `KeyedQuery`, before any row.

Each message names the argument and a remedy.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations.registry import UserDefinedAggregation
from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import empty_table, one_array, refuse_taken, require
from slidewise.frames.column_types import type_without_view
from slidewise.keyed.columns import LATEST, RESERVED
from slidewise.keyed.hop_windows import answer_none
from slidewise.keyed.query import CORRECTION, LATE, KeyedQuery
from slidewise.spec.durations import Length, WindowLike, parse_offset
from slidewise.spec.spec import Spec, refuse_duplicates
from slidewise.table.asof import query_points_of
from slidewise.table.group_codes import group_codes
from slidewise.table.time_columns import read_times

__all__ = [
    "LATE_ROWS",
    "check_changed",
    "check_deletes",
    "check_emit",
    "check_options",
    "check_unique",
    "check_valid_until",
    "checked",
    "parse_late",
    "parse_schema",
    "refuse_ended",
    "refuse_flag",
]

LATE_ROWS = ("drop", "flag", "correct")
_EMITS = ("arrival", "final", "update", "change", "none")
_CORRECT = Argument("late_rows", "correct")
# The rows that no query points are.
_NO_ROWS = pa.nulls(0, pa.int64())


def check_emit(emit: object, spec: Spec) -> None:
    """Checks that the windows support a value of `emit=`."""
    allowed = ("slide", "none") if spec.is_hopping else _EMITS
    if not isinstance(emit, str) or emit not in allowed:
        raise SpecError(
            Argument("emit", emit),
            " does not go with hopping: leave it out for 'slide', or give 'none'"
            if spec.is_hopping
            else " does not go with rolling: it is one of "
            + ", ".join(map(repr, allowed)),
        )


def check_changed(changed: object, emit: str) -> bool:
    """Checks `changed=`, which goes with `emit="change"`."""
    if not isinstance(changed, bool):
        raise SpecError(Argument("changed"), f" is True or False, got {changed!r}")
    if changed and emit != "change":
        raise SpecError(
            Argument("changed", changed),
            " leaves out results that equal the last one of their key, which only ",
            Argument("emit", "change"),
            " keeps up to date: give that, or leave it out",
        )
    return changed


def check_valid_until(valid_until: object, emit: str, spec: Spec) -> bool:
    """Checks `valid_until=`, which goes with results per key."""
    given = Argument("valid_until", valid_until)
    if not isinstance(valid_until, bool):
        raise SpecError(
            Argument("valid_until"), f" is True or False, got {valid_until!r}"
        )
    if valid_until:
        if emit not in ("update", "change"):
            raise SpecError(
                given,
                " says when the last result of a key changes, and ",
                Argument("emit", emit),
                " emits others: give ",
                Argument("emit", "change"),
                " or ",
                Argument("emit", "update"),
                ", or leave it out",
            )
        refuse_ended(spec, given)
        for window in spec.windows:
            window.check_expiry(given)
    return valid_until


def refuse_ended(spec: Spec, given: Argument) -> None:
    """Refuses an argument that asks when results change, if they always do."""
    for _, agg in spec.aggs:
        sees_ends = isinstance(agg, UserDefinedAggregation) and agg.seen.ends
        if agg.is_ended or sees_ends:
            raise SpecError(
                given,
                f" asks when results change, but those of {agg!r} change with the "
                "time: leave it out, or compute that in a Spec of its own",
            )
        if agg.record.needs_row:
            raise SpecError(
                given,
                f" asks when results change, which {agg!r} does not tell: leave it "
                "out, or compute that in a Spec of its own",
            )


def check_deletes(specs: Iterable[Spec], deletes: str | None, way_out: str) -> None:
    """Checks that Specs have the same keys, if rows delete others by their key.

    Refused with `unique_by=`: a deletion has no id, so one that comes twice would
    delete another row.
    """
    if deletes is None:
        return
    specs = [*specs]
    for spec in specs:
        if spec.unique_by:
            raise SpecError(
                Argument("deletes", deletes),
                " deletes a row by its key and time, whatever its id, and does not go "
                "with ",
                Argument("unique_by", [*spec.unique_by]),
                ": drop duplicates from the source, or leave deletions out",
            )
    if len({spec.by for spec in specs}) > 1:
        raise SpecError(
            Argument("deletes", deletes),
            " deletes a row by its key, and the Specs have different keys: "
            f"{way_out} for each Spec",
        )


def check_unique(specs: Sequence[Spec], way_out: str) -> None:
    """Checks that Specs have the same duplicates, where these have no results."""
    first, *others = specs
    for spec in others:
        if spec.unique_by != first.unique_by or (
            spec.unique_by and {*spec.by} != {*first.by}
        ):
            raise SpecError(
                Argument("unique_by", [*(spec.unique_by or first.unique_by)]),
                " drops rows by key and id, and the Specs have different keys or ids: "
                f"{way_out} for each Spec",
            )


def refuse_flag(names: Iterable[str], late_rows: str, flag: str = LATE) -> None:
    """Checks that no column has the name of a flag, such as `_late`."""
    if flag in names:
        raise SpecError(
            f"the column name {flag!r} is taken by ",
            Argument("late_rows", late_rows),
            ": rename the column or the aggregation",
        )


def checked(query: KeyedQuery) -> KeyedQuery:
    """A query that is consistent, with the columns of its results.

    Raises:
        SpecError: If it is not; the message names the argument and a remedy.
    """
    _check_columns(query)
    if query.emit in ("arrival", "final"):
        refuse_taken(frame(empty_table(query.schema)), query.spec.results)
    rows = empty_table(query.pending_schema)
    if query.emit == "none":
        queried = query.spec_over(tuple(w.as_query() for w in query.spec.windows))
        _, request = query.request([], queried)
        at = query_points_of(frame(query.query_points(rows)), request, queried)
        request.compute(replace(at, own=_NO_ROWS))
        return query
    if query.emit == "slide":
        results = answer_none(query)
    else:
        points = query.query_points(rows)
        answers = query.answer_points(
            empty_table(query.stored_schema), points, _NO_ROWS
        )
        for _ in query.computed[len(answers) :]:
            answers.append(query.times.window_ends(pa.array([], pa.int64())))
        results = query.answered(rows, answers)
    output = query.marked(results).schema
    refuse_duplicates(output.names)
    return replace(query, output=output)


def _check_columns(query: KeyedQuery) -> None:
    """Checks that the stream has the columns of a query, and that their types fit."""
    spec = query.spec
    check_emit(query.emit, spec)
    empty = empty_table(query.schema)
    needed = [*spec.columns, *query.then_by]
    if query.deletes is not None:
        needed.append(query.deletes)
    require(frame(empty), needed, "the stream")
    for name in spec.arrivals:
        read_times(one_array(empty[name]), name)
    group_codes([(name, one_array(empty[name])) for name in spec.unique_by])
    if query.deletes is not None:
        kind = query.schema.field(query.deletes).type
        if not pa.types.is_boolean(kind):
            raise SpecError(
                Argument("deletes", query.deletes),
                f" names a column of {kind}: it takes one of booleans",
            )
    for name in query.schema.names:
        if name in RESERVED:
            raise SpecError(f"the column name {name!r} is reserved: rename the column")
    for name, _ in spec.aggs:
        if name in RESERVED:
            raise SpecError(
                f"the name {name!r} is reserved in streams: give the aggregation "
                "another one"
            )
    _refuse_unsortable(query)
    _refuse_declared_order(query)
    check_options(spec, query.emit, corrects=query.corrects)
    for name in (CORRECTION, LATE) if query.corrects else ():
        refuse_flag([*query.schema.names, *spec.results], "correct", name)


def check_options(spec: Spec, emit: str, *, corrects: bool) -> None:
    """Checks the options that do not depend on the columns of the stream."""
    query = KeyedQuery(spec, pa.schema([]), emit, corrects=corrects)
    _check_streamable(query)
    _check_ids(spec)
    _check_reaching(query)
    if query.corrects:
        _check_retractable(query)


def _refuse_unsortable(query: KeyedQuery) -> None:
    """Checks that Arrow can sort the columns of `then_by=`."""
    for name in query.then_by:
        kind = query.schema.field(name).type
        held = kind.value_type if pa.types.is_dictionary(kind) else kind
        try:
            pc.sort_indices(pa.table({name: pa.nulls(0, held)}), [(name, "ascending")])
        except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise SpecError(
                Argument("then_by", name),
                f" names a column of {kind}, which Arrow cannot sort: cast it, or name "
                "another column",
            ) from error


def _refuse_declared_order(query: KeyedQuery) -> None:
    """Checks that no aggregation compares ordered categories: pages lose the order."""
    for _, agg in query.spec.aggs:
        name = agg.by if agg.record.second == "compared" else agg.of
        if name is None or agg.record.reads != "order":
            continue
        kind = query.schema.field(name).type
        if pa.types.is_dictionary(kind) and kind.ordered:
            raise SpecError(
                f"{agg!r}: column {name!r} holds categories with a declared order "
                f"({kind}), which streams do not keep: cast it to its values first, "
                "which are compared directly"
            )


def _check_streamable(query: KeyedQuery) -> None:
    """Checks that results can be computed while rows arrive."""
    spec = query.spec
    _check_aggregations(query)
    if query.emit == "change":
        refuse_ended(spec, Argument("emit", query.emit))
    for window in spec.windows:
        window.check_stream()
        if query.emit == "none":
            window.as_query()
        if window.lag is not None and window.lag.amount < 0:
            raise SpecError(
                window.lag.given,
                " lets windows end after their row, which cannot be answered while "
                "rows arrive: give an offset of zero or more",
            )
        if query.emit == "change":
            window.check_expiry(Argument("emit", query.emit))
    calendars = [w for w in spec.windows if w.on_grid and w.as_query().by_calendar]
    if spec.empty and calendars:
        raise SpecError(
            f"a stream does not have empty=True for {calendars[0]!r}: leave it out, "
            "or call hopping over a table"
        )
    if spec.exclude and query.emit not in ("arrival", "final", "none"):
        raise SpecError(
            Argument("exclude", spec.exclude),
            " does not go with ",
            Argument("emit", query.emit),
            ", whose windows do not end at rows: use ",
            Argument("emit", "final"),
            " or ",
            Argument("emit", "arrival"),
        )
    if spec.on in spec.by:
        raise SpecError(f"by= names {spec.on!r}, the column of times")
    if spec.arrival is not None and query.emit != "arrival":
        raise SpecError(
            Argument("arrival", spec.arrival),
            " goes with ",
            Argument("emit", "arrival"),
            ": results that wait for the watermark do not depend on the order of "
            "arrival",
        )


def _check_ids(spec: Spec) -> None:
    """Checks that the ids of `unique_by=` can be forgotten."""
    for window in spec.windows if spec.unique_by else ():
        if window.reach(lambda _: 0) == LATEST:
            raise SpecError(
                Argument("unique_by", [*spec.unique_by]),
                f" does not go with the window {window!r}, with which a stream would "
                "keep the id of every row for ever: give windows of a length, or drop "
                "duplicates from the source",
            )


def _check_aggregations(query: KeyedQuery) -> None:
    for _, agg in query.spec.aggs:
        if agg.record.needs_row and query.emits_keys:
            raise SpecError(agg.row_error)


def _check_reaching(query: KeyedQuery) -> None:
    """Checks that the start of each window is known when it is answered."""
    for window in query.backward_windows:
        if query.emit not in ("final", "none"):
            raise SpecError(
                Argument("emit", query.emit),
                f" does not go with the window {window!r}: the rows before a "
                "row are known only when the watermark has passed it; use ",
                Argument("emit", "final"),
            )
        if query.corrects:
            raise SpecError(
                _CORRECT,
                f" does not go with the window {window!r}: a late row may "
                "change the starts of all later windows; use ",
                Argument("late_rows", "flag"),
                ", or a larger ",
                Argument("late"),
            )


def _check_retractable(query: KeyedQuery) -> None:
    """Checks that results can be corrected by emitting them again."""
    why = None
    if query.sessions:
        why = (
            "may join two sessions that were emitted, and one of them could not be "
            "retracted"
        )
    elif query.row_closed_window is not None:
        why = (
            f"of the window {query.row_closed_window!r} changes the starts and ends of "
            "later windows, and results that were emitted could not be retracted"
        )
    if why is not None:
        raise SpecError(
            _CORRECT,
            f" emits results again, but a late row {why}: use ",
            Argument("late_rows", "drop"),
            ", a larger ",
            Argument("late"),
            ", or windows on a grid",
        )
    if query.spec.empty:
        raise SpecError(
            _CORRECT,
            " and empty=True: a late row before the first row of its key makes empty "
            "windows that were never due: leave one of the two out",
        )
    if all(window.rows for window in query.spec.windows):
        raise SpecError(
            _CORRECT,
            " accepts rows that are late by at most the longest window of time, and "
            "there is none: add one besides rows(n)",
        )


def parse_schema(
    schema: pa.Schema | Mapping[str, Any] | None, on: str
) -> pa.Schema | None:
    """The names and types of `schema=`, without metadata and nullability.

    Args:
        schema: What is given.
        on: The column of times, which must be there.

    Example:
        >>> parse_schema({"t": "int64", "x": pa.float64()}, "t")
        t: int64
        x: double
    """
    if schema is None:
        return None
    if isinstance(schema, pa.Schema):
        pairs = [(field.name, field.type) for field in schema]
    elif isinstance(schema, Mapping):
        pairs = [(name, _arrow_type(name, kind)) for name, kind in schema.items()]
    else:
        raise SpecError(
            Argument("schema"),
            " takes a mapping from columns to Arrow types, such as "
            f"{{'t': pa.timestamp('us')}}, or a pyarrow.Schema; got {schema!r:.60}",
        )
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise SpecError(Argument("schema"), f" has two columns {name!r}")
    columns = pa.schema([(name, type_without_view(kind)) for name, kind in pairs])
    require(frame(empty_table(columns)), [on], "schema=")
    return columns


def _arrow_type(name: object, kind: object) -> pa.DataType:
    if not isinstance(name, str):
        raise SpecError(Argument("schema"), f" names columns by text, got {name!r}")
    if isinstance(kind, pa.DataType):
        return kind
    try:
        return pa.type_for_alias(kind)
    except (AttributeError, TypeError, ValueError) as error:
        raise SpecError(
            Argument("schema"),
            f" has {kind!r} for column {name!r}, which is not an Arrow type: give one "
            "such as pa.float64(), or its name, such as 'float64' or 'timestamp[us]'",
        ) from error


def parse_late(late: WindowLike) -> Length:
    """Parses `late=`."""
    length = parse_offset(late, "late")
    if length.amount < 0:
        raise SpecError(
            Argument("late", late),
            " is negative: give the longest delay of rows that are on time",
        )
    return length
