"""Kinds of times and keys, and the refusals of two that are not comparable."""

import pyarrow as pa

from slidewise.errors import SpecError

__all__ = ["keys_differ", "same_kind", "zones_differ"]


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
