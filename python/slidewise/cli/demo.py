"""The main job on generated trips: what slidewise does, on data that is awkward enough.

Rolling features per station over several windows, twice: in hindsight (every trip sees
all trips of its window) and live (every trip sees only what had arrived by then).
Written to Parquet, shown as a table, drawn as a picture.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slidewise.aggregations import Aggregation, count, max, mean, stddev
from slidewise.cli import demo_trips, plots
from slidewise.cli.progress import Progress
from slidewise.cli.texts import format_table, rate, span
from slidewise.errors import SpecError
from slidewise.table.rolling import rolling

__all__ = ["run"]

WINDOWS = ("15m", "1h", "24h")
AGGS: dict[str, Aggregation] = {
    "n": count(),
    "avg": mean("tripduration"),
    "longest": max("tripduration"),
    "spread": stddev("tripduration"),
}
_KEY = "start station id"


def run(
    out: Path,
    *,
    rows: int = 200_000,
    seed: int = 7,
    command: str = "slidewise",
    say: Callable[[str], None] = print,
) -> None:
    """Runs the demo.

    Args:
        out: The folder to write to; made if it is not there.
        rows: How many trips to generate, at least 1.
        seed: Of the generator.
        command: How the user calls slidewise, for the commands to try next.
        say: Takes each line of what there is to say.

    Raises:
        SpecError: If `rows` is not positive.
    """
    if rows < 1:
        raise SpecError(f"the demo needs at least one trip, got --rows {rows}")
    out.mkdir(parents=True, exist_ok=True)
    progress = Progress()
    with progress.stage("generate"):
        stream = demo_trips.generate(rows, seed=seed)
    say("\n".join(_about_stream(stream, seed, progress.seconds["generate"])))
    with progress.stage("roll"):
        features = rolling(stream, on="starttime", by=_KEY, windows=WINDOWS, aggs=AGGS)
    with progress.stage("roll live"):
        features = _with_live(features)
    say("\n".join(_about_features(features, progress)))
    files = _write(stream, features, out, progress)
    say("\n".join(_about_crowd(features)))
    say("\n".join(_about_files(files, progress)))
    say("\n".join(_next_steps(out, command)))


def _with_live(features: pa.Table) -> pa.Table:
    """Adds the last hour's count once more, as of each trip's arrival."""
    return rolling(
        features,
        on="starttime",
        by=_KEY,
        windows="1h",
        aggs={"live_n": count()},
        arrival="arrived",
    )


def _write(
    stream: pa.Table, features: pa.Table, out: Path, progress: Progress
) -> list[Path]:
    trips_file = out / "trips.parquet"
    features_file = out / "features.parquet"
    with progress.stage("write"):
        pq.write_table(stream, trips_file)
        pq.write_table(features, features_file)
    files = [trips_file, features_file]
    picture = out / "day.png"
    try:
        plots.check(picture)
    except SpecError:
        return files  # a picture is an extra; without matplotlib the rest still stands
    with progress.stage("draw"):
        station, begins = _crowd(features)
        plots.draw_demo(_day(features, begins), picture, station=station)
    return [*files, picture]


def _about_stream(stream: pa.Table, seed: int, seconds: float) -> list[str]:
    starts = stream["starttime"].cast(pa.int64())
    latest = pc.cumulative_max(starts)
    behind = pc.subtract(latest, starts)
    overtaken = pc.mean(pc.greater(behind, 0)).as_py()
    stations = pc.count_distinct(stream[_KEY]).as_py()
    days = pc.count_distinct(stream["starttime"].cast(pa.date32())).as_py()
    return [
        f"1. Generated {stream.num_rows:,} trips from {stations} stations over {days} "
        f"days (seed {seed}) in {seconds:.1f} s.",
        "   They come in the order in which a server hears of them: when they end, or",
        "   when a dock gets its connection back. "
        f"{overtaken:.0%} were overtaken by a later start;",
        f"   the latest came {span(timedelta(seconds=pc.max(behind).as_py()))} behind.",
        "",
    ]


def _about_features(features: pa.Table, progress: Progress) -> list[str]:
    total = features.num_rows * len(WINDOWS) * len(AGGS)
    seconds, live_seconds = progress.seconds["roll"], progress.seconds["roll live"]
    differ = pc.mean(pc.not_equal(features["n_1h"], features["live_n_1h"])).as_py()
    return [
        f"2. Rolled {', '.join(AGGS)} per station over {', '.join(WINDOWS)}, "
        "as of each trip:",
        f"   {total:,} exact answers in {seconds:.2f} s ({rate(total, seconds)}).",
        "",
        "3. Rolled the last hour's count again, as of each trip's arrival:",
        f"   {features.num_rows:,} answers in {live_seconds:.2f} s "
        f"({rate(features.num_rows, live_seconds)}). For {differ:.0%} of the trips "
        "the two differ:",
        "   a model trained on hindsight would have been served other numbers.",
        "",
    ]


def _about_crowd(features: pa.Table) -> list[str]:
    station, begins = _crowd(features)
    here = features.filter(pc.equal(features["start station name"], station))
    here = here.filter(pc.less_equal(here["starttime"], begins)).sort_by("starttime")
    shown = here.slice(here.num_rows - 8 if here.num_rows > 8 else 0)
    for at, name in enumerate(("starttime", "stoptime", "arrived")):
        shown = shown.set_column(at, name, shown[name].cast(pa.time32("s")))
    columns = ["starttime", "arrived", "tripduration"]
    columns += ["n_15m", "n_1h", "n_24h", "avg_1h", "longest_1h", "live_n_1h"]
    table = format_table(shown, columns)
    return [
        f"4. The most sudden crowd set off from {station} on {begins:%A}, "
        f"{begins.day} {begins:%B}.",
        "   live_n_1h is what was known of n_1h when the trip arrived:",
        "",
        *("   " + line for line in table.splitlines()),
        "",
    ]


def _about_files(files: list[Path], progress: Progress) -> list[str]:
    about = {
        "trips.parquet": "the stream, in order of arrival",
        "features.parquet": "the same rows with the features behind them",
        "day.png": "that day: hindsight against live, durations, backlogs",
    }
    lines = ["5. Wrote"]
    for file in files:
        size = file.stat().st_size / 1e6
        lines.append(f"   {file}  {size:.1f} MB, {about[file.name]}")
    if "draw" not in progress.seconds:
        lines.append("   No picture: pip install 'slidewise[plot]' for one.")
    return [*lines, ""]


def _next_steps(out: Path, command: str) -> list[str]:
    return [
        "Try next",
        f"   {command} rolling {out / 'trips.parquet'} --on starttime \\",
        '       --by "start station name" --window 30m --window 100rows \\',
        "       --agg n=count --agg slowest=max:tripduration \\",
        f"       -o {out / 'mine.parquet'} --plot {out / 'mine.png'}",
        "   the same with --arrival arrived, or on a file of your own (CSV, Parquet, "
        "Arrow, JSON)",
        f"   {command} rolling --help",
    ]


def _crowd(features: pa.Table) -> tuple[str, datetime]:
    """Where and when the most sudden crowd set off.

    That is where the last 15 minutes exceed the 45 before them most.
    """
    quarter, hour = features["n_15m"], features["n_1h"]
    surge = pc.subtract(pc.multiply(quarter, 2), hour)
    top = pc.index(surge, pc.max(surge)).as_py()
    row = features.slice(top, 1)
    station = row["start station name"][0].as_py()
    begins = row["starttime"][0].as_py()
    return str(station), begins


def _day(features: pa.Table, at: datetime) -> pa.Table:
    begins = at.replace(hour=0, minute=0, second=0)
    times = features["starttime"]
    kind = times.type
    after = pc.greater_equal(times, pa.scalar(begins, kind))
    before = pc.less(times, pa.scalar(begins + timedelta(days=1), kind))
    return features.filter(pc.and_(after, before))
