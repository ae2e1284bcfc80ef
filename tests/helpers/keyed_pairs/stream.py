"""The rows of a case: late, in bursts, with ties, nulls and deletions."""

import datetime as dt
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from keyed_pairs.plan import KEYS, TYPES, Plan, canonical, of_ticks

_WORDS = ["", "a", "bb", "ccc", "ä"]
_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(eq=False, slots=True)
class Row:
    """A row of a stream.

    Attributes:
        at: Its place among all rows of the stream.
        tick: Its time.
        key: Its key in canonical form.
        keys: The values of its key columns.
        values: Its other columns.
        came: The number of its batch, and its value of `arrival=`.
        answered: Whether it was answered.
        fresh: Whether it is a late row of the present batch.
        order: Its place among the rows of its key, once known.
    """

    at: int
    tick: int
    key: tuple[Any, ...]
    keys: tuple[Any, ...]
    values: dict[str, Any]
    came: tuple[int, int] = (0, 0)
    answered: bool = False
    fresh: bool = False
    order: tuple[Any, ...] = ()

    @property
    def gone(self) -> bool:
        """Whether it deletes another row."""
        return self.values.get("gone") is True


class Stream:
    """Draws the rows of a plan.

    Attributes:
        rows: All rows drawn so far.
        tables: The same, batch by batch.
        now: The time up to which rows were drawn.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.draw = plan, plan.random
        self.now = plan.first_tick()
        self.rows: list[Row] = []
        self.tables: list[pa.Table] = []
        pool = KEYS.get(plan.case["key"], (None, []))[1]
        known = self.draw.sample(pool, min(plan.keys, len(pool)))
        pools = [known, [0, None]][: len(plan.by)]
        self.pools: list[list[Any]] = pools
        self.drawn = [name for name in plan.columns if name in TYPES]

    def batches(self) -> Iterator[list[Row]]:
        """All batches, in order."""
        for size in self.plan.batches:
            rows = [self._row() for _ in range(size)]
            if self.plan.case["deletes"]:
                rows = self._with_deletions(rows)
            self.now += self.draw.choice([0, 1, 30]) * self.plan.scale
            yield self.taken(rows)

    def taken(self, rows: list[Row]) -> list[Row]:
        """Rows as a batch of the stream."""
        for row in rows:
            row.at = len(self.rows)
            row.came = (len(self.tables), row.values.get("came", 0))
            if "id" in row.values:
                row.values["id"] = row.at
            self.rows.append(row)
        self.tables.append(self.table(rows))
        return rows

    def table(self, rows: list[Row]) -> pa.Table:
        """Rows as an Arrow table."""
        columns = {}
        for name, kind in self.plan.columns.items():
            if name == "t":
                columns[name] = of_ticks([row.tick for row in rows], kind)
            elif name in self.plan.by:
                place = self.plan.by.index(name)
                columns[name] = array_of([row.keys[place] for row in rows], kind)
            else:
                columns[name] = pa.array([row.values[name] for row in rows], kind)
        return pa.table(columns)

    def _row(self, tick: int | None = None) -> Row:
        draw, plan = self.draw, self.plan
        if tick is None:
            step = 1 + (draw.random() < 0.2)
            self.now += step if draw.random() < 1 / plan.rate else 0
            self.now += 8 if draw.random() < plan.jump else 0
            tick = self.now - draw.randrange(plan.disorder + 1)
        if pa.types.is_uint32(plan.kind):
            tick = max(tick, 0)
        keys = tuple(draw.choice(pool) for pool in self.pools)
        values = {name: self._value(name) for name in self.drawn}
        return Row(0, tick, tuple(map(canonical, keys)), keys, values)

    def _with_deletions(self, rows: list[Row]) -> list[Row]:
        draw = self.draw
        share = 0.01 if self.plan.page > 1 << 14 else 0.15
        for _ in range(len(rows)):
            if draw.random() > share:
                continue
            known = rows if draw.random() < 0.5 else self.rows[-200:]
            source = draw.choice(known) if known else rows[0]
            row = self._row(source.tick + (draw.random() < 0.1))
            others = [key for pool in self.pools[:1] for key in pool]
            first = [k for k in others if canonical(k) == source.key[0]]
            row.key = source.key
            row.keys = (draw.choice(first), *source.keys[1:]) if first else ()
            row.values["gone"] = True
            rows.insert(draw.randrange(len(rows) + 1), row)
        return rows

    def _value(self, name: str) -> Any:  # noqa: C901
        draw = self.draw
        if name == "id":
            return 0
        if name == "came":
            return draw.randrange(4)
        if name == "o":
            return draw.randrange(3)
        if name == "f":
            return draw.choice([0.0, -0.0, 1.5, math.nan, None])
        if name == "gone":
            return draw.choice([False, False, None])
        if draw.random() < 0.12:
            return None
        if name == "x":
            return draw.randrange(-50, 50)
        if name == "p":
            return draw.choice([1, -1, -1])
        if name == "y":
            nan = self.plan.case["nan"] != "raise" and draw.random() < 0.02
            number = draw.choice([draw.randrange(-99, 99) / 10, 1e6, -0.0, 0.5])
            return math.nan if nan else number
        if name == "z":
            return draw.choice([0.5, 1.0, 2.0, 1.25, 0.8])
        if name == "d":
            return Decimal(draw.randrange(-999, 999)) / 100
        if name == "u":
            return dt.timedelta(microseconds=draw.randrange(-9, 99))
        if name in ("s", "v"):
            word = draw.choice(_WORDS)
            return word if name == "s" else word.encode()
        if name == "ts":
            return _EPOCH + dt.timedelta(seconds=draw.randrange(-99, 99))
        return draw.random() < 0.5


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)
