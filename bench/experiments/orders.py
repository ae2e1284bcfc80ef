"""The orders for the driver, in grids, and the figures that it returned."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "READING",
    "Grid",
    "Order",
    "Results",
    "Scale",
    "Size",
    "by_scale",
    "of_turn",
    "powers",
]

Scale = Literal["quick", "paper"]

# The words of one measurement; the same words are measured once.
Order = tuple[tuple[str, str], ...]

# In a word: the number of one of three files, another in each turn.
READING = "{reading}"
_READINGS = 3

# A number, several, or a function of the known words of an order that returns them.
Size = int | Sequence[int] | Callable[[dict[str, Any]], "Size"]

# Letters may depend on those before them.
_LETTERS = ("n", "q", "m", "d")


def powers(first: int, last: int, step: int = 1) -> list[int]:
    """Powers of two, by their exponents, the last one included."""
    return [1 << at for at in range(first, last + 1, step)]


def by_scale(quick: Size, paper: Size) -> Size:
    """A size for each scale."""

    def of(known: dict[str, Any]) -> Size:
        return quick if known["scale"] == "quick" else paper

    return of


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Orders for every structure with every operator and every size.

    Args:
        structures: The driver's name of a structure, by the name in the paper.
        operators: Names of operators.
        metric: The metric to measure.
        mode: The operations of a round.
        skip: Whether to leave out an order, by its words.
        words: Words for every order, such as `millis`.
    """

    structures: Mapping[str, str]
    operators: Sequence[str] = ("sum",)
    metric: str = "throughput"
    mode: str = "slide"
    n: Size = 1024
    q: Size = 1
    m: Size = 1
    d: Size = 0
    skip: Callable[[dict[str, Any]], bool] = lambda _: False
    words: Mapping[str, Size | str] = field(default_factory=dict)

    def orders(self, scale: Scale, data: Mapping[str, str]) -> Iterator[Point]:
        """The points of the grid.

        Args:
            scale: The scale of sizes.
            data: The files of data by name: `{values}` in a word becomes its file.
        """
        for (label, structure), operator in itertools.product(
            self.structures.items(), self.operators
        ):
            start: dict[str, Any] = {
                "scale": scale,
                "label": label,
                "structure": structure,
                "operator": operator,
                "metric": self.metric,
                "mode": self.mode,
            }
            for known in _sized(start, _LETTERS, self):
                if known["d"] > known["n"] or known["m"] > known["n"]:
                    continue
                if not self.skip(known):
                    yield Point(known, _words(known, self.words, data))


@dataclass(frozen=True)
class Point:
    """A point of a figure, and the order that gives it."""

    known: dict[str, Any]
    order: Order

    @property
    def timed(self) -> bool:
        """Whether it takes time, rather than counting."""
        return dict(self.order).get("metric", "counts") not in ("counts", "memory")

    @property
    def repeated(self) -> bool:
        """Whether a second run may give other figures."""
        return self.timed or any(READING in word for _, word in self.order)


def of_turn(order: Order, turn: int) -> Order:
    """The order with the file of that turn."""
    number = str(turn % _READINGS)
    return tuple((name, word.replace(READING, number)) for name, word in order)


def _sized(
    known: dict[str, Any], letters: Sequence[str], grid: Grid
) -> Iterator[dict[str, Any]]:
    if not letters:
        yield known
        return
    for size in _sizes(getattr(grid, letters[0]), known):
        yield from _sized(known | {letters[0]: size}, letters[1:], grid)


def _sizes(size: Size, known: dict[str, Any]) -> Sequence[int]:
    while callable(size):
        size = size(known)
    return [size] if isinstance(size, int) else sorted(set(size))


def _words(
    known: dict[str, Any], words: Mapping[str, Size | str], data: Mapping[str, str]
) -> Order:
    given: dict[str, str] = {
        name: str(known[name])
        for name in ("metric", "mode", "structure", "operator", *_LETTERS)
    }
    for name, value in words.items():
        if isinstance(value, str):
            given[name] = value.format(**data)
        else:
            given[name] = str(_sizes(value, known)[0])
    return tuple(sorted(given.items()))


class Results:
    """The figures of every order, one set for each turn."""

    def __init__(self) -> None:
        self._runs: dict[Order, list[dict[str, Any]]] = {}

    def add(self, order: Order, figures: dict[str, Any]) -> None:
        """Adds the figures of one turn."""
        self._runs.setdefault(order, []).append(figures)

    def has(self, order: Order) -> bool:
        """Whether an order was measured, or refused."""
        return order in self._runs

    def runs(self, order: Order) -> list[dict[str, Any]]:
        """The measurements, a set of figures for each turn, without errors."""
        runs = self._runs.get(order, [])
        return [figures for figures in runs if "error" not in figures]

    def turns(self) -> int:
        """The most turns that an order had."""
        return max((len(runs) for runs in self._runs.values()), default=0)

    def errors(self) -> list[tuple[Order, str]]:
        """Orders that were refused, and the reasons."""
        return [
            (order, runs[0]["error"])
            for order, runs in self._runs.items()
            if runs and "error" in runs[0]
        ]

    def value(self, order: Order, name: str, turn: int | None) -> float | None:
        """A figure of a turn, or the median of all."""
        runs = self.runs(order)
        found = [float(figures[name]) for figures in runs if name in figures]
        if not found:
            return None
        if turn is None:
            return statistics.median(found)
        return found[turn % len(found)]

    def to_json(self) -> list[dict[str, Any]]:
        """All results, for a file."""
        return [
            {"order": dict(order), "runs": runs} for order, runs in self._runs.items()
        ]

    @classmethod
    def from_json(cls, lines: list[dict[str, Any]]) -> Results:
        """Reads the result of `to_json`."""
        results = cls()
        for line in lines:
            order = tuple(sorted(line["order"].items()))
            for figures in line["runs"]:
                results.add(order, figures)
        return results
