"""ADWIN: a window that shortens itself when the mean of a stream changes.

    python examples/adwin/adwin.py [--items 4000] [--delta 0.002] [--seed 1]

Bifet, Gavaldà: *Learning from Time-Changing Data with Adaptive Windowing*, SDM 2007.
The window keeps the latest items for which no cut into an older and a newer part shows
two means that differ by more than chance allows. When one does, the older part is
dropped.

The paper's ADWIN0 checks every cut; ADWIN2 keeps an exponential histogram of buckets
and checks the O(log n) cuts between them. This version keeps only a `slidewise.Window`
of the items. Queries of sub-ranges give the aggregates of the newer part, at the bounds
of a histogram of full buckets; those of the older part follow from them. One bulk
eviction drops the older part. Memory is O(n), not O(log n).

The bound on the difference is the paper's practical one, a normal approximation with a
correction: with the harmonic mean m of the lengths of both parts, the variance v of the
window and δ' = δ / ln n,

    ε = sqrt(2 v ln(2 / δ') / m) + 2 ln(2 / δ') / (3 m)

for items between 0 and 1. δ approximates the probability of a false alarm per check;
the rigorous bound of Theorem 3.1 is wider.
"""

import argparse
import math
import random
from collections.abc import Iterator

import slidewise as sw

__all__ = ["Adwin", "bound", "cuts"]


class Adwin:
    """An adaptive window over items between 0 and 1, and their mean.

    Args:
        delta: About the chance of a false alarm per check.
        per_size: How many buckets of each size the cuts assume: the paper's M.
        least: The least length of a part of a cut.

    Cost: O(M log n) queries per item, each O(log n); a change drops its items at once.

    Example:
        >>> window = Adwin()
        >>> changes = [at for at in range(200) if window.add(at >= 100)]
        >>> changes[0] < 120, window.mean
        (True, 1.0)
    """

    def __init__(
        self, delta: float = 0.002, *, per_size: int = 5, least: int = 5
    ) -> None:
        self.delta = delta
        self._per_size, self._least = per_size, least
        self._items = sw.Window(
            {"mean": sw.mean(), "variance": sw.variance(ddof=0)}, dtype="float64"
        )
        self._count = 0

    def __len__(self) -> int:
        """The number of items in the window."""
        return len(self._items)

    @property
    def mean(self) -> float | None:
        """The mean of the window; None before the first item."""
        mean: float | None = self._items.query()["mean"]
        return mean

    def add(self, value: float) -> int:
        """Adds an item; returns how many older ones were dropped for a change."""
        self._items.insert(self._count, float(value))
        self._count += 1
        dropped = 0
        while (newer := self._changed()) is not None:
            dropped += self._items.evict_until(self._count - newer - 1)
        return dropped

    def _changed(self) -> int | None:
        """The length of the newer part, of the oldest cut that shows a change."""
        length = len(self._items)
        whole = self._items.query()
        last = self._count - 1
        found = None
        for newer in cuts(length, self._per_size):
            older = length - newer
            if min(older, newer) < self._least:
                continue
            mean = self._items.query(last - newer + 1, last)["mean"]
            other = (whole["mean"] * length - mean * newer) / older
            if abs(mean - other) > bound(newer, older, whole["variance"], self.delta):
                found = newer
        return found


def cuts(length: int, per_size: int) -> Iterator[int]:
    """The lengths of the newer part: sums of buckets of 1, 2, 4, ... items.

    Example:
        >>> list(cuts(16, 2))
        [1, 2, 4, 6, 10, 14]
    """
    size, newer = 1, 0
    while True:
        for _ in range(per_size):
            newer += size
            if newer >= length:
                return
            yield newer
        size *= 2


def bound(newer: int, older: int, variance: float, delta: float) -> float:
    """The largest difference between the means of two parts that chance explains.

    Example:
        >>> bound(50, 50, 0.25, 0.002) > bound(500, 500, 0.25, 0.002)
        True
    """
    harmonic = 1 / (1 / newer + 1 / older)
    doubt = math.log(2 * math.log(newer + older) / delta)
    return math.sqrt(2 / harmonic * variance * doubt) + 2 / (3 * harmonic) * doubt


def main() -> None:
    """Prints where a window finds the changes of a stream that changes twice."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--items", type=int, default=4000)
    parser.add_argument("--delta", type=float, default=0.002)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    window = Adwin(given.delta)
    chances = (0.2, 0.7, 0.4)
    third = max(given.items // 3, 1)
    for at in range(given.items):
        chance = chances[min(at // third, 2)]
        before = window.mean
        dropped = window.add(rng.random() < chance)
        if dropped:
            print(
                f"item {at:,}: {dropped:,} dropped, {len(window):,} kept; "
                f"mean {before:.3f} -> {window.mean:.3f} (chance {chance})"
            )
    print(f"at the end: {len(window):,} items, mean {window.mean:.3f}")


if __name__ == "__main__":
    main()
