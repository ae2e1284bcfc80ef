"""The Arrow type of the answers of user-defined aggregations.

Spark and LazyFrames need it before there are answers: from `returns=`, or from the type
hint on `lower` (or on `combine`, without `lower`).
"""

import types
import typing
from datetime import date, datetime, time, timedelta
from typing import Any

import pyarrow as pa

from slidewise.errors import SpecError

__all__ = ["hinted_type", "read_type"]

_PLAIN = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    date: pa.date32(),
    datetime: pa.timestamp("us"),
    time: pa.time64("us"),
    timedelta: pa.duration("us"),
}


def read_type(returns: Any) -> pa.DataType:
    """Reads `returns=`: an Arrow type or a Python type.

    Example:
        >>> read_type(float), read_type(list[int])
        (DataType(double), ListType(list<item: int64>))
    """
    found = returns if isinstance(returns, pa.DataType) else _of_python(returns)
    if found is None:
        raise SpecError(
            f"returns={returns!r} is not a type of columns: give an Arrow "
            "type such as pyarrow.float64(), or one of bool, int, float, str, bytes, "
            "date, datetime, timedelta, or list[...] of these"
        )
    return found


def hinted_type(function: Any) -> pa.DataType | None:
    """The Arrow type of a function's return hint; None if there is none.

    Example:
        >>> def lower(partial) -> float | None: ...
        >>> hinted_type(lower), hinted_type(len)
        (DataType(double), None)
    """
    try:
        hint = typing.get_type_hints(function).get("return")
    except (TypeError, NameError, AttributeError):
        return None
    return _of_python(hint)


def _of_python(hint: Any) -> pa.DataType | None:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        some = [one for one in typing.get_args(hint) if one is not type(None)]
        return _of_python(some[0]) if len(some) == 1 else None
    if typing.get_origin(hint) is list:
        item = _of_python(typing.get_args(hint)[0])
        return None if item is None else pa.list_(item)
    return _PLAIN.get(hint) if isinstance(hint, type) else None
