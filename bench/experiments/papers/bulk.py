"""The figures of Bulk FiBA, and the paper's claims about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.experiments.claims import (
    Check,
    Claim,
    View,
    agree,
    ahead,
    below,
    best,
    every,
    falls,
    flat,
    ratio,
    rises,
)
from bench.experiments.orders import Grid, by_scale, powers
from bench.experiments.shapes import (
    COUNTED,
    N22,
    OPERATORS,
    OURS,
    Artefact,
    latencies,
    up_to_n,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ROWS"]

_NB = {f"nb_fiba{mu}": f"fiba_published:{mu}:loop" for mu in (4, 8)}
_BULK = {f"b_fiba{mu}": f"fiba_published:{mu}" for mu in (4, 8)}
_LITE = {
    "amta": "amta:timed",
    "twostacks_lite": "two_stacks_lite:timed",
    "daba_lite": "daba_lite:timed",
}
_BULKS = {**_NB, **_BULK, **OURS}
_BULKS_IN_ORDER = {**_BULKS, **_LITE}


_M1024 = by_scale(256, 1024)
_SAMPLE = (
    "A sample of trips has a share of the entries, of a week; whole months decide."
)


_FENCE = {"fence": 1}


def _part(known: Mapping[str, Any]) -> bool:
    """Bulks that leave most of the window."""
    return bool(known["m"] <= known["n"] // 4)


def _largest_bulk(view: View) -> tuple[bool, str]:
    found = []
    for label in ("b_fiba4", "b_fiba8", "twostacks_lite", "daba_lite", "amta"):
        line = view.line(label, "m", operator="sum")
        most = max(y for _, y in line)
        found.append((label, line[-1][1] / most))
    text = ", ".join(f"{label} {drop:.2f}" for label, drop in found)
    return all(drop < 0.9 for _, drop in found), text


def _single(view: View) -> tuple[bool, str]:
    share = view.value("trips", "single")
    return share >= 0.5, f"{share:.1%} of the insertions evict one entry or none"


def _at_least(name: str, least: float, formula: str) -> Check:
    def test(view: View) -> tuple[bool, str]:
        found = view.value("trips", name)
        return found >= least, f"{found:,.4g}, at least {least:,g}"

    return agree(formula, test)


ROWS = (
    Artefact(
        key="bulk-7",
        label="Figure 7",
        title="Latency of a bulk evict, in order",
        look="violins",
        y="p50",
        axes=("structure", "nanoseconds"),
        grids=(
            latencies(
                "latency-evict",
                mode="bulk-evict",
                structures=_BULKS_IN_ORDER,
                m=_M1024,
                fence=1,
            ),
        ),
        claims=(
            Claim(
                "b_fiba4, b_fiba8 and amta have the best latencies.",
                every(
                    *(
                        below(
                            ("b_fiba4", "b_fiba8", "amta"),
                            ("nb_fiba4", "nb_fiba8", "twostacks_lite", "daba_lite"),
                            name="p50",
                            operator=operator,
                        )
                        for operator in ("sum", "geomean", "bloom")
                    )
                ),
                why="A ring drops its oldest entries at a few nanoseconds each here, two_stacks_lite and amta at less: bulks of hundreds take longer to cut off a tree.",
            ),
            Claim(
                "A native bulk evict is far below a loop of single evictions.",
                every(
                    ratio("nb_fiba4", "b_fiba4", low=5, name="p50", operator="sum"),
                    ratio("nb_fiba4", "b_fiba4", low=5, name="p50", operator="bloom"),
                ),
            ),
            Claim(
                "So is its 99.9th percentile, as drawn.",
                every(
                    ratio("nb_fiba4", "b_fiba4", low=2, name="p99.9", operator="sum"),
                    ratio("nb_fiba4", "b_fiba4", low=2, name="p99.9", operator="bloom"),
                ),
            ),
        ),
    ),
    Artefact(
        key="bulk-8",
        label="Figure 8",
        title="Latency of a bulk insert, in order",
        look="violins",
        y="p50",
        axes=("structure", "nanoseconds"),
        grids=(
            latencies(
                "latency-insert",
                mode="bulk",
                structures=_BULKS_IN_ORDER,
                m=_M1024,
                fence=1,
            ),
        ),
        claims=(
            Claim(
                "daba_lite and twostacks_lite yield the best latencies in order.",
                every(
                    *(
                        below(
                            ("daba_lite", "twostacks_lite"),
                            ("nb_fiba4", "nb_fiba8", "b_fiba4", "b_fiba8", "amta"),
                            name="p50",
                            operator=operator,
                        )
                        for operator in ("sum", "geomean")
                    )
                ),
            ),
            Claim(
                "So do they in the 99.9th percentile, as drawn.",
                every(
                    *(
                        best(
                            label,
                            ("nb_fiba4", "nb_fiba8", "b_fiba4", "b_fiba8"),
                            least=True,
                            name="p99.9",
                            operator="sum",
                        )
                        for label in ("daba_lite", "twostacks_lite")
                    )
                ),
            ),
        ),
    ),
    Artefact(
        key="bulk-9",
        label="Figure 9",
        title="Latency of a bulk insert, out of order",
        look="violins",
        y="p50",
        axes=("structure", "nanoseconds"),
        grids=(
            latencies(
                "latency-insert",
                mode="bulk",
                structures=_BULKS,
                m=_M1024,
                d=_M1024,
                fence=1,
            ),
        ),
        claims=(
            Claim(
                "b_fiba has lower latency than nb_fiba.",
                every(
                    *(
                        ratio(
                            f"nb_fiba{mu}",
                            f"b_fiba{mu}",
                            low=1,
                            name="p50",
                            operator=operator,
                        )
                        for mu in (4, 8)
                        for operator in ("sum", "geomean", "bloom")
                    )
                ),
            ),
            Claim(
                "So is its 99.9th percentile, as drawn.",
                every(
                    *(
                        ratio(
                            f"nb_fiba{mu}",
                            f"b_fiba{mu}",
                            low=1,
                            name="p99.9",
                            operator=operator,
                        )
                        for mu in (4, 8)
                        for operator in ("sum", "geomean", "bloom")
                    )
                ),
            ),
        ),
    ),
    Artefact(
        key="bulk-10",
        label="Figure 10",
        title="Memory management: with and without the deferred free list",
        look="violins",
        y="p50",
        axes=("structure", "nanoseconds"),
        grids=(
            Grid(
                structures={
                    f"b_fiba{mu}{suffix}": f"fiba_published:{mu}{option}"
                    for mu in (4, 8)
                    for suffix, option in (("", ""), (" nofl", ":nofl"))
                },
                operators=OPERATORS,
                metric="latency-evict",
                mode="bulk-evict",
                n=N22,
                m=by_scale(1024, 4096),
                words={**_FENCE, "millis": by_scale(250, 20_000)},
            ),
        ),
        note="One allocator: nodes lie in arrays, so no node is allocated by itself, and "
        "a subtree that is taken apart at once costs visits instead of calls of free.",
        claims=(
            Claim(
                "The deferred free list is indispensable: nofl performs much worse.",
                every(
                    ratio("b_fiba4 nofl", "b_fiba4", low=2, name="p50", operator="sum"),
                    ratio("b_fiba8 nofl", "b_fiba8", low=2, name="p50", operator="sum"),
                ),
            ),
        ),
    ),
    Artefact(
        key="bulk-11",
        label="Figure 11",
        title="Throughput of bulk evicts and single inserts over m",
        x="m",
        axes=("bulk size m", "items per second"),
        grids=(
            Grid(
                structures=_BULKS_IN_ORDER,
                operators=OPERATORS,
                mode="bulk-evict",
                n=N22,
                m=up_to_n(2),
                words=_FENCE,
            ),
            Grid(
                structures=_BULKS_IN_ORDER,
                metric="counts",
                mode="bulk-evict",
                n=1 << 14,
                m=up_to_n(2),
            ),
        ),
        claims=(
            Claim(
                "Throughput of b_fiba and amta improves with larger bulks.",
                every(
                    rises("b_fiba4", "m", operator="sum", m=_part),
                    rises("b_fiba8", "m", operator="sum", m=_part),
                    rises("amta", "m", operator="sum", m=_part),
                ),
            ),
            Claim(
                COUNTED,
                every(
                    falls("b_fiba4", "m", name="combines"),
                    falls("b_fiba8", "m", name="combines"),
                ),
                counted=True,
            ),
            Claim(
                "It improves even for those that emulate bulk evicts.",
                every(
                    rises("nb_fiba4", "m", operator="sum", m=_part),
                    rises("twostacks_lite", "m", operator="sum", m=_part),
                ),
            ),
            Claim(
                "twostacks_lite yields the best throughput.",
                best(
                    "twostacks_lite",
                    ("daba_lite", "amta", "b_fiba4", "b_fiba8", "nb_fiba4", "nb_fiba8"),
                    operator="sum",
                ),
            ),
        ),
    ),
    Artefact(
        key="bulk-12",
        label="Figure 12",
        title="Throughput of bulk evicts and bulk inserts over m",
        x="m",
        axes=("bulk size m", "items per second"),
        grids=(
            Grid(
                structures=_BULKS_IN_ORDER,
                operators=OPERATORS,
                mode="bulk",
                n=N22,
                m=up_to_n(2),
                words=_FENCE,
            ),
        ),
        claims=(
            Claim(
                "All improve as m grows from 1 to about 2^12.",
                every(
                    *(
                        rises(label, "m", operator="sum", m=(1, 1 << 12))
                        for label in (
                            "b_fiba4",
                            "b_fiba8",
                            "amta",
                            "twostacks_lite",
                            "daba_lite",
                        )
                    )
                ),
            ),
            Claim(
                "Throughput drops when m gets very large.",
                agree("m = n / the best m", _largest_bulk),
                why="A bulk of 2^16 fits a cache; of 2^22, which is the paper's, it does not.",
            ),
        ),
    ),
    Artefact(
        key="bulk-13",
        label="Figure 13",
        title="Throughput of large bulks over d",
        x="d",
        axes=("out-of-order distance d", "items per second"),
        grids=(
            Grid(
                structures=_BULKS,
                operators=OPERATORS,
                mode="bulk",
                n=N22,
                m=_M1024,
                d=up_to_n(2),
                words=_FENCE,
                # The paper's distances end before the whole window is younger.
                skip=lambda known: known["d"] + known["m"] > known["n"],
            ),
            Grid(
                structures=_BULKS,
                metric="counts",
                mode="bulk",
                n=1 << 14,
                m=256,
                d=up_to_n(2),
                skip=lambda known: known["d"] + known["m"] > known["n"],
            ),
        ),
        claims=(
            Claim(
                "Higher d does not slow b_fiba down.",
                every(
                    flat("b_fiba4", "d", 1.4, operator="sum"),
                    flat("b_fiba8", "d", 1.4, operator="sum"),
                ),
            ),
            Claim(
                COUNTED,
                flat("b_fiba4", "d", 1.4, name="combines"),
                counted=True,
            ),
            Claim(
                "b_fiba outperforms nb_fiba.",
                every(
                    *(
                        ahead(f"b_fiba{mu}", f"nb_fiba{mu}", operator=operator)
                        for mu in (4, 8)
                        for operator in ("sum", "geomean", "bloom")
                    )
                ),
            ),
        ),
    ),
    Artefact(
        key="bulk-14",
        label="Figure 14",
        title="Throughput of bulks of one over d",
        x="d",
        axes=("out-of-order distance d", "items per second"),
        grids=(
            Grid(
                structures=_BULKS,
                operators=OPERATORS,
                mode="bulk",
                n=N22,
                m=1,
                d=up_to_n(2),
                words=_FENCE,
            ),
        ),
        claims=(
            Claim(
                "At m = 1, b_fiba does worse than nb_fiba on sum and geomean ...",
                every(
                    ratio("b_fiba4", "nb_fiba4", high=1, operator="sum"),
                    ratio("b_fiba4", "nb_fiba4", high=1, operator="geomean"),
                ),
            ),
            Claim(
                "... but slightly better on bloom.",
                ratio("b_fiba4", "nb_fiba4", low=1, operator="bloom"),
                why="A bulk of one is a single insert here: both take the same combines.",
            ),
        ),
    ),
    Artefact(
        key="bulk-15",
        label="Figure 15",
        title="Citi Bike: sizes n and m for a window of a day, and distances d",
        look="histograms",
        axes=("", "how often"),
        grids=(),
        claims=(
            Claim(
                "Most single insertions cause only a single eviction.",
                agree("", _single),
            ),
            Claim(
                "n ranges broadly.",
                _at_least("n_range", 2, "the 95th percentile of n / the 5th"),
                why=_SAMPLE,
            ),
            Claim(
                "There are bulk evicts of hundreds or thousands of entries.",
                _at_least("m_most", 100, "the largest m"),
                why=_SAMPLE,
            ),
            Claim(
                "The vast majority of insertions have a small d.",
                _at_least("d_small", 0.95, "the share with d <= 100"),
            ),
            Claim(
                "Hundreds of insertions have a d in the tens of thousands.",
                _at_least("d_large", 100, "insertions with d >= 10,000"),
                why=_SAMPLE,
            ),
        ),
    ),
    Artefact(
        key="bulk-16",
        label="Figure 16",
        title="Citi Bike: throughput of a window of a day",
        look="bars",
        axes=("structure", "items per second"),
        grids=(
            Grid(
                structures=_BULKS,
                operators=OPERATORS,
                mode="replay",
                words={
                    "times": "{times}",
                    "span": "86400",
                    "millis": by_scale(60, 5_000),
                },
            ),
        ),
        note="n is the number of entries of a day, for any n of the order.",
        claims=(
            Claim(
                "On real data bulk operations give b_fiba an advantage over nb_fiba.",
                every(
                    *(
                        ahead(f"b_fiba{mu}", f"nb_fiba{mu}", operator=operator)
                        for mu in (4, 8)
                        for operator in ("sum", "geomean", "bloom")
                    )
                ),
                why="In a sample few evictions are of more than one entry (Figure 15).",
            ),
        ),
    ),
    Artefact(
        key="bulk-17",
        label="Figure 17",
        title="An engine without incremental windows: throughput over m, n = 8192",
        x="m",
        axes=("bulk size m", "items per second"),
        grids=(
            Grid(
                structures={"recalculated": "recalculate", **_NB, **_BULK, **OURS},
                operators=("sum", "geomean"),
                mode="bulk-evict",
                n=8192,
                m=powers(0, 12, 2),
            ),
        ),
        note="No engine runs here. What Flink does for a window with an evictor, folding "
        "what it holds at each firing, is done by `recalculate` in the same program.",
        claims=(
            Claim(
                "Even without bulk evicts FiBA is much faster than the engine.",
                ahead("nb_fiba4", "recalculated", 5, operator="sum", m=(1, 64)),
            ),
            Claim(
                "Bulk evicts widen the gap.",
                ahead("b_fiba4", "nb_fiba4", 1, operator="sum", m=(64, 4096)),
            ),
            Claim(
                "Throughput improves with larger bulks.",
                rises("b_fiba4", "m", operator="sum", m=_part),
            ),
        ),
    ),
)
