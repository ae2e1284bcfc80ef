"""Several threads on one `KeyedWindows`: calls wait for one another."""

import copy
import pickle
import threading
from collections.abc import Callable

import pyarrow as pa
import pytest
from keyed_streams import assert_same
from threads import together

import slidewise as sw
from slidewise.keyed.index import Index
from slidewise.keyed.reader import FoldReader
from slidewise.keyed.row_log import RowLog
from slidewise.keyed.shard import Shard
from slidewise.keyed.view import View

OPTIONS = {"on": "t", "by": "k", "windows": 50, "aggs": {"s": sw.sum("x")}}


def rows_of(thread: int, batch: int) -> pa.Table:
    """Rows of one thread only, at times that all threads use."""
    times = range(batch * 10, batch * 10 + 10)
    keys = [(thread + at) % 7 for at in range(10)]
    return pa.table({"t": times, "k": keys, "x": [thread * 1000 + at for at in times]})


@pytest.mark.parametrize("threads", [2, 4])
def test_no_row_is_lost(threads: int) -> None:
    """Several threads ingest batches at the same time."""
    windows = sw.KeyedWindows(**OPTIONS, late=10_000)
    batches = [[rows_of(at, batch) for batch in range(30)] for at in range(threads)]

    def ingest(own: list[pa.Table]) -> None:
        for batch in own:
            windows.ingest(batch)

    together([lambda own=own: ingest(own) for own in batches])
    windows.advance(10_000)
    table = pa.concat_tables([batch for own in batches for batch in own])
    assert windows.late_count == 0
    assert_same(windows.collect(), sw.rolling(table, **OPTIONS), ["t", "k", "x"])
    windows.check()


def test_readers_see_whole_batches() -> None:
    """Keys, copies, snapshots and answers are read while another thread ingests."""
    windows = sw.KeyedWindows(**OPTIONS, late=10_000)
    windows.ingest(rows_of(0, 0))
    done = threading.Event()

    def ingest() -> None:
        for batch in range(1, 40):
            windows.ingest(rows_of(0, batch))
        done.set()

    def read() -> None:
        while not done.is_set():
            assert len(windows) == len(windows.keys()) == 7
            for twin in (
                copy.copy(windows),
                pickle.loads(pickle.dumps(windows)),
                sw.KeyedWindows.from_bytes(windows.to_bytes(), **OPTIONS),
            ):
                twin.check()
                twin.advance(10_000)
                assert len(twin.collect()) % 10 == 0

    together([ingest, read])


def test_queries_see_whole_batches_in_order() -> None:
    """Each query sees a prefix of the batches, never a shorter one than before."""
    windows = sw.KeyedWindows(
        **{**OPTIONS, "windows": 10_000, "aggs": {"n": sw.count()}}
    )
    windows.ingest(rows_of(0, 0))
    keys = pa.table({"k": range(7)})
    done = threading.Event()

    def ingest() -> None:
        for batch in range(1, 60):
            windows.ingest(rows_of(0, batch))
            windows.advance()
        done.set()

    def read() -> None:
        seen = 10
        while not done.is_set():
            found = windows.query_many(keys, 9_999)["n_10000"].to_pylist()
            assert sum(found) % 10 == 0
            assert sum(found) >= seen
            seen = sum(found)
            assert windows.query(3, 9_999)["n_10000"] >= found[3]

    together([ingest, read, read])
    assert windows.query(0, 9_999)["n_10000"] == sum(
        rows_of(0, batch)["k"].to_pylist().count(0) for batch in range(60)
    )


def test_the_watermark_moves_before_rows_are_evicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A query at the latest time is answered while rows are evicted."""
    leader = sw.KeyedWindows(**OPTIONS)
    leader.ingest(rows_of(0, 0))
    follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), **OPTIONS)
    evict, leave, found = RowLog.evict, Shard._expire, []

    def evicting(self: RowLog, until: int) -> None:
        evict(self, until)
        found.append(leader.query(3))

    def leaving(self: Shard, index: Index) -> None:
        leave(self, index)
        found.append(follower.query(3))

    monkeypatch.setattr(RowLog, "evict", evicting)
    leader.advance(1000)
    leader.collect()
    monkeypatch.setattr(Shard, "_expire", leaving)
    follower.apply(leader.changes())
    assert found == [{"s_50": None}] * 2


@pytest.mark.parametrize("agg", [sw.count(), sw.median("x")])
@pytest.mark.parametrize(
    ("call", "keys"),
    [
        ("query", 3),
        ("query_many", {"k": [3]}),
        ("query_many", pa.table({"k": [3]})),
    ],
)
@pytest.mark.parametrize("options", [{}, {"windows": 40}])
def test_the_latest_time_moves_during_a_query(
    agg: sw.Aggregation,
    call: str,
    keys: object,
    options: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread evicts the rows of the windows after a query read the time."""
    windows = sw.KeyedWindows(**{**OPTIONS, "aggs": {"a": agg}}, emit="update")
    windows.ingest(rows_of(0, 0))
    read, moved = View.tick, []

    def moving(self: View, at: object) -> int:
        tick = read(self, at)
        if not moved:
            moved.append(tick)
            windows.ingest(rows_of(0, 100))
            windows.advance()
        return tick

    monkeypatch.setattr(View, "tick", moving)
    found = getattr(windows, call)(keys, **options)
    assert moved == [9]
    assert found == getattr(windows, call)(keys, at=1009, **options)


def test_answers_that_missed_evicted_rows_are_not_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread evicts rows after the query took its view."""
    windows = sw.KeyedWindows(**{**OPTIONS, "aggs": {"n": sw.count()}}, emit="update")
    windows.ingest(rows_of(0, 0))
    assert windows.query(3, at=9) == {"n_50": 1}
    fold, views = FoldReader.query_key, [windows._state.view]

    def moving(self: FoldReader, key: object, tick: int) -> dict[str, object] | None:
        windows.ingest(rows_of(0, 100))
        windows.advance()
        views.append(windows._state.view)
        return fold(self, key, tick)

    monkeypatch.setattr(FoldReader, "query_key", moving)
    with pytest.raises(sw.SpecError, match="begins before rows that were evicted"):
        windows.query(3, at=9)
    (before, after) = views
    assert before is not None
    assert after is not None
    assert (before.latest, before.evicted, before.whole_from) == (9, None, -(2**63))
    assert (after.latest, after.evicted, after.whole_from) == (1009, 959, 1009)


@pytest.mark.long
@pytest.mark.parametrize(
    ("emit", "options"),
    [
        ("update", {}),
        ("update", {"then_by": "x"}),
        ("final", {}),
        ("arrival", {}),
        ("arrival", {"arrival": "a"}),
    ],
)
def test_queries_see_deletions_with_the_rows_of_their_batch(
    emit: str, options: dict[str, str]
) -> None:
    """Each batch replaces the only row, so that there is one row at any time."""
    windows = sw.KeyedWindows(
        **{**OPTIONS, "aggs": {"n": sw.count()}},
        emit=emit,
        late=100,
        deletes="gone",
        **options,
    )

    def batch(x: int, *gone: bool) -> pa.Table:
        rows = {"t": 5, "k": 0, "x": x, "a": x}
        return pa.Table.from_pylist([{**rows, "gone": which} for which in gone])

    windows.ingest(batch(0, False))

    def ingest() -> None:
        for x in range(1, 150):
            windows.ingest(batch(x, False, True))

    read_beside(ingest, lambda: windows.query(0, 5) == {"n_50": 1})
    windows.check()


@pytest.mark.parametrize("emit", ["update", "final"])
def test_queries_see_late_rows_with_the_others_of_their_batch(emit: str) -> None:
    windows = sw.KeyedWindows(
        **{**OPTIONS, "windows": 1_000, "aggs": {"n": sw.count()}},
        emit=emit,
        late_rows="correct",
    )
    windows.ingest(pa.table({"t": [0, 100], "k": [0, 0]}))
    windows.advance()

    def ingest() -> None:
        for _ in range(40):
            windows.ingest(pa.table({"t": [50, 200], "k": [0, 0]}))

    read_beside(ingest, lambda: windows.query(0, 500)["n_1000"] % 2 == 0)
    assert windows.query(0, 500) == {"n_1000": 82}


@pytest.mark.long
def test_results_and_their_end_are_of_the_same_rows() -> None:
    """The maximum of a key holds until its row leaves."""
    options = {**OPTIONS, "windows": 100_000, "aggs": {"most": sw.max("x")}}
    windows = sw.KeyedWindows(**options)

    def batch(at: int) -> pa.Table:
        return pa.table({"t": [at], "k": [0], "x": [at]})

    windows.ingest(batch(0))

    def ingest() -> None:
        for at in range(1, 1500):
            windows.ingest(batch(at))

    def holds() -> bool:
        one = windows.query(0, 5000, valid_until=True)
        return bool(one["valid_until_100000"] == one["most_100000"] + 100_000)

    read_beside(ingest, holds)


def read_beside(ingest: Callable[[], None], holds: Callable[[], bool]) -> None:
    """Checks a condition repeatedly while another thread works."""
    done = threading.Event()

    def write() -> None:
        try:
            ingest()
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            assert holds()

    together([write, read])


def test_queries_that_wait_for_a_failing_batch_do_not_see_it() -> None:
    """If answers need the lock, they are those of the restored state."""

    class Watched:
        def __init__(self, lock: threading.Lock) -> None:
            self.lock, self.wanted = lock, threading.Event()

        def acquire(self) -> None:
            if self.lock.locked():
                self.wanted.set()
            self.lock.acquire()

        def release(self) -> None:
            self.lock.release()

        def locked(self) -> bool:
            return self.lock.locked()

    found: list[dict[str, object]] = []
    reader = threading.Thread(target=lambda: found.append(windows.query("a", at=9)))

    def lift(x: int) -> int:
        if x < 0:
            reader.start()
            assert lock.wanted.wait(10)
            raise ValueError("refused")
        return x

    most = sw.aggregation(lift=lift, combine=max, identity=0, returns=int)
    options = {**OPTIONS, "aggs": {"m": most("x")}}
    windows = sw.KeyedWindows(**options, emit="update")
    windows.ingest(pa.table({"t": [1], "k": ["a"], "x": [1]}))
    lock = Watched(windows._state.lock)
    windows._state.lock = lock  # type: ignore[assignment]
    with pytest.raises(ValueError, match="refused"):
        windows.ingest(pa.table({"t": [2, 3], "k": ["a", "a"], "x": [5, -1]}))
    reader.join()
    assert found == [{"m_50": 1}]


def test_use_from_within_its_own_functions_is_refused() -> None:
    """The call would wait for itself."""
    windows: sw.KeyedWindows

    def lift(x: int) -> int:
        return len(windows) + x

    nosy = sw.aggregation(lift=lift, combine=max, identity=0, returns=int)
    windows = sw.KeyedWindows(on="t", windows=5, aggs={"m": nosy("x")}, emit="arrival")
    with pytest.raises(sw.WindowBusyError, match="within one of their own calls"):
        windows.ingest(pa.table({"t": [1], "x": [1]}))
    assert windows.late_count == 0


def test_a_query_from_within_a_query_is_refused() -> None:
    """The next query is answered."""
    windows: sw.KeyedWindows
    queries = [True]

    def lift(x: int) -> int:
        return windows.query()["n_5"] + x if queries else x

    nosy = sw.aggregation(lift=lift, combine=max, identity=0, returns=int)
    windows = sw.KeyedWindows(on="t", windows=5, aggs={"m": nosy("x")})
    windows.ingest(pa.table({"t": [1], "x": [7]}))
    with pytest.raises(sw.WindowBusyError, match="within one of their own calls"):
        windows.query()
    queries.clear()
    assert windows.query() == {"m_5": 7}
