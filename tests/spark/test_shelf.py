"""Pages on a node's disk are those of the state, or are not taken."""

import os
from pathlib import Path

import pytest

from slidewise.keyed.pages import MemoryStore
from slidewise.spark import shelf
from slidewise.spark.shelf import Shelf, Shelved


class Counting(MemoryStore):
    """The state, which counts what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def get(self, page: int) -> bytes | None:
        """As in `slidewise.keyed.pages.Store`."""
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
        length = {"cut": 64, "short": 5, "empty": 0}[harm]
        path.write_bytes(path.read_bytes()[:length])
    held = turn(state, tmp_path, "b", "c")
    assert bytes(held.get(ord("b")) or b"") == b"b"
    assert held.get(ord("a")) == b"a"
    assert state.asked == [ord("a")]


def test_few_segments_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many bytes; and those of failed attempts not for long."""
    monkeypatch.setattr(shelf, "_MOST", 40_000)
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


def test_no_folder_means_no_shelf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark names its own; a folder that cannot be written is passed over."""
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert shelf.folder() is None
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    assert shelf.folder() == tmp_path / "slidewise"
    (tmp_path / "file").write_bytes(b"")
    held = turn(Counting(), tmp_path / "file", "", "a")
    held.put(1, b"x")
    held.keep("", "a")
