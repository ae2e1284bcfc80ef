"""Runs `cargo test` with the given arguments, and ends it if a test hangs.

    python tools/cargo_test.py -p slidewise-core

libtest reports a test that takes a minute, and goes on waiting. This script ends the
run if the test does not work. A test that works gets another minute, since other work
may share the cores. cargo-nextest would end the test, but it is a binary from one host
only, or takes minutes to compile.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

SLOW = "has been running for over 60 seconds"
GRACE = 60
LOOK = 2  # seconds to see whether a thread works


def used(test: str, session: int) -> dict[Path, int]:
    """Nanoseconds that threads of a test ran or waited for a processor.

    libtest names the thread like the test; Linux keeps 15 bytes of the name.
    """
    times = {}
    for comm in Path("/proc").glob("[0-9]*/task/[0-9]*/comm"):
        try:
            if comm.read_text().rstrip("\n") != test[:15]:
                continue
            if os.getsid(int(comm.parts[2])) == session:
                ran, waited, _ = (comm.parent / "schedstat").read_text().split()
                times[comm.parent] = int(ran) + int(waited)
        except OSError:  # it has ended
            pass
    return times


def works(test: str, session: int) -> bool:
    """Whether a thread that may be the test's works. False where Linux is not.

    Threads of tests with names that begin alike count as well, as do those that the
    test began.
    """
    before = used(test, session)
    time.sleep(LOOK)
    after = used(test, session)
    both = before.keys() & after.keys()
    return any(after[thread] - before[thread] > LOOK * 10**8 for thread in both)


def main(arguments: list[str]) -> int:
    """The exit code of cargo, or 1."""
    # A single thread would run the tests itself, and report none of them.
    threads = str(max(2, os.cpu_count() or 2))
    cargo = subprocess.Popen(
        ["cargo", "test", "--locked", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={"RUST_TEST_THREADS": threads, **os.environ},
    )
    assert cargo.stdout is not None
    slow: set[str] = set()

    def watch(test: str) -> None:
        latest = time.monotonic() + GRACE
        how = "takes too long"
        while time.monotonic() < latest:
            if not works(test, cargo.pid):
                how = "hangs"
                break
        if test in slow:
            print(f"cargo test was ended: {test} {how}", file=sys.stderr)
            os.killpg(cargo.pid, signal.SIGKILL)

    try:
        for line in cargo.stdout:
            print(line, end="", flush=True)
            if SLOW in line:
                test = line.removeprefix("test ").partition(SLOW)[0].strip()
                slow.add(test)
                threading.Thread(target=watch, args=[test], daemon=True).start()
            else:
                slow.difference_update(
                    [t for t in slow if line.startswith(f"test {t} ")]
                )
        code = cargo.wait()
        return code if code >= 0 else 1  # ended by a signal
    finally:
        slow.clear()
        if cargo.poll() is None:
            os.killpg(cargo.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
