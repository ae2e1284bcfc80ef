"""`Trailing`: the rows of a length of time up to a row."""

from dataclasses import dataclass

from slidewise.spec.durations import Length
from slidewise.spec.windows.base import EXPLAINED, ColumnTicks, Span, Window

__all__ = ["Trailing"]


@dataclass(frozen=True, slots=True)
class Trailing(Window):
    """A window of a length of time that ends at a row, or earlier by an offset.

    Attributes:
        length: The length.
        closed: The ends that belong to it: "right", "left", "both" or "neither".
        offset: How much earlier than its row it ends; None for not at all.
    """

    length: Length
    closed: str = "right"
    offset: Length | None = None

    @property
    def label(self) -> str:
        """The length as the user wrote it."""
        return self.length.label

    @property
    def interval(self) -> str:
        """Its ends, in the notation of intervals."""
        left = "[" if self.includes_start else "("
        right = "]" if self.includes_end else ")"
        return f"{left}t − {self.label}, t{right}"

    @property
    def explained(self) -> str:
        """Another word if it ends before its row."""
        if self.offset is None:
            return EXPLAINED
        return (
            "windows that end earlier than their row are ranges of rows, found once, "
            "for all aggregations"
        )

    @property
    def timed(self) -> Length:
        """The length."""
        return self.length

    @property
    def lag(self) -> Length | None:
        """The offset."""
        return self.offset

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
        return self.offset is None and self.includes_end

    def with_length(self, length: Length) -> "Trailing":
        """With its ends and offset."""
        return Trailing(length, self.closed, self.offset)

    def span(self, ticks: ColumnTicks) -> Span:
        """The length and the offset."""
        shift = 0 if self.offset is None else ticks(self.offset)
        return Span("time", ticks(self.length), self.closed, shift)
