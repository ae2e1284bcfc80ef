"""Bulk FiBA at a billion entries, and the paper's claims about it."""

from __future__ import annotations

from bench.experiments.claims import (
    Check,
    Claim,
    MissingError,
    View,
    agree,
    bounded,
    every,
    flat,
)
from bench.experiments.orders import Grid, by_scale, powers
from bench.experiments.shapes import OURS, Artefact

__all__ = ["ROWS"]

_BILLION = 10**9

# Beyond 2^24 a window takes gigabytes.
_LARGE = by_scale(powers(14, 24, 2), [*powers(16, 28, 2), _BILLION])
_DOUBLED = (
    "An arena that doubles holds the old one meanwhile, where the system cannot move its "
    "pages."
)
_NO_FAULTS = (
    "Nodes lie in arenas and are used again, so a window that slides takes no new page "
    "at any size."
)


def _grown(name: str, low: float, high: float) -> Check:
    """The ratio of a figure at the most entries that memory holds to that at 2²²."""

    def test(view: View) -> tuple[bool, str]:
        line = dict(view.line("b_fiba4", name=name, n=(1 << 22, _BILLION)))
        large = max(line)
        if large == 1 << 22 or 1 << 22 not in line:
            raise MissingError("b_fiba4 at 2^22 and beyond")
        quotient = line[large] / max(line[1 << 22], 1e-9)
        text = f"{quotient:.3g} at n = {large:.0f} (claimed: {low:.3g} to {high:.3g})"
        return low <= quotient <= high, text

    return agree(f"{name} / at 2^22", test)


ROWS = (
    Artefact(
        key="bulk-1b",
        label="Section 7.3",
        title="A window of a billion entries",
        x="n",
        y="per_entry",
        axes=("window size n", "bytes per entry"),
        grids=(
            Grid(
                structures={"b_fiba4": "fiba_published:4", **OURS},
                operators=("geomean",),
                metric="memory",
                n=_LARGE,
            ),
            Grid(
                structures={"b_fiba4": "fiba_published:4", **OURS},
                operators=("geomean",),
                mode="bulk",
                n=_LARGE,
                m=1024,
                words={"fence": 1, "millis": by_scale(100, 2_000)},
            ),
            Grid(
                structures={"b_fiba4": "fiba_published:4"},
                operators=("geomean",),
                metric="latency-evict",
                mode="bulk",
                n=by_scale([1 << 22, 1 << 24], [1 << 22, *powers(24, 28, 2), _BILLION]),
                m=1024,
                words={"fence": 1, "millis": by_scale(500, 20_000)},
            ),
        ),
        note="A size that memory does not hold is left out: claims of 10^9 entries are "
        "asked of the largest that it holds.",
        claims=(
            Claim(
                "Memory per entry stays the same whatever the size ...",
                flat("b_fiba4", "n", 1.1, name="per_entry"),
                counted=True,
            ),
            Claim(
                "... at 64 to 70 bytes.",
                bounded(
                    "b_fiba4", "n", lambda _: 70, formula="70 bytes", name="per_entry"
                ),
                counted=True,
            ),
            Claim(
                "So does the process (RSS).",
                every(
                    flat(
                        "b_fiba4",
                        "n",
                        1.1,
                        name="resident_per_entry",
                        n=(1 << 20, _BILLION),
                    ),
                    bounded(
                        "b_fiba4",
                        "n",
                        lambda _: 70,
                        formula="70 bytes",
                        name="resident_per_entry",
                        n=(1 << 20, _BILLION),
                    ),
                ),
                why=_DOUBLED,
            ),
            Claim(
                "Throughput at 10^9 is 1 to 1.12 times less than at 2^22.",
                _grown("rate", 1 / 1.12, 1.0),
            ),
            Claim(
                "Minor page faults per million items grow from 657 to 15,287.",
                _grown("faults", 10, 40),
                why=_NO_FAULTS,
            ),
            Claim(
                "The median latency of a bulk evict goes up by about 7.5 %.",
                _grown("p50", 1.0, 1.15),
            ),
            Claim(
                "Its 99.999th percentile about doubles.",
                _grown("p99.999", 1.5, 3.0),
            ),
        ),
    ),
)
