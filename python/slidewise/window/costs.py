"""The costs of the algorithms as text; the core gives the numbers and counts them."""

from collections.abc import Callable
from functools import cache

import slidewise._core as _core

__all__ = ["cost_fields"]

# Amortised and worst case, by operation.
_Costs = dict[str, tuple[str, str]]


@cache
def _rows() -> dict[str, dict[str, tuple[_Costs, _Costs]]]:
    """The costs by algorithm and variant: with ties="combine", and with ties="keep"."""
    found: dict[str, dict[str, tuple[_Costs, _Costs]]] = {}
    for algorithm, variant, combine, keep in _core.costs():
        both = tuple(
            {name: (amortised, worst) for name, amortised, worst in costs}
            for costs in (combine, keep)
        )
        found.setdefault(algorithm, {})[variant] = (both[0], both[1])
    return found


def cost_fields(algorithm: str) -> dict[str, str]:
    """The fields of a card that describe costs."""
    variants = _rows()[algorithm]
    first = next(iter(variants.values()))

    def each(text: Callable[..., str], *operation: str | int) -> str:
        shown = (
            (variant, text(*both, *operation)) for variant, both in variants.items()
        )
        return _joined(list(shown))

    return {
        "amortised": each(_number, "slide", 0),
        "worst": each(_number, "slide", 1),
        "insert": each(_phrase, "insert"),
        "evict": each(_phrase, "evict"),
        "query": each(_phrase, "query") + _repeated(*first),
        "bulk": _bulk(*first),
        "moves": f"{_most(first[0]['moves'][1])} in one operation",
    }


def _number(combine: _Costs, keep: _Costs, name: str, at: int, unit: str = "") -> str:
    """A number, and the number with ties="keep" if it differs."""
    ours, theirs = combine[name][at], keep[name][at]
    shown = ours
    if unit and not ours.startswith("O("):
        shown += f" {unit}" if ours == "1" else f" {unit}s"
    return shown if ours == theirs else f'{shown} ({theirs} with ties="keep")'


def _phrase(combine: _Costs, keep: _Costs, name: str) -> str:
    amortised, worst = combine[name]
    if amortised == worst:
        return _number(combine, keep, name, 1, "combine")
    amortised = _number(combine, keep, name, 0, "combine")
    return f"amortised {amortised}, worst {_number(combine, keep, name, 1)}"


def _joined(texts: list[tuple[str, str]]) -> str:
    """The text of the default, then those of variants that differ."""
    (name, default), *others = texts
    differ = [f"{variant}: {text}" for variant, text in others if text != default]
    return "; ".join([f"{name}: {default}" if name and differ else default, *differ])


def _repeated(combine: _Costs, keep: _Costs) -> str:
    if combine["repeated"] == combine["query"] or "O(" in combine["repeated"][1]:
        return ""
    text = _number(combine, keep, "repeated", 1)
    return f"; {text} if nothing has changed since the last query"


def _bulk(combine: _Costs, keep: _Costs) -> str:
    evict = _number(combine, keep, "evict_until", 1)
    insert = combine["insert_many"][1]
    if evict == insert:
        return evict
    return f"evict_until {evict}; insert_many {insert}"


def _most(number: str) -> str:
    return number if number.startswith("O(") else f"at most {number}"
