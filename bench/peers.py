"""Rolling aggregates as other libraries compute them, one function for all.

Each peer answers `rolling(kind, values, window)` with one number per row, over the last
`window` rows, with default settings. A peer that is not installed is skipped.
"""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PEERS", "Peer", "versions"]

Answers = np.ndarray[Any, np.dtype[np.float64]]


class Peer:
    """A library.

    Attributes:
        name: Its name.
        kinds: The kinds that it has.
        most: The number of rows that it can process in reasonable time.
    """

    name = ""
    package = ""
    kinds: tuple[str, ...] = ("sum", "mean", "std", "max")
    most = 10**9

    def rolling(self, kind: str, values: Answers, window: int) -> Answers:
        """The answer of every row."""
        raise NotImplementedError


class Slidewise(Peer):
    name = "slidewise"
    package = "slidewise"
    kinds = ("sum", "mean", "std", "max", "median", "p90", "nunique")

    def rolling(self, kind: str, values: Answers, window: int) -> Answers:
        import pyarrow as pa

        import slidewise as sw

        made: dict[str, Any] = {
            "sum": sw.sum("v"),
            "mean": sw.mean("v"),
            "std": sw.stddev("v"),
            "max": sw.max("v"),
            "median": sw.median("v"),
            "p90": sw.quantile("v", 0.9),
            "nunique": sw.count_distinct("v"),
        }
        table = pa.table({"t": np.arange(len(values)), "v": values})
        out = sw.rolling(table, on="t", windows=window, aggs={"a": made[kind]})
        answers: Answers = out[f"a_{window}"].to_numpy().astype(float)
        return answers


class Pandas(Peer):
    name = package = "pandas"
    kinds = ("sum", "mean", "std", "max", "median", "p90", "nunique")

    def rolling(self, kind: str, values: Answers, window: int) -> Answers:
        import pandas as pd

        times = pd.to_datetime(np.arange(len(values)), unit="s")
        frames = pd.Series(values, index=times).rolling(f"{window}s")
        answers = frames.quantile(0.9) if kind == "p90" else getattr(frames, kind)()
        return np.asarray(answers.to_numpy())


class Polars(Peer):
    name = package = "polars"
    kinds = ("sum", "mean", "std", "max", "median", "p90")

    def rolling(self, kind: str, values: Answers, window: int) -> Answers:
        import polars as pl

        times = np.arange(len(values)).astype("datetime64[s]")
        frame = pl.DataFrame({"t": times.astype("datetime64[us]"), "v": values})
        call = "quantile" if kind == "p90" else kind
        given = {"quantile": 0.9, "interpolation": "linear"} if kind == "p90" else {}
        rolling = getattr(pl.col("v"), f"rolling_{call}_by")
        out = frame.select(rolling("t", window_size=f"{window}s", **given))
        return out.to_series().cast(pl.Float64).to_numpy()


class DuckDB(Peer):
    name, package = "DuckDB", "duckdb"
    kinds = ("sum", "mean", "std", "max", "median", "p90", "nunique")
    most = 2_000_000
    sql = {  # noqa: RUF012 - a table, never changed
        "sum": "sum(v)",
        "mean": "avg(v)",
        "std": "stddev_samp(v)",
        "max": "max(v)",
        "median": "median(v)",
        "p90": "quantile_cont(v, 0.9)",
        "nunique": "count(DISTINCT v)",
    }

    def rolling(self, kind: str, values: Answers, window: int) -> Answers:
        import duckdb
        import pyarrow as pa

        table = pa.table({"t": np.arange(len(values)), "v": values})
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            connection.register("data", table)
            frame = f"RANGE BETWEEN {window - 1} PRECEDING AND CURRENT ROW"
            found = connection.sql(
                f"SELECT {self.sql[kind]} OVER (ORDER BY t {frame}) AS a "
                "FROM data ORDER BY t"
            ).fetchnumpy()["a"]
        return np.ma.filled(np.ma.asarray(found).astype(float), np.nan)


class Bottleneck(Peer):
    name = package = "bottleneck"
    kinds = ("sum", "mean", "std", "max", "median")

    def rolling(self, kind: str, values: Answers, window: int) -> Answers:
        import bottleneck

        given = {"ddof": 1} if kind == "std" else {}
        move = getattr(bottleneck, f"move_{kind}")
        answers: Answers = move(values, window, min_count=1, **given)
        return answers


class Numbagg(Peer):
    name = package = "numbagg"
    kinds = ("sum", "mean", "std")

    def rolling(self, kind: str, values: Answers, window: int) -> Answers:
        import numbagg

        move = getattr(numbagg, f"move_{kind}")
        answers: Answers = move(values, window=window, min_count=1)
        return answers


class River(Peer):
    """Item by item."""

    name = package = "river"
    kinds = ("sum", "mean", "std", "max", "median", "p90")
    most = 200_000

    def rolling(self, kind: str, values: Answers, window: int) -> Answers:
        from river import stats, utils

        made: dict[str, Callable[[], Any]] = {
            "sum": lambda: utils.Rolling(stats.Sum(), window_size=window),
            "mean": lambda: utils.Rolling(stats.Mean(), window_size=window),
            "std": lambda: utils.Rolling(stats.Var(), window_size=window),
            "max": lambda: stats.RollingMax(window_size=window),
            "median": lambda: stats.RollingQuantile(0.5, window_size=window),
            "p90": lambda: stats.RollingQuantile(0.9, window_size=window),
        }
        answers = np.empty(len(values))
        statistic = made[kind]()
        for at, value in enumerate(values.tolist()):
            statistic.update(value)
            got = statistic.get()
            answers[at] = np.nan if got is None else got
        return _root(answers) if kind == "std" else answers


def _root(variances: Answers) -> Answers:
    """The square root of a variance; NaN if it is negative."""
    with np.errstate(invalid="ignore"):
        roots: Answers = np.sqrt(variances)
    return roots


def _installed(peer: Peer) -> bool:
    try:
        importlib.import_module(peer.package)
    except ImportError:
        return False
    return True


PEERS = [
    peer
    for peer in (
        Slidewise(),
        Pandas(),
        Polars(),
        DuckDB(),
        Bottleneck(),
        Numbagg(),
        River(),
    )
    if _installed(peer)
]


def versions() -> str:
    """The installed peers with their versions."""
    return ", ".join(f"{peer.name} {_version(peer.package)}" for peer in PEERS)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return str(importlib.import_module(package).__version__)
