"""Describes `KeyedWindows` in a few lines of text."""

from slidewise.formatting import format_count, wrap_lines
from slidewise.keyed.cell_sizes import folded_width, width_of
from slidewise.keyed.horizon import Horizon
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.shard import Shard
from slidewise.keyed.single_times import format_tick
from slidewise.spec.spec import Spec
from slidewise.table.unique import explain_ids

__all__ = ["explain_cells", "explain_lines", "format_bytes", "format_windows"]

# The rows of a cell of which the bytes are stated: those of sketches grow with them.
_FEW, _MANY = 64, 1024

_EMITTED = {
    "arrival": "a result per row when it arrives",
    "final": "a result per row when the watermark passes it",
    "update": "a result per batch and changed key",
    "change": "a result per changed key, in batches and as rows leave its windows",
    "slide": "a result per key and window when the watermark passes its end",
    "none": "no results but those of queries",
}


def explain_lines(
    spec: Spec, emit: str, shard: Shard | None, watermark: int | None, nbytes: int
) -> str:
    """Describes the windows, the rows that they read, and how long rows are kept."""
    lines = [f"{format_windows(spec)}: {_EMITTED[emit]}", *explain_ids(spec)]
    if shard is None:
        lines.append("no rows yet: the columns are unknown")
    else:
        keys = format_count(len(shard.index.store), "key")
        lines.append(f"state: {format_bytes(nbytes)}, the entries of {keys} and a log")
        lines.append(f"results: {_how(shard.query)}")
        lines += [*_cells(shard), *_carried(shard.query)]
        lines.append(_queries(shard, watermark))
    return "\n".join(wrap_lines(lines))


def format_windows(spec: Spec) -> str:
    """Describes the windows, their column of times, and their keys.

    Example:
        >>> import slidewise as sw
        >>> spec = sw.Spec.make(on="t", windows=["1h", "1d"], aggs={"n": sw.count()})
        >>> format_windows(spec)
        'rolling 1h, 1d over t'
    """
    labels = ", ".join(
        repr(window) if window.by_position else window.label for window in spec.windows
    )
    by = f" by {', '.join(spec.by)}" if spec.by else ""
    return f"{spec.windows[0].heading} {labels} over {spec.on}{by}"


def format_bytes(count: int) -> str:
    """Writes a number of bytes with three digits.

    Example:
        >>> format_bytes(0), format_bytes(1_234_567)
        ('0 B', '1.23 MB')
    """
    size, units = float(count), ["B", "kB", "MB", "GB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.3g} {units[0]}"


def _how(query: KeyedQuery) -> str:
    """Describes what results are computed from."""
    if query.folds:
        return "folds of the entries of a key"
    if (
        query.sessions
        or query.row_closed_window
        or query.backward_windows
        or query.rows
    ):
        what = "a session" if query.sessions else "windows of rows(n)"
        by_rows = (
            [query.row_closed_window]
            if query.row_closed_window
            else query.backward_windows
        )
        what = ", ".join(map(repr, by_rows)) or what
        return f"from all rows of a key: {what} may begin at any of them"
    if query.carried_by_calendar:
        window = query.carried_by_calendar[0]
        return f"from all rows of a window, because of edge='carry' with {window!r}"
    _, call = query.request([])
    pairs = zip(call.spec.aggs, call.folds_each, strict=True)
    names = ", ".join(repr(agg) for (_, agg), folds in pairs if not folds)
    return f"from all rows of a window, because {names} cannot be folded"


def _cells(shard: Shard) -> list[str]:
    """Describes what is kept of the cells of `resolution=`."""
    log, lines = shard.log, explain_cells(shard.query, shard.retention)
    if shard.query.cells is None:
        return lines
    partials = format_count(len(log.cells), "partial")
    rows = format_count(len(log), "row")
    held = (
        f"cells: {partials} of cells that the watermark has passed, in "
        f"{format_bytes(log.cells.nbytes)} of the log, and {rows} in "
        f"{format_bytes(log.nbytes)}"
    )
    return [held, *lines]


def explain_cells(query: KeyedQuery, retention: int) -> list[str]:
    """States the bytes of a key with and without `resolution=`, or what needs its rows.

    Args:
        query: The query. Without windows that begin on a grid nothing is stated.
        retention: How long rows are kept behind the watermark, in ticks.
    """
    if all(window.cell_grid(query.ticks_of) is None for window in query.spec.windows):
        return []
    if query.cells is None:
        return [f"cells: their rows are kept, because of {_keeping(query)}"]
    # Those of the longest window, and the one in which it begins.
    count = -(-retention // query.cells.every) + 1
    most, row = format_count(count, "cell"), width_of(query.stored_schema)
    few, many = (folded_width(query, rows) for rows in (_FEW, _MANY))
    held, more = "one partial each", ""
    if few is not None and many is not None:
        total = count * few.fixed
        grows = f" ({many.fixed:,} of {_MANY:,} rows)" if many != few else ""
        held = f"about {few}{grows}: {format_bytes(total)}"
        more = f", which is more from {format_count(total // row.fixed + 1, 'row')} on"
    return [
        f"per key with resolution=: up to {most} in its windows, of {held}",
        f"per key without it: {row} for each row{more}",
    ]


def _keeping(query: KeyedQuery) -> str:
    """Names what needs the rows of cells."""
    spec = query.spec
    reasons = {
        "unique_by=": spec.unique_by,
        "then_by=": query.then_by,
        "deletes=": query.deletes,
        "late_rows='correct'": query.corrects,
        "ties='rows'": spec.ties == "rows",
        "exclude=": spec.exclude,
        "edge='carry'": query.carries,
        "results that are not folds of entries": not query.folds,
    }
    found = [name for name, holds in reasons.items() if holds]
    return ", ".join(found or ["windows without a length of time"])


def _carried(query: KeyedQuery) -> list[str]:
    """Describes the rows that are kept for windows which begin with them."""
    if not query.carries:
        return []
    aggs = [agg for _, agg in query.spec.aggs if agg.carries]
    columns = dict.fromkeys(
        repr(agg.of) + ("" if agg.where is None else f" where {agg.where!r}")
        for agg in aggs
    )
    return [
        "carry: of the rows behind the horizon each key keeps its last, and the last "
        f"entry of {', '.join(columns)}, with which a window begins"
    ]


def _queries(shard: Shard, watermark: int | None) -> str:
    """Describes the windows that `query` answers, and at which times."""
    if shard.query.sessions:
        return "query: not for sessions, which have no length"
    if shard.query.flag_column:
        since = "any time"
        if watermark is not None and shard.log.latest_lost() is not None:
            at = format_tick(watermark, shard.query.times)
            since = f"{at} (the watermark) or later"
        return f"query: the window that no flag has closed yet, at {since}"
    horizon = Horizon(shard.query, shard.retention, shard.evicted(watermark))
    text = f"query: any window up to {horizon.label}"
    if watermark is None or shard.log.latest_lost() is None:
        return f"{text}, at any time: no row was evicted yet"
    since = format_tick(watermark, shard.query.times)
    return (
        f"{text}, at {since} (the watermark) or later; shorter ones earlier, while "
        "their rows are kept"
    )
