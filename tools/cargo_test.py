"""Runs `cargo test` with the given arguments, and ends it once a test takes a minute.

    python tools/cargo_test.py -p slidewise-core

libtest reports such a test and waits on; cargo-nextest would end it, but comes as a
binary from one host only, or out of minutes of compiling.
"""

import os
import signal
import subprocess
import sys

SLOW = "has been running for over 60 seconds"


def main(arguments: list[str]) -> int:
    """The exit code of cargo, or 1."""
    command = ["cargo", "test", "--locked", *arguments]
    cargo = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert cargo.stdout is not None
    try:
        for line in cargo.stdout:
            print(line, end="", flush=True)
            if SLOW in line:
                print("cargo test was ended: a test takes too long", file=sys.stderr)
                return 1
        return cargo.wait()
    finally:
        if cargo.poll() is None:
            os.killpg(cargo.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
