"""The specification of windows and aggregations, validated once.

Tables, files, streams and the command line build a `Spec` from the user's arguments.
Columns and their types are checked where a `Spec` is bound to a table.
"""

import hashlib
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, SupportsIndex

from slidewise.aggregations import Aggregation
from slidewise.aggregations.compiled import Compiled
from slidewise.aggregations.custom import Functions
from slidewise.errors import Argument, SpecError, describe_value
from slidewise.spec.durations import (
    Length,
    Rows,
    Session,
    WindowLike,
    format_duration,
    parse_length,
    parse_offset,
)

__all__ = [
    "Spec",
    "WindowSpec",
    "check_column_name",
    "one_of",
    "parse_lengths",
    "refuse_duplicates",
]

CLOSED = ("right", "left", "both", "neither")
TIES = ("peers", "rows")
NAN = ("propagate", "skip", "raise")
OVERFLOW = ("raise", "null")

# Part of every hash: a change of meaning changes all hashes.
_VERSION = 1


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """One window: the rows that a result is computed from.

    Attributes:
        kind: "time" (a duration), "integer" (in the units of an integer time column),
            "rows", or "session" and "session_integer", whose length is the gap.
        length: In nanoseconds, units or rows; always positive.
        every: The distance between hopping windows in the units of `length`; 0 for
            rolling windows, one per row.
        offset: How much earlier a rolling window ends, or how much later than the epoch
            a hopping window begins. In the units of `length`.
        closed: The ends that belong to it: "right", "left", "both" or "neither".
        label: As the user wrote the length; the suffix of result columns' names.
    """

    kind: str
    length: int
    every: int
    offset: int
    closed: str
    label: str

    @property
    def as_length(self) -> Length:
        """The length."""
        alone = "gap" if self.is_session else "windows"
        argument = "window" if self.every else alone
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

    def _in_units(self, amount: int, argument: str, label: str = "") -> Length:
        units = {"session": "time", "session_integer": "integer"}
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
    overflow: str = field(default="raise", metadata={"canonical": False})

    @classmethod
    def make(
        cls,
        *,
        on: str,
        windows: WindowLike | Iterable[WindowLike],
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
        refuse_duplicates(spec.results)
        return spec

    @classmethod
    def make_hopping(
        cls,
        *,
        on: str,
        window: WindowLike | Session,
        aggs: Mapping[str, Aggregation],
        every: WindowLike | None = None,
        by: str | Sequence[str] | None = None,
        offset: WindowLike | None = None,
        empty: bool = False,
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
            windows=(_hopping_window(window, every, offset, empty),),
            aggs=_aggs(aggs),
            ties="peers",
            nan=one_of(nan, "nan", NAN),
            arrival=None,
            min_rows=_min_rows(min_rows),
            empty=empty,
            overflow=one_of(overflow, "overflow", OVERFLOW),
        )
        refuse_duplicates([*spec.by, *spec.results])
        return spec

    @property
    def is_hopping(self) -> bool:
        """Whether windows are hopping or session windows."""
        return any(window.every or window.is_session for window in self.windows)

    @property
    def counts_ticks(self) -> bool:
        """Whether lengths are in the units of integer times."""
        return any("integer" in window.kind for window in self.windows)

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the result columns, window by window."""
        if self.is_hopping:
            return ("window_start", "window_end", *(name for name, _ in self.aggs))
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
    windows: WindowLike | Iterable[WindowLike], closed: str, offset: WindowLike | None
) -> tuple[WindowSpec, ...]:
    lengths = parse_lengths(windows)
    for length in lengths:
        if length.kind == "rows" and closed != "right":
            raise SpecError(
                Argument("closed", closed),
                " does not apply to ",
                Argument("windows", Rows(length.amount)),
                ": leave ",
                Argument("closed"),
                " out, or give the rows in a separate call",
            )
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


def _hopping_window(
    window: WindowLike | Session,
    every: WindowLike | None,
    offset: WindowLike | None,
    empty: bool,
) -> WindowSpec:
    if isinstance(window, Session):
        for value, argument in ((every, "every"), (offset, "offset"), (empty, "empty")):
            if value:
                raise SpecError(
                    Argument(argument),
                    f" does not apply to {window!r}: leave it out",
                )
        gap = window.gap
        kind = "session" if gap.kind == "time" else "session_integer"
        return WindowSpec(kind, gap.amount, 0, 0, "both", gap.label)
    length = parse_length(window)
    if length.kind == "rows":
        raise SpecError(
            f"hopping windows are lengths of time, got {window!r}: for the last rows, "
            "use rolling(windows=...)"
        )
    step = length if every is None else parse_length(every, "every")
    if step.kind != length.kind:
        raise SpecError(
            Argument("window", window),
            " and ",
            Argument("every", every),
            " differ in kind: give both as durations, or both as ints for an integer "
            "time column",
        )
    return WindowSpec(
        length.kind,
        length.amount,
        step.amount,
        _offset(offset, length),
        "left",
        length.label,
    )


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


def refuse_duplicates(names: Iterable[str]) -> None:
    """Refuses duplicate result columns.

    Raises:
        SpecError: Naming the column.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SpecError(
                f"the result column {name!r} would occur twice: give each aggregation "
                "a different name, and each window once"
            )
        seen.add(name)
