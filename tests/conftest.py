"""Settings of all tests: a printed seed, and a time limit that also ends deadlocks."""

import faulthandler
import os
from collections.abc import Iterator

import pytest
from seeds import SEED

# pytest-timeout fails a test from within the interpreter. A deadlock in native code
# may hold the interpreter, so the process is ended these seconds later.
GRACE = 10
STDERR = pytest.StashKey[int]()


def pytest_report_header() -> str:
    return f"seed {SEED}, of this day; to repeat: SLIDEWISE_SEED={SEED}"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)  # before tests are captured


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    marker = item.get_closest_marker("timeout")
    limit = float(marker.args[0] if marker else item.config.getini("timeout"))
    stderr = item.config.stash[STDERR]
    faulthandler.dump_traceback_later(limit + GRACE, exit=True, file=stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
