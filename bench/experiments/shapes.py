"""The parts of the rows of the catalogue."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bench.experiments.orders import Grid, Size, by_scale, powers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.experiments.claims import Claim

__all__ = [
    "COUNTED",
    "MORE",
    "N22",
    "OPERATORS",
    "OURS",
    "SHARED_LISTS",
    "Artefact",
    "break_even",
    "entries",
    "latencies",
    "up_to_n",
    "windows",
]

Look = Literal[
    "lines",
    "violins",
    "series",
    "bars",
    "deviations",
    "histograms",
    "quotients",
    "break-even",
]


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """A figure or a table.

    Args:
        key: Its name for `ONLY=`.
        label: Its name in the paper.
        title: Its title.
        grids: The grids to measure; the first is drawn.
        look: The kind of drawing.
        x: The size on the x-axis.
        y: The figure of the driver on the y-axis.
        axes: The labels of the axes.
        logs: The logarithmic axes.
        panels: The word in which panels differ.
        claims: The claims of the paper.
        note: The differences from the paper's figure.
    """

    key: str
    label: str
    title: str
    grids: tuple[Grid, ...]
    look: Look = "lines"
    x: str = "n"
    y: str = "rate"
    axes: tuple[str, str] = ("window size n", "items per second")
    logs: str = "x"
    panels: tuple[str, ...] = ("operator",)
    note: str = ""
    claims: tuple[Claim, ...] = ()

    @property
    def paper(self) -> str:
        """The key of its paper."""
        return self.key.partition("-")[0]


def entries(
    quick: int, paper: int, bloom_quick: int = 12, bloom_paper: int = 20
) -> Size:
    """Entries of a window, as exponents: fewer if a partial has two kilobytes."""

    def of(known: dict[str, Any]) -> Size:
        bloom = known["operator"] == "bloom"
        if known["scale"] == "quick":
            return 1 << (bloom_quick if bloom else quick)
        return 1 << (bloom_paper if bloom else paper)

    return of


def up_to_n(step: int, low: int = 0) -> Size:
    """Powers of two up to n."""

    def of(known: dict[str, Any]) -> Size:
        stride = step if known["scale"] == "quick" else 1
        return [*powers(low, known["n"].bit_length() - 1, stride), known["n"]]

    return of


def windows(quick: int, paper: int, step: int = 2, bloom_quick: int = 12) -> Size:
    """Windows from one entry on."""

    def of(known: dict[str, Any]) -> Size:
        bloom = known["operator"] == "bloom"
        if known["scale"] == "quick":
            return powers(0, bloom_quick if bloom else quick, step)
        return powers(0, min(paper, 20) if bloom else paper)

    return of


OPERATORS = ("sum", "geomean", "bloom")

# The structure of the package, compared with those of the papers.
OURS = {"fiba here": "fiba"}

# Windows that do not fit a few nodes.
MORE = (1024, math.inf)

COUNTED = "The same in combines, which every machine counts alike."
SHARED_LISTS = "Lists share their parts here: a combine takes O(1), not O(n)."

# 2^22 in the papers.
N22 = entries(16, 22)


def break_even(structures: Mapping[str, str], functions: tuple[str, ...]) -> Grid:
    return Grid(
        structures=structures,
        operators=functions,
        n=by_scale(powers(0, 13), powers(0, 16)),
        skip=lambda known: (
            known["operator"] in ("bloom", "collect") and known["n"] > 1 << 10
        ),
        words={"millis": by_scale(5, 50)},
    )


def latencies(metric: str, fence: int = 0, **sizes: Any) -> Grid:
    return Grid(
        operators=OPERATORS,
        n=N22,
        metric=metric,
        words={"millis": by_scale(250, 20_000), "fence": fence},
        **sizes,
    )
