"""Names, columns and pickles of all user-defined aggregations."""

import pickle
import sys
from dataclasses import dataclass, field, replace
from typing import Any, Self

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.records import Record
from slidewise.aggregations.seen import Seen, seen_by
from slidewise.errors import SpecError
from slidewise.hints import suggest_argument

__all__ = ["UserDefinedAggregation", "by_reference", "check_flag_and_name", "resolve"]

_STRUCT = (
    ": of sw.aggregation, lift may have a parameter for each of several, as in "
    "lift(a, b), or take a struct column as dicts"
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
    name: str, of: tuple[Any, ...], where: str | None, windows: Any
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
    column: Aggregation = found(*of, where=where, windows=windows)
    return column


@dataclass(frozen=True, slots=True, repr=False)
class UserDefinedAggregation(Aggregation):
    """A user-defined aggregation.

    Call it with the name of a column for tables and for values that are mappings.

    Attributes:
        functions: Its functions.
        others: The columns after the first one, if `lift` takes several.
    """

    functions: Any = None
    others: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def record(self) -> Record:
        """The facts about all of them."""
        return _RECORD

    @property
    def commutes(self) -> bool:
        """Whether it was declared to combine in either order."""
        declared: bool = self.functions.commutative
        return declared

    def __call__(
        self,
        column: str | None = None,
        *others: str,
        where: str | None = None,
        windows: Any = None,
        **unknown: object,
    ) -> Self:
        """This aggregation of a column, or of as many as `lift` takes."""
        for name in unknown:
            meant = suggest_argument(name, ["column", "where", "windows"])
            raise TypeError(f"{self._called}() takes no argument {name!r}{meant}")
        names = self.seen.columns
        if len(names) > 1:
            given = (column, *others)
            if given != (None,) and (len(given) != len(names) or None in given):
                raise SpecError(
                    f"{self._called}() takes {len(names)} columns, as its lift does "
                    f"({', '.join(names)}); got {given!r:.60}"
                )
        elif others:
            raise TypeError(f"{self._called}() takes one column{_STRUCT}")
        if isinstance(column, list | tuple):
            raise SpecError(
                f"{self._called}() takes one column, got {column!r}{_STRUCT}"
            )
        return replace(self, of=column, others=others, where=where, windows=windows)

    @property
    def seen(self) -> Seen:
        """What its functions see."""
        return seen_by(None, None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        named = (self.of, *self.others, self.where)
        return tuple(column for column in named if column is not None)

    def check_columns(self) -> None:
        """Checks that all its columns are named."""
        names = self.seen.columns
        if len(names) > 1 and len(self.others) + 1 != len(names):
            shown = ", ".join(map(repr, names))
            raise SpecError(f"{self!r} needs {len(names)} columns, as in ({shown})")
        Aggregation.check_columns(self)

    @property
    def _called(self) -> str:
        return str(self.functions.label)

    @property
    def _shown_columns(self) -> list[str]:
        named = (self.of, *self.others)
        return [repr(name) for name in named if name is not None]

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickles by name if the name resolves to it, else by its functions."""
        name = self.functions.name
        # In another process, __main__ is another module.
        here = name is None or not name.startswith("__main__:")
        if here and getattr(resolve(name), "functions", None) is self.functions:
            columns = (self.of, *self.others)
            return by_reference, (name, columns, self.where, self.windows)
        return self._by_functions()

    def _by_functions(self) -> tuple[Any, ...]:
        """Pickles by functions."""
        raise NotImplementedError
