"""One Spec and one stream of rows, and the ways to ask for the results of each row.

Each way gives the results of all rows, in order of their ids. The definition is a loop
over the rows.
"""

import datetime as dt
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import slidewise as sw
from slidewise.cli import main

LATE = dt.timedelta(seconds=30)
WINDOWS = {"10s": dt.timedelta(seconds=10), "2m": dt.timedelta(minutes=2)}
START = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
SPEC = sw.Spec(
    on="t",
    by="key",
    windows=[*WINDOWS],
    aggs={
        "n": sw.count(),
        "sum": sw.sum("x"),
        "mean": sw.mean("y"),
        "top": sw.max("y"),
        "last": sw.last("word"),
        "mid": sw.median("x"),
        "kinds": sw.count_distinct("word"),
    },
)
Rows = list[dict[str, Any]]


def batches_of(seed: int, count: int = 4, rows: int = 30) -> list[pa.Table]:
    """Batches of rows in order of arrival; none is late by more than `LATE`."""
    draw, now, found = random.Random(seed), START, []
    for batch in range(count):
        made = []
        for at in range(rows):
            now += dt.timedelta(microseconds=draw.choice([0, 700, 400_000, 3_000_000]))
            behind = dt.timedelta(seconds=draw.choice([0, 0, 5, 29]))
            row = {
                "id": batch * rows + at,
                "t": now - behind,
                "key": draw.choice(["a", "b", "c", None]),
                "x": draw.choice([None, draw.randrange(-50, 50)]),
                "y": draw.choice([draw.random(), draw.gauss(1e6, 1), 1e-9, None]),
                "word": draw.choice(["a", "bb", "ccc"]),
            }
            made.append(row)
        found.append(pa.Table.from_pylist(made, SCHEMA))
    return found


SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("t", pa.timestamp("us", "UTC")),
        ("key", pa.string()),
        ("x", pa.int64()),
        ("y", pa.float64()),
        ("word", pa.string()),
    ]
)


def results(table: Any) -> Rows:
    """The results of a table, in order of the ids of its rows."""
    found = pa.table(table).select(["id", *SPEC.results]).sort_by("id")
    rows: Rows = found.to_pylist()
    return rows


def defined(batches: list[pa.Table]) -> Rows:
    """The results by their definition; sums of floats are rounded once."""
    rows = pa.concat_tables(batches).to_pylist()
    found = []
    for row in rows:
        made = {"id": row["id"]}
        for label, length in WINDOWS.items():
            held = [
                other
                for other in rows
                if other["key"] == row["key"]
                and row["t"] - length < other["t"] <= row["t"]
            ]
            held.sort(key=lambda other: other["t"])  # stable: those of a time as given
            made |= {f"{name}_{label}": value for name, value in _answers(held).items()}
        found.append(made)
    return found


def _answers(held: Rows) -> dict[str, Any]:
    """The results over the rows of a window."""

    def known(name: str) -> list[Any]:
        return [row[name] for row in held if row[name] is not None]

    x, y, words = known("x"), known("y"), known("word")
    exact = sum(map(Fraction, y), Fraction(0))
    return {
        "n": len(held),
        "sum": sum(x) if x else None,
        "mean": float(exact) / len(y) if y else None,
        "top": max(y, default=None),
        "last": words[-1] if words else None,
        "mid": float(median(x)) if x else None,
        "kinds": len(set(words)),
    }


def table(batches: list[pa.Table], _: Path) -> Rows:
    """`rolling` over an Arrow table."""
    return results(sw.rolling(pa.concat_tables(batches), SPEC))


def pandas(batches: list[pa.Table], _: Path) -> Rows:
    """`rolling` over a pandas DataFrame with Arrow's types."""
    import pandas as pd

    frame = pa.concat_tables(batches).to_pandas(types_mapper=pd.ArrowDtype)
    return results(pa.Table.from_pandas(sw.rolling(frame, SPEC), preserve_index=False))


def polars(batches: list[pa.Table], _: Path) -> Rows:
    """`rolling` over a polars LazyFrame."""
    import polars as pl

    frame = pl.DataFrame(pl.from_arrow(pa.concat_tables(batches))).lazy()
    return results(sw.rolling(frame, SPEC).collect().to_arrow())


def duckdb(batches: list[pa.Table], folder: Path) -> Rows:
    """`rolling` over a relation of DuckDB that reads a file."""
    import duckdb as db

    path = folder / "rows.parquet"
    pq.write_table(pa.concat_tables(batches), path)
    with db.connect() as connection:
        return results(sw.rolling(connection.read_parquet(str(path)), SPEC))


def file(batches: list[pa.Table], folder: Path) -> Rows:
    """The command, over a file, with the Spec in a file."""
    pq.write_table(pa.concat_tables(batches), folder / "rows.parquet")
    (folder / "spec.json").write_text(SPEC.to_json(), "utf-8")
    paths = [str(folder / name) for name in ("rows.parquet", "answers.parquet")]
    arguments = ["rolling", paths[0], "--output", paths[1]]
    assert main.main([*arguments, "--spec", str(folder / "spec.json")]) == 0
    return results(pq.read_table(paths[1]))


def process(batches: list[pa.Table], _: Path) -> Rows:
    """`KeyedWindows`, a result per row when the watermark passes it."""
    windows = sw.KeyedWindows(SPEC, late=LATE)
    for batch in batches:
        windows.ingest(batch)
        windows.advance()
    return _ended(windows, [])


def restart(batches: list[pa.Table], _: Path) -> Rows:
    """The same, restored from a snapshot after each batch."""
    windows, found = sw.KeyedWindows(SPEC, late=LATE), []
    for batch in batches:
        windows.ingest(batch)
        windows.advance()
        found.append(windows.collect())
        windows = sw.KeyedWindows.from_bytes(windows.to_bytes())
    return _ended(windows, found)


def _ended(windows: sw.KeyedWindows, found: list[pa.Table]) -> Rows:
    windows.advance(START + dt.timedelta(days=1))
    return results(pa.concat_tables([*found, windows.collect()]))


def _keeping() -> sw.KeyedWindows:
    return sw.KeyedWindows(SPEC, late=LATE, emit="none", keep="1d")


def query(batches: list[pa.Table], _: Path) -> Rows:
    """`query` of each key at the time of each row."""
    windows, rows = _keeping(), pa.concat_tables(batches).to_pylist()
    for batch in batches:
        windows.ingest(batch)
        windows.advance()
    return [
        {"id": row["id"], **windows.query((row["key"],), at=row["t"])} for row in rows
    ]


def query_many(batches: list[pa.Table], _: Path) -> Rows:
    """`query_many` of the keys and times of all rows."""
    windows, rows = _keeping(), pa.concat_tables(batches)
    for batch in batches:
        windows.ingest(batch)
    return results(windows.query_many(rows.select(["id", "key", "t"]), at="t"))


def follower(batches: list[pa.Table], _: Path) -> Rows:
    """A follower that applies the changes of each batch."""
    leader = _keeping()
    leader.ingest(batches[0])
    follows = sw.KeyedWindows.from_bytes(leader.to_bytes())
    for batch in batches[1:]:
        leader.ingest(batch)
        leader.advance()
        follows.apply(leader.changes())
    points = pa.concat_tables(batches).select(["id", "key", "t"])
    return results(follows.query_many(points, at="t"))


def labels(batches: list[pa.Table], _: Path) -> Rows:
    """`rolling(at=)`: the rows as labels."""
    rows = pa.concat_tables(batches)
    return results(sw.rolling(rows, SPEC, at=rows.select(["id", "t", "key"])))


Way = Callable[[list[pa.Table], Path], Rows]
IN_PROCESS: list[Way] = [
    *(table, pandas, polars, duckdb, file, process, restart, query),
    *(query_many, follower, labels),
]


def name_of(way: Any) -> str:
    """The name of a way, for the ids of tests."""
    return getattr(way, "__name__", str(way))


def stored(batches: list[pa.Table]) -> Iterator[tuple[dict[Any, Any], pa.Table]]:
    """After each batch, a store of the last result per key, and the rows so far.

    The store is that of `emit="change"`: a result replaces the one of its key.
    """
    windows, store = sw.KeyedWindows(SPEC, late=LATE, emit="change"), {}
    for end, batch in enumerate(batches, 1):
        windows.ingest(batch)
        windows.advance()
        for row in windows.collect().to_pylist():
            store[row["key"]] = row
        yield store, pa.concat_tables(batches[:end])


def as_of(rows: pa.Table, store: dict[Any, Any]) -> Rows:
    """What `rolling` gives for the keys and times of a store."""
    times = [row["t"] for row in store.values()]
    kinds = pa.schema([SCHEMA.field("t"), SCHEMA.field("key")])
    points = pa.table({"t": times, "key": [*store]}, kinds)
    answers = sw.rolling(rows, SPEC, at=points).select([*SPEC.results])
    found: Rows = answers.to_pylist()
    return found


def same(found: Rows, right: Rows) -> bool:
    """Whether results are equal, to the last bit of floats."""
    return found == right and all(
        [*map(type, a.values())] == [*map(type, b.values())]
        for a, b in zip(found, right, strict=True)
    )


def split(batches: list[pa.Table]) -> bool:
    """Whether a batch has rows earlier than those of the one before."""
    ends = [(pc.min(b["t"]).as_py(), pc.max(b["t"]).as_py()) for b in batches]
    return any(later[0] < before[1] for before, later in pairwise(ends))
