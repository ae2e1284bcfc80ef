"""`Call`: one aggregation as the core takes it."""

from typing import NamedTuple

__all__ = ["Call"]


class Call(NamedTuple):
    """An aggregation of input columns, which have numbers.

    Attributes:
        kind: Its name in the core.
        of: The input column; None if rows are counted.
        by: The second input column, or None.
        number: ddof, or the number of values of a list.
    """

    kind: str
    of: int | None
    by: int | None = None
    number: int = 0
