"""`Resolved`: the rows of a length of time, which leave cell by cell of a grid."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import slidewise._core as _core
from slidewise.aggregations import Aggregation
from slidewise.errors import Argument, SpecError
from slidewise.hints import readable
from slidewise.spec.arguments import one_of
from slidewise.spec.durations import (
    DurationLike,
    Length,
    monday_shift,
    parse_length,
    parse_offset,
)
from slidewise.spec.windows.base import ColumnTicks, Span, Ticks, Window, does_not_apply

__all__ = ["Resolved", "trailing"]


@dataclass(frozen=True, slots=True, repr=False)
class Resolved(Window):
    """A window of at least a length, whose start lies on a grid. Made by `trailing`.

    Attributes:
        length: The length.
        resolution: The distance of two points of the grid.
        offset: A point of the grid; None for the epoch, or for weeks a Monday.
        closed: As for a window of a length.
    """

    length: Length
    resolution: Length
    offset: Length | None = None
    closed: str = "right"

    by_calendar: ClassVar[bool] = True
    keys: ClassVar[tuple[str, ...]] = ("trailing", "resolution", "offset")
    form: ClassVar[str] = "trailing:LENGTH:RESOLUTION[:OFFSET]"

    @property
    def label(self) -> str:
        """With the length and the resolution."""
        return f"trailing_{self.length.label}_{self.resolution.label}"

    @property
    def interval(self) -> str:
        """Its ends, in the notation of intervals."""
        left = "[" if self.includes_start else "("
        right = "]" if self.includes_end else ")"
        grid = f"multiples of {self.resolution.label}"
        return f"{left}t − {self.length.label} down to {grid}, t{right}"

    @property
    def explained(self) -> str:
        """By the grid."""
        cell = self.resolution.label
        return f"starts lie on a grid: rows of one cell of {cell} leave together"

    @property
    def timed(self) -> Length:
        """The length."""
        return self.length

    @property
    def includes_start(self) -> bool:
        """By `closed`."""
        return self.closed in ("left", "both")

    @property
    def includes_end(self) -> bool:
        """By `closed`."""
        return self.closed in ("right", "both")

    @property
    def holds_its_row(self) -> bool:
        """If it ends with its row."""
        return self.includes_end

    def reach(self, ticks: Ticks) -> int:
        """The most that a window can have."""
        return ticks(self.length) + ticks(self.resolution) - 1

    def span(self, ticks: ColumnTicks) -> Span:
        """Its start lies on the grid."""
        calendar = self._grid(ticks, ticks(self.length))
        return Span("calendar", self.reach(ticks), self.closed, calendar=calendar)

    def cells(self, ticks: Ticks) -> Any:
        """The cells of the grid."""
        return self._grid(ticks, 0)

    def cell_grid(self, ticks: Ticks) -> tuple[int, int]:
        """The resolution, and the offset."""
        cell = self.resolution
        if self.offset is not None:
            return ticks(cell), ticks(self.offset)
        return ticks(cell), monday_shift(cell, cell) * ticks(cell) // cell.amount

    def _grid(self, ticks: Ticks, length: int) -> _core.Calendar:
        return _grid(*self.cell_grid(ticks), length)

    def with_length(self, length: Length) -> "Resolved":
        """With its grid and ends."""
        return Resolved(length, self.resolution, self.offset, self.closed)

    def closed_by(self, closed: str) -> Self:
        """The window with other ends."""
        one_of(closed, "closed", ("right", "left", "both", "neither"))
        return type(self)(self.length, self.resolution, self.offset, closed)

    def check_aggregation(self, agg: Aggregation) -> None:
        """Refuses what has no partial of a cell."""
        if agg.record.group == "holistic":
            raise SpecError(
                f"{agg!r} has no partial of bounded size, so it does not go with the ",
                Argument("resolution", self.resolution.plain),
                f" of the window {self!r}: give it a window of its own without one, by "
                f"windows={self.length.shown}, or use a sketch",
            )

    def check_expiry(self, given: Argument) -> None:
        """Refused for a result: rows leave together, which may leave it as it is."""
        if given.name != "emit":
            raise does_not_apply(
                given, f"the window {self!r}, whose rows leave cell by cell"
            )

    @property
    def document(self) -> dict[str, Any]:
        """The arguments, without defaults."""
        given = {"trailing": self.length.plain, "resolution": self.resolution.plain}
        return given | ({} if self.offset is None else {"offset": self.offset.plain})

    @classmethod
    def of_document(cls, given: Mapping[str, Any]) -> Self:
        """By the function."""
        length, resolution, offset = (given.get(key) for key in cls.keys)
        made = trailing(length, resolution=resolution, offset=offset)  # type: ignore[arg-type]
        return cls(made.length, made.resolution, made.offset)

    def __repr__(self) -> str:
        others = "" if self.offset is None else f", offset={self.offset.shown}"
        resolution = self.resolution.shown
        return f"trailing({self.length.shown}, resolution={resolution}{others})"


@lru_cache(maxsize=256)
def _grid(every: int, offset: int, length: int) -> _core.Calendar:
    """The grid of the core, whose memory is never freed."""
    return _core.Calendar.on_grid(every, offset, length)


@readable
def trailing(
    length: DurationLike,
    *,
    resolution: DurationLike | None = None,
    offset: DurationLike | None = None,
) -> Resolved:
    """A length of time whose start lies on a grid: for `rolling` and streams.

    The window of a row at time t is (s, t], where s is the last point of the grid at or
    before t − length. So rows leave together, those of a cell at a time, and a result
    changes less often. This is a definition: tables, streams and queries give the same.
    An aggregation without a partial of bounded size, such as `median`, is refused.

    Args:
        length: The least length: a duration such as `"30d"`, or an int in the units of
            integer times.
        resolution: The distance of two points of the grid, of the same kind.
        offset: A point of the grid; by default the epoch, in UTC, and for weeks a
            Monday.

    Returns:
        A window for `windows=`, beside windows of a length.

    Raises:
        SpecError: If one is not such a length, or there is no resolution.

    Cost: as a window of a length.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [3, 9, 14, 16]})
        >>> out = sw.rolling(table, on="t", aggs={"n": sw.count()},
        ...                  windows=[5, sw.trailing(5, resolution=10)])
        >>> out["n_5"].to_pylist(), out["n_trailing_5_10"].to_pylist()
        ([1, 1, 1, 2], [1, 2, 3, 2])
    """
    made = parse_length(length, "length")
    if resolution is None:
        raise SpecError(
            "trailing() needs resolution=: give it, or the length by itself as a "
            f"window, such as windows={length!r}"
        )
    cell = parse_length(resolution, "resolution")
    start = None if offset is None else parse_offset(offset)
    for other in (cell, start):
        if other is not None and (other.kind != made.kind or other.kind == "rows"):
            raise SpecError(
                other.given,
                f" and the length {made.shown} differ in kind: give both as durations, "
                "or both as ints for an integer time column",
            )
    return Resolved(made, cell, start)
