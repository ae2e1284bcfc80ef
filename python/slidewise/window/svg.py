"""A window's tree as a picture, drawn as in the papers on FiBA.

The root is on top and the leaves hold the entries, oldest to the left. The spines are
the paths from the root to the oldest and the youngest leaf, which the fingers point at.
Each node carries the aggregate it is responsible for: Π↑ of its whole subtree off the
spines, Π↙ and Π↘ down the spines, and the rest of the root, Π, between them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from xml.sax.saxutils import escape

from slidewise.window.algorithms import card_of

__all__ = ["draw"]


class Drawable(Protocol):
    """What a picture needs to know of a window."""

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that runs."""

    def items(self) -> list[tuple[Any, Any]]:
        """Its entries."""

    def _shape(
        self,
    ) -> tuple[int, int, list[tuple[int, str, list[Any], list[int], Any]]] | None: ...


@dataclass(frozen=True, slots=True)
class _Look:
    symbol: str
    words: str
    fill: str
    line: str


_LOOKS = {
    "up": _Look("Π↑", "the whole subtree", "#eceff1", "#607d8b"),
    "inner": _Look("Π", "the root between its outer children", "#fff3c4", "#b7791f"),
    "left": _Look("Π↙", "the left spine up to the root", "#dbeafe", "#1d4ed8"),
    "right": _Look("Π↘", "the right spine up to the root", "#fde2e1", "#c2410c"),
    "more": _Look("", "nodes left out", "#ffffff", "#9ca3af"),
}

# Up to so many leaves a tree is drawn in full. Of a larger one the spines are, and at
# each node of them the outermost children. Long rows of cells are always cut short.
_LEAVES = 24
_CELLS = 6
_CHILDREN = 4

_CHARACTER = 6.7
_CELL_PADDING = 10.0
_BOX = 24.0
_ROW = 96.0
_GAP = 18.0
_MARGIN = 24.0
_LABEL = 22


@dataclass(slots=True)
class _Node:
    kind: str
    level: int
    cells: list[str]
    label: str
    full: str
    note: str
    children: list["_Node"] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0

    @property
    def box(self) -> float:
        """Width of the box."""
        return sum(map(_cell_width, self.cells))

    @property
    def width(self) -> float:
        """Width of the box with what is written at it."""
        texts = (self.label, self.note)
        return max(self.box, *(len(text) * _CHARACTER * 0.92 for text in texts))

    def walk(self) -> Iterable["_Node"]:
        """The node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def draw(window: Drawable) -> str:
    """Draws a window as an SVG document.

    Args:
        window: A `slidewise.Window`.

    Example:
        >>> import slidewise as sw
        >>> w = sw.Window(sw.sum(), algorithm="recalculate")
        >>> w.insert(1, 10)
        >>> draw(w).count("<rect")
        3
    """
    shape = window._shape()
    head = repr(window)[1:-1].partition(";")[0]
    if shape is None:
        return _draw_list(window.items(), head, _not_drawn(window))
    leaf_capacity, arity, nodes = shape
    labels, common = _time_labels(time for node in nodes for time in node[2])
    root = _tree(nodes, labels)
    height = nodes[0][0] + 1
    levels = "1 level" if height == 1 else f"{height} levels"
    subtitle = (
        f"{levels}; a leaf holds up to {leaf_capacity} entries, "
        f"an inner node up to {arity} children"
    )
    return _document(root, head, subtitle + common)


def _tree(nodes: Sequence[Any], labels: dict[Any, str]) -> _Node:
    leaves = sum(1 for node in nodes if node[0] == 0)
    in_full = leaves <= _LEAVES
    counts: dict[int, tuple[int, int]] = {}

    def count(at: int) -> tuple[int, int]:
        """Nodes and entries of a subtree."""
        if at not in counts:
            level, _, times, children, _ = nodes[at]
            below = [count(child) for child in children]
            entries = len(times) if level == 0 else sum(few for _, few in below)
            counts[at] = (1 + sum(many for many, _ in below), entries)
        return counts[at]

    def node(at: int) -> _Node:
        level, kind, times, children, aggregate = nodes[at]
        full = _answer(aggregate)
        what = len(times) if level == 0 else len(children)
        made = _Node(
            kind=kind,
            level=level,
            cells=_short([labels[time] for time in times], 2 if in_full else 1),
            label=_cut(f"{_LOOKS[kind].symbol} {full}"),
            full=full,
            note=f"{what} {_plural('entry' if level == 0 else 'child', what)}",
        )
        if kind == "up" and not in_full:
            below, entries = count(at)
            made.note += f", {entries} entries" if below > 1 else ""
            return made
        half = _CHILDREN // 2
        hidden = [] if in_full else children[half:-half]
        shown = children if not hidden else children[:half] + children[-half:]
        made.children = [node(child) for child in shown]
        if hidden:
            more = _more(level - 1, [count(child) for child in hidden])
            made.children.insert(half, more)
        return made

    return node(0)


def _plural(noun: str, count: int) -> str:
    if count == 1:
        return noun
    return {"entry": "entries", "child": "children", "node": "nodes"}[noun]


def _more(level: int, hidden: list[tuple[int, int]]) -> _Node:
    nodes = sum(count for count, _ in hidden)
    entries = sum(count for _, count in hidden)
    text = f"{nodes} more {_plural('node', nodes)}"
    return _Node(
        kind="more",
        level=level,
        cells=[f"⋯ {text} ⋯"],
        label="",
        full=text,
        note=f"{entries} {_plural('entry', entries)}",
    )


def _short(cells: list[str], ends: int) -> list[str]:
    """The first and last cells, with the number of those between."""
    if len(cells) <= 3 * ends:
        return cells or [" "]
    return [*cells[:ends], f"⋯ {len(cells) - 2 * ends} ⋯", *cells[-ends:]]


def _cell_width(text: str) -> float:
    return len(text) * _CHARACTER + _CELL_PADDING


def _cut(text: str) -> str:
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


def _answer(answer: Any) -> str:
    if isinstance(answer, dict):
        return ", ".join(f"{name} {_answer(one)}" for name, one in answer.items())
    return f"{answer:.6g}" if isinstance(answer, float) else str(answer)


def _time_labels(times: Iterable[Any]) -> tuple[dict[Any, str], str]:
    """A label per time, and what is common to all and therefore said once."""
    labels = {time: str(time).replace("T", " ") for time in times}
    days = {label[:10] for label in labels.values() if " " in label}
    if len(days) != 1 or not all(" " in label for label in labels.values()):
        return labels, ""
    (day,) = days
    return {time: label[11:] for time, label in labels.items()}, f"; times of {day}"


def _place(root: _Node) -> tuple[float, float]:
    """Gives every node its place; returns width and height of the whole."""

    def spread(node: _Node, left: float) -> float:
        """Places a subtree from `left` on and returns its width."""
        below = -_GAP
        for child in node.children:
            below += _GAP + spread(child, left + below + _GAP)
        width = max(node.width, below)
        if node.children:
            shift = (width - below) / 2
            for child in node.children:
                for moved in child.walk():
                    moved.x += shift
            node.x = (node.children[0].x + node.children[-1].x) / 2
        else:
            node.x = left + width / 2
        node.y = (root.level - node.level) * _ROW
        return width

    width = spread(root, 0.0)
    return width, root.level * _ROW + _BOX


def _document(root: _Node, head: str, subtitle: str) -> str:
    width, height = _place(root)
    words = max(len(head) * 8.2, len(subtitle) * 6.2, 560.0)
    inner = max(width, words)
    for node in root.walk():
        node.x += _MARGIN + (inner - width) / 2
        node.y += 104.0
    parts = [_edges(root), *(_box(node) for node in root.walk()), _fingers(root)]
    bottom = 104.0 + height + 74.0
    parts.append(_legend({node.kind for node in root.walk()}, bottom))
    return _svg(inner + 2 * _MARGIN, bottom + 34.0, head, subtitle, parts)


def _svg(
    width: float, height: float, head: str, subtitle: str, parts: Iterable[str]
) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
            'font-family="DejaVu Sans, Verdana, sans-serif" font-size="11">',
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            _text(_MARGIN, 30.0, head, size=14, weight="bold", anchor="start"),
            _text(_MARGIN, 50.0, subtitle, fill="#4b5563", anchor="start"),
            *parts,
            "</svg>",
        ]
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 11,
    fill: str = "#111827",
    anchor: str = "middle",
    weight: str = "normal",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" '
        f'text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
    )


def _box(node: _Node) -> str:
    look = _LOOKS[node.kind]
    left = node.x - node.box / 2
    dash = ' stroke-dasharray="4 3"' if node.kind == "more" else ""
    parts = [
        f"<g><title>{escape(f'{look.words}: {node.full}')}</title>",
        f'<rect x="{left:.1f}" y="{node.y:.1f}" width="{node.box:.1f}" '
        f'height="{_BOX:.0f}" rx="4" fill="{look.fill}" stroke="{look.line}"{dash}/>',
    ]
    for at, cell in enumerate(node.cells):
        width = _cell_width(cell)
        if at:
            parts.append(
                f'<path d="M{left:.1f} {node.y:.1f}v{_BOX:.0f}" stroke="{look.line}" '
                'stroke-opacity="0.5"/>'
            )
        parts.append(_text(left + width / 2, node.y + 16.0, cell))
        left += width
    if node.label:
        above = node.y - 7.0
        parts.append(_text(node.x, above, node.label, fill=look.line, weight="bold"))
    parts.append(_text(node.x, node.y + _BOX + 13.0, node.note, size=9, fill="#6b7280"))
    parts.append("</g>")
    return "".join(parts)


def _edges(root: _Node) -> str:
    """Lines from every node to its children, the spines thick."""
    lines = []
    for node in root.walk():
        for child in node.children:
            spine = child.kind in ("left", "right")
            look = _LOOKS[child.kind]
            top, bottom = node.y + _BOX + 17.0, child.y - 20.0
            dash = ' stroke-dasharray="4 3"' if child.kind == "more" else ""
            lines.append(
                f'<path d="M{node.x:.1f} {top:.1f}C{node.x:.1f} {top + 20:.1f} '
                f'{child.x:.1f} {bottom - 20:.1f} {child.x:.1f} {bottom:.1f}" '
                f'fill="none" stroke="{look.line}" stroke-width="{3 if spine else 1}" '
                f'stroke-opacity="{0.9 if spine else 0.6}"{dash}/>'
            )
    return "\n".join(lines)


def _fingers(root: _Node) -> str:
    """An arrow at each end of the entries."""
    leaves = [node for node in root.walk() if node.level == 0 and node.kind != "more"]
    # Beside one leaf alone the words go outwards: both would not fit below it.
    anchors = ("end", "start") if len(leaves) == 1 else ("start", "end")
    parts = []
    for leaf, kind, anchor in zip(
        (leaves[0], leaves[-1]), ("left", "right"), anchors, strict=True
    ):
        side = -1.0 if kind == "left" else 1.0
        x = leaf.x + side * (leaf.box / 2 - 12.0)
        y = leaf.y + _BOX + 20.0
        line = _LOOKS[kind].line
        parts.append(
            f'<path d="M{x:.1f} {y + 14:.1f}V{y:.1f}m-4 6l4 -6l4 6" fill="none" '
            f'stroke="{line}" stroke-width="2"/>'
        )
        words = f"{kind} finger"
        parts.append(_text(x + 4 * side, y + 27.0, words, fill=line, anchor=anchor))
    return "\n".join(parts)


def _legend(kinds: set[str], y: float) -> str:
    parts, x = [], _MARGIN
    for kind in ("inner", "left", "right", "up"):
        if kind not in kinds:
            continue
        look = _LOOKS[kind]
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="14" height="14" rx="3" '
            f'fill="{look.fill}" stroke="{look.line}"/>'
        )
        words = f"{look.symbol} {look.words}"
        parts.append(_text(x + 20.0, y + 11.0, words, anchor="start", fill="#374151"))
        x += 20.0 + len(words) * 6.2 + 18.0
    return "\n".join(parts)


def _not_drawn(window: Drawable) -> str:
    """What answers where entries are shown side by side."""
    name = window.algorithm
    if name == "recalculate":
        return "recalculate keeps entries only: every query folds all of them"
    if name == "fiba":
        return "no partial results: the entries lie in a tree by time, values beside it"
    query = card_of(name).query.partition(";")[0]
    return f"{name} keeps partial results that are not drawn; a query takes {query}"


def _draw_list(items: list[tuple[Any, Any]], head: str, what: str) -> str:
    """Entries side by side, for windows whose structure is not drawn."""
    labels, common = _time_labels(time for time, _ in items)
    shown = items if len(items) <= 2 * _CELLS else [*items[:_CELLS], *items[-_CELLS:]]
    hidden = len(items) - len(shown)
    parts, x = [], _MARGIN
    for at, (time, answer) in enumerate(shown):
        if hidden and at == _CELLS:
            text = f"⋯ {hidden} ⋯"
            parts.append(_text(x + _cell_width(text) / 2, 96.0, text, fill="#6b7280"))
            x += _cell_width(text)
        value = _cut(_answer(answer))
        width = max(_cell_width(labels[time]), _cell_width(value), 36.0)
        rows = ((80.0, "#eceff1", labels[time]), (80.0 + _BOX, "#ffffff", value))
        for y, fill, text in rows:
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" '
                f'height="{_BOX:.0f}" fill="{fill}" stroke="#607d8b"/>'
            )
            parts.append(_text(x + width / 2, y + 16.0, text))
        x += width
    subtitle = f"entries from old to young{common}; {what}"
    width = max(x, len(head) * 8.2, len(subtitle) * 6.2) + _MARGIN
    return _svg(width, 150.0, head, subtitle, parts)
