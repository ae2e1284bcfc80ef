"""`history`: the rows before a stream that its windows may still hold."""

from typing import Any

from slidewise.errors import SpecError
from slidewise.frames.adapt import frame
from slidewise.frames.base import empty_table, require
from slidewise.keyed.single_times import tick_of
from slidewise.spark.columns import column
from slidewise.spark.names import named
from slidewise.spark.only import literal_of, why_unbounded
from slidewise.spark.schemas import arrow_schema
from slidewise.spec.spec import Spec
from slidewise.table.batched_rolling import Reach
from slidewise.table.time_columns import read_times

__all__ = ["history"]


def history(df: Any, spec: Spec, since: Any) -> Any:
    """Gives the rows of a history that a stream needs as `initial=`.

    A stream that starts with them gives its rows the results that it would give them
    with the whole history, and holds no row that no window needs. With `emit="change"`,
    keys whose rows had all left their windows get no results for that.

    Args:
        df: DataFrame, batch: the rows before the stream.
        spec: `slidewise.Spec` of the stream.
        since: The earliest time of a row of the stream, late ones among them; a value
            of the kind of the column of times.

    Returns:
        A DataFrame: the rows from the longest window (with its `offset=`) before
        `since` on, as they are.

    Cost:
        No job: a filter by a literal, which Spark pushes into sources that take it.

    Raises:
        SpecError: If windows may hold any earlier row; or for a Spec of `hopping`, or
            with `unique_by=`, which need to know more of the history.

    Example:
        >>> from slidewise.spark import history, rolling
        >>> before = history(trips, spec, since=day)  # doctest: +SKIP
        >>> rolling(stream, spec, late="10 minutes", initial=before)  # doctest: +SKIP
    """
    if not isinstance(spec, Spec):
        raise SpecError(
            f"history takes the slidewise.Spec of the stream; got {type(spec).__name__}"
        )
    if not hasattr(df, "isStreaming") or df.isStreaming:
        raise SpecError("history takes a batch DataFrame: the rows before the stream")
    table = named(df, spec.columns)
    schema = arrow_schema(table.df)
    empty = frame(empty_table(schema))
    require(empty, spec.columns, "the DataFrame")
    times = read_times(empty.column(spec.on), spec.on)
    reason = why_unbounded(spec, times)
    if spec.is_hopping:
        reason = "hopping goes on from the latest of all its rows"
    elif spec.unique_by:
        reason = "unique_by= knows the ids of all its rows"
    if reason is not None:
        raise SpecError(
            f"history leaves out rows, and {reason}: pass all rows as initial="
        )
    try:
        tick = tick_of(since, times)
    except SpecError as error:
        raise SpecError("since= is a time: ", *error.args) from None
    first = tick - Reach.of(spec, schema).back
    bound = literal_of(first, table.df.schema[spec.on].dataType, times)
    if bound is None:
        return df
    time = column(spec.on)
    # Rows without a time are refused where they are read.
    return table.restored(table.df.where((time >= bound) | time.isNull()))
