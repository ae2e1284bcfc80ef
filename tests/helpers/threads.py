"""Threads that share one window, for a number of minutes.

    python tests/helpers/threads.py --minutes 10 --threads 2,4,8 --parts window,keyed

Each round makes a window, runs threads on it with a switch interval of a microsecond,
and compares the final window with the calls that each thread recorded. A row that is
lost or counted twice, an answer that shows half a call, a broken invariant or an
undocumented error fails the round, whose seed is printed.
"""

import argparse
import itertools
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

import slidewise as sw

AGGS = {"n": sw.count(), "total": sw.sum(), "all": sw.collect()}
RANGES = [3, 50, 700]


@contextmanager
def short_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def retried(call: Callable[[], Any]) -> Any:
    """Repeats a call as long as another thread keeps the window busy."""
    while True:
        try:
            return call()
        except sw.WindowBusyError:
            time.sleep(0)


def together(works: list[Callable[[], None]]) -> None:
    """Runs all at once; raises the first exception of a thread."""
    barrier = threading.Barrier(len(works))
    raised: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            barrier.wait()
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised.append(error)

    workers = [threading.Thread(target=run, args=(work,)) for work in works]
    with short_switches():
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    if raised:
        raise raised[0]


# -- one Window ------------------------------------------------------------------------


def whole(window: sw.Window) -> None:
    """Every time has a value and its negative, inserted by one call."""
    answer = window.query()
    assert answer["n"] % 2 == 0, answer["n"]
    assert (answer["total"] or 0) == 0, answer["total"]
    assert len(answer["all"]) == answer["n"]


def window_round(threads: int, seconds: float, seed: int) -> int:
    """Threads insert, query, evict and copy; returns the number of calls."""
    draw = random.Random(seed)
    aggs = AGGS if seed % 2 else {**AGGS, "all": sw.last()}
    window = sw.Window(aggs, algorithm=draw.choice(["auto", "fiba", "recalculate"]))
    kept: list[set[int]] = [set() for _ in range(threads)]
    calls = [0] * threads
    deadline = time.monotonic() + seconds

    def seen(other: sw.Window) -> None:
        if seed % 2:
            whole(other)
        else:
            assert other.query()["n"] % 2 == 0

    def work(me: int) -> None:
        own, mine = random.Random(seed * 64 + me), kept[me]
        while time.monotonic() < deadline:
            calls[me] += 1
            kind = own.random()
            if kind < 0.5:
                base = own.randrange(4000) * threads + me
                times = [
                    base + step * threads * 4000 for step in range(own.randint(1, 3))
                ]
                times = [at for at in times if at not in mine]
                twice = [at for at in times for _ in range(2)]
                values = [value for at in times for value in (at + 1, -at - 1)]
                retried(
                    lambda twice=twice, values=values: window.insert_many(twice, values)
                )
                mine.update(times)
            elif kind < 0.75 and mine:
                at = own.choice(sorted(mine)[:50])
                assert retried(lambda at=at: window.evict(at)) is True
                mine.discard(at)
            elif kind < 0.9:
                seen(window)
            elif kind < 0.94:
                blob = retried(window.to_bytes)
                other = sw.Window.from_bytes(blob)
                other.check()
                seen(other)
            elif kind < 0.97:
                other = retried(window.copy)
                other.check()
                seen(other)
            else:
                assert retried(lambda: window.evict_until(-1)) == 0
                retried(window.check)

    together([lambda me=me: work(me) for me in range(threads)])
    window.check()
    times = [at for at, _ in window.items()]
    assert times == sorted(set().union(*kept)), "rows were lost or counted twice"
    assert window.query()["n"] == 2 * len(times)
    return sum(calls)


# -- one SharedWindow ------------------------------------------------------------------


def shared_round(threads: int, seconds: float, seed: int) -> int:
    """Threads append by one clock; a thread that is late takes a new time."""
    ranges = [sw.rows(count) for count in RANGES]
    window = sw.SharedWindow({"n": sw.count(), "total": sw.sum()}, ranges=ranges)
    clock = itertools.count()
    came: list[list[int]] = [[] for _ in range(threads)]
    deadline = time.monotonic() + seconds

    def work(me: int) -> None:
        own = random.Random(seed * 64 + me)
        while time.monotonic() < deadline:
            at = next(clock)
            try:
                retried(lambda at=at: window.insert(at, at))
            except sw.OutOfOrderError:
                continue
            came[me].append(at)
            if own.random() < 0.2:
                counts = [part["n"] for part in answers(window)]
                assert counts == sorted(counts)
                assert counts[0] >= min(RANGES[0], len(came[me]))
            if own.random() < 0.02:
                sw.SharedWindow.from_bytes(retried(window.to_bytes)).check()

    def answers(window: sw.SharedWindow) -> list[dict[str, Any]]:
        found = retried(window.query)
        return list(found.values()) if isinstance(found, dict) else list(found)

    together([lambda me=me: work(me) for me in range(threads)])
    window.check()
    times = sorted(itertools.chain(*came))
    for count, answer in zip(RANGES, answers(window), strict=True):
        last = times[-count:]
        assert answer == {"n": len(last), "total": sum(last)}, (count, answer)
    return len(times)


# -- one KeyedWindows ------------------------------------------------------------------

KEYED = {"n": sw.count(), "total": sw.sum("x"), "last": sw.last("x")}


def keyed_round(threads: int, seconds: float, seed: int) -> int:
    """Threads ingest their batches; one more thread advances and collects.

    No row is late: the watermark follows the slowest thread.
    """
    windows = sw.KeyedWindows(on="t", by="k", windows=[20, 300], aggs=KEYED)
    reached = [-1] * threads
    batches: list[list[pa.Table]] = [[] for _ in range(threads)]
    answers: list[pa.Table] = []
    deadline = time.monotonic() + seconds

    def ingest(me: int) -> None:
        own, at = random.Random(seed * 64 + me), 0
        while time.monotonic() < deadline:
            # Each time belongs to one thread, so that `last` does not depend on their
            # order.
            count = own.randint(1, 40)
            times = [(at + step) * threads + me for step in range(count)]
            at += count
            own.shuffle(times)
            keys = [f"key {own.randrange(30)}" for _ in times]
            batch = pa.table({"t": times, "k": keys, "x": [3 * t for t in times]})
            retried(lambda batch=batch: windows.ingest(batch))
            batches[me].append(batch)
            reached[me] = at * threads + me - threads
        reached[me] = 2**62

    def advance() -> None:
        while (until := min(reached)) < 2**62 and time.monotonic() < deadline:
            if until > 0:
                retried(lambda until=until: windows.advance(until))
                answers.append(retried(windows.collect))
            time.sleep(0)

    together([*(lambda me=me: ingest(me) for me in range(threads)), advance])
    rows = pa.concat_tables([batch for each in batches for batch in each])
    windows.advance(10**12)
    answers.append(windows.collect())
    order = [("t", "ascending")]
    got = pa.concat_tables(answers).sort_by(order)
    wanted = sw.rolling(rows, on="t", by="k", windows=[20, 300], aggs=KEYED).sort_by(
        order
    )
    assert len(got) == len(rows), f"{len(rows)} rows went in, {len(got)} came out"
    for name in wanted.column_names:
        assert got[name].to_pylist() == wanted[name].to_pylist(), name
    return len(rows)


PARTS = {"window": window_round, "shared": shared_round, "keyed": keyed_round}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="the total time")
    parser.add_argument(
        "--threads", default="2,4,8", help="numbers of threads, one after the other"
    )
    parser.add_argument(
        "--parts", default=",".join(PARTS), help="the kinds of windows to share"
    )
    parser.add_argument("--seed", type=int, default=time.time_ns() // 10**9)
    given = parser.parse_args()
    counts = [int(count) for count in given.threads.split(",")]
    parts = given.parts.split(",")
    end = time.monotonic() + 60 * given.minutes
    for seed in itertools.count(given.seed):
        for part, threads in itertools.product(parts, counts):
            if time.monotonic() >= end:
                return
            try:
                done = PARTS[part](threads, 2.0, seed)
            except BaseException:
                print(f"failed: --parts {part} --threads {threads} --seed {seed}")
                raise
            print(f"{part}, {threads} threads, seed {seed}: {done:,} done", flush=True)


if __name__ == "__main__":
    main()
