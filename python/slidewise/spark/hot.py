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
them tell: where to cut need not be exact, only the cuts themselves.
"""

from bisect import bisect_left
from dataclasses import dataclass
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from slidewise.columns import group_codes
from slidewise.frames import frame
from slidewise.requests import Request
from slidewise.spark.columns import column, key_column
from slidewise.spark.options import BatchOptions
from slidewise.spec import Spec
from slidewise.times import read_times

__all__ = ["PIECE", "WARM", "Cuts", "cut", "find_cuts", "why_uncut"]

PIECE = "__slidewise_piece"
WARM = "__slidewise_warm"
_OWN = "__slidewise_own"
_LAST = "__slidewise_last"
_KEY = "__slidewise_key"
_START = "__slidewise_start"
_SEEN = "__slidewise_seen"

# A task of fewer rows is not worth a cut; asked for by hand, it may be.
_LEAST_HOT = 1_000_000
_LEAST_BY_HAND = 10_000
_SAMPLE = 100_000
# Each row is compared with all starts of its key.
_MOST_PIECES = 64
_MOST_WARM = 0.5


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where hot keys are cut.

    Attributes:
        table: A row per hot key: its values; behind each of its cuts, in columns, the
            time at which the piece starts and that from which on it sees rows.
        rows: About how many rows each of them has.
        pieces: Into how many pieces each is cut.
        warm: The share of its rows that is seen once more.
    """

    table: pa.Table
    rows: tuple[int, ...]
    pieces: tuple[int, ...]
    warm: tuple[float, ...]

    def keys(self, spec: Spec) -> list[str]:
        """Each hot key in words."""
        names = [f"{_KEY}{at}" for at, _ in _numbered(spec)]
        rows = self.table.select(names).to_pylist() if names else [{}]
        return [
            ", ".join(
                f"{own}={row[name]!r}" for own, name in zip(spec.by, names, strict=True)
            )
            for row in rows
        ]

    @property
    def most(self) -> int:
        """How many cuts the key with the most of them has."""
        return max(self.pieces) - 1


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one key is cut, in ticks."""

    key: int
    rows: int
    starts: list[int]
    warm: float


def why_uncut(spec: Spec) -> str | None:
    """Why keys cannot be cut; None if they can."""
    if spec.is_hopping:
        return "windows at a distance from one another are not cut"
    if spec.arrival is not None:
        return "as of arrival any row may see any other one of its key"
    for window in spec.windows:
        if window.kind == "rows":
            return f"how far back rows({window.length}) reaches, only the rows tell"
        if window.offset < 0:
            return "offset= is negative, and windows reach ahead"
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
    """
    if options.split is False or why_uncut(spec) is not None:
        return None
    least = _LEAST_HOT if options.split == "auto" else _LEAST_BY_HAND
    total = int(df.count())
    alone = least if options.split != "auto" else 2 * least
    if total < alone or tasks < 2:
        return None
    share = min(1.0, _SAMPLE / total)
    keys = [key_column(df, name).alias(f"{_KEY}{at}") for at, name in _numbered(spec)]
    sample = df.select(*keys, column(spec.on)).where(column(spec.on).isNotNull())
    sample = sample.sample(share, 1) if share < 1 else sample
    rows = sample.toArrow().combine_chunks()
    spans = Request(frame(schema.empty_table()), spec).spans
    back: int = max(length + offset for _, length, _, offset in spans)

    def wanted(count: float) -> int:
        if options.split != "auto":
            return int(options.split)
        return ceil(count / max(least // 2, total / tasks))

    places = []
    for key, ticks in _of_many_rows(rows, spec, least * share):
        count = len(ticks) / share
        place = _placed(key, ticks, min(wanted(count), _MOST_PIECES), back)
        if place is not None:
            places.append(place)
    return _cuts(rows, spec, places, share, back) if places else None


def _numbered(spec: Spec) -> list[tuple[int, str]]:
    return list(enumerate(spec.by))


def _of_many_rows(
    rows: pa.Table, spec: Spec, least: float
) -> list[tuple[int, list[int]]]:
    """Of each key with many rows one of them, and the times of all, in order."""
    ticks = read_times(frame(rows).column(spec.on), spec.on).ticks
    names = [f"{_KEY}{at}" for at, _ in _numbered(spec)]
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


def _placed(key: int, ticks: list[int], wanted: int, back: int) -> _Place | None:
    """Where one key is cut, given the times of some of its rows in order."""
    count = len(ticks)
    for pieces in range(wanted, 1, -1):
        cut_at = {ticks[count * piece // pieces] for piece in range(1, pieces)}
        starts = sorted(cut_at - {ticks[0]})
        warm = sum(
            bisect_left(ticks, start) - bisect_left(ticks, start - back)
            for start in starts
        )
        if starts and warm / count <= _MOST_WARM:
            return _Place(key, count, starts, warm / count)
    return None


def _cuts(
    rows: pa.Table, spec: Spec, places: list[_Place], share: float, back: int
) -> Cuts:
    times = read_times(frame(rows).column(spec.on), spec.on)
    table = rows.take([place.key for place in places]).drop_columns([spec.on])
    most = max(len(place.starts) for place in places)
    lowest = _lowest(times.original.type)
    for at in range(most):
        starts = [(*place.starts, *[None] * most)[at] for place in places]
        seen = [None if tick is None else max(tick - back, lowest) for tick in starts]
        for name, ticks in ((_START, starts), (_SEEN, seen)):
            restored = times.restore(pa.array(ticks, pa.int64()))
            table = table.append_column(f"{name}{at}", restored)
    return Cuts(
        table,
        rows=tuple(round(place.rows / share) for place in places),
        pieces=tuple(len(place.starts) + 1 for place in places),
        warm=tuple(place.warm for place in places),
    )


def _lowest(kind: pa.DataType) -> int:
    """The first time that a column of times can hold, in ticks."""
    return -(1 << (int(kind.bit_width) - 1))


def cut(df: Any, spec: Spec, cuts: Cuts) -> Any:
    """The rows in their pieces, and once more where they are warm."""
    time = column(spec.on)

    def passed(name: str) -> Any:
        there = [column(f"{name}{at}") <= time for at in range(cuts.most)]
        # Keys that are not cut, or into fewer pieces, have no times there.
        ones = [sf.coalesce(one.cast("int"), sf.lit(0)) for one in there]
        return sum(ones[1:], ones[0])

    rows = _joined(df, spec, cuts)
    rows = rows.withColumns({_OWN: passed(_START), _LAST: passed(_SEEN)})
    pieces = sf.explode(sf.sequence(column(_OWN), column(_LAST)))
    rows = rows.withColumns({PIECE: pieces})
    rows = rows.withColumns({WARM: column(PIECE) > column(_OWN)})
    return rows.select(*map(column, df.columns), column(PIECE), column(WARM))


def _joined(df: Any, spec: Spec, cuts: Cuts) -> Any:
    """The rows beside where their keys are cut."""
    # Arrow's types do not tell all of Spark's.
    time = df.schema[spec.on].dataType
    keys = {f"{_KEY}{at}": df.schema[name].dataType for at, name in _numbered(spec)}
    fields = [
        StructField(name, keys.get(name, time)) for name in cuts.table.schema.names
    ]
    small = df.sparkSession.createDataFrame(cuts.table, StructType(fields))
    if not spec.by:
        return df.crossJoin(sf.broadcast(small))
    same = [
        key_column(df, own).eqNullSafe(column(f"{_KEY}{at}"))
        for at, own in _numbered(spec)
    ]
    return df.join(sf.broadcast(small), same, "left")
