"""Windows whose ends are rows over tables of many rows, keys and orders."""

import random
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw

# More than one batch of 2^16 rows.
ROWS = 70_000
AGGS = {
    "n": sw.count(),
    "sum": sw.sum("x"),
    "mean": sw.mean("x"),
    "top": sw.max("x"),
    "last": sw.last("x"),
}
KEYS = {"one": 1, "twenty": 20, "many": ROWS // 4, "each": ROWS}
GAP, WIDTH = 5, 9


class Readings:
    """Integers, flags of which a third is null, and `d` that rises in order of time."""

    def __init__(self, keys: int, order: str) -> None:
        draw = random.Random(f"{keys} {order}")
        flags = [True, *[False] * 20, *[None] * 10]
        times = sorted(draw.randrange(ROWS) for _ in range(ROWS))
        each = list(range(ROWS))
        if keys == ROWS:
            draw.shuffle(each)
        else:
            each = [draw.randrange(keys) for _ in each]
        steps = (draw.choice([0, 1, 3]) for _ in each)
        made = [
            {"t": time, "k": key, "x": draw.randrange(100), "f": flag, "d": d}
            for time, key, flag, d in zip(
                times, each, draw.choices(flags, k=ROWS), accumulate(steps), strict=True
            )
        ]
        if order == "shuffled":
            # Rows of equal time have `d` in the order of the table.
            draw.shuffle(made)
            for at, row in zip(
                sorted(row["d"] for row in made),
                sorted(made, key=lambda row: row["t"]),
                strict=True,
            ):
                row["d"] = at
        if order == "by key":
            made.sort(key=lambda row: row["k"])
        self.rows = made
        self.table = pa.table({name: [row[name] for row in made] for name in made[0]})

    def by_key(self) -> Iterator[list[int]]:
        """The rows of each key in order of time, by first occurrence of the key."""
        found: dict[int, list[int]] = {}
        for at, row in enumerate(self.rows):
            found.setdefault(row["k"], []).append(at)
        for own in found.values():
            yield sorted(own, key=lambda at: self.rows[at]["t"])

    def answers(self, window: list[int]) -> dict[str, Any]:
        """The results of a window that holds a row."""
        x = [self.rows[at]["x"] for at in window]
        named = {"n": len(x), "sum": sum(x), "mean": sum(x) / len(x), "top": max(x)}
        return {**named, "last": x[-1]}

    def rolled(self, kind: str) -> list[dict[str, Any]]:
        """The results of each row."""
        rows = self.rows
        found: list[dict[str, Any]] = [{} for _ in rows]
        for own in self.by_key():
            begin = 0
            for place, at in enumerate(own):
                if kind == "landmark":
                    begin = place if rows[at]["f"] else begin
                else:
                    while rows[at]["d"] - rows[own[begin]]["d"] > WIDTH:
                        begin += 1
                found[at] = self.answers(own[begin : place + 1])
        return found

    def hopped(self, kind: str) -> Iterator[dict[str, Any]]:
        """The results of each window."""
        rows = self.rows
        for own in self.by_key():
            begin = 0
            for place, at in enumerate(own):
                last = place + 1 == len(own)
                if kind == "until":
                    closes = rows[at]["f"] is True
                elif kind == "session":
                    closes = last or rows[own[place + 1]]["t"] - rows[at]["t"] > GAP
                else:
                    closes = (place + 1) % 3 == 0
                if not closes:
                    continue
                window = own[begin : place + 1]
                begin = place + 1
                start, end = rows[window[0]]["t"], rows[at]["t"]
                ends = {"window_start": start, "window_end": end}
                yield {"k": rows[at]["k"], **ends, **self.answers(window)}


@pytest.mark.long
@pytest.mark.parametrize("keys", KEYS)
def test_many_rows_are_answered_as_few(keys: str) -> None:
    """Each kind of keys in another order each day."""
    day = SEED // 1_000_000 + [*KEYS].index(keys)
    given = Readings(KEYS[keys], ["by time", "by key", "shuffled"][day % 3])
    request: dict[str, Any] = {"on": "t", "by": "k", "aggs": AGGS}
    rolled = {"landmark": sw.landmark("f"), "delta": sw.delta("d", WIDTH)}
    for kind, window in rolled.items():
        out = sw.rolling(given.table, windows=window, **request)
        expected = given.rolled(kind)
        for name in AGGS:
            wanted = [row[name] for row in expected]
            assert out[f"{name}_{window.label}"].to_pylist() == wanted, (kind, name)
    hopped = {"until": sw.until("f"), "session": sw.session(GAP), "rows": sw.rows(3)}
    for kind, closed in hopped.items():
        hops = sw.hopping(given.table, window=closed, **request)
        assert hops.to_pylist() == list(given.hopped(kind)), kind


def test_one_flag_in_many_rows_leaves_long_windows() -> None:
    given = Readings(1, "by time")
    flags = [at == ROWS - 3 or None for at in range(ROWS)]
    table = given.table.set_column(3, "f", [flags])
    request: dict[str, Any] = {"on": "t", "aggs": AGGS, "threads": 2}
    out = sw.rolling(table, windows=sw.landmark("f"), **request)
    x = table["x"].to_pylist()
    sums = [*accumulate(x[: ROWS - 3]), *accumulate(x[ROWS - 3 :])]
    assert out["sum_landmark_f"].to_pylist() == sums
    tops = [*accumulate(x[: ROWS - 3], max), *accumulate(x[ROWS - 3 :], max)]
    assert out["top_landmark_f"].to_pylist() == tops
    assert out["last_landmark_f"].to_pylist() == x
    until = sw.hopping(table, window=sw.until("f"), **request)
    assert until["n"].to_pylist() == [ROWS - 2]
    assert until["sum"].to_pylist() == [sum(x[: ROWS - 2])]
