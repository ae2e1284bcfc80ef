"""Plays a case through `KeyedWindows`, and compares its answers and attributes."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pyarrow as pa

import slidewise as sw
from keyed_pairs.answers import ENDS, Answers
from keyed_pairs.factors import CATALOGUE, HOPPING, Case
from keyed_pairs.model import Due, Model
from keyed_pairs.plan import Plan, canonical, plain
from keyed_pairs.stream import Row, Stream
from keyed_pairs.values import UNKNOWN, ApproximateQuantiles, Hitters
from slidewise.keyed import row_log

Key = tuple[Any, ...]
_NEAR = 2.0**-44
# The absolute error allowed for aggregations whose terms may cancel.
_OFF = {"sum": 1e-8, "mean": 1e-8, "covariance": 1e-6, "correlation": 1e-9}
_OFF |= {"skewness": 1e-6, "kurtosis": 1e-6, "weighted_mean": 1e-6}
_OFF |= {"slope": 1e-9, "intercept": 1e-6, "r_squared": 1e-9}


class DifferenceError(AssertionError):
    """An answer that differs from the expected one.

    Attributes:
        kind: The kind of the difference, in a few words.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


@contextmanager
def pages_of(size: int) -> Iterator[None]:
    """Sets a smaller size of pages, so that few rows make trees."""
    known = row_log.SEGMENT
    row_log.SEGMENT = size
    try:
        yield
    finally:
        row_log.SEGMENT = known


def play(case: Case, name: str) -> int:
    """Plays a case; returns the number of compared cells.

    Raises:
        DifferenceError: If one differs, or if slidewise raises.
    """
    stage = Stage(Plan(case, name))
    with pages_of(stage.plan.page):
        stage.play()
    return stage.cells


class Stage:
    """A stream and its model."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.case, self.draw = plan, plan.case, plan.random
        self.stream, self.model = Stream(plan), Model(plan)
        self.answers = Answers(plan, self.stream, self.model)
        self.windows = sw.KeyedWindows(**plan.request, **plan.options)
        self.due: list[tuple[Due, dict[str, Any], dict[str, Any]]] = []
        self.cells = 0
        self.blobs: list[bytes] = []
        self.started = False
        # If an answer may come twice, or be left out, each step is compared.
        careful = self.case["late_rows"] == "correct"
        self.careful = careful or (self.case["emit"] == "update")

    def play(self) -> None:
        """All batches, the calls between them, and the end."""
        for rows in self.stream.batches():
            self.step("ingest", self._ingest, rows)
            self._moves()
            self._lives()
        self.step("advance", self._advance, None)
        if self.draw.random() < 0.6:
            end = self.stream.now + self.draw.choice([5, 60]) * self.plan.scale
            self.step("advance", self._advance, end)
        self.step("collect", self._collect)
        self.windows.check()

    def step(self, name: str, call: Any, *given: Any) -> None:
        """One call, and the checks after it."""
        try:
            call(*given)
            if self.started and (self.careful or self.draw.random() < 0.5):
                self._collect()
                self._look()
        except DifferenceError:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:200]}"
            raise DifferenceError(f"{name} raises {text[:60]}", text) from error

    def _ingest(self, rows: list[Row]) -> None:
        self.windows.ingest(self.stream.tables[-1])
        self.started = True
        self._expect(self.model.ingest(rows))

    def _advance(self, tick: int | None) -> None:
        self.windows.advance(None if tick is None else self.plan.time(tick))
        self._expect(self.model.advance(tick))

    def _expect(self, due: list[Due]) -> None:
        for one, (first, second) in zip(due, self.answers.of(due), strict=True):
            self.due.append((one, first, second))

    def _moves(self) -> None:
        draw, how = self.draw, self.case["advance"]
        if self.model.largest is None:
            return
        if how == "each" or (how == "seldom" and draw.random() < 0.3):
            self.step("advance", self._advance, None)
        elif how == "any" and draw.random() < 0.8:
            tick = self.stream.now + draw.randrange(-40, 25) * self.plan.scale
            self.step("advance", self._advance, tick)

    def _lives(self) -> None:
        life = self.case["life"]
        if life == "all":
            life = self.draw.choice(["snapshot", "changes", "copy", "evict", "fail"])
        if life != "none" and self.draw.random() < 0.6:
            self.step(life, getattr(self, f"_{life}"))

    def _snapshot(self) -> None:
        self._collect()
        blob = self.windows.to_bytes()
        self.windows = sw.KeyedWindows.from_bytes(blob, **self.plan.request)
        self.blobs = [blob]

    def _changes(self) -> None:
        self._collect()
        whole = not self.blobs or self.draw.random() < 0.2
        blob = self.windows.to_bytes() if whole else self.windows.changes()
        self.blobs = [blob] if whole else [*self.blobs, blob]
        if self.draw.random() < 0.6:
            first, *changes = self.blobs
            self.windows = sw.KeyedWindows.from_bytes(
                first, changes=changes, **self.plan.request
            )

    def _copy(self) -> None:
        copied = deepcopy(self.windows)
        # Calls on one copy do not change the other.
        self.windows.ingest(self.stream.tables[-1])
        if self.model.largest is not None:
            self.windows.advance(self.plan.time(self.stream.now + 10))
        self.windows = copied

    def _evict(self) -> None:
        self._collect()
        until = self.stream.now - self.draw.choice([0, 3, 10, 40]) * self.plan.scale
        if self.case["emit"] in ("final", "slide"):
            if self.model.watermark is None:
                return
            until = min(until, self.model.watermark)
        known = self._surely_there()
        held = {
            key: max(row.tick for row in rows) for key, rows in self.model.held.items()
        }
        least = sum(held[key] <= until for key in known)
        gone = self.windows.evict_idle(self.plan.time(until))
        most = self.model.evict_idle(until)
        if not least <= gone <= most:
            raise DifferenceError("evict_idle", f"{gone}, not {least} to {most}")

    def _surely_there(self) -> set[Key]:
        """Keys with rows that a window can still hold."""
        floor = -math.inf
        if self.model.watermark is not None:
            floor = self.model.watermark - self.plan.reach
        return {
            key
            for key, rows in self.model.held.items()
            if max(row.tick for row in rows) > floor
        }

    def _fail(self) -> None:
        table = self.stream.tables[-1]
        if not len(table):
            return
        mistakes = {
            "column": table.drop_columns("id"),
            "type": table.set_column(0, "id", table["id"].cast(pa.string())),
        }
        place = table.column_names.index("t")
        missing = pa.nulls(len(table), table["t"].type)
        mistakes["time"] = table.set_column(place, "t", missing)
        way = self.draw.choice(["column", "type", "time", "value"])
        bad, error = mistakes.get(way), sw.SpecError
        if bad is None:
            bad, error = self._bad_value()
        if bad is None:
            return
        try:
            self.windows.ingest(bad)
        except error:
            pass
        else:
            raise DifferenceError(f"a wrong {way} is ingested", str(bad))
        self._look()

    def _bad_value(self) -> tuple[pa.Table | None, type[Exception]]:
        """Rows that are refused because of NaN or an overflow."""
        draw, case = self.draw, self.case
        watermark = self.model.watermark
        floor = self.stream.now if watermark is None else watermark + 1
        tick = max(self.stream.now, floor)
        one, two = (self.stream._row(tick) for _ in range(2))
        two.key, two.keys = one.key, one.keys
        columns = {c for name in case["aggs"] for c in CATALOGUE[name].columns}
        if case["nan"] == "raise" and columns & {"y", "z"}:
            for name in columns & {"y", "z"}:
                one.values[name] = math.nan
            return self.stream.table(
                draw.choice([[one, two], [two, one]])
            ), sw.SpecError
        sums = "sum int" in case["aggs"] and case["min_rows"] == 0
        simple = case["closed"] == "right" and case["offset"] == 0
        if sums and simple and case["emit"] == "arrival":
            # The windows may hold any other rows.
            one.values["x"] = two.values["x"] = 2**63 - 1
            if "came" in two.values:
                two.values["came"] = one.values["came"]
            return self.stream.table([one, two]), sw.ResultOverflowError
        return None, sw.SpecError

    def _look(self) -> None:
        """Compares attributes of the windows besides their answers."""
        windows, model = self.windows, self.model
        if windows.late_count != model.late:
            text = f"{windows.late_count}, not {model.late}"
            raise DifferenceError("late_count", text)
        shown = model.watermark
        if shown is not None and pa.types.is_integer(self.plan.kind):
            if windows.watermark != shown:
                raise DifferenceError("watermark", f"{windows.watermark}, not {shown}")
        elif (windows.watermark is None) != (shown is None):
            raise DifferenceError("watermark", f"{windows.watermark}, not {shown}")
        if self.case["page"] == "real" and self.draw.random() < 0.8:
            return
        listed = windows.keys()
        found = dict(zip(_keys(listed, self.plan.by), plain(listed["t"]), strict=True))
        if len(found) != len(listed) or len(windows) != len(listed):
            raise DifferenceError("keys twice", str(listed.to_pylist()))
        held = {key: max(row.tick for row in rows) for key, rows in model.held.items()}
        if not self._surely_there() <= found.keys() <= held.keys():
            raise DifferenceError("keys", f"{found}, not {held}")
        if any(held[key] != tick for key, tick in found.items()):
            raise DifferenceError("latest times of keys", f"{found}, not {held}")

    def _collect(self) -> None:
        if not self.started:
            return
        table = self.windows.collect()
        due, self.due = self.due, []
        Comparison(self, table, due).check()


class Comparison:
    """Compares answers with those that were due."""

    def __init__(self, stage: Stage, table: pa.Table, due: list[Any]) -> None:
        self.stage, self.plan, self.case = stage, stage.plan, stage.case
        self.table, self.due = table, due
        self.results = stage.answers.columns()

    def check(self) -> None:
        """Compares names, types, rows and values."""
        self._check_names()
        got: dict[tuple[Any, ...], list[int]] = {}
        for at, name in enumerate(self._names()):
            got.setdefault(name, []).append(at)
        pairs = []
        for one, first, second in self.due:
            places = got.get(one.name)
            if places:
                pairs.append((places.pop(0), one, first, second))
            elif one.must:
                raise DifferenceError(
                    f"an answer is missing ({self.case['emit']})", f"{one}"
                )
        extra = [name for name, places in got.items() if places]
        if extra:
            kind = f"an answer too many ({self.case['emit']})"
            raise DifferenceError(kind, f"{extra[:3]}")
        self._check_values(pairs)
        self._check_order(pairs)

    def _check_names(self) -> None:
        case, names = self.case, list(self.plan.columns)
        if case["emit"] == "update":
            names = [*self.plan.by, "t"]
        elif case["emit"] == "slide":
            names = [*self.plan.by, "window_start", "window_end"]
        names += self.results
        if case["late_rows"] == "correct":
            names.append("_correction")
        if case["late_rows"] != "drop" and case["emit"] in ("final", "arrival"):
            names.append("_late")
        if case["emit"] == "slide" and len(self.table):
            wanted = self.stage.answers.type_of_ends()
            kinds = [self.table[name].type for name in ENDS]
            if kinds != [wanted, wanted]:
                raise DifferenceError("type of ends", f"{kinds}, not {wanted}")
        if self.table.column_names != names:
            raise DifferenceError("columns", f"{self.table.column_names}, not {names}")

    def _names(self) -> list[tuple[Any, ...]]:
        """The identity of each answer."""
        table, emit = self.table, self.case["emit"]
        if emit in ("final", "arrival"):
            late = [False] * len(table)
            if "_late" in table.column_names:
                late = table["_late"].to_pylist()
            return list(zip(table["id"].to_pylist(), late, strict=True))
        keys = _keys(table, self.plan.by)
        ends = ["t"] if emit == "update" else ENDS
        return list(zip(keys, *(plain(table[name]) for name in ends), strict=True))

    def _check_values(self, pairs: list[Any]) -> None:
        answers = self.stage.answers
        for name in self.results:
            agg = CATALOGUE[self._agg(name)]
            kind = answers.type_of(name)
            if pairs and kind is not None and not alike(self.table[name].type, kind):
                text = f"{name}: {self.table[name].type}, not {kind}"
                raise DifferenceError("type", text)
            values = plain(self.table[name])
            for at, one, first, second in pairs:
                for way, want in (("table", first), ("Python", second)):
                    wanted = want.get(name, UNKNOWN)
                    if wanted is UNKNOWN:
                        continue
                    self.stage.cells += way == "table"
                    if not same(values[at], wanted, agg.kind):
                        raise DifferenceError(
                            f"{self._agg(name)} ({self.case['emit']}, by {way})",
                            f"{name} of {one}: {values[at]}, not {wanted}",
                        )
        if "_correction" in self.table.column_names:
            marks = self.table["_correction"].to_pylist()
            for at, one, _, _ in pairs:
                if one.corrects is not None and bool(marks[at]) != one.corrects:
                    raise DifferenceError(
                        f"_correction ({self.case['emit']})", f"{marks[at]} of {one}"
                    )
        if self.case["emit"] in ("final", "arrival"):
            self._check_rows()

    def _agg(self, column: str) -> str:
        if self.case["windows"] in HOPPING:
            return column
        labels = [f"_{label}" for _, _, label in self.plan.spans]
        return next(column.removesuffix(x) for x in labels if column.endswith(x))

    def _check_rows(self) -> None:
        """Compares the input columns."""
        rows = pa.concat_tables(self.stage.stream.tables)
        rows = rows.take(self.table["id"].combine_chunks())
        for name, kind in self.plan.columns.items():
            if not alike(self.table[name].type, kind):
                text = f"{name}: {self.table[name].type}, not {kind}"
                raise DifferenceError("type of a column", text)
            ours, theirs = plain(self.table[name]), plain(rows[name])
            self.stage.cells += len(ours)
            for mine, its in zip(ours, theirs, strict=True):
                if not same(mine, its, "first"):
                    raise DifferenceError(f"column {name}", f"{mine}, not {its}")

    def _check_order(self, pairs: list[Any]) -> None:
        """Checks that answers at arrival are in the order of their batch."""
        if self.case["emit"] == "arrival":
            places = [at for at, one, _, _ in pairs if not one.late]
            if places != sorted(places):
                raise DifferenceError("order of a batch", f"{places}")


def _keys(table: pa.Table, by: list[str]) -> list[Key]:
    columns = [map(canonical, table[name].to_pylist()) for name in by]
    return list(zip(*columns, strict=True)) if by else [()] * len(table)


def alike(ours: pa.DataType, theirs: pa.DataType) -> bool:
    """Whether types are equal; categories may be returned as their values."""
    if pa.types.is_dictionary(theirs):
        theirs = theirs.value_type
    if pa.types.is_dictionary(ours):
        ours = ours.value_type
    return bool(ours == theirs)


def same(got: Any, want: Any, kind: str) -> bool:
    """Whether values are equal; floats up to rounding."""
    if isinstance(want, Hitters | ApproximateQuantiles):
        return bool(want == got)
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return False
        return all(same(a, b, kind) for a, b in zip(got, want, strict=True))
    if isinstance(want, dict):
        return canonical(got) == canonical(want)
    if isinstance(got, float) and isinstance(want, float):
        if math.isnan(want) or math.isinf(want):
            return got == want or (math.isnan(got) and math.isnan(want))
        return math.isclose(got, want, rel_tol=_NEAR, abs_tol=_OFF.get(kind, 0.0))
    return type(got) is type(want) and bool(got == want)
