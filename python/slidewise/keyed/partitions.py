"""Slots: the keys of a shard by their hash, and where what is kept of them lies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from slidewise.errors import SnapshotError
from slidewise.keyed.page_store import Child
from slidewise.keyed.page_tree import Tree
from slidewise.keyed.snapshots import checked_ints

__all__ = ["DEEPEST", "Slot", "read_slots"]

# Bits of a hash by which keys are dealt into slots, at most.
DEEPEST = 16


@dataclass(slots=True)
class Slot:
    """The keys whose hash ends in the lowest `depth` bits of `prefix`.

    Attributes:
        tree: Rows that windows may still hold.
        youngest: The time of its last row; None without rows.
        waiting: Pages of rows that are not answered yet, in order of arrival.
        closing: No session of its rows ends before; None without rows, or sessions.
        ended: The page that says which window of each key was answered last, where
            windows without rows are wanted.
    """

    depth: int
    prefix: int
    tree: Tree = field(default_factory=Tree)
    youngest: int | None = None
    waiting: list[Child] = field(default_factory=list)
    closing: int | None = None
    ended: int | None = None

    @property
    def oldest_waiting(self) -> int | None:
        """The time of the first row that waits."""
        return min((page.first for page in self.waiting), default=None)

    def record(self) -> tuple[object, ...]:
        """The slot as JSON takes it."""
        return (
            self.depth,
            self.prefix,
            self.tree.root,
            self.youngest,
            [(page.page, page.first, page.last) for page in self.waiting],
            self.closing,
            self.ended,
        )


def read_slots(records: Sequence[Sequence[Any]]) -> list[Slot]:
    """Slots from their records.

    Raises:
        SnapshotError: If a hash has none of them, or several.
        TypeError: If they are no such records; likewise ValueError.
    """
    slots = [_read(*record) for record in records]
    known = {(slot.depth, slot.prefix) for slot in slots}
    shares = 0
    for slot in slots:
        if not (0 <= slot.depth <= DEEPEST and 0 <= slot.prefix < 1 << slot.depth):
            raise SnapshotError(f"there is no slot {slot.prefix} at depth {slot.depth}")
        above = ((d, slot.prefix & ((1 << d) - 1)) for d in range(slot.depth))
        if any(slot in known for slot in above):
            raise SnapshotError(f"keys of slot {slot.prefix} have another slot, too")
        shares += 1 << DEEPEST - slot.depth
    if len(known) != len(slots) or shares != 1 << DEEPEST:
        raise SnapshotError("the slots do not share the keys among them")
    return slots


def _read(
    depth: int,
    prefix: int,
    root: int | None,
    youngest: int | None,
    pages: Sequence[Sequence[int]],
    closing: int | None = None,
    ended: int | None = None,
) -> Slot:
    for number in (root, youngest, closing, ended):
        checked_ints(0 if number is None else number)
    checked_ints(depth, prefix)
    waiting = [Child(page, first, last) for page, first, last in pages]
    for child in waiting:
        checked_ints(child.page, child.first, child.last)
    return Slot(depth, prefix, Tree(root), youngest, waiting, closing, ended)
