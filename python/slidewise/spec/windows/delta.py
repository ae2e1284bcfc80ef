"""`Delta`: back to the first row whose value is too far away."""

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Rational, Real
from types import EllipsisType
from typing import Any, ClassVar, Self, SupportsIndex, overload

from slidewise import aggregations
from slidewise.aggregations.base import Aggregation
from slidewise.aggregations.scalars import is_bool
from slidewise.errors import Argument, SpecError
from slidewise.hints import with_hints
from slidewise.spec.durations import DurationLike, Length, parse_length
from slidewise.spec.windows.base import Order, Window, does_not_apply
from slidewise.spec.windows.of_column import OfColumn, column_of_call

__all__ = ["Delta", "delta"]

# A decimal beyond them takes as much memory as it has digits.
_EXPONENTS = 400


@dataclass(frozen=True, slots=True, repr=False)
class Delta(OfColumn):
    """A window of rows whose column is near. Made by `delta`.

    Attributes:
        column: The column, which must not fall.
        width: The largest difference. Of kind "number" if it is one, which its label
            spells.
    """

    width: Length

    needs_row: ClassVar[bool] = True
    keys: ClassVar[tuple[str, ...]] = ("delta", "width")
    form: ClassVar[str] = "delta:COLUMN:WIDTH"

    @property
    def label(self) -> str:
        """With column and width."""
        return f"delta_{self.column}_{self.width.label}"

    @property
    def interval(self) -> str:
        """Its first row."""
        far = f"more than {self.width.label} away"
        return f"back to the first row whose {self.column!r} is {far}"

    @property
    def explained(self) -> str:
        """By the column."""
        return f"back to the first row whose {self.column!r} is too far, in one pass"

    def starts(self, order: Order) -> Any:
        """The first row that is near."""
        return order.starts_by_delta(self.column, self.width)

    def as_query(self) -> Window:
        """Refused: a query has no value to measure from."""
        raise SpecError(
            f"the window {self!r} is measured from the {self.column!r} of a row, which "
            "a query does not have: ask for windows of a length, by windows="
        )

    def check_at(self, given: Argument) -> None:
        """Refused."""
        raise does_not_apply(
            given,
            f"the window {self!r}, which is measured from the {self.column!r} of a row",
        )

    def check_slide(self, every: Length | None) -> None:
        """Refused."""
        raise SpecError(
            f"{self!r} is a window of rolling and KeyedWindows, not of a query: give "
            f"{self.column!r} as the times, as integers, and "
            "sw.Query(width + 1, every=sw.rows(1)), or use rolling over a table or "
            "KeyedWindows with emit='final'"
        )

    @property
    def document(self) -> dict[str, Any]:
        """The column and the width."""
        width: Any = self.width.label
        if self.width.kind == "number":
            width = _plain(width)
        return {"delta": self.column, "width": width}

    @classmethod
    def of_document(cls, given: Mapping[str, Any]) -> Self:
        """By `delta`."""
        width = _width(_of_text(given.get("width")))
        made = cls(column_of_call(given["delta"], "delta"), width)
        return cls(made.column, made.width)

    def __repr__(self) -> str:
        number = self.width.kind == "number"
        width = self.width.label if number else repr(self.width.label)
        return f"delta({self.column!r}, {width})"


@overload
def delta(
    column: str | None = None, *, where: str | None = None, windows: Any = None
) -> Aggregation: ...


@overload
def delta(column: str, width: DurationLike | Real | Decimal) -> Delta: ...


@with_hints
def delta(
    column: str | None = None,
    width: DurationLike | Real | Decimal | EllipsisType = ...,
    *,
    where: str | None = None,
    windows: Any = None,
) -> Delta | Aggregation:
    """Rows whose column lies within a width of the current row's: for `rolling`.

    Without a width, `sw.delta("x")` is an aggregation: the last value less the first
    one (`slidewise.aggregations.delta`).

    The window of a row goes back from it, in order of time (and among equal times as in
    the table), to the first row (of the same key) whose column differs by more than
    `width`. The column must not fall from one row to the next: an odometer, a count, a
    second clock. Streams answer with `emit="final"`, and refuse a row that falls when
    the watermark passes it; a `KeyedWindows` goes on once that is deleted (`deletes=`).

    Differences of floats are rounded as in Python; all others are exact.

    Args:
        column: A column of integers, floats, decimals, timestamps, dates or durations,
            without nulls and NaN.
        width: The largest difference, more than zero: a number, or for times a duration
            such as "5m" or a timedelta.
        where: Of the aggregation: a column of booleans, only rows where it is true
            count.
        windows: Of the aggregation: its own windows.

    Returns:
        A window for `windows=`; without a width an aggregation.

    Raises:
        SpecError: If `column` is not the name of a column, `width` is not such a
            number, or both `width` and `where` are given.

    Source: delta-based windows, in Tangwongsan et al., PVLDB 8(7), 2015, §2.2.

    Cost: O(1).

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> drive = pa.table({"t": [1, 2, 3], "km": [10.0, 12.0, 16.5]})
        >>> out = sw.rolling(drive, on="t", windows=sw.delta("km", 5.0),
        ...                  aggs={"n": sw.count()})
        >>> out["n_delta_km_5.0"].to_pylist()
        [1, 2, 2]
    """
    if width is ...:
        return aggregations.delta(column, where=where, windows=windows)
    for name, given in (("where", where), ("windows", windows)):
        if given is not None:
            raise SpecError(
                f"delta({column!r}, {width!r}) is a window, and {name}={given!r} "
                f"belongs in its aggregations: sw.sum('x', {name}={given!r})"
            )
    return Delta(column_of_call(column, "delta"), _width(width))


def _width(given: Any) -> Length:
    is_duration = isinstance(given, str | timedelta)
    if (
        is_duration or type(given).__name__ == "timedelta64"
    ):  # of numpy, an int for ABCs
        return parse_length(given, "width")
    if is_bool(given) or not isinstance(given, SupportsIndex | Real | Decimal):
        raise SpecError(
            Argument("width", given),
            " is not a width: give a number, such as 5.0, or for a column of times a "
            "duration such as '5m'",
        )
    text = _digits(given)
    if text is None or Fraction(text) <= 0:
        raise SpecError(Argument("width", given), " must be a finite number above zero")
    return Length("number", 0, text, "width")


def _digits(number: SupportsIndex | Real | Decimal) -> str | None:
    """A number as `Fraction` reads it; None if it is not finite, or beyond floats."""
    if isinstance(number, SupportsIndex):
        return str(operator.index(number))
    if isinstance(number, Decimal):
        near = number.is_finite() and abs(number.adjusted()) < _EXPONENTS
        return str(number) if near else None
    if isinstance(number, Rational):
        return str(number)
    return repr(float(number)) if math.isfinite(number) else None


def _of_text(given: Any) -> Any:
    """A width of a document: decimals and fractions are written as text."""
    if isinstance(given, str) and re.fullmatch(r"\d[\d.]*([Ee][+-]?\d+)?", given):
        try:
            return Decimal(given)
        except InvalidOperation:
            return given
    if isinstance(given, str) and re.fullmatch(r"\d+/[1-9]\d*", given):
        return Fraction(given)
    return given


def _plain(label: str) -> Any:
    """The value of a width's digits, which `delta` gives the same digits."""
    for kind in (int, float):
        try:
            number = kind(label)
        except ValueError:
            continue
        if repr(number) == label:
            return number
    return label
