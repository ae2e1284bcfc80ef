"""Settings of all tests: a printed seed, and a time limit that also ends deadlocks.

Hypothesis draws by the same seed, so that a failure repeats. It shrinks a failing
example for some seconds only: it takes the error of the time limit for another failing
example and goes on, and the end of the process would hide the first one.
"""

import faulthandler
import gc
import math
import os
import random
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
from hypothesis.internal.conjecture import engine
from seeds import SEED

# pytest-timeout fails a test from within the interpreter. A deadlock in native code
# may hold the interpreter, so the process is ended these seconds later.
GRACE = 10
# One of so many runs a day: of the cases of a test, of long tests, of modules with
# Spark, of the tests of these.
CASES = 15
LONG = 3
SPARK_MODULES = 4
SPARK_TESTS = 10
STDERR = pytest.StashKey[int]()


def pytest_report_header() -> str:
    return f"seed {SEED}, of this day; to repeat: SLIDEWISE_SEED={SEED}"


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its option
def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)  # before tests are captured
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = SEED
    engine.MAX_SHRINKING_SECONDS = 15
    if find_spec("sklearn") is None:  # which the examples of its module import
        module = str(config.rootpath / "python" / "slidewise" / "sklearn.py")
        config.option.ignore = [*(config.option.ignore or ()), module]


def limit_of(item: pytest.Item) -> float:
    """The seconds that pytest-timeout gives a test; 0 for any number."""
    if marker := item.get_closest_marker("timeout"):
        return float(marker.args[0])
    given: float | None = item.config.getoption("timeout")
    return float(item.config.getini("timeout")) if given is None else given


def case_of(item: pytest.Item) -> str | None:
    """The test of which the item is a case. Those of the project read a file each."""
    drawn = hasattr(item, "callspec") and item.path.parent.name != "project"
    return item.nodeid.partition("[")[0] if drawn else None


def long_of(item: pytest.Item) -> str | None:
    """The tests of seconds, without Spark, are one group."""
    return "long" if item.get_closest_marker("long") else None


def spark_module_of(item: pytest.Item) -> str | None:
    """The module of a test with Spark, which takes seconds."""
    return item.path.name if item.path.parent.name == "spark" else None


def draw(
    items: list[pytest.Item], group: Callable[[pytest.Item], str | None], parts: int
) -> list[pytest.Item]:
    """Keeps of each group one of so many parts, at least one item; the seed draws."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if (name := group(item)) is not None:
            groups.setdefault(name, []).append(item)
    kept = {
        item
        for name, members in groups.items()
        for item in random.Random(f"{SEED} {name}").sample(
            members, math.ceil(len(members) / parts)
        )
    }
    return [item for item in items if group(item) is None or item in kept]


def draw_modules(items: list[pytest.Item]) -> list[pytest.Item]:
    """Keeps one of so many modules with Spark, and all other tests."""
    modules = {name for item in items if (name := spark_module_of(item)) is not None}
    count = math.ceil(len(modules) / SPARK_MODULES)
    kept = {None, *random.Random(f"{SEED} modules").sample(sorted(modules), count)}
    return [item for item in items if spark_module_of(item) in kept]


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Draws some cases of each test, long tests, modules with Spark and tests of these.

    All run with SLIDEWISE_EVERY_CASE, or if files or tests are named, or selected.
    """
    named = any(".py" in arg for arg in config.args) or config.option.keyword
    if named or "SLIDEWISE_EVERY_CASE" in os.environ:
        return
    kept = draw(draw_modules(items), case_of, CASES)
    kept = draw(kept, long_of, LONG)
    kept = draw(kept, spark_module_of, SPARK_TESTS)
    config.hook.pytest_deselected(items=list(set(items).difference(kept)))
    items[:] = kept


def pytest_collection_finish() -> None:
    """Each collection of garbage would visit the eleven thousand tests."""
    gc.collect()
    gc.freeze()


def limit_process(item: pytest.Item) -> None:
    """Ends the process some seconds after the limit of a test."""
    if (limit := limit_of(item)) > 0:
        stderr = item.config.stash[STDERR]
        faulthandler.dump_traceback_later(limit + GRACE, exit=True, file=stderr)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """pytest lifts the limit when a test fails, whose teardown may hang."""
    if isinstance(node, pytest.Item):
        limit_process(node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    limit_process(item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
