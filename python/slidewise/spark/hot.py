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
from pyspark.sql.types import (
    DateType,
    IntegralType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from slidewise.columns import group_codes
from slidewise.errors import SpecError
from slidewise.frames import frame
from slidewise.requests import Request
from slidewise.spark.columns import column, key_column
from slidewise.spark.options import BatchOptions
from slidewise.spec import Spec
from slidewise.times import TimeColumn, read_times

__all__ = ["MARK", "PIECE", "WARM", "Cuts", "cut", "find_cuts", "why_uncut"]

PIECE = "__slidewise_piece"
WARM = "__slidewise_warm"
# Twice the piece, and one more where the row is not warm: one column less to Python.
MARK = "__slidewise_mark"
_OWN = "__slidewise_own"
_LAST = "__slidewise_last"
_KEY = "__slidewise_key"
_START = "__slidewise_start"
_SEEN = "__slidewise_seen"

# A task of fewer rows is not worth a cut; asked for by hand, it may be.
_LEAST_HOT = 1_000_000
_LEAST_BY_HAND = 10_000
_SAMPLE = 50_000
# Each row is compared with all starts of its key.
_MOST_PIECES = 64
# So many times of so few keys are written into the plan; more are joined to the rows.
_WRITTEN_KEYS = 8
_WRITTEN_TIMES = 128
_MOST_WARM = 0.5


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where hot keys are cut. All are as long as there are hot keys.

    Attributes:
        keys: Their values; a table without columns where rows have no keys.
        times: A column of times of the type of the rows', without rows.
        starts: At which times their pieces start, but for the first one, in ticks.
        seen: From which times on these pieces see rows.
        rows: About how many rows each key has.
        warm: The share of its rows that is seen once more.
    """

    keys: pa.Table
    times: TimeColumn
    starts: tuple[tuple[int, ...], ...]
    seen: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]
    warm: tuple[float, ...]

    @property
    def pieces(self) -> list[int]:
        """Into how many pieces each is cut."""
        return [len(starts) + 1 for starts in self.starts]

    @property
    def most(self) -> int:
        """How many cuts the key with the most of them has."""
        return max(map(len, self.starts))

    def named(self, spec: Spec) -> list[str]:
        """Each hot key in words."""
        if not spec.by:
            return ["all rows"]
        return [
            ", ".join(
                f"{own}={value!r}"
                for own, value in zip(spec.by, row.values(), strict=True)
            )
            for row in self.keys.to_pylist()
        ]


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
    column = frame(rows).column(spec.on)
    keys = rows.drop_columns([spec.on])
    lowest = _lowest(column.type)
    return Cuts(
        keys=keys.take([place.key for place in places]) if spec.by else keys,
        times=read_times(column.slice(0, 0), spec.on),
        starts=tuple(tuple(place.starts) for place in places),
        seen=tuple(
            tuple(max(start - back, lowest) for start in place.starts)
            for place in places
        ),
        rows=tuple(round(place.rows / share) for place in places),
        warm=tuple(place.warm for place in places),
    )


def _lowest(kind: pa.DataType) -> int:
    """The first time that a column of times can hold, in ticks."""
    return -(1 << (int(kind.bit_width) - 1))


def cut(df: Any, spec: Spec, cuts: Cuts) -> Any:
    """The rows in their pieces, and once more where they are warm, with a mark."""
    if _are_plain(df, spec, cuts):
        own, last = (
            _written(df, spec, cuts, ticks) for ticks in (cuts.starts, cuts.seen)
        )
        rows = df
    else:
        own = _looked_up(spec, cuts, _START)
        last = _looked_up(spec, cuts, _SEEN)
        rows = _joined(df, spec, cuts)
    rows = rows.withColumns({_OWN: own, _LAST: last})
    pieces = sf.explode(sf.sequence(column(_OWN), column(_LAST)))
    rows = rows.withColumns({PIECE: pieces})
    mark = column(PIECE) * 2 + (column(PIECE) == column(_OWN)).cast("int")
    return rows.select(*map(column, df.columns), mark.alias(MARK))


def _are_plain(df: Any, spec: Spec, cuts: Cuts) -> bool:
    """Whether the plan may hold the keys and times themselves."""
    kinds = [df.schema[name].dataType for name in spec.by]
    time = df.schema[spec.on].dataType
    few = sum(map(len, cuts.starts)) <= _WRITTEN_TIMES
    return (
        few
        and len(cuts.starts) <= _WRITTEN_KEYS
        and isinstance(time, TimestampType | DateType | IntegralType)
        and all(isinstance(kind, StringType | IntegralType) for kind in kinds)
    )


def _written(
    df: Any, spec: Spec, cuts: Cuts, ticks: tuple[tuple[int, ...], ...]
) -> Any:
    """How many of its key's times a row has passed, from times in the plan."""
    time = df.schema[spec.on].dataType

    def moment(tick: int) -> Any:
        if isinstance(time, TimestampType):
            return sf.timestamp_micros(sf.lit(tick))
        if isinstance(time, DateType):
            return sf.date_from_unix_date(sf.lit(tick))
        return sf.lit(tick).cast(time)

    counts = [
        _sum([moment(tick) <= column(spec.on) for tick in of_key]) for of_key in ticks
    ]
    if not spec.by:
        return counts[0]
    whole = sf.lit(0)
    for row, count in zip(cuts.keys.to_pylist(), counts, strict=True):
        same = sf.lit(True)
        for name, value in zip(spec.by, row.values(), strict=True):
            one = sf.lit(value).cast(df.schema[name].dataType)
            same = same & column(name).eqNullSafe(one)
        whole = sf.when(same, count).otherwise(whole)
    return whole


def _looked_up(spec: Spec, cuts: Cuts, name: str) -> Any:
    """The same, from times beside the rows."""
    # Keys that are not cut, or into fewer pieces, have no times there.
    return _sum([column(f"{name}{at}") <= column(spec.on) for at in range(cuts.most)])


def _sum(conditions: list[Any]) -> Any:
    """How many of them hold. A sum is compiled, where functions of lists are not."""
    ones = [sf.coalesce(one.cast("int"), sf.lit(0)) for one in conditions]
    return sum(ones[1:], ones[0])


def _joined(df: Any, spec: Spec, cuts: Cuts) -> Any:
    """The rows beside where their keys are cut."""
    table = cuts.keys
    for name, ticks in ((_START, cuts.starts), (_SEEN, cuts.seen)):
        for at in range(cuts.most):
            some = [one[at] if at < len(one) else None for one in ticks]
            times = cuts.times.restore(pa.array(some, pa.int64()))
            table = _with_column(table, f"{name}{at}", times)
    # Arrow's types do not tell all of Spark's.
    time = df.schema[spec.on].dataType
    keys = {f"{_KEY}{at}": df.schema[name].dataType for at, name in _numbered(spec)}
    names = table.schema.names
    fields = [StructField(name, keys.get(name, time)) for name in names]
    small = df.sparkSession.createDataFrame(table, StructType(fields))
    if not spec.by:
        return df.crossJoin(sf.broadcast(small))
    same = [
        key_column(df, own).eqNullSafe(column(f"{_KEY}{at}"))
        for at, own in _numbered(spec)
    ]
    return df.join(sf.broadcast(small), same, "left")


def _with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """A table without columns has no rows, either, and takes any column."""
    if table.num_columns == 0:
        return pa.table({name: values})
    return table.append_column(name, values)
