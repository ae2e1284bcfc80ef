"""Snapshots of `KeyedWindows` as bytes: a head, a directory and pages.

```text
header of the format | length of the head u64 | head as JSON | directory
| pages, in the order of the head
```

The head of an incremental snapshot holds the checksum of the snapshot before it, so
that a missing or reordered one is found. The head of a whole snapshot holds the
checksum of the last incremental one before it, so the next one follows both.
"""

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slidewise.errors import SnapshotError, SpecError
from slidewise.keyed.formats import BROKEN, Format, checked_ints
from slidewise.keyed.options import Options
from slidewise.keyed.processor import Processor, decode_directory, encode_directory
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.transaction import State
from slidewise.spec.durations import Length
from slidewise.spec.spec import Spec

__all__ = [
    "QueryHeads",
    "Snapshot",
    "Snapshots",
    "columns_of",
    "damaged",
    "pack",
    "query_of",
    "read_all",
    "spec_of",
]

_SNAPSHOT = Format(b"SWKW", 1)
_LENGTH = struct.Struct("<Q")


@dataclass(slots=True)
class Snapshot:
    """The contents of a snapshot.

    Attributes:
        head: The query, and the position of the stream.
        directory: The directory of the shard.
        pages: The pages; of an incremental snapshot those that were written, and None
            for a removed one.
        checksum: The checksum that the next incremental snapshot must hold.
    """

    head: dict[str, Any]
    directory: bytes
    pages: dict[int, bytes | None]
    checksum: int


class QueryHeads:
    """The part of heads that describes a query, which `query_of` reads."""

    def __init__(self) -> None:
        # The Spec last written, and its text.
        self._written: tuple[Spec, str | None] | None = None

    def of(self, query: KeyedQuery) -> dict[str, Any]:
        """The description of a query, for JSON."""
        return {
            "spec": query.spec.hash,
            "document": self._document(query.spec),
            "columns": [*query.stored_columns],
            "emit": query.emit,
            "then_by": query.then_by,
            "deletes": query.deletes,
            "late_rows": "correct" if query.corrects else "drop",
            "changed": query.changed,
            "valid_until": query.valid_until,
            "schema": query.schema.serialize().to_pybytes().hex(),
        }

    def _document(self, spec: Spec) -> str | None:
        """The Spec as JSON; None if one of its aggregations cannot be imported."""
        if self._written is None or self._written[0] is not spec:
            try:
                self._written = spec, spec.to_json()
            except SpecError:
                self._written = spec, None
        return self._written[1]


class Snapshots:
    """A state as bytes.

    Args:
        state: The state.
        options: The options of the windows.
    """

    def __init__(self, state: State, options: Options) -> None:
        self._state, self._options = state, options
        self._heads = QueryHeads()

    def to_bytes(self) -> bytes:
        """A snapshot: see `KeyedWindows.to_bytes`."""
        head, pages = self._head(), self._state.store.blobs()
        directory = encode_directory(self._state.directory)
        if self._state.checksum is None:
            self._mark(pack({**head, "follows": None}, directory, pages)[1])
        head |= {"follows": None, "since": self._state.checksum}
        return pack(head, directory, pages)[0]

    def changes(self) -> bytes:
        """An incremental snapshot: see `KeyedWindows.changes`."""
        state = self._state
        # A page is written once: a page in both sets has not changed.
        changed = {page: state.store.get(page) for page in self._pages ^ state.saved}
        head = {**self._head(), "follows": state.checksum}
        blob, checksum = pack(head, encode_directory(state.directory), changed)
        self._mark(checksum)
        return blob

    def _mark(self, checksum: int) -> None:
        """Records the snapshot on which `changes` is based."""
        # In one step: a call that ends between two would leave half a record.
        marked = {"checksum": checksum, "saved": self._pages, "is_ahead": False}
        vars(self._state).update(marked)

    def _head(self) -> dict[str, Any]:
        """The query, and the position of the stream, for snapshots."""
        if self._state.results:
            raise SpecError("results wait: collect() them before a snapshot")
        query, view = self._state.require().query, self._state.view
        return {
            **self._heads.of(query),
            "late_rows": self._options.late_rows,
            "ahead": _written(self._options.ahead),
            "idle": _written(self._options.idle),
            "delay": self._state.delay,
            "kept": self._state.retention,
            "largest": None if view is None else view.largest,
            "watermark": None if view is None else view.watermark,
            "late": self._state.late_count,
            "ahead_count": self._state.ahead_count,
            "duplicates": self._state.duplicate_count,
            "silent": self._state.silent,
        }

    @property
    def _pages(self) -> frozenset[int]:
        """The pages of the state."""
        return frozenset(self._state.require().page_numbers)

    def restore(self, query: KeyedQuery, read: Snapshot) -> None:
        """Restores the state of a snapshot."""
        state, head = self._state, read.head
        state.query, state.late_count = query, head["late"]
        state.ahead_count, state.silent = head["ahead_count"], head["silent"]
        state.duplicate_count = head["duplicates"]
        state.delay, state.retention = head["delay"], head["kept"]
        state.store.restore(read.pages)
        state.directory = decode_directory(read.directory)
        processor = state.open(trusts=False)
        processor.shard.check()
        processor.answer.drop_decoded()
        self._drop_others(processor)
        state.processor = processor
        state.publish(head["largest"], head["watermark"])
        self._mark(read.checksum)

    def apply(self, changes: bytes) -> None:
        """Applies the changes of a leader: see `KeyedWindows.apply`."""
        state, processor = self._state, self._state.require()
        read = _read_changes(changes, processor.query.spec.hash, state.checksum)
        if state.is_ahead:
            raise SnapshotError(
                "these windows have taken rows or a watermark of their own since the "
                "snapshot: changes apply to windows that only follow"
            )
        directory = decode_directory(read.directory)
        if directory is None:
            raise SnapshotError("the changes have no directory: they are damaged")
        try:
            with state.transaction() as before:
                before |= state.store.held({*read.pages, *state.store.page_numbers})
                state.store.restore(read.pages)
                processor.pages.drop(read.pages)
                processor.pages.trusts = False
                state.directory, head = directory, read.head
                largest = None if state.view is None else state.view.largest
                state.publish(largest, head["watermark"])
                processor.follow(directory, read.pages)
                processor.pages.trusts = True
                self._drop_others(processor)
                state.publish(head["largest"], head["watermark"])
                state.late_count = head["late"]
                state.ahead_count, state.silent = head["ahead_count"], head["silent"]
                state.duplicate_count = head["duplicates"]
                state.looked = None
                self._mark(read.checksum)
        except BROKEN as error:
            raise damaged(error) from error
        processor.answer.drop_decoded()

    def _drop_others(self, state: Processor) -> None:
        """Drops the stored pages that are not pages of the state.

        A snapshot may have pages that were added and removed between two `changes`.

        Raises:
            SnapshotError: If a page is missing.
        """
        own, held = set(state.page_numbers), self._state.store.page_numbers
        for page in own - held:
            raise SnapshotError(f"page {page} is missing from the state")
        for page in held - own:
            self._state.store.remove(page)


def _written(length: Length | None) -> int | str | None:
    """A length, as an argument that means it."""
    if length is None or length.kind == "integer":
        return None if length is None else length.amount
    return f"{length.amount}ns"


def pack(
    head: Mapping[str, Any], directory: bytes, pages: Mapping[int, bytes | None]
) -> tuple[bytes, int]:
    """Writes a snapshot; returns its bytes and its checksum.

    Args:
        head: A mapping for JSON; the sizes of pages and directory are added.
        directory: The directory of the shard.
        pages: The pages to write; None for a removed one.
    """
    listed = sorted(pages.items())
    head = {
        **head,
        "pages": [(page, None if blob is None else len(blob)) for page, blob in listed],
        "directory": len(directory),
    }
    text = json.dumps(head, separators=(",", ":")).encode()
    blobs = [blob for _, blob in listed if blob is not None]
    body = b"".join([_LENGTH.pack(len(text)), text, directory, *blobs])
    return _SNAPSHOT.seal(body)


def read_all(blob: Any, changes: Any) -> Snapshot:
    """Reads a snapshot, and applies incremental ones.

    Raises:
        SnapshotError: If bytes are damaged, or the incremental ones are not in order
            and complete, or of another spec.
    """
    single = isinstance(changes, bytes | bytearray | memoryview)
    if single or not isinstance(changes, Iterable):
        raise SnapshotError(
            "changes= takes a list of results of changes(), earliest first; got "
            f"{'bytes' if single else repr(changes)}"
        )
    read: Snapshot | None = None
    for at, part in enumerate((blob, *changes)):
        own = _read(part, f"changes[{at - 1}]" if at else "blob")
        if read is not None:
            _require_spec(own, read.head["spec"])
        follows = own.head["follows"]
        if follows is not None:
            before = _require_follows(read, follows, at)
            own.pages = {**before.pages, **own.pages}
        read = own
    assert read is not None, "there is one"
    return read


def _read_changes(blob: Any, spec_hash: str, checksum: int | None) -> Snapshot:
    """Reads one incremental snapshot, which must follow that of a checksum.

    Raises:
        SnapshotError: If bytes are damaged, of a different spec, or do not follow it.
    """
    own = _read(blob, "changes")
    _require_spec(own, spec_hash)
    follows = own.head["follows"]
    if follows is None:
        raise SnapshotError(
            "these bytes are what to_bytes() returned: restore them by from_bytes(), "
            "and apply the results of changes() since"
        )
    if follows != checksum:
        raise SnapshotError(
            "these changes do not follow those restored or applied last: apply all "
            "results of changes() since, each once, in the order of the calls"
        )
    return own


def _require_spec(own: Snapshot, spec_hash: str) -> None:
    if own.head["spec"] != spec_hash:
        raise SnapshotError(
            "the snapshot is of another Spec: pass the one that it was made with"
        )


def columns_of(head: Mapping[str, Any]) -> tuple[pa.Schema, tuple[str, ...]]:
    """The columns of the stream of a head, and those that are kept."""
    kept, ipc = tuple(head["columns"]), bytes.fromhex(head["schema"])
    return pa.ipc.read_schema(pa.py_buffer(ipc)), kept


def query_of(head: Mapping[str, Any], spec: Spec | None = None) -> KeyedQuery:
    """The query of a head, whose Spec may be known.

    Raises:
        SnapshotError: If its Spec is neither known nor in the head.
    """
    schema, kept = columns_of(head)
    options = (head["emit"], tuple(head["then_by"]), head["deletes"])
    corrects = head["late_rows"] == "correct"
    spec = spec_of(head) if spec is None else spec
    more = (head["changed"], head["valid_until"])
    return KeyedQuery(spec, schema, *options, corrects, kept, *more)


def spec_of(head: Mapping[str, Any]) -> Spec:
    """The Spec that a snapshot holds.

    Raises:
        SnapshotError: If it holds none, or one that cannot be read.
    """
    document = head["document"]
    if document is None:
        raise SnapshotError(
            "the snapshot is of another Spec, or none is given, and it does not hold "
            "its own, of which an aggregation cannot be imported by its path: pass the "
            "one that it was made with"
        )
    try:
        spec = Spec.from_json(document)
    except SpecError as error:
        raise SnapshotError(
            f"the Spec in the snapshot cannot be read ({error}): pass the one that it "
            "was made with"
        ) from error
    if spec.hash != head["spec"]:
        raise SnapshotError(
            "the Spec in the snapshot has another hash than the snapshot: pass the one "
            "that it was made with"
        )
    return spec


def _require_follows(before: Snapshot | None, follows: int, at: int) -> Snapshot:
    """The snapshot that an incremental one follows."""
    if before is None:
        raise SnapshotError(
            "these bytes are what changes() returned: pass the bytes of to_bytes() "
            "before it, and these in changes="
        )
    if before.checksum != follows:
        raise SnapshotError(
            f"changes[{at - 1}] does not follow the snapshot before it: pass all "
            "results of changes() since to_bytes(), in the order of the calls"
        )
    return before


def _read(blob: Any, name: str) -> Snapshot:
    """Reads one snapshot."""
    try:
        blob = memoryview(blob).cast("B")
    except TypeError as error:
        raise SnapshotError(f"{name} takes bytes, got {type(blob).__name__}") from error
    if not _SNAPSHOT.is_of(blob):
        raise SnapshotError(
            "these bytes are not a snapshot of KeyedWindows: Window.from_bytes reads "
            "those of a Window, SharedWindow.from_bytes those of a SharedWindow"
        )
    body, checksum = _SNAPSHOT.open(blob, "the snapshot")
    try:
        head, at = _read_head(body)
        _check_head(head)
        end = at + head["directory"]
        since = head.get("since")
        known = checksum if since is None else since
        own = Snapshot(head, bytes(body[at:end]), {}, known)
        for page, size in head["pages"]:
            checked_ints(page)
            if size is None:
                own.pages[page] = None
                continue
            if checked_ints(size) < 0:
                raise ValueError(f"page {page} of {size} bytes")
            own.pages[page] = bytes(body[end : end + size])
            end += size
        if end != len(body):
            raise ValueError(f"{len(body)} bytes, not {end}")
    except BROKEN as error:
        raise damaged(error) from error
    return own


def _read_head(body: memoryview) -> tuple[dict[str, Any], int]:
    (length,) = _LENGTH.unpack_from(body)
    end = _LENGTH.size + length
    head = json.loads(bytes(body[_LENGTH.size : end]))
    if not isinstance(head, dict):
        raise TypeError("its head is not a mapping")
    return head, end


def _check_head(head: Mapping[str, Any]) -> None:
    """Checks the types and signs of the fields of a head."""
    names = ("delay", "kept", "late", "ahead_count", "duplicates", "silent")
    counts = [head[name] for name in (*names, "directory")]
    checked_ints(*counts)
    if min(counts) < 0:
        raise ValueError("a count is negative")
    optional = [head[name] for name in ("largest", "watermark", "follows")]
    optional.append(head.get("since"))
    checked_ints(0, *[number for number in optional if number is not None])
    then_by, columns = head["then_by"], head["columns"]
    texts = [head["spec"], head["emit"], head["late_rows"], head["schema"]]
    texts += [*then_by, *columns]
    texts += [x for x in (head["deletes"], head["document"]) if x is not None]
    guards = [head["ahead"], head["idle"]]
    texts += [x for x in guards if not isinstance(x, int | None)]
    for name in ("changed", "valid_until"):
        if not isinstance(head[name], bool):
            raise TypeError(f"{name} is not a bool")
    lists = isinstance(then_by, list) and isinstance(columns, list)
    if not lists or not all(isinstance(x, str) for x in texts):
        raise TypeError("a name is not text")


def damaged(error: BaseException) -> SnapshotError:
    """The SnapshotError for an error that damaged bytes caused."""
    if isinstance(error, SnapshotError):
        return error
    return SnapshotError(f"the snapshot is damaged: {error!r}")
