"""Built-in aggregations over Python objects in windows.

They run like user-defined aggregations. With `dtype="object"` they take all objects
that Python compares and adds, else the types that they take from a table.
"""

import decimal
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.custom import Functions
from slidewise.aggregations.fit import check_value
from slidewise.aggregations.scalars import is_missing
from slidewise.errors import SpecError

__all__ = [
    "EXACT",
    "Pick",
    "checked_lift",
    "distance",
    "exact_sum",
    "is_nan",
    "larger",
    "object_functions",
    "over_objects",
    "pair",
    "smaller",
]

# Selects one of an earlier and a later value.
Pick = Callable[[Any, Any], Any]
# Sums of decimals are exact, or raise `decimal.Inexact`.
EXACT = decimal.Context(prec=10_000, traps=[decimal.Inexact, decimal.InvalidOperation])


def is_nan(value: Any) -> bool:
    """Whether a value is NaN, of any type."""
    return bool(value != value)


def smaller(older: Any, younger: Any) -> Any:
    """The smaller value, the earlier of equals; NaN propagates."""
    if is_nan(older):
        return older
    return younger if is_nan(younger) or younger < older else older


def larger(older: Any, younger: Any) -> Any:
    """The larger value, the earlier of equals; NaN propagates."""
    if is_nan(older):
        return older
    return younger if is_nan(younger) or younger > older else older


def exact_sum(older: Any, younger: Any) -> Any:
    """The sum of two values, exact for decimals."""
    if isinstance(older, decimal.Decimal) or isinstance(younger, decimal.Decimal):
        return EXACT.add(older, younger)
    return older + younger


def distance(larger: Any, smaller: Any) -> Any:
    """The difference of two values, exact for decimals."""
    if isinstance(larger, decimal.Decimal):
        return EXACT.subtract(larger, smaller)
    return larger - smaller


def checked_lift(
    kind: str,
    compute: Callable[[Any], object],
    lift: Callable[[Any], Any] = lambda value: value,
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


def over_objects(
    kind: str,
    combine: Callable[[Any, Any], Any],
    lift: Callable[[Any], Any] | None = None,
    lower: Callable[[Any], Any] | None = None,
    identity: Any = None,
) -> Callable[[int], Functions]:
    """The functions of a kind over objects, the same for every `k`."""
    name = f"{__name__}:{kind}"
    made = Functions(
        name, lift, combine, lower, identity, None, False, None, None, None
    )
    return lambda _: made


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


@lru_cache(maxsize=256)  # equal windows share their plan
def object_functions(agg: Aggregation, *, any_object: bool = True) -> Functions:
    """The functions of a built-in aggregation over objects.

    Args:
        agg: The aggregation.
        any_object: Whether it takes all objects, not only those that it takes from a
            table.

    Raises:
        AssertionError: If its kind has none.

    Example:
        >>> import slidewise as sw
        >>> object_functions(sw.top_k(k=2)).combine(("d", "a"), ("c",))
        ('d', 'c')
        >>> object_functions(sw.sum(), any_object=False).lift("12.5")
        Traceback (most recent call last):
        ...
        slidewise.errors.SpecError: sum() does not fit str '12.5': sum takes integers...
    """
    record = agg.record
    assert record.objects is not None, "the plan asks for those that have some"
    known: Functions = record.objects(agg.k)
    if any_object:
        return known
    lift = known.lift

    def lift_checked(value: Any) -> Any:
        check_value(agg, value[0] if record.second else value)
        return value if lift is None else lift(value)

    return replace(known, lift=lift_checked)
