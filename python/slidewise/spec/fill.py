"""`fill=`: the values that replace null results."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeAlias

from slidewise.aggregations import Aggregation
from slidewise.errors import Argument, SpecError

__all__ = ["Fill", "check_fill", "plain_fill"]

# The names of aggregations, and the value of each that has one.
Fill: TypeAlias = tuple[tuple[str, Any], ...]

# Floats up to this size that are whole are written as integers.
_EXACT = 2.0**53


def check_fill(given: Any, aggs: tuple[tuple[str, Aggregation], ...]) -> Fill:
    """Checks `fill=`, and returns the value of each aggregation that has one.

    Whether a value fits is known with the type of the result.

    Args:
        given: A value for all, or a mapping from names in `aggs=`, or else kinds of
            aggregations such as "sum", to values; None for no value.
        aggs: The items of `aggs=`.

    Example:
        >>> import slidewise as sw
        >>> aggs = (("a", sw.sum("x")), ("b", sw.mean("x")), ("c", sw.sum("y")))
        >>> check_fill({"sum": 0, "c": 1.0}, aggs)
        (('a', 0), ('c', 1))
    """
    if not isinstance(given, Mapping):
        value = _value(given, Argument("fill", given))
        return () if value is None else tuple((name, value) for name, _ in aggs)
    names, kinds = dict(aggs), [agg.kind for _, agg in aggs]
    for key in given:
        if key not in names and key not in kinds:
            raise SpecError(
                Argument("fill"),
                f" names {key!r}, which is not in aggs=: there are "
                f"{', '.join(map(repr, names))}",
            )
    found = []
    for name, kind in zip(names, kinds, strict=True):
        key = name if name in given or kind in names else kind
        value = _value(given.get(key), f"fill[{key!r}]={given.get(key)!r:.60}")
        if value is not None:
            found.append((name, value))
    return tuple(found)


def _value(given: Any, shown: Argument | str) -> Any:
    """A value; equal numbers are alike, so that equal Specs have equal hashes."""
    value = given.item() if _is_number_of_numpy(given) else given
    if isinstance(value, list | tuple | set | dict) or hasattr(value, "__array__"):
        raise SpecError(shown, " is not one value: lists and structs cannot be filled")
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return int(value) if is_whole else value


def _is_number_of_numpy(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "kind", "") in ("b", "i", "u", "f") and not value.shape


def plain_fill(given: Any) -> Any:
    """The value of `fill=` as a document holds it.

    Raises:
        SpecError: If a value is neither a number nor text nor a boolean.
    """
    if isinstance(given, Mapping):
        return {name: plain_fill(value) for name, value in given.items()}
    value = given.item() if _is_number_of_numpy(given) else given
    is_number = isinstance(value, float) and isfinite(value)
    if is_number or isinstance(value, int | str | None):
        return value
    raise SpecError(
        f"fill={given!r:.60} cannot be written to a document, which holds finite "
        "numbers, text and booleans: give it in code"
    )
