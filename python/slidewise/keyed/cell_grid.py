"""Cells: the rows of a key that enter and leave all windows together.

The windows of `trailing(resolution=)` begin on a grid. Once the watermark has passed a
cell of that grid, each later window holds all of its rows or none, so the index folds
them into one entry, and the log keeps that entry instead of the rows.
"""

from collections.abc import Iterable
from math import gcd
from typing import NamedTuple, Self

from slidewise.spec.windows.base import Ticks, Window

__all__ = ["CellGrid"]


class CellGrid(NamedTuple):
    """Cells of equal length, and when they are folded.

    Attributes:
        every: The length of a cell, in ticks.
        start: The first tick of some cell.
        lag: How far behind the watermark rows are kept as they are, in ticks.
    """

    every: int
    start: int
    lag: int

    @classmethod
    def of(cls, windows: Iterable[Window], ticks_of: Ticks, step: int) -> Self | None:
        """The cells of some windows, of which those without a grid need rows longer.

        None if no window has a grid, or rows may never be folded.

        Args:
            windows: The windows.
            ticks_of: Lengths in ticks.
            step: The least distance of two different times.
        """
        grids, lag = [], 0
        for window in windows:
            grid, reach = window.cell_grid(ticks_of), window.reach(ticks_of)
            if window.by_position or not reach:
                return None
            if grid is None:
                lag = max(lag, reach + step)
            else:
                lag = max(lag, 0 if window.includes_end else step)
                grids.append((grid[0], grid[1] + (not window.includes_start)))
        if not grids:
            return None
        start = min(start for _, start in grids)
        every = gcd(*(n for one, first in grids for n in (one, first - start)))
        return cls(every, start, lag)

    def last_tick(self, tick: int) -> int:
        """The last tick of the cell that holds a tick."""
        number = (tick - self.start) // self.every
        return self.start + (number + 1) * self.every - 1

    def until(self, watermark: int) -> int:
        """The last tick of the cells that may be folded at a watermark."""
        return self.last_tick(watermark - self.lag + 1 - self.every)

    def cuts(self, first: int | None, last: int, folded: int, step: int) -> bool:
        """Whether a range of ticks may have only a part of a folded cell.

        Args:
            first: The first tick; None if a cell begins there.
            last: The last tick.
            folded: The last tick of the folded cells.
            step: The least distance of two different times.
        """
        if last < folded and self.last_tick(last) - last >= step:
            return True
        if first is None or first > folded:
            return False
        return self.last_tick(first - 1) != first - 1
