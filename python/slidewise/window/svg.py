"""A window's tree as a picture, as in the papers on FiBA.

The root is on top; the leaves hold the entries, the earliest on the left. Each node
shows the aggregate that it keeps: Π↑ of its whole subtree off the spines, Π↙ and Π↘ on
the spines, and Π of the root without its outermost children. Fingers point at the first
and the last leaf. All boxes are of one width, and a node stands above the middle of its
children.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from xml.etree import ElementTree

from slidewise.window.algorithms import card_of

__all__ = ["draw"]


class Drawable(Protocol):
    """The part of a window that `draw` reads."""

    @property
    def algorithm(self) -> str:
        """The name of the algorithm."""

    def items(self) -> list[tuple[Any, Any]]:
        """Its entries."""

    def _shape(
        self,
    ) -> tuple[int, int, list[tuple[int, str, list[Any], list[int], Any]]] | None: ...


# The symbol of each kind of node, what it aggregates, its fill and its line.
_KINDS = {
    "inner": ("Π", "the root between its outer children", "#fff3c4", "#b7791f"),
    "left": ("Π↙", "the left spine up to the root", "#dbeafe", "#1d4ed8"),
    "right": ("Π↘", "the right spine up to the root", "#fde2e1", "#c2410c"),
    "up": ("Π↑", "the whole subtree", "#eceff1", "#607d8b"),
    "more": ("", "not shown", "#ffffff", "#9ca3af"),
}
# A tree with more leaves is drawn along its spines only.
_MAX_LEAVES = 24
# The number of children, entries or columns drawn at each end of a longer list.
_ENDS = 2
_LIST_ENDS = 6
_MAX_TEXT = 46

_CENTERED = {"text-anchor": "middle"}
_CHARACTER, _LINE, _BOX, _LEVEL, _GAP, _MARGIN, _TOP = 6.8, 16, 58, 110, 14, 24, 76


@dataclass(slots=True)
class _Node:
    kind: str
    level: int
    lines: list[str]
    title: str
    children: list["_Node"] = field(default_factory=list)
    x: float = 0.0

    def walk(self) -> Iterator["_Node"]:
        """The node and all below it, from left to right."""
        yield self
        for child in self.children:
            yield from child.walk()


def draw(window: Drawable) -> str:
    """Draws a `slidewise.Window` as an SVG document.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.sum(), algorithm="recalculate")
        >>> w.insert(1, 10)
        >>> draw(w).count("<rect")
        1
    """
    head = repr(window)[1:-1].partition(";")[0]
    shape = window._shape()
    if shape is None:
        items = window.items()
        labels, day = _time_labels(time for time, _ in items)
        nodes = [_Node("up", 0, [labels[t], _text_of(v)], str(v)) for t, v in items]
        if len(nodes) > 2 * _LIST_ENDS:
            hidden = len(nodes) - 2 * _LIST_ENDS
            more = _Node("more", 0, [f"⋯ {hidden} more ⋯"], "")
            nodes[_LIST_ENDS:-_LIST_ENDS] = [more]
        subtitle = (
            f"entries from the earliest to the latest{day}; {_without_tree(window)}"
        )
        return _document(nodes, head, subtitle, [])
    leaf_capacity, arity, parts = shape
    labels, day = _time_labels(time for part in parts for time in part[2])
    root = _tree(parts, labels)
    subtitle = (
        f"{root.level + 1} {'level' if root.level == 0 else 'levels'}; a leaf holds up "
        f"to {leaf_capacity} entries, an inner node up to {arity} children{day}"
    )
    shown = {node.kind for node in root.walk()}
    kinds = [f"{k[0]} {k[1]}" for name, k in _KINDS.items() if k[0] and name in shown]
    return _document([root], head, subtitle, kinds)


def _tree(parts: Sequence[Any], labels: dict[Any, str]) -> _Node:
    in_full = sum(level == 0 for level, *_ in parts) <= _MAX_LEAVES

    def entries(at: int) -> int:
        level, _, times, children, _ = parts[at]
        return len(times) if level == 0 else sum(map(entries, children))

    def node(at: int) -> _Node:
        level, kind, times, children, aggregate = parts[at]
        shown = " ".join(labels[time] for time in times)
        if len(times) > 3 * _ENDS or len(shown) > _MAX_TEXT:
            shown = f"{labels[times[0]]} … {labels[times[-1]]}"
        size = (
            _count(len(times), "entry")
            if level == 0
            else _count(len(children), "child")
        )
        if kind == "up" and level and not in_full:
            size += f", {_count(entries(at), 'entry')}"
        symbol, content = _KINDS[kind][:2]
        lines = [_cut(f"{symbol} {_text_of(aggregate)}"), shown, size]
        made = _Node(kind, level, lines, f"{content}: {_text_of(aggregate)}")
        if in_full:
            made.children = [node(child) for child in children]
        elif kind != "up":
            made.children = [node(child) for child in children[:_ENDS]]
            if hidden := children[_ENDS:-_ENDS]:
                size = _count(sum(map(entries, hidden)), "entry")
                text = [f"⋯ {_count(len(hidden), 'more child')} ⋯", size]
                made.children.append(_Node("more", level - 1, text, ""))
            made.children += [node(child) for child in children[_ENDS:][-_ENDS:]]
        return made

    return node(0)


def _count(number: int, noun: str) -> str:
    many = noun.replace("entry", "entries").replace("child", "children")
    return f"{number} {noun if number == 1 else many}"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _text_of(answer: Any) -> str:
    if isinstance(answer, dict):
        return ", ".join(f"{name} {_text_of(one)}" for name, one in answer.items())
    return f"{answer:.6g}" if isinstance(answer, float) else str(answer)


def _time_labels(times: Iterable[Any]) -> tuple[dict[Any, str], str]:
    """A label per time; and the day if all have the same, which labels then omit."""
    labels = {time: str(time).replace("T", " ") for time in times}
    days = {label.partition(" ")[0] for label in labels.values()}
    if len(days) != 1 or not all(" " in label for label in labels.values()):
        return labels, ""
    short = {time: label.partition(" ")[2] for time, label in labels.items()}
    return short, f"; times of {days.pop()}"


def _without_tree(window: Drawable) -> str:
    """Describes how a window without a tree answers."""
    name = window.algorithm
    if name == "recalculate":
        return "recalculate keeps entries only: every query folds all of them"
    if name == "fiba":
        return "no partials: a tree holds the entries by time, an index their values"
    query = card_of(name).query.partition(";")[0]
    return f"{name} keeps partial results that are not drawn; a query takes {query}"


def _document(roots: list[_Node], head: str, subtitle: str, kinds: list[str]) -> str:
    nodes = [node for root in roots for node in root.walk()]
    top = max((root.level for root in roots), default=0)
    length = max((len(_cut(line)) for node in nodes for line in node.lines), default=0)
    box = length * _CHARACTER + 16
    slots = _place(roots, box + _GAP)
    legend = " · ".join(kinds)
    words = max(len(head) * 8.4, len(subtitle) * 6.8, len(legend) * 6.8)
    width = max(slots * (box + _GAP) - _GAP, words) + 2 * _MARGIN
    height = _TOP + top * _LEVEL + _BOX + 2 * _LINE + (2 * _LINE if kinds else 0)
    svg = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "width": f"{width:.0f}",
            "height": f"{height:.0f}",
            "style": "background: #ffffff",
            "font-family": "DejaVu Sans, Verdana, sans-serif",
            "font-size": "11",
        },
    )
    _add_text(svg, _MARGIN, 30, head, {"font-size": "14", "font-weight": "bold"})
    _add_text(svg, _MARGIN, 50, subtitle, {"fill": "#4b5563"})
    for node in nodes:
        for child in node.children:
            _add_edge(svg, node, child, box, top)
    for node in nodes:
        _add_box(svg, node, box, _top_of(node, top))
    leaves = [node for node in nodes if node.level == 0 and node.kind != "more"]
    if kinds:
        fingers = {leaves[0].x: "left finger"}
        fingers[leaves[-1].x] = "right finger" if len(leaves) > 1 else "both fingers"
        for x, text in fingers.items():
            below = _TOP + top * _LEVEL + _BOX + _LINE
            _add_text(svg, x + box / 2, below, f"↑ {text}", _CENTERED)
        _add_text(svg, _MARGIN, height - 12, legend, {"fill": "#374151"})
    return ElementTree.tostring(svg, encoding="unicode")


def _place(roots: list[_Node], step: float) -> int:
    """Places nodes without children side by side, and returns their number."""
    slots = 0

    def place(node: _Node) -> None:
        nonlocal slots
        for child in node.children:
            place(child)
        if node.children:
            node.x = (node.children[0].x + node.children[-1].x) / 2
        else:
            node.x = _MARGIN + slots * step
            slots += 1

    for root in roots:
        place(root)
    return slots


def _top_of(node: _Node, top: int) -> float:
    return _TOP + (top - node.level) * _LEVEL


def _add_text(
    parent: ElementTree.Element, x: float, y: float, text: str, style: dict[str, str]
) -> None:
    look = {"x": f"{x:.1f}", "y": f"{y:.1f}", **style}
    ElementTree.SubElement(parent, "text", look).text = text


def _add_box(svg: ElementTree.Element, node: _Node, width: float, y: float) -> None:
    _, _, fill, line = _KINDS[node.kind]
    group = ElementTree.SubElement(svg, "g")
    ElementTree.SubElement(group, "title").text = node.title
    look = {"x": f"{node.x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}"}
    look |= {"height": str(_BOX), "rx": "4", "fill": fill, "stroke": line}
    ElementTree.SubElement(group, "rect", look)
    for number, text in enumerate(map(_cut, node.lines)):
        style = _CENTERED | {"font-weight": "normal" if number else "bold"}
        _add_text(group, node.x + width / 2, y + _LINE * (number + 1), text, style)


def _add_edge(
    svg: ElementTree.Element, node: _Node, child: _Node, width: float, top: int
) -> None:
    begin = f"M{node.x + width / 2:.1f} {_top_of(node, top) + _BOX:.1f}"
    end = f"L{child.x + width / 2:.1f} {_top_of(child, top):.1f}"
    look = {"d": begin + end, "stroke": _KINDS[child.kind][3]}
    look["stroke-width"] = "3" if child.kind in ("left", "right") else "1"
    ElementTree.SubElement(svg, "path", look)
