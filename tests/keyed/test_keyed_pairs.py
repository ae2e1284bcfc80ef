"""Streams of keyed windows for all pairs of features, compared with a model.

A fresh seed each day, or that of SLIDEWISE_SEED. `make test-keyed-pairs` runs longer.
"""

import os
import time
from functools import cache
from random import Random

import pytest
from keyed_pairs.__main__ import again, cases
from keyed_pairs.covering import pairs, possible
from keyed_pairs.factors import CATALOGUE, Case
from keyed_pairs.run import DifferenceError, play

SEED = os.environ.get("SLIDEWISE_SEED") or time.strftime("%Y%m%d")
PARTS = 10


@cache
def all_cases() -> list[tuple[str, Case]]:
    """The cases of the seed, with an eighth of those of a single aggregation."""
    drawn, count = list(cases(SEED)), len(CATALOGUE)
    return drawn[:-count] + drawn[-count::8]


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS), ids=lambda part: f"seed{SEED}-{part}")
def test_answers_equal_those_of_the_model(part: int) -> None:
    """Each failure has the command that runs its case alone."""
    found = []
    # A quarter of the cases, by the seed; `make test-keyed-pairs` runs all.
    quarter = all_cases()[Random(SEED).randrange(4) :: 4]
    for name, case in quarter[part::PARTS]:
        try:
            play(case, name)
        except DifferenceError as error:
            found.append(f"{again(name)}\n    {str(error)[:300]}")
    assert not found, "\n".join([f"{len(found)} cases differ:", *found])


def test_every_two_features_meet() -> None:
    """Each pair occurs in a case of each seed."""
    missing = possible()
    for _, case in all_cases():
        missing.difference_update(pairs(case))
    assert not missing
