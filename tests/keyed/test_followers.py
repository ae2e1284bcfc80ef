"""Followers apply the results of `changes`."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from keyed_streams import FOLDED, SEEDS, WHOLE, Stream, assert_same, page

import slidewise as sw
from slidewise.keyed import row_log, shard
from slidewise.keyed.index import Index
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.processor import Processor

__all__ = ["page"]

KINDS: dict[str, dict[str, object]] = {
    "final": {"windows": [7, 60], "aggs": FOLDED},
    "arrival": {"windows": [30], "aggs": FOLDED, "emit": "arrival", "arrival": "came"},
    "update": {"windows": [50], "aggs": WHOLE, "emit": "update", "then_by": "id"},
    "change": {"windows": [9, 50], "aggs": FOLDED, "emit": "change"},
    "rows": {"windows": [sw.rows(3), 20], "aggs": WHOLE},
    "deletes": {"windows": [40], "aggs": {**FOLDED, **WHOLE}, "deletes": "ok"},
    "correct": {"windows": [40], "aggs": FOLDED, "late_rows": "correct"},
    "hops": {"window": 30, "every": 7, "aggs": FOLDED, "emit": "slide"},
    "empty": {"window": 9, "every": 9, "aggs": FOLDED, "emit": "slide", "empty": True},
    "right": {"window": 30, "every": 7, "aggs": WHOLE, "closed": "right"},
    "sessions": {"window": sw.session(6), "aggs": WHOLE, "emit": "slide"},
    "several": {"windows": [30, sw.Query(9, every=4)], "aggs": WHOLE},
    "until": {"window": sw.until("ok"), "aggs": WHOLE},
    "until, ties": {"window": sw.until("ok"), "aggs": WHOLE, "then_by": "came"},
    "landmark": {"windows": [sw.landmark("ok"), 9], "aggs": WHOLE, "then_by": "x"},
    "delta": {"windows": sw.delta("t", 12), "aggs": WHOLE},
    "by rows": {"window": sw.rows(5), "every": sw.rows(3), "aggs": WHOLE},
    "range by rows": {"window": 20, "every": sw.rows(4), "aggs": FOLDED},
}
_WITHOUT_LENGTH = ("sessions", "until", "until, ties", "landmark", "delta")
# What a snapshot records, and `from_bytes` is not given.
_STREAM = ("emit", "late_rows", "then_by", "deletes", "late")


def leader_of(kind: str, late: int) -> tuple[sw.KeyedWindows, dict[str, object]]:
    """Windows of one kind, and the arguments of `from_bytes` for them."""
    options = {"on": "t", "by": "key", **KINDS[kind]}
    again = {name: value for name, value in options.items() if name not in _STREAM}
    return sw.KeyedWindows(**options, late=late), again


def answers_of(windows: sw.KeyedWindows) -> pa.Table:
    """The current answers for all keys."""
    keys = windows.keys()
    return windows.query_many(keys.sort_by([("key", "ascending")]))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_follower_equals_its_leader(page: int, kind: str, seed: int) -> None:
    """After each change their bytes are equal, and their answers up to rounding."""
    stream = Stream(seed * 1000 + page)
    late = stream.random.choice([0, 30])
    leader, again = leader_of(kind, late)
    while leader.watermark is None:  # the first batches may have no rows
        leader.ingest(stream.batch())
        leader.advance()
    leader.collect()
    follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), **again)
    for _ in range(10):
        for _ in range(stream.random.choice([1, 1, 3])):
            leader.ingest(stream.batch())
            if stream.random.random() < 0.7:
                leader.advance()
            leader.collect()
        if stream.random.random() < 0.1 and leader.watermark is not None:
            leader.evict_idle(leader.watermark - 20)
        follower.apply(leader.changes())
        follower.check()
        assert follower.watermark == leader.watermark
        assert follower.late_count == leader.late_count
        assert len(follower) == len(leader)
        if kind not in _WITHOUT_LENGTH:
            # The state is equal bit for bit, as below. Floats are folded in the batches
            # in which rows were inserted: equal up to rounding.
            assert_same(answers_of(follower), answers_of(leader), ["key"])
        other = sw.KeyedWindows.from_bytes(leader.to_bytes(), **again)
        assert other.to_bytes() == follower.to_bytes()
    # A follower goes on as its leader would.
    batch = stream.batch()
    for windows in (leader, follower):
        windows.ingest(batch)
        windows.advance()
    ours, theirs = follower.collect(), leader.collect()
    assert_same(ours, theirs, ours.column_names[:2])


def test_a_follower_takes_the_memory_of_its_leader() -> None:
    """It keeps pages as bytes, and no decoded rows beside them."""
    request = {"on": "t", "by": "k", "windows": 1000, "aggs": {"n": sw.count()}}
    leader = sw.KeyedWindows(**request, emit="update")
    rows = pa.table({"t": [1] * 2000, "k": range(2000)})
    leader.ingest(rows)
    leader.collect()
    follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), **request)
    for _ in range(20):
        leader.ingest(rows)
        leader.collect()
        follower.apply(leader.changes())
    assert follower.nbytes < 1.1 * leader.nbytes


@pytest.mark.parametrize("kind", ["final", "rows", "deletes", "sessions", "until"])
def test_shards_by_turns_keep_the_pages_of_their_state_alone(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers of Spark get a bucket in turn: both drop the rows that left."""
    monkeypatch.setattr(row_log, "_MIN_ROWS", 8)
    stream, store = Stream(3), MemoryStore()
    windows, _ = leader_of(kind, 0)
    windows.ingest(stream.batch())
    query = windows._state.query
    assert query is not None
    one, other = Processor(query, store), Processor(query, store)
    most = 0
    for _ in range(40):
        rows, ends = query.arrived(stream.batch())
        fired = one.shard.fired
        rows, _ = query.by_lateness(rows, fired, ends)
        one.ingest(rows, fired)
        if ends is not None:
            one.advance(ends[1] - 5)
        other.follow(one.commit())
        for each in (one, other):
            assert {*each.pages._tables} <= {*each.page_numbers}
        assert len(other.shard.log) == len(one.shard.log)
        most = max(most, one.pages.next_page - len(store.page_numbers))
        one, other = other, one
    assert most > 10, "pages went"


CARDS = {"on": "t", "by": "card", "windows": 10, "aggs": {"n": sw.count()}}


def pair() -> tuple[sw.KeyedWindows, sw.KeyedWindows]:
    """A leader with some rows, and a follower."""
    leader = sw.KeyedWindows(**CARDS, emit="update", late=5)
    leader.ingest(pa.table({"t": [1, 8], "card": [*"AA"]}))
    leader.collect()
    return leader, sw.KeyedWindows.from_bytes(leader.to_bytes(), **CARDS)


def grown(leader: sw.KeyedWindows, time: int) -> bytes:
    """The changes of an ingest of one row."""
    leader.ingest(pa.table({"t": [time], "card": ["A"]}))
    leader.collect()
    return leader.changes()


def test_changes_apply_once_and_in_order() -> None:
    """Other changes are refused, and leave the follower unchanged."""
    leader, follower = pair()
    first, second, third = (grown(leader, time) for time in (9, 10, 11))
    follower.apply(first)
    before = follower.query("A")
    for wrong in (first, third):
        with pytest.raises(sw.SnapshotError, match="do not follow"):
            follower.apply(wrong)
        assert follower.query("A") == before == {"n_10": 3}
    follower.apply(second)
    follower.apply(third)
    assert follower.query("A") == {"n_10": 4}
    with pytest.raises(sw.SnapshotError, match="what to_bytes"):
        follower.apply(leader.to_bytes())
    with pytest.raises(sw.SnapshotError, match="another Spec"):
        follower.apply(
            grown(
                sw.KeyedWindows(**{**CARDS, "windows": 11}, emit="update", late=5), 12
            )
        )


def test_snapshots_do_not_change_the_next_changes() -> None:
    """This holds for leader and followers, at any time between changes."""
    stream = Stream(11)
    leader, again = leader_of("deletes", 0)
    followers = []

    def take_in() -> None:
        leader.ingest(stream.batch())
        leader.advance()
        leader.collect()

    take_in()
    for _ in range(12):
        followers.append(sw.KeyedWindows.from_bytes(leader.to_bytes(), **again))
        for _ in range(3):
            take_in()
        whole = leader.to_bytes()
        for _ in range(9):
            take_in()
        changes = leader.changes()
        followers.append(sw.KeyedWindows.from_bytes(whole, **again))
        for follower in followers:
            follower.to_bytes()
            follower.apply(changes)
            follower.check()
            assert follower.to_bytes() == leader.to_bytes()
        other = sw.KeyedWindows.from_bytes(whole, changes=[changes], **again)
        assert other.to_bytes() == leader.to_bytes()


def test_windows_that_ingested_rows_do_not_follow_after_a_snapshot() -> None:
    """They do not follow before it either."""
    leader, follower = pair()
    follower.ingest(pa.table({"t": [9], "card": ["B"]}))
    follower.collect()
    follower.to_bytes()
    with pytest.raises(sw.SnapshotError, match="of their own"):
        follower.apply(grown(leader, 9))


def test_windows_with_rows_of_their_own_do_not_follow() -> None:
    """Their state differs from that of the leader."""
    leader, follower = pair()
    follower.ingest(pa.table({"t": [9], "card": ["B"]}))
    with pytest.raises(sw.SnapshotError, match="of their own"):
        follower.apply(grown(leader, 9))
    assert follower.query("B") == {"n_10": 1}


def test_damaged_changes_leave_a_follower_unchanged() -> None:
    """Any byte may be damaged."""
    leader, follower = pair()
    changes = grown(leader, 9)
    kept = follower.to_bytes()
    follower = sw.KeyedWindows.from_bytes(kept, **CARDS)
    for at in range(0, len(changes), 7):
        damaged = bytearray(changes)
        damaged[at] ^= 0x41
        with pytest.raises(sw.SnapshotError):
            follower.apply(bytes(damaged))
    for size in (0, 1, 20, len(changes) - 1):
        with pytest.raises(sw.SnapshotError):
            follower.apply(changes[:size])
    follower.apply(changes)
    assert follower.query("A") == {"n_10": 3}


def test_changes_are_as_large_as_the_new_rows() -> None:
    """2,000 keys get one new row each; the state has a million bytes of rows."""
    keys = pa.array([f"card {at:06}" for at in range(2000)])
    leader = sw.KeyedWindows(
        on="t", by="card", windows=10**6, aggs={"s": sw.sum("x")}, emit="update"
    )
    for time in range(20):
        times = pa.repeat(pa.scalar(time), 2000)
        rows = {"t": times, "card": keys, "x": pc.cast(times, pa.float64())}
        leader.ingest(pa.table(rows))
        leader.collect()
    whole = leader.to_bytes()
    sizes = []
    for time in range(20, 60):
        times = pa.repeat(pa.scalar(time), 2000)
        rows = {"t": times, "card": keys, "x": pc.cast(times, pa.float64())}
        leader.ingest(pa.table(rows))
        leader.collect()
        sizes.append(len(leader.changes()))
    # A row has 31 bytes; it is written again as segments are merged.
    assert len(whole) > 20 * 2000 * 31
    assert sorted(sizes)[20] < 2000 * 40
    assert sum(sizes) < 3 * 40 * 2000 * 40


@pytest.mark.parametrize("then_by", [None, "x"])
def test_readers_see_changes_in_one_step(
    then_by: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removed and new rows of all pages change together."""
    request = {**CARDS, "aggs": {"s": sw.sum("x"), "last": sw.last("x")}}
    leader = sw.KeyedWindows(
        **request, emit="update", deletes="gone", late=5, then_by=then_by
    )

    def take_in(*rows: tuple[int, int, bool]) -> None:
        times, values, gone = zip(*rows, strict=True)
        cards = ["A"] * len(rows)
        table = {"t": times, "card": cards, "x": values, "gone": gone}
        leader.ingest(pa.table(table))
        leader.collect()

    take_in((1, 10, False), (5, 20, False))
    follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), **request)
    for at in range(8):
        take_in((5, 20 + at, True), (5, 21 + at, False), (6, 1, False))
    before, seen = follower.query("A", at=6), []
    insert = Index.insert

    def watched(index: Index, rows: pa.Table, gone: pa.Table | None = None) -> None:
        insert(index, rows, gone)
        seen.append(follower.query("A", at=6))

    monkeypatch.setattr(Index, "insert", watched)
    monkeypatch.setattr(shard, "_STEP", 2)
    follower.apply(leader.changes())
    after = leader.query("A", at=6)
    assert after != before
    assert seen
    assert all(each == after for each in seen)


def test_a_follower_that_was_queried_before_drops_idle_keys() -> None:
    """Its index is built again, and its next answers come from the new one."""
    leader = sw.KeyedWindows(**{**CARDS, "windows": 100}, emit="update")
    leader.ingest(pa.table({"t": [1, 8], "card": [*"AB"]}))
    leader.collect()
    again = {**CARDS, "windows": 100}
    follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), **again)
    assert follower.query("A") == {"n_100": 1}
    leader.evict_idle(1)
    leader.ingest(pa.table({"t": [9], "card": ["B"]}))
    leader.collect()
    follower.apply(leader.changes())
    for windows in (leader, follower):
        assert [windows.query(card)["n_100"] for card in "AB"] == [0, 2]


@pytest.mark.parametrize("kind", ["deletes", "rows", "sessions", "final"])
def test_a_follower_of_a_log_that_was_rewritten(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages do not tell which rows left."""
    monkeypatch.setattr(row_log, "_MIN_ROWS", 8)
    # Small segments that die as a whole leave nothing to rewrite.
    monkeypatch.setattr(row_log, "FAN", 2)
    stream = Stream(7)
    leader, again = leader_of(kind, 0)
    leader.ingest(stream.batch())
    follower = sw.KeyedWindows.from_bytes(leader.to_bytes(), **again)
    generations = set()
    for _ in range(12):
        for _ in range(5):
            leader.ingest(stream.batch())
            leader.advance()
            leader.collect()
        follower.apply(leader.changes())
        follower.check()
        assert follower.keys().equals(leader.keys())
        if kind not in _WITHOUT_LENGTH:
            assert answers_of(follower).equals(answers_of(leader))
        assert leader._state.processor is not None
        generations.add(leader._state.processor.shard.log.generation)
    assert len(generations) > 2, "it was"
    # Opened again and again, a log is rewritten as often.
    assert leader._state.processor is not None
    most = len(leader._state.processor.shard.log)
    for _ in range(30):
        leader.ingest(stream.batch())
        leader.advance()
        leader.collect()
        leader = sw.KeyedWindows.from_bytes(leader.to_bytes(), **again)
        assert leader._state.processor is not None
        assert len(leader._state.processor.shard.log) < 4 * most + 1000
