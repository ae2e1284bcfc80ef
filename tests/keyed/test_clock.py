"""Rows ahead of the clock, and a watermark that follows it while no row comes."""

import copy
import pickle
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from seeds import SEED

import slidewise as sw

SPEC = sw.Spec(on="t", by="k", windows=5, aggs={"n": sw.count(), "sum": sw.sum("x")})
KINDS = {"t": "int64", "k": "string", "x": "int64"}


class Hands:
    """A clock that a test sets."""

    def __init__(self, now: Any = 100) -> None:
        self.now = now

    def __call__(self) -> Any:
        return self.now


def rows(*times: int) -> pa.Table:
    return pa.table({"t": pa.array(times, pa.int64()), "k": ["a"] * len(times)})


def counting(clock: Callable[[], Any], **options: Any) -> sw.KeyedWindows:
    spec = sw.Spec(on="t", by="k", windows=5, aggs={"n": sw.count()})
    return sw.KeyedWindows(spec, clock=clock, **options)


def test_rows_ahead_of_the_clock_do_not_move_the_watermark():
    keyed = counting(lambda: 100, ahead=60, late=2)
    keyed.ingest(rows(99, 160, 161, 2**63 - 1))
    keyed.advance()
    assert (keyed.ahead_count, keyed.late_count, keyed.watermark) == (2, 0, 158)
    assert keyed.query("a", at=160) == {"n_5": 1}
    assert keyed.query("a") == {"n_5": 1}  # at 160, the latest time that is not ahead
    assert "2 rows ahead" in repr(keyed)
    keyed.ingest(rows(2**63 - 1))
    assert keyed.ahead_count == 3
    assert counting(lambda: 100, ahead=2**63 - 1).ahead_count == 0


@pytest.mark.parametrize("late_rows", ["flag", "correct"])
@pytest.mark.parametrize("emit", ["final", "arrival"])
def test_rows_ahead_come_back_with_a_flag(emit, late_rows):
    if (emit, late_rows) == ("arrival", "correct"):
        late_rows = "flag"
    keyed = counting(lambda: 100, ahead=0, emit=emit, late_rows=late_rows)
    keyed.ingest(rows(99, 101))
    keyed.advance()
    keyed.ingest(rows(50, 100))
    keyed.advance()
    found = keyed.collect().sort_by("t").select(["t", "n_5", "_late", "_ahead"])
    assert found.to_pydict() == {
        "t": [50, 99, 100, 101],
        "n_5": [None, 1, 2, None],
        "_late": [True, False, False, False],
        "_ahead": [False, False, False, True],
    }
    empty = counting(lambda: 100, ahead=0, late_rows="flag", schema=KINDS).collect()
    assert empty.column_names[-2:] == ["_late", "_ahead"]


def test_a_column_may_not_have_the_name_of_the_flag_of_rows_ahead():
    with pytest.raises(sw.SpecError, match="'_ahead' is taken by late_rows='flag'"):
        counting(
            lambda: 1, ahead=1, late_rows="flag", schema={**KINDS, "_ahead": "int64"}
        )
    counting(lambda: 1, idle=1, late_rows="flag", schema={**KINDS, "_ahead": "int64"})


def test_rows_ahead_may_hold_nan():
    spec = sw.Spec(on="t", windows=5, aggs={"s": sw.sum("x")}, nan="raise")
    keyed = sw.KeyedWindows(spec, ahead=0, clock=lambda: 10)
    keyed.ingest(pa.table({"t": [9, 11], "x": [1.0, float("nan")]}))
    assert keyed.ahead_count == 1
    with pytest.raises(sw.SpecError, match="is NaN in row 1 "):
        keyed.ingest(pa.table({"t": [11, 10], "x": [float("nan")] * 2}))
    assert keyed.ahead_count == 1


def test_the_watermark_follows_the_clock_after_a_silence():
    clock = Hands()
    keyed = counting(clock, idle=10, late=3)
    keyed.ingest(rows(95, 97))
    keyed.advance()
    assert keyed.watermark == 94
    for clock.now, mark in [(105, 94), (110, 94), (111, 95), (111, 95), (118, 102)]:
        keyed.tick()
        assert keyed.watermark == mark
    assert keyed.collect()["t"].to_pylist() == [95, 97]
    keyed.ingest(rows(103))  # not late: 102 is the watermark
    clock.now = 128
    keyed.ingest(rows())
    assert (keyed.watermark, keyed.late_count) == (102, 0)
    clock.now = 130
    keyed.ingest(rows())
    assert keyed.watermark == 104
    keyed.advance(120)
    clock.now = 133
    keyed.tick()
    assert keyed.watermark == 123


def test_a_batch_after_a_silence_finds_the_watermark_moved():
    clock = Hands()
    keyed = counting(clock, idle=10, late=3)
    keyed.ingest(rows(97))
    clock.now = 120  # so the watermark is 94 + 10
    keyed.ingest(rows(104, 105))
    assert (keyed.watermark, keyed.late_count) == (104, 1)


def test_rows_ahead_do_not_end_a_silence_and_late_rows_do():
    clock = Hands()
    keyed = counting(clock, idle=10, ahead=1000)
    keyed.ingest(rows(97))
    clock.now = 105
    keyed.ingest(rows(2000))
    clock.now = 112
    keyed.tick()
    assert keyed.watermark == 99
    keyed.ingest(rows(50))
    clock.now = 121
    keyed.tick()
    assert (keyed.watermark, keyed.late_count) == (99, 1)


def test_a_watermark_given_before_the_first_row_goes_on():
    clock = Hands()
    keyed = counting(clock, idle=10, schema=KINDS)
    keyed.tick()
    keyed.advance()
    assert keyed.watermark is None
    keyed.advance(50)
    assert keyed.watermark == 50
    clock.now = 115
    keyed.tick()
    assert keyed.watermark == 55
    keyed.ingest({"t": [55, 56], "k": ["a", "a"], "x": [1, 1]})
    assert keyed.late_count == 1
    with pytest.raises(sw.SpecError, match="give schema="):
        counting(clock, idle=10).advance(50)


def test_a_clock_that_runs_backwards_counts_as_one_that_stands():
    clock = Hands()
    keyed = counting(clock, idle=10, ahead=5)
    keyed.ingest(rows(97))
    for clock.now, mark in [(112, 99), (50, 99), (53, 102)]:
        keyed.tick()
        keyed.advance()
        assert keyed.watermark == mark
    keyed.ingest(rows(56))  # of the past, but ahead of the clock neither
    assert (keyed.ahead_count, keyed.late_count) == (0, 1)
    keyed.ingest(rows(59))
    assert keyed.ahead_count == 1


NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
SECONDS = NOON.timestamp()


@pytest.mark.parametrize(
    ("kind", "reading", "accepted", "ahead"),
    [
        (pa.timestamp("s"), SECONDS + 0.9, NOON, NOON + timedelta(seconds=1)),
        (pa.timestamp("s", "Asia/Tokyo"), NOON, NOON, NOON + timedelta(seconds=1)),
        (pa.timestamp("us"), NOON, NOON, NOON + timedelta(microseconds=1)),
        (pa.timestamp("us"), NOON.replace(tzinfo=None), NOON, NOON + timedelta(1)),
        (pa.timestamp("ns", "UTC"), int(SECONDS), NOON, NOON + timedelta(0, 0, 1)),
        (pa.date32(), NOON, date(2024, 3, 1), date(2024, 3, 2)),
        (pa.date64(), SECONDS, date(2024, 3, 1), date(2024, 3, 2)),
        (pa.duration("ms"), timedelta(1), timedelta(1), timedelta(1, 0, 1000)),
        (pa.int16(), 7.5, 7, 8),
    ],
)
def test_the_clock_in_the_units_of_times(kind, reading, accepted, ahead):
    if pa.types.is_timestamp(kind) and kind.tz is None:
        accepted, ahead = accepted.replace(tzinfo=None), ahead.replace(tzinfo=None)
    aggs = {"n": sw.count()}
    window = 5 if pa.types.is_integer(kind) else "2d"
    keyed = sw.KeyedWindows(
        on="t", windows=window, aggs=aggs, ahead=0, clock=lambda: reading
    )
    keyed.ingest(pa.table({"t": pa.array([accepted, ahead], kind)}))
    keyed.advance()
    assert keyed.ahead_count == 1
    assert keyed.collect()["t"].to_pylist() == [accepted]


def test_days_follow_the_clock_by_whole_days():
    clock = Hands(NOON)
    keyed = sw.KeyedWindows(
        on="t", windows="3d", aggs={"n": sw.count()}, idle="1d", clock=clock
    )
    keyed.ingest(pa.table({"t": pa.array([date(2024, 3, 1)], pa.date64())}))
    for hours, mark in [(35, None), (36, 2), (37, 2), (60, 3)]:
        clock.now = NOON + timedelta(hours=hours)
        keyed.tick()
        assert keyed.watermark == (None if mark is None else date(2024, 3, mark))


def test_by_default_the_clock_is_that_of_the_system():
    keyed = sw.KeyedWindows(
        on="t", windows="1h", aggs={"n": sw.count()}, ahead="1h", idle="5m"
    )
    now = datetime.now(UTC)
    keyed.ingest({"t": [now, now + timedelta(minutes=50), now + timedelta(hours=2)]})
    keyed.tick()
    assert (keyed.ahead_count, keyed.watermark) == (1, None)


def test_a_copy_and_a_snapshot_go_on_alike():
    clock = Hands()
    keyed = counting(clock, idle=10, ahead=60, late_rows="flag")
    keyed.ingest(rows(97, 500))
    keyed.advance()
    keyed.collect()
    clock.now = 107
    keyed.tick()
    others = [
        copy.copy(keyed),
        copy.deepcopy(keyed),
        sw.KeyedWindows.from_bytes(keyed.to_bytes(), clock=clock),
    ]
    clock.now = 117
    for each in (keyed, *others):
        each.tick()
        each.ingest(rows(105, 500))
        assert (each.watermark, each.ahead_count, each.late_count) == (104, 2, 0)
        assert each.collect()["_ahead"].to_pylist() == [True]


def test_a_pickled_clock_goes_along():
    keyed = counting(Hands(), idle=10)
    keyed.ingest(rows(97))
    twin = pickle.loads(pickle.dumps(keyed))
    twin.tick()
    assert twin.watermark is None


def test_the_time_between_a_snapshot_and_its_restoration_is_no_silence():
    clock = Hands()
    keyed = counting(clock, idle=10)
    keyed.ingest(rows(97))
    keyed.advance()
    keyed.collect()
    clock.now = 108
    keyed.tick()
    blob = keyed.to_bytes()
    clock.now = 90_000
    restored = sw.KeyedWindows.from_bytes(blob, clock=clock)
    restored.tick()
    assert restored.watermark == 97
    clock.now += 3
    restored.tick()
    assert restored.watermark == 98
    with pytest.raises(sw.SpecError, match="pass clock="):
        sw.KeyedWindows.from_bytes(blob)
    with pytest.raises(sw.SpecError, match="idle= is in the snapshot"):
        sw.KeyedWindows.from_bytes(blob, idle=10, clock=clock)


def test_followers_count_as_their_leader():
    clock = Hands()
    leader = counting(clock, idle=10, ahead=60)
    leader.ingest(rows(97))
    follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), clock=clock)
    clock.now = 115
    leader.ingest(rows(500))
    leader.collect()
    follower.apply(leader.changes())
    assert follower.to_bytes() == leader.to_bytes()
    assert (follower.ahead_count, follower.watermark) == (1, 102)
    for clock.now, mark in [(200, 102), (202, 104)]:  # it leads from its first look on
        follower.tick()
        assert follower.watermark == mark


def test_features_look_at_the_clock_once_per_call():
    other = sw.Spec(on="t", windows=9, aggs={"m": sw.max("x")})
    readings = iter(range(100, 200))
    keyed = sw.KeyedWindows(
        sw.Features(key=SPEC, all=other),
        clock=lambda: next(readings),
        ahead=1,
        idle=2,
        late_rows="flag",
        schema=KINDS,
    )
    keyed.ingest({"t": [100, 103], "k": ["a", "a"], "x": [1, 2]})  # at 101
    keyed.advance()
    keyed.tick()
    assert keyed.watermark == 100
    for _ in range(3):
        keyed.tick()
    keyed.check()
    assert (keyed.watermark, keyed.ahead_count) == (102, 1)
    found = keyed.collect().sort_by("t").select(["key_n_5", "all_m_9", "_ahead"])
    assert found.to_pylist() == [
        {"key_n_5": 1, "all_m_9": 1, "_ahead": False},
        {"key_n_5": None, "all_m_9": None, "_ahead": True},
    ]
    restored = sw.KeyedWindows.from_bytes(
        keyed.to_bytes(), clock=lambda: next(readings)
    )
    restored.tick()
    restored.check()
    assert (restored.watermark, restored.ahead_count) == (103, 1)


def test_a_batch_that_raises_leaves_the_silence_as_it_was():
    clock = Hands()
    spec = sw.Spec(on="t", windows=5, aggs={"s": sw.sum("x")}, nan="raise")
    keyed = sw.KeyedWindows(spec, idle=10, ahead=9, clock=clock)
    keyed.ingest(pa.table({"t": [97], "x": [1.0]}))
    keyed.advance()
    clock.now = 115
    with pytest.raises(sw.SpecError, match="NaN"):
        keyed.ingest(pa.table({"t": [110, 300], "x": [float("nan"), 1.0]}))
    keyed.check()
    assert (keyed.watermark, keyed.ahead_count) == (97, 0)
    keyed.tick()
    assert keyed.watermark == 102


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ahead": 5}, "column 't' holds int64.*pass clock="),
        ({"idle": 5}, "^idle=5 compares rows with the clock"),
        ({"ahead": -5, "clock": Hands()}, "ahead=-5 is negative"),
        ({"idle": "1h", "clock": Hands()}, "give idle= as an int"),
        ({"clock": Hands()}, "clock= is for ahead= and idle="),
        ({"ahead": 5, "clock": 5}, "clock= takes a function .* got 5"),
        ({"ahead": 5, "clock": Hands("noon")}, "clock= returned 'noon'"),
        ({"ahead": 5, "clock": Hands(float("nan"))}, "clock= returned nan"),
        ({"ahead": 5, "clock": Hands(NOON)}, "for integer times, a number"),
    ],
)
def test_guards_that_do_not_fit(options, message):
    with pytest.raises(sw.SpecError, match=message):
        sw.KeyedWindows(SPEC, schema=KINDS, **options)


def model(batches, ahead, idle, late):
    """The watermark after each batch, and the rows that were accepted."""
    looked, silent, mark, latest = 100, 0, None, None
    taken, marks, counts = [], [], [0, 0]
    for now, batch, advances in batches:
        elapsed, looked = max(0, now - looked), now
        before, silent = silent, silent + elapsed
        known = mark if mark is not None or latest is None else latest - late
        if silent > idle and silent > before and known is not None:
            mark = known + silent - max(before, idle)
        for time in batch:
            if time > now + ahead:
                counts[0] += 1
                continue
            silent = 0
            if mark is not None and time <= mark:
                counts[1] += 1
            else:
                taken.append(time)
        fresh = [time for time in batch if time <= now + ahead]
        accepted = [time for time in fresh if mark is None or time > mark]
        latest = max([*accepted, *([] if latest is None else [latest])], default=None)
        if advances and latest is not None:
            mark = max(latest - late, latest - late if mark is None else mark)
        marks.append(mark)
    return taken, marks, counts


@pytest.mark.parametrize("run", range(30))
def test_random_clocks_give_what_a_model_gives(run):
    draw = random.Random(f"{SEED}.{run}")
    ahead, idle, late = (draw.choice([0, 1, 5, 20]) for _ in range(3))
    now, batches = 100, []
    for _ in range(12):
        now += draw.choice([0, 1, 7, 30, -4])
        times = [now + draw.randint(-25, 25) for _ in range(draw.choice([0, 0, 1, 3]))]
        batches.append((now, times, draw.random() < 0.6))
    clock = Hands()
    keyed = counting(clock, ahead=ahead, idle=idle, late=late, schema=KINDS)
    taken, marks, counts = model(batches, ahead, idle, late)
    emitted = []
    for (clock.now, times, advances), mark in zip(batches, marks, strict=True):
        if not times and draw.random() < 0.5:
            keyed.tick()
        else:
            cells = {"k": ["a"] * len(times), "x": [1] * len(times)}
            keyed.ingest({"t": times, **cells})
        if advances:
            keyed.advance()
        emitted.append(keyed.collect())
        if draw.random() < 0.2:
            keyed = sw.KeyedWindows.from_bytes(keyed.to_bytes(), clock=clock)
        assert keyed.watermark == mark, f"seed {SEED}"
    assert [keyed.ahead_count, keyed.late_count] == counts, f"seed {SEED}"
    keyed.advance(10_000)
    found = pa.concat_tables([*emitted, keyed.collect()]).select(["t", "k", "n_5"])
    table = pa.table({"t": pa.array(taken, pa.int64()), "k": ["a"] * len(taken)})
    table = table.sort_by("t")
    wanted = sw.rolling(table, on="t", by="k", windows=5, aggs={"n": sw.count()})
    assert found.to_pydict() == wanted.to_pydict(), f"seed {SEED}"
