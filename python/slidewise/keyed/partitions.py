"""Slots: partitions of the keys of a shard by hash, and the pages of each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from slidewise.errors import SnapshotError
from slidewise.keyed.page_store import Child
from slidewise.keyed.page_tree import Tree
from slidewise.keyed.snapshots import checked_ints

__all__ = ["DEEPEST", "Slot", "read_slots"]

# Bits of a hash that partition keys into slots, at most.
DEEPEST = 16


@dataclass(slots=True)
class Slot:
    """The keys whose hash ends in the lowest `depth` bits of `prefix`.

    Attributes:
        tree: The rows that windows may still hold.
        latest_time: The time of its latest row; None without rows.
        waiting: Pages of rows that wait for the watermark, in order of arrival.
        closing: A lower bound of the ends of its sessions; None without rows, or
            sessions.
        ended: The page with the last emitted window of each key, for `empty=True`.
    """

    depth: int
    prefix: int
    tree: Tree = field(default_factory=Tree)
    latest_time: int | None = None
    waiting: list[Child] = field(default_factory=list)
    closing: int | None = None
    ended: int | None = None

    @property
    def earliest_waiting(self) -> int | None:
        """The time of the earliest waiting row, or None."""
        return min((page.first for page in self.waiting), default=None)

    def record(self) -> tuple[object, ...]:
        """The slot as JSON."""
        return (
            self.depth,
            self.prefix,
            self.tree.root,
            self.latest_time,
            [(page.page, page.first, page.last) for page in self.waiting],
            self.closing,
            self.ended,
        )


def read_slots(records: Sequence[Sequence[Any]]) -> list[Slot]:
    """Slots from their records.

    Raises:
        SnapshotError: If they do not partition the hashes.
        TypeError: If they are no such records; or ValueError.
    """
    slots = [_read(*record) for record in records]
    known = {(slot.depth, slot.prefix) for slot in slots}
    shares = 0
    for slot in slots:
        if not (0 <= slot.depth <= DEEPEST and 0 <= slot.prefix < 1 << slot.depth):
            raise SnapshotError(f"there is no slot {slot.prefix} at depth {slot.depth}")
        above = ((d, slot.prefix & ((1 << d) - 1)) for d in range(slot.depth))
        if any(slot in known for slot in above):
            raise SnapshotError(f"keys of slot {slot.prefix} are in another slot, too")
        shares += 1 << DEEPEST - slot.depth
    if len(known) != len(slots) or shares != 1 << DEEPEST:
        raise SnapshotError("the slots do not partition the keys")
    return slots


def _read(
    depth: int,
    prefix: int,
    root: int | None,
    latest_time: int | None,
    pages: Sequence[Sequence[int]],
    closing: int | None = None,
    ended: int | None = None,
) -> Slot:
    for number in (root, latest_time, closing, ended):
        checked_ints(0 if number is None else number)
    checked_ints(depth, prefix)
    waiting = [Child(page, first, last) for page, first, last in pages]
    for child in waiting:
        checked_ints(child.page, child.first, child.last)
    return Slot(depth, prefix, Tree(root), latest_time, waiting, closing, ended)
