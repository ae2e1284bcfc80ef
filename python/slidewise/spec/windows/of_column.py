"""`OfColumn`: what windows share whose ends a column gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from slidewise.errors import SpecError
from slidewise.spec.windows.base import Window

__all__ = ["OfColumn", "column_of_call"]


@dataclass(frozen=True, slots=True, repr=False)
class OfColumn(Window):
    """A window whose ends a column gives.

    Attributes:
        column: The column.
    """

    column: str

    by_position: ClassVar[bool] = True
    chained: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """With the column."""
        return f"{self.keys[0]}_{self.column}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def document(self) -> dict[str, Any]:
        """The column."""
        return {self.keys[0]: self.column}

    @classmethod
    def of_document(cls, given: Mapping[str, Any]) -> Self:
        """By the function."""
        (function,) = cls.keys
        return cls(column_of_call(given[function], function))

    def __repr__(self) -> str:
        return f"{self.keys[0]}({self.column!r})"


def column_of_call(given: object, function: str) -> str:
    """Checks the name of a column that a function takes."""
    if not isinstance(given, str):
        raise SpecError(f"{function}() takes the name of a column, got {given!r}")
    return given
