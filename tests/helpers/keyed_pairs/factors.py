"""The factors that are crossed: the aggregations, and all other choices of a stream."""

from typing import Any

import slidewise as sw
from slidewise.aggregations.records import RECORDS, kinds

Case = dict[str, Any]

HOPPING = {
    "tumbling": (10, 10),
    "hop": (20, 5),
    "uneven hop": (20, 7),
    "gaps": (4, 9),
    "session": (3, 0),
    "until": (0, 0),
    "rows by rows": (5, 3),
    "range by rows": (20, 3),
}
LANDMARKS = ("landmark", "landmark and time")
BY_ROWS = ("until", "rows by rows", "range by rows")
ROLLING: dict[str, list[tuple[str, int]]] = {
    "short": [("time", 7)],
    "long": [("time", 40)],
    "several": [("time", 40), ("time", 3)],
    "rows": [("rows", 3)],
    "rows and time": [("rows", 4), ("time", 20)],
    "landmark": [("landmark", 0)],
    "landmark and time": [("time", 20), ("landmark", 0)],
}

# The first value of each factor is its default in a case.
FACTORS: dict[str, list[Any]] = {
    "windows": [*ROLLING, *HOPPING],
    "emit": ["final", "arrival", "update", "slide"],
    "late_rows": ["drop", "flag", "correct"],
    "late": [0, 6],
    "deletes": [False, True],
    "then_by": ["none", "int", "float", "two"],
    "arrival": [False, True],
    "closed": ["right", "left", "both", "neither"],
    "offset": [0, 3],
    "ties": ["peers", "rows"],
    "empty": [False, True],
    "min_rows": [0, 2],
    "nan": ["propagate", "skip", "raise"],
    "page": ["small", "medium", "real"],
    "batches": ["many", "few", "one"],
    "advance": ["each", "seldom", "any"],
    "life": ["none", "snapshot", "changes", "copy", "evict", "fail", "all"],
    "company": ["many", "alone", "two"],
    "key": [
        "none",
        "int",
        "string",
        "float",
        "category",
        "two",
        "bool",
        "date",
        "decimal",
        "binary",
        "struct",
        "list",
    ],
    "time": [
        "int64",
        "uint32",
        "s",
        "ms",
        "us",
        "ns",
        "s zone",
        "ms zone",
        "us zone",
        "ns zone",
        "date32",
    ],
}


def fits(case: Case) -> bool:
    """Whether the choices of a case, which may be incomplete, can be combined."""
    windows, emit = case.get("windows"), case.get("emit")
    late_rows = case.get("late_rows", "drop")
    hopping = windows in HOPPING
    counted = windows in ("rows", "rows and time", *LANDMARKS)
    no_grid = windows == "session" or windows in BY_ROWS
    refused = [
        windows and emit and hopping != (emit == "slide"),
        case.get("arrival") and emit not in (None, "arrival"),
        late_rows == "flag" and emit in ("update", "slide"),
        late_rows == "correct" and (no_grid or windows in ("rows", *LANDMARKS)),
        windows in LANDMARKS and emit not in (None, "final"),
        late_rows == "correct" and case.get("empty"),
        case.get("empty") and windows and (not hopping or no_grid),
        case.get("closed", "right") != "right" and (no_grid or counted),
        case.get("closed") in ("both", "neither") and hopping,
        case.get("offset") and (counted or no_grid),
        case.get("ties") == "rows" and hopping,
        case.get("ties") == "rows" and case.get("closed") in ("left", "neither"),
    ]
    return not any(refused)


def _both(a: str, b: str) -> str:
    """A combine that shows the order of its operands."""
    return f"{a}|{b}"


OWN = sw.aggregation(lift=str, combine=_both, returns=str, identity=None)

CATALOGUE: dict[str, sw.Aggregation] = {
    "count": sw.count(),
    "count x": sw.count("x"),
    "count where": sw.count(where="w"),
    "sum int": sw.sum("x"),
    "sum float": sw.sum("y"),
    "sum duration": sw.sum("u"),
    "sum decimal": sw.sum("d"),
    "sum bool": sw.sum("b"),
    "sum where": sw.sum("y", where="w"),
    "mean int": sw.mean("x"),
    "mean float": sw.mean("y"),
    "min int": sw.min("x"),
    "min text": sw.min("s"),
    "min where": sw.min("y", where="w"),
    "max float": sw.max("y"),
    "max decimal": sw.max("d"),
    "max time": sw.max("t"),
    "range float": sw.range("y"),
    "range time": sw.range("ts"),
    "product int": sw.product("p"),
    "product float": sw.product("z"),
    "geometric_mean": sw.geometric_mean("z"),
    "variance": sw.variance("y"),
    "variance ddof": sw.variance("x", ddof=0),
    "stddev": sw.stddev("y"),
    "stddev where": sw.stddev("x", where="w"),
    "min_count": sw.min_count("x"),
    "max_count": sw.max_count("y"),
    "arg_min": sw.arg_min("id", by="y"),
    "arg_max": sw.arg_max("s", by="x"),
    "arg_max time": sw.arg_max(by="x"),
    "first text": sw.first("s"),
    "first": sw.first("id"),
    "last": sw.last("x"),
    "last where": sw.last("id", where="w"),
    "delta": sw.delta("x"),
    "rate": sw.rate("x"),
    "slope over time": sw.slope("y"),
    "mean_gap": sw.mean_gap(),
    "max_gap": sw.max_gap(where="w"),
    "min_gap": sw.min_gap(),
    "stddev_gap": sw.stddev_gap(),
    "decayed_sum": sw.decayed_sum("y", sw.rows(3)),
    "decayed_count": sw.decayed_count(sw.rows(3), where="w"),
    "decayed_mean": sw.decayed_mean("y", sw.rows(3)),
    "decayed_variance": sw.decayed_variance("x", sw.rows(3)),
    "increase": sw.increase("x"),
    "increase float": sw.increase("y"),
    "changes": sw.changes("s"),
    "changes number": sw.changes("x", where="w"),
    "drawdown": sw.drawdown("y"),
    "ohlc": sw.ohlc("x"),
    "ohlc text": sw.ohlc("s"),
    "lag": sw.lag("id"),
    "lag text": sw.lag("s", 2),
    "first_k": sw.first_k("s", 2),
    "last_k": sw.last_k("id", 3),
    "last_distinct": sw.last_distinct("s", 2),
    "last_distinct number": sw.last_distinct("x", 3),
    "longest_run": sw.longest_run("b"),
    "top_k by": sw.top_k("s", 2, by="x"),
    "bottom_k by": sw.bottom_k("id", 3, by="y", where="w"),
    "value_counts": sw.value_counts("s"),
    "value_counts number": sw.value_counts("y", 2),
    "entropy": sw.entropy("x"),
    "histogram": sw.histogram("y", edges=[-1, 0, 1.5]),
    "collect": sw.collect("id"),
    "collect where": sw.collect("s", where="w"),
    "concat": sw.concat("s"),
    "concat binary": sw.concat("v"),
    "any": sw.any("b"),
    "all": sw.all("x"),
    "bit_and": sw.bit_and("x"),
    "bit_or": sw.bit_or("b"),
    "bit_xor": sw.bit_xor("x"),
    "covariance": sw.covariance("x", "y"),
    "correlation": sw.correlation("y", "z"),
    "weighted_mean": sw.weighted_mean("y", "x"),
    "slope": sw.slope("z", "x"),
    "intercept": sw.intercept("y", "x"),
    "r_squared": sw.r_squared("y", "z", where="w"),
    "skewness": sw.skewness("y"),
    "kurtosis": sw.kurtosis("y"),
    "sum_of_squares": sw.sum_of_squares("x"),
    "sum_of_squares float": sw.sum_of_squares("y"),
    "collect_distinct": sw.collect_distinct("s"),
    "top_k": sw.top_k("x", 3),
    "bottom_k": sw.bottom_k("y", 3),
    "bloom": sw.bloom("s", capacity=50, error_rate=0.1),
    "approx_count_distinct": sw.approx_count_distinct("x", error=0.1),
    "approx_quantile": sw.approx_quantile("y", 0.4, error=0.02),
    "approx_quantile list": sw.approx_quantile("x", [0.1, 0.9], error=0.02),
    "count_min": sw.count_min("s", error=0.1, confidence=0.8),
    "heavy_hitters": sw.heavy_hitters("s", 3),
    "count_distinct": sw.count_distinct("y"),
    "quantile": sw.quantile("y", 0.3),
    "quantile text": sw.quantile("s", 0.6, interpolation="lower"),
    "median": sw.median("x"),
    "mode": sw.mode("x"),
    "own": OWN("id"),
    "own where": OWN("id", where="w"),
}
_NAMED = {agg.kind for agg in CATALOGUE.values()}
# Results that change with the time alone have tests of their own.
ENDED = {kind for kind in kinds() if RECORDS[kind].ended} - _NAMED
CATALOGUE |= {
    kind: getattr(sw, kind)("y") for kind in kinds() if kind not in _NAMED | ENDED
}

# Aggregations whose answers grow with their windows, or take long for each row.
HEAVY = {"collect", "concat", "collect_distinct", "aggregation", "bloom", "count_min"}
HEAVY |= {"heavy_hitters", "approx_quantile"}


def is_heavy(case: Case) -> bool:
    """Whether the answers of a case should be over few rows, if there are many."""
    return any(
        CATALOGUE[name].kind in HEAVY or name.startswith("own") for name in case["aggs"]
    )
