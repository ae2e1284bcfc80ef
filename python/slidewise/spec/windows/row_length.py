"""`RowLength`: windows whose length is in a column."""

from dataclasses import dataclass
from typing import Any, ClassVar

from slidewise.errors import Argument, SpecError
from slidewise.spec.windows.base import Order, Window, does_not_apply
from slidewise.spec.windows.of_column import OfColumn, column_of_call

__all__ = ["RowLength", "length"]


@dataclass(frozen=True, slots=True, repr=False)
class RowLength(OfColumn):
    """A window whose length each row gives. Made by `length`."""

    needs_row: ClassVar[bool] = True
    keys: ClassVar[tuple[str, ...]] = ("length",)
    form: ClassVar[str] = "length:COLUMN"

    @property
    def interval(self) -> str:
        """Its ends, in the notation of intervals."""
        return f"(t − {self.column}, t], or the last {self.column} rows"

    @property
    def explained(self) -> str:
        """By the column."""
        return f"its start is found by {self.column!r} of each row"

    @property
    def holds_its_row(self) -> bool:
        """Not where the length is zero."""
        return False

    def bounds(self, order: Order, *, own: bool) -> tuple[Any, Any]:
        """By the lengths; a Spec refuses windows without their `own` row."""
        return order.by_lengths(self.column)

    @property
    def begins_at_time(self) -> bool:
        """Where its column has lengths of time."""
        return True

    def since(self, order: Order) -> Any:
        """The time of the row less its length, if this is one of time."""
        return order.since_lengths(self.column)

    def missing(self, order: Order) -> Any:
        """The rows without a length."""
        return order.missing(self.column)

    def as_query(self) -> Window:
        """Refused."""
        raise self._only_rows()

    def check_at(self, given: Argument) -> None:
        """Refused."""
        raise does_not_apply(
            given, f"the window {self!r}, whose length is in a column of rows"
        )

    def check_exclude(self, given: Argument) -> None:
        """Refused."""
        raise does_not_apply(given, f"the window {self!r}")

    def check_stream(self) -> None:
        """Refused: any row may be in the window of a later one."""
        raise self._only_rows()

    def _only_rows(self) -> SpecError:
        return SpecError(
            f"the window {self!r} is for tables, as a stream does not know how long it "
            "has to keep rows: call rolling, or give windows of a length"
        )


def length(column: str) -> RowLength:
    """A length per row, from a column: for `rolling` over tables, and Spark in batch.

    The window of a row at time t is (t − length, t] for a column of durations, and for
    integers beside integer times; beside other times integers are a number of rows, the
    row itself included. With a length of zero it is empty. A row without a length has
    null for all results, counts included.

    Args:
        column: The column of lengths, none below zero.

    Returns:
        A window for `windows=`.

    Raises:
        SpecError: If `column` is not the name of a column.

    Cost: O(n log n) to find the starts. Where some go back from row to row, O(log n)
    combines per row, and for quantiles, modes and distinct counts O(d) for d rows
    between a window and the next.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = pa.table({"t": [1, 4, 5, 9], "w": [1, 4, None, 5]})
        >>> out = sw.rolling(trips, on="t", windows=sw.length("w"),
        ...                  aggs={"n": sw.count()})
        >>> out["n_length_w"].to_pylist()
        [1, 2, None, 2]
    """
    return RowLength(column_of_call(column, "length"))
