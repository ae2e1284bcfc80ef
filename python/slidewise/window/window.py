"""A window in process: insert, evict, query, in any order of time."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Literal, Self

import slidewise._core as _core
from slidewise.aggregations import Aggregation
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.errors import (
    ResultOverflowError,
    SnapshotError,
    SpecError,
    WindowBusyError,
)
from slidewise.spec.durations import Length, WindowLike
from slidewise.window.explain import why_lines
from slidewise.window.inputs import NOTHING, may_round, places_read
from slidewise.window.planner import WindowPlan, make_plan
from slidewise.window.snapshot_header import read_header
from slidewise.window.svg import draw
from slidewise.window.time_codec import Clock

__all__ = ["Window"]


class Window(_core.Window):
    """Entries (time, value) in order of time, and aggregates over them.

    Entries may arrive in any order and leave at either end or anywhere between; the
    answer is always the aggregate of what is there, folded in order of time. Nothing
    about an entry that has left shows in an answer.

    - Values enter by `insert` and `insert_many`,
    - and leave by `evict` and `evict_until`, or by themselves with `last=`.
    - `query` answers, over all entries or over a range of times.
    - `len`, `oldest`, `youngest` and `items` tell what is there.
    - `copy`, `to_bytes`, `from_bytes` and pickle make another of it.
    - `explain`, `check`, `nbytes` and `to_svg` look inside.

    Args:
        aggs: An aggregation, or a mapping from names to several: then `query` gives a
            dict. Aggregations that name columns take mappings as values.
        algorithm: "auto", or a name that `slidewise.algorithms` has a card of. "auto"
            refuses nothing: it begins with what fits the aggregations and `prefer`, and
            if that takes entries in order only, the first call that is out of its order
            moves all entries to fiba, at O(n), once and for good; `explain` tells. By
            name, algorithms that take entries in order only raise `OutOfOrderError`
            for late ones.
        ties: What an insert at a time that is there already does: "combine" with the
            value there (one entry per time), or "keep" both, in order of arrival.
            Default "combine", but "keep" with `last=rows(n)`.
        dtype: "int64", "float64" or "object". By default the first value of a column
            decides: an int, a float, or any other object. Over objects `min`, `max`,
            `range`, `sum`, `mean`, `first`, `last`, `mode`, `count_distinct` and their
            like take text, dates, timedeltas, decimals (exactly) and whatever compares
            and adds.
        nan: "propagate" (NaN is a value like any other), "skip" (NaN is missing) or
            "raise".
        last: How much to keep: a duration such as "1h", a timedelta, an int for integer
            times, or `rows(n)`. After every insert, entries at or before the youngest
            time minus that are evicted, or all but the n youngest.
        granularity: A duration or an int that times are rounded down to, so that
            entries combine before they are stored.
        prefer: A hint to "auto": "throughput" if a rare slow call is fine, "latency" if
            none may be slow.
        **parameters: Parameters of the algorithm, as its card names them; `latency=`
            is given as `last=` is.

    Raises:
        SpecError: If an argument is wrong, or the aggregations lack a law that the
            algorithm needs.

    A call that raises leaves the window as it was. Threads may share a window: calls
    happen one after the other, and whoever comes second waits. `WindowBusyError` is for
    code that a call runs itself (an iterable, an `__index__`) and that comes back.

    A window of numbers takes about 17 bytes per entry, one of missing values about 50.
    Until the first value of a column decides its type, rows are kept once more: 8 bytes
    each, and 16 for each column that has values; `dtype=` spares that.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.max())
        >>> w.insert(17, 4.0); w.insert(19, 3.0); w.insert(18, 5.0)
        >>> w.query(), w.query(19, 20)
        (5.0, 3.0)
        >>> w.evict_until(18)
        2
        >>> w
        <Window max(): 1 entry at 19; answer 3.0>

        A window of the last minute, over two columns:

        >>> from datetime import datetime
        >>> w = sw.Window(
        ...     {"n": sw.count(), "load": sw.mean("load")}, last="1m"
        ... )
        >>> w.insert(datetime(2024, 3, 1, 12, 0, 0), {"load": 0.5})
        >>> w.insert(datetime(2024, 3, 1, 12, 0, 40), {"load": 1.0})
        >>> w.insert(datetime(2024, 3, 1, 12, 1, 20), {"load": 2.0})
        >>> w.query()
        {'n': 2, 'load': 1.5}
        >>> w.oldest
        datetime.datetime(2024, 3, 1, 12, 0, 40)
    """

    __slots__ = ()

    def __new__(
        cls,
        aggs: Aggregation | Mapping[str, Aggregation],
        *,
        algorithm: str = "auto",
        ties: Literal["combine", "keep"] | None = None,
        dtype: str | type | None = None,
        nan: Literal["propagate", "skip", "raise"] = "propagate",
        last: WindowLike | None = None,
        granularity: WindowLike | None = None,
        prefer: Literal["throughput", "latency"] | None = None,
        **parameters: WindowLike,
    ) -> Self:
        """Checks the arguments; the class says what they mean."""
        several = isinstance(aggs, Mapping)
        key = tuple(aggs.items()) if isinstance(aggs, Mapping) else aggs
        own = _has_own(aggs)
        options: Any = (algorithm, ties, dtype, nan, last, granularity, prefer)
        options += (tuple((name, of, type(of)) for name, of in parameters.items()),)
        try:
            if own:
                spec = _spec(aggs, *options)
            else:
                spec = _shared_spec(key, several, *options)
        except TypeError:  # something is not even hashable: it gets its message here
            spec = _spec(aggs, *options)
        return super().__new__(cls, spec)

    @classmethod
    def from_bytes(cls, blob: Any) -> Self:
        """Restores a window from what `to_bytes` gave.

        Args:
            blob: bytes, or anything with a buffer of bytes.

        Returns:
            A window that goes on as the other would have, bit for bit.

        Raises:
            SnapshotError: If the bytes are no snapshot, damaged, or of another version.
                No code is run and no memory taken on their word.

        Cost: O(n).

        Example:
            >>> import slidewise as sw
            >>> w = sw.Window(sw.mean())
            >>> w.insert(1, 0.5)
            >>> blob = w.to_bytes()
            >>> sw.Window.from_bytes(blob).query()
            0.5
            >>> sw.Window.from_bytes(blob[:-1])
            Traceback (most recent call last):
            ...
            slidewise.errors.SnapshotError: snapshot is truncated or padded: ...
        """
        return cls._restore(as_bytes(blob), read_spec)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles through the same bytes as `to_bytes`.

        Aggregations of your own are pickled beside them, by reference where they can.
        """
        own = self._describe()[0].users_own
        if own:
            return _unpickled, (type(self), self.to_bytes(), own_aggs(own))
        return type(self).from_bytes, (self.to_bytes(),)

    @property
    def algorithm(self) -> str:
        """The algorithm that runs.

        Example:
            >>> import slidewise as sw
            >>> w = sw.Window(sw.sum(), prefer="latency")
            >>> w.insert_many([1, 3], [10, 30])
            >>> w.algorithm
            'subtract_on_evict'
            >>> w.insert(2, 20)
            >>> w.algorithm, w.query()
            ('fiba', 60)
        """
        if self._migrated() is not None:
            return "fiba"
        plan, dtypes, _ = self._describe()
        return plan.first(dtypes)

    @property
    def aggs(self) -> Aggregation | dict[str, Aggregation]:
        """What it computes: an aggregation, or several by name.

        Example:
            >>> import slidewise as sw
            >>> sw.Window({"n": sw.count(), "top": sw.max()}).aggs
            {'n': count(), 'top': max()}
        """
        plan = self._describe()[0]
        if plan.names is None:
            return plan.aggs[0][1]
        return {name: agg for name, agg in plan.aggs if name is not None}

    @property
    def ties(self) -> str:
        """What happens at equal times: "combine" or "keep".

        Example:
            >>> import slidewise as sw
            >>> sw.Window(sw.sum(), last=sw.rows(10)).ties
            'keep'
        """
        return self._describe()[0].ties

    @property
    def dtype(self) -> str | dict[str, str | None] | None:
        """The type of the values, or those of the columns by name.

        None as long as no value has decided, and where values are only counted.

        Example:
            >>> import slidewise as sw
            >>> w = sw.Window(sw.sum())
            >>> w.dtype
            >>> w.insert(1, 10)
            >>> w.dtype
            'int64'
        """
        plan, dtypes, _ = self._describe()
        found: dict[int, str | None] = {}
        pairs: set[int] = set()
        for (source, role, _, beside), dtype in zip(plan.feeds, dtypes, strict=True):
            if beside != NOTHING:
                pairs |= {source, beside}
            if role != "time":
                held = plan.dtype == "object" or source in plan.objects
                dtype = "object" if held else dtype
                found[source] = found.get(source) or dtype
        for source in pairs:
            found[source] = found.get(source) or "object"
        if plan.columns is None:
            return found.get(0)
        return {name: found.get(source) for source, name in enumerate(plan.columns)}

    def explain(self) -> str:
        """Why the window works as it does, in a few lines.

        Example:
            >>> import slidewise as sw
            >>> print(sw.Window(sw.sum(), last="1h").explain())
            fiba: chosen by "auto" for any aggregation, because it takes any order of
              arrival at the best known cost; answers take at most 2 combines
            sum(): one entry per time; equal times combine
            keeps the last 1h by itself
        """
        plan, dtypes, _ = self._describe()
        entries = {
            "combine": "one entry per time; equal times combine",
            "keep": "entries of equal time stay apart, in order of arrival",
        }
        lines = why_lines(plan, dtypes, self._migrated())
        lines.append(f"{named(plan)}: {entries[plan.ties]}")
        if plan.last is not None:
            lines.append(f"keeps the last {plan.last.label} by itself")
        if plan.asked == "daba_late":
            lines.append(_latency_in_words(plan.latency))
        if plan.granularity is not None:
            lines.append(f"rounds times down to {plan.granularity.label}")
        if plan.nan != "propagate":
            lines.append(f"NaN: {plan.nan}")
        return "\n".join(lines)

    def to_svg(self) -> str:
        """Draws the tree as the papers do: spines, fingers, aggregates by kind.

        Large trees are summarised.

        Returns:
            An SVG document. Notebooks show it by themselves.

        Cost: O(n).

        Example:
            >>> import slidewise as sw
            >>> w = sw.Window(sw.sum())
            >>> w.insert_many(range(100), range(100))
            >>> w.to_svg()[:4]
            '<svg'
        """
        return draw(self)

    def _repr_svg_(self) -> str | None:
        try:
            return self.to_svg()
        except WindowBusyError:
            raise
        except Exception:  # noqa: BLE001 - a notebook shows the repr instead
            return None

    def __repr__(self) -> str:
        plan = self._describe()[0]
        length = len(self)
        parts = [named(plan)]
        if self.algorithm != "fiba":
            parts.append(self.algorithm)
        if plan.ties != "combine":
            parts.append(f"ties={plan.ties!r}")
        if plan.last is not None:
            parts.append(f"last {plan.last.label}")
        what = f"<{type(self).__name__} {', '.join(parts)}"
        if length == 0:
            return f"{what}: empty>"
        entries = "1 entry" if length == 1 else f"{length} entries"
        oldest, youngest = str(self.oldest), str(self.youngest)
        span = f"at {oldest}" if length == 1 else f"from {oldest} to {youngest}"
        return f"{what}: {entries} {span}{answer_in_words(self, plan, length)}>"


# Specs are small and hold nothing of the user's but names, so some are kept: programs
# make many windows of a few makes. Types count, because True is no length and 1 is one.
_KEPT = 256


@lru_cache(maxsize=_KEPT, typed=True)
def _shared_spec(aggs: Any, several: bool, *options: Any) -> _core.Spec:
    return _spec(dict(aggs) if several else aggs, *options)


def _spec(
    aggs: Any,
    algorithm: str,
    ties: str | None,
    dtype: str | type | None,
    nan: str,
    last: WindowLike | None,
    granularity: WindowLike | None,
    prefer: str | None,
    parameters: tuple[tuple[str, WindowLike, type], ...],
) -> _core.Spec:
    plan = make_plan(
        aggs,
        algorithm=algorithm,
        ties=ties,
        dtype=dtype,
        nan=nan,
        last=last,
        granularity=granularity,
        prefer=prefer,
        options={name: of for name, of, _ in parameters},
    )
    return spec_of_plan(plan)


def _has_own(aggs: object) -> bool:
    """Whether a spec of them would hold functions, and so must not be kept."""
    every = aggs.values() if isinstance(aggs, Mapping) else (aggs,)
    return any(isinstance(agg, CustomAggregation | NativeAggregation) for agg in every)


def spec_of_plan(plan: WindowPlan) -> _core.Spec:
    return _core.Spec(plan) if plan.users_own else _kept_spec(plan)


@lru_cache(maxsize=_KEPT)
def _kept_spec(plan: WindowPlan) -> _core.Spec:
    return _core.Spec(plan)


def _wider_spec(plan: WindowPlan, columns: Sequence[int]) -> _core.Spec | None:
    """The spec of a window whose first values say that some columns hold objects.

    None if it computes with floats there, which decimals and fractions may be made.

    Raises:
        SpecError: If it computes with numbers, and an answer would be rounded.
    """
    try:
        return spec_of_plan(plan.with_objects(columns))
    except SpecError as error:
        exact = (agg for _, agg in plan.aggs if not may_round(agg))
        reads = (places_read(agg, plan.columns) for agg in exact)
        if all(set(columns).isdisjoint(places) for places in reads):
            return None
        raise SpecError(
            "is not a number that int64 or float64 keeps, and this window cannot keep "
            f"objects ({error}): convert the values first, for example with float()"
        ) from None


def read_spec(
    header: bytes, own: Sequence[CustomAggregation | NativeAggregation] | None = None
) -> tuple[_core.Spec, list[str | None], Clock | None, bool]:
    plan, dtypes, clock, migrated = read_header(header, own)
    return spec_of_plan(plan), dtypes, clock, migrated


def own_aggs(
    own: tuple[Functions | Compiled, ...],
) -> tuple[CustomAggregation | NativeAggregation, ...]:
    return tuple(
        NativeAggregation("native", functions=functions)
        if isinstance(functions, Compiled)
        else CustomAggregation("own", functions=functions)
        for functions in own
    )


def _unpickled(
    cls: type[Window],
    blob: bytes,
    own: tuple[CustomAggregation | NativeAggregation, ...],
) -> Window:
    return cls._restore(blob, partial(read_spec, own=own))


def as_bytes(blob: Any) -> bytes:
    if isinstance(blob, bytes):
        return blob
    try:
        return bytes(memoryview(blob))
    except TypeError as error:
        raise SnapshotError(
            f"from_bytes takes bytes, got {type(blob).__name__}"
        ) from error


def answer_in_words(window: _core.Window, plan: WindowPlan, length: int) -> str:
    """The answer, unless it is one of those that cost as much as the window is long."""
    collects = any(kind == "collect" for kind, *_ in plan.requests)
    if plan.own or plan.natives:
        return ""  # a repr runs nobody's code
    if length > 1_000 and (collects or plan.asked == "recalculate"):
        return ""
    try:
        answer = repr(window.query())
    except ResultOverflowError:
        return "; answer beyond int64"
    except SpecError:  # values that do not compare with one another
        return "; no answer"
    return f"; answer {answer if len(answer) <= 200 else answer[:197] + '...'}"


def _latency_in_words(latency: Length | None) -> str:
    if latency is None:
        return "no latency= was given: all entries stay in the tree, none moves on"
    return f"what is {latency.label} older than the youngest moves on into daba_lite"


def named(plan: WindowPlan) -> str:
    if plan.names is None:
        return repr(plan.aggs[0][1])
    return ", ".join(f"{name}={agg!r}" for name, agg in plan.aggs)
