"""Postprocessing of the collected values of a window, for some aggregations."""

from collections.abc import Callable
from itertools import chain
from typing import Any

from slidewise.errors import SpecError

__all__ = ["POSTPROCESS"]


def _concat(values: list[Any]) -> Any:
    """Joins values of one type; None over an empty window."""
    if not values:
        return None
    kind = type(values[0])
    for value in values:
        if type(value) is not kind:
            raise SpecError(
                f"concat() takes values of one type, got {kind.__name__} and "
                f"{type(value).__name__}"
            )
    if kind is str or kind is bytes:
        return kind().join(values)
    if kind is list or kind is tuple:
        return kind(chain.from_iterable(values))
    raise SpecError(
        f"concat() takes str, bytes, lists and tuples, got {kind.__name__}: "
        "collect() takes any type"
    )


def _distinct(values: list[Any]) -> list[Any]:
    """Distinct values in order of first occurrence; all NaNs are one."""
    seen: dict[Any, Any] = {}
    for value in values:
        try:
            seen.setdefault("nan" if value != value else (value,), value)
        except TypeError as error:
            raise SpecError(
                f"collect_distinct() takes hashable values: {error}"
            ) from error
    return list(seen.values())


def _smallest(values: list[Any]) -> Any:
    """The smallest of equally frequent values; NaN is the largest."""
    if len(values) <= 1:
        return values[0] if values else None
    numbers = [value for value in values if value == value]
    try:
        return min(numbers)
    except TypeError as error:
        raise SpecError(
            "mode() gives the smallest of the most frequent values, which do not "
            f"compare: {error}"
        ) from error


POSTPROCESS: dict[str, Callable[[list[Any]], Any]] = {
    "concat": _concat,
    "collect_distinct": _distinct,
    "mode": _smallest,
}
