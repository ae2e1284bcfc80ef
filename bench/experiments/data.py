"""The papers' data: Citi Bike trips and the DEBS 2012 manufacturing equipment.

Both are read from a folder of the user, in any of their file formats; without files,
data of the same shape are generated.
"""

from __future__ import annotations

import array
import bisect
import csv
import math
import random
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = [
    "Energies",
    "Trips",
    "energies",
    "generate_energies",
    "generate_trips",
    "read_citibike",
    "read_debs2012",
    "replayed",
    "trips",
    "write_numbers",
]

DAY = 86_400

# Started and ended, by the header of a file: until January 2021, some months with
# capitals, and from February 2021 on.
_COLUMNS = (
    ("starttime", "stoptime"),
    ("start time", "stop time"),
    ("started_at", "ended_at"),
)
_TIME = re.compile(r"(\d+)[-/](\d+)[-/](\d+) (\d+):(\d+)(?::(\d+)(?:\.\d*)?)?$")


@dataclass(frozen=True)
class Trips:
    """Starts in the order of the ends, in seconds, and their source."""

    starts: list[int]
    source: str


@dataclass(frozen=True)
class Energies:
    """The values of the three energy readings, and their source."""

    readings: tuple[list[int], list[int], list[int]]
    source: str


def read_citibike(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Starts and ends of trips, in seconds since 1970, in local time.

    Args:
        lines: A file, its header first, of the old or the new schema.

    Raises:
        ValueError: If the header has neither's times, or a time cannot be read.
    """
    rows = csv.reader(lines)
    header = [name.strip().lower() for name in next(rows, [])]
    for start, stop in _COLUMNS:
        if start in header and stop in header:
            places = header.index(start), header.index(stop)
            break
    else:
        raise ValueError(f"no times of trips among the columns {header}")
    for row in rows:
        if row:
            yield _seconds(row[places[0]]), _seconds(row[places[1]])


def _seconds(text: str) -> int:
    """2018-08-01 00:00:07.3210, 7/1/2018 00:00:07, 07/01/18 00:00:07, 7/1/2018 0:00."""
    found = _TIME.match(text.strip())
    if found is None:
        raise ValueError(f"no time of a trip: {text!r}")
    one, two, three, hour, minute = (int(part) for part in found.groups()[:5])
    year, month, day = (
        (one, two, three) if len(found[1]) == 4 else (three % 100 + 2000, one, two)
    )
    at = datetime(year, month, day, hour, minute, int(found[6] or 0), tzinfo=UTC)
    return int(at.timestamp())


def trips(folder: Path | None, rows: int) -> Trips:
    """Trips of a folder, else generated ones.

    Args:
        folder: The folder, which may have files of Citi Bike.
        rows: The number to generate without files.
    """
    files = sorted(_files(folder, "citibike", "tripdata", "citi-bike"))
    if not files:
        return Trips(generate_trips(rows), f"{rows:,} generated trips")
    ended: list[tuple[int, int]] = []
    for path in files:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            ended.extend((stop, start) for start, stop in read_citibike(lines))
    ended.sort()
    names = ", ".join(path.name for path in files)
    return Trips([start for _, start in ended], f"{len(ended):,} trips of {names}")


def _files(folder: Path | None, *words: str) -> Iterator[Path]:
    if folder is None:
        return
    for path in folder.iterdir():
        name = path.name.lower()
        if path.suffix in (".csv", ".txt") and any(word in name for word in words):
            yield path


# The shape of durations that gives the sample of July 2018 its disorder: 74 % of the
# trips late, by 3 in the median, by 127 in the highest hundredth, by 3,592 at most.
_MEDIAN_TRIP = 540
_SPREAD = 0.9
_LOST = 2e-4
_TRIPS_A_DAY = 1_440


def generate_trips(rows: int, seed: int = 2018) -> list[int]:
    """Starts in the order of the ends, as disordered as real ones.

    Args:
        rows: The number of trips.
        seed: The same seed gives the same trips.
    """
    rng = random.Random(seed)
    ended: list[tuple[int, int]] = []
    time = 0.0
    for _ in range(rows):
        # Quiet at night, two rush hours by day.
        hour = time % DAY / 3600
        rate = 0.15 + math.exp(-(((hour - 8.5) / 1.5) ** 2)) * 1.6
        rate += math.exp(-(((hour - 17.5) / 2.5) ** 2)) * 2.2 + 0.9 * (9 < hour < 22)
        time += rng.expovariate(_TRIPS_A_DAY / DAY * rate)
        lasts = rng.lognormvariate(math.log(_MEDIAN_TRIP), _SPREAD)
        if rng.random() < _LOST:
            lasts = rng.uniform(0.2, 2.5) * DAY
        ended.append((int(time + lasts), int(time)))
    ended.sort()
    return [start for _, start in ended]


@dataclass(frozen=True)
class Replayed:
    """The sizes, evictions and distances of a window of a day."""

    n: list[int]
    m: list[int]
    d: list[int]


def replayed(starts: Iterable[int], span: int = DAY) -> Replayed:
    """Replays arrivals: each inserts one entry and evicts expired ones."""
    window: list[int] = []
    found = Replayed([], [], [])
    youngest = -(1 << 62)
    for start in starts:
        youngest = max(youngest, start)
        place = bisect.bisect_right(window, start)
        found.d.append(len(window) - place)
        window.insert(place, start)
        passed = bisect.bisect_right(window, youngest - span)
        del window[:passed]
        found.m.append(passed)
        found.n.append(len(window))
    return found


def read_debs2012(lines: Iterable[str]) -> Iterator[tuple[int, int, int]]:
    """The three energies of the DEBS 2012 challenge.

    Args:
        lines: Tab-separated: a time, an index, mf01, mf02, mf03, then the states of
            sensors; no header.

    Raises:
        ValueError: If a line has no such column, or no number in it.
    """
    for line in lines:
        columns = line.split("\t")
        if len(columns) < 5:
            raise ValueError(f"no line of DEBS 2012: {line[:60]!r}")
        yield int(columns[2]), int(columns[3]), int(columns[4])


def energies(folder: Path | None, rows: int) -> Energies:
    """Readings of a folder, else generated ones, up to a number."""
    files = sorted(_files(folder, "debs2012", "debs12", "alldata"))
    if not files:
        generated = [line.energies for line in generate_energies(rows)]
        return _columns(generated, f"{rows:,} generated readings at 100 Hz")
    found: list[tuple[int, int, int]] = []
    for path in files:
        with path.open(encoding="utf-8") as lines:
            found += islice(read_debs2012(lines), rows - len(found))
    names = ", ".join(path.name for path in files)
    return _columns(found, f"{len(found):,} readings of {names}")


def _columns(rows: Sequence[tuple[int, int, int]], source: str) -> Energies:
    one, two, three = ([row[at] for row in rows] for at in range(3))
    return Energies((one, two, three), source)


@dataclass(frozen=True)
class Reading:
    """A line of the manufacturing equipment."""

    time: datetime
    index: int
    energies: tuple[int, int, int]
    states: tuple[int, ...]

    def line(self) -> str:
        """The line in the format of the challenge's file."""
        stamp = self.time.isoformat(timespec="milliseconds")
        columns = (stamp, self.index, *self.energies, *self.states)
        return "\t".join(str(column) for column in columns)


_START = datetime(2012, 2, 22, 16, 46, tzinfo=UTC)
_STATES = 51


def generate_energies(rows: int, seed: int = 2012) -> Iterator[Reading]:
    """Readings at 100 Hz: three energies that drift, 51 states that rarely change."""
    rng = random.Random(seed)
    levels = [14_000.0, 9_000.0, 12_500.0]
    states = [0] * _STATES
    for index in range(rows):
        for at in range(3):
            # Back to the middle, slowly; noise of a few units, and rare steps.
            levels[at] += (11_000 - levels[at]) * 1e-4 + rng.gauss(0, 6)
            if rng.random() < 1e-4:
                levels[at] += rng.uniform(-3_000, 3_000)
        if rng.random() < 0.02:
            states[rng.randrange(_STATES)] ^= 1
        noise = [round(level + rng.gauss(0, 15)) for level in levels]
        time = _START + timedelta(milliseconds=10 * index)
        yield Reading(time, index, (noise[0], noise[1], noise[2]), tuple(states))


def write_numbers(numbers: Iterable[int], path: Path) -> None:
    """Writes a file for the driver: little-endian int64."""
    words = array.array("q", numbers)
    if sys.byteorder == "big":
        words.byteswap()
    path.write_bytes(words.tobytes())
