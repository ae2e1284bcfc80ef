"""`Unbounded`: everything up to a row."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from slidewise.errors import SpecError
from slidewise.spec.arguments import one_of
from slidewise.spec.windows.base import ColumnTicks, Span, Ticks, Window

__all__ = ["Unbounded", "unbounded"]


@dataclass(frozen=True, slots=True)
class Unbounded(Window):
    """A window from the first row of a key to a row. Made by `unbounded`.

    Attributes:
        closed: Whether the time of its end belongs to it: "right" or "left".
    """

    closed: str = "right"

    keys: ClassVar[tuple[str, ...]] = ("unbounded",)
    form: ClassVar[str] = "unbounded"

    @property
    def label(self) -> str:
        """A word."""
        return "unbounded"

    @property
    def interval(self) -> str:
        """Its rows."""
        return "all rows up to this one"

    @property
    def includes_end(self) -> bool:
        """By `closed`."""
        return self.closed == "right"

    @property
    def holds_its_row(self) -> bool:
        """If it ends with its row."""
        return self.includes_end

    def span(self, ticks: ColumnTicks) -> Span:
        """Without a start."""
        return Span("unbounded", self.reach(ticks), self.closed)

    def reach(self, ticks: Ticks) -> int:
        """The largest int64."""
        return 2**63 - 1

    def closed_by(self, closed: str) -> Self:
        """The window with another end."""
        one_of(closed, "closed", ("right", "left"))
        return type(self)(closed)

    @property
    def document(self) -> dict[str, Any]:
        """A flag."""
        return {"unbounded": True}

    @classmethod
    def of_document(cls, given: Mapping[str, Any]) -> Self:
        """By the flag."""
        if given["unbounded"] is not True:
            raise SpecError(f"unbounded is true, got {given['unbounded']!r}")
        return cls()

    def __repr__(self) -> str:
        return "unbounded()"


def unbounded() -> Unbounded:
    """Everything of a key up to a row: for `rolling` and streams.

    Returns:
        A window for `windows=`, beside windows of a length.

    Cost: O(1) per row. A stream keeps all rows of each key.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> table = pa.table({"t": [1, 5, 9], "x": [1, 2, 3]})
        >>> out = sw.rolling(table, on="t", windows=sw.unbounded(),
        ...                  aggs={"s": sw.sum("x")})
        >>> out["s_unbounded"].to_pylist()
        [1, 3, 6]
    """
    return Unbounded()
