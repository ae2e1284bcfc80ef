"""Many ranges over one stream: one window that answers for each of them."""

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
    answer_in_words,
    as_bytes,
    named,
    own_aggs,
    read_spec,
    spec_of_plan,
)

__all__ = ["SharedWindow"]


class SharedWindow(_core.Window):
    """Several ranges over one stream, answered together.

    "The maximum of the last 10, 100 and 1000 entries, after each": the ranges share
    entries and partial results, so that together they cost far less than a window for
    each. All end at the youngest entry. Entries leave by themselves once no range
    reaches them.

    - Values enter by `insert` and `insert_many`, in order of time; they leave by
      themselves, or by `evict` and `evict_until`, for all ranges at once.
    - `query` answers: a list with an answer for each range, in the order given.
    - `len`, `oldest`, `youngest` and `items` tell what the longest range holds.
    - `copy`, `to_bytes`, `from_bytes` and pickle make another of it.
    - `explain`, `check` and `nbytes` look inside.

    Args:
        aggs: An aggregation, or a mapping from names to several: then each answer is a
            dict. Aggregations that name columns take mappings as values.
        ranges: How far each reaches back from the youngest entry: a number of entries
            (`rows(n)` or an int n) or a duration such as "1h" or a timedelta, of which
            the last 1h is (youngest - 1h, youngest].
        algorithm: "auto", or one of "slick_deque", "flat_fit", "flat_fat", "b_int",
            "amta", "daba_chain" and "recalculate": see `slidewise.algorithms`. "auto"
            takes slick_deque where results are one of the values or integers can be
            subtracted exactly, and needs no law otherwise; `explain` says why.
        dtype: "int64", "float64" or "object", as for `Window`.
        nan: "propagate", "skip" or "raise", as for `Window`.
        **parameters: Parameters of the algorithm, as its card names them.

    Raises:
        SpecError: If an argument is wrong, or the aggregations lack a law that the
            algorithm needs.

    Entries of equal time stay apart, in order of arrival, because ranges count entries.
    A late one raises `OutOfOrderError`. A call that raises leaves the window as it was.
    Threads may share a window, as a `Window`: calls happen one after the other.

    Source: Shein, Chrysanthis, Labrinidis: SlickDeque, EDBT 2018.

    Cost: per entry, for q ranges: slick_deque < 2 combines in all where results are
    one of the values, else 2q; flat_fit, if asked after every entry, 3 for one range, q
    for ranges of all lengths or each twice the next, and 2 to 4 for each of others;
    daba_chain at most 7q.

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
        """Checks the arguments; the class says what they mean."""
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
        """The answers, one for each range in the order given.

        Returns:
            A list of answers, or of dicts of answers by name if there are several
            aggregations. Over nothing an answer is None (0 for `count`, [] for
            `collect`).

        Raises:
            ResultOverflowError: If an exact integer does not fit int64.

        Cost: for q ranges, in combines: slick_deque 0; flat_fit q to 4q if asked after
        every entry, by how they lie; daba_chain at most 2q; flat_fat, b_int and amta
        2q log n; recalculate their lengths.

        Example:
            >>> import slidewise as sw
            >>> w = sw.SharedWindow(sw.sum(), ranges=[sw.rows(2), sw.rows(3)])
            >>> w.insert_many([1, 2, 3, 4], [10, 20, 30, 40])
            >>> w.query()
            [70, 90]
        """
        answers: list[Any] = super().query()
        return answers

    @classmethod
    def from_bytes(cls, blob: Any) -> Self:
        """Restores a window from what `to_bytes` gave.

        Args:
            blob: bytes, or anything with a buffer of bytes.

        Returns:
            A window that goes on as the other would have, bit for bit.

        Raises:
            SnapshotError: If the bytes are no snapshot of a SharedWindow, damaged, or
                of another version. No code is run and no memory taken on their word.

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
        """Pickles through the same bytes as `to_bytes`.

        Aggregations of your own are pickled beside them, by reference where they can.
        """
        own = self._describe()[0].users_own
        if own:
            return _unpickled, (type(self), self.to_bytes(), own_aggs(own))
        return type(self).from_bytes, (self.to_bytes(),)

    @property
    def ranges(self) -> list[str]:
        """The ranges as they were given.

        Example:
            >>> import slidewise as sw
            >>> sw.SharedWindow(sw.sum(), ranges=["1h", sw.rows(10), 20]).ranges
            ['1h', '10rows', '20']
        """
        return _labels(self._describe()[0])

    @property
    def algorithm(self) -> str:
        """The algorithm that runs.

        Example:
            >>> import slidewise as sw
            >>> sw.SharedWindow(sw.min(), ranges=[5, 10]).algorithm
            'slick_deque'
        """
        plan, dtypes, _ = self._describe()
        return plan.first(dtypes)

    aggs = Window.aggs
    dtype = Window.dtype

    def explain(self) -> str:
        """Why the window works as it does, in a few lines.

        Example:
            >>> import slidewise as sw
            >>> print(sw.SharedWindow(sw.min(), ranges=[5, "1h"]).explain())
            slick_deque: chosen by "auto" for what is one of the values, as max is,
              because values that a younger one outdoes are dropped, and one walk over
              the rest answers for all ranges
            min() over 5 and 1h; entries of equal time stay apart, in order of arrival
        """
        plan, dtypes, _ = self._describe()
        lines = why_lines(plan, dtypes, None)
        entries = "entries of equal time stay apart, in order of arrival"
        lines.append(f"{named(plan)} over {_listed(plan)}; {entries}")
        if plan.nan != "propagate":
            lines.append(f"NaN: {plan.nan}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        plan, length = self._describe()[0], len(self)
        what = f"<{type(self).__name__} {named(plan)} over {_listed(plan)}"
        if length == 0:
            return f"{what}: empty>"
        entries = "1 entry" if length == 1 else f"{length} entries"
        return f"{what}: {entries}{answer_in_words(self, plan, length)}>"


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
    own: tuple[CustomAggregation | NativeAggregation, ...],
) -> SharedWindow:
    return cls._restore(blob, partial(read_spec, own=own), True)
