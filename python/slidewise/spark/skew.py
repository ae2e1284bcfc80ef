"""Finds skewed keys: a task with such a key would run much longer than the others.

A skewed key is split by time. Each split also reads the rows before it that its windows
hold (*overlap rows*), which get no results. So the splits of a key run as independent
tasks, and give the same results as one task.

    time    ──────────┬──────────┬──────────►
    split 0 ■■■■■■■■■■
    split 1        ░░░■■■■■■■■■■
    split 2                  ░░░░■■■■■■■■■■     ░ overlap, as long as the longest window

The overlap is the cost of a split. It grows with the windows, so the number of parts of
a key is limited to keep its overlap below half of its rows.

Split points need not be exact, so they come from a count of all rows and a sample of
keys and times. These are jobs that run while the query is planned, so `split=` must ask
for them.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.spark.columns import RESERVED_PREFIX, column, key_columns
from slidewise.spark.jobs import described_jobs
from slidewise.spark.labels import LABEL
from slidewise.spark.options import BatchOptions
from slidewise.spark.skew_split import KEY, SPLIT, SkewSplits, SplitPoint, add_overlap
from slidewise.spark.versions import to_arrow
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import Reach
from slidewise.table.group_codes import group_codes
from slidewise.table.time_columns import read_times

__all__ = ["find_splits", "needs_all_rows", "why_unsplit"]

# The least number of rows of a skewed key, for split="sample" and for split=n.
_MIN_SKEWED_ROWS = 1_000_000
_MIN_SKEWED_ROWS_EXPLICIT = 10_000
_SAMPLE_ROWS = 50_000
# The plan compares each row with all split points of its key.
_MAX_SPLITS = 64
_MAX_OVERLAP = 0.5
_IS_ROW = f"{RESERVED_PREFIX}is_row"


@dataclass(frozen=True, slots=True)
class _SkewedKey:
    """The split points of one key.

    Attributes:
        row: A row of the sample that has the key.
        rows: The number of rows of the sample that have it.
        points: Its split points.
        overlap: The share of its rows that two splits read.
    """

    row: int
    rows: int
    points: tuple[SplitPoint, ...]
    overlap: float


def why_unsplit(spec: Spec) -> str | None:
    """Returns the reason not to split keys of a query by time; None without one."""
    if (reason := needs_all_rows(spec)) is not None:
        return reason
    if spec.several:
        return "several hopping windows need all rows of a key"
    if spec.is_hopping:
        (window,) = spec.windows
        if not window.includes_start:
            return "a split holds windows that are closed at the left"
        if spec.empty:
            return "empty=True needs the rows on both sides of an empty window"
    for window in spec.windows:
        if window.rows and spec.arrival is not None:
            return (
                f"with arrival=, {window!r} takes the latest of all rows "
                "that have arrived, at any earlier time"
            )
    return None


def needs_all_rows(spec: Spec) -> str | None:
    """Returns why a window of time may need any earlier row of its key, or None."""
    for window in spec.windows:
        if window.chained:
            return f"the window {window.name!r} may begin at any earlier row"
    if any(agg.carries for _, agg in spec.aggs):
        return "edge='carry' takes the last of all earlier rows"
    return None


def find_splits(
    df: Any, spec: Spec, options: BatchOptions, tasks: int, schema: pa.Schema
) -> SkewSplits | None:
    """Finds skewed keys and their split points; None without skewed keys.

    Cost:
        None unless `split` is "sample" or a number: then up to three jobs, a count, a
        sample, and for windows of n rows a count of overlap rows.

    Raises:
        SpecError: If `split` is a number, and keys cannot be split.
    """
    if options.split is False:
        return None
    if (reason := why_unsplit(spec)) is not None:
        raise SpecError(
            f"split={options.split!r} is not possible: {reason}; leave out split=, and "
            "keys are not split"
        )
    if tasks < 2:
        return None
    by_size = options.split == "sample"
    min_rows = _MIN_SKEWED_ROWS if by_size else _MIN_SKEWED_ROWS_EXPLICIT
    with described_jobs(df, spec, "count rows"):
        total = int(df.count())
    if total < (2 * min_rows if by_size else min_rows):
        return None
    share = min(1.0, _SAMPLE_ROWS / total)
    with described_jobs(df, spec, "sample keys and times"):
        sample = _sample(df, spec, share)
    reach = Reach.of(spec, schema)

    def wanted_splits(rows: float) -> int:
        if not by_size:
            return int(options.split)
        return ceil(rows / max(min_rows // 2, total / tasks))

    keys = []
    for row, ticks, held in _keys_by_rows(sample, spec, min_rows * share):
        count = min(wanted_splits(len(ticks) / share), _MAX_SPLITS)
        limits = _limits(sample.schema.field(spec.on).type)
        key = _split_key(row, (ticks, held), count, reach, share, limits)
        if key is not None:
            keys.append(key)
    if not keys:
        return None
    splits = _make_splits(sample, spec, keys, share)
    return _with_enough_overlap(df, spec, splits) if reach.rows else splits


def _key_names(spec: Spec) -> list[str]:
    return [f"{KEY}{at}" for at in range(len(spec.by))]


def _sample(df: Any, spec: Spec, share: float) -> pa.Table:
    """Collects the keys and times of a share of the rows, and whether they are rows."""
    keys = [
        key.alias(alias)
        for key, alias in zip(key_columns(df, spec.by), _key_names(spec), strict=True)
    ]
    is_row = column(LABEL).isNull() if LABEL in df.columns else sf.lit(True)
    rows = df.select(*keys, column(spec.on), is_row.alias(_IS_ROW)).where(
        column(spec.on).isNotNull()
    )
    return to_arrow(rows.sample(share, 1) if share < 1 else rows).combine_chunks()


def _keys_by_rows(
    rows: pa.Table, spec: Spec, min_rows: float
) -> list[tuple[int, list[int], list[int]]]:
    """Returns, per key with enough rows, one of them, and sorted times.

    These are all times of the key, and those without labels.
    """
    is_row = frame(rows).column(_IS_ROW)
    ticks = read_times(frame(rows).column(spec.on), spec.on).ticks
    codes = group_codes([(name, frame(rows).column(name)) for name in _key_names(spec)])
    if codes is None:
        both = sorted(ticks.to_pylist()), sorted(ticks.filter(is_row).to_pylist())
        return [(0, *both)] if len(ticks) else []
    counts = pc.value_counts(codes)
    enough = pc.greater_equal(counts.field("counts"), max(min_rows, 2))
    found = []
    for code in counts.filter(enough).field("values"):
        is_key = pc.equal(codes, code)
        row = pc.index(codes, code).as_py()
        some = [is_key, pc.and_(is_key, is_row)]
        every, held = (sorted(ticks.filter(mask).to_pylist()) for mask in some)
        found.append((row, every, held))
    return found


def _split_key(
    row: int,
    times: tuple[list[int], list[int]],
    wanted: int,
    reach: Reach,
    share: float,
    limits: tuple[int, int],
) -> _SkewedKey | None:
    """Splits one key into up to `wanted` parts; None if the overlap is too large.

    Its `row` and sorted `times`, with labels and without them, are those of a sample,
    which has a `share` of all; `limits` are the earliest and the latest time of the
    type.
    """
    ticks, held = times
    rows = len(ticks)
    for splits in range(wanted, 1, -1):
        starts = {ticks[rows * split // splits] for split in range(1, splits)}
        starts.discard(ticks[0])
        points = [
            _split_point(held, start, reach, share, limits) for start in sorted(starts)
        ]
        overlap = sum(_overlap_rows(held, point, limits) for point in points) / rows
        if starts and overlap <= _MAX_OVERLAP:
            return _SkewedKey(row, rows, tuple(points), overlap)
    return None


def _overlap_rows(ticks: list[int], point: SplitPoint, limits: tuple[int, int]) -> int:
    """Returns the number of rows that the splits on both sides of a point read."""
    end = limits[1] if point.overlap_end is None else point.overlap_end
    return bisect_left(ticks, end) - bisect_left(ticks, point.overlap_start)


def _split_point(
    ticks: list[int],
    start: int,
    reach: Reach,
    share: float,
    limits: tuple[int, int],
) -> SplitPoint:
    """Returns the split point at `start`, with its overlap."""
    lowest, highest = limits
    overlap_start = max(start - reach.back, lowest)
    if reach.rows:
        # Half more than needed: a sample estimates the number of rows.
        ample = reach.rows if share == 1 else ceil(1.5 * reach.rows * share) + 8
        first = bisect_left(ticks, start) - ample
        overlap_start = min(overlap_start, ticks[first]) if first >= 0 else lowest
    overlap_end = start + reach.ahead
    return SplitPoint(
        start=start,
        overlap_start=overlap_start,
        overlap_end=overlap_end if overlap_end <= highest else None,
        min_rows=reach.rows if overlap_start > lowest else 0,
    )


def _with_enough_overlap(df: Any, spec: Spec, splits: SkewSplits) -> SkewSplits | None:
    """Drops split points with fewer overlap rows than windows of n rows need."""
    label = [LABEL] if LABEL in df.columns else []
    times = df.select(*map(column, dict.fromkeys([*spec.by, spec.on, *label])))
    rows, is_overlap = add_overlap(times, spec, splits)
    with described_jobs(df, spec, "count overlap rows"):
        counted = rows.where(is_overlap).groupBy(column(SPLIT)).count().collect()
    counts = {row[SPLIT]: row["count"] for row in counted}
    points = [
        tuple(
            point
            for split, point in enumerate(of_key, first_split + 1)
            if counts.get(split, 0) >= point.min_rows
        )
        for first_split, of_key in zip(splits.first_splits, splits.points, strict=True)
    ]
    kept = [at for at, of_key in enumerate(points) if of_key]
    if not kept:
        return None
    return replace(
        splits,
        keys=splits.keys.take(kept) if spec.by else splits.keys,
        points=tuple(points[at] for at in kept),
        rows=tuple(splits.rows[at] for at in kept),
        overlap=tuple(splits.overlap[at] for at in kept),
    )


def _make_splits(
    sample: pa.Table, spec: Spec, keys: list[_SkewedKey], share: float
) -> SkewSplits:
    times = frame(sample).column(spec.on)
    values = sample.select(_key_names(spec))
    return SkewSplits(
        keys=values.take([key.row for key in keys]) if spec.by else values,
        times=read_times(times.slice(0, 0), spec.on),
        points=tuple(key.points for key in keys),
        rows=tuple(round(key.rows / share) for key in keys),
        overlap=tuple(key.overlap for key in keys),
    )


def _limits(kind: pa.DataType) -> tuple[int, int]:
    """Returns the earliest and the latest time of a type, in ticks."""
    bits = int(kind.bit_width) - 1
    return -(1 << bits), (1 << bits) - 1
