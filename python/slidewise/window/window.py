"""`Window`: inserts, evicts and queries entries in any order of time."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Literal, Self

import slidewise._core as _core
from slidewise.aggregations import Aggregation
from slidewise.aggregations.compiled import Compiled, NativeAggregation
from slidewise.aggregations.custom import CustomAggregation, Functions
from slidewise.aggregations.fit import accepted
from slidewise.aggregations.records import NUMBERS
from slidewise.aggregations.registry import UserDefinedAggregation
from slidewise.errors import (
    ResultOverflowError,
    SnapshotError,
    SpecError,
    WindowBusyError,
)
from slidewise.hints import readable
from slidewise.spec.durations import Length, WindowLike
from slidewise.window.explain import why_lines
from slidewise.window.inputs import columns_read, numbered
from slidewise.window.planner import make_plan, with_objects
from slidewise.window.snapshot_header import read_header
from slidewise.window.svg import draw
from slidewise.window.time_codec import Clock
from slidewise.window.window_plan import WindowPlan

__all__ = [
    "Window",
    "as_bytes",
    "named",
    "read_spec",
    "result_in_words",
    "spec_of_plan",
    "widened_in_words",
]


class Window(_core.Window):
    """A window of entries (time, value), and aggregates over them.

    Entries may arrive in any order and be evicted at either end or anywhere between.
    The result is always the aggregate of the present entries, combined in order of
    time. It does not depend on evicted entries.

    - `insert` and `insert_many` add entries.
    - `evict` and `evict_until` remove entries; `last=` does so after every insert.
    - `query` returns the result over all entries, or over a range of times.
    - `len`, `oldest`, `youngest` and `items` return the entries.
    - `copy`, `to_bytes`, `from_bytes` and pickle copy the window.
    - `explain`, `check`, `nbytes` and `to_svg` show its internals.

    Args:
        aggs: An aggregation, or a mapping of names to aggregations: then `query` gives
            a dict. If aggregations name columns, values are mappings.
        algorithm: "auto", or the name of an algorithm: see `slidewise.algorithms`.
            "auto" accepts entries in any order. It begins with an algorithm that suits
            the aggregations and `prefer`. If that algorithm accepts entries in order
            only, the first call out of order moves all entries to fiba, once, in O(n);
            `explain` reports it. An algorithm for entries in order that is chosen by
            name raises `OutOfOrderError` for late entries.
        ties: An insert at the time of an entry: "combine" combines both values into
            one entry, "keep" keeps both entries, in order of arrival. Default
            "combine", but "keep" with `last=rows(n)`.
        dtype: "int64", "float64" or "object". By default the first value of a column
            decides: an int, a float, or any other object. A column of ints widens to
            float64 when a float arrives, if every int so far is exact in float64, and
            `repr` reports it; `dtype="int64"` refuses floats. Partials that custom
            functions made of ints stay as they are. An aggregation takes the objects
            that it takes from a table: `max` text, dates and decimals, `sum` decimals
            (exactly) and timedeltas, but no text. With "object", `min`, `max`, `sum`,
            `mean` and similar ones take all values that Python compares and adds.
        nan: "propagate" (NaN is a value), "skip" (NaN is missing) or "raise".
        last: The length that the window keeps: a duration such as "1h", a timedelta,
            an int for integer times, or `rows(n)`. Every insert evicts the entries at
            or before the latest time minus that length, or all but the latest n.
        granularity: A duration, or an int for integer times. Times are rounded down to
            multiples of it, so that entries combine before they are stored.
        prefer: A hint for "auto": "throughput" if a rare slow call does not matter,
            "latency" if every call must be fast.
        **parameters: Parameters of the algorithm, as its card names them; `latency=`
            has the types of `last=`.

    Raises:
        SpecError: If an argument is wrong, or the aggregations lack a law that the
            algorithm needs.

    A call that raises leaves the window unchanged. Threads may share a window: calls
    wait for one another. A child of a fork has a copy of its own. `WindowBusyError`
    means that code within a call (an iterable, an `__index__`) uses the same window.

    A window of numbers takes about 17 bytes per entry, one of missing values about 50.
    Until the first value of a column decides its type, each row takes 8 bytes more, and
    16 for each column that has values; `dtype=` avoids that.

    Cost: each call has its own; the costs of algorithms are in `slidewise.algorithms`.

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

    @readable
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
        """Checks the arguments; the class documents them."""
        several = isinstance(aggs, Mapping)
        key = tuple(aggs.items()) if isinstance(aggs, Mapping) else aggs
        has_user_defined = _has_user_defined(aggs)
        options: Any = (algorithm, ties, dtype, nan, last, granularity, prefer)
        options += (tuple((name, of, type(of)) for name, of in parameters.items()),)
        try:
            if has_user_defined:
                spec = _spec(aggs, *options)
            else:
                spec = _cached_spec_of(key, several, *options)
        except TypeError:  # an argument is not hashable: this call refuses it
            spec = _spec(aggs, *options)
        return super().__new__(cls, spec)

    @classmethod
    def from_bytes(cls, blob: Any) -> Self:
        """Restores a window from a snapshot.

        Args:
            blob: bytes from `to_bytes`, or any object with a buffer of them.

        Returns:
            A window whose further results equal those of the original, bit for bit.

        Raises:
            SnapshotError: If the bytes are not a snapshot, damaged, or of another
                version. The bytes may be untrusted: no code in them runs, and their
                sizes are checked before memory is allocated.

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
        """Pickles as the bytes of `to_bytes`.

        Custom aggregations are pickled with them, by reference where possible.
        """
        custom = self._describe()[0].custom
        if custom:
            return _unpickled, (type(self), self.to_bytes(), _custom_aggs(custom))
        return type(self).from_bytes, (self.to_bytes(),)

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that runs now.

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
        return plan.initial_algorithm(dtypes)

    @property
    def aggs(self) -> Aggregation | dict[str, Aggregation]:
        """The aggregation, or a dict of several by name.

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
        """The treatment of equal times: "combine" or "keep".

        Example:
            >>> import slidewise as sw
            >>> sw.Window(sw.sum(), last=sw.rows(10)).ties
            'keep'
        """
        return self._describe()[0].ties

    @property
    def dtype(self) -> str | dict[str, str | None] | None:
        """The type of the values, or a dict of the types of columns by name.

        None until a value decides it, and if values are only counted.

        Example:
            >>> import slidewise as sw
            >>> w = sw.Window(sw.sum())
            >>> w.dtype
            >>> w.insert(1, 10)
            >>> w.dtype
            'int64'
        """
        plan, dtypes, _ = self._describe()
        found: dict[object, str | None] = {}
        pairs: set[object] = set()
        for column, dtype in zip(plan.inputs, dtypes, strict=True):
            source, paired = column.source, column.paired
            if paired is not None:
                pairs |= {source, paired}
            if column.role != "time":
                is_object = plan.dtype == "object" or source in plan.objects
                dtype = "object" if is_object else dtype
                found[source] = found.get(source) or dtype
        for place in pairs:
            found[place] = found.get(place) or "object"
        if plan.columns is None:
            return found.get(0)
        return {name: found.get(source) for source, name in enumerate(plan.columns)}

    def explain(self) -> str:
        """Explains in a few lines which algorithm runs, why, and with which options.

        Cost: O(1) in the number of entries.

        Example:
            >>> import slidewise as sw
            >>> print(sw.Window(sw.sum(), last="1h").explain())
            fiba: chosen by "auto" for any aggregation, because it accepts entries in
              any order at the best known cost; a query takes 2 combines, n − 1 of
              up to 16 entries
            sum(): one entry per time; equal times combine
            evicts entries beyond the last 1h
        """
        plan, dtypes, _ = self._describe()
        entries = {
            "combine": "one entry per time; equal times combine",
            "keep": "entries of equal time are kept, in order of arrival",
        }
        lines = why_lines(plan, dtypes, self._migrated())
        lines.append(f"{named(plan)}: {entries[plan.ties]}")
        if plan.last is not None:
            lines.append(f"evicts entries beyond the last {plan.last.label}")
        if plan.algorithm == "daba_late":
            lines.append(_latency_in_words(plan.latency))
        if plan.granularity is not None:
            lines.append(f"rounds times down to {plan.granularity.label}")
        if plan.nan != "propagate":
            lines.append(f"NaN: {plan.nan}")
        return "\n".join(lines)

    def to_svg(self) -> str:
        """Draws the tree as in the papers: spines, fingers, and aggregates by kind.

        Large trees are summarised.

        Returns:
            An SVG document, as a str. Notebooks show it for a window.

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
        parts.extend(widened_in_words(plan, self._widened()))
        head = f"<{type(self).__name__} {', '.join(parts)}"
        if length == 0:
            return f"{head}: empty>"
        entries = "1 entry" if length == 1 else f"{length} entries"
        first, last = str(self.oldest), str(self.youngest)
        span = f"at {first}" if length == 1 else f"from {first} to {last}"
        return f"{head}: {entries} {span}{result_in_words(self, plan, length)}>"


# Specs in the cache. They are small and refer to no object of the user, and programs
# make many windows of few kinds. Types are part of the key: 1 is a length, True is not.
_CACHED_SPECS = 256


@lru_cache(maxsize=_CACHED_SPECS, typed=True)
def _cached_spec_of(aggs: Any, several: bool, *options: Any) -> _core.Spec:
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


def _has_user_defined(aggs: object) -> bool:
    """Whether there are custom aggregations, whose functions must not be cached."""
    every = aggs.values() if isinstance(aggs, Mapping) else (aggs,)
    return any(isinstance(agg, UserDefinedAggregation) for agg in every)


def spec_of_plan(plan: WindowPlan) -> _core.Spec:
    """The native form of a plan, cached if it calls no custom function."""
    return _core.Spec(plan) if plan.custom else _cached_spec(plan)


@lru_cache(maxsize=_CACHED_SPECS)
def _cached_spec(plan: WindowPlan) -> _core.Spec:
    return _core.Spec(plan)


def _wider_spec(plan: WindowPlan, columns: Sequence[int]) -> _core.Spec:
    """The spec of a window after the first values of some columns were objects.

    Raises:
        SpecError: If an aggregation or the algorithm needs numbers.
    """
    asked, places = set(columns), numbered(plan.columns)
    for _, agg in plan.aggs:
        reads_one = not asked.isdisjoint(columns_read(agg, places))
        if reads_one and not agg.record.keeps_objects:
            numbers = tuple(one for one in agg.record.takes if one in NUMBERS)
            takes = accepted(agg.record, numbers)
            raise SpecError(
                f"is not a number of 64 bits, and does not fit {agg!r}: {agg.kind} "
                f"takes {takes}. Convert the values first, for example with "
                "float()"
            )
    try:
        return spec_of_plan(with_objects(plan, columns))
    except SpecError as error:
        raise SpecError(
            "is not a number that int64 or float64 keeps, and this window cannot keep "
            f"objects ({error}): convert the values first, for example with float()"
        ) from None


def read_spec(
    header: bytes, custom: Sequence[UserDefinedAggregation] | None = None
) -> tuple[_core.Spec, list[str | None], Clock | None, bool]:
    """Reads a header as `read_header` does, with the plan in its native form."""
    plan, dtypes, clock, migrated = read_header(header, custom)
    return spec_of_plan(plan), dtypes, clock, migrated


def _custom_aggs(
    custom: tuple[Functions | Compiled, ...],
) -> tuple[UserDefinedAggregation, ...]:
    return tuple(
        NativeAggregation("native", functions=functions)
        if isinstance(functions, Compiled)
        else CustomAggregation("udaf", functions=functions)
        for functions in custom
    )


def _unpickled(
    cls: type[_core.Window],
    blob: bytes,
    custom: tuple[UserDefinedAggregation, ...],
) -> _core.Window:
    is_shared = not issubclass(cls, Window)
    return cls._restore(blob, partial(read_spec, custom=custom), is_shared)


def as_bytes(blob: Any) -> bytes:
    """Reads any buffer of bytes.

    Raises:
        SnapshotError: If it is none.
    """
    if isinstance(blob, bytes):
        return blob
    try:
        return bytes(memoryview(blob))
    except TypeError as error:
        raise SnapshotError(
            f"from_bytes takes bytes, got {type(blob).__name__}"
        ) from error


def result_in_words(window: _core.Window, plan: WindowPlan, length: int) -> str:
    """The result as text; empty if it costs O(n), or would call custom functions."""
    collects = any(agg.record.roles == ("any",) for _, agg in plan.aggs)
    if plan.functions or plan.natives:
        return ""
    if length > 1_000 and (collects or plan.algorithm == "recalculate"):
        return ""
    try:
        answer = repr(window.query())
    except ResultOverflowError:
        return "; answer beyond int64"
    except SpecError:  # values that cannot be compared
        return "; no answer"
    return f"; answer {answer if len(answer) <= 200 else answer[:197] + '...'}"


def widened_in_words(plan: WindowPlan, columns: Sequence[int]) -> list[str]:
    """Lists the columns of integers that widened to float64."""
    if plan.columns is None:
        return ["widened to float64"] * len(columns)
    return [f"{plan.columns[column]!r} widened to float64" for column in columns]


def _latency_in_words(latency: Length | None) -> str:
    if latency is None:
        return "without latency= all entries stay in the tree"
    return f"entries {latency.label} before the latest move from the tree to daba_lite"


def named(plan: WindowPlan) -> str:
    """The aggregations of a plan as text, with their names."""
    if plan.names is None:
        return repr(plan.aggs[0][1])
    return ", ".join(f"{name}={agg!r}" for name, agg in plan.aggs)
