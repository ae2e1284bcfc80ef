"""Times that move the watermark of `KeyedWindows`, and the windows that it closes."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw

NOON = datetime(2024, 3, 1, 12)


SECONDS, ZONED = pa.timestamp("s"), pa.timestamp("s", "Europe/Berlin")


def rows(times, keys="a", values=1.0):
    """A batch with one key and one value throughout, or those given."""
    keys = [keys] * len(times) if isinstance(keys, str) else keys
    values = values if isinstance(values, list) else [values] * len(times)
    return pa.table({"t": times, "k": keys, "x": values})


def counted(kind, first=0, rows=False):
    """Windows over times of a type, or of rows, with one row."""
    window = 5 if pa.types.is_integer(kind) else "1d"
    window = sw.rows(5) if rows else window
    keyed = sw.KeyedWindows(on="t", windows=window, aggs={"n": sw.count()})
    keyed.ingest(pa.table({"t": pa.array([first], kind)}))
    return keyed


@pytest.mark.parametrize(
    ("kind", "time", "watermark"),
    [
        (pa.int64(), np.int8(3), 3),
        (pa.int64(), pa.scalar(3, pa.int8()), 3),
        (pa.int8(), 200, 200),
        (SECONDS, NOON, NOON),
        (SECONDS, date(2024, 3, 1), datetime(2024, 3, 1)),
        (SECONDS, np.datetime64(2000, "ms"), datetime(1970, 1, 1, 0, 0, 2)),
        (SECONDS, np.datetime64(2, "h"), datetime(1970, 1, 1, 2)),
        (SECONDS, pa.scalar(2000, pa.timestamp("ms")), datetime(1970, 1, 1, 0, 0, 2)),
        (ZONED, NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC)),
        (
            ZONED,
            pd.Timestamp(NOON, tz="Asia/Tokyo"),
            datetime(2024, 3, 1, 3, 0, 0, 0, UTC),
        ),
        (pa.timestamp("ns"), pd.Timestamp(2_000_000_001), pd.Timestamp(2_000_000_001)),
        (pa.date32(), date(2024, 3, 1), date(2024, 3, 1)),
        (pa.duration("ms"), timedelta(seconds=3), timedelta(seconds=3)),
    ],
)
def test_times_that_move_the_watermark(kind, time, watermark):
    keyed = counted(kind)
    keyed.advance(time)
    assert keyed.watermark == watermark
    counted_by_row = counted(kind, rows=True)
    counted_by_row.advance(time)
    assert counted_by_row.evict_idle(time) == 1


@pytest.mark.parametrize(
    ("kind", "time", "way_out"),
    [
        (pa.int64(), -1.5, "give an int"),
        (pa.int64(), np.float64(2.0), "give an int"),
        (pa.int64(), Decimal(3), "give an int"),
        (pa.int64(), pa.scalar(2.0), "give an int"),
        (pa.int64(), True, "give an int"),
        (pa.int64(), NOON, "give an int"),
        (pa.int64(), 2**63, "int64"),
        (SECONDS, 5, "give a datetime without a zone"),
        (SECONDS, NOON.replace(tzinfo=UTC), "give a datetime without a zone"),
        (SECONDS, NOON.replace(microsecond=5), "round it"),
        (SECONDS, np.datetime64(2500, "ms"), "round it"),
        (SECONDS, pa.scalar(2, pa.timestamp("ms")), "round it"),
        (SECONDS, pd.NaT, "missing"),
        (SECONDS, pa.scalar(None, SECONDS), "missing"),
        (SECONDS, np.datetime64(2, "Y"), "cast"),
        (SECONDS, np.datetime64(2**62, "W"), "int64"),
        (ZONED, NOON, "give a datetime with a zone"),
        (pa.date32(), NOON, "round it"),
        (pa.duration("s"), 5, "give a timedelta"),
        (pa.duration("s"), timedelta(microseconds=1), "round it"),
    ],
)
def test_times_of_another_kind_than_the_stream(kind, time, way_out):
    keyed = counted(kind)
    for call in (keyed.advance, keyed.evict_idle):
        with pytest.raises(sw.SpecError, match=way_out):
            call(time)
    assert keyed.watermark is None
    assert len(keyed) == 1


SUMS = {"on": "t", "by": "k", "windows": 5, "aggs": {"s": sw.sum("x")}}


def test_a_watermark_before_all_times():
    keyed = sw.KeyedWindows(**SUMS, late=5)
    keyed.ingest(rows([-(2**63) + 2]))
    keyed.advance()
    assert keyed.watermark is None
    assert keyed.keys().to_pydict() == {"k": ["a"], "t": [-(2**63) + 2]}
    keyed.ingest(rows([-(2**63), 7]))
    keyed.advance()
    assert keyed.watermark == 2
    assert keyed.collect()["s_5"].to_pylist() == [1.0, 2.0]


def test_a_watermark_beyond_datetimes():
    keyed = counted(SECONDS, 10**15)
    keyed.advance()
    with pytest.raises(sw.SpecError, match="tick 1000000000000000 of column"):
        _ = keyed.watermark
    later = pa.scalar(2 * 10**15, pa.int64()).cast(SECONDS)
    with pytest.raises(sw.SpecError, match=r"evict_idle\(tick 2000000000000000\) is"):
        keyed.evict_idle(later)


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
@pytest.mark.parametrize("first", [-(2**63), 2**63 - 12])
def test_times_at_the_ends_of_int64(emit, first):
    aggs = {"n": sw.count(), "s": sw.sum("x")}
    windows = [10, 2**63 - 1, sw.rows(2)]
    times = [first + at for at in (0, 1, 3, 10, 11)]
    keyed = sw.KeyedWindows(on="t", by="k", windows=windows, aggs=aggs, emit=emit)
    for time in times:
        keyed.ingest(rows([time]))
        keyed.advance(max(time - 1, -(2**63)))
    keyed.advance(2**63 - 1)
    expected = sw.rolling(rows(times), on="t", by="k", windows=windows, aggs=aggs)
    got = keyed.collect().select(expected.column_names[3:])
    assert got.equals(expected.select(got.column_names))


def test_sessions_of_deleted_rows_are_closed():
    keyed = sw.KeyedWindows(
        on="t", by="k", window=sw.session(5), aggs={"n": sw.count()}, deletes="x"
    )
    keyed.ingest(pa.table({"t": [1], "k": ["a"], "x": [False]}))
    keyed.ingest(pa.table({"t": [1], "k": ["a"], "x": [True]}))
    keyed.advance(50)
    keyed.ingest(pa.table({"t": [60], "k": ["a"], "x": [False]}))
    keyed.advance(99)
    assert keyed.collect().select(["window_start", "n"]).to_pylist() == [
        {"window_start": 60, "n": 1}
    ]


def test_sessions_of_evicted_keys_are_dropped():
    keyed = sw.KeyedWindows(
        on="t", by="k", window=sw.session(5), aggs={"n": sw.count()}
    )
    keyed.ingest(pa.table({"t": [1], "k": ["a"]}))
    keyed.advance(2)
    assert keyed.evict_idle(2) == 1
    keyed.advance(50)
    assert keyed.collect().num_rows == 0


def test_rows_that_wait_for_answers_are_not_evicted():
    keyed = sw.KeyedWindows(**SUMS, late=50)
    keyed.ingest(rows([1]))
    with pytest.raises(sw.SpecError, match=r"evict_idle\(5\) is later than the water"):
        keyed.evict_idle(5)
    keyed.advance(100)
    assert keyed.evict_idle(100) == 0
    assert keyed.collect()["s_5"].to_pylist() == [1.0]


def test_then_by_columns_are_not_keys():
    """Empty windows and evicted keys go by the key columns only."""
    keyed = sw.KeyedWindows(
        on="t", by="k", window=2, empty=True, then_by="x", aggs={"l": sw.last("x")}
    )
    keyed.ingest(rows([1, 1, 7], values=[2.0, 1.0, 3.0]))
    keyed.advance(20)
    answers = keyed.collect().sort_by("window_end")
    assert answers["l"].to_pylist() == [2.0, None, None, 3.0]
    keyed.evict_idle(20)
    assert len(keyed) == 0
