"""Tables of questions, and the same question for each library."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from bench.reports.report import Calls

import slidewise as sw

__all__ = [
    "duckdb",
    "in_seconds",
    "last_seconds",
    "of_rows",
    "over",
    "pandas_of",
    "pandas_windows",
    "polars_by",
    "polars_of",
    "rolled",
    "to_polars",
]

Column = Sequence[Any] | pa.Array
Kind = str | Callable[[Any], Any]

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


def over(table: pa.Table, call: str, frame: str) -> Any:
    """Asks DuckDB for a call over a frame of times."""
    sql = f"SELECT {call} OVER (ORDER BY t {frame}) FROM data ORDER BY t"
    return lambda: duckdb(table, sql)


def last_seconds(seconds: int) -> str:
    """The frame (t - seconds, t] of DuckDB."""
    first = f"INTERVAL {seconds * 1_000_000 - 1} MICROSECOND PRECEDING"
    return f"RANGE BETWEEN {first} AND CURRENT ROW"


def pandas_of(table: pa.Table, length: str, kind: str = "sum", **options: Any) -> Any:
    """Asks pandas for the windows of a length, by a method such as "sum"."""
    return lambda: getattr(pandas_windows(table, length, **options), kind)().tolist()


def pandas_windows(table: pa.Table, length: str, **options: Any) -> Any:
    """The windows of a length of pandas, over column x."""
    return table.to_pandas().set_index("t")["x"].rolling(length, **options)


def polars_of(table: pa.Table, length: str, kind: Kind = "sum", **options: Any) -> Any:
    """Asks polars for groups of a length, by a method or an expression of `polars`."""

    def call() -> Any:
        import polars as pl

        x = getattr(pl.col("x"), kind)() if isinstance(kind, str) else kind(pl)
        groups = to_polars(table).rolling("t", period=length, **options)
        return groups.agg(x.alias("x"))["x"].to_list()

    return call


def polars_by(table: pa.Table, length: str, kind: str = "sum", **options: Any) -> Any:
    """As `polars_of`, by `rolling_sum_by` and such."""

    def call() -> Any:
        import polars as pl

        by = getattr(pl.col("x"), f"rolling_{kind}_by")
        return to_polars(table).select(by("t", length, **options)).to_series().to_list()

    return call


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
        agg = _OURS[kind](*columns)
        return rolled(table, windows=sw.rows(n), agg=agg, min_rows=least)[n - 1 :]

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
