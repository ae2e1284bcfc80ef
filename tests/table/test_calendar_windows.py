"""Windows of the calendar, against their definition with zoneinfo."""

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from calendars import DAYS, MONTHS, start_before, start_of_unit
from seeds import SEED

import slidewise as sw
from slidewise.table.time_columns import TicksOf, read_times

UNITS = [*DAYS, *MONTHS]
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Apia",
]
SINCE = datetime(1980, 1, 1, tzinfo=UTC)


def starts_of(window, times):
    column = pa.array(times, pa.timestamp("us", "UTC"))
    held = read_times(column, "t")
    starts, passes = window.span(TicksOf(held)).calendar.starts(held.ticks)
    starts = held.restore(pa.array(starts)).to_pylist()
    return starts, None if passes is None else pa.array(passes).to_pylist()


def instants(draw, count):
    """Times of 50 years, many of them near the ends of days and changes of offsets."""
    times = []
    for _ in range(count):
        day = SINCE + timedelta(days=draw.randrange(50 * 366))
        near = draw.choice([timedelta(), timedelta(hours=draw.randrange(48))])
        times.append(day + near + timedelta(seconds=draw.choice([-1, 0, 1, 1_800])))
    return sorted(times)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", UNITS)
def test_starts_are_those_of_zoneinfo(unit, zone):
    times = instants(random.Random(f"{SEED} {unit} {zone}"), 1_500)
    starts, passes = starts_of(sw.calendar(unit, tz=zone), times)
    assert starts == [start_before(at, unit, zone) for at in times]
    by_pass = {}
    for start, number in zip(starts, passes or [0] * len(starts), strict=True):
        assert by_pass.get(number, start) <= start
        by_pass[number] = start
    starts, passes = starts_of(sw.to_date(unit, tz=zone), times)
    assert starts == [start_of_unit(at, unit, zone) for at in times]
    assert passes is None


@pytest.mark.parametrize("zone", ZONES)
def test_every_local_midnight_of_fifty_years(zone):
    """Days of 23 to 25 hours, that begin at one o'clock, and one that is missing."""
    days = [SINCE + timedelta(days=day, hours=12) for day in range(50 * 366)]
    starts, _ = starts_of(sw.to_date("1d", tz=zone), days)
    assert starts == [start_of_unit(at, "1d", zone) for at in days]


def test_weeks_begin_on_the_given_day():
    times = instants(random.Random(SEED), 200)
    for first in ("mon", "sun", "thu"):
        starts, _ = starts_of(
            sw.to_date("1w", tz="America/New_York", start=first), times
        )
        zone = "America/New_York"
        assert starts == [start_of_unit(at, "1w", zone, first) for at in times]


def table_of(draw, count, unit="us", zone="UTC"):
    """Rows of keys in the nights around changes, some with equal times."""
    begin = datetime(2024, draw.choice([1, 3, 10]), 20, tzinfo=UTC)
    hours = [draw.randrange(24 * 75 * 4) for _ in range(count)]
    times = [begin + timedelta(minutes=15 * hour) for hour in hours]
    return pa.table(
        {
            "t": pa.array(times, pa.timestamp(unit, zone)),
            "k": [draw.choice("ab") for _ in times],
            "x": [draw.choice([None, *range(9)]) for _ in times],
            "n": range(count),
        }
    )


def expected(rows, points, start, closed, ties="peers", arrival=False):
    """Per point the numbers of the rows in its window, in order of time."""
    found = []
    for place, point in enumerate(points):
        lo, hi = start(point["t"]), point["t"]
        inside = []
        for number, row in enumerate(rows):
            after = row["t"] >= lo if closed in ("left", "both") else row["t"] > lo
            before = row["t"] <= hi if closed in ("right", "both") else row["t"] < hi
            if ties == "rows" and row["t"] == hi and number > place:
                before = False
            if arrival and number > point["n"]:
                before = False
            if after and before and row["k"] == point["k"]:
                inside.append((row["t"], number))
        found.append([number for _, number in sorted(inside)])
    return found


AGGS = {"all": sw.collect("n"), "s": sw.sum("x"), "first": sw.first("n")}
AGGS |= {"median": sw.median("x"), "most": sw.max("x"), "mean": sw.mean("x")}


def check(out, label, numbers, rows):
    assert out[f"all_{label}"].to_pylist() == numbers
    values = [
        [rows[n]["x"] for n in each if rows[n]["x"] is not None] for each in numbers
    ]
    assert out[f"s_{label}"].to_pylist() == [sum(v) if v else None for v in values]
    assert out[f"most_{label}"].to_pylist() == [max(v, default=None) for v in values]
    assert out[f"first_{label}"].to_pylist() == [n[0] if n else None for n in numbers]


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("unit", ["1d", "1mo"])
@pytest.mark.parametrize("seed", range(3))
def test_rolling_is_its_definition(closed, unit, seed):
    draw = random.Random(f"{SEED} {closed} {unit} {seed}")
    zone = draw.choice(ZONES)
    table = table_of(draw, draw.choice([1, 63, 64, 65, 200]))
    rows = table.to_pylist()
    windows = [sw.calendar(unit, tz=zone), "1h"]
    out = sw.rolling(table, on="t", by="k", windows=windows, aggs=AGGS, closed=closed)
    start = lambda at: start_before(at, unit, zone)  # noqa: E731
    numbers = expected(rows, rows, start, closed)
    check(out, f"calendar_{unit}", numbers, rows)
    if closed in ("right", "left"):
        out = sw.rolling(
            table,
            on="t",
            by="k",
            windows=sw.to_date(unit, tz=zone),
            aggs=AGGS,
            closed=closed,
        )
        start = lambda at: start_of_unit(at, unit, zone)  # noqa: E731
        both = "both" if closed == "right" else "left"
        check(out, f"to_date_{unit}", expected(rows, rows, start, both), rows)


@pytest.mark.parametrize("seed", range(3))
def test_ties_arrival_and_labels(seed):
    draw = random.Random(f"{SEED} {seed}")
    zone = draw.choice(ZONES)
    table = table_of(draw, 90)
    rows = table.to_pylist()
    window = sw.calendar("1mo", tz=zone)
    start = lambda at: start_before(at, "1mo", zone)  # noqa: E731
    given = {"on": "t", "by": "k", "windows": window, "aggs": AGGS}
    out = sw.rolling(table, **given, ties="rows")
    numbers = expected(rows, rows, start, "right", ties="rows")
    check(out, window.label, numbers, rows)
    out = sw.rolling(table, **given, arrival="n")
    numbers = expected(rows, rows, start, "right", arrival=True)
    check(out, window.label, numbers, rows)
    labels = (
        table_of(draw, 40).select(["t", "k"]).append_column("n", pa.array([50] * 40))
    )
    out = sw.rolling(table, **given, at=labels)
    check(out, window.label, expected(rows, labels.to_pylist(), start, "right"), rows)
    out = sw.rolling(table, **given, at=labels, arrival="n")
    numbers = expected(rows, labels.to_pylist(), start, "right", arrival=True)
    check(out, window.label, numbers, rows)


def test_an_overflow_names_its_row():
    days = [datetime(2026, 2, 28), datetime(2026, 3, 29), datetime(2026, 3, 30)]
    big = [1, 2**63 - 1, 2**63 - 1]
    table = pa.table({"t": pa.array(days, pa.timestamp("s")), "x": big})
    windows = sw.calendar("1mo")
    with pytest.raises(sw.ResultOverflowError, match="row 2 "):
        sw.rolling(table, on="t", windows=windows, aggs={"s": sw.sum("x")})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_unit_of_times_and_the_zone_of_the_column(unit):
    draw = random.Random(SEED)
    table = table_of(draw, 60)
    want = sw.rolling(
        table,
        on="t",
        windows=sw.calendar("1mo", tz="Europe/Berlin"),
        aggs={"n": sw.collect("n")},
    )
    here = table.set_column(
        0, "t", table["t"].cast(pa.timestamp(unit, "Europe/Berlin"))
    )
    out = sw.rolling(
        here, on="t", windows=sw.calendar("1mo"), aggs={"n": sw.collect("n")}
    )
    assert out["n_calendar_1mo"] == want["n_calendar_1mo"]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_dates(kind):
    days = ["2024-02-28", "2024-02-29", "2024-03-28", "2024-03-29", "2024-04-01"]
    table = pa.table({"t": pc.cast(pa.array(days), pa.date32()).cast(kind)})
    windows = [sw.calendar("1mo"), sw.to_date("1mo")]
    out = sw.rolling(table, on="t", windows=windows, aggs={"n": sw.count()})
    assert out["n_calendar_1mo"].to_pylist() == [1, 2, 2, 2, 3]
    assert out["n_to_date_1mo"].to_pylist() == [1, 2, 1, 2, 1]


def test_an_own_aggregation():
    own = sw.aggregation(
        identity=(),
        lift=lambda x: (x,),
        combine=lambda earlier, later: earlier + later,
        lower=lambda partial: " ".join(map(str, partial)),
        returns=str,
    )
    draw = random.Random(SEED)
    table = table_of(draw, 80)
    window = sw.calendar("1mo", tz="America/New_York")
    aggs = {"own": own("n"), "all": sw.collect("n")}
    out = sw.rolling(table, on="t", by="k", windows=window, aggs=aggs)
    lists = out["all_calendar_1mo"].to_pylist()
    assert out["own_calendar_1mo"].to_pylist() == [" ".join(map(str, a)) for a in lists]


@pytest.mark.parametrize(
    ("closed", "ties"), [("right", "peers"), ("right", "rows"), ("left", "peers")]
)
def test_unbounded_windows_hold_all_rows_up_to_theirs(closed, ties):
    draw = random.Random(f"{SEED} {closed} {ties}")
    table = table_of(draw, 90)
    rows = table.to_pylist()
    out = sw.rolling(
        table,
        on="t",
        by="k",
        windows=sw.unbounded(),
        aggs=AGGS,
        closed=closed,
        ties=ties,
    )
    first = SINCE - timedelta(days=99)
    numbers = expected(rows, rows, lambda _: first, closed, ties=ties)
    check(out, "unbounded", numbers, rows)


def test_unbounded_windows_of_the_whole_range_of_int64():
    table = pa.table({"t": [-(2**63), -1, 2**63 - 1], "x": [1, 2, 3]})
    out = sw.rolling(table, on="t", windows=sw.unbounded(), aggs={"s": sw.sum("x")})
    assert out["s_unbounded"].to_pylist() == [1, 3, 6]
    out = sw.rolling(
        table, on="t", windows=sw.unbounded(), aggs={"s": sw.sum("x")}, at=table
    )
    assert out["s_unbounded"].to_pylist() == [1, 3, 6]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: sw.calendar("2mo"), r"one of '1d', .*, got '2mo'"),
        (
            lambda: sw.calendar("1mo", tz="Europe/Nowhere"),
            "tz='Europe/Nowhere'.*is not",
        ),
        (lambda: sw.calendar("1mo", tz=3), "tz=3.*is not a zone"),
        (lambda: sw.calendar("1mo", start="sun"), "start='sun'.*leave it out"),
        (lambda: sw.to_date("1w", start="someday"), "start='someday'.*mon"),
    ],
)
def test_bad_arguments(wrong, message):
    with pytest.raises(sw.SpecError, match=message):
        wrong()


def test_bad_tables():
    table = pa.table({"t": [1, 2]})
    count = {"n": sw.count()}
    with pytest.raises(sw.SpecError, match="holds integers"):
        sw.rolling(table, on="t", windows=sw.calendar("1mo"), aggs=count)
    times = pa.table({"t": pa.array([1, 2], pa.timestamp("s"))})
    given = {"on": "t", "windows": sw.calendar("1mo"), "aggs": count}
    with pytest.raises(sw.SpecError, match="offset"):
        sw.rolling(times, **given, offset="5m")
    with pytest.raises(sw.SpecError, match=r"sw\.calendar"):
        sw.rolling(times, **given | {"windows": "1mo"})
    with pytest.raises(sw.SpecError, match="closed"):
        sw.rolling(times, **given | {"windows": sw.to_date("1mo")}, closed="both")


def test_specs_keep_them():
    windows = [sw.calendar("1mo", tz="Asia/Tokyo"), sw.to_date("1w", start="sun")]
    spec = sw.Spec(on="t", windows=[*windows, sw.unbounded()], aggs={"n": sw.count()})
    assert sw.Spec.from_json(spec.to_json()) == spec
    assert eval(repr(spec), {"Spec": sw.Spec, **vars(sw)}) == spec


def units(rows, unit, zone, *, empty=False):
    """The windows of `hopping`: key, start, end and the numbers of the rows."""
    found = []
    for key in dict.fromkeys(row["k"] for row in rows):
        held = {}
        for row in rows:
            if row["k"] == key:
                start = start_of_unit(row["t"], unit, zone)
                held.setdefault(start, []).append((row["t"], row["n"]))
        start = min(held)
        while start <= max(held):
            later = start + timedelta(days={**DAYS, "1mo": 31, "1q": 92}.get(unit, 366))
            end = start_of_unit(later + timedelta(hours=30), unit, zone)
            while start_of_unit(end - timedelta(seconds=1), unit, zone) != start:
                end = start_of_unit(end - timedelta(seconds=1), unit, zone)
            if empty or start in held:
                numbers = [number for _, number in sorted(held.get(start, []))]
                found.append((key, start, end, numbers))
            start = end
    return found


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("empty", [False, True])
def test_hopping_over_units_of_the_calendar(unit, empty):
    draw = random.Random(f"{SEED} {unit} {empty}")
    zone = draw.choice(ZONES)
    table = table_of(draw, 60)
    rows = table.to_pylist()
    given = {"on": "t", "by": "k", "aggs": AGGS, "empty": empty}
    out = sw.hopping(table, **given, every=sw.calendar(unit, tz=zone))
    wanted = units(rows, unit, zone, empty=empty)
    names = ["k", "window_start", "window_end", "all"]
    found = [tuple(row[name] for name in names) for row in out.to_pylist()]
    assert found == wanted
    assert out == sw.hopping(table, **given, window=sw.calendar(unit, tz=zone))
    assert out["s"].to_pylist() == [
        sum(values) if values else None
        for values in (
            [rows[n]["x"] for n in numbers if rows[n]["x"] is not None]
            for *_, numbers in wanted
        )
    ]


def test_units_beside_other_windows_and_in_specs():
    table = table_of(random.Random(SEED), 50)
    windows = ["1d", sw.calendar("1mo", tz="Europe/Berlin"), sw.session("2d")]
    aggs = {"n": sw.count()}
    out = sw.hopping(table, on="t", by="k", windows=windows, aggs=aggs)
    for window, name in zip(windows, ["1d", "calendar_1mo", "session_2d"], strict=True):
        own = sw.hopping(table, on="t", by="k", window=window, aggs=aggs)
        assert out.filter(pc.equal(out["window"], name)).drop_columns("window") == own
    spec = sw.Spec(on="t", by="k", every=windows[1], aggs=aggs)
    assert sw.Spec.from_json(spec.to_json()) == spec
    assert sw.hopping(table, spec) == sw.hopping(
        table, on="t", by="k", window=windows[1], aggs=aggs
    )
    given = {"on": "t", "aggs": aggs}
    for wrong, message in (
        ({"every": windows[1], "window": "1d"}, "leave window= out"),
        ({"window": windows[1], "every": "1d"}, "every='1d' does not apply"),
        ({"every": windows[1], "closed": "right"}, "closed='right' does not apply"),
        ({"every": windows[1], "offset": "1h"}, "offset='1h' does not apply"),
        ({"window": sw.to_date("1mo")}, "window of rolling"),
    ):
        with pytest.raises(sw.SpecError, match=message):
            sw.hopping(table, **given, **wrong)
