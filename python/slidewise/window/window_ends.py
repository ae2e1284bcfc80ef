"""Aggregations of a `Window` that read spans of time, or depend on the window's end.

The core answers them in parts that do not depend on the end: a value relative to the
latest entry, and the times and values that the rest is made of.
"""

from typing import Any

import slidewise._core as _core
from slidewise.aggregations.base import Aggregation
from slidewise.errors import SpecError
from slidewise.spec.durations import (
    Rows,
    half_life_in_ticks,
    read_half_life,
    rows,
    unit_in_ticks,
)
from slidewise.window.time_codec import SIZES, Clock

__all__ = ["check_spans", "kind_of", "read_options", "result_at_end", "span_options"]


def kind_of(agg: Aggregation) -> str:
    """The kind of an aggregation for the core, whose half-life is in no ticks yet.

    Example:
        >>> import slidewise as sw
        >>> kind_of(sw.decayed_sum(half_life="1ms")), kind_of(sw.sum())
        ('decayed_sum 1000000 1 dated', 'sum')
    """
    kind, parameters = agg.core_kind, agg.record.parameters
    if "half_life" in parameters:
        length = read_half_life(agg.half_life)
        if length.kind != "rows":
            if length.amount >= 2**63:
                raise SpecError(length.given, " is too long: int64 cannot hold it")
            kind = f"{kind} {length.amount} 1"
    return f"{kind} dated" if agg.is_ended and agg.record.result != "since" else kind


def check_spans(agg: Aggregation, kind: str, unit: str) -> None:
    """Checks that a half-life suits times of a kind.

    Raises:
        SpecError: If not.
    """
    if "half_life" in agg.record.parameters and agg.rows_of_half_life is None:
        half_life_in_ticks(agg.half_life, None if kind == "int" else SIZES[unit])


def result_at_end(agg: Aggregation, clock: Clock, parts: list[Any], end: int) -> Any:
    """A result at the end of a window, in ticks, from the parts of the core."""
    if agg.record.result == "since":
        return clock.scaled(end - parts[0], agg.scale, None)
    tick = None if clock.kind == "int" else clock.tick
    if agg.record.result == "decayed":
        value, last = parts
        half_life = half_life_in_ticks(agg.half_life, tick)
        return _core.decayed_sum(value, last, end, *half_life)
    area, first, last, value = parts
    if end > last:
        area += float(value) * (end - last)
    if agg.record.result == "area":
        return area / unit_in_ticks(agg.unit, tick)
    return area / (end - first) if end > first else None


def span_options(agg: Aggregation) -> list[Any]:
    """The parameters of such an aggregation, for the header of a snapshot.

    Example:
        >>> import slidewise as sw
        >>> span_options(sw.decayed_mean(half_life=sw.rows(5)))
        [{'half_life': {'rows': 5}}]
    """
    names = [name for name in _NAMES if name in agg.record.parameters]
    if not names:
        return []
    options = {name: getattr(agg, name) for name in names}
    if isinstance(agg.half_life, Rows):
        options["half_life"] = {"rows": agg.half_life.n}
    if "unit" in agg.record.parameters:
        options["unit"] = agg.unit
    return [options]


def read_options(options: dict[str, Any]) -> dict[str, Any]:
    """The parameters that such a record holds."""
    match options.get("half_life"):
        case {"rows": number}:
            return {**options, "half_life": rows(number)}
    return options


_NAMES = ("half_life", "hold", "edge")
