"""Keyed streams on Spark beside an operator that does nothing.

The same stream with each `emit`, and with an operator without a shard, by turns in
rotating order: 500,000 rows per micro-batch over 50,000 keys, windows of 1 h and 24 h,
of each count, sum and max. The operator that does nothing bounds what any other can
reach: it reads, packs rows by bucket, and reads and writes one state. The goals are
parts of its rate.

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

from bench.measure import machine
from bench.spark_stream import AGGS, CONFIG, WARM, WINDOWS, many_keys, run
from pyspark.sql import Row

from slidewise.spark import rolling, session, stream
from slidewise.spark.arrow_ipc import read_ipc
from slidewise.spark.checkpoint_guard import GUARD_BUCKET
from slidewise.spark.operator import METRICS, OUTPUT, Operator

IDLE = "nothing"
GOALS = {"update": 0.70, "arrival": 0.60, "final": 0.55}


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
        read = sum(read_ipc(bytes(row.payload)).num_rows for row in rows)
        self._head.get()
        self._head.update((b"{}",))
        counts = dict.fromkeys(METRICS, 0) | {"rows": read, "seconds": 0.0}
        yield Row(*OUTPUT.names)(None, *(counts[name] for name in METRICS))


def answers_of(frame: Any, mode: str) -> Any:
    """The streaming DataFrame of results with an `emit`, or with `Idle`."""
    operator = stream.Operator
    stream.Operator = Idle if mode == IDLE else operator  # type: ignore[misc]
    emit = "update" if mode == IDLE else mode
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
    facts = {**machine(), "load": f"{os.getloadavg()[0]:.1f}"}
    for name, value in facts.items():
        print(f"{name:<10} {value}")
    spark = session("bench", master="local[2]", config=CONFIG)
    modes = [IDLE, *GOALS]
    rates: dict[str, list[int]] = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = options.batches + WARM
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
    for emit, goal in GOALS.items():
        print(f"{emit:<8} {parts[emit]:.2f} of the rate of nothing; goal {goal:.2f}")
    if options.json is not None:
        figures = {"rows_per_s": rates, "medians": medians, "parts": parts}
        record = {"machine": facts, "figures": figures}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
