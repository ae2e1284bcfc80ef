"""`Hop` and `RowHop`: windows that begin at every slide, of time or of rows."""

from dataclasses import dataclass
from typing import Any, ClassVar

from slidewise.spec.durations import Length, Rows
from slidewise.spec.windows.base import Finder, Order, Span, Ticks, Window
from slidewise.spec.windows.row_count import RowCount
from slidewise.spec.windows.trailing import Trailing

__all__ = ["Hop", "RowHop"]


@dataclass(frozen=True, slots=True)
class Hop(Window):
    """A window on a grid of times: tumbling or hopping.

    Attributes:
        length: The length.
        every: The slide: the distance from one window to the next.
        offset: How much later than the epoch a window begins, the shift of weeks to
            Mondays included; None for not at all.
        closed: The end that belongs to it: "left" or "right".
        written: Its label: the length, with the slide if it has one of its own.
    """

    length: Length
    every: Length
    offset: Length | None
    closed: str
    written: str

    per_row: ClassVar[bool] = False
    on_grid: ClassVar[bool] = True
    heading: ClassVar[str] = "hopping"

    @property
    def label(self) -> str:
        """As the user wrote it."""
        return self.written

    @property
    def interval(self) -> str:
        """Its ends, in the notation of intervals."""
        left, right = ("[", ")") if self.closed == "left" else ("(", "]")
        length = self.length.label
        return f"{left}end − {length}, end{right}, every {self.every.label}"

    @property
    def explained(self) -> str:
        """How many windows hold a row."""
        hops = self.length.amount / self.every.amount
        if hops <= 1:
            return "windows do not overlap; each is folded separately"
        return (
            f"{hops:g} windows per row: each is a range of rows whose ends move "
            "forward: one fold per row and one combine per window, as with panes"
        )

    @property
    def timed(self) -> Length:
        """The length."""
        return self.length

    def span(self, ticks: Ticks) -> Span:
        """The length; the offset moves the grid, not its end."""
        return Span("time", ticks(self.length), self.closed)

    @property
    def includes_start(self) -> bool:
        """By `closed`."""
        return self.closed == "left"

    def grid(self, ticks: Ticks) -> tuple[int, int, int]:
        """By length, slide and offset."""
        every = ticks(self.every)
        start = 0 if self.offset is None else ticks(self.offset)
        return ticks(self.length), every, start % every

    def open_until(self, ticks: Ticks) -> int:
        """Windows that hold no later time than the latest are closed."""
        return 0 if self.closed == "left" else 1

    def find(self, finder: Finder) -> Any:
        """By the grid."""
        return finder.hops(self)

    def as_query(self) -> Trailing:
        """A window of its length: (end − length, end]."""
        return Trailing(self.length)


@dataclass(frozen=True, slots=True)
class RowHop(Window):
    """A window that every n-th row of a key ends.

    Attributes:
        length: The length, of time or of rows.
        every_rows: The slide, in rows.
        written: Its label: the length, with the slide if it has one of its own.
    """

    length: Length
    every_rows: int
    written: str

    per_row: ClassVar[bool] = False
    by_position: ClassVar[bool] = True
    chained: ClassVar[bool] = True
    heading: ClassVar[str] = "hopping"

    @property
    def label(self) -> str:
        """As the user wrote it."""
        return self.written

    @property
    def interval(self) -> str:
        """Its rows or its ends, and how often there is one."""
        return f"{self.as_query().interval}, after every {self.every_rows} rows"

    @property
    def explained(self) -> str:
        """How many rows lie between windows."""
        return f"one window per {self.every_rows} rows of a key"

    @property
    def timed(self) -> Length | None:
        """The length, if it is of time."""
        return None if self.rows else self.length

    @property
    def rows(self) -> int:
        """The length, if it is of rows."""
        return self.length.amount if self.length.kind == "rows" else 0

    @property
    def slide_rows(self) -> int:
        """The slide."""
        return self.every_rows

    def starts(self, order: Order) -> Any:
        """Back by the length."""
        if self.rows:
            return order.starts_by_rows(self.rows)
        return order.starts_by_time(self.length)

    def ends(self, order: Order) -> Any:
        """Every n-th row of a key."""
        return order.every(self.every_rows)

    def as_query(self) -> Trailing | RowCount:
        """A window of its length."""
        return RowCount(self.rows) if self.rows else Trailing(self.length)

    def __repr__(self) -> str:
        length = Rows(self.rows) if self.rows else self.length.given.value
        return f"{length!r} every rows({self.every_rows})"
