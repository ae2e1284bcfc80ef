"""What hunts for bugs found in `KeyedWindows`: none of it comes back."""

import json
import random
import struct
import zlib
from copy import copy
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw

SUMS = {"on": "t", "by": "k", "windows": 5, "aggs": {"s": sw.sum("x")}}
NAN = float("nan")


def rows(times, keys="a", values=1.0):
    """A batch with one key and one value throughout, or those given."""
    keys = [keys] * len(times) if isinstance(keys, str) else keys
    values = values if isinstance(values, list) else [values] * len(times)
    return pa.table({"t": times, "k": keys, "x": values})


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
@pytest.mark.parametrize("late_rows", ["drop", "correct"])
def test_nan_is_refused_where_it_arrives(emit, late_rows):
    keyed = sw.KeyedWindows(**SUMS, nan="raise", emit=emit, late_rows=late_rows)
    keyed.ingest(rows([1]))
    with pytest.raises(sw.SpecError, match="column 'x' is NaN in row 1 "):
        keyed.ingest(rows([20, 3, 4], values=[1.0, NAN, 3.0]))
    keyed.ingest(rows([2, 40]))
    keyed.advance()
    expected = [1.0, 1.0] if emit == "update" else [1.0, 2.0, 1.0]
    assert keyed.collect()["s_5"].to_pylist() == expected
    assert keyed.watermark == 40


def test_nan_in_a_late_row_or_a_deletion_takes_no_part():
    keyed = sw.KeyedWindows(**SUMS, nan="raise", deletes="gone")
    gone = pa.array([False, False])
    keyed.ingest(rows([1, 9]).append_column("gone", gone))
    keyed.advance(5)
    batch = rows([3, 9, 9, 8], values=[NAN, NAN, 1.0, NAN])
    gone = pa.array([False, True, False, False])
    with pytest.raises(sw.SpecError, match="NaN in row 3 "):
        keyed.ingest(batch.append_column("gone", gone))
    keyed.ingest(batch.slice(0, 3).append_column("gone", gone.slice(0, 3)))
    keyed.advance(10)
    assert keyed.collect()["t"].to_pylist() == [1, 9]
    assert keyed.late_count == 1


def counted(kind, first=0, rows=False):
    """Windows over times of a type, or of rows, with one row."""
    window = 5 if pa.types.is_integer(kind) else "1d"
    window = sw.rows(5) if rows else window
    keyed = sw.KeyedWindows(on="t", windows=window, aggs={"n": sw.count()})
    keyed.ingest(pa.table({"t": pa.array([first], kind)}))
    return keyed


SECONDS, ZONED = pa.timestamp("s"), pa.timestamp("s", "Europe/Berlin")
NOON = datetime(2024, 3, 1, 12)


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
def test_times_that_are_none_of_the_stream(kind, time, way_out):
    keyed = counted(kind)
    for call in (keyed.advance, keyed.evict_idle):
        with pytest.raises(sw.SpecError, match=way_out):
            call(time)
    assert keyed.watermark is None
    assert len(keyed) == 1


@pytest.mark.parametrize("times", [[1.0], [True], ["1"]])
def test_at_takes_times_of_the_kind_of_the_table(times):
    table = pa.table({"t": [1, 2]})
    with pytest.raises(sw.SpecError, match="cast one of them"):
        sw.rolling(
            table, on="t", windows=5, aggs={"n": sw.count()}, at=pa.table({"t": times})
        )


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
    with pytest.raises(sw.SpecError, match="1000000000000000 is a tick beyond"):
        _ = keyed.watermark


def test_a_first_batch_that_failed_decides_nothing():
    keyed = sw.KeyedWindows(**SUMS, emit="arrival")
    with pytest.raises(sw.ResultOverflowError, match="of the row of k='a', t=2:"):
        keyed.ingest(rows([1, 2], values=[2**63 - 1, 5]))
    keyed.ingest(rows([1, 2], keys=[7, 7]))
    assert keyed.collect()["s_5"].to_pylist() == [1.0, 2.0]


def snapshots():
    """Specs and their snapshots: kept rows, waiting rows, ends of windows, slots."""
    hops = {"on": "t", "by": "k", "window": 9, "every": 5, "empty": True}
    for request, count, options in [
        (SUMS, 50, {"late": 2}),
        ({**SUMS, "aggs": {"c": sw.collect("x")}}, 50, {"emit": "update", "late": 2}),
        ({**hops, "aggs": {"n": sw.count()}}, 50, {}),
        ({**SUMS, "windows": 1000}, 9000, {"emit": "arrival"}),
    ]:
        keyed = sw.KeyedWindows(**request, **options)
        keyed.ingest(rows(list(range(count)), [str(at % 999) for at in range(count)]))
        keyed.advance(count // 2)
        keyed.collect()
        yield request, keyed.to_bytes()


def test_damage_that_a_checksum_does_not_tell():
    chance, refused, known = random.Random(5), 0, list(snapshots())
    for _ in range(1200):
        request, blob = chance.choice(known)
        (length,) = struct.unpack_from("<Q", blob, 16)
        head = json.loads(blob[24 : 24 + length])
        damaged = bytearray(blob)
        for _ in range(chance.choice([1, 2])):
            end = chance.choice([len(blob), 24 + length + head["directory"]])
            damaged[chance.randrange(16, end)] ^= 1 << chance.randrange(8)
        damaged[8:16] = struct.pack("<Q", zlib.crc32(bytes(damaged[16:])))
        try:
            keyed = sw.KeyedWindows.from_bytes(bytes(damaged), **request)
            keyed.check()
            keyed.ingest(rows([9060]))
            keyed.advance()
        except sw.SnapshotError:
            refused += 1
        except sw.SpecError:  # the columns have other names or types now
            continue
    assert refused > 1000


def test_changes_come_in_their_order():
    keyed, blobs = sw.KeyedWindows(**SUMS, emit="update"), []
    for at in range(4):
        keyed.ingest(rows([at]))
        keyed.collect()
        blobs.append(keyed.changes() if at != 1 else keyed.to_bytes())
    first, whole, *changes = blobs

    def restored(blob, *changes):
        found = sw.KeyedWindows.from_bytes(memoryview(blob), changes=changes, **SUMS)
        return found.keys()["t"].to_pylist()

    assert restored(first) == [0]
    assert restored(whole, *changes) == restored(first, whole, *changes) == [3]
    with pytest.raises(sw.SnapshotError, match=r"changes\[0\] does not follow"):
        restored(whole, *reversed(changes))
    with pytest.raises(sw.SnapshotError, match=r"changes\[1\] does not follow"):
        restored(whole, changes[0], changes[0])
    with pytest.raises(sw.SnapshotError, match="does not follow"):
        restored(first, *changes)
    with pytest.raises(sw.SnapshotError, match="give what to_bytes"):
        restored(changes[0])
    # The restored windows go on with the chain.
    other = sw.KeyedWindows.from_bytes(whole, changes=changes, **SUMS)
    other.ingest(rows([4]))
    other.collect()
    assert restored(whole, *changes, other.changes()) == [4]


def test_bytes_of_others_name_who_reads_them():
    shared = sw.SharedWindow(sw.sum(), ranges=[3]).to_bytes()
    window = sw.Window(sw.sum()).to_bytes()
    keyed = sw.KeyedWindows(**SUMS)
    keyed.ingest(rows([1]))
    blob = keyed.to_bytes()
    for read, given, names in [
        (sw.Window.from_bytes, shared, "SharedWindow.from_bytes"),
        (sw.SharedWindow.from_bytes, window, r"\bWindow.from_bytes"),
        (sw.Window.from_bytes, blob, "KeyedWindows.from_bytes"),
        (sw.SharedWindow.from_bytes, blob, "KeyedWindows.from_bytes"),
    ]:
        with pytest.raises(sw.SnapshotError, match=names):
            read(given)
    with pytest.raises(sw.SnapshotError, match=r"\bWindow.from_bytes"):
        sw.KeyedWindows.from_bytes(window, **SUMS)
    with pytest.raises(sw.SnapshotError, match="takes bytes, got str"):
        sw.KeyedWindows.from_bytes("abc", **SUMS)


@pytest.mark.parametrize(
    ("spec", "request_", "error", "message"),
    [
        (None, {**SUMS, "foo": 1}, TypeError, r"KeyedWindows\(\) .* 'foo'"),
        (None, {**SUMS, "tie": 1}, TypeError, "did you mean ties="),
        (None, {**SUMS, "window": 5}, sw.SpecError, "not both"),
        (sw.sum(), {}, sw.SpecError, "takes a Spec or the keywords"),
    ],
)
def test_a_request_that_is_none(spec, request_, error, message):
    with pytest.raises(error, match=message):
        sw.KeyedWindows(spec, **request_)
    with pytest.raises(error, match=message.replace("KeyedWindows", r"from_bytes")):
        sw.KeyedWindows.from_bytes(b"", spec, **request_)


def test_a_number_for_a_window_over_timestamps():
    keyed = sw.KeyedWindows(**SUMS)
    with pytest.raises(
        sw.SpecError, match=r"windows=5 is a bare number.*windows=rows\(5\)"
    ):
        keyed.ingest(rows([NOON]))


def test_nan_in_history_is_refused_where_it_comes_in():
    spec = {"on": "t", "windows": 5, "aggs": {"s": sw.sum("x")}, "nan": "raise"}
    keyed = sw.KeyedWindows(**spec, emit="arrival")
    keyed.ingest(pa.table({"t": [1], "x": [1.0]}))
    rows = pa.table({"t": [1], "x": [float("nan")]})
    with pytest.raises(sw.SpecError, match="NaN in row 0"):
        keyed._shard.load(rows)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([date(2024, 5, 1), None, date(1, 1, 1)]),
        pa.array([Decimal("1.50"), None, Decimal("-1.50")]),
        pa.array([Decimal("1.50"), None, Decimal(2)], pa.decimal256(40, 2)),
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array([b"a", None, b"b"], pa.binary_view()),
    ],
    ids=lambda keys: str(keys.type),
)
def test_keys_of_all_types_that_tables_take(keys):
    table = pa.table({"t": [1, 2, 3], "k": keys, "x": [1, 2, 3]})
    keyed = sw.KeyedWindows(**SUMS)
    for _ in range(2):
        keyed.ingest(table)
    keyed = sw.KeyedWindows.from_bytes(keyed.to_bytes(), **SUMS)
    keyed.advance(9)
    got = keyed.collect()
    assert got["s_5"].to_pylist() == [2, 2, 4, 4, 6, 6]
    assert got["k"].unique().to_pylist() == keys.to_pylist()


def test_snapshots_of_another_format_say_so():
    keyed = sw.KeyedWindows(**SUMS)
    keyed.ingest(rows([1]))
    blob = keyed.to_bytes()
    for number in b"1379":
        other = blob[:7] + bytes([number]) + blob[8:]
        with pytest.raises(sw.SnapshotError, match=rf"in format {chr(number)}, .* 2:"):
            sw.KeyedWindows.from_bytes(other, **SUMS)


@pytest.mark.parametrize("window", [{"window": 10}, {"window": sw.session(5)}])
def test_windows_that_overflow_are_named(window):
    end = 60 if window["window"] == 10 else 51
    request = {"on": "t", "by": "k", "aggs": {"s": sw.sum("x")}, **window}
    keyed = sw.KeyedWindows(**request)
    table = rows([0, 50, 51], keys=["a", "b", "b"], values=[1, 2**62, 2**62])
    keyed.ingest(table)
    message = f"of k='b', window_end={end}: "
    with pytest.raises(sw.ResultOverflowError, match=message):
        keyed.advance(100)
    with pytest.raises(sw.ResultOverflowError, match=message):
        sw.hopping(table, **request)


def interrupted_at(keyed, nth):
    """Makes the n-th page of the next commit raise what Ctrl-C does."""
    put, left = keyed._store.put, [nth]

    def stops(page, blob):
        left[0] -= 1
        if left[0] == 0:
            keyed._store.put = put
            raise KeyboardInterrupt
        put(page, blob)

    keyed._store.put = stops


@pytest.mark.parametrize("emit", ["final", "arrival", "update"])
@pytest.mark.parametrize("nth", [1, 2, 7])
def test_an_interrupted_commit_takes_nothing_in(emit, nth):
    """Neither rows nor answers, late ones nor the watermark."""
    chance = random.Random(nth)
    keyed, whole = (
        sw.KeyedWindows(**SUMS, emit=emit, late=3, then_by="x") for _ in range(2)
    )
    for step in range(4):
        times = [chance.randrange(10 * step, 10 * step + 20) for _ in range(3_000)]
        batch = rows(times, [str(time % 700) for time in times])
        interrupted_at(keyed, nth)
        try:
            keyed.ingest(batch)
        except KeyboardInterrupt:
            if step:
                assert keyed.collect().num_rows == 0
            keyed.ingest(batch)
        interrupted_at(keyed, nth)
        try:
            keyed.advance()
        except KeyboardInterrupt:
            assert keyed.watermark == whole.watermark
            keyed.advance()
        vars(keyed._store).pop("put", None)
        whole.ingest(batch)
        whole.advance()
        keyed.check()
        assert keyed.collect().equals(whole.collect())
        assert keyed.late_count == whole.late_count
    restored = sw.KeyedWindows.from_bytes(keyed.to_bytes(), **SUMS)
    assert restored.keys().num_rows == whole.keys().num_rows


def test_a_copy_goes_on_by_itself():
    keyed = sw.KeyedWindows(**SUMS)
    keyed.ingest(rows([1]))
    other = copy(keyed)
    other.ingest(rows([2], values=100.0))
    for one, expected in ((keyed, [1.0]), (other, [1.0, 101.0])):
        one.advance(9)
        assert one.collect()["s_5"].to_pylist() == expected


def test_sessions_of_deleted_rows_are_over():
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


def test_sessions_of_forgotten_keys_are_over():
    keyed = sw.KeyedWindows(
        on="t", by="k", window=sw.session(5), aggs={"n": sw.count()}
    )
    keyed.ingest(pa.table({"t": [1], "k": ["a"]}))
    keyed.advance(2)
    assert keyed.evict_idle(2) == 1
    keyed.advance(50)
    assert keyed.collect().num_rows == 0


def test_what_breaks_ties_is_in_no_table_of_keys():
    """Neither where windows are empty, nor where keys are forgotten."""
    keyed = sw.KeyedWindows(
        on="t", by="k", window=2, empty=True, then_by="x", aggs={"l": sw.last("x")}
    )
    keyed.ingest(rows([1, 1, 7], values=[2.0, 1.0, 3.0]))
    keyed.advance(20)
    answers = keyed.collect().sort_by("window_end")
    assert answers["l"].to_pylist() == [2.0, None, None, 3.0]
    keyed.evict_idle(20)
    assert len(keyed) == 0


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


def test_rows_that_wait_for_answers_are_not_forgotten():
    keyed = sw.KeyedWindows(**SUMS, late=50)
    keyed.ingest(rows([1]))
    with pytest.raises(sw.SpecError, match=r"evict_idle\(5\) reaches beyond the water"):
        keyed.evict_idle(5)
    keyed.advance(100)
    assert keyed.evict_idle(100) == 0
    assert keyed.collect()["s_5"].to_pylist() == [1.0]


def test_keys_may_be_times_of_day():
    for kind in (pa.time32("s"), pa.time32("ms")):
        keyed = sw.KeyedWindows(**SUMS)
        keys = pa.array([1, 2, 1], pa.int32()).cast(kind)
        keyed.ingest(pa.table({"t": [1, 2, 3], "k": keys, "x": [1.0, 2.0, 3.0]}))
        keyed.advance(9)
        assert keyed.collect()["s_5"].to_pylist() == [1.0, 2.0, 4.0]


def test_arguments_that_name_no_column():
    for wrong in (3, [3]):
        with pytest.raises(sw.SpecError, match="then_by="):
            sw.KeyedWindows(**SUMS, then_by=wrong)
    assert sw.KeyedWindows(**SUMS, then_by=None) is not None
    with pytest.raises(sw.SpecError, match="deletes="):
        sw.KeyedWindows(**SUMS, deletes=3)


def test_a_column_named_like_the_flag_is_refused():
    keyed = sw.KeyedWindows(**SUMS, late_rows="flag")
    batch = rows([1]).append_column("_late", pa.array([True]))
    with pytest.raises(sw.SpecError, match="'_late' is taken by late_rows='flag'"):
        keyed.ingest(batch)


def test_categories_with_an_order_are_refused():
    """Pages keep their values alone; what compares none of them goes on."""
    ordered = pa.DictionaryArray.from_arrays([0, 1], ["small", "large"], ordered=True)
    batch = pa.table({"t": [1, 2], "x": ordered})
    for agg in (sw.max("x"), sw.top_k("x", 1), sw.arg_min("t", by="x")):
        keyed = sw.KeyedWindows(on="t", windows=5, aggs={"m": agg})
        with pytest.raises(sw.SpecError, match="an order of their own"):
            keyed.ingest(batch)
    aggs = {"last": sw.last("x"), "best": sw.arg_max("x", by="t")}
    keyed = sw.KeyedWindows(on="t", windows=5, aggs=aggs)
    keyed.ingest(batch)
    keyed.advance()
    answers = keyed.collect()
    for name in ("last_5", "best_5"):
        assert answers[name].to_pylist() == ["small", "large"]
