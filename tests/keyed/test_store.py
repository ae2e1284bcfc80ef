"""The native store of keys, from Python: types of keys, numbers of rows."""

import datetime as dt
import decimal
import math

import pyarrow as pa
import pytest

from slidewise import _core
from slidewise.aggregations.call import Call
from slidewise.keyed.grid import Grid
from slidewise.keyed.index import Entries
from slidewise.spec.windows.base import Span

SUM = Call("sum", 0, number=1)
NONE = pa.array([], pa.int64())
DAY = dt.date(2026, 1, 2)
NOON = dt.datetime(2026, 1, 2, 12, 30)

# Values of each type that a key column may have.
KEYS = [
    pa.array([None, None], pa.null()),
    pa.array([True, None, False]),
    *(pa.array([1, None, 0, 7], kind) for kind in (pa.int8(), pa.uint16(), pa.int32())),
    pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
    pa.array([2**64 - 1, None], pa.uint64()),
    pa.array([1.5, None, 0.0, math.inf], pa.float16()),
    pa.array([1.1, None, 0.0, -math.inf], pa.float32()),
    pa.array([1.1, None, 0.0, -math.inf], pa.float64()),
    *(
        pa.array(["", None, "é", "long " * 50], kind)
        for kind in (pa.string(), pa.large_string())
    ),
    *(
        pa.array([b"", None, b"\0\xff"], kind)
        for kind in (pa.binary(), pa.large_binary())
    ),
    pa.array([b"abc", None, b"\0\0\0"], pa.binary(3)),
    pa.array([DAY, None], pa.date32()),
    pa.array([DAY, None], pa.date64()),
    pa.array([NOON.time(), None], pa.time32("s")),
    pa.array([NOON.time(), None], pa.time64("us")),
    pa.array([NOON, None], pa.timestamp("ns")),
    pa.array([NOON, None], pa.timestamp("us", "Europe/Berlin")),
    pa.array([dt.timedelta(1), None], pa.duration("ms")),
    pa.array([decimal.Decimal("1.25"), None], pa.decimal128(9, 2)),
    pa.array([decimal.Decimal("-1.25"), None], pa.decimal256(50, 2)),
    pa.array([pa.MonthDayNano([1, 2, 3]), None], pa.month_day_nano_interval()),
]


def store_of(*keys: pa.Array, numbered: bool = True) -> _core.KeyedStore:
    empty = [column.slice(0, 0) for column in keys]
    return _core.KeyedStore([SUM], empty, [NONE], [], numbered)


def ints(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


@pytest.mark.parametrize("column", KEYS, ids=lambda column: str(column.type))
def test_keys_come_back_in_their_types(column: pa.Array) -> None:
    if pa.types.is_null(column.type):
        column = column.slice(0, 1)
    # A slice, whose buffers begin elsewhere.
    column = pa.concat_arrays([column, column]).slice(len(column))
    other = ints(*range(len(column)))
    store = store_of(column, other)
    times = ints(*(10 + at for at in range(len(column))))
    store.insert([column, other], times, [times], times)
    (found, others), lasts = store.keys()
    assert pa.array(found).type == column.type
    assert pa.array(found).to_pylist() == column.to_pylist()
    assert pa.array(others) == other
    assert pa.array(lasts) == times
    assert pa.array(store.last_times([pa.array(found), pa.array(others)])) == times


def test_zeros_and_nans_are_one_key() -> None:
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        column = pa.array([-0.0, math.nan, 0.0, -math.nan], kind)
        store = store_of(column)
        store.insert([column], ints(1, 2, 3, 4), [ints(1, 1, 1, 1)], ints(0, 1, 2, 3))
        (found,), lasts = store.keys()
        zero, nan = pa.array(found).to_pylist()
        assert pa.array(found).type == kind
        assert math.copysign(1, zero) == 1
        assert math.isnan(nan)
        assert pa.array(lasts) == ints(3, 4)


def test_distinct_keys_have_their_first_row_and_latest_time() -> None:
    text, zeros = pa.array(["b", "a", "b", None, "b"]), pa.array([0.0, 1, -0.0, 1, 2])
    firsts, latest = _core.distinct_keys([text, zeros], ints(7, 1, 9, 4, 5))
    assert pa.array(firsts).to_pylist() == [0, 1, 3, 4]
    assert pa.array(latest) == ints(9, 1, 4, 5)
    firsts, latest = _core.distinct_keys([], ints(3, 8))
    assert (pa.array(firsts).to_pylist(), pa.array(latest)) == ([0], ints(8))


def test_a_store_without_key_columns_has_one_key() -> None:
    store = store_of()
    assert pa.array(store.last_times([])).to_pylist() == [None]
    store.insert([], ints(5, 3), [ints(1, 2)], ints(0, 1))
    columns, lasts = store.keys()
    assert columns == []
    assert pa.array(lasts) == ints(5)
    assert pa.array(store.last_times([])) == ints(5)
    columns, ends = store.windows(Grid(2, 1, 0), None, 100)
    assert columns == []
    assert pa.array(ends) == ints(4, 5, 6, 7)


def test_entries_are_removed_and_inserted_in_one_step() -> None:
    key = pa.array(["a", "a", "b"])
    store = store_of(key)
    assert store.insert([key], ints(1, 1, 2), [ints(1, 2, 4)], ints(10, 11, 12)) == 2
    row = pa.array(["a"])
    removed = Entries([pa.array(["a", "b", "c"])], ints(1, 2, 2), ints(10, 12, 12))
    assert store.insert([row], ints(1), [ints(8)], ints(13), removed) == 2
    assert len(store) == 1
    points, numbers = store.rows([pa.array(["b", "a"])], ints(0, 1), ints(9, 1))
    assert pa.array(points) == pa.array([1, 1], pa.uint32())
    assert pa.array(numbers) == ints(11, 13)
    held = store.holds([pa.array(["a", "a", "b"])], ints(1, 1, 2), ints(11, 10, 12))
    assert pa.array(held).to_pylist() == [True, False, False]
    answers, _ = store.query([row], ints(5), [Span("time", 10, "right")], None)
    assert pa.array(answers[0][0]) == ints(10)
    store.check_invariants()


def test_a_store_may_hold_only_numbers() -> None:
    key = pa.array(["a"])
    store = _core.KeyedStore([], [key.slice(0, 0)], [], [], True)
    numbers = ints(*range(2000))
    keys = pa.array(["a"] * 2000)
    store.insert([keys], numbers, [], numbers)
    _, found = store.rows([key], ints(100), ints(103))
    assert pa.array(found) == ints(100, 101, 102, 103)
    assert store.nbytes < 2000 * 20 + 2**17


def test_sessions_are_removed_once_they_are_closed() -> None:
    key = pa.array(["a", "a", "a", "b"])
    store = store_of(key)
    store.insert([key], ints(1, 4, 10, 8), [ints(1, 1, 1, 1)], ints(0, 1, 2, 3))
    bound = store.next_session(3)
    assert bound is not None
    assert bound <= 4
    assert pa.array(store.sessions(3, 3)) == NONE
    assert pa.array(store.sessions(3, 4)) == ints(0, 1)
    assert sorted(pa.array(store.sessions(3, 10)).to_pylist()) == [2, 3]
    assert len(store) == 0
    assert store.next_session(3) is None


def test_windows_come_with_their_keys() -> None:
    key = pa.array(["b", "a", "b"])
    store = store_of(key)
    store.insert([key], ints(1, 2, 11), [ints(1, 1, 1)], ints(0, 1, 2))
    (keys,), ends = store.windows(Grid(10, 5, 0), None, 20)
    assert pa.array(ends) == ints(5, 5, 10, 10, 15, 20)
    assert pa.array(keys).to_pylist() == ["a", "b", "a", "b", "b", "b"]
    assert store.next_window(Grid(10, 5, 0), 10) == 15
    assert store.next_window(Grid(10, 5, 0), 20) is None
    largest = 2**63 - 1
    store.insert([pa.array(["c"])], ints(largest), [ints(1)], ints(3))
    (_,), ends = store.windows(Grid(10, 5, 0), 20, largest)
    assert pa.array(ends) == NONE


def test_rows_of_equal_arrival_see_one_another() -> None:
    key = pa.array(["a"] * 4)
    store = store_of(key)
    store.insert([key.slice(3)], ints(1), [ints(1)], ints(0))
    (answers, _), keys = store.insert_answering(
        [key],
        ints(5, 4, 3, 5),
        [ints(10, 100, 1000, 10_000)],
        ints(0, 1, 0, 1),
        [Span("time", 9, "right")],
        ints(1, 2, 3, 4),
    )
    assert pa.array(answers[0][0]) == ints(1011, 1101, 1001, 11_111)
    assert keys == 1


def test_evict_keeps_the_last_entries_of_each_key() -> None:
    store = store_of(pa.array(["a"]))
    times = ints(*range(1000))
    for at in (0, 500):
        part = times.slice(at, 500)
        store.insert([pa.array(["a"] * 500)], part, [part], part)
        assert store.evict(2000, 300) == 0
    key = [pa.array(["a"])]
    _, found = store.rows(key, ints(0), ints(2000))
    numbers = pa.array(found)
    assert 300 <= len(numbers) < 600
    assert numbers == times.slice(1000 - len(numbers))
    assert store.drop_idle(998) == 0
    assert store.drop_idle(999) == 1
    assert len(store) == 0


def test_rows_need_the_numbers_that_the_store_has() -> None:
    key = pa.array(["a"])
    with pytest.raises(ValueError, match="rows without numbers"):
        store_of(key).insert([key], ints(1), [ints(1)])
    plain = store_of(key, numbered=False)
    with pytest.raises(ValueError, match="without numbers of rows"):
        plain.insert([key], ints(1), [ints(1)], ints(1))
    with pytest.raises(ValueError, match="without numbers of rows"):
        plain.rows([key], ints(1), ints(1))
    with pytest.raises(ValueError, match="differ in length"):
        store_of(key).insert([key], ints(1), [ints(1)], ints(1, 2))
