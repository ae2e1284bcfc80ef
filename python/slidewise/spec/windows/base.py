"""`Window`: what engines ask a window about itself.

Each kind of window is a class in a file of this package. Engines ask for properties and
call methods, never for the kind, so a new kind is a new file. A window knows no table:
it states its kernel, its starts and its ends by calls of what an engine passes.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

from slidewise.aggregations import Aggregation
from slidewise.errors import Argument, SpecError
from slidewise.spec.durations import Length

__all__ = [
    "EXPLAINED",
    "ColumnTicks",
    "Finder",
    "Order",
    "QueryTicks",
    "Slide",
    "Span",
    "Ticks",
    "Window",
    "does_not_apply",
]

# The amount of a length in the ticks of a column of times.
Ticks: TypeAlias = Callable[[Length], int]


class ColumnTicks(Protocol):
    """`Ticks`, and the zone of the column of times; None without one."""

    @property
    def zone(self) -> str | None:
        """The zone; None without one."""

    def __call__(self, length: Length) -> int:
        """A length in ticks."""


# "time" or "rows", and the amount.
Slide: TypeAlias = tuple[str, int]
EXPLAINED = "every row's window is found once, for all aggregations"


class Span(NamedTuple):
    """The range of a window before a row or query point, as the kernels take it.

    Attributes:
        kind: "time", "rows", "unbounded" or "calendar".
        length: Its ticks or rows; the most that it can have, if that varies.
        closed: "right", "left", "both" or "neither".
        offset: By how many ticks it is moved back.
        calendar: The calendar that gives its start.
    """

    kind: str
    length: int
    closed: str
    offset: int = 0
    calendar: Any = None


class QueryTicks(NamedTuple):
    """A query as the core takes it.

    Attributes:
        kind: The kind of its windows: "time", "rows", "time_by_rows", "session",
            "until", "landmark_time" or "landmark_rows".
        range: The length or gap, in ticks or rows.
        slide: The slide, in ticks or rows.
        flag: The number of the flag.
    """

    kind: str
    range: int
    slide: int
    flag: int = 0


class Order(Protocol):
    """Rows in order of key and time, numbered by position.

    Methods give an array of positions: where the window begins that ends at each row,
    or of the rows that end a window.
    """

    @property
    def numbers(self) -> Any:
        """The positions in turn."""

    @property
    def before_peers(self) -> Any:
        """The last position of an earlier time than each."""

    def up_to(self, *, own: bool) -> Any:
        """Each position; without its `own`, the one before it."""

    def rows_before(self, last: Any, count: int, skipped: int) -> tuple[Any, Any]:
        """Starts and ends of some rows, which end so many before `last`."""

    def starts_at_flags(self, column: str, kind: str) -> Any:
        """Starts by flags: "landmark", "until" or "open"."""

    def starts_by_rows(self, count: int) -> Any:
        """Starts of windows of a number of rows."""

    def starts_by_time(self, length: Length) -> Any:
        """Starts of windows of a length of time."""

    def starts_by_delta(self, column: str, width: Length) -> Any:
        """Starts of windows of values that are near."""

    def by_lengths(self, column: str) -> tuple[Any, Any]:
        """Starts and ends of windows whose lengths a column gives."""

    def since_lengths(self, column: str) -> Any:
        """The times, by row, at which these windows start; None for numbers of rows."""

    def missing(self, column: str) -> Any:
        """A mask of the rows of the table without a value; None if all have one."""

    def flagged(self, column: str) -> Any:
        """The rows with a flag."""

    def every(self, count: int) -> Any:
        """Every row of a key whose number is a multiple of a count."""


class Finder(Protocol):
    """Finds the windows of `hopping` in a table."""

    def hops(self, window: Any) -> Any:
        """The windows of a grid."""

    def units(self, window: Any) -> Any:
        """The units of a calendar."""

    def sessions(self, gap: Length) -> Any:
        """The windows between gaps."""

    def closed_by_rows(self, window: Any) -> Any:
        """The windows by position."""


class Window:
    """One window of a `Spec`: the rows that a result is computed from.

    Attributes:
        per_row: Whether there is one per row, as in `rolling`, not one per slide.
        by_position: Whether its ends are rows, and so may lie among rows of equal time.
        by_calendar: Whether its length depends on its time.
        on_grid: Whether its ends are on a grid of times.
        chained: Whether its ends depend on earlier rows than its own.
        leaves_whole: Whether its rows leave together, when it is emitted.
        needs_row: Whether it is measured from a value of the row that it ends with.
        heading: The word before its label where a call is described.
        keys: The keys of its mapping in documents, the identifying key first.
        form: Its form on the command line: the first key, then a word per value.
    """

    __slots__ = ()

    per_row: ClassVar[bool] = True
    by_position: ClassVar[bool] = False
    by_calendar: ClassVar[bool] = False
    on_grid: ClassVar[bool] = False
    chained: ClassVar[bool] = False
    leaves_whole: ClassVar[bool] = False
    needs_row: ClassVar[bool] = False
    heading: ClassVar[str] = "rolling"
    keys: ClassVar[tuple[str, ...]] = ()
    form: ClassVar[str] = ""

    @property
    def label(self) -> str:
        """Its length as the user wrote it; the suffix of result columns' names."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Its name in the column `window` of `hopping`."""
        return self.label

    @property
    def interval(self) -> str:
        """Its rows, in a few words."""
        raise NotImplementedError

    @property
    def explained(self) -> str:
        """How tables compute it, in a few words."""
        return EXPLAINED

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that its ends depend on, besides times and keys."""
        return ()

    @property
    def timed(self) -> Length | None:
        """Its length of time, or its gap; None if it has none."""
        return None

    @property
    def rows(self) -> int:
        """The number of rows that it reaches back; 0 if it has none."""
        return 0

    @property
    def behind(self) -> int:
        """How many rows earlier it ends."""
        return 0

    @property
    def slide_rows(self) -> int:
        """The number of rows from one window to the next; 0 if not by rows."""
        return 0

    @property
    def lag(self) -> Length | None:
        """How much earlier than its row it ends; None for not at all."""
        return None

    @property
    def begins_at_time(self) -> bool:
        """Whether its start is a time, at which it need not have a row."""
        has_length = self.timed is not None and (self.per_row or self.by_position)
        return self.on_grid or self.by_calendar or has_length

    @property
    def includes_start(self) -> bool:
        """Whether the time of its start belongs to it."""
        return False

    @property
    def includes_end(self) -> bool:
        """Whether the time of its end belongs to it."""
        return True

    @property
    def needs_edge(self) -> bool:
        """Whether a query needs rows one step before its reach, at one of its ends."""
        at_end = bool(self.rows) and not self.includes_end
        return self.per_row and (self.includes_start or at_end)

    @property
    def holds_its_row(self) -> bool:
        """Whether it always holds the row that it ends with."""
        return True

    def span(self, ticks: ColumnTicks) -> Span:
        """Its range for kernels. By position, its start is found beforehand."""
        return Span("time", 1, "both")

    def reach(self, ticks: Ticks) -> int:
        """The distance from a row back to the start of its window; 0 without length."""
        found = 0 if self.timed is None else ticks(self.timed)
        return found if self.lag is None else found + ticks(self.lag)

    def cells(self, ticks: Ticks) -> Any:
        """The cells of a grid whose rows leave together; None if each leaves alone."""
        return None

    def cell_grid(self, ticks: Ticks) -> tuple[int, int] | None:
        """The length of equally long cells, and a point between two; or None."""
        return None

    def grid(self, ticks: Ticks) -> tuple[int, int, int]:
        """Length, slide and a start of the windows of a grid."""
        raise NotImplementedError

    def units(self, ticks: ColumnTicks) -> Any:
        """The calendar whose units are the windows; None for those of one length."""
        return None

    def slide(self, ticks: Ticks) -> int | None:
        """The distance between the ends of windows of a unit; None if it has one."""
        return None

    def open_until(self, ticks: Ticks) -> int:
        """How far before the latest row of a key its windows may still end."""
        return self.reach(ticks) + 1

    def starts(self, order: Order) -> Any:
        """The position at which the window begins that ends at each position."""
        raise NotImplementedError

    def bounds(self, order: Order, *, own: bool) -> tuple[Any, Any]:
        """The first and last position of each window, with the `own` row or not."""
        return self.starts(order), order.up_to(own=own)

    def ends(self, order: Order) -> Any:
        """The positions at which windows end, if these are not one per row."""
        raise NotImplementedError

    def find(self, finder: Finder) -> Any:
        """The windows of a table, if these are not one per row."""
        return finder.closed_by_rows(self)

    def as_query(self) -> "Window":
        """The window of a query, which ends at any time.

        Raises:
            SpecError: If a query cannot end it.
        """
        return self

    def with_length(self, length: Length) -> "Window":
        """A window of a query with another length, and with its ends and offset."""
        raise NotImplementedError

    def with_row(self) -> "Window":
        """The window of a query that ends with a row of its own."""
        return self

    def closed_by(self, closed: str) -> "Window":
        """The window with other ends, as `closed=` names them."""
        raise does_not_apply(Argument("closed", closed), Argument("windows", self))

    def check_aggregation(self, agg: Aggregation) -> None:
        """Refuses an aggregation that does not go with it."""

    def since(self, order: Order) -> Any:
        """The time, by row, at which the window starts; None if it begins at a row."""
        return None

    def missing(self, order: Order) -> Any:
        """A mask of the rows whose results are null, whatever they hold; or None."""
        return None

    def check_exclude(self, given: Argument) -> None:
        """Refuses windows that leave their own row out, if it has none such."""

    def check_stream(self) -> None:
        """Refuses a stream, if it is for tables alone."""

    def check_at(self, given: Argument) -> None:
        """Refuses an argument by which it would not end at a row, where it must."""

    def check_expiry(self, given: Argument) -> None:
        """Refuses an argument that asks when its rows leave, if that is not known."""

    def check_keep(self, keep: Length) -> None:
        """Refuses a `keep=` that does not go with it."""
        length = self.timed
        if length is None:
            return
        if length.kind != keep.kind:
            raise SpecError(
                keep.given,
                f" and the window {length.shown} differ in kind: give both as "
                "durations, or both as ints for an integer time column",
            )
        needed = length.amount + (0 if self.lag is None else self.lag.amount)
        if keep.amount < needed:
            behind = " with its offset" if needed != length.amount else ""
            raise SpecError(
                keep.given,
                f" is shorter than the window {length.shown}{behind}, whose rows are "
                "kept anyway: leave it out, or give more",
            )

    @property
    def due(self) -> str:
        """When a query of it is answered in a `SharedWindow`, in a few words."""
        raise NotImplementedError

    def check_slide(self, every: Length | None) -> None:
        """Checks the slide of a `Query` of it.

        Raises:
            SpecError: If it is missing, does not apply, or there is no such query.
        """
        raise SpecError(f"{self!r} is not a window of a query")

    def schedule(self, ticks: Ticks, slide: Slide, flag: int) -> QueryTicks:
        """A `Query` of it, as the core takes it."""
        raise NotImplementedError

    @property
    def document(self) -> dict[str, Any]:
        """Its mapping in documents."""
        raise NotImplementedError

    @classmethod
    def of_document(cls, given: Mapping[str, Any]) -> Self:
        """The window of such a mapping."""
        raise NotImplementedError


def does_not_apply(given: Argument, window: Argument | str) -> SpecError:
    """The refusal of an argument beside a window."""
    return SpecError(
        given,
        " does not apply to ",
        window,
        ": leave ",
        Argument(given.name),
        " out, or give that window in a separate call",
    )
