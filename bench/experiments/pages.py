"""Writes a page for each paper, and a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.experiments.catalogue import PAPERS
from bench.experiments.claims import Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bench.experiments.orders import Point, Results
    from bench.experiments.shapes import Artefact

__all__ = ["write_pages"]

_STATES = ("holds", "fails", "undecided")


def write_pages(
    rows: Sequence[Artefact],
    points: Mapping[str, Sequence[Point]],
    results: Results,
    about: Mapping[str, str],
    out: Path,
    peers: str | None = None,
) -> list[Verdict]:
    """Writes `README.md` and a page for each paper of which there is a figure.

    Args:
        rows: Figures, whose pictures lie in `out` under their keys.
        points: The points of each.
        results: What was measured.
        about: The machine, the data and the like, for the head of each page.
        out: The folder.
        peers: A table of the authors' C++ beside the core.

    Returns:
        How every claim fares.
    """
    verdicts = {
        row.key: [judge(claim, points[row.key], results, row.y) for claim in row.claims]
        for row in rows
    }
    for paper, title in PAPERS.items():
        mine = [row for row in rows if row.paper == paper]
        if mine:
            text = _page(title, mine, verdicts, about, out)
            (out / f"{paper}.md").write_text(text, encoding="utf-8")
    text = _summary(rows, verdicts, results, about, peers)
    (out / "README.md").write_text(text, encoding="utf-8")
    return [verdict for found in verdicts.values() for verdict in found]


def _page(
    title: str,
    rows: Sequence[Artefact],
    verdicts: Mapping[str, Sequence[Verdict]],
    about: Mapping[str, str],
    out: Path,
) -> str:
    lines = [f"# {title}", "", *_head(about)]
    for row in rows:
        picture = f"![{row.label}]({row.key}.png)"
        if not (out / f"{row.key}.png").exists():
            picture = "Nothing of it was measured."
        lines += [f"## {row.label}: {row.title}", "", picture, ""]
        if row.note:
            lines += [row.note, ""]
        lines += ["| the paper says | here | figures |", "|---|---|---|"]
        for verdict in verdicts[row.key]:
            says = verdict.claim.says + (
                " *(counted)*" if verdict.claim.counted else ""
            )
            lines.append(f"| {says} | **{verdict.state}** | {_cell(verdict.figures)} |")
        lines.append("")
        for verdict in verdicts[row.key]:
            if verdict.state != "holds" and verdict.claim.why:
                lines += [f"*{verdict.claim.says}* {verdict.claim.why}", ""]
    return "\n".join(lines)


def _summary(
    rows: Sequence[Artefact],
    verdicts: Mapping[str, Sequence[Verdict]],
    results: Results,
    about: Mapping[str, str],
    peers: str | None,
) -> str:
    lines = ["# The experiments of the papers", "", *_head(about)]
    lines += [
        "| figure | shows | holds | fails | undecided |",
        "|---|---|---:|---:|---:|",
    ]
    for row in rows:
        counts = _counts(verdicts[row.key])
        link = f"[{row.paper} {row.label}]({row.paper}.md)"
        lines.append(f"| {link} | {row.title} | {' | '.join(counts)} |")
    everything = [verdict for row in rows for verdict in verdicts[row.key]]
    counts = _counts(everything)
    lines += [f"| **all** | | {' | '.join(counts)} |", ""]
    for state in _STATES[1:]:
        found = [
            (row, verdict)
            for row in rows
            for verdict in verdicts[row.key]
            if verdict.state == state
        ]
        if found:
            lines += [f"## What {state if state == 'fails' else 'is undecided'}", ""]
            lines += ["| figure | the paper says | figures |", "|---|---|---|"]
            for row, verdict in found:
                cells = (
                    f"{row.paper} {row.label}",
                    verdict.claim.says,
                    verdict.figures,
                )
                lines.append(f"| {' | '.join(map(_cell, cells))} |")
            lines.append("")
    if peers:
        lines += ["## The authors' C++", "", peers, ""]
    if errors := results.errors():
        lines += ["## What was not measured", ""]
        for order, error in errors[:50]:
            words = dict(order)
            sizes = ", ".join(f"{letter} = {words[letter]}" for letter in "nqmd")
            name = f"{words['structure']}, {words['operator']}, {words['mode']}"
            lines.append(f"- {name}, {sizes}: {error}")
        lines.append("")
    return "\n".join(lines)


def _head(about: Mapping[str, str]) -> list[str]:
    lines = [f"- {name}: {text}" for name, text in about.items()]
    return [
        *lines,
        "",
        "Each claim is checked once for each turn of the measurements: it *holds* or "
        "*fails* if all turns agree, and is *undecided* if they disagree or if what it "
        "needs was not measured. Times are of this machine; what is counted is the "
        "same on every one.",
        "",
    ]


def _counts(verdicts: Sequence[Verdict]) -> list[str]:
    return [
        str(sum(verdict.state == state for verdict in verdicts) or "")
        for state in _STATES
    ]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
