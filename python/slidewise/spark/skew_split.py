"""Keys in pieces of time: where they are cut, on the way and in the workers.

Pieces are numbered through, over all keys; number 0 is for the keys that are not cut.
"""

from dataclasses import dataclass, replace
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
from slidewise.spark.columns import column, key_column
from slidewise.spark.versions import from_table
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import AFTER, BEFORE, OWN, Order
from slidewise.table.time_columns import TimeColumn, read_times

__all__ = ["KEY", "PIECE", "Bounds", "Cut", "Cuts", "in_pieces", "seen_in_pieces"]

PIECE = "__slidewise_piece"
KEY = "__slidewise_key"
_OWN = "__slidewise_own"
_BASE = "__slidewise_base"
_START = "__slidewise_start"
_SEEN = "__slidewise_seen"
_UNTIL = "__slidewise_until"
_ROLE = "__slidewise_role"
_AFTER = "__slidewise_after"

# So many times of so few keys are written into the plan; more are joined to the rows.
_WRITTEN_KEYS = 8
_WRITTEN_TIMES = 128


@dataclass(frozen=True, slots=True)
class Cut:
    """Where one piece of a key ends and the next one starts, in ticks.

    Attributes:
        start: When the next one starts.
        seen: From when on it sees rows.
        until: Up to when, excluded, the piece before sees rows; None where no time is
            as late as that.
        counted: How many rows there must be from `seen` to `start`, for windows that
            are counted in rows; 0 where none is, or the key has no rows before `seen`.
    """

    start: int
    seen: int
    until: int | None
    counted: int = 0


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where hot keys are cut. All are as long as there are hot keys.

    Attributes:
        keys: Their values; a table without columns where rows have no keys.
        times: A column of times of the type of the rows', without rows.
        places: Where they are cut, in order of time.
        rows: About how many rows each key has.
        warm: The share of its rows that is seen once more.
    """

    keys: pa.Table
    times: TimeColumn
    places: tuple[tuple[Cut, ...], ...]
    rows: tuple[int, ...]
    warm: tuple[float, ...]

    @property
    def pieces(self) -> list[int]:
        """Into how many pieces each is cut."""
        return [len(places) + 1 for places in self.places]

    @property
    def bases(self) -> list[int]:
        """The number of the first piece of each."""
        bases, base = [], 1
        for pieces in self.pieces:
            bases.append(base)
            base += pieces
        return bases

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


def in_pieces(df: Any, spec: Spec, cuts: Cuts) -> Any:
    """The rows with the number of their piece, once for each that sees them."""
    return seen_in_pieces(df, spec, cuts)[0].select(*map(column, [*df.columns, PIECE]))


def seen_in_pieces(df: Any, spec: Spec, cuts: Cuts) -> tuple[Any, Any]:
    """The same, and a column that says which rows come before those of the piece."""
    rows, base, passed = _places(df, spec, cuts)
    ahead = any(cut.until != cut.start for places in cuts.places for cut in places)
    names = {_OWN: base + passed(_START), _SEEN: base + passed(_SEEN)}
    if ahead:
        names[_UNTIL] = base + passed(_UNTIL)
    rows = rows.withColumns(names)
    first = column(_UNTIL if ahead else _OWN)
    pieces = sf.explode(sf.sequence(first, column(_SEEN)))
    return rows.withColumns({PIECE: pieces}), column(PIECE) > column(_OWN)


def _ticks(cuts: Cuts, name: str) -> list[list[int | None]]:
    """The times of one kind: starts, or from when on, or until when, rows are seen."""
    field = {_START: "start", _SEEN: "seen", _UNTIL: "until"}[name]
    return [[getattr(cut, field) for cut in places] for places in cuts.places]


def _places(df: Any, spec: Spec, cuts: Cuts) -> tuple[Any, Any, Any]:
    """The rows, the first piece of their key, and how many times they have passed."""
    if _are_plain(df, spec, cuts):
        base = _of_key(df, spec, cuts, [sf.lit(base) for base in cuts.bases])

        def passed(name: str) -> Any:
            counts = [
                _sum(
                    [
                        _moment(df, spec, tick) <= column(spec.on)
                        for tick in ticks
                        if tick is not None
                    ]
                )
                for ticks in _ticks(cuts, name)
            ]
            return _of_key(df, spec, cuts, counts)

        return df, base, passed

    most = max(map(len, cuts.places))

    def looked_up(name: str) -> Any:
        # Keys that are not cut, or into fewer pieces, have no times there.
        times = [column(f"{name}{at}") for at in range(most)]
        return _sum([time <= column(spec.on) for time in times])

    return _joined(df, spec, cuts, most), _or_none(column(_BASE)), looked_up


def _are_plain(df: Any, spec: Spec, cuts: Cuts) -> bool:
    """Whether the plan may hold the keys and times themselves."""
    kinds = [df.schema[name].dataType for name in spec.by]
    time = df.schema[spec.on].dataType
    few = sum(map(len, cuts.places)) <= _WRITTEN_TIMES
    return (
        few
        and len(cuts.places) <= _WRITTEN_KEYS
        and isinstance(time, TimestampType | DateType | IntegralType)
        and all(isinstance(kind, StringType | IntegralType) for kind in kinds)
    )


def _moment(df: Any, spec: Spec, tick: int) -> Any:
    """A time in the plan."""
    time = df.schema[spec.on].dataType
    if isinstance(time, TimestampType):
        return sf.timestamp_micros(sf.lit(tick))
    if isinstance(time, DateType):
        return sf.date_from_unix_date(sf.lit(tick))
    return sf.lit(tick).cast(time)


def _of_key(df: Any, spec: Spec, cuts: Cuts, values: list[Any]) -> Any:
    """The value of the row's key; 0 where it is not cut."""
    if not spec.by:
        return values[0]
    whole = sf.lit(0)
    for row, value in zip(cuts.keys.to_pylist(), values, strict=True):
        same = sf.lit(True)
        for name, own in zip(spec.by, row.values(), strict=True):
            one = sf.lit(own).cast(df.schema[name].dataType)
            same = same & column(name).eqNullSafe(one)
        whole = sf.when(same, value).otherwise(whole)
    return whole


def _sum(conditions: list[Any]) -> Any:
    """How many of them hold. A sum is compiled, where functions of lists are not."""
    ones = [_or_none(one.cast("int")) for one in conditions]
    return sum(ones[1:], ones[0]) if ones else sf.lit(0)


def _or_none(number: Any) -> Any:
    return sf.coalesce(number, sf.lit(0))


def _joined(df: Any, spec: Spec, cuts: Cuts, most: int) -> Any:
    """The rows beside where their keys are cut."""
    table = cuts.keys
    for name in (_START, _SEEN, _UNTIL):
        every = _ticks(cuts, name)
        for at in range(most):
            some = [one[at] if at < len(one) else None for one in every]
            times = cuts.times.restore(pa.array(some, pa.int64()))
            table = _with_column(table, f"{name}{at}", times)
    table = _with_column(table, _BASE, pa.array(cuts.bases, pa.int32()))
    # Arrow's types do not tell all of Spark's.
    time = df.schema[spec.on].dataType
    kinds = {f"{KEY}{at}": df.schema[name].dataType for at, name in enumerate(spec.by)}
    fields = [
        StructField(name, kinds.get(name, time)) for name in table.schema.names[:-1]
    ]
    schema = StructType([*fields, StructField(_BASE, IntegerType())])
    small = from_table(df.sparkSession, table, schema)
    if not spec.by:
        return df.crossJoin(sf.broadcast(small))
    same = [
        key_column(df, own).eqNullSafe(column(f"{KEY}{at}"))
        for at, own in enumerate(spec.by)
    ]
    return df.join(sf.broadcast(small), same, "left")


def _with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """A table without columns has no rows, either, and takes any column."""
    if table.num_columns == 0:
        return pa.table({name: values})
    return table.append_column(name, values)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What workers know of pieces, by their number.

    Attributes:
        starts: When each starts, in ticks; None where nothing of its key is before it.
        ends: When the next one of its key starts; None for the last one.
        counted: How many rows before its start each must have seen.
    """

    starts: tuple[int | None, ...]
    ends: tuple[int | None, ...]
    counted: tuple[int, ...]

    @classmethod
    def of(cls, cuts: Cuts) -> "Bounds":
        """The bounds of all pieces."""
        starts: list[int | None] = [None]
        ends: list[int | None] = [None]
        counted = [0]
        for places in cuts.places:
            times = [cut.start for cut in places]
            starts += [None, *times]
            ends += [*times, None]
            counted += [0, *(cut.counted for cut in places)]
        return cls(tuple(starts), tuple(ends), tuple(counted))

    def order(self, spec: Spec, order: Order) -> Order:
        """The order of rows that are `marked`."""
        if spec.is_hopping:
            return replace(order, within=(_START, _AFTER))
        return replace(order, roles=_ROLE)

    def marked(self, batch: pa.RecordBatch, spec: Spec) -> pa.RecordBatch:
        """A batch of `checked` rows in pieces, with what they are to their piece."""
        pieces = batch.column(PIECE)
        starts, ends = (
            pa.array(times, pa.int64()).take(pieces)
            for times in (self.starts, self.ends)
        )
        if spec.is_hopping:
            return batch.append_column(_START, starts).append_column(_AFTER, ends)
        table = pa.Table.from_batches([batch])
        ticks = read_times(frame(table).column(spec.on), spec.on).ticks
        before = pc.fill_null(pc.less(ticks, starts), False)
        after = pc.fill_null(pc.greater_equal(ticks, ends), False)
        roles = pc.if_else(before, BEFORE, pc.if_else(after, AFTER, OWN))
        return batch.append_column(_ROLE, roles.cast(pa.int8()))

    def watch(self) -> "_Watch | None":
        """Counts the rows that pieces have seen before their start, if any must be."""
        return _Watch(self.counted) if any(self.counted) else None


class _Watch:
    """Whether pieces have seen as many rows as the windows of n rows need."""

    def __init__(self, counted: tuple[int, ...]) -> None:
        self._needed = counted
        self._seen: dict[int, int] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        """More rows, `marked`."""
        before = pc.equal(batch.column(_ROLE), BEFORE)
        for piece in pc.unique(batch.column(PIECE)).to_pylist():
            self._seen.setdefault(piece, 0)
        for item in pc.value_counts(batch.column(PIECE).filter(before)).to_pylist():
            self._seen[item["values"]] += item["counts"]

    def check(self) -> None:
        """When all rows have come.

        Raises:
            SlidewiseError: If some are missing.
        """
        for piece, seen in self._seen.items():
            if seen < self._needed[piece]:
                raise SlidewiseError(
                    f"a piece of a hot key sees {seen} rows before its first one, and "
                    f"its windows reach back {self._needed[piece]}: the rows have "
                    "changed since they were counted, when the job was planned. Plan "
                    "it again, or say split=False"
                )
