"""The last result of each key in a table of PostgreSQL.

Tasks copy the rows of a micro-batch into a table beside it, `<table>__stage`. Then one
transaction moves them, and records the micro-batch in `slidewise_sinks`. So a reader
sees whole micro-batches, and what a killed task or driver has left is not seen.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from slidewise.errors import SlidewiseError, SpecError
from slidewise.spark.sinks.json_values import decoder, dumps, encoder
from slidewise.spark.sinks.sink import (
    COPIED,
    Layout,
    Sink,
    check_url,
    failures,
    gap,
    other_query,
    query_of,
)

__all__ = ["PostgresSink", "postgres"]

# The column of the micro-batch of a row, and those that rows in the stage have beside.
_BATCH, _ATTEMPT, _PLACE = "_batch", "_attempt", "_place"
_STAGED = (_ATTEMPT, _BATCH, _PLACE)
# The table of sinks, in the schema of their tables.
_SINKS = "slidewise_sinks"
# The number of the lock that a preparing sink holds.
_LOCK = 5_211_839
_MAX_NAME = 63
_MIN_VERSION = 15


def postgres(
    table: str, url: str, *, by: str | Sequence[str] | None = None
) -> "PostgresSink":
    """Returns a sink for `foreachBatch` that keeps the last result of each key.

    The table has a row per key, with the columns of the results and `_batch`, the
    micro-batch of the row. It is created by the first micro-batch, or by `prepare`,
    unless it is there. Beside it, in its schema, are `<table>__stage` for rows on their
    way, and `slidewise_sinks` with a row per table: its last micro-batch, and the
    checkpoint that it belongs to.

    A micro-batch becomes visible as a whole. One that is repeated changes nothing, and
    one that is older than the last one is left out.

    Args:
        table: The table, with its schema if that is not the first of the search path.
        url: `"postgresql://user@host/database"`.
        by: The key columns; by default those of `rolling`, and of `hopping` with the
            bounds of windows.

    Raises:
        SpecError: If an argument is wrong, or the server is older than PostgreSQL 15.
        SlidewiseError: If the server cannot be reached.
        ImportError: If psycopg is not installed: `pip install 'slidewise[postgres]'`.

    Cost: a micro-batch copies its results in its tasks, and upserts them in one
    transaction.

    Example:
        >>> from slidewise.spark import sinks
        >>> sink = sinks.postgres("features", url)  # doctest: +SKIP
        >>> features.writeStream.foreachBatch(sink).option(
        ...     "checkpointLocation", "checkpoints/features").start()  # doctest: +SKIP
        >>> sink.get("Broadway")["n_1h"]  # doctest: +SKIP
        12
    """
    return PostgresSink(table, url, by=by)


class PostgresSink(Sink):
    """What `postgres` returns: a function for `foreachBatch`, and a reader by `get`."""

    def __init__(
        self, table: object, url: object, *, by: str | Sequence[str] | None = None
    ) -> None:
        super().__init__(by)
        self._url = check_url(url, "postgres", ("postgresql", "postgres"))
        parts = table.split(".") if isinstance(table, str) else []
        if not parts or not all(parts) or len(parts) > 2:
            raise SpecError(
                f"{table!r} is not a table: give its name, such as 'features', or "
                "'schema.features'"
            )
        self._space, self._name = tuple(parts[:-1]), parts[-1]
        self._stage = f"{self._name}__stage"
        _check_name(self._stage)
        self._lock = Lock()
        # The connection of `get`.
        self._reader: Any = None
        with self._connected() as connection:
            version = connection.info.server_version // 10_000
        if version < _MIN_VERSION:
            raise SpecError(
                f"the sink needs PostgreSQL {_MIN_VERSION} or later, whose keys may "
                f"be null; this is {version}"
            )

    def __repr__(self) -> str:
        """The call, without the URL, which may hold a password."""
        return f"sinks.postgres({'.'.join([*self._space, self._name])!r}, ...)"

    def __del__(self) -> None:
        """Closes the connection of `get`."""
        if getattr(self, "_reader", None) is not None:
            self._reader.close()

    def __getstate__(self) -> dict[str, Any]:
        """All but the connection, for Spark Connect."""
        return {**vars(self), "_lock": None, "_reader": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restores the sink, without a connection."""
        vars(self).update(state, _lock=Lock())

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """A connection with one transaction, which a block that raises rolls back."""
        psycopg = _client()
        with failures(repr(self), psycopg.Error), psycopg.connect(self._url) as made:
            yield made

    def _named(self, text: str, **others: Any) -> Any:
        """SQL with the names of the tables."""
        sql = _client().sql
        return sql.SQL(text).format(
            table=sql.Identifier(*self._space, self._name),
            stage=sql.Identifier(*self._space, self._stage),
            sinks=sql.Identifier(*self._space, _SINKS),
            **others,
        )

    def _layout(self, results: Any) -> Layout:
        layout = Layout.of(results, self._by, "postgres(table, url, by='station')")
        for field in layout.schema:
            _check_name(field.name)
            _type_of(field)
            if field.name in _STAGED:
                raise SpecError(f"the column name {field.name!r} is taken: rename it")
        return layout

    def _prepare(self, layout: Layout) -> None:
        wanted = {field.name: _type_of(field) for field in layout.schema}
        wanted[_BATCH] = "bigint"
        with self._connected() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            if not self._columns(connection, _SINKS):
                connection.execute(
                    self._named(
                        "CREATE TABLE {sinks} (name text PRIMARY KEY, query text, "
                        "batch bigint, layout text NOT NULL)"
                    )
                )
            found = self._columns(connection, self._name)
            if found:
                self._check_table(connection, found, wanted, layout.keys)
            else:
                unique = _client().sql.SQL("UNIQUE NULLS NOT DISTINCT ({})")
                self._create(connection, "TABLE {table}", wanted, unique, layout.keys)
                forget = "DELETE FROM {sinks} WHERE name = %s"
                connection.execute(self._named(forget), [self._name])
            connection.execute(
                self._named(
                    "INSERT INTO {sinks} VALUES (%s, NULL, NULL, %s) ON CONFLICT "
                    "DO NOTHING"
                ),
                [self._name, layout.to_text()],
            )
            staged = dict.fromkeys(_STAGED, "bigint")
            staged |= {field.name: _staged_type(field) for field in layout.schema}
            stage = self._columns(connection, self._stage)
            if stage and stage != staged:
                connection.execute(self._named("DROP TABLE {stage}"))
            if stage != staged:
                self._create(connection, "UNLOGGED TABLE {stage}", staged)

    def _columns(self, connection: Any, table: str) -> dict[str, str]:
        """The types of the columns of a table; none if there is no table."""
        name = _client().sql.Identifier(*self._space, table).as_string(connection)
        return dict(
            connection.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped "
                "ORDER BY attnum",
                [name],
            ).fetchall()
        )

    def _create(
        self,
        connection: Any,
        what: str,
        columns: Mapping[str, str],
        unique: Any = None,
        keys: Sequence[str] = (),
    ) -> None:
        """Creates a table, with a constraint if there are keys."""
        sql = _client().sql
        parts = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))
            for name, kind in columns.items()
        ]
        if keys:
            parts.append(unique.format(_listed(keys)))
        body = sql.SQL(", ").join(parts)
        connection.execute(self._named(f"CREATE {what} ({{body}})", body=body))

    def _check_table(
        self,
        connection: Any,
        found: Mapping[str, str],
        wanted: Mapping[str, str],
        keys: Sequence[str],
    ) -> None:
        """Checks a table that is there."""
        for name, kind in wanted.items():
            other = found.get(name)
            if other != kind:
                what = "no column" if other is None else "column"
                is_there = "" if other is None else f" as {other}"
                raise SpecError(
                    f"table {self._name!r} has {what} {name!r}{is_there}, and the "
                    f"results have it as {kind}: change the table, or give another one"
                )
        indices = connection.execute(
            "SELECT array_agg(attname::text ORDER BY attname::text) FROM pg_index "
            "JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey) "
            "WHERE indrelid = %s::regclass AND indisunique AND indpred IS NULL "
            "GROUP BY indexrelid",
            [self._named("{table}").as_string(connection)],
        ).fetchall()
        if [sorted(keys)] not in map(list, indices):
            raise SpecError(
                f"table {self._name!r} has no unique index of {', '.join(keys)}, the "
                "key columns: add one, or name those of its index in by="
            )

    def _write(self, layout: Layout, results: Any, batch: int) -> None:
        attempt = secrets.randbits(62)
        names = _listed([*_STAGED, *layout.schema.names])
        copy = self._named(
            "COPY {stage} ({names}) FROM STDIN (FORMAT csv)", names=names
        )
        text = copy.as_string(None)
        task = _Copy(repr(self), self._url, text, layout, (attempt, batch))
        copied = results.mapInArrow(task, COPIED).collect()
        with self._connected() as connection:
            if self._claim(connection, layout, query_of(copied), batch):
                rows = sum(row.rows for row in copied)
                self._move(connection, layout, attempt, batch, rows)
            connection.execute(
                self._named("DELETE FROM {stage} WHERE _attempt = %s OR _batch <= %s"),
                [attempt, batch],
            )

    def _claim(
        self, connection: Any, layout: Layout, query: str | None, batch: int
    ) -> bool:
        """Locks and updates the row of the table; False if it has a later batch."""
        locked = "SELECT query, batch FROM {sinks} WHERE name = %s FOR UPDATE"
        found = connection.execute(self._named(locked), [self._name]).fetchone()
        if found is None:
            raise SlidewiseError(f"{self!r}: its row in {_SINKS} is gone")
        owner, last = found
        if query is not None and owner not in (None, query):
            raise other_query(f"table {self._name!r}", f"DROP TABLE {self._name}")
        if last is not None and batch < last:
            return False
        if owner is not None and query is not None and last < batch - 1:
            update = f"UPDATE {_SINKS} SET batch = {batch - 1}"
            raise gap(last, batch, f"{update} WHERE name = '{self._name}'")
        connection.execute(
            self._named(
                "UPDATE {sinks} SET query = coalesce(%s, query), batch = %s, "
                "layout = %s WHERE name = %s"
            ),
            [query, batch, layout.to_text(), self._name],
        )
        return True

    def _move(
        self, connection: Any, layout: Layout, attempt: int, batch: int, rows: int
    ) -> None:
        """Upserts the rows of an attempt; of several of a key the last one."""
        counted = "SELECT count(*) FROM {stage} WHERE _attempt = %s"
        (found,) = connection.execute(self._named(counted), [attempt]).fetchone()
        if found < rows:  # a task that ran twice has copied its rows twice
            raise SlidewiseError(
                f"{self!r}: {rows - found} rows of micro-batch {batch} are gone: the "
                "server has restarted, or another run of the query has written it"
            )
        sql = _client().sql
        others = [name for name in layout.schema.names if name not in layout.keys]
        update = [
            sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name))
            for name in [*others, _BATCH]
        ]
        connection.execute(
            self._named(
                "INSERT INTO {table} ({names}, _batch) "
                "SELECT DISTINCT ON ({keys}) {values}, _batch FROM {stage} "
                "WHERE _attempt = {attempt} ORDER BY {keys}, _place DESC "
                "ON CONFLICT ({keys}) DO UPDATE SET {update}",
                names=_listed(layout.schema.names),
                keys=_listed(layout.keys),
                values=sql.SQL(", ").join(map(_unstaged, layout.schema)),
                update=sql.SQL(", ").join(update),
                # Names of columns may have a "%", which is not a parameter.
                attempt=sql.Literal(attempt),
            )
        )

    def _read_layout(self) -> Layout:
        text = self._named("SELECT layout FROM {sinks} WHERE name = %s")
        with self._connected() as connection:
            is_there = self._columns(connection, _SINKS)
            found = connection.execute(text, [self._name]) if is_there else None
            row = None if found is None else found.fetchone()
        if row is None:
            raise SpecError(f"table {self._name!r} holds no results yet")
        return Layout.from_text(row[0])

    def _read(self, layout: Layout, key: list[Any]) -> dict[str, Any] | None:
        sql = _client().sql
        columns, tests = [], []
        for field in layout.schema:
            shown = "{}::text" if _is_json(field.type) else "{}"
            columns.append(sql.SQL(shown).format(sql.Identifier(field.name)))
        for name, value in zip(layout.keys, key, strict=True):
            kind = _type_of(layout.schema.field(name))
            test = "{} IS NULL" if value is None else f"{{}} = {{}}::{kind}"
            test = sql.SQL(test).format(sql.Identifier(name), sql.Literal(value))
            tests.append(test)
        query = self._named(
            "SELECT {columns} FROM {table} WHERE {tests}",
            columns=sql.SQL(", ").join(columns),
            tests=sql.SQL(" AND ").join(tests),
        )
        row = self._ask(query)
        if row is None:
            return None
        return {
            field.name: _decoded(field.type, value)
            for field, value in zip(layout.schema, row, strict=True)
        }

    def _ask(self, query: Any) -> Any:
        """The first row of a query, by a connection that stays open."""
        psycopg = _client()
        with self._lock, failures(repr(self), psycopg.Error):
            try:
                return self._first_row(query)
            except psycopg.OperationalError:
                # The server has closed the connection since the last call.
                self._reader = None
                return self._first_row(query)

    def _first_row(self, query: Any) -> Any:
        if self._reader is None:
            self._reader = _client().connect(self._url, autocommit=True)
            self._reader.execute("SET TIME ZONE 'UTC'")
        return self._reader.execute(query).fetchone()


@dataclass(frozen=True)
class _Copy:
    """A function for `mapInArrow`: copies the rows of a task into the stage."""

    sink: str
    url: str
    copy: str
    layout: Layout
    # The attempt and the micro-batch.
    of: tuple[int, int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copies all batches in one transaction; returns the number of rows."""
        from slidewise.spark.sinks.tasks import copied
        from slidewise.spark.worker_errors import one_line_errors

        with one_line_errors():
            yield copied(self._copy(batches))

    def _copy(self, batches: Iterator[pa.RecordBatch]) -> int:
        psycopg = _client()
        place = 0
        first = next((batch for batch in batches if len(batch)), None)
        if first is None:
            return 0
        with (
            failures(self.sink, psycopg.Error),
            psycopg.connect(self.url) as connection,
            connection.cursor().copy(self.copy) as stage,
        ):
            batch: pa.RecordBatch | None = first
            while batch is not None:
                stage.write(self._text(self.layout.rows(batch), place))
                place += len(batch)
                batch = next(batches, None)
        return place

    def _text(self, rows: pa.Table, place: int) -> memoryview:
        """Rows in CSV; nulls are empty, and empty text is in quotes."""
        numbers = [pa.repeat(number, len(rows)) for number in self.of]
        numbers.append(pa.array(range(place, place + len(rows))))
        columns = [*numbers, *(_text_of(rows[name]) for name in rows.column_names)]
        table = pa.table(columns, names=[*_STAGED, *rows.column_names])
        out = pa.BufferOutputStream()
        options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
        csv.write_csv(table, out, options)
        return memoryview(out.getvalue())


def _client() -> Any:
    try:
        import psycopg
        import psycopg.sql
    except ImportError as error:
        raise ImportError(
            f"sinks.postgres needs psycopg ({error}): pip install 'slidewise[postgres]'"
        ) from error
    return psycopg


def _check_name(name: str) -> None:
    if len(name.encode()) > _MAX_NAME:
        raise SpecError(
            f"PostgreSQL cuts the name {name!r} to {_MAX_NAME} bytes: give a shorter "
            "one"
        )


def _listed(names: Sequence[str]) -> Any:
    sql = _client().sql
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _scalar_type(kind: pa.DataType) -> str | None:
    """The type of PostgreSQL for a type without parts, as `format_type` writes it."""
    types = pa.types
    if types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return f"timestamp with{'' if kind.tz else 'out'} time zone"
    for test, name in _TYPES:
        if test(kind):
            return name
    return None


_TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "smallint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "real"),
    (pa.types.is_float64, "double precision"),
    (pa.types.is_string, "text"),
    (pa.types.is_binary, "bytea"),
    (pa.types.is_date32, "date"),
    (pa.types.is_time, "time without time zone"),
    (pa.types.is_duration, "interval"),
)


def _is_array(kind: pa.DataType) -> bool:
    """Whether a column becomes an array: values that JSON writes as PostgreSQL does."""
    if not pa.types.is_list(kind):
        return False
    return _scalar_type(kind.value_type) not in (None, "bytea", "interval")


def _is_json(kind: pa.DataType) -> bool:
    return pa.types.is_nested(kind) and not _is_array(kind)


def _type_of(field: pa.Field) -> str:
    """The type of a column."""
    if _is_array(field.type):
        return f"{_scalar_type(field.type.value_type)}[]"
    kind = "jsonb" if _is_json(field.type) else _scalar_type(field.type)
    if kind is None:
        raise SpecError(
            f"column {field.name!r} ({field.type}) has no type in PostgreSQL: cast it, "
            "or drop it before the sink"
        )
    return kind


def _staged_type(field: pa.Field) -> str:
    """The type of a column in the stage: JSON for what has parts."""
    return "json" if pa.types.is_nested(field.type) else _type_of(field)


def _unstaged(field: pa.Field) -> Any:
    """The value of a column of the stage in the type of the table."""
    sql, kind = _client().sql, _type_of(field)
    text = "{name}"
    if _is_array(field.type):
        text = (
            "CASE WHEN {name} IS NOT NULL THEN ARRAY(SELECT "
            "json_array_elements_text({name}))::{kind} END"
        )
    elif _is_json(field.type):
        text = "{name}::{kind}"
    return sql.SQL(text).format(name=sql.Identifier(field.name), kind=sql.SQL(kind))


def _text_of(column: pa.ChunkedArray) -> Any:
    """A column that CSV can hold."""
    kind = column.type
    if pa.types.is_nested(kind):
        convert = encoder(kind)
        values = [
            None if each is None else dumps(convert(each))
            for each in column.to_pylist()
        ]
        return pa.array(values, pa.string())
    if pa.types.is_binary(kind):
        values = [
            None if each is None else f"\\x{each.hex()}" for each in column.to_pylist()
        ]
        return pa.array(values, pa.string())
    if pa.types.is_duration(kind):
        number = column.cast(pa.int64()).cast(pa.string())
        return pc.binary_join_element_wise(number, "microseconds", " ")
    return column


def _decoded(kind: pa.DataType, value: Any) -> Any:
    """A value as PostgreSQL gives it, in Python's type."""
    if value is None:
        return None
    if _is_json(kind):
        return decoder(kind)(json.loads(value))
    item = kind.value_type if _is_array(kind) else kind
    # psycopg gives the shortest decimal number, such as 0.1, which is not the value.
    return pa.scalar(value, kind).as_py() if pa.types.is_float32(item) else value
