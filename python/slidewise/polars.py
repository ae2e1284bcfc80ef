"""`DataFrame.sw` and `LazyFrame.sw` of polars, which importing this module adds.

They have `rolling`, `hopping` and `explain`, with the arguments of the functions of
slidewise. Those of a LazyFrame stay lazy: the schema is known, and nothing is computed
before `collect`. Importing slidewise alone does not import polars.

Example:
    >>> import polars as pl, slidewise as sw, slidewise.polars
    >>> trips = pl.LazyFrame({"t": [1, 2, 5], "km": [10, 20, 30]})
    >>> rolled = trips.sw.rolling(on="t", windows=2, aggs={"km": sw.sum("km")})
    >>> rolled.collect_schema().names(), rolled.collect()["km_2"].to_list()
    (['t', 'km', 'km_2'], [10, 30, 30])
"""

import polars as pl

from slidewise.table.methods import TableMethods

__all__ = ["PolarsMethods"]


@pl.api.register_dataframe_namespace("sw")
@pl.api.register_lazyframe_namespace("sw")
class PolarsMethods(TableMethods):
    """The functions of slidewise over a DataFrame or LazyFrame of polars."""
