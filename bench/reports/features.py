"""Reports of feature stores: features of labels, as of their times."""

import datetime as dt
from typing import Any

import pyarrow as pa
from bench.reports.asked import duckdb
from bench.reports.report import Given, report

import slidewise as sw

ROWS = pa.table({"t": [1, 4, 7], "card": [*"AAB"], "x": [10, 20, 40]})


def _at(points: pa.Table, **request: Any) -> list[Any]:
    """The sums of the last 5 of `ROWS`, as of query points."""
    out = sw.rolling(
        request.pop("rows", ROWS),
        on="t",
        by="card",
        windows=5,
        aggs={"s": sw.sum("x")},
        at=points,
        **request,
    )
    return out["s_5"].to_pylist()


@report("feast#6787")
def labels_of_one_key_and_time() -> Given:
    points = pa.table({"t": [5, 5, 8], "card": [*"AAA"], "label": [0, 1, 1]})

    sql = (
        "SELECT sum(x) FROM (SELECT row_number() OVER () AS n, * FROM points) p "
        "LEFT JOIN data r ON r.card = p.card AND r.t > p.t - 5 AND r.t <= p.t "
        "GROUP BY n ORDER BY n"
    )
    question = "sum of the last 5 of card A, for labels at 5, 5 and 8: none is dropped"
    calls = {
        "slidewise": lambda: _at(points),
        "DuckDB": lambda: duckdb(ROWS, sql, points=points),
    }
    return question, [30, 30, 20], calls


@report("feast#1466", "feast#1475")
def labels_in_another_zone() -> Given:
    noon = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
    hours = [noon + dt.timedelta(hours=at) for at in (0, 2)]
    rows = pa.table({"t": pa.array(hours, pa.timestamp("us", "UTC")), "x": [1, 2]})
    labels = pa.array([hours[1]], pa.timestamp("us", "America/New_York"))

    def ours() -> Any:
        points = pa.table({"t": labels})
        out = sw.rolling(rows, on="t", windows="1h", aggs={"s": sw.sum("x")}, at=points)
        return out["s_1h"].to_pylist()

    question = "rows at 12 and 14 o'clock UTC, a label at 10 o'clock in New York: 1 h"
    return question, [2], {"slidewise": ours}


@report("feast#6615", "feast#3360")
def a_value_that_was_corrected_later() -> Given:
    rows = pa.table(
        {
            "t": [3, 3],
            "card": [*"AA"],
            "x": [10, 99],
            "came": [3, 50],
        }
    )
    points = pa.table({"t": [4, 4], "card": [*"AA"], "came": [4, 60]})

    def ours() -> Any:
        out = sw.rolling(
            rows,
            on="t",
            by="card",
            windows=5,
            aggs={"x": sw.last("x")},
            arrival="came",
            at=points,
        )
        return out["x_5"].to_pylist()

    question = "10 at 3, corrected to 99 at 50: the value at 4 as known at 4, and at 60"
    return question, [10, 99], {"slidewise": ours}


@report("polars#6691")
def nothing_before_it_arrived() -> Given:
    table = pa.table({"t": [1, 2, 3, 4], "x": [1, 2, 4, 8], "came": [1, 6, 3, 5]})

    def ours() -> Any:
        out = sw.rolling(
            table, on="t", windows=9, aggs={"s": sw.sum("x")}, arrival="came"
        )
        return out["s_9"].to_pylist()

    sql = (
        "SELECT (SELECT sum(x) FROM data o WHERE o.t <= d.t AND o.t > d.t - 9 AND "
        "o.came <= d.came) FROM data d ORDER BY t"
    )
    calls = {"slidewise": ours, "DuckDB": lambda: duckdb(table, sql)}
    question = "sum of the last 9 by time, of rows that had arrived: `1 6 3 5`"
    return question, [1, 3, 5, 13], calls


@report("feast#3768")
def several_kinds_of_keys() -> Given:
    rows = pa.table({"t": [1, 2, 3], "card": [*"AAB"], "shop": [*"XYX"]})

    def ours() -> Any:
        specs = {
            name: sw.Spec(on="t", by=name, windows=5, aggs={f"n_{name}": sw.count()})
            for name in ("card", "shop")
        }
        out = sw.rolling(rows, sw.Features(**specs))
        return [out[name].to_pylist() for name in ("card_n_card_5", "shop_n_shop_5")]

    sql = (
        "SELECT [count(*) OVER (PARTITION BY card ORDER BY t), "
        "count(*) OVER (PARTITION BY shop ORDER BY t)] FROM data ORDER BY t"
    )

    def by_duckdb() -> Any:
        return [[*each] for each in zip(*duckdb(rows, sql), strict=True)]

    question = "rows per card and per shop so far, in one call"
    return question, [[1, 2, 1], [1, 1, 2]], {"slidewise": ours, "DuckDB": by_duckdb}
