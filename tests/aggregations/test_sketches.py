"""Sketches: on every algorithm and surface, within the errors that they state."""

import math
import pickle
import random
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw
import slidewise._core as _core
from slidewise.aggregations.records import RECORDS, kinds

# These need a law that no sketch obeys.
LAWFUL = [
    card.name
    for card in sw.algorithms()
    if card.name not in ("subtract_on_evict", "slick_deque")
]
SMALL = {
    "bloom": sw.bloom(capacity=40, error_rate=0.05),
    "approx_count_distinct": sw.approx_count_distinct(error=0.2),
    "approx_quantile": sw.approx_quantile([0.0, 0.5, 1.0], error=0.1),
    "count_min": sw.count_min(error=0.1, confidence=0.9),
    "heavy_hitters": sw.heavy_hitters(5, counters=20),
}


def test_every_sketch_is_tested():
    assert SMALL.keys() == {
        kind for kind in kinds(every=True) if RECORDS[kind].group == "sketch"
    }


def same(kind, got, want, values):
    """Equal, or within the error if the answer depends on the grouping."""
    if kind == "heavy_hitters":
        came = Counter(values)
        error = len(values) // 21
        for value, count, over in got:
            assert over <= error
            assert count - over <= came[value] <= count
        sure = {value for value, count in came.items() if count > error}
        assert len(got) == min(5, len(came))
        assert sure <= {value for value, _, _ in got} or len(sure) > 5 or error
    elif kind == "approx_quantile":
        assert (got is None) == (want is None)
        if want is not None:
            assert (got[0], got[2]) == (want[0], want[2])
            below = sum(value < got[1] for value in values) / len(values)
            upto = sum(value <= got[1] for value in values) / len(values)
            assert below - 0.2 <= 0.5 <= upto + 0.2
    else:
        assert got == want


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("algorithm", LAWFUL)
def test_on_every_algorithm(algorithm, kind):
    draw = random.Random(5)
    w = sw.Window(SMALL[kind], algorithm=algorithm)
    oracle = sw.Window(SMALL[kind], algorithm="recalculate")
    both = sw.Window({"s": SMALL[kind], "n": sw.count()}, algorithm=algorithm)
    entries = []
    for time in range(250):
        value = None if draw.random() < 0.1 else int(draw.paretovariate(0.7)) % 1000
        entries.append((time, value))
        for window in (w, oracle, both):
            window.insert(time, value)
        if time % 3 == 0:
            until = time - draw.choice((30, 60, 200))
            gone = [window.evict_until(until) for window in (w, oracle, both)]
            assert len(set(gone)) == 1
            entries = [entry for entry in entries if entry[0] > until]
        if time % 10 == 0:
            values = [value for _, value in entries if value is not None]
            same(kind, w.query(), oracle.query(), values)
            same(kind, both.query()["s"], oracle.query(), values)
            w.check()
    again = sw.Window.from_bytes(w.to_bytes())
    assert again.query() == w.query()
    assert again.items() == w.items()
    assert pickle.loads(pickle.dumps(w)).query() == w.query()
    assert w.copy().query() == w.query()


def test_late_entries_and_ranges():
    draw = random.Random(1)
    for kind in ("bloom", "approx_count_distinct", "count_min"):
        w = sw.Window(SMALL[kind], ties="keep")
        oracle = sw.Window(SMALL[kind], ties="keep", algorithm="recalculate")
        times = [draw.randrange(500) for _ in range(3_000)]
        values = [draw.randrange(90) for _ in times]
        w.insert_many(times, values)
        for time, value in zip(times, values, strict=True):
            oracle.insert(time, value)
        assert w.query() == oracle.query()
        for _ in range(20):
            lo = draw.randrange(500)
            hi = lo + draw.randrange(100)
            assert w.query(lo, hi) == oracle.query(lo, hi)
        w.check()


def test_over_nothing():
    answers = {kind: sw.Window(agg).query() for kind, agg in SMALL.items()}
    assert answers["approx_count_distinct"] == 0
    assert answers["approx_quantile"] is None
    assert answers["heavy_hitters"] == []
    assert "a" not in answers["bloom"]
    assert answers["count_min"].estimate("a") == 0
    w = sw.Window(SMALL["bloom"])
    w.insert(1, None)
    assert w.query() == answers["bloom"]


KINDS = {
    "ints": [1, -5, 0, 2**62, 7],
    "floats": [1.5, -0.0, 1e300, math.inf, math.nan],
    "texts": ["a", "", "é", "ab", "A"],
    "bytes": [b"a", b"", b"\xff", b"ab", b"A"],
    "bools": [True, False],
    "unsigned": [2**63, 2**64 - 1, 5],
}


@pytest.mark.parametrize("values", KINDS.values(), ids=KINDS)
def test_hashes_agree_across_windows_and_tables(values):
    kind = pa.uint64() if values == KINDS["unsigned"] else None
    array = pa.array(values, kind, from_pandas=False)
    table = pa.table({"t": range(len(values)), "x": array})
    out = sw.rolling(table, on="t", windows=99, aggs={"b": sw.bloom("x", capacity=9)})
    blob = out["b_99"][-1].as_py()
    filters = [sw.Bloom.from_bytes(blob)]
    for given in (values, array, pd.Series(values), np.array(values, dtype=object)):
        w = sw.Window(sw.bloom(capacity=9))
        w.insert_many(range(len(values)), given)
        filters.append(w.query())
    w = sw.Window(sw.bloom(capacity=9))
    for time, value in enumerate(values):
        w.insert(time, value)
    filters.append(w.query())
    for one in filters:
        if values != KINDS["floats"]:  # a Series of floats has null for NaN
            assert one == filters[0]
        assert all(value in one for value in values if value == value)
        assert "neither" not in one
        assert None not in one


def test_hashes_are_stable():
    # The first and the texts are those of Spark SQL: xxhash64(1L), xxhash64('ada').
    ints = pa.array(_core.hashes(pa.array([1, 2, -1]))).to_pylist()
    texts = pa.array(_core.hashes(pa.array(["ada"], pa.large_string()))).to_pylist()
    assert ints[:2] == [-7001672635703045582, -3341702809300393011]
    assert texts == [6573778463781514939]
    floats = pa.array(_core.hashes(pa.array([1.0, 2.0, -1.0]))).to_pylist()
    assert floats == ints


def test_equal_values_are_one():
    w = sw.Window(sw.heavy_hitters(3))
    for time, value in enumerate([1, 1.0, True, np.int8(1), np.float32(1), -0.0, 0]):
        w.insert(time, value)
    assert [(value, count) for value, count, _ in w.query()] == [(1, 5), (0, 2)]
    w.insert_many([10, 11], [math.nan, float("nan")])
    assert w.query()[1][1:] == (2, 0) or w.query()[2][1:] == (2, 0)


@pytest.mark.parametrize("kind", SMALL)
def test_nan_is_skipped_or_refused_as_requested(kind):
    skipping = sw.Window(SMALL[kind], nan="skip")
    plain = sw.Window(SMALL[kind])
    skipping.insert_many([1, 2, 3], [1.5, math.nan, 2.5])
    skipping.insert(4, math.nan)
    plain.insert_many([1, 3], [1.5, 2.5])
    assert skipping.query() == plain.query()
    with pytest.raises(sw.SpecError, match="NaN"):
        sw.Window(SMALL[kind], nan="raise").insert(1, math.nan)


def test_nan_and_quantiles():
    w = sw.Window(sw.approx_quantile([0.0, 0.5]))
    w.insert_many([1, 2, 3], [1.0, math.nan, 2.0])
    assert all(math.isnan(value) for value in w.query())
    w.evict(2)
    assert w.query() == [1.0, 1.0]


def test_over_tables_as_in_windows():
    draw = random.Random(2)
    rows = 600
    table = pa.table(
        {
            "t": sorted(draw.randrange(2_000) for _ in range(rows)),
            "key": [draw.choice("ab") for _ in range(rows)],
            "x": [draw.choice([None, *range(30)]) for _ in range(rows)],
            "name": [draw.choice([None, "ada", "bob", "cy"]) for _ in range(rows)],
            "ok": [draw.random() < 0.7 for _ in range(rows)],
            "place": range(rows),
        }
    )
    aggs = {
        "distinct": sw.approx_count_distinct("name", where="ok"),
        "half": sw.approx_quantile("x", 0.5),
        "ends": sw.approx_quantile("x", [0, 1]),
        "seen": sw.bloom("name", capacity=10),
        "counts": sw.count_min("name", error=0.2),
        "top": sw.heavy_hitters("name", 2, where="ok"),
        "n": sw.count("x"),
    }
    windows = [200, sw.rows(50)]
    out = sw.rolling(table, on="t", by="key", windows=windows, aggs=aggs)
    arrived = sw.rolling(
        table, on="t", by="key", windows=windows, aggs=aggs, arrival="place"
    )
    assert out["distinct_200"].type == pa.int64()
    assert out["half_200"].type == pa.float64()
    assert out["seen_200"].type == pa.large_binary()
    assert arrived["top_50rows"].to_pylist() == out["top_50rows"].to_pylist()
    rows_of = table.to_pylist()
    for at in range(0, rows, 17):
        row = rows_of[at]
        window = [
            other
            for other in rows_of
            if other["key"] == row["key"] and row["t"] - 200 < other["t"] <= row["t"]
        ]
        w = sw.Window(aggs, ties="keep")
        w.insert_many([other["t"] for other in window], window)
        want = w.query()
        got = {name: out[f"{name}_200"][at].as_py() for name in aggs}
        for name in ("distinct", "half", "ends", "n"):
            assert got[name] == want[name] or want[name] is None
        assert sw.Bloom.from_bytes(got["seen"]) == want["seen"]
        assert sw.CountMin.from_bytes(got["counts"]) == want["counts"]
        top = [(hit["value"], hit["count"], hit["error"]) for hit in got["top"]]
        assert top == want["top"]


def test_min_rows_and_wide_windows():
    table = pa.table({"t": range(5_000), "x": [i % 1_700 for i in range(5_000)]})
    aggs = {"n": sw.approx_count_distinct("x"), "q": sw.approx_quantile("x")}
    out = sw.rolling(table, on="t", windows=3_000, aggs=aggs, min_rows=10)
    assert out["q_3000"][:9].null_count == 9
    assert abs(out["n_3000"][-1].as_py() / 1_700 - 1) < 0.06


def test_sketches_of_one_make_are_one():
    several = {str(q): sw.approx_quantile(q) for q in (0.1, 0.5, 0.9)}
    one = sw.Window({"q": sw.approx_quantile([0.1, 0.5, 0.9]), "n": sw.count()})
    three = sw.Window({**several, "n": sw.count()})
    for window in (one, three):
        window.insert_many(range(10_000), range(10_000))
    assert list(three.query().values())[:3] == one.query()["q"]
    assert three.nbytes < 1.01 * one.nbytes


def test_objects_that_sketches_answer():
    w = sw.Window({"b": sw.bloom(capacity=100), "c": sw.count_min()})
    w.insert_many(range(100), range(100))
    seen, counts = w.query().values()
    assert pickle.loads(pickle.dumps(seen)) == seen
    assert pickle.loads(pickle.dumps(counts)) == counts
    older, younger = w.query(hi=49), w.query(lo=50)
    assert older["b"] | younger["b"] == seen
    assert older["c"] + younger["c"] == counts
    # Preamble, version and family, as Apache DataSketches writes them.
    assert seen.to_bytes()[:3] == bytes([4, 1, 21])
    assert counts.to_bytes()[:3] == bytes([2, 1, 18])
    assert repr(counts) == "<CountMin: 100 values, 5 x 272 counters>"
    assert seen.error_rate < 0.02
    assert counts.total == 100
    assert counts.error < 1.01
    other = sw.Window(sw.bloom(capacity=5000)).query()
    with pytest.raises(sw.SpecError, match="different sizes"):
        _ = seen | other
    with pytest.raises(sw.SpecError, match="different sizes"):
        _ = counts + sw.Window(sw.count_min(error=0.2)).query()
    for kind in (sw.Bloom, sw.CountMin):
        for blob in (b"", b"nonsense", seen.to_bytes()[:-1], counts.to_bytes()[1:]):
            with pytest.raises(sw.SnapshotError):
                kind.from_bytes(blob)
    with pytest.raises(sw.SpecError, match="no stable hash"):
        seen.might_contain(object())


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: sw.bloom(capacity=0), "capacity= takes an int from 1"),
        (lambda: sw.bloom(error_rate=0.9), "error_rate= takes a number"),
        (lambda: sw.bloom(capacity=10**8, error_rate=1e-6), "takes .* bits"),
        (lambda: sw.bloom(3), "takes the name of a column"),
        (lambda: sw.approx_count_distinct(error=0.001), "from 0.002031 to 0.26"),
        (lambda: sw.approx_quantile(1.5), "q= takes a number from 0 to 1"),
        (lambda: sw.approx_quantile([]), "1 to 8 shares"),
        (lambda: sw.approx_quantile("x", "y"), "q= takes a number"),
        (lambda: sw.count_min(error=1e-6), "takes .* counters"),
        (lambda: sw.count_min(confidence=1.0), "confidence="),
        (lambda: sw.heavy_hitters(0), "k= takes an int"),
        (lambda: sw.heavy_hitters(50, counters=20), "from 50"),
        (lambda: sw.Window(sw.bloom(), algorithm="subtract_on_evict"), "an inverse"),
        (lambda: sw.Window(sw.bloom()).insert(1, [1]), "no stable hash"),
        (lambda: sw.Window(sw.approx_quantile(0.5)).insert(1, "a"), "is not a number"),
    ],
)
def test_wrong_requests(make, why):
    with pytest.raises(sw.SpecError, match=why):
        make()


def test_columns_that_do_not_fit():
    table = pa.table({"t": [1], "x": pa.array([1], pa.timestamp("s")), "s": ["a"]})
    for agg in (sw.bloom("x"), sw.approx_quantile("s")):
        with pytest.raises(sw.SpecError, match="does not fit column"):
            sw.rolling(table, on="t", windows=1, aggs={"a": agg})


def test_arguments_in_either_order():
    assert sw.approx_quantile("x", 0.9) == sw.approx_quantile(0.9, "x")
    assert sw.approx_quantile("x", q=[0.9]) == sw.approx_quantile([0.9], "x")
    assert sw.heavy_hitters(5, "x") == sw.heavy_hitters("x", 5)
    assert repr(sw.heavy_hitters("x", 5, where="ok")) == (
        "heavy_hitters('x', k=5, where='ok')"
    )


def test_approximate_quantiles_over_nothing_are_none() -> None:
    """In windows, tables, and tables whose windows hold nulls alone."""
    agg = sw.approx_quantile("x", [0.1, 0.9])
    assert sw.Window(sw.approx_quantile([0.1, 0.9])).query() is None
    table = pa.table({"t": [1, 2, 5], "x": pa.array([None, 3.0, None], pa.float64())})
    for more in ({}, {"arrival": "t"}, {"at": table}):
        out = sw.rolling(table, on="t", windows=2, aggs={"q": agg}, **more)
        assert out["q_2"].to_pylist() == [None, [3.0, 3.0], None]
    out = sw.hopping(table, on="t", window=2, aggs={"q": agg}, empty=True)
    assert out["q"].to_pylist() == [None, [3.0, 3.0], None]
    w = sw.KeyedWindows(on="t", windows=2, aggs={"q": agg})
    w.ingest(table)
    w.advance(9)
    assert w.collect()["q_2"].to_pylist() == [None, [3.0, 3.0], None]


def test_a_confidence_of_one():
    with pytest.raises(sw.SpecError, match=r"0\.5 up, below 1, got 1"):
        sw.count_min("x", confidence=1)
