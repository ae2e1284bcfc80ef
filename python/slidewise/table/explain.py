"""Explains how `rolling` and `hopping` compute a table, and estimates the cost.

Nothing is aggregated: the order of the rows is checked, the keys are coded, and the
core names the kernel of each aggregation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import slidewise._core as _core
from slidewise.aggregations import Aggregation
from slidewise.formatting import format_count, wrap_lines
from slidewise.frames.adapt import frame, refuse_without_on
from slidewise.frames.base import require
from slidewise.frames.lazy import collected
from slidewise.hints import with_hints
from slidewise.spec.durations import WindowLike
from slidewise.spec.features import Features, parts_of
from slidewise.spec.given import given_specs
from slidewise.spec.query import Query
from slidewise.spec.spec import (
    EveryLike,
    HoppingLike,
    RollingLike,
    Spec,
    given_keywords,
)
from slidewise.table.kernel_call import KernelCall
from slidewise.table.source import Source
from slidewise.table.threads import resolve_threads
from slidewise.table.unique import UniqueRows, explain_ids

__all__ = ["explain"]

# The kernels: a description, and nanoseconds per row and window on one core, measured
# as in docs/speed.md, in windows of some thousand rows.
_KERNELS = {
    "counts": ("from the two ends of the window", 2),
    "ends": ("the value at one end of the window", 2),
    "sums": (
        "differences of prefix sums, exact on a common grid of floats",
        5,
    ),
    "whole sums": ("differences of prefix sums of integers, which are exact", 3),
    "extremes": ("two stacks: nothing is subtracted", 5),
    "moments": (
        "differences of prefix sums, exact on a grid, of distances from a pivot",
        8,
    ),
    "pairs": ("two stacks over products of distances from a pivot", 60),
    "areas": ("differences of prefix sums of the areas between adjacent values", 15),
    "decays": ("two stacks over weighted values: nothing is subtracted", 40),
    "values": (
        "a multiset of the values in the window: each enters and leaves once",
        80,
    ),
    "places": ("a monotonic queue of the rows that may become the extreme one", 25),
    "registers": (
        "a sliding HyperLogLog: registers with the rows that may be their maximum",
        200,
    ),
    "combines": ("two stacks with any associative combine", 100),
    "custom": ("your Python functions, by two stacks: ≤ 3 combines per row", 2000),
}
# Nanoseconds to find a window; to sort a row and restore the order; for the about log n
# combines per row with arrival=.
_BOUNDS, _ORDER, _ARRIVAL = 3, 20, 300


@with_hints
def explain(
    table: Any,
    spec: Spec | Features | None = None,
    *,
    on: str | None = None,
    aggs: Mapping[str, Aggregation] | None = None,
    windows: RollingLike | Iterable[RollingLike | HoppingLike | Query] | None = None,
    window: HoppingLike | None = None,
    every: EveryLike | None = None,
    by: str | Sequence[str] | None = None,
    closed: str | None = None,
    ties: str = "peers",
    nan: str = "propagate",
    arrival: str | Sequence[str] | None = None,
    min_rows: int = 0,
    unique_by: str | Sequence[str] | None = None,
    offset: WindowLike | None = None,
    exclude: str | None = None,
    overflow: str = "raise",
    empty: bool = False,
    names: str | None = None,
    prefix: str = "",
    fill: Any = None,
    threads: int | None = None,
) -> str:
    """Explains how `rolling` or `hopping` computes a table, and estimates the cost.

    Takes the arguments of `rolling` (with `windows=`) or `hopping` (with `window=`, or
    with `windows=` where `every=` is given or one is a `Query`, a session or `until`).

    Args:
        table: A table that `rolling` takes.
        spec: A `Spec`, in place of the arguments that make one: all but `threads`. Or
            `Features`: the lines of each Spec, below its name.
        on: The column of event times.
        aggs: Names and aggregations.
        windows: The windows of `rolling`, or several of `hopping`.
        window: The window of `hopping`; give this or `windows`.
        every: The distance between the windows of `hopping`.
        by: The key column, or several.
        closed: The ends that belong to a window.
        ties: Whether rows of equal time see one another, for `rolling`.
        nan: "propagate", "skip" or "raise".
        arrival: The column of arrival order, or several, for `rolling`.
        min_rows: A window with fewer values gives null.
        unique_by: The column of ids, or several, of rows that count once.
        exclude: "self" if windows leave their row out.
        offset: How much earlier windows end, or for `hopping` where the grid begins.
        overflow: "raise" or "null".
        empty: Whether `hopping` includes windows without rows.
        names: The names of result columns.
        prefix: The text before each of them.
        fill: A value in place of null results.
        threads: The number of threads; by default as for `rolling`.

    Returns:
        A few lines of text: the order of the rows, the windows, the kernel of each
        aggregation, and nanoseconds per row on one core.

    Raises:
        SpecError: If `rolling` or `hopping` would raise it before computing.

    Cost: O(n), to check the order of the rows and code the keys; nothing is aggregated.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = pa.table({"t": [10, 14, 11], "km": [3.0, 5.0, 4.0]})
        >>> print(sw.explain(trips, on="t", windows=[2, 60],
        ...                  aggs={"n": sw.count(), "km": sw.sum("km"),
        ...                        "avg": sw.mean("km")}))
        rolling over t: 3 rows, one group, not in order: sorted by time, results in the
          original order
        2, 60: every row's window is found once, for all aggregations
        n=count(): from the two ends of the window
        km=sum('km'), avg=mean('km'): differences of prefix sums, exact on a common grid
          of floats
        about 40 ns per row on one core
    """
    request = given_keywords(locals())
    if spec is None and on is None:
        refuse_without_on(table)
    spec = given_specs(spec, request, "explain")
    source = Source(frame(collected(table)))
    number = resolve_threads(threads, source.length)
    lines: list[str] = []
    titles = [f"{name}:" for name in spec.parts] if isinstance(spec, Features) else [""]
    for name, part in zip(titles, parts_of(spec), strict=True):
        require(source, part.columns)
        own = wrap_lines(_lines(UniqueRows.of(source, part), part, number))
        lines += [name, *(f"  {line}" for line in own)] if name else own
    return "\n".join(lines)


def _lines(rows: UniqueRows, spec: Spec, threads: int) -> Iterator[str]:
    name_row = rows.name_row(rows.counting)
    request = KernelCall(rows.counted, spec, name_row=name_row, threads=threads)
    spec = request.spec
    count = rows.source.length
    ordered = _core.rows_are_sorted(request.rows)
    verb = "hopping" if spec.is_hopping else "rolling"
    group = f"one group per {', '.join(spec.by)}" if spec.by else "one group"
    yield f"{verb} over {spec.on}: {count:,} rows, {group}, {_order(request, ordered)}"
    for line in explain_ids(spec):
        yield f"{line}: {format_count(len(rows.duplicates), 'duplicate')}"
    yield from _windows(request)
    cost = 0.0 if ordered else float(_ORDER)
    for text, names, each in _kernels(request):
        cost += each * len(spec.windows)
        yield f"{', '.join(names)}: {text}"
    if spec.arrival is not None:
        cost = float(_ARRIVAL * len(spec.windows))
    else:
        cost += _BOUNDS * len(spec.windows)
    many = request.threads
    if many > 1:
        shared = "keys" if spec.by else "windows"
        yield f"{many} threads share the {shared}; the results are the same"
    yield f"about {cost:.0f} ns per row on one core"


def _order(request: KernelCall, ordered: bool) -> str:
    spec = request.spec
    if spec.arrival is not None:
        return f"taken in order of {', '.join(spec.arrivals)}"
    if ordered:
        return "in order"
    keys = "key and time" if spec.by else "time"
    return f"not in order: sorted by {keys}, results in the original order"


def _windows(request: KernelCall) -> Iterator[str]:
    spec = request.spec
    if spec.arrival is not None:
        labels = ", ".join(window.label for window in spec.windows)
        yield (
            f"{labels}: rows enter one FiBA tree per key as they arrive, however late; "
            "each row queries its range of times"
        )
        return
    # Windows that are computed alike are listed together.
    alike: dict[str, list[str]] = {}
    for window in spec.windows:
        alike.setdefault(window.explained, []).append(window.name)
    for how, names in alike.items():
        yield f"{', '.join(names)}: {how}"


def _kernels(request: KernelCall) -> Iterator[tuple[str, list[str], int]]:
    """The kernels, their aggregations, and their ns per row and window."""
    shared: dict[tuple[str, object], list[str]] = {}
    for (name, agg), plan in zip(request.spec.aggs, request.plans, strict=True):
        kernel: tuple[str, object] = ("custom", name)
        if plan.calls:
            call = plan.calls[0]
            kernel = (request.kernel_kind(call), call.of)
        if kernel[0] == "combines" or request.spec.arrival is not None:
            combines = kernel[0] not in ("custom", "values")
            kernel = ("combines" if combines else kernel[0], None)
        shared.setdefault(kernel, []).append(f"{name}={agg!r}")
    for (kind, _), names in shared.items():
        text, each = _KERNELS[kind]
        if request.spec.arrival is not None and kind == "combines":
            text = "one record, combined along the tree: O(log n) per row"
        if request.spec.arrival is not None and kind == "values":
            text = (
                "a multiset of the values in the window, which moves in order of "
                "arrival: one step per row between, few where rows are nearly sorted"
            )
        yield text, names, each
