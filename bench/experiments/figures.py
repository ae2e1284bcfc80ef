"""Draws the figures in the axes of the papers."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from bench.experiments.claims import MissingError, View, crossing
from matplotlib.ticker import FuncFormatter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.experiments.orders import Point, Results
    from bench.experiments.shapes import Artefact
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "per_tuple"]

mpl.use("Agg")

_PANEL = (4.4, 3.5)
_COLORS = (
    *("#1d4ed8", "#b91c1c", "#15803d", "#f97316", "#7c3aed", "#0891b2"),
    *("#be185d", "#65a30d", "#6b7280", "#ca8a04", "#111827", "#0f766e"),
)
# Without the hues of families.
_BESIDE_FAMILIES = (
    *("#7c3aed", "#15803d", "#0891b2", "#be185d", "#ca8a04", "#6b7280", "#65a30d"),
)
_MARKS = "os^Dv<>Pp*hX"

# A family has a hue, which its members share: trees by arity, twins and ranges.
_HUES = {
    "btree": ("#fca5a5", "#dc2626", "#7f1d1d"),
    "fiba": ("#93c5fd", "#2563eb", "#1e3a8a"),
    "nb_fiba": ("#fdba74", "#ea580c", "#9a3412"),
    "b_fiba": ("#93c5fd", "#2563eb", "#1e3a8a"),
}
_SHADES = {"2": 0, "4": 1, "8": 2}


def draw(row: Artefact, points: Sequence[Point], results: Results, path: Path) -> None:
    """Draws a figure; there is no picture where nothing of it was measured.

    Args:
        row: What it shows.
        points: Its points.
        results: What was measured.
        path: The picture to write.
    """
    if not any(_has(row, results, point) for point in points):
        path.unlink(missing_ok=True)
        return
    mpl.rcParams.update(
        {
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e5e7eb",
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
        }
    )
    if row.look == "histograms":
        figure = _histograms(points, results)
    elif row.look == "quotients":
        figure = _quotients(row, points, results)
    elif row.look == "break-even":
        figure = _break_even(row, points, results)
    else:
        figure = _panels(row, points, results)
    title = re.sub(r"2\^(\d+)", r"$2^{\1}$", f"{row.label}: {row.title}")
    figure.suptitle(title, x=0.01, ha="left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _has(row: Artefact, results: Results, point: Point) -> bool:
    """Whether there is something to draw of a point."""
    if row.look == "histograms":
        return bool(results.runs(point.order))
    return results.value(point.order, row.y, None) is not None


def per_tuple(row: Artefact) -> bool:
    """Whether the paper shows the cost of a tuple where the driver gives a rate."""
    return row.y == "rate" and row.axes[1].startswith("microseconds")


def _panels(row: Artefact, points: Sequence[Point], results: Results) -> Figure:
    drawn = [point for point in points if _has(row, results, point)]
    names = sorted(
        {tuple(point.known[name] for name in row.panels) for point in drawn},
        key=lambda panel: [
            (_place(points, name, value))
            for name, value in zip(row.panels, panel, strict=True)
        ],
    )
    grid = _arrangement(row, names)
    figure, axes = plt.subplots(
        len(grid),
        max(len(line) for line in grid),
        figsize=(
            max(_PANEL[0] * max(len(line) for line in grid), 6.5),
            _PANEL[1] * len(grid) + 0.9,
        ),
        squeeze=False,
        layout="constrained",
    )
    looks = {
        "violins": _violins,
        "series": _series,
        "bars": _bars,
        "deviations": _deviations,
    }
    for line, panels in zip(axes, grid, strict=True):
        for axis, panel in zip(line, panels, strict=False):
            where = dict(zip(row.panels, panel, strict=True))
            inside = [
                point
                for point in drawn
                if all(point.known[name] == value for name, value in where.items())
            ]
            looks.get(row.look, _lines)(axis, row, inside, results)
            axis.set_title(_title(inside, where), loc="left", fontsize=9)
        line[0].set_ylabel(row.axes[1])
        for axis in line[len(panels) :]:
            axis.set_visible(False)
    handles: dict[str, Any] = {}
    for axis in axes.flat:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    if len(handles) > 1:
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=_columns(list(handles), figure.get_figwidth()),
            frameon=False,
        )
    return figure


def _columns(labels: Sequence[str], inches: float) -> int:
    """The columns of a legend whose lines are equally long, as far as that goes."""
    widest = max(map(len, labels))
    most = max(1, min(12, int(inches / (0.085 * widest + 0.55))))
    lines = math.ceil(len(labels) / most)
    return math.ceil(len(labels) / lines)


def _place(points: Sequence[Point], name: str, value: Any) -> int:
    """Operators in the order of the paper, sizes by size."""
    if isinstance(value, int):
        return value
    seen = [point.known[name] for point in points]
    return seen.index(value)


def _arrangement(
    row: Artefact, names: Sequence[tuple[Any, ...]]
) -> list[list[tuple[Any, ...]]]:
    """A line of panels for each value of the first of two things, else four."""
    if len(row.panels) == 2:
        # Windows of other sizes have other distances: first the least of each.
        by_operator: dict[Any, list[tuple[Any, ...]]] = {}
        for panel in names:
            by_operator.setdefault(panel[1], []).append(panel)
        return [list(line) for line in zip(*by_operator.values(), strict=False)]
    return [list(names[at : at + 4]) for at in range(0, len(names), 4)] or [[]]


def _title(points: Sequence[Point], where: dict[str, Any]) -> str:
    text = [
        str(value) if name == "operator" else f"{name} = {_power(value)}"
        for name, value in where.items()
    ]
    sizes = {point.known["n"] for point in points}
    if (
        len(sizes) == 1
        and (n := sizes.pop())
        and dict(points[0].order)["mode"] != "replay"
    ):
        text.append(f"n = {_power(n)}")
    bulks = {point.known.get("m", 1) for point in points}
    if len(bulks) == 1 and (m := bulks.pop()) > 1:
        text.append(f"m = {_power(m)}")
    return ", ".join(reversed(text) if len(where) > 1 else text)


def _power(value: float) -> str:
    at = math.log2(value) if value > 0 else 0.0
    if value >= 64 and at == int(at):
        return f"$2^{{{int(at)}}}$"
    return f"{value:,.0f}"


def _color(label: str, labels: Sequence[str]) -> tuple[str, str, str]:
    """Color, line and mark."""
    line = ":" if "_twin" in label or "nofl" in label else "-"
    mark = _MARKS[labels.index(label) % len(_MARKS)]
    if label.endswith(" here"):
        return "#111827", "--", mark
    if hue := _hue(label):
        return hue, line, mark
    others = [other for other in labels if not _hue(other)]
    colors = _COLORS if len(others) == len(labels) else _BESIDE_FAMILIES
    return colors[others.index(label) % len(colors)], line, mark


def _hue(label: str) -> str | None:
    """The color of a member of a family."""
    for ending in ("_twin", "_range", " nofl"):
        label = label.removesuffix(ending)
    family, arity = label[:-1], label[-1]
    shades = _HUES.get(family)
    return shades[_SHADES[arity]] if shades and arity in _SHADES else None


def _labels(points: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(point.known["label"] for point in points))


def _lines(
    axis: Axes, row: Artefact, points: Sequence[Point], results: Results
) -> None:
    labels = _labels(points)
    for label in labels:
        mine = sorted(
            (point for point in points if point.known["label"] == label),
            key=lambda point: point.known[row.x],
        )
        x = [max(point.known[row.x], 0.5) for point in mine]
        turns = [
            [_shown(row, float(run[row.y])) for run in results.runs(point.order)]
            for point in mine
        ]
        y = [sorted(runs)[len(runs) // 2] for runs in turns]
        color, line, mark = _color(label, labels)
        axis.plot(x, y, color=color, ls=line, marker=mark, ms=3.5, lw=1.3, label=label)
        axis.fill_between(
            x, [min(runs) for runs in turns], [max(runs) for runs in turns],
            color=color, alpha=0.15, lw=0,
        )  # fmt: skip
    axis.set_xscale("log", base=2)
    if "y" in row.logs:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
        axis.yaxis.set_major_formatter(FuncFormatter(_short))
    axis.set_xlabel(row.axes[0])


def _shown(row: Artefact, value: float) -> float:
    return 1e6 / value if per_tuple(row) else value


def _short(value: float, _: object = None) -> str:
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def _violins(
    axis: Axes, _row: Artefact, points: Sequence[Point], results: Results
) -> None:
    """How samples are distributed; the mean, the median, p99.9 and p99.999."""
    labels, tops = _labels(points), []
    for at, point in enumerate(points):
        runs = results.runs(point.order)
        run = sorted(runs, key=lambda run: run["p50"])[len(runs) // 2]
        buckets = run["buckets"]
        tops.append(run["p99.999"])
        most = max(held for _, held in buckets)
        y = [2 ** ((number + 0.5) / 8) for number, _ in buckets]
        wide = [0.42 * math.sqrt(held / most) for _, held in buckets]
        color, _, _ = _color(point.known["label"], labels)
        axis.fill_betweenx(
            y,
            [at - w for w in wide],
            [at + w for w in wide],
            color=color,
            alpha=0.35,
            lw=0,
        )
        first = at == 0
        axis.plot(
            [at - 0.3, at + 0.3], [run["p50"]] * 2, color=color, lw=2.5,
            label="median" if first else None,
        )  # fmt: skip
        for name, style in (("p99.9", "-"), ("p99.999", ":")):
            axis.plot(
                [at - 0.3, at + 0.3], [run[name]] * 2, color="#111827", lw=1.1,
                ls=style, label=name if first else None,
            )  # fmt: skip
        axis.plot(
            [at], [run["mean"]], "o", color="#dc2626", ms=4,
            label="mean" if first else None,
        )  # fmt: skip
    axis.set_yscale("log")
    axis.set_ylim(top=2 * max(tops))
    _names(axis, points)


def _names(axis: Axes, points: Sequence[Point]) -> None:
    labels = [point.known["label"] for point in points]
    axis.set_xticks(range(len(points)), labels, rotation=40, ha="right")
    axis.grid(visible=False, axis="x")


def _series(
    axis: Axes, row: Artefact, points: Sequence[Point], results: Results
) -> None:
    labels = _labels(points)
    runs = {point.known["label"]: results.runs(point.order)[0] for point in points}
    # Some twenty windows, each with its flip.
    rounds = min(run["samples"] for run in runs.values())
    axis.set_xlim(0, min(rounds, 20 * points[0].known["n"]))
    for label, run in runs.items():
        parts = run["series"]
        step = run["samples"] / len(parts)
        color, _, _ = _color(label, labels)
        axis.plot(
            [at * step for at in range(len(parts))],
            parts,
            color=color,
            lw=0.8,
            label=label,
        )
    axis.set_yscale("log")
    axis.set_xlabel(row.axes[0])
    axis.xaxis.set_major_formatter(FuncFormatter(_short))


def _bars(axis: Axes, row: Artefact, points: Sequence[Point], results: Results) -> None:
    labels = _labels(points)
    for at, point in enumerate(points):
        values = sorted(float(run[row.y]) for run in results.runs(point.order))
        middle = values[len(values) // 2]
        color, _, _ = _color(point.known["label"], labels)
        axis.bar([at], [middle], color=color, width=0.7)
        bounds = [[middle - values[0]], [values[-1] - middle]]
        axis.errorbar([at], [middle], yerr=bounds, color="#111827", capsize=3)
    axis.yaxis.set_major_formatter(FuncFormatter(_short))
    _names(axis, points)


def _deviations(
    axis: Axes, _row: Artefact, points: Sequence[Point], results: Results
) -> None:
    """The mean, and the deviation beside it."""
    labels = _labels(points)
    heights = []
    for at, point in enumerate(points):
        color, _, _ = _color(point.known["label"], labels)
        for name, place, alpha in (("mean", -0.2, 1.0), ("deviation", 0.2, 0.4)):
            height = results.value(point.order, name, None) or 0.0
            heights.append(height)
            axis.bar([at + place], [height], color=color, width=0.38, alpha=alpha)
            axis.annotate(
                f"{height:,.0f}", (at + place, height), ha="center", va="bottom",
                fontsize=7,
            )  # fmt: skip
    axis.set_yscale("log")
    axis.set_ylim(min(heights) / 4, max(heights) * 3)
    _names(axis, points)


def _histograms(points: Sequence[Point], results: Results) -> Figure:
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    (run, *_) = results.runs(points[0].order)
    texts = {
        "n": "window size n",
        "m": "entries evicted at once, m",
        "d": "out-of-order distance d",
    }
    for axis, (name, text) in zip(axes, texts.items(), strict=True):
        bars = run["histograms"][name]
        places = range(len(bars))
        axis.bar(places, [held for _, held in bars], color="#2563eb")
        axis.set_yscale("log")
        axis.set_ylim(bottom=0.5)  # so that a bar of one shows
        axis.set_xticks(places, [f"{low:,}" for low, _ in bars], rotation=60)
        axis.set_xlabel(f"{text}, from")
        axis.grid(visible=False, axis="x")
    axes[0].set_ylabel("how often")
    return figure


def _break_even(row: Artefact, points: Sequence[Point], results: Results) -> Figure:
    """A point for each operator and structure: from which n on it is ahead."""
    view = View(points, results, None, row.y)
    labels = _labels(points)
    base = labels.pop()
    operators = list(dict.fromkeys(point.known["operator"] for point in points))
    figure, axis = plt.subplots(figsize=(9, 4.2), layout="constrained")
    most = max((point.known["n"] for point in points), default=2)
    factors = (1, 10) if row.paper == "ra" else (1,)
    for number, label in enumerate(labels):
        for factor in factors:
            places, sizes = [], []
            for at, operator in enumerate(operators):
                try:
                    n = crossing(view, label, base, factor, operator=operator)
                except MissingError:
                    continue
                places.append(at + (number - len(labels) / 2 + 0.5) * 0.16)
                sizes.append(2.0 * most if n is None else n)
            color = _COLORS[number + (factor > 1)]
            text = label if factor == 1 else f"{label}, ten times"
            axis.plot(
                places, sizes, _MARKS[number + (factor > 1)], color=color, label=text
            )
    axis.axhline(1.4 * most, color="#9ca3af", lw=0.8)
    axis.annotate(
        "never", (1, 2 * most), xycoords=("axes fraction", "data"),
        xytext=(4, 0), textcoords="offset points", va="center",
    )  # fmt: skip
    axis.set_yscale("log", base=2)
    axis.set_xticks(range(len(operators)), operators, rotation=20)
    axis.set_ylabel(f"ahead of {base} from n =")
    axis.legend(frameon=False, ncols=len(labels) * len(factors), loc="upper right",
                bbox_to_anchor=(1, 1.12))  # fmt: skip
    return figure


def _quotients(row: Artefact, points: Sequence[Point], results: Results) -> Figure:
    """The rate of the first structure ÷ that of the second, a line per operator."""
    view = View(points, results, None, row.y)
    first, second = _labels(points)
    figure, axis = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    operators = list(dict.fromkeys(point.known["operator"] for point in points))
    for at, operator in enumerate(operators):
        try:
            mine = dict(view.line(first, operator=operator))
            other = dict(view.line(second, operator=operator))
        except MissingError:
            continue
        axis.plot(
            list(mine), [mine[n] / other[n] for n in mine],
            color=_COLORS[at], marker=_MARKS[at], ms=3.5, lw=1.3, label=operator,
        )  # fmt: skip
    axis.axhspan(1.02, 1.39, color="#9ca3af", alpha=0.4, lw=0, label="in the paper")
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(row.axes[0])
    axis.set_ylabel(row.axes[1])
    figure.legend(loc="outside lower center", ncols=6, frameon=False)
    return figure
