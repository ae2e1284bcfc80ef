"""Scripts of keyed windows that are queried at any time, against what queries mean.

Rows, deletions, late rows and evictions are those of `keyed_pairs`, and so is the list
of the rows that were accepted. A query means `rolling` over that list, at the queries.
"""

import math
import re
from collections.abc import Iterator
from itertools import count as counter
from itertools import islice
from random import Random
from typing import Any

import pyarrow as pa
from definitions import PAIRS
from keyed_pairs.covering import Cover
from keyed_pairs.factors import CATALOGUE, HOPPING, LANDMARKS, Case
from keyed_pairs.model import Due
from keyed_pairs.plan import KEYS, Plan, canonical, of_ticks, plain
from keyed_pairs.run import DifferenceError, Stage, alike, pages_of, same
from keyed_pairs.stream import Row, array_of
from keyed_pairs.values import answer

import slidewise as sw

Span = tuple[str, int, str]
# Windows without a length, and those of rows, which other tests query.
_UNASKED = ("session", "until", "rows by rows", *LANDMARKS)
_SKETCH = "approx_quantile"
# Aggregations whose answers depend on the grouping of rows: floats are rounded.
_GROUPED = {_SKETCH, "sum", "sum_of_squares", "mean", "geometric_mean", "product"}
_GROUPED |= {"variance", "stddev", "skewness", "kurtosis", *PAIRS}


def scripts(seed: str, count: int) -> Iterator[tuple[str, Case]]:
    """The first scripts of a seed, in which pairs of features meet early."""
    drawn = (case for part in counter() for case in Cover(Random(f"{seed}.{part}")))
    cases = (case for case in drawn if case["windows"] not in _UNASKED)
    for number, case in enumerate(islice(cases, count)):
        yield f"{seed}:{number}", case


def play(case: Case, name: str) -> int:
    """Plays a script; gives how many cells were compared.

    Raises:
        DifferenceError: If one differs, or if slidewise raises.
    """
    script = Script(Plan(case, name))
    with pages_of(script.plan.page):
        script.play()
    return script.cells


class Script(Stage):
    """A stream that is queried after each step."""

    def __init__(self, plan: Plan) -> None:
        corrected = plan.reach if plan.case["late_rows"] == "correct" else 0
        self.kept = plan.reach + max(plan.late, corrected)
        if plan.random.random() < 0.3:
            more = plan.reach + plan.random.choice([0, 5, 50]) * plan.scale
            plan.options["keep"] = plan.length(more)
            self.kept = max(self.kept, more)
        self.closed = plan.case["closed"]
        # Hopping windows are queried as rolling ones.
        self.declared: list[Span] = list(plan.spans)
        if plan.case["windows"] in HOPPING:
            self.closed = "right"
            self.declared = [("time", plan.grid[0], str(plan.request["window"]))]
        # Of the answers of the last point, by column.
        self.types: dict[str, pa.DataType] = {}
        super().__init__(plan)

    def step(self, name: str, call: Any, *given: Any) -> None:
        """One call, and a query."""
        try:
            call(*given)
            if self.model.largest is not None and self.draw.random() < 0.7:
                self._query()
        except DifferenceError:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:300]}"
            raise DifferenceError(f"{name} raises {text[:60]}", text) from error

    def _expect(self, due: list[Due]) -> None:
        """Answers that fall due are the subject of other tests."""

    def _collect(self) -> None:
        if self.started:
            self.windows.collect()

    def _look(self) -> None:
        """As `_expect`."""

    # Query points.

    def _query(self) -> None:
        draw = self.draw
        spans = self._spans()
        points = [self._point(spans) for _ in range(draw.choice([1, 1, 4, 9]))]
        floor = self._floor(spans)
        if draw.random() < 0.95 and floor > -math.inf:
            for row in points:
                row.tick = max(row.tick, int(floor))
        given: dict[str, Any] = {}
        if spans is not self.declared:
            lengths = [self._length(span) for span in spans]
            given["windows"] = lengths[0] if len(lengths) == 1 else lengths
        plus = draw.random() < 0.4
        until = draw.random() < 0.4
        if until:
            given["valid_until"] = True
        is_early = any(row.tick < floor for row in points)
        if is_early and self._refused(points, spans, given):
            return
        wanted = self._wanted(points, spans, plus)
        if until:
            for span in spans:
                wanted[f"valid_until_{span[2]}"] = [
                    self._until(row, span, plus) for row in points
                ]
        self._rank(wanted, points, spans, plus)
        found = self._many(points, given, plus)
        self._compare_types(found)
        self._compare(plain_columns(found), wanted, points)
        one = draw.randrange(len(points))
        self._compare_one(
            points[one], given, plus, {k: v[one] for k, v in wanted.items()}
        )

    def _refused(
        self, points: list[Row], spans: list[Span], given: dict[str, Any]
    ) -> bool:
        """Whether windows before the horizon are refused: rows may be gone."""
        try:
            self._many(points, given, plus=False)
        except sw.SpecError as error:
            if "the windows keep" not in str(error):
                raise
            if not self._may_be_gone(points, spans):
                raise DifferenceError("no row is gone", str(given)) from error
            return True
        return False

    def _may_be_gone(self, points: list[Row], spans: list[Span]) -> bool:
        """Whether a row that a window may hold, of any key, is behind the horizon."""
        model, plan = self.model, self.plan
        if model.unsure or "gone" in plan.columns:  # rows have left otherwise, too
            return True
        bound = model.watermark - self.kept
        ticks = [row.tick for rows in model.held.values() for row in rows]
        lost = max((tick for tick in ticks if tick <= bound), default=None)
        if lost is None:
            return False
        if any(kind == "rows" for kind, _, _ in [*plan.spans, *spans]):
            return True
        first = min(row.tick for row in points) - max(n for _, n, _ in spans)
        first -= plan.offset
        return lost >= first + (self.closed not in ("left", "both"))

    def _spans(self) -> list[Span]:
        """The windows of a point: those of the Spec, or others."""
        draw, plan = self.draw, self.plan
        if draw.random() < 0.5:
            return self.declared
        longest = self.kept - plan.offset
        lengths = {longest, draw.randint(1, max(1, longest)), draw.randint(1, 9)}
        lengths = [n for n in lengths if 0 < n <= longest]
        spans = [("time", n, str(plan.length(n))) for n in sorted(lengths)]
        most = max((n for kind, n, _ in plan.spans if kind == "rows"), default=0)
        if most and self.closed == "right" and not plan.offset:
            n = draw.randint(1, most)
            spans.append(("rows", n, f"{n}rows"))
        return (
            draw.sample(spans, draw.randint(1, len(spans))) if spans else self.declared
        )

    def _length(self, span: Span) -> Any:
        kind, length, _ = span
        return sw.rows(length) if kind == "rows" else self.plan.length(length)

    def _point(self, spans: list[Span]) -> Row:
        """A key and a time, and values of a row that might arrive then."""
        draw, plan = self.draw, self.plan
        held = [row for rows in self.model.held.values() for row in rows]
        ticks = [self.model.largest, self.model.watermark, self.stream.now]
        ticks = [tick for tick in ticks if tick is not None]
        tick = draw.choice(ticks) + draw.randrange(-5, 30) * plan.scale
        if held and draw.random() < 0.6:
            # At the ends of windows that just hold a row, or just do not.
            kind, length, _ = draw.choice(spans)
            lag = 0 if kind == "rows" else length + plan.offset
            tick = draw.choice(held).tick + draw.choice([0, lag]) + draw.randint(-1, 1)
        row = self.stream._row(max(tick, 0) if str(plan.kind) == "uint32" else tick)
        pool = KEYS.get(plan.case["key"], (None, []))[1]
        if pool and draw.random() < 0.2:
            row.keys = (draw.choice(pool), *row.keys[1:])
            row.key = tuple(map(canonical, row.keys))
        row.values["gone"], row.values["id"] = False, 10**9
        return row

    def _floor(self, spans: list[Span]) -> float:
        """The earliest time that can be queried."""
        if self.model.watermark is None:
            return -math.inf
        lags = [n + self.plan.offset if kind == "time" else 0 for kind, n, _ in spans]
        return self.model.watermark - self.kept + max(lags)

    @property
    def _extra(self) -> list[str]:
        """The columns of extra rows; others are null."""
        names = [n for n in self.plan.columns if n not in ("t", *self.plan.by, "gone")]
        return [name for name in names if name != "x"] if len(names) > 2 else names

    def _many(self, points: list[Row], given: dict[str, Any], plus: bool) -> pa.Table:
        """The answers of `query_many`, without the points."""
        draw, plan = self.draw, self.plan
        columns = self._labels(points)
        columns["when"] = columns.pop("t")
        at: Any = "when"
        if len({row.tick for row in points}) == 1 and draw.random() < 0.5:
            at = plan.time(points[0].tick)
        if plus:
            same_name = draw.random() < 0.5
            given = {**given, "plus": list(self._extra)}
            if not same_name:
                given["plus"] = {name: f"of {name}" for name in self._extra}
            for name in self._extra:
                values = [row.values[name] for row in points]
                called = name if same_name else f"of {name}"
                columns[called] = pa.array(values, plan.columns[name])
        answers = self.windows.query_many(pa.table(columns), at, **given)
        if answers.column_names[: len(columns)] != list(columns):
            raise DifferenceError("columns of keys", str(answers.column_names))
        return answers.select(answers.column_names[len(columns) :])

    def _labels(self, points: list[Row]) -> dict[str, pa.Array]:
        plan = self.plan
        columns = {"t": of_ticks([row.tick for row in points], plan.kind)}
        for place, name in enumerate(plan.by):
            keys = [row.keys[place] for row in points]
            columns[name] = array_of(keys, plan.columns[name])
        return columns

    # What they mean.

    def _wanted(
        self, points: list[Row], spans: list[Span], plus: bool
    ) -> dict[str, list[Any]]:
        """The answers by column, as `rolling` has them over all rows."""
        rows = [row for key in self.model.held for row in self.model.ordered(key).rows]
        if not plus:
            return plain_columns(self._rolled(rows, points, spans))
        wanted: dict[str, list[Any]] = {}
        for row in points:
            extra = Row(row.at, row.tick, row.key, row.keys, dict(row.values))
            for name in extra.values:
                if name not in self._extra:
                    extra.values[name] = None
            theirs = (
                self.model.ordered(row.key).rows if row.key in self.model.held else []
            )
            found = self._rolled([*theirs, extra], [row], spans)
            for name, values in plain_columns(found).items():
                wanted.setdefault(name, []).extend(values)
        return wanted

    def _rolled(
        self, rows: list[Row], points: list[Row], spans: list[Span]
    ) -> pa.Table:
        request = self.plan.request
        names = ("on", "by", "nan", "aggs", "min_rows", "ties", "offset")
        taken = {name: request[name] for name in names if name in request}
        if self.plan.case["windows"] in HOPPING:
            taken.pop("offset", None)
        table = self.stream.table(rows)
        labels = pa.table(self._labels(points))
        lengths = [self._length(span) for span in spans]
        found = sw.rolling(
            table, **taken, windows=lengths, closed=self.closed, at=labels
        )
        found = found.select(found.column_names[len(labels.column_names) :])
        self.types = dict(zip(found.column_names, found.schema.types, strict=True))
        return found

    def _rank(
        self,
        wanted: dict[str, list[Any]],
        points: list[Row],
        spans: list[Span],
        plus: bool,
    ) -> None:
        """Sets what sketches of quantiles may answer: it depends on their grouping."""
        request = self.plan.request
        sketches = {n: a for n, a in request["aggs"].items() if a.kind == _SKETCH}
        for name, agg in sketches.items():
            for span in spans:
                wanted[f"{name}_{span[2]}"] = [
                    answer(
                        agg,
                        [row.values for row in self._members(one, span, plus)],
                        request["nan"],
                        request["min_rows"],
                    )
                    for one in points
                ]

    def _members(self, point: Row, span: Span, plus: bool) -> list[Row]:
        """The rows of a window, in order."""
        held = self.model.held
        rows = [*self.model.ordered(point.key).rows] if point.key in held else []
        if plus:
            values = dict.fromkeys(point.values) | {
                name: point.values[name] for name in self._extra
            }
            rows.append(Row(point.at, point.tick, point.key, point.keys, values))
        if span[0] == "rows":
            return [row for row in rows if row.tick <= point.tick][-span[1] :]
        return [row for row in rows if self._holds(row.tick, point.tick, span)]

    def _until(self, point: Row, span: Span, plus: bool) -> frozenset[int | None]:
        """When the answers may change since rows leave the window, if nothing arrives.

        Its rows are queried again at each time at which some of them leave it. Answers
        that depend on the grouping of rows may change before others do.
        """
        if span[0] == "rows":
            return frozenset([None])
        rows = self._members(point, span, plus)
        types, whole = self.types, self._values(rows, point, point.tick, span)
        earlier: list[int] = []
        grouped = any(
            self._kind(name) in _GROUPED and isinstance(values[0], float | list)
            for name, values in whole.items()
        )
        try:
            for tick in sorted({row.tick for row in rows}):
                until = tick + span[1] + self.plan.offset
                until += self._holds(tick, until, span)
                if self._differ(self._values(rows, point, until, span), whole):
                    return frozenset([*earlier, until])
                if grouped:
                    earlier.append(until)
        finally:
            self.types = types
        return frozenset([*earlier, None])

    def _differ(self, values: dict[str, Any], others: dict[str, Any]) -> bool:
        """Whether answers are others, whatever the grouping of rows."""
        if values.keys() != others.keys():
            return True
        for name, value in values.items():
            kind = self._kind(name)
            if kind == _SKETCH:
                continue
            if kind in _GROUPED:
                if not same(value, others[name], kind):
                    return True
            elif _text(value) != _text(others[name]):
                return True
        return False

    def _values(
        self, rows: list[Row], point: Row, at: int, span: Span
    ) -> dict[str, Any]:
        """The answers at a time; none if one overflows."""
        point = Row(point.at, at, point.key, point.keys, point.values)
        try:
            return plain_columns(self._rolled(rows, [point], [span]))
        except sw.ResultOverflowError:
            return {}

    def _holds(self, tick: int, at: int, span: Span) -> bool:
        end = at - self.plan.offset
        start = end - span[1]
        after = tick >= start if self.closed in ("left", "both") else tick > start
        before = tick <= end if self.closed in ("right", "both") else tick < end
        return after and before

    def _compare_types(self, found: pa.Table) -> None:
        for name in found.column_names:
            kind = self.types.get(name, self.plan.kind)
            if pa.types.is_integer(kind) and name not in self.types:
                kind = pa.int64()
            if not alike(found[name].type, kind):
                raise DifferenceError("type", f"{name}: {found[name].type}, not {kind}")

    def _compare(
        self,
        got: dict[str, list[Any]],
        wanted: dict[str, list[Any]],
        points: list[Row],
    ) -> None:
        if list(got) != list(wanted):
            raise DifferenceError("columns", f"{list(got)}, not {list(wanted)}")
        for name, values in got.items():
            for at, (mine, theirs) in enumerate(zip(values, wanted[name], strict=True)):
                self.cells += 1
                if isinstance(theirs, frozenset):
                    equal = mine in theirs
                else:
                    equal = same(mine, theirs, self._kind(name))
                if not equal:
                    where = f"{points[at].keys} at {points[at].tick}"
                    text = f"{name} of {where}: {mine}, not {theirs}"
                    raise DifferenceError(f"query_many: {name}", text)

    def _kind(self, column: str) -> str:
        name = column.rpartition("_")[0]
        return CATALOGUE[name].kind if name in CATALOGUE else "count"

    def _compare_one(
        self, point: Row, given: dict[str, Any], plus: bool, wanted: dict[str, Any]
    ) -> None:
        """`query`, which is given keys and values one by one."""
        if plus:
            given = {**given, "plus": {n: point.values[n] for n in self._extra}}
        key: Any = point.keys
        if self.draw.random() < 0.5:
            key = dict(zip(self.plan.by, point.keys, strict=True))
        elif len(point.keys) == 1 and not isinstance(point.keys[0], dict):
            key = self.draw.choice([key, point.keys[0]])
        answers = self.windows.query(key, self.plan.time(point.tick), **given)
        if list(answers) != list(wanted):
            raise DifferenceError("columns", f"{list(answers)}, not {list(wanted)}")
        table = self._many(
            [point], {k: v for k, v in given.items() if k != "plus"}, plus
        )
        for name, value in answers.items():
            mine = table[name][0].as_py()
            if not same(value, mine, "first"):
                raise DifferenceError(f"query: {name}", f"{value}, not {mine}")
        member = point.key in self.model.held
        if key in self.windows and not member:
            raise DifferenceError("in", f"{key} has no rows")


def _text(value: Any) -> str:
    """The text of a value, in which zeros are equal, and NaNs."""
    return re.sub(r"-0\.0(?!\d)", "0.0", repr(value))


def plain_columns(table: pa.Table) -> dict[str, list[Any]]:
    """The values of each column, times as their numbers."""
    return {name: plain(table[name]) for name in table.column_names}
