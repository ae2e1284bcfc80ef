r"""A tree of pages: the rows of some keys by time, folded per key above the leaves.

```text
          root    children [first, last] ..., and per child and key one row that stands
         /  |  \  for all below it
     inner ...  inner
     /  |  \
  leaf leaf leaf  rows, about 32 KB of them
```

A window is covered by few pages: only leaves that hold one of its ends are opened, of
all others the folds are taken. So a batch of new rows reads and writes the leaves at
the ends of its windows and the paths to them, however much lies between.

Invariants: (1) children lie in order of time, and no two hold the same time; (2) a leaf
is as deep as any other; (3) a folded child has a row per key in its parent, at the time
of the key's last row below; (4) all children but the last are folded: new rows come to
the last one, and it is opened anyway; (5) along the young end of the tree, what a
parent says of the last time of its last child is a lower bound: so rows that come in
order change their leaf alone, until it is full.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.keyed.page_store import FOLDED, TIME, Child, Node, Pages

__all__ = ["PAGE", "Cover", "Folder", "Forest", "Tree", "ticks_of"]

# Bytes of a full page; one of more than twice as many is cut up.
PAGE = 1 << 15
_EARLIEST = -(2**63)


class Folder(Protocol):
    """What the rows of a page are to the aggregations."""

    @property
    def folds(self) -> bool:
        """Whether rows can be folded beforehand."""

    def sort(self, rows: pa.Table) -> pa.Table:
        """Rows in order of time, and equal times in that of the folder."""

    def fold(self, parts: Sequence[tuple[int, pa.Table]]) -> pa.Table:
        """A row per page and key that stands for the key's rows in that page."""

    def without(self, rows: pa.Table, deleted: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Rows less one with the time and key of each of `deleted`.

        The first by `then_by`, else the first in order. And the deleted ones for which
        there was none.
        """


@dataclass(slots=True)
class Cover:
    """Rows that answer some windows: rows as they are, and rows that stand for many."""

    rows: list[pa.Table] = field(default_factory=list)
    folds: list[pa.Table] = field(default_factory=list)


@dataclass(slots=True)
class Tree:
    """One tree: where its root is, None while there are no rows."""

    root: int | None = None


class Forest:
    """The trees of one store. Changes of many of them are settled together."""

    def __init__(self, pages: Pages, folder: Folder, next_page: int) -> None:
        self.pages = pages
        self.next_page = next_page
        self._folder = folder
        # Per level: nodes with children that are to be folded, and the way to each.
        self._stale: dict[int, dict[int, tuple[Tree, tuple[int, ...]]]] = {}

    def insert(self, tree: Tree, rows: pa.Table) -> None:
        """Inserts rows, sorted by the folder. `settle` must follow."""
        if not len(rows):
            return
        if tree.root is None:
            tree.root = self.new_page()
            self.pages[tree.root] = Node(rows.slice(0, 0))
        self._down(tree, (tree.root,), rows)

    def _down(self, tree: Tree, path: tuple[int, ...], rows: pa.Table) -> None:
        """Hands rows down to the leaves where they belong."""
        node = self.pages[path[-1]]
        if node.level == 0:
            self._fill(tree, path, rows)
            return
        for page, part in list(self._parts(node, rows)):
            self._down(tree, (*path, page), part)

    @staticmethod
    def _parts(node: Node, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The rows, sorted, that belong to each child."""
        ticks, start = ticks_of(rows[TIME]), 0
        ends = [bisect_left(ticks, child.first) for child in node.children[1:]]
        for child, end in zip(node.children, [*ends, len(ticks)], strict=True):
            if end > start:
                yield child.page, rows.slice(start, end - start)
                start = end

    def _fill(self, tree: Tree, path: tuple[int, ...], rows: pa.Table) -> None:
        """Puts rows into a leaf, and cuts it up if it is too large."""
        leaf = self.pages[path[-1]]
        held = leaf.rows
        crowded = held.nbytes + rows.nbytes > 2 * PAGE
        younger = not len(held) or held[TIME][-1].as_py() < rows[TIME][0].as_py()
        if crowded and younger and held.nbytes >= PAGE:
            self._replace(tree, path, [leaf, *map(Node, _pieces(rows))])
            return
        merged = pa.concat_tables([held, rows]).combine_chunks()
        if not younger:
            merged = self._folder.sort(merged)
        pieces = _pieces(merged) if crowded else [merged]
        self._replace(tree, path, [Node(piece) for piece in pieces])

    def _replace(self, tree: Tree, path: tuple[int, ...], nodes: list[Node]) -> None:
        """Puts nodes in the place of one, the first of them on its page."""
        own = self.pages[path[-1]]
        entries = []
        pages = [path[-1], *(self.new_page() for _ in nodes[1:])]
        for page, node in zip(pages, nodes, strict=True):
            # A leaf that younger rows pass by need not be written again.
            if node is not own or node.level:
                self.pages[page] = node
            entries.append(Child(page, *_extent(node)))
        if len(nodes) == 1 and self._is_young_end(path, entries[0]):
            return
        if len(path) == 1:
            level = nodes[0].level + 1
            tree.root = self.new_page()
            self.pages[tree.root] = Node(self.pages.inner.empty_table(), level, entries)
            self._mark(tree, (tree.root,), level)
            return
        parent = self.pages[path[-2]]
        at = next(
            at for at, child in enumerate(parent.children) if child.page == path[-1]
        )
        parent.children[at : at + 1] = entries
        self.pages[path[-2]] = parent
        self._mark(tree, path[:-1], parent.level)

    def _is_young_end(self, path: tuple[int, ...], now: Child) -> bool:
        """Whether the way leads to where all is open, so that nothing above changes."""
        for above, below in pairwise(path):
            last = self.pages[above].children[-1]
            if last.page != below or last.folded:
                return False
        if len(path) == 1:
            return True
        known = self.pages[path[-2]].children[-1]
        return now.first == known.first and now.last >= known.last

    def _mark(self, tree: Tree, path: tuple[int, ...], level: int) -> None:
        self._stale.setdefault(level, {})[path[-1]] = (tree, path)

    def delete(self, tree: Tree, rows: pa.Table) -> pa.Table:
        """Deletes for each row, sorted, one with its time and key: the first to arrive.

        Gives the rows for which there was none. `settle` must follow.
        """
        if tree.root is None or not len(rows):
            return rows
        return self._delete(tree, (tree.root,), rows)

    def holding(self, tree: Tree, rows: pa.Table) -> Iterator[pa.Table]:
        """The rows of the leaves where rows, sorted, belong."""
        pages = [] if tree.root is None else [(tree.root, rows)]
        while pages:
            page, own = pages.pop()
            node = self.pages[page]
            if node.level == 0:
                yield node.rows
            else:
                pages += self._parts(node, own)

    def _delete(self, tree: Tree, path: tuple[int, ...], rows: pa.Table) -> pa.Table:
        node = self.pages[path[-1]]
        if node.level:
            parts = list(self._parts(node, rows))
            left = [self._delete(tree, (*path, page), part) for page, part in parts]
            return pa.concat_tables(left).combine_chunks()
        rest, left = self._folder.without(node.rows, rows)
        if not len(rest):
            self._remove(tree, path)
        elif len(rest) < len(node.rows):
            self._replace(tree, path, [Node(rest)])
        return left

    def _remove(self, tree: Tree, path: tuple[int, ...]) -> None:
        """Takes an empty node out, and those above that it leaves empty."""
        self._stale.get(self.pages[path[-1]].level, {}).pop(path[-1], None)
        del self.pages[path[-1]]
        if len(path) == 1:
            tree.root = None
            return
        parent = self.pages[path[-2]]
        parent.children = [page for page in parent.children if page.page != path[-1]]
        if not parent.children:
            self._remove(tree, path[:-1])
            return
        # The last child is open, so that the fold over it goes.
        parent.children[-1].folded = False
        self.pages[path[-2]] = parent
        self._mark(tree, path[:-1], parent.level)

    def settle(self) -> None:
        """Folds what changed, level by level, and cuts up nodes that grew too large."""
        level = 1
        while self._stale:
            stale = self._stale.pop(level, {})
            self._fold(list(stale))
            for page, (tree, path) in stale.items():
                self._replace(tree, path, _inner_pieces(self.pages[page]))
            level += 1

    def _fold(self, pages: list[int]) -> None:
        """Folds the children that are not, but for the last one, of all these nodes."""
        parts: list[tuple[int, pa.Table]] = []
        for page in pages:
            node = self.pages[page]
            there = [child.page for child in node.children if child.folded]
            if len(node.rows):
                mask = pc.is_in(node.rows[FOLDED], pa.array(there, pa.int64()))
                node.rows = node.rows.filter(mask)
            if not self._folder.folds:
                continue
            for child in node.children[:-1]:
                if not child.folded:
                    parts.append((child.page, self._content(child.page)))
        if not parts:
            return
        folded = self._folder.fold(parts)
        starts = _runs(folded[FOLDED])
        for page in pages:
            node = self.pages[page]
            own = [node.rows]
            for child in node.children[:-1]:
                if not child.folded:
                    start, count = starts[child.page]
                    own.append(folded.slice(start, count))
                    child.folded = True
            node.rows = pa.concat_tables(own).combine_chunks()

    def _content(self, page: int) -> pa.Table:
        """All rows of a page, those of its open children included."""
        node = self.pages[page]
        if node.level == 0:
            return node.rows
        own = [node.rows.drop_columns(FOLDED)]
        own += [
            self._content(child.page) for child in node.children if not child.folded
        ]
        return pa.concat_tables(own, promote_options="default")

    def cover(self, tree: Tree, ends: Sequence[int], cover: Cover) -> None:
        """Adds what answers windows whose ends lie at these times, sorted.

        A window begins and ends just before or just behind one of them. Nothing is
        added that lies before the first.
        """
        if tree.root is not None and len(ends):
            self._cover(tree.root, ends, cover)

    def _cover(self, page: int, ends: Sequence[int], cover: Cover) -> None:
        node = self.pages[page]
        if node.level == 0:
            start = bisect_left(ticks_of(node.rows[TIME]), ends[0])
            if start < len(node.rows):
                cover.rows.append(node.rows.slice(start))
            return
        whole = []
        for child in node.children:
            if child.first > ends[-1]:
                break
            if not child.folded and child is node.children[-1]:
                self._cover(child.page, ends, cover)
            elif child.last >= ends[0]:
                cut = bisect_left(ends, child.first) < bisect_right(ends, child.last)
                if child.folded and not cut:
                    whole.append(child.page)
                else:
                    self._cover(child.page, ends, cover)
        if whole:
            mask = pc.is_in(node.rows[FOLDED], pa.array(whole, pa.int64()))
            cover.folds.append(node.rows.filter(mask))

    def latest(self, tree: Tree) -> Iterator[pa.Table]:
        """Rows among which is the last one of every key."""
        page = tree.root
        while page is not None:
            node = self.pages[page]
            yield node.rows
            page = None
            for child in node.children:
                if child is node.children[-1]:
                    page = child.page
                elif not child.folded:
                    yield self._content(child.page)

    def evict(self, tree: Tree, until: int) -> None:
        """Drops pages all of whose rows lie at or before a time."""
        while tree.root is not None:
            node = self.pages[tree.root]
            if node.level == 0:
                if not len(node.rows) or node.rows[TIME][-1].as_py() <= until:
                    del self.pages[tree.root]
                    tree.root = None
                return
            if node.children[-1].last <= until and self._last(tree.root) <= until:
                self.clear(tree)
                return
            self._evict_below(tree.root, until)
            if len(node.children) > 1:
                return
            # A root with one child hands over to it.
            del self.pages[tree.root]
            tree.root = node.children[0].page

    def _evict_below(self, page: int, until: int) -> None:
        """Drops children of a node that keeps its last one."""
        node = self.pages[page]
        gone = 0
        while gone < len(node.children) - 1 and node.children[gone].last <= until:
            self._drop(node.children[gone].page)
            gone += 1
        if gone:
            del node.children[:gone]
            if len(node.rows):
                there = [child.page for child in node.children]
                mask = pc.is_in(node.rows[FOLDED], pa.array(there, pa.int64()))
                node.rows = node.rows.filter(mask)
            self.pages[page] = node
        first = node.children[0]
        # Else the child is left for later: it is dropped as a whole before long.
        if node.level > 1 and first.first <= until < first.last:
            self._evict_below(first.page, until)

    def _last(self, page: int) -> int:
        node = self.pages[page]
        if node.level:
            return self._last(node.children[-1].page)
        return ticks_of(node.rows[TIME])[-1]

    def _drop(self, page: int) -> None:
        for below in list(self.pages.below(page)):
            del self.pages[below]

    def first_row(self, tree: Tree, since: int) -> int | None:
        """The time of the first row that is not older."""
        page = tree.root
        while page is not None:
            node = self.pages[page]
            if node.level == 0:
                ticks = ticks_of(node.rows[TIME])
                at = bisect_left(ticks, since)
                return ticks[at] if at < len(ticks) else None
            last = node.children[-1]
            later = (child for child in node.children if child.last >= since)
            page = next(later, last).page
        return None

    def rows(self, tree: Tree) -> Iterator[pa.Table]:
        """All rows, leaf by leaf."""
        pages = [] if tree.root is None else [tree.root]
        while pages:
            node = self.pages[pages.pop()]
            if node.level == 0:
                yield node.rows
            pages += [child.page for child in reversed(node.children)]

    def between(self, tree: Tree, since: int | None, until: int) -> Iterator[pa.Table]:
        """Rows of a range of times, both ends included, leaf by leaf."""
        least = _EARLIEST if since is None else since
        pages = [] if tree.root is None else [tree.root]
        while pages:
            node = self.pages[pages.pop()]
            if node.level == 0:
                ticks = ticks_of(node.rows[TIME])
                start = bisect_left(ticks, least)
                end = bisect_right(ticks, until)
                if end > start:
                    yield node.rows.slice(start, end - start)
            for child in reversed(node.children):
                # Of the last one, what is known of its end is a lower bound.
                ahead = child is node.children[-1] or child.last >= least
                if child.first <= until and ahead:
                    pages.append(child.page)

    def check(self, tree: Tree) -> None:
        """Checks the invariants.

        Raises:
            AssertionError: Naming the page and what is wrong with it.
        """
        if tree.root is not None:
            self._check(tree.root)

    def _check(self, page: int) -> None:
        node, where = self.pages[page], f"page {page}"
        ticks = ticks_of(node.rows[TIME])
        if node.level == 0:
            assert all(a <= b for a, b in pairwise(ticks)), f"{where} is out of order"
            return
        assert node.children, f"{where} has no children"
        for older, younger in pairwise(node.children):
            assert older.last < younger.first, f"children of {where} overlap"
        folded = {child.page for child in node.children if child.folded}
        held = set(node.rows[FOLDED].to_pylist())
        assert held == folded, f"{where} has folds of {held}, not of {folded}"
        if self._folder.folds:
            open_ones = [child for child in node.children[:-1] if not child.folded]
            assert not open_ones, f"{where} lacks folds"
        for child in node.children:
            below = self.pages[child.page]
            assert below.level == node.level - 1, f"{where} leans"
            first, last = _extent(below)
            open_end = child is node.children[-1] and not child.folded
            known = child.last <= last if open_end else child.last == last
            kept = child.first <= first and known
            assert kept, f"page {child.page} outgrew its place in {where}"
            self._check(child.page)

    def clear(self, tree: Tree) -> None:
        """Drops all rows."""
        if tree.root is not None:
            self._drop(tree.root)
            tree.root = None

    def new_page(self) -> int:
        """A page that is not in use."""
        self.next_page += 1
        return self.next_page - 1


def ticks_of(column: pa.ChunkedArray | pa.Array) -> Sequence[int]:
    """A column of int64 without nulls, in one chunk, as it lies in memory."""
    if not len(column):
        return ()
    array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    start = array.offset
    return memoryview(array.buffers()[1]).cast("q")[start : start + len(array)]


def _extent(node: Node) -> tuple[int, int]:
    if node.level:
        return node.children[0].first, node.children[-1].last
    ticks = ticks_of(node.rows[TIME])
    return ticks[0], ticks[-1]


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    """Full pages of rows, in order; rows of equal time stay together."""
    ticks = ticks_of(rows[TIME])
    most = max(1, len(rows) * PAGE // rows.nbytes)
    start = 0
    while start < len(rows):
        end = min(start + most, len(rows))
        if end < len(rows):
            even = bisect_left(ticks, ticks[end], start, end)
            end = even if even > start else bisect_right(ticks, ticks[end], end)
        yield rows.slice(start, end - start)
        start = end


def _inner_pieces(node: Node) -> list[Node]:
    """The node, or several in its place if its folds outgrew a page."""
    size, count = node.rows.nbytes, len(node.children)
    if size <= 2 * PAGE or count < 4:
        return [node]
    each = max(2, count * PAGE // size)
    nodes = []
    for start in range(0, count, each):
        children = node.children[start : start + each]
        there = pa.array([child.page for child in children], pa.int64())
        rows = node.rows.filter(pc.is_in(node.rows[FOLDED], there))
        nodes.append(Node(rows, node.level, children))
    return nodes


def _runs(column: pa.ChunkedArray) -> dict[int, tuple[int, int]]:
    """Where each value of a sorted column begins, and how often it is there."""
    runs: dict[int, tuple[int, int]] = {}
    start = 0
    for entry in pc.value_counts(column).to_pylist():
        runs[entry["values"]] = (start, entry["counts"])
        start += entry["counts"]
    return runs
