"""`session` returns an existing session unchanged."""

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from slidewise.spark import session

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def levels(spark: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The log levels that are set."""
    found: list[str] = []
    monkeypatch.setattr(type(spark.sparkContext), "setLogLevel", found.append)
    return found


@pytest.fixture
def users(spark: Any) -> Iterator[Any]:
    """A session with other settings than ours."""
    before = {name: spark.conf.get(name) for name in (ZONE, PROVIDER)}
    spark.conf.set(ZONE, "America/New_York")
    spark.conf.unset(PROVIDER)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def test_settings_of_a_session_are_unchanged(users: Any, levels: list[str]) -> None:
    before = users.conf.getAll
    needed = rf"spark.conf.set\('{PROVIDER}', '.*RocksDB.*'\), which streams .* need;"
    with pytest.warns(UserWarning, match=needed):
        assert session("other", config={ZONE: "America/New_York"}) is users
    with pytest.warns(UserWarning, match="ansi.enabled', 'false'"):
        session(config={"spark.sql.ansi.enabled": False})
    fixed = r"spark.driver.memory=8g can only be set before a session starts"
    with pytest.warns(UserWarning, match=fixed):
        session(config={"spark.driver.memory": "8g"})
    assert users.conf.getAll == before
    assert levels == []


def test_an_existing_session_is_returned(spark: Any, levels: list[str]) -> None:
    """No warning is raised, also in another thread."""
    assert session(config={ZONE: "UTC"}) is spark
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(session()))
    thread.start()
    thread.join()
    assert found == [spark]
    assert levels == []


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(ImportError, match=r"pip install 'slidewise\[spark\]'"):
        session()
