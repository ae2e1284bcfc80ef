"""`SharedWindow`: several ranges over one stream, in one structure."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Self

import slidewise._core as _core
from slidewise.aggregations import Aggregation
from slidewise.aggregations.compiled import NativeAggregation
from slidewise.aggregations.custom import CustomAggregation
from slidewise.spec.durations import WindowLike
from slidewise.window.explain import why_lines
from slidewise.window.planner import WindowPlan, make_plan
from slidewise.window.window import (
    Window,
    as_bytes,
    custom_aggs,
    named,
    read_spec,
    result_in_words,
    spec_of_plan,
)

__all__ = ["SharedWindow"]


class SharedWindow(_core.Window):
    """Several ranges over one stream, such as the last 10, 100 and 1000 entries.

    The ranges share entries and partial results, so that together they cost far less
    than one window each. All of them end at the latest entry. An entry is evicted once
    no range holds it.

    - `insert` and `insert_many` add entries, in order of time.
    - `evict` and `evict_until` remove entries from all ranges.
    - `query` gives a list of results, one per range, in the order given.
    - `len`, `oldest`, `youngest` and `items` give the entries of the longest range.
    - `copy`, `to_bytes`, `from_bytes` and pickle copy the window.
    - `explain`, `check` and `nbytes` show its internals.

    Args:
        aggs: An aggregation, or a mapping of names to aggregations: then each result is
            a dict. If aggregations name columns, values are mappings.
        ranges: The lengths: numbers of entries (`rows(n)` or an int n) or durations
            such as "1h" or a timedelta. The range "1h" is (latest - 1h, latest].
        algorithm: "auto", or one of "slick_deque", "flat_fit", "flat_fat", "b_int",
            "amta", "daba_chain" and "recalculate": see `slidewise.algorithms`. "auto"
            takes slick_deque for results that are one of the values and for integers
            that subtract exactly, otherwise flat_fit, which needs no law.
        dtype: "int64", "float64" or "object", as for `Window`.
        nan: "propagate", "skip" or "raise", as for `Window`.
        **parameters: Parameters of the algorithm, as its card names them.

    Raises:
        SpecError: If an argument is wrong, or the aggregations lack a law that the
            algorithm needs.

    Entries of equal time are kept separate, in order of arrival, because ranges count
    entries. A late entry raises `OutOfOrderError`. A call that raises leaves the window
    unchanged. Threads may share a window: calls wait for one another.

    Source: Shein, Chrysanthis, Labrinidis: SlickDeque, EDBT 2018.

    Cost: combines per entry, for q ranges: slick_deque < 2 in all for results that are
    one of the values, otherwise 2q; flat_fit, if queried after every entry, 3 for one
    range, q for ranges of all lengths or each twice the next, and 2 to 4 per range for
    others; daba_chain at most 7q.

    Example:
        >>> import slidewise as sw
        >>> w = sw.SharedWindow(sw.max(), ranges=[3, 5])
        >>> for time, value in enumerate([6, 5, 0, 1, 3, 4, 2, 7]):
        ...     w.insert(time, value)
        ...     print(w.query(), end=" ")
        [6, 6] [6, 6] [6, 6] [5, 6] [3, 6] [4, 5] [4, 4] [7, 7]
        >>> len(w), w.oldest
        (5, 3)

        Over the last minute and the last hour, two aggregations of a column:

        >>> from datetime import datetime
        >>> w = sw.SharedWindow(
        ...     {"n": sw.count(), "top": sw.max("load")}, ranges=["1m", "1h"]
        ... )
        >>> w.insert(datetime(2024, 3, 1, 12, 0), {"load": 0.75})
        >>> w.insert(datetime(2024, 3, 1, 12, 30), {"load": 0.5})
        >>> w.query()
        [{'n': 1, 'top': 0.5}, {'n': 2, 'top': 0.75}]
    """

    __slots__ = ()

    def __new__(
        cls,
        aggs: Aggregation | Mapping[str, Aggregation],
        ranges: Iterable[WindowLike],
        *,
        algorithm: str = "auto",
        dtype: str | type | None = None,
        nan: str = "propagate",
        **parameters: int,
    ) -> Self:
        """Checks the arguments, which the class documents."""
        plan = make_plan(
            aggs,
            algorithm=algorithm,
            ties="keep",
            dtype=dtype,
            nan=nan,
            options=parameters,
            ranges=ranges,
        )
        return super().__new__(cls, spec_of_plan(plan))

    def query(self) -> list[Any]:  # type: ignore[override]
        """Gives the results, one per range, in the order given.

        Returns:
            A list of results; of dicts by name if there are several aggregations. The
            result over no entries is None (0 for `count`, [] for `collect`).

        Raises:
            ResultOverflowError: If an exact integer does not fit int64.

        Cost: in combines, for q ranges: slick_deque 0; flat_fit q to 4q if queried
        after every entry, by their lengths; daba_chain at most 2q; flat_fat, b_int and
        amta 2q log n; recalculate the sum of their lengths.

        Example:
            >>> import slidewise as sw
            >>> w = sw.SharedWindow(sw.sum(), ranges=[sw.rows(2), sw.rows(3)])
            >>> w.insert_many([1, 2, 3, 4], [10, 20, 30, 40])
            >>> w.query()
            [70, 90]
        """
        results: list[Any] = super().query()
        return results

    @classmethod
    def from_bytes(cls, blob: Any) -> Self:
        """Restores a window from a snapshot.

        Args:
            blob: The bytes that `to_bytes` gave, or any object with a buffer of them.

        Returns:
            A window whose further results equal those of the original, bit for bit.

        Raises:
            SnapshotError: If the bytes are no snapshot of a SharedWindow, damaged, or
                of another version. They are not trusted: they run no code, and sizes in
                them are checked before memory is allocated.

        Cost: O(n).

        Example:
            >>> import slidewise as sw
            >>> w = sw.SharedWindow(sw.mean(), ranges=[2, 10])
            >>> w.insert(1, 0.5)
            >>> sw.SharedWindow.from_bytes(w.to_bytes()).query()
            [0.5, 0.5]
        """
        return cls._restore(as_bytes(blob), read_spec, True)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as the bytes that `to_bytes` gives.

        Custom aggregations are pickled with them, by reference where possible.
        """
        custom = self._describe()[0].custom
        if custom:
            return _unpickled, (type(self), self.to_bytes(), custom_aggs(custom))
        return type(self).from_bytes, (self.to_bytes(),)

    @property
    def ranges(self) -> list[str]:
        """The labels of the ranges, in the order given.

        Example:
            >>> import slidewise as sw
            >>> sw.SharedWindow(sw.sum(), ranges=["1h", sw.rows(10), 20]).ranges
            ['1h', '10rows', '20']
        """
        return _labels(self._describe()[0])

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that runs.

        Example:
            >>> import slidewise as sw
            >>> sw.SharedWindow(sw.min(), ranges=[5, 10]).algorithm
            'slick_deque'
        """
        plan, dtypes, _ = self._describe()
        return plan.initial_algorithm(dtypes)

    aggs = Window.aggs
    dtype = Window.dtype

    def explain(self) -> str:
        """Explains in a few lines which algorithm runs, why, and with which options.

        Example:
            >>> import slidewise as sw
            >>> print(sw.SharedWindow(sw.min(), ranges=[5, "1h"]).explain())
            slick_deque: chosen by "auto" for aggregations whose result is one of the
              values, such as max, because values that a later one dominates are
              dropped, and one pass over the rest answers all ranges
            min() over 5 and 1h; entries of equal time are kept, in order of arrival
        """
        plan, dtypes, _ = self._describe()
        lines = why_lines(plan, dtypes, None)
        entries = "entries of equal time are kept, in order of arrival"
        lines.append(f"{named(plan)} over {_listed(plan)}; {entries}")
        if plan.nan != "propagate":
            lines.append(f"NaN: {plan.nan}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        plan, length = self._describe()[0], len(self)
        head = f"<{type(self).__name__} {named(plan)} over {_listed(plan)}"
        if length == 0:
            return f"{head}: empty>"
        entries = "1 entry" if length == 1 else f"{length} entries"
        return f"{head}: {entries}{result_in_words(self, plan, length)}>"


def _labels(plan: WindowPlan) -> list[str]:
    return [length.label for length in plan.ranges or ()]


def _listed(plan: WindowPlan) -> str:
    labels = _labels(plan)
    if len(labels) > 6:
        labels = [*labels[:3], f"{len(labels) - 4} more", labels[-1]]
    *most, last = labels
    return f"{', '.join(most)} and {last}" if most else last


def _unpickled(
    cls: type[SharedWindow],
    blob: bytes,
    custom: tuple[CustomAggregation | NativeAggregation, ...],
) -> SharedWindow:
    return cls._restore(blob, partial(read_spec, custom=custom), True)
