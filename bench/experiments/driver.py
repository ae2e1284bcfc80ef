"""Runs the driver, `crates/papers/benches/experiments`."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.experiments.orders import of_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bench.experiments.orders import Order, Results

__all__ = ["ROOT", "build", "measure"]

ROOT = Path(__file__).resolve().parents[2]


def build() -> Path:
    """Compiles the driver and returns its path."""
    done = subprocess.run(
        [
            *("cargo", "bench", "--locked", "--no-run", "-p", "slidewise-papers"),
            *("--bench", "experiments", "--message-format", "json"),
        ],
        cwd=ROOT,
        env={name: text for name, text in os.environ.items() if name != "MAKEFLAGS"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "experiments":
            return Path(message["executable"])
    raise RuntimeError("cargo names no driver")


def measure(
    program: Path,
    orders: Iterable[tuple[Order, int]],
    results: Results,
    *,
    report: Callable[[str], None] = print,
) -> None:
    """Measures each order in its number of turns, alternately.

    Orders of memory run in a process each, which has no memory freed by others.

    Args:
        program: The driver.
        orders: The orders, each with its number of turns.
        results: Receives the figures.
        report: A function that receives progress messages.
    """
    wanted = []
    for order, count in orders:
        if (error := _too_large(order)) is None:
            wanted.append((order, count))
        else:
            results.add(order, {"error": error})
    turns = max((count for _, count in wanted), default=0)
    start = time.monotonic()
    for turn in range(turns):
        rows = [order for order, count in wanted if turn < count]
        together = [order for order in rows if dict(order)["metric"] != "memory"]
        alone = [order for order in rows if dict(order)["metric"] == "memory"]
        for order in alone:
            _run(program, [order], results, turn)
        _run(program, together, results, turn)
        spent = time.monotonic() - start
        report(f"  turn {turn + 1} of {turns}: {len(rows)} measurements, {spent:.0f} s")


# Bytes of an entry at most, while a structure grows; a Bloom filter has two kilobytes.
_BYTES = {"fiba": 24, "fiba_published": 80, "btree": 80}
_OTHERS, _BLOOM = 256, 6 << 10


def _too_large(order: Order) -> str | None:
    """The reason why an order does not fit into the machine's memory, or None."""
    words = dict(order)
    structure = words["structure"].partition(":")[0]
    each = _BYTES.get(structure, _OTHERS)
    if words["operator"] == "bloom":
        each = _BLOOM
    needs = int(words["n"]) * each
    has = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needs < 0.9 * has:
        return None
    return f"needs {needs >> 30} GiB of memory, of which there are {has >> 30}"


def _run(program: Path, orders: Sequence[Order], results: Results, turn: int) -> None:
    if not orders:
        return
    lines = []
    for at, order in enumerate(orders):
        given = of_turn(order, turn)
        words = " ".join(f"{name}={value}" for name, value in given)
        lines.append(f"id={at} {words}\n")
    done = subprocess.run(
        [program],
        input="".join(lines),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for order, answer in zip(orders, answers, strict=False):
        results.add(order, {name: answer[name] for name in answer if name != "id"})
    if len(answers) < len(orders):
        # The last order may have needed more memory than the machine has.
        lost = {"error": f"the driver ended with {done.returncode}"}
        results.add(orders[len(answers)], lost)
        _run(program, orders[len(answers) + 1 :], results, turn)
