"""Writes `speed.md` and `speed.png` from the figures of `bench.rolling_peers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from bench.rolling_cases import ALL, CASES

if TYPE_CHECKING:
    from pathlib import Path

    from bench.rolling_peers import Row

__all__ = ["write"]

_COLOURS = {"slidewise": "#1d4ed8", "polars": "#b45309", "pandas": "#6b7280"}
_HEAD = """# How fast tables are

Rolling aggregates over {rows:,} rows at random (Poisson) times, in windows that hold
about 100, 10,000 and 1,000,000 rows, compared with other libraries. Figures are
millions of rows per second of CPU time on one core, with new result columns at each
call: the best of three calls, and in brackets the first one, in which libraries touch
fresh memory or compile.

Made by `python -m bench.rolling_peers` on {date}, on {machine}, with
{versions}.

Load: {load}. On a busy machine all figures are lower:
compare ratios, not absolute figures.

![M rows/s in windows of about 10,000 rows](speed.png)

A goal is the rate that slidewise was designed for. Bold is the fastest library with
windows of time; bottleneck and numbagg (*) have windows of rows, and so do not read
times. A number of rows behind a name means that the library, being slow, was measured
on fewer rows.
"""


def write(folder: Path, run: dict[str, Any], rows: list[Row]) -> None:
    """Writes the page and its picture."""
    folder.mkdir(parents=True, exist_ok=True)
    page = [_HEAD.format(**run)]
    for case in CASES:
        here = [row for row in rows if row.case == case.name]
        if here:
            page.append(_table(case.name, case.goal, here, run["rows"]))
    (folder / "speed.md").write_text("\n".join(page), encoding="utf-8")
    _draw(folder / "speed.png", rows)


def _table(name: str, goal: str, rows: list[Row], count: int) -> str:
    windows = [label for label in ALL if label in rows[0].warm]
    lines = [
        f"## {name}",
        "",
        f"Goal: {goal}",
        "",
        f"| | {' | '.join(windows)} |",
        f"|---|{'---|' * len(windows)}",
    ]
    timed = [row for row in rows if not row.peer.endswith("*")]
    best = {at: max(row.warm.get(at, 0) for row in timed) for at in windows}
    for row in rows:
        fewer = f" ({row.rows:,} rows)" if row.rows < count else ""
        cells = []
        for at in windows:
            cell = f"{_shown(row.warm[at])} ({_shown(row.first[at])})"
            leads = row in timed and row.warm[at] == best[at]
            cells.append(f"**{cell}**" if leads else cell)
        lines.append(f"| {row.peer}{fewer} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _shown(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _draw(path: Path, rows: list[Row]) -> None:
    """Draws bars of slidewise and the two peers that answer the same question."""
    mpl.use("Agg")
    cases = [case.name for case in CASES if any(row.case == case.name for row in rows)]
    figure, axes = plt.subplots(figsize=(9, 0.55 * len(cases) + 1.2))
    for at, (peer, colour) in enumerate(_COLOURS.items()):
        places, widths = [], []
        for place, case in enumerate(cases):
            rate = next(
                (r.warm.get("10k") for r in rows if (r.case, r.peer) == (case, peer)),
                None,
            )
            if rate is not None:
                places.append(place + (at - 1) * 0.27)
                widths.append(rate)
        bars = axes.barh(places, widths, 0.25, color=colour, label=peer)
        labels = [f"{width:.3g}" for width in widths]
        axes.bar_label(bars, labels, padding=3, fontsize=8)
    axes.set_yticks(range(len(cases)), cases)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("M rows/s of CPU time, one core, windows of about 10,000 rows")
    axes.margins(x=0.12, y=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.4, 1), ncols=3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
