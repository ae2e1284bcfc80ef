"""`InProcess`: plays a script through `KeyedWindows`."""

from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa

from slidewise.keyed import KeyedWindows
from slidewise.testing.case import ROW, Case
from slidewise.testing.differences import cell, reported, texts
from slidewise.testing.expected import Expected, key_of
from slidewise.testing.script import Script, Step, clocked

__all__ = ["InProcess"]


class InProcess:
    """Plays scripts of a case in this process.

    Attributes:
        batches: The most batches of a script.
        tries: The most scripts that are played to find a smaller one.

    Args:
        case: The case.
        given: The arguments of `KeyedWindows`.
    """

    batches = 12
    tries = 2_000

    def __init__(self, case: Case, given: Mapping[str, Any]) -> None:
        self._case, self._given = case, given
        self._now = 0  # on the clock, in ticks
        self._emits = case.emit != "none"
        self._windows(schema=case.rows.schema)  # what is refused is refused now

    def _windows(self, **more: Any) -> KeyedWindows:
        return KeyedWindows(self._case.spec, **self._given, **self._clock, **more)

    @property
    def _clock(self) -> dict[str, Any]:
        """The clock as an argument of windows, if rows are compared with it."""
        case = self._case
        if case.ahead is None and case.idle is None:
            return {}
        unit = case.times.unit
        seconds = Fraction(1) if unit is None else Fraction(unit, 10**9)
        return {"clock": lambda: self._now * seconds}

    def adapted(self, script: Script, random: Random) -> Script:
        """A script with a clock, if rows are compared with it."""
        case = self._case
        if not self._clock:
            return script
        ticks = case.times.ticks.to_pylist()
        return clocked(random, script, ticks, case.ahead or 0, case.idle or 0)

    def play(self, script: Script) -> None:
        """Plays a script.

        Raises:
            DifferenceError: If a cell differs.
        """
        case = self._case
        expected, windows = Expected(case), self._windows()
        for step in script:
            if self._clock:
                self._look(windows, expected, step.now)
            before = expected.watermark
            expected.ingest(step.rows)
            if step.advance:
                expected.advance()
            with reported():
                windows.ingest(case.rows.take(pa.array(step.rows, pa.int64())))
                if step.advance:
                    windows.advance()
                emitted = windows.collect() if self._emits else None
            if emitted is not None:
                expected.check(before, emitted)
            if step.restart and expected.largest is not None:
                with reported():
                    windows = KeyedWindows.from_bytes(
                        windows.to_bytes(), case.spec, **self._clock
                    )
            self._check_counts(windows, expected)
            if case.can_be_queried:
                self._check_queries(windows, expected, step)
        at_once = case.emit in ("arrival", "update", "none")
        if expected.largest is not None and not at_once:
            before = expected.watermark
            end = expected.largest + case.longest + case.late
            expected.ingest(())
            expected.advance(end)
            with reported():
                windows.advance(case.time(end))
                emitted = windows.collect()
            expected.check(before, emitted)

    def _look(self, windows: KeyedWindows, expected: Expected, now: int) -> None:
        """Moves the clock, and compares what windows emit as they look at it."""
        self._now, before = now, expected.watermark
        expected.look(now)
        is_open = expected.largest is not None
        with reported():
            windows.tick()
            emitted = windows.collect() if is_open and self._emits else None
        if emitted is not None:
            expected.check(before, emitted)

    def _check_queries(
        self, windows: KeyedWindows, expected: Expected, step: Step
    ) -> None:
        """Queries all points together, and the first one alone."""
        points = expected.points(step.asked)
        if not points.num_rows:
            return
        spec, one = self._case.spec, points.slice(0, 1)
        at = self._case.time(expected.tick(*step.asked[0]))
        with reported():
            found = windows.query_many(points, at=spec.on)
            alone = windows.query(key_of(one, spec.by), at)
        expected.check_queries(points, found)
        expected.check_query(one, alone)

    def _check_counts(self, windows: KeyedWindows, expected: Expected) -> None:
        for name in ("late_count", "ahead_count", "duplicate_count"):
            found, wanted = str(getattr(windows, name)), str(getattr(expected, name))
            if found != wanted:
                raise cell(name, "the stream", found, wanted)
        mark = expected.watermark
        shown = None if mark is None else self._case.shown_time(mark)
        if windows.watermark != shown:
            pair = (str(windows.watermark), str(shown))
            raise cell("watermark", "the stream", *pair)

    def lines(self, script: Script) -> list[str]:
        """A script as the calls of `KeyedWindows`."""
        lines, case = [], self._case
        expected = Expected(case)
        for step in script:
            if self._clock:
                expected.look(step.now)
            expected.ingest(step.rows)
            if step.advance:
                expected.advance()
            shown = case.shown_time(step.now)
            lines += [f"  tick() at {shown}"] * bool(self._clock)
            lines.append(f"  ingest({case.text_of(step.rows)})")
            lines += ["  advance()"] * step.advance
            lines += ["  from_bytes(to_bytes())"] * step.restart
            points = expected.points(step.asked).drop_columns(ROW)
            lines += [f"  query({point})" for point in texts(points)]
        return lines
