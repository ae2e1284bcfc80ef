"""In a worker of Spark, garbage collection does not visit modules; Arrow's pool."""

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pyarrow as pa
import pytest

from slidewise.spark import payload, worker_memory
from slidewise.spark.arrow_ipc import write_ipc

POOL = "ARROW_DEFAULT_MEMORY_POOL"


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process, as a worker that has not run a task."""
    worker_memory._prepare.cache_clear()
    monkeypatch.setattr(worker_memory.TaskContext, "get", lambda: object())
    monkeypatch.delenv(POOL, raising=False)
    pool = pa.default_memory_pool()
    gc.unfreeze()  # what tests/conftest.py has frozen; the test freezes it again
    yield
    pa.set_memory_pool(pool)
    worker_memory._prepare.cache_clear()


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


def test_modules_of_the_first_task_are_frozen_too(
    worker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark imports pandas and others while the first task runs."""
    worker_memory.prepare_worker()
    module = ModuleType("module_of_a_task")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert is_visited(module)
    worker_memory.prepare_worker()
    assert not is_visited(module)


def is_visited(module: ModuleType) -> bool:
    """Whether garbage collection visits a module."""
    return any(each is module for each in gc.get_objects())


def test_arrow_keeps_the_memory_of_large_blocks(worker: None) -> None:
    worker_memory.prepare_worker()
    assert pa.default_memory_pool().backend_name == "system"


def test_a_chosen_pool_stays(worker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(POOL, "mimalloc")
    before = pa.default_memory_pool().backend_name
    worker_memory.prepare_worker()
    assert pa.default_memory_pool().backend_name == before


def test_the_driver_is_unchanged() -> None:
    worker_memory._prepare.cache_clear()
    before = gc.get_freeze_count()
    worker_memory.prepare_worker()
    # Threads of other tests may free what tests/conftest.py has frozen.
    assert gc.get_freeze_count() <= before
