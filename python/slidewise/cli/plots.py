"""Pictures of series and their rolling aggregates (needs `slidewise[plot]`).

One panel per aggregation, one line per window, the values themselves as faint dots. An
answer holds until the next one, so lines are steps. Where a window has become empty
before the next row, the line is interrupted, and a count falls to 0. The file's ending
picks the format: png, svg or pdf.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite, nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations import Aggregation
from slidewise.errors import SpecError
from slidewise.spec.spec import Spec, WindowSpec
from slidewise.table.time_columns import TimeColumn, read_times, window_ticks

__all__ = ["check", "draw_rolling"]

_ENDINGS = (".png", ".svg", ".pdf")
_PANELS = 6
_INK, _MUTED, _FAINT = "#1f2933", "#627281", "#9fb0bf"
# Short windows are light and thin, long ones dark, which suggests near and far.
_LINES = ("#f59e0b", "#0ea5a4", "#2563eb", "#7c3aed", "#be185d", "#374151")
_SHOWS_VALUES = ("mean", "min", "max", "first", "last", "geometric_mean")

_STYLE = {
    "agg.path.chunksize": 20_000,
    "axes.axisbelow": True,
    "axes.edgecolor": _FAINT,
    "axes.grid": True,
    "axes.labelcolor": _MUTED,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "grid.color": "#e6ebf0",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.markerscale": 2.0,
    "svg.hashsalt": "slidewise",
    "text.color": _INK,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "ytick.major.size": 0,
}


def check(path: str | Path) -> None:
    """Refuses a picture that could not be drawn, before any work is done for it."""
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        known = ", ".join(_ENDINGS)
        raise SpecError(f"cannot draw into {str(path)!r}: pictures end in {known}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SpecError(
            "pictures need matplotlib: pip install 'slidewise[plot]'"
        ) from None


def draw_rolling(table: pa.Table, spec: Spec, path: str | Path) -> None:
    """Draws the results that `slidewise.rolling` added to a table.

    In a keyed table it draws the key with the most rows. Results that are not numbers
    are left out.
    """
    check(path)
    aggs = [(name, agg) for name, agg in spec.aggs if _drawable(table, spec, name)]
    if not aggs:
        raise SpecError("there is nothing to draw: no result is a number")
    rows, key = _busiest(table, spec.by)
    rows = rows.sort_by(spec.on)
    title = ", ".join(name for name, _ in aggs[:_PANELS]) + f" over {spec.on}"
    about = f"{key}{rows.num_rows:,} rows; windows {_format_windows(spec)}"
    if spec.arrival is not None:
        about += f"; as of each row's {', '.join(spec.arrivals)}"
    with _page(path, title, about, [1.0] * min(len(aggs), _PANELS)) as panels:
        for axes, (name, agg) in zip(panels, aggs[:_PANELS], strict=True):
            _panel(axes, rows, spec, name, agg)
        panels[-1].set_xlabel(spec.on)
        if _numpy(rows, spec.on).dtype.kind == "M":
            _date_axis(panels[-1])


def _panel(axes: Any, rows: pa.Table, spec: Spec, name: str, agg: Aggregation) -> None:
    labels = [f"{name}_{window.label}" for window in spec.windows]
    lines = [_numpy(rows, label) for label in labels]
    if agg.of is not None and agg.kind in _SHOWS_VALUES and _is_number(rows, agg.of):
        dots = _numpy(rows, agg.of)
        _dots(axes, _numpy(rows, spec.on), dots, agg.of)
        _limit(axes, dots, lines)
    times = _times(rows, spec.on)
    over_nothing = 0.0 if agg.kind == "count" else nan
    for number, window in enumerate(spec.windows):
        color = _LINES[number % len(_LINES)]
        width = 1.1 + 0.25 * min(number, 4)
        reach = _reach(window, times)
        series = _held(times, lines[number], reach, over_nothing)
        _steps(axes, *series, color=color, linewidth=width, label=labels[number])
    _name_panel(axes, repr(agg))


def _reach(window: WindowSpec, times: TimeColumn) -> int | None:
    """How long a window holds a row, in ticks; None if without end."""
    if window.kind == "rows":
        return None
    length = window_ticks(window.as_length, times)
    reach = length + window_ticks(window.as_offset, times)
    return reach if reach > 0 else None  # the window lies ahead of its row


def _held(
    times: TimeColumn, answers: Any, reach: int | None, over_nothing: float
) -> tuple[Any, Any]:
    """Times and answers, with one more if a window is empty before the next row."""
    import numpy

    ticks = times.ticks.to_numpy()
    if reach is not None and len(ticks) > 1:
        # Sorted: a difference fits uint64, even that of the ends of int64.
        apart = ticks[1:].view("uint64") - ticks[:-1].view("uint64")
        last = numpy.flatnonzero(apart > reach)
        ticks = numpy.insert(ticks, last + 1, ticks[last] + reach)
        answers = numpy.insert(answers, last + 1, over_nothing)
    column = pa.chunked_array([times.restore(pa.array(ticks))])
    return _numpy(pa.table({"": column}), ""), answers


def _steps(axes: Any, times: Any, answers: Any, **style: Any) -> None:
    """Draws answers that hold until the next one; the latest is marked."""
    axes.plot(times, answers, drawstyle="steps-post", **style)
    axes.plot(times[-1:], answers[-1:], "o", color=style["color"], ms=3.5, mew=0)


def _times(rows: pa.Table, on: str) -> TimeColumn:
    return read_times(rows.column(on).combine_chunks(), on)


def _dots(axes: Any, times: Any, values: Any, label: str) -> None:
    few = len(values) < 1_000
    size, alpha = (5.0, 0.8) if few else (2.6, 0.55)
    axes.plot(
        times, values, ".", color=_FAINT, ms=size, alpha=alpha, mew=0, label=label
    )


def _limit(axes: Any, dots: Any, lines: Sequence[Any]) -> None:
    """Limits the axis to the lines, so that a few huge dots do not flatten them."""
    ordered = _finite(dots)
    shown = ordered[: 1 + int(0.98 * len(ordered))]
    for line in lines:
        shown += _finite(line)
    if shown:
        low, high = min(shown), max(shown)
        room = 0.06 * (high - low) or 1.0
        axes.set_ylim(low - room, high + room)


def _finite(values: Any) -> list[float]:
    return sorted(value for value in values.tolist() if isfinite(value))


def _name_panel(axes: Any, name: str) -> None:
    axes.set_title(name, loc="left", fontsize=10.5, color=_INK, pad=8)
    axes.margins(x=0.01)
    if axes.get_legend_handles_labels()[1]:
        legend = axes.legend(
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=8,
            borderaxespad=0.0,
            fontsize=9,
            labelcolor=_MUTED,
            handlelength=1.4,
            columnspacing=1.4,
        )
        for handle in legend.legend_handles:
            handle.set_alpha(1.0)


@contextmanager
def _page(
    path: str | Path,
    title: str,
    about: str,
    heights: Sequence[float],
) -> Iterator[list[Any]]:
    """A titled column of panels, saved when the block ends."""
    # Figure without pyplot: no window system, no global state, any thread.
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with rc_context(_STYLE):
        tall = 1.0 + 2.35 * sum(heights)
        below_title = (0.01, 0.01, 0.98, 0.99 - 0.78 / tall)
        layout = ConstrainedLayoutEngine(rect=below_title, hspace=0.06)
        figure = Figure(figsize=(11, tall), dpi=150, layout=layout)
        grid = figure.subplots(
            len(heights), 1, sharex=True, squeeze=False, height_ratios=heights
        )
        at = 0.018
        top = 1 - 0.14 / tall
        figure.text(at, top, title, size=16, weight="bold", va="top")
        figure.text(at, top - 0.33 / tall, about, size=10, color=_MUTED, va="top")
        panels = list(grid[:, 0])
        yield panels
        figure.savefig(path)


def _date_axis(axes: Any) -> None:
    """The format of date and time for the range."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=5, maxticks=10)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _format_windows(spec: Spec) -> str:
    return ", ".join(window.label for window in spec.windows)


def _busiest(table: pa.Table, by: Sequence[str]) -> tuple[pa.Table, str]:
    """The rows of the key that has most of them, and the key in words."""
    if not by or table.num_rows == 0:
        return table, ""
    counts = table.group_by(list(by)).aggregate([([], "count_all")])
    top = counts.sort_by([("count_all", "descending")]).slice(0, 1).to_pylist()[0]
    for name in by:
        column = table[name]
        value = top[name]
        mask = pc.is_null(column) if value is None else pc.equal(column, value)
        table = table.filter(mask)
    words = ", ".join(f"{name} {top[name]}" for name in by)
    return table, f"{words}, the key with the most rows: "


def _drawable(table: pa.Table, spec: Spec, name: str) -> bool:
    return all(_is_number(table, f"{name}_{w.label}") for w in spec.windows)


def _is_number(table: pa.Table, name: str) -> bool:
    kind = table.schema.field(name).type
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
    )


def _numpy(table: pa.Table, name: str) -> Any:
    """A column for matplotlib: numbers as floats (null is NaN), times as times."""
    column = table.column(name)
    if _is_number(table, name):
        column = column.cast(pa.float64(), safe=False)
    return column.to_numpy()
