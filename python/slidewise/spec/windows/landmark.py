"""`Landmark`: everything since a flag."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from slidewise.errors import SpecError
from slidewise.spec.durations import Length
from slidewise.spec.windows.base import (
    Order,
    QueryTicks,
    Slide,
    Ticks,
    Window,
    flag_name,
)

__all__ = ["Landmark", "landmark"]


@dataclass(frozen=True, slots=True)
class Landmark(Window):
    """A window from the last row with a flag on. Made by `landmark`.

    Attributes:
        column: The column of flags.
    """

    column: str

    by_position: ClassVar[bool] = True
    chained: ClassVar[bool] = True
    keys: ClassVar[tuple[str, ...]] = ("landmark",)
    form: ClassVar[str] = "landmark:COLUMN"

    @property
    def label(self) -> str:
        """With the column."""
        return f"landmark_{self.column}"

    @property
    def interval(self) -> str:
        """Its first row."""
        return f"from the last row where {self.column!r} is true on"

    @property
    def explained(self) -> str:
        """By the flag."""
        return f"from the last row where {self.column!r} is true"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of flags."""
        return (self.column,)

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

    @property
    def document(self) -> dict[str, Any]:
        """The column."""
        return {"landmark": self.column}

    @classmethod
    def of_document(cls, given: Mapping[str, Any]) -> Self:
        """By `landmark`."""
        return cls(landmark(given["landmark"]).column)

    def __repr__(self) -> str:
        return f"landmark({self.column!r})"


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
    return Landmark(flag_name(flag, "landmark"))
