"""Parses the windows of a call, with `every=`, `closed=` and `offset=`."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from slidewise.aggregations.scalars import BYTES
from slidewise.errors import Argument, SpecError
from slidewise.spec.arguments import one_of, refuse_duplicates
from slidewise.spec.durations import (
    Length,
    Rows,
    WindowLike,
    format_duration,
    monday_shift,
    parse_length,
    parse_offset,
    rows,
)
from slidewise.spec.query import Query
from slidewise.spec.windows.base import Window, does_not_apply
from slidewise.spec.windows.calendar import Calendar
from slidewise.spec.windows.calendar_hop import CalendarHop
from slidewise.spec.windows.cumulate import Cumulate
from slidewise.spec.windows.delta import Delta
from slidewise.spec.windows.hop import Hop, RowHop
from slidewise.spec.windows.landmark import Landmark
from slidewise.spec.windows.resolved import Resolved
from slidewise.spec.windows.row_count import RowCount
from slidewise.spec.windows.row_length import RowLength
from slidewise.spec.windows.session import Session
from slidewise.spec.windows.to_date import ToDate
from slidewise.spec.windows.trailing import Trailing
from slidewise.spec.windows.unbounded import Unbounded
from slidewise.spec.windows.until import Until

__all__ = [
    "CLOSED",
    "KINDS",
    "EveryLike",
    "HoppingLike",
    "RollingLike",
    "are_hopping",
    "gives_windows",
    "hopping_windows",
    "parse_lengths",
    "rolling_windows",
]

CLOSED = ("right", "left", "both", "neither")
HOPPING_CLOSED = ("left", "right")

# The kinds that users make by a function, and documents by a mapping.
KINDS: tuple[type[Window], ...] = (
    Session,
    Until,
    Landmark,
    Delta,
    Cumulate,
    Calendar,
    ToDate,
    Unbounded,
    Resolved,
    RowLength,
)

# A window of `rolling`, and one of `hopping`.
RollingLike: TypeAlias = WindowLike | Window
HoppingLike: TypeAlias = WindowLike | Window
# The slide of `hopping`, or the units that are its windows.
EveryLike: TypeAlias = WindowLike | Calendar | Cumulate


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
) -> tuple[Window, ...]:
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
) -> Window:
    if isinstance(window, Query) or (isinstance(window, Window) and not window.per_row):
        several = isinstance(window, Query)
        given = f"windows=[sw.{window!r}]" if several else f"window=sw.{window!r}"
        raise SpecError(
            f"{window!r} is a window of hopping, not of rolling: give {given} to "
            "hopping"
        )
    if isinstance(window, Window):
        _refuse_bounds(Argument("windows", window), "right", offset)
        return window if closed == "right" else window.closed_by(closed)
    length = parse_length(window, "windows")
    if length.kind == "rows":
        return _row_count(Rows(length.amount), closed, offset)
    return Trailing(length, closed, _offset(offset, length))


def _row_count(window: Rows, closed: str, offset: WindowLike | None) -> RowCount:
    given = Argument("windows", window)
    if closed not in ("right", "left"):
        raise does_not_apply(Argument("closed", closed), given)
    if isinstance(offset, Rows):
        return RowCount(window.n, closed, rows(offset.n).n)
    _refuse_bounds(given, "right", offset)
    return RowCount(window.n, closed)


def _refuse_bounds(window: Argument, closed: str, offset: WindowLike | None) -> None:
    """Refuses `closed=` and `offset=` beside a window that has neither."""
    if closed != "right":
        raise does_not_apply(Argument("closed", closed), window)
    if offset is not None and parse_offset(offset).amount:
        raise does_not_apply(Argument("offset", offset), window)


def gives_windows(every: object) -> bool:
    """Whether a slide gives windows without a length, as a calendar its units.

    Example:
        >>> gives_windows(Calendar("1mo")), gives_windows("1h")
        (True, False)
    """
    return isinstance(every, Calendar | Cumulate)


def are_hopping(windows: object) -> bool:
    """Whether `windows=` are those of `hopping`, for any other arguments.

    Example:
        >>> are_hopping(["1h", Query("1h", every="5m")]), are_hopping(["1h", "1d"])
        (True, False)
    """
    if isinstance(windows, str | Mapping) or not isinstance(windows, Iterable):
        windows = [windows]
    return any(
        isinstance(one, Query) or (isinstance(one, Window) and not one.per_row)
        for one in windows
    )


def hopping_windows(
    window: HoppingLike | None,
    windows: Iterable[HoppingLike | Query] | None,
    every: EveryLike | None,
    offset: WindowLike | None,
    empty: bool,
    closed: str | None,
) -> tuple[Window, ...]:
    """The windows of `hopping`; the arguments are its own.

    Example:
        >>> windows = ["1h", Session(parse_length("5m"))]
        >>> made = hopping_windows(None, windows, None, None, False, None)
        >>> [window.name for window in made]
        ['1h', 'session_5m']
    """
    if closed is not None:
        one_of(closed, "closed", HOPPING_CLOSED)
    if isinstance(every, Calendar | Cumulate) and window is None and windows is None:
        window, every = every, None
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
    grid = (offset, empty, closed)
    if isinstance(every, Calendar | Cumulate):
        raise SpecError(
            Argument("every", every),
            " gives windows of its own: leave ",
            Argument("window" if windows is None else "windows"),
            " out, or give other windows in a call of their own",
        )
    if window is not None:
        return (_hopping_window(window, every, grid),)
    found = []
    for one in _listed(windows):
        if isinstance(one, Query):
            own = None if one.slide is None else one.label
            made = _hopping_window(one.window, one.slide, grid, own, several=True)
        else:
            made = _hopping_window(one, every, grid, several=True)
        found.append(made)
    if not found:
        raise SpecError(Argument("windows"), " is empty: give at least one")
    refuse_duplicates([one.name for one in found], "the window {} is given twice")
    return tuple(found)


def _hopping_window(
    window: WindowLike | Length | Window | Query,
    every: WindowLike | Length | None,
    grid: tuple[WindowLike | None, bool, str | None],
    label: str | None = None,
    *,
    several: bool = False,
) -> Window:
    """A window of `hopping`, given offset, empty and closed as `grid`."""
    offset, empty, closed = grid
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
    on_grid = (("offset", offset), ("empty", empty), ("closed", closed))
    if isinstance(window, Calendar) and not window.begins_with_unit:
        window = CalendarHop(window)
    if isinstance(window, CalendarHop | Cumulate):
        return _whole_units(window, every, offset, closed)
    if isinstance(window, Window):
        if window.per_row:
            raise SpecError(
                f"{window!r} is a window of rolling, one per row: give windows="
                f"sw.{window!r} to rolling"
            )
        for argument, value in (("every", every), *on_grid):
            if value:
                others = argument == "every" and several
                raise SpecError(
                    Argument(argument),
                    f" does not apply to {window!r}: leave it out"
                    + (", and give other windows theirs by sw.Query" * others),
                )
        return window
    length = parse_length(window, "window")
    step = length if every is None else parse_length(every, "every")
    label = length.label if label is None else label
    if step.kind == "rows":
        for argument, value in on_grid:
            if value:
                raise SpecError(
                    Argument(argument),
                    " does not apply to windows that slide by rows: leave it out",
                )
        return RowHop(length, min(step.amount, 2**63 - 1), label)
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
    start = _offset(offset, length, monday_shift(length, step))
    return Hop(
        length, _spelled(step, step.amount, "every"), start, closed or "left", label
    )


def _whole_units(
    window: CalendarHop | Cumulate,
    every: WindowLike | Length | None,
    offset: WindowLike | None,
    closed: str | None,
) -> Window:
    """A window that begins with units of time; other arguments do not apply."""
    if closed == "left":
        closed = None
    for argument, value in (("every", every), ("offset", offset), ("closed", closed)):
        if value is not None:
            raise does_not_apply(Argument(argument, value), repr(window))
    return window


def _offset(offset: WindowLike | None, length: Length, shift: int = 0) -> Length | None:
    """The offset of a window and a further shift; None for zero."""
    found = Length(length.kind, 0, "") if offset is None else parse_offset(offset)
    if found.amount and found.kind != length.kind:
        raise SpecError(
            Argument("offset", offset),
            f" and the window {length.shown} differ in kind: give both as "
            "durations, or both as ints for an integer time column",
        )
    amount = found.amount + shift
    return _spelled(length, amount, "offset") if amount else None


def _spelled(like: Length, amount: int, argument: str) -> Length:
    """A length of the kind of another, spelled alike for equal amounts."""
    label = format_duration(amount) if like.kind == "time" else str(amount)
    return Length(like.kind, amount, label, argument)
