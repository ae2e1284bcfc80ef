"""A Kafka broker for tests, on loopback, from the files that `make kafka` fetches."""

import faulthandler
import os
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slidewise.spark.jre import java

KAFKA = Path(__file__).resolve().parents[2] / ".kafka"
_START_SECONDS = 60
# A broker that is out of memory must exit, as its clients would retry forever.
_JVM_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m"]
_JVM_OPTIONS += ["-XX:+ExitOnOutOfMemoryError"]
# Seconds that a test with a broker may take: clients wait for a broker that has exited.
_TIME_LIMIT = 300


def connector() -> str:
    """Returns the jars of Spark's Kafka connector, for `spark.jars`; may be empty."""
    return ",".join(str(jar) for jar in sorted(KAFKA.glob("connector/*.jar")))


def reason() -> str | None:
    """Returns the reason why no broker can run; None if one can."""
    if list(KAFKA.glob("broker/kafka_2.13-*.jar")) and connector():
        return None
    missing = KAFKA / "missing"
    if missing.exists():
        return f"Kafka could not be fetched: {missing.read_text().strip()}"
    return "`make kafka` has not fetched Kafka"


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Runs a broker; yields its address."""
    folder.mkdir()
    ours, controllers = _free_ports()
    address = f"127.0.0.1:{ours}"
    settings = folder / "server.properties"
    settings.write_text(
        "process.roles=broker,controller\n"
        "node.id=1\n"
        f"listeners=PLAINTEXT://{address},CONTROLLER://127.0.0.1:{controllers}\n"
        f"advertised.listeners=PLAINTEXT://{address}\n"
        "controller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controllers}\n"
        f"log.dirs={folder / 'logs'}\n"
        "num.partitions=2\n"
        "offsets.topic.replication.factor=1\n"
        "offsets.topic.num.partitions=1\n"
        "group.initial.rebalance.delay.ms=0\n"
        # The cleaner would take half of the memory; no topic is compacted.
        "log.cleaner.enable=false\n",
        encoding="utf-8",
    )
    program = [java(), *_JVM_OPTIONS, "-cp", str(KAFKA / "broker" / "*")]
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    made = ["kafka.tools.StorageTool", "format", "--standalone", f"-t={cluster}"]
    subprocess.run(
        [*program, *made, "-c", str(settings)], capture_output=True, check=True
    )
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(
            [*program, "kafka.Kafka", str(settings)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LOG_DIR": str(folder)},
        )
    try:
        _wait(ours, running, folder / "log")
        with _limited(folder / "log"):
            yield address
    finally:
        running.kill()
        running.wait()


@contextmanager
def _limited(log: Path) -> Iterator[None]:
    """Fails after the time limit, with stack traces and the broker's log."""

    def late(_number: int, _frame: object) -> None:
        faulthandler.dump_traceback(all_threads=True)
        raise TimeoutError(f"no end after {_TIME_LIMIT} s; {log.read_text()[-2000:]}")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(_TIME_LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _wait(port: int, running: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and running.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"the broker did not start: {log.read_text()[-2000:]}")
