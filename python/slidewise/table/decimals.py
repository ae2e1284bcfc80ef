"""Exact sums and means of decimals: a decimal128 is a 128-bit integer and a scale.

The integer is summed in four parts of 32 bits, whose sums fit int64; 256 bits join the
sums.
"""

import decimal
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "DIGITS",
    "as_numbers",
    "can_sum",
    "from_parts",
    "mean_scale",
    "means_of_parts",
    "parts_of",
]

# The digits of decimal128, and of the integers that int64 holds.
DIGITS = 38
_SHORT = 18
# The digits that a mean has after those of its column.
_ADDED = 6

_BITS = 32
_LOW = 2**_BITS - 1
_INT64, _UINT64 = pa.int64(), pa.uint64()


def can_sum(kind: pa.DataType) -> bool:
    """Whether a type is a decimal of at most 38 digits."""
    return bool(pa.types.is_decimal(kind) and kind.precision <= DIGITS)


def parts_of(array: pa.Array) -> tuple[pa.Array, ...]:
    """The four parts as int64, the highest, which has the sign, first.

    Example:
        >>> array = pa.array([decimal.Decimal("-0.01"), None])
        >>> [part.to_pylist() for part in parts_of(array)]
        [[-1, None], [4294967295, None], [4294967295, None], [4294967295, None]]
    """
    array = array.cast(pa.decimal128(DIGITS, array.type.scale))
    words = pa.Array.from_buffers(
        _INT64, 2 * len(array), [None, array.buffers()[1]], offset=2 * array.offset
    )
    even = pa.array(range(0, 2 * len(array), 2), _INT64)
    high, low = words.take(pc.add(even, 1)), words.take(even).view(_UINT64)
    parts = (
        pc.shift_right(high, pa.scalar(_BITS, _INT64)),
        pc.bit_wise_and(high, pa.scalar(_LOW, _INT64)),
        pc.shift_right(low, pa.scalar(_BITS, _UINT64)).cast(_INT64),
        pc.bit_wise_and(low, pa.scalar(_LOW, _UINT64)).cast(_INT64),
    )
    valid = array.is_valid()
    return tuple(pc.if_else(valid, part, None) for part in parts)


def from_parts(sums: Sequence[pa.Array], scale: int) -> pa.Array:
    """The decimals of sums of parts; null where they exceed 38 digits.

    Example:
        >>> array = pa.array([decimal.Decimal("-0.01"), None])
        >>> from_parts(parts_of(array), 2).to_pylist()
        [Decimal('-0.01'), None]
    """
    return _scaled(_whole(sums), scale)


def means_of_parts(
    sums: Sequence[pa.Array], counts: pa.Array, scale: int, to_scale: int
) -> pa.Array:
    """The means of sums of parts, rounded half to even; null where they do not fit.

    Args:
        sums: The sums of parts of integers; nulls where there is none.
        counts: The number of integers of each.
        scale: The digits after the point that the integers stand for.
        to_scale: Those of the results, at least as many.

    Example:
        >>> array = pa.array([decimal.Decimal("-0.01"), None])
        >>> counts = pa.array([3, 0])
        >>> means_of_parts(parts_of(array), counts, 2, 8).to_pylist()
        [Decimal('-0.00333333'), None]
    """
    counts = pc.if_else(pc.greater(counts, 0), counts, None)
    # The integers have 38 digits, and there are fewer than 10^10 of them.
    whole = _whole(sums).cast(pa.decimal256(DIGITS + 10, 0))
    factor = decimal.Decimal(10 ** (to_scale - scale))
    whole = pc.multiply(whole, pa.scalar(factor, pa.decimal256(_ADDED + 1, 0)))
    # A quotient is cut after 20 digits. A count has fewer, so halves stay halves.
    means = pc.divide(whole, counts.cast(pa.decimal256(19, 0)))
    means = pc.round(means, 0, "half_to_even")
    return _scaled(means.cast(pa.decimal256(means.type.precision, 0)), to_scale)


def mean_scale(scale: int) -> int:
    """The digits after the point of means of decimals.

    Example:
        >>> mean_scale(2), mean_scale(36)
        (8, 38)
    """
    return min(scale + _ADDED, DIGITS)


def as_numbers(array: pa.Array) -> tuple[pa.Array, float]:
    """Decimals as int64 without their point and its unit, or the nearest floats and 1.

    Example:
        >>> array = pa.array([decimal.Decimal("-0.25"), None])
        >>> numbers, unit = as_numbers(array)
        >>> numbers.to_pylist(), unit
        ([-25, None], 100.0)
    """
    kind = array.type
    if kind.precision > _SHORT:
        return array.cast(pa.float64()), 1.0
    short = array.cast(pa.decimal128(kind.precision, kind.scale))
    whole = short.view(pa.decimal128(kind.precision, 0)).cast(_INT64)
    return whole, 10.0**kind.scale


def _whole(sums: Sequence[pa.Array]) -> pa.Array:
    """The integers of sums of parts."""
    step = pa.scalar(decimal.Decimal(2**_BITS), pa.decimal256(10, 0))
    whole = sums[0].cast(pa.decimal256(19, 0))
    for part in sums[1:]:
        whole = pc.add(pc.multiply(whole, step), part.cast(pa.decimal256(19, 0)))
    return whole


def _scaled(whole: pa.Array, scale: int) -> pa.Array:
    """Integers as decimals; null where they exceed 38 digits."""
    limit = pa.scalar(decimal.Decimal(10**DIGITS), pa.decimal256(DIGITS + 1, 0))
    fits = pc.less(pc.abs(whole), limit)
    whole = pc.if_else(fits, whole, pa.scalar(None, whole.type))
    return whole.cast(pa.decimal128(DIGITS, 0)).view(pa.decimal128(DIGITS, scale))
