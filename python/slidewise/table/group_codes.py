"""Codes and hashes of keys: rows of equal keys have equal ones.

Null is a key. Both zeros are one key, and all NaNs are one.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

import slidewise._core as _core
from slidewise.errors import SpecError
from slidewise.table.arrays import decode_dictionary, storage_of

__all__ = ["group_codes", "key_hashes", "single_group"]

_INT64 = pa.int64()
_CODE = pa.uint32()
_CODES = 2**32
_LARGEST = 2**63 - 1


def single_group(rows: int) -> pa.Array:
    """The key codes of a table without keys."""
    return pa.repeat(pa.scalar(0, _CODE), rows)


def group_codes(
    columns: Sequence[tuple[str, pa.Array]], *, in_order: bool = True
) -> pa.Array | None:
    """Dense codes of the distinct keys as uint32; null is a key.

    Args:
        columns: Names and key columns.
        in_order: Whether codes must be numbered in order of first occurrence.
    """
    if len(columns) == 1 and not in_order:
        near = _dense_integer_codes(columns[0][1])
        if near is not None:
            return near
    codes: pa.Array | None = None
    for name, column in columns:
        code, count = _codes(name, column)
        if codes is not None:
            # Both factors are at most the number of rows, so the product fits int64.
            ahead = pc.multiply(codes.cast(_INT64), pa.scalar(count, _INT64))
            pairs = pc.add(ahead, code.cast(_INT64))
            code, _ = _codes(name, pairs)
        codes = code
    return codes


def _dense_integer_codes(column: pa.Array) -> pa.Array | None:
    """Integers of a small range as codes without hashing; None for others.

    Hashing takes longer than most aggregations.
    """
    if not pa.types.is_integer(column.type) or column.null_count or len(column) == 0:
        return None
    ends = pc.min_max(column).as_py()
    codes = min(len(column), _CODES)
    if ends["max"] - ends["min"] >= codes or ends["max"] > _LARGEST:
        return None
    if ends["min"] >= 0 and ends["max"] < codes:
        # Some codes may be unused.
        return column.cast(_CODE)
    near = pc.subtract(column.cast(_INT64), pa.scalar(ends["min"], _INT64))
    return near.cast(_CODE)


def _codes(name: str, column: pa.Array) -> tuple[pa.Array, int]:
    column = storage_of(column)
    if pa.types.is_dictionary(column.type):
        # A dictionary may hold a key twice, or null; its values decide.
        column = decode_dictionary(column)
    if pa.types.is_floating(column.type):
        # −0.0 and 0.0 are one key, and all NaNs are one key.
        column = pc.add(column.cast(pa.float64()), 0.0)
        column = pc.if_else(pc.is_nan(column), float("nan"), column)
    if pa.types.is_nested(column.type):
        # Arrow hashes neither structs nor lists.
        column = _key_bytes(name, column)
    try:
        encoded = column.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError as error:
        raise _no_key(name, column) from error
    return encoded.indices.view(_CODE), len(encoded.dictionary)


def key_hashes(columns: Iterable[tuple[str, pa.Array]], rows: int) -> pa.Array:
    """An int64 hash of the key of each row, the same in all processes."""
    mixed = pa.repeat(pa.scalar(0, _INT64), rows)
    for name, column in columns:
        plain = storage_of(decode_dictionary(column))
        own = pa.array(_core.hashes(_key_bytes(name, plain)))
        mixed = pc.add(pc.multiply(mixed, pa.scalar(31, _INT64)), own)
    return mixed


def _key_bytes(name: str, column: pa.Array) -> pa.Array:
    """A key column as binary: equal values are equal keys, and null is one."""
    try:
        return pa.array(_core.key_bytes(column))
    except TypeError as error:
        raise _no_key(name, column) from error


def _no_key(name: str, column: pa.Array) -> SpecError:
    return SpecError(
        f"column {name!r} ({column.type}) cannot be a key: keys are numbers, text, "
        "times and the like, and structs and lists of these"
    )
