"""Hot keys: keys of so many rows that one task would work on them alone.

Such a key is cut into pieces of time. Each piece also gets the rows in front of it that
its windows reach back to, to be seen and not answered (*warm* rows), so that pieces are
answered on their own, by the whole cluster, with the same answers.

    time    ──────────┬──────────┬──────────►
    piece 0 ■■■■■■■■■■
    piece 1        ░░░■■■■■■■■■■
    piece 2                  ░░░░■■■■■■■■■■     ░ warm, as long as the longest window

Where windows are long, the warm rows are what a cut costs; a key is cut into no more
pieces than keep them below half of its rows.

How many rows keys have, and where they lie in time, a count of all rows and a sample of
them tell: where to cut need not be exact, only the cuts themselves. Neither is taken of
a table that Spark's plan expects to be small.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException

from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.spark.columns import column, key_column
from slidewise.spark.options import BatchOptions
from slidewise.spark.skew_split import KEY, PIECE, Cut, Cuts, seen_in_pieces
from slidewise.spark.versions import collected
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import Reach
from slidewise.table.encoding import group_codes
from slidewise.table.time_columns import read_times

__all__ = ["find_cuts", "why_uncut"]

# A task of fewer rows is not worth a cut; asked for by hand, it may be.
_LEAST_HOT = 1_000_000
_LEAST_BY_HAND = 10_000
# A key, a time and a value; tables that Spark expects to be smaller are not counted.
_LEAST_BYTES = 16
_SAMPLE = 50_000
# Each row is compared with all starts of its key.
_MOST_PIECES = 64
_MOST_WARM = 0.5

# What Spark writes beside each step of a plan; the first one is the last step.
_SIZE = re.compile(r"sizeInBytes=([0-9.E+]+) ([KMGTPE]?i?)B")
_UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one key is cut: the row of the sample it is known by, and how many."""

    key: int
    rows: int
    cuts: tuple[Cut, ...]
    warm: float


def why_uncut(spec: Spec) -> str | None:
    """Why keys cannot be cut; None if they can."""
    if spec.is_hopping:
        (window,) = spec.windows
        if window.is_session:
            return "where a session begins and ends, only the rows in order tell"
        if spec.empty:
            return (
                "empty=True answers windows between rows that are in different pieces"
            )
    for window in spec.windows:
        if window.kind == "rows" and spec.arrival is not None:
            return (
                f"as of arrival, rows({window.length}) are the youngest of all that "
                "have arrived, wherever they lie"
            )
    return None


def find_cuts(
    df: Any, spec: Spec, options: BatchOptions, tasks: int, schema: pa.Schema
) -> Cuts | None:
    """Counts and samples the rows, and says where to cut hot keys; None if none is.

    Args:
        df: The DataFrame.
        spec: What is asked.
        options: Whether to look at all.
        tasks: How many tasks there are.
        schema: That of the DataFrame, in Arrow.

    Raises:
        SpecError: If a number of pieces is asked for, and keys cannot be cut.
    """
    if options.split is False:
        return None
    if (why := why_uncut(spec)) is not None:
        if options.split == "auto":
            return None
        raise SpecError(
            f"split={options.split} cannot be done: {why}; leave split= out, and keys "
            "stay whole"
        )
    least = _LEAST_HOT if options.split == "auto" else _LEAST_BY_HAND
    if tasks < 2:
        return None
    if options.split == "auto" and _is_small(df, 2 * least * _LEAST_BYTES):
        return None
    total = int(df.count())
    alone = least if options.split != "auto" else 2 * least
    if total < alone:
        return None
    share = min(1.0, _SAMPLE / total)
    keys = [key_column(df, name).alias(f"{KEY}{at}") for at, name in _numbered(spec)]
    sample = df.select(*keys, column(spec.on)).where(column(spec.on).isNotNull())
    sample = sample.sample(share, 1) if share < 1 else sample
    rows = collected(sample).combine_chunks()
    reach = Reach.of(spec, schema)

    def wanted(count: float) -> int:
        if options.split != "auto":
            return int(options.split)
        return ceil(count / max(least // 2, total / tasks))

    places = []
    for key, ticks in _of_many_rows(rows, spec, least * share):
        count = len(ticks) / share
        most = min(wanted(count), _MOST_PIECES)
        limits = _limits(rows.schema.field(spec.on).type)
        place = _placed(key, ticks, most, reach, share, limits)
        if place is not None:
            places.append(place)
    if not places:
        return None
    cuts = _cuts(rows, spec, places, share)
    return _with_rows_enough(df, spec, cuts) if reach.rows else cuts


def _is_small(df: Any, least: int) -> bool:
    """Whether Spark expects fewer bytes, by its plan: no job runs for that."""
    try:
        said = df.sparkSession.sql("EXPLAIN COST SELECT * FROM {rows}", rows=df)
        found = _SIZE.search(said.first()[0])
    except PySparkException:
        return False
    if found is None:
        return False
    return float(found[1]) * 1024.0 ** _UNITS.index(found[2]) < least


def _numbered(spec: Spec) -> list[tuple[int, str]]:
    return list(enumerate(spec.by))


def _of_many_rows(
    rows: pa.Table, spec: Spec, least: float
) -> list[tuple[int, list[int]]]:
    """Of each key with many rows one of them, and the times of all, in order."""
    ticks = read_times(frame(rows).column(spec.on), spec.on).ticks
    names = [f"{KEY}{at}" for at, _ in _numbered(spec)]
    codes = group_codes([(name, frame(rows).column(name)) for name in names])
    if codes is None:
        return [(0, sorted(ticks.to_pylist()))] if len(ticks) else []
    counts = pc.value_counts(codes)
    many = counts.filter(pc.greater_equal(counts.field("counts"), max(least, 2)))
    found = []
    for code in many.field("values"):
        mine = pc.equal(codes, code)
        key = pc.index(codes, code).as_py()
        found.append((key, sorted(ticks.filter(mine).to_pylist())))
    return found


def _placed(
    key: int,
    ticks: list[int],
    wanted: int,
    reach: Reach,
    share: float,
    limits: tuple[int, int],
) -> _Place | None:
    """Where one key is cut, given the times of some of its rows in order."""
    count = len(ticks)
    for pieces in range(wanted, 1, -1):
        cut_at = {ticks[count * piece // pieces] for piece in range(1, pieces)}
        starts = sorted(cut_at - {ticks[0]})
        cuts = [_cut(ticks, start, reach, share, limits) for start in starts]
        warm = sum(
            bisect_left(ticks, limits[1] if cut.until is None else cut.until)
            - bisect_left(ticks, cut.seen)
            for cut in cuts
        )
        if starts and warm / count <= _MOST_WARM:
            return _Place(key, count, tuple(cuts), warm / count)
    return None


def _cut(
    ticks: list[int],
    start: int,
    reach: Reach,
    share: float,
    limits: tuple[int, int],
) -> Cut:
    """What pieces on both sides of `start` see."""
    lowest, highest = limits
    seen = max(start - reach.back, lowest)
    if reach.rows:
        # Half as many again as are needed, for a sample tells how many about.
        ample = reach.rows if share == 1 else ceil(1.5 * reach.rows * share) + 8
        first = bisect_left(ticks, start) - ample
        seen = min(seen, ticks[first]) if first >= 0 else lowest
    until = start + reach.ahead
    return Cut(
        start=start,
        seen=seen,
        until=until if until <= highest else None,
        counted=reach.rows if seen > lowest else 0,
    )


def _with_rows_enough(df: Any, spec: Spec, cuts: Cuts) -> Cuts | None:
    """Only the cuts before which as many rows are seen as windows of n rows need."""
    few = df.select(*map(column, dict.fromkeys([*spec.by, spec.on])))
    rows, before = seen_in_pieces(few, spec, cuts)
    counts = rows.where(before).groupBy(column(PIECE)).count().collect()
    seen = {row[PIECE]: row["count"] for row in counts}
    places = [
        tuple(
            cut
            for piece, cut in enumerate(places, base + 1)
            if seen.get(piece, 0) >= cut.counted
        )
        for base, places in zip(cuts.bases, cuts.places, strict=True)
    ]
    kept = [at for at, of_key in enumerate(places) if of_key]
    if not kept:
        return None
    return replace(
        cuts,
        keys=cuts.keys.take(kept) if spec.by else cuts.keys,
        places=tuple(places[at] for at in kept),
        rows=tuple(cuts.rows[at] for at in kept),
        warm=tuple(cuts.warm[at] for at in kept),
    )


def _cuts(rows: pa.Table, spec: Spec, places: list[_Place], share: float) -> Cuts:
    times = frame(rows).column(spec.on)
    keys = rows.drop_columns([spec.on])
    return Cuts(
        keys=keys.take([place.key for place in places]) if spec.by else keys,
        times=read_times(times.slice(0, 0), spec.on),
        places=tuple(place.cuts for place in places),
        rows=tuple(round(place.rows / share) for place in places),
        warm=tuple(place.warm for place in places),
    )


def _limits(kind: pa.DataType) -> tuple[int, int]:
    """The first and the last time that a column of times can hold, in ticks."""
    bits = int(kind.bit_width) - 1
    return -(1 << bits), (1 << bits) - 1
