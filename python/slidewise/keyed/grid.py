"""The grid of hopping windows."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Grid"]


@dataclass(frozen=True, slots=True)
class Grid:
    """Windows that begin at `offset` and every `every` from there, in ticks.

    A window holds the times from its start up to one before its *stop*, which is its
    end, or the next tick if the end belongs to the window.

    Attributes:
        length: The length.
        every: The distance between starts.
        offset: A start.
        stop_shift: The distance from the end of a window to its stop: 0, or 1 if the
            end belongs to the window and the start does not.
        step: The least distance of two different times.
        calendar: The calendar whose units are the windows, of at most `length`; None
            for those of one length.
        cumulates: Whether windows begin with such a unit, and end every `every` within
            it.
    """

    length: int
    every: int
    offset: int
    stop_shift: int = 0
    step: int = 1
    calendar: Any = None
    cumulates: bool = False

    def starts(self, ends: pa.Array) -> pa.Array:
        """The starts of windows with some ends."""
        if self.calendar is None:
            return pc.subtract(ends, self.length)
        return pa.array(self.calendar.starts(pc.subtract(ends, 1))[0])

    def ends(self, stops: pa.Array) -> pa.Array:
        """The ends of windows, as in results."""
        return pc.subtract(stops, self.stop_shift) if self.stop_shift else stops

    def last_closed_stop(self, watermark: int) -> int:
        """The latest stop of a window that a watermark closes.

        Times that are no later than the watermark are none of a later step.
        """
        return watermark + self.step

    def last_closed_end(self, watermark: int) -> int:
        """The latest end of a window that a watermark closes."""
        return self.last_closed_stop(watermark) - self.stop_shift

    def beyond(self, times: pa.ChunkedArray, bits: int = 64) -> int | None:
        """A time in a window whose start or stop is beyond int64, or None."""
        limit = 2 ** (bits - 1)
        ends = pc.min_max(times)
        for time in (ends["min"].as_py(), ends["max"].as_py()):
            if time is None:
                continue
            first = self.stop_after(time) - self.length - self.stop_shift
            last = (time - self.offset) // self.every * self.every + self.offset
            if first <= time and (first < -limit or last + self.length >= limit):
                return int(time)
        return None

    def stop_after(self, time: int) -> int:
        """The earliest stop of a window that is later than a time."""
        since = time - self.offset - self.length
        return (since // self.every + 1) * self.every + self.offset + self.length
