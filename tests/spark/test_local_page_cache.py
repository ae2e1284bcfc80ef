"""The page cache on a node's disk returns the pages of the state, or none."""

import os
import time
from pathlib import Path

import pytest

from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.processor import Processor
from slidewise.spark import local_page_cache
from slidewise.spark.local_page_cache import CachedStore, LocalPageCache
from slidewise.spark.shard_cache import CachedShard, ShardCache


class Counting(MemoryStore):
    """A state store that records which pages are read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []

    def get(self, page: int) -> bytes | None:
        """Reads and records a page."""
        self.reads.append(page)
        return super().get(page)


def store_of(state: Counting, folder: Path, parent: str) -> CachedStore:
    """The store of a worker that has not decoded anything."""
    state.reads.clear()
    return CachedStore(state, LocalPageCache.open(folder / "query-3", parent))


def segments(folder: Path) -> list[str]:
    """The names of the files of the bucket."""
    return sorted(path.name for path in (folder / "query-3").iterdir())


def test_the_next_worker_reads_pages_from_the_disk(tmp_path: Path) -> None:
    """The cache has written pages and read pages, and no removed ones."""
    state = Counting()
    state.put(1, b"one")
    first = store_of(state, tmp_path, "")
    assert first.get(1) == b"one"
    first.put(2, b"two")
    first.put(3, b"three")
    first.commit("", "0:aa")
    assert state.reads == [1]
    second = store_of(state, tmp_path, "0:aa")
    assert bytes(second.get(1) or b"") == b"one"
    second.put(2, b"TWO")
    second.remove(3)
    assert second.get(3) is None
    second.commit("0:aa", "1:bb")
    third = store_of(state, tmp_path, "1:bb")
    assert [bytes(third.get(page) or b"") for page in (1, 2, 3)] == [
        b"one",
        b"TWO",
        b"",
    ]
    assert third.hits == 2
    assert state.reads == [3]


def test_another_state_has_other_segments(tmp_path: Path) -> None:
    """The states are of a rollback, and of the second attempt of a micro-batch."""
    state = Counting()
    begun = store_of(state, tmp_path, "")
    begun.put(1, b"old")
    begun.commit("", "0:aa")
    failed = store_of(Counting(), tmp_path, "0:aa")
    failed.put(1, b"never committed")
    failed.commit("0:aa", "1:bb")
    again = store_of(state, tmp_path, "0:aa")
    assert bytes(again.get(1) or b"") == b"old"
    unknown = store_of(state, tmp_path, "5:dd")
    assert unknown.get(1) == b"old"
    assert state.reads == [1]


@pytest.mark.parametrize("harm", ["gone", "cut", "short", "empty"])
def test_without_a_segment_the_state_is_read(tmp_path: Path, harm: str) -> None:
    """Files may be deleted at any time."""
    state = Counting()
    for before, token in (("", "a"), ("a", "b")):
        store = store_of(state, tmp_path, before)
        store.put(ord(token), token.encode())
        store.commit(before, token)
    (path,) = tmp_path.rglob("a")
    if harm == "gone":
        path.unlink()
    else:
        length = {"cut": 20, "short": 5, "empty": 0}[harm]
        path.write_bytes(path.read_bytes()[:length])
    store = store_of(state, tmp_path, "b")
    assert bytes(store.get(ord("b")) or b"") == b"b"
    assert store.get(ord("a")) == b"a"
    assert state.reads == [ord("a")]


def test_bytes_of_segments_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of failed attempts are deleted once they are stale."""
    monkeypatch.setattr(local_page_cache, "_MAX_BYTES", 40_000)
    own, other = tmp_path / "query-3", tmp_path / "query-33"
    # A killed attempt leaves a segment, and one that it was writing.
    for left in (own / "failed", own / ".half", other / "failed"):
        left.parent.mkdir(exist_ok=True)
        left.write_bytes(b"")
        os.utime(left, (1, 1))
    state, before = Counting(), ""
    for at in range(9):
        store = store_of(state, tmp_path, before)
        store.put(at, bytes(9_000))
        store.commit(before, f"{at}")
        before = f"{at}"
    sizes = [path.stat().st_size for path in own.iterdir()]
    assert 3 <= len(sizes) <= 4
    assert min(sizes) > 9_000
    assert [path.name for path in other.iterdir()] == ["failed"]


def test_superseded_segments_are_deleted(tmp_path: Path) -> None:
    """They end the chain, and later ones hold or remove all of their pages."""
    state, before = Counting(), ""
    plan: list[dict[int, bytes | None]] = [
        {1: b"a", 2: b"a"},
        {3: b"b"},
        {1: b"c", 2: None},
        {4: b"d"},
        {3: b"e"},
    ]
    left = []
    for at, pages in enumerate(plan):
        store = store_of(state, tmp_path, before)
        for page, blob in pages.items():
            if blob is None:
                store.remove(page)
            else:
                store.put(page, blob)
        store.commit(before, f"{at}")
        before = f"{at}"
        left.append(segments(tmp_path))
    assert left == [["0"], ["0", "1"], ["1", "2"], ["1", "2", "3"], ["2", "3", "4"]]
    last = store_of(state, tmp_path, before)
    found = [bytes(last.get(page) or b"") for page in (1, 3, 4)]
    assert (found, state.reads) == ([b"c", b"e", b"d"], [])
    assert (last.get(2), state.reads) == (None, [2])


def test_the_number_of_segments_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of deleted segments are read from the state."""
    monkeypatch.setattr(local_page_cache, "_MAX_SEGMENTS", 4)
    state, before = Counting(), ""
    for at in range(7):
        store = store_of(state, tmp_path, before)
        store.put(at, b"x")
        store.commit(before, f"{at}")
        before = f"{at}"
    assert segments(tmp_path) == list("3456")
    store = store_of(state, tmp_path, before)
    assert (store.get(3), state.reads) == (b"x", [])
    assert (store.get(2), state.reads) == (b"x", [2])


def test_a_file_deleted_after_opening(tmp_path: Path) -> None:
    """Pages are read from the state, not from an older segment."""
    state, before = Counting(), ""
    for at in range(2):
        store = store_of(state, tmp_path, before)
        store.put(1, b"new" if at else b"old")
        store.put(2 + at, b"other")
        store.commit(before, f"{at}")
        before = f"{at}"
    store = store_of(state, tmp_path, before)
    next(tmp_path.rglob("1")).unlink()
    assert store.get(1) == b"new"
    assert state.reads == [1]


def test_stale_shards_are_evicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shards of old micro-batches and of ended queries are evicted."""
    processor = Processor.__new__(Processor)
    cache = ShardCache()

    def put(query: str, bucket: int, batch: int) -> None:
        cache.put(query, bucket, CachedShard("t", processor, None, batch))

    for bucket, batch in enumerate([3, 13, 23, 27]):
        put("a", bucket, batch)
    put("b", 0, 1)
    found = cache.pop("a", 3, 27)
    assert found is not None
    assert found.batch == 27
    # Other workers have had these buckets meanwhile.
    assert set(cache.entries) == {("a", 1), ("a", 2), ("b", 0)}
    put("a", 3, 16)
    # A state that was rolled back.
    assert cache.pop("a", 9, 12) is None
    assert set(cache.entries) == {("b", 0)}
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 601)
    assert cache.pop("a", 0, 8) is None
    assert not cache.entries


def test_no_folder_means_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark names its folder; one that cannot be written to is ignored."""
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert local_page_cache.cache_folder() is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    assert local_page_cache.cache_folder() == tmp_path / "slidewise"
    (tmp_path / "file").write_bytes(b"")
    store = store_of(Counting(), tmp_path / "file", "")
    store.put(1, b"x")
    store.commit("", "a")


def test_a_full_disk_leaves_no_stale_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No page is stale, then or in the next segment, and no partial file is left."""
    state = Counting()
    store = store_of(state, tmp_path, "")
    for page in (1, 2):
        store.put(page, b"old")
    store.commit("", "0:aa")
    store.put(1, b"new")

    def full(path: Path, _mode: str) -> None:
        path.touch()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        store.commit("0:aa", "1:bb")
    assert store.get(1) == b"new"
    assert segments(tmp_path) == ["0-aa"]
    store.put(2, b"newer")
    store.commit("1:bb", "2:cc")
    for each in (store, store_of(state, tmp_path, "2:cc")):
        assert (each.get(1), each.get(2)) == (b"new", b"newer")
