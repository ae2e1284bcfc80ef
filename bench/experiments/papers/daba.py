"""The figures of DABA, and the paper's claims about them."""

from __future__ import annotations

import math

from bench.experiments.break_even import FUNCTIONS, finite, later, never, sooner
from bench.experiments.claims import (
    Check,
    Claim,
    View,
    agree,
    ahead,
    bounded,
    every,
    ratio,
    rises,
    slope,
)
from bench.experiments.orders import Grid, by_scale, powers
from bench.experiments.shapes import (
    OPERATORS,
    SHARED_LISTS,
    Artefact,
    break_even,
    entries,
    windows,
)

__all__ = ["ROWS"]

_FIFO = {"Two-Stacks": "two_stacks", "ABA": "aba", "DABA": "daba"}
_REACTIVE = {"Reactive": "reactive"}
_RECALC = {"Recalc": "recalculate"}
_DABA_FUNCTIONS = (
    *("sum", "max", "mean", "geomean", "min_count", "stddev", "arg_max", "bloom"),
    "collect",
)


def _falls_by_memory(label: str, operator: str) -> Check:
    """Less at n = 2^20 than at n = 2^10, which fits the nearest cache."""

    def test(view: View) -> tuple[bool, str]:
        small = view.value(label, operator=operator, n=1 << 10)
        large = view.value(label, operator=operator, n=1 << 20)
        return large < small, f"{large / small:.2f} of the rate at 2^10"

    return agree(f"{operator}: {label} at 2^20", test)


ROWS = (
    Artefact(
        key="daba-t1",
        label="Table 1",
        title="Window sizes from which a structure is ahead of recalculating",
        look="break-even",
        grids=(break_even({**_REACTIVE, **_FIFO, **_RECALC}, _DABA_FUNCTIONS),),
        note="Sizes are interpolated between powers of two. Lists of `collect` share "
        "their parts here; they are written out at each query.",
        claims=(
            Claim(
                "All are ahead of recalculating from some small window on, but for collect.",
                every(
                    *(
                        finite(label, "Recalc", (*FUNCTIONS, "bloom"))
                        for label in ("Reactive", "Two-Stacks", "ABA", "DABA")
                    )
                ),
            ),
            Claim(
                "ABA breaks even before Two-Stacks, and that before DABA.",
                every(
                    sooner("ABA", "Two-Stacks", "Recalc", FUNCTIONS),
                    sooner("Two-Stacks", "DABA", "Recalc", FUNCTIONS),
                ),
                why="Two-Stacks is ahead of recalculating from n = 1 on here, where ABA is not yet; from n = 4 on ABA is the faster (Figure 18 top).",
            ),
            Claim(
                "Reactive breaks even last.",
                sooner("DABA", "Reactive", "Recalc", FUNCTIONS),
            ),
            Claim(
                "Reactive's break-even points are 10 to 100 times those of the others, "
                "but for bloom.",
                later(
                    "Reactive",
                    ("Two-Stacks", "ABA", "DABA"),
                    "Recalc",
                    FUNCTIONS,
                    10,
                    100,
                ),
            ),
            Claim(
                "None ever breaks even for collect.",
                every(
                    *(
                        never(label, "Recalc", "collect")
                        for label in ("Reactive", "Two-Stacks", "ABA", "DABA")
                    )
                ),
                why=SHARED_LISTS,
            ),
        ),
    ),
    Artefact(
        key="daba-18",
        label="Figure 18 top",
        title="Throughput over n",
        grids=(
            Grid(
                structures={
                    **_RECALC,
                    **_REACTIVE,
                    **_FIFO,
                    "DABA uncached": "daba:uncached",
                },
                operators=OPERATORS,
                n=windows(20, 20),
                skip=lambda known: (
                    known["structure"] == "recalculate" and known["n"] > 1 << 10
                ),
            ),
            Grid(
                structures={
                    **_RECALC,
                    **_REACTIVE,
                    **_FIFO,
                    "DABA uncached": "daba:uncached",
                },
                metric="counts",
                n=powers(4, 10, 2),
            ),
        ),
        claims=(
            Claim(
                "Recalc is O(n).",
                every(
                    slope(
                        "Recalc", "n", -1.15, -0.85, operator="bloom", n=(16, math.inf)
                    ),
                    slope(
                        "Recalc",
                        "n",
                        -1.15,
                        -0.85,
                        operator="geomean",
                        n=(64, math.inf),
                    ),
                ),
            ),
            Claim(
                "Two-Stacks and ABA have the best throughput.",
                every(
                    ahead("Two-Stacks", "DABA", operator="sum"),
                    ahead("ABA", "DABA", operator="sum"),
                    ahead("Two-Stacks", "DABA", operator="bloom"),
                    ahead("ABA", "DABA", operator="bloom"),
                ),
            ),
            Claim(
                "Reactive is outperformed by Two-Stacks, ABA and DABA.",
                every(
                    *(
                        ahead(label, "Reactive", operator=operator, n=(16, math.inf))
                        for label in ("Two-Stacks", "ABA", "DABA")
                        for operator in ("sum", "geomean")
                    )
                ),
            ),
            Claim(
                "ABA and DABA improve up to n = 2^8 for sum and geomean.",
                every(
                    *(
                        rises(label, "n", operator=operator, n=(4, 1 << 8))
                        for label in ("ABA", "DABA")
                        for operator in ("sum", "geomean")
                    )
                ),
            ),
            Claim(
                "All fall where n comes near 2^20 and memory is slow.",
                every(
                    *(
                        _falls_by_memory(label, "geomean")
                        for label in ("Two-Stacks", "ABA", "DABA")
                    )
                ),
            ),
            Claim(
                "Caching makes a marginal difference for cheap operators ...",
                ratio("DABA", "DABA uncached", low=0.9, high=1.1, operator="sum"),
            ),
            Claim(
                "... and a modest but consistent one for bloom.",
                ratio("DABA", "DABA uncached", low=1.02, operator="bloom"),
            ),
            Claim(
                "DABA with caching takes 4 combines a round, without 5 (Theorem 9).",
                every(
                    bounded(
                        "DABA", "n", lambda _: 4, formula="the theorem", name="combines"
                    ),
                    bounded(
                        "DABA uncached", "n", lambda _: 5, formula="it", name="combines"
                    ),
                ),
                counted=True,
            ),
            Claim(
                "Two-Stacks and ABA take 3 combines a round.",
                every(
                    bounded(
                        "Two-Stacks", "n", lambda _: 3, formula="it", name="combines"
                    ),
                    bounded("ABA", "n", lambda _: 3, formula="it", name="combines"),
                ),
                counted=True,
            ),
        ),
    ),
    Artefact(
        key="daba-18-latency",
        label="Figure 18 bottom",
        title="Latency of each round, n = 2^14",
        look="series",
        y="longest",
        axes=("rounds, the longest of each part", "nanoseconds"),
        grids=(
            Grid(
                structures=_FIFO,
                operators=OPERATORS,
                metric="latency",
                n=by_scale(entries(14, 14), 1 << 14),
                words={"millis": by_scale(400, 5_000)},
            ),
            Grid(structures=_FIFO, metric="counts", n=1 << 10),
        ),
        claims=(
            Claim(
                "Two-Stacks and ABA have periodic spikes, DABA has none.",
                every(
                    *(
                        ratio(
                            label,
                            "DABA",
                            low=3,
                            name="trimmed_longest",
                            operator=operator,
                        )
                        for label in ("Two-Stacks", "ABA")
                        for operator in ("sum", "geomean")
                    )
                ),
            ),
            Claim(
                "The worst round takes O(n) combines, DABA's at most 6.",
                every(
                    bounded("DABA", "n", lambda _: 6, formula="the bound", name="most"),
                    agree(
                        "Two-Stacks at its worst",
                        lambda view: (
                            view.value("Two-Stacks", "most") >= 1 << 10,
                            f"{view.value('Two-Stacks', 'most'):.0f} of n = 1024",
                        ),
                    ),
                ),
                counted=True,
            ),
        ),
    ),
    Artefact(
        key="daba-t2",
        label="Table 2",
        title="Mean latency and its deviation, n = 2^14",
        look="deviations",
        y="mean",
        axes=("structure", "nanoseconds, mean and deviation"),
        grids=(
            Grid(
                structures=_FIFO,
                operators=_DABA_FUNCTIONS[:-1],
                metric="latency",
                n=by_scale(entries(14, 14), 1 << 14),
                words={"millis": by_scale(200, 5_000)},
            ),
        ),
        claims=(
            Claim(
                "Two-Stacks and ABA have lower average latency than DABA.",
                every(
                    *(
                        ratio(label, "DABA", high=1, name="mean", operator=operator)
                        for label in ("Two-Stacks", "ABA")
                        for operator in ("sum", "geomean", "bloom")
                    )
                ),
                why="Of the 30 nanoseconds of a round 20 or more are the two looks at the clock, and what interrupts the process moves the mean; Figure 18 has the rates.",
            ),
            Claim(
                "DABA's standard deviation is about 3 to 25 times lower than Two-Stacks'.",
                every(
                    *(
                        ratio(
                            "Two-Stacks",
                            "DABA",
                            low=3,
                            name="deviation",
                            operator=operator,
                        )
                        for operator in ("sum", "geomean", "bloom")
                    )
                ),
                why="At a few nanoseconds a round, what interrupts the process weighs as "
                "much as a flip.",
            ),
        ),
    ),
)
