"""Built-in aggregations over Python objects in windows.

They run like user-defined aggregations. With `dtype="object"` they take all objects
that Python compares and adds, else the types that they take from a table.
"""

import decimal
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from operator import and_, itemgetter, or_
from typing import Any

from slidewise.aggregations.base import COMPARED, Aggregation
from slidewise.aggregations.custom import Functions
from slidewise.aggregations.fit import check_value
from slidewise.aggregations.scalars import is_missing
from slidewise.errors import SpecError

__all__ = [
    "OBJECT_KINDS",
    "object_functions",
    "pair",
]

# Sums of decimals are exact, or raise `decimal.Inexact`.
_EXACT = decimal.Context(prec=10_000, traps=[decimal.Inexact, decimal.InvalidOperation])


def _is_nan(value: Any) -> bool:
    return bool(value != value)


def _smaller(older: Any, younger: Any) -> Any:
    """The smaller value, the earlier of equals; NaN propagates."""
    if _is_nan(older):
        return older
    return younger if _is_nan(younger) or younger < older else older


def _larger(older: Any, younger: Any) -> Any:
    if _is_nan(older):
        return older
    return younger if _is_nan(younger) or younger > older else older


def _checked_lift(
    kind: str, compute: Callable[[Any], object], lift: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """A lift that refuses values that the aggregation cannot compute with."""

    def checked(value: Any) -> Any:
        try:
            compute(value)
        except TypeError as error:
            raise SpecError(
                f"{kind}() cannot be computed of {type(value).__name__} {value!r:.60}: "
                f"{error}; first, last, min, max and collect take any object"
            ) from error
        return lift(value)

    return checked


def _once(value: Any) -> tuple[Any, int]:
    return value, 1


def _ends(older: tuple[Any, Any], younger: tuple[Any, Any]) -> tuple[Any, Any]:
    return _smaller(older[0], younger[0]), _larger(older[1], younger[1])


def _distance(ends: tuple[Any, Any]) -> Any:
    smallest, largest = ends
    if isinstance(largest, decimal.Decimal):
        return _EXACT.subtract(largest, smallest)
    return largest - smallest


def _counted(pick: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def combine(older: tuple[Any, int], younger: tuple[Any, int]) -> tuple[Any, int]:
        (a, n), (b, m) = older, younger
        if a == b or (_is_nan(a) and _is_nan(b)):
            return a, n + m
        return older if pick(a, b) is a else younger

    return combine


def pair(value: Any, paired: Any, nan: str) -> tuple[Any, Any] | None:
    """The compared value and its paired one; None if the first is missing.

    Raises:
        SpecError: If one of them is NaN, and `nan` is "raise".
    """
    if is_missing(value) or (nan != "propagate" and _refused_nan(value, nan)):
        return None
    if is_missing(paired) or (nan != "propagate" and _refused_nan(paired, nan)):
        return value, None
    return value, paired


def _refused_nan(value: Any, nan: str) -> bool:
    found = isinstance(value, float) and value != value
    if found and nan == "raise":
        raise SpecError("the value is NaN, and the window was created with nan='raise'")
    return found


def _row_of(pick: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A combine of pairs (compared value, paired value)."""

    def combine(older: tuple[Any, Any], younger: tuple[Any, Any]) -> tuple[Any, Any]:
        return older if pick(older[0], younger[0]) is older[0] else younger

    return combine


def _sum(older: Any, younger: Any) -> Any:
    if isinstance(older, decimal.Decimal) or isinstance(younger, decimal.Decimal):
        return _EXACT.add(older, younger)
    return older + younger


def _total(older: tuple[Any, int], younger: tuple[Any, int]) -> tuple[Any, int]:
    return _sum(older[0], younger[0]), older[1] + younger[1]


def _mean(total: tuple[Any, int]) -> Any:
    return total[0] / total[1]


def _best(k: int, pick: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A combine of sorted runs: the first k of both, earlier ones first."""

    def combine(older: tuple[Any, ...], younger: tuple[Any, ...]) -> tuple[Any, ...]:
        best: list[Any] = []
        at, other = 0, 0
        while len(best) < k and (at < len(older) or other < len(younger)):
            left = other == len(younger) or (
                at < len(older) and pick(older[at], younger[other]) is older[at]
            )
            best.append(older[at] if left else younger[other])
            at, other = at + left, other + (not left)
        return tuple(best)

    return combine


def _functions(
    kind: str, lift: Any, combine: Any, lower: Any, identity: Any = None
) -> Functions:
    name = f"{__name__}:{kind}"
    return Functions(
        name, lift, combine, lower, identity, None, False, None, None, None
    )


_ORDERED = {
    "min": _functions("min", None, _smaller, None),
    "max": _functions("max", None, _larger, None),
    "range": _functions(
        "range",
        _checked_lift("range", lambda x: _distance((x, x)), lambda x: (x, x)),
        _ends,
        _distance,
    ),
    "min_count": _functions("min_count", _once, _counted(_smaller), itemgetter(1)),
    "max_count": _functions("max_count", _once, _counted(_larger), itemgetter(1)),
    "arg_min": _functions("arg_min", None, _row_of(_smaller), itemgetter(1)),
    "arg_max": _functions("arg_max", None, _row_of(_larger), itemgetter(1)),
    "first": _functions("first", None, lambda older, _: older, None),
    "last": _functions("last", None, lambda _, younger: younger, None),
    "sum": _functions(
        "sum",
        _checked_lift("sum", lambda value: _sum(value, value), lambda value: value),
        _sum,
        None,
    ),
    "mean": _functions(
        "mean",
        _checked_lift("mean", lambda value: _mean((_sum(value, value), 2)), _once),
        _total,
        _mean,
    ),
    "any": _functions("any", bool, or_, None),
    "all": _functions("all", bool, and_, None),
}

_BEST = {"top_k": _larger, "bottom_k": _smaller}
# The kinds that support objects.
OBJECT_KINDS = (*_ORDERED, *_BEST)


@lru_cache(maxsize=256)  # equal windows share their plan
def object_functions(agg: Aggregation, *, any_object: bool = True) -> Functions:
    """The functions of a built-in aggregation over objects.

    Args:
        agg: The aggregation.
        any_object: Whether it takes all objects, not only those that it takes from a
            table.

    Raises:
        KeyError: If its kind is not in `OBJECT_KINDS`.

    Example:
        >>> import slidewise as sw
        >>> object_functions(sw.top_k(k=2)).combine(("d", "a"), ("c",))
        ('d', 'c')
        >>> object_functions(sw.sum(), any_object=False).lift("12.5")
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: sum() does not fit str '12.5': sum takes integers...
    """
    known = _ORDERED.get(agg.kind) or _best_of(agg.kind, agg.k)
    if any_object:
        return known
    lift = known.lift

    def lift_checked(value: Any) -> Any:
        check_value(agg, value[0] if agg.kind in COMPARED else value)
        return value if lift is None else lift(value)

    return replace(known, lift=lift_checked)


@cache
def _best_of(kind: str, k: int) -> Functions:
    lift = _checked_lift(kind, lambda value: value < value, lambda value: (value,))
    return _functions(kind, lift, _best(k, _BEST[kind]), list, ())
