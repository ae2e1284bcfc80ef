"""How a job on Spark would be done, in words."""

from datetime import timedelta
from typing import Any

import pyarrow as pa

from slidewise.formatting import format_count
from slidewise.keyed.page_tree import PAGE
from slidewise.keyed.stream_query import StreamQuery
from slidewise.spark import skew
from slidewise.spark.batch import Job, planned
from slidewise.spark.options import BatchOptions, StreamOptions
from slidewise.spark.sort_key import RUNS
from slidewise.spec.durations import parse_length
from slidewise.spec.spec import Spec

__all__ = ["explained_batch", "explained_stream"]

# What folds add to the rows that they are of.
_FOLDS = 1.1
_SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"
# What Spark's segment tree merges; one other function sends a whole frame off it.
_MERGED = ("count", "sum", "mean", "min", "max", "stddev", "variance")


def explained_batch(df: Any, spec: Spec, options: BatchOptions) -> str:
    """The plan of a batch job.

    Raises:
        SpecError: If the spec does not fit the columns.
    """
    job = planned(df, spec, options)
    return "\n".join(
        [
            *_asked(spec),
            "",
            "plan",
            *_steps(job),
            "",
            "hot keys",
            *_hot_keys(job, options),
            "",
            "memory of a task",
            f"  {_memory(job)}",
            "",
            "Spark's own frames",
            f"  {_frames(spec)}",
        ]
    )


def explained_stream(df: Any, spec: Spec, options: StreamOptions) -> str:
    """The plan of a stream.

    Raises:
        SpecError: If the spec does not fit a stream.
    """
    # Only versions of PySpark that have streams have all of this.
    from slidewise.spark.stream import buckets_of, job_of

    options.check_stream()
    job = job_of(df, spec, options)
    buckets = buckets_of(spec, options)
    keys = f"by a hash of {', '.join(spec.by)}" if spec.by else "all rows in one"
    late = timedelta(microseconds=(options.late or 0) // 1_000)
    less = f", less {parse_length(late).label}" if late else ""
    lines = [
        *_asked(spec),
        "",
        "plan",
        f"  1. watermark: the largest {spec.on} seen{less}",
        f"  2. pack rows into {format_count(buckets, 'bucket')}, {keys}",
        "  3. one stateful operator per bucket: windows in pages, answers when due "
        f"(emit={options.emit!r})",
        "  4. unpack the answers",
        "",
        "state",
        *_state(job),
        "",
        f"late rows: {_late(options)}",
    ]
    return "\n".join(lines)


def _state(job: StreamQuery) -> list[str]:
    """What is kept, for how long, and how much of it a micro-batch reads."""
    reach = max(
        (window for window in job.spec.windows if window.kind != "rows"),
        key=lambda window: window.length,
        default=None,
    )
    twice = "twice " if job.corrects else ""
    kept = [] if reach is None else [f"for {twice}{reach.label} behind the watermark"]
    if job.sessions:
        kept = ["until their session is over"]
    if job.spec.empty:
        kept.append("the end of the last window of each key for ever")
    if job.rows:
        kept.append(f"the last {job.rows} of each key for ever")
    widths = [_width(field.type) for field in job.leaf]
    unknown = " and its text" if None in widths else ""
    each = sum(width or 4 for width in widths)
    lines = [
        f"  rows are kept {' and '.join(kept)}: about {each} bytes{unknown} each",
        f"  in pages of {PAGE >> 10} KB per key or group of keys",
    ]
    if job.folds:
        lines.append(
            "  pages are folded per key: a micro-batch reads and writes those at the "
            "ends of its windows, however long they are"
        )
    else:
        lines.append(
            "  nothing is folded beforehand: a micro-batch reads all rows in the "
            "windows of its keys, as some aggregation needs them"
        )
    if reach is not None and not job.sessions:
        seconds = reach.length / 1e9 * (2 if job.corrects else 1)
        lines.append(
            "  with 1,000 rows a second that are about "
            f"{seconds * 1_000 * each * _FOLDS / 1e6:,.0f} MB, folds included"
        )
    if job.emit == "final":
        lines.append("  rows wait for the watermark with all their columns")
    return lines


def _width(kind: pa.DataType) -> int | None:
    """Bytes of a value; None where they differ."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return None


def _asked(spec: Spec) -> list[str]:
    name = "hopping" if spec.is_hopping else "rolling"
    keys = f"per {', '.join(spec.by)}" if spec.by else "over all rows"
    labels = ", ".join(window.label for window in spec.windows)
    aggs = ", ".join(f"{name}={agg!r}" for name, agg in spec.aggs)
    return [f"{name} over {spec.on}, {keys}: {labels} × {aggs}"]


def _steps(job: Job) -> list[str]:
    spec = job.spec
    keys = ", ".join(spec.by)
    times = [spec.arrival or spec.on, *job.then_by]
    order = ", ".join([*spec.by, *(["piece"] if job.cuts else []), *times])
    if job.in_runs:
        order = f"one number, of {RUNS} groups of keys and {spec.on}"
    if job.cuts is not None:
        tasks = format_count(job.tasks, "task")
        first = f"cut hot keys, and spread the pieces over {tasks}"
    elif keys:
        first = f"spread rows over {format_count(job.tasks, 'task')} by {keys}"
    else:
        first = "bring all rows to one task"
    windows, aggs = len(spec.windows), len(spec.aggs)
    return [
        f"  1. {first}",
        f"  2. sort within each task by {order}",
        f"  3. one pass in native code: {format_count(windows, 'window')} × "
        f"{format_count(aggs, 'aggregation')}, flat in the length of windows",
    ]


def _hot_keys(job: Job, options: BatchOptions) -> list[str]:
    why = skew.why_uncut(job.spec)
    if why is not None:
        return [f"  none is cut: {why}"]
    if options.split is False:
        return ["  none is looked for: split=False"]
    if job.cuts is None:
        return ["  none is cut: small enough for a task, or its windows too long"]
    cuts = job.cuts
    lines = []
    for key, rows, pieces, warm in zip(
        cuts.named(job.spec), cuts.rows, cuts.pieces, cuts.warm, strict=True
    ):
        lines.append(
            f"  {key}: about {rows:,} rows in {pieces} pieces of time; "
            f"{warm:.0%} of them are seen twice"
        )
    return lines


def _memory(job: Job) -> str:
    spec = job.spec
    if spec.arrival is not None:
        return "one key, or its piece, as a whole: any row may be needed by a later one"
    longest = max(spec.windows, key=lambda window: window.length)
    whose = "a group of keys" if job.in_runs else "one key"
    if longest.is_session:
        return f"the longest session of {whose}, and a batch"
    return f"about twice what {whose} has within {longest.label}, and a batch"


def _frames(spec: Spec) -> str:
    """Whether a window frame of Spark would do, and how."""
    if spec.is_hopping:
        return "groupBy(window(...)) copies each row into every window that holds it"
    unfit = _unfit(spec)
    if unfit is not None:
        return f"would take time in proportion to the rows of a window: {unfit}"
    if len(spec.windows) > 1:
        return (
            "would take a frame per window; one pass here takes all of them "
            f"(for one window, see {_SEGMENT_TREE})"
        )
    return (
        "would do as well, without Python: one window and functions that merge. Set "
        f"{_SEGMENT_TREE} to true (it is off by default, and time is then in "
        "proportion to the rows of a window), and use Window.partitionBy(...)"
        ".orderBy(...).rangeBetween(...). Sums of floats round otherwise there"
    )


def _unfit(spec: Spec) -> str | None:
    if spec.arrival is not None:
        return "no frame knows arrival"
    for _, agg in spec.aggs:
        if agg.kind not in _MERGED or agg.where is not None:
            return f"{agg!r} is none of those that its segment tree merges"
    return None


def _late(options: StreamOptions) -> str:
    if options.late_rows == "flag":
        return "come back with _late true, and are counted"
    if options.late_rows == "correct":
        return (
            "are taken in as far as the longest window behind the watermark, and what "
            "they change is sent again with _correction true; older ones are counted"
        )
    return "are counted and dropped (late_rows='flag' gives them back)"
