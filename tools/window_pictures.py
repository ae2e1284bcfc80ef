"""Draws docs/windows.svg and docs/hops.svg: the rows that windows hold.

    python tools/window_pictures.py [--check]

The rows come from slidewise itself: `collect` gives those of each window.
"""

import sys
from operator import lt
from pathlib import Path
from typing import Any

import pyarrow as pa

import slidewise as sw

DOCS = Path(__file__).resolve().parent.parent / "docs"

# Rows of the first picture: number and time. Windows are those of ROW, of length 5.
TIMES = [2, 4, 6, 9, 9, 9, 11]
ROW = 4
WINDOWS: list[tuple[str, dict[str, Any], tuple[float, float], str]] = [
    ("windows=5", {}, (4, 9), "(]"),
    ('closed="both"', {"closed": "both"}, (4, 9), "[]"),
    ('closed="left"', {"closed": "left"}, (4, 9), "[)"),
    ('closed="neither"', {"closed": "neither"}, (4, 9), "()"),
    ('ties="rows"', {"ties": "rows"}, (4, 9), "(]"),
    ('exclude="self"', {"exclude": "self"}, (4, 9), "(]"),
    ("offset=2", {"offset": 2}, (2, 7), "(]"),
    ("windows=sw.rows(3)", {"windows": sw.rows(3)}, (0, 0), ""),
    ("windows=sw.unbounded()", {"windows": sw.unbounded()}, (0, 9), "(]"),
]

# Rows of the second picture: time and flag.
EVENTS = [(3, False), (4, False), (5, True), (6, False), (10, False), (11, True)]
HOPS: list[tuple[str, dict[str, Any]]] = [
    ("window=4", {"window": 4}),
    ("window=4, every=2", {"window": 4, "every": 2}),
    ("window=sw.session(3)", {"window": sw.session(3)}),
    ('window=sw.until("flag")', {"window": sw.until("flag")}),
    ("window=rows(2), every=rows(2)", {"window": sw.rows(2), "every": sw.rows(2)}),
]

LEFT, UNIT, LANE, TOP, RADIUS = 270, 44, 30, 46, 6
INK, FULL, PALE = "#263238", "#3949ab", "#b0bec5"


def windows() -> str:
    """The picture of the windows of one row."""
    rows = pa.table({"t": TIMES, "row": range(len(TIMES))})
    lanes = []
    for number, (label, options, (start, end), ends) in enumerate(WINDOWS):
        aggs = {"rows": sw.collect("row")}
        found = sw.rolling(rows, on="t", aggs=aggs, **({"windows": 5} | options))
        held = set(found.column(2)[ROW].as_py())
        y = TOP + LANE * number
        lanes.append(text(12, y + 4, label))
        if ends:
            lanes.append(interval(start, end, ends, y))
        lanes += [
            circle(_across(row), y, FULL if row in held else "white")
            for row in range(len(TIMES))
        ]
    marks = [text(_across(ROW), 18, "this row", "middle")]
    marks += [arrow(_across(ROW), 22)]
    return drawing(
        [*marks, *axis(TOP + LANE * len(WINDOWS), 12), *lanes],
        TOP + LANE * len(WINDOWS) + 34,
        12,
    )


def hops() -> str:
    """The picture of windows that have a result each."""
    times, flags = zip(*EVENTS, strict=True)
    rows = pa.table({"t": times, "flag": flags})
    shapes, y = [], TOP - 14
    shapes.append(text(12, y + 4, "rows; a filled one has a true flag"))
    shapes += [circle(LEFT + UNIT * t, y, FULL if f else "white") for t, f in EVENTS]
    for label, options in HOPS:
        y += LANE
        shapes.append(text(12, y + 4, label))
        out = sw.hopping(rows, on="t", aggs={"n": sw.count()}, **options)
        starts, ends, counts = (
            out[name].to_pylist() for name in ("window_start", "window_end", "n")
        )
        step = 14 if any(map(lt, starts[1:], ends)) else 0
        shapes += [
            bar(start, end, y + step * at, str(count))
            for at, (start, end, count) in enumerate(
                zip(starts, ends, counts, strict=True)
            )
        ]
        y += step * (len(starts) - 1)
    return drawing([*axis(y + LANE, 14), *shapes], y + LANE + 34, 14)


def _across(row: int) -> float:
    """The x of a row: rows of equal time lie side by side around it."""
    ties = [at for at, time in enumerate(TIMES) if time == TIMES[row]]
    beside = ties.index(row) - (len(ties) - 1) / 2
    return LEFT + UNIT * TIMES[row] + 15 * beside


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """A label."""
    words = words.replace('"', "&quot;")
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{words}</text>'


def circle(x: float, y: float, fill: str) -> str:
    """A row."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS}" fill="{fill}" stroke="{INK}"/>'


def arrow(x: float, y: float) -> str:
    """A mark above the row whose windows are drawn."""
    return f'<path d="M{x:g} {y + 8:g} l-4 -8 h8 z" fill="{INK}"/>'


def interval(start: float, end: float, ends: str, y: float) -> str:
    """The interval of a window: it covers the ends that belong to it."""
    wide = 26 if end == TIMES[ROW] and ends[1] == "]" else 0
    a, b = LEFT + UNIT * start, LEFT + UNIT * end + wide
    b -= 26 if ends[1] == ")" and end == TIMES[ROW] else 0
    a += (10 if ends[0] == "(" else -10) if start else -12
    band = f'<rect x="{a:g}" y="{y - 10:g}" width="{b - a:g}" height="20"'
    return f'{band} fill="#e8eaf6" stroke="{PALE}"/>'


def bar(start: float, end: float, y: float, words: str) -> str:
    """A window with its result; of no length, as thick as a row."""
    a, b = LEFT + UNIT * start, LEFT + UNIT * end
    wide = max(b - a, 2 * RADIUS)
    shape = f'<rect x="{a:g}" y="{y - 6:g}" width="{wide:g}" height="12"'
    label = text(a + wide / 2, y + 4, words, "middle")
    return f'{shape} fill="#c5cae9" stroke="{FULL}"/>{label}'


def axis(y: float, last: int) -> list[str]:
    """The axis of time, with a number per unit."""
    line = f'<path d="M{LEFT} {y:g} H{LEFT + UNIT * last}" stroke="{INK}"/>'
    ticks = [text(LEFT + UNIT * t, y + 18, str(t), "middle") for t in range(last + 1)]
    return [line, *ticks]


def drawing(shapes: list[str], height: float, last: int) -> str:
    """The file."""
    width = LEFT + UNIT * last + 30
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" '
        f'width="{width}" font-family="monospace" font-size="12" fill="{INK}">'
    )
    ground = f'<rect width="{width}" height="{height:g}" fill="white"/>'
    return "\n".join([head, ground, *shapes, "</svg>", ""])


PICTURES = {"windows.svg": windows, "hops.svg": hops}


def main() -> int:
    """Writes the pictures, or checks that they are current."""
    old = [
        name
        for name, draw in PICTURES.items()
        if not (DOCS / name).exists() or (DOCS / name).read_text("utf-8") != draw()
    ]
    if "--check" in sys.argv[1:]:
        return 1 if old else 0
    for name in old:
        (DOCS / name).write_text(PICTURES[name](), encoding="utf-8")
        print(f"slidewise {sw.__version__}: wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
