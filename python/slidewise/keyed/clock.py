"""The clock of a stream: `ahead=` and `idle=` compare its rows with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import floor, isfinite
from numbers import Rational
from threading import get_ident
from time import time
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError
from slidewise.keyed.columns import LATEST, TIME, Ends, ends_of, later_than
from slidewise.keyed.query import KeyedQuery
from slidewise.spec.durations import Length, WindowLike, parse_offset
from slidewise.table.time_columns import window_ticks

__all__ = ["Clock", "Guards", "Silence", "parse_guard", "split_ahead"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """A function that returns the time, as `time.time` does.

    Args:
        read: Returns seconds since 1970 in UTC, or a datetime (one without a zone is in
            UTC); for integer times and durations, a time in the units of the column.
            None for `time.time`.
    """

    def __init__(self, read: Callable[[], Any] | None) -> None:
        self._read = read
        # The reading of each thread that holds one.
        self._held: dict[int, Any] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: copies of windows share the clock."""
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[Any]]:
        """Without readings, for pickle."""
        return type(self), (self._read,)

    @classmethod
    def given(cls, read: Any, ahead: Any, idle: Any) -> Self:
        """The clock of the arguments `clock=`, `ahead=` and `idle=`."""
        if read is not None and not callable(read):
            raise SpecError(
                Argument("clock"),
                f" takes a function that returns the time, such as time.time; got "
                f"{read!r:.60}",
            )
        if read is not None and ahead is None and idle is None:
            raise SpecError(
                Argument("clock"),
                " is for ",
                Argument("ahead"),
                " and ",
                Argument("idle"),
                ", which compare rows with it: give one of these, or leave it out",
            )
        return cls(read)

    def check(self, query: KeyedQuery, argument: Argument) -> None:
        """Checks that its readings can be compared with the times of a stream."""
        if self._read is None and query.clock_unit is None:
            kind = query.times.original.type
            raise SpecError(
                argument,
                f" compares rows with the clock, and column {query.spec.on!r} holds "
                f"{kind}, which it does not give: cast it to timestamps, or pass "
                "clock=, a function that returns the time in the units of that column",
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """A block in which it gives this thread one reading."""
        thread = get_ident()
        if thread in self._held:
            yield
            return
        self._held[thread] = self._reading()
        try:
            yield
        finally:
            del self._held[thread]

    def _reading(self) -> Any:
        if get_ident() in self._held:
            return self._held[get_ident()]
        return time() if self._read is None else self._read()

    def tick(self, query: KeyedQuery) -> int:
        """The last tick of the stream's times that is not after the clock."""
        reading, unit = self._reading(), query.times.unit
        if isinstance(reading, datetime) and unit is not None:
            zoned = reading if reading.tzinfo else reading.replace(tzinfo=UTC)
            since = (zoned - _EPOCH) // timedelta(microseconds=1)
            ticks = Fraction(since * 1_000, unit)
        elif isinstance(reading, timedelta) and unit is not None:
            ticks = Fraction(reading // timedelta(microseconds=1) * 1_000, unit)
        else:
            ticks = _number(reading)
            if unit is not None:
                ticks *= Fraction(1_000_000_000, unit)
        return floor(ticks) // query.step * query.step


def _number(reading: Any) -> Fraction:
    """A reading that is a number, exactly."""
    if isinstance(reading, Rational):
        return Fraction(reading)
    if isinstance(reading, float) and isfinite(reading):
        return Fraction(reading)
    raise SpecError(
        Argument("clock"),
        f" returned {reading!r}: it returns seconds since 1970 as a number, as "
        "time.time does, or a datetime; for integer times, a number in their units",
    )


class Silence(NamedTuple):
    """For how long no row has come, in ticks.

    Attributes:
        looked: The time of the last look at the clock; None before the first.
        lasted: For how long no row had come then.
    """

    looked: int | None = None
    lasted: int = 0

    def at(self, now: int, idle: int | None) -> tuple["Silence", int]:
        """The silence at another look, and how far the watermark follows the clock.

        A reading of the clock before the last one counts as no time since then.

        Args:
            now: The time of the clock.
            idle: After how long the watermark follows it; None for never.

        Example:
            >>> Silence(100, 0).at(130, 20)
            (Silence(looked=130, lasted=30), 10)
            >>> Silence(130, 30).at(135, 20)
            (Silence(looked=135, lasted=35), 5)
        """
        since = 0 if self.looked is None else max(0, now - self.looked)
        lasted = self.lasted + since
        pace = 0 if idle is None else max(0, lasted - max(self.lasted, idle))
        return Silence(now, lasted), pace


@dataclass(frozen=True, slots=True)
class Guards:
    """How a stream compares its rows with the clock, in ticks.

    Attributes:
        query: The query.
        clock: The clock.
        ahead: How far rows may be ahead of the clock; None for any distance.
        idle: After how long without rows the watermark follows the clock; None for
            never.
    """

    query: KeyedQuery
    clock: Clock
    ahead: int | None
    idle: int | None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself, as it never changes."""
        return self

    @classmethod
    def of(
        cls, query: KeyedQuery, clock: Clock, ahead: Length | None, idle: Length | None
    ) -> Self | None:
        """Those of a stream; None if it has neither `ahead=` nor `idle=`."""
        ticks: list[int | None] = []
        for length in (ahead, idle):
            if length is not None:
                clock.check(query, length.given)
            ticks.append(_ticks(length, query))
        return None if ticks == [None, None] else cls(query, clock, *ticks)

    @property
    def now(self) -> int:
        """The time of the clock, in ticks."""
        return self.clock.tick(self.query)

    def limit(self, now: int) -> int:
        """The latest time of a row that is not ahead."""
        return LATEST if self.ahead is None else min(now + self.ahead, LATEST)


def _ticks(length: Length | None, query: KeyedQuery) -> int | None:
    if length is None or not length.amount:
        return None if length is None else 0
    return window_ticks(length, query.times)


def parse_guard(length: WindowLike | None, argument: str) -> Length | None:
    """Parses `ahead=` or `idle=`."""
    if length is None:
        return None
    found = parse_offset(length, argument)
    if found.amount < 0:
        raise SpecError(
            Argument(argument, length),
            " is negative: give a length of zero or more",
        )
    return found


def split_ahead(
    rows: pa.Table, limit: int, ends: Ends | None
) -> tuple[pa.Table, pa.Table, Ends | None]:
    """Splits rows into those up to a time and those ahead of it.

    Args:
        rows: The rows, with their times in `TIME`.
        limit: The latest time that is not ahead.
        ends: The earliest and the latest time of the rows; None without rows.

    Returns:
        Both, and the earliest and the latest time of the first.
    """
    if ends is None or ends[1] <= limit:
        return rows, rows.slice(0, 0), ends
    is_ahead = later_than(rows[TIME], limit)
    taken = rows.filter(pc.invert(is_ahead)).combine_chunks()
    times = taken.column(TIME).combine_chunks()
    return taken, rows.filter(is_ahead).combine_chunks(), ends_of(times)
