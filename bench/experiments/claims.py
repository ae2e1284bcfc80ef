"""Predicates over a figure: what a paper says of it, in numbers.

A check runs once for each turn of the measurements. It *holds* if all turns agree
that it does, *fails* if all agree that it does not, and is *undecided* if they
disagree, or if what it needs was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from bench.experiments.orders import Point, Results

__all__ = [
    "Check",
    "Claim",
    "Finding",
    "MissingError",
    "Verdict",
    "View",
    "agree",
    "ahead",
    "below",
    "best",
    "bounded",
    "crossing",
    "every",
    "falls",
    "fits_log",
    "flat",
    "judge",
    "ratio",
    "rises",
    "slope",
]

State = Literal["holds", "fails", "undecided"]


class MissingError(Exception):
    """What a check needs was not measured."""


@dataclass(frozen=True)
class Finding:
    """Whether it is so, and the figures that say it."""

    so: bool
    figures: str


# The fields that identify a point, with its structure.
_CELL = ("operator", "n", "q", "m", "d")


@dataclass(frozen=True)
class View:
    """The points of a figure in one turn, or in the median of all.

    Args:
        points: All points of the figure.
        results: What was measured.
        turn: Which turn; None for medians.
        name: Which of the driver's figures is meant where none is named.
    """

    points: Sequence[Point]
    results: Results
    turn: int | None
    name: str

    def line(
        self, label: str, x: str = "n", name: str | None = None, **where: Any
    ) -> list[tuple[float, float]]:
        """The points of a structure by rising x.

        Args:
            label: The structure's name in the paper.
            x: A size: n, m, d or q.
            name: One of the driver's figures.
            where: What points must have: `operator="sum"`; a range of sizes as
                `n=(lo, hi)`; a function of all that is known.

        Raises:
            MissingError: If there is none.
        """
        place = _CELL.index(x)
        cells = self.cells(label, name, **where)
        return sorted({(float(cell[place]), y) for cell, y in cells.items()})

    def cells(
        self, label: str, name: str | None = None, **where: Any
    ) -> dict[tuple[Any, ...], float]:
        """The values of a structure by operator and sizes; arguments as of `line`."""
        cells = {}
        for point in self.points:
            known = point.known
            if known["label"] != label or not _fits(known, where):
                continue
            value = self.results.value(point.order, name or self.name, self.turn)
            if value is not None:
                cells[tuple(known.get(size) for size in _CELL)] = value
        if not cells:
            raise MissingError(f"{_at(where)}{label}")
        return cells

    def value(self, label: str, name: str | None = None, **where: Any) -> float:
        """The geometric mean over the points of a structure."""
        found = list(self.cells(label, name, **where).values())
        return found[0] if len(found) == 1 else _mean(found)


def _fits(known: dict[str, Any], where: dict[str, Any]) -> bool:
    for name, wanted in where.items():
        has = known[name]
        if callable(wanted):
            if not wanted(known):
                return False
        elif isinstance(wanted, tuple):
            low, high = wanted
            if not low <= has <= high:
                return False
        elif has != wanted:
            return False
    return True


Check = Callable[[View], Finding]


@dataclass(frozen=True)
class Claim:
    """What a paper says.

    Args:
        says: In words.
        check: The same as a predicate.
        counted: Whether it counts operations, so that every machine finds the same.
        why: Where it fails here, the reason.
    """

    says: str
    check: Check
    counted: bool = False
    why: str = ""


@dataclass(frozen=True)
class Verdict:
    """How a claim fares."""

    claim: Claim
    state: State
    figures: str


def judge(
    claim: Claim, points: Sequence[Point], results: Results, name: str
) -> Verdict:
    """Checks the turns, and states the medians."""
    turns = results.turns()
    try:
        stated = claim.check(View(points, results, None, name)).figures
        found = [
            claim.check(View(points, results, turn, name)).so for turn in range(turns)
        ]
    except MissingError as missing:
        return Verdict(claim, "undecided", f"not measured: {missing}")
    if len(set(found)) != 1:
        split = f"the turns disagree: it holds in {sum(found)} of {turns}"
        return Verdict(claim, "undecided", f"{stated}; {split}")
    return Verdict(claim, "holds" if found[0] else "fails", stated)


def ahead(
    first: str, second: str, factor: float = 1.0, name: str | None = None, **where: Any
) -> Check:
    """The first is at least `factor` times the second, in the geometric mean."""
    return ratio(first, second, low=factor, name=name, **where)


def ratio(
    first: str,
    second: str,
    *,
    low: float = 0.0,
    high: float = math.inf,
    name: str | None = None,
    **where: Any,
) -> Check:
    """First ÷ second lies between two bounds, in the geometric mean of all x."""

    def check(view: View) -> Finding:
        mine = view.cells(first, name, **where)
        other = view.cells(second, name, **where)
        common = [cell for cell in mine if cell in other]
        if not common:
            raise MissingError(f"{_at(where)}{first} and {second} together")
        quotient = _mean([mine[cell] / other[cell] for cell in common])
        wanted = f"at least {low:g}" if high == math.inf else f"{low:g} to {high:g}"
        text = f"{_at(where)}{first} / {second} = {quotient:.3g} (claimed: {wanted})"
        return Finding(low <= quotient <= high, text)

    return check


def best(
    winner: str,
    others: Sequence[str],
    *,
    least: bool = False,
    name: str | None = None,
    **where: Any,
) -> Check:
    """One is ahead of all others, or below them, in the geometric mean."""

    def check(view: View) -> Finding:
        values = {
            label: view.value(label, name, **where) for label in (winner, *others)
        }
        order = sorted(values, key=values.__getitem__, reverse=not least)
        text = ", ".join(f"{label} {values[label]:.3g}" for label in order)
        return Finding(order[0] == winner, f"{_at(where, name)}{text}")

    return check


def flat(
    label: str, x: str, within: float, name: str | None = None, **where: Any
) -> Check:
    """The largest is at most `within` times the smallest."""

    def check(view: View) -> Finding:
        line = view.line(label, x, name, **where)
        values = [y for _, y in line]
        spread = max(values) / min(values)
        text = f"{_at(where)}{label}: largest / smallest = {spread:.3g}"
        text = f"{text} over {_span(line, x)}"
        return Finding(spread <= within, f"{text} (claimed: at most {within:g})")

    return check


def falls(label: str, x: str, name: str | None = None, **where: Any) -> Check:
    """Smaller with rising x: the rank correlation is at most −0.8."""
    return _trend(label, x, -1, name, where)


def rises(label: str, x: str, name: str | None = None, **where: Any) -> Check:
    """Larger with rising x: the rank correlation is at least 0.8."""
    return _trend(label, x, 1, name, where)


def _trend(
    label: str, x: str, sign: int, name: str | None, where: dict[str, Any]
) -> Check:
    def check(view: View) -> Finding:
        line = view.line(label, x, name, **where)
        if len(line) < 3:
            raise MissingError(f"three points of {label}")
        rho = _ranks(line)
        first, last = line[0][1], line[-1][1]
        text = f"{_at(where)}{label}: {first:.3g} to {last:.3g} over {_span(line, x)}"
        text = f"{text}, rank correlation {rho:.2f}"
        return Finding(sign * rho >= 0.8, text)

    return check


def slope(
    label: str, x: str, low: float, high: float, name: str | None = None, **where: Any
) -> Check:
    """The slope on two logarithmic axes lies between two bounds."""

    def check(view: View) -> Finding:
        line = view.line(label, x, name, **where)
        found, _, _ = _fit([(math.log(at), math.log(y)) for at, y in line])
        text = f"{_at(where)}{label}: slope {found:.2f} over {_span(line, x)}"
        return Finding(low <= found <= high, f"{text} (claimed: {low:g} to {high:g})")

    return check


def fits_log(
    label: str,
    x: str,
    least: float,
    *,
    inverse: bool = False,
    name: str | None = None,
    **where: Any,
) -> Check:
    """y, or 1/y, is a + b log x with b > 0: R² is at least `least`."""

    def check(view: View) -> Finding:
        line = view.line(label, x, name, **where)
        fitted = [(math.log2(at), 1 / y if inverse else y) for at, y in line if at > 0]
        rise, _, fit = _fit(fitted)
        text = f"{_at(where)}{label}: R² = {fit:.3f} against a + b log {x}"
        return Finding(fit >= least and rise > 0, f"{text} (claimed: {least:g})")

    return check


def bounded(
    label: str,
    x: str,
    bound: Callable[[float], float],
    *,
    formula: str,
    exactly: bool = False,
    name: str | None = None,
    **where: Any,
) -> Check:
    """Each value is at most what a formula of x says, or that to one in a thousand.

    Args:
        label: The structure.
        x: The size the formula takes.
        bound: The formula.
        formula: The formula in words.
        exactly: Whether it is not a bound but the value.
        name: One of the driver's figures.
        where: What points must have.
    """

    def check(view: View) -> Finding:
        line = view.line(label, x, name, **where)
        off = [
            abs(y - bound(at)) / max(bound(at), 1.0)
            if exactly
            else y - bound(at) * (1 + 1e-9)
            for at, y in line
        ]
        worst = max(range(len(line)), key=off.__getitem__)
        at, y = line[worst]
        text = f"{label}: {y:.5g} at {x} = {at:.0f}, where {formula} = {bound(at):.5g}"
        return Finding(off[worst] <= (1e-3 if exactly else 0), text)

    return check


def below(
    lower: Sequence[str], higher: Sequence[str], name: str | None = None, **where: Any
) -> Check:
    """Each of some structures has less than each of the others."""

    def check(view: View) -> Finding:
        values = {
            label: view.value(label, name, **where) for label in (*lower, *higher)
        }
        text = ", ".join(
            f"{label} {values[label]:.3g}"
            for label in sorted(values, key=values.get)  # type: ignore[arg-type]
        )
        most = max(values[label] for label in lower)
        so = most < min(values[label] for label in higher)
        return Finding(so, f"{_at(where)}{text}")

    return check


def crossing(
    view: View, label: str, other: str, times: float = 1.0, **where: Any
) -> float | None:
    """The n from which on one is ahead of another for good; None if it never is.

    Between two points the quotient is taken to be straight on logarithmic axes.
    """
    mine, base = dict(view.line(label, **where)), dict(view.line(other, **where))
    quotients = [(n, mine[n] / base[n] / times) for n in sorted(mine) if n in base]
    behind = [at for at, (_, quotient) in enumerate(quotients) if quotient < 1]
    if not behind:
        return quotients[0][0]
    if behind[-1] + 1 == len(quotients):
        return None
    (n, low), (after, high) = quotients[behind[-1]], quotients[behind[-1] + 1]
    part = math.log(1 / low) / math.log(high / low)
    return n * math.pow(after / n, part)


def every(*checks: Check) -> Check:
    """All of them hold."""

    def check(view: View) -> Finding:
        findings = [one(view) for one in checks]
        return Finding(
            all(finding.so for finding in findings),
            "; ".join(finding.figures for finding in findings),
        )

    return check


def agree(formula: str, test: Callable[[View], tuple[bool, str]]) -> Check:
    """A predicate of its own: what it says, and a function of the view."""

    def check(view: View) -> Finding:
        so, figures = test(view)
        return Finding(so, f"{formula}: {figures}" if formula else figures)

    return check


def _at(where: dict[str, Any], name: str | None = None) -> str:
    """What is fixed, for the head of a text."""
    fixed = [str(where["operator"])] if "operator" in where else []
    fixed += [
        f"{letter} = {size}" for letter, size in where.items() if isinstance(size, int)
    ]
    fixed += [name] if name else []
    return f"{', '.join(fixed)}: " if fixed else ""


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(max(value, 1e-12)) for value in values) / len(values))


def _span(line: Sequence[tuple[float, float]], x: str) -> str:
    return f"{x} = {line[0][0]:.0f} to {line[-1][0]:.0f}"


def _ranks(line: Sequence[tuple[float, float]]) -> float:
    """Spearman's rank correlation."""
    by_y = sorted(range(len(line)), key=lambda at: line[at][1])
    rank = {at: place for place, at in enumerate(by_y)}
    n = len(line)
    squares = sum((rank[at] - at) ** 2 for at in range(n))
    return 1 - 6 * squares / (n * (n * n - 1))


def _fit(line: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Slope, offset and R² of a straight line by least squares."""
    if len(line) < 3:
        raise MissingError("three points to fit")
    n = len(line)
    mean_x = sum(x for x, _ in line) / n
    mean_y = sum(y for _, y in line) / n
    xx = sum((x - mean_x) ** 2 for x, _ in line)
    xy = sum((x - mean_x) * (y - mean_y) for x, y in line)
    yy = sum((y - mean_y) ** 2 for _, y in line)
    return xy / xx, mean_y - xy / xx * mean_x, xy * xy / (xx * yy) if yy else 1.0
