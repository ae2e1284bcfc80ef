"""Query points from another table: `rolling(..., at=)`."""

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.frames.base import Frame, require
from slidewise.spec.spec import Spec
from slidewise.table.encoding import decode_dictionary, group_codes
from slidewise.table.kernel_call import KernelCall, QueryPoints
from slidewise.table.key_types import cast_key
from slidewise.table.time_columns import TimeColumn, order_by, ticks_in_unit_of

__all__ = ["keys_differ", "query_points_of", "same_kind", "ticks_as", "zones_differ"]


def query_points_of(target: Frame, call: KernelCall, spec: Spec) -> QueryPoints:
    """The rows of `at=` as query points; equal keys get equal codes in both tables."""
    require(target, [spec.on, *spec.by, *spec.arrivals], "at=")
    return QueryPoints(
        ends=ticks_as(call.times, target, spec.on, "at="),
        starts=None,
        groups=_share_codes(target, call),
        arrival=_share_order(target, call),
        noun="row of at=,",
    )


def _share_order(target: Frame, call: KernelCall) -> pa.Array | None:
    """Orders the arrivals of both tables together; returns that of the query points."""
    order = order_by(
        [
            pa.concat_arrays([times.ticks, ticks_as(times, target, times.name, "at=")])
            for times in call.arrivals
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


def zones_differ(
    what: str, given: pa.DataType, other: str, kind: pa.DataType
) -> SpecError | None:
    """The refusal of times with a zone beside times without one; None for others.

    Args:
        what: The subject of the message, the given times.
        given: Their type.
        other: The times that they do not fit.
        kind: The type of these.
    """
    if {_kind(given), _kind(kind)} != {"local", "instant"}:
        return None
    has, one, way = "has no zone", "has one", "assume_timezone(c, 'UTC')"
    if _kind(given) == "instant":
        has, one, way = "has a zone", "has none", "local_timestamp(c)"
    return SpecError(
        f"{what} {has} ({given}), and {other} {one} ({kind}): convert one of them, "
        f"such as by pyarrow.compute.{way}"
    )


def same_kind(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether times of two types are comparable, beyond what Arrow would cast."""
    return pa.types.is_null(one) or _kind(one) == _kind(other)


def keys_differ(
    name: str, kinds: tuple[pa.DataType, pa.DataType], where: tuple[str, str]
) -> SpecError:
    """The refusal of keys of two types that have no common one.

    Args:
        name: The key.
        kinds: Its types: that of the rows, and the given one.
        where: What has them.
    """
    (kind, given), (rows, points) = kinds, where
    what = f"the key {name!r}"
    return zones_differ(
        f"{what} of {points}", given, f"that of {rows}", kind
    ) or SpecError(
        f"{what} is {kind} in {rows}, and {given} in {points}: cast one of them"
    )


def _kind(held: pa.DataType) -> str:
    if pa.types.is_timestamp(held):
        return "local" if held.tz is None else "instant"
    if pa.types.is_date(held):
        return "local"
    if pa.types.is_duration(held):
        return "duration"
    return "integer" if pa.types.is_integer(held) else str(held)


def _share_codes(target: Frame, call: KernelCall) -> pa.Array | None:
    """Codes the keys of both tables together; returns those of the query points."""
    concatenated = []
    for name, key in call.key_columns:
        other = target.column(name)
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
