"""A long run: memory must not grow, and windows in reference cycles must be collected.

`--native` operations on windows with a native aggregation (compiled by Numba if it is
installed, else built in), `--python` operations with one in Python, over algorithms in
turn; then `--cycles` windows that their own functions refer to. An operation is an
insert, an evict or a query; each window is also filled in bulk, copied and dropped.
Ends with status 1 if the process grew by more than a mebibyte after its warm-up.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from bench.measure import resident_bytes

import slidewise as sw

if TYPE_CHECKING:
    from collections.abc import Iterator

MEBIBYTE = 1 << 20
ALGORITHMS = ["fiba", "two_stacks_lite", "daba_lite", "reactive"]
LENGTH = 512


def add(a: float, b: float) -> float:
    return a + b


def _native() -> Any:
    try:
        return sw.native(add, "float64", commutative=True)
    except ImportError:
        return sw.sum()


def _python() -> Any:
    return sw.aggregation(
        lift=lambda value: [value],
        combine=lambda a, b: [*a[-2:], *b][-3:],
        lower=len,
        identity=[],
    )


def _rounds(make: Any) -> Iterator[int]:
    """Runs for ever; yields the number of operations since the last yield."""
    agg = make()
    numbers = np.arange(64) * 0.5
    while True:
        for algorithm in ALGORITHMS:
            w = sw.Window(agg, algorithm=algorithm)
            done = 0
            for time_ in range(0, 8 * LENGTH, 2):
                w.insert(time_, 0.5)
                if time_ >= LENGTH:
                    w.evict()
                    w.query()
                done += 3
            w.insert_many(np.arange(8 * LENGTH, 8 * LENGTH + 64), numbers)
            w.evict_until(8 * LENGTH - 64)
            w.query()
            w.copy().clear()
            yield done + 67


def _soak(what: str, make: Any, operations: int) -> bool:
    rounds = _rounds(make)
    warm, done, before = operations // 20, 0, None
    highest = lowest = 0
    started = time.monotonic()
    while done < operations:
        done += next(rounds)
        if before is None and done >= warm:
            gc.collect()
            before = resident_bytes()
        elif before is not None and done % 1024 < 200:
            held = (resident_bytes() or 0) - (before or 0)
            highest, lowest = max(highest, held), min(lowest, held)
    gc.collect()
    grown = (resident_bytes() or 0) - (before or 0)
    seconds = time.monotonic() - started
    meanwhile = f"{lowest / 1024:.0f} to {highest / 1024:.0f} KiB meanwhile"
    print(
        f"{what}: {done:,} operations in {seconds:.0f} s; the process grew by "
        f"{grown / 1024:.0f} KiB after its warm-up ({meanwhile})",
        flush=True,
    )
    return grown <= MEBIBYTE


def _cycles(count: int) -> bool:
    alive = []
    for at in range(count):
        held: list[Any] = []
        agg = sw.aggregation(
            lift=lambda value, held=held: (value, held),
            combine=lambda a, b, held=held: (a[0] + b[0], held),
            identity=None,
        )
        w = sw.Window(agg, algorithm=ALGORITHMS[at % len(ALGORITHMS)])
        held.append(w)
        w.insert_many([1, 2, 3], [1, 2, 3])
        w.query()
        alive.append(weakref.ref(w))
    del w, held, agg
    gc.collect()
    left = sum(reference() is not None for reference in alive)
    print(f"windows in reference cycles: {count:,}, {left} left", flush=True)
    return left == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--native", type=int, default=100_000_000)
    parser.add_argument("--python", type=int, default=10_000_000)
    parser.add_argument("--cycles", type=int, default=10_000)
    options = parser.parse_args()
    fine = [
        _soak("native", _native, options.native),
        _soak("python", _python, options.python),
        _cycles(options.cycles),
    ]
    sys.exit(not all(fine))


if __name__ == "__main__":
    main()
