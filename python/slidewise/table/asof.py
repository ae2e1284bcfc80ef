"""Query points from another table: `rolling(..., at=)`."""

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.frames.base import Frame, require
from slidewise.spec.spec import Spec
from slidewise.table.encoding import decode_dictionary, group_codes
from slidewise.table.kernel_call import KernelCall, QueryPoints
from slidewise.table.key_types import cast_key
from slidewise.table.kinds import keys_differ, same_kind, zones_differ
from slidewise.table.time_columns import TimeColumn, order_by, ticks_in_unit_of

__all__ = ["query_points_of", "ticks_as"]


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
