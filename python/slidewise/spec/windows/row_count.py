"""`RowCount`: the last rows up to a row."""

from dataclasses import dataclass
from typing import Any

from slidewise.spec.windows.base import ColumnTicks, Order, Span, Window

__all__ = ["RowCount"]


@dataclass(frozen=True, slots=True)
class RowCount(Window):
    """A window of the last rows of a key, the row at which it ends included.

    Attributes:
        count: The number of rows.
    """

    count: int

    @property
    def label(self) -> str:
        """As on the command line."""
        return f"{self.count}rows"

    @property
    def interval(self) -> str:
        """Its rows."""
        return f"the last {self.count} rows, this one included"

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.count

    def span(self, ticks: ColumnTicks) -> Span:
        """The number of rows."""
        return Span("rows", self.count, "right")

    def starts(self, order: Order) -> Any:
        """The first of its rows."""
        return order.starts_by_rows(self.count)

    def __repr__(self) -> str:
        return f"rows({self.count})"
