"""Snapshots: a restored window equals the saved one, and damage is always detected."""

import json
import pickle
import random
import struct
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from seeds import SEED
from snapshots import (
    CORPUS,
    EVERYWHERE,
    LARGE,
    MIN,
    filled,
    forged,
    late,
    parts,
    refused,
    resealed,
)

import slidewise as sw


@pytest.mark.parametrize("name", CORPUS | LARGE)
def test_round_trip(name):
    w = (CORPUS | LARGE)[name]()
    blob = w.to_bytes()
    for other in (
        sw.Window.from_bytes(blob),
        sw.Window.from_bytes(bytearray(blob)),
        sw.Window.from_bytes(memoryview(blob)),
        pickle.loads(pickle.dumps(w)),
    ):
        # First, because answers and checks may run deferred work.
        assert other.to_bytes() == blob
        other.check()
        copied = w.copy()
        assert repr(other) == repr(copied)
        assert repr(other.items()) == repr(copied.items())
        assert other._describe() == w._describe()
        assert other.explain() == w.explain()


@pytest.mark.parametrize("agg", [sw.sum(), sw.mean(), sw.stddev(), sw.geometric_mean()])
@pytest.mark.parametrize("ties", ["combine", "keep"])
@pytest.mark.parametrize("seed", range(6))
def test_restoring_is_invisible(agg, ties, seed):
    """Later answers equal those without a restore, bit for bit."""
    rng = random.Random(f"{agg} {ties} {seed}")
    w = sw.Window(agg, ties=ties)
    others = []

    def do(window, script):
        answers = []
        for action, *arguments in script:
            if action == "evict" and not len(window):
                continue
            answers.append(getattr(window, action)(*arguments))
            answers.append(window.query())
        return repr(answers)

    for _ in range(12):
        script = []
        for _ in range(40):
            time, value = rng.randrange(400), rng.uniform(1e-9, 1e9)
            bulk = [rng.randrange(400) for _ in range(rng.randrange(40))]
            script.append(
                rng.choice(
                    [
                        ("insert", time, value),
                        ("insert", time, value),
                        (
                            "insert_many",
                            bulk,
                            [value / (n + 1) for n in range(len(bulk))],
                        ),
                        ("evict",),
                        ("evict", time),
                        ("evict_until", rng.randrange(60)),
                        ("query", *sorted((time, rng.randrange(400)))),
                    ]
                )
            )
        others.append(sw.Window.from_bytes(w.to_bytes()))
        expected = do(w, script)
        for other in others:
            assert do(other, script) == expected


def test_in_another_process():
    w = filled(sw.stddev(), [(t, v / 7) for t, v in late(100)])
    program = (
        "import sys, slidewise as sw\n"
        "w = sw.Window.from_bytes(sys.stdin.buffer.read())\n"
        "w.insert(50, 0.1)\n"
        "print(w.query().hex())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=w.to_bytes(),
        capture_output=True,
        check=True,
    )
    w.insert(50, 0.1)
    assert done.stdout.decode().strip() == w.query().hex()


@pytest.mark.parametrize(
    "time",
    [
        date(2024, 2, 29),
        datetime(2024, 2, 29, 12, 30, 1, 5),
        datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(1900, 1, 1, tzinfo=timezone(timedelta(hours=-3, microseconds=1))),
        datetime(9999, 12, 31, 23, 59, 59, 999_999),
    ],
)
def test_datetimes_among_collected_values(time):
    w = filled(sw.collect(), [(1, time), (2, [time])])
    (first, second) = sw.Window.from_bytes(w.to_bytes()).query()
    assert (first, second) == (time, [time])
    assert getattr(first, "fold", 0) == getattr(time, "fold", 0)
    assert getattr(first, "tzinfo", 0) == getattr(time, "tzinfo", 0)


class Own:
    pass


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Own(), "a collected .*Own has no form in bytes; None, bool, int"),
        (np.float64(1.5), r"a collected numpy.float64 has no form"),
        ([{1}], "a collected set has no form"),
        ("\ud800", "a collected str with a lone surrogate"),
        (datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Rome")).astimezone(), None),
    ],
)
def test_what_has_no_form_in_bytes(value, message):
    w = filled(sw.collect(), [(1, value)])
    if message is None:
        w.to_bytes()
        return
    for use in (w.to_bytes, lambda: pickle.dumps(w)):
        with pytest.raises(sw.SnapshotError, match=message):
            use()
    assert w.query() == [value]
    w.evict()
    w.to_bytes()  # only present values count


def test_deep_and_cyclic_values_are_refused():
    deep = []
    for _ in range(62):
        deep = [deep]
    assert sw.Window.from_bytes(
        filled(sw.collect(), [(1, deep)]).to_bytes()
    ).query() == [deep]
    for _ in range(3):
        deep = [deep]
    cycle = []
    cycle.append(cycle)
    for value in (deep, cycle, {"k": cycle}):
        with pytest.raises(sw.SnapshotError, match="nested more than 64 deep"):
            filled(sw.collect(), [(1, value)]).to_bytes()
    cycle.clear()


def test_zones_without_a_name():
    class Odd(timezone.__base__):
        def utcoffset(self, time):
            return timedelta(hours=1)

        def dst(self, time):
            return timedelta(0)

    time = datetime(2024, 1, 1, tzinfo=Odd())
    with pytest.raises(sw.SnapshotError, match="has no name to write"):
        filled(sw.sum(), [(time, 1)]).to_bytes()
    with pytest.raises(sw.SnapshotError, match="has no name"):
        filled(sw.collect(), [(1, time)]).to_bytes()


def test_too_many_aggregations_for_a_header():
    w = sw.Window(
        {f"name number {i}": sw.sum(f"column number {i}") for i in range(1000)}
    )
    with pytest.raises(sw.SnapshotError, match="1000 aggregations is too large"):
        w.to_bytes()


# -- damage ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        (b"", "not a slidewise snapshot"),
        (b"SLWISE\0\0", "not a slidewise snapshot"),
        (pickle.dumps([1, 2, 3] * 50), "not a slidewise snapshot"),
        (
            forged(b"{}", b"", version=2),
            "format version 2, this slidewise reads version 1",
        ),
        (forged(b"{}", b"", kind=7), "of kind 7, kind 1 expected"),
        (forged(b"{}", b""), "the header of the snapshot is damaged"),
        (forged(b"", b""), "the header of the snapshot is damaged"),
        (forged(b"[" * 30_000, b""), "the header of the snapshot is damaged"),
        (forged(b"[" * 40_000, b""), "a header of 40000 bytes is too long"),
        (forged(b"\xff\xfe", b""), "the header of the snapshot is damaged"),
        (7, "from_bytes takes bytes, got int"),
        ("text", "from_bytes takes bytes, got str"),
    ],
)
def test_what_is_no_snapshot(blob, message):
    with pytest.raises(sw.SnapshotError, match=message):
        sw.Window.from_bytes(blob)


def test_every_truncation_and_bit_flip():
    damaged = 0
    for make in CORPUS.values():
        blob = make().to_bytes()
        for length in range(len(blob)):
            assert refused(blob[:length])
        assert refused(blob + b"\0")
        for at in range(len(blob)):
            for bit in range(8):
                flipped = bytearray(blob)
                flipped[at] ^= 1 << bit
                assert refused(bytes(flipped)), (at, bit)
        damaged += 9 * len(blob) + 1
    for make in LARGE.values():
        blob = make().to_bytes()
        for at in range(0, len(blob), 2):
            assert refused(blob[:at])
            flipped = bytearray(blob)
            flipped[at] ^= 1 << (at % 8)
            assert refused(bytes(flipped))
            damaged += 2
    assert damaged >= 100_000


def some(places):
    """An eighth of the positions, others each day; or all of them."""
    return places if EVERYWHERE else places[random.Random(SEED).randrange(8) :: 8]


@pytest.mark.long
def test_every_bit_flip_with_a_checksum_that_fits():
    """Damage under a right checksum must be refused, or give a valid window."""
    forgeries = taken = 0
    for make in CORPUS.values():
        blob = make().to_bytes()
        for at in some(range(8, len(blob) - 4)):
            for bit in range(8):
                flipped = bytearray(blob)
                flipped[at] ^= 1 << bit
                taken += not refused(resealed(bytes(flipped)))
                forgeries += 1
    for make in LARGE.values():
        blob = make().to_bytes()
        for at in some(range(8, len(blob) - 4, 5)):
            flipped = bytearray(blob)
            flipped[at] ^= 1 << (at % 8)
            taken += not refused(resealed(bytes(flipped)))
            forgeries += 1
    assert forgeries >= (50_000 if EVERYWHERE else 6_000)
    assert taken < forgeries / 2


EXTREMES = [
    0,
    1,
    255,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
]
EXTREMES += [2**64 - 1, 2**64 - 2, 2**61, 2**61 - 1]


@pytest.mark.long
def test_lengths_at_extremes():
    """Any eight bytes could be a length: they become one, with the right checksum."""
    for make in [*CORPUS.values(), *LARGE.values()]:
        header, payload = parts(make().to_bytes())
        step = 1 if len(payload) < 500 else 41
        for at in some(range(0, len(payload) - 7, step)):
            for value in EXTREMES:
                changed = bytearray(payload)
                struct.pack_into("<Q", changed, at, value)
                refused(forged(header, bytes(changed)))


def test_lengths_of_the_envelope():
    header, payload = parts(CORPUS["ints"]().to_bytes())
    blob = forged(header, payload)
    for value in EXTREMES:
        changed = bytearray(blob)
        struct.pack_into("<Q", changed, 16, value)
        assert refused(resealed(bytes(changed)))
        struct.pack_into("<I", changed, 12, value % 2**32)
        assert refused(resealed(bytes(changed)))


def headers():
    """Every header with one of its fields replaced."""
    odd = [
        None,
        0,
        -1,
        True,
        1.5,
        "",
        "x",
        [],
        {},
        [None],
        [[]],
        "sum",
        10**30,
        "é" * 100,
    ]
    for make in CORPUS.values():
        header, payload = parts(make().to_bytes())
        fields = json.loads(header)
        for key in fields:
            for value in odd:
                yield {**fields, key: value}, payload
        for key in fields:
            yield (
                {name: value for name, value in fields.items() if name != key},
                payload,
            )
        for at, agg in enumerate(fields["aggs"]):
            for place in range(len(agg)):
                for value in [*odd, "collect", "count", "arg_max", "variance"]:
                    aggs = json.loads(json.dumps(fields["aggs"]))
                    aggs[at][place] = value
                    yield {**fields, "aggs": aggs}, payload


def test_headers_with_other_fields():
    made = 0
    for fields, payload in headers():
        text = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
        refused(forged(text, payload))
        made += 1
    assert made > 5_000


def test_a_header_is_canonical():
    header, payload = parts(CORPUS["ints"]().to_bytes())
    spaced = json.dumps(json.loads(header), sort_keys=True).encode()
    with pytest.raises(sw.SnapshotError, match="not in canonical form"):
        sw.Window.from_bytes(forged(spaced, payload))


def test_headers_and_payloads_that_do_not_belong_together():
    blobs = [parts(make().to_bytes()) for make in [*CORPUS.values(), *LARGE.values()]]
    for header, _ in blobs:
        for _, payload in blobs:
            refused(forged(header, payload))


def test_times_that_their_kind_cannot_tell():
    for time in (
        datetime(2024, 1, 1),
        date(2024, 1, 1),
        np.datetime64("2024-01-01", "ns"),
    ):
        w = filled(sw.sum(), [(time, 1)])
        header, payload = parts(w.to_bytes())
        clock = w._describe()[2]
        ticks = struct.pack("<q", clock.ticks(time))
        forgery = forged(header, payload.replace(ticks, struct.pack("<q", MIN)))
        with pytest.raises(
            sw.SnapshotError, match="since 1970 is a time out of the range of"
        ):
            sw.Window.from_bytes(forgery)


def test_nothing_in_a_snapshot_is_run():
    """Names in a blob are data: no import, no evaluation."""
    header, payload = parts(CORPUS["datetime"]().to_bytes())
    before = set(sys.modules)
    for zone in (
        "antigravity",
        "this",
        "os/path",
        "../../etc/passwd",
        "/etc/passwd",
        "a" * 99,
    ):
        text = header.replace(b"Asia/Tokyo", zone.encode())
        with pytest.raises(sw.SnapshotError):
            sw.Window.from_bytes(forged(text, payload))
    new = {name for name in set(sys.modules) - before if not name.startswith("tzdata")}
    assert not new & {"antigravity", "this"}
