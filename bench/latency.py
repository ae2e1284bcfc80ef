"""Draws the record of `make bench-latency`: the share of slow calls by time.

    python -m bench.latency RECORD.json [PICTURE.png]

One panel per window length. Both axes are logarithmic: a line that falls steeply
belongs to an algorithm whose calls take equal times, a flat line far to the right to
one with rare slow calls. The shares of p99.9 and p99.999 are marked.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]

# The style of a line shows its class: worst-case constant, amortised, trees.
_LOOKS = {
    "subtract_on_evict": ("#6b7280", ":"),
    "daba": ("#1d4ed8", "-"),
    "daba uncached": ("#1d4ed8", ":"),
    "daba_lite": ("#0ea5e9", "-"),
    "daba_chain": ("#0ea5e9", ":"),
    "two_stacks": ("#b91c1c", "--"),
    "two_stacks_lite": ("#f97316", "--"),
    "aba": ("#ca8a04", "--"),
    "slick_deque": ("#be185d", ":"),
    "flat_fit": ("#db2777", "--"),
    "amta": ("#e11d48", "--"),
    "fiba": ("#15803d", "-."),
    "fiba_published": ("#65a30d", "-."),
    "btree": ("#713f12", "-."),
    "daba_late": ("#0f766e", "-."),
    "flat_fat": ("#7c3aed", "-."),
    "reactive": ("#a855f7", "-."),
    "b_int": ("#c026d3", "-."),
}
_OTHERS = ("#7c3aed", (0, (1, 1)))
_MARKS = {1e-3: "p99.9", 1e-5: "p99.999"}


def draw(record: dict[str, Any], picture: Path) -> None:
    """Draws the whole items of a record.

    Args:
        record: The record of the benchmark.
        picture: The file to write; its suffix is the format.
    """
    cases = [case for case in record["cases"] if case["timed"] == "item"]
    lengths = sorted({case["n"] for case in cases})
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False})
    figure, panels = plt.subplots(
        1,
        len(lengths),
        figsize=(6.0 * len(lengths), 4.6),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, length in zip(panels[0], lengths, strict=True):
        _panel(axes, [case for case in cases if case["n"] == length])
        axes.set_title(f"n = 2^{length.bit_length() - 1} entries", loc="left")
    panels[0][0].set_ylabel("share of items that took longer")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(
        f"Evict + insert + query, sum of int64 (timer: {record['timer_ns']} ns of it)",
        x=0.01,
        ha="left",
    )
    figure.savefig(picture, dpi=130)


def _panel(axes: Axes, cases: list[dict[str, Any]]) -> None:
    for case in cases:
        color, line = _LOOKS.get(case["algorithm"], _OTHERS)
        shares = [max(above, 0.5) / case["samples"] for above, _ in case["curve"]]
        nanos = [nanos for _, nanos in case["curve"]]
        axes.plot(
            nanos, shares, color=color, linestyle=line, label=case["algorithm"], lw=1.4
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("nanoseconds")
    axes.grid(color="#e5e7eb", lw=0.6)
    for share, name in _MARKS.items():
        axes.axhline(share, color="#9ca3af", lw=0.8)
        axes.annotate(
            name,
            (1.0, share),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            color="#4b5563",
        )


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("record", type=Path, help="the record of the benchmark")
    parser.add_argument("picture", type=Path, nargs="?", help="default: beside it")
    options = parser.parse_args()
    picture = options.picture or options.record.with_suffix(".png")
    draw(json.loads(options.record.read_text(encoding="utf-8")), picture)
    print(picture)


if __name__ == "__main__":
    _main()
