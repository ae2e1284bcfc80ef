"""Damaged snapshots are refused with little memory, for any lengths in them."""

import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from snapshots import CORPUS, EVERYWHERE, filled, forged, parts, refused

import slidewise as sw


def peak_rss():
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def reset_peak():
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def claiming(window, places):
    """Blobs in which eight bytes are replaced by a large length."""
    header, payload = parts(window.to_bytes())
    for at in [*range(16), *range(16, len(payload) - 8, len(payload) // places + 1)]:
        for value in (2**31, 2**40, len(payload), 2**64 - 1):
            changed = bytearray(payload)
            struct.pack_into("<Q", changed, at, value)
            yield forged(header, bytes(changed[: at + 8 + len(payload) // 2]))


def refused_within(blob, most):
    """Whether a blob is refused; checks the growth of resident memory at the peak.

    The least of three counts: the allocator's own reserves come and go.
    """
    growths = []
    while len(growths) < 3:
        reset_peak()
        before = peak_rss()
        if not refused(blob):
            return False
        growths.append(peak_rss() - before)
        if growths[-1] <= most:
            return True
    raise AssertionError(f"{growths} bytes more, not {most}")


@pytest.mark.long
@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc"
)
def test_damage_allocates_little():
    """Memory grows by at most twice the blob and 1 MiB, for any lengths in them."""
    ints = sw.Window(sw.sum())
    ints.insert_many(np.arange(60_000), np.arange(60_000))
    deviations = sw.Window(sw.stddev())
    deviations.insert_many(np.arange(20_000), np.arange(20_000))
    strings = filled(sw.collect(), [(t, "x" * 20) for t in range(5_000)])
    measured = 0
    for window in (ints, deviations, strings, CORPUS["objects"](), CORPUS["columns"]()):
        for blob in claiming(window, 40 if EVERYWHERE else 10):
            measured += refused_within(blob, 2 * len(blob) + (1 << 20))
        for blob in claiming(window, 4):
            tracemalloc.start()
            was_refused = refused(blob)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert not was_refused or peak <= 2 * len(blob) + (1 << 20)
    assert measured > (500 if EVERYWHERE else 250)


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc"
)
@pytest.mark.parametrize("algorithm", [card.name for card in sw.algorithms()])
def test_damage_allocates_little_whatever_the_algorithm(algorithm):
    """Memory grows by at most eight times the blob and 1 MiB, as in SECURITY.md."""
    try:
        window = sw.Window(sw.stddev(), algorithm=algorithm, dtype="int64")
    except sw.SpecError as error:
        pytest.skip(str(error))
    window.insert_many(np.arange(10_000), np.arange(10_000))
    blob = window.to_bytes()
    for damaged in [blob[:-1], *claiming(window, 3)]:
        refused_within(damaged, 8 * len(damaged) + (1 << 20))
