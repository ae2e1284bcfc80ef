"""The figures of SlickDeque, and the paper's claims about them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bench.experiments.claims import (
    Check,
    Claim,
    MissingError,
    View,
    agree,
    below,
    best,
    bounded,
    every,
    falls,
    flat,
    ratio,
)
from bench.experiments.orders import Grid, by_scale, powers
from bench.experiments.shapes import Artefact, windows

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ROWS"]

_FINALS = {
    "Naive": "recalculate",
    "FlatFAT": "flat_fat",
    "B-Int": "b_int",
    "FlatFIT": "flat_fit",
}
_SINGLES = {
    **_FINALS,
    "TwoStacks": "two_stacks",
    "DABA": "daba",
    "SlickDeque": "slick_deque",
    "subtract on evict": "subtract_on_evict",
}
_MULTIS = {**_FINALS, "SlickDeque": "slick_deque", "daba_chain here": "daba_chain"}
_ONE_RANGE = (
    "`slick_deque` keeps a list of ranges, of one range here, which costs more than the "
    "operation that it saves. `subtract_on_evict` is SlickDeque (Inv) without that list "
    "and is ahead of all others."
)
_ENERGIES = {"values": "{energies}"}

# Beyond this, recalculating takes longer than the figure is worth.
_MAX_RECALCULATED = 1 << 12


def _beyond(known: Mapping[str, Any]) -> bool:
    """Skips sizes at which recalculating takes too long, and operators without inverse."""
    if known["structure"] == "subtract_on_evict":
        return bool(known["operator"] == "max")
    return bool(known["structure"] == "recalculate" and known["n"] > _MAX_RECALCULATED)


def _second(view: View, operator: str, name: str, others: Any) -> tuple[float, str]:
    """SlickDeque against the best of the others at each n, on average."""
    mine = dict(
        view.line("SlickDeque", name="rate", operator=operator, n=(4, math.inf))
    )
    lines = []
    for label in others:
        lines.append(dict(view.line(label, name=name, operator=operator)))
    over = [y / max(line.get(n, 0.0) for line in lines) for n, y in mine.items()]
    if not over:
        raise MissingError("SlickDeque")
    mean = math.exp(sum(map(math.log, over)) / len(over))
    return mean, f"{mean:.2f} of the second best, {min(over):.2f} to {max(over):.2f}"


def _leads(operator: str, factor: float, *others: str) -> Check:
    def test(view: View) -> tuple[bool, str]:
        mean, text = _second(view, operator, "rate", others)
        return mean >= factor, f"{text} (claimed: {factor:g} on average)"

    return agree(f"SlickDeque, {operator}", test)


_ONE = ("FlatFAT", "B-Int", "FlatFIT", "TwoStacks", "DABA")
_ALL = ("FlatFAT", "B-Int", "FlatFIT")


def _lowest(operator: str) -> Check:
    names = ("least", "p25", "p50", "trimmed_mean", "p75", "trimmed_longest")
    return every(
        *(
            best("SlickDeque", _ONE, least=True, name=name, operator=operator)
            for name in names
        )
    )


_CLAIMS = {
    10: (
        Claim(
            "SlickDeque, FlatFIT, TwoStacks and DABA have constant throughput.",
            every(
                *(
                    flat(label, "n", 2, n=(16, 1 << 16), name="rate")
                    for label in ("SlickDeque", "FlatFIT", "TwoStacks", "DABA")
                )
            ),
        ),
        Claim(
            "FlatFAT, B-Int and Naive degrade steadily.",
            every(
                *(
                    falls(label, "n", name="rate", n=(4, math.inf))
                    for label in ("FlatFAT", "B-Int", "Naive")
                )
            ),
        ),
        Claim(
            "SlickDeque is ahead of the second best by 15 % on average.",
            _leads("sum", 1.15, *_ONE),
            why=_ONE_RANGE,
        ),
        Claim(
            "It takes 2 operations a slide, FlatFIT and TwoStacks 3 (Table 1).",
            every(
                bounded(
                    "SlickDeque", "n", lambda _: 2, formula="Table 1", name="combines"
                ),
                bounded(
                    "FlatFIT", "n", lambda _: 3, formula="Table 1", name="combines"
                ),
                bounded(
                    "TwoStacks", "n", lambda _: 3, formula="Table 1", name="combines"
                ),
            ),
            counted=True,
        ),
    ),
    11: (
        Claim(
            "SlickDeque is ahead of the second best by 7 % on average.",
            _leads("max", 1.07, *_ONE),
            why="TwoStacks takes three operations, each an instruction without a branch; "
            "a deque takes fewer than two, each a comparison and a branch that the data decide.",
        ),
        Claim(
            "It takes less than 2 operations a slide (Table 1).",
            bounded("SlickDeque", "n", lambda _: 2, formula="Table 1", name="combines"),
            counted=True,
        ),
    ),
    12: (
        Claim(
            "SlickDeque is ahead of the second best by 45 % on average.",
            _leads("sum", 1.45, *_ALL),
        ),
        Claim(
            "It takes 2n operations a slide (Table 1).",
            bounded(
                "SlickDeque",
                "n",
                lambda n: 2 * n,
                n=(2, math.inf),
                formula="2n",
                exactly=True,
                name="combines",
            ),
            counted=True,
        ),
        Claim(
            "Naive takes n^2 (as counted: n^2/2 - n/2), FlatFAT n log n.",
            every(
                bounded(
                    "Naive",
                    "n",
                    lambda n: n * n / 2 - n / 2,
                    formula="n^2/2 - n/2",
                    exactly=True,
                    name="combines",
                ),
                bounded(
                    "FlatFAT",
                    "n",
                    lambda n: n * math.log2(n) + 3 * math.log2(n) + 3,
                    formula="n log2 n + 3 log2 n + 3",
                    name="combines",
                ),
            ),
            counted=True,
        ),
    ),
    13: (
        Claim(
            "SlickDeque is ahead of the second best by 266 % on average.",
            _leads("max", 3.66, *_ALL),
            why="FlatFIT, the second, answers all ranges in one walk over an array here.",
        ),
        Claim(
            "It takes less than 2 operations a slide for all answers, 2n at worst.",
            bounded("SlickDeque", "n", lambda _: 2, formula="2", name="combines"),
            counted=True,
        ),
        Claim(
            "FlatFIT takes n operations a slide.",
            bounded("FlatFIT", "n", lambda n: n, formula="n", name="combines"),
            counted=True,
        ),
    ),
}

ROWS = (
    *(
        Artefact(
            key=f"slickdeque-{number}",
            label=f"Figure {number}",
            title=f"One query ({operator}): throughput over n",
            axes=("window size n", "queries per second"),
            grids=(
                Grid(
                    structures=_SINGLES,
                    operators=(operator,),
                    n=windows(16, 27),
                    words=_ENERGIES,
                    skip=_beyond,
                ),
                Grid(
                    structures=_SINGLES,
                    operators=(operator,),
                    metric="counts",
                    n=powers(2, 10, 2),
                    words=_ENERGIES,
                    skip=_beyond,
                ),
            ),
            claims=_CLAIMS[number],
        )
        for number, operator in ((10, "sum"), (11, "max"))
    ),
    *(
        Artefact(
            key=f"slickdeque-{number}",
            label=f"Figure {number}",
            title=f"As many queries as entries ({operator}): throughput over n",
            axes=("window size n", "slides per second"),
            logs="xy",
            grids=tuple(
                Grid(
                    structures=_MULTIS,
                    operators=(operator,),
                    metric=metric,
                    mode="ranges",
                    n=by_scale(powers(0, 10), powers(0, 16 if rate else 10)),
                    q=lambda known: known["n"],
                    words=_ENERGIES,
                    skip=_beyond,
                )
                for metric in ("throughput", "counts")
                for rate in (metric == "throughput",)
            ),
            claims=_CLAIMS[number],
        )
        for number, operator in ((12, "sum"), (13, "max"))
    ),
    Artefact(
        key="slickdeque-14",
        label="Figure 14",
        title="Latency of a slide, n = 1024",
        look="violins",
        y="trimmed_mean",
        axes=("structure", "nanoseconds"),
        grids=(
            Grid(
                structures=_SINGLES,
                operators=("sum", "max"),
                metric="latency",
                n=1024,
                words={**_ENERGIES, "millis": by_scale(150, 5_000)},
                skip=_beyond,
            ),
        ),
        note="The highest 0.005 % are dropped, as in the paper.",
        claims=(
            Claim(
                "SlickDeque (Inv) has the lowest latency in least, quartiles, median, mean "
                "and longest.",
                _lowest("sum"),
                why="The clock tells steps of ten nanoseconds or more; ties decide.",
            ),
            Claim(
                "So has SlickDeque (Non-Inv).",
                _lowest("max"),
                why="The clock tells steps of ten nanoseconds or more; ties decide.",
            ),
            Claim(
                "DABA's longest is several times SlickDeque's (283 % on average).",
                ratio("DABA", "SlickDeque", low=2, name="trimmed_longest"),
                why="DABA's longest round takes 6 combines, some nanoseconds.",
            ),
        ),
    ),
    Artefact(
        key="slickdeque-15",
        label="Figure 15",
        title="Memory over n",
        y="bytes",
        axes=("window size n", "bytes"),
        logs="xy",
        grids=(
            Grid(
                structures=_SINGLES,
                operators=("sum", "max"),
                metric="memory",
                n=by_scale(
                    [16, 48, 256, 768, 4096, 12_288, 1 << 16],
                    [*powers(4, 26, 2), *(3 * n for n in powers(4, 25, 2))],
                ),
                words=_ENERGIES,
                skip=lambda known: (
                    known["structure"] == "subtract_on_evict"
                    and known["operator"] == "max"
                ),
            ),
        ),
        note="Bytes that the structure counts; the paper has the process's.",
        claims=(
            Claim(
                "SlickDeque (Inv) matches the space of Naive.",
                ratio(
                    "SlickDeque",
                    "Naive",
                    low=0.5,
                    high=1.1,
                    name="bytes",
                    operator="sum",
                    n=(256, 1 << 12),
                ),
                counted=True,
            ),
            Claim(
                "FlatFIT, TwoStacks and DABA take more, FlatFAT and B-Int the most.",
                every(
                    below(
                        ("Naive",),
                        ("FlatFIT", "TwoStacks", "DABA"),
                        name="bytes",
                        operator="sum",
                        n=(16, 1 << 12),
                    ),
                    below(
                        ("TwoStacks", "DABA", "FlatFIT"),
                        ("FlatFAT", "B-Int"),
                        name="bytes",
                        operator="sum",
                    ),
                ),
                counted=True,
                why="Rings double, so that a structure has up to twice the room it needs; "
                "a partial of a sum has 8 bytes, and so has a link of FlatFIT.",
            ),
            Claim(
                "SlickDeque (Non-Inv) takes half of Naive's on average.",
                ratio("Naive", "SlickDeque", low=2, name="bytes", operator="max"),
                counted=True,
            ),
        ),
    ),
)
