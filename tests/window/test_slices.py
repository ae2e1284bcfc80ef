"""Windows with queries that keep slices in place of entries."""

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from shared_windows import START

import slidewise as sw

MINUTE = [sw.Query(60_000, every=1_000)]


def window(agg=None, queries=MINUTE, **options):
    agg = sw.sum() if agg is None else agg
    return sw.SharedWindow(agg, queries=queries, keep="slices", **options)


def due_of(w, times, values):
    table = pa.concat_tables(
        w.insert_many(times[at : at + 1_500], values[at : at + 1_500])
        for at in range(0, len(times), 1_500)
    )
    last = [
        dict(zip(table.column_names, due, strict=True)) for due in w.advance(60_000)
    ]
    w.check()
    return table.to_pylist() + last


# A partial of a mean has a sum of 128 bits and a count.
@pytest.mark.parametrize("late", [None, 5_000])
@pytest.mark.parametrize(
    ("agg", "most"), [(sw.sum(), 8_192), (sw.max(), 8_192), (sw.mean(), 24_576)]
)
def test_the_space_is_that_of_the_slices(agg, most, late):
    slices = window(agg, late=late)
    entries = sw.SharedWindow(agg, queries=MINUTE, late=late)
    times = np.arange(60_000)
    if late is not None:  # of two blocks of 2000, the second comes first
        times = times.reshape(-1, 2, 2_000)[:, ::-1].ravel()
    values = times * 7919 % 1009
    due = due_of(slices, times, values)
    assert due == due_of(entries, times, values)
    assert [answer["end"] for answer in due] == [*range(0, 60_001, 1_000)]
    assert len(slices) <= 60
    assert slices.nbytes <= most
    assert entries.nbytes > 1_000_000


def test_late_entries_join_their_slice():
    w = window(queries=[sw.Query(20, every=10)], late=15)
    w.insert_many([1, 12, 25], [1, 2, 4])
    assert [*w.items()] == [(1, 1), (11, 2), (21, 4)]
    assert w.insert(13, 8) == []
    assert [*w.items()] == [(1, 1), (11, 10), (21, 4)]
    assert len(w) == 3
    assert w.oldest == 1
    assert w.youngest == 25
    assert repr(w).endswith("over 20 every 10: 3 slices; no answer>")
    assert w.insert(47, 16) == [(0, 10, 1), (0, 20, 11), (0, 30, 14)]
    assert [*w.items()] == [(11, 10), (21, 4), (41, 16)]
    assert (w.evict(), w.evict()) == (11, 21)
    assert w.advance(60) == [(0, 50, 16), (0, 60, 16)]


def test_ends_within_slices_of_cutty_are_edges():
    w = window(queries=[sw.Query(5, every=3)], late=4)
    assert "2 edges as by Pairs (Panes 3, Cutty 1)" in " ".join(w.explain().split())
    assert "slices are kept in place of entries" in w.explain()
    assert w.insert_many([1, 2, 3, 4, 5, 6], [1, 2, 4, 8, 16, 32]).num_rows == 0
    assert w.insert(3, 64) == []
    assert w.insert(8, 0) == [(0, 3, 71)]
    assert w.advance(9) == [(0, 6, 126), (0, 9, 48)]


def test_queries_between_slices_are_answered():
    w = window(queries=[sw.Query(20, every=10), sw.Query(40, every=20)])
    w.insert_many([1, 12, 25], [1, 2, 4])
    with pytest.raises(
        sw.SpecError, match=r"Query\(20, every=10\) now begins at 5, wi"
    ):
        w.query()
    assert w.advance(30) == [(0, 30, 6)]
    assert w.query() == [6, 7]
    assert w.insert(31, 0) == []
    with pytest.raises(sw.SpecError, match="25 is within a slice, and keep='slices'"):
        w.evict_until(25)
    assert w.evict_until(20) == 2
    assert w.evict_until(99) == 2


def test_queries_that_need_finer_slices_are_refused():
    w = window(queries=[sw.Query(20, every=10)])
    assert w.add(sw.Query(7, every=7)) == 1  # before the first entry
    w.insert_many([1, 12, 25], [1, 2, 4])
    w.drop(1)
    for query in (sw.Query(7, every=7), sw.Query(30, every=10), sw.Query(5, every=10)):
        with pytest.raises(
            sw.SpecError, match="begins or ends within slices, or is long"
        ):
            w.add(query)
    assert w.add(sw.Query(10, every=20)) == 2
    assert w.queries == [sw.Query(20, every=10), None, sw.Query(10, every=20)]
    assert w.advance(40) == [(0, 30, 6), (0, 40, 4)]


def test_slices_that_entries_of_a_dropped_query_cut_stay_in_order():
    w = window(sw.collect(), [sw.Query(20, every=10), sw.Query(3, every=3)])
    assert w.insert_many([1, 14, 16], "abc").to_pylist()[-1]["end"] == 15
    w.drop(1)
    assert w.insert(17, "d") == []
    assert w.insert(31, "e") == [(0, 20, [*"abcd"]), (0, 30, [*"bcd"])]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"queries": [sw.Query(sw.rows(3), every=sw.rows(1))]},
            "needs entries, but keep=",
        ),
        (
            {"queries": [sw.Query(5, every=sw.rows(1))]},
            "needs entries, but keep='slices'",
        ),
        (
            {"queries": [sw.Query(sw.session(5))]},
            "needs entries, but keep='slices' keeps",
        ),
        (
            {"agg": sw.first(), "late": 5},
            r"order of values matters to first\(\): leave",
        ),
        (
            {"late": 5, "dtype": "object"},
            r"order of values matters to sum\(\): leave out",
        ),
    ],
)
def test_what_needs_entries_is_refused(options, message):
    with pytest.raises(sw.SpecError, match=message):
        window(**options)


def test_keep_is_a_word_and_for_queries():
    with pytest.raises(
        sw.SpecError, match="keep= is one of entries, slices; got 'rows'"
    ):
        sw.SharedWindow(sw.sum(), queries=MINUTE, keep="rows")
    with pytest.raises(sw.SpecError, match="keep= is for queries="):
        sw.SharedWindow(sw.sum(), [2], keep="slices")


@pytest.mark.parametrize("value", [2.5, "text"])
def test_types_may_come_late(value):
    w = window(sw.collect(), [sw.Query(20, every=10)])
    for time in (1, 2, 12, 13):
        w.insert(time, None)
    w.check()
    w.insert(14, value)
    w.check()
    again = sw.SharedWindow.from_bytes(w.to_bytes())
    assert again.advance(30) == w.advance(30) == [(0, 20, [value]), (0, 30, [value])]


def test_counted_rows_of_open_types_leave_with_their_slice():
    w = window({"n": sw.count(), "x": sw.sum("x")}, [sw.Query(20, every=10)])
    for time in (1, 2, 12, 13):
        w.insert(time, {"x": None})
    assert w.evict() == 1
    w.check()
    w.insert(14, {"x": 0.5})
    assert w.advance(20) == [(0, 20, {"n": 3, "x": 0.5})]


def test_the_last_times_of_a_calendar_have_slices():
    w = window(queries=[sw.Query("1h", every="1h")])
    last = datetime(9999, 12, 31, 23, 59)
    assert w.insert(last - timedelta(hours=2), 1) == []
    assert w.insert(last, 2)[0][2] == 1
    again = sw.SharedWindow.from_bytes(w.to_bytes())
    assert again.oldest == datetime(9999, 12, 31, 23, 0, 0, 1)
    assert again.youngest == last


def test_a_window_without_entries_is_answered_from_the_first_on():
    w = window(sw.count(), [sw.Query("10m", every="10m")], empty=True)
    assert w.insert(START + timedelta(minutes=5)) == []
    due = w.advance(START + timedelta(minutes=30))
    assert [value for _, _, value in due] == [1, 0, 0]
