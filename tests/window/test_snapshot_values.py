"""Values of every type in snapshots, and snapshots whose values are damaged."""

import pickle
import struct
import zlib
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pandas as pd
import pytest

import slidewise as sw
from slidewise.window.scalar_codec import read_form


@pytest.mark.parametrize(
    "algorithm", ["btree", "fiba_published", "flat_fat", "reactive"]
)
def test_damaged_lengths_of_top_k(algorithm):
    window = sw.Window(sw.top_k(k=2), algorithm=algorithm, ties="keep")
    window.insert_many([1, 2, 3], [1.0, 2.0, 3.0])
    blob = window.to_bytes()
    (header,) = struct.unpack_from("<I", blob, 12)
    for at in range(24 + header, len(blob) - 12):
        damaged = bytearray(blob)
        struct.pack_into("<Q", damaged, at, 2**61)
        damaged[-4:] = struct.pack("<I", zlib.crc32(bytes(damaged[:-4])))
        try:
            sw.Window.from_bytes(bytes(damaged)).query()
        except sw.SnapshotError:
            continue  # a panic would be another exception, which pytest reports


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1.50"), Decimal("-2E+7"), Decimal("0.1")],
        [timedelta(days=-1, microseconds=5), timedelta(hours=3)],
        [Fraction(-1, 3), Fraction(10**40, 7)],
        [("a", Decimal(1)), ("b", Decimal(2))],
    ],
)
def test_objects_of_the_standard_library_go_into_snapshots(values):
    aggs = {"all": sw.collect("x"), "top": sw.max("x"), "kinds": sw.count_distinct("x")}
    window = sw.Window(aggs, dtype="object")
    window.insert_many(range(len(values)), [{"x": value} for value in values])
    for again in (
        sw.Window.from_bytes(window.to_bytes()),
        pickle.loads(pickle.dumps(window)),
    ):
        assert again.query() == window.query()
        assert again.query()["all"] == values
        assert again.to_bytes() == window.to_bytes()


def test_values_without_a_codec_name_an_alternative():
    window = sw.Window(sw.max())
    window.insert(1, pd.Timestamp("2024"))
    with pytest.raises(sw.SnapshotError, match="convert the values"):
        window.to_bytes()


@pytest.mark.parametrize(
    "text", ["d1 2", "d9999999999 0 0", "nspam", "q1/0", "q1", "x"]
)
def test_damaged_records_of_values(text):
    with pytest.raises(sw.SnapshotError):
        read_form(text)


def test_a_partial_without_bytes_is_refused_with_both_ways_out() -> None:
    made = sw.aggregation(
        lift=lambda value: [value], combine=lambda a, b: a + b, identity=[]
    )
    window = sw.Window(made)
    window.insert_many([1, 2], [1, 2])
    with pytest.raises(sw.SnapshotError, match=r"name='module:name'"):
        sw.Window.from_bytes(window.to_bytes())
