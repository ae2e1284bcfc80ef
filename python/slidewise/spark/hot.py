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
"""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from slidewise.frames import frame
from slidewise.requests import Request
from slidewise.spark.columns import column, key_column
from slidewise.spark.options import BatchOptions
from slidewise.spec import Spec
from slidewise.times import TimeColumn, read_times

__all__ = ["PIECE", "WARM", "Cuts", "cut", "find_cuts", "why_uncut"]

PIECE = "__slidewise_piece"
WARM = "__slidewise_warm"
_STARTS = "__slidewise_starts"
_SEEN = "__slidewise_seen"
_KEY = "__slidewise_key"
_NUMBER = "__slidewise_number"

# A task of fewer rows is not worth a cut; asked for by hand, it may be.
_LEAST_HOT = 500_000
_LEAST_BY_HAND = 10_000
# Times at so many even ranks say where a key's rows lie.
_GRID = 128
_MOST_WARM = 0.5


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where hot keys are cut.

    Attributes:
        table: A row per hot key: its values, the times at which its pieces start, and
            those from which on their rows are seen.
        rows: How many rows each of them has.
        warm: The share of warm rows that comes with each.
    """

    table: pa.Table
    rows: tuple[int, ...]
    warm: tuple[float, ...]

    @property
    def pieces(self) -> list[int]:
        """Into how many pieces each hot key is cut."""
        return [len(starts) + 1 for starts in self.table[_STARTS].to_pylist()]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one key is cut, in ticks."""

    starts: list[int]
    seen: list[int]
    warm: float


def why_uncut(spec: Spec) -> str | None:
    """Why keys cannot be cut; None if they can."""
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
    """Counts the keys, and says where to cut those that are hot; None if none is.

    Args:
        df: The DataFrame.
        spec: What is asked.
        options: Whether to look at all.
        tasks: How many tasks there are.
        schema: That of the DataFrame, in Arrow.
    """
    if options.split is False or spec.is_hopping or why_uncut(spec) is not None:
        return None
    hot = _counted(df, spec, options, tasks)
    if hot is None:
        return None
    keys, rows, wanted = hot
    grids, oldest = _grids(df, spec, keys)
    back = _back(spec, schema)
    places = [
        _placed(read_times(grid.values, spec.on).ticks.to_pylist(), first, many, back)
        for grid, first, many in zip(
            grids, read_times(oldest, spec.on).ticks.to_pylist(), wanted, strict=True
        )
    ]
    kept = [at for at, place in enumerate(places) if place.starts]
    if not kept:
        return None
    places = [places[at] for at in kept]
    times = read_times(oldest, spec.on)
    table = keys.take(kept)
    table = table.append_column(_STARTS, _lists(times, [one.starts for one in places]))
    table = table.append_column(_SEEN, _lists(times, [one.seen for one in places]))
    warm = tuple(place.warm for place in places)
    return Cuts(table, tuple(rows[at] for at in kept), warm)


def _lists(times: TimeColumn, ticks: list[list[int]]) -> pa.Array:
    """Lists of times, in the type of a column of times."""
    flat = times.restore(pa.array(list(chain(*ticks)), pa.int64()))
    ends = list(accumulate(map(len, ticks), initial=0))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat)


def _counted(
    df: Any, spec: Spec, options: BatchOptions, tasks: int
) -> tuple[pa.Table, list[int], list[int]] | None:
    """The hot keys, numbered, their rows, and into how many pieces to cut them."""
    keys = [
        key_column(df, name).alias(f"{_KEY}{at}") for at, name in enumerate(spec.by)
    ]
    counts = df.groupBy(*keys).agg(sf.count(sf.lit(1)).alias(_NUMBER))
    many = column(_NUMBER)
    if options.split == "auto":
        found, total = _many_rows(counts, many >= _LEAST_HOT)
        share = max(_LEAST_HOT // 2, total // tasks)
        rows = found[_NUMBER].to_pylist()
        wanted = [-(-count // share) for count in rows]
    else:
        found = counts.where(many >= _LEAST_BY_HAND).toArrow()
        rows = found[_NUMBER].to_pylist()
        wanted = [int(options.split)] * len(rows)
    kept = [at for at, pieces in enumerate(wanted) if pieces > 1]
    if not kept:
        return None
    numbers = pa.array(range(len(kept)), pa.int64())
    hot = found.take(kept)
    hot = hot.set_column(hot.column_names.index(_NUMBER), _NUMBER, numbers)
    return hot, [rows[at] for at in kept], [wanted[at] for at in kept]


def _many_rows(counts: Any, hot: Any) -> tuple[pa.Table, int]:
    """The keys of many rows, and how many rows there are in all, by one job."""
    rows = sf.when(hot, sf.struct(*map(column, counts.columns)))
    told = counts.agg(
        sf.sum(_NUMBER).alias("total"), sf.collect_list(rows).alias("hot")
    )
    told = told.toArrow()
    structs = told["hot"].combine_chunks().flatten()
    found = pa.Table.from_arrays(structs.flatten(), names=counts.columns)
    return found, told["total"][0].as_py() or 0


def _grids(df: Any, spec: Spec, keys: pa.Table) -> tuple[pa.Array, pa.Array]:
    """The times of each hot key at even ranks, and its first one."""
    ranks = [rank / _GRID for rank in range(_GRID + 1)]
    time = column(spec.on)
    grid = sf.percentile_approx(time, ranks).alias("grid")
    rows = _joined(df, spec, keys, "inner").groupBy(_NUMBER)
    told = rows.agg(grid, sf.min(time).alias("first")).toArrow().sort_by(_NUMBER)
    return told["grid"].combine_chunks(), told["first"].combine_chunks()


def _joined(df: Any, spec: Spec, table: pa.Table, how: str) -> Any:
    """The rows beside what a small table says of their keys."""
    kinds = _kinds(df, spec)
    schema = StructType([StructField(name, kinds[name]) for name in table.column_names])
    small = sf.broadcast(df.sparkSession.createDataFrame(table, schema))
    if not spec.by:
        return df.crossJoin(small)
    names = [f"{_KEY}{at}" for at in range(len(spec.by))]
    same = [
        key_column(df, own).eqNullSafe(column(name))
        for own, name in zip(spec.by, names, strict=True)
    ]
    return df.join(small, same, how).drop(*names)


def _kinds(df: Any, spec: Spec) -> dict[str, Any]:
    """The types of the columns of small tables: Arrow's do not tell all of Spark's."""
    time = df.schema[spec.on].dataType
    keys = {f"{_KEY}{at}": df.schema[name].dataType for at, name in enumerate(spec.by)}
    lists = dict.fromkeys((_STARTS, _SEEN), ArrayType(time))
    return {**keys, **lists, _NUMBER: LongType()}


def _back(spec: Spec, schema: pa.Schema) -> int:
    """How far windows reach back, in ticks."""
    spans = Request(frame(schema.empty_table()), spec).spans
    return max(length + offset for _, length, _, offset in spans)


def _placed(grid: list[int], first: int, wanted: int, back: int) -> _Place:
    """Where one key is cut, and which share of its rows is seen twice."""
    for pieces in range(wanted, 1, -1):
        ranks = [round(_GRID * piece / pieces) for piece in range(1, pieces)]
        starts = sorted({grid[rank] for rank in ranks} - {first})
        warm = sum(
            bisect_left(grid, start) - bisect_left(grid, start - back)
            for start in starts
        )
        if starts and warm / _GRID <= _MOST_WARM:
            seen = [max(start - back, first) for start in starts]
            return _Place(starts, seen, warm / _GRID)
    return _Place([], [], 0.0)


def cut(df: Any, spec: Spec, cuts: Cuts) -> Any:
    """The rows in their pieces, and once more where they are warm."""
    joined = _joined(df, spec, cuts.table, "left")
    time = column(spec.on)

    def passed(name: str) -> Any:
        there = sf.filter(column(name), lambda start: start <= time)
        return sf.coalesce(sf.size(there), sf.lit(0))

    own, last = "__slidewise_own", "__slidewise_last"
    # Keys that are not cut have no lists, and the size of none is -1 to old settings.
    joined = joined.withColumns(
        {
            own: sf.greatest(passed(_STARTS), sf.lit(0)),
            last: sf.greatest(passed(_SEEN), sf.lit(0)),
        }
    )
    pieces = sf.explode(sf.sequence(column(own), column(last)))
    rows = joined.withColumns({PIECE: pieces})
    rows = rows.withColumns({WARM: column(PIECE) > column(own)})
    return rows.drop(_NUMBER, _STARTS, _SEEN, own, last)
