"""Tables of questions, and the same question for each library."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from bench.reports.report import Calls

import slidewise as sw

__all__ = ["duckdb", "in_seconds", "of_rows", "rolled", "to_polars"]

Column = Sequence[Any] | pa.Array

_START = dt.datetime(2026, 3, 2)
_OURS: dict[str, Callable[..., Any]] = {
    "sum": sw.sum,
    "mean": sw.mean,
    "var": sw.variance,
    "std": sw.stddev,
    "skew": sw.skewness,
    "kurt": sw.kurtosis,
    "min": sw.min,
    "max": sw.max,
    "corr": sw.correlation,
    "cov": sw.covariance,
}
_SQL = {
    "mean": "avg",
    "var": "var_samp",
    "std": "stddev_samp",
    "skew": "skewness",
    "kurt": "kurtosis",
    "cov": "covar_samp",
}


def rolled(table: pa.Table, *, windows: Any, agg: Any, **request: Any) -> list[Any]:
    """The answers of `slidewise.rolling` with one aggregation, over column t."""
    found = sw.rolling(table, on="t", windows=windows, aggs={"y": agg}, **request)
    return found.columns[-1].to_pylist()


def in_seconds(times: list[int], **columns: list[Any]) -> pa.Table:
    """A table with times in seconds after a start."""
    instants = [_START + dt.timedelta(seconds=at) for at in times]
    return pa.table({"t": pa.array(instants, pa.timestamp("us")), **columns})


def to_polars(table: pa.Table) -> Any:
    """The table as a DataFrame of polars."""
    import polars as pl

    return pl.DataFrame(pl.from_arrow(table))


def duckdb(table: pa.Table, sql: str, **others: pa.Table) -> list[Any]:
    """The first column of a query over `data`, the table, and others by their names."""
    import duckdb as db

    with db.connect() as connection:
        for name, one in {"data": table, **others}.items():
            connection.register(name, one)
        return [row[0] for row in connection.sql(sql).fetchall()]


def of_rows(
    x: Column, n: int, kind: str, least: int | None = None, y: Column | None = None
) -> Calls:
    """The answers of all full windows of n rows of x, or of x and y ("corr", "cov").

    Missing values are skipped; `least` values, by default all n, make an answer.
    """
    columns = {"x": x} if y is None else {"x": x, "y": y}
    times = pa.array(range(len(x)), pa.int64())
    table, least = pa.table({"t": times, **columns}), n if least is None else least

    def ours() -> list[Any]:
        return rolled(table, windows=sw.rows(n), agg=_OURS[kind](*columns))[n - 1 :]

    def by_pandas() -> list[Any]:
        frame = table.to_pandas()
        call = getattr(frame["x"].rolling(n, min_periods=least), kind)
        found = call() if y is None else call(frame["y"])
        return found.tolist()[n - 1 :]

    def by_polars() -> list[Any]:
        import polars as pl

        options: dict[str, Any] = {"window_size": n, "min_samples": least}
        if kind in ("skew", "kurt"):
            options["bias"] = False
        name = "rolling_kurtosis" if kind == "kurt" else f"rolling_{kind}"
        call = getattr(pl.col("x") if y is None else pl, name)
        expression = call(**options) if y is None else call("x", "y", **options)
        return to_polars(table).select(expression).to_series().to_list()[n - 1 :]

    def by_duckdb() -> list[Any]:
        frame = f"ROWS BETWEEN {n - 1} PRECEDING AND CURRENT ROW"
        call = f"{_SQL.get(kind, kind)}({', '.join(columns)}) OVER (ORDER BY t {frame})"
        return duckdb(table, f"SELECT {call} FROM data ORDER BY t")[n - 1 :]

    return {
        "slidewise": ours,
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": by_duckdb,
    }
