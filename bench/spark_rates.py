"""Keyed streams on Spark beside operators without a shard.

The same stream with each `emit`, and with operators that have no shard, by turns in
rotating order: 500,000 rows per micro-batch over 50,000 keys, windows of 1 h and 24 h,
of each count, sum and max. The goals are parts of the rate of "nothing".

- `nothing` reads and packs rows by bucket, reads and writes one state of some bytes,
  and returns no rows.
- `rows out` and `keys out` do the same, and return a result per row and per key that
  was made before: as many, and of the same columns, as with "arrival" and "final", and
  with "update". They bound what these can reach: what Spark takes for its output.

    python -m bench.spark_rates --turns 4 --json record.json
"""

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bench.measure import machine
from bench.spark_stream import AGGS, CONFIG, WARM_UP_BATCHES, WINDOWS, many_keys, run

from slidewise.spark import rolling, session, stream
from slidewise.spark.arrow_ipc import read_ipc
from slidewise.spark.checkpoint_guard import GUARD_BUCKET
from slidewise.spark.operator import METRICS, Operator, output_rows

GOALS = {"update": 0.70, "arrival": 0.60, "final": 0.55}
IDLE = "nothing"
# Operators without a shard, with the `emit` whose columns they return.
IDLE_EMITS = {IDLE: "update", "keys out": "update", "rows out": "final"}
# Per `emit`, the one that returns the same.
OUTPUTS = {"update": "keys out", "arrival": "rows out", "final": "rows out"}


class Idle(Operator):
    """The operator without its shard: rows are read, and the head read and written."""

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Any,
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Any]:
        """Reads the payloads, reads and writes one state, and returns the counts."""
        if key[0] == GUARD_BUCKET:
            yield from super().handleInputRows(key, rows, timerValues)
            return
        tables = [read_ipc(bytes(row.payload)) for row in rows]
        self.head.get()
        self.head.update((b"{}",))
        read = sum(map(len, tables))
        counts = dict.fromkeys(METRICS, 0) | {"rows": read, "seconds": 0.0}
        yield from output_rows(self.results(tables), counts)

    def results(self, _tables: list[pa.Table]) -> list[pa.Table]:
        """No results."""
        return []


class RowsOut(Idle):
    """Returns a result for each row."""

    def results(self, tables: list[pa.Table]) -> list[pa.Table]:
        """As many results as rows."""
        return [made(self.query.output, sum(map(len, tables)))]


class KeysOut(Idle):
    """Returns a result for each key."""

    rows_per_key = 10

    def results(self, tables: list[pa.Table]) -> list[pa.Table]:
        """As many results as there are keys of so many rows."""
        return [made(self.query.output, sum(map(len, tables)) // self.rows_per_key)]


OPERATORS = {IDLE: Idle, "keys out": KeysOut, "rows out": RowsOut}


def made(schema: pa.Schema, count: int) -> pa.Table:
    """So many rows of some columns of numbers and times."""
    numbers = pa.array(np.arange(count))
    return pa.table([numbers.cast(kind) for kind in schema.types], schema=schema)


def answers_of(frame: Any, mode: str) -> Any:
    """The streaming DataFrame of results with an `emit`, or without a shard."""
    operator = stream.Operator
    stream.Operator = OPERATORS.get(mode, operator)  # type: ignore[misc]
    emit = IDLE_EMITS.get(mode, mode)
    query: dict[str, Any] = {"on": "ts", "by": "k", "aggs": AGGS, "late": "10m"}
    try:
        return rolling(frame, windows=WINDOWS, emit=emit, **query)
    finally:
        stream.Operator = operator  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=8, help="counted ones")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    environment = {**machine(), "load": f"{os.getloadavg()[0]:.1f}"}
    for name, value in environment.items():
        print(f"{name:<10} {value}")
    spark = session("bench", master="local[2]", config=CONFIG)
    KeysOut.rows_per_key = options.rows // options.keys
    modes = [*IDLE_EMITS, *GOALS]
    rates: dict[str, list[int]] = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = options.batches + WARM_UP_BATCHES
        source = many_keys(folder / "keys", count, options.rows, options.keys)
        for turn in range(options.turns):
            first = turn % len(modes)
            for mode in [*modes[first:], *modes[:first]]:
                answers = answers_of(source.stream(spark), mode)
                figure = run(answers, folder, f"{mode}-{turn}")
                rates[mode].append(figure["rows_per_s"])
                print(f"turn {turn} {mode:<8} {figure['rows_per_s']:>10,}", flush=True)
    spark.stop()
    medians = {mode: statistics.median(of) for mode, of in rates.items()}
    parts = {emit: round(medians[emit] / medians[IDLE], 3) for emit in GOALS}
    bounds = {emit: round(medians[OUTPUTS[emit]] / medians[IDLE], 3) for emit in GOALS}
    for emit, goal in GOALS.items():
        print(
            f"{emit:<8} {parts[emit]:.2f} of the rate of nothing; goal {goal:.2f}; "
            f"{OUTPUTS[emit]} {bounds[emit]:.2f}"
        )
    if options.json is not None:
        figures = {"rows_per_s": rates, "medians": medians, "parts": parts}
        figures["bounds"] = bounds
        record = {"machine": environment, "figures": figures}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
