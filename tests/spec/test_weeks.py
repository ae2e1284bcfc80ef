"""Windows in weeks begin on Mondays, by a calendar oracle; "7d" windows do not."""

import datetime as dt
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from seeds import SEED

import slidewise as sw
from slidewise.cli import main
from slidewise.spec.spec import Spec

COUNT = {"n": sw.count()}
WEEK, DAY = dt.timedelta(weeks=1), dt.timedelta(days=1)


def times_of(seed: int) -> list[dt.datetime]:
    """Times before and after the epoch, some of them midnights of Mondays."""
    rng = random.Random(SEED + seed)
    times = [
        dt.datetime(rng.choice([1969, 1970, 2025, 2026]), 1, 1)
        + dt.timedelta(seconds=rng.randrange(40 * 86_400))
        for _ in range(40)
    ]
    return [*times, dt.datetime(2026, 1, 5), dt.datetime(1969, 12, 29)]


def mondays(time: dt.datetime, back: int, right: bool) -> list[dt.datetime]:
    """The Mondays on which the windows of `weeks` weeks that hold a time begin."""
    midnight = dt.datetime.combine(time.date(), dt.time())
    begin = midnight - dt.timedelta(days=time.isoweekday() - 1)
    if right and time == begin:
        begin -= WEEK
    return [begin - WEEK * at for at in range(back)]


def expected(
    times: list[dt.datetime], weeks: int = 1, right: bool = False
) -> list[tuple[dt.datetime, dt.datetime, int]]:
    counts = Counter(begin for time in times for begin in mondays(time, weeks, right))
    return [(begin, begin + WEEK * weeks, n) for begin, n in sorted(counts.items())]


def answers(table: pa.Table) -> list[tuple[Any, ...]]:
    names = ("window_start", "window_end", "n")
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True))


HOPS: list[Any] = [
    ({"window": "1w"}, 1, False),
    ({"window": "1 week", "closed": "right"}, 1, True),
    ({"window": "14d", "every": "1w"}, 2, False),
    ({"window": "3w", "every": "7d"}, 3, False),
    ({"window": "3w", "every": "1weeks", "closed": "right"}, 3, True),
]


@pytest.mark.parametrize("unit", ["s", "ns"])
@pytest.mark.parametrize(("hops", "weeks", "right"), HOPS)
def test_over_tables(hops: Any, weeks: int, right: bool, unit: str) -> None:
    times = times_of(1)
    table = pa.table({"t": pa.array(times, pa.timestamp(unit))})
    found = sw.hopping(table, on="t", aggs=COUNT, **hops)
    assert answers(found) == expected(times, weeks, right)


@pytest.mark.parametrize(("hops", "weeks", "right"), HOPS)
def test_over_streams(hops: Any, weeks: int, right: bool) -> None:
    times = sorted(times_of(2))
    spec = sw.Spec(on="t", aggs=COUNT, **hops)
    keyed = sw.KeyedWindows(spec, late="1d")
    found = []
    for time in times:
        keyed.ingest(pa.table({"t": pa.array([time], pa.timestamp("us"))}))
        keyed.advance()
        found += answers(keyed.collect())
    keyed.advance(dt.datetime(2030, 1, 1))
    found += answers(keyed.collect())
    assert found == expected(times, weeks, right)


def test_several_windows_and_an_offset() -> None:
    times = times_of(3)
    table = pa.table({"t": pa.array(times, pa.timestamp("us"))})
    windows = ["1w", "7d", sw.Query("1d", every="1w")]
    found = sw.hopping(table, on="t", windows=windows, offset="6h", aggs=COUNT)
    late = [time - dt.timedelta(hours=6) for time in times]
    by_name = {
        name: answers(found.filter(pa.compute.equal(found["window"], name)))
        for name in ("1w", "7d", "1d every 1w")
    }
    six = dt.timedelta(hours=6)
    assert [(start - six, end - six, n) for start, end, n in by_name["1w"]] == (
        expected(late)
    )
    assert {start.isoweekday() for start, _, _ in by_name["7d"]} == {4}
    first_days = [time for time in late if time.isoweekday() == 1]
    assert sum(n for _, _, n in by_name["1d every 1w"]) == len(first_days) > 0


def test_slides_that_are_no_weeks_count_from_the_epoch() -> None:
    table = pa.table({"t": pa.array([dt.datetime(1970, 1, 2)], pa.timestamp("us"))})
    for every in ("5d", "36h"):
        weeks, days = (
            sw.hopping(table, on="t", window=length, every=every, aggs=COUNT)
            for length in ("1w", "7d")
        )
        assert weeks.equals(days)


def test_queries_of_a_shared_window() -> None:
    times = sorted(set(times_of(4)))
    queries = [sw.Query("1w"), sw.Query("2w", every="7d"), sw.Query("1d", every="1h")]
    window = sw.SharedWindow(sw.count(), queries=queries, offset=0 * DAY)
    found = [*window.insert_many(times, [1] * len(times)).to_pylist()]
    due = window.advance(dt.datetime(2030, 1, 1))
    found += [{"query": q, "end": end, "value": value} for q, end, value in due]
    for query, weeks in ((0, 1), (1, 2)):
        got = [(one["end"], one["value"]) for one in found if one["query"] == query]
        assert got == [(end, n) for _, end, n in expected(times, weeks, True)]
    hours = [one["end"] for one in found if one["query"] == 2]
    assert hours
    assert all((end.minute, end.second) == (0, 0) for end in hours)


def test_queries_that_have_no_common_grid() -> None:
    with pytest.raises(
        sw.SpecError, match=r"Query\('7d', every='7d'\) is counted from"
    ):
        sw.SharedWindow(sw.count(), queries=[sw.Query("1w"), sw.Query("7d")])
    days = sw.SharedWindow(sw.count(), queries=[sw.Query("7d")])
    days.insert(dt.datetime(2026, 1, 1), 1)
    with pytest.raises(
        sw.SpecError, match=r"Query\('1w', every='1w'\) ends on Mondays"
    ):
        days.add(sw.Query("1w"))
    weeks = sw.SharedWindow(sw.count(), queries=[sw.Query("1w"), sw.Query("5h")])
    with pytest.raises(sw.SpecError, match="is counted from the epoch, a Thursday"):
        weeks.add(sw.Query("7d"))
    assert weeks.add(sw.Query("2d", every="1w")) == 2
    # Ends of 5 h stay multiples of 5 h since the epoch.
    weeks.insert(dt.datetime(2026, 1, 1), 1)
    ends = [
        end for query, end, _ in weeks.advance(dt.datetime(2026, 1, 2)) if query == 1
    ]
    epoch = dt.datetime(1970, 1, 1)
    assert ends
    assert all((end - epoch) % dt.timedelta(hours=5) == 0 * DAY for end in ends)


def test_snapshots_keep_their_mondays() -> None:
    window = sw.SharedWindow(sw.count(), queries=[sw.Query("1w"), sw.Query("5h")])
    window.insert(dt.datetime(2026, 1, 1), 1)
    again = sw.SharedWindow.from_bytes(window.to_bytes())
    assert again.to_bytes() == window.to_bytes()
    ends = [
        end for query, end, _ in again.advance(dt.datetime(2026, 1, 6)) if not query
    ]
    assert ends == [dt.datetime(2026, 1, 5)]
    # Without weeks, a snapshot is unchanged.
    assert b"shift" in window.to_bytes()
    plain = sw.SharedWindow(sw.count(), queries=[sw.Query("7d"), sw.Query("5h")])
    assert b"shift" not in plain.to_bytes()


@pytest.mark.parametrize(
    ("given", "digest"),
    [
        ({"window": "7d"}, "9494df5785f23dff"),
        ({"window": "14d", "every": "7d", "offset": "1h"}, "5482ba57a8456630"),
        (
            {"windows": ["1h", sw.Query("1d", every="1h")], "closed": "right"},
            "5358d94d2d001b8c",
        ),
        ({"windows": ["1w", "1d"], "by": "k"}, "b2fe653f2e771e1b"),
    ],
)
def test_hashes_without_weeks_stay(given: dict[str, Any], digest: str) -> None:
    """Rolling windows are not affected, because they end at their rows."""
    spec = sw.Spec(on="t", aggs=COUNT, **given)
    assert spec.hash[:16] == digest


def test_files_keep_what_was_written() -> None:
    given: Any
    for given in (
        {"window": "1w"},
        {"window": "7d"},
        {"window": "14d", "every": "1w"},
        {"window": "14d", "every": "7d", "offset": "6h"},
        {"windows": ["1w", "14d"], "every": "1w", "offset": "-3d"},
        {"windows": ["1w", "14d", {"range": "1d", "every": "1w"}], "every": "7d"},
    ):
        text = json.dumps({"on": "t", **given, "aggs": {"n": {"kind": "count"}}})
        spec = Spec.from_json(text)
        written = json.loads(spec.to_json())
        assert {name: written[name] for name in given} == given
        assert written.keys() <= {"version", "on", "aggs", *given}
        assert Spec.from_json(spec.to_json()) == spec


def test_on_the_command_line(tmp_path: Path) -> None:
    times = times_of(5)
    file, out = tmp_path / "t.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"t": pa.array(times, pa.timestamp("us"))}), file)
    flags = ["--on", "t", "--window", "2w every 1w", "--agg", "n=count", "--quiet"]
    assert main.main(["hopping", str(file), *flags, "-o", str(out)]) == 0
    assert answers(pq.read_table(out)) == expected(times, 2)
