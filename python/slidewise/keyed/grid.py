"""The grid of hopping windows."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Grid"]


@dataclass(frozen=True, slots=True)
class Grid:
    """Windows that begin at `offset` and every `every` from there, in ticks."""

    length: int
    every: int
    offset: int

    def beyond(self, times: pa.ChunkedArray, bits: int = 64) -> int | None:
        """A time in a window whose start or end is beyond int64, or None.

        Args:
            times: The times.
            bits: How many bits the column of times has, if not 64.
        """
        limit = 2 ** (bits - 1)
        ends = pc.min_max(times)
        for time in (ends["min"].as_py(), ends["max"].as_py()):
            if time is None:
                continue
            first = self.end_after(time) - self.length
            last = (time - self.offset) // self.every * self.every + self.offset
            if first <= time and (first < -limit or last + self.length >= limit):
                return int(time)
        return None

    def end_after(self, time: int) -> int:
        """The earliest window end that is later than a time."""
        since = time - self.offset - self.length
        return (since // self.every + 1) * self.every + self.offset + self.length
