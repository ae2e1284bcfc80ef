"""Runs cases at length: `python -m keyed_pairs --minutes 60 --seed 20260101`."""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from random import Random

from keyed_pairs.covering import Cover, alone, pairs
from keyed_pairs.factors import Case
from keyed_pairs.run import DifferenceError, play


def cases(seed: str) -> Iterator[tuple[str, Case]]:
    """The cases of a seed, each with the name that draws its rows."""
    every = chain(Cover(Random(seed)), alone(Random(f"{seed} alone")))
    for number, case in enumerate(every):
        yield f"{seed}:{number}", case


def again(name: str) -> str:
    """The command that plays one case."""
    seed, _, number = name.rpartition(":")
    return (
        "PYTHONPATH=tests/helpers .venv/bin/python -m keyed_pairs "
        f"--seed {seed} --case {number}"
    )


def main() -> None:
    """Prints seeds, cases, cells, and the number of differences of each kind."""
    parser = argparse.ArgumentParser(prog="keyed_pairs")
    parser.add_argument("--seed", default=time.strftime("%Y%m%d"))
    parser.add_argument("--minutes", type=float, default=0.0, help="0: one round")
    parser.add_argument("--case", type=int, help="only this one, with its traceback")
    given = parser.parse_args()
    began, played, cells, number = time.monotonic(), 0, 0, 0
    kinds: Counter[str] = Counter()
    met = set()
    minutes = 0.0
    while not number or minutes < given.minutes:
        seed = given.seed if not number else f"{given.seed}.{number}"
        for name, case in cases(seed):
            if given.case is not None and name != f"{seed}:{given.case}":
                continue
            if given.case is not None:
                print(case, flush=True)
                print(f"{play(case, name)} cells compared, no difference")
                return
            played += 1
            met.update(pairs(case))
            try:
                cells += play(case, name)
            except DifferenceError as error:
                kinds[error.kind] += 1
                if kinds[error.kind] <= 3:
                    print(f"{again(name)}\n    {str(error)[:300]}", flush=True)
            minutes = (time.monotonic() - began) / 60
            if number and minutes >= given.minutes:
                break
        number += 1
    print(f"seed {given.seed}: {played} cases in {minutes:.1f} min")
    print(f"{len(met)} pairs of values met, {cells} cells compared")
    print(f"{kinds.total()} cases with a difference")
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")


if __name__ == "__main__":
    main()
