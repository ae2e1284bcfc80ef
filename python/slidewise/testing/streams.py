"""`check_stream`: `KeyedWindows` over random cuts of a table, against the table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa

from slidewise.errors import ResultOverflowError, SpecError
from slidewise.formatting import format_count
from slidewise.frames.adapt import frame
from slidewise.frames.base import require
from slidewise.hints import with_hints
from slidewise.keyed import KeyedWindows
from slidewise.keyed.options import Options
from slidewise.spec.durations import WindowLike
from slidewise.spec.given import given_spec
from slidewise.spec.spec import Spec
from slidewise.table.hopping import hopping_spec
from slidewise.table.rolling import rolling_spec
from slidewise.table.time_columns import read_times, window_ticks
from slidewise.testing.differences import DifferenceError, cell
from slidewise.testing.expected import ROW, Expected, can_be_queried, key_of, longest
from slidewise.testing.script import Script, Step, clocked, draw, smallest

__all__ = ["check_stream"]

# The beginning of a difference that is an exception.
_RAISES = "it raises"
# The most rows of a batch that a message shows.
_SHOWN = 20


@with_hints
def check_stream(
    spec: Spec,
    rows: Any,
    *,
    late: WindowLike = 0,
    emit: str | None = None,
    runs: int = 20,
    seed: int = 0,
    late_rows: str = "drop",
    then_by: str | Sequence[str] | None = None,
    keep: WindowLike | None = None,
    ahead: WindowLike | None = None,
    idle: WindowLike | None = None,
) -> None:
    """Checks that a stream of rows, cut at random, gives what the table gives.

    Each run cuts the rows into batches of `KeyedWindows`, in order of arrival (the
    `arrival=` columns of the Spec, otherwise the table's order) or of event time. Some
    rows come later, by less than `late`; a few by more, and may be dropped. The
    watermark advances after most batches, and at random places the windows are restored
    from a snapshot (`to_bytes`, `from_bytes`). `ahead=` and `idle=` get a clock of
    random times: some rows are ahead of it, and it goes on while none come. These are
    compared:

    - what is emitted after each batch, with `rolling` or `hopping` over the rows that
      were not late: which rows, keys or windows, and every cell;
    - `query` and `query_many` at random points, with `rolling(at=)`, except for
      sessions, `until` and `delta`;
    - `watermark`, `late_count`, `ahead_count` and `duplicate_count`.

    For "change", the last result of each key is compared with `rolling(at=)` at the
    watermark, or at the key's latest row if that is later; a result that comes although
    no row left its window is accepted, if it is right.

    Args:
        spec: The `Spec`.
        rows: A table that `rolling` takes.
        late: As for `KeyedWindows`.
        emit: As for `KeyedWindows`, any of its kinds.
        runs: The number of cuts.
        seed: The seed of the cuts: equal seeds give equal cuts.
        late_rows: "drop" or "flag", as for `KeyedWindows`.
        then_by: As for `KeyedWindows`.
        keep: As for `KeyedWindows`.
        ahead: As for `KeyedWindows`.
        idle: As for `KeyedWindows`.

    Raises:
        AssertionError: If a cell differs. The message has the smallest cut that was
            found to differ, and the cell with both values.
        SpecError: If an argument is wrong or not supported. `late_rows="correct"` is
            not, nor are `approx_quantile` and `heavy_hitters`, whose answers depend on
            how rows are grouped.
        ResultOverflowError: As for `rolling`.

    Floats are equal within 128 ulp, the bound of the documentation; integers, times,
    text and lists are equal if all values are.

    Cost: per batch, that of `KeyedWindows` and of `rolling` over the rows so far, with
    at most 12 batches a run; for a smaller cut up to 2,000 runs more. Some hundred rows
    find what many find.

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> from slidewise.testing import check_stream
        >>> spec = sw.Spec(on="t", by="card", windows=[5, sw.rows(3)],
        ...                aggs={"n": sw.count(), "sum": sw.sum("x")})
        >>> rows = pa.table({"t": [1, 2, 9, 4], "card": [*"ABAA"], "x": [5, 7, 2, 1]})
        >>> check_stream(spec, rows, late=3, runs=5)
    """
    spec = given_spec(spec, {}, "check_stream", "check each Spec by itself")
    _refuse(spec, runs, late_rows)
    options = {
        "late_rows": late_rows,
        "then_by": then_by,
        "keep": keep,
        "ahead": ahead,
        "idle": idle,
    }
    check = _Check(spec, rows, late, emit, options)
    for run in range(runs):
        check.run(Random(f"{seed}.{run}"), f"seed {seed}, run {run}")


def _refuse(spec: Spec, runs: int, late_rows: str) -> None:
    if runs < 1:
        raise SpecError(f"runs={runs!r} is not a number of runs: give an int from 1")
    if late_rows == "correct":
        raise SpecError(
            "check_stream does not support late_rows='correct': give 'drop' or 'flag'"
        )
    for name, agg in spec.aggs:
        if agg.record.grouped:
            raise SpecError(
                f"check_stream does not support {agg!r}, which has several right "
                f"answers for the same rows: leave the aggregation {name!r} out"
            )


class _Check:
    """The rows and the options of a stream, which cuts have in common."""

    def __init__(
        self,
        spec: Spec,
        rows: Any,
        late: WindowLike,
        emit: str | None,
        options: dict[str, Any],
    ) -> None:
        parsed = Options.make(spec, emit=emit, late=late, deletes=None, **options)
        source = frame(rows)
        names = [*dict.fromkeys([*spec.columns, *parsed.then_by])]
        require(source, names)
        columns = [source.column(name) for name in names]
        self._rows = pa.Table.from_arrays(columns, names=names)
        # What is wrong with the rows is raised now.
        (hopping_spec if spec.is_hopping else rolling_spec)(self._rows, spec)
        self._spec, self._parsed = spec, parsed
        self._emits = parsed.emit != "none"
        self._given = {"late": late, "emit": parsed.emit, **options}
        self._times = read_times(source.column(spec.on), spec.on)
        self._ticks = self._times.ticks.to_pylist()
        delay = parsed.late  # 0 has no unit
        self._late = window_ticks(delay, self._times) if delay.amount else 0
        self._length = longest(spec, self._times)
        self._ahead, self._idle = (
            None if each is None else window_ticks(each, self._times)
            for each in (parsed.ahead, parsed.idle)
        )
        number = pa.array(range(source.length), pa.int64())
        self._numbered = self._rows.append_column(ROW, number)
        query = parsed.query(self._numbered.schema)
        self._horizon = query.id_horizon(parsed.ticks(query)[1])
        self._now = 0  # on the clock, in ticks
        KeyedWindows(spec, schema=self._numbered.schema, **self._given, **self._clock)
        arrivals = [(name, "ascending") for name in [*spec.arrivals, ROW]]
        self._order = self._numbered.sort_by(arrivals)[ROW].to_pylist()

    @property
    def _clock(self) -> dict[str, Any]:
        """The clock as an argument of windows, if rows are compared with it."""
        if self._ahead is None and self._idle is None:
            return {}
        unit = self._times.unit
        seconds = Fraction(1) if unit is None else Fraction(unit, 10**9)
        return {"clock": lambda: self._now * seconds}

    def run(self, random: Random, which: str) -> None:
        """Checks one cut.

        Raises:
            AssertionError: If a cell differs.
        """
        script = draw(random, self._ticks, self._order, self._late, self._length)
        if self._clock:
            bounds = (self._ahead or 0, self._idle or 0)
            script = clocked(random, script, self._ticks, *bounds)
        found = self._difference(script)
        if found is None:
            return
        raises = found.startswith(_RAISES)

        def fails(each: Script) -> bool:
            """Whether a cell differs, or a call raises, as in the first script."""
            other = self._difference(each)
            return other is not None and other.startswith(_RAISES) == raises

        script = smallest(script, fails)
        found = self._difference(script)
        kind = "hopping" if self._spec.is_hopping else "rolling"
        raise AssertionError(
            f"the stream differs from {kind} over its rows: {found}\n"
            f"({which}; the smallest cut found: {self._counts(script)})\n"
            + "\n".join(self._lines(script))
        )

    def _difference(self, script: Script) -> str | None:
        """The cell that differs, as a clause; None if all are equal."""
        try:
            self._play(script)
        except DifferenceError as error:
            return str(error)
        return None

    def _play(self, script: Script) -> None:
        """Plays a script.

        Raises:
            DifferenceError: If a cell differs.
        """
        expected = self._expected()
        windows = KeyedWindows(self._spec, **self._given, **self._clock)
        for step in script:
            if self._clock:
                self._look(windows, expected, step.now)
            before = expected.watermark
            expected.ingest(step.rows)
            if step.advance:
                expected.advance()
            with _reported():
                windows.ingest(self._numbered.take(pa.array(step.rows, pa.int64())))
                if step.advance:
                    windows.advance()
                emitted = windows.collect() if self._emits else None
            if emitted is not None:
                expected.check(before, emitted)
            if step.restart and expected.largest is not None:
                with _reported():
                    windows = KeyedWindows.from_bytes(
                        windows.to_bytes(), self._spec, **self._clock
                    )
            self._check_counts(windows, expected)
            if can_be_queried(self._spec):
                self._check_queries(windows, expected, step)
        at_once = self._parsed.emit in ("arrival", "update", "none")
        if expected.largest is not None and not at_once:
            before = expected.watermark
            end = expected.largest + self._length + self._late
            expected.ingest(())
            expected.advance(end)
            with _reported():
                windows.advance(self._time(end))
                emitted = windows.collect()
            expected.check(before, emitted)

    def _look(self, windows: KeyedWindows, expected: Expected, now: int) -> None:
        """Moves the clock, and compares what windows emit as they look at it."""
        self._now, before = now, expected.watermark
        expected.look(now)
        is_open = expected.largest is not None
        with _reported():
            windows.tick()
            emitted = windows.collect() if is_open and self._emits else None
        if emitted is not None:
            expected.check(before, emitted)

    def _expected(self) -> Expected:
        """The model of a stream before its first batch."""
        parsed = self._parsed
        return Expected(
            self._spec,
            self._numbered,
            self._times,
            self._late,
            parsed.emit,
            parsed.then_by,
            parsed.flags,
            self._ahead,
            self._idle,
            self._horizon,
        )

    def _check_queries(
        self, windows: KeyedWindows, expected: Expected, step: Step
    ) -> None:
        """Queries all points together, and the first one alone."""
        points = expected.points(step.asked)
        if not points.num_rows:
            return
        one = points.slice(0, 1)
        at = self._time(expected.tick(*step.asked[0]))
        with _reported():
            found = windows.query_many(points, at=self._spec.on)
            alone = windows.query(key_of(one, self._spec), at)
        expected.check_queries(points, found)
        expected.check_query(one, alone)

    def _time(self, tick: int) -> Any:
        """A time as `advance` takes it."""
        if self._times.unit is None:
            return tick
        return self._times.restore(pa.array([tick], pa.int64()))[0]

    def _shown(self, tick: int) -> Any:
        """A time as Python has it."""
        time = self._time(tick)
        return time.as_py() if isinstance(time, pa.Scalar) else time

    def _check_counts(self, windows: KeyedWindows, expected: Expected) -> None:
        for name in ("late_count", "ahead_count", "duplicate_count"):
            found, wanted = str(getattr(windows, name)), str(getattr(expected, name))
            if found != wanted:
                raise cell(name, "the stream", found, wanted)
        mark = expected.watermark
        shown = None if mark is None else self._shown(mark)
        if windows.watermark != shown:
            pair = (str(windows.watermark), str(shown))
            raise cell("watermark", "the stream", *pair)

    # Messages.

    def _counts(self, script: Script) -> str:
        rows = sum(len(step.rows) for step in script)
        restarts = sum(step.restart for step in script)
        batches = f"{len(script)} batch{'es' * (len(script) != 1)}"
        counts = [format_count(rows, "row"), format_count(restarts, "restart")]
        return ", ".join([batches, *counts])

    def _lines(self, script: Script) -> list[str]:
        """A script as the calls of `KeyedWindows`."""
        lines = []
        expected = self._expected()
        for step in script:
            if self._clock:
                expected.look(step.now)
            expected.ingest(step.rows)
            if step.advance:
                expected.advance()
            lines += [f"  tick() at {self._shown(step.now)}"] * bool(self._clock)
            shown = self._rows.take(pa.array(step.rows[:_SHOWN], pa.int64()))
            more = ", ..." * (len(step.rows) > _SHOWN)
            rows = ", ".join(map(repr, _texts(shown)))
            lines.append(f"  ingest([{rows}{more}])")
            lines += ["  advance()"] * step.advance
            lines += ["  from_bytes(to_bytes())"] * step.restart
            points = expected.points(step.asked).drop_columns(ROW)
            lines += [f"  query({point})" for point in _texts(points)]
        return lines


@contextmanager
def _reported() -> Iterator[None]:
    """Reports what a stream raises as a difference, as the table raised nothing.

    A sum of fewer rows may exceed its type, so that is raised as it is.
    """
    try:
        yield
    except ResultOverflowError:
        raise
    except Exception as error:
        text = f"{_RAISES} {type(error).__name__}: {error}"
        raise DifferenceError(text) from error


def _texts(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python dicts, with times as text."""
    for at, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type):
            table = table.set_column(at, field.name, table[at].cast(pa.string()))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
