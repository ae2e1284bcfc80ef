"""Followers answer from the files of a publisher, as of committed micro-batches."""

import pickle
import random
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from keyed_streams import FOLDED, SEEDS, WHOLE, Stream, assert_same
from own_aggregations import local
from prometheus_client import CollectorRegistry

import slidewise as sw
from slidewise.keyed import publisher
from slidewise.keyed.buckets import buckets_of
from slidewise.keyed.clock import split_ahead
from slidewise.keyed.columns import LATEST
from slidewise.keyed.follower import Follower
from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.processor import Processor
from slidewise.keyed.published import Folder
from slidewise.keyed.publisher import Commit, Published, Publisher
from slidewise.keyed.query import KeyedQuery
from slidewise.keyed.validation import checked
from slidewise.metrics import prometheus
from slidewise.spec.spec import Spec

BUCKETS = 3
# The most calls in a micro-batch, and those in one that is not committed.
MOST = 2 * BUCKETS
CALLS = [0, 1, 2, 3, MOST]
KINDS: dict[str, dict[str, Any]] = {
    "final": {"windows": [7, 60], "aggs": FOLDED},
    "rows of windows": {"windows": [9, sw.rows(3)], "aggs": WHOLE},
    "update": {"windows": [50], "aggs": FOLDED, "emit": "update"},
    "deletes": {"windows": [40], "aggs": {**FOLDED, **WHOLE}, "deletes": "ok"},
    "ids": {"windows": 9, "aggs": FOLDED, "emit": "update", "unique_by": "ok"},
    "counts": {"windows": 10, "aggs": {"n": sw.count()}, "emit": "update"},
    "hops": {"window": 30, "every": 7, "aggs": FOLDED, "emit": "slide"},
}


class Stored:
    """A stream in buckets that publishes, and the state that Spark would keep."""

    def __init__(self, folder: Path, kind: str, schema: pa.Schema) -> None:
        given = {"on": "t", "by": "key", **KINDS[kind]}
        emit, deletes = given.pop("emit", "final"), given.pop("deletes", None)
        make = Spec.make_hopping if "window" in given else Spec.make
        self.query = checked(KeyedQuery(make(**given), schema, emit, ("id",), deletes))
        self.folder, self.batch = Folder(folder), 0
        self.publisher = Publisher(str(folder), BUCKETS).claim("q")
        self.stores = {bucket: MemoryStore() for bucket in range(BUCKETS)}
        self.heads: dict[int, tuple[Any, Published | None]] = {}
        # The latest time of a row that is not ahead of its micro-batch.
        self.limit = LATEST

    def saved(self) -> Any:
        """What a checkpoint holds, to go back to."""
        return pickle.loads(pickle.dumps((self.stores, self.heads, self.batch)))

    def restore(self, saved: Any) -> None:
        again = pickle.loads(pickle.dumps(saved))
        self.stores, self.heads, self.batch = again

    def run(self, rows: pa.Table, watermark: int | None, calls: int = MOST) -> None:
        """Runs a micro-batch, or only its first calls, which Spark never commits."""
        numbers = buckets_of(["key"], rows, BUCKETS)
        for bucket in range(BUCKETS):
            own = rows.filter(pc.equal(numbers, bucket)).combine_chunks()
            parts, middle = [own], len(own) // 2
            if self.batch % 3 == 0 and self.query.deletes is None:
                # Spark may call a bucket for initial rows, and again for new ones.
                parts = [own[:middle], own[middle:]]
            for part in parts:
                if calls and (len(part) or bucket in self.heads):
                    self._call(bucket, part, watermark)
                    calls -= 1
        self.batch += 1

    def _call(self, bucket: int, rows: pa.Table, watermark: int | None) -> None:
        store = self.stores[bucket]
        directory, before = self.heads.get(bucket, (None, None))
        processor = Processor(self.query, store, directory)
        if watermark is not None:
            processor.advance(watermark)
            processor.evict(watermark)
        rows, ends = self.query.arrived(rows)
        rows, ahead, ends = split_ahead(rows, self.limit, ends)
        accepted, late = self.query.by_lateness(rows, watermark, ends)
        rows = processor.counting(accepted, watermark)
        if len(rows):
            processor.ingest(rows, watermark)
        pages = processor.pages.changed
        directory = processor.commit()
        changed = {page: store.get(page) for page in pages}
        largest = None if ends is None else ends[1]
        commit = Commit(
            batch=self.batch,
            bucket=bucket,
            watermark=watermark,
            largest=largest,
            late=len(late),
            ahead=len(ahead),
            duplicates=len(accepted) - len(rows),
            changed=changed,
        )
        published = self.publisher.write(processor, directory, commit, before)
        self.heads[bucket] = directory, published

    def commit(self) -> None:
        """Marks the last micro-batch as committed, as the driver does."""
        self.folder.mark(self.batch - 1)


@pytest.fixture(autouse=True)
def snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots are frequent."""
    monkeypatch.setattr(publisher, "_LEAST_BYTES", 1)
    monkeypatch.setattr(publisher, "_MOST_CHANGES", 3)


def assert_follows(follower: Follower, leader: sw.KeyedWindows) -> None:
    """Checks that all answers are those of windows that took the same rows."""
    assert follower.watermark == leader.watermark
    assert follower.late_count == leader.late_count
    assert follower.duplicate_count == leader.duplicate_count
    keys = leader.keys().sort_by("key")
    assert follower.keys().sort_by("key").equals(keys)
    assert len(follower) == len(leader) == len(keys)
    assert_same(follower.query_many(keys), leader.query_many(keys), ["key"])
    if leader.watermark is not None:
        late = keys.select(["key"])
        ours = follower.query_many(late, at=leader.watermark + 3, windows=5)
        theirs = leader.query_many(late, at=leader.watermark + 3, windows=5)
        assert_same(ours, theirs, ["key"])
    for key in [*keys["key"].to_pylist()[:3], "no such key"]:
        ours, theirs = follower.query((key,)), leader.query((key,))
        tables = (pa.Table.from_pylist([{"key": key, **x}]) for x in (ours, theirs))
        assert_same(*tables, ["key"])
        assert ((key,) in follower) == ((key,) in leader)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_followers_across_kills_of_the_publisher(
    tmp_path: Path, kind: str, seed: int
) -> None:
    """Each micro-batch is run once, or some calls of it first and then all again."""
    stream, draw = Stream(seed), random.Random(seed)
    rows = stream.batch()
    stored = Stored(tmp_path / "out", kind, rows.schema)
    given = {"on": "t", "by": "key", **KINDS[kind]}
    leader = sw.KeyedWindows(**given, then_by="id")
    follower: Follower | None = None
    times: list[int] = []
    for _ in range(8):
        watermark = max(times) - 5 if times else None
        if draw.random() < 0.5:
            before = stored.saved()
            order = list(range(len(rows)))
            if draw.random() < 0.5:  # in another order, so that pages differ
                draw.shuffle(order)
            stored.run(
                rows.take(pa.array(order, pa.int64())), watermark, draw.choice(CALLS)
            )
            stored.restore(before)
            if follower is not None:
                follower.refresh()
                assert_follows(follower, leader)
        leader.advance(watermark)
        leader.ingest(rows)
        leader.collect()
        times += rows["t"].to_pylist()
        stored.run(rows, watermark)
        stored.commit()
        if not stored.heads:
            with pytest.raises(sw.SnapshotError, match="no committed micro-batch is"):
                sw.follow(tmp_path / "out")
        elif follower is None or draw.random() < 0.3:
            follower = sw.follow(tmp_path / "out")
            assert_follows(follower, leader)
        elif draw.random() < 0.8:
            assert follower.refresh()
            assert_follows(follower, leader)
        rows = stream.batch()
    files = len(list((tmp_path / "out").iterdir()))
    assert files < 9 * MOST, "old files are removed"


ROWS = pa.table({"id": [1, 2, 3], "t": [1, 2, 9], "key": [*"ABA"], "x": [1, 2, 3]})


def published(folder: Path, batches: int = 1) -> Stored:
    """A stream of counts that has run some micro-batches of `ROWS`."""
    stored = Stored(folder, "counts", ROWS.schema)
    for _ in range(batches):
        stored.run(ROWS, None)
        stored.commit()
    return stored


def test_followers_count_rows_that_are_ahead(tmp_path: Path) -> None:
    stored = Stored(tmp_path, "counts", ROWS.schema)
    stored.limit = 5  # the row at time 9 is ahead
    stored.run(ROWS, None)
    stored.commit()
    follower = sw.follow(tmp_path)
    assert (follower.ahead_count, follower.query("A")) == (1, {"n_10": 1})
    stored.run(ROWS, None)
    stored.commit()
    assert follower.refresh()
    assert (follower.ahead_count, follower.query("A")) == (2, {"n_10": 2})


def test_metrics_of_a_follower(tmp_path: Path) -> None:
    published(tmp_path)
    follower = sw.follow(tmp_path)
    registry = CollectorRegistry()
    prometheus({"features": follower}, registry=registry)
    assert follower.query("A") == {"n_10": 2}
    assert follower.query_many({"key": ["A", "B"]})["n_10"] == [2, 1]
    counts = {"late": 0, "ahead": 0, "duplicates": 0, "state_bytes": follower.nbytes}
    assert follower.metrics() == counts  # times of the stream are integers
    calls = "slidewise_query_duration_seconds_count"
    assert registry.get_sample_value(calls, {"stream": "features"}) == 2


def test_a_micro_batch_that_runs_again_writes_the_same_files(tmp_path: Path) -> None:
    stored = published(tmp_path)
    before = stored.saved()
    stored.run(ROWS, None)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    stored.restore(before)
    stored.run(ROWS, None)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_a_commit_without_a_mark_counts_once_the_next_batch_runs(
    tmp_path: Path,
) -> None:
    stored = published(tmp_path)
    follower = sw.follow(tmp_path)
    stored.run(ROWS, None)
    assert not follower.refresh()
    assert follower.query("A") == {"n_10": 2}
    stored.run(ROWS, None)
    assert follower.refresh()
    assert (follower.batch, follower.query("A")) == (1, {"n_10": 4})


def test_a_follower_that_missed_removed_files_opens_a_snapshot(tmp_path: Path) -> None:
    stored = published(tmp_path)
    follower, first = sw.follow(tmp_path), [*tmp_path.glob("0-*")]
    first.append(tmp_path / f".{first[0].name}.of a writer that was killed")
    first[-1].touch()
    for _ in range(8):
        stored.run(ROWS, None)
        stored.commit()
    assert not any(path.exists() for path in first)
    assert follower.refresh()
    assert follower.query("A") == {"n_10": 18}


def test_a_damaged_file_is_refused_and_the_next_snapshot_is_taken(
    tmp_path: Path,
) -> None:
    stored = published(tmp_path)
    follower = sw.follow(tmp_path)
    stored.run(ROWS, None)
    stored.commit()
    for path in tmp_path.glob("1-*"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(sw.SnapshotError, match="damaged: its checksum differs"):
        follower.refresh()
    with pytest.raises(sw.SnapshotError, match=r"the last refresh\(\) failed"):
        follower.query("A")
    for _ in range(4):
        stored.run(ROWS, None)
        stored.commit()
    assert follower.refresh()
    assert follower.query("A") == {"n_10": 12}


def test_a_folder_belongs_to_one_query(tmp_path: Path) -> None:
    published(tmp_path)
    with pytest.raises(sw.SpecError, match=r"another query publishes to .*: give"):
        Publisher(str(tmp_path), BUCKETS).claim("other")


@pytest.mark.parametrize("damaged", ["", "{}", "[1]", "\N{MIDDLE DOT}"])
def test_a_damaged_query_is_refused_by_its_name(tmp_path: Path, damaged: str) -> None:
    stored = published(tmp_path)
    follower = sw.follow(tmp_path)
    (tmp_path / "query.json").write_text(damaged, "latin-1")
    with pytest.raises(sw.SnapshotError, match=r"query\.json in .* is damaged \("):
        sw.follow(tmp_path)
    stored.run(ROWS, None)
    stored.commit()
    with pytest.raises(sw.SnapshotError, match=r"query\.json in .* is damaged \("):
        follower.refresh()
    assert follower.query("A") == {"n_10": 2}
    (tmp_path / "query.json").write_text('{"format": 0}')
    with pytest.raises(sw.SnapshotError, match="has format 0, and this version of sl"):
        sw.follow(tmp_path)


def test_a_state_has_published_all_of_it_to_one_folder(tmp_path: Path) -> None:
    stored = published(tmp_path)
    before = next(iter(stored.heads.values()))[1]
    stored.publisher.require(None, is_new=True)
    stored.publisher.require(before, is_new=False)
    with pytest.raises(sw.SpecError, match="publish= was not given when this checkpoi"):
        stored.publisher.require(None, is_new=False)
    with pytest.raises(sw.SpecError, match=r"publishes to .*, and publish= is"):
        Publisher(str(tmp_path / "b"), BUCKETS).require(before, is_new=False)


def test_folders_have_any_name_or_a_uri(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(tmp_path / "a b%20ü#")
    monkeypatch.chdir(tmp_path)
    assert sw.follow("a b%20ü#").query("A") == {"n_10": 2}
    published(tmp_path / "named")
    assert sw.follow((tmp_path / "named").as_uri()).query("A") == {"n_10": 2}
    with pytest.raises(sw.SpecError, match=r"'none://x' is no folder: Unrecognized"):
        sw.follow("none://x")
    with pytest.raises(sw.SnapshotError, match="no committed micro-batch is in"):
        sw.follow("no such folder")


def test_a_thread_keeps_up_until_it_is_closed(tmp_path: Path) -> None:
    stored = published(tmp_path)
    with sw.follow(tmp_path, every="5ms") as follower:
        stored.run(ROWS, None)
        stored.commit()
        while follower.batch < 1:
            assert follower.error is None
            time.sleep(0.005)
        assert follower.query("A") == {"n_10": 4}
    with pytest.raises(sw.SpecError, match="every=0 is not a duration above 0"):
        sw.follow(tmp_path, every=0)


def test_a_follower_that_is_dropped_ends_its_thread(tmp_path: Path) -> None:
    """At once, though it looks once an hour; also while its thread looks."""
    published(tmp_path)
    before = set(threading.enumerate())
    for every in ("1h", "1ms"):
        follower = sw.follow(tmp_path, every=every)
        assert follower.query("A") == {"n_10": 2}
        (thread,) = set(threading.enumerate()) - before
        gone = weakref.ref(follower)
        del follower
        thread.join(10)
        assert not thread.is_alive()
        assert gone() is None


def test_tables_of_keys_come_back_as_they_are(tmp_path: Path) -> None:
    published(tmp_path)
    follower = sw.follow(tmp_path)
    keys = {"key": ["B", "none", "A"], "when": [2, 3, 12]}
    asked: dict[str, Any] = {"at": "when", "windows": 4, "plus": {"x": "when"}}
    assert follower.query_many(keys, **asked) == {**keys, "n_4": [2, 1, 2]}
    assert follower.query_many({"key": []}) == {"key": [], "n_10": []}
    table = pa.table({"key": ["B", None, "A"]})
    answered = follower.query_many(table)
    assert answered.to_pydict() == {"key": ["B", None, "A"], "n_10": [1, 0, 2]}
    assert "A" in follower
    assert "none" not in follower
    with pytest.raises(sw.SpecError, match="the key has no column 'key'"):
        follower.query({})


def test_a_spec_that_cannot_be_imported_is_given(tmp_path: Path) -> None:
    spec = sw.Spec(on="t", by="key", windows=10, aggs={"own": local()})
    query = checked(KeyedQuery(spec, ROWS.schema, "update"))
    stored = published(tmp_path, 0)
    stored.query = query
    stored.run(ROWS, None)
    stored.commit()
    with pytest.raises(sw.SnapshotError, match="its own, of which an aggregation"):
        sw.follow(tmp_path)
    assert sw.follow(tmp_path, spec).query("A") == {"own_10": 4}
