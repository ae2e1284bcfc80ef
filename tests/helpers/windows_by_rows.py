"""Tables of random rows, and the definition of windows whose ends are rows."""

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import slidewise as sw

Rows = list[dict[str, Any]]
JOINED = sw.aggregation(
    lift=lambda x: (x,), combine=lambda a, b: a + b, lower=list, identity=()
)
AGGS = {
    "n": sw.count(),
    "all": sw.collect("x"),
    "text": sw.concat("s"),
    "sum": sw.sum("x"),
    "top": sw.max("x"),
    "mid": sw.median("x"),
    "last": sw.last("x"),
    "own": JOINED("x"),
}
BY: list[list[str]] = [[], ["k"], ["k", "g"]]
TYPES = {
    "t": pa.int64(),
    "k": pa.string(),
    "g": pa.int64(),
    "x": pa.int64(),
    "s": pa.string(),
    "f": pa.bool_(),
    "d": pa.int64(),
}


def made(rng: random.Random) -> Rows:
    """Rows in any order; `d` rises over all of them in order of time."""
    count = rng.choice([0, 1, 2, 7, 40, 300])
    span = rng.choice([4, 60, 1000])
    flags = rng.choice(
        [[None], [True], [None, False, False, True], [False] * 30 + [True]]
    )
    rows = [
        {
            "t": rng.randrange(-span, span),
            "k": rng.choice(["a", "b", None]),
            "g": rng.choice([1, 2]),
            "x": rng.choice([None, *range(9)]),
            "s": rng.choice([None, "p", "q", "r"]),
            "f": rng.choice(flags),
        }
        for _ in range(count)
    ]
    value = rng.randrange(-20, 20)
    for row in sorted(rows, key=lambda row: row["t"]):
        value += rng.choice([0, 0, 1, 1, 2, 9])
        row["d"] = value
    return rows


def as_arrow(rows: Rows) -> pa.Table:
    return pa.table(
        {name: pa.array([row[name] for row in rows], of) for name, of in TYPES.items()}
    )


def keys_of(rows: Rows, by: list[str]) -> dict[tuple[Any, ...], list[int]]:
    """The rows of each key, in order of time, then as in the table."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        found.setdefault(tuple(row[name] for name in by), []).append(at)
    return {
        key: sorted(own, key=lambda at: rows[at]["t"]) for key, own in found.items()
    }


def answers(rows: Rows, window: list[int], min_rows: int = 0) -> dict[str, Any]:
    x = [rows[at]["x"] for at in window if rows[at]["x"] is not None]
    s = [rows[at]["s"] for at in window if rows[at]["s"] is not None]
    ordered, middle = sorted(x), len(x) // 2
    found = {
        "n": len(window),
        "all": x if len(x) >= min_rows else None,
        "text": "".join(s) if s and len(s) >= min_rows else None,
    }
    some = bool(x) and len(x) >= min_rows
    return {
        **found,
        "sum": sum(x) if some else None,
        "top": max(x) if some else None,
        "mid": (ordered[middle] + ordered[~middle]) / 2 if some else None,
        "last": x[-1] if some else None,
        "own": x if some else None,
    }


def rolled(
    rows: Rows, by: list[str], window: Callable[[list[int]], list[int]], label: str
) -> Rows:
    """Each row with the answers over the rows up to it that `window` selects."""
    found: Rows = [{} for _ in rows]
    for own in keys_of(rows, by).values():
        for place, at in enumerate(own):
            named = answers(rows, window(own[: place + 1]))
            found[at] = {f"{name}_{label}": value for name, value in named.items()}
    return found


def only(table: pa.Table, label: str) -> Rows:
    """The answers of one window, of every row."""
    return table.select([f"{name}_{label}" for name in AGGS]).to_pylist()


def closed_by(rows: Rows, by: list[str], closes: Callable[[list[int]], bool]) -> Any:
    """Key and rows of each window that is closed, by key, then in order."""
    for key, own in keys_of(rows, by).items():
        window: list[int] = []
        for place, at in enumerate(own):
            window.append(at)
            if closes(own[: place + 1]):
                yield dict(zip(by, key, strict=True)), window, own[: place + 1]
                window = []
