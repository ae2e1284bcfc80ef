"""PostgreSQL and Redis for tests of sinks, on loopback, from packages of the system."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

# Where Debian has what is not on PATH.
_FOLDERS = "/usr/lib/postgresql"
_START_SECONDS = 60
# The user of PostgreSQL, which does not run as root.
_USER = "postgres"


def _binary(name: str) -> str | None:
    found = shutil.which(name)
    if found is None and Path(_FOLDERS).is_dir():
        there = sorted(Path(_FOLDERS).glob(f"*/bin/{name}"))
        return str(there[-1]) if there else None
    return found


def reason(kind: str) -> str | None:
    """Returns the reason why a kind of server cannot be tested; None if it can."""
    module, binary, packages = {
        "postgres": ("psycopg", "initdb", "postgresql"),
        "redis": ("redis", "redis-server", "redis-server"),
    }[kind]
    if find_spec(module) is None:
        return f"{module} is not installed: pip install 'slidewise[{kind}]'"
    if _binary(binary) is None:
        return f"{binary} is not installed: apt-get install {packages}"
    return None


class Server:
    """A server process, whose data outlives it.

    Attributes:
        kind: "postgres" or "redis".
        url: What clients connect to.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self._folder = kind, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self._user = None
        if kind == "postgres":
            self.url = f"postgresql://tests@127.0.0.1:{self._port}/postgres"
            if os.geteuid() == 0:
                self._user = _USER
                folder.chmod(0o755)
                shutil.chown(folder, _USER)
            made = ["-D", str(folder / "data"), "-U", "tests", "-A", "trust"]
            self._run(["initdb", *made, "-N", "--locale", "C.UTF-8"]).wait()
        else:
            self.url = f"redis://127.0.0.1:{self._port}/0"
        self.start()

    def _run(self, call: list[str]) -> "subprocess.Popen[bytes]":
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(_binary(call[0])), *call[1:]],
                stdout=log,
                stderr=log,
                user=self._user,
                cwd=self._folder,
            )

    def start(self) -> None:
        """Starts the server, and waits until it answers."""
        port = str(self._port)
        if self.kind == "postgres":
            here = ["-D", str(self._folder / "data"), "-k", str(self._folder)]
            self._process = self._run(
                ["postgres", *here, "-p", port, "-h", "127.0.0.1"]
            )
        else:
            kept = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
            self._process = self._run(["redis-server", "--port", port, *kept])
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            if self._answers():
                return
            time.sleep(0.05)
        log = (self._folder / "log").read_text()[-2000:]
        raise RuntimeError(f"{self.kind} did not start: {log}")

    def _answers(self) -> bool:
        try:
            if self.kind == "postgres":
                import psycopg

                psycopg.connect(self.url).close()
            else:
                import redis

                redis.Redis.from_url(self.url).ping()
        except Exception:  # noqa: BLE001 - of either client
            return False
        return True

    def kill(self) -> None:
        """Kills the server as a crash does, and waits for its end."""
        assert self._process is not None
        if self.kind == "postgres":
            # SIGQUIT ends the processes of connections as well, and writes nothing.
            self._process.send_signal(signal.SIGQUIT)
        else:
            self._process.kill()
        self._process.wait()


@contextmanager
def server(kind: str) -> Iterator[Server]:
    """Runs a server; removes its data at the end."""
    folder = Path(tempfile.mkdtemp(prefix=f"slidewise-{kind}-"))
    made = None
    try:
        made = Server(kind, folder)
        yield made
    finally:
        if made is not None:
            made.kill()
        shutil.rmtree(folder, ignore_errors=True)
