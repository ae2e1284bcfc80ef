"""The figures of FiBA, and the paper's claims about them."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bench.experiments.claims import (
    Check,
    Claim,
    View,
    agree,
    ahead,
    best,
    every,
    falls,
    fits_log,
    flat,
    ratio,
    rises,
)
from bench.experiments.orders import Grid, by_scale, powers
from bench.experiments.shapes import (
    COUNTED,
    MORE,
    N22,
    OPERATORS,
    OURS,
    Artefact,
    latencies,
    up_to_n,
    windows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ROWS"]

_B_TREES = {f"btree{mu}": f"btree:{mu}" for mu in (2, 4, 8)}
_FIBAS = {f"fiba{mu}": f"fiba_published:{mu}" for mu in (2, 4, 8)}
_TREES = {**_B_TREES, **_FIBAS, **OURS}


_NEAR_THE_END = (
    "Nodes here also keep their fold without the outermost children, so a change below one "
    "of these takes two combines per level. The paper's tree folds each node again at "
    "any distance: 88 combines per slide at arity 4 and n = 8192, where this one takes 34 "
    "in order and up to 63 farther back."
)

_CLOCK = (
    "Tens of nanoseconds are the two looks at the clock; of the rounds themselves one in "
    "several touches more than a leaf."
)
_BLOOM_FAR = (
    "Counted at n = 8192, d = 1024 and min-arity 4: the classic tree takes 63 combines a "
    "slide, the finger tree 58."
)


def _late(known: Mapping[str, Any]) -> bool:
    """Neither in order, nor before all others."""
    return bool(0 < known["d"] <= known["n"] // 4)


def _far(known: Mapping[str, Any]) -> bool:
    return bool(known["d"] > 0)


def _of_cheap(first: str, second: str, **bounds: Any) -> Check:
    """The ratio for each operator that costs little."""
    return every(
        *(
            ratio(first, second, operator=cheap, **bounds)
            for cheap in ("sum", "geomean")
        )
    )


def _uptick(view: View) -> tuple[bool, str]:
    found = []
    for label in ("btree2", "btree4", "btree8", "fiba2", "fiba4", "fiba8"):
        line = view.line(label, "d", operator="sum")
        found.append((label, line[-1][1] / line[-2][1]))
    text = ", ".join(f"{label} {up:.2f}" for label, up in found)
    return all(up > 1 for _, up in found), text


def _larger_arity(view: View) -> tuple[bool, str]:
    small, *large = (
        view.value(f"fiba{mu}", operator="sum", d=_late) for mu in (2, 4, 8)
    )
    return max(large) > small, f"fiba4, fiba8 / fiba2 = {max(large) / small:.2f}"


def _never_best(operator: str) -> Callable[[View], tuple[bool, str]]:
    """At each distance one of the smaller arities is ahead of 16."""

    def test(view: View) -> tuple[bool, str]:
        lines = [
            dict(view.line(f"fiba{mu}", "d", operator=operator, d=_late))
            for mu in (2, 4, 8)
        ]
        large = view.line("fiba16", "d", operator=operator, d=_late)
        over = {d: y / max(line[d] for line in lines) for d, y in large}
        worst = max(over, key=over.__getitem__)
        text = f"{operator}: fiba16 {over[worst]:.2f} of the best at d = {worst:.0f}"
        return over[worst] < 1, text

    return test


def _crowded(view: View) -> tuple[bool, str]:
    """Range queries against separate trees, at the most windows."""
    found = [
        view.value(f"fiba{mu}_range", operator="sum", m=64)
        / view.value(f"fiba{mu}_twin", operator="sum", m=64)
        for mu in (2, 4)
    ]
    return min(found) > 1, ", ".join(f"{quotient:.2f}" for quotient in found)


def _steps(view: View) -> tuple[bool, str]:
    """By the slope: what a doubling of d adds to what a level of the tree costs."""
    found = {}
    for mu in (2, 4, 8):
        line = view.line(f"fiba{mu}", "d", name="combines", d=_late)
        rises = [more - less for (_, less), (_, more) in pairwise(line)]
        flat = sum(rise < max(rises) / 2 for rise in rises)
        found[mu] = len(rises) / (len(rises) - flat)
    text = ", ".join(f"fiba{mu} {length:.1f}" for mu, length in found.items())
    return found[2] < found[4] < found[8], text


ROWS = (
    Artefact(
        key="fiba-11",
        label="Figure 11",
        title="Out-of-order distance: throughput over d",
        x="d",
        axes=("out-of-order distance d", "items per second"),
        grids=(
            Grid(
                structures={**_TREES, "fiba16": "fiba_published:16"},
                operators=OPERATORS,
                n=N22,
                d=up_to_n(2),
            ),
            Grid(
                structures={"btree4": "btree:4", **_FIBAS},
                metric="counts",
                n=1 << 14,
                d=lambda _: powers(0, 14),
            ),
        ),
        claims=(
            Claim(
                "The classic B-tree's throughput is mostly unaffected by the distance.",
                every(
                    *(
                        flat(f"btree{mu}", "d", 1.6, operator="sum", d=_late)
                        for mu in (2, 4, 8)
                    )
                ),
                why=_NEAR_THE_END,
            ),
            Claim(
                COUNTED,
                flat("btree4", "d", 1.3, name="combines", d=_late),
                counted=True,
                why=_NEAR_THE_END,
            ),
            Claim(
                "The finger B-tree starts out significantly higher ...",
                every(
                    ahead("fiba4", "btree4", 1.5, operator="sum", d=1),
                    ahead("fiba4", "btree4", 1.5, operator="geomean", d=1),
                ),
            ),
            Claim(
                "... and degrades smoothly, following log d.",
                every(
                    *(
                        falls(f"fiba{mu}", "d", operator="sum", d=_late)
                        for mu in (2, 4, 8)
                    )
                ),
            ),
            Claim(
                COUNTED,
                fits_log("fiba2", "d", 0.9, name="combines", d=_late),
                counted=True,
            ),
            Claim("All variants see an uptick when d = n.", agree("n / n/2", _uptick)),
            Claim(
                "For expensive operators, such as bloom, a smaller arity performs better.",
                best("fiba2", ("fiba4", "fiba8"), operator="bloom", d=_late),
            ),
            Claim(
                "For cheap operators, such as sum, trees that rebalance less do.",
                agree("", _larger_arity),
            ),
            Claim(
                "A min-arity above 8 is never competitive.",
                every(*(agree("", _never_best(operator)) for operator in OPERATORS)),
            ),
            Claim(
                "The curves are step-like: the larger the min-arity, the longer a step.",
                agree("doublings of d that one step takes", _steps),
                counted=True,
            ),
        ),
    ),
    Artefact(
        key="fiba-12",
        label="Figure 12",
        title="Latency of a round at d = 0 and far out of order",
        look="violins",
        y="p50",
        axes=("structure", "nanoseconds"),
        panels=("d", "operator"),
        grids=(
            latencies(
                "latency", structures=_TREES, d=lambda known: [0, known["n"] // 4]
            ),
        ),
        note="Nanoseconds instead of cycles. d is n/4, as 2^20 is of 2^22.",
        claims=(
            Claim(
                "At d = 0 the medians are orders of magnitude better for the finger trees "
                "(sum, geomean).",
                _of_cheap("btree4", "fiba4", low=10, name="p50", d=0),
                why=_CLOCK,
            ),
            Claim(
                "So are the least (sum, geomean).",
                _of_cheap("btree4", "fiba4", low=10, name="least", d=0),
                why=_CLOCK,
            ),
            Claim(
                "At d = 0 the worst cases are similar (sum, geomean).",
                _of_cheap(
                    "btree4", "fiba4", low=0.5, high=2, name="trimmed_longest", d=0
                ),
            ),
            Claim(
                "At d = 0 with an expensive operator, the finger trees have significantly "
                "lower latency.",
                ratio("btree4", "fiba4", low=2, name="p50", operator="bloom", d=0),
            ),
            Claim(
                "Far out of order the two have similar latency (sum, geomean).",
                _of_cheap("btree4", "fiba4", low=0.5, high=2, name="p50", d=_far),
            ),
            Claim(
                "Far out of order with bloom, min-arity 2 has the lowest latency.",
                best(
                    "fiba2",
                    ("fiba4", "fiba8", "btree2", "btree4", "btree8"),
                    least=True,
                    name="p50",
                    operator="bloom",
                    d=_far,
                ),
            ),
            Claim(
                "Its least, median and 99.9th percentile are orders of magnitude below "
                "those of the classic trees.",
                every(
                    *(
                        ratio(
                            f"btree{mu}",
                            "fiba2",
                            low=10,
                            name=name,
                            operator="bloom",
                            d=_far,
                        )
                        for mu in (2, 4, 8)
                        for name in ("least", "p50", "p99.9")
                    )
                ),
                why=_BLOOM_FAR,
            ),
            Claim(
                "There it gets worse with min-arity 4 and improves with min-arity 8.",
                every(
                    ratio(
                        "fiba4", "fiba2", low=1.05, name="p50", operator="bloom", d=_far
                    ),
                    ratio(
                        "fiba4", "fiba8", low=1.05, name="p50", operator="bloom", d=_far
                    ),
                ),
                why="The paper lays it to n, d and the arity of the root, which happen to "
                "meet so at its sizes.",
            ),
        ),
    ),
    Artefact(
        key="fiba-13",
        label="Figure 13",
        title="In order: throughput over n",
        grids=(
            Grid(
                structures={
                    "two-stacks": "two_stacks",
                    "daba": "daba",
                    "reactive": "reactive",
                    **_TREES,
                },
                operators=OPERATORS,
                n=windows(16, 22),
            ),
            Grid(
                structures={"reactive": "reactive", **_TREES},
                metric="counts",
                n=powers(4, 14, 2),
            ),
        ),
        claims=(
            Claim(
                "For most window sizes two-stacks has the best throughput.",
                best(
                    "two-stacks",
                    ("daba", "reactive", "fiba4", "btree4"),
                    operator="sum",
                ),
            ),
            Claim(
                "DABA is generally second best.",
                best("daba", ("reactive", "fiba2", "fiba4", "btree4"), operator="sum"),
            ),
            Claim(
                "The finger B-trees show constant performance as the window grows.",
                every(
                    flat("fiba4", "n", 1.5, operator="sum", n=MORE),
                    flat("fiba4", "n", 1.5, operator="geomean", n=MORE),
                ),
            ),
            Claim(
                COUNTED,
                flat("fiba4", "n", 1.2, name="combines", n=(256, math.inf)),
                counted=True,
            ),
            Claim(
                "The best finger B-trees stay within 30 % of DABA for sum and geomean.",
                every(
                    ratio("fiba4", "daba", low=0.7, operator="sum", n=MORE),
                    ratio("fiba4", "daba", low=0.7, operator="geomean", n=MORE),
                ),
                why="DABA is a ring of partials without times here; a round of it takes a "
                "few nanoseconds, and the tree keeps times.",
            ),
            Claim(
                "They are about 60 % off of DABA for bloom.",
                ratio(
                    "fiba2",
                    "daba",
                    low=0.3,
                    high=0.5,
                    operator="bloom",
                    n=(256, math.inf),
                ),
            ),
            Claim(
                "The classic B-trees clearly show O(log n).",
                # A staircase of the height: two combines per level and change.
                fits_log("btree4", "n", 0.9, name="combines"),
                counted=True,
            ),
            Claim(
                "Reactive shows O(log n).",
                fits_log("reactive", "n", 0.95, name="combines"),
                counted=True,
            ),
            Claim(
                "The same in combines.",
                best(
                    "reactive",
                    ("btree2", "btree4", "btree8", "fiba2", "fiba4", "fiba8"),
                    least=True,
                    name="combines",
                    n=(256, math.inf),
                ),
                counted=True,
                why="At n = 4096 Reactive takes 12 combines a slide, fiba2 11.",
            ),
            Claim(
                "For bloom, Reactive outperforms all B-trees.",
                best(
                    "reactive",
                    ("btree2", "btree4", "btree8", "fiba2", "fiba4", "fiba8"),
                    operator="bloom",
                    n=(256, math.inf),
                ),
            ),
        ),
    ),
    Artefact(
        key="fiba-14",
        label="Figure 14",
        title="Window sharing: two windows, or one and a range query",
        x="q",
        axes=("size of the small window", "rounds per second"),
        grids=tuple(
            Grid(
                structures={f"{name}{mu}_{mode}": f"{kind}:{mu}" for mu in (2, 4, 8)},
                operators=OPERATORS if metric == "throughput" else ("sum",),
                metric=metric,
                mode=mode,
                n=N22,
                q=up_to_n(2),
                d=lambda known: known["q"] // 2,
            )
            for metric in ("throughput", "memory")
            for name, kind in (("fiba", "fiba_published"), ("btree", "btree"))
            for mode in ("twin", "range")
            if metric == "throughput" or name == "fiba"
        ),
        claims=(
            Claim(
                "Sharing does not consistently improve runtime: the two stay in the same "
                "ballpark.",
                every(
                    *(
                        ratio(
                            f"fiba{mu}_range",
                            f"fiba{mu}_twin",
                            low=0.6,
                            high=1.4,
                            operator=operator,
                        )
                        for mu in (2, 4, 8)
                        for operator in ("sum", "geomean")
                    )
                ),
            ),
            Claim(
                "The primary benefit is reduced space.",
                every(
                    *(
                        ratio(
                            f"fiba{mu}_range", f"fiba{mu}_twin", high=1.0, name="bytes"
                        )
                        for mu in (2, 4, 8)
                    )
                ),
                counted=True,
            ),
        ),
    ),
    Artefact(
        key="fiba-54",
        label="Section 5.4",
        title="More than two windows: as many trees, or one and range queries",
        x="m",
        axes=("small windows", "rounds per second"),
        panels=("operator",),
        grids=tuple(
            Grid(
                structures={
                    f"fiba{mu}_{mode}": f"fiba_published:{mu}" for mu in (2, 4)
                },
                operators=("sum", "geomean") if metric == "throughput" else ("sum",),
                metric=metric,
                mode=mode,
                n=by_scale(1 << 14, 1 << 22),
                q=lambda known: known["n"] // 2,
                m=powers(0, 6),
            )
            for metric in ("throughput", "memory")
            for mode in ("twin", "range")
        ),
        note="In order; the small windows are spread evenly up to half of the large one.",
        claims=(
            Claim(
                "Shared space stays that of one window, however many there are.",
                every(
                    flat("fiba2_range", "m", 1.01, name="bytes"),
                    flat("fiba4_range", "m", 1.01, name="bytes"),
                    rises("fiba2_twin", "m", name="bytes"),
                    rises("fiba4_twin", "m", name="bytes"),
                ),
                counted=True,
            ),
            Claim(
                "With many windows separate ones get slower by the memory they take.",
                agree("range / twin", _crowded),
                why="A round of a separate window in order takes a constant number of "
                "combines, a range query O(log n) of them.",
            ),
        ),
    ),
)
