"""The windows of a specification, parsed to records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from slidewise.aggregations.scalars import BYTES
from slidewise.errors import Argument, SpecError
from slidewise.spec.arguments import one_of, refuse_duplicates
from slidewise.spec.data_driven import Delta, Landmark, Until
from slidewise.spec.durations import (
    Length,
    Rows,
    Session,
    WindowLike,
    format_duration,
    monday_shift,
    parse_length,
    parse_offset,
)
from slidewise.spec.query import Query

__all__ = [
    "CLOSED",
    "HoppingLike",
    "RollingLike",
    "WindowSpec",
    "are_hopping",
    "hopping_windows",
    "parse_lengths",
    "refuse_by_position",
    "refuse_delta",
    "rolling_windows",
    "shown_length",
    "written",
]

CLOSED = ("right", "left", "both", "neither")
HOPPING_CLOSED = ("left", "right")

# A window of `rolling`, and one of `hopping`.
RollingLike: TypeAlias = WindowLike | Delta | Landmark
HoppingLike: TypeAlias = WindowLike | Session | Until


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """One window: the rows that a result is computed from.

    Attributes:
        kind: "time" (a duration), "integer" (in the units of an integer time column),
            "rows", or "session" and "session_integer", whose length is the gap; or of
            data-driven windows "until", "landmark", "delta" and "delta_time".
        length: In nanoseconds, units or rows; positive, but 0 of "until", "landmark"
            and "delta".
        every: The distance between hopping windows in the units of `length`; 0 for
            rolling windows, one per row, and for windows that slide by rows.
        offset: How much earlier a rolling window ends, or how much later than the epoch
            a hopping window begins: four days more than the user gave where weeks begin
            on Mondays. In the units of `length`.
        closed: The ends that belong to it: "right", "left", "both" or "neither".
        label: As the user wrote the length; the suffix of result columns' names.
        column: The column of a data-driven window.
        width: The width of "delta", as digits.
        every_rows: The number of rows from one window to the next, if windows slide by
            rows, else 0.
    """

    kind: str
    length: int
    every: int
    offset: int
    closed: str
    label: str
    column: str = ""
    width: str = ""
    every_rows: int = 0

    @property
    def as_length(self) -> Length:
        """The length."""
        alone = "gap" if self.is_session else "windows"
        argument = "window" if self.is_hop and not self.is_session else alone
        return self._in_units(self.length, argument, self.label)

    @property
    def as_every(self) -> Length:
        """The distance between hopping windows."""
        return self._in_units(self.every, "every")

    @property
    def as_offset(self) -> Length:
        """The offset."""
        return self._in_units(self.offset, "offset")

    @property
    def is_session(self) -> bool:
        """Whether it is a session window."""
        return self.kind.startswith("session")

    @property
    def is_hop(self) -> bool:
        """Whether it is a window of `hopping`, not one per row."""
        slides = self.every or self.every_rows
        return bool(slides or self.is_session or self.kind == "until")

    @property
    def name(self) -> str:
        """Its name in the column `window` of `hopping`."""
        return f"session_{self.label}" if self.is_session else self.label

    @property
    def by_position(self) -> bool:
        """Whether its ends are rows, and so may lie among rows of equal time."""
        return bool(self.column or self.every_rows)

    def _in_units(self, amount: int, argument: str, label: str = "") -> Length:
        units = {"session": "time", "session_integer": "integer", "delta_time": "time"}
        kind = units.get(self.kind, self.kind)
        written = format_duration(amount) if kind == "time" else str(amount)
        return Length(kind, amount, label or written, argument)


def parse_lengths(windows: WindowLike | Iterable[WindowLike]) -> list[Length]:
    """The lengths of `windows=`: one or several.

    Example:
        >>> [length.label for length in parse_lengths(["1h", Rows(3)])]
        ['1h', '3rows']
    """
    lengths = [parse_length(window, "windows") for window in _listed(windows)]
    if not lengths:
        raise SpecError(
            Argument("windows"),
            " is empty: give at least one, such as ",
            Argument("windows", "1h"),
        )
    return lengths


def _listed(windows: object) -> list[Any]:
    """The value of `windows=` as a list.

    Raises:
        SpecError: If it is a mapping or bytes: these iterate over other values.
    """
    if isinstance(windows, Mapping | BYTES):
        raise SpecError(
            Argument("windows"),
            " takes one length or a list of them, such as ['1h', '7d'], not "
            f"{'a mapping' if isinstance(windows, Mapping) else 'bytes'}; "
            f"got {windows!r}",
        )
    if isinstance(windows, str) or not isinstance(windows, Iterable):
        return [windows]
    return list(windows)


def rolling_windows(
    windows: RollingLike | Iterable[RollingLike],
    closed: str,
    offset: WindowLike | None,
) -> tuple[WindowSpec, ...]:
    """The windows of `rolling`.

    Example:
        >>> [window.label for window in rolling_windows(["1h", Rows(3)], "right", None)]
        ['1h', '3rows']
    """
    given = _listed(windows)
    if not given:
        parse_lengths(given)  # which refuses them
    return tuple(_rolling_window(one, closed, offset) for one in given)


def _rolling_window(
    window: RollingLike | HoppingLike | Query, closed: str, offset: WindowLike | None
) -> WindowSpec:
    if isinstance(window, Until | Session | Query):
        given = f"windows=[sw.{window!r}]"
        if not isinstance(window, Query):
            given = f"window=sw.{window!r}"
        raise SpecError(
            f"{window!r} is a window of hopping, not of rolling: give {given} to "
            "hopping"
        )
    if isinstance(window, Delta | Landmark):
        return _data_driven(window, closed, offset)
    length = parse_length(window, "windows")
    if length.kind == "rows" and closed != "right":
        rows = Argument("windows", Rows(length.amount))
        raise _does_not_apply(Argument("closed", closed), rows)
    return WindowSpec(
        length.kind,
        length.amount,
        0,
        _offset(offset, length),
        closed,
        length.label,
    )


def _data_driven(
    window: Delta | Landmark, closed: str, offset: WindowLike | None
) -> WindowSpec:
    given = Argument("windows", window)
    if closed != "right":
        raise _does_not_apply(Argument("closed", closed), given)
    if offset is not None and parse_offset(offset).amount:
        raise _does_not_apply(Argument("offset", offset), given)
    label, column = window.label, window.column
    if isinstance(window, Landmark):
        return WindowSpec("landmark", 0, 0, 0, "right", label, column)
    width = window.width
    if width.kind == "time":
        return WindowSpec("delta_time", width.amount, 0, 0, "right", label, column)
    return WindowSpec("delta", 0, 0, 0, "right", label, column, width.label)


def refuse_by_position(windows: Iterable[WindowSpec], given: Argument) -> None:
    """Refuses an argument beside windows that begin or end among equal times."""
    for window in windows:
        if window.by_position:
            raise _does_not_apply(given, f"the window {written(window)}")


def refuse_delta(windows: Iterable[WindowSpec], given: Argument) -> None:
    """Refuses an argument by which windows of `delta` would not end at a row."""
    for window in windows:
        if window.kind.startswith("delta"):
            raise _does_not_apply(
                given,
                f"the window {written(window)}, which is measured from the "
                f"{window.column!r} of a row",
            )


def _does_not_apply(given: Argument, window: Argument | str) -> SpecError:
    return SpecError(
        given,
        " does not apply to ",
        window,
        ": leave ",
        Argument(given.name),
        " out, or give that window in a separate call",
    )


def written(window: WindowSpec) -> str:
    """A window by position as in a call.

    Example:
        >>> written(*hopping_windows(Rows(5), None, None, None, False, None))
        'rows(5) every rows(5)'
    """
    if window.every_rows:
        length = window.as_length
        written = Rows(length.amount) if length.kind == "rows" else length.given.value
        return f"{written!r} every rows({window.every_rows})"
    if window.kind == "delta":
        return f"delta({window.column!r}, {window.width})"
    if window.kind == "delta_time":
        return f"delta({window.column!r}, {format_duration(window.length)!r})"
    return f"{window.kind}({window.column!r})"


def are_hopping(windows: object) -> bool:
    """Whether `windows=` are those of `hopping`, for any other arguments.

    Example:
        >>> are_hopping(["1h", Query("1h", every="5m")]), are_hopping(["1h", "1d"])
        (True, False)
    """
    if isinstance(windows, str | Mapping) or not isinstance(windows, Iterable):
        windows = [windows]
    return any(isinstance(one, Query | Session | Until) for one in windows)


def hopping_windows(
    window: HoppingLike | None,
    windows: Iterable[HoppingLike | Query] | None,
    every: WindowLike | None,
    offset: WindowLike | None,
    empty: bool,
    closed: str | None,
) -> tuple[WindowSpec, ...]:
    """The windows of `hopping`; the arguments are its own.

    Example:
        >>> windows = ["1h", Session(parse_length("5m"))]
        >>> made = hopping_windows(None, windows, None, None, False, None)
        >>> [window.name for window in made]
        ['1h', 'session_5m']
    """
    if closed is not None:
        one_of(closed, "closed", HOPPING_CLOSED)
    if (window is None) == (windows is None):
        raise SpecError(
            "hopping takes either ",
            Argument("window"),
            ", such as '1h', or ",
            Argument("windows"),
            ", such as ['1h', sw.Query('1d', every='1h')]",
            "" if window is None else "; both are given",
        )
    if isinstance(window, list | tuple):
        raise SpecError(
            Argument("window", window),
            " is a list: give several windows as ",
            Argument("windows"),
        )
    if window is not None:
        return (_hopping_window(window, every, offset, empty, closed),)
    found = []
    for one in _listed(windows):
        length: Any = one
        slide: WindowLike | Length | None = every
        if isinstance(one, Query):
            length, slide = one.window, one.slide
        made = _hopping_window(length, slide, offset, empty, closed, several=True)
        slides = isinstance(one, Query) and one.slide is not None
        found.append(replace(made, label=one.label) if slides else made)
    if not found:
        raise SpecError(Argument("windows"), " is empty: give at least one")
    refuse_duplicates([one.name for one in found], "the window {} is given twice")
    return tuple(found)


def _hopping_window(
    window: HoppingLike | Length,
    every: WindowLike | Length | None,
    offset: WindowLike | None,
    empty: bool,
    closed: str | None,
    *,
    several: bool = False,
) -> WindowSpec:
    if isinstance(window, Query):
        raise SpecError(
            Argument("window", window),
            " has a slide of its own: give it in ",
            Argument("windows"),
            ", or its range as ",
            Argument("window"),
            " and its slide as ",
            Argument("every"),
        )
    if isinstance(window, Delta | Landmark):
        raise SpecError(
            f"{window!r} is a window of rolling, one per row: give windows="
            f"sw.{window!r} to rolling"
        )
    no_grid = (("every", every), ("offset", offset), ("empty", empty))
    if isinstance(window, Session | Until):
        for argument, value in (*no_grid, ("closed", closed)):
            if value:
                others = argument == "every" and several
                raise SpecError(
                    Argument(argument),
                    f" does not apply to {window!r}: leave it out"
                    + (", and give other windows theirs by sw.Query" * others),
                )
    if isinstance(window, Until):
        return WindowSpec("until", 0, 0, 0, "both", window.label, window.column)
    if isinstance(window, Session):
        gap = window.gap
        kind = "session" if gap.kind == "time" else "session_integer"
        return WindowSpec(kind, gap.amount, 0, 0, "both", gap.label)
    length = parse_length(window, "window")
    step = length if every is None else parse_length(every, "every")
    if step.kind == "rows":
        for argument, value in (*no_grid[1:], ("closed", closed)):
            if value:
                raise SpecError(
                    Argument(argument),
                    " does not apply to windows that slide by rows: leave it out",
                )
        every_rows = min(step.amount, 2**63 - 1)
        return WindowSpec(
            length.kind, length.amount, 0, 0, "right", length.label, "", "", every_rows
        )
    if step.kind != length.kind:
        rows = length.kind == "rows"
        raise SpecError(
            Argument("window", Rows(length.amount) if rows else window),
            " and ",
            Argument("every", every),
            " differ in kind: a window of rows slides by rows"
            if rows
            else " differ in kind: give both as durations, or both as ints for an "
            "integer time column",
        )
    return WindowSpec(
        length.kind,
        length.amount,
        step.amount,
        _offset(offset, length) + monday_shift(length, step),
        closed or "left",
        length.label,
    )


def shown_length(length: Length | WindowSpec) -> str:
    """A length as in a call: text, or an int for integer times."""
    return length.label if length.kind == "integer" else repr(length.label)


def _offset(offset: WindowLike | None, length: Length) -> int:
    if offset is None:
        return 0
    shift = parse_offset(offset)
    if shift.amount == 0:
        return 0
    if length.kind == "rows":
        raise SpecError(
            Argument("offset", offset),
            " does not apply to ",
            Argument("windows", Rows(length.amount)),
            ": leave ",
            Argument("offset"),
            " out, or give the rows in a separate call",
        )
    if shift.kind != length.kind:
        raise SpecError(
            Argument("offset", offset),
            f" and the window {shown_length(length)} differ in kind: give both as "
            "durations, or both as ints for an integer time column",
        )
    return shift.amount
