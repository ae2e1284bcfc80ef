"""Splits of skewed keys: assigned to rows in the plan, bounded in the workers.

Splits are numbered consecutively over all skewed keys; split 0 holds all other keys.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    DateType,
    IntegerType,
    IntegralType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from slidewise.errors import SlidewiseError
from slidewise.frames.adapt import frame
from slidewise.spark.columns import (
    END,
    RESERVED_PREFIX,
    ROLE,
    START,
    column,
    key_columns,
)
from slidewise.spark.labels import LABEL
from slidewise.spark.versions import create_dataframe
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import AFTER, BEFORE, OWN, Order
from slidewise.table.time_columns import TimeColumn, read_times

__all__ = [
    "KEY",
    "SPLIT",
    "SkewSplits",
    "SplitBounds",
    "SplitPoint",
    "add_overlap",
    "add_splits",
]

SPLIT = f"{RESERVED_PREFIX}split"
KEY = f"{RESERVED_PREFIX}key"
_OWN_SPLIT = f"{RESERVED_PREFIX}own_split"
_FIRST_SPLIT = f"{RESERVED_PREFIX}first_split"
_OVERLAP_START = f"{RESERVED_PREFIX}overlap_start"
_OVERLAP_END = f"{RESERVED_PREFIX}overlap_end"

# The most split points, and the most keys, that become literals of the plan; more are
# joined to the rows.
_MAX_LITERAL_KEYS = 8
_MAX_LITERAL_POINTS = 128


@dataclass(frozen=True, slots=True)
class SplitPoint:
    """The point, in ticks, at which one split of a key ends and the next one starts.

    Attributes:
        start: The start of the next split.
        overlap_start: The start of the rows that the next split reads before its own.
        overlap_end: The end, excluded, of the rows that the split before reads after
            its own; None if the type holds no time as late.
        min_rows: The least number of rows from `overlap_start` to `start`, for windows
            of n rows; 0 without such windows, or if the key has no rows before
            `overlap_start`.
    """

    start: int
    overlap_start: int
    overlap_end: int | None
    min_rows: int = 0


@dataclass(frozen=True, slots=True)
class SkewSplits:
    """The splits of all skewed keys; each attribute but `times` has an item per key.

    Attributes:
        keys: The keys; a table without columns for queries without `by=`.
        times: An empty column of the type of the event times.
        points: The split points of each key, in order of time.
        rows: The number of rows of each key, about.
        overlap: The share of its rows that two splits read.
    """

    keys: pa.Table
    times: TimeColumn
    points: tuple[tuple[SplitPoint, ...], ...]
    rows: tuple[int, ...]
    overlap: tuple[float, ...]

    @property
    def counts(self) -> list[int]:
        """The number of splits of each key."""
        return [len(points) + 1 for points in self.points]

    @property
    def first_splits(self) -> list[int]:
        """The number of the first split of each key."""
        return list(accumulate(self.counts[:-1], initial=1))

    def describe_keys(self, spec: Spec) -> list[str]:
        """Returns each key as text, such as `station=7`."""
        if not spec.by:
            return ["all rows"]
        return [
            ", ".join(
                f"{name}={value!r}"
                for name, value in zip(spec.by, row.values(), strict=True)
            )
            for row in self.keys.to_pylist()
        ]


def add_splits(df: Any, spec: Spec, splits: SkewSplits) -> Any:
    """Adds the column `SPLIT`; a row is repeated for each split that reads it."""
    rows, _ = add_overlap(df, spec, splits)
    return rows.select(*map(column, [*df.columns, SPLIT]))


def add_overlap(df: Any, spec: Spec, splits: SkewSplits) -> tuple[Any, Any]:
    """As `add_splits`; also returns a column that is true for rows before their split.

    The splits that read a row have consecutive numbers. Its own split has the number of
    the first split of its key, plus the number of starts at or before the row. A label
    is read by its own split alone.
    """
    rows, first_split, passed = _lookup(df, spec, splits)
    names = {
        _OWN_SPLIT: first_split + passed(START),
        _OVERLAP_START: first_split + passed(_OVERLAP_START),
    }
    reads_ahead = any(
        point.overlap_end != point.start for points in splits.points for point in points
    )
    if reads_ahead:
        names[_OVERLAP_END] = first_split + passed(_OVERLAP_END)
    rows = rows.withColumns(names)
    own = column(_OWN_SPLIT)
    lowest = column(_OVERLAP_END) if reads_ahead else own
    highest = column(_OVERLAP_START)
    if LABEL in df.columns:
        is_row = column(LABEL).isNull()
        lowest = sf.when(is_row, lowest).otherwise(own)
        highest = sf.when(is_row, highest).otherwise(own)
    readers = sf.explode(sf.sequence(lowest, highest))
    return rows.withColumns({SPLIT: readers}), column(SPLIT) > column(_OWN_SPLIT)


def _ticks(splits: SkewSplits, name: str) -> list[list[int | None]]:
    """Returns one of the times of every split point, by the name of its attribute."""
    field = name.removeprefix(RESERVED_PREFIX)
    return [[getattr(point, field) for point in points] for points in splits.points]


def _lookup(df: Any, spec: Spec, splits: SkewSplits) -> tuple[Any, Any, Any]:
    """Looks up the split points of each row's key.

    Returns:
        The rows; the column of the first split of their key; and a function from a kind
        of time (`START`, ...) to the column of their number at or before each row.
    """
    if _fit_plan(df, spec, splits):
        literals = [sf.lit(split) for split in splits.first_splits]
        first_split = _by_key(df, spec, splits, literals)

        def passed(name: str) -> Any:
            counts = [
                _count_true(
                    [
                        _time_literal(df, spec, tick) <= column(spec.on)
                        for tick in ticks
                        if tick is not None
                    ]
                )
                for ticks in _ticks(splits, name)
            ]
            return _by_key(df, spec, splits, counts)

        return df, first_split, passed

    most = max(map(len, splits.points))

    def joined_passed(name: str) -> Any:
        # Null for keys with fewer split points, or none.
        times = [column(f"{name}{at}") for at in range(most)]
        return _count_true([time <= column(spec.on) for time in times])

    rows = _join_points(df, spec, splits, most)
    return rows, _or_zero(column(_FIRST_SPLIT)), joined_passed


def _fit_plan(df: Any, spec: Spec, splits: SkewSplits) -> bool:
    """Whether the keys and times can be literals of the plan."""
    held = {field.name: field.dataType for field in df.schema}
    kinds, time = [held[name] for name in spec.by], held[spec.on]
    return (
        sum(map(len, splits.points)) <= _MAX_LITERAL_POINTS
        and len(splits.points) <= _MAX_LITERAL_KEYS
        and isinstance(time, TimestampType | DateType | IntegralType)
        and all(isinstance(kind, StringType | IntegralType) for kind in kinds)
    )


def _time_literal(df: Any, spec: Spec, tick: int) -> Any:
    """Returns a literal of the type of the event times."""
    time = df.schema[spec.on].dataType
    if isinstance(time, TimestampType):
        return sf.timestamp_micros(sf.lit(tick))
    if isinstance(time, DateType):
        return sf.date_from_unix_date(sf.lit(tick))
    return sf.lit(tick).cast(time)


def _by_key(df: Any, spec: Spec, splits: SkewSplits, values: list[Any]) -> Any:
    """Returns a column of one value per key; 0 for keys that are not skewed."""
    if not spec.by:
        return values[0]
    found = sf.lit(0)
    kinds = {field.name: field.dataType for field in df.schema}
    for row, value in zip(splits.keys.to_pylist(), values, strict=True):
        same = sf.lit(True)
        for name, part in zip(spec.by, row.values(), strict=True):
            literal = sf.lit(part).cast(kinds[name])
            same = same & column(name).eqNullSafe(literal)
        found = sf.when(same, value).otherwise(found)
    return found


def _count_true(conditions: list[Any]) -> Any:
    """Returns the number of true conditions, as a sum: Spark compiles it."""
    ones = [_or_zero(condition.cast("int")) for condition in conditions]
    return sum(ones[1:], ones[0]) if ones else sf.lit(0)


def _or_zero(number: Any) -> Any:
    return sf.coalesce(number, sf.lit(0))


def _join_points(df: Any, spec: Spec, splits: SkewSplits, most: int) -> Any:
    """Joins the split points of each row's key, as columns, by a broadcast join."""
    table = splits.keys
    for name in (START, _OVERLAP_START, _OVERLAP_END):
        ticks = _ticks(splits, name)
        for at in range(most):
            padded = [of_key[at] if at < len(of_key) else None for of_key in ticks]
            times = splits.times.restore(pa.array(padded, pa.int64()))
            table = _append_column(table, f"{name}{at}", times)
    first_splits = pa.array(splits.first_splits, pa.int32())
    table = _append_column(table, _FIRST_SPLIT, first_splits)
    # Not from Arrow's types: several types of Spark map to the same one.
    held = {field.name: field.dataType for field in df.schema}
    time = held[spec.on]
    kinds = {f"{KEY}{at}": held[name] for at, name in enumerate(spec.by)}
    fields = [
        StructField(name, kinds.get(name, time)) for name in table.schema.names[:-1]
    ]
    schema = StructType([*fields, StructField(_FIRST_SPLIT, IntegerType())])
    small = create_dataframe(df.sparkSession, table, schema)
    if not spec.by:
        return df.crossJoin(sf.broadcast(small))
    same = [
        key.eqNullSafe(column(f"{KEY}{at}"))
        for at, key in enumerate(key_columns(df, spec.by))
    ]
    return df.join(sf.broadcast(small), same, "left")


def _append_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Appends a column; a table without columns takes one of any length."""
    if table.num_columns == 0:
        return pa.table({name: values})
    return table.append_column(name, values)


@dataclass(frozen=True, slots=True)
class SplitBounds:
    """The bounds of splits, by their number, for the workers.

    Attributes:
        starts: The start of each split, in ticks; None for the first of its key.
        ends: The start of the next split of its key; None for the last one.
        min_rows: The least number of overlap rows of each split.
    """

    starts: tuple[int | None, ...]
    ends: tuple[int | None, ...]
    min_rows: tuple[int, ...]

    @classmethod
    def of(cls, splits: SkewSplits) -> "SplitBounds":
        """Returns the bounds of all splits."""
        starts: list[int | None] = [None]
        ends: list[int | None] = [None]
        min_rows = [0]
        for points in splits.points:
            times = [point.start for point in points]
            starts += [None, *times]
            ends += [*times, None]
            min_rows += [0, *(point.min_rows for point in points)]
        return cls(tuple(starts), tuple(ends), tuple(min_rows))

    def order(self, spec: Spec, order: Order) -> Order:
        """Returns the order of rows to which `add_roles` was applied."""
        if spec.is_hopping:
            return replace(order, within=(START, END))
        return replace(order, roles=ROLE)

    def add_roles(self, batch: pa.RecordBatch, spec: Spec) -> pa.RecordBatch:
        """Adds columns that separate the rows of each split from its overlap rows.

        Rows that have no role `OWN`, and windows that are out of bounds already, stay.
        """
        splits = batch.column(SPLIT)
        starts, ends = (
            pa.array(times, pa.int64()).take(splits)
            for times in (self.starts, self.ends)
        )
        if spec.is_hopping:
            if START in batch.schema.names:
                starts = pc.max_element_wise(starts, batch.column(START))
                ends = pc.min_element_wise(ends, batch.column(END))
                batch = batch.drop_columns([START, END])
            return batch.append_column(START, starts).append_column(END, ends)
        table = pa.Table.from_batches([batch])
        ticks = read_times(frame(table).column(spec.on), spec.on).ticks
        before = pc.fill_null(pc.less(ticks, starts), False)
        after = pc.fill_null(pc.greater_equal(ticks, ends), False)
        roles = pc.if_else(before, BEFORE, pc.if_else(after, AFTER, OWN))
        roles = roles.cast(pa.int8())
        if ROLE in batch.schema.names:
            given = batch.column(ROLE)
            roles = pc.if_else(pc.equal(given, OWN), roles, given)
            batch = batch.drop_columns([ROLE])
        return batch.append_column(ROLE, roles)

    def check_overlap(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Yields batches of `add_roles`, and checks the overlap rows of each split.

        Raises:
            SlidewiseError: At the end, if a split has too few for windows of n rows.
        """
        counts: dict[int, int] = {}
        for batch in batches:
            splits = batch.column(SPLIT)
            before = splits.filter(pc.equal(batch.column(ROLE), BEFORE))
            counts = {**dict.fromkeys(pc.unique(splits).to_pylist(), 0), **counts}
            for item in pc.value_counts(before).to_pylist():
                counts[item["values"]] += item["counts"]
            yield batch
        for split, count in counts.items():
            if count < self.min_rows[split]:
                raise SlidewiseError(
                    f"a split of a skewed key has {count} overlap rows, and its "
                    f"windows need {self.min_rows[split]}: the rows have changed since "
                    "they were counted, when the query was planned. Plan it again, or "
                    "pass split=False"
                )
