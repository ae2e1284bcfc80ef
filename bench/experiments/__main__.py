"""The experiments of the papers: measures, draws, and checks the claims.

    make experiments                             all figures, about 15 minutes
    make experiments ONLY="fiba-11 daba"         a figure, and all of a paper
    make experiments SCALE=paper DATA=folder     as printed, in hours

One page for each paper and a summary go to target/experiments, with the pictures and
all measurements (`results.json`). `--redraw` draws the pages from these again; with
`--counted` nothing is timed, which takes minutes and gives the same on every machine.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.experiments import driver, orders, peer
from bench.experiments.catalogue import find
from bench.experiments.data import energies, replayed, trips, write_numbers
from bench.experiments.figures import draw
from bench.experiments.orders import Point, Results, Scale
from bench.experiments.pages import write_pages
from bench.measure import machine

if TYPE_CHECKING:
    from bench.experiments.shapes import Artefact

# Turns of each measurement that may vary: as many of each of three readings.
_TURNS = {"quick": 3, "paper": 6}

# Rows to generate without data.
_TRIPS = {"quick": 10_000, "paper": 1_000_000}
_READINGS = {"quick": 1 << 17, "paper": 1 << 25}


def _main() -> None:
    options = _options()
    out: Path = options.out
    try:
        rows = find(options.only)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    kept = out / "results.json"
    if options.redraw:
        record = json.loads(kept.read_text(encoding="utf-8"))
        results = Results.from_json(record["results"])
        points = _points(rows, record["scale"], record["words"])
        about = record["about"]
    else:
        program = options.driver or driver.build()
        words, days, sources = _data(options.data, options.scale, out)
        about = {**_machine(), "scale": options.scale, **sources}
        points = _points(rows, options.scale, words)
        results = Results()
        if options.counted:
            points = {key: _counted(found) for key, found in points.items()}
        if "bulk-15" in points:
            results.add(_DAYS.order, days)
        for row in rows:
            _measure(program, row, points[row.key], results, _TURNS[options.scale])
            about["measured in"] = f"{time.monotonic() - start:.0f} s"
            record = {
                "scale": options.scale,
                "words": words,
                "about": about,
                "results": results.to_json(),
            }
            kept.write_text(json.dumps(record) + "\n", encoding="utf-8")
    for row in rows:
        draw(row, points[row.key], results, out / f"{row.key}.png")
    peers = None
    if options.cpp:
        peers = peer.compare(options.cpp, options.driver or driver.build(), out)
    verdicts = write_pages(rows, points, results, about, out, peers)
    for state in ("holds", "fails", "undecided"):
        print(f"{state:<10} {sum(verdict.state == state for verdict in verdicts):>4}")
    print(f"{out / 'README.md'}, {time.monotonic() - start:.0f} s")


# The figures of a replay of the trips, in the form of measurements.
_DAYS = Point({"label": "trips", "n": 0, "operator": ""}, (("data", "trips"),))


def _points(
    rows: list[Artefact], scale: Scale, words: dict[str, str]
) -> dict[str, list[Point]]:
    points = {
        row.key: [point for grid in row.grids for point in grid.orders(scale, words)]
        for row in rows
    }
    if "bulk-15" in points:
        points["bulk-15"] = [_DAYS]
    return points


def _counted(points: list[Point]) -> list[Point]:
    """Those whose figures do not depend on the machine."""
    return [point for point in points if not point.timed]


def _measure(
    program: Path,
    row: Artefact,
    points: list[Point],
    results: Results,
    turns: int,
) -> None:
    """Measures a figure: the parts of a ratio are measured in one run."""
    wanted = {
        point.order: turns if point.repeated else 1
        for point in points
        if not results.has(point.order)
    }
    print(f"{row.key}: {row.title}", flush=True)
    driver.measure(program, wanted.items(), results)


def _data(
    folder: Path | None, scale: Scale, out: Path
) -> tuple[dict[str, str], dict[str, Any], dict[str, str]]:
    """Files for the driver, the figures of the trips, and their sources."""
    ridden = trips(folder, _TRIPS[scale])
    read = energies(folder, _READINGS[scale])
    folder = out.resolve()
    words = {
        "times": str(folder / "trips.int64"),
        "energies": str(folder / f"energies-{orders.READING}.int64"),
    }
    write_numbers(ridden.starts, Path(words["times"]))
    for turn, values in enumerate(read.readings):
        path = words["energies"].replace(orders.READING, str(turn))
        write_numbers(values, Path(path))
    about = {"trips": ridden.source, "readings": read.source}
    return words, _days(ridden.starts), about


def _days(starts: list[int]) -> dict[str, Any]:
    found = replayed(starts)
    # Steps while the first day fills the window are left out.
    sizes = sorted(found.n[len(found.n) // 5 :])
    count = len(starts)
    return {
        "single": sum(m <= 1 for m in found.m) / count,
        "n_range": sizes[len(sizes) * 95 // 100] / max(sizes[len(sizes) * 5 // 100], 1),
        "m_most": max(found.m),
        "d_small": sum(d <= 100 for d in found.d) / count,
        "d_large": sum(d >= 10_000 for d in found.d),
        "histograms": {
            "n": _evenly(sizes),
            "m": _by_doubling(found.m),
            "d": _by_doubling(found.d),
        },
    }


def _machine() -> dict[str, str]:
    """Describes the measurement and the machine, without packages of Python."""
    return {name: text for name, text in machine(()).items() if text}


def _evenly(values: list[int], parts: int = 12) -> list[tuple[int, int]]:
    """The number of values in parts of equal width, by the begin of each part."""
    low, high = min(values), max(values)
    width = max((high - low) // parts + 1, 1)
    held = Counter((value - low) // width for value in values)
    return [(low + part * width, held[part]) for part in range(max(held) + 1)]


def _by_doubling(values: list[int]) -> list[tuple[int, int]]:
    """The number of values from each power of two to the next; zero has its own."""
    held = Counter(value.bit_length() for value in values)
    return [(1 << bits >> 1, held[bits]) for bits in range(max(held) + 1)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make experiments", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--scale", choices=("quick", "paper"), default="quick")
    parser.add_argument("--only", default="", help="keys of figures, or of papers")
    parser.add_argument("--data", type=Path, help="a folder with the papers' data")
    parser.add_argument("--cpp", type=Path, help="a folder with the authors' C++")
    parser.add_argument("--driver", type=Path, help="the driver; built without")
    parser.add_argument("--out", type=Path, default=driver.ROOT / "target/experiments")
    parser.add_argument("--counted", action="store_true", help="time nothing")
    parser.add_argument("--redraw", action="store_true", help="measure nothing")
    return parser.parse_args()


if __name__ == "__main__":
    _main()
