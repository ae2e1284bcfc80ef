"""`FeatureWindows`: the windows of several Specs over one stream, for `KeyedWindows`.

Each Spec has windows of its own. Each row goes to all of them with a number, by which
their results are joined again. The windows of the first Spec hold all columns of the
rows that wait for results, the others only those that they read.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.caching import cached_property
from slidewise.errors import Argument, SnapshotError, SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import empty_table, refuse_taken, require
from slidewise.frames.lazy import is_lazy
from slidewise.keyed.formats import BROKEN, Format, checked_ints
from slidewise.keyed.options import Options
from slidewise.keyed.points import check_row, key_values, refuse_plus
from slidewise.keyed.python_rows import PythonRows
from slidewise.keyed.query import AHEAD, LATE
from slidewise.keyed.snapshots import damaged
from slidewise.keyed.spec_windows import Saved, SpecWindows
from slidewise.keyed.stream import read_rows
from slidewise.keyed.transaction import Commit, State
from slidewise.keyed.validation import check_deletes, check_unique
from slidewise.spec.arguments import check_columns
from slidewise.spec.features import Features
from slidewise.table.kernel_call import map_lazily

__all__ = ["FeatureWindows", "SavedFeatures", "are_features"]

# The number of a row in the stream, by which the results of the Specs are joined.
_ROW = "__row"
_EMITS = ("final", "arrival", "none")
_SNAPSHOT = Format(b"SWKF", 1)
_LENGTH = struct.Struct("<Q")


class FeatureWindows:
    """The windows of Features, with the calls of `KeyedWindows`, which documents them.

    Args:
        features: The Specs.
        options: The options of `KeyedWindows`, but `schema=`.
        state: The lock of the object; the rows are in the states of the parts.
    """

    def __init__(
        self, features: Features, options: Mapping[str, Any], state: State
    ) -> None:
        _check_options(features, options)
        self._features, self._state = features, state
        self._parts: dict[str, SpecWindows] = {}
        self._clock = options["clock"]
        emit = options["emit"] or "final"
        for name, spec in features.parts.items():
            with _naming(name):
                own = Options.make(spec, **{**options, "emit": emit})
            self._parts[name] = SpecWindows(own, State())
        self._known = PythonRows(features.on, None)
        # The columns of the stream that each part has, once they are known.
        self._columns: dict[str, list[str]] = {}
        self._next = 0

    def __getstate__(self) -> dict[str, Any]:
        """A copy of the fields, for copies and pickle."""
        with self._state:
            return {**vars(self), "_parts": deepcopy(self._parts)}

    @property
    def stream(self) -> Self:
        """What takes the calls about rows: this object, as for the two below."""
        return self

    @property
    def queries(self) -> Self:
        """What takes queries."""
        return self

    @property
    def snapshots(self) -> Self:
        """What takes the calls about snapshots."""
        return self

    @property
    def _first(self) -> SpecWindows:
        return next(iter(self._parts.values()))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A block that changes all parts, or if it raises, none."""
        commit = Commit()
        with ExitStack() as stack:
            for part in self._parts.values():
                stack.enter_context(part.state)
            for part in self._parts.values():
                stack.enter_context(part.state.transaction(commit))
            yield
            commit.is_done = True

    # Rows.

    def begin(self, schema: pa.Schema) -> None:
        """Opens the parts, once the columns are known."""
        if _ROW in schema.names:
            raise SpecError(f"the column name {_ROW!r} is reserved: rename the column")
        require(frame(empty_table(schema)), self._features.columns, "the stream")
        options = self._first.options
        if options.emit != "none":
            refuse_taken(frame(empty_table(schema)), self._features.results)
        schemas = {}
        for name, part in self._parts.items():
            deletes = () if part.options.deletes is None else (part.options.deletes,)
            read = {*part.options.spec.columns, *part.options.then_by, *deletes}
            own = [
                field for field in schema if part is self._first or field.name in read
            ]
            schemas[name] = pa.schema([*own, pa.field(_ROW, pa.int64())])
        with self._clock.held():
            for name, part in self._parts.items():
                part.stream.begin(schemas[name])
            if self._first.options.spec.unique_by:
                self._share_horizon()
        self._columns = {name: own.names for name, own in schemas.items()}
        self._known = PythonRows(self._features.on, schema)

    def _share_horizon(self) -> None:
        """Keeps the rows of all parts equally long, so that they know the same ids."""
        states = [part.state for part in self._parts.values()]
        longest = max(state.retention for state in states)
        for state in states:
            state.begin(state.require().query, state.delay, longest)

    def resume(self) -> None:
        """Looks at the clock for the first time in this process."""
        with self._clock.held():
            for part in self._parts.values():
                part.stream.resume()

    def ingest(self, batch: Any) -> None:
        """Ingests a batch of rows."""
        before = self._columns, self._known, self._next
        with self._changing(), self._clock.held():
            try:
                rows = read_rows(batch, self._known)
                if self._known.schema is None:
                    self.begin(rows.schema)
                start, self._next = self._next, self._next + len(rows)
                numbers = pa.array(range(start, self._next), pa.int64())
                rows = rows.append_column(_ROW, numbers)
                for name, part in self._parts.items():
                    part.stream.ingest(rows.select(self._columns[name]))
            except BaseException:
                self._columns, self._known, self._next = before
                raise

    def tick(self) -> None:
        """Looks at the clock, and lets the watermark follow it."""
        with self._changing(), self._clock.held():
            for part in self._parts.values():
                part.stream.tick()

    def advance(self, watermark: Any) -> None:
        """Advances the watermark, and emits the results that are due."""
        with self._changing():
            for part in self._parts.values():
                part.stream.advance(watermark)

    def evict_idle(self, until: Any) -> int:
        """Evicts all keys whose latest row is at or before a time."""
        with self._changing():
            return sum(part.stream.evict_idle(until) for part in self._parts.values())

    def collect(self) -> pa.Table:
        """Returns the rows emitted since the last call, with the results of all parts.

        Parts emit the same rows; those of equal time may be in another order.
        """
        with self._changing():
            tables = [part.stream.collect() for part in self._parts.values()]
        joined = tables[0]
        numbers = joined[_ROW]
        for part, table in zip([*self._parts.values()][1:], tables[1:], strict=True):
            if not table[_ROW].equals(numbers):
                table = table.take(pc.index_in(numbers, value_set=table[_ROW]))
            for name in part.options.spec.results:
                joined = joined.append_column(table.schema.field(name), table[name])
        apart = (_ROW, LATE, AHEAD)
        names = [name for name in joined.column_names if name not in apart]
        return joined.select([*names, *self._first.options.flags])

    # Queries.

    def query(
        self, key: Any, at: Any, windows: Any, plus: Any, valid_until: bool
    ) -> dict[str, Any]:
        """The results of a key."""
        if isinstance(windows, Iterator):
            windows = [*windows]
        with self._state:
            values = key_values(self._features.by, key)
            if plus is not None:
                check_row(plus)
            rows = self._rows_of_parts(plus, values)
            results: dict[str, Any] = {}
            for (name, part), row in zip(self._parts.items(), rows, strict=True):
                own = tuple(values[each] for each in part.options.spec.by)
                with _naming(name):
                    results |= part.queries.query(own, at, windows, row, valid_until)
            return results

    def query_many(
        self, keys: Any, at: Any, windows: Any, plus: Any, valid_until: bool
    ) -> Any:
        """A table of keys with their results."""
        if isinstance(windows, Iterator):
            windows = [*windows]
        if plus is not None and not isinstance(plus, Mapping):
            plus = {name: name for name in check_columns(plus, "plus")}

        def answered(table: Any) -> Any:
            with self._state:
                values = {name: name for name in self._features.by}
                rows = self._rows_of_parts(plus, values)
                for (name, part), row in zip(self._parts.items(), rows, strict=True):
                    with _naming(name):
                        table = part.queries.query_many(
                            table, at, windows, row, valid_until
                        )
                return table

        if is_lazy(keys):
            return map_lazily(keys, self._features, answered)
        return answered(keys)

    def _rows_of_parts(
        self, plus: Mapping[str, Any] | None, keys: Mapping[str, Any]
    ) -> Sequence[dict[str, Any] | None]:
        """The extra row of each part: what it reads of `plus=`, and of other keys."""
        if plus is None or self._known.schema is None:
            return [None] * len(self._parts)
        given = {self._features.on, *self._features.by}
        unknown = {*given, self._first.options.deletes}
        known = [name for name in self._known.schema.names if name not in unknown]
        refuse_plus(plus, given, known)
        whole = {**keys, **plus}
        return [
            {
                each: whole[each]
                for each in self._columns[name]
                if each in whole and each not in spec.by
            }
            for name, spec in self._features.parts.items()
        ]

    # What they hold.

    def holds(self, key: Any) -> bool:
        """Whether a key has rows in any part."""
        values = key_values(self._features.by, key)
        return any(
            part.holds({name: values[name] for name in part.options.spec.by})
            for part in self._parts.values()
        )

    @property
    def state(self) -> State:
        """The state that has the position, which all parts share."""
        return self._first.state

    @property
    def watermark(self) -> Any:
        """The watermark, which all parts share."""
        return self._first.watermark

    @property
    def late_count(self) -> int:
        """The number of late rows, which are late for all parts."""
        return self._first.late_count

    @property
    def ahead_count(self) -> int:
        """The number of rows ahead of the clock, which all parts compare with it."""
        return self._first.ahead_count

    @property
    def duplicate_count(self) -> int:
        """The number of duplicates, which all parts drop."""
        return self._first.duplicate_count

    def keys(self) -> dict[str, pa.Table]:
        """The keys of each part that have rows, each with its latest time."""
        return {name: part.keys() for name, part in self._parts.items()}

    def count(self) -> int:
        """The number of keys that have rows, of all parts."""
        return sum(part.count() for part in self._parts.values())

    @property
    def nbytes(self) -> int:
        """The bytes of all parts."""
        return sum(part.nbytes for part in self._parts.values())

    def metrics(self) -> dict[str, float]:
        """The counts of rows and the position, which all share, and all bytes."""
        return {**self._first.metrics(), "state_bytes": self.nbytes}

    def title(self) -> str:
        """Describes the parts, for `repr`."""
        return "; ".join(f"{name}: {x.title()}" for name, x in self._parts.items())

    def position(self, nbytes: int) -> str:
        """Describes how far the stream came, for `repr`."""
        return self._first.position(nbytes)

    def explain(self) -> str:
        """The lines of each part, below its name."""
        lines = (
            [f"{name}:", *(f"  {line}" for line in part.explain().split("\n"))]
            for name, part in self._parts.items()
        )
        return "\n".join(chain.from_iterable(lines))

    def check(self) -> None:
        """Checks the invariants of all parts, and that they share a watermark."""
        for part in self._parts.values():
            part.check()
            assert part.watermark == self.watermark, "one watermark"
            assert part.late_count == self.late_count, "rows are late for all"
            assert part.ahead_count == self.ahead_count, "or ahead for all"
            assert part.duplicate_count == self.duplicate_count, "or come twice"

    # Snapshots.

    def to_bytes(self) -> bytes:
        """A snapshot of all parts."""
        with self._changing():
            return self._pack([x.snapshots.to_bytes() for x in self._parts.values()])

    def changes(self) -> bytes:
        """An incremental snapshot of all parts."""
        with self._changing():
            return self._pack([x.snapshots.changes() for x in self._parts.values()])

    @cached_property
    def _document(self) -> str | None:
        """The Features as JSON; None if an aggregation of theirs cannot be imported."""
        try:
            return self._features.to_json()
        except SpecError:
            return None

    def _pack(self, blobs: Sequence[bytes]) -> bytes:
        """Writes the snapshots of the parts."""
        head = {
            "document": self._document,
            "names": [*self._parts],
            "next": self._next,
            "sizes": [len(blob) for blob in blobs],
        }
        text = json.dumps(head, separators=(",", ":")).encode()
        return _SNAPSHOT.seal(b"".join([_LENGTH.pack(len(text)), text, *blobs]))[0]

    def apply(self, changes: bytes) -> None:
        """Applies the changes of a leader."""
        read = _Packed.of(changes, "changes")
        read.require(self._features)
        with self._changing():
            for part, blob in zip(self._parts.values(), read.blobs, strict=True):
                part.snapshots.apply(bytes(blob))
        self._next = read.next

    def restore(self, saved: "SavedFeatures") -> None:
        """Restores the state of a snapshot."""
        for part, own in zip(self._parts.values(), saved.parts, strict=True):
            part.restore(own)
        schemas = [x.state.require().query.schema for x in self._parts.values()]
        self._columns = {
            name: schema.names
            for name, schema in zip(self._parts, schemas, strict=True)
        }
        schema = schemas[0].remove(schemas[0].get_field_index(_ROW))
        self._known = PythonRows(self._features.on, schema)
        self._next = saved.next


def _check_options(features: Features, options: Mapping[str, Any]) -> None:
    """Refuses the options that would give results which cannot be joined."""
    emit = options["emit"]
    if emit is not None and emit not in _EMITS:
        raise SpecError(
            Argument("emit", emit),
            " does not go with Features, whose results are joined row by row: it is "
            "one of " + ", ".join(map(repr, _EMITS)),
        )
    if options["late_rows"] == "correct":
        raise SpecError(
            Argument("late_rows", "correct"),
            " does not go with Features, as the windows of each Spec correct other "
            "rows: use ",
            Argument("late_rows", "flag"),
            ", or make KeyedWindows for each Spec",
        )
    check_deletes(features.parts.values(), options["deletes"], "make KeyedWindows")
    check_unique([*features.parts.values()], "make KeyedWindows")


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Names the Spec in errors of its part."""
    try:
        yield
    except SpecError as error:
        raise SpecError(f"{name}: ", *error.args) from error


def are_features(blob: Any) -> bool:
    """Whether bytes are a snapshot of the windows of Features."""
    try:
        return _SNAPSHOT.is_of(memoryview(blob).cast("B"))
    except TypeError:
        return False


@dataclass(frozen=True, slots=True)
class _Packed:
    """What `FeatureWindows` writes: a snapshot for each part."""

    document: str | None
    names: list[str]
    next: int
    blobs: list[memoryview]

    @classmethod
    def of(cls, blob: Any, name: str) -> Self:
        """Reads it.

        Raises:
            SnapshotError: If it is damaged, or of something else.
        """
        if not are_features(blob):
            raise SnapshotError(
                f"{name} is not a snapshot of KeyedWindows of Features: leave the "
                "Features out, or give the bytes that their windows gave"
            )
        body, _ = _SNAPSHOT.open(memoryview(blob).cast("B"), "the snapshot")
        try:
            (length,) = _LENGTH.unpack_from(body)
            end = _LENGTH.size + length
            head = json.loads(bytes(body[_LENGTH.size : end]))
            sizes, names, blobs = head["sizes"], head["names"], []
            if len(sizes) != len(names) or min(checked_ints(n) for n in sizes) < 0:
                raise ValueError(f"{len(names)} names, of sizes {sizes}")
            for size in sizes:
                blobs.append(body[end : end + size])
                end += size
            if end != len(body):
                raise ValueError(f"{len(body)} bytes, not {end}")
            return cls(head["document"], names, checked_ints(head["next"]), blobs)
        except BROKEN as error:
            raise damaged(error) from error

    def require(self, features: Features) -> None:
        """Checks that it has a part for each Spec."""
        names = [name for name, _ in features.given]
        if names != self.names:
            raise SnapshotError(
                f"the snapshot has the Specs {', '.join(self.names)}, and the Features "
                f"{', '.join(names)}: give those of the snapshot, in their order"
            )


@dataclass(frozen=True, slots=True)
class SavedFeatures:
    """A snapshot, and the Features of the windows that are restored from it.

    Attributes:
        spec: The Features.
        parts: For each Spec, its part of the snapshot.
        next: The number of the next row.
    """

    spec: Features
    parts: list[Saved]
    next: int

    @classmethod
    def of(cls, blob: Any, spec: Any, changes: Any) -> Self:
        """Reads a snapshot; without Features, those of the snapshot."""
        if spec is not None and not isinstance(spec, Features):
            raise SnapshotError(
                "the snapshot is of Features, and a Spec is given: give the Features, "
                "or leave it out"
            )
        read = [_Packed.of(blob, "blob")]
        for at, each in enumerate(changes):
            read.append(_Packed.of(each, f"changes[{at}]"))
        if spec is None:
            spec = _features_of(read[0])
        for packed in read:
            packed.require(spec)
        parts = [
            Saved.of(whole, own, later)
            for own, whole, *later in zip(
                spec.parts.values(), *(packed.blobs for packed in read), strict=True
            )
        ]
        return cls(spec, parts, read[-1].next)

    @property
    def options(self) -> dict[str, Any]:
        """The options that the snapshot holds, and the windows are made with."""
        return self.parts[0].options

    def check_growth(self) -> None:
        """Checks that the Specs differ only in what may grow."""
        for part in self.parts:
            part.check_growth()


def _features_of(read: _Packed) -> Features:
    """The Features that a snapshot holds."""
    if read.document is None:
        raise SnapshotError(
            "the snapshot does not hold its Features, of which an aggregation cannot "
            "be imported by its path: pass those that it was made with"
        )
    try:
        return Features.from_json(read.document)
    except SpecError as error:
        raise SnapshotError(
            f"the Features in the snapshot cannot be read ({error}): pass those that "
            "it was made with"
        ) from error
