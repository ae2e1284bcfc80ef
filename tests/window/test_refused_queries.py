"""Refused and damaged queries, and descriptions of the queries of a window."""

import pickle
from datetime import datetime, timedelta

import numpy as np
import pytest
from shared_windows import FINAL, START

import slidewise as sw


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sw.Query(sw.rows(2), every="1h"), "a number of entries, and every="),
        (lambda: sw.Query("1h", every=5), "a duration, and every=5, a length of int"),
        (lambda: sw.Query("0s", every="5m"), "range='0s' must be longer than zero"),
        (lambda: sw.Query("1h", every="-5m"), "every='-5m' must be longer than zero"),
        (lambda: sw.Query(sw.rows(0), every=sw.rows(1)), "0 is not a number of rows"),
        (lambda: sw.Query(1.5, every=1), "range=1.5 is not a length of time"),
    ],
)
def test_what_is_no_query(make, message):
    with pytest.raises(sw.SpecError, match=message):
        make()


def window(**options):
    return sw.SharedWindow(sw.sum(), **options)


TIMED = [sw.Query("1h", every="5m")]
COUNTED = [sw.Query(sw.rows(6), every=sw.rows(2))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "takes either ranges=.*or queries="),
        ({"ranges": [1], "queries": TIMED}, "both are given"),
        ({"queries": []}, "queries= is empty"),
        ({"queries": TIMED[0]}, "queries= takes several"),
        ({"queries": ["1h"]}, "'1h' is not a query"),
        ({"queries": COUNTED, "late": "1m"}, "needs them in order, but late='1m'"),
        ({"queries": TIMED, "late": "-1m"}, "late='-1m' is negative"),
        ({"queries": TIMED, "late": sw.rows(2)}, "late= takes a duration"),
        ({"queries": TIMED, "offset": sw.rows(2)}, "offset= takes a duration"),
        ({"queries": TIMED, "empty": 1}, "empty= is True or False"),
        ({"ranges": [1], "late": 1}, "late= is for queries="),
        ({"ranges": [1], "empty": True}, "empty= is for queries="),
        (
            {"queries": TIMED, "algorithm": "two_stacks"},
            "'two_stacks' serves one",
        ),
        ({"queries": TIMED, "algorithm": "daba"}, "one range only: .*daba_chain"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(sw.SpecError, match=message):
        window(**options)


def test_what_is_refused_later():
    w = window(queries=TIMED, late="1m")
    for index in (1, -1, True, "0", None):
        with pytest.raises(sw.SpecError, match=r"there is no query .* are 0"):
            w.drop(index)
    with pytest.raises(sw.SpecError, match="needs them in order, but late='1m'"):
        w.add(COUNTED[0])
    with pytest.raises(sw.SpecError, match="'1h' is not a query"):
        w.add("1h")
    with pytest.raises(sw.SpecError, match="is a duration, but the times are ints"):
        w.insert(1, 1)
    w.insert(START, 1)
    with pytest.raises(sw.SpecError, match="range=5 is a bare number"):
        w.add(sw.Query(5, every=5))
    assert w.queries == TIMED
    with pytest.raises(sw.SpecError, match="is not of the kind"):
        w.advance(5)
    plain = sw.SharedWindow(sw.sum(), [2, 3])
    assert plain.insert(1, 1) is plain.insert_many([2], [2]) is None
    for call in (lambda: plain.add(TIMED[0]), lambda: plain.drop(0)):
        with pytest.raises(sw.SpecError, match="is for windows with queries="):
            call()
    with pytest.raises(sw.SpecError, match="is for windows with queries="):
        plain.advance(9)


def test_a_query_is_dropped_by_any_int():
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(4, 2), sw.Query(6, 3)])
    w.drop(np.int64(1))
    assert w.queries == [sw.Query(4, 2), None]
    for index in (np.bool_(False), np.int64(-1), np.uint64(2**63), 0.0):
        with pytest.raises(
            sw.SpecError, match=r"there is no query .*: the remaining ones are 0"
        ):
            w.drop(index)


def test_empty_windows_beyond_all_bounds_are_refused():
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(1, 1)], empty=True)
    w.insert(0, 1)
    with pytest.raises(sw.SpecError, match=r"^up to 10{11}, 1\d{11} windows fall due"):
        w.insert(10**11, 1)


@pytest.mark.parametrize("late", [None, 2])
@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_gaps_within_a_batch_are_refused(late, empty, begun):
    """The first batch is refused, too; the window is unchanged."""
    queries = [sw.Query(2 if empty else 2**62, every=1), sw.Query(7, every=3)]
    w = sw.SharedWindow(sw.sum(), queries=queries, late=late, empty=empty)
    if begun:
        w.insert(0, 1)
    before = w.to_bytes()
    for far in (10**11, 10**15):
        with pytest.raises(sw.SpecError, match=r"^up to 10+1?, 1\d+ windows fall due"):
            w.insert_many([far, 3, far + 1, 2], [1, 1, 1, 1])
    assert w.to_bytes() == before
    days = [datetime(2024, 3, 1), datetime(2124, 3, 1)]
    timed = sw.SharedWindow(sw.sum(), queries=[sw.Query("1s")], empty=True)
    with pytest.raises(sw.SpecError, match=r"^up to 2124-03-01 .* 31556\d+ windows"):
        timed.insert_many(days, [1, 1])
    assert timed.insert_many(days[:1], [1]).num_rows == 0


@pytest.mark.parametrize("late", [None, 2])
def test_more_answers_than_anybody_reads_are_refused(late):
    """Too many windows of one entry are refused; the window is unchanged."""
    w = sw.SharedWindow(sw.sum(), queries=[sw.Query(2**62, every=1)], late=late)
    w.insert(0, 1)
    for call in (
        lambda: w.insert(2**61, 1),
        lambda: w.insert_many([2**61], [1]),
        lambda: w.advance(2**61),
    ):
        with pytest.raises(sw.SpecError, match=r"windows fall due at once: give a"):
            call()
    assert (len(w), w.youngest) == (1, 0)
    assert w.advance(3) == [(0, end, 1) for end in range(4)]
    waiting = sw.SharedWindow(sw.sum(), queries=[sw.Query(2**40, every=1)], late=2**41)
    waiting.insert(2**40, 1)
    for time in (0, 2**41):
        with pytest.raises(sw.SpecError, match="windows fall due at once"):
            waiting.insert(time, 1)
    waiting.insert(2**40 + 9, 1)
    assert len(waiting) == 2
    short = sw.SharedWindow(sw.sum(), queries=[sw.Query(3, every=1)], late=late)
    short.insert(0, 1)
    assert short.advance(2**61) == [(0, end, 1) for end in range(3)]


@pytest.mark.parametrize("algorithm", FINAL)
def test_damage_is_refused(algorithm):
    w = sw.SharedWindow(
        sw.max(), queries=[sw.Query(4, 2), sw.Query(7, 3)], algorithm=algorithm, late=2
    )
    w.insert_many(range(12), [6, 5, 0, 1, 3, 4] * 2)
    blob = w.to_bytes()
    for at in range(len(blob)):
        with pytest.raises(sw.SnapshotError):
            sw.SharedWindow.from_bytes(blob[:at])
        flipped = bytearray(blob)
        flipped[at] ^= 1 << (at % 8)
        with pytest.raises(sw.SnapshotError):
            sw.SharedWindow.from_bytes(bytes(flipped))


def test_its_repr():
    w = sw.SharedWindow(sw.sum(), queries=[*TIMED, *COUNTED])
    assert repr(w) == (
        "<SharedWindow sum() over 1h every 5m and 6rows every 2rows: empty>"
    )
    assert (w.ranges, w.queries) == ([], [*TIMED, *COUNTED])
    w.insert(START, 1)
    assert repr(w).endswith("1 entry; answer [1, 1]>")
    assert eval(repr(w.queries), {"Query": sw.Query, "rows": sw.rows}) == w.queries
    assert hash(TIMED[0]) == hash(sw.Query(timedelta(hours=1), timedelta(minutes=5)))
    assert TIMED[0] == pickle.loads(pickle.dumps(TIMED[0]))
    w.drop(0)
    w.drop(1)
    assert "over no queries" in repr(w)
    assert w.insert(START, 1) == []
    assert (len(w), w.query()) == (0, [])


USES = {
    "add": lambda w: w.add(sw.Query(4, every=2)),
    "drop": lambda w: w.drop(0),
    "advance": lambda w: w.advance(9),
    "query": lambda w: w.query(),
    "explain": lambda w: w.explain(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("where", ["lift", "combine"])
def test_calling_back_in_is_a_clean_error(where, use):
    """A call from a function of an aggregation is refused and changes no answer."""
    refused, armed = [], []

    def call(here):
        if armed and here == where:
            armed.clear()
            try:
                USES[use](window)
            except sw.WindowBusyError as error:
                refused.append(error)

    def lift(value):
        call("lift")
        return (value,)

    def combine(older, younger):
        call("combine")
        return older + younger

    queries = [sw.Query(4, every=2), sw.Query(6, every=3)]
    aggregation = sw.aggregation(lift, combine, list, ())
    window = sw.SharedWindow(aggregation, queries=queries)
    plain = sw.SharedWindow(sw.collect(), queries=queries)
    window.insert_many([1, 2, 3], [1, 2, 3])
    plain.insert_many([1, 2, 3], [1, 2, 3])
    armed.append(True)
    for time in range(4, 9):
        assert window.insert(time, time) == plain.insert(time, time)
    assert len(refused) == 1
    window.check()
