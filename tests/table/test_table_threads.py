"""`threads=`: the same answers to the last bit, errors that name the row, Ctrl-C."""

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from forking import in_child, running

import slidewise as sw
from slidewise.spec.spec import Spec
from slidewise.table import kernel_pass
from slidewise.table import threads as table_threads
from slidewise.table.batched_rolling import rolling_batches

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
    options = {"on": "t", "by": by, "windows": [300, sw.rows(20)], "aggs": AGGS}
    one = sw.rolling(trips, **options)
    many = sw.rolling(trips, **options, threads=threads)
    assert many.equals(one)
    assert many.schema == one.schema


@pytest.mark.long
def test_query_points_hops_and_arrival_are_the_same(trips: pa.Table) -> None:
    options = {"on": "t", "by": "k", "aggs": AGGS}
    labels = trips.select(["t", "k"]).slice(100, 40_000)
    for given in (
        {"windows": 300, "at": labels},
        {"windows": 300, "offset": 7},
        {"windows": [300, sw.rows(9)], "arrival": "t"},
    ):
        one = sw.rolling(trips, **options, **given)
        assert sw.rolling(trips, **options, **given, threads=4).equals(one)
    one = sw.hopping(trips, **options, window=400, every=50)
    assert sw.hopping(trips, **options, window=400, every=50, threads=4).equals(one)


FLOATS = {
    "sum": sw.sum("x"),
    "mean": sw.mean("x"),
    "variance": sw.variance("x"),
    "stddev": sw.stddev("x"),
    "covariance": sw.covariance("x", "y"),
    "correlation": sw.correlation("x", "y"),
    "skewness": sw.skewness("x"),
    "kurtosis": sw.kurtosis("x"),
    "geometric_mean": sw.geometric_mean("x"),
    "product": sw.product("x"),
    "squares": sw.sum_of_squares("x"),
}


def floats(keys: int, **large: list[float]) -> pa.Table:
    """Values of many sizes; one key and some large values come last."""
    draw = np.random.default_rng(1)
    rows = 40_000
    key = draw.integers(0, keys, rows)
    x = draw.normal(1e6, 1, rows) * 10.0 ** draw.integers(-8, 8, rows)
    y = draw.normal(0, 1, rows)
    for name, values in large.items():
        at = np.flatnonzero(key == int(name[1:]))
        x[at[10 : 10 + len(values)]] = values
    return pa.table({"t": np.arange(rows), "k": key, "x": x, "y": y})


def bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats as bits, for exact comparison: NaN is equal to NaN."""
    return column.cast(pa.float64()).combine_chunks().view(pa.int64())


@pytest.mark.parametrize(
    "options",
    [
        {"windows": [5_000, sw.rows(40)]},
        {"windows": 5_000, "offset": 11},
        {"window": 9_000, "every": 3_000},
    ],
    ids=["rows", "offset", "hops"],
)
def test_a_key_is_answered_by_its_own_values_alone(options: dict[str, object]) -> None:
    """For any number of threads and any size of the values of other keys."""
    request = {"on": "t", "by": "k", "aggs": FLOATS, **options}
    compute = sw.hopping if "window" in options else sw.rolling
    large = floats(50, k7=[1e200, 1.0, 1e160], k8=[1e300], k9=[-1.7e308, 1.7e308])
    one = compute(large, **request)
    for threads in (2, 4, 8):
        many = compute(large, **request, threads=threads)
        for name in one.column_names:
            assert bits(many[name]).equals(bits(one[name])), (threads, name)
    plain = compute(floats(50), **request)
    others = pc.invert(pc.is_in(plain["k"], pa.array([7, 8, 9])))
    for table in (one, compute(large.filter(pc.greater(large["k"], 8)), **request)):
        known = pc.is_in(plain["k"], pc.unique(table["k"]))
        ours = table.filter(pc.invert(pc.is_in(table["k"], pa.array([7, 8, 9]))))
        theirs = plain.filter(pc.and_(known, others))
        for name in ours.column_names:
            assert bits(ours[name]).equals(bits(theirs[name])), name


def test_nulls_do_not_change_the_kernel_of_a_key() -> None:
    """The memory under a null may hold any number."""
    draw = np.random.default_rng(2)
    x = draw.normal(1e6, 1, 3_000) * 10.0 ** draw.integers(-8, 8, 3_000)
    gone = np.arange(3_000) % 7 == 3
    tables = [
        pa.table(
            {"t": range(3_000), "x": pa.array(np.where(gone, under, x), mask=gone)}
        )
        for under in (0.0, 1e200)
    ]
    one, other = (
        sw.rolling(table, on="t", windows=500, aggs={"sd": sw.stddev("x")})
        for table in tables
    )
    assert bits(one["sd_500"]).equals(bits(other["sd_500"]))


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


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2"])
def test_nonsense_is_refused(trips: pa.Table, threads: object) -> None:
    with pytest.raises(sw.SpecError, match="threads="):
        sw.rolling(
            trips,
            on="t",
            windows=5,
            aggs={"c": sw.count()},
            threads=threads,  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("cores", [1, 3])
def test_by_default_as_many_threads_as_cores(
    trips: pa.Table, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    """All cores by default if there are rows for them; streams and batches use one."""
    monkeypatch.setattr(table_threads, "_cores", lambda: cores)
    monkeypatch.setattr(table_threads, "_ROWS_PER_THREAD", len(trips) // 3)
    options: list[int] = []
    compute = kernel_pass._core.rolling

    def rolling(*given: Any) -> Any:
        options.append(given[8])
        return compute(*given)

    monkeypatch.setattr(kernel_pass._core, "rolling", rolling)
    request: dict[str, Any] = {"on": "t", "aggs": {"n": sw.count()}}
    sw.rolling(trips, windows=5, **request)
    sw.hopping(trips, window=5, **request)
    sw.rolling(trips, windows=5, **request, threads=2)
    sw.rolling(trips[: len(trips) // 2], windows=5, **request)
    sw.rolling(trips[:1], windows=5, **request, at=trips)
    sw.rolling(trips[:1], windows=5, **request, threads=2)
    assert options == [cores, cores, 2, 1, cores, 2]
    options.clear()
    kept = sw.KeyedWindows(windows=5, **request)
    kept.ingest(trips)
    kept.advance()
    rows = trips.sort_by("t")
    list(
        rolling_batches(rows.to_batches(), Spec.make(windows=5, **request), rows.schema)
    )
    assert set(options) == {1}


def test_cores_are_those_of_the_process() -> None:
    call = "print(threads.resolve_threads(None, rows=1 << 30))"
    message = f"from slidewise.table import threads; {call}"
    run = [
        sys.executable,
        "-c",
        f"import os; os.sched_setaffinity(0, {{0}}); {message}",
    ]
    out = subprocess.run(run, check=True, capture_output=True, text=True)
    assert out.stdout == "1\n"


def test_ctrl_c_stops_all_threads() -> None:
    rows = 3_000_000
    table = pa.table(
        {
            "t": np.arange(rows),
            "k": np.arange(rows) % 100,
            "x": np.random.default_rng(1).random(rows),
        }
    )
    # A process that a shell starts in the background begins without a handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    started = time.monotonic()

    def roll() -> None:
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
            roll()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 30
    timer.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
# From Python 3.12 on, of processes that have several threads.
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_of_a_fork_starts_threads_of_its_own() -> None:
    """While another thread waits for those of its own call."""
    count = 100_000
    rows = pa.table({"t": range(count), "k": [at % 7 for at in range(count)]})

    def work() -> pa.Table:
        aggs = {"n": sw.count(), "m": sw.median("t")}
        return sw.rolling(rows, on="t", by="k", windows=50, aggs=aggs, threads=2)

    wanted = work()
    with running(work):
        for _ in range(2):
            assert in_child(lambda: work().equals(wanted))
