"""Aggregations of the values of a window, for windows, tables and streams.

Over a table an aggregation names its column: `sum("price")`. In a `Window` of plain
values it names none: `sum()`.

All aggregations follow these rules:

- null is skipped, except by `count()`; over an empty window the result is null (None),
  but `count` gives 0 and `collect` an empty list;
- NaN is a value and propagates while it is in the window, unless `nan="skip"` or
  `nan="raise"`;
- integers are exact; a result that does not fit raises `ResultOverflowError`;
- float sums, means and moments are compensated for rounding and never subtract evicted
  values;
- `where=` names a column of booleans: only rows where it is true count.

Costs are combines per row and window; a combine is a few machine operations.
"""

# ruff: noqa: F403, F405 - `__all__` lists the public functions of the modules
from slidewise.aggregations.areas import *
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.counting import *
from slidewise.aggregations.decay import *
from slidewise.aggregations.distributions import *
from slidewise.aggregations.holistic import *
from slidewise.aggregations.lists import *
from slidewise.aggregations.moments import *
from slidewise.aggregations.order import *
from slidewise.aggregations.ranks import *
from slidewise.aggregations.records import arrange
from slidewise.aggregations.regression import *
from slidewise.aggregations.sequences import *
from slidewise.aggregations.sketches import *
from slidewise.aggregations.sums import *
from slidewise.aggregations.times import *

# Messages list aggregations in this order.
__all__ = [  # noqa: RUF022 - not the order of the alphabet
    "Aggregation",
    "count",
    "sum",
    "mean",
    "min",
    "max",
    "range",
    "variance",
    "stddev",
    "min_count",
    "max_count",
    "arg_min",
    "arg_max",
    "first",
    "last",
    "geometric_mean",
    "collect",
    "product",
    "sum_of_squares",
    "any",
    "all",
    "bit_and",
    "bit_or",
    "bit_xor",
    "skewness",
    "kurtosis",
    "covariance",
    "correlation",
    "weighted_mean",
    "slope",
    "intercept",
    "r_squared",
    "delta",
    "rate",
    "mean_gap",
    "max_gap",
    "min_gap",
    "stddev_gap",
    "since_last",
    "since_first",
    "decayed_sum",
    "decayed_count",
    "decayed_mean",
    "decayed_variance",
    "integral",
    "time_weighted_mean",
    "increase",
    "changes",
    "drawdown",
    "ohlc",
    "lag",
    "first_k",
    "last_k",
    "last_distinct",
    "longest_run",
    "concat",
    "collect_distinct",
    "top_k",
    "bottom_k",
    "count_distinct",
    "quantile",
    "median",
    "mode",
    "rank",
    "percent_rank",
    "value_counts",
    "entropy",
    "histogram",
    "bloom",
    "approx_count_distinct",
    "approx_quantile",
    "count_min",
    "heavy_hitters",
]

arrange(__all__)


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
