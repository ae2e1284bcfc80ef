"""`threads=`: the same answers to the last bit, errors that name the row, Ctrl-C."""

import _thread
import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw

ROWS = 60_000


@pytest.fixture(scope="module")
def trips() -> pa.Table:
    """Keys of very different sizes, times in no order, values missing."""
    draw = np.random.default_rng(5)
    keys = (draw.exponential(40, ROWS)).astype(np.int64)
    x = draw.normal(1e6, 1.0, ROWS)
    return pa.table(
        {
            "t": draw.integers(0, 500_000, ROWS),
            "k": keys,
            "x": pa.array(x, mask=draw.random(ROWS) < 0.1),
            "n": draw.integers(-1000, 1000, ROWS),
            "text": pa.array(keys % 7).cast(pa.string()),
        }
    )


AGGS = {
    "c": sw.count(),
    "s": sw.sum("x"),
    "m": sw.mean("n"),
    "sd": sw.stddev("x"),
    "hi": sw.max("text"),
    "sk": sw.skewness("x"),
    "q": sw.quantile("x", 0.9),
    "first": sw.first("x"),
    "top": sw.top_k("n", 3),
    "at": sw.arg_max("t", by="n"),
}


@pytest.mark.parametrize("threads", [2, 3, 16])
@pytest.mark.parametrize("by", [None, "k"])
def test_rolling_is_the_same(trips: pa.Table, threads: int, by: str | None) -> None:
    asked = {"on": "t", "by": by, "windows": [300, sw.rows(20)], "aggs": AGGS}
    one = sw.rolling(trips, **asked)
    many = sw.rolling(trips, **asked, threads=threads)
    assert many.equals(one)
    assert many.schema == one.schema


def test_other_moments_hops_and_arrival_are_the_same(trips: pa.Table) -> None:
    asked = {"on": "t", "by": "k", "aggs": AGGS}
    labels = trips.select(["t", "k"]).slice(100, 40_000)
    for given in (
        {"windows": 300, "at": labels},
        {"windows": 300, "offset": 7},
        {"windows": [300, sw.rows(9)], "arrival": "t"},
    ):
        one = sw.rolling(trips, **asked, **given)
        assert sw.rolling(trips, **asked, **given, threads=4).equals(one)
    one = sw.hopping(trips, **asked, window=400, every=50)
    assert sw.hopping(trips, **asked, window=400, every=50, threads=4).equals(one)


def test_an_overflow_names_its_row() -> None:
    keys = np.arange(ROWS) % 500
    values = np.ones(ROWS, dtype=np.int64)
    values[[31_000, 31_500]] = 2**62
    table = pa.table({"t": np.arange(ROWS), "k": keys, "n": values})
    for threads in (1, 2, 4):
        with pytest.raises(sw.ResultOverflowError, match="row 31500 "):
            sw.rolling(
                table,
                on="t",
                by="k",
                windows=sw.rows(2),
                aggs={"s": sw.sum("n")},
                threads=threads,
            )


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2", None])
def test_nonsense_is_refused(trips: pa.Table, threads: object) -> None:
    with pytest.raises(sw.SpecError, match="threads="):
        sw.rolling(
            trips,
            on="t",
            windows=5,
            aggs={"c": sw.count()},
            threads=threads,  # type: ignore[arg-type]
        )


def test_ctrl_c_stops_all_threads() -> None:
    rows = 3_000_000
    table = pa.table(
        {
            "t": np.arange(rows),
            "k": np.arange(rows) % 100,
            "x": np.random.default_rng(1).random(rows),
        }
    )
    # What a shell starts in the background begins without a handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    started = time.monotonic()

    def ask() -> None:
        while time.monotonic() - started < 60:
            sw.rolling(
                table,
                on="t",
                by="k",
                windows=[10_000, 20_000, 50_000],
                aggs={"s": sw.skewness("x"), "q": sw.median("x")},
                threads=2,
            )

    try:
        with pytest.raises(KeyboardInterrupt):
            ask()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 30
    timer.join()
