"""Rolling aggregates over a sorted stream of batches, in bounded memory.

Input rows are sorted by key and time (with `arrival=`: by key and arrival); output rows
have the same order. Between batches this is held:

- *past*: emitted rows of the current key within reach of the longest window, with the
  input columns alone;
- *waiting*: rows whose windows are still open, because rows of the same time, or later
  ones within an `offset=`, may follow.

A batch is computed together with the past, by the same kernel as a whole table. New
rows are collected until they are as many as the past: so a row is computed at most
twice on average, and memory is at most a batch and twice the longest window. With
`arrival=` a late row may need any earlier row, and the past is the whole key.

Some rows may be context alone: they are in windows, and get no results. For a split of
a key these are rows of the neighbouring splits: those before it, and those after it
that windows reach.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import empty_table
from slidewise.spec.spec import Spec
from slidewise.table.arrays import row_numbers
from slidewise.table.group_codes import group_codes, single_group
from slidewise.table.kernel_call import KernelCall
from slidewise.table.points import QueryPoints
from slidewise.table.rolling import rolling_spec
from slidewise.table.time_columns import read_times

__all__ = [
    "AFTER",
    "BEFORE",
    "OWN",
    "Order",
    "Reach",
    "check_rows",
    "checked_batches",
    "copied",
    "describe_row",
    "describe_window",
    "first_from",
    "needs_whole_keys",
    "open_run",
    "refuse_missing_times",
    "result_schema",
    "rolling_batches",
    "run_codes",
    "whole_keys",
]

# The role of a row: context before those with results, one of these, context after.
BEFORE, OWN, AFTER = 0, 1, 2

# The least number of rows per kernel call, which costs about a millisecond.
_MIN_ROWS = 1 << 16
_INT64_MIN = -(2**63)
_NAN = object()


@dataclass(frozen=True, slots=True)
class Order:
    """The order of rows, besides that by key and time.

    Attributes:
        runs: Columns whose equal values are adjacent, and equal for all rows of a key:
            by default the key columns.
        roles: A column with the role of each row: `OWN`, or context `BEFORE` or `AFTER`
            those of its run.
        within: Two columns of ticks: only hopping windows that end after the first and
            not after the second are emitted, or with `closed="right"` those that end
            from the first on, and before the second; null is not a bound.
        min_rows: The least number of rows per kernel call.
        is_checked: Whether all rows have passed `check_rows`.
    """

    runs: tuple[str, ...] | None = None
    roles: str | None = None
    within: tuple[str, str] | None = None
    min_rows: int = _MIN_ROWS
    is_checked: bool = False

    def runs_of(self, spec: Spec) -> tuple[str, ...]:
        """The columns of `runs`, by default the key columns."""
        return spec.by if self.runs is None else self.runs


def result_schema(spec: Spec, schema: pa.Schema) -> pa.Schema:
    """The schema of the results of rows of this schema.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> spec = Spec.make(on="t", windows=5, aggs={"n": sw.count()})
        >>> result_schema(spec, pa.schema({"t": pa.int64()})).names
        ['t', 'n_5']
    """
    empty = empty_table(schema)
    results: pa.Schema = rolling_spec(empty, spec, threads=1).schema
    return results


def rolling_batches(
    batches: Iterable[pa.RecordBatch],
    spec: Spec,
    schema: pa.Schema,
    order: Order | None = None,
) -> Iterator[pa.Table]:
    """Yields the rows with their results, in parts.

    Args:
        batches: Sorted by key and time, or by key and arrival if the spec has one.
        spec: The windows and aggregations.
        schema: The schema of the batches.
        order: Their order, beyond key and time.

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
    order = order or Order()
    batches = checked_batches(batches, spec, order)
    if needs_whole_keys(spec):
        results = result_schema(spec, schema)
        yield from whole_keys(batches, rolling_spec, spec, results, order)
        return
    run = _Rolling(spec, schema, order)
    for batch in batches:
        run.add_rows(pa.Table.from_batches([batch]))
        if run.enough:
            yield from run.emit_ready()
    yield from run.emit_ready(done=True)


def checked_batches(
    batches: Iterable[pa.RecordBatch], spec: Spec, order: Order
) -> Iterator[pa.RecordBatch]:
    """The batches, checked by `check_rows` unless `order.is_checked`."""
    for batch in batches:
        if not order.is_checked:
            check_rows(batch, spec)
        yield batch


def needs_whole_keys(spec: Spec) -> bool:
    """Whether a window depends on more rows than those within its times.

    Its begin, or the value that it begins with, may depend on any earlier row of its
    key, so the rows of a key are held until all have come, and then computed as a
    table.

    Example:
        >>> import slidewise as sw
        >>> windows = [sw.landmark("f")]
        >>> needs_whole_keys(Spec.make(on="t", windows=windows, aggs={"n": sw.count()}))
        True
    """
    carries = any(agg.carries for _, agg in spec.aggs)
    by_position = any(window.by_position for window in spec.windows)
    return spec.several or carries or by_position


def whole_keys(
    batches: Iterable[pa.RecordBatch],
    compute: Callable[..., pa.Table],
    spec: Spec,
    schema: pa.Schema,
    order: Order,
) -> Iterator[pa.Table]:
    """Yields the results of rows sorted by key and time, in parts of whole keys.

    `compute` is `rolling_spec` or `hopping_spec`; the results have the schema.
    """
    held: list[pa.Table] = []
    count = rest = 0
    for batch in batches:
        held.append(pa.Table.from_batches([batch]))
        count += batch.num_rows
        if count < max(order.min_rows, 2 * rest):
            continue
        rows = pa.concat_tables(held).combine_chunks()
        start = open_run(rows, order.runs_of(spec))
        if start:
            results = compute(rows.slice(0, start), spec, threads=1)
            yield results.select(schema.names).cast(schema)
        held, rest = [rows.slice(start)], len(rows) - start
        count = rest
    if count:
        rows = pa.concat_tables(held).combine_chunks()
        results = compute(rows, spec, threads=1)
        yield results.select(schema.names).cast(schema)


class _Rolling:
    """The state between batches."""

    def __init__(self, spec: Spec, schema: pa.Schema, order: Order) -> None:
        self.order = order
        self._spec = spec
        self._runs = order.runs_of(spec)
        self._schema = result_schema(spec, schema)
        self._input_columns = list(dict.fromkeys([*spec.columns, *self._runs]))
        self._past = empty_table(schema).select(self._input_columns)
        self._waiting: list[pa.Table] = [empty_table(schema)]
        self._count = 0
        self._reach = Reach.of(spec, schema)

    def add_rows(self, rows: pa.Table) -> None:
        """Adds rows."""
        self._waiting.append(rows)
        self._count += rows.num_rows

    @property
    def enough(self) -> bool:
        """Whether there are enough new rows to compute them with the past."""
        return self._count >= max(self.order.min_rows, len(self._past))

    def emit_ready(self, *, done: bool = False) -> Iterator[pa.Table]:
        """Yields the rows whose windows are over; all rows if `done`."""
        rows = pa.concat_tables(self._waiting).combine_chunks()
        seen = _append(self._past, rows.select(self._input_columns))
        history = self._past.num_rows
        end = seen.num_rows
        keep = end
        if not done and end:
            start = open_run(seen, self._runs)
            ready = max(history, self._ready(seen, start))
            keep = self._first_needed(seen, start, ready)
        else:
            ready = end
        if ready > history:
            answered = rows.slice(0, ready - history)
            yield self._with_results(answered, seen, history, ready)
        self._past = copied(seen.slice(keep, ready - keep))
        rest = rows.slice(ready - history)
        self._waiting, self._count = [copied(rest)], len(rest)

    def _ready(self, seen: pa.Table, start: int) -> int:
        """The end of the rows whose windows are over, at or after `start`."""
        if self._spec.arrivals:
            # Rows of equal arrival are in one another's windows.
            return _last_arrived(seen, self._spec.arrivals, start)
        ticks = read_times(_column(seen, self._spec.on), self._spec.on).ticks
        if not self._reach.waits:
            return len(ticks)
        return first_from(ticks, ticks[-1].as_py() - self._reach.ahead, start)

    def _first_needed(self, seen: pa.Table, start: int, ready: int) -> int:
        """The first row that is still needed."""
        if self._spec.arrival is not None:
            return start
        ticks = read_times(_column(seen, self._spec.on), self._spec.on).ticks
        next_time = ticks[min(ready, len(ticks) - 1)].as_py()
        keep = first_from(ticks, next_time - self._reach.back, start)
        if self._reach.rows:
            one_key = self._spec.by == self._runs
            if not one_key:
                codes = run_codes(seen.slice(start), self._spec.by)
                one_key = pc.max(codes).as_py() == 0
            last = ready
            if self._reach.before:  # rows to come may have the time of the last ones
                last = min(ready, first_from(ticks, next_time, start))
            keep = min(keep, max(start, last - self._reach.rows) if one_key else start)
        return min(keep, ready)

    def _with_results(
        self, rows: pa.Table, seen: pa.Table, history: int, ready: int
    ) -> pa.Table:
        at_points = self._reach.shifted or self._spec.arrival is not None
        source, answered = seen if at_points else seen.slice(0, ready), None
        if self.order.roles is not None:
            answered = pc.equal(_column(rows, self.order.roles), OWN)
            rows = rows.filter(answered)
            if not len(rows):
                return self._schema.empty_table()
            if not at_points and len(rows) < len(answered):
                source, history = _history_first(source, answered)

        def name_row(row: int) -> str:
            return describe_row(rows, row, self._spec)

        request = KernelCall(
            frame(source), self._spec, history=history, name_row=name_row
        )
        points = None
        if at_points:
            points = _query_points(request, history, ready, answered)
        answers = request.compute(points)
        columns = [result.array for window in answers for result in window.values()]
        arrays = [*rows.columns, *columns]
        fields = [
            column.cast(field.type)
            for column, field in zip(arrays, self._schema, strict=True)
        ]
        return pa.Table.from_arrays(fields, schema=self._schema)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the windows of a row reach, in ticks.

    Attributes:
        back: Backwards.
        ahead: Forwards, for a negative offset; otherwise 0.
        rows: The number of rows before it, for windows of rows that leave it out.
        waits: Whether a later row may be in the window.
        shifted: Whether windows end elsewhere than at their row.
        before: Whether windows of rows hold earlier times only.
    """

    back: int
    ahead: int
    rows: int
    waits: bool
    shifted: bool
    before: bool

    @classmethod
    def of(cls, spec: Spec, schema: pa.Schema) -> "Reach":
        """The reach of the longest windows of a Spec over a table of this schema."""
        request = KernelCall(frame(empty_table(schema)), spec)
        back = ahead = rows = 0
        waits = shifted = before = False
        for span in request.spans:
            if span.kind == "rows":
                rows = max(rows, span.length + span.offset)
                before = before or span.closed == "left"
                continue
            back = max(back, span.length + span.offset)
            ahead = max(ahead, -span.offset)
            peers = span.closed in ("right", "both") and spec.ties == "peers"
            waits = waits or span.offset < 0 or (span.offset == 0 and peers)
            shifted = shifted or span.offset != 0
        return cls(back, ahead, rows, waits, shifted, before)


def _query_points(
    request: KernelCall, history: int, ready: int, mask: pa.Array | None
) -> QueryPoints:
    """The rows from history to ready, or those of them with results, as points."""

    def some(column: pa.Array | None) -> pa.Array | None:
        if column is None:
            return None
        between = column.slice(history, ready - history)
        return between if mask is None else between.filter(mask)

    return QueryPoints(
        ends=some(request.times.ticks),
        starts=None,
        groups=some(request.groups),
        arrival=some(request.arrival),
        noun="row",
        own=some(row_numbers(len(request.times.ticks)).cast(pa.int64()))
        if request.spec.asks_for_rows
        else None,
        leaves_out=request.spec.exclude is not None,
    )


def run_codes(rows: pa.Table, runs: Iterable[str]) -> pa.Array:
    """A code per row, equal within a run.

    Example:
        >>> import pyarrow as pa
        >>> run_codes(pa.table({"k": [5, 5, None, None]}), ["k"]).to_pylist()
        [0, 0, 1, 1]
    """
    codes = group_codes([(name, _column(rows, name)) for name in runs])
    return single_group(len(rows)) if codes is None else codes


def open_run(
    rows: pa.Table, runs: Collection[str], latest: pa.Table | None = None
) -> int:
    """Where the last run begins, or that of the last of the rows in `latest`."""
    latest = rows if latest is None else latest
    last = _key_at([_column(latest, name) for name in runs], len(latest) - 1)
    columns = [_column(rows, name) for name in runs]
    places = range(len(rows))
    return bisect_left(places, True, key=lambda row: _key_at(columns, row) == last)


def _key_at(columns: list[pa.Array], row: int) -> list[Any]:
    """The key of a row as comparable values; NaN is one key."""
    # Temporal keys as integers: Python's datetimes end with the year 9999.
    values = [
        column[row].value if pa.types.is_temporal(column.type) else column[row].as_py()
        for column in columns
    ]
    return [_NAN if value != value else value for value in values]


def first_from(ticks: pa.Array, time: int, start: int) -> int:
    """The first row at `time` or later; rows are sorted from `start` on."""
    bound = max(time, _INT64_MIN)
    return bisect_left(ticks, bound, lo=start, key=lambda tick: tick.as_py())


def _last_arrived(rows: pa.Table, arrivals: Sequence[str], start: int) -> int:
    """The first of the rows that arrived last; rows are sorted from `start` on."""
    columns = [read_times(_column(rows, name), name).ticks for name in arrivals]

    def arrival(row: int) -> list[int]:
        return [column[row].as_py() for column in columns]

    last = arrival(len(rows) - 1)
    return bisect_left(range(len(rows)), last, lo=start, key=arrival)


def _column(rows: pa.Table, name: str) -> pa.Array:
    return frame(rows).column(name)


def _append(past: pa.Table, rows: pa.Table) -> pa.Table:
    """The past, followed by rows."""
    return pa.concat_tables([past, rows]).combine_chunks() if len(past) else rows


def copied(rows: pa.Table) -> pa.Table:
    """Copies rows, so that the table they are a slice of can be freed."""
    return rows.take(row_numbers(len(rows))) if len(rows) else empty_table(rows.schema)


def _history_first(seen: pa.Table, answered: pa.Array) -> tuple[pa.Table, int]:
    """The rows with results after all others, and the number of the others.

    `answered` tells which of the last rows have results.
    """
    start = len(seen) - len(answered)
    new = seen.slice(start)
    history = pa.concat_tables([seen.slice(0, start), new.filter(pc.invert(answered))])
    rows = pa.concat_tables([history, new.filter(answered)]).combine_chunks()
    return rows, len(history)


def check_rows(rows: pa.RecordBatch, spec: Spec) -> None:
    """Refuses rows without a time, and NaN with `nan="raise"`."""
    refuse_missing_times(rows, spec.times, spec)
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


def refuse_missing_times(
    rows: pa.Table | pa.RecordBatch, names: Iterable[str], spec: Spec
) -> None:
    """Refuses rows without a time in one of the columns."""
    for name in names:
        if not rows[name].null_count:
            continue
        row = pc.index(pc.is_null(rows[name]), True).as_py()
        raise SpecError(
            f"column {name!r} has no time in {describe_row(rows, row, spec)}: drop the "
            "rows without a time, or fill them in"
        )


def describe_row(
    rows: pa.Table | pa.RecordBatch, row: int, spec: Spec, noun: str = "row"
) -> str:
    """Formats a row for messages, by its key and times.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> spec = Spec.make(on="t", by="k", windows=5, aggs={"n": sw.count()})
        >>> describe_row(pa.table({"k": ["a"], "t": [7]}), 0, spec)
        "the row of k='a', t=7"
    """
    names = [*spec.by, *spec.times]
    # Internal columns are left out.
    names = [name for name in names if not name.startswith("__slidewise_")]
    return f"the {noun} of {_format_fields(rows, row, names)}"


def describe_window(windows: pa.Table, row: int, by: Sequence[str]) -> str:
    """Formats a window for messages, by its key and end.

    Example:
        >>> import pyarrow as pa
        >>> describe_window(pa.table({"k": ["a"], "window_end": [7]}), 0, ["k"])
        "k='a', window_end=7"
    """
    return _format_fields(windows, row, [*by, "window_end"])


def _format_fields(
    rows: pa.Table | pa.RecordBatch, row: int, names: Iterable[str]
) -> str:
    return ", ".join(f"{name}={_format_scalar(rows[name][row])}" for name in names)


def _format_scalar(value: pa.Scalar) -> str:
    if not pa.types.is_temporal(value.type) or not value.is_valid:
        return repr(value.as_py())
    try:
        return str(value)
    except (OverflowError, ValueError):
        pass
    # Python's datetimes end with the year 9999, Arrow's text with 32767. With a time
    # zone Arrow prints another year for later ones.
    zoned = pa.types.is_timestamp(value.type) and value.type.tz is not None
    local = value.cast(pa.timestamp(value.type.unit)) if zoned else value
    if pa.types.is_duration(value.type) or "out of range" in str(local.cast("string")):
        return f"{value.value} ({value.type})"
    return str(value.cast("string"))
