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

from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.counting import (
    all,
    any,
    count,
    max_count,
    min_count,
)
from slidewise.aggregations.holistic import (
    count_distinct,
    median,
    mode,
    quantile,
)
from slidewise.aggregations.lists import (
    collect,
    collect_distinct,
    concat,
)
from slidewise.aggregations.moments import (
    correlation,
    covariance,
    kurtosis,
    skewness,
    stddev,
    variance,
)
from slidewise.aggregations.order import (
    arg_max,
    arg_min,
    bottom_k,
    first,
    last,
    max,
    min,
    range,
    top_k,
)
from slidewise.aggregations.sketches import (
    approx_count_distinct,
    approx_quantile,
    bloom,
    count_min,
    heavy_hitters,
)
from slidewise.aggregations.sums import (
    bit_and,
    bit_or,
    bit_xor,
    geometric_mean,
    mean,
    product,
    sum,
    sum_of_squares,
)

__all__ = [
    "Aggregation",
    "all",
    "any",
    "approx_count_distinct",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bloom",
    "bottom_k",
    "collect",
    "collect_distinct",
    "concat",
    "correlation",
    "count",
    "count_distinct",
    "count_min",
    "covariance",
    "first",
    "geometric_mean",
    "heavy_hitters",
    "kurtosis",
    "last",
    "max",
    "max_count",
    "mean",
    "median",
    "min",
    "min_count",
    "mode",
    "product",
    "quantile",
    "range",
    "skewness",
    "stddev",
    "sum",
    "sum_of_squares",
    "top_k",
    "variance",
]


def __dir__() -> list[str]:
    """Lists the public names only."""
    return sorted(__all__)
