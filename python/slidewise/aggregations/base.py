"""The aggregation: its kind, its columns and its parameters."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from numbers import Real
from typing import Any, Self

import slidewise._core as _core
from slidewise.aggregations.records import RECORDS, Record
from slidewise.aggregations.scalars import BYTES, as_int
from slidewise.errors import SpecError
from slidewise.hints import suggest_name

__all__ = ["Aggregation"]

_MAX_K = 1_000
# The values of parameters that are one of a few, the default first.
_CHOICES = {
    "hold": ("previous", "linear"),
    "edge": ("carry", "first"),
    "method": ("average", "min", "max", "dense"),
}
_INTERPOLATIONS = ("linear", "lower", "higher", "nearest", "midpoint")


def _no_name(given: Any) -> str:
    """The end of the message for a column that is not given by its name."""
    kind = type(given)
    library = kind.__module__.partition(".")[0]
    if library not in ("pandas", "polars", "pyarrow", "pyspark"):
        return f"takes the name of a column, got {given!r:.200}"
    return f"takes the name of a column, got a {library} {kind.__name__}"


def _its(given: Any) -> str:
    """The hint to give the name of a column; empty if it has none."""
    name = getattr(given, "name", None)
    return f": give {name!r}" if name and isinstance(name, str) else ""


def _share(given: Any) -> float:
    """A share; equal ones are alike: 1 as 1.0, -0.0 as 0.0."""
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not 0 <= given <= 1:
        raise SpecError(f"q must be a number from 0 to 1, got {given!r}")
    return float(given) + 0.0


def _edges(given: object) -> tuple[float, ...]:
    """The edges of bins, as floats."""
    if not isinstance(given, Iterable) or isinstance(given, str | BYTES):
        raise SpecError(f"edges= takes numbers that ascend, got {given!r:.60}")
    edges = []
    for edge in given:
        if isinstance(edge, bool) or not isinstance(edge, Real):
            raise SpecError(f"edges= takes numbers, got {edge!r:.60}")
        if not isfinite(edge):
            raise SpecError(f"edges= takes finite numbers, got {edge!r}: leave it out")
        if float(edge) != edge:
            raise SpecError(f"the edge {edge!r} is no float64: give one that is")
        edges.append(float(edge) + 0.0)
    if not 1 <= len(edges) <= _MAX_K:
        raise SpecError(f"edges= takes from 1 to {_MAX_K} numbers, got {len(edges)}")
    for edge, following in pairwise(edges):
        if edge >= following:
            raise SpecError(f"edges= must ascend, got {edge!r} before {following!r}")
    return tuple(edges)


def _percentile(q: float) -> str:
    """The name of a share: "p50" for 0.5, "p99_9" for 0.999."""
    digits = f"{Decimal(repr(q)) * 100:f}"
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return f"p{digits.replace('.', '_')}"


def _in_microseconds(given: timedelta) -> str:
    return f"{given // timedelta(microseconds=1)}us"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregation: its kind, columns and parameters.

    Made by the functions `sum`, `mean`, ... of `slidewise`; immutable and hashable.

    Attributes:
        kind: Its name, such as "sum".
        of: The column to aggregate, or None in a `Window` of plain values (and for
            `count` of rows).
        by: The column to compare, for `arg_max` and the like; the second column, for
            `covariance` and others of two columns.
        ddof: Delta degrees of freedom, for `variance` and the like.
        where: A column of booleans: only rows where it is true count.
        windows: Its own windows, in place of those of the Spec; None without.
        k: The number of values, for `top_k` and the like.
        q: The quantile from 0 to 1, for `quantile`; or several.
        interpolation: How `quantile` interpolates between two values.
        method: How `rank` ranks equal values: "average", "min", "max" or "dense".
        top: The most values that `value_counts` lists; None for all.
        edges: The edges of the bins of a `histogram`.
        unit: The unit of time of a `rate` or `slope`; None for one second, or 1 for
            integer times.
        half_life: The time, or the number of rows, in which a weight halves.
        hold: How a value goes on until the next entry: "previous" or "linear".
        edge: What a window has before its first entry: "carry" or "first".

    Raises:
        SpecError: If the kind is unknown, or a parameter does not belong to it.

    Cost: O(1); nothing is computed until a window or a table takes it.

    Example:
        >>> import slidewise as sw
        >>> sw.sum("price")
        sum('price')
        >>> sw.sum("price") == sw.sum("price")
        True
        >>> sw.mean("price", where="sold")
        mean('price', where='sold')
    """

    kind: str
    of: str | None = None
    by: str | None = None
    ddof: int = 1
    where: str | None = None
    k: int = 0
    windows: Any = field(default=None, kw_only=True)
    q: float | tuple[float, ...] = field(default=0.5, kw_only=True)
    interpolation: str = field(default="linear", kw_only=True)
    method: str = field(default=_CHOICES["method"][0], kw_only=True)
    top: int | None = field(default=None, kw_only=True)
    edges: tuple[float, ...] = field(default=(), kw_only=True)
    unit: str | int | timedelta | None = field(default=None, kw_only=True)
    half_life: Any = field(default=None, kw_only=True)
    hold: str = field(default=_CHOICES["hold"][0], kw_only=True)
    edge: str = field(default=_CHOICES["edge"][0], kw_only=True)

    def __post_init__(self) -> None:
        given: object = self.kind
        record = RECORDS.get(given) if isinstance(given, str) else None
        if record is None or not record.is_built_in:
            names = [name for name, each in RECORDS.items() if each.is_built_in]
            hint = suggest_name(str(self.kind), names)
            known = ", ".join(names)
            raise SpecError(
                f"unknown aggregation {self.kind!r}{hint or f'; there are {known}'}"
            )
        self._check_names()
        if self.by is not None and self.record.second in ("", "time"):
            raise SpecError(f"{self.kind}() takes no by=")
        if self.of is not None and self.record.inputs == ("time",):
            raise SpecError(f"{self.kind}() takes no column: it reads the times")
        ddof = as_int(self.ddof)
        if ddof is None:
            raise SpecError(f"ddof must be an integer, got {self.ddof!r}")
        if ddof < 0:
            raise SpecError(f"ddof must be 0 or more, got {ddof}")
        object.__setattr__(self, "ddof", ddof)
        most = self.record.max_ddof
        if most is not None and ddof > most:
            raise SpecError(f"ddof of {self.kind}() is 0 or {most}, got {ddof}")
        self._check_k()
        self._check_quantile()
        self._check_top()
        self._check_edges()
        self._check_unit()
        self._check_half_life()
        self._check_choices()

    def _check_names(self) -> None:
        for column in (self.of, self.by):
            if column is not None and not isinstance(column, str):
                raise SpecError(f"{self._called}() {_no_name(column)}{_its(column)}")
        if self.where is not None and not isinstance(self.where, str):
            raise SpecError(
                f"{self._called}(where=) {_no_name(self.where)}; a comparison is a "
                "column of booleans in the table first, which where= names"
            )
        if self.windows is not None:
            object.__setattr__(self, "windows", self._own_windows())

    def _own_windows(self) -> tuple[Any, ...]:
        """The value of `windows=` as a tuple."""
        given = self.windows
        if isinstance(given, Mapping | BYTES):
            raise SpecError(
                f"{self._called}(windows=) takes one window or a list of them, got "
                f"{given!r:.60}"
            )
        several = isinstance(given, Iterable) and not isinstance(given, str)
        windows = tuple(given) if several else (given,)
        if not windows:
            raise SpecError(
                f"{self._called}(windows=) is empty: give at least one, such as '24h', "
                "or leave it out for the windows of the Spec"
            )
        return windows

    def _check_k(self) -> None:
        k = as_int(self.k)
        if "k" in self.record.parameters:
            if k is None or not 1 <= k <= _MAX_K:
                raise SpecError(f"k must be from 1 to {_MAX_K}, got {self.k!r}")
            object.__setattr__(self, "k", k)
        elif k != 0:
            raise SpecError(f"{self.kind}() takes no k=")

    def _check_quantile(self) -> None:
        if "q" not in self.record.parameters:
            if (self.q, self.interpolation) != (0.5, "linear"):
                raise SpecError(f"{self.kind}() takes no q= and no interpolation=")
            return
        given: Any = self.q
        several = isinstance(given, Iterable) and not isinstance(given, str | BYTES)
        shares = tuple(map(_share, given)) if several else (_share(given),)
        if several and len({*shares}) < max(len(shares), 1):
            raise SpecError(f"q takes one or several different numbers, got {given!r}")
        if self.interpolation not in _INTERPOLATIONS:
            known = ", ".join(_INTERPOLATIONS)
            raise SpecError(
                f"interpolation= is one of {known}; got {self.interpolation!r}"
            )
        object.__setattr__(self, "q", shares if several else shares[0])

    def _check_top(self) -> None:
        if self.top is None:
            return
        if "top" not in self.record.parameters:
            raise SpecError(f"{self.kind}() takes no top=")
        top = as_int(self.top)
        if top is None or not 1 <= top < 2**31:
            raise SpecError(f"top must be 1 or more, or None for all, got {self.top!r}")
        object.__setattr__(self, "top", top)

    def _check_edges(self) -> None:
        given: object = self.edges
        if "edges" not in self.record.parameters:
            if given != ():
                raise SpecError(f"{self.kind}() takes no edges=")
            return
        object.__setattr__(self, "edges", _edges(given))

    def _check_unit(self) -> None:
        given: object = self.unit
        if given is None:
            return
        if "unit" not in self.record.parameters:
            raise SpecError(f"{self.kind}() takes no unit=")
        if not self.is_over_time:
            raise SpecError(
                f"unit={given!r} is a unit of time, but {self.kind}() is over column "
                f"{self.by!r}: leave one of them out"
            )
        if isinstance(given, timedelta):
            given = _in_microseconds(given)
        elif not isinstance(given, str):
            given = as_int(given)
        if given is None:
            raise SpecError(
                "unit is a duration such as '1s', or an int for integer times; got "
                f"{self.unit!r}"
            )
        object.__setattr__(self, "unit", given)

    def each_share(self, name: str | None = None) -> dict[str | None, Self]:
        """This aggregation by its name; one with several `q` as one for each of them.

        Example:
            >>> import slidewise as sw
            >>> sw.quantile("ms", [0.5, 0.999]).each_share("ms")
            {'ms_p50': quantile('ms', q=0.5), 'ms_p99_9': quantile('ms', q=0.999)}
            >>> sw.median("ms").each_share()
            {None: median('ms')}
        """
        if not isinstance(self.q, tuple):
            return {name: self}
        ahead = "" if name is None else f"{name}_"
        return {f"{ahead}{_percentile(q)}": replace(self, q=q) for q in self.q}

    def _check_half_life(self) -> None:
        given = self.half_life
        if given is None:
            return
        if "half_life" not in self.record.parameters:
            raise SpecError(f"{self.kind}() takes no half_life=")
        if isinstance(given, timedelta):
            given = _in_microseconds(given)
        elif not isinstance(given, str) and self.rows_of_half_life is None:
            given = as_int(given)
        if given is None or (isinstance(given, int) and given <= 0):
            raise SpecError(
                "half_life is a duration such as '1h', an int for integer times, or "
                f"sw.rows(k), and longer than zero; got {self.half_life!r:.60}"
            )
        object.__setattr__(self, "half_life", given)

    def _check_choices(self) -> None:
        for name, known in _CHOICES.items():
            given = getattr(self, name)
            if name not in self.record.parameters:
                if given != known[0]:
                    raise SpecError(f"{self.kind}() takes no {name}=")
            elif given not in known:
                shown = " or ".join(map(repr, known))
                raise SpecError(f"{name}= is {shown}; got {given!r:.60}")

    @property
    def rows_of_half_life(self) -> int | None:
        """The number of rows in which a weight halves; None if it is a time.

        Example:
            >>> import slidewise as sw
            >>> sw.decayed_mean("x", sw.rows(5)).rows_of_half_life
            5
        """
        rows: int | None = getattr(self.half_life, "n", None)
        return rows

    @property
    def is_ended(self) -> bool:
        """Whether its results depend on the ends of the windows.

        Example:
            >>> import slidewise as sw
            >>> sw.since_last().is_ended, sw.last("x").is_ended
            (True, False)
        """
        return self.record.ended and self.rows_of_half_life is None

    @property
    def carries(self) -> bool:
        """Whether a window begins with the entry before it.

        Example:
            >>> import slidewise as sw
            >>> sw.integral("x").carries, sw.integral("x", edge="first").carries
            (True, False)
        """
        return "edge" in self.record.parameters and self.edge == "carry"

    @property
    def carry_error(self) -> str:
        """The message of windows that keep no entries from before them.

        Example:
            >>> import slidewise as sw
            >>> print(sw.integral("x").carry_error)
            integral('x') begins with the last entry at or before the start of each...
        """
        return (
            f"{self!r} begins with the last entry at or before the start of each "
            "window, which a Window evicts: give edge='first' to begin at the first "
            "entry of the window, or use KeyedWindows, which keep it"
        )

    @property
    def row_error(self) -> str:
        """The message where windows are not those of rows.

        Example:
            >>> import slidewise as sw
            >>> print(sw.rank("x").row_error)
            rank('x') ranks the value of a row in its window, and here is no row: use...
        """
        return (
            f"{self!r} ranks the value of a row in its window, and here is no row: use "
            "rolling over the rows, KeyedWindows with emit='final' or 'arrival', or "
            "query with plus="
        )

    @property
    def is_over_time(self) -> bool:
        """Whether its second input is the time.

        Example:
            >>> import slidewise as sw
            >>> sw.slope("km").is_over_time, sw.slope("km", "fuel").is_over_time
            (True, False)
        """
        second = self.record.second
        return second == "time" or (second == "either" and self.by is None)

    @property
    def scale(self) -> str:
        """The unit of its results, as its record has it; "" if it reads no times.

        Example:
            >>> import slidewise as sw
            >>> sw.slope("km").scale, sw.slope("km", "fuel").scale
            ('rate', '')
        """
        return "" if self.by is not None else self.record.scale

    @property
    def record(self) -> Record:
        """The facts about its kind.

        Example:
            >>> import slidewise as sw
            >>> sw.covariance("x", "y").record.second
            'paired'
            >>> sw.top_k("x", 2).record.second, sw.top_k("x", 2, by="y").record.second
            ('', 'compared')
        """
        record = RECORDS[self.kind]
        return record.with_by if self.by is not None and record.with_by else record

    @property
    def commutes(self) -> bool:
        """Whether partials combine to the same answer in either order.

        Example:
            >>> import slidewise as sw
            >>> sw.sum("price").commutes, sw.last("price").commutes
            (True, False)
        """
        return _core.commutes(self.core_kind, 2 if self.record.second else 1)

    @property
    def core_kind(self) -> str:
        """The kind and its parameters, as the core reads them.

        Example:
            >>> import slidewise as sw
            >>> sw.median("price").core_kind
            'quantile 0.5 linear'
            >>> sw.histogram("price", edges=[0, 9.5]).core_kind
            'histogram 0.0 9.5'
        """
        kind = self.record.core.format(agg=self) or self.kind
        rows = self.rows_of_half_life
        return kind if rows is None else f"{kind} rows {rows}"

    @property
    def number(self) -> int:
        """The `k`, `top` or `ddof` of its kind, else 0; the core reads one number.

        Example:
            >>> import slidewise as sw
            >>> sw.top_k("price", 3).number, sw.variance("price").number
            (3, 1)
        """
        return self.k or self.top or self.ddof * ("ddof" in self.record.parameters)

    @property
    def shown_edges(self) -> str:
        """The edges of its bins, as the core reads them.

        Example:
            >>> import slidewise as sw
            >>> sw.histogram("price", edges=[0, 9.5]).shown_edges
            '0.0 9.5'
        """
        return " ".join(map(repr, self.edges))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads.

        Example:
            >>> import slidewise as sw
            >>> sw.mean("price", where="sold").columns
            ('price', 'sold')
        """
        named = (self.of, self.by, self.where)
        return tuple(column for column in named if column is not None)

    def check_columns(self) -> None:
        """Checks that all its columns are named.

        Raises:
            SpecError: If one is missing.

        Example:
            >>> import slidewise as sw
            >>> sw.sum().check_columns()
            Traceback (most recent call last):
            ...
            slidewise.errors.SpecError: sum() needs a column: sum('...')
        """
        second = self.record.second
        if second == "compared":
            if self.by is None:
                raise SpecError(
                    f"{self!r} needs the column to compare: "
                    f"{self.kind}({self.of!r}, by='...'); of= is the column to return"
                )
            if self.of is None and self.record.result == "values":
                raise SpecError(
                    f"{self!r} needs the column to return: {self.kind}('...', "
                    f"k={self.k}, by={self.by!r})"
                )
        elif second == "paired":
            if self.of is None or self.by is None:
                raise SpecError(
                    f"{self!r} needs two columns: {self.kind}('...', '...')"
                )
        elif self.of is None and not self.record.of_rows:
            raise SpecError(f"{self!r} needs a column: {self._called}('...')")

    @property
    def _called(self) -> str:
        return self.kind

    def __repr__(self) -> str:
        parts = self._shown_columns
        if self.by is not None:
            name = "by=" if self.record.second == "compared" else ""
            parts.append(f"{name}{self.by!r}")
        if "ddof" in self.record.parameters and self.ddof != 1:
            parts.append(f"ddof={self.ddof}")
        if self.k:
            parts.append(f"k={self.k}")
        if "q" in self.record.parameters:
            parts.append(f"q={[*self.q] if isinstance(self.q, tuple) else self.q!r}")
            if self.interpolation != "linear":
                parts.append(f"interpolation={self.interpolation!r}")
        if self.top is not None:
            parts.append(f"top={self.top}")
        if self.edges:
            parts.append(f"edges={[*self.edges]}")
        for name in ("unit", "half_life"):
            if getattr(self, name) is not None:
                parts.append(f"{name}={getattr(self, name)!r}")
        for name, known in _CHOICES.items():
            if getattr(self, name) != known[0]:
                parts.append(f"{name}={getattr(self, name)!r}")
        return f"{self._called}({', '.join([*parts, *self._shown_options])})"

    @property
    def _shown_columns(self) -> list[str]:
        """The columns without a name, for `repr`."""
        return [] if self.of is None else [repr(self.of)]

    @property
    def _shown_options(self) -> list[str]:
        """The options that all aggregations have, for `repr`."""
        parts = [] if self.where is None else [f"where={self.where!r}"]
        if self.windows is not None:
            one = len(self.windows) == 1
            parts.append(f"windows={(self.windows[0] if one else [*self.windows])!r}")
        return parts
