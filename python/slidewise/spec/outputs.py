"""The result columns of a `Spec`: which aggregation over which window, and its name."""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from slidewise.aggregations import Aggregation
from slidewise.spec.naming import ANSWERS, PER_WINDOW, column_name
from slidewise.spec.windows.base import Window

__all__ = [
    "Output",
    "column_of",
    "covers",
    "outputs_of",
    "own_beside",
    "query_column",
    "until_column",
]

# A `Spec`, whose module imports this one.
_Spec: TypeAlias = Any

# The place of `{agg}` in the names of `valid_until=True`.
_UNTIL = "valid_until"


class Output(NamedTuple):
    """A result column of a Spec.

    Attributes:
        name: The name of its aggregation.
        agg: The aggregation.
        window: The window; of several hopping windows the first.
        column: The name of the column.
    """

    name: str
    agg: Aggregation
    window: Window
    column: str


def outputs_of(spec: _Spec) -> Iterator[Output]:
    """Yields the result columns of aggregations, window by window."""
    for window in spec.windows[:1] if spec.is_hopping else spec.windows:
        for at, (name, agg) in enumerate(spec.aggs):
            if covers(spec, at, window):
                yield Output(name, agg, window, column_of(spec, name, window))


def covers(spec: _Spec, at: int, window: Window) -> bool:
    """Whether an aggregation, by its place in `aggs`, is given over a window."""
    return at >= len(spec.own) or window.label in spec.own[at]


def own_beside(spec: _Spec, labels: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """`spec.own`, if aggregations without windows of their own have these."""
    pairs = zip(spec.own, spec.aggs, strict=False)
    return tuple(labels if agg.windows is None else own for own, (_, agg) in pairs)


def column_of(spec: _Spec, name: str, window: Window) -> str:
    """The name of the result column of an aggregation and a window."""
    names = PER_WINDOW if spec.is_hopping else ANSWERS
    prefix: str = spec.prefix
    return prefix + column_name(spec.names or names, name, window.label)


def query_column(spec: _Spec, name: str, window: Window) -> str:
    """As `column_of` in a query, whose results are window by window in any case."""
    prefix: str = spec.prefix
    return prefix + column_name(spec.names or ANSWERS, name, window.label)


def until_column(spec: _Spec, window: Window) -> str:
    """The name of the column of the times at which a window's results change."""
    names = spec.names if spec.names and "{agg}" in spec.names else ANSWERS
    prefix: str = spec.prefix
    return prefix + column_name(names, _UNTIL, window.label)
