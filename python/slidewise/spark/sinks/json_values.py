"""Values of Arrow as JSON, without loss: `encoder` and `decoder` of a type."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["decoder", "dumps", "encoder"]

_Function = Callable[[Any], Any]
_MICROSECOND = timedelta(microseconds=1)
# JSON has no words for these; PostgreSQL and Python read them.
_WORDS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def dumps(value: Any) -> str:
    """Writes JSON without spaces; text stays as it is.

    Example:
        >>> dumps(["é", 1])
        '["é",1]'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encoder(kind: pa.DataType) -> _Function:
    """Returns a function from Python values of a type to what `dumps` writes.

    Decimals become text, so that no reader rounds them; times are in ISO 8601,
    durations a number of microseconds, and bytes in base 64. A map whose keys are no
    text becomes a list of pairs.

    Example:
        >>> encoder(pa.list_(pa.float64()))([1.5, float("nan"), None])
        [1.5, 'NaN', None]
    """
    convert = _encoder(kind)
    return lambda value: None if value is None else convert(value)


def decoder(kind: pa.DataType) -> _Function:
    """Returns the inverse of `encoder`.

    Example:
        >>> decoder(pa.decimal128(9, 2))("1.50")
        Decimal('1.50')
    """
    convert = _decoder(kind)
    return lambda value: None if value is None else convert(value)


def _encoder(kind: pa.DataType) -> _Function:
    types = pa.types
    if types.is_floating(kind):
        return lambda value: _WORDS.get(str(value), value)
    if types.is_decimal(kind):
        return str
    if types.is_duration(kind):
        return lambda value: value // _MICROSECOND
    if types.is_temporal(kind):
        return lambda value: value.isoformat()
    if types.is_binary(kind) or types.is_large_binary(kind):
        return lambda value: b64encode(value).decode()
    return _nested(kind, encoder, reads=False)


def _decoder(kind: pa.DataType) -> _Function:
    types = pa.types
    if types.is_floating(kind):
        return float
    if types.is_decimal(kind):
        return Decimal
    if types.is_duration(kind):
        return lambda value: value * _MICROSECOND
    if types.is_timestamp(kind):
        return datetime.fromisoformat
    if types.is_date(kind):
        return date.fromisoformat
    if types.is_time(kind):
        return time.fromisoformat
    if types.is_binary(kind) or types.is_large_binary(kind):
        return b64decode
    return _nested(kind, decoder, reads=True)


def _nested(
    kind: pa.DataType, convert: Callable[[pa.DataType], _Function], *, reads: bool
) -> _Function:
    """The function of a type with parts; of all others, one that changes nothing."""
    types = pa.types
    if types.is_map(kind):
        key, item = convert(kind.key_type), convert(kind.item_type)
        is_text = types.is_string(kind.key_type)

        def converted(pairs: Any) -> Any:
            pairs = pairs.items() if isinstance(pairs, dict) else pairs
            both = [(key(one), item(other)) for one, other in pairs]
            return dict(both) if is_text and not reads else both

        return converted
    if types.is_list(kind) or types.is_large_list(kind):
        value = convert(kind.value_type)
        return lambda values: [value(each) for each in values]
    if types.is_struct(kind):
        parts = {field.name: convert(field.type) for field in kind}
        return lambda row: {name: part(row[name]) for name, part in parts.items()}
    return lambda value: value
