"""Runs `cargo test` with the given arguments, and ends it if a test hangs.

    python tools/cargo_test.py -p slidewise-core

libtest reports a test that takes a minute, and goes on waiting. This script waits
another minute, since other work may share the cores. cargo-nextest would end the test,
but it is a binary from one host only, or takes minutes to compile.
"""

import os
import signal
import subprocess
import sys
import threading

SLOW = "has been running for over 60 seconds"
GRACE = float(os.environ.get("SLIDEWISE_TEST_GRACE", 60))


def main(arguments: list[str]) -> int:
    """The exit code of cargo, or 1."""
    command = ["cargo", "test", "--locked", *arguments]
    cargo = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert cargo.stdout is not None
    slow: dict[str, threading.Timer] = {}

    def end(name: str) -> None:
        print(f"cargo test was ended: {name} takes too long", file=sys.stderr)
        os.killpg(cargo.pid, signal.SIGKILL)

    try:
        for line in cargo.stdout:
            print(line, end="", flush=True)
            name = line.removeprefix("test ").split(" ")[0].strip()
            if SLOW in line:
                slow[name] = threading.Timer(GRACE, end, [name])
                slow[name].start()
            elif name in slow:
                slow.pop(name).cancel()
        code = cargo.wait()
        return code if code >= 0 else 1  # ended by a signal
    finally:
        for timer in slow.values():
            timer.cancel()
        if cargo.poll() is None:
            os.killpg(cargo.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
