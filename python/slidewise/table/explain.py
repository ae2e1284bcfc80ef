"""What `rolling` and `hopping` would do with a table, why, and at what cost.

Nothing is aggregated for it: the table's order is looked at, its keys are coded, and
the core is asked which way it answers each aggregation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import slidewise._core as _core
from slidewise.aggregations import Aggregation
from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.frames.polars import is_lazy
from slidewise.hints import with_hints
from slidewise.spec.durations import Session, WindowLike
from slidewise.spec.spec import Spec, WindowSpec
from slidewise.table.kernel_call import KernelCall, resolve_threads

__all__ = ["explain", "explain_spec"]

# What the core does for an aggregation: the words for it, and nanoseconds per row and
# window on one core, measured as docs/speed.md says, in windows of some thousand rows.
_WAYS = {
    "counts": ("from the two ends of the window", 2),
    "ends": ("the value at one end of the window", 2),
    "sums": (
        "running sums on a grid that makes them exact, so that their differences are",
        5,
    ),
    "whole sums": ("running sums of integers, whose differences are exact", 3),
    "extremes": ("one fold by two stacks: nothing has to be undone", 5),
    "moments": (
        "running sums, exact on a grid, of distances from a pivot near the mean",
        8,
    ),
    "values": ("by the values in the window, which enter and leave it once", 80),
    "places": ("the rows that may still be the extreme one, in a queue", 25),
    "registers": ("registers, each with the rows that may become its maximum", 200),
    "combines": ("one fold by two stacks of any associative combine", 100),
    "own": ("your own functions in Python, by two stacks: ≤ 3 combines per row", 2000),
}
# Finding a window; putting rows in order, and their answers back; a combine as of
# arrival, of which there are about log n.
_BOUNDS, _ORDER, _ARRIVAL = 3, 20, 300
# Rows from which on several threads are worth it.
_SHARED = 2 << 14


@with_hints
def explain(
    table: Any,
    *,
    on: str,
    aggs: Mapping[str, Aggregation],
    windows: WindowLike | Iterable[WindowLike] | None = None,
    window: WindowLike | Session | None = None,
    every: WindowLike | None = None,
    by: str | Sequence[str] | None = None,
    closed: str = "right",
    ties: str = "peers",
    nan: str = "propagate",
    arrival: str | None = None,
    min_rows: int = 0,
    offset: WindowLike | None = None,
    overflow: str = "raise",
    empty: bool = False,
    threads: int | None = None,
) -> str:
    """How a table would be answered, why so, and about what that costs, in a few lines.

    Args:
        table: Whatever `rolling` and `hopping` take.
        on: As there, and so are all others.
        aggs: As there.
        windows: Those of `rolling`; or else give `window`.
        window: That of `hopping`.
        every: Of `hopping`.
        by: As there.
        closed: Of `rolling`.
        ties: Of `rolling`.
        nan: As there.
        arrival: Of `rolling`.
        min_rows: As there.
        offset: As there.
        overflow: As there.
        empty: Of `hopping`.
        threads: As there.

    Raises:
        SpecError: If `rolling` or `hopping` would raise it before computing.

    Cost: one look at the times, the keys coded; nothing is aggregated.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = pa.table({"t": [10, 14, 11], "km": [3.0, 5.0, 4.0]})
        >>> print(sw.explain(trips, on="t", windows=[2, 60],
        ...                  aggs={"n": sw.count(), "km": sw.sum("km"),
        ...                        "avg": sw.mean("km")}))
        rolling over t: 3 rows, one group, not in order: sorted by time, and the answers
          put back
        2, 60: every row's window is found once, for all aggregations
        n=count(): from the two ends of the window
        km=sum('km'), avg=mean('km'): running sums on a grid that makes them exact, so
          that their differences are
        about 40 ns per row on one core
    """
    if (windows is None) == (window is None):
        raise SpecError("give windows= for what rolling does, or window= for hopping")
    if windows is not None:
        spec = Spec.make(
            on=on,
            windows=windows,
            aggs=aggs,
            by=by,
            closed=closed,
            ties=ties,
            nan=nan,
            arrival=arrival,
            min_rows=min_rows,
            offset=offset,
            overflow=overflow,
        )
    else:
        assert window is not None, "one of both is given"
        spec = Spec.make_hopping(
            on=on,
            window=window,
            aggs=aggs,
            every=every,
            by=by,
            offset=offset,
            empty=empty,
            nan=nan,
            min_rows=min_rows,
            overflow=overflow,
        )
    return explain_spec(table, spec, threads=threads)


def explain_spec(table: Any, spec: Spec, *, threads: int | None = None) -> str:
    """The same as `explain`, for a `Spec` that is made already.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> from slidewise.spec.spec import Spec
        >>> spec = Spec.make(on="t", windows=5, aggs={"n": sw.count()})
        >>> print(explain_spec(pa.table({"t": [1, 2]}), spec))
        rolling over t: 2 rows, one group, in order already: read where they lie
        5: every row's window is found once, for all aggregations
        n=count(): from the two ends of the window
        about 5 ns per row on one core
    """
    source = frame(table.collect() if is_lazy(table) else table)
    require(source, spec.columns)
    request = KernelCall(source, spec, threads=resolve_threads(threads))
    return "\n".join(line for text in _lines(request, threads) for line in _wrap(text))


def _lines(request: KernelCall, threads: int | None) -> Iterator[str]:
    spec = request.spec
    count = len(request.times.ticks)
    ordered = _core.rows_are_sorted(request.rows)
    verb = "hopping" if spec.is_hopping else "rolling"
    group = f"windows of their own per {', '.join(spec.by)}" if spec.by else "one group"
    yield f"{verb} over {spec.on}: {count:,} rows, {group}, {_order(request, ordered)}"
    yield from _windows(request)
    cost = 0.0 if ordered else float(_ORDER)
    for words, names, each in _folds(request):
        cost += each * len(spec.windows)
        yield f"{', '.join(names)}: {words}"
    if spec.arrival is not None:
        cost = float(_ARRIVAL * len(spec.windows))
    else:
        cost += _BOUNDS * len(spec.windows)
    many = resolve_threads(threads)
    if many > 1 and (threads is not None or count >= _SHARED):
        shared = "keys" if spec.by else "windows"
        yield f"{many} threads share the {shared} out; the answers are the same"
    yield f"about {cost:.0f} ns per row on one core"


def _order(request: KernelCall, ordered: bool) -> str:
    spec = request.spec
    if spec.arrival is not None:
        return f"taken in order of {spec.arrival}"
    if ordered:
        return "in order already: read where they lie"
    keys = "key and time" if spec.by else "time"
    return f"not in order: sorted by {keys}, and the answers put back"


def _windows(request: KernelCall) -> Iterator[str]:
    spec = request.spec
    labels = ", ".join(window.label for window in spec.windows)
    if spec.arrival is not None:
        yield (
            f"{labels}: rows enter one FiBA tree per key as they arrive, however late; "
            "a row asks it for its range of times"
        )
    elif spec.is_hopping:
        yield _hops(spec.windows[0])
    elif any(window.offset for window in spec.windows):
        yield (
            f"{labels}: windows that end earlier than their row are ranges of rows, "
            "found once, for all aggregations"
        )
    else:
        yield f"{labels}: every row's window is found once, for all aggregations"


def _hops(window: WindowSpec) -> str:
    if window.is_session:
        return (
            f"session({window.label}): rows at most {window.label} apart are a window"
        )
    hops = window.length / window.every
    if hops <= 1:
        return f"{window.label}: windows share no row; each is folded by itself"
    return (
        f"{window.label}, {hops:g} windows per row: each is a range of rows whose ends "
        "move forward, so that a row is folded once and a window takes one combine "
        "more; panes would fold a row once, too"
    )


def _folds(request: KernelCall) -> Iterator[tuple[str, list[str], int]]:
    """What is worked out, for which aggregations, and its ns per row and window."""
    shared: dict[tuple[str, object], list[str]] = {}
    for (name, agg), plan in zip(request.spec.aggs, request.plans, strict=True):
        way: tuple[str, object] = ("own", name)
        if plan.calls:
            kind, of, _, number = plan.calls[0]
            way = (request.way(kind, of, number), of)
        if way[0] == "combines" or request.spec.arrival is not None:
            way = (way[0] if way[0] in ("own", "values") else "combines", None)
        shared.setdefault(way, []).append(f"{name}={agg!r}")
    for (kind, _), names in shared.items():
        words, each = _WAYS[kind]
        if request.spec.arrival is not None and kind == "combines":
            words = "one record, combined along the tree: O(log n) per row"
        if request.spec.arrival is not None and kind == "values":
            words = (
                "by the values in the window, which goes from row to row as they "
                "arrived: a step for each row between, few where order is nearly kept"
            )
        yield words, names, each


def _wrap(text: str) -> list[str]:
    """Lines of about 80 characters, those after the first one indented."""
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) > 80:
            lines.append(" ")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines
