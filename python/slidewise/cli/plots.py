"""Pictures of series and their rolling aggregates (needs `slidewise[plot]`).

A line shows the answer of its window at every time: it steps where a row enters the
window and where one leaves. Answers that belong to their row alone (`delta`, or with
`arrival=`) are points. One panel per aggregation has a line per window, and the values
themselves as faint dots; with several keys, one panel per result has a line per key.
The file's ending picks the format: png, svg or pdf.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.aggregations import Aggregation
from slidewise.cli.windows import split_colons
from slidewise.errors import Argument, SpecError
from slidewise.formatting import format_count
from slidewise.spec.outputs import outputs_of
from slidewise.spec.spec import Spec, derive
from slidewise.spec.windows.base import Window
from slidewise.table.arrays import decode_dictionary
from slidewise.table.rolling import rolling_spec
from slidewise.table.time_columns import TimeColumn, cells_of, read_times, window_ticks

__all__ = ["check", "draw_rolling"]

_ENDINGS = (".png", ".svg", ".pdf")
_PANELS = 6
_INT64_MAX = 2**63 - 1
_DAY = 86_400_000  # the ticks of a day in date64
_INK, _MUTED, _FAINT = "#1f2933", "#627281", "#9fb0bf"
# Short windows are light and thin, long ones dark, which suggests near and far.
_LINES = ("#f59e0b", "#0ea5a4", "#2563eb", "#7c3aed", "#be185d", "#374151")

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


@dataclass(frozen=True)
class _Series:
    """The rows of one key, and the answers of its windows over time."""

    name: str
    rows: pa.Table
    times: Any
    answers: pa.Table


def draw_rolling(
    table: pa.Table, spec: Spec, path: str | Path, keys: Sequence[str] = ()
) -> None:
    """Draws the results that `slidewise.rolling` added to a table.

    Results that are not numbers are left out.

    Args:
        table: The table with its results.
        spec: What they are.
        path: The picture.
        keys: The keys to draw, as text, the values of several columns with colons
            between them; by default the key with the most rows.
    """
    check(path)
    aggs = [(name, agg) for name, agg in spec.aggs if _drawable(table, spec, name)]
    if not aggs:
        raise SpecError("there is nothing to draw: no result is a number")
    chosen = [_of_key(table, spec.by, key) for key in keys] or [
        _busiest(table, spec.by)
    ]
    whole = pa.concat_tables([rows for rows, _ in chosen])
    series = [
        _series(name, rows.sort_by(spec.on), whole, spec) for rows, name in chosen
    ]
    panels = _by_window(series, aggs, spec)
    if len(series) > 1:
        panels = _by_key(series, aggs, spec)
    shown = panels[:_PANELS]
    title = ", ".join(dict.fromkeys(panel.name for panel in shown)) + f" over {spec.on}"
    about = f"{_about(series, spec, bool(keys))}; {_format_windows(spec)}"
    if spec.arrival is not None:
        about += f"; as of each row's {', '.join(spec.arrivals)}"
    if len(panels) > len(shown):
        about += f"; {len(shown)} panels of {len(panels)}"
    with _page(path, title, about, [1.0] * len(shown)) as drawn:
        for axes, panel in zip(drawn, shown, strict=True):
            _draw(axes, panel, spec)
        drawn[-1].set_xlabel(spec.on)
        if series[0].times.dtype.kind == "M":
            _date_axis(drawn[-1])


@dataclass(frozen=True)
class _Panel:
    """What a panel shows.

    Attributes:
        name: Of the aggregation.
        title: Above the panel.
        agg: The aggregation.
        lines: A label, the series and the column of results, of each line.
        of_keys: Whether the lines are keys, not windows.
    """

    name: str
    title: str
    agg: Aggregation
    lines: Sequence[tuple[str, _Series, str]]
    of_keys: bool = False


def _by_window(
    series: Sequence[_Series], aggs: Sequence[tuple[str, Aggregation]], spec: Spec
) -> list[_Panel]:
    panels = []
    for name, agg in aggs:
        labels = [one.column for one in outputs_of(spec) if one.name == name]
        lines = [(label, series[0], label) for label in labels]
        panels.append(_Panel(name, repr(agg), agg, lines))
    return panels


def _by_key(
    series: Sequence[_Series], aggs: Sequence[tuple[str, Aggregation]], spec: Spec
) -> list[_Panel]:
    panels = []
    for name, agg, _, label in outputs_of(spec):
        if (name, agg) in aggs:
            lines = [(one.name, one, label) for one in series]
            panels.append(_Panel(name, f"{label}: {agg!r}", agg, lines, of_keys=True))
    return panels


def _about(series: Sequence[_Series], spec: Spec, is_chosen: bool) -> str:
    rows = format_count(sum(one.rows.num_rows for one in series), "row")
    if not spec.by:
        return rows
    if len(series) > 1:
        return f"{', '.join(spec.by)}: {len(series)} keys, {rows}"
    why = "" if is_chosen else ", the key with the most rows"
    return f"{series[0].name}{why}: {rows}"


def _series(name: str, rows: pa.Table, whole: pa.Table, spec: Spec) -> _Series:
    """The answers whenever one changes, of windows that have any between rows.

    Args:
        name: The key in words.
        rows: Its rows, in order.
        whole: The rows of all keys that are drawn.
        spec: The windows.
    """
    per_row = spec.arrival is not None
    windows = [] if per_row else [one for one in spec.windows if not one.needs_row]
    if not windows or rows.num_rows == 0:
        return _Series(name, rows, _numpy(rows, spec.on), pa.table({}))
    plain = rows.drop_columns(list(spec.results))
    ends = _changes(_times(rows, spec.on), _times(whole, spec.on), spec.windows)
    lines = derive(spec, by=(), windows=tuple(windows), overflow="null")
    answers = rolling_spec(plain, lines, pa.table({spec.on: ends}))
    return _Series(name, rows, _numpy(answers, spec.on), answers)


def _times(rows: pa.Table, on: str) -> TimeColumn:
    return read_times(rows[on].combine_chunks(), on)


def _changes(
    times: TimeColumn, whole: TimeColumn, windows: Sequence[Window]
) -> pa.Array:
    """The times at which a row enters a window or leaves it, in order.

    From the first row of `whole`, or before it where windows lie ahead, to its last
    one, or until that has entered all windows.
    """
    import numpy

    kind = times.original.type
    tick = _DAY if pa.types.is_date64(kind) else 1  # the least step of time
    entering, leaving = [0], []
    ticks, together = times.ticks.to_numpy(), []
    for window in windows:
        offset = 0 if window.lag is None else window_ticks(window.lag, times)
        entering.append(offset + tick * (not window.includes_end))
        if window.timed is not None:
            reach = window.reach(lambda length: window_ticks(length, times))
            leaving.append(reach + tick * window.includes_start)
            begun = cells_of(
                window, lambda length: window_ticks(length, times), times.ticks
            )
            if begun is not None:
                together.append(_moved(begun.to_numpy(), reach + 1))
    ends = pc.min_max(whole.ticks).as_py()
    span = numpy.array([ends["min"], ends["max"]])
    first = max(ends["min"] + min(entering), -_INT64_MAX - 1)
    last = min(ends["max"] + max(entering), _INT64_MAX)
    moved = [_moved(ticks, by) for by in {*entering, *leaving}] + [*together, span]
    at = numpy.unique(numpy.concatenate(moved))
    return times.restore(pa.array(at[(at >= first) & (at <= last)]))


def _moved(ticks: Any, by: int) -> Any:
    """Ticks later by a number of them, without those beyond int64."""
    within = ticks <= _INT64_MAX - by if by >= 0 else ticks >= -_INT64_MAX - 1 - by
    half = by // 2  # the whole may be beyond int64
    return ticks[within] + half + (by - half)


def _draw(axes: Any, panel: _Panel, spec: Spec) -> None:
    agg, rows = panel.agg, panel.lines[0][1].rows
    column = agg.of if agg.record.plotted and not panel.of_keys else None
    dots = None
    if column is not None and _is_number(rows, column):
        dots = _numpy(rows, column)
        _dots(axes, _numpy(rows, spec.on), dots, column)
    drawn = []
    for number, (label, series, result) in enumerate(panel.lines):
        color = _LINES[number % len(_LINES)]
        width = 1.1 + 0.25 * min(number, 4)
        if result in series.answers.column_names:
            answers = _numpy(series.answers, result)
            held = _steps(series.times, answers)
            axes.plot(
                *held,
                drawstyle="steps-post",
                color=color,
                linewidth=width,
                label=label,
            )
            axes.plot(series.times[-1:], answers[-1:], "o", color=color, ms=3.5, mew=0)
        else:
            answers = _numpy(series.rows, result)
            times = _numpy(series.rows, spec.on)
            axes.plot(times, answers, "o", color=color, ms=3.5, mew=0, label=label)
        drawn.append(answers)
    if dots is not None:
        _limit(axes, dots, drawn)
    if all(_is_whole(series.rows, result) for _, series, result in panel.lines):
        _whole_ticks(axes)
    _name_panel(axes, panel.title)


def _steps(times: Any, answers: Any) -> tuple[Any, Any]:
    """Times and answers where the answer changes, and the last."""
    import numpy

    if len(answers) < 2:
        return times, answers
    both_nan = numpy.isnan(answers[1:]) & numpy.isnan(answers[:-1])
    changes = (answers[1:] != answers[:-1]) & ~both_nan
    kept = numpy.concatenate([[True], changes])
    kept[-1] = True
    return times[kept], answers[kept]


def _whole_ticks(axes: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))


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
    said = "windows " + ", ".join(window.label for window in spec.windows)
    given = spec.keywords
    more = [f"{name} {given[name]}" for name in ("closed", "offset") if name in given]
    return "; ".join([said, *more])


def _busiest(table: pa.Table, by: Sequence[str]) -> tuple[pa.Table, str]:
    """The rows of the key that has most of them, and the key in words."""
    if not by or table.num_rows == 0:
        return table, ""
    counts = table.group_by(list(by)).aggregate([([], "count_all")])
    top = counts.sort_by([("count_all", "descending")]).slice(0, 1)
    values = [top[name][0] for name in by]
    for name, value in zip(by, values, strict=True):
        table = _where(table, name, value)
    return table, _in_words(by, values)


def _of_key(table: pa.Table, by: Sequence[str], key: str) -> tuple[pa.Table, str]:
    """The rows of a key that is given as text, and the key in words."""
    parts = [key] if len(by) == 1 else split_colons(key)
    if not by:
        raise SpecError(Argument("key", key), " needs ", Argument("by"), ", its column")
    if len(parts) != len(by):
        raise SpecError(
            Argument("key", key),
            f" is not a key of {', '.join(by)}: write the values with colons between "
            "them",
        )
    values = []
    for name, part in zip(by, parts, strict=True):
        kind = decode_dictionary(table[name].combine_chunks()).type
        try:
            values.append(pa.scalar(part).cast(kind))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise SpecError(
                Argument("key", key),
                f": column {name!r} holds {kind}, not {part!r}",
            ) from None
        table = _where(table, name, values[-1])
    if table.num_rows == 0:
        raise SpecError(Argument("key", key), " has no rows")
    return table, _in_words(by, values)


def _where(table: pa.Table, name: str, value: pa.Scalar) -> pa.Table:
    column = decode_dictionary(table[name].combine_chunks())
    if not value.is_valid:
        return table.filter(pc.is_null(column))
    return table.filter(pc.equal(column, value))


def _in_words(by: Sequence[str], values: Sequence[pa.Scalar]) -> str:
    both = zip(by, values, strict=True)
    return ", ".join(f"{name} {value.as_py()}" for name, value in both)


def _drawable(table: pa.Table, spec: Spec, name: str) -> bool:
    columns = (one.column for one in outputs_of(spec) if one.name == name)
    return all(_is_number(table, column) for column in columns)


def _is_whole(table: pa.Table, name: str) -> bool:
    kind = table.schema.field(name).type
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _is_number(table: pa.Table, name: str) -> bool:
    kind = table.schema.field(name).type
    return bool(pa.types.is_floating(kind) or _is_whole(table, name))


def _numpy(table: pa.Table, name: str) -> Any:
    """A column for matplotlib: numbers as floats (null is NaN), times as times."""
    column = table.column(name)
    if _is_number(table, name):
        column = column.cast(pa.float64(), safe=False)
    return column.to_numpy()
