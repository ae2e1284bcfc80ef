"""The one specification: what is asked, checked once.

Tables, files, the command line and streams all build a `Spec` and hand it on; nothing
below it reads what the user wrote. A spec knows no data: that a column is there and has
a fitting type is checked when a spec meets a table.
"""

import hashlib
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, SupportsIndex

from slidewise.aggregations import Aggregation
from slidewise.durations import Length, Rows, WindowLike, parse_length
from slidewise.errors import SpecError
from slidewise.natives import Compiled
from slidewise.own import Functions

__all__ = ["Spec", "WindowSpec"]

CLOSED = ("right", "left", "both", "neither")
TIES = ("peers", "rows")
NAN = ("propagate", "skip", "raise")

# Part of every hash: answers of one version are never taken for those of another.
_VERSION = 1


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """One window: which rows a row sees.

    Attributes:
        kind: "time" (a duration), "integer" (in the units of an integer time column) or
            "rows".
        length: In nanoseconds, units or rows; always positive.
        every: Distance between windows in the units of `length`; 0 where every row has
            a window of its own.
        offset: How much earlier the window ends, in the units of `length`.
        closed: Which ends belong to it: "right", "left", "both" or "neither".
        label: As the user wrote the length; the end of its result columns' names.
    """

    kind: str
    length: int
    every: int
    offset: int
    closed: str
    label: str

    @property
    def as_length(self) -> Length:
        """The length alone."""
        return Length(self.kind, self.length, self.label)


@dataclass(frozen=True, slots=True)
class Spec:
    """A rolling aggregation, fully spelled out. Made by `Spec.make`.

    Attributes:
        on: The column of event times.
        by: The key columns; empty for one window over all rows.
        windows: In the order of the result columns.
        aggs: Name and aggregation, in the order of the result columns.
        ties: "peers" or "rows".
        nan: "propagate", "skip" or "raise".
        arrival: The column of arrival order, or None.
        min_rows: Windows with fewer values are null.
    """

    on: str
    by: tuple[str, ...]
    windows: tuple[WindowSpec, ...]
    aggs: tuple[tuple[str, Aggregation], ...]
    ties: str
    nan: str
    arrival: str | None
    min_rows: int

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
    ) -> "Spec":
        """Checks what the user wrote and spells it out.

        The arguments are those of `slidewise.rolling`.

        Raises:
            SpecError: If an argument is wrong; the message says how to mend it.

        Example:
            >>> import slidewise as sw
            >>> spec = Spec.make(on="t", windows="1h", aggs={"n": sw.count()})
            >>> spec.columns, spec.results
            (('t',), ('n_1h',))
        """
        spec = cls(
            on=_name(on, "on"),
            by=_names(by),
            windows=_windows(windows, _one_of(closed, "closed", CLOSED)),
            aggs=_aggs(aggs),
            ties=_one_of(ties, "ties", TIES),
            nan=_one_of(nan, "nan", NAN),
            arrival=None if arrival is None else _name(arrival, "arrival"),
            min_rows=_min_rows(min_rows),
        )
        _refuse_twice(spec.results)
        return spec

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the result columns, window by window."""
        return tuple(
            f"{name}_{window.label}" for window in self.windows for name, _ in self.aggs
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads, each once."""
        names = [self.on, *self.by]
        if self.arrival is not None:
            names.append(self.arrival)
        for _, agg in self.aggs:
            names += agg.columns
        return tuple(dict.fromkeys(names))

    def canonical(self) -> str:
        """The spec as JSON, the same text for the same spec in every release."""
        record = {"version": _VERSION, **_record(self)}
        return json.dumps(record, sort_keys=True, separators=(",", ":"))

    @property
    def hash(self) -> str:
        """SHA-256 of `canonical`, in hex: what checkpoints compare."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()


def _record(value: Any) -> Any:
    """Dataclasses as mappings, without what is left at its default.

    So a field that a later release adds does not change the specs of this one.
    """
    if isinstance(value, Functions | Compiled):
        return value.canonical
    if isinstance(value, tuple):
        return [_record(item) for item in value]
    if not is_dataclass(value):
        return value
    return {
        field.name: _record(getattr(value, field.name))
        for field in fields(value)
        if getattr(value, field.name) != field.default
    }


def _name(value: object, argument: str) -> str:
    if not isinstance(value, str):
        raise SpecError(f"{argument}= takes the name of a column, got {value!r}")
    return value


def _names(by: str | Sequence[str] | None) -> tuple[str, ...]:
    if by is None:
        return ()
    names = (by,) if isinstance(by, str) else by
    if not isinstance(names, Iterable):
        raise SpecError(f"by= takes a column or a list of columns, got {by!r}")
    return tuple(dict.fromkeys(_name(name, "by") for name in names))


def _windows(
    windows: WindowLike | Iterable[WindowLike], closed: str
) -> tuple[WindowSpec, ...]:
    if isinstance(windows, str | Rows) or not isinstance(windows, Iterable):
        windows = [windows]
    lengths = [parse_length(window) for window in windows]
    if not lengths:
        raise SpecError("windows= is empty: give at least one, such as windows='1h'")
    for length in lengths:
        if length.kind == "rows" and closed != "right":
            raise SpecError(
                f"closed={closed!r} means nothing for rows({length.amount}), which "
                "ends with the row itself: leave closed= out, or ask for the rows in a "
                "call of their own"
            )
    return tuple(
        WindowSpec(length.kind, length.amount, 0, 0, closed, length.label)
        for length in lengths
    )


def _aggs(aggs: Mapping[str, Aggregation]) -> tuple[tuple[str, Aggregation], ...]:
    if not isinstance(aggs, Mapping):
        raise SpecError(
            f"aggs= takes a mapping from names to aggregations, such as "
            f"{{'n': sw.count()}}, got {aggs!r}"
        )
    if not aggs:
        raise SpecError("aggs= is empty: give at least one, such as {'n': sw.count()}")
    for name, agg in aggs.items():
        _name(name, "aggs")
        if not isinstance(agg, Aggregation):
            raise SpecError(
                f"aggs[{name!r}] is no aggregation: {agg!r}; "
                "give one such as sw.mean('price')"
            )
        agg.check_columns()
    return tuple(aggs.items())


def _one_of(value: str, argument: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise SpecError(f"{argument}= is one of {', '.join(allowed)}; got {value!r}")
    return value


def _min_rows(value: Any) -> int:
    whole = isinstance(value, SupportsIndex) and not isinstance(value, bool)
    if not whole or operator.index(value) < 0:
        raise SpecError(f"min_rows= takes an integer, 0 or more; got {value!r}")
    return operator.index(value)


def _refuse_twice(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SpecError(
                f"the result column {name!r} would be there twice: give each "
                "aggregation a name of its own, and each window once"
            )
        seen.add(name)
