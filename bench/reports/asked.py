"""The same question for each library: windows of n rows, and SQL."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

import slidewise as sw

__all__ = ["duckdb", "of_pairs", "of_rows", "rolled"]

Calls = Mapping[str, Callable[[], Any]]

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


def duckdb(table: pa.Table, sql: str) -> list[Any]:
    """The first column of a query over `data`, ordered by t."""
    import duckdb as db

    with db.connect() as connection:
        connection.register("data", table)
        return [row[0] for row in connection.sql(sql).fetchall()]


def _numbered(columns: Mapping[str, pa.Array]) -> pa.Table:
    rows = len(next(iter(columns.values())))
    return pa.table({"t": pa.array(range(rows), pa.int64()), **columns})


def of_rows(
    values: Sequence[Any] | pa.Array, n: int, kind: str, least: int | None = None
) -> Calls:
    """The answers of all full windows of n rows of a column, missing ones skipped."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    table, least = _numbered({"x": array}), n if least is None else least

    def ours() -> list[Any]:
        return rolled(table, windows=sw.rows(n), agg=_OURS[kind]("x"))[n - 1 :]

    def by_pandas() -> list[Any]:
        series = table["x"].to_pandas()
        found = getattr(series.rolling(n, min_periods=least), kind)()
        return found.tolist()[n - 1 :]

    def by_polars() -> list[Any]:
        import polars as pl

        options = {"bias": False} if kind in ("skew", "kurt") else {}
        name = "rolling_kurtosis" if kind == "kurt" else f"rolling_{kind}"
        series = pl.Series(pl.from_arrow(table)["x"])
        found = getattr(series, name)(n, min_samples=least, **options)
        return found.to_list()[n - 1 :]

    def by_duckdb() -> list[Any]:
        frame = f"ROWS BETWEEN {n - 1} PRECEDING AND CURRENT ROW"
        call = f"{_SQL.get(kind, kind)}(x) OVER (ORDER BY t {frame})"
        return duckdb(table, f"SELECT {call} FROM data ORDER BY t")[n - 1 :]

    return {
        "slidewise": ours,
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": by_duckdb,
    }


def of_pairs(
    x: Sequence[Any], y: Sequence[Any], n: int, kind: str, least: int | None = None
) -> Calls:
    """As `of_rows`, of two columns: "corr" or "cov"."""
    table, least = _numbered({"x": pa.array(x), "y": pa.array(y)}), least or n

    def ours() -> list[Any]:
        return rolled(table, windows=sw.rows(n), agg=_OURS[kind]("x", "y"))[n - 1 :]

    def by_pandas() -> list[Any]:
        frame = table.to_pandas()
        window = frame["x"].rolling(n, min_periods=least)
        return getattr(window, kind)(frame["y"]).tolist()[n - 1 :]

    def by_polars() -> list[Any]:
        import polars as pl

        call = getattr(pl, f"rolling_{kind}")
        frame = pl.DataFrame(pl.from_arrow(table))
        found = frame.select(call("x", "y", window_size=n, min_samples=least))
        return found.to_series().to_list()[n - 1 :]

    def by_duckdb() -> list[Any]:
        frame = f"ROWS BETWEEN {n - 1} PRECEDING AND CURRENT ROW"
        call = f"{_SQL.get(kind, kind)}(x, y) OVER (ORDER BY t {frame})"
        return duckdb(table, f"SELECT {call} FROM data ORDER BY t")[n - 1 :]

    return {
        "slidewise": ours,
        "pandas": by_pandas,
        "polars": by_polars,
        "DuckDB": by_duckdb,
    }
