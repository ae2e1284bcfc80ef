"""Interrupts a test that hangs: neither this process nor its descendants work.

A test of Spark that works may take minutes where other work shares the cores, so that
its time limit is long. The watch measures processor time instead. While a test hangs,
the threads of Spark take 0.5 % of a core in sum; a test that works takes 20 % even if
eight processes share two cores. It needs Linux; elsewhere the limit of the test holds.
"""

import faulthandler
import os
import signal
import threading
import time
from pathlib import Path

PROC = Path("/proc")
STEP = 5.0
SHARE = 0.03


class Watch(threading.Thread):
    """Sends the signal of pytest-timeout to `test` once it was idle for some seconds.

    The process ends if the test does not within `grace` seconds.
    """

    def __init__(self, idle: float, grace: float, stderr: int) -> None:
        super().__init__(daemon=True)
        self.idle, self.grace, self.stderr = idle, grace, stderr
        self.test: str | None = None
        self.hung: str | None = None
        if (PROC / "self/stat").exists():
            self.start()

    def run(self) -> None:
        test, since = self.test, time.monotonic()
        before = processor_seconds()
        step = min(STEP, self.idle / 2)
        while True:
            time.sleep(step)
            after = processor_seconds()
            used = sum(max(0, after[pid] - before.get(pid, 0)) for pid in after)
            before = after
            if self.test is None or self.test != test or used > SHARE * step:
                test, since = self.test, time.monotonic()
            elif time.monotonic() - since >= self.idle:
                self.interrupt(test)
                since = time.monotonic()

    def interrupt(self, test: str) -> None:
        """Fails the test, or else ends the process."""
        self.hung = test
        os.write(self.stderr, f"\n{test}: no work for {self.idle:g} s\n".encode())
        if callable(signal.getsignal(signal.SIGALRM)):  # not once the test has failed
            os.kill(os.getpid(), signal.SIGALRM)
            time.sleep(self.grace)
        if self.test == test:
            faulthandler.dump_traceback(self.stderr)
            os._exit(1)


def processor_seconds() -> dict[int, float]:
    """Of this process and each descendant, with those of its children that ended."""
    parents, seconds = {}, {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:  # it has ended
                continue
            fields = stat.rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            ticks = sum(map(int, fields[11:15]))
            seconds[int(entry.name)] = ticks / os.sysconf("SC_CLK_TCK")
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {pid: seconds[pid] for pid in ours if pid in seconds}
