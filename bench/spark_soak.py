"""A long stream: the memory of its processes and the size of its state stay flat.

A file of rows arrives every few seconds. Event time passes a hundred times as fast, so
that windows of an hour fill and empty many times. Every half minute the resident memory
of the JVM and of each Python worker, the pages and bytes touched, and the size of the
checkpoint's state are printed. Ends with status 1 if a worker grew by more than 32 MiB
over the second half, or the numbers of answers and rows differ.

    python -m bench.spark_soak --minutes 30
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from bench.spark_stream import DAY, Source

import slidewise as sw
from slidewise.spark import Listener, rolling, session

MEBIBYTE = 1 << 20
EVERY = 3.0
SPEED = 100
ROWS, KEYS = 5_000, 500


def feed(source: Source, until: float) -> int:
    """Writes a file every few seconds; yields their number."""
    at, span = 0, int(EVERY * SPEED * 1_000_000)
    while time.monotonic() < until:
        times = DAY + at * span + source.random.integers(-span, span, ROWS)
        source.write(at, source.random.integers(0, KEYS, ROWS), times)
        at += 1
        time.sleep(EVERY)
    return at


def resident(pid: int) -> float:
    """In MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def below(pid: int) -> dict[int, str]:
    """The descendants of a process, with their command lines."""
    children: dict[int, list[int]] = {}
    names = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            name, _, fields = stat.partition("(")[2].rpartition(")")
            children.setdefault(int(fields.split()[1]), []).append(int(entry.name))
            names[int(entry.name)] = name
    found, rest = {}, list(children.get(pid, []))
    while rest:
        process = rest.pop()
        found[process] = names[process]
        rest += children.get(process, [])
    return found


def size(folder: Path) -> float:
    """Of all files, in MiB."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in files) / MEBIBYTE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args()
    config = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    config["spark.ui.showConsoleProgress"] = "false"
    spark = session("soak", master="local[2]", config=config)
    counts: dict[str, float] = {}

    def report(_: Any, batch: dict[str, float]) -> None:
        for name, count in batch.items():
            before = 0 if name == "state_bytes" else counts.get(name, 0)
            counts[name] = before + count

    spark.streams.addListener(Listener(report))
    with tempfile.TemporaryDirectory() as folder:
        source = Source(Path(folder) / "in")
        answers = rolling(
            source.stream(spark),
            on="ts",
            by="k",
            windows=["10m", "1h"],
            aggs={"n": sw.count(), "sum": sw.sum("v"), "max": sw.max("v")},
            late="5m",
            emit="arrival",
        )
        checkpoint = Path(folder) / "checkpoint"
        writer = answers.writeStream.format("noop").trigger(processingTime="3 seconds")
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        end = time.monotonic() + options.minutes * 60
        writing = threading.Thread(target=feed, args=(source, end), daemon=True)
        writing.start()
        half: dict[int, float] = {}
        grown = 0.0
        while time.monotonic() < end and query.isActive:
            time.sleep(30)
            processes = below(os.getpid())
            memory = {
                pid: resident(pid) for pid in processes if Path(f"/proc/{pid}").exists()
            }
            if not half and time.monotonic() > end - options.minutes * 30:
                half = memory
            workers = [pid for pid, name in processes.items() if "python" in name]
            grown = max(
                (memory[pid] - half[pid] for pid in workers if pid in half), default=0.0
            )
            print(
                f"{options.minutes * 60 - (end - time.monotonic()):6.0f} s",
                " ".join(
                    f"{processes[pid]}:{held:.0f}" for pid, held in memory.items()
                ),
                f"MiB, state {size(checkpoint / 'state'):.1f} MiB,",
                " ".join(f"{name} {count:.0f}" for name, count in counts.items()),
                flush=True,
            )
        writing.join()
        query.processAllAvailable()
        query.stop()
    spark.stop()
    lost = counts["rows"] - counts["late"] - counts["answers"]
    print(f"workers grew by {grown:.1f} MiB in the second half; {lost:.0f} rows lost")
    return int(grown > 32 or lost != 0)


if __name__ == "__main__":
    sys.exit(main())
