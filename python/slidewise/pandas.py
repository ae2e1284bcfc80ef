"""`DataFrame.sw` of pandas, which importing this module adds.

It has `rolling`, `hopping` and `explain`, with the arguments of the functions of
slidewise. Without `on=` the times are those of the index, which need no name; so are
those of `at=`, unless it has a column of that name or `at_on=` names one. The result of
`rolling` keeps the index. Importing slidewise alone does not import pandas.

Example:
    >>> import pandas as pd, slidewise as sw, slidewise.pandas
    >>> times = pd.to_datetime(["2026-01-01 08:00", "2026-01-01 08:30"])
    >>> trips = pd.DataFrame({"km": [3, 5]}, index=times)
    >>> rolled = trips.sw.rolling(windows="1h", aggs={"km": sw.sum("km")})
    >>> rolled["km_1h"].tolist(), rolled.index.equals(times)
    ([3, 8], True)
"""

from collections.abc import Callable
from typing import Any

import pandas as pd

from slidewise.errors import SpecError
from slidewise.table.methods import TableMethods
from slidewise.table.rolling import rolling

__all__ = ["PandasMethods"]


@pd.api.extensions.register_dataframe_accessor("sw")
class PandasMethods(TableMethods):
    """The functions of slidewise over a pandas DataFrame, by column or time index."""

    def _call(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        given = (*args, keywords.get("spec"), keywords.get("on"))
        if any(each is not None for each in given):
            return super()._call(function, args, keywords)
        labels = keywords.get("at")
        table, on = _with_named_times(self._table, "the table")
        keywords = keywords | {"on": on}
        if keywords.get("at_on") is None and _lacks(labels, on):
            at, at_on = _with_named_times(labels, "at=")
            keywords |= {"at": at, "at_on": at_on}
        answer = function(table, *args, **keywords)
        if function is rolling and isinstance(answer, pd.DataFrame):
            answer.index = self._table.index if labels is None else labels.index
        return answer


def _lacks(labels: Any, name: str) -> bool:
    """Whether a table of query points is of pandas, and has no column of a name."""
    known = isinstance(labels, pd.DataFrame)
    return known and name not in [*labels.columns, *labels.index.names]


def _with_named_times(table: Any, owner: str) -> tuple[Any, str]:
    """The table, whose level of times in the index has a name, and the name."""
    index = table.index
    of_levels = index.levels if index.nlevels > 1 else [index]
    levels = [at for at, level in enumerate(of_levels) if level.dtype.kind in "mM"]
    if len(levels) != 1:
        raise SpecError(_no_times(index, len(levels), owner))
    names, (level,) = [*index.names], levels
    taken = {*table.columns, *names[:level], *names[level + 1 :]}
    name = names[level] if isinstance(names[level], str) else "index"
    while name in taken:
        name += "_"
    names[level] = name
    named = table.copy(deep=False)
    named.index = index.set_names(names)
    return named, name


def _no_times(index: Any, levels: int, owner: str) -> str:
    argument = "at_on=" if owner == "at=" else "on="
    held = f"{levels or 'no'} level{'s' * (levels > 1)} of times"
    way_out = f"name the column of times by {argument}"
    if isinstance(index, pd.PeriodIndex):
        way_out = f"give frame.to_timestamp(), or {way_out}"
    return f"{owner} has {held} in its index, a {type(index).__name__}: {way_out}"
