"""Windows of every kind, over times and keys of every type: which rows they hold.

Each window collects the numbers of its rows, which are compared with those that the
words of `rolling` name.
"""

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import tables_oracle
from seeds import SEED

import slidewise as sw

# The type of times, and the ticks where they begin.
TIMES: list[tuple[pa.DataType, list[int]]] = [
    (pa.int64(), [0, -50, 2**63 - 150, -(2**63)]),
    (pa.int8(), [-40]),
    (pa.uint32(), [0, 2**32 - 150]),
    (pa.date32(), [-30, 19_000]),
    *(
        (pa.timestamp(unit, zone), [-30, 1_700_000_000])
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "Europe/Berlin", "+05:30")
    ),
]
WORDS = ["a", "", "bb", "ä", None]
KEYS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), WORDS),
    (pa.large_string(), WORDS),
    (pa.string_view(), WORDS),
    (pa.dictionary(pa.int32(), pa.string()), WORDS),
    (pa.dictionary(pa.int8(), pa.large_string()), WORDS),
    (pa.bool_(), [True, False, None]),
    (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-1.50"), None]),
    (pa.timestamp("ms", "UTC"), [0, 1, None]),
    (pa.duration("s"), [0, 1, None]),
    (pa.null(), [None]),
    (
        pa.struct([("a", pa.string_view()), ("b", pa.int8())]),
        [{"a": "x", "b": 1}, {"a": "x", "b": None}, {"a": None, "b": None}, None],
    ),
    (pa.large_list(pa.string()), [["a"], ["a", ""], ["a", None], [], None]),
    (pa.list_(pa.bool_(), 2), [[True, False], [None, None], None]),
]
# A column for delta: its type, what makes its values of numbers, and a width of 5.
RISING: list[tuple[pa.DataType, Any, Any]] = [
    (pa.int64(), int, 5),
    (pa.uint64(), int, 5),
    (pa.float64(), lambda x: x / 2, 2.5),
    (pa.decimal128(12, 1), lambda x: Decimal(x).scaleb(-1), Decimal("0.5")),
    (pa.duration("ms"), int, "5ms"),
    (pa.timestamp("ns", "UTC"), int, "5ns"),
]


def of_ticks(ticks: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date32(kind):
        return pa.array(ticks, pa.int32()).cast(kind)
    is_time = pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
    if pa.types.is_dictionary(kind):
        return pa.array(ticks, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(ticks, pa.int64()).cast(kind) if is_time else pa.array(ticks, kind)


def length(amount: int, kind: pa.DataType) -> int | str:
    if pa.types.is_integer(kind):
        return amount
    return f"{amount}d" if pa.types.is_date32(kind) else f"{amount}{kind.unit}"


class Case:
    """A table, a call, and what each of its windows holds."""

    def __init__(self, rng: random.Random) -> None:
        count = rng.choice([0, 1, 2, 9, 40])
        self.kind, begins = rng.choice(TIMES)
        begin, span = rng.choice(begins), rng.choice([4, 30, 100])
        self.ticks = [begin + rng.randrange(span) for _ in range(count)]
        columns = {
            "t": of_ticks(self.ticks, self.kind),
            "id": pa.array(range(count), pa.int64()),
        }
        self.by, keys = ["k", "k2"][: rng.choice([0, 1, 1, 2])], []
        for name in self.by:
            of, values = rng.choice(KEYS)
            keys.append([rng.choice(values) for _ in range(count)])
            columns[name] = of_ticks(keys[-1], of)
        self.keys = list(zip(*keys, strict=True)) if keys else [()] * count
        self.flags = [rng.choice([True, False, None, None]) for _ in range(count)]
        self.came = [rng.choice(range(9)) for _ in range(count)]
        of, make, self.width = rng.choice(RISING)
        self.rising, number = [0] * count, rng.randrange(20)
        for at in sorted(range(count), key=lambda at: (self.ticks[at], at)):
            number += rng.choice([0, 0, 1, 2, 7])
            self.rising[at] = number
        columns["up"] = of_ticks([make(one) for one in self.rising], of)
        columns["flag"] = pa.array(self.flags, pa.bool_())
        columns["came"] = pa.array(self.came, pa.int64())
        self.table = pa.table(columns)
        self.window = rng.choice([1, 5, 40, sw.rows(1), sw.rows(3), "flag", "up"])
        self.options: dict[str, Any] = {}
        if isinstance(self.window, int):
            self.options["closed"] = rng.choice(["right", "left", "both", "neither"])
        if self.options.get("closed", "right") in ("right", "both"):
            self.options["ties"] = rng.choice(["peers", "rows"])
        if not isinstance(self.window, str) and rng.random() < 0.4:
            self.options["arrival"] = "came"

    @property
    def windows(self) -> Any:
        if isinstance(self.window, int):
            return length(self.window, self.kind)
        named = {"flag": sw.landmark("flag"), "up": sw.delta("up", self.width)}
        return named[self.window] if isinstance(self.window, str) else self.window

    def wanted(self) -> list[list[int]]:
        """The rows of each row's window, in order."""
        if isinstance(self.window, str):
            return [self._since(row) for row in range(len(self.ticks))]
        options = {**self.options, "keys": self.keys}
        if "arrival" in options:
            options["arrival"] = self.came
        return tables_oracle.windows(self.ticks, self.window, **options)

    def _since(self, row: int) -> list[int]:
        held = [
            other
            for other, key in enumerate(self.keys)
            if key == self.keys[row]
            and (self.ticks[other], other) <= (self.ticks[row], row)
        ]
        held.sort(key=lambda other: (self.ticks[other], other))
        begin = len(held) - 1
        if self.window == "up":
            while begin and self.rising[row] - self.rising[held[begin - 1]] <= 5:
                begin -= 1
        else:
            while begin and self.flags[held[begin]] is not True:
                begin -= 1
        return held[begin:]


def test_windows_hold_the_rows_that_they_should() -> None:
    for seed in range(SEED, SEED + 80):
        case = Case(random.Random(seed))
        out = sw.rolling(
            case.table,
            on="t",
            by=case.by,
            windows=case.windows,
            aggs={"rows": sw.collect("id")},
            **case.options,
        )
        assert out.columns[-1].to_pylist() == case.wanted(), seed
        if "arrival" in case.options:  # equal arrivals see one another at labels, too
            labels = case.table.select(["t", "came", *case.by])
            at = sw.rolling(
                case.table,
                at=labels,
                on="t",
                by=case.by,
                windows=case.windows,
                aggs={"rows": sw.collect("id")},
                **case.options,
            )
            assert at.columns[-1].equals(out.columns[-1]), seed
