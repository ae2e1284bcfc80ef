r"""A tree of pages: the rows of some keys by time, folded per key above the leaves.

```text
          root    children [first, last] ..., and per child and key one fold: a row
         /  |  \  with the partial of all rows below it
     inner ...  inner
     /  |  \
  leaf leaf leaf  rows, about 32 KB of them
```

Few pages cover a window: only the leaves that hold one of its ends are read; of all
other pages the folds are used. So a batch of new rows reads and writes the leaves at
the ends of its windows and the paths to them, however long the windows are.

Invariants: (1) children are in order of time, and no two hold the same time; (2) all
leaves have the same depth; (3) a folded child has one fold per key in its parent, at
the time of the key's last row below; (4) all children except the last are folded: the
last one gets the new rows; (5) on the path to the latest leaf, the `last` of a last
child is a lower bound, so that rows in order change one leaf only, until it is full.
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

# Bytes of a full page; a page of more than twice as many is split.
PAGE = 1 << 15
_EARLIEST = -(2**63)


class Folder(Protocol):
    """The operations on rows that a tree needs; `Query` has them."""

    @property
    def folds(self) -> bool:
        """Whether rows can be folded in advance."""

    def sort(self, rows: pa.Table) -> pa.Table:
        """Sorts rows by time, and rows of equal time in the order of the query."""

    def fold(self, parts: Sequence[tuple[int, pa.Table]]) -> pa.Table:
        """Folds rows: one row per page and key."""

    def without(self, rows: pa.Table, deleted: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Removes from rows one with the time and key of each of `deleted`.

        It is the first by `then_by`, otherwise the first in order. Gives the rows that
        are left, and those of `deleted` without a match.
        """


@dataclass(slots=True)
class Cover:
    """The rows and folds that cover some windows."""

    rows: list[pa.Table] = field(default_factory=list)
    folds: list[pa.Table] = field(default_factory=list)


@dataclass(slots=True)
class Tree:
    """A tree: the page of its root, None if it is empty."""

    root: int | None = None


class Forest:
    """The trees of one store. `refold` updates the folds of all changed ones."""

    def __init__(self, pages: Pages, folder: Folder, next_page: int) -> None:
        self.pages = pages
        self.next_page = next_page
        self._folder = folder
        # Per level: the nodes with unfolded children, with their tree and path.
        self._stale: dict[int, dict[int, tuple[Tree, tuple[int, ...]]]] = {}

    def insert(self, tree: Tree, rows: pa.Table) -> None:
        """Inserts rows, sorted by the folder. `refold` must follow."""
        if not len(rows):
            return
        if tree.root is None:
            tree.root = self.new_page()
            self.pages[tree.root] = Node(rows.slice(0, 0))
        self._down(tree, (tree.root,), rows)

    def _down(self, tree: Tree, path: tuple[int, ...], rows: pa.Table) -> None:
        """Inserts rows into the leaves below a node."""
        node = self.pages[path[-1]]
        if node.level == 0:
            self._fill(tree, path, rows)
            return
        for page, part in list(self._parts(node, rows)):
            self._down(tree, (*path, page), part)

    @staticmethod
    def _parts(node: Node, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Partitions sorted rows by child."""
        ticks, start = ticks_of(rows[TIME]), 0
        ends = [bisect_left(ticks, child.first) for child in node.children[1:]]
        for child, end in zip(node.children, [*ends, len(ticks)], strict=True):
            if end > start:
                yield child.page, rows.slice(start, end - start)
                start = end

    def _fill(self, tree: Tree, path: tuple[int, ...], rows: pa.Table) -> None:
        """Inserts rows into a leaf, and splits it if it is too large."""
        leaf = self.pages[path[-1]]
        held = leaf.rows
        crowded = held.nbytes + rows.nbytes > 2 * PAGE
        later = not len(held) or held[TIME][-1].as_py() < rows[TIME][0].as_py()
        if crowded and later and held.nbytes >= PAGE:
            self._replace(tree, path, [leaf, *map(Node, _split_rows(rows))])
            return
        merged = pa.concat_tables([held, rows]).combine_chunks()
        if not later:
            merged = self._folder.sort(merged)
        parts = _split_rows(merged) if crowded else [merged]
        self._replace(tree, path, [Node(piece) for piece in parts])

    def _replace(self, tree: Tree, path: tuple[int, ...], nodes: list[Node]) -> None:
        """Replaces a node by one or several; the first takes over its page."""
        own = self.pages[path[-1]]
        entries = []
        pages = [path[-1], *(self.new_page() for _ in nodes[1:])]
        for page, node in zip(pages, nodes, strict=True):
            # An unchanged leaf is not written again.
            if node is not own or node.level:
                self.pages[page] = node
            entries.append(Child(page, *_extent(node)))
        if len(nodes) == 1 and self._is_latest_end(path, entries[0]):
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

    def _is_latest_end(self, path: tuple[int, ...], now: Child) -> bool:
        """Whether this is the path to the latest leaf, and its ancestors stay valid."""
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
        """Deletes, for each of the sorted rows, the first with its time and key.

        Gives those without a match. `refold` must follow.
        """
        if tree.root is None or not len(rows):
            return rows
        return self._delete(tree, (tree.root,), rows)

    def holding(self, tree: Tree, rows: pa.Table) -> Iterator[pa.Table]:
        """The rows of the leaves that sorted rows belong to."""
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
        """Removes an empty node, and ancestors that become empty."""
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
        # The last child must not be folded.
        parent.children[-1].folded = False
        self.pages[path[-2]] = parent
        self._mark(tree, path[:-1], parent.level)

    def refold(self) -> None:
        """Folds changed nodes, level by level, and splits those that are too large."""
        level = 1
        while self._stale:
            stale = self._stale.pop(level, {})
            self._fold(list(stale))
            for page, (tree, path) in stale.items():
                self._replace(tree, path, _split_node(self.pages[page]))
            level += 1

    def _fold(self, pages: list[int]) -> None:
        """Folds the unfolded children of these nodes, except the last of each."""
        parts: list[tuple[int, pa.Table]] = []
        for page in pages:
            node = self.pages[page]
            present = [child.page for child in node.children if child.folded]
            if len(node.rows):
                mask = pc.is_in(node.rows[FOLDED], pa.array(present, pa.int64()))
                node.rows = node.rows.filter(mask)
            if not self._folder.folds:
                continue
            for child in node.children[:-1]:
                if not child.folded:
                    parts.append((child.page, self._content(child.page)))
        if not parts:
            return
        folded = self._folder.fold(parts)
        starts = _value_ranges(folded[FOLDED])
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
        """The rows and folds of a page, and those of its unfolded children."""
        node = self.pages[page]
        if node.level == 0:
            return node.rows
        own = [node.rows.drop_columns(FOLDED)]
        own += [
            self._content(child.page) for child in node.children if not child.folded
        ]
        return pa.concat_tables(own, promote_options="default")

    def cover(self, tree: Tree, ends: Sequence[int], cover: Cover) -> None:
        """Adds the rows and folds that cover windows with these ends, sorted.

        A window begins and ends directly before or after one of them. Rows before the
        first are not added.
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
        """Rows and folds that include the last row of every key."""
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
        """Drops the pages whose rows are all at or before a time."""
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
            # A root with one child is replaced by it.
            del self.pages[tree.root]
            tree.root = node.children[0].page

    def _evict_below(self, page: int, until: int) -> None:
        """Drops children of a node, but not its last one."""
        node = self.pages[page]
        gone = 0
        while gone < len(node.children) - 1 and node.children[gone].last <= until:
            self._drop(node.children[gone].page)
            gone += 1
        if gone:
            del node.children[:gone]
            if len(node.rows):
                present = [child.page for child in node.children]
                mask = pc.is_in(node.rows[FOLDED], pa.array(present, pa.int64()))
                node.rows = node.rows.filter(mask)
            self.pages[page] = node
        first = node.children[0]
        # Otherwise the child is dropped as a whole by a later evict.
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
        """The time of the first row at or after a time, or None."""
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
        """The rows of a closed range of times, leaf by leaf."""
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
                # The `last` of a last child is a lower bound.
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
        for earlier, later in pairwise(node.children):
            assert earlier.last < later.first, f"children of {where} overlap"
        folded = {child.page for child in node.children if child.folded}
        held = set(node.rows[FOLDED].to_pylist())
        assert held == folded, f"{where} has folds of {held}, not of {folded}"
        if self._folder.folds:
            open_ones = [child for child in node.children[:-1] if not child.folded]
            assert not open_ones, f"{where} lacks folds"
        for child in node.children:
            below = self.pages[child.page]
            assert below.level == node.level - 1, f"{where} has leaves of another depth"
            first, last = _extent(below)
            open_end = child is node.children[-1] and not child.folded
            known = child.last <= last if open_end else child.last == last
            kept = child.first <= first and known
            assert kept, f"page {child.page} is outside its range in {where}"
            self._check(child.page)

    def clear(self, tree: Tree) -> None:
        """Drops all rows."""
        if tree.root is not None:
            self._drop(tree.root)
            tree.root = None

    def new_page(self) -> int:
        """An unused page."""
        self.next_page += 1
        return self.next_page - 1


def ticks_of(column: pa.ChunkedArray | pa.Array) -> Sequence[int]:
    """The memory of an int64 column of one chunk without nulls."""
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


def _split_rows(rows: pa.Table) -> Iterator[pa.Table]:
    """Splits rows into full pages, in order; rows of equal time stay together."""
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


def _split_node(node: Node) -> list[Node]:
    """Splits an inner node whose folds are larger than two pages."""
    size, count = node.rows.nbytes, len(node.children)
    if size <= 2 * PAGE or count < 4:
        return [node]
    each = max(2, count * PAGE // size)
    nodes = []
    for start in range(0, count, each):
        children = node.children[start : start + each]
        present = pa.array([child.page for child in children], pa.int64())
        rows = node.rows.filter(pc.is_in(node.rows[FOLDED], present))
        nodes.append(Node(rows, node.level, children))
    return nodes


def _value_ranges(column: pa.ChunkedArray) -> dict[int, tuple[int, int]]:
    """The start and the count of each value of a sorted column."""
    ranges: dict[int, tuple[int, int]] = {}
    start = 0
    for entry in pc.value_counts(column).to_pylist():
        ranges[entry["values"]] = (start, entry["counts"])
        start += entry["counts"]
    return ranges
