"""Predicates over break-even points: the least window at which a structure is ahead."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench.experiments.claims import Check, View, agree, crossing

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FUNCTIONS", "crossings", "finite", "never", "sooner"]

FUNCTIONS = ("sum", "max", "mean", "geomean", "min_count", "stddev", "arg_max")


def crossings(
    view: View, label: str, other: str, operators: Sequence[str]
) -> list[float]:
    """Break-even points; infinite without one."""
    return [
        crossing(view, label, other, operator=operator) or math.inf
        for operator in operators
    ]


def finite(label: str, other: str, operators: Sequence[str]) -> Check:
    def test(view: View) -> tuple[bool, str]:
        found = crossings(view, label, other, operators)
        text = ", ".join(
            f"{operator} {n:.0f}" for operator, n in zip(operators, found, strict=True)
        )
        return max(found) < math.inf, text

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
