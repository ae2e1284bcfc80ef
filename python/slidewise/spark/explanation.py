"""`explain`: the plan of a query on Spark, as text."""

from datetime import timedelta
from operator import attrgetter
from typing import Any

from slidewise.formatting import format_count
from slidewise.keyed.cell_sizes import width_of
from slidewise.keyed.explain import explain_cells
from slidewise.keyed.query import KeyedQuery
from slidewise.spark.batch import BatchPlan, cores_of, plan_batch
from slidewise.spark.buckets import PARTITIONS, bucket_count
from slidewise.spark.labels import Labels
from slidewise.spark.only import Only
from slidewise.spark.options import BatchOptions, StreamOptions
from slidewise.spark.skew import why_unsplit
from slidewise.spark.sort_key import KEY_GROUPS
from slidewise.spec.durations import Length, parse_length
from slidewise.spec.spec import Spec
from slidewise.table.asof import PointColumns
from slidewise.table.batched_rolling import needs_whole_keys

__all__ = ["explain_batch", "explain_stream"]

# More partitions of state per core cost time.
_MOST_PER_CORE = 4
_SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"


def explain_batch(
    df: Any,
    spec: Spec,
    options: BatchOptions,
    at: Any = None,
    columns: PointColumns | None = None,
    only: Only | None = None,
) -> str:
    """Returns the plan of a batch query; `at` are labels, with these columns."""
    labels = None
    if at is not None and columns is not None:
        labels = Labels(at, columns)
    plan = plan_batch(df, spec, options, labels, only)
    return "\n".join(
        [
            *_header(spec),
            "",
            *_answered(only, labels),
            "plan",
            *_steps(plan),
            "",
            "skewed keys",
            *_skewed_keys(plan, options),
            "",
            "memory of a task",
            f"  {_task_memory(plan)}",
            "",
            "Spark's own frames",
            f"  {_frames(spec, labels)}",
        ]
    )


def explain_stream(df: Any, spec: Spec, options: StreamOptions) -> str:
    """Returns the plan of a streaming query."""
    # Imported here: PySpark before 4.0 lacks the classes of streaming queries.
    from slidewise.spark.stream import make_query, most_buckets

    query = make_query(df, spec, options)
    partitions = int(df.sparkSession.conf.get(PARTITIONS))
    buckets = bucket_count(most_buckets(spec, options), partitions)
    keys = f"by a hash of {', '.join(spec.by)}" if spec.by else "all rows in one"
    late = timedelta(microseconds=(options.late or 0) // 1_000)
    less = f", less {parse_length(late).label}" if late else ""
    if options.idle is not None:
        idle = timedelta(milliseconds=options.idle_ms or 0)
        after = f" after {parse_length(idle).label}" if idle else ""
        less += f"; while no rows come, it follows the clock{after} (heartbeats)"
    lines = [
        *_header(spec),
        "",
        "plan",
        f"  1. watermark: the largest {spec.on} seen{less}",
        f"  2. pack rows into {format_count(buckets, 'bucket')}, {keys}"
        + _why_buckets(spec, options, partitions, cores_of(df.sparkSession)),
        "  3. one stateful operator per bucket: rows in a log, results when due "
        f"(emit={options.emit!r})",
        "  4. unpack the results",
        "",
        "state",
        *_state(query),
        "",
        f"late rows: {_late_rows(options)}",
    ]
    return "\n".join(lines)


def _why_buckets(
    spec: Spec, options: StreamOptions, partitions: int, cores: int | None
) -> str:
    """Says why there are so many buckets."""
    if not spec.by:
        return ""
    if options.buckets is not None and options.buckets < partitions:
        return f": in {options.buckets} of {partitions} partitions, as buckets= says"
    reason = f": one per partition of the state, by {PARTITIONS}={partitions}"
    if cores is not None and partitions > _MOST_PER_CORE * cores:
        reason += f"; {cores} cores need no more than {_MOST_PER_CORE * cores}"
    return reason


def _longest(query: KeyedQuery) -> Length | None:
    """The longest window of time whose rows are kept, not folded into cells."""
    windows = query.spec.windows
    if query.cells is not None:
        windows = tuple(w for w in windows if w.cell_grid(query.ticks_of) is None)
    timed = (window.timed for window in windows)
    lengths = (length for length in timed if length is not None)
    return max(lengths, key=lambda length: length.amount, default=None)


def _kept(query: KeyedQuery, reach: Length | None) -> list[str]:
    """Says which rows are kept, and for how long."""
    twice = "twice " if query.corrects else ""
    kept = [] if reach is None else [f"for {twice}{reach.label} behind the watermark"]
    if query.cells is not None:
        kept.append("until the watermark has passed their cell")
    if query.sessions:
        kept = ["until their session is closed"]
    if query.flag_column:
        kept = ["until a flag closes their window"]
    kept += [f"from where {w!r} begins" for w in query.backward_windows]
    if query.spec.empty:
        kept.append("the end of the last window of each key for ever")
    if query.carries:
        kept.append("the last entries of each key, with which windows begin, for ever")
    if query.rows:
        kept.append(f"the last {query.rows} of each key for ever")
    if query.row_closed_window and not query.flag_column:
        more = query.row_closed_window.slide_rows - 1
        kept.append(f"up to {more} more of each key, to count them")
    return kept


def _state(query: KeyedQuery) -> list[str]:
    """Describes the state: its rows, how long they are kept, and what is read."""
    reach = _longest(query)
    kept = _kept(query, reach)
    each = width_of(query.stored_schema)
    cells = explain_cells(query, query.reach + query.allowance)
    lines = [
        f"  rows are kept {' and '.join(kept)}: about {each} each",
        "  in a log: a micro-batch writes its rows, and sometimes merges earlier ones",
        *(f"  {line}" for line in cells),
    ]
    if query.folds:
        lines.append(
            "  workers hold the entries of each key in order of time: a result folds "
            "O(log n) partials, however long its window is"
        )
    else:
        lines.append(
            "  nothing is folded: a micro-batch reads all rows in the windows of its "
            "keys, as some aggregation needs them"
        )
    if reach is not None and not (query.sessions or query.flag_column):
        seconds = reach.amount / 1e9 * (2 if query.corrects else 1)
        lines.append(
            "  with 1,000 rows a second that are about "
            f"{seconds * 1_000 * each.fixed / 1e6:,.0f} MB"
        )
    if query.spec.unique_by:
        ids = ", ".join(query.spec.unique_by)
        lines.append(
            f"  workers remember {ids} of each of these rows, and drop those that come "
            "again"
        )
    if query.emit == "final":
        lines.append("  rows wait for the watermark with all their columns")
    return lines


def _header(spec: Spec) -> list[str]:
    """Describes the query in one line."""
    name = "hopping" if spec.is_hopping else "rolling"
    keys = f"per {', '.join(spec.by)}" if spec.by else "over all rows"
    labels = ", ".join(window.label for window in spec.windows)
    aggs = ", ".join(f"{name}={agg!r}" for name, agg in spec.aggs)
    return [f"{name} over {spec.on}, {keys}: {labels} × {aggs}"]


def _steps(plan: BatchPlan) -> list[str]:
    """Describes the steps of a task."""
    spec = plan.spec
    keys, tasks = ", ".join(spec.by), format_count(plan.tasks, "task")
    times = [*(spec.arrivals or [spec.on]), *plan.then_by]
    order = ", ".join([*spec.by, *(["split"] if plan.splits else []), *times])
    if plan.by_sort_key:
        order = f"one number, of {KEY_GROUPS} key groups and {spec.on}"
    rows, points = "rows", ""
    if plan.labels is not None:
        rows, points = "rows and labels", ", at each label"
    if plan.splits is not None:
        first = f"split skewed keys, and repartition {rows} to {tasks}"
    elif keys:
        first = f"repartition {rows} to {tasks} by {keys}"
    else:
        first = f"repartition all {rows} to one task"
    windows = format_count(len(spec.windows), "window")
    aggs = format_count(len(spec.aggs), "aggregation")
    steps = [
        first,
        f"sort within each task by {order}",
        f"one pass in native code: {windows} × {aggs}{points}, in time that does "
        "not depend on the length of windows",
    ]
    if spec.unique_by:
        same = ", ".join(dict.fromkeys([*spec.by, *spec.unique_by]))
        steps.insert(0, f"keep the first row of each {same}, by a shuffle and a sort")
    return [f"  {at}. {step}" for at, step in enumerate(steps, 1)]


def _answered(only: Only | None, labels: Labels | None) -> list[str]:
    """Describes the rows that are answered, and those that are read."""
    if only is None:
        return []
    answers, reads = only.described
    if labels is not None:
        answers = answers.replace("rows", "labels")
    return ["only", f"  answers {answers}", f"  reads {reads}", ""]


def _skewed_keys(plan: BatchPlan, options: BatchOptions) -> list[str]:
    """Lists the skewed keys, with their splits."""
    reason = why_unsplit(plan.spec)
    if reason is not None:
        return [f"  none is split: {reason}"]
    if options.split is False:
        return [
            "  none is split: finding them takes jobs, which split='sample' or a "
            "number of splits asks for"
        ]
    splits = plan.splits
    if splits is None:
        return [
            "  none is split: all are small enough for a task, or the windows too long"
        ]
    keys = splits.describe_keys(plan.spec)
    return [
        f"  {key}: about {rows:,} rows in {count} splits by time; {overlap:.0%} of "
        "them are read twice, as overlap"
        for key, rows, count, overlap in zip(
            keys, splits.rows, splits.counts, splits.overlap, strict=True
        )
    ]


def _task_memory(plan: BatchPlan) -> str:
    """Describes the memory of a task."""
    spec = plan.spec
    if spec.arrival is not None:
        return "all rows of one key, or of its split: a later row may need any of them"
    holder = "a key group" if plan.by_sort_key else "one key"
    if needs_whole_keys(spec):
        return f"all rows of {holder}: its windows may begin at any of them"
    if any(window.chained for window in spec.windows):
        return f"one batch, and the longest session of {holder}"
    amount = attrgetter("amount")
    longest = max(spec.windows, key=lambda window: window.reach(amount) or window.rows)
    return f"one batch, and about twice the rows of {holder} within {longest.label}"


def _frames(spec: Spec, labels: Labels | None) -> str:
    """Compares the query with a window frame of Spark."""
    if labels is not None:
        return "answer rows alone: labels take a join of each with its window's rows"
    if spec.is_hopping:
        return "groupBy(window(...)) copies each row into every window that holds it"
    reason = _unmergeable(spec)
    if reason is not None:
        return f"would take time in proportion to the rows of a window: {reason}"
    if len(spec.windows) > 1:
        return (
            "would take a frame per window; one pass here takes all of them "
            f"(for one window, see {_SEGMENT_TREE})"
        )
    return (
        "would do as well, without Python: one window and mergeable functions. Set "
        f"{_SEGMENT_TREE} to true (it is off by default, and time is then in "
        "proportion to the rows of a window), and use Window.partitionBy(...)"
        ".orderBy(...).rangeBetween(...). It rounds sums of floats differently"
    )


def _unmergeable(spec: Spec) -> str | None:
    """Returns why a frame of Spark cannot use its segment tree; None if it can."""
    if spec.arrival is not None:
        return "frames have no order of arrival"
    for _, agg in spec.aggs:
        if not agg.record.mergeable or agg.where is not None:
            return f"{agg!r} is not a function of its segment tree"
    return None


def _late_rows(options: StreamOptions) -> str:
    """Describes the treatment of late rows."""
    if options.late_rows == "flag":
        return "returned with _late true, and counted"
    if options.late_rows == "correct":
        return (
            "ingested up to the longest window behind the watermark, and the results "
            "that they change are emitted again with _correction true; older ones are "
            "counted"
        )
    return "counted and dropped (late_rows='flag' returns them)"
