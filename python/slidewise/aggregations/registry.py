"""The names of user-defined aggregations, and of columns."""

import pickle
import sys
from typing import Any

from slidewise.aggregations import Aggregation
from slidewise.errors import SpecError

__all__ = ["by_reference", "check_column_names", "resolve"]


def resolve(name: str | None) -> Any:
    """The object of a name such as "module:name", if its module has been imported.

    Example:
        >>> resolve("slidewise.aggregations.registry:resolve") is resolve
        True
        >>> resolve("nowhere:resolve") is None
        True
    """
    if name is None:
        return None
    module, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found


def check_column_names(called: str, *columns: object) -> None:
    """Refuses columns that are not strings."""
    for column in columns:
        if column is not None and not isinstance(column, str):
            raise SpecError(f"{called}() takes the name of a column, got {column!r}")


def by_reference(name: str, of: str | None, where: str | None) -> Aggregation:
    """Unpickles a user-defined aggregation by name; imports its module.

    Raises:
        UnpicklingError: If the module has no aggregation of that name.
    """
    __import__(name.partition(":")[0])
    found: Any = resolve(name)
    is_aggregation = isinstance(found, Aggregation)
    if not is_aggregation:
        raise pickle.UnpicklingError(f"there is no aggregation {name!r} any more")
    column: Aggregation = found(of, where=where)
    return column
