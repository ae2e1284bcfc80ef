"""The bucket of each key: a remainder of its hash, for as long as state exists."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.frames.base import one_array
from slidewise.table.encoding import ValueColumn
from slidewise.table.group_codes import key_hashes

__all__ = ["buckets_of", "split"]

# The bucket comes from the bits of the hash above these.
_PARTITION_BITS = 40
# The hash of a missing key.
_NO_KEY = 0x9E3779B97F4A7C15 - 2**64


def buckets_of(by: Sequence[str], rows: pa.Table, buckets: int) -> pa.Array:
    """The numbers of the buckets of rows, by their key columns."""
    high = pc.shift_right(_hashes(by, rows), _PARTITION_BITS)
    high = pc.bit_wise_and(high, (1 << (64 - _PARTITION_BITS)) - 1)
    multiples = pc.multiply(pc.divide(high, buckets), buckets)
    return pc.subtract(high, multiples)


def split(
    by: Sequence[str], rows: pa.Table, buckets: int
) -> Iterator[tuple[int, pa.Table]]:
    """Splits rows by bucket, in their order; leaves out buckets without rows."""
    if buckets == 1:
        if len(rows):
            yield 0, rows
        return
    of_row = buckets_of(by, rows, buckets)
    order = pc.sort_indices(of_row)
    rows, start = rows.take(order), 0
    for bucket in pc.value_counts(of_row.take(order)).to_pylist():
        yield bucket["values"], rows.slice(start, bucket["counts"])
        start += bucket["counts"]


def _hashes(by: Sequence[str], rows: pa.Table) -> pa.Array:
    """A hash of the key of each row, the same in all versions."""
    mixed: pa.Array = None
    for name in by:
        column = one_array(rows.column(name))
        # A checkpoint fixes the hashes of the other types, which are older.
        if pa.types.is_nested(column.type):
            own = key_hashes([(name, column)], len(rows))
        else:
            own = pc.fill_null(ValueColumn(name, _hashable(column)).hashes, _NO_KEY)
        mixed = own if mixed is None else pc.add(pc.multiply(mixed, 31), own)
    if mixed is None:
        return pa.repeat(pa.scalar(0, pa.int64()), len(rows))
    return mixed


def _hashable(keys: pa.Array) -> pa.Array:
    """Converts keys to a type that can be hashed; equal keys stay equal."""
    if pa.types.is_floating(keys.type):
        # Both zeros are one key.
        return pc.add(keys.cast(pa.float64()), 0.0)
    if pa.types.is_date32(keys.type) or pa.types.is_time32(keys.type):
        return keys.cast(pa.int32())
    return keys.cast(pa.string()) if pa.types.is_decimal(keys.type) else keys
