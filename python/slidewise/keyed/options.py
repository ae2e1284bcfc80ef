"""`Options`: the arguments of `KeyedWindows`, parsed and checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from slidewise.errors import SpecError
from slidewise.keyed.clock import Clock, Guards, parse_guard
from slidewise.keyed.horizon import parse_keep, retention_ticks
from slidewise.keyed.query import AHEAD, LATE, KeyedQuery
from slidewise.keyed.validation import (
    LATE_ROWS,
    check_changed,
    check_deletes,
    check_emit,
    check_options,
    check_valid_until,
    checked,
    parse_late,
    refuse_flag,
)
from slidewise.spec.durations import Length, WindowLike
from slidewise.spec.given import refuse_mixed
from slidewise.spec.spec import Spec, check_column_name, check_columns, one_of
from slidewise.table.time_columns import window_ticks

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """The Spec and the options of a stream, before its columns are known."""

    spec: Spec
    emit: str
    late: Length
    late_rows: str
    keep: Length | None
    then_by: tuple[str, ...]
    deletes: str | None
    ahead: Length | None
    idle: Length | None
    clock: Clock
    changed: bool
    valid_until: bool

    @classmethod
    def make(
        cls,
        spec: Spec,
        *,
        emit: str | None,
        late: WindowLike,
        late_rows: str,
        keep: WindowLike | None,
        then_by: str | Sequence[str] | None,
        deletes: str | None,
        ahead: WindowLike | None = None,
        idle: WindowLike | None = None,
        clock: Clock | None = None,
        changed: bool = False,
        valid_until: bool = False,
    ) -> Self:
        """Parses and checks the arguments."""
        refuse_mixed(spec, "KeyedWindows")
        if emit is None:
            emit = "slide" if spec.is_hopping else "final"
        check_emit(emit, spec)
        names = check_columns(then_by, "then_by")
        one_of(late_rows, "late_rows", LATE_ROWS)
        check_options(spec, emit, corrects=late_rows == "correct")
        if late_rows == "flag" and emit not in ("arrival", "final"):
            instead = "" if spec.is_hopping else ", or use emit='final'"
            raise SpecError(
                f"late_rows='flag' gives rows back, and emit={emit!r} gives "
                f"none: count them by `late_count`{instead}"
            )
        delay, length = parse_late(late), parse_keep(keep, spec)
        if deletes is not None:
            check_column_name(deletes, "deletes")
            check_deletes([spec], deletes, "make KeyedWindows")
        return cls(
            spec,
            emit,
            delay,
            late_rows,
            length,
            names,
            deletes,
            parse_guard(ahead, "ahead"),
            parse_guard(idle, "idle"),
            clock or Clock(None),
            check_changed(changed, emit),
            check_valid_until(valid_until, emit, spec),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself, as it never changes; copies share the clock."""
        return self

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of results: `_late` and `_ahead`, if such rows are emitted."""
        if self.late_rows == "drop" or self.emit not in ("arrival", "final"):
            return ()
        return (LATE,) if self.ahead is None else (LATE, AHEAD)

    def guards(self, query: KeyedQuery) -> Guards | None:
        """How rows are compared with the clock; None if they are not."""
        return Guards.of(query, self.clock, self.ahead, self.idle)

    def query(
        self, schema: pa.Schema, kept: tuple[str, ...] | None = None
    ) -> KeyedQuery:
        """The query, once the columns are known; `kept` as in a `KeyedQuery`."""
        for flag in self.flags:
            refuse_flag([*schema.names, *self.spec.results], self.late_rows, flag)
        corrects = self.late_rows == "correct"
        options = (self.emit, self.then_by, self.deletes, corrects, kept, self.changed)
        return checked(KeyedQuery(self.spec, schema, *options, self.valid_until))

    def ticks(self, query: KeyedQuery) -> tuple[int, int]:
        """How far the watermark stays behind, and how long rows are kept behind it."""
        delay = window_ticks(self.late, query.times) if self.late.amount else 0
        return delay, retention_ticks(query, delay, self.keep)

    def output(self, query: KeyedQuery) -> pa.Schema:
        """The columns of what is emitted."""
        flags = [pa.field(name, pa.bool_()) for name in self.flags]
        return pa.schema([*query.output, *flags])
