"""`only=`: the rows that a batch query answers, and those that it reads for them.

    read    start − reach ≤ t < end + reach ahead: a filter of the source
    answer  start ≤ t < end                      : the role of a row in workers

The bounds of a range are literals, which Spark pushes into the source. For a condition
they are the earliest and the latest time of the rows for which it is true, which scalar
subqueries of the plan find, so that the call runs no job.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    DataType,
    DateType,
    DayTimeIntervalType,
    IntegralType,
    TimestampNTZType,
    TimestampType,
)

from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import empty_table, require
from slidewise.keyed.single_times import format_tick, shown_time, tick_of
from slidewise.spark.columns import ASKED, ROLE, column
from slidewise.spark.schemas import arrow_schema
from slidewise.spark.skew import needs_all_rows
from slidewise.spark.versions import VERSION
from slidewise.spec.durations import spell_duration
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import AFTER, BEFORE, OWN, Reach
from slidewise.table.time_columns import TicksOf, TimeColumn, read_times

__all__ = ["Only", "literal_of", "why_unbounded"]

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
# The first PySpark with scalar subqueries.
_MIN_SUBQUERIES = (4, 0)


class _Bounds(NamedTuple):
    """Columns of one value: None without a bound.

    Attributes:
        start: The earliest time to answer.
        end: The first time that is too late, of a range.
        last: The latest time to answer, of a condition.
        read_from: The earliest time to read.
        read_until: As `end`, of the times to read.
        read_last: As `last`, likewise.
    """

    start: Any = None
    end: Any = None
    last: Any = None
    read_from: Any = None
    read_until: Any = None
    read_last: Any = None


@dataclass(frozen=True, slots=True)
class Only:
    """What `only=` of a call means for its DataFrame.

    Attributes:
        on: The column of times.
        condition: The condition; None for a range.
        bounds: The bounds as columns.
        ticks: The start and the end of a range in ticks, excluded.
        described: What is answered and what is read, for people.
    """

    on: str
    condition: Any
    bounds: _Bounds
    ticks: tuple[int | None, int | None]
    described: tuple[str, str]

    @classmethod
    def of(cls, df: Any, specs: Sequence[Spec], given: Any, *, labels: bool) -> "Only":
        """Checks a DataFrame and `only=`, which `BatchOptions` has checked, for it.

        Raises:
            SpecError: If a window has no bounded reach, or a bound is no such time.
        """
        schema = arrow_schema(df)
        empty = frame(empty_table(schema))
        for spec in specs:
            require(empty, spec.columns, "the DataFrame")
        on = specs[0].on
        times = read_times(empty.column(on), on)
        for spec in specs:
            _check_reach(spec, times)
        reaches = [Reach.of(spec, schema) for spec in specs]
        back = max(reach.back for reach in reaches)
        ahead = max(reach.ahead for reach in reaches)
        if isinstance(given, tuple):
            return cls._of_range(df, specs[0], times, given, back, ahead)
        if labels or specs[0].is_hopping:
            what = "labels" if labels else "windows"
            raise SpecError(
                Argument("only"),
                f" is a condition on rows, and the results are those of {what}: give a "
                "range of time, only=(start, end)",
            )
        return cls._of_condition(df, times, given, back, ahead)

    @classmethod
    def _of_range(
        cls,
        df: Any,
        spec: Spec,
        times: TimeColumn,
        given: tuple[Any, Any],
        back: int,
        ahead: int,
    ) -> "Only":
        start, end = (_tick(time, times) for time in given)
        if start is not None and end is not None and start >= end:
            raise SpecError(
                Argument("only", given), " has no time: its start is not before its end"
            )
        literal = partial(literal_of, kind=df.schema[times.name].dataType, times=times)
        first = None if start is None or start - back < _INT64_MIN else start - back
        until = None if end is None or end + ahead > _INT64_MAX else end + ahead
        bounds = _Bounds(
            start=literal(start),
            end=literal(end),
            read_from=literal(first),
            read_until=literal(until),
        )
        answers = f"rows with {_between(spec.on, times, start, end)}"
        if spec.is_hopping:
            answers = f"windows with {_ends(spec, times, start, end)}"
        reads = f"rows with {_between(spec.on, times, first, until)}, a filter that "
        reads += "Spark pushes into sources that take it"
        return cls(times.name, None, bounds, (start, end), (answers, reads))

    @classmethod
    def _of_condition(
        cls, df: Any, times: TimeColumn, given: Any, back: int, ahead: int
    ) -> "Only":
        if VERSION < _MIN_SUBQUERIES:
            raise SpecError(
                Argument("only"),
                " as a condition needs PySpark 4.0 or later: give a range of time, "
                "only=(start, end)",
            )
        condition = sf.expr(given) if isinstance(given, str) else given
        on, kind = times.name, df.schema[times.name].dataType
        asked = df.where(condition)

        def scalar(value: Any) -> Any:
            return asked.select(value).scalar()

        earliest, latest = sf.min(column(on)), sf.max(column(on))
        last = scalar(latest)
        bounds = _Bounds(
            start=scalar(earliest),
            last=last,
            read_from=scalar(_moved(earliest, -back, kind)),
            read_last=scalar(_moved(latest, ahead, kind)) if ahead else last,
        )
        length = partial(_length, times=times)
        reads = f"{on} from {length(back)} before the earliest of them to "
        reads += f"{length(ahead)} after the latest" if ahead else "the latest"
        reads += ", which subqueries of the plan find"
        answers = f"rows where {given if isinstance(given, str) else condition}"
        return cls(on, condition, bounds, (None, None), (answers, reads))

    def restricted(self, df: Any) -> Any:
        """The rows to read, and all without a time, which the query refuses."""
        bounds, time = self.bounds, column(self.on)
        conditions = _compared(
            (bounds.read_from, time.__ge__),
            (bounds.read_until, time.__lt__),
            (bounds.read_last, time.__le__),
        )
        return df.where(_all(conditions) | time.isNull()) if conditions else df

    def labels(self, df: Any, on: str) -> Any:
        """The labels to answer, whose column of times is `on`, and those without."""
        conditions = self._inside(column(on))
        return df.where(_all(conditions) | column(on).isNull()) if conditions else df

    def asked(self) -> Any:
        """A column that is true for the rows to answer, and those without a time."""
        time = column(self.on)
        conditions = self._inside(time)
        if self.condition is not None:
            conditions = [self.condition]
        return sf.coalesce(_all(conditions), sf.lit(False)) | time.isNull()

    def _inside(self, time: Any) -> list[Any]:
        return _compared(
            (self.bounds.start, time.__ge__), (self.bounds.end, time.__lt__)
        )

    def with_roles(self, df: Any, read: Any = None) -> Any:
        """Adds the column `ROLE`, and for a condition `ASKED`.

        If rows were answered before, `df` are these, with further columns, and `read`
        are all: then those that were not answered are added, with nulls for the others.
        """
        if read is None:
            return self._with_role(df, self.asked())
        rest = read.where(~self.asked())
        nulls = [
            sf.lit(None).cast(field.dataType).alias(field.name)
            for field in df.schema[len(read.columns) :]
        ]
        rest = rest.select(*map(column, read.columns), *nulls)
        answered = self._with_role(df, sf.lit(True))
        return answered.union(self._with_role(rest, sf.lit(False)))

    def _with_role(self, df: Any, asked: Any) -> Any:
        bounds, time = self.bounds, column(self.on)
        role = sf.lit(OWN)
        for bound, is_after in ((bounds.end, time.__ge__), (bounds.last, time.__gt__)):
            if bound is not None:
                role = sf.when(is_after(bound), AFTER).otherwise(role)
        if bounds.start is not None:
            role = sf.when(time < bounds.start, BEFORE).otherwise(role)
        added = {ROLE: role.cast("byte")}
        if self.condition is not None:
            added[ASKED] = asked
        return df.withColumns(added)


def why_unbounded(spec: Spec, times: TimeColumn) -> str | None:
    """Returns why windows may hold any earlier row, or None."""
    reason = needs_all_rows(spec)
    if reason is None and spec.empty:
        reason = "empty=True needs the rows on both sides of an empty window"
    for window in spec.windows:
        if window.rows or window.reach(TicksOf(times)) >= _INT64_MAX:
            reason = reason or f"the rows of {window!r} may be at any earlier time"
    return reason


def _check_reach(spec: Spec, times: TimeColumn) -> None:
    """Refuses windows that may hold any earlier row."""
    reason = why_unbounded(spec, times)
    if reason is not None:
        raise SpecError(
            Argument("only"),
            f" reads no further back than the longest window, and {reason}: leave it "
            "out, and filter the results; or give such windows in a separate call",
        )


def _tick(time: Any, times: TimeColumn) -> int | None:
    if time is None:
        return None
    try:
        return tick_of(time, times)
    except SpecError as error:
        raise SpecError(
            Argument("only"), " is a range of time: ", *error.args
        ) from None


def literal_of(tick: int | None, kind: DataType, times: TimeColumn) -> Any:
    """A time as a literal that can be compared with the column; None without one.

    It is None, too, for a bound that no time of the type can pass.
    """
    if tick is None or not _INT64_MIN <= tick <= _INT64_MAX:
        return None
    if isinstance(kind, IntegralType):
        return sf.lit(tick)
    if isinstance(kind, TimestampType):
        return sf.timestamp_micros(sf.lit(tick))
    if isinstance(kind, DateType):
        fits = -(2**31) <= tick < 2**31
        return sf.date_from_unix_date(sf.lit(tick)) if fits else None
    try:
        value = shown_time(tick, times)
    except SpecError:
        return None
    if isinstance(kind, TimestampNTZType):
        return sf.expr(f"timestamp_ntz'{value}'")
    return sf.lit(value)


def _moved(time: Any, ticks: int, kind: DataType) -> Any:
    """A time, moved by some ticks."""
    if isinstance(kind, TimestampType):
        # Spark would add the days of an interval by the local time of the session.
        return sf.timestamp_micros(sf.unix_micros(time) + sf.lit(ticks))
    if isinstance(kind, DateType):
        return sf.date_add(time, ticks)
    if isinstance(kind, TimestampNTZType | DayTimeIntervalType):
        return time + sf.lit(timedelta(microseconds=ticks))
    whole = time.cast("decimal(38,0)") + sf.lit(ticks)
    low, high = sf.lit(_INT64_MIN), sf.lit(_INT64_MAX)
    return sf.least(sf.greatest(whole, low), high).cast("long")


def _compared(*pairs: tuple[Any, Callable[[Any], Any]]) -> list[Any]:
    return [compare(bound) for bound, compare in pairs if bound is not None]


def _all(conditions: list[Any]) -> Any:
    found = conditions[0] if conditions else sf.lit(True)
    for condition in conditions[1:]:
        found = found & condition
    return found


def _ends(spec: Spec, times: TimeColumn, start: int | None, end: int | None) -> str:
    """The ends of windows whose last instants are in a range, in words."""
    if not spec.windows[0].includes_start:
        return _between("window_end", times, start, end)
    lower = "" if start is None else f"{format_tick(start, times)} < "
    upper = "" if end is None else f" <= {format_tick(end, times)}"
    return f"{lower}window_end{upper}"


def _length(ticks: int, times: TimeColumn) -> str:
    """A length in words."""
    return str(ticks) if times.unit is None else spell_duration(ticks * times.unit)


def _between(what: str, times: TimeColumn, start: int | None, end: int | None) -> str:
    """A range of times, in words."""
    lower = "" if start is None else f"{format_tick(start, times)} <= "
    upper = "" if end is None else f" < {format_tick(end, times)}"
    return f"{lower}{what}{upper}"
