"""Query points from another table: `rolling(..., at=)`."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import pyarrow as pa

from slidewise.errors import Argument, SpecError
from slidewise.frames.base import Frame, require
from slidewise.spec.arguments import check_column_name, check_columns
from slidewise.spec.features import Features, parts_of
from slidewise.spec.own_windows import refuse_row_needed
from slidewise.spec.spec import Spec
from slidewise.table.arrays import decode_dictionary
from slidewise.table.group_codes import group_codes
from slidewise.table.kernel_call import KernelCall
from slidewise.table.key_types import cast_key
from slidewise.table.kinds import keys_differ, same_kind, zones_differ
from slidewise.table.points import QueryPoints
from slidewise.table.time_columns import TimeColumn, order_by, ticks_in_unit_of

__all__ = ["PointColumns", "columns_of_points", "query_points_of", "ticks_as"]


class PointColumns(NamedTuple):
    """The columns of the table of query points, where they differ from the rows'.

    Attributes:
        on: The column of times.
        by: The key columns, in the order of those of the Spec.
        arrivals: The columns of arrival order.
    """

    on: str
    by: Sequence[str]
    arrivals: Sequence[str]

    @classmethod
    def of(
        cls, spec: Spec, on: object = None, by: Mapping[str, str] | Any = None
    ) -> Self:
        """Those of `at_on=` and `at_by=`; by default those of the Spec.

        Raises:
            SpecError: If one is not a column, or other keys are named than those of
                the Spec.
        """
        time = spec.on if on is None else check_column_name(on, "at_on")
        # The column of times may be a key or the order of arrival, too.
        named = {name: time if name == spec.on else name for name in spec.columns}
        keys = [named[name] for name in spec.by] if by is None else _keys(spec, by)
        return cls(time, keys, [named[name] for name in spec.arrivals])


def _keys(spec: Spec, given: Any) -> tuple[str, ...]:
    """The key columns that `at_by=` names."""
    if isinstance(given, Mapping):
        for name in given:
            if name not in spec.by:
                raise SpecError(
                    Argument("at_by"),
                    f" names {name!r}, which is not in ",
                    Argument("by", [*spec.by]),
                )
        names = [given.get(name, name) for name in spec.by]
        return tuple(check_column_name(name, "at_by") for name in names)
    found = check_columns(given, "at_by")
    if len(found) != len(spec.by):
        raise SpecError(
            Argument("at_by", given),
            " names other columns than one for each of ",
            Argument("by", [*spec.by]),
            ", in its order",
        )
    return found


def columns_of_points(
    spec: Spec | Features, at: Any, at_on: Any, at_by: Any
) -> list[PointColumns]:
    """The columns of `at=` for each Spec, by the other arguments of a call.

    Raises:
        SpecError: As for `PointColumns.of`; also if `at` is missing.
    """
    for name, given in (("at_on", at_on), ("at_by", at_by)):
        if at is None and given is not None:
            raise SpecError(
                Argument(name, given),
                " names columns of the table ",
                Argument("at"),
                ", which is missing: add it, or leave this out",
            )
    if at is not None:
        for part in parts_of(spec):
            refuse_row_needed(part.aggs)
    keys = _keys_of_parts(spec, at_by)
    pairs = zip(parts_of(spec), keys, strict=True)
    return [PointColumns.of(part, at_on, by) for part, by in pairs]


def _keys_of_parts(spec: Spec | Features, at_by: Any) -> list[Any]:
    """The `at_by=` of each Spec."""
    parts = parts_of(spec)
    if isinstance(spec, Spec) or at_by is None:
        return [at_by] * len(parts)
    if not isinstance(at_by, Mapping):
        raise SpecError(
            Argument("at_by", at_by),
            " names no columns for the keys of several Specs: give a mapping from key "
            "columns, such as ",
            Argument("at_by", {name: f"their_{name}" for name in spec.by[:1]}),
        )
    for name in at_by:
        if name not in spec.by:
            raise SpecError(
                Argument("at_by"),
                f" names {name!r}, which is not a key of the Features: these are "
                f"{', '.join(map(repr, spec.by)) or 'none'}",
            )
    return [{name: at_by[name] for name in part.by if name in at_by} for part in parts]


def query_points_of(
    target: Frame, call: KernelCall, spec: Spec, columns: PointColumns | None = None
) -> QueryPoints:
    """The rows of `at=` as query points; equal keys get equal codes in both tables.

    Args:
        target: The table of `at=`.
        call: The call of the rows.
        spec: The Spec of the rows.
        columns: The columns of `target`, where they differ from those of the rows.
    """
    columns = PointColumns.of(spec) if columns is None else columns
    needed = [columns.on, *columns.by, *columns.arrivals]
    require(target, [*dict.fromkeys(needed)], "at=")
    return QueryPoints(
        ends=ticks_as(call.times, target, columns.on, "at="),
        starts=None,
        groups=_share_codes(target, call, columns.by),
        arrival=_share_order(target, call, columns.arrivals),
        noun="row of at=,",
    )


def _share_order(
    target: Frame, call: KernelCall, arrivals: Sequence[str]
) -> pa.Array | None:
    """Orders the arrivals of both tables together; returns that of the query points."""
    order = order_by(
        [
            pa.concat_arrays([times.ticks, ticks_as(times, target, name, "at=")])
            for times, name in zip(call.arrivals, arrivals, strict=True)
        ]
    )
    if order is None:
        return None
    rows = len(call.times.ticks)
    call.arrival = order.slice(0, rows)
    return order.slice(rows)


def ticks_as(times: TimeColumn, target: Frame, name: str, where: str) -> pa.Array:
    """The times in a column of another table, the argument `where`, in other ticks."""
    column, kind = target.column(name), times.original.type
    refusal = SpecError(
        f"column {name!r} of {where} is {column.type}, which does not convert without "
        f"loss to the times of column {times.name!r} ({kind}): cast one of them"
    )
    if not same_kind(column.type, kind):
        what, other = f"column {name!r} of {where}", f"the time column {times.name!r}"
        raise zones_differ(what, column.type, other, kind) or refusal
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise SpecError(
            f"column {name!r} of {where} has no time in row {row} (counting from 0): "
            "drop the row, or fill it in"
        )
    try:
        return ticks_in_unit_of(times, column)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise refusal from error


def _share_codes(
    target: Frame, call: KernelCall, columns: Sequence[str]
) -> pa.Array | None:
    """Codes the keys of both tables together; returns those of the query points."""
    concatenated = []
    for (name, key), column in zip(call.key_columns, columns, strict=True):
        other = target.column(column)
        try:
            key = decode_dictionary(key)
            cast = cast_key(decode_dictionary(other), key.type)
            concatenated.append((name, pa.concat_arrays([key, cast])))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            where = ("the table", "at=")
            raise keys_differ(name, (key.type, other.type), where) from error
    codes = group_codes(concatenated)
    if codes is None:
        return None
    rows = len(call.times.ticks)
    call.groups = codes.slice(0, rows)
    return codes.slice(rows)
