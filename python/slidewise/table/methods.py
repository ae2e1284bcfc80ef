"""`rolling`, `hopping` and `explain` as methods of a table, for its library's `sw`."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from slidewise.table.explain import explain
from slidewise.table.hopping import hopping
from slidewise.table.rolling import rolling

__all__ = ["TableMethods"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _like(function: Callable[..., Any]) -> Callable[[_Method], _Method]:
    """Gives a method the signature of a function, whose table is `self`."""
    _, *others = inspect.signature(function).parameters.values()
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def signed(method: _Method) -> _Method:
        method.__signature__ = inspect.Signature([this, *others])  # type: ignore[attr-defined]
        return method

    return signed


class TableMethods:
    """The functions of slidewise over one table."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def _call(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        return function(self._table, *args, **keywords)

    @_like(rolling)
    def rolling(self, *args: Any, **keywords: Any) -> Any:
        """Aggregates, for every row, over the window that ends at the row.

        Arguments, result, errors and cost are those of `slidewise.rolling`.
        """
        return self._call(rolling, args, keywords)

    @_like(hopping)
    def hopping(self, *args: Any, **keywords: Any) -> Any:
        """Aggregates over hopping, tumbling or session windows: a row for each.

        Arguments, result, errors and cost are those of `slidewise.hopping`.
        """
        return self._call(hopping, args, keywords)

    @_like(explain)
    def explain(self, *args: Any, **keywords: Any) -> Any:
        """Explains how `rolling` or `hopping` computes the table.

        Arguments, result, errors and cost are those of `slidewise.explain`.
        """
        return self._call(explain, args, keywords)
