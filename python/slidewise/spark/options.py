"""The options of Spark calls that are not in the `Spec`."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from slidewise.aggregations import Aggregation
from slidewise.aggregations.registry import UserDefinedAggregation
from slidewise.errors import Argument, SpecError
from slidewise.keyed.published import Folder
from slidewise.keyed.query import AHEAD, LATE
from slidewise.keyed.validation import (
    LATE_ROWS,
    check_changed,
    check_emit,
    check_valid_until,
)
from slidewise.spec.durations import parse_offset
from slidewise.spec.spec import Spec, check_column_name, check_columns, one_of

__all__ = ["BatchOptions", "StreamOptions", "check_order", "check_positive"]


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of streaming calls, which `rolling` documents.

    `late` is in nanoseconds; None, for a batch DataFrame only, if it was not given.
    `ahead` and `idle` are, too; None for any distance, and for never.
    """

    late: int | None
    emit: str
    late_rows: str = "drop"
    then_by: tuple[str, ...] = ()
    initial: Any = field(default=None, compare=False)
    buckets: int | None = None
    marker: str | None = None
    deletes: str | None = None
    changed: bool = False
    publish: str | None = None
    ahead: int | None = None
    idle: int | None = None
    valid_until: bool = False

    @classmethod
    def make(
        cls,
        spec: Spec,
        *,
        late: str | timedelta | None = None,
        emit: str | None = None,
        late_rows: str = "drop",
        then_by: str | Sequence[str] | None = None,
        initial: Any = None,
        buckets: int | None = None,
        marker: str | None = None,
        deletes: str | None = None,
        changed: bool = False,
        valid_until: bool = False,
        publish: str | os.PathLike[str] | None = None,
        ahead: str | timedelta | None = None,
        idle: str | timedelta | None = None,
    ) -> "StreamOptions":
        """Checks the arguments of a call.

        Example:
            >>> import slidewise as sw
            >>> spec = Spec.make(on="t", windows="1h", aggs={"n": sw.count()})
            >>> StreamOptions.make(spec, late="10 minutes").emit
            'final'
        """
        emit = _check_emit(emit, spec)
        return cls(
            late=None if late is None else _parse_delay(late, "late"),
            emit=emit,
            late_rows=one_of(late_rows, "late_rows", LATE_ROWS),
            then_by=check_columns(then_by, "then_by"),
            initial=initial,
            buckets=None if buckets is None else check_positive(buckets, "buckets"),
            marker=None if marker is None else check_column_name(marker, "marker"),
            deletes=None if deletes is None else check_column_name(deletes, "deletes"),
            changed=check_changed(changed, emit),
            publish=None if publish is None else Folder(publish).path,
            ahead=None if ahead is None else _parse_delay(ahead, "ahead"),
            idle=None if idle is None else _parse_delay(idle, "idle"),
            valid_until=check_valid_until(valid_until, emit, spec),
        )

    def check_stream(self) -> None:
        """Checks the options for a streaming DataFrame."""
        if self.late is None:
            raise SpecError(
                "a stream needs to know how long to wait for late rows: add ",
                Argument("late", "10 minutes"),
                ", or the delay that your rows have",
            )
        if self.late_rows == "flag" and not self.gives_rows:
            raise SpecError(
                Argument("late_rows", "flag"),
                " returns input rows, and ",
                Argument("emit", self.emit),
                " returns none: leave it out (late rows are counted in any case), or "
                "pass ",
                Argument("late_rows", "correct"),
            )

    def check_batch(self, spec: Spec) -> None:
        """Checks the options for a batch DataFrame, which refuses some of them."""
        if self.emit in ("update", "change"):
            raise SpecError(
                Argument("emit", self.emit),
                " emits what changed in each micro-batch, and a batch DataFrame has "
                "none: leave ",
                Argument("emit"),
                " out, or pass a streaming DataFrame",
            )
        if self.emit == "arrival" and spec.arrival is None:
            raise SpecError(
                Argument("emit", "arrival"),
                " computes each row as of its arrival, which in a batch DataFrame only "
                "a column gives: add ",
                Argument("arrival", "column"),
                ", or leave ",
                Argument("emit"),
                " out",
            )
        if self.deletes is not None and spec.arrival is not None:
            raise SpecError(
                Argument("deletes"),
                " removes deleted rows of a batch DataFrame entirely, and ",
                Argument("arrival", spec.arrival),
                " needs them as of earlier arrivals: leave one out",
            )
        if self.initial is not None:
            raise SpecError(
                "initial= starts a stream from history: leave it out for a batch "
                "DataFrame, which is history itself"
            )
        if self.publish is not None:
            raise SpecError(
                "publish= is for streams, whose followers answer as of each "
                "micro-batch: leave it out for a batch DataFrame"
            )

    @property
    def gives_rows(self) -> bool:
        """Whether the output has a row per input row."""
        return self.emit in ("arrival", "final")

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of results: `_late` and `_ahead`, if such rows are returned."""
        if self.late_rows == "drop" or not self.gives_rows:
            return ()
        return (LATE,) if self.ahead is None else (LATE, AHEAD)

    @property
    def corrects(self) -> bool:
        """Whether late rows are ingested, and correct emitted results."""
        return self.late_rows == "correct"

    @property
    def idle_ms(self) -> int | None:
        """`idle` in milliseconds, in which Spark gives the times of micro-batches."""
        return None if self.idle is None else -(-self.idle // 1_000_000)

    @property
    def delay(self) -> str:
        """`late` in the form that `DataFrame.withWatermark` takes."""
        assert self.late is not None, "check_stream was called before"
        return f"{self.late // 1_000} microseconds"


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """The options of batch calls, which `rolling` documents."""

    partitions: int | None
    split: str | bool | int
    then_by: tuple[str, ...] = ()
    only: Any = field(default=None, compare=False)

    @classmethod
    def make(
        cls,
        *,
        partitions: int | None = None,
        split: str | bool | int = "auto",
        then_by: str | Sequence[str] | None = None,
        only: Any = None,
    ) -> "BatchOptions":
        """Checks the arguments of a call.

        Example:
            >>> BatchOptions.make(split=4).split
            4
        """
        if split == "auto":
            split = False  # finding skewed keys takes jobs, and none were asked for
        elif split != "sample" and split is not False:
            if isinstance(split, str) or split is True:
                raise SpecError(
                    "split= is 'auto', 'sample', False, or a number of splits; got "
                    f"{split!r}"
                )
            split = check_positive(split, "split")
        if partitions is not None:
            check_positive(partitions, "partitions")
        then = check_columns(then_by, "then_by")
        return cls(partitions, split, then, _check_only(only))


def _check_only(only: Any) -> Any:
    """Checks `only=`: a condition, or a range as a tuple; None for all rows."""
    if only is None or isinstance(only, str) or hasattr(only, "isNotNull"):
        return only
    is_range = isinstance(only, tuple | list) and len(only) == 2
    if is_range and any(time is not None for time in only):
        return tuple(only)
    raise SpecError(
        Argument("only", only),
        " is neither a range of time, such as only=(start, end), one of which may be "
        "None, nor a condition, such as only=\"day = '2026-01-05'\"",
    )


def check_order(spec: Spec, then_by: Iterable[str]) -> None:
    """Checks that results do not depend on how Spark shuffles rows of equal time.

    Example:
        >>> import slidewise as sw
        >>> spec = Spec.make(on="t", windows="1h", aggs={"a": sw.last("x")})
        >>> check_order(spec, ["id"])
    """
    if tuple(then_by):
        return
    cause = _order_dependent(spec)
    if cause is not None:
        raise SpecError(
            f"{cause} depends on the order of rows of equal time, which Spark does not "
            "keep: add ",
            Argument("then_by", "column"),
            ", a column that orders them (an id, an offset)",
        )


def _order_dependent(spec: Spec) -> str | None:
    """Names a window or aggregation that depends on the order of peers, or None."""
    if spec.ties == "rows" and spec.arrival is None:
        return "ties='rows'"
    for window in spec.windows:
        if window.by_position:
            return f"the window {window.label!r}"
        if window.rows:
            return repr(window)
    for _, agg in spec.aggs:
        if isinstance(agg, UserDefinedAggregation):
            if not agg.functions.commutative:
                return f"{agg!r}, whose combine is not commutative=True,"
        elif _keeps_order(agg):
            return repr(agg)
    return None


def _keeps_order(agg: Aggregation) -> bool:
    """Whether an answer depends on the order of peers.

    Sketches are approximate in any order, holistic aggregations have none, and peers
    have one time.
    """
    if agg.record.group or agg.record.inputs == ("time",):
        return False
    return not agg.commutes


def _parse_delay(delay: str | timedelta, name: str) -> int:
    if not isinstance(delay, str | timedelta):
        raise SpecError(
            Argument(name), f" is a duration such as '10 minutes', got {delay!r}"
        )
    nanoseconds = parse_offset(delay, name).amount
    if nanoseconds < 0 or nanoseconds % 1_000:
        raise SpecError(
            Argument(name),
            f" is a whole number of microseconds, 0 or more; got {delay!r}",
        )
    return nanoseconds


def _check_emit(emit: str | None, spec: Spec) -> str:
    if emit is None:
        per_row = "final" if spec.arrival is None else "arrival"
        return "slide" if spec.is_hopping else per_row
    check_emit(emit, spec)
    if emit == "none":
        raise SpecError(
            Argument("emit", "none"),
            " is for KeyedWindows, which answer queries; a stream of Spark has only "
            "what it emits: leave it out",
        )
    if emit == "final" and spec.arrival is not None:
        raise SpecError(
            Argument("emit", "final"),
            " computes over all rows, and ",
            Argument("arrival", spec.arrival),
            " over those that had arrived: leave one out, or pass ",
            Argument("emit", "arrival"),
        )
    return emit


def check_positive(value: Any, argument: str) -> int:
    """Checks that an argument is an integer, 1 or more, and returns it."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SpecError(Argument(argument), f" is an integer, 1 or more; got {value!r}")
    return value
