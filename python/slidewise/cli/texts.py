"""Small texts for a terminal: tables, numbers, times."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa

__all__ = ["format_table", "rate", "span"]

_RULE = "─"


def format_table(table: pa.Table, columns: Sequence[str] | None = None) -> str:
    """A table as aligned text: numbers to the right, a dot where a value is missing.

    Example:
        >>> print(format_table(pa.table({"key": ["a", "b"], "n": [1, None]})))
        key  n
        ───  ─
        a    1
        b    ·
    """
    names = list(table.column_names if columns is None else columns)
    cells, rights = [], []
    for name in names:
        column = table.column(name)
        cells.append([name, *(_cell(value) for value in column.to_pylist())])
        rights.append(_is_number(column.type))
    widths = [max(map(len, column)) for column in cells]
    lines = []
    for row in zip(*cells, strict=True):
        parts = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, rights, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    lines.insert(1, "  ".join(_RULE * width for width in widths))
    return "\n".join(lines)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
    )


def _cell(value: object) -> str:
    if value is None:
        return "·"
    if isinstance(value, float):
        return f"{value:.1f}" if 0.1 <= abs(value) < 1e9 else f"{value:.6g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return str(value)


def rate(count: int, seconds: float) -> str:
    """How many per second, in the unit people say.

    Example:
        >>> rate(3_000_000, 2.0), rate(500, 1.0)
        ('1.5 M/s', '500/s')
    """
    per_second = count / max(seconds, 1e-9)
    for unit, size in ((" M", 1e6), (" k", 1e3)):
        if per_second >= size:
            return f"{per_second / size:.3g}{unit}/s"
    return f"{per_second:.0f}/s"


def span(delta: timedelta) -> str:
    """A length of time in its two largest units.

    Example:
        >>> span(timedelta(hours=3, minutes=5, seconds=9)), span(timedelta(seconds=41))
        ('3 h 5 min', '41 s')
    """
    seconds = int(delta.total_seconds())
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        amount, seconds = divmod(seconds, size)
        if amount:
            parts.append(f"{amount} {unit}")
    return " ".join(parts[:2]) or "0 s"
