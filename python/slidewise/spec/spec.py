"""The specification of windows and aggregations, validated once.

Tables, files, streams and the command line build a `Spec` from the user's arguments.
Columns and their types are checked where a `Spec` is bound to a table.
"""

import hashlib
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, SupportsIndex, TypeAlias

from slidewise.aggregations import Aggregation
from slidewise.aggregations.compiled import Compiled
from slidewise.aggregations.custom import Functions
from slidewise.errors import Argument, SpecError, describe_value
from slidewise.spec.data_driven import Delta, Landmark, Until
from slidewise.spec.durations import (
    Length,
    Rows,
    Session,
    WindowLike,
    format_duration,
    parse_length,
    parse_offset,
)
from slidewise.spec.query import Query

__all__ = [
    "HoppingLike",
    "RollingLike",
    "Spec",
    "WindowSpec",
    "check_column_name",
    "one_of",
    "parse_lengths",
    "refuse_by_position",
    "refuse_duplicates",
    "refuse_table_only",
]

CLOSED = ("right", "left", "both", "neither")
HOPPING_CLOSED = ("left", "right")
TIES = ("peers", "rows")
NAN = ("propagate", "skip", "raise")
OVERFLOW = ("raise", "null")

# A window of `rolling`, and one of `hopping`.
RollingLike: TypeAlias = WindowLike | Delta | Landmark
HoppingLike: TypeAlias = WindowLike | Session | Until

# Part of every hash: a change of meaning changes all hashes.
_VERSION = 1


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
            a hopping window begins. In the units of `length`.
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
        """Whether there is not one per row."""
        slides = self.every or self.every_rows
        return bool(slides or self.is_session or self.kind == "until")

    @property
    def name(self) -> str:
        """As the column `window` of `hopping` names it."""
        return f"session_{self.label}" if self.is_session else self.label

    @property
    def by_position(self) -> bool:
        """Whether rows are its ends: it begins or ends among rows of equal time."""
        return bool(self.column or self.every_rows)

    def _in_units(self, amount: int, argument: str, label: str = "") -> Length:
        units = {"session": "time", "session_integer": "integer", "delta_time": "time"}
        kind = units.get(self.kind, self.kind)
        written = format_duration(amount) if kind == "time" else str(amount)
        return Length(kind, amount, label or written, argument)


@dataclass(frozen=True, slots=True)
class Spec:
    """The windows and aggregations of `rolling`, `hopping` and `KeyedWindows`.

    Made by `Spec.make` or `Spec.make_hopping`, which validate their arguments.

    Attributes:
        on: The column of event times.
        by: The key columns; empty for one group of all rows.
        windows: The windows, in the order of the result columns.
        aggs: Names and aggregations, in the order of the result columns.
        ties: "peers" or "rows".
        nan: "propagate", "skip" or "raise".
        arrival: The column of arrival order, or None.
        min_rows: Windows with fewer values are null.
        empty: Whether hopping windows without rows are included.
        several: Whether there may be several hopping windows, which a column names.
        overflow: "raise" or "null". Not part of `canonical` and `hash`: a stream may
            change it.

    Example:
        >>> import slidewise as sw
        >>> spec = sw.Spec.make(on="t", windows=["1h", "1d"], aggs={"n": sw.count()})
        >>> spec.results
        ('n_1h', 'n_1d')
    """

    on: str
    by: tuple[str, ...]
    windows: tuple[WindowSpec, ...]
    aggs: tuple[tuple[str, Aggregation], ...]
    ties: str
    nan: str
    arrival: str | None
    min_rows: int
    empty: bool = False
    several: bool = False
    overflow: str = field(default="raise", metadata={"canonical": False})

    @classmethod
    def make(
        cls,
        *,
        on: str,
        windows: RollingLike | Iterable[RollingLike],
        aggs: Mapping[str, Aggregation],
        by: str | Sequence[str] | None = None,
        closed: str = "right",
        ties: str = "peers",
        nan: str = "propagate",
        arrival: str | None = None,
        min_rows: int = 0,
        offset: WindowLike | None = None,
        overflow: str = "raise",
    ) -> "Spec":
        """Validates the arguments of `slidewise.rolling`.

        Raises:
            SpecError: If an argument is wrong; the message names the value and the way
                out.

        Example:
            >>> import slidewise as sw
            >>> spec = Spec.make(on="t", windows="1h", aggs={"n": sw.count()})
            >>> spec.columns, spec.results
            (('t',), ('n_1h',))
        """
        spec = cls(
            on=check_column_name(on, "on"),
            by=_names(by),
            windows=_windows(windows, one_of(closed, "closed", CLOSED), offset),
            aggs=_aggs(aggs),
            ties=one_of(ties, "ties", TIES),
            nan=one_of(nan, "nan", NAN),
            arrival=None if arrival is None else check_column_name(arrival, "arrival"),
            min_rows=_min_rows(min_rows),
            overflow=one_of(overflow, "overflow", OVERFLOW),
        )
        if spec.arrival is None:  # which overrides ties=
            _refuse_idle_ties(ties, closed)
        else:
            refuse_by_position(spec, Argument("arrival", arrival))
        refuse_duplicates(spec.results)
        return spec

    @classmethod
    def make_hopping(
        cls,
        *,
        on: str,
        window: HoppingLike | None = None,
        windows: Iterable[HoppingLike | Query] | None = None,
        aggs: Mapping[str, Aggregation],
        every: WindowLike | None = None,
        by: str | Sequence[str] | None = None,
        offset: WindowLike | None = None,
        empty: bool = False,
        closed: str | None = None,
        nan: str = "propagate",
        min_rows: int = 0,
        overflow: str = "raise",
    ) -> "Spec":
        """Validates the arguments of `slidewise.hopping`.

        Raises:
            SpecError: If an argument is wrong; the message names the value and the way
                out.

        Example:
            >>> import slidewise as sw
            >>> spec = Spec.make_hopping(on="t", window="1h", aggs={"n": sw.count()})
            >>> spec.results
            ('window_start', 'window_end', 'n')
        """
        if not isinstance(empty, bool):
            raise SpecError(Argument("empty"), f" takes True or False, got {empty!r}")
        spec = cls(
            on=check_column_name(on, "on"),
            by=_names(by),
            windows=_hopping_windows(window, windows, every, offset, empty, closed),
            aggs=_aggs(aggs),
            ties="peers",
            nan=one_of(nan, "nan", NAN),
            arrival=None,
            min_rows=_min_rows(min_rows),
            empty=empty,
            several=windows is not None,
            overflow=one_of(overflow, "overflow", OVERFLOW),
        )
        refuse_duplicates([*spec.by, *spec.results])
        return spec

    @property
    def is_hopping(self) -> bool:
        """Whether windows are hopping or session windows."""
        return any(window.is_hop for window in self.windows)

    @property
    def counts_ticks(self) -> bool:
        """Whether lengths are in the units of integer times."""
        return any("integer" in window.kind for window in self.windows)

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the result columns, window by window."""
        if self.is_hopping:
            which = ("window",) if self.several else ()
            ends = ("window_start", "window_end")
            return (*which, *ends, *(name for name, _ in self.aggs))
        return tuple(
            f"{name}_{window.label}" for window in self.windows for name, _ in self.aggs
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once."""
        names = [self.on, *self.by]
        if self.arrival is not None:
            names.append(self.arrival)
        for _, agg in self.aggs:
            names += agg.columns
        names += [window.column for window in self.windows if window.column]
        return tuple(dict.fromkeys(names))

    def canonical(self) -> str:
        """The spec as JSON: equal specs have equal text in every release."""
        record = {"version": _VERSION, **_record(self)}
        return json.dumps(record, sort_keys=True, separators=(",", ":"))

    @property
    def hash(self) -> str:
        """The SHA-256 of `canonical` in hex, which checkpoints compare."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()


def _record(value: Any) -> Any:
    """Dataclasses as mappings, without fields at their defaults.

    So a field that a later release adds does not change the hashes of this one.
    """
    if isinstance(value, Functions | Compiled):
        return value.canonical
    if isinstance(value, tuple):
        return [_record(item) for item in value]
    if not is_dataclass(value):
        return value
    return {
        each.name: _record(getattr(value, each.name))
        for each in fields(value)
        if each.metadata.get("canonical", True)
        and getattr(value, each.name) != each.default
    }


def check_column_name(value: object, argument: str) -> str:
    """Returns the name of a column.

    Raises:
        SpecError: If it is not a str.
    """
    if not isinstance(value, str):
        raise SpecError(
            Argument(argument), f" takes the name of a column, got {value!r}"
        )
    return value


def _names(by: str | Sequence[str] | None) -> tuple[str, ...]:
    if by is None:
        return ()
    names: object = (by,) if isinstance(by, str) else by
    if not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise SpecError(
            Argument("by"), f" takes a column or a list of columns, got {by!r}"
        )
    return tuple(dict.fromkeys(check_column_name(name, "by") for name in names))


def parse_lengths(windows: WindowLike | Iterable[WindowLike]) -> list[Length]:
    """The lengths of `windows=`: one or several.

    Raises:
        SpecError: If one is no length, or there is none.

    Example:
        >>> [length.label for length in parse_lengths(["1h", Rows(3)])]
        ['1h', '3rows']
    """
    if isinstance(windows, Mapping):
        raise SpecError(
            Argument("windows"),
            " takes one length or a list of them, such as ['1h', '7d'], not a mapping; "
            f"got {windows!r}",
        )
    if isinstance(windows, str | Rows) or not isinstance(windows, Iterable):
        windows = [windows]
    lengths = [parse_length(window, "windows") for window in windows]
    if not lengths:
        raise SpecError(
            Argument("windows"),
            " is empty: give at least one, such as ",
            Argument("windows", "1h"),
        )
    return lengths


def _windows(
    windows: RollingLike | Iterable[RollingLike],
    closed: str,
    offset: WindowLike | None,
) -> tuple[WindowSpec, ...]:
    if isinstance(windows, Delta | Landmark | Until):
        windows = [windows]
    given: Any = windows
    if isinstance(given, Iterable) and not isinstance(given, str | Mapping):
        given = list(given)
        data_driven = [isinstance(one, Delta | Landmark | Until) for one in given]
        if any(data_driven):
            return tuple(
                _data_driven(one, closed, offset)
                if is_data_driven
                else _windows([one], closed, offset)[0]
                for one, is_data_driven in zip(given, data_driven, strict=True)
            )
    lengths = parse_lengths(given)
    for length in lengths:
        if length.kind == "rows" and closed != "right":
            raise _does_not_apply(Argument("closed", closed), Rows(length.amount))
    return tuple(
        WindowSpec(
            length.kind,
            length.amount,
            0,
            _offset(offset, length),
            closed,
            length.label,
        )
        for length in lengths
    )


def _data_driven(
    window: Delta | Landmark | Until, closed: str, offset: WindowLike | None
) -> WindowSpec:
    if isinstance(window, Until):
        raise SpecError(f"{window!r} closes windows of hopping, not of rolling")
    if closed != "right":
        raise _does_not_apply(Argument("closed", closed), window)
    if offset is not None and parse_offset(offset).amount:
        raise _does_not_apply(Argument("offset", offset), window)
    label, column = window.label, window.column
    if isinstance(window, Landmark):
        return WindowSpec("landmark", 0, 0, 0, "right", label, column)
    width = window.width
    if width.kind == "time":
        return WindowSpec("delta_time", width.amount, 0, 0, "right", label, column)
    return WindowSpec("delta", 0, 0, 0, "right", label, column, width.label)


def _does_not_apply(given: Argument, window: object) -> SpecError:
    return SpecError(
        given,
        " does not apply to ",
        Argument("windows", window),
        ": leave ",
        Argument(given.name),
        " out, or give that window in a separate call",
    )


def refuse_by_position(spec: Spec, given: Argument) -> None:
    """Refuses an argument beside windows that begin or end among equal times.

    Raises:
        SpecError: Naming the window.
    """
    for window in spec.windows:
        if window.by_position:
            raise SpecError(
                given, f" does not apply to the window {_written(window)}: leave it out"
            )


def refuse_table_only(spec: Spec, where: str) -> None:
    """Refuses windows that streams do not have.

    Args:
        spec: The spec.
        where: What does not have them.

    Raises:
        SpecError: Naming the window.
    """
    for window in spec.windows:
        what = None
        if window.by_position:
            what = f"the window {_written(window)}"
        elif window.every and window.closed == "right":
            what = "hopping windows that are closed='right'"
        elif spec.several:
            what = "several hopping windows"
        if what is not None:
            raise SpecError(
                f"{where} does not have {what}: sw.rolling and sw.hopping over tables "
                "and slidewise.spark over batch DataFrames do"
            )


def _written(window: WindowSpec) -> str:
    """A window by position as in a call."""
    if window.every_rows:
        length = window.as_length
        written = Rows(length.amount) if length.kind == "rows" else length.given.value
        return f"{written!r} every rows({window.every_rows})"
    if window.kind == "delta":
        return f"delta({window.column!r}, {window.width})"
    if window.kind == "delta_time":
        return f"delta({window.column!r}, {format_duration(window.length)!r})"
    return f"{window.kind}({window.column!r})"


def _hopping_windows(
    window: HoppingLike | None,
    windows: Iterable[HoppingLike | Query] | None,
    every: WindowLike | None,
    offset: WindowLike | None,
    empty: bool,
    closed: str | None,
) -> tuple[WindowSpec, ...]:
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
    if window is not None:
        return (_hopping_window(window, every, offset, empty, closed),)
    given: Any = windows
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = [given]
    found = []
    for one in given:
        length: Any = one
        slide: WindowLike | Length | None = every
        if isinstance(one, Query):
            length, slide = one.window, one.slide
        made = _hopping_window(length, slide, offset, empty, closed)
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
) -> WindowSpec:
    if isinstance(window, Delta | Landmark):
        raise SpecError(f"{window!r} is a window of rolling, one per row")
    no_grid = (("every", every), ("offset", offset), ("empty", empty))
    if isinstance(window, Session | Until):
        for argument, value in (*no_grid, ("closed", closed)):
            if value:
                raise SpecError(
                    Argument(argument),
                    f" does not apply to {window!r}: leave it out",
                )
    if isinstance(window, Until):
        return WindowSpec("until", 0, 0, 0, "both", window.label, window.column)
    if isinstance(window, Session):
        gap = window.gap
        kind = "session" if gap.kind == "time" else "session_integer"
        return WindowSpec(kind, gap.amount, 0, 0, "both", gap.label)
    length = _parsed(window, "window")
    step = length if every is None else _parsed(every, "every")
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
        _offset(offset, length),
        closed or "left",
        length.label,
    )


def _parsed(given: WindowLike | Length, argument: str) -> Length:
    return given if isinstance(given, Length) else parse_length(given, argument)


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
            f" and the window {length.label!r} differ in kind: give both as durations, "
            "or both as ints for an integer time column",
        )
    return shift.amount


def _aggs(aggs: Mapping[str, Aggregation]) -> tuple[tuple[str, Aggregation], ...]:
    if not isinstance(aggs, Mapping):
        raise SpecError(
            Argument("aggs"),
            " takes a mapping from names to aggregations, such as {'n': sw.count()}, "
            f"got {describe_value(aggs)}",
        )
    if not aggs:
        raise SpecError(
            Argument("aggs"), " is empty: give at least one, such as {'n': sw.count()}"
        )
    for name, agg in aggs.items():
        if not isinstance(name, str):
            raise SpecError(
                Argument("aggs"),
                f" names an aggregation {name!r}: a name is a str, such as "
                f"{str(name)!r}",
            )
        if not isinstance(agg, Aggregation):
            raise SpecError(
                f"aggs[{name!r}] is not an aggregation: {describe_value(agg)}; "
                "give one such as sw.mean('price')"
            )
        agg.check_columns()
    return tuple(aggs.items())


def one_of(value: str, argument: str, allowed: tuple[str, ...]) -> str:
    """Returns the value of an argument that takes one of some words.

    Raises:
        SpecError: If it is another one.

    Example:
        >>> one_of("skip", "nan", ("propagate", "skip", "raise"))
        'skip'
    """
    if value not in allowed:
        raise SpecError(
            Argument(argument), f" is one of {', '.join(allowed)}; got {value!r}"
        )
    return value


def _min_rows(value: Any) -> int:
    whole = isinstance(value, SupportsIndex) and not isinstance(value, bool)
    if not whole or not 0 <= operator.index(value) < 2**63:
        raise SpecError(
            Argument("min_rows"), f" takes an int from 0 to 2**63 - 1; got {value!r}"
        )
    return operator.index(value)


def _refuse_idle_ties(ties: str, closed: str) -> None:
    """Refuses `ties="rows"` where windows hold no row of their row's time."""
    if ties == "rows" and closed in ("left", "neither"):
        raise SpecError(
            Argument("ties", ties),
            " has no effect with ",
            Argument("closed", closed),
            ": leave ties= out for the same answers; to include earlier rows of the "
            "same time, give ",
            Argument("closed", "right"),
        )


_TWICE = (
    "the result column {} would occur twice: give each aggregation a different name, "
    "and each window once"
)


def refuse_duplicates(names: Iterable[str], message: str = _TWICE) -> None:
    """Refuses duplicate result columns.

    Args:
        names: The names.
        message: What the error says of the name in its place.

    Raises:
        SpecError: Naming the column.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SpecError(message.format(repr(name)))
        seen.add(name)
