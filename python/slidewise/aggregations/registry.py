"""Names, columns and pickles of all user-defined aggregations."""

import pickle
import sys
from dataclasses import dataclass, replace
from typing import Any, Self

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import Record
from slidewise.errors import SpecError
from slidewise.hints import suggest_argument

__all__ = ["UserDefinedAggregation", "by_reference", "check_flag_and_name", "resolve"]

_STRUCT = (
    ": make a struct column of several first, such as polars.struct('a', 'b'); lift "
    "gets its values as a dict"
)


_RECORD = Record("udaf", "udaf", reads="", roles=("any",), result="udaf")


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


def check_flag_and_name(commutative: object, name: object) -> None:
    """Checks arguments of `aggregation` and `native`."""
    if not isinstance(commutative, bool):
        raise SpecError(f"commutative= is True or False, got {commutative!r}")
    if name is not None and not (isinstance(name, str) and name.partition(":")[2]):
        raise SpecError(f"name= is 'module:name', got {name!r}")


def by_reference(
    name: str, of: str | None, where: str | None, windows: Any
) -> Aggregation:
    """Unpickles a user-defined aggregation by name; imports its module.

    Raises:
        UnpicklingError: If the module has no aggregation of that name.
    """
    __import__(name.partition(":")[0])
    found: Any = resolve(name)
    is_aggregation = isinstance(found, Aggregation)
    if not is_aggregation:
        raise pickle.UnpicklingError(f"there is no aggregation {name!r} any more")
    column: Aggregation = found(of, where=where, windows=windows)
    return column


@dataclass(frozen=True, slots=True, repr=False)
class UserDefinedAggregation(Aggregation):
    """A user-defined aggregation.

    Call it with the name of a column for tables and for values that are mappings.

    Attributes:
        functions: Its functions.
    """

    functions: Any = None

    @property
    def record(self) -> Record:
        """The facts about all of them."""
        return _RECORD

    def __call__(
        self,
        column: str | None = None,
        *others: str,
        where: str | None = None,
        windows: Any = None,
        **unknown: object,
    ) -> Self:
        """This aggregation of a column."""
        for name in unknown:
            meant = suggest_argument(name, ["column", "where", "windows"])
            raise TypeError(f"{self._called}() takes no argument {name!r}{meant}")
        if others:
            raise TypeError(f"{self._called}() takes one column{_STRUCT}")
        if isinstance(column, list | tuple):
            raise SpecError(
                f"{self._called}() takes one column, got {column!r}{_STRUCT}"
            )
        return replace(self, of=column, where=where, windows=windows)

    @property
    def _called(self) -> str:
        return str(self.functions.label)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickles by name if the name resolves to it, else by its functions."""
        name = self.functions.name
        # In another process, __main__ is another module.
        here = name is None or not name.startswith("__main__:")
        if here and getattr(resolve(name), "functions", None) is self.functions:
            return by_reference, (name, self.of, self.where, self.windows)
        return self._by_functions()

    def _by_functions(self) -> tuple[Any, ...]:
        """Pickles by functions."""
        raise NotImplementedError
