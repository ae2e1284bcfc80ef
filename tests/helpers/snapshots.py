"""Snapshots for tests: a corpus of windows, and blobs that are forged or damaged."""

import contextlib
import math
import os
import struct
import zlib
from datetime import date, datetime
from zoneinfo import ZoneInfo

import slidewise as sw

MIN, MAX = -(2**63), 2**63 - 1
FIXED = 24  # magic, version, kind, length of the header, length of the payload


def parts(blob):
    """Header and payload."""
    length = struct.unpack_from("<I", blob, 12)[0]
    return blob[FIXED : FIXED + length], blob[FIXED + length : -4]


def forged(header, payload, *, version=1, kind=1, magic=b"SLWISE\0\0"):
    """A blob with the right checksum."""
    start = magic + struct.pack("<HHIQ", version, kind, len(header), len(payload))
    blob = start + header + payload
    return blob + struct.pack("<I", zlib.crc32(blob))


def resealed(blob):
    """The same with the right checksum."""
    return blob[:-4] + struct.pack("<I", zlib.crc32(blob[:-4]))


def filled(agg, pairs, **options):
    window = sw.Window(agg, **options)
    for time, value in pairs:
        window.insert(time, value)
    return window


SEVERAL = {"s": sw.sum("x"), "m": sw.mean("y"), "top": sw.arg_max("x", by="y")}
MANY = {f"a{i}": sw.variance(f"c{i % 3}", ddof=i) for i in range(6)}
MIXED = {"all": sw.collect("who"), "n": sw.count("who"), "s": sw.sum("x")}
THINGS = [
    "é",
    b"b",
    2**80,
    None,
    (1, [2.5, {"k": None}]),
    True,
    7,
    -(2**70),
    date(2024, 1, 1),
]


def late(count):
    return [(count - i if i % 7 == 3 else i, i) for i in range(count)]


CORPUS = {
    "empty": lambda: sw.Window(sw.sum()),
    "one int": lambda: filled(sw.sum(), [(1, 1)]),
    "ints": lambda: filled(sw.sum(), late(9)),
    "floats": lambda: filled(sw.mean(), [(t, v / 7) for t, v in late(9)]),
    "extremes": lambda: filled(sw.max(), [(MIN, MIN), (0, 0), (MAX, MAX)]),
    "nan": lambda: filled(sw.sum(), [(1, math.nan), (2, math.inf), (3, -0.0)]),
    "nulls": lambda: filled(sw.sum(), [(1, None), (2, 5), (3, None)]),
    "only nulls": lambda: filled(
        {"n": sw.count(), "s": sw.sum()}, [(1, None), (1, None)]
    ),
    "open column": lambda: filled(SEVERAL, [(1, {"x": 1, "y": None}), (2, None)]),
    "ties": lambda: filled(sw.last(), [(1, 1), (1, 2), (2, 3), (1, 4)], ties="keep"),
    "combined": lambda: filled(sw.min_count(), [(1, 1), (1, 1), (2, 3), (1, 1)]),
    "count": lambda: filled(sw.count(), [(1, None), (2, "x")]),
    "columns": lambda: filled(SEVERAL, [(t, {"x": t, "y": t / 3}) for t in range(5)]),
    "wide": lambda: filled(
        MANY, [(t, {"c0": t, "c1": t / 3, "c2": None}) for t in range(3)]
    ),
    "objects": lambda: filled(sw.collect(), enumerate(THINGS)),
    "mixed": lambda: filled(
        MIXED, [(1, {"who": "ann", "x": 1}), (2, {"who": None, "x": 2})]
    ),
    "naive": lambda: filled(sw.max(), [(1, 5), (0, 7)], algorithm="recalculate"),
    "datetime": lambda: filled(
        sw.sum(), [(datetime(2024, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo")), 1)], last="1h"
    ),
    "options": lambda: filled(
        sw.sum(),
        [(15, 1.5), (7, 2)],
        last=100,
        granularity=5,
        nan="skip",
        prefer="latency",
    ),
    "rows": lambda: filled(sw.sum(), late(9), last=sw.rows(4), dtype="float64"),
}
# Windows of several leaves and levels, for tests that do not flip every bit.
LARGE = {
    "tree": lambda: filled(sw.sum(), late(300)),
    "float tree": lambda: filled(sw.sum(), [(t, v / 7) for t, v in late(300)]),
    "record tree": lambda: filled(sw.stddev(), [(t, v / 7) for t, v in late(300)]),
    "object tree": lambda: filled(sw.collect(), [(t, str(v)) for t, v in late(200)]),
    "holes": lambda: holes(),
}


def holes():
    w = filled(sw.collect(), [(t, str(v)) for t, v in late(200)])
    for time in range(0, 200, 3):
        w.evict(time)
    w.insert_many(range(50), [None] * 50)
    return w


def refused(blob):
    """Whether a blob is refused; otherwise it must be a valid window."""
    try:
        window = sw.Window.from_bytes(blob)
    except sw.SnapshotError:
        return True
    window.check()
    repr(window)
    with contextlib.suppress(sw.ResultOverflowError):  # a forged sum may be anything
        window.items()
    return False


# `make test-release` sets it.
EVERYWHERE = os.environ.get("SLIDEWISE_DAMAGE") == "all"
