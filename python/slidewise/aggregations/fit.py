"""The types of values that each aggregation takes, over tables and in windows."""

from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any
from uuid import UUID

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import RECORDS, Record, kinds
from slidewise.aggregations.scalars import is_of
from slidewise.errors import SpecError

__all__ = ["accepted", "check_value", "fits", "misfit"]

_NAMES = {
    "float": "integers and floats",
    "bool": "bool",
    "duration": "durations",
    "instant": "timestamps and dates",
    "text": "text, binary and decimals",
}


def fits(kind: str, family: str) -> bool:
    """Whether a kind of aggregation takes the values of a family.

    Example:
        >>> fits("sum", "text"), fits("max", "text"), fits("first", "other")
        (False, True, True)
    """
    return family in RECORDS[kind].takes


def accepted(record: Record, families: tuple[str, ...] = ()) -> str:
    """The types that an aggregation takes, if not all, for messages.

    Args:
        record: The record of the aggregation.
        families: The families of these types, if fewer than it takes elsewhere.

    Example:
        >>> import slidewise as sw
        >>> accepted(sw.product().record)
        'integers and floats, bool'
    """
    if record.accepted and not families:
        return record.accepted
    taken = families or record.takes
    return ", ".join(_NAMES[one] for one in taken if one in _NAMES)


def misfit(
    agg: Aggregation, what: str, held: object, fitting: Callable[[str], bool]
) -> str:
    """The message for values that an aggregation does not take.

    Args:
        agg: The aggregation.
        what: The values: the column and its type.
        held: Their type.
        fitting: Whether a kind of aggregation takes them.
    """
    others = ", ".join(filter(fitting, kinds()))
    return (
        f"{agg!r} does not fit {what}: {agg.kind} takes {accepted(agg.record)}. "
        f"For {held} there are {others}."
    )


def check_value(agg: Aggregation, value: Any) -> None:
    """Refuses a Python value that `agg` would not take from a table.

    Example:
        >>> import slidewise as sw
        >>> check_value(sw.sum(), "12.5")
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: sum() does not fit str '12.5': sum takes integers...
    """
    kind: type = type(value)
    family = _family(kind)
    if not fits(agg.kind, family):
        raise SpecError(
            misfit(
                agg,
                f"{kind.__name__} {value!r:.60}",
                kind.__name__,
                lambda other: fits(other, family),
            )
            + " With dtype='object' a window takes any that Python compares and adds."
        )


@lru_cache(maxsize=256)
def _family(kind: type) -> str:
    """The family of a Python type."""
    if is_of(kind, "numpy"):
        named = {"datetime64": "instant", "timedelta64": "duration"}
        named |= {"bool": "bool", "bool_": "bool"}
        if kind.__name__ in named:
            return named[kind.__name__]
    families: tuple[tuple[str, type | tuple[type, ...]], ...] = (
        ("bool", bool),
        ("float", Real),
        ("decimal", Decimal),
        ("duration", timedelta),
        ("instant", (date, time)),
        ("text", (str, bytes, bytearray, memoryview, UUID)),
    )
    return next((name for name, of in families if issubclass(kind, of)), "other")
