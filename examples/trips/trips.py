"""A generated stream of bike trips: out of order, bursty, the same for the same seed.

It lets the demo and the tests run without a download. Three properties of real streams
make it hard:

- a trip is reported when it *ends*, so rows do not arrive in the order of their start
  times, and long trips arrive latest;
- docks lose their connection now and then and deliver their backlog at once;
- demand comes in rush hours, and in crowds (a match, a concert) that leave one station
  within minutes.

Column names are those of the public Citi Bike files, so the same calls work on both.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import accumulate

import pyarrow as pa

__all__ = ["generate"]

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_MONDAY = int(datetime(2026, 6, 1, tzinfo=UTC).timestamp())

_STREETS = (
    "Harbour",
    "Mill",
    "Orchard",
    "Chapel",
    "Canal",
    "Foundry",
    "Museum",
    "Park",
)
_CROSSINGS = ("1 Ave", "2 Ave", "3 Ave", "Bridge St", "Market St", "Station Rd")
_FIRST_ID = 301

# Trips in each hour of the day, relative, one line from midnight and one from noon: two
# rush hours on workdays, and one long afternoon at weekends.
# fmt: off
_WORKDAY = (
    2, 1, 1, 1, 2, 6, 18, 38, 52, 30, 20, 22,
    26, 25, 24, 28, 40, 60, 56, 36, 24, 16, 10, 5,
)
_WEEKEND = (
    6, 4, 3, 2, 2, 3, 6, 10, 18, 28, 38, 44,
    48, 50, 50, 48, 44, 40, 34, 26, 20, 16, 10, 7,
)
# fmt: on

_CROWD_SHARE = 0.05  # of all trips
_CROWD_SIZE = (60, 300)  # trips
_CROWD_SECONDS = 400  # mean distance from the crowd's first trip
_UPLOAD_EVERY = 15  # seconds between two reports of one dock
_OUTAGES_PER_DAY = 0.5  # of one dock


def generate(rows: int = 200_000, *, seed: int = 7, days: int = 7) -> pa.Table:
    """Generates trips, in the order in which a server would have received them.

    Args:
        rows: How many trips.
        seed: Any integer; the same seed gives the same table.
        days: How many days the trips start in, from Monday 1 June 2026.

    Returns:
        A table with the columns `starttime`, `stoptime` and `arrived` (timestamps in
        seconds; `arrived` never decreases), `start station id`, `start station name`,
        `end station id`, `tripduration` (seconds) and `usertype`.

    Raises:
        ValueError: If `rows` is negative or `days` is not positive.

    Example:
        >>> trips = generate(1_000, seed=1, days=1)
        >>> trips.num_rows, trips.column_names[:3]
        (1000, ['starttime', 'stoptime', 'arrived'])
        >>> trips.equals(generate(1_000, seed=1, days=1))
        True
    """
    if rows < 0:
        raise ValueError(f"rows= is how many trips to generate, 0 or more; got {rows}")
    if days < 1:
        raise ValueError(f"days= is how many days to cover, 1 or more; got {days}")
    rng = random.Random(seed)
    stations = len(_STREETS) * len(_CROSSINGS)
    # A few busy stations and many quiet ones.
    popularity = list(accumulate(1 / (1 + rank) ** 0.7 for rank in range(stations)))
    starts, origins = _departures(rng, rows, days, popularity)
    ends = rng.choices(range(stations), cum_weights=popularity, k=rows)
    casual = [rng.random() < 0.22 for _ in range(rows)]
    durations = list(_durations(rng, casual))
    stops = [start + length for start, length in zip(starts, durations, strict=True)]
    arrivals = _arrivals(rng, stops, ends, stations, days)
    order = sorted(range(rows), key=arrivals.__getitem__)
    return _table(order, starts, stops, arrivals, origins, ends, durations, casual)


def _departures(
    rng: random.Random, rows: int, days: int, popularity: list[float]
) -> tuple[list[int], list[int]]:
    """Start times and start stations: everyday demand first, then the crowds."""
    hours = [weight for day in range(days) for weight in _hourly(day)]
    by_hour = list(accumulate(hours))
    crowded = int(rows * _CROWD_SHARE)
    daily = rows - crowded
    starts = [
        hour * _HOUR + int(rng.random() * _HOUR)
        for hour in rng.choices(range(24 * days), cum_weights=by_hour, k=daily)
    ]
    origins = rng.choices(range(len(popularity)), cum_weights=popularity, k=daily)
    while len(starts) < rows:
        origin = rng.choices(range(len(popularity)), cum_weights=popularity)[0]
        hour = rng.choices(range(24 * days), cum_weights=by_hour)[0]
        begins = hour * _HOUR + int(rng.random() * _HOUR)
        size = min(rng.randint(*_CROWD_SIZE), rows - len(starts))
        for _ in range(size):
            after = int(rng.expovariate(1 / _CROWD_SECONDS))
            starts.append(min(begins + after, days * _DAY - 1))
            origins.append(origin)
    return starts, origins


def _hourly(day: int) -> tuple[int, ...]:
    return _WEEKEND if day % 7 >= 5 else _WORKDAY


def _durations(rng: random.Random, casual: list[bool]) -> Iterator[int]:
    """Seconds per trip: skewed, longer for casual riders, from 1 minute to 6 hours."""
    for is_casual in casual:
        typical = 20 * _MINUTE if is_casual else 10 * _MINUTE
        seconds = typical * rng.lognormvariate(0.0, 0.65)
        yield min(max(int(seconds), _MINUTE), 6 * _HOUR)


def _arrivals(
    rng: random.Random, stops: list[int], ends: list[int], stations: int, days: int
) -> list[int]:
    """When the server hears of each trip: at its dock's next upload.

    An upload that falls into an outage of the dock waits for the outage's end, together
    with all the others: the backlog.
    """
    outages = [_outages(rng, days) for _ in range(stations)]
    arrivals = []
    for stop, dock in zip(stops, ends, strict=True):
        phase = (dock * 7) % _UPLOAD_EVERY
        upload = stop - (stop - phase) % _UPLOAD_EVERY + _UPLOAD_EVERY
        for begins, lasts in outages[dock]:
            if begins <= upload < begins + lasts:
                upload = begins + lasts
        arrivals.append(upload)
    return arrivals


def _outages(rng: random.Random, days: int) -> list[tuple[int, int]]:
    """Begin and length of one dock's outages, in order of time."""
    count = sum(rng.random() < _OUTAGES_PER_DAY for _ in range(days))
    return sorted(
        (int(rng.random() * days * _DAY), int(rng.uniform(20 * _MINUTE, 3 * _HOUR)))
        for _ in range(count)
    )


def _table(
    order: list[int],
    starts: list[int],
    stops: list[int],
    arrivals: list[int],
    origins: list[int],
    ends: list[int],
    durations: list[int],
    casual: list[bool],
) -> pa.Table:
    """The columns, their rows in the given order."""
    rows = pa.array(order, pa.int64())
    names = [f"{street} & {crossing}" for crossing in _CROSSINGS for street in _STREETS]

    def numbers(values: list[int], plus: int) -> pa.Array:
        shifted = pa.array([value + plus for value in values], pa.int64())
        return shifted.take(rows)

    def times(values: list[int]) -> pa.Array:
        return numbers(values, _MONDAY).cast(pa.timestamp("s"))

    return pa.table(
        {
            "starttime": times(starts),
            "stoptime": times(stops),
            "arrived": times(arrivals),
            "start station id": numbers(origins, _FIRST_ID),
            "start station name": pa.array(names).take(numbers(origins, 0)),
            "end station id": numbers(ends, _FIRST_ID),
            "tripduration": numbers(durations, 0),
            "usertype": pa.array(["Subscriber", "Customer"]).take(
                numbers([int(is_casual) for is_casual in casual], 0)
            ),
        }
    )
