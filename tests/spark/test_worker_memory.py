"""Garbage collection in a worker of Spark does not visit modules."""

import gc
from collections.abc import Iterator

import pyarrow as pa
import pytest

from slidewise.spark import payload, worker_memory
from slidewise.spark.arrow_ipc import write_ipc


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process, as a worker that has not run a task."""
    worker_memory._freeze.cache_clear()
    monkeypatch.setattr(worker_memory.TaskContext, "get", lambda: object())
    gc.unfreeze()  # what tests/conftest.py has frozen; the test freezes it again
    yield
    worker_memory._freeze.cache_clear()


def test_modules_are_frozen_once(worker: None) -> None:
    before = gc.get_freeze_count()
    batch = pa.record_batch({"payload": [write_ipc(pa.table({"x": [1]}))]})
    assert [part.num_rows for part in payload.unpack(iter([batch]))] == [1]
    frozen = gc.get_freeze_count()
    assert frozen > before + 10_000
    assert list(payload.unpack(iter([batch])))
    assert gc.get_freeze_count() <= frozen
    cycle: list[object] = []
    cycle.append(cycle)
    del cycle
    assert gc.collect() >= 1


def test_the_driver_is_unchanged() -> None:
    worker_memory._freeze.cache_clear()
    before = gc.get_freeze_count()
    worker_memory.freeze_modules()
    # Threads of other tests may free what tests/conftest.py has frozen.
    assert gc.get_freeze_count() <= before
