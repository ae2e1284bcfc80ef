"""Aggregations of the user's own and the names in them: columns, and their own."""

import pickle
import sys
from typing import Any

from slidewise.aggregations import Aggregation
from slidewise.errors import SpecError

__all__ = ["by_reference", "check_column_names", "resolve"]


def resolve(name: str | None) -> Any:
    """What a module has under a name such as "module:name", if it has been imported.

    Example:
        >>> resolve("slidewise.aggregations.registry:resolve") is resolve
        True
        >>> resolve("nowhere:resolve") is None
        True
    """
    if name is None:
        return None
    module, _, qualified = name.partition(":")
    there: Any = sys.modules.get(module)
    for part in qualified.split("."):
        there = getattr(there, part, None)
    return there


def check_column_names(called: str, *columns: object) -> None:
    """Refuses what names no column of an aggregation of the user's own.

    Raises:
        SpecError: Naming the aggregation and the value.
    """
    for column in columns:
        if column is not None and not isinstance(column, str):
            raise SpecError(f"{called}() takes the name of a column, got {column!r}")


def by_reference(name: str, of: str | None, where: str | None) -> Aggregation:
    """The user's aggregation of that name, of a column; imports its module.

    Raises:
        UnpicklingError: If there is none.
    """
    __import__(name.partition(":")[0])
    there: Any = resolve(name)
    is_one = isinstance(there, Aggregation)
    if not is_one:
        raise pickle.UnpicklingError(f"there is no aggregation {name!r} any more")
    column: Aggregation = there(of, where=where)
    return column
