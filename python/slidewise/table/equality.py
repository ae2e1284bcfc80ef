"""Equality of results: floats within the bound of docs/numbers.md, all else exactly."""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.table.arrays import decode_dictionary

__all__ = ["NEAR", "equal_cells", "equal_values"]

# The relative bound: 128 ulp of float64, between a table and a stream.
NEAR = 2.0**-45
# That of narrower floats: one rounding to their bits.
_NARROW = {16: 2.0**-10, 32: 2.0**-23}


def equal_cells(one: pa.Array, other: pa.Array) -> pa.BooleanArray:
    """Whether the cells of two columns are equal; nulls are equal, and NaNs.

    Args:
        one: A column.
        other: A column of the same type and length.

    Cost: O(rows); for lists, structs and maps as Python values.

    Example:
        >>> import pyarrow as pa
        >>> one = pa.array([0.1 + 0.2, 1.0, None, float("nan")])
        >>> equal_cells(one, pa.array([0.3, 1.1, None, float("nan")])).to_pylist()
        [True, False, True, True]
    """
    one, other = decode_dictionary(one), decode_dictionary(other)
    kind = one.type
    if pa.types.is_nested(kind):
        near = _narrow(kind)
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return pa.array([equal_values(a, b, near) for a, b in pairs], pa.bool_())
    if pa.types.is_null(kind):
        return pa.repeat(pa.scalar(True), len(one))
    if pa.types.is_floating(kind):
        equal = _near(one, other, _narrow(kind))
    else:
        equal = pc.equal(one, other)
    both = pc.and_(one.is_null(), other.is_null())
    return pc.or_(pc.fill_null(equal, False), both)


def _narrow(kind: pa.DataType) -> float:
    """The bound of a type, of the narrowest floats within it."""
    if pa.types.is_floating(kind):
        return _NARROW.get(kind.bit_width, NEAR)
    fields = (kind.field(at).type for at in range(kind.num_fields))
    return max((_narrow(each) for each in fields), default=NEAR)


def _near(one: pa.Array, other: pa.Array, bound: float) -> pa.BooleanArray:
    one, other = one.cast(pa.float64()), other.cast(pa.float64())
    apart = pc.abs(pc.subtract(one, other))
    size = pc.max_element_wise(pc.abs(one), pc.abs(other), skip_nulls=False)
    near = pc.less_equal(apart, pc.multiply(size, bound))
    near = pc.and_(near, pc.is_finite(size))
    nans = pc.and_(pc.is_nan(one), pc.is_nan(other))
    return pc.or_(pc.or_(pc.equal(one, other), near), nans)


def equal_values(one: Any, other: Any, near: float = NEAR) -> bool:
    """Whether two Python values are equal, those within lists and dicts included.

    Example:
        >>> equal_values([0.1 + 0.2, "a"], [0.3, "a"]), equal_values([1], [1, 2])
        (True, False)
    """
    if isinstance(one, float) and isinstance(other, float):
        both = math.isnan(one) and math.isnan(other)
        return both or math.isclose(one, other, rel_tol=near)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = zip(one, other, strict=False)
        same = len(one) == len(other)
        return same and all(equal_values(a, b, near) for a, b in pairs)
    if isinstance(one, dict) and isinstance(other, dict):
        same = one.keys() == other.keys()
        return same and all(equal_values(one[k], other[k], near) for k in one)
    return bool(one == other)
