"""The cases of `bench.rolling_peers`, and the call of each library for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import slidewise as sw

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CASES", "PEERS", "Case", "Data", "Peer"]

Call = "Callable[[], Any]"
ALL = ("100", "10k", "1M")
LENGTHS = ("100ms", "1s", "10s", "100s")
ROWS_OF = {
    "100ms": 100,
    "1s": 1_000,
    "10s": 10_000,
    "100s": 100_000,
    "1000s": 1_000_000,
}
SECONDS = {"100ms": 0.1, "1s": 1.0, "10s": 10.0, "100s": 100.0, "1000s": 1000.0}


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table.

    Attributes:
        name: Its name in the table.
        key: Its name in `Peer.can`.
        goal: M rows/s, or a multiple of the best peer.
        windows: The windows, of three, for which it is measured.
    """

    name: str
    key: str
    goal: str
    windows: tuple[str, ...] = ALL


CASES = [
    Case("sum of int64", "sum i", "200"),
    Case("mean of int64", "mean i", "200"),
    Case("sum of float64", "sum f", "120"),
    Case("mean of float64", "mean f", "120"),
    Case("max of float64", "max f", "200"),
    Case("min of int64", "min i", "200"),
    Case("stddev of float64", "std f", "100"),
    Case("count", "count f", "200"),
    Case("first", "first f", "200"),
    Case("last", "last f", "200"),
    Case("sum, max and stddev", "three f", "80"),
    Case("1,000 keys, sum", "keys", "50"),
    Case("four lengths × three", "lengths", "3 × best", ("10k",)),
    Case("quantile 0.9", "quantile f", "8 / 6 / 4"),
    Case("distinct, 1,000 values", "distinct i", "15"),
    Case("hopping, 10 per window", "hops 10", "100"),
    Case("hopping, 1,440 per window", "hops 1440", "100", ("10k", "1M")),
]


class Data:
    """Rows at Poisson times, as each library holds them."""

    def __init__(self, count: int) -> None:
        draw = np.random.default_rng(42)
        self.count = count
        gaps = draw.exponential(1e6, count)
        self.times = np.cumsum(gaps).astype(np.int64).view("datetime64[ns]")
        self.floats = draw.normal(100, 15, count)
        self.integers = draw.integers(0, 1000, count)
        self.keys = draw.integers(0, 1000, count)

    def values(self, key: str) -> Any:
        """The column of a case."""
        return self.integers if key.endswith(" i") else self.floats

    @cached_property
    def table(self) -> pa.Table:
        """For slidewise and DuckDB."""
        return pa.table(
            {"t": self.times, "f": self.floats, "i": self.integers, "k": self.keys}
        )


@dataclass(frozen=True, slots=True)
class Peer:
    """A library.

    Attributes:
        name: Its name.
        can: The cases that it has.
        prepare: Makes the call to time from a case's key, data and a window.
        most: The largest number of rows by case; "" is for all others.
    """

    name: str
    can: tuple[str, ...]
    prepare: Callable[[str, Data, str], Callable[[], Any]]
    most: dict[str, int] = field(default_factory=dict)


# -- slidewise -------------------------------------------------------------------------


def _slidewise(key: str, data: Data, window: str) -> Callable[[], Any]:
    of = key[-1]
    made: dict[str, Any] = {
        "sum": sw.sum,
        "mean": sw.mean,
        "max": sw.max,
        "min": sw.min,
        "std": sw.stddev,
        "count": sw.count,
        "first": sw.first,
        "last": sw.last,
        "distinct": sw.count_distinct,
        "quantile": partial(sw.quantile, q=0.9),
    }
    three = {"s": sw.sum("f"), "m": sw.max("f"), "d": sw.stddev("f")}
    options: dict[str, Any] = {"windows": window}
    if key.startswith("hops"):
        every = f"{int(SECONDS[window] * 1e9) // int(key.split()[1])}ns"
        hop = {"window": window, "every": every, "aggs": {"a": sw.sum("f")}}
        return partial(sw.hopping, data.table, on="t", **hop)
    if key == "keys":
        # About as many rows per key as the window has of one series.
        options = {"windows": f"{int(SECONDS[window] * 1000)}s", "by": "k"}
        options["aggs"] = {"a": sw.sum("f")}
    elif key == "lengths":
        options = {"windows": list(LENGTHS), "aggs": three}
    else:
        kind = key.split()[0]
        options["aggs"] = three if kind == "three" else {"a": made[kind](of)}
    return partial(sw.rolling, data.table, on="t", **options)


# -- pandas ----------------------------------------------------------------------------


def _pandas(key: str, data: Data, window: str) -> Callable[[], Any]:
    import pandas as pd

    series = pd.Series(data.values(key), index=pd.DatetimeIndex(data.times))
    if key == "keys":
        span = f"{int(SECONDS[window] * 1000)}s"
        frame = pd.DataFrame({"k": data.keys, "v": data.floats}, index=series.index)
        return lambda: frame.groupby("k")["v"].rolling(span).sum()
    if key == "lengths":
        return lambda: [
            series.rolling(length).agg(["sum", "max", "std"]) for length in LENGTHS
        ]
    kind = key.split()[0]
    if kind == "three":
        return lambda: series.rolling(window).agg(["sum", "max", "std"])
    if kind == "quantile":
        return lambda: series.rolling(window).quantile(0.9)
    name = "nunique" if kind == "distinct" else kind
    return lambda: getattr(series.rolling(window), name)()


# -- polars ----------------------------------------------------------------------------


def _polars(key: str, data: Data, window: str) -> Callable[[], Any]:
    import polars as pl

    columns = {"t": data.times, "v": data.values(key), "k": data.keys}
    frame = pl.DataFrame(columns).with_columns(pl.col("t").set_sorted())
    v, kind = pl.col("v"), key.split()[0]
    if kind == "hops":
        every = f"{int(SECONDS[window] * 1e9) // int(key.split()[1])}ns"
        return lambda: frame.group_by_dynamic("t", every=every, period=window).agg(
            v.sum()
        )
    if kind == "keys":
        span = f"{int(SECONDS[window] * 1000)}s"
        return lambda: frame.select(v.rolling_sum_by("t", span).over("k"))
    three = [v.sum().alias("s"), v.max().alias("m"), v.std().alias("d")]
    if kind == "three":
        return lambda: frame.rolling("t", period=window).agg(three)
    if kind == "lengths":
        return lambda: [frame.rolling("t", period=at).agg(three) for at in LENGTHS]
    if kind in ("count", "first", "last", "distinct"):
        name = {"count": "len", "distinct": "n_unique"}.get(kind, kind)
        return lambda: frame.rolling("t", period=window).agg(getattr(v, name)())
    given = {"quantile": 0.9, "interpolation": "linear"} if kind == "quantile" else {}
    rolling = getattr(v, f"rolling_{kind}_by")
    return lambda: frame.select(rolling("t", window, **given))


# -- DuckDB ----------------------------------------------------------------------------

_SQL = {
    "sum": "sum({v})",
    "mean": "avg({v})",
    "max": "max({v})",
    "min": "min({v})",
    "std": "stddev_samp({v})",
    "count": "count({v})",
    "first": "first({v})",
    "last": "last({v})",
    "quantile": "quantile_cont({v}, 0.9)",
    "distinct": "count(DISTINCT {v})",
}


def _duckdb(key: str, data: Data, window: str) -> Callable[[], Any]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("rows_in", data.table)
    connection.execute("CREATE TABLE data AS SELECT * FROM rows_in")
    kind, of = key.split()[0], key[-1]
    by, scale = ("PARTITION BY k ", 1000) if key == "keys" else ("", 1)
    micros = int(SECONDS[window] * 1e6 * scale) - 1
    frame = (
        f"({by}ORDER BY t RANGE BETWEEN INTERVAL '{micros} microseconds' PRECEDING "
        "AND CURRENT ROW)"
    )
    kinds = {"keys": ["sum"], "three": ["sum", "max", "std"]}.get(kind, [kind])
    of = "f" if key == "keys" else of
    columns = ", ".join(
        f"{_SQL[kind].format(v=of)} OVER w AS a{at}" for at, kind in enumerate(kinds)
    )
    query = f"SELECT {columns} FROM data WINDOW w AS {frame}"
    return lambda: connection.sql(query).to_arrow_table()


# -- by a number of rows ---------------------------------------------------------------


def _counting(package: str, key: str, data: Data, window: str) -> Callable[[], Any]:
    module = __import__(package)
    kind = key.split()[0]
    move = getattr(module, f"move_{kind}")
    values = data.values(key).astype(float)
    count = min(ROWS_OF[window], data.count)
    given: dict[str, Any] = {"window": count, "min_count": 1}
    if package == "bottleneck" and kind == "std":
        given["ddof"] = 1
    return lambda: move(values, **given)


def _all(*without: str) -> tuple[str, ...]:
    return tuple(case.key for case in CASES if case.key not in without)


_COUNTED = ("sum i", "mean i", "sum f", "mean f", "max f", "min i", "std f")
_SLOW = {"quantile f": 500_000, "distinct i": 500_000, "keys": 1_000_000}

PEERS = [
    Peer("slidewise", _all(), _slidewise),
    Peer("pandas", _all("hops 10", "hops 1440"), _pandas, _SLOW),
    Peer("polars", _all(), _polars, {**_SLOW, "distinct i": 30_000, "keys": 10**9}),
    Peer("DuckDB", _all("lengths", "hops 10", "hops 1440"), _duckdb, {"": 300_000}),
    Peer("bottleneck*", _COUNTED, partial(_counting, "bottleneck")),
    Peer(
        "numbagg*",
        ("sum i", "mean i", "sum f", "mean f", "std f"),
        partial(_counting, "numbagg"),
    ),
]
