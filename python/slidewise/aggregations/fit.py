"""The types of values that each aggregation takes, over tables and in windows.

Types form *families*: "number", "bool", "duration", "instant" (timestamps, dates, times
of day), "text" (also binary), "decimal", and "other".
"""

from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any
from uuid import UUID

from slidewise.aggregations.base import BITS, KINDS, PAIRS, Aggregation
from slidewise.aggregations.scalars import is_of
from slidewise.errors import SpecError

__all__ = ["accepted", "check_value", "fits", "misfit"]

_NUMBERS = ("number", "bool")
_ORDERED = ("number", "bool", "duration", "instant", "text", "decimal")
_MOMENTS = ("variance", "stddev", "skewness", "kurtosis")
# The families of the kinds that do not take all of them.
_TAKES: dict[str, tuple[str, ...]] = {
    "sum": ("number", "bool", "duration", "decimal"),
    "mean": _NUMBERS,
    "product": _NUMBERS,
    "sum_of_squares": _NUMBERS,
    "geometric_mean": _NUMBERS,
    "any": _NUMBERS,
    "all": _NUMBERS,
    **dict.fromkeys(BITS, _NUMBERS),
    **dict.fromkeys(_MOMENTS, _NUMBERS),
    **dict.fromkeys(PAIRS, _NUMBERS),
    "concat": ("text",),
    "top_k": _ORDERED,
    "bottom_k": _ORDERED,
    "range": ("number", "duration", "instant"),
    "min": _ORDERED,
    "max": _ORDERED,
    "min_count": _ORDERED,
    "max_count": _ORDERED,
    "arg_min": _ORDERED,
    "arg_max": _ORDERED,
    "mode": _ORDERED,
    "quantile": _ORDERED,
    "median": _NUMBERS,
    "approx_quantile": _NUMBERS,
}
_NAMES = {
    "number": "integers and floats",
    "bool": "bool",
    "duration": "durations",
    "instant": "timestamps and dates",
    "text": "text, binary and decimals",
}
# The accepted types of aggregations that do not accept whole families.
_ACCEPTED = {
    "sum": "integers, floats, decimals of up to 38 digits, bool and durations",
    "concat": "text and binary",
    **dict.fromkeys(BITS, "integers and bool"),
}


def fits(kind: str, family: str) -> bool:
    """Whether a kind of aggregation takes the values of a family.

    Example:
        >>> fits("sum", "text"), fits("max", "text"), fits("first", "other")
        (False, True, True)
    """
    return family in _TAKES.get(kind, (family,))


def accepted(kind: str) -> str:
    """The types that a kind of aggregation takes, if not all, for messages.

    Example:
        >>> accepted("mean")
        'integers and floats, bool'
    """
    families = (family for family in _TAKES[kind] if family in _NAMES)
    return _ACCEPTED.get(kind) or ", ".join(_NAMES[family] for family in families)


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
    kinds = ", ".join(kind for kind in KINDS if fitting(kind))
    return (
        f"{agg!r} does not fit {what}: {agg.kind} takes {accepted(agg.kind)}. "
        f"For {held} there are {kinds}."
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
        ("number", Real),
        ("decimal", Decimal),
        ("duration", timedelta),
        ("instant", (date, time)),
        ("text", (str, bytes, bytearray, memoryview, UUID)),
    )
    return next((name for name, of in families if issubclass(kind, of)), "other")
