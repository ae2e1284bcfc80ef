"""Queries with range and slide: what they answer, at which ends, and their errors."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from shared_windows import FINAL, GENERAL_FINAL, START, Joined

import slidewise as sw


def test_example_of_the_paper():
    """SlickDeque, example 1: the maximum over 6 every 2, and over 8 every 4."""
    queries = [
        sw.Query(sw.rows(6), every=sw.rows(2)),
        sw.Query(sw.rows(8), every=sw.rows(4)),
    ]
    w = sw.SharedWindow(sw.max(), queries=queries)
    values = [6, 5, 0, 1, 3, 4, 2, 7]
    given = [w.insert(time, value) for time, value in enumerate(values)]
    assert given == [
        [],
        [(0, 1, 6)],
        [],
        [(0, 3, 6), (1, 3, 6)],
        [],
        [(0, 5, 6)],
        [],
        [(0, 7, 7), (1, 7, 7)],
    ]
    explained = " ".join(w.explain().split())
    assert "slide 4 entries; 2 edges as by Cutty (Panes 2, Pairs 2)" in explained


def test_explanations_fit_a_line():
    lengths = ["5m", "1h", "3h", "1d", "7d", "30d"]
    queries = [sw.Query(length, every="1m") for length in lengths]
    for window in (
        sw.SharedWindow({"total": sw.sum(), "mean": sw.mean()}, queries=queries),
        sw.SharedWindow({"total": sw.sum(), "mean": sw.mean()}, ranges=lengths),
    ):
        assert max(map(len, window.explain().splitlines())) <= 80


def test_many_entries_at_once_are_as_many_singles():
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.integers(0, 4, 2000))
    values = rng.integers(-(10**6), 10**6, 2000)
    queries = [sw.Query(60, 7), sw.Query(35, 35), sw.Query(sw.rows(9), sw.rows(4))]
    for algorithm in FINAL:
        one = sw.SharedWindow(sw.sum(), queries=queries, algorithm=algorithm)
        many = sw.SharedWindow(sw.sum(), queries=queries, algorithm=algorithm)
        table = many.insert_many(times, values)
        singly = [
            answer
            for time, value in zip(times.tolist(), values.tolist(), strict=True)
            for answer in one.insert(time, value)
        ]
        singly.sort(key=lambda answer: (answer[1], answer[0]))
        assert list(zip(*table.to_pydict().values(), strict=True)) == singly
        assert one.query() == many.query()
        assert one.explain() == many.explain()


def test_gaps_between_windows_are_in_no_answer():
    w = sw.SharedWindow(sw.collect(), queries=[sw.Query(2, every=5)])
    assert [w.insert(time, time) for time in range(1, 12)] == [
        *([[]] * 5),
        [(0, 5, [4, 5])],
        *([[]] * 4),
        [(0, 10, [9, 10])],
    ]


def test_late_entries_count_where_they_belong():
    queries = [sw.Query("10m", every="10m")]
    w = sw.SharedWindow(Joined, queries=queries, late="5m")
    at = [START + timedelta(minutes=minute) for minute in range(40)]
    assert w.insert(at[3], "a") == w.insert(at[12], "d") == w.insert(at[8], "c") == []
    assert w.query() == ["acd"]
    assert w.insert(at[15], "e") == []
    with pytest.raises(
        sw.OutOfOrderError, match="an entry at 2024-03-01 00:09:00 is too late"
    ):
        w.insert(at[9], "late")
    assert w.insert(at[10], "b") == []
    assert w.insert(at[16], "f") == [(0, at[10], "acb")]
    assert w.insert(at[11], "x") == []
    assert w.advance(at[20]) == [(0, at[20], "xdef")]
    assert w.advance(at[20]) == []


def test_an_end_at_the_time_of_an_entry_has_it():
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(5, every=5)])
    assert w.insert(5, 1) == w.insert(5, 2) == []
    assert w.insert(6, 4) == [(0, 5, 3)]


def test_a_gap_of_too_many_empty_windows_is_refused():
    """The window is unchanged."""
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(1, every=1)], empty=True)
    w.insert(0, 1)
    for call in (
        lambda: w.insert(2**62, 1),
        lambda: w.insert_many([1, 2**62], [1, 1]),
        lambda: w.advance(2**62),
    ):
        with pytest.raises(sw.SpecError, match=r"windows fall due .* empty=True"):
            call()
    assert w.insert(3, 5) == [(0, 0, 1), (0, 1, None), (0, 2, None)]
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(1, every=1)])
    w.insert(0, 1)
    assert w.insert(2**62, 1) == [(0, 0, 1)]


def test_empty_windows():
    queries = [sw.Query(2, every=2), sw.Query(5, every=4)]
    aggs = {"n": sw.count(), "sum": sw.sum()}
    w = sw.SharedWindow(aggs, queries=queries, empty=True)
    none = {"n": 0, "sum": None}
    one = {"n": 1, "sum": 7}
    assert w.advance(2) == []  # before the first entry there are no windows
    assert w.insert(3, 7) == []
    assert w.insert(10, 1) == [
        *((0, 4, one), (1, 4, one), (0, 6, none)),
        *((0, 8, none), (1, 8, none)),
    ]
    w = sw.SharedWindow(aggs, queries=queries)
    w.insert(3, 7)
    assert w.insert(10**15, 1) == [(0, 4, one), (1, 4, one)]


def test_offset_and_the_epoch():
    at = datetime(2024, 3, 1, 0, 50, tzinfo=UTC)
    for offset, end in [(None, 0), ("20m", 20), (timedelta(minutes=-40), 20)]:
        w = sw.SharedWindow(
            sw.count(), queries=[sw.Query("1h", every="1h")], offset=offset
        )
        w.insert(at)
        expected = datetime(2024, 3, 1, 1, end, tzinfo=UTC)
        assert w.insert(at + timedelta(hours=1)) == [(0, expected, 1)]


def test_a_query_added_sees_what_the_window_holds():
    w = sw.SharedWindow(sw.collect(), queries=[sw.Query(4, every=3)])
    for time in range(1, 10):
        w.insert(time, time)
    assert w.add(sw.Query(100, every=5)) == 1
    assert w.insert(10, 10) == [(0, 9, [6, 7, 8, 9])]
    assert w.insert(11, 11) == [(1, 10, [6, 7, 8, 9, 10])]
    assert "query 1, added later, sees the entries that the" in w.explain()
    w.drop(0)
    assert w.queries == [None, sw.Query(100, every=5)]
    assert w.query() == [[6, 7, 8, 9, 10, 11]]
    again = sw.SharedWindow.from_bytes(w.to_bytes())
    assert again.explain() == w.explain()
    assert again.insert(16, 16) == [(1, 15, [6, 7, 8, 9, 10, 11])]
    assert again.add(sw.Query(1, every=1)) == 2


def test_queries_before_the_first_entry():
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query("1h", every="1h")])
    assert w.add(sw.Query(sw.rows(2), sw.rows(1))) == 1
    assert w.add(sw.Query(5, every=5)) == 2
    assert w.query() == [None, None, None]
    w = sw.SharedWindow.from_bytes(w.to_bytes())
    with pytest.raises(sw.SpecError, match="range=5 is a bare number"):
        w.insert(START, 0.5)
    w.drop(2)
    assert w.insert(START, 0.5) == [(1, START, 0.5)]
    assert w.query() == [0.5, 0.5]


@pytest.mark.parametrize("algorithm", GENERAL_FINAL)
def test_types_are_decided_late(algorithm):
    """Rows before the first value are kept, and answers are returned once."""
    for late in (None, 3):
        w = sw.SharedWindow(
            sw.sum(), queries=[sw.Query(4, every=2)], algorithm=algorithm, late=late
        )
        given = [w.insert(time, None) for time in range(8)]
        assert sum(map(len, given)) == (2 if late else 4)
        w = sw.SharedWindow.from_bytes(w.to_bytes())
        w.check()
        w.insert(8, 0.5)
        assert w.dtype == "float64"
        w.insert(9, 1)
        w.check()
        assert w.query() == [1.5]
        assert w.advance(10)[-1] == (0, 10, 1.5)


def test_objects_may_come_late():
    w = sw.SharedWindow(sw.max(), queries=[sw.Query(4, every=2)])
    assert w.insert(1, None) == []
    assert w.insert(3, "b") == [(0, 2, None)]
    assert w.insert(5, "a") == [(0, 4, "b")]
    w.add(sw.Query(2, every=2))
    assert w.insert(7, "c") == [(0, 6, "b"), (1, 6, "a")]


class Fragile:
    """Joins text, and fails on demand."""

    broken = False

    def combine(self, older, younger):
        if self.broken:
            raise ZeroDivisionError
        return older + younger


@pytest.mark.parametrize("bulk", [False, True])
def test_an_answer_that_cannot_be_made_is_given_up(bulk):
    fragile = Fragile()
    agg = sw.aggregation(lift=str, combine=fragile.combine, identity="")
    queries = [sw.Query(2, every=2), sw.Query(1, every=1)]
    w = sw.SharedWindow(agg, queries=queries)
    w.insert_many([1, 2], ["a", "b"])
    fragile.broken = True
    with pytest.raises(ZeroDivisionError):
        w.insert_many([3], ["c"]) if bulk else w.insert(3, "c")
    fragile.broken = False
    assert len(w) == 2
    assert w.insert(4, "d") == [(1, 2, "b"), (1, 3, "c")]
    assert w.insert(5, "e") == [(0, 4, "cd"), (1, 4, "d")]


def test_an_integer_beyond_int64_is_given_up():
    queries = [sw.Query(2, every=2), sw.Query(1, every=1)]
    w = sw.SharedWindow(sw.sum(), queries=queries)
    w.insert_many([1, 2], [2**63 - 1, 1])
    with pytest.raises(sw.ResultOverflowError):
        w.insert(3, 5)
    assert w.insert(4, 5) == [(1, 2, 1), (1, 3, 5)]


def test_answers_that_arrow_cannot_hold_come_as_a_list():
    w = sw.SharedWindow(sw.collect(), queries=[sw.Query(2, every=2)])
    with pytest.raises(sw.SpecError, match=r"no Arrow column .*the next insert"):
        w.insert_many([1, 2, 3], [1, "a", {2}])
    assert w.insert(4, 0) == [(0, 2, [1, "a"])]


def test_tables_have_the_type_of_the_times():
    queries = [sw.Query("2d", every="1d")]
    zone = "Europe/Berlin"
    times = {
        pa.date32(): [date(2024, 3, 1), date(2024, 3, 5)],
        pa.timestamp("us"): [START, START + timedelta(1)],
        pa.timestamp("ms", zone): pa.array(
            [1709290000000, 1709400000000], pa.timestamp("ms", zone)
        ),
        pa.timestamp("s"): np.array(
            ["2024-03-01T00", "2024-03-02T05"], "datetime64[h]"
        ),
    }
    for kind, given in times.items():
        w = sw.SharedWindow(
            {"n": sw.count(), "top": sw.max()}, queries=queries, late="0s"
        )
        table = w.insert_many(given, [1.5, 2.5])
        assert table.schema.field("end").type == kind
        value = table.column("value").combine_chunks()
        assert value.type == pa.struct([("n", pa.int64()), ("top", pa.float64())])
        assert table.num_rows > 0


def test_clear_begins_anew():
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(sw.rows(3), sw.rows(2))])
    w.insert_many([5, 6, 7], [1, 2, 3])
    w.clear()
    assert (len(w), w.query()) == (0, [None])
    assert w.insert(1, 10) == []
    assert w.insert(2, 20) == [(0, 2, 30)]


@pytest.mark.parametrize("algorithm", FINAL)
def test_nothing_falls_due_behind_the_last_time_of_int64(algorithm):
    """The rule holds for an added query and after a restore, too."""
    last = 2**63 - 1
    window = sw.SharedWindow(
        sw.max(), queries=[sw.Query(2, every=1)], algorithm=algorithm
    )
    assert window.insert(last - 1, 1) == []
    assert window.advance(last) == [(0, last - 1, 1), (0, last, 1)]
    window.check()
    assert window.add(sw.Query(3, every=1)) == 1
    window.drop(0)
    window.check()
    for again in (window, sw.SharedWindow.from_bytes(window.to_bytes())):
        assert again.advance(last) == []
        with pytest.raises(sw.OutOfOrderError):
            again.insert(last, 1)


def test_evicting_is_for_all_queries():
    w = sw.SharedWindow(sw.collect(), queries=[sw.Query(6, 2), sw.Query(3, 3)])
    w.insert_many(range(1, 6), "abcde")
    assert w.evict() == 1
    assert w.evict_until(3) == 2
    assert w.query() == [["d", "e"], ["d", "e"]]
    assert w.advance(6) == [(0, 6, ["d", "e"]), (1, 6, ["d", "e"])]
    w.evict_until(99)
    with pytest.raises(sw.EmptyWindowError):
        w.evict()


def test_a_cycle_is_never_too_long():
    primes = [1_000_003, 999_983, 999_979, 999_961, 999_959, 999_953, 999_931]
    queries = [sw.Query(2 * prime, every=prime) for prime in primes]
    w = sw.SharedWindow(sw.count(), queries=queries)
    assert "composite slide beyond int64; many edges as by Cutty" in w.explain()
    w.insert(1)
    assert [query for query, _, _ in w.insert(1_000_004)] == [6, 5, 4, 3, 2, 1, 0]


def test_slices_are_few():
    w = sw.SharedWindow(sw.mean(), queries=[sw.Query("1h", every="5m")])
    times = np.datetime64("2024-03-01") + np.arange(20_000).astype("timedelta64[s]")
    w.insert_many(times, np.arange(20_000.0))
    assert len(w) == 3600
    assert "12 slices held; final aggregator: flat_fit" in w.explain()
