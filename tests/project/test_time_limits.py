"""A test that does not end fails, also if it holds the interpreter."""

import subprocess
import sys
from pathlib import Path

import hangs
import pytest
from hypothesis import core
from hypothesis.internal.conjecture import engine

ROOT = Path(__file__).parents[2]
WAITS = {
    "python": "import threading; threading.Event().wait()",
    # PyDLL holds the interpreter's lock, as a deadlock within the extension does.
    "native": "import ctypes; ctypes.PyDLL(None).pause()",
}


def pytest_on(
    folder: Path, code: str, *options: str, limit: float, grace: float
) -> "subprocess.CompletedProcess[str]":
    """Runs a test of one statement under our conftest.py, with other limits."""
    tests = folder / "tests"
    tests.mkdir()
    ours = (ROOT / "tests/conftest.py").read_text()
    (tests / "conftest.py").write_text(ours.replace("GRACE = 10", f"GRACE = {grace}"))
    (tests / "test_it.py").write_text(f"def test_it():\n    {code}\n")
    config = folder / "pytest.ini"
    paths = f"pythonpath = {ROOT / 'tests/helpers'}"
    config.write_text(f"[pytest]\ntimeout = {limit}\n{paths}\n")
    command = [sys.executable, "-m", "pytest", "-c", config, "-p", "no:xdist", tests]
    return subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=40, check=False
    )


@pytest.mark.long
@pytest.mark.parametrize("wait", WAITS)
def test_a_deadlock_in_pytest_fails(tmp_path: Path, wait: str) -> None:
    done = pytest_on(tmp_path, WAITS[wait], limit=1, grace=1)
    assert done.returncode == 1
    assert "test_it" in done.stdout
    assert "Timeout" in done.stdout + done.stderr


WATCHED = """
import os, hangs, pytest
def pytest_configure():
    global watch
    watch = hangs.Watch(idle=1, grace=5, stderr=os.dup(2))
@pytest.fixture(autouse=True)
def watched():
    watch.test = "test_it"
    yield
    watch.test = None
"""
WORKS = (
    "import time; end = time.process_time() + 3\n    while time.process_time() < end: 0"
)


@pytest.mark.long
@pytest.mark.skipif(not hangs.PROC.exists(), reason="the watch needs Linux")
@pytest.mark.parametrize(("code", "fails"), [(WAITS["python"], True), (WORKS, False)])
def test_a_watched_test_fails_if_it_does_not_work(
    tmp_path: Path, code: str, fails: bool
) -> None:
    """So do tests of Spark, within a minute; other tests have a shorter limit."""
    (tmp_path / "conftest.py").write_text(WATCHED)
    done = pytest_on(tmp_path, code, limit=30, grace=1)
    assert done.returncode == fails, done.stdout + done.stderr
    assert ("test_it: no work for 1 s" in done.stderr) == fails


@pytest.mark.long
def test_an_option_removes_the_limit(tmp_path: Path) -> None:
    """Long runs have `--timeout 0`."""
    code = "import time; time.sleep(0.5)"
    done = pytest_on(tmp_path, code, "--timeout", "0", limit=0.1, grace=0.1)
    assert done.returncode == 0, done.stderr


def test_a_failing_example_is_reported_in_time(pytestconfig: pytest.Config) -> None:
    assert float(pytestconfig.getini("timeout")) > 2 * engine.MAX_SHRINKING_SECONDS
    assert core.global_force_seed is not None


# The test "cargo" is the shell itself, which works for some seconds.
WORKING_SHELL = (
    "end=$(($(date +%s) + 6)); while [ $(date +%s) -lt $end ]; do i=0; "
    "while [ $i -lt 100000 ]; do i=$((i + 1)); done; done; echo 'test cargo ... ok'"
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("test", "rest", "code"),
    [
        ("waits", "sleep 1000", 1),
        ("cargo", WORKING_SHELL, 0),
    ],
)
def test_a_deadlock_in_cargo_test_fails(
    tmp_path: Path, test: str, rest: str, code: int
) -> None:
    """libtest reports a test after a minute; the run ends if the test does not work."""
    cargo = tmp_path / "cargo"
    line = f"test {test} has been running for over 60 seconds"
    cargo.write_text(f"#!/bin/sh\necho 'test one ... ok'\necho '{line}'\n{rest}\n")
    cargo.chmod(0o755)
    done = subprocess.run(
        [sys.executable, ROOT / "tools/cargo_test.py"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )
    assert done.returncode == code
    assert line in done.stdout
    assert ("ended" in done.stderr) == (code == 1)


@pytest.mark.parametrize("code", [0, 101])
def test_cargo_test_is_believed(tmp_path: Path, code: int) -> None:
    cargo = tmp_path / "cargo"
    cargo.write_text(f'#!/bin/sh\necho "$@"\nexit {code}\n')
    cargo.chmod(0o755)
    done = subprocess.run(
        [sys.executable, ROOT / "tools/cargo_test.py", "-p", "one"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert done.stdout == "test --locked -p one\n"
