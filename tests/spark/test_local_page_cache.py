"""Pages on a node's disk are those of the state, or are not taken."""

import os
import time
from pathlib import Path

import pytest

from slidewise.keyed.page_store import MemoryStore
from slidewise.keyed.shard import Shard
from slidewise.spark import local_page_cache
from slidewise.spark.local_page_cache import Shelf, Shelved
from slidewise.spark.shard_cache import Cache, Held


class Counting(MemoryStore):
    """The state, which counts what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def get(self, page: int) -> bytes | None:
        """As in `slidewise.keyed.page_store.Store`."""
        self.asked.append(page)
        return super().get(page)


def turn(state: Counting, place: Path, before: str, token: str) -> Shelved:
    """What a worker sees that has not decoded anything."""
    state.asked.clear()
    return Shelved(state, Shelf.at("query-3", place, before))


def test_the_next_worker_finds_pages_on_the_disk(tmp_path: Path) -> None:
    """Those that were written, those that were read, and no removed ones."""
    state = Counting()
    state.put(1, b"one")
    first = turn(state, tmp_path, "", "0:aa")
    assert first.get(1) == b"one"
    first.put(2, b"two")
    first.put(3, b"three")
    first.keep("", "0:aa")
    assert state.asked == [1]
    second = turn(state, tmp_path, "0:aa", "1:bb")
    assert bytes(second.get(1) or b"") == b"one"
    second.put(2, b"TWO")
    second.remove(3)
    assert second.get(3) is None
    second.keep("0:aa", "1:bb")
    third = turn(state, tmp_path, "1:bb", "2:cc")
    assert [bytes(third.get(page) or b"") for page in (1, 2, 3)] == [
        b"one",
        b"TWO",
        b"",
    ]
    assert third.hits == 2
    assert state.asked == [3]


def test_another_state_has_other_segments(tmp_path: Path) -> None:
    """One that was rolled back, and the second attempt of a batch."""
    state = Counting()
    begun = turn(state, tmp_path, "", "0:aa")
    begun.put(1, b"old")
    begun.keep("", "0:aa")
    failed = turn(Counting(), tmp_path, "0:aa", "1:bb")
    failed.put(1, b"never committed")
    failed.keep("0:aa", "1:bb")
    again = turn(state, tmp_path, "0:aa", "1:cc")
    assert bytes(again.get(1) or b"") == b"old"
    unknown = turn(state, tmp_path, "5:dd", "6:ee")
    assert unknown.get(1) == b"old"
    assert state.asked == [1]


@pytest.mark.parametrize("harm", ["gone", "cut", "short", "empty"])
def test_without_a_segment_the_state_is_asked(tmp_path: Path, harm: str) -> None:
    """Files may go at any time."""
    state = Counting()
    for before, token in (("", "a"), ("a", "b")):
        held = turn(state, tmp_path, before, token)
        held.put(ord(token), token.encode())
        held.keep(before, token)
    (path,) = tmp_path.glob("*-a")
    if harm == "gone":
        path.unlink()
    else:
        length = {"cut": 20, "short": 5, "empty": 0}[harm]
        path.write_bytes(path.read_bytes()[:length])
    held = turn(state, tmp_path, "b", "c")
    assert bytes(held.get(ord("b")) or b"") == b"b"
    assert held.get(ord("a")) == b"a"
    assert state.asked == [ord("a")]


def test_few_segments_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many bytes; and those of failed attempts not for long."""
    monkeypatch.setattr(local_page_cache, "_MOST", 40_000)
    left = tmp_path / "query-3-failed"
    left.write_bytes(b"")
    os.utime(left, (1, 1))
    (tmp_path / "query-33-of-others").write_bytes(b"")
    state, before = Counting(), ""
    for at in range(9):
        held = turn(state, tmp_path, before, f"{at}")
        held.put(at, bytes(9_000))
        held.keep(before, f"{at}")
        before = f"{at}"
    sizes = [path.stat().st_size for path in tmp_path.glob("query-3-*")]
    assert 3 <= len(sizes) <= 4
    assert len(list(tmp_path.iterdir())) == len(sizes) + 1


def test_segments_of_which_nothing_is_left_go(tmp_path: Path) -> None:
    """At the end of the chain, once younger ones hold or remove all of their pages."""
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
        held = turn(state, tmp_path, before, f"{at}")
        for page, blob in pages.items():
            if blob is None:
                held.remove(page)
            else:
                held.put(page, blob)
        held.keep(before, f"{at}")
        before = f"{at}"
        left.append(sorted(path.name[-1] for path in tmp_path.iterdir()))
    assert left == [["0"], ["0", "1"], ["1", "2"], ["1", "2", "3"], ["2", "3", "4"]]
    last = turn(state, tmp_path, before, "5")
    found = [bytes(last.get(page) or b"") for page in (1, 3, 4)]
    assert (found, state.asked) == ([b"c", b"e", b"d"], [])
    assert (last.get(2), state.asked) == (None, [2])


def test_no_more_segments_than_a_worker_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small they are; the state has what they held."""
    monkeypatch.setattr(local_page_cache, "_FILES", 4)
    state, before = Counting(), ""
    for at in range(7):
        held = turn(state, tmp_path, before, f"{at}")
        held.put(at, b"x")
        held.keep(before, f"{at}")
        before = f"{at}"
    assert sorted(path.name[-1] for path in tmp_path.iterdir()) == list("3456")
    held = turn(state, tmp_path, before, "7")
    assert (held.get(3), state.asked) == (b"x", [])
    assert (held.get(2), state.asked) == (b"x", [2])


def test_files_that_go_meanwhile_are_not_missed(tmp_path: Path) -> None:
    """The state is asked, and no older segment."""
    state, before = Counting(), ""
    for at in range(2):
        held = turn(state, tmp_path, before, f"{at}")
        held.put(1, b"new" if at else b"old")
        held.put(2 + at, b"other")
        held.keep(before, f"{at}")
        before = f"{at}"
    held = turn(state, tmp_path, before, "2")
    next(tmp_path.glob("*-1")).unlink()
    assert held.get(1) == b"new"
    assert state.asked == [1]


def test_what_can_never_be_trusted_again_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shards of micro-batches long past, and those of queries that have ended."""
    shard = Shard.__new__(Shard)
    cache = Cache()

    def put(query: str, bucket: int, batch: int) -> None:
        cache.put(query, bucket, Held("t", shard, None, batch))

    for bucket, batch in enumerate([3, 4, 6, 7]):
        put("a", bucket, batch)
    put("b", 0, 1)
    found = cache.take("a", 3, 7)
    assert found is not None
    assert found.batch == 7
    # Two micro-batches without rows leave a bucket's state as it was.
    assert set(cache.held) == {("a", 2), ("b", 0)}
    put("a", 3, 6)
    # A state that was rolled back.
    assert cache.take("a", 1, 5) is None
    assert set(cache.held) == {("b", 0)}
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 601)
    assert cache.take("a", 0, 8) is None
    assert not cache.held


def test_no_folder_means_no_shelf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark names its own; a folder that cannot be written is passed over."""
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert local_page_cache.folder() is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    assert local_page_cache.folder() == tmp_path / "slidewise"
    (tmp_path / "file").write_bytes(b"")
    held = turn(Counting(), tmp_path / "file", "", "a")
    held.put(1, b"x")
    held.keep("", "a")


def test_a_disk_that_is_full_leaves_nothing_old_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither at once nor behind the next segment, and no part of a file."""
    state = Counting()
    shelved = turn(state, tmp_path, "", "0:aa")
    for page in (1, 2):
        shelved.put(page, b"old")
    shelved.keep("", "0:aa")
    shelved.put(1, b"new")

    def full(path: Path, blob: bytes) -> int:
        path.open("wb").close()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        shelved.keep("0:aa", "1:bb")
    assert shelved.get(1) == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["query-3-0-aa"]
    shelved.put(2, b"newer")
    shelved.keep("1:bb", "2:cc")
    for store in (shelved, turn(state, tmp_path, "2:cc", "3:dd")):
        assert (store.get(1), store.get(2)) == (b"new", b"newer")
