"""Threads on one window for a short time; `make test-threads` runs for hours."""

import pytest
from threads import PARTS


@pytest.mark.parametrize("threads", [2, 4, 8])
@pytest.mark.parametrize("part", list(PARTS))
def test_threads_share_a_window(part: str, threads: int) -> None:
    for seed in (1, 2) if part == "window" else (1,):
        assert PARTS[part](threads, 0.5, seed) > 0
