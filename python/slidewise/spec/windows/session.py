"""`Session`: windows between gaps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from slidewise.errors import SpecError
from slidewise.hints import readable
from slidewise.spec.durations import EXAMPLES, DurationLike, Length, parse_length
from slidewise.spec.windows.base import Finder, QueryTicks, Slide, Ticks, Window

__all__ = ["Session", "session"]


@dataclass(frozen=True, slots=True)
class Session(Window):
    """Windows between gaps. Made by `session`.

    Attributes:
        gap: The longest time between two rows of a window.
    """

    gap: Length

    per_row: ClassVar[bool] = False
    chained: ClassVar[bool] = True
    leaves_whole: ClassVar[bool] = True
    heading: ClassVar[str] = "sessions with a gap of"
    keys: ClassVar[tuple[str, ...]] = ("session",)
    form: ClassVar[str] = "session:GAP"

    @property
    def label(self) -> str:
        """The gap as the user wrote it."""
        return self.gap.label

    @property
    def name(self) -> str:
        """With the gap."""
        return f"session_{self.label}"

    @property
    def interval(self) -> str:
        """Its rows."""
        return f"rows at most {self.label} apart"

    @property
    def explained(self) -> str:
        """By the gap."""
        return f"{self.interval} are a window"

    @property
    def timed(self) -> Length:
        """The gap."""
        return self.gap

    def find(self, finder: Finder) -> Any:
        """By the gap."""
        return finder.sessions(self.gap)

    def as_query(self) -> Window:
        """Refused."""
        raise SpecError(
            "a session has no length, so a query cannot end it at any time: ask for "
            "windows of a length, by KeyedWindows of their own"
        )

    def check_keep(self, keep: Length) -> None:
        """Refused: rows leave with their session."""
        raise SpecError(keep.given, " does not apply to sessions: leave it out")

    @property
    def due(self) -> str:
        """By the gap."""
        return f"due when no entry can come within {self.label}"

    def check_slide(self, every: Length | None) -> None:
        """It has none."""
        if every is not None:
            raise SpecError(f"every= does not apply to {self!r}: leave it out")

    def schedule(self, ticks: Ticks, slide: Slide, flag: int) -> QueryTicks:
        """The gap."""
        return QueryTicks("session", ticks(self.gap), 1)

    @property
    def document(self) -> dict[str, Any]:
        """The gap."""
        return {"session": self.gap.plain}

    @classmethod
    def of_document(cls, given: Mapping[str, Any]) -> Self:
        """By `session`."""
        return cls(session(given["session"]).gap)

    def __repr__(self) -> str:
        return f"session({self.gap.shown})"


@readable
def session(gap: DurationLike) -> Session:
    """Session windows, which end where a gap begins: of `hopping`, streams, `Query`.

    A row belongs to the session of the previous row (of the same key) if it comes at
    most `gap` later; otherwise it begins a new session.

    Args:
        gap: The longest time between two rows of a session: a duration such as `"30m"`,
            a `timedelta`, or an int in the units of an integer time column.

    Returns:
        A window for `window=` or `Query`.

    Raises:
        SpecError: If `gap` is not a positive length of time.

    Cost: O(1).

    Example:
        >>> import slidewise as sw
        >>> sw.session("30m")
        session('30m')
    """
    length = parse_length(gap, "gap")
    if length.kind == "rows":
        raise SpecError(f"session() takes a length of time, got {gap!r}: {EXAMPLES}")
    return Session(length)
