"""Children of `os.fork`, in which a test goes on, and threads that run meanwhile."""

import faulthandler
import os
import pickle
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

# After this number of seconds a child hangs.
LIMIT = 20.0


def in_child(work: Callable[[], Any]) -> Any:
    """Forks; gives what `work` returns in the child, which then ends.

    Raises:
        AssertionError: If it raises, or the child hangs or dies.
    """
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        answer_and_exit(into, work)
    os.close(into)
    return answer_of(pid, out)


def answer_and_exit(into: int, work: Callable[[], Any]) -> NoReturn:
    """Writes what `work` returns, or what it raises, and ends the process."""
    try:
        faulthandler.register(signal.SIGUSR1, into, all_threads=True)
        try:
            blob = pickle.dumps((None, work()))
        except BaseException:  # noqa: BLE001 - raised again by the parent
            blob = pickle.dumps((traceback.format_exc(), None))
        with os.fdopen(into, "wb") as pipe:
            pipe.write(blob)
    finally:
        os._exit(0)


def answer_of(pid: int, out: int) -> Any:
    """Reads what the child writes until it ends; kills a child that hangs."""
    hangs = False
    try:
        blob, ended = read_until(out, time.monotonic() + LIMIT)
        if not ended:
            hangs = True
            os.kill(pid, signal.SIGUSR1)
            blob, _ = read_until(out, time.monotonic() + 1)
    finally:
        os.close(out)
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    assert not hangs, f"the child hangs: no answer within {LIMIT:g} s\n{blob.decode()}"
    assert blob, f"the child died (status {status})"
    error, answer = pickle.loads(blob)
    assert error is None, f"in the child:\n{error}"
    return answer


def read_until(out: int, end: float) -> tuple[bytes, bool]:
    """What a pipe gives until a time, and whether it was closed."""
    blob = b""
    while select.select([out], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(out, 1 << 16)
        if not part:
            return blob, True
        blob += part
    return blob, False


def in_both(work: Callable[[Callable[[], None]], Any]) -> tuple[Any, Any]:
    """What a work returns here and in a child, which it forks by its argument, once."""
    forks: list[tuple[int, int, int]] = []
    error, here = None, None

    def fork() -> None:
        out, into = os.pipe()
        forks.append((os.fork(), out, into))

    def there() -> Any:
        if error is not None:
            raise error
        return here

    try:
        here = work(fork)
    except BaseException as raised:  # noqa: BLE001 - raised again by there()
        error = raised
    ((pid, out, into),) = forks
    if pid == 0:
        answer_and_exit(into, there)
    os.close(into)
    answer = answer_of(pid, out)
    return there(), answer


def continue_stream(windows: Any, keys: Any, rows: Any, into: Any) -> None:
    """In a process of multiprocessing: sends answers before and after further rows."""
    before = windows.query_many(keys)
    windows.ingest(rows)
    windows.check()
    into.send((before, windows.query_many(keys)))


@contextmanager
def running(*works: Callable[[], Any]) -> Iterator[None]:
    """Repeats each of these works in a thread of its own, until the block ends.

    A child would wait for ever for a module that another thread was importing. So the
    first time is before, and pyarrow must find a module that it looks for again and
    again.
    """
    pytest.importorskip("dateutil")
    for work in works:
        work()
    done, raised = threading.Event(), []

    def repeat(work: Callable[[], Any]) -> None:
        try:
            while not done.is_set():
                work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised.append(error)

    threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()
    if raised:
        raise raised[0]


class Paused:
    """A call in another thread that stops at lines of some files, for a fork at each.

    Args:
        call: The call.
        stops: Whether to stop at a line, by the name of its file and its number.
    """

    def __init__(
        self, call: Callable[[], Any], stops: Callable[[str, int], bool]
    ) -> None:
        self._call, self._stops = call, stops
        self._stopped, self._goes_on = threading.Semaphore(0), threading.Semaphore(0)
        self._line: tuple[str, int] | None = None
        self._raised: BaseException | None = None
        self._seen: set[tuple[str, int]] = set()

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """The lines, each while the call stops at it for the first time."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            while True:
                self._stopped.acquire()
                if self._line is None:
                    break
                yield self._line
                self._goes_on.release()
        finally:
            self._stops = lambda file, line: False
            self._goes_on.release()
            thread.join()
        if self._raised is not None:
            raise self._raised

    def _run(self) -> None:
        sys.settrace(self._trace)
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001 - raised again above
            self._raised = error
        finally:
            sys.settrace(None)
            self._line = None
            self._stopped.release()

    def _trace(self, frame: Any, event: str, _: Any) -> Any:
        at = Path(frame.f_code.co_filename).name, frame.f_lineno
        if event == "line" and at not in self._seen and self._stops(*at):
            self._seen.add(at)
            self._line = at
            self._stopped.release()
            self._goes_on.acquire()
        return self._trace
