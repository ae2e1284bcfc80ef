"""Rolling aggregates over a sorted stream of batches, in bounded memory.

Rows come sorted by key and time (as of arrival: by key and arrival) and go out with
their results in the same order. Between batches only this is held:

- *past*: rows of the key at hand that are answered, and still within reach of the
  longest window; of them only the columns that are computed with;
- *waiting*: rows whose windows are not over yet, because rows of the same time, or
  later ones that an `offset=` reaches, may still come.

A batch is computed together with the past in front of it, so that each answer comes
from the same kernel as over a whole table. New rows are gathered until they are as many
as the past: then no row is looked at more than twice on average, and at most twice the
longest window is in memory beside the batch. As of arrival any row may be needed again
by one that arrives very late, and the past is the key as a whole.

Of a run that is a piece of a key, rows of the pieces beside it may come as well, to be
seen and not answered: those before it, and those after it that windows reach ahead to.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.spec.spec import Spec
from slidewise.table.encoding import group_codes, row_numbers, single_group
from slidewise.table.kernel_call import KernelCall, QueryPoints
from slidewise.table.rolling import rolling_spec
from slidewise.table.time_columns import read_times

__all__ = [
    "AFTER",
    "BEFORE",
    "OWN",
    "Order",
    "Reach",
    "check_rows",
    "describe_row",
    "describe_window",
    "result_schema",
    "rolling_batches",
    "run_codes",
]

# What a row is to its run: seen by its rows, or one of them.
BEFORE, OWN, AFTER = 0, 1, 2

# As many rows are computed together at least: a call costs about a millisecond.
_LEAST = 1 << 16
_INT64_MIN = -(2**63)
_NAN = object()


@dataclass(frozen=True, slots=True)
class Order:
    """What is known of the order of rows, beside that of key and time.

    Attributes:
        runs: Columns whose equal values stand together, such that all rows of a key
            have the same ones: the keys themselves, by default.
        roles: A column that says whether a row is `OWN`, or stands `BEFORE` or `AFTER`
            those of its run, and is seen and not answered. As of arrival they stand
            in any order.
        within: Two columns of ticks: only windows at a distance are answered that end
            later than the first, and no later than the second; a null is no bound.
        least: So many rows are computed together at least.
        is_checked: All rows are known to be as `check_rows` asks.
    """

    runs: tuple[str, ...] | None = None
    roles: str | None = None
    within: tuple[str, str] | None = None
    least: int = _LEAST
    is_checked: bool = False


def result_schema(spec: Spec, schema: pa.Schema) -> pa.Schema:
    """The schema of the results of rows of this schema.

    Raises:
        SpecError: If the spec does not fit the columns.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> spec = Spec.make(on="t", windows=5, aggs={"n": sw.count()})
        >>> result_schema(spec, pa.schema({"t": pa.int64()})).names
        ['t', 'n_5']
    """
    nothing = schema.empty_table()
    answered: pa.Schema = rolling_spec(nothing, spec, threads=1).schema
    return answered


def rolling_batches(
    batches: Iterable[pa.RecordBatch],
    spec: Spec,
    schema: pa.Schema,
    order: Order | None = None,
) -> Iterator[pa.Table]:
    """The rows with their results, in parts.

    Args:
        batches: Sorted by key and time, or by key and arrival if the spec has one.
        spec: What is asked.
        schema: That of the batches.
        order: What else is known of their order.

    Raises:
        SpecError: If the spec does not fit, or a row has no time.
        ResultOverflowError: If an integer result does not fit its type.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> rows = pa.table({"t": [1, 2, 5], "x": [10, 20, 30]})
        >>> spec = Spec.make(on="t", windows=2, aggs={"s": sw.sum("x")})
        >>> parts = rolling_batches(rows.to_batches(max_chunksize=1), spec, rows.schema)
        >>> pa.concat_tables(parts)["s_2"].to_pylist()
        [10, 30, 30]
    """
    run = _Rolling(spec, schema, order or Order())
    for batch in batches:
        if not run.order.is_checked:
            check_rows(batch, spec)
        for role, rows in _sections(batch, run.sections):
            if role == AFTER:
                run.look_ahead(rows)
                continue
            if run.closed if role == OWN else run.waits:
                yield from run.settle(done=True)
            if role == BEFORE:
                run.warm_up(rows)
                continue
            run.take(rows)
            if run.enough:
                yield from run.settle()
    yield from run.settle(done=True)


class _Rolling:
    """Rolling aggregates in the making."""

    def __init__(self, spec: Spec, schema: pa.Schema, order: Order) -> None:
        self.order = order
        self._spec = spec
        self._runs = spec.by if order.runs is None else order.runs
        self._schema = result_schema(spec, schema)
        self._reads = list(dict.fromkeys([*spec.columns, *self._runs]))
        self._past = schema.empty_table().select(self._reads)
        self._ahead: list[pa.Table] = []
        self._waiting: list[pa.Table] = [schema.empty_table()]
        self._count = 0
        self._reach = Reach.of(spec, schema)
        # As of arrival, rows that are only seen stand among the others.
        self._among = order.roles if spec.arrival is not None else None
        self.sections = None if self._among else order.roles

    def take(self, rows: pa.Table) -> None:
        """More rows to answer."""
        self._waiting.append(rows)
        self._count += rows.num_rows

    def warm_up(self, rows: pa.Table) -> None:
        """More rows to see, of a run that begins."""
        self._past = _behind(self._past, _copied(rows.select(self._reads)))

    def look_ahead(self, rows: pa.Table) -> None:
        """More rows to see, of a run that has no more to answer."""
        self._ahead.append(_copied(rows.select(self._reads)))

    @property
    def closed(self) -> bool:
        """Whether no more rows to answer can come of the run at hand."""
        return bool(self._ahead)

    @property
    def waits(self) -> bool:
        """Whether a run is at hand that is not done with."""
        return self._count > 0 or self.closed

    @property
    def enough(self) -> bool:
        """Whether there are rows enough to be worth a look at the past."""
        return self._count >= max(self.order.least, len(self._past))

    def settle(self, *, done: bool = False) -> Iterator[pa.Table]:
        """Answers what can be: all, if nothing more comes of the run at hand."""
        rows = pa.concat_tables(self._waiting).combine_chunks()
        seen = _behind(self._past, rows.select(self._reads))
        history = self._past.num_rows
        end = seen.num_rows
        if self.closed:
            seen = pa.concat_tables([seen, *self._ahead]).combine_chunks()
            self._ahead = []
        keep = end
        if not done and end:
            start = _open_run(seen, self._runs)
            ready = max(history, self._ready(seen, start))
            keep = self._kept(seen, start, ready)
        else:
            ready = end
        if ready > history:
            answered = rows.slice(0, ready - history)
            yield self._with_results(answered, seen, history, ready)
        self._past = _copied(seen.slice(keep, ready - keep))
        left = rows.slice(ready - history)
        self._waiting, self._count = [_copied(left)], left.num_rows

    def _ready(self, seen: pa.Table, start: int) -> int:
        """Where the rows end whose windows are over; the open run begins at `start`."""
        by = self._spec.arrival
        if by is not None:
            # Rows of equal arrival see one another.
            ticks = read_times(_column(seen, by), by).ticks
            return _first_from(ticks, ticks[-1].as_py(), start)
        ticks = read_times(_column(seen, self._spec.on), self._spec.on).ticks
        if not self._reach.waits:
            return len(ticks)
        return _first_from(ticks, ticks[-1].as_py() - self._reach.ahead, start)

    def _kept(self, seen: pa.Table, start: int, ready: int) -> int:
        """The first row that is still needed."""
        if self._spec.arrival is not None:
            return start
        ticks = read_times(_column(seen, self._spec.on), self._spec.on).ticks
        next_time = ticks[min(ready, len(ticks) - 1)].as_py()
        keep = _first_from(ticks, next_time - self._reach.back, start)
        if self._reach.rows:
            own = self._spec.by == self._runs or _is_one(seen.slice(start), self._spec)
            keep = min(keep, max(start, ready - self._reach.rows) if own else start)
        return min(keep, ready)

    def _with_results(
        self, rows: pa.Table, seen: pa.Table, history: int, ready: int
    ) -> pa.Table:
        by_moment = self._reach.shifted or self._spec.arrival is not None
        own = None
        if self._among is not None:
            own = pc.equal(_column(rows, self._among), OWN)
            rows = rows.filter(own)
        source = frame(seen if by_moment else seen.slice(0, ready))

        def named(row: int) -> str:
            return describe_row(rows, row, self._spec)

        request = KernelCall(source, self._spec, history=history, named=named)
        moments = None
        if by_moment:
            moments = _moments_in(request, history, ready, own)
        answers = request.ask(moments)
        columns = [result.array for window in answers for result in window.values()]
        arrays = [*rows.columns, *columns]
        fields = [
            column.cast(field.type)
            for column, field in zip(arrays, self._schema, strict=True)
        ]
        return pa.Table.from_arrays(fields, schema=self._schema)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far around a row its windows lie, in ticks.

    Attributes:
        back: To the past.
        ahead: To the future, for a negative offset; 0 otherwise.
        rows: How many rows before it.
        waits: Whether a row that comes later may be in the window.
        shifted: Whether windows end elsewhere than at the row.
    """

    back: int
    ahead: int
    rows: int
    waits: bool
    shifted: bool

    @classmethod
    def of(cls, spec: Spec, schema: pa.Schema) -> "Reach":
        """That of the longest windows of a Spec, over a table with this schema."""
        request = KernelCall(frame(schema.empty_table()), spec)
        back = ahead = rows = 0
        waits = shifted = False
        for kind, length, closed, offset in request.spans:
            if kind == "rows":
                rows = max(rows, length - 1)
                continue
            back = max(back, length + offset)
            ahead = max(ahead, -offset)
            peers = closed in ("right", "both") and spec.ties == "peers"
            waits = waits or offset < 0 or (offset == 0 and peers)
            shifted = shifted or offset != 0
        return cls(back, ahead, rows, waits, shifted)


def _moments_in(
    request: KernelCall, history: int, ready: int, own: pa.Array | None
) -> QueryPoints:
    """The rows between, or some of them, as moments."""

    def some(column: pa.Array | None) -> pa.Array | None:
        if column is None:
            return None
        between = column.slice(history, ready - history)
        return between if own is None else between.filter(own)

    return QueryPoints(
        times=some(request.times.ticks),
        since=None,
        groups=some(request.groups),
        arrival=some(request.arrival and request.arrival.ticks),
        called="row",
    )


def run_codes(rows: pa.Table, runs: Iterable[str]) -> pa.Array:
    """A code per row that the rows of a run share.

    Example:
        >>> import pyarrow as pa
        >>> run_codes(pa.table({"k": [5, 5, None, None]}), ["k"]).to_pylist()
        [0, 0, 1, 1]
    """
    codes = group_codes([(name, _column(rows, name)) for name in runs])
    return single_group(len(rows)) if codes is None else codes


def _open_run(rows: pa.Table, runs: Iterable[str]) -> int:
    """Where the last run begins."""
    columns = [_column(rows, name) for name in runs]
    last = _key_at(columns, len(rows) - 1)
    places = range(len(rows))
    return bisect_left(places, True, key=lambda row: _key_at(columns, row) == last)


def _key_at(columns: list[pa.Array], row: int) -> list[Any]:
    """The key of a row, in values that compare as keys do: NaN is one key."""
    # Not all times are times of Python's, which end with the year 9999.
    values = [
        column[row].value if pa.types.is_temporal(column.type) else column[row].as_py()
        for column in columns
    ]
    return [_NAN if value != value else value for value in values]


def _is_one(rows: pa.Table, spec: Spec) -> bool:
    """Whether all rows have the same key."""
    return bool(pc.max(run_codes(rows, spec.by)).as_py() == 0)


def _first_from(ticks: pa.Array, time: int, start: int) -> int:
    """The first row at `time` or later; rows are sorted from `start` on."""
    bound = max(time, _INT64_MIN)
    return bisect_left(ticks, bound, lo=start, key=lambda tick: tick.as_py())


def _column(rows: pa.Table, name: str) -> pa.Array:
    return frame(rows).column(name)


def _behind(past: pa.Table, rows: pa.Table) -> pa.Table:
    """The past with rows behind it."""
    return pa.concat_tables([past, rows]).combine_chunks() if len(past) else rows


def _copied(rows: pa.Table) -> pa.Table:
    """Rows in memory of their own, so that what they were cut from can go."""
    return rows.take(row_numbers(len(rows))) if len(rows) else rows.schema.empty_table()


def _sections(
    batch: pa.RecordBatch, roles: str | None
) -> Iterator[tuple[int, pa.Table]]:
    """Rows that follow one another and have the same role."""
    rows = pa.Table.from_batches([batch])
    if roles is None:
        yield OWN, rows
        return
    runs = pc.run_end_encode(_column(rows, roles))
    start = 0
    for role, end in zip(
        runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True
    ):
        yield role, rows.slice(start, end - start)
        start = end


def check_rows(rows: pa.RecordBatch, spec: Spec) -> None:
    """Refuses rows without a time, and NaN where it is not wanted.

    Raises:
        SpecError: Naming the row by its key and time: its number says nothing here.
    """
    for name in (spec.on, spec.arrival):
        if name is None or not rows[name].null_count:
            continue
        row = pc.index(pc.is_null(rows[name]), True).as_py()
        raise SpecError(
            f"column {name!r} has no time in {describe_row(rows, row, spec)}: drop the "
            "rows without a time, or fill them in, first"
        )
    if spec.nan != "raise":
        return
    for name in dict.fromkeys(of for _, agg in spec.aggs for of in agg.columns):
        column = rows[name]
        if not pa.types.is_floating(column.type):
            continue
        row = pc.index(pc.is_nan(column), True).as_py()
        if row >= 0:
            raise SpecError(
                f"column {name!r} is NaN in {describe_row(rows, row, spec)}, and ",
                Argument("nan", "raise"),
            )


def describe_row(rows: pa.Table | pa.RecordBatch, row: int, spec: Spec) -> str:
    """A row by its key and times, for messages.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> spec = Spec.make(on="t", by="k", windows=5, aggs={"n": sw.count()})
        >>> describe_row(pa.table({"k": ["a"], "t": [7]}), 0, spec)
        "the row of k='a', t=7"
    """
    names = [*spec.by, spec.on, *([spec.arrival] if spec.arrival else [])]
    # What is not the user's own column is not shown.
    names = [name for name in names if not name.startswith("__slidewise_")]
    return f"the row of {_told(rows, row, names)}"


def describe_window(windows: pa.Table, row: int, by: Sequence[str]) -> str:
    """A window by its key and its end, for messages.

    Example:
        >>> import pyarrow as pa
        >>> describe_window(pa.table({"k": ["a"], "window_end": [7]}), 0, ["k"])
        "k='a', window_end=7"
    """
    return _told(windows, row, [*by, "window_end"])


def _told(rows: pa.Table | pa.RecordBatch, row: int, names: Iterable[str]) -> str:
    return ", ".join(f"{name}={_shown(rows[name][row])}" for name in names)


def _shown(value: pa.Scalar) -> str:
    if not pa.types.is_temporal(value.type) or not value.is_valid:
        return repr(value.as_py())
    try:
        return str(value)
    except (OverflowError, ValueError):
        pass
    # Python's own times end with the year 9999, those of Arrow's text somewhat later.
    text: str = value.cast(pa.string()).as_py()
    if pa.types.is_duration(value.type) or "out of range" in text:
        return f"{value.value} ({value.type})"
    return text
