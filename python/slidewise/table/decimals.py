"""Exact sums of decimals: a decimal128 is a 128-bit integer and a scale.

The integer is summed in four parts of 32 bits, whose sums fit int64; 256 bits join the
sums.
"""

import decimal
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["DIGITS", "can_sum", "from_parts", "parts_of"]

# The digits of decimal128.
DIGITS = 38

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
    step = pa.scalar(decimal.Decimal(2**_BITS), pa.decimal256(10, 0))
    whole = sums[0].cast(pa.decimal256(19, 0))
    for part in sums[1:]:
        whole = pc.add(pc.multiply(whole, step), part.cast(pa.decimal256(19, 0)))
    limit = pa.scalar(decimal.Decimal(10**DIGITS), pa.decimal256(DIGITS + 1, 0))
    fits = pc.less(pc.abs(whole), limit)
    whole = pc.if_else(fits, whole, pa.scalar(None, whole.type))
    return whole.cast(pa.decimal128(DIGITS, 0)).view(pa.decimal128(DIGITS, scale))
