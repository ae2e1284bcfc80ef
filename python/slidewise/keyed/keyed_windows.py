"""`KeyedWindows`: many keys in one process, each with its windows."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from threading import Lock, get_ident
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import Argument, SpecError, WindowBusyError
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.hints import suggest_argument
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.query import LATE, flagged
from slidewise.keyed.shard import Shard
from slidewise.keyed.single_times import shown_time
from slidewise.keyed.snapshots import BROKEN, Snapshot, damaged, pack, read_all
from slidewise.keyed.stream_query import StreamQuery
from slidewise.keyed.validation import (
    check_emit,
    check_late_rows,
    refuse_flag,
    then_columns,
)
from slidewise.spec.durations import Length, WindowLike, parse_offset
from slidewise.spec.spec import Spec, check_column_name
from slidewise.table.time_columns import read_times, window_ticks

__all__ = ["KeyedWindows"]

_T = TypeVar("_T")
_P = ParamSpec("_P")

_EARLIEST = -(2**63)
# Pages that stay decoded between two calls.
_DECODED = 4096


def _exclusive(
    method: Callable[Concatenate["KeyedWindows", _P], _T],
) -> Callable[Concatenate["KeyedWindows", _P], _T]:
    """A method that runs while no other thread is in one."""

    @wraps(method)
    def run(self: "KeyedWindows", /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with self._alone():
            return method(self, *args, **kwargs)

    return run


class KeyedWindows:
    """Windows of many keys over one stream: batches of rows in, answers out.

    The same question as `rolling` or `hopping`, answered while rows arrive in any
    order. A *watermark* says which times are over: rows at or before it are late and
    take no part. Answers come

    - `emit="arrival"`: per row, at once: over what has arrived;
    - `emit="final"`: per row, once the watermark has passed it: over the whole table;
    - `emit="update"`: per batch and key with new rows, the window at its latest row;
    - `emit="slide"`: for hopping windows, per key and window that the watermark has
      passed. Sessions once it has passed their last row by the gap; windows without
      rows (`empty=True`) with the key's next one that has some.

    Rows of one batch have arrived together, unless `arrival=` orders them.

    Any number of threads may use one object: calls wait for one another. Only
    `watermark` and `late_count` can be read at any time. A call from within its own
    operation (from the functions of an aggregation) raises `WindowBusyError`.

    Args:
        spec: What to compute, from `Spec.make` or `Spec.make_hopping`; or their
            keywords instead, which are those of `rolling` and `hopping`.
        emit: As above; "final", and for hopping windows "slide", by default.
        late: How far the watermark stays behind the largest time seen: `"10m"`, a
            `timedelta`, or an int for integer times.
        late_rows: What becomes of late rows: "drop" counts them, "flag" also gives them
            back, without results and with `_late` true ("arrival" and "final").
            "correct" takes in those that are less far behind the watermark than the
            longest window is long, and gives the answers that they change again, with
            `_correction` true: the last answers are then those of the whole table.
            Rows are kept for twice the longest window for that. Later ones are given
            back as by "flag". Not for sessions, `empty=True` and `rows(n)` alone.
        then_by: Columns that order rows of equal time: values, then NaN, then nulls.
            By default rows of equal time stay in order of arrival: by batch, in it by
            `arrival=`, else as they are. With `arrival=` that order comes first, and
            `then_by` orders the rows that arrived together.
        deletes: A column of booleans. A row where it is true takes back one with its
            key and time (the first by `then_by`, else the first that arrived), from
            then on, and gets no answer.
        **request: What `rolling` or `hopping` take, beside the table.

    Raises:
        SpecError: If an argument is wrong. (What the columns are shows with the first
            batch.)

    Cost: per batch, the pages at the ends of its windows are read and changed: O(new
    rows + pages of 32 KB), whatever the length of a window. Aggregations that need all
    rows (quantiles and their like, text, Python's own) read all of the window.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = sw.KeyedWindows(on="t", by="at", windows=5, aggs={"n": sw.count()},
        ...                         late=2)
        >>> trips.ingest(pa.table({"t": [3, 1, 9], "at": [*"AAB"]}))
        >>> trips.advance()  # 9 − 2: no row before 7 is waited for
        >>> trips.collect().to_pydict()
        {'t': [1, 3], 'at': ['A', 'A'], 'n_5': [1, 2]}
    """

    def __init__(
        self,
        spec: Spec | None = None,
        *,
        emit: str | None = None,
        late: WindowLike = 0,
        late_rows: str = "drop",
        then_by: str | Sequence[str] | None = None,
        deletes: str | None = None,
        **request: Any,
    ) -> None:
        self._spec = _spec(spec, request)
        hops = "slide" if self._spec.is_hopping else "final"
        self._emit = hops if emit is None else emit
        check_emit(self._emit, self._spec)
        self._then_by = then_columns(then_by)
        self._late_rows = check_late_rows(late_rows)
        if late_rows == "flag" and self._emit not in ("arrival", "final"):
            instead = "" if self._spec.is_hopping else ", or ask for emit='final'"
            raise SpecError(
                f"late_rows='flag' gives rows back, and emit={self._emit!r} gives "
                f"none: count them by `late_count`{instead}"
            )
        self._patience = _patience(late)
        gives_rows = self._emit in ("arrival", "final")
        self._flags = late_rows != "drop" and gives_rows
        self._deletes = (
            None if deletes is None else check_column_name(deletes, "deletes")
        )
        self._job: StreamQuery | None = None
        self._delay = 0
        self._store = MemoryStore()
        self._directory: bytes | None = None
        self._shard: Shard | None = None
        self._largest: int | None = None
        self._watermark: int | None = None
        self._answers: list[pa.Table] = []
        self._changed: set[int] = set()
        # Of the last snapshot, which `changes` follows.
        self._checksum: int | None = None
        self.late_count = 0
        self._lock, self._owner = Lock(), 0

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps other threads out.

        Raises:
            WindowBusyError: If this thread is in already.
        """
        if self._owner == get_ident():
            raise WindowBusyError(
                "these KeyedWindows are used from within their own operation: collect "
                "what the functions of an aggregation find, and use it afterwards"
            )
        with self._lock:
            self._owner = get_ident()
            try:
                yield
            finally:
                self._owner = 0

    @_exclusive
    def ingest(self, batch: Any) -> None:
        """Takes rows in.

        Args:
            batch: Whatever `rolling` takes as a table, in any order; every batch with
                the same columns.

        Raises:
            SpecError: If a column is missing, of a wrong type, without a time, or
                holds NaN where `nan="raise"`; the windows are as they were then.
            ResultOverflowError: As `rolling`; likewise.
        """
        first = self._job is None
        try:
            self._ingest(*self._prepared(batch))
        except BaseException:
            if first and self._largest is None:
                # Nothing was taken in, so nothing says what the columns are.
                self._job, self._shard, self._directory = None, None, None
                self._delay = 0
            raise

    def _ingest(self, job: StreamQuery, rows: pa.Table) -> None:
        job.refuse_nan(rows, self._watermark)
        ticks = job.ticks(rows)
        rows, late = job.by_lateness(rows, self._watermark)

        def step(shard: Shard) -> None:
            self._give(shard.ingest(rows, self._watermark))
            if len(late):
                self.late_count += len(late)
                if self._flags:
                    self._answers.append(job.given_back(late))
            if len(ticks):
                largest = pc.max(ticks).as_py()
                known = largest if self._largest is None else self._largest
                self._largest = max(largest, known)

        self._whole(step)

    @_exclusive
    def advance(self, watermark: Any = None) -> None:
        """Moves the watermark on, and answers what it has passed.

        Args:
            watermark: A time like those of the stream, read as `at=` reads them: an int
                for integer times, else a date, datetime, numpy.datetime64, pandas
                Timestamp or Arrow scalar with a zone if the column has one. By default
                the largest time seen, less `late`. One that lies before the present
                watermark changes nothing.

        Raises:
            SpecError: If it is no such time, or no whole number of the column's units.
            ResultOverflowError: As `rolling`; the watermark stays where it was then.
                To go on: `collect()`, then
                `KeyedWindows.from_bytes(w.to_bytes(), ..., overflow="null")`.
        """
        if self._job is None or self._largest is None:
            if watermark is not None:
                raise SpecError("there are no rows yet: ingest some before advance()")
            return
        ahead = self._largest - self._delay
        if watermark is not None:
            ahead = self._job.tick(watermark)
        # Nothing lies at or before a time that int64 cannot hold.
        if ahead < (_EARLIEST if self._watermark is None else self._watermark + 1):
            return

        def step(shard: Shard) -> None:
            self._give(shard.advance(ahead))
            self._watermark = ahead

        self._whole(step)

    @_exclusive
    def collect(self) -> pa.Table:
        """The answers since the last call; "final" ones in order of time per advance.

        Raises:
            SpecError: If there was no batch yet: then the columns are not known.
        """
        if self._job is None:
            raise SpecError("there are no rows yet: ingest some before collect()")
        schema = self._job.output
        if self._flags:
            schema = schema.append(pa.field(LATE, pa.bool_()))
        collected = pa.concat_tables(
            [schema.empty_table(), *self._answers], promote_options="permissive"
        )
        self._answers = []
        return collected

    def _give(self, answers: pa.Table | None) -> None:
        """Keeps answers until they are collected.

        Raises:
            SpecError: If they do not go into a table with those that wait.
        """
        if answers is None or self._job is None:
            return
        waiting = [table.schema for table in self._answers]
        try:
            pa.unify_schemas(
                [self._job.output, *waiting, answers.schema],
                promote_options="permissive",
            )
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SpecError(
                f"answers of an aggregation of your own changed their type ({error}): "
                "say what it gives with returns=, such as returns=float"
            ) from error
        self._answers.append(flagged(answers, late=False) if self._flags else answers)

    @property
    def watermark(self) -> Any:
        """The time up to which all is over; None if no time is yet.

        Raises:
            SpecError: If Python's datetimes do not reach so far.
        """
        if self._watermark is None or self._job is None:
            return None
        return shown_time(self._watermark, self._job.times)

    def __copy__(self) -> Self:
        """Windows that go on by themselves from here."""
        return deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Likewise."""
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(self._state(memo))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: a copy, which no other thread changes meanwhile."""
        state = self._state({})
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """From pickle."""
        self.__dict__.update(state, _lock=Lock())

    def _state(self, memo: dict[int, Any]) -> dict[str, Any]:
        """A copy of all there is, with a lock of its own."""
        with self._alone():
            memo[id(self._lock)] = Lock()
            return {**deepcopy(vars(self), memo), "_owner": 0}

    @_exclusive
    def keys(self) -> pa.Table:
        """The keys that have rows, each with its latest time."""
        return self._present().keys(self._watermark)

    @_exclusive
    def __len__(self) -> int:
        """How many keys have rows."""
        return 0 if self._job is None else len(self._present().keys(self._watermark))

    @_exclusive
    def evict_idle(self, until: Any) -> int:
        """Drops every key whose latest row is at or before `until`; returns how many.

        Keys go by themselves once no window can hold their rows. Only windows of
        `rows(n)` keep them for ever. Hopping windows and sessions of these keys that
        are not over yet are forgotten, too.

        Args:
            until: A time like those of the stream, as for `advance`. With
                `emit="final"` and "slide" no later than the watermark.

        Raises:
            SpecError: If it is no such time, later than that, or there were no rows
                yet.
        """
        job = self._present().job
        tick = job.tick(until)
        over = _EARLIEST - 1 if self._watermark is None else self._watermark
        if job.emit in ("final", "slide") and tick > over:
            raise SpecError(
                f"evict_idle({until!r}) reaches beyond the watermark "
                f"({self.watermark!r}), where rows wait for answers: advance() first"
            )
        return self._whole(lambda shard: shard.evict_idle(tick))

    @_exclusive
    def check(self) -> None:
        """Checks the invariants of the pages, all of which are read for that.

        Raises:
            AssertionError: Naming the page; a fault in slidewise, never in the data.
        """
        if self._shard is not None:
            self._shard.check()

    def _present(self) -> Shard:
        if self._shard is None:
            raise SpecError("there are no rows yet: ingest some first")
        return self._shard

    def _prepared(self, batch: Any) -> tuple[StreamQuery, pa.Table]:
        """The columns of a batch; the first one says which there are."""
        source = frame(batch)
        names = list(source.names) if self._job is None else self._job.schema.names
        require(source, names, "the batch")
        rows = pa.table({name: _taken(source.column(name)) for name in names})
        if self._job is None:
            job = self._job_of(rows.schema)
            times = read_times(
                rows.column(self._spec.on).combine_chunks(), self._spec.on
            )
            late = self._patience
            self._delay = window_ticks(late, times) if late.amount else 0
            self._job, self._shard = job, Shard(job, self._store)
            self._directory = self._shard.commit()
        columns = {
            field.name: _like_before(rows.column(field.name), field)
            for field in self._job.schema
        }
        return self._job, pa.table(columns)

    def _job_of(self, schema: pa.Schema) -> StreamQuery:
        if self._flags:
            refuse_flag([*schema.names, *self._spec.results], self._late_rows)
        return StreamQuery(
            self._spec,
            schema,
            self._emit,
            self._then_by,
            self._deletes,
            self._late_rows == "correct",
        )

    def _whole(self, step: Callable[[Shard], _T]) -> _T:
        """Takes a step and commits it, all of it or nothing, whatever interrupts it."""
        shard = self._present()
        stood = (self._largest, self._watermark, self.late_count, [*self._answers])
        directory, pages = self._directory, dict[int, bytes | None]()
        try:
            result = step(shard)
            pages = {page: self._store.get(page) for page in shard.changed}
            self._changed |= pages.keys()
            self._directory = shard.commit()
            shard.trim(_DECODED)
            return result
        except BaseException:
            self._store.restore(pages)
            self._largest, self._watermark, self.late_count, self._answers = stood
            self._directory = directory
            self._shard = Shard(shard.job, self._store, directory)
            raise

    @_exclusive
    def to_bytes(self) -> bytes:
        """A snapshot: all pages, and where the stream stands. `from_bytes` reads it.

        Raises:
            SpecError: If answers wait for `collect()`, or there were no rows yet.
        """
        return self._snapshot(self._store.blobs, None)

    @_exclusive
    def changes(self) -> bytes:
        """A snapshot of the pages that changed since the last snapshot of either kind.

        `from_bytes` takes it behind the snapshots before it.

        Raises:
            SpecError: Like `to_bytes`.
        """
        blobs = self._store.blobs
        changed = {page: blobs.get(page) for page in self._changed}
        return self._snapshot(changed, self._checksum)

    def _snapshot(
        self, pages: Mapping[int, bytes | None], follows: int | None
    ) -> bytes:
        if self._answers:
            raise SpecError("answers wait: collect() them before a snapshot")
        job, directory = self._present().job, self._directory or b""
        head = {
            "spec": job.spec.hash,
            "emit": job.emit,
            "then_by": job.then_by,
            "deletes": job.deletes,
            "late_rows": self._late_rows,
            "delay": self._delay,
            "largest": self._largest,
            "watermark": self._watermark,
            "late": self.late_count,
            "schema": job.schema.serialize().to_pybytes().hex(),
            "follows": follows,
        }
        blob, self._checksum = pack(head, directory, pages)
        self._changed = set()
        return blob

    @classmethod
    def from_bytes(
        cls,
        blob: Any,
        spec: Spec | None = None,
        *,
        changes: Iterable[bytes] = (),
        **request: Any,
    ) -> Self:
        """Windows from a snapshot; they go on with the same answers.

        Args:
            blob: What `to_bytes` gave: bytes, or anything with a buffer of them.
            spec: The same as then; or the keywords of `rolling` or `hopping`.
            changes: What `changes` gave since: all of it, in order.
            **request: As for the class.

        Raises:
            SnapshotError: If the bytes are damaged, or of another spec, or `changes`
                do not follow one another.

        Cost: O(n): every page is read and checked.
        """
        spec = _spec(spec, request, "KeyedWindows.from_bytes")
        read = read_all(blob, changes, spec.hash)
        try:
            return cls._restored(spec, read)
        except BROKEN as error:
            raise damaged(error) from error

    @classmethod
    def _restored(cls, spec: Spec, read: Snapshot) -> Self:
        head = read.head
        windows = cls(
            spec,
            emit=head["emit"],
            late_rows=head["late_rows"],
            then_by=head["then_by"],
            deletes=head["deletes"],
        )
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(head["schema"])))
        windows._job = windows._job_of(schema)
        windows._store.blobs.update(read.pages)
        windows._directory, windows._checksum = read.directory, read.checksum
        shard = Shard(windows._job, windows._store, read.directory)
        shard.check_pages()
        shard.check()
        shard.trim(_DECODED)
        windows._shard = shard
        windows._delay, windows._largest = head["delay"], head["largest"]
        windows._watermark, windows.late_count = head["watermark"], head["late"]
        return windows


def _like_before(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """A column in the type that it had in the first batch, where values stay the same.

    A column without values comes as nulls from pandas and JSON, text comes in offsets
    of 32 bits from Arrow and of 64 bits from pandas and polars, and categories come in
    indices as wide as their number asks for. Pages keep categories as their values.

    Raises:
        SpecError: If it is of another type.
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
    fixed = "the first batch fixes it" if pa.types.is_null(before) else "cast it"
    raise SpecError(
        f"column {field.name!r} is {column.type} in this batch, and was {field.type} "
        f"before: {fixed}"
    )


def _taken(column: Any) -> Any:
    """A column as pages keep it: Arrow neither sorts nor takes views of text."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.large_binary())
    return column


def _spec(
    spec: Spec | None, request: Mapping[str, Any], caller: str = "KeyedWindows"
) -> Spec:
    if spec is None:
        return _made(request, caller)
    if not isinstance(spec, Spec):
        raise SpecError(
            f"{caller} takes a Spec or the keywords of rolling and hopping, such as "
            f"on='t', windows='1h', aggs={{'n': sw.count()}}; got {spec!r}"
        )
    if request:
        raise SpecError(
            f"{', '.join(request)} belong into the Spec: give a Spec or keywords, not "
            "both"
        )
    return spec


def _made(request: Mapping[str, Any], caller: str) -> Spec:
    """The Spec that keywords ask for.

    Raises:
        SpecError: If some are missing or wrong.
        TypeError: If there is one that nobody takes.
    """
    if "window" in request and "windows" in request:
        raise SpecError(
            "give windows= for what rolling does, or window= for hopping, not both"
        )
    window = "window" if "window" in request else "windows"
    make = Spec.make_hopping if "window" in request else Spec.make
    missing = [name for name in ("on", window, "aggs") if name not in request]
    if missing:
        raise SpecError(
            f"a Spec, or {', '.join(f'{name}=' for name in missing)}, is missing"
        )
    known = inspect.signature(make).parameters
    for name in request:
        if name not in known:
            raise TypeError(
                f"{caller}() with {window}= takes no keyword argument {name!r}"
                f"{suggest_argument(name, known)}"
            )
    return make(**request)


def _patience(late: WindowLike) -> Length:
    length = parse_offset(late, "late")
    if length.amount < 0:
        raise SpecError(
            Argument("late", late), " is negative: give how long rows may take"
        )
    return length
