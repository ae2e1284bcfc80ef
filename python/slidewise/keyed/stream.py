"""`Stream`: batches of rows in, results out, and the watermark between them."""

from contextlib import nullcontext, suppress
from typing import Any

import pyarrow as pa

from slidewise.errors import Argument, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import empty_table, require
from slidewise.frames.lazy import collected
from slidewise.keyed.clock import Guards, Silence, split_ahead
from slidewise.keyed.columns import EARLIEST, LATEST
from slidewise.keyed.options import Options
from slidewise.keyed.processor import Processor
from slidewise.keyed.python_rows import PythonRows, holds_values
from slidewise.keyed.query import AHEAD, LATE, KeyedQuery, flagged
from slidewise.keyed.single_times import format_tick, tick_of
from slidewise.keyed.transaction import State
from slidewise.table.arrays import without_views
from slidewise.table.key_types import cast_key
from slidewise.table.kinds import zones_differ

__all__ = ["Stream", "read_rows"]


class Stream:
    """The calls of `KeyedWindows` that change its state; their docstrings are there."""

    def __init__(self, options: Options, state: State) -> None:
        self._options, self._state = options, state
        self._reads: PythonRows | None = None
        self._guards: Guards | None = None

    def begin(self, schema: pa.Schema) -> KeyedQuery:
        """Opens the state, once the columns are known."""
        query = self._options.query(schema)
        self._state.begin(query, *self._options.ticks(query))
        self.resume()
        return query

    def resume(self) -> None:
        """Looks at the clock for the first time in this process.

        The time since a snapshot was made is no silence: no process took rows.
        """
        self._guards = self._options.guards(self._state.require().query)
        self._state.looked = None if self._guards is None else self._guards.now

    def ingest(self, batch: Any) -> None:
        """Ingests a batch of rows."""
        if self._state.query is not None:
            self._ingest(*self._read(batch))
            return
        # If it fails, the columns are not fixed.
        with self._state.transaction():
            self._ingest(*self._read(batch))

    def tick(self) -> None:
        """Looks at the clock, and lets the watermark follow it."""
        if self._guards is not None:
            now = self._guards.now
            silent, pace = self._silence(now)
            with self._state.transaction():
                self._pace(pace)
                self._state.looked, self._state.silent = now, silent

    def _silence(self, now: int | None) -> tuple[int, int]:
        """For how long no row has come, and how far the watermark follows the clock."""
        before = Silence(self._state.looked, self._state.silent)
        if self._guards is None or now is None:
            return before.lasted, 0
        silence, pace = before.at(now, self._guards.idle)
        return silence.lasted, pace

    def _pace(self, ticks: int) -> None:
        """Advances the watermark by some ticks, if it has a place."""
        view, mark = self._state.view, None
        if view is not None:
            mark = view.watermark
            if mark is None and view.largest is not None:
                mark = view.largest - self._state.delay
        if ticks and mark is not None:
            self._advance(min(mark + ticks, LATEST))

    def _read(self, batch: Any) -> tuple[KeyedQuery, pa.Table, bool]:
        """The columns of a batch as a table; those of the first batch are required.

        Also whether its memory may change, as the caller's does.
        """
        query, is_foreign = self._state.query, not holds_values(batch)
        if query is None:
            rows = read_rows(batch, self._python_rows(None))
            return self.begin(rows.schema), rows, is_foreign
        return query, read_rows(batch, self._python_rows(query)), is_foreign

    def _python_rows(self, query: KeyedQuery | None) -> PythonRows:
        """What reads Python values as rows."""
        schema = None if query is None else query.schema
        if self._reads is None or self._reads.schema is not schema:
            self._reads = PythonRows(self._options.spec.on, schema)
        return self._reads

    def _ingest(self, query: KeyedQuery, rows: pa.Table, is_foreign: bool) -> None:
        now = None if self._guards is None else self._guards.now
        silent, pace = self._silence(now)
        with self._state.transaction() if pace else nullcontext():
            self._pace(pace)
            self._take(query, rows, is_foreign, now, silent)

    def _take(
        self,
        query: KeyedQuery,
        rows: pa.Table,
        is_foreign: bool,
        now: int | None,
        silent: int,
    ) -> None:
        """Ingests rows, after a look at the clock."""
        view = self._state.view
        assert view is not None, "the columns are known"
        largest, watermark = view.largest, view.watermark
        limit = LATEST
        if self._guards is not None and now is not None:
            limit = self._guards.limit(now)
        query.refuse_nan(rows, watermark, limit=limit)
        rows, ends = query.arrived(rows, copies=is_foreign)
        rows, ahead, ends = split_ahead(rows, limit, ends)
        accepted, late = query.by_lateness(rows, watermark, ends)

        def step(processor: Processor) -> None:
            rows = processor.counting(accepted, watermark)
            duplicates = len(accepted) - len(rows)
            known = None if len(late) or duplicates else ends
            self._keep(query, processor.ingest(rows, watermark, known))
            self._state.late_count += len(late)
            self._state.ahead_count += len(ahead)
            self._state.duplicate_count += duplicates
            for refused, flag in ((late, LATE), (ahead, AHEAD)):
                if len(refused) and self._options.flags:
                    output = query.returned(refused, self._options.flags, flag)
                    self._state.results.append(output)
            if ends is not None and (largest is None or ends[1] > largest):
                self._state.publish(ends[1], watermark)
            self._state.looked = now
            self._state.silent = silent if ends is None else 0

        self._state.atomically(step)

    def advance(self, watermark: Any) -> None:
        """Advances the watermark, and emits the results that are due."""
        view = self._state.view
        if watermark is not None:
            if view is None:
                raise SpecError(
                    "there are no rows yet, and the columns are unknown: ingest some "
                    "before advance(), or give schema="
                )
            self._advance(tick_of(watermark, view.query.times))
        elif view is not None and view.largest is not None:
            self._advance(view.largest - self._state.delay)

    def _advance(self, watermark: int) -> None:
        """Advances the watermark to a time, unless it is there."""
        view = self._state.view
        assert view is not None, "the columns are known"
        query, largest = view.query, view.largest
        # No row is at or before a time below the least int64.
        if watermark < (EARLIEST if view.watermark is None else view.watermark + 1):
            return

        def step(processor: Processor) -> None:
            self._keep(query, processor.advance(watermark))
            self._state.publish(largest, watermark)
            processor.evict(watermark)

        self._state.atomically(step)

    def _keep(self, query: KeyedQuery, results: pa.Table | None) -> None:
        """Keeps results until `collect`."""
        if results is None:
            return
        try:
            if results.schema != query.output:
                known = [table.schema for table in self._state.results]
                every = [query.output, *known, results.schema]
                pa.unify_schemas(every, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SpecError(
                f"results of a custom aggregation changed their type ({error}): give "
                "its type with returns=, such as returns=float"
            ) from error
        if self._options.flags:
            results = flagged(results, self._options.flags)
        self._state.results.append(results)

    def collect(self) -> pa.Table:
        """Returns the results emitted since the last call."""
        query = self._state.query
        if self._options.emit == "none":
            raise SpecError(
                Argument("emit", "none"),
                " gives no results to collect: ask by query() or query_many(), or make "
                "KeyedWindows with another ",
                Argument("emit"),
            )
        if query is None:
            raise SpecError(
                "there are no rows yet: ingest some before collect(), or give schema="
            )
        schema = self._options.output(query)
        tables, self._state.results = self._state.results, []
        if len(tables) == 1 and tables[0].schema == schema:
            return tables[0]
        tables = [empty_table(schema), *tables]
        if all(table.schema == schema for table in tables):
            return pa.concat_tables(tables)
        return pa.concat_tables(tables, promote_options="permissive")

    def evict_idle(self, until: Any) -> int:
        """Evicts all keys whose latest row is at or before a time."""
        query, view = self._state.require().query, self._state.view
        tick = tick_of(until, query.times)
        known = None if view is None else view.watermark
        late = known is None or tick > known
        if query.emit in ("final", "slide") and late:
            shown = "none yet" if known is None else format_tick(known, query.times)
            raise SpecError(
                f"evict_idle({format_tick(tick, query.times)}) is later than the "
                f"watermark ({shown}), and rows after it wait for results: advance() "
                "first"
            )
        return self._state.atomically(lambda processor: processor.evict_idle(tick))


def read_rows(batch: Any, known: PythonRows) -> pa.Table:
    """The rows of a batch in the columns of the stream, if they are known."""
    schema = known.schema
    if holds_values(batch):
        batch = known.table(batch)
    if (
        schema is not None
        and isinstance(batch, pa.Table)
        and batch.schema.equals(schema)
    ):
        return batch
    source = frame(collected(batch))
    names = list(source.names) if schema is None else schema.names
    require(source, [*dict.fromkeys([known.on, *names])], "the batch")
    rows = {name: without_views(source.column(name)) for name in names}
    if schema is None:
        return pa.table(rows)
    given = pa.table(rows)
    columns = {
        field.name: _cast(
            given.column(field.name), field, source.column(field.name).type
        )
        for field in schema
    }
    return pa.table(columns)


def _cast(
    column: pa.ChunkedArray, field: pa.Field, given: pa.DataType
) -> pa.ChunkedArray:
    """A column in the type of the stream, if that keeps its values.

    The type of a column may differ between batches. In pandas and JSON a column without
    values is of nulls, and the values decide between floats and integers. Text has
    offsets of 32 bits in Arrow and of 64 bits in pandas and polars, which also have
    times in other units. The indices of categories have the least width. Pages hold
    categories as values.

    Args:
        column: The column, without views.
        field: The column of the stream.
        given: The type in the user's batch, for messages.

    Raises:
        SpecError: If the types differ otherwise, or a value does not fit.
    """
    kind, before = column.type, field.type
    if kind == before:
        return column
    is_ordered = pa.types.is_dictionary(kind) and kind.ordered
    if pa.types.is_dictionary(kind) and not is_ordered:
        kind = kind.value_type
    if pa.types.is_dictionary(before):
        before = before.value_type
    if not is_ordered and (
        kind in (before, pa.null())
        or {kind, before} == {pa.string(), pa.large_string()}
        or {kind, before} == {pa.binary(), pa.large_binary()}
    ):
        return column.cast(before)
    if pa.types.is_nested(kind) and pa.types.is_nested(before):
        # Text, bytes and numbers within them may have other widths.
        with suppress(pa.ArrowException):
            return cast_key(column, before)
    refusal = (
        f"column {field.name!r} is {given} in this batch, and {field.type} in the "
        "stream"
    )
    fixed = (": cast it, or give ", Argument("schema"), " a type that fits all batches")
    if not is_ordered and _may_fit(kind, before):
        try:
            return _exactly(column.cast(kind), before)
        except pa.ArrowInvalid as error:
            raise SpecError(
                f"{refusal}, which cannot hold all of its values ({error})", *fixed
            ) from error
    what = f"column {field.name!r} of this batch"
    raise zones_differ(what, given, "that of the stream", before) or SpecError(
        refusal, *fixed
    )


def _may_fit(kind: pa.DataType, into: pa.DataType) -> bool:
    """Whether values of a type may be converted to another type."""
    types = pa.types
    if types.is_integer(kind):
        return bool(types.is_integer(into) or types.is_floating(into))
    if types.is_floating(kind):
        return bool(types.is_floating(into) and kind.bit_width < into.bit_width)
    if types.is_timestamp(kind) and types.is_timestamp(into):
        return (kind.tz is None) == (into.tz is None)
    return bool(types.is_decimal(kind) and types.is_decimal(into))


def _exactly(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column cast without loss.

    Raises:
        pyarrow.ArrowInvalid: If a value would change.
    """
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        # Arrow refuses all large integers, even those that a float represents exactly.
        if not (pa.types.is_integer(column.type) and pa.types.is_float64(kind)):
            raise
        if any(int(float(value)) != value for value in column.drop_null().to_pylist()):
            raise
        return column.cast(kind, safe=False)
