"""`SpecWindows`: the windows of one Spec, which `KeyedWindows` and Features hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from slidewise.formatting import format_count
from slidewise.keyed.explain import explain_lines, format_bytes, format_windows
from slidewise.keyed.formats import BROKEN
from slidewise.keyed.growth import check_growth
from slidewise.keyed.options import Options
from slidewise.keyed.points import key_table
from slidewise.keyed.queries import Queries
from slidewise.keyed.single_times import format_tick, shown_time
from slidewise.keyed.snapshots import (
    Snapshot,
    Snapshots,
    columns_of,
    damaged,
    read_all,
    spec_of,
)
from slidewise.keyed.stream import Stream
from slidewise.keyed.transaction import State
from slidewise.spec.spec import Spec

__all__ = ["Saved", "SpecWindows"]

# The options that a snapshot holds, and with which its windows are made again.
_IN_HEADS = (
    *("emit", "late_rows", "then_by", "deletes", "ahead", "idle"),
    *("changed", "valid_until"),
)


class SpecWindows:
    """The windows of a Spec, by the subjects of their calls, which share a state.

    Its own methods are the calls that read it; the caller holds the lock.
    """

    def __init__(self, options: Options, state: State) -> None:
        self.options, self.state = options, state
        self.stream = Stream(options, state)
        self.queries = Queries(options.spec, state)
        self.snapshots = Snapshots(state, options)

    @classmethod
    def opened(cls, blob: bytes, spec: Spec | None, changes: Sequence[bytes]) -> Self:
        """Windows that are restored from a snapshot and the changes since.

        Raises:
            SnapshotError: As `KeyedWindows.from_bytes`.
        """
        try:
            saved = Saved.of(blob, spec, changes)
            saved.check_growth()
            made = cls(saved.made_with, State())
            made.restore(saved)
        except BROKEN as error:
            raise damaged(error) from error
        return made

    def emptied(self) -> Self:
        """Windows of the same stream without rows."""
        made, query = type(self)(self.options, State()), self.state.require().query
        made.state.begin(query, self.state.delay, self.state.retention)
        return made

    def holds(self, key: Any) -> bool:
        """Whether a key has rows."""
        view, processor = self.state.view, self.state.processor
        if view is None or processor is None:
            return False
        return processor.shard.holds(key_table(view.query, key), view.watermark)

    @property
    def watermark(self) -> Any:
        """The watermark, as a time of the kind of the stream's; None before it."""
        view = self.state.view
        if view is None or view.watermark is None:
            return None
        return shown_time(view.watermark, view.query.times)

    @property
    def late_count(self) -> int:
        """The number of late rows."""
        return self.state.late_count

    @property
    def ahead_count(self) -> int:
        """The number of rows that were ahead of the clock."""
        return self.state.ahead_count

    @property
    def duplicate_count(self) -> int:
        """The number of duplicates."""
        return self.state.duplicate_count

    def keys(self) -> pa.Table:
        """The keys that have rows, each with its latest time."""
        shard, view = self.state.require().shard, self.state.view
        return shard.keys(None if view is None else view.watermark)

    def count(self) -> int:
        """The number of keys that have rows."""
        return 0 if self.state.processor is None else len(self.keys())

    @property
    def nbytes(self) -> int:
        """The bytes of the rows, of their index, and of results that wait."""
        return self.state.nbytes

    def metrics(self) -> dict[str, float]:
        """Counts of rows, the bytes, and how far the stream came."""
        view = self.state.view
        return {
            "late": self.late_count,
            "ahead": self.ahead_count,
            "duplicates": self.duplicate_count,
            "state_bytes": self.nbytes,
            **({} if view is None else view.metrics),
        }

    def title(self) -> str:
        """Describes the windows, for `repr`."""
        return format_windows(self.options.spec)

    def position(self, nbytes: int) -> str:
        """Describes how far the stream came, for `repr`."""
        view = self.state.view
        if view is None or view.latest is None:
            return "empty"
        times = view.query.times
        parts = ["empty"]
        if view.largest is not None:
            parts = [f"latest {format_tick(view.largest, times)}"]
        if view.watermark is not None:
            parts.append(f"watermark {format_tick(view.watermark, times)}")
        if self.state.late_count:
            parts.append(format_count(self.state.late_count, "late row"))
        if self.state.ahead_count:
            parts.append(f"{format_count(self.state.ahead_count, 'row')} ahead")
        if self.state.duplicate_count:
            parts.append(format_count(self.state.duplicate_count, "duplicate"))
        return ", ".join([*parts, format_bytes(nbytes)])

    def explain(self) -> str:
        """Describes the results, their input, and possible queries."""
        options, state = self.options, self.state
        shard = None if state.processor is None else state.processor.shard
        watermark = None if state.view is None else state.view.watermark
        return explain_lines(options.spec, options.emit, shard, watermark, state.nbytes)

    def check(self) -> None:
        """Checks the invariants of the state."""
        if self.state.processor is not None:
            self.state.processor.shard.check()

    def restore(self, saved: "Saved") -> None:
        """Restores the state of a snapshot."""
        self.snapshots.restore(self.options.query(*saved.columns), saved.read)


@dataclass(frozen=True, slots=True)
class Saved:
    """A snapshot, and the Spec of the windows that are restored from it.

    Attributes:
        spec: The Spec of the restored windows.
        before: The Spec of the snapshot; `spec` itself unless that has grown.
        read: The contents of the snapshot.
    """

    spec: Spec
    before: Spec
    read: Snapshot

    @classmethod
    def of(cls, blob: Any, spec: Spec | None, changes: Any) -> Self:
        """Reads a snapshot; without a Spec, that of the snapshot."""
        read = read_all(blob, changes)
        if spec is not None and spec.hash == read.head["spec"]:
            return cls(spec, spec, read)
        before = spec_of(read.head)
        return cls(before if spec is None else spec, before, read)

    @property
    def options(self) -> dict[str, Any]:
        """The options that the snapshot holds, and the windows are made with."""
        return {name: self.read.head[name] for name in _IN_HEADS}

    @property
    def columns(self) -> tuple[pa.Schema, tuple[str, ...]]:
        """The columns of the stream, and those that were kept."""
        return columns_of(self.read.head)

    def check_growth(self) -> None:
        """Checks that the Spec differs only in what may grow.

        Raises:
            SnapshotError: If it does not.
        """
        if self.before is not self.spec:
            before = self._of(self.before).query(*self.columns)
            check_growth(before, self.spec, self.read.head["kept"])

    @property
    def made_with(self) -> Options:
        """The options of the restored windows."""
        return self._of(self.spec)

    def _of(self, spec: Spec) -> Options:
        return Options.make(spec, late=0, keep=None, **self.options)
