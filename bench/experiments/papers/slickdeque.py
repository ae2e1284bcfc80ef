"""The figures of SlickDeque, and the paper's claims about them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bench.experiments.claims import (
    Check,
    Claim,
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
    from collections.abc import Mapping, Sequence

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
}
_MULTIS = {**_FINALS, "SlickDeque": "slick_deque", "daba_chain here": "daba_chain"}
_ENERGIES = {"values": "{energies}"}

# Bytes of a structure beside its arrays.
_HEAD = 128

# Sizes at which the window is most of the process.
_LARGEST = (1 << 22, math.inf)

# Beyond this, recalculating takes longer than the figure is worth.
_MAX_RECALCULATED = 1 << 12


def _beyond(known: Mapping[str, Any]) -> bool:
    """Skips sizes at which recalculating takes too long."""
    return bool(known["structure"] == "recalculate" and known["n"] > _MAX_RECALCULATED)


def _second(view: View, operator: str, others: Sequence[str]) -> dict[float, float]:
    """SlickDeque against the best of the others at each n."""
    mine = view.line("SlickDeque", name="rate", operator=operator)
    lines = [dict(view.line(label, name="rate", operator=operator)) for label in others]
    return {n: y / max(line.get(n, 0.0) for line in lines) for n, y in mine}


def _leads(operator: str, mean: float, most: float, *others: str) -> Check:
    """On average, and at one size at least, from n = 4 on."""

    def test(view: View) -> tuple[bool, str]:
        second = _second(view, operator, others)
        over = [quotient for n, quotient in second.items() if n >= 4]
        found = math.exp(sum(map(math.log, over)) / len(over))
        text = f"{found:.2f} of the second best on average, {max(over):.2f} at most"
        claimed = f"(claimed: {mean:g} on average, {most:g} at most)"
        return found >= mean and max(over) >= most, f"{text} {claimed}"

    return agree(f"SlickDeque, {operator}", test)


def _from(operator: str, least: int, behind: float, *others: str) -> Check:
    """Ahead at each n from one on, and at most so far behind below."""

    def test(view: View) -> tuple[bool, str]:
        second = _second(view, operator, others)
        above = {n: quotient for n, quotient in second.items() if n >= least}
        below = [quotient for n, quotient in second.items() if n < least]
        worst = min(above, key=above.__getitem__)
        text = f"{above[worst]:.2f} of the second best at n = {worst:.0f}"
        text = f"{text}, at least {min(below):.2f} below {least}"
        return above[worst] >= 1 and min(below) >= 1 - behind, text

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
            "SlickDeque is ahead of the second best by 15 % on average, by 19 % at most.",
            _leads("sum", 1.15, 1.19, *_ONE),
        ),
        Claim(
            "It is ahead from n = 4 on, and at most 1 % behind below.",
            _from("sum", 4, 0.01, *_ONE),
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
            "SlickDeque is ahead of the second best by 7 % on average, by 10 % at most.",
            _leads("max", 1.07, 1.1, *_ONE),
            why="TwoStacks takes three operations, each an instruction without a branch; "
            "a deque takes fewer than two, each a comparison and a branch that the data decide.",
        ),
        Claim(
            "It is ahead from n = 16 on, and at most 7 % behind below.",
            _from("max", 16, 0.07, *_ONE),
        ),
        Claim(
            "It takes less than 2 operations a slide (Table 1).",
            bounded("SlickDeque", "n", lambda _: 2, formula="Table 1", name="combines"),
            counted=True,
        ),
    ),
    12: (
        Claim(
            "SlickDeque is ahead of the second best by 45 % on average, by 60 % at most.",
            _leads("sum", 1.45, 1.6, *_ALL),
        ),
        Claim(
            "It is ahead from n = 4 on, and at most 3 % behind below.",
            _from("sum", 4, 0.03, *_ALL),
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
            "Naive takes n^2/2 - n/2, FlatFAT n log n - 3n/2 + 5/2 log n + 5/2 (§4.1).",
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
                    lambda n: (n + 2.5) * math.log2(n) - 1.5 * n + 2.5,
                    formula="n log2 n - 3n/2 + 5/2 log2 n + 5/2",
                    name="combines",
                ),
            ),
            counted=True,
        ),
    ),
    13: (
        Claim(
            "SlickDeque is ahead of the second best by 266 % on average, by 345 % at most.",
            _leads("max", 3.66, 4.45, *_ALL),
            why="FlatFIT, the second, answers all ranges in one walk over an array here.",
        ),
        Claim(
            "It is ahead from n = 4 on, and at most 7 % behind below.",
            _from("max", 4, 0.07, *_ALL, "Naive"),
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
                    [16, 48, 256, 768, 4096, 12_288, 1 << 16, 1 << 22],
                    [*powers(4, 26, 2), *(3 * n for n in powers(4, 25, 2))],
                ),
                words=_ENERGIES,
            ),
            Grid(
                structures={"FlatFIT, some": "flat_fit"},
                metric="memory",
                mode="ranges",
                n=1 << 12,
                q=powers(1, 5),
                words=_ENERGIES,
            ),
        ),
        note="Drawn are bytes that the structure counts; claims ask the process's, too.",
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
            Claim(
                "The process says the same (RSS): Inv as Naive, Non-Inv half of it.",
                every(
                    ratio(
                        "SlickDeque",
                        "Naive",
                        low=0.5,
                        high=1.1,
                        name="resident",
                        operator="sum",
                        n=_LARGEST,
                    ),
                    ratio(
                        "Naive",
                        "SlickDeque",
                        low=2,
                        name="resident",
                        operator="max",
                        n=_LARGEST,
                    ),
                ),
            ),
            Claim(
                "Of 1 < q < n queries FlatFIT takes 2n + n/2^(q-1) words at most (§4.2).",
                bounded(
                    "FlatFIT, some",
                    "q",
                    lambda q: 8 * (2 * 4096 + 4096 / 2 ** (q - 1)) + _HEAD,
                    formula="2n + n/2^(q-1) words",
                    name="bytes",
                ),
                counted=True,
                why="It does for q = 2. The stack has the way between two ranges, n/q entries "
                "where ranges are spread evenly, as here, and doubles when it is full.",
            ),
        ),
    ),
)
