"""A day of trips as a picture: counts in hindsight and live, durations, lateness."""

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import slidewise as sw


def draw(trips: pa.Table, station: str, at: datetime, path: Path) -> None:
    """Draws the day of a station; the last panel shows all stations.

    Args:
        trips: Trips with their features, `live_n_1h` among them.
        station: The name of the station.
        at: A time of the day.
        path: The file to write.

    Raises:
        ModuleNotFoundError: If matplotlib is not installed.
    """
    from matplotlib.dates import DateFormatter, HourLocator
    from matplotlib.figure import Figure

    day = at.replace(hour=0, minute=0, second=0)
    here = trips.filter(pc.equal(trips["start station name"], station))
    windows = per_minute(here, day)
    here, all_here = between(here, day), between(trips, day)
    minutes = windows["starttime"].to_numpy()

    figure = Figure(figsize=(11, 8.5), dpi=150, layout="constrained")
    counts, durations, lateness = figure.subplots(
        3, 1, sharex=True, height_ratios=[1.25, 1, 0.9]
    )
    figure.suptitle(
        f"{station}, {day:%A} {day.day} {day:%B %Y}: {here.num_rows:,} trips from this "
        f"station, {all_here.num_rows:,} from all",
        weight="bold",
    )
    counts.set_title("Trips started here in the last hour")
    counts.plot(minutes, windows["n_1h"].to_numpy(), label="in hindsight")
    counts.plot(
        here["starttime"].to_numpy(),
        here["live_n_1h"].to_numpy(),
        ".",
        markersize=3,
        label="known on arrival",
    )
    durations.set_title("Minutes per trip: mean of the last 15 minutes, hour, day")
    values = here["tripduration"].to_numpy() / 60
    durations.plot(here["starttime"].to_numpy(), values, ".", color="0.8", label="trip")
    durations.set_ylim(0, sorted(values)[int(0.98 * len(values))])
    for length in ("15m", "1h", "24h"):
        means = windows[f"avg_{length}"].to_numpy() / 60
        durations.plot(minutes, means, label=length)
    lateness.set_title(
        "Minutes from a trip's end to its arrival, all stations: a diagonal is a dock "
        "that was offline"
    )
    ends = all_here["stoptime"].to_numpy()
    late = (all_here["arrived"].to_numpy() - ends).astype("timedelta64[s]")
    lateness.plot(ends, late.astype(float) / 60, ".", markersize=3, color="tab:orange")
    lateness.xaxis.set_major_locator(HourLocator(range(0, 24, 3)))
    lateness.xaxis.set_major_formatter(DateFormatter("%H:%M"))
    lateness.set_xlim(minutes[0], minutes[-1])
    for axes in (counts, durations):
        axes.legend(loc="upper left", ncols=4, frameon=False)
    for axes in (counts, durations, lateness):
        axes.grid(color="0.92")
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path)


def per_minute(here: pa.Table, day: datetime) -> pa.Table:
    """The windows of each minute of the day; some may be empty."""
    minutes = [day + timedelta(minutes=minute) for minute in range(24 * 60 + 1)]
    kind = here.schema.field("starttime").type
    return sw.rolling(
        here.select(["starttime", "tripduration"]),
        on="starttime",
        windows=["15m", "1h", "24h"],
        aggs={"n": sw.count(), "avg": sw.mean("tripduration")},
        at=pa.table({"starttime": pa.array(minutes, kind)}),
    )


def between(table: pa.Table, day: datetime) -> pa.Table:
    """The rows of one day."""
    times = table["starttime"]
    begin, end = (pa.scalar(day + timedelta(days=n), times.type) for n in (0, 1))
    inside = pc.and_(pc.greater_equal(times, begin), pc.less(times, end))
    return table.filter(inside)
