"""Rolling features of a generated stream of trips: a table, Parquet files, a picture.

    python examples/trips/demo.py --out demo-output

The features of each station are computed over several windows, twice: in hindsight
(every trip sees all trips of its window) and live (every trip sees only those that had
arrived by then).
"""

import argparse
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import picture
import slidewise as sw
import trips
from slidewise.cli.terminal import format_rate, print_table

WINDOWS = ("15m", "1h", "24h")
AGGS = {
    "n": sw.count(),
    "avg": sw.mean("tripduration"),
    "longest": sw.max("tripduration"),
    "spread": sw.stddev("tripduration"),
}
KEY = "start station id"


def main() -> None:
    """Reads the command line and runs the demo."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    parser.add_argument("--rows", type=int, default=200_000, help="how many trips")
    parser.add_argument("--seed", type=int, default=7, help="of the generator")
    options = parser.parse_args()
    if options.rows < 1:
        parser.error(f"--rows is 1 or more, got {options.rows}")
    run(options.out, options.rows, options.seed)


def run(out: Path, rows: int = 200_000, seed: int = 7) -> None:
    """Generates trips, rolls them, and writes and prints the results."""
    out.mkdir(parents=True, exist_ok=True)
    stream, seconds = timed(lambda: trips.generate(rows, seed=seed))
    describe_stream(stream, seed, seconds)
    features, seconds = timed(
        lambda: sw.rolling(stream, on="starttime", by=KEY, windows=WINDOWS, aggs=AGGS)
    )
    answers = rows * len(WINDOWS) * len(AGGS)
    print(
        f"2. Rolled {', '.join(AGGS)} per station over {', '.join(WINDOWS)}, "
        "as of each trip:\n"
        f"   {answers:,} exact answers in {seconds:.2f} s "
        f"({format_rate(answers, seconds)}).\n"
    )
    features, seconds = timed(lambda: with_live_count(features))
    differ = pc.mean(pc.not_equal(features["n_1h"], features["live_n_1h"])).as_py()
    print(
        "3. Rolled the last hour's count again, as of each trip's arrival:\n"
        f"   {rows:,} answers in {seconds:.2f} s ({format_rate(rows, seconds)}). "
        f"For {differ:.0%} of the trips the two differ:\n"
        "   a model trained on hindsight would have been served other numbers.\n"
    )
    describe_crowd(features)
    write(stream, features, out)
    print_next_steps(out)


def timed(compute: Callable[[], pa.Table]) -> tuple[pa.Table, float]:
    """A table, and how many seconds it took."""
    begin = time.perf_counter()
    return compute(), time.perf_counter() - begin


def with_live_count(features: pa.Table) -> pa.Table:
    """Adds the last hour's count once more, as of each trip's arrival."""
    return sw.rolling(
        features,
        on="starttime",
        by=KEY,
        windows="1h",
        aggs={"live_n": sw.count()},
        arrival="arrived",
    )


def describe_stream(stream: pa.Table, seed: int, seconds: float) -> None:
    """Prints how many trips there are, and how far out of order."""
    starts = stream["starttime"].cast(pa.int64())
    behind = pc.subtract(pc.cumulative_max(starts), starts)
    overtaken = pc.mean(pc.greater(behind, 0)).as_py()
    stations = pc.count_distinct(stream[KEY]).as_py()
    days = pc.count_distinct(stream["starttime"].cast(pa.date32())).as_py()
    print(
        f"1. Generated {stream.num_rows:,} trips from {stations} stations over {days} "
        f"days (seed {seed}) in {seconds:.1f} s.\n"
        "   They come in the order in which a server receives them: when they end, or\n"
        "   when a dock is connected again. "
        f"{overtaken:.0%} were overtaken by a later start;\n"
        f"   the latest came {timedelta(seconds=pc.max(behind).as_py())} behind.\n"
    )


def describe_crowd(features: pa.Table) -> None:
    """Prints the features around the most sudden crowd."""
    station, at = largest_crowd(features)
    here = features.filter(pc.equal(features["start station name"], station))
    here = here.filter(pc.less_equal(here["starttime"], at)).sort_by("starttime")
    shown = here.slice(max(here.num_rows - 8, 0))
    for name in ("starttime", "arrived"):
        place = shown.column_names.index(name)
        shown = shown.set_column(place, name, shown[name].cast(pa.time32("s")))
    print(
        f"4. The most sudden crowd set off from {station} on {at:%A}, {at.day} {at:%B}."
        "\n   live_n_1h is what was known of n_1h when the trip arrived:\n"
    )
    columns = ["starttime", "arrived", "tripduration"]
    columns += ["n_15m", "n_1h", "n_24h", "avg_1h", "longest_1h", "live_n_1h"]
    print_table(shown, columns)
    print()


def largest_crowd(features: pa.Table) -> tuple[str, datetime]:
    """The station and time at which the last 15 minutes most exceed the 45 before."""
    surge = pc.subtract(pc.multiply(features["n_15m"], 2), features["n_1h"])
    row = features.slice(pc.index(surge, pc.max(surge)).as_py(), 1).to_pylist()[0]
    return row["start station name"], row["starttime"]


def write(stream: pa.Table, features: pa.Table, out: Path) -> None:
    """Writes two Parquet files and, where matplotlib is installed, a picture."""
    files = {
        out / "trips.parquet": "the stream, in order of arrival",
        out / "features.parquet": "the same rows with the features behind them",
    }
    for file, table in zip(files, (stream, features), strict=True):
        pq.write_table(table, file)
    try:
        picture.draw(features, *largest_crowd(features), out / "day.png")
        files[out / "day.png"] = "that day: hindsight against live, durations, backlogs"
    except ModuleNotFoundError:
        print("   No picture: pip install 'slidewise[plot]' for one.")
    print("5. Wrote")
    for file, content in files.items():
        print(f"   {file}  {file.stat().st_size / 1e6:.1f} MB, {content}")
    print()


def print_next_steps(out: Path) -> None:
    """Prints commands to try on the stream."""
    installed = Path(sys.executable).with_name("slidewise")
    here = Path.cwd()
    inside = installed.is_relative_to(here)
    command = installed.relative_to(here) if inside else "slidewise"
    print(
        "Try next\n"
        f"   {command} rolling {out / 'trips.parquet'} --on starttime \\\n"
        '       --by "start station name" --window 30m --window 100rows \\\n'
        "       --agg n=count --agg slowest=max:tripduration \\\n"
        f"       -o {out / 'mine.parquet'} --plot {out / 'mine.png'}\n"
        "   the same with --arrival arrived, or on your own file (CSV, Parquet, Arrow, "
        "JSON)\n"
        f"   {command} rolling --help"
    )


if __name__ == "__main__":
    main()
