"""The figures of the Reactive Aggregator, and the paper's claims about them."""

from __future__ import annotations

import math

from bench.experiments.break_even import crossings, finite, never
from bench.experiments.claims import (
    Claim,
    agree,
    ahead,
    every,
    fits_log,
    flat,
    ratio,
    slope,
)
from bench.experiments.orders import Grid, by_scale, powers
from bench.experiments.shapes import (
    COUNTED,
    MORE,
    SHARED_LISTS,
    Artefact,
    break_even,
)

__all__ = ["ROWS"]

_INCREMENTAL = (
    *("sum", "sum_float", "max", "max_float", "mean", "min_count", "stddev"),
    "arg_max",
)
_FLATFAT = (
    "Counted: RA takes twice the combines, 25 a slide at n = 4096 where B-Int takes "
    "12. A slide changes two leaves and with them 2 log2 n nodes of the tree, each "
    "combined anew, and while the buffer is inverted an answer takes a suffix and a "
    "prefix besides; B-Int writes an interval once, when it is complete. The rest of "
    "the quotient is not measured: from the code, the work list of changed nodes, "
    "gathered and sorted level by level, and a test of each child for being there. In "
    "the paper both pass an engine, whose cost per tuple would bring any quotient "
    "nearer to one."
)
_NO_ENGINE = (
    "In the paper a tuple passes an engine, which costs both alike; here nothing is "
    "measured but the structure, so that the quotient of the structures shows."
)


_RA = {"RA": "reactive"}
_ISS = {"ISS": "recalculate"}
_RA_PAIR = ("max", "stddev")

ROWS = (
    Artefact(
        key="ra-t3",
        label="Table 3",
        title="Window sizes from which RA is ahead of recalculating, once and ten times",
        look="break-even",
        grids=(break_even({**_RA, **_ISS}, ("count", *_INCREMENTAL, "collect")),),
        note="Sizes are interpolated between powers of two. The population's deviation "
        "differs from the sample's in a division only.",
        claims=(
            Claim(
                "RA breaks even at small windows, but for count and collect.",
                finite("RA", "ISS", _INCREMENTAL),
            ),
            Claim(
                "The costlier the operator, the sooner.",
                agree(
                    "stddev before sum",
                    lambda view: (
                        crossings(view, "RA", "ISS", ["stddev"])
                        <= crossings(view, "RA", "ISS", ["sum"]),
                        ", ".join(
                            f"{operator} {crossings(view, 'RA', 'ISS', [operator])[0]:.0f}"
                            for operator in ("stddev", "mean", "sum")
                        ),
                    ),
                ),
            ),
            Claim(
                "RA never breaks even for count.",
                never("RA", "ISS", "count"),
                why="Recalculating counts entries one by one here; the paper's baseline "
                "reads a length.",
            ),
            Claim(
                "RA never breaks even for collect.",
                never("RA", "ISS", "collect"),
                why=SHARED_LISTS,
            ),
        ),
    ),
    Artefact(
        key="ra-6",
        label="Figure 6",
        title="Throughput of RA and of recalculating over n",
        grids=(Grid(structures={**_RA, **_ISS}, operators=_RA_PAIR, n=powers(0, 10)),),
        claims=(
            Claim(
                "On small windows RA is 5 to 10 % slower.",
                every(
                    ratio("RA", "ISS", low=0.85, high=1, operator="max", n=(1, 16)),
                    ratio("RA", "ISS", low=0.85, high=1, operator="stddev", n=(1, 16)),
                ),
                why=_NO_ENGINE,
            ),
            Claim(
                "At n = 1024 it is almost 3 times faster for max ...",
                ahead("RA", "ISS", 2.5, operator="max", n=1024),
                why="Recalculating a maximum of numbers side by side is vectorised here, "
                "eight numbers an instruction; an update of the tree is not.",
            ),
            Claim(
                "... and over 10 times for stddev.",
                ahead("RA", "ISS", 10, operator="stddev", n=1024),
            ),
        ),
    ),
    Artefact(
        key="ra-7",
        label="Figure 7",
        title="Cost of a (1, 1)-change over n",
        y="rate",
        axes=("window size n", "microseconds per tuple"),
        grids=(
            Grid(
                structures=_RA,
                operators=_RA_PAIR,
                n=by_scale(powers(3, 18), powers(3, 23)),
            ),
            Grid(structures=_RA, metric="counts", n=powers(3, 14)),
        ),
        claims=(
            Claim(
                "The cost is a + b log n.",
                every(
                    fits_log("RA", "n", 0.9, inverse=True, operator="max", name="rate"),
                    fits_log(
                        "RA", "n", 0.9, inverse=True, operator="stddev", name="rate"
                    ),
                ),
            ),
            Claim(COUNTED, fits_log("RA", "n", 0.98, name="combines"), counted=True),
        ),
    ),
    Artefact(
        key="ra-8",
        label="Figure 8",
        title="Tumbling windows: the cost of a firing",
        axes=("window size n", "microseconds per tuple"),
        grids=(
            Grid(
                structures={**_RA, **_ISS},
                operators=_RA_PAIR,
                mode="bulk-evict",
                n=by_scale(powers(4, 12, 2), powers(4, 20)),
                m=lambda known: known["n"],
            ),
        ),
        claims=(
            Claim(
                "For tumbling windows RA costs about what recalculating does.",
                every(
                    ratio("RA", "ISS", low=0.8, high=1.25, operator="max"),
                    ratio("RA", "ISS", low=0.8, high=1.25, operator="stddev"),
                ),
                why=_NO_ENGINE,
            ),
        ),
    ),
    Artefact(
        key="ra-9",
        label="Figure 9",
        title="Windows whose capacity is fixed, or swings between n and 2n",
        axes=("window size n", "microseconds per tuple"),
        grids=tuple(
            Grid(
                structures={f"RA {label}": "reactive"},
                operators=_RA_PAIR,
                mode=mode,
                n=by_scale(powers(4, 16, 2), powers(4, 22)),
            )
            for label, mode in (("fixed", "slide"), ("osc.", "oscillate"))
        ),
        note="The length swings between n/2 and n, which moves the capacity as in the "
        "paper; a query follows each insert.",
        claims=(
            Claim(
                "Resizing is amortised: swinging capacities cost no more than fixed ones.",
                every(
                    ahead("RA osc.", "RA fixed", 1, operator="max", n=(64, math.inf)),
                    ahead(
                        "RA osc.", "RA fixed", 1, operator="stddev", n=(64, math.inf)
                    ),
                ),
            ),
        ),
    ),
    Artefact(
        key="ra-10",
        label="Figure 10",
        title="Coarse slides: cost per tuple for m changes at once",
        axes=("window size n", "microseconds per tuple"),
        grids=tuple(
            Grid(
                structures={f"m = {label}": "reactive"},
                operators=("stddev",) if metric == "throughput" else ("sum",),
                metric=metric,
                mode="bulk-evict",
                n=by_scale(powers(6, 16, 2), powers(6, 22)),
                m=m,
            )
            for metric in ("throughput", "counts")
            for label, m in (
                *((str(count), count) for count in (1, 4, 64)),
                ("n/16", lambda known: known["n"] // 16),
                ("n/4", lambda known: known["n"] // 4),
                ("n", lambda known: known["n"]),
            )
        ),
        claims=(
            Claim(
                "For constant m the cost is O(log n).",
                every(
                    fits_log("m = 1", "n", 0.98, name="combines", n=MORE),
                    fits_log("m = 4", "n", 0.98, name="combines", n=MORE),
                    fits_log("m = 64", "n", 0.98, name="combines", n=MORE),
                ),
                counted=True,
            ),
            Claim(
                "For m a fraction of n it is constant, for large enough windows.",
                every(
                    flat("m = n/16", "n", 1.3, name="combines", n=(4096, math.inf)),
                    flat("m = n/4", "n", 1.3, name="combines", n=(4096, math.inf)),
                    flat("m = n", "n", 1.3, name="combines", n=(4096, math.inf)),
                ),
                counted=True,
            ),
        ),
    ),
    Artefact(
        key="ra-11",
        label="Figure 11",
        title="RA and Arasu-Widom over n, for m changes at once",
        axes=("window size n", "microseconds per tuple"),
        grids=tuple(
            Grid(
                structures={f"{label} m = {m}": structure},
                operators=("max",),
                metric=metric,
                mode="bulk-evict",
                n=by_scale(powers(6, 16, 2), powers(6, 22)),
                m=m,
            )
            for metric in ("throughput", "counts")
            for label, structure in (("RA", "flat_fat"), ("AW", "b_int"))
            for m in (1, 64)
        ),
        note="RA is `flat_fat`, the same tree without times, as B-Int has none.",
        claims=(
            Claim(
                "Both have comparable complexity: a + b log n.",
                every(
                    fits_log("RA m = 1", "n", 0.95, name="combines"),
                    fits_log("AW m = 1", "n", 0.95, name="combines"),
                ),
                counted=True,
            ),
            Claim(
                "RA is faster than Arasu-Widom by a constant factor.",
                every(ahead("RA m = 1", "AW m = 1"), ahead("RA m = 64", "AW m = 64")),
                why=_FLATFAT,
            ),
        ),
    ),
    Artefact(
        key="ra-t4",
        label="Table 4",
        look="quotients",
        title="T_AW / T_RA by operator and n",
        axes=("window size n", "T_AW / T_RA"),
        grids=(
            Grid(
                structures={"RA": "flat_fat", "AW": "b_int"},
                operators=("sum", "max", "mean", "min_count", "stddev"),
                n=by_scale(powers(3, 15, 4), [8, 1 << 13, 1 << 23]),
            ),
            Grid(
                structures={"RA": "flat_fat", "AW": "b_int"},
                metric="counts",
                n=powers(3, 13, 2),
            ),
        ),
        note="RA is `flat_fat`, the same tree without times, as B-Int has none.",
        claims=(
            Claim(
                "T_AW / T_RA lies between 1 and 1.4 for every operator and size.",
                every(
                    *(
                        ratio(
                            "RA", "AW", low=1, high=1.4, name="rate", operator=operator
                        )
                        for operator in ("sum", "max", "mean", "min_count", "stddev")
                    )
                ),
                why=_FLATFAT,
            ),
            Claim(
                "Not in the paper: here RA takes more combines than Arasu-Widom.",
                ratio("RA", "AW", low=1, name="combines"),
                counted=True,
            ),
        ),
    ),
    Artefact(
        key="ra-12",
        label="Figure 12",
        title="Memory of RA and of recalculating over n",
        y="bytes",
        axes=("window size n", "bytes"),
        logs="xy",
        grids=(
            Grid(
                structures={**_RA, **_ISS},
                operators=_RA_PAIR,
                metric="memory",
                n=by_scale(powers(4, 16, 2), powers(4, 22)),
            ),
        ),
        note="Bytes that the structure counts, not those of an engine about it.",
        claims=(
            Claim(
                "RA takes O(n) space.",
                slope("RA", "n", 0.9, 1.1, name="bytes", n=(64, math.inf)),
                counted=True,
            ),
            Claim(
                "The constant is small: RA takes at most 8 times what the window does.",
                ratio("RA", "ISS", high=8, name="bytes", n=(64, math.inf)),
                counted=True,
            ),
        ),
    ),
)
