"""`Landmark`: everything since a flag."""

from dataclasses import dataclass
from typing import Any, ClassVar

from slidewise.errors import SpecError
from slidewise.spec.durations import Length
from slidewise.spec.windows.base import Order, QueryTicks, Slide, Ticks
from slidewise.spec.windows.of_column import OfColumn, column_of_call

__all__ = ["Landmark", "landmark"]


@dataclass(frozen=True, slots=True, repr=False)
class Landmark(OfColumn):
    """A window from the last row with a flag on. Made by `landmark`."""

    keys: ClassVar[tuple[str, ...]] = ("landmark",)
    form: ClassVar[str] = "landmark:COLUMN"

    @property
    def interval(self) -> str:
        """Its first row."""
        return f"from the last row where {self.column!r} is true on"

    @property
    def explained(self) -> str:
        """By the flag."""
        return f"from the last row where {self.column!r} is true"

    def starts(self, order: Order) -> Any:
        """The last flag."""
        return order.starts_at_flags(self.column, "landmark")

    @property
    def due(self) -> str:
        """By the flag."""
        return "from the last entry whose flag is true"

    def check_slide(self, every: Length | None) -> None:
        """It needs one."""
        if every is None:
            raise SpecError(f"a query of {self!r} needs every=, such as every='5m'")

    def schedule(self, ticks: Ticks, slide: Slide, flag: int) -> QueryTicks:
        """The slide and the flag."""
        kind, amount = slide
        return QueryTicks(f"landmark_{kind}", amount, amount, flag)


def landmark(flag: str) -> Landmark:
    """Everything since the last landmark: for `rolling`, and for a `Query`.

    The window of a row begins with the last row (of the same key) whose `flag` is true,
    that row included, and ends with the row itself. Before the first landmark it begins
    with the first row. Null is not true. Rows are in order of time, those of equal time
    as in the table. Streams answer with `emit="final"`, and keep the rows of each key
    from its last landmark on.

    Args:
        flag: The column of booleans.

    Returns:
        A window for `windows=` or `Query`.

    Raises:
        SpecError: If `flag` is not the name of a column.

    Source: landmark windows, in Gehrke, Korn, Srivastava: On Computing Correlated
    Aggregates over Continual Data Streams, SIGMOD 2001.

    Cost: O(1).

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> meter = pa.table({"t": [1, 2, 5], "reset": [False, True, None]})
        >>> out = sw.rolling(meter, on="t", windows=sw.landmark("reset"),
        ...                  aggs={"n": sw.count()})
        >>> out["n_landmark_reset"].to_pylist()
        [1, 1, 2]
    """
    return Landmark(column_of_call(flag, "landmark"))
