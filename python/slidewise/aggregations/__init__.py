"""What to compute over a window.

An aggregation says what happens to the values of a window; where the windows are is
said elsewhere, so that the same aggregation serves a `Window`, a table and a stream.

Over a table an aggregation names its column: `sum("price")`. In a `Window` that holds
single values it needs none: `sum()`.

Rules that hold for all of them:

- null is skipped by all but `count()` of rows; over nothing the answer is null (None),
  except that `count` gives 0 and `collect` an empty list;
- NaN is a value like any other (it propagates, and leaves no trace once it has left the
  window) unless `nan="skip"` or `nan="raise"` is asked for;
- integers are exact; a result that does not fit raises `ResultOverflowError`;
- float sums, means and moments carry their rounding error with them and are never made
  by subtracting what has left;
- `where=` names a column of booleans: only rows where it is true take part.

Costs are given as combines per row and window; a combine is a few machine operations.
"""

from slidewise.aggregations.base import (
    BITS,
    COMPARED,
    HOLISTIC,
    KINDS,
    PAIRS,
    Aggregation,
)
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
    Sketch,
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
    "BITS",
    "COMPARED",
    "HOLISTIC",
    "KINDS",
    "PAIRS",
    "Aggregation",
    "Sketch",
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
