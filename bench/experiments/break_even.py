"""Predicates over break-even points: the least window at which a structure is ahead."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench.experiments.claims import Check, View, agree, crossing

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FUNCTIONS", "crossings", "finite", "later", "never", "sooner"]

FUNCTIONS = ("sum", "max", "mean", "geomean", "min_count", "stddev", "arg_max")


def crossings(
    view: View, label: str, other: str, operators: Sequence[str], times: float = 1.0
) -> list[float]:
    """Sizes from which one is so many times as fast; infinite without one."""
    return [
        crossing(view, label, other, times, operator=operator) or math.inf
        for operator in operators
    ]


def finite(
    label: str,
    other: str,
    operators: Sequence[str],
    times: float = 1.0,
    most: float = math.inf,
) -> Check:
    """One is so many times as fast from some size on, and from `most` at last."""

    def test(view: View) -> tuple[bool, str]:
        found = crossings(view, label, other, operators, times)
        text = ", ".join(
            f"{operator} {n:.0f}" for operator, n in zip(operators, found, strict=True)
        )
        return max(found) < math.inf and max(found) <= most, text

    return agree(label, test)


def later(
    label: str,
    others: Sequence[str],
    base: str,
    operators: Sequence[str],
    low: float,
    high: float,
) -> Check:
    """A point is so many times those of others, in the geometric mean of operators."""

    def test(view: View) -> tuple[bool, str]:
        mine = crossings(view, label, base, operators)
        found = []
        for other in others:
            theirs = crossings(view, other, base, operators)
            quotients = [a / b for a, b in zip(mine, theirs, strict=True)]
            found.append(math.exp(sum(map(math.log, quotients)) / len(quotients)))
        text = ", ".join(
            f"{quotient:.1f} times that of {other}"
            for other, quotient in zip(others, found, strict=True)
        )
        return all(low <= quotient <= high for quotient in found), text

    return agree(label, test)


def never(label: str, other: str, operator: str) -> Check:
    def test(view: View) -> tuple[bool, str]:
        found = crossings(view, label, other, [operator])[0]
        return found == math.inf, "never" if found == math.inf else f"from {found:.0f}"

    return agree(f"{label}, {operator}", test)


def sooner(first: str, second: str, other: str, operators: Sequence[str]) -> Check:
    """Whether it holds for most of the operators."""

    def test(view: View) -> tuple[bool, str]:
        one = crossings(view, first, other, operators)
        two = crossings(view, second, other, operators)
        sooner = sum(a <= b for a, b in zip(one, two, strict=True))
        return sooner * 2 > len(one), f"{sooner} of {len(one)} operators"

    return agree(f"{first} before {second}", test)
