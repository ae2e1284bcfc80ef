"""`RowCount`: the last rows up to a row, or to an earlier one."""

from dataclasses import dataclass
from typing import Any

from slidewise.formatting import format_count
from slidewise.spec.durations import Length
from slidewise.spec.windows.base import ColumnTicks, Order, Span, Window

__all__ = ["RowCount"]


@dataclass(frozen=True, slots=True)
class RowCount(Window):
    """A window of a number of rows of a key, up to the row at which it ends.

    Attributes:
        count: The number of rows.
        closed: Whether the time of its end belongs to it: "right" or "left".
        behind: How many rows before that it ends.
    """

    count: int
    closed: str = "right"
    behind: int = 0

    @property
    def label(self) -> str:
        """As on the command line."""
        return f"{self.count}rows"

    @property
    def interval(self) -> str:
        """Its rows."""
        if self.behind:
            last = f"ending {format_count(self.behind, 'row')} before {self._end}"
            return f"the {format_count(self.count, 'row')} {last}"
        if self.closed == "left":
            return f"the last {self.count} rows before {self._end}"
        return f"the last {self.count} rows, this one included"

    @property
    def _end(self) -> str:
        return "this one" if self.closed == "right" else "the time of this one"

    @property
    def rows(self) -> int:
        """The number of rows, those behind it included."""
        return self.count + self.behind

    @property
    def includes_end(self) -> bool:
        """By `closed`."""
        return self.closed == "right"

    @property
    def holds_its_row(self) -> bool:
        """If it ends with its row."""
        return self.includes_end and not self.behind

    def span(self, ticks: ColumnTicks) -> Span:
        """The number of rows, and of those behind it."""
        return Span("rows", self.count, self.closed, self.behind)

    def starts(self, order: Order) -> Any:
        """The first of its rows, if it ends `behind` rows before each."""
        return order.starts_by_rows(self.rows)

    def bounds(self, order: Order, *, own: bool) -> tuple[Any, Any]:
        """The last rows, without the row itself or those of its time."""
        last = order.numbers if self.includes_end else order.before_peers
        skipped = self.behind + (self.holds_its_row and not own)
        return order.rows_before(last, self.count, skipped)

    def with_length(self, length: Length) -> "RowCount":
        """With its end."""
        return RowCount(length.amount, self.closed, self.behind)

    def __repr__(self) -> str:
        return f"rows({self.count})"
