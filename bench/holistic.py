"""Rolling functions without a cheap inverse: slidewise compared with its peers.

Millions of rows per second and core, CPU time of the process, the faster of two calls
on one thread; windows of about 100, 10,000 and 1,000,000 rows.

    pip install -r bench/requirements-peers.txt    # in an environment with slidewise
    taskset -c 0 python -m bench.holistic [--rows 4000000] [--out FILE.md]
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from bench.peers import versions

import slidewise as sw

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOWS = (100, 10_000, 1_000_000)


def main() -> None:
    """Measures, and writes the table."""
    parser = argparse.ArgumentParser(description="Rolling functions beside peers.")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--peer-rows", type=int, help="fewer for the peers")
    parser.add_argument("--out", type=Path)
    parser.add_argument("filter", nargs="?", default="")
    options = parser.parse_args()
    data = Data(options.rows)
    lines = [
        *_head(options.rows),
        "| function | | 100 | 10k | 1M |",
        "|---|---|---|---|---|",
    ]
    for function, name, make, limits in cases():
        if options.filter not in f"{function} {name}":
            continue
        most = None if name == "slidewise" else options.peer_rows
        cells = [
            _one_window(data, function, name, window)
            if limits.get(window) == 0
            else _measured(data, make, window, limits, most)
            for window in WINDOWS
        ]
        lines.append(f"| {function} | {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Data:
    """One series, Poisson arrivals a microsecond apart, as each library holds it."""

    def __init__(self, rows: int) -> None:
        draw = np.random.default_rng(42)
        self.times = np.cumsum(draw.exponential(1_000, rows)).astype(np.int64)
        self.v = draw.normal(100, 15, rows)
        self.d = draw.integers(0, 1_000, rows)
        words = np.array([f"word {number:05}" for number in range(5_000)])
        self.words = words[draw.integers(0, 5_000, rows)]

    def first(self, rows: int) -> Data:
        """The same with fewer rows."""
        few = object.__new__(Data)
        for name, values in vars(self).items():
            setattr(few, name, values[:rows])
        return few

    @property
    def arrow(self) -> pa.Table:
        columns = {"t": self.times, "v": self.v, "d": self.d}
        return pa.table({**columns, "s": pa.array(self.words)})

    @property
    def pandas(self) -> pd.DataFrame:
        index = pd.to_datetime(self.times, unit="ns")
        return pd.DataFrame({"v": self.v, "d": self.d}, index=index)

    @property
    def polars(self) -> pl.DataFrame:
        times = self.times.view("datetime64[ns]")
        return pl.DataFrame({"t": times, "v": self.v, "d": self.d})


Timed = tuple[Any, "Callable[[], object]"]


def ours(agg: sw.Aggregation) -> Callable[[Data, int], Timed]:
    """`slidewise.rolling`."""

    def make(data: Data, window: int) -> Timed:
        table = data.arrow
        return table, lambda: sw.rolling(
            table, on="t", windows=window * 1_000, aggs={"a": agg}
        )

    return make


def in_pandas(call: Callable[[Any], object], column: str = "v") -> Any:
    """A rolling window of pandas."""

    def make(data: Data, window: int) -> Timed:
        frame = data.pandas
        return frame, lambda: call(frame[column].rolling(f"{window}us"))

    return make


def in_polars(expression: Callable[[str], pl.Expr]) -> Any:
    """An expression of polars, by `rolling_*_by`."""

    def make(data: Data, window: int) -> Timed:
        frame = data.polars
        return frame, lambda: frame.select(expression(f"{window}us"))

    return make


def in_polars_frames(expression: pl.Expr) -> Any:
    """An expression of polars over `rolling` frames."""

    def make(data: Data, window: int) -> Timed:
        frame = data.polars.set_sorted("t")
        rolling = frame.rolling("t", period=f"{window}us")
        return frame, lambda: rolling.agg(expression)

    return make


def in_duckdb(call: str) -> Any:
    """A window of SQL."""

    def make(data: Data, window: int) -> Timed:
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        connection.register("data", data.arrow)
        frame = f"RANGE BETWEEN {window * 1_000 - 1} PRECEDING AND CURRENT ROW"
        sql = f"SELECT {call} OVER (ORDER BY t {frame}) AS a FROM data"
        return connection, lambda: connection.sql(sql).to_arrow_table()

    return make


def in_bottleneck(name: str) -> Any:
    """By count: without times."""

    def make(data: Data, window: int) -> Timed:
        import bottleneck

        move = getattr(bottleneck, name)
        return data, lambda: move(data.v, min(window, len(data.v)), 1)

    return make


def cases() -> list[tuple[str, str, Any, dict[int, int]]]:
    """Function, library, the call to time, and the largest number of rows by window."""
    slow = dict.fromkeys(WINDOWS, 400_000)
    own = sw.aggregation(combine=lambda a, b: a if a >= b else b, identity=None)
    largest = sw.native(lambda a, b: a if a >= b else b, "float64")
    python = dict.fromkeys(WINDOWS, 200_000)
    argmax = pl.col("v").arg_max()
    return [
        ("median", "slidewise", ours(sw.median("v")), {}),
        ("", "pandas", in_pandas(lambda r: r.median()), {}),
        ("", "polars", in_polars(lambda w: pl.col("v").rolling_median_by("t", w)), {}),
        ("", "DuckDB", in_duckdb("median(v)"), slow),
        ("", "bottleneck, by count", in_bottleneck("move_median"), {}),
        ("quantile 0.9", "slidewise", ours(sw.quantile("v", 0.9)), {}),
        ("", "pandas", in_pandas(lambda r: r.quantile(0.9)), {}),
        (
            "",
            "polars",
            in_polars(lambda w: pl.col("v").rolling_quantile_by("t", w, quantile=0.9)),
            {},
        ),
        ("", "DuckDB", in_duckdb("quantile_cont(v, 0.9)"), slow),
        ("distinct, 1,000 values", "slidewise", ours(sw.count_distinct("d")), {}),
        ("", "pandas", in_pandas(lambda r: r.nunique(), "d"), {}),
        (
            "",
            "polars",
            in_polars_frames(pl.col("d").n_unique()),
            {10_000: 30_000, 1_000_000: 0},
        ),
        ("", "DuckDB", in_duckdb("count(DISTINCT d)"), slow),
        ("distinct, all different", "slidewise", ours(sw.count_distinct("v")), {}),
        ("", "pandas", in_pandas(lambda r: r.nunique()), {}),
        ("distinct, estimated", "slidewise", ours(sw.approx_count_distinct("v")), {}),
        ("", "DuckDB", in_duckdb("approx_count_distinct(v)"), slow),
        ("mode, 1,000 values", "slidewise", ours(sw.mode("d")), {}),
        ("", "DuckDB", in_duckdb("mode(d)"), slow),
        ("arg_max", "slidewise", ours(sw.arg_max("d", by="v")), {}),
        ("", "polars", in_polars_frames(argmax), {1_000_000: 400_000}),
        ("", "DuckDB", in_duckdb("arg_max(d, v)"), slow),
        ("stddev", "slidewise", ours(sw.stddev("v")), {}),
        ("", "pandas", in_pandas(lambda r: r.std()), {}),
        ("", "polars", in_polars(lambda w: pl.col("v").rolling_std_by("t", w)), {}),
        ("", "DuckDB", in_duckdb("stddev_samp(v)"), slow),
        ("geometric mean", "slidewise", ours(sw.geometric_mean("v")), {}),
        ("", "DuckDB", in_duckdb("geomean(v)"), slow),
        ("max of text", "slidewise", ours(sw.max("s")), {}),
        ("", "DuckDB", in_duckdb("max(s)"), slow),
        ("one's own, in Python", "slidewise", ours(own("v")), python),
        (
            "",
            "pandas apply",
            in_pandas(lambda r: r.apply(max_of, raw=True)),
            {100: 200_000, 10_000: 20_000, 1_000_000: 0},
        ),
        ("one's own, by Numba", "slidewise", ours(largest("v")), {}),
        (
            "",
            "pandas apply, by Numba",
            in_pandas(lambda r: r.apply(max_of, raw=True, engine="numba")),
            {100: 4_000_000, 10_000: 200_000, 1_000_000: 0},
        ),
    ]


def max_of(values: Any) -> Any:
    """Applies a user's function to a window of pandas."""
    best = values[0]
    for value in values:
        best = best if best >= value else value
    return best


def _one_window(data: Data, function: str, name: str, window: int) -> str:
    """Times one window for libraries that compute every window anew."""
    values = data.v[:window]
    if name == "polars":
        column = pl.Series(data.d[:window])
        call: Any = column.n_unique
    elif "Numba" in name:
        import numba

        call = partial(numba.njit(max_of), values)
    elif name == "pandas apply":
        call = partial(max_of, values)
    else:
        raise ValueError(f"no single window of {function}, {name}")
    call()
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return f"{1e-6 / best:.2g}†"


def _measured(
    data: Data, make: Any, window: int, limits: dict[int, int], most: int | None
) -> str:
    rows = min(limits.get(window, len(data.times)), most or len(data.times))
    kept, call = make(data.first(rows), window)
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
        if best > 20:
            break
    del kept
    rate = rows / best / 1e6
    return f"{rate:.3g}" + ("*" if rows < min(window * 3, len(data.times)) else "")


def _head(rows: int) -> list[str]:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return [
        "# Functions without a cheap inverse, compared with other libraries",
        "",
        f"{time.strftime('%Y-%m-%d')}, commit {done.stdout.strip() or 'unknown'},",
        f"{_processor()}, Python {platform.python_version()}; {versions()}.",
        "",
        "Millions of rows per second of CPU time, one thread, the faster of two calls",
        f"of `python -m bench.holistic`, {rows:,} rows (peers fewer). A star:",
        "mostly ramp-up, because there are less rows than three windows. By count",
        "means without times. A dagger: the work per row grows with the window, so a",
        "single window was computed, again and again, as for each row of a long table.",
        "",
    ]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text(encoding="utf-8").splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
