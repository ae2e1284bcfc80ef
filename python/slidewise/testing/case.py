"""`Case`: a stream to check, with the rows and options that all its cuts share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from slidewise.frames.adapt import frame
from slidewise.keyed.columns import LATEST
from slidewise.keyed.options import Options
from slidewise.spec.durations import Length
from slidewise.spec.features import Features, parts_of
from slidewise.spec.spec import Spec
from slidewise.table.rolling import compute_rolling
from slidewise.table.time_columns import TimeColumn, read_times, window_ticks
from slidewise.testing.differences import texts

__all__ = ["BATCH", "ROW", "Case", "rolled"]

# Columns of the stream: the number of a row, and of its batch.
ROW, BATCH = "_row_of_the_check", "_batch_of_the_check"
# The most rows of a batch that a message shows.
_SHOWN = 20


def rolled(rows: pa.Table, specs: Sequence[Spec], points: Any = None) -> pa.Table:
    """`rolling` over rows, at these or at query points, for each Spec."""
    source = frame(rows)
    target = source if points is None else frame(points)
    results = compute_rolling(source, specs, None if points is None else target)
    table: pa.Table = target.append(results)
    return table


@dataclass(frozen=True)
class Case:
    """A stream to check.

    Attributes:
        spec: The Spec or Features.
        rows: All rows of the stream, with their numbers in the column `ROW`.
        times: Their times.
        options: The options of each Spec.
        late: The delay of the watermark, in ticks.
        ahead: How far rows may be ahead of the clock, in ticks; None for any distance.
        idle: After how many ticks without rows the watermark follows the clock.
        horizon: How long an id is remembered behind the watermark, in ticks.
        step: The ticks of which watermarks are multiples.
        advance_first: Whether the watermark moves before the rows of a batch come.
    """

    spec: Spec | Features
    rows: pa.Table
    times: TimeColumn
    options: tuple[Options, ...]
    late: int
    ahead: int | None
    idle: int | None
    horizon: int
    step: int = 1
    advance_first: bool = False

    @classmethod
    def of(
        cls, spec: Spec | Features, rows: pa.Table, options: Sequence[Options]
    ) -> Self:
        """The case of rows with the column `ROW`."""
        times = read_times(frame(rows).column(spec.on), spec.on)
        first = options[0]
        queries = [each.query(rows.schema) for each in options]
        kept = max(
            each.ticks(query)[1] for each, query in zip(options, queries, strict=True)
        )
        guards = (first.ahead, first.idle)
        ahead, idle = (
            None if each is None else window_ticks(each, times) for each in guards
        )
        return cls(
            spec,
            rows,
            times,
            tuple(options),
            window_ticks(first.late, times) if first.late.amount else 0,
            ahead,
            idle,
            max(query.id_horizon(kept) for query in queries),
        )

    def by_micro_batches(self) -> Self:
        """The case of a stream of Spark, whose watermarks are in milliseconds."""
        return replace(self, step=1_000, advance_first=True)

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The Specs, with the names of their results."""
        return parts_of(self.spec)

    @property
    def emit(self) -> str:
        """When results are emitted."""
        return self.options[0].emit

    @property
    def then_by(self) -> tuple[str, ...]:
        """The columns that order rows of equal time."""
        return self.options[0].then_by

    @property
    def deletes(self) -> str | None:
        """The column of rows that delete others."""
        return self.options[0].deletes

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of rows that are emitted without results."""
        return self.options[0].flags

    @property
    def corrects(self) -> bool:
        """Whether late rows correct results."""
        return self.options[0].late_rows == "correct"

    @property
    def unique_by(self) -> tuple[str, ...]:
        """The columns of ids, which all Specs share."""
        return self.specs[0].unique_by

    @property
    def arrivals(self) -> tuple[str, ...]:
        """The columns of arrival order, which all Specs share."""
        return self.specs[0].arrivals

    @property
    def shown(self) -> list[str]:
        """The columns that name a row in a message."""
        return [*self.spec.by, self.spec.on]

    @property
    def longest(self) -> int:
        """The distance from a row to the end of its last window, in ticks.

        Windows without a start have no last one: of the others.
        """
        return max((reach for reach in self._reaches() if reach < LATEST), default=0)

    @property
    def allowance(self) -> int:
        """How far behind the watermark rows are accepted, in ticks."""
        return max(self._reaches()) if self.corrects else 0

    def _reaches(self) -> list[int]:
        windows = [window for spec in self.specs for window in spec.windows]
        return [window.reach(self.ticks) for window in windows]

    def ticks(self, length: Length) -> int:
        """A length in ticks."""
        return window_ticks(length, self.times)

    def time(self, tick: int) -> Any:
        """A time as `advance` takes it."""
        if self.times.unit is None:
            return tick
        return self.times.restore(pa.array([tick], pa.int64()))[0]

    def shown_time(self, tick: int) -> Any:
        """A time as Python has it."""
        time = self.time(tick)
        return time.as_py() if isinstance(time, pa.Scalar) else time

    def text_of(self, numbers: Sequence[int]) -> str:
        """Rows as a list of dicts; of many the first ones."""
        names = [name for name in self.rows.column_names if name != ROW]
        rows = self.rows.select(names).take(pa.array(numbers[:_SHOWN], pa.int64()))
        shown = [*map(repr, texts(rows)), *["..."] * (len(numbers) > _SHOWN)]
        return f"[{', '.join(shown)}]"

    @property
    def can_be_queried(self) -> bool:
        """Whether `query` means a `rolling(at=)`: not for what needs a row."""
        return not any(
            any(agg.record.needs_row for _, agg in spec.aggs)
            or any(window.leaves_whole or window.needs_row for window in spec.windows)
            for spec in self.specs
        )
