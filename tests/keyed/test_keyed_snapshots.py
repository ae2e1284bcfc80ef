"""Snapshots, changes and copies of `KeyedWindows`, whole and damaged."""

import json
import random
import struct
import zlib
from copy import copy

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.keyed.processor import Processor


def rows(times, keys="a", values=1.0):
    """A batch with one key and one value throughout, or those given."""
    keys = [keys] * len(times) if isinstance(keys, str) else keys
    values = values if isinstance(values, list) else [values] * len(times)
    return pa.table({"t": times, "k": keys, "x": values})


SUMS = {"on": "t", "by": "k", "windows": 5, "aggs": {"s": sw.sum("x")}}


def snapshots():
    """Specs and their snapshots: kept rows, waiting rows, ends of windows, slots."""
    hops = {"on": "t", "by": "k", "window": 9, "every": 5, "empty": True}
    for request, count, options in [
        (SUMS, 50, {"late": 2}),
        ({**SUMS, "aggs": {"c": sw.collect("x")}}, 50, {"emit": "update", "late": 2}),
        ({**hops, "aggs": {"n": sw.count()}}, 50, {}),
        ({**SUMS, "windows": 1000}, 9000, {"emit": "arrival"}),
    ]:
        keyed = sw.KeyedWindows(**request, **options)
        keyed.ingest(rows(list(range(count)), [str(at % 999) for at in range(count)]))
        keyed.advance(count // 2)
        keyed.collect()
        yield request, keyed.to_bytes()


@pytest.mark.long
def test_damage_that_the_checksum_does_not_show():
    chance, refused, known = random.Random(5), 0, list(snapshots())
    for _ in range(1200):
        request, blob = chance.choice(known)
        (length,) = struct.unpack_from("<Q", blob, 12)
        head = json.loads(blob[20 : 20 + length])
        damaged = bytearray(blob)
        for _ in range(chance.choice([1, 2])):
            end = chance.choice([len(blob), 20 + length + head["directory"]])
            damaged[chance.randrange(12, end)] ^= 1 << chance.randrange(8)
        damaged[8:12] = struct.pack("<I", zlib.crc32(bytes(damaged[12:])))
        try:
            keyed = sw.KeyedWindows.from_bytes(bytes(damaged), **request)
            keyed.check()
            keyed.ingest(rows([9060]))
            keyed.advance()
        except sw.SnapshotError:
            refused += 1
        except sw.SpecError:  # the columns have other names or types now
            continue
    assert refused > 1000


def test_changes_apply_in_order_only():
    keyed, blobs = sw.KeyedWindows(**SUMS, emit="update"), []
    for at in range(4):
        keyed.ingest(rows([at]))
        keyed.collect()
        blobs.append(keyed.changes() if at != 1 else keyed.to_bytes())
    first, whole, *changes = blobs

    def restored(blob, *changes):
        found = sw.KeyedWindows.from_bytes(memoryview(blob), changes=changes, **SUMS)
        return found.keys()["t"].to_pylist()

    assert restored(first) == [0]
    assert restored(whole, *changes) == restored(first, whole, *changes) == [3]
    # A whole snapshot between two is a read.
    assert restored(first, *changes) == [3]
    with pytest.raises(sw.SnapshotError, match=r"changes\[0\] does not follow"):
        restored(whole, *reversed(changes))
    with pytest.raises(sw.SnapshotError, match=r"changes\[1\] does not follow"):
        restored(whole, changes[0], changes[0])
    with pytest.raises(sw.SnapshotError, match="does not follow"):
        restored(first, changes[1])
    with pytest.raises(sw.SnapshotError, match="pass the bytes of to_bytes"):
        restored(changes[0])
    # The restored windows go on with the chain.
    other = sw.KeyedWindows.from_bytes(whole, changes=changes, **SUMS)
    other.ingest(rows([4]))
    other.collect()
    assert restored(whole, *changes, other.changes()) == [4]


@pytest.mark.long
def test_changes_omit_pages_that_were_added_and_removed():
    """Each of many batches makes a page, which is soon merged into another page."""
    keyed = sw.KeyedWindows(**SUMS, emit="update")
    for at in range(500):
        keyed.ingest(rows([at]))
        keyed.collect()
    first = keyed.changes()
    for at in range(500, 1000):
        keyed.ingest(rows([at]))
        keyed.collect()
    changes = keyed.changes()
    for blob in (first, changes):
        (length,) = struct.unpack_from("<Q", blob, 12)
        assert len(json.loads(blob[20 : 20 + length])["pages"]) < 30
    again = sw.KeyedWindows.from_bytes(first, changes=[changes], **SUMS)
    assert again.to_bytes() == keyed.to_bytes()


def test_bytes_of_other_objects_name_their_reader():
    shared = sw.SharedWindow(sw.sum(), ranges=[3]).to_bytes()
    window = sw.Window(sw.sum()).to_bytes()
    keyed = sw.KeyedWindows(**SUMS)
    keyed.ingest(rows([1]))
    blob = keyed.to_bytes()
    for read, given, names in [
        (sw.Window.from_bytes, shared, "SharedWindow.from_bytes"),
        (sw.SharedWindow.from_bytes, window, r"\bWindow.from_bytes"),
        (sw.Window.from_bytes, blob, "KeyedWindows.from_bytes"),
        (sw.SharedWindow.from_bytes, blob, "KeyedWindows.from_bytes"),
    ]:
        with pytest.raises(sw.SnapshotError, match=names):
            read(given)
    with pytest.raises(sw.SnapshotError, match=r"\bWindow.from_bytes"):
        sw.KeyedWindows.from_bytes(window, **SUMS)
    with pytest.raises(sw.SnapshotError, match=r"^blob takes bytes, got str"):
        sw.KeyedWindows.from_bytes("abc", **SUMS)
    with pytest.raises(sw.SnapshotError, match=r"^changes\[0\] takes bytes, got int"):
        sw.KeyedWindows.from_bytes(blob, changes=[3], **SUMS)
    with pytest.raises(sw.SnapshotError, match=r"^changes= takes a list .*; got 3$"):
        sw.KeyedWindows.from_bytes(blob, changes=3, **SUMS)
    with pytest.raises(sw.SnapshotError, match=r"^changes takes bytes, got int"):
        keyed.apply(3)


@pytest.mark.parametrize("name", ["emit", "late", "late_rows", "keep", "then_by"])
def test_arguments_that_a_snapshot_holds_are_refused(name):
    keyed = sw.KeyedWindows(**SUMS, late=2)
    keyed.ingest(rows([1]))
    for spec in ({"spec": sw.Spec(**SUMS)}, SUMS):
        with pytest.raises(sw.SpecError, match=rf"^{name}= is in the snapshot"):
            sw.KeyedWindows.from_bytes(keyed.to_bytes(), **spec, **{name: "x"})


def test_pages_out_of_range_are_named():
    keyed = sw.KeyedWindows(on="t", window=5, aggs={"n": sw.count()})
    keyed.ingest(rows([1]))
    directory = keyed._state.processor.commit()
    for change, message in [
        ({"page": 0}, "page 0 is beyond the last one, -1"),
        ({"last": [(0, 1)]}, "page 0 is used twice"),
    ]:
        with pytest.raises(sw.SnapshotError, match=message):
            Processor(
                keyed._state.query, keyed._state.store, directory | change, trusts=False
            )


def test_a_restored_state_has_its_rows_once():
    keyed = sw.KeyedWindows(**{**SUMS, "windows": 10**6}, emit="update")
    keyed.ingest(rows([*range(50_000)], [str(at % 99) for at in range(50_000)]))
    keyed.collect()
    blob = keyed.to_bytes()
    again = sw.KeyedWindows.from_bytes(blob, **{**SUMS, "windows": 10**6})
    assert again.nbytes < 1.2 * keyed.nbytes
    assert again.to_bytes() == blob


def test_snapshots_of_another_format_are_refused():
    keyed = sw.KeyedWindows(**SUMS)
    keyed.ingest(rows([1]))
    blob = keyed.to_bytes()
    for number in (0, 2, 9):
        other = blob[:4] + bytes([number]) + blob[5:]
        with pytest.raises(
            sw.SnapshotError, match=rf"in format {number}, .* format 1:"
        ):
            sw.KeyedWindows.from_bytes(other, **SUMS)


def test_a_copy_is_independent():
    keyed = sw.KeyedWindows(**SUMS)
    keyed.ingest(rows([1]))
    other = copy(keyed)
    other.ingest(rows([2], values=100.0))
    for one, expected in ((keyed, [1.0]), (other, [1.0, 101.0])):
        one.advance(9)
        assert one.collect()["s_5"].to_pylist() == expected
