"""One Spec gives one number, whichever way it is asked for: to the last bit."""

import os
from pathlib import Path

import one_number
import pytest
from seeds import SEED

RUNS = int(os.environ.get("SLIDEWISE_ONE_NUMBER", "1"))


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("way", one_number.IN_PROCESS, ids=one_number.name_of)
def test_every_way_gives_the_same_bits(
    way: one_number.Way, run: int, tmp_path: Path
) -> None:
    batches = one_number.batches_of(SEED + run)
    assert one_number.split(batches), "rows come late"
    right = one_number.defined(batches)
    assert one_number.same(way(batches, tmp_path), right), f"seed {SEED + run}"


@pytest.mark.parametrize("run", range(RUNS))
def test_a_store_has_the_numbers_of_its_times(run: int) -> None:
    for store, rows in one_number.stored(one_number.batches_of(SEED + run)):
        right = one_number.as_of(rows, store)
        found = [
            {name: row[name] for name in one_number.SPEC.results}
            for row in store.values()
        ]
        assert one_number.same(found, right), f"seed {SEED + run}"
