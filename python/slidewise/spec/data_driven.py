"""Data-driven windows: their ends depend on values of rows, not on time alone.

`until` closes a window at a row (punctuation), `landmark` begins one at a row, `delta`
reaches back to the first row whose value is too far away.
"""

import math
import operator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, SupportsIndex

from slidewise.aggregations.scalars import is_bool
from slidewise.errors import Argument, SpecError
from slidewise.spec.durations import DurationLike, Length, parse_length

__all__ = ["Delta", "Landmark", "Until", "delta", "landmark", "until"]


@dataclass(frozen=True, slots=True)
class Until:
    """Windows that a row with a flag closes. Made by `until`."""

    column: str

    @property
    def label(self) -> str:
        """Its name in the column `window`."""
        return f"until_{self.column}"

    def __repr__(self) -> str:
        return f"until({self.column!r})"


@dataclass(frozen=True, slots=True)
class Landmark:
    """A window from the last row with a flag on. Made by `landmark`."""

    column: str

    @property
    def label(self) -> str:
        """The suffix of result columns' names."""
        return f"landmark_{self.column}"

    def __repr__(self) -> str:
        return f"landmark({self.column!r})"


@dataclass(frozen=True, slots=True)
class Delta:
    """A window of rows whose column is near. Made by `delta`.

    Attributes:
        column: The column, which must not fall.
        width: The largest difference. Of kind "number" if it is one, which `label`
            spells.
    """

    column: str
    width: Length

    @property
    def label(self) -> str:
        """The suffix of result columns' names."""
        return f"delta_{self.column}_{self.width.label}"

    def __repr__(self) -> str:
        number = self.width.kind == "number"
        width = self.width.label if number else repr(self.width.label)
        return f"delta({self.column!r}, {width})"


# A decimal beyond them takes as much memory as it has digits.
_EXPONENTS = 400


def until(flag: str) -> Until:
    """Windows that rows close: for `hopping`, streams, and a `Query`.

    A row whose `flag` is true is the last one of its window; the next row (of the same
    key) begins another. Null is not true. Rows are in order of time, those of equal
    time as in the table. In `KeyedWindows` and streaming DataFrames these are in order
    of arrival or `then_by`, and a window is emitted when the watermark passes its last
    row.

    Args:
        flag: The column of booleans.

    Returns:
        A window for `window=` or `Query`.

    Raises:
        SpecError: If `flag` is not the name of a column.

    Source: punctuation, in Tangwongsan et al., PVLDB 8(7), 2015, §2.2.

    Cost: O(1).

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> trips = pa.table({"t": [1, 2, 5, 6], "paid": [False, True, True, False]})
        >>> out = sw.hopping(trips, on="t", window=sw.until("paid"),
        ...                  aggs={"n": sw.count()})
        >>> out["window_end"].to_pylist(), out["n"].to_pylist()
        ([2, 5], [2, 1])
    """
    return Until(_column(flag, "until"))


def landmark(flag: str) -> Landmark:
    """Everything since the last landmark: for `rolling`, and for a `Query`.

    The window of a row begins with the last row (of the same key) whose `flag` is true,
    that row included, and ends with the row itself. Before the first landmark it begins
    with the first row. Null is not true. Rows are in order of time, those of equal time
    as in the table. Streams answer with `emit="final"`, and keep the rows of each key
    from its last landmark on.

    Args:
        flag: The column of booleans.

    Returns:
        A window for `windows=` or `Query`.

    Raises:
        SpecError: If `flag` is not the name of a column.

    Source: landmark windows, in Gehrke, Korn, Srivastava: On Computing Correlated
    Aggregates over Continual Data Streams, SIGMOD 2001.

    Cost: O(1).

    Example:
        >>> import pyarrow as pa, slidewise as sw
        >>> meter = pa.table({"t": [1, 2, 5], "reset": [False, True, None]})
        >>> out = sw.rolling(meter, on="t", windows=sw.landmark("reset"),
        ...                  aggs={"n": sw.count()})
        >>> out["n_landmark_reset"].to_pylist()
        [1, 1, 2]
    """
    return Landmark(_column(flag, "landmark"))


def delta(column: str, width: DurationLike | Real | Decimal) -> Delta:
    """Rows whose column lies within a width of the current row's: for `rolling`.

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

    Returns:
        A window for `windows=`.

    Raises:
        SpecError: If `column` is not the name of a column, or `width` is not such a
            number.

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
    return Delta(_column(column, "delta"), _width(width))


def _column(given: object, function: str) -> str:
    if not isinstance(given, str):
        raise SpecError(f"{function}() takes the name of a column, got {given!r}")
    return given


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
