"""Other moments to answer at than a table's own rows: the rows of another table."""

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.frames.base import Frame, require
from slidewise.spec.spec import Spec
from slidewise.table.encoding import cast_lossless, decode_dictionary, group_codes
from slidewise.table.kernel_call import KernelCall, QueryPoints
from slidewise.table.time_columns import TimeColumn, ticks_in_unit_of

__all__ = ["query_points_of", "same_kind"]


def query_points_of(target: Frame, request: KernelCall, spec: Spec) -> QueryPoints:
    """The rows of `at=` as moments; keys get the same codes in both tables.

    Raises:
        SpecError: If a column is missing there, or of another type.
    """
    names = [spec.on, *spec.by]
    if spec.arrival is not None:
        names.append(spec.arrival)
    require(target, names, "at=")
    arrival = None
    if request.arrival is not None:
        arrival = _ticks_as(request.arrival, target)
    return QueryPoints(
        times=_ticks_as(request.times, target),
        since=None,
        groups=_share_codes(target, request),
        arrival=arrival,
        called="row of at=,",
    )


def _ticks_as(times: TimeColumn, target: Frame) -> pa.Array:
    """A column of times in the unit of the same column in the table."""
    column = target.column(times.name)
    refusal = _other_type(times, column.type)
    if not same_kind(column.type, times.original.type):
        raise SpecError(refusal)
    try:
        return ticks_in_unit_of(times, column)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SpecError(refusal) from error


def same_kind(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two columns can have times in common, whatever Arrow casts."""
    return pa.types.is_null(one) or _kind(one) == _kind(other)


def _kind(held: pa.DataType) -> str:
    if pa.types.is_timestamp(held):
        return "local" if held.tz is None else "instant"
    if pa.types.is_date(held):
        return "local"
    if pa.types.is_duration(held):
        return "duration"
    return "integer" if pa.types.is_integer(held) else str(held)


def _other_type(times: TimeColumn, theirs: pa.DataType) -> str:
    return (
        f"column {times.name!r} is {times.original.type} in the table, and {theirs} "
        "in at=, which does not convert without loss: cast one of them"
    )


def _share_codes(target: Frame, request: KernelCall) -> pa.Array | None:
    """Codes of the moments' keys. The rows' are made together with them, for both."""
    ours, theirs = request.key_columns, request.keys(target)
    if not ours:
        return None
    together = []
    for (name, own), (_, other) in zip(ours, theirs, strict=True):
        try:
            own = decode_dictionary(own)
            theirs_as_ours = _key_as(decode_dictionary(other), own.type)
            together.append((name, pa.concat_arrays([own, theirs_as_ours])))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SpecError(
                f"the key {name!r} is {own.type} in the table, and {other.type} in "
                "at=: cast one of them"
            ) from error
    codes = group_codes(together)
    assert codes is not None, "there are keys"
    rows = len(request.times.ticks)
    request.groups = codes.slice(0, rows)
    return codes.slice(rows)


def _key_as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A key in another type, in which it stays what it is.

    Raises:
        pyarrow.ArrowInvalid: If it does not.
    """
    if _sort_of_key(column.type) != _sort_of_key(kind):
        raise pa.ArrowInvalid("keys of different kinds are never equal")
    return cast_lossless(column, kind)


def _sort_of_key(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_boolean(kind):
        return "bool"
    if types.is_integer(kind):
        return "integer"
    if types.is_floating(kind):
        return "float"
    if types.is_timestamp(kind) or types.is_date(kind):
        return _kind(kind)
    if kind in (pa.string(), pa.large_string(), pa.string_view()):
        return "text"
    if kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        return "binary"
    return "null" if types.is_null(kind) else str(kind)
