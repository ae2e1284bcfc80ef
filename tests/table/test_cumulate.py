"""Windows that begin with a unit and end at each slide, against the definition."""

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from calendars import start_of_unit
from seeds import SEED

import slidewise as sw
from slidewise.table.batched_hopping import hopping_batches
from slidewise.testing import check_stream

AGGS = {
    "folds": {"s": sw.sum("x"), "c": sw.count(), "m": sw.mean("x")},
    "rows": {"all": sw.collect("x"), "median": sw.median("x")},
}


def made(draw, count, span):
    return pa.table(
        {
            "t": [draw.randrange(-span, span) for _ in range(count)],
            "k": [draw.choice("ab") for _ in range(count)],
            "x": [draw.choice([None, *range(9)]) for _ in range(count)],
        },
        schema=pa.schema({"t": pa.int64(), "k": pa.string(), "x": pa.int64()}),
    )


def ends_of(unit, every):
    """The windows of a unit (start, end)."""
    start, end = unit
    ends, at = [], start + every
    while at < end:
        ends.append((start, at))
        at += every
    return [*ends, (start, end)]


def expected(rows, unit_of, every, *, empty=False):
    """Key, start, end and number of rows of each window, by key, then in order."""
    found = []
    for key in dict.fromkeys(row["k"] for row in rows):
        times = sorted(row["t"] for row in rows if row["k"] == key)
        windows, at = [], times[0]
        while at <= times[-1]:
            start, end = unit_of(at)
            windows += ends_of((start, end), every)
            at = end
        counts = [sum(start <= t < end for t in times) for start, end in windows]
        first = next(n for n, count in enumerate(counts) if count)
        found += [
            (key, *window, count)
            for n, (window, count) in enumerate(zip(windows, counts, strict=True))
            if count or (empty and n > first)
        ]
    return found


@pytest.mark.parametrize(("unit", "every"), [(10, 5), (10, 3), (7, 7), (60, 1)])
@pytest.mark.parametrize("empty", [False, True])
def test_units_of_one_length(unit, every, empty):
    draw = random.Random(f"{SEED} {unit} {every} {empty}")
    for count in (1, 2, 30):
        table = made(draw, count, draw.choice([9, 200]))
        window = sw.cumulate(unit, every=every)
        given = {"on": "t", "by": "k", "aggs": AGGS["folds"] | AGGS["rows"]}
        out = sw.hopping(table, window=window, empty=empty, **given)
        rows = table.to_pylist()
        wanted = expected(
            rows,
            lambda t: (t // unit * unit, t // unit * unit + unit),
            every,
            empty=empty,
        )
        names = ["k", "window_start", "window_end", "c"]
        assert list(zip(*(out[n].to_pylist() for n in names), strict=True)) == wanted
        for row in out.to_pylist():
            held = [
                r["x"]
                for r in sorted(rows, key=lambda r: r["t"])
                if r["k"] == row["k"]
                and row["window_start"] <= r["t"] < row["window_end"]
            ]
            assert row["all"] == [x for x in held if x is not None]
            assert (row["s"] or 0) == sum(row["all"])
        if not empty:
            ordered = table.sort_by([("k", "ascending"), ("t", "ascending")])
            spec = sw.Spec(window=window, **given)
            batches = ordered.to_batches(max_chunksize=3)
            parts = hopping_batches(batches, spec, table.schema)
            assert pa.concat_tables(parts) == sw.hopping(ordered, spec)


@pytest.mark.parametrize("unit", ["1d", "1w", "1mo"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo"])
def test_units_of_a_calendar(unit, zone):
    draw = random.Random(f"{SEED} {unit} {zone}")
    begin = datetime(2024, 3, 1, tzinfo=UTC)
    times = [begin + timedelta(minutes=draw.randrange(90_000)) for _ in range(40)]
    table = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC")), "k": ["a"] * 40})
    window = sw.cumulate(sw.calendar(unit, tz=zone), every="7h")
    out = sw.hopping(table, on="t", by="k", window=window, aggs={"c": sw.count()})

    def unit_of(at):
        start = start_of_unit(at, unit, zone)
        later = start + timedelta({"1d": 0.9, "1w": 6.9, "1mo": 27.9}[unit])
        while start_of_unit(later, unit, zone) == start:
            later += timedelta(hours=1)
        return start, start_of_unit(later, unit, zone)

    wanted = expected(table.to_pylist(), unit_of, timedelta(hours=7))
    names = ["k", "window_start", "window_end", "c"]
    assert list(zip(*(out[n].to_pylist() for n in names), strict=True)) == wanted
    assert out["window_end"][0].as_py().astimezone(ZoneInfo(zone)) == wanted[0][2]


@pytest.mark.parametrize("kind", [*AGGS])
@pytest.mark.parametrize("seed", range(5))
def test_streams_equal_tables(kind, seed):
    draw = random.Random(f"{SEED} {kind} {seed}")
    table = made(draw, draw.choice([5, 40, 120]), draw.choice([9, 200]))
    window = sw.cumulate(*draw.choice([(10, 5), (10, 3), (60, 7)]))
    windows = draw.choice([{"window": window}, {"windows": [window, 25]}])
    if draw.random() < 0.4:
        begin = datetime(2024, 3, 25, tzinfo=UTC)
        times = [begin + timedelta(hours=t) for t in table["t"].to_pylist()]
        table = table.set_column(0, "t", pa.array(times, pa.timestamp("s", "UTC")))
        day = draw.choice([sw.calendar("1d", tz="Europe/Berlin"), "1d", "1w", "1mo"])
        windows = {"windows": [sw.cumulate(day, "5h"), sw.calendar("1w")]}
    spec = sw.Spec(on="t", by="k", aggs=AGGS[kind], **windows)
    late = draw.choice([0, 7] if table["t"].type == pa.int64() else ["0s", "1d"])
    check_stream(spec, table, late=late, runs=2, seed=seed)


def test_a_query_holds_the_unit_so_far():
    stream = sw.KeyedWindows(
        on="t", window=sw.cumulate(10, every=5), aggs={"c": sw.count()}, late=20
    )
    stream.ingest(pa.table({"t": [8, 11, 12, 17, 19]}))
    assert stream.query((), at=17) == {"c_to_date_10": 3}
    assert stream.query((), at=12) == {"c_to_date_10": 2}
    weeks = sw.cumulate("1w", every="1d")
    days = pa.array([datetime(2026, 3, d) for d in (1, 2, 4)], pa.timestamp("s"))
    out = sw.hopping(
        pa.table({"t": days}), on="t", window=weeks, aggs={"c": sw.count()}
    )
    assert {at.weekday() for at in out["window_start"].to_pylist()} == {0}


@pytest.mark.parametrize("kind", ["int64", "timestamp[us]", "date64[ms]"])
def test_a_unit_is_whole_at_the_watermark(kind):
    """The row that begins the unit before it has left, and no window holds it."""
    window = sw.cumulate(14, 7) if kind == "int64" else sw.cumulate("14d", "7d")
    day = {"int64": 1, "timestamp[us]": 86_400_000_000, "date64[ms]": 86_400_000}[kind]
    times = pa.array([14 * day, 28 * day], pa.int64())
    windows = sw.KeyedWindows(on="t", window=window, aggs={"c": sw.count()})
    windows.ingest(pa.table({"t": times.cast(kind)}))
    windows.advance()
    (found,) = windows.query(()).values()
    assert found == 1


def test_what_is_refused():
    given = {"on": "t", "aggs": {"n": sw.count()}}
    for call, message in [
        (lambda: sw.cumulate("1h", every="2h"), "every='2h' is longer than the unit"),
        (
            lambda: sw.cumulate("1h", every=5),
            "every=5 and the unit '1h' differ in kind",
        ),
        (lambda: sw.cumulate(sw.calendar("1d"), every=5), "differ in kind"),
        (lambda: sw.cumulate(sw.rows(2), every=sw.rows(1)), "differ in kind"),
        (lambda: sw.cumulate(sw.to_date("1d"), "1h"), r"takes sw.calendar\('1mo'\)"),
        (lambda: sw.cumulate(10, 5, tz="UTC"), "tz='UTC' belongs in the unit"),
        (
            lambda: sw.Spec(**given, window=sw.cumulate(10, 5), offset=1),
            "offset=1 does",
        ),
        (lambda: sw.Spec(**given, window=sw.cumulate(10, 5), every=5), "every=5 does"),
        (
            lambda: sw.Spec(**given, window=sw.cumulate(10, 5), closed="right"),
            "closed='right' does not apply",
        ),
        (
            lambda: sw.Spec(**given, windows=["1h"], every=sw.cumulate(10, 5)),
            "gives windows of its own",
        ),
        (
            lambda: sw.rolling(
                pa.table({"t": [1]}), **given, windows=sw.cumulate(10, 5)
            ),
            "window of hopping, not of rolling",
        ),
        (
            lambda: sw.KeyedWindows(**given, window=sw.cumulate(10, 5), empty=True),
            "empty=True for cumulate",
        ),
        (
            lambda: sw.hopping(
                pa.table({"t": [1]}), **given, window=sw.cumulate("1h", "1m")
            ),
            "'1h' is a duration, but column 't' holds integers",
        ),
        (
            lambda: sw.hopping(
                pa.table({"t": [0, 2**62]}),
                **given,
                window=sw.cumulate(2**62, 1),
            ),
            "windows, which do not fit into memory",
        ),
    ]:
        with pytest.raises(sw.SpecError, match=message):
            call()


@pytest.mark.parametrize(
    "window",
    [
        sw.cumulate("1d", every="1h"),
        sw.cumulate(10, 5),
        sw.cumulate("1mo", "1d"),
        sw.cumulate("1d", "1h", tz="Europe/Berlin"),
        sw.cumulate(sw.calendar("1w", tz="UTC", start="sun"), "6h"),
        sw.cumulate(sw.calendar("1d"), "6h"),
    ],
)
def test_spelling(window):
    spec = sw.Spec(on="t", window=window, aggs={"n": sw.count()})
    assert sw.Spec.from_json(spec.to_json()) == spec
    as_slide = sw.Spec(on="t", every=window, aggs={"n": sw.count()})
    assert as_slide.windows == spec.windows
    assert sw.Spec.from_json(as_slide.to_json()) == as_slide
