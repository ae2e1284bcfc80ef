"""The plan of a case: the request of a stream, and the arrival of its rows."""

import datetime as dt
import math
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

import slidewise as sw
from keyed_pairs.factors import (
    BY_ROWS,
    CATALOGUE,
    HOPPING,
    LANDMARKS,
    ROLLING,
    Case,
    is_heavy,
)

_ZONE = "Europe/Berlin"
_WORDS = ["", "a", "bb", "ccc", "ä"]
_NANS = [math.nan, -math.nan]
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [1, -1, None, 2**62]),
    "string": (pa.string(), ["a", "", None, "bb"]),
    "float": (pa.float64(), [0.0, -0.0, *_NANS, None, 1.5]),
    "category": (pa.dictionary(pa.int32(), pa.string()), ["a", "", None, "bb"]),
    "two": (pa.string(), ["a", None]),
    "bool": (pa.bool_(), [True, False, None]),
    "date": (pa.date32(), [dt.date(1969, 12, 31), None, dt.date(2024, 1, 1)]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.50"), None, Decimal("-1.50")]),
    "binary": (pa.binary(), [b"a", b"", None, b"\0"]),
    "struct": (
        pa.struct([("a", pa.float64()), ("b", pa.list_(pa.string()))]),
        [
            {"a": 0.0, "b": ["x", None]},
            {"a": -0.0, "b": ["x", None]},
            {"a": _NANS[0], "b": []},
            {"a": _NANS[1], "b": []},
            {"a": None, "b": None},
            None,
        ],
    ),
    "list": (pa.list_(pa.int32()), [[1, 2], [1], [None], [], None]),
}
_THEN = {"none": [], "int": ["o"], "float": ["f"], "two": ["f", "o"]}
_PAGES = {"small": 96, "medium": 2048, "real": 1 << 15}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "x": pa.int64(),
    "p": pa.int64(),
    "y": pa.float64(),
    "z": pa.float64(),
    "d": pa.decimal128(12, 2),
    "u": pa.duration("us"),
    "s": pa.string(),
    "v": pa.binary(),
    "b": pa.bool_(),
    "w": pa.bool_(),
    "ts": pa.timestamp("us"),
    "o": pa.int64(),
    "f": pa.float64(),
    "came": pa.int32(),
    "gone": pa.bool_(),
}


class Plan:
    """A case with its random draws.

    Attributes:
        case: The choices.
        random: Draws the values that the case leaves open.
        request: The keywords of `rolling` or `hopping`.
        options: The other keywords of `KeyedWindows`.
        kind: The type of times.
        by: The key columns.
        then_by: Those that order rows of equal time.
        columns: All columns with their types.
        spans: Per window its kind ("time" or "rows"), length, and label.
        grid: Length, distance and offset of hops; a session's distance is 0, as is that
            of windows that rows end.
        late: In ticks.
        offset: In ticks, of rolling windows.
        reach: How far the longest window of time reaches back.
        batches: The number of rows of each batch.
        rate: The number of rows per tick.
        disorder: The most ticks by which a row is late.
        scale: By how much windows are longer than in the factor.
    """

    def __init__(self, case: Case, name: str) -> None:
        self.case = case
        self.random = Random(name)
        self.page = _PAGES[case["page"]]
        self.kind = _time_type(case["time"])
        self.by = [] if case["key"] == "none" else ["k"]
        self.by += ["k2"] if case["key"] == "two" else []
        self.then_by = _THEN[case["then_by"]]
        self.columns = self._columns()
        self.scale, self.late, self.offset = 1, case["late"], 0
        self._sizes()
        self.late *= self.scale
        self.spans: list[tuple[str, int, str]] = []
        self.grid = (0, 0, 0)
        self.request: dict[str, Any] = {"on": "t", "by": self.by, "nan": case["nan"]}
        self.request["aggs"] = {name: CATALOGUE[name] for name in case["aggs"]}
        self.request["min_rows"] = case["min_rows"]
        if case["windows"] in HOPPING:
            self._hopping()
        else:
            self._rolling()
        self.reach = self.grid[0]
        times = [length for kind, length, _ in self.spans if kind == "time"]
        self.reach = max([self.reach, *(length + self.offset for length in times)])
        self.options: dict[str, Any] = {
            "emit": case["emit"],
            "late": self.length(self.late),
            "late_rows": case["late_rows"],
            "then_by": self.then_by or None,
            "deletes": "gone" if case["deletes"] else None,
        }

    def _columns(self) -> dict[str, pa.DataType]:
        kinds = {"id": TYPES["id"], "t": self.kind}
        if self.by:
            kinds["k"] = KEYS[self.case["key"]][0]
        if len(self.by) > 1:
            kinds["k2"] = pa.int32()
        names = [*self.then_by, *(["came"] if self.case["arrival"] else [])]
        names += ["gone"] if self.case["deletes"] else []
        names += ["b"] if self.case["windows"] in ("until", *LANDMARKS) else []
        for agg in self.case["aggs"]:
            names += [name for name in CATALOGUE[agg].columns if name != "t"]
        return kinds | {name: TYPES[name] for name in dict.fromkeys(names)}

    def _sizes(self) -> None:
        draw, case = self.random, self.case
        self.keys = draw.choice([1, 3, 9])
        self.rate, self.disorder, self.jump = 1.5, draw.choice([0, 5, 25]), 0.0
        many, few, one = [draw.randrange(9) for _ in range(9)], [], [45, 10]
        few = [draw.randrange(10, 25) for _ in range(4)]
        if case["page"] == "real":
            self.keys = draw.choice([1, 2])
            rows, self.jump = draw.choice([5500, 7000]), 0.002
            per_row = case["emit"] in ("final", "arrival") and is_heavy(case)
            self.rate = 1 if per_row else draw.choice([1, 8, 100, 1500])
            ticks = rows / self.rate
            share = draw.choice([0.05, 0.5, 0.9])
            self.scale = 1 if per_row else max(1, int(ticks * share / 40))
            self.disorder = draw.choice([0, int(ticks / 100), int(ticks / 4)])
            many = [rows // 2, *[rows // 12] * 6]
            few, one = [rows // 3] * 3, [rows, 20]
        self.batches = {"many": many, "few": few, "one": one}[case["batches"]]

    def _hopping(self) -> None:
        case, request = self.case, self.request
        length, every = HOPPING[case["windows"]]
        if case["windows"] == "session":
            self.grid = (length, 0, 0)
            request["window"] = sw.session(self.length(length))
            return
        if case["windows"] in BY_ROWS:
            self._hopping_by_rows(length, every)
            return
        offset = case["offset"] * self.scale
        self.grid = (length * self.scale, every * self.scale, offset)
        request["window"] = self.length(self.grid[0])
        request["every"] = self.length(self.grid[1])
        request |= {"empty": case["empty"], "closed": case["closed"]}
        if offset:
            request["offset"] = self.length(offset)

    def _hopping_by_rows(self, length: int, every: int) -> None:
        if self.case["windows"] == "until":
            self.request["window"] = sw.until("b")
            return
        self.request |= {"window": sw.rows(length), "every": sw.rows(every)}
        if self.case["windows"] == "range by rows":
            self.grid = (length * self.scale, 0, 0)
            self.request["window"] = self.length(self.grid[0])

    def _rolling(self) -> None:
        case, request = self.case, self.request
        lengths: list[Any] = []
        for kind, length in ROLLING[case["windows"]]:
            if kind == "landmark":
                lengths.append(sw.landmark("b"))
                label = "landmark_b"
            elif kind == "rows":
                if case["page"] == "real" and not is_heavy(case):
                    length *= self.random.choice([1, 100])
                lengths.append(sw.rows(length))
                label = f"{length}rows"
            else:
                length *= self.scale
                lengths.append(self.length(length))
                label = str(lengths[-1])
            self.spans.append((kind, length, label))
        request |= {"windows": lengths, "closed": case["closed"], "ties": case["ties"]}
        request["arrival"] = "came" if case["arrival"] else None
        if case["offset"]:
            self.offset = case["offset"] * self.scale
            request["offset"] = self.length(self.offset)

    def length(self, ticks: int) -> int | str:
        """A length of time as `windows=` takes it."""
        if pa.types.is_integer(self.kind):
            return ticks
        unit = "d" if pa.types.is_date32(self.kind) else self.kind.unit
        return f"{ticks}{unit}"

    def time(self, tick: int) -> Any:
        """A time as `advance` takes it."""
        if pa.types.is_integer(self.kind):
            return tick
        return of_ticks([tick], self.kind)[0]

    def first_tick(self) -> int:
        """The first time of the stream."""
        kind = self.kind
        if pa.types.is_uint32(kind):
            return 5
        if pa.types.is_date32(kind):
            return self.random.choice([-15, 19_000])
        if pa.types.is_integer(kind):
            return self.random.choice([-30, 0, -(10**12), 10**12])
        now = 1_700_000_000 * _PER_SECOND[kind.unit]
        return self.random.choice([-30, 0, now])


def _time_type(name: str) -> pa.DataType:
    """The type of a time column, as the factor calls it."""
    if name in ("int64", "uint32", "date32"):
        return pa.type_for_alias(name)
    unit, _, zone = name.partition(" ")
    return pa.timestamp(unit, _ZONE if zone else None)


def of_ticks(ticks: list[int], kind: pa.DataType) -> pa.Array:
    """Times from their numbers."""
    if pa.types.is_date32(kind):
        return pa.array(ticks, pa.int32()).cast(kind)
    return pa.array(ticks, pa.int64()).cast(kind)


def plain(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column, times as their numbers."""
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        column = column.cast(pa.int64())
    return column.to_pylist()


def canonical(value: Any) -> Any:
    """The canonical form of a key: all NaNs are one key, and both zeros."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple((name, canonical(held)) for name, held in value.items())
    return tuple(map(canonical, value)) if isinstance(value, list) else value
