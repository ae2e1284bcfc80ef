"""`Until`: windows that a flag closes, and `Open`, the one that none has closed yet."""

from dataclasses import dataclass
from typing import Any, ClassVar

from slidewise.errors import SpecError
from slidewise.spec.durations import Length
from slidewise.spec.windows.base import Order, QueryTicks, Slide, Ticks, Window
from slidewise.spec.windows.of_column import OfColumn, column_of_call

__all__ = ["Open", "Until", "until"]


@dataclass(frozen=True, slots=True, repr=False)
class Until(OfColumn):
    """Windows that a row with a flag closes. Made by `until`."""

    per_row: ClassVar[bool] = False
    leaves_whole: ClassVar[bool] = True
    heading: ClassVar[str] = "hopping"
    keys: ClassVar[tuple[str, ...]] = ("until",)
    form: ClassVar[str] = "until:COLUMN"

    @property
    def interval(self) -> str:
        """Its last row."""
        return f"up to a row where {self.column!r} is true"

    @property
    def explained(self) -> str:
        """By the flag."""
        return f"a row where {self.column!r} is true closes a window"

    def starts(self, order: Order) -> Any:
        """After the flag before."""
        return order.starts_at_flags(self.column, "until")

    def ends(self, order: Order) -> Any:
        """The rows with a flag."""
        return order.flagged(self.column)

    def as_query(self) -> Window:
        """The window that no flag has closed yet."""
        return Open(self.column)

    def check_keep(self, keep: Length) -> None:
        """Refused: rows leave with their window."""
        raise SpecError(
            keep.given, f" does not apply to the window {self!r}: leave it out"
        )

    @property
    def due(self) -> str:
        """By the flag."""
        return "due with the entry whose flag is true"

    def check_slide(self, every: Length | None) -> None:
        """It has none."""
        if every is not None:
            raise SpecError(f"every= does not apply to {self!r}: leave it out")

    def schedule(self, ticks: Ticks, slide: Slide, flag: int) -> QueryTicks:
        """The flag."""
        return QueryTicks("until", 1, 1, flag)


@dataclass(frozen=True, slots=True, repr=False)
class Open(OfColumn):
    """The rows since the last row with a flag: what a query of `Until` answers."""

    keys: ClassVar[tuple[str, ...]] = ("until",)
    leaves_whole: ClassVar[bool] = True

    def starts(self, order: Order) -> Any:
        """After the last flag, also if it is the row's own."""
        return order.starts_at_flags(self.column, "open")

    def with_row(self) -> Until:
        """The row of a query belongs to the window that it closes."""
        return Until(self.column)


def until(flag: str) -> Until:
    """Windows that rows close: for `hopping`, streams, and a `Query`.

    A row whose `flag` is true is the last one of its window; the next row (of the same
    key) begins another. Null is not true. Rows are in order of time, those of equal
    time as in the table. In `KeyedWindows` and streaming DataFrames these are in order
    of arrival or `then_by`, and a window is emitted when the watermark passes its last
    row.

    Args:
        flag: The column of booleans.

    Returns:
        A window for `window=` or `Query`.

    Raises:
        SpecError: If `flag` is not the name of a column.

    Source: punctuation, in Tangwongsan et al., PVLDB 8(7), 2015, §2.2.

    Cost: O(1).

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = pa.table({"t": [1, 2, 5, 6], "paid": [False, True, True, False]})
        >>> out = sw.hopping(trips, on="t", window=sw.until("paid"),
        ...                  aggs={"n": sw.count()})
        >>> out["window_end"].to_pylist(), out["n"].to_pylist()
        ([2, 5], [2, 1])
    """
    return Until(column_of_call(flag, "until"))
