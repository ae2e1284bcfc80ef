"""`Points`: query points of a stream, with extra rows, in the types of its state.

A query point is a key and a time at which windows end. User values are converted here;
values that cannot be converted without loss are refused.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slidewise.errors import Argument, SpecError
from slidewise.frames.base import Frame, Result, require
from slidewise.frames.column_types import is_number
from slidewise.frames.objects import within_python
from slidewise.keyed.columns import NUMBER, TIME
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.single_times import tick_of
from slidewise.spec.arguments import check_column_name, check_columns
from slidewise.table.arrays import decode_dictionary, row_numbers, without_views
from slidewise.table.asof import ticks_as
from slidewise.table.encoding import ValueColumn
from slidewise.table.key_types import cast_key
from slidewise.table.kinds import keys_differ, zones_differ
from slidewise.table.python_values import array_of

__all__ = [
    "LATEST",
    "Lists",
    "Points",
    "check_row",
    "key_table",
    "key_values",
    "keys_of",
    "plus_of",
    "plus_row",
    "points_of",
    "python_value",
    "refuse_plus",
    "times_of",
]

# The value of `at=` for the latest time of the stream.
LATEST = "latest"
# Scalars that may hold a time of day, of which `as_py` cuts the nanoseconds.
_WITH_TIMES = (pa.Time64Scalar, pa.StructScalar, pa.ListScalar)


@dataclass(frozen=True, slots=True)
class Points:
    """The keys and times for which windows are evaluated.

    Attributes:
        keys: The key columns in the types of the state, a row per point; a column of
            numbers if there are no key columns.
        ticks: The times, in ticks of the stream.
        plus: Per point, an extra row: it counts as if it had arrived at the time of
            the point, after all others. Its columns have the types of the state.
            None for no extra rows.
        asked: The labels of the windows that the query asks for; None for those of the
            Spec.
    """

    keys: pa.Table
    ticks: pa.Array
    plus: pa.Table | None = None
    asked: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.ticks)

    def slice(self, start: int, count: int) -> "Points":
        """A range of the points."""
        plus = None if self.plus is None else self.plus.slice(start, count)
        keys, ticks = self.keys.slice(start, count), self.ticks.slice(start, count)
        return Points(keys, ticks, plus, self.asked)

    def take(self, places: pa.Array) -> "Points":
        """Some of the points."""
        plus = None if self.plus is None else self.plus.take(places)
        return Points(self.keys.take(places), self.ticks.take(places), plus, self.asked)


def key_table(query: KeyedQuery, key: Any) -> pa.Table:
    """A key as a table of one row.

    Args:
        query: The query.
        key: A mapping from key columns, a tuple in the order of `by=`, or the value of
            the only key column, unless it is a mapping itself.
    """
    values = key_values(query.spec.by, key)
    columns = {
        name: _key_array(name, [value], query.stored_schema.field(name).type)
        for name, value in values.items()
    }
    return pa.table(columns or {NUMBER: row_numbers(1)})


def key_values(by: Sequence[str], key: Any) -> dict[str, Any]:
    """The value of each key column, in order."""
    if isinstance(key, Mapping):
        known = {*by}
        for name in key:
            if name not in known:
                what = "" if len(by) != 1 else "; a struct as a key goes into a tuple"
                raise SpecError(
                    f"the key has a column {name!r}, and {_named(by)}{what}"
                )
        for name in by:
            if name not in key:
                raise SpecError(f"the key has no column {name!r}, and {_named(by)}")
        return {name: key[name] for name in by}
    if not isinstance(key, tuple):
        if len(by) != 1:
            what = "; give a mapping or tuple" if by else ""
            raise SpecError(f"{key!r} is not a key: {_named(by)}{what}")
        key = (key,)
    if len(key) != len(by):
        values = "1 value" if len(key) == 1 else f"{len(key)} values"
        raise SpecError(
            f"the key {key!r} has {values}, and needs {len(by)}: {_named(by)}"
        )
    return dict(zip(by, key, strict=True))


def _named(by: Sequence[str]) -> str:
    if not by:
        return "there are no key columns: give ()"
    columns = f"column{'s' * (len(by) > 1)} {', '.join(map(repr, by))}"
    return f"the key is in {columns}"


def _key_array(name: str, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values of keys in the type of the state."""
    try:
        return array_of(values, kind)
    except (ValueError, OverflowError) as error:
        value = _first_wrong(values, kind)
        raise SpecError(
            f"{value!r} is not a key of column {name!r}, which holds {kind}: {error}"
        ) from error


def _first_wrong(values: Sequence[Any], kind: pa.DataType) -> Any:
    """The first value that is not one of a type."""
    for value in values:
        try:
            array_of([value], kind)
        except (ValueError, OverflowError):
            return value
    return values


class Lists:
    """Columns of Python values by name: lists, or other sequences beside them.

    Args:
        columns: The columns, as `query_many` takes them.

    Raises:
        SpecError: If a name is not text, or the lists differ in length.
    """

    times_beside = ""

    def __init__(self, columns: Mapping[Any, Any]) -> None:
        self._columns = columns
        lengths = set()
        for name, values in columns.items():
            if not isinstance(name, str):
                raise SpecError(f"names of columns in keys= are text, not {name!r}")
            if isinstance(values, str) or not hasattr(values, "__len__"):
                raise SpecError(f"column {name!r} of keys= is not a list: {values!r}")
            lengths.add(len(values))
        if len(lengths) > 1:
            raise SpecError("keys= is not a dict of lists of one length")
        self.names = list(columns)
        (self.length,) = lengths

    def values(self, name: str) -> Sequence[Any]:
        """The Python values of a column."""
        found: Sequence[Any] = self._columns[name]
        return found

    def append(self, results: Mapping[str, Result]) -> dict[str, Any]:
        """The same lists, and the results as lists.

        Raises:
            SpecError: If a result is a time that Python cannot hold.
        """
        return {
            **self._columns,
            **{name: _listed(name, results[name]) for name in results},
        }


def _listed(name: str, result: Result) -> list[Any]:
    try:
        return list(within_python(result.array).to_pylist())
    except (OverflowError, ValueError) as error:
        raise _beyond_python(name, result.array.type) from error


def python_value(name: str, value: pa.Scalar) -> Any:
    """The value of a result.

    Raises:
        SpecError: If it is a time that Python cannot hold.
    """
    try:
        if isinstance(value, _WITH_TIMES):
            value = within_python(value)
        return value.as_py()
    except (OverflowError, ValueError) as error:
        raise _beyond_python(name, value.type) from error


def _beyond_python(name: str, kind: pa.DataType) -> SpecError:
    return SpecError(
        f"the result {name!r} ({kind}) is a time that Python cannot hold: use "
        "query_many() with a table, which returns a column"
    )


def _as_key(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Keys in the type of the state.

    Raises:
        pyarrow.ArrowException: If a key would change.
    """
    if column.type == kind:
        return column
    return cast_key(without_views(decode_dictionary(column)), kind)


def keys_of(query: KeyedQuery, target: Frame | Lists) -> pa.Table:
    """The keys of a table."""
    require(target, query.spec.by, "keys=")
    columns = {}
    for name in query.spec.by:
        kind = query.stored_schema.field(name).type
        if isinstance(target, Lists):
            columns[name] = _key_array(name, target.values(name), kind)
            continue
        column = target.column(name)
        try:
            columns[name] = _as_key(column, kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            where = ("the stream", "keys=")
            raise keys_differ(name, (kind, column.type), where) from error
    return pa.table(columns or {NUMBER: row_numbers(target.length)})


def points_of(
    query: KeyedQuery,
    target: Frame | Lists,
    at: Any,
    tick: int | None,
    plus: Mapping[str, str] | Sequence[str] | None,
) -> Points:
    """The query points of a table: at a tick, or if that is None a column of times."""
    if tick is None:
        ticks = times_of(query, target, at)
    else:
        ticks = pa.repeat(pa.scalar(tick, pa.int64()), target.length)
    extra = None if plus is None else plus_of(query, target, plus)
    return Points(keys_of(query, target), ticks, extra)


def times_of(query: KeyedQuery, target: Frame | Lists, name: str) -> pa.Array:
    """The times in a column of a table, in ticks of the stream."""
    require(target, [name], "keys=")
    if not isinstance(target, Lists):
        return ticks_as(query.times, target, name, "keys=")
    ticks = [tick_of(time, query.times) for time in target.values(name)]
    return pa.array(ticks, pa.int64())


def plus_row(query: KeyedQuery, plus: Mapping[str, Any]) -> pa.Table:
    """A row from a mapping of columns to values, as a table; other columns are null."""
    check_row(plus)
    columns, kinds = {}, _plus_types(query, plus)
    for name, value in plus.items():
        columns[name] = _plus_array(name, [value], kinds[name])
    return _plus_table(query, columns, 1)


def check_row(plus: object) -> None:
    """Checks that `plus=` is a row."""
    if not isinstance(plus, Mapping):
        raise SpecError(
            Argument("plus", plus),
            " is not a row: give a mapping of columns to values, such as "
            "{'amount': 12.5}",
        )


def _plus_array(name: str, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values of extra rows in the type of a column."""
    try:
        return array_of(values, kind, rounds=True)
    except (ValueError, OverflowError) as error:
        value = _first_wrong(values, kind)
        raise SpecError(
            f"plus[{name!r}] is {value!r}, which does not fit {kind}: {error}"
        ) from error


def plus_of(
    query: KeyedQuery, target: Frame | Lists, plus: Mapping[str, str] | Sequence[str]
) -> pa.Table:
    """Extra rows from columns of a table; columns that are left out are null.

    Args:
        query: The query.
        target: The table.
        plus: Columns of the stream that have the same name in the table, or a mapping
            of columns of the stream to columns of the table.
    """
    if not isinstance(plus, Mapping):
        plus = {name: name for name in check_columns(plus, "plus")}
    columns, kinds = {}, _plus_types(query, plus)
    require(target, [check_column_name(one, "plus") for one in plus.values()], "keys=")
    for name, source in plus.items():
        kind = kinds[name]
        if isinstance(target, Lists):
            columns[name] = _plus_array(name, target.values(source), kind)
            continue
        given = without_views(decode_dictionary(target.column(source)))
        try:
            is_cast = is_number(given.type) and is_number(kind)
            columns[name] = given.cast(kind) if is_cast else cast_key(given, kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            what, other = (
                f"column {source!r} of keys=",
                f"column {name!r} of the stream",
            )
            raise zones_differ(what, given.type, other, kind) or SpecError(
                f"{what} is {given.type}, and {other} {kind}: {error}"
            ) from error
    return _plus_table(query, columns, target.length)


def _plus_types(query: KeyedQuery, names: Iterable[str]) -> dict[str, pa.DataType]:
    """The types of the columns that extra rows may have, among them all of `names`."""
    given = {query.spec.on, *query.spec.by}
    known = {
        field.name: query.stored_type(field.name)
        for field in query.schema
        if field.name not in given and field.name != query.deletes
    }
    refuse_plus(names, given, known)
    return known


def refuse_plus(
    names: Iterable[str], given: Container[str], known: Collection[str]
) -> None:
    """Refuses columns of extra rows that the query gives, or the stream lacks."""
    for name in names:
        if name in given:
            raise SpecError(
                Argument("plus"),
                f" names {name!r}, which is given already: the row has the key and the "
                "time of its query",
            )
        if name not in known:
            raise SpecError(
                Argument("plus"),
                f" names the unknown column {name!r}: the stream has "
                f"{', '.join(map(repr, known)) or 'no column besides keys and times'}",
            )


def _plus_table(
    query: KeyedQuery, given: Mapping[str, pa.Array], rows: int
) -> pa.Table:
    """Extra rows in the columns of the state, without keys and times."""
    columns, keys, read = {}, {*query.spec.by}, {*query.spec.columns}
    for field in query.stored_schema:
        if field.name == TIME or field.name in keys:
            continue
        columns[field.name] = given.get(field.name, pa.nulls(rows, field.type))
        if query.spec.nan == "raise" and field.name in read:
            ValueColumn(field.name, columns[field.name], "raise")
    return pa.table(columns or {NUMBER: row_numbers(rows)})
